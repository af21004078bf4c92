#!/usr/bin/python3
"""The web page in Debian's chromium: tests/ui/pages.mjs checks every page, interact.mjs what one does with them, choose.mjs what one
chooses on them, walk.mjs the ways from the first page to a line of code, live.mjs files and jobs that change meanwhile, random.mjs uses it without a plan. Skips when the browser, node, the page or what
tools/setup-ui fetches is missing."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))


def missing():
    """What is missing, or an empty text."""
    if not shutil.which("node") or not shutil.which("chromium"):
        return "node or chromium is not installed"
    if not (ROOT / "build/deps/ui/node_modules/playwright-core").is_dir():
        return "tools/setup-ui did not fetch playwright-core"
    shown = subprocess.run([BIN, "report", str(ROOT / "samples/resnet.profile"), "-o", os.devnull], capture_output=True, text=True,
                           timeout=60).stderr
    return shown.strip() if "no web page" in shown else ""


class Browser(unittest.TestCase):
    def run_checks(self, script):
        done = subprocess.run(["node", str(ROOT / "tests/ui" / script)], env={**os.environ, "OPWATCH": os.path.abspath(BIN)}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600 + int(os.environ.get("OPWATCH_UI_SECONDS", "0")))
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_pages(self):
        self.run_checks("pages.mjs")

    def test_interaction(self):
        self.run_checks("interact.mjs")

    def test_choosing(self):
        self.run_checks("choose.mjs")

    def test_walk(self):
        self.run_checks("walk.mjs")

    def test_live(self):
        self.run_checks("live.mjs")

    def test_random_use(self):
        self.run_checks("random.mjs")


if __name__ == "__main__":
    why = missing()
    if why:
        print("skipped:", why)
        sys.exit(77)
    unittest.main()
