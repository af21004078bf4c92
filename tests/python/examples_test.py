#!/usr/bin/python3
"""The programs in examples/python run, and say what they should."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
try:
    import google.protobuf  # noqa: F401
except ImportError:
    print("skipped: this Python has no protobuf")
    sys.exit(77)


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def example(self, name, *arguments):
        done = subprocess.run([sys.executable, str(ROOT / "examples/python" / name), *arguments], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_estimator_hook(self):
        lines = self.example("estimator_hook.py", "model").splitlines()
        self.assertEqual([line.split(":")[0] for line in lines[:-1]], ["step 10", "step 20", "step 30", "step 40"])
        self.assertEqual(lines[-1], "most expensive: MatchingFiles")

    def test_combined_traces(self):
        text = self.example("combined_traces.py", "model")
        by_hand, by_us = (int(word) for word in text.split() if word.isdigit() and int(word) > 100)
        self.assertEqual(by_hand, by_us)
        self.assertIn("MatchingFiles", text)

    def test_profile_context(self):
        text = self.example("profile_context.py", "model")
        self.assertIn("sampled: ['profile_100']", text)
        self.assertIn("asked: ['profile_1'] slowest MatchingFiles", text)
        self.assertIn("views: [15, 18, 20] parameters 7850", text)

    def test_tutorials(self):
        text = self.example("tutorials.py", "logs")
        self.assertIn("saved logs/time/profile_2", text)
        self.assertIn("saved logs/memory/profile_2", text)
        self.assertIn("my_training_loop/MatMul", text)

    def test_usage(self):
        for name in ("estimator_hook.py", "combined_traces.py", "profile_context.py", "tutorials.py", "mnist_profile.py"):
            done = subprocess.run([sys.executable, str(ROOT / "examples/python" / name)], cwd=self.folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 2, name)
            self.assertTrue(done.stderr.startswith("usage: "), done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_mnist(self):
        self.assertIn("0.92", self.example("mnist_profile.py", "--steps", "4", "--out", "test.txt"))
        report = pathlib.Path(self.folder, "test.txt").read_text()
        self.assertIn("op occurrence (run|defined)", report)
        first = report[report.index("op occurrence (run|defined)"):].splitlines()[1]
        self.assertTrue(first.startswith("MatchingFiles"), first)


if __name__ == "__main__":
    unittest.main()
