#!/usr/bin/python3
"""What a terminal gets and a pipe does not: colours, and a line of progress when loading takes more than half a second."""
import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import PATIENCE  # noqa: E402
from terminal import Terminal  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
SAMPLE = os.path.join(os.environ["OPWATCH_SRC"], "samples", "resnet.profile")


class Colours(unittest.TestCase):
    def seen(self, **env):
        home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, home)
        t = Terminal(["op", SAMPLE, "-n", "1", "--no-pager"], home, **env)
        text = t.read_until(r"MatchingFiles.*\n")
        self.assertEqual(t.wait(), 0)
        return text

    def test_on_a_terminal(self):
        self.assertIn("\x1b[1m", self.seen())
        self.assertIn("\x1b[1m", self.seen(NO_COLOR=""))

    def test_unless_they_are_not_wanted(self):
        self.assertNotIn("\x1b", self.seen(NO_COLOR="1"))
        self.assertNotIn("\x1b", self.seen(TERM="dumb"))


class Progress(unittest.TestCase):
    def feed(self, stderr, enough):
        """Gives the same profile again and again, slowly, until there is enough."""
        with open(SAMPLE, "rb") as f:
            piece = f.read()
        with subprocess.Popen([BIN, "op", "-", "-n", "1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=stderr) as p:
            while not enough():
                p.stdin.write(piece)
                p.stdin.flush()
                time.sleep(0.02)
            p.stdin.close()
            return p.wait()

    def test_on_a_terminal(self):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        seen, end = b"", time.monotonic() + PATIENCE

        def enough():
            nonlocal seen
            if select.select([ours], [], [], 0)[0]:
                seen += os.read(ours, 4096)
            return b"reading -" in seen or time.monotonic() > end

        self.assertEqual(self.feed(theirs, enough), 0)
        os.close(theirs)
        self.assertRegex(seen, rb"reading -: [0-9.]+ MB")       # nobody knows how much will come

    def test_not_in_a_pipe(self):
        begin = time.monotonic()
        with tempfile.TemporaryFile() as f:
            self.assertEqual(self.feed(f, lambda: time.monotonic() - begin > 1), 0)
            f.seek(0)
            self.assertNotIn(b"reading", f.read())


if __name__ == "__main__":
    unittest.main()
