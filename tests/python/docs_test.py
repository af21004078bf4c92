#!/usr/bin/python3
"""The examples of docs/python.md and of README.md (```pycon blocks) are run, in order, in a scratch directory."""
import doctest
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(path):
    text = path.read_text(encoding="utf-8")
    for match in re.finditer(r"^```pycon\n(.*?)^```$", text, re.S | re.M):
        yield text.count("\n", 0, match.start(1)), match[1]


def has_sql():
    import opwatch
    try:
        opwatch.open(ROOT / "samples/resnet.profile").sql("SELECT 1")
    except opwatch.Unsupported:
        return False
    return True


class Examples(unittest.TestCase):
    def run_page(self, path):
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            self.addCleanup(os.chdir, here)
            shutil.copytree(ROOT / "samples", "samples")
            names, count = {}, 0
            runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
            for line, text in blocks(path):
                if ".sql(" in text and not has_sql():
                    continue
                test = doctest.DocTestParser().get_doctest(text, names, path.name, str(path), line)
                runner.run(test, clear_globs=False)
                names = test.globs
                count += len(test.examples)
            os.chdir(here)
        self.assertGreater(count, 0)
        self.assertEqual(runner.summarize(verbose=False).failed, 0)

    def test_python_page(self):
        self.run_page(ROOT / "docs/python.md")

    def test_readme(self):
        self.run_page(ROOT / "README.md")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
