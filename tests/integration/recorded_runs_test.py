#!/usr/bin/python3
"""Replays recorded runs of the original tfprof, when OPWATCH_GOLDEN names the folder that holds them.

The folder has its own program `check BINARY DATASET INPUTS`, which compares exit status, output and written files
byte for byte and ends with 0 when nothing failed. OPWATCH_CORPUS holds the inputs of one of the datasets.
"""
import os
import subprocess
import sys
import unittest

GOLDEN = os.environ.get("OPWATCH_GOLDEN")
CORPUS = os.environ.get("OPWATCH_CORPUS", "")


class RecordedRuns(unittest.TestCase):
    def replay(self, dataset, inputs):
        if not os.path.isdir(inputs):
            self.skipTest(f"no {inputs}")
        done = subprocess.run([sys.executable, f"{GOLDEN}/check", os.environ["OPWATCH_BIN"], f"{GOLDEN}/{dataset}.jsonl.gz", inputs],
                              text=True, capture_output=True)
        print(done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(" 0 failed", done.stdout)

    def test_tiny(self):
        self.replay("tiny", f"{GOLDEN}/inputs/tiny")

    def test_edge(self):
        self.replay("edge", f"{GOLDEN}/inputs/edge")

    def test_testdata(self):
        self.replay("testdata", f"{CORPUS}/tf1-tfprof")


if __name__ == "__main__":
    if not GOLDEN:
        print("OPWATCH_GOLDEN is not set: no recorded runs to replay")
        sys.exit(77)
    unittest.main()
