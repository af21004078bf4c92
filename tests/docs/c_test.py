#!/usr/bin/python3
"""The program in docs/c.md compiles as C without warnings, prints what the page shows, and writes JSON."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BUILD = pathlib.Path(os.environ.get("OPWATCH_BUILD", ROOT / "build/release")).resolve()
PAGE = (ROOT / "docs/c.md").read_text(encoding="utf8")
FLAGS = ["-std=gnu17", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}"]


def block(language, number=0):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)[number]


class Page(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)

    def compile(self, text, *more):
        (self.dir / "costs.c").write_text(text, encoding="utf8")
        subprocess.run(["cc", *FLAGS, *more, self.dir / "costs.c"], check=True, cwd=self.dir)

    def test_run(self):
        (self.dir / "costs.c").write_text(block("c"), encoding="utf8")
        subprocess.run(["cc", *FLAGS, "-o", "costs", "costs.c", BUILD / "libopwatch.so", f"-Wl,-rpath,{BUILD}"], check=True,
                       cwd=self.dir)
        shutil.copytree(ROOT / "samples", self.dir / "samples")
        done = subprocess.run(["./costs", "samples/resnet.profile"], check=True, cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.stdout, block("text"))
        shown = subprocess.run([BUILD / "opwatch", "op", "samples/resnet.profile", "--json"], check=True, cwd=self.dir,
                               capture_output=True, text=True)
        self.assertEqual(json.loads((self.dir / "ops.json").read_text(encoding="utf8")), json.loads(shown.stdout))
        failed = subprocess.run(["./costs", "missing"], cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("missing", failed.stderr)

    def test_options(self):
        self.compile("#include <opwatch/opwatch.h>\nvoid f(void);\nvoid f(void)\n{\n" + block("c", 1) + "}\n", "-c")


if __name__ == "__main__":
    if not shutil.which("cc") or not (BUILD / "libopwatch.so").exists():
        print("needs a compiler and the shared library")
        sys.exit(77)
    if "OPWATCH_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text():
        print("a library with sanitizers needs a program with sanitizers")
        sys.exit(77)
    unittest.main()
