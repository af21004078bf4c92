#!/usr/bin/python3
"""Values in Python are the program's --json, for every view of real files (OPWATCH_CORPUS; small ones of each kind)."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BUILD = os.environ.get("OPWATCH_BUILD", str(ROOT / "build/release"))
BIN = os.environ.get("OPWATCH_BIN", os.path.join(BUILD, "opwatch"))
CORPUS = os.environ.get("OPWATCH_CORPUS")
LARGEST = 3 << 20
PER_FOLDER = 4
sys.path.insert(0, os.path.join(BUILD, "python"))


def program(view, path):
    """(what it prints, or None when it fails, its message)"""
    levels = ["--max_depth", str(2**30 - 1)] if view in ("op", "scope", "graph", "code") else []
    done = subprocess.run([BIN, view, str(path), "--json", *levels], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return (json.loads(done.stdout), "") if done.returncode == 0 else (None, done.stderr.decode("utf-8", "replace"))


def files():
    for folder in sorted(pathlib.Path(CORPUS).iterdir()):
        found = sorted((p for p in folder.rglob("*") if p.is_file() and 0 < p.stat().st_size <= LARGEST),
                       key=lambda p: p.stat().st_size) if folder.is_dir() else []
        step = max(len(found) // PER_FOLDER, 1)
        yield from found[::step][:PER_FOLDER]


class Corpus(unittest.TestCase):
    def test_views(self):
        compared = failed = 0
        for path in files():
            try:
                profile = opwatch.open(path)
            except opwatch.Error as error:
                failed += 1
                with self.subTest(path=path):
                    self.assertIn(str(error).strip(), program("steps", path)[1])
                continue
            for name, _, _ in opwatch.views():
                with self.subTest(path=path, view=name):
                    expected, _ = program(name, path)
                    try:
                        result = profile.view(name)
                    except opwatch.Error:  # the program says it in other words, or shows that there is nothing
                        self.assertFalse(expected and expected["rows"])
                        continue
                    if expected is not None:
                        self.assertEqual(result.to_json(), expected)
                        compared += 1
        print(f"{compared} views compared, {failed} files that neither opens")
        self.assertGreater(compared, 100)


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set")
        sys.exit(77)
    import opwatch
    unittest.main()
