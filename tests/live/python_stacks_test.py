#!/usr/bin/python3
"""`opwatch record -- python3 train.py` without options names the line that takes the time, and says how little of the run
the recorded calls cover."""
import os
import re
import subprocess
import tempfile
import unittest

BIN = os.environ["OPWATCH_BIN"]
JOB = """import time
def load():
    time.sleep(0.05)
def train():
    return sum(range(100000))
for i in range(15):
    load(); train()
"""


class PythonStacksTest(unittest.TestCase):
    def record(self, *options):
        with tempfile.TemporaryDirectory() as folder:
            program, recording = os.path.join(folder, "job.py"), os.path.join(folder, "x.opw")
            with open(program, "w", encoding="utf8") as f:
                f.write(JOB)
            p = subprocess.run([BIN, "record", *options, "-o", recording, "--", "/usr/bin/python3", program], capture_output=True,
                               text=True, timeout=120)
            self.assertEqual((p.returncode, p.stdout), (0, ""), p.stderr)
            q = subprocess.run([BIN, "verdict", recording], capture_output=True, text=True, timeout=120)
            self.assertEqual(q.returncode, 0, q.stderr)
            return " ".join(q.stdout.split())

    def test_a_job_that_sleeps(self):
        verdict = self.record()
        found = re.search(r"(\d+) % of wall is spent in load \(job\.py:3\) itself", verdict)
        self.assertTrue(found, verdict)
        self.assertGreaterEqual(int(found.group(1)), 50)
        self.assertRegex(verdict, r"Recorded calls cover 0\.\d+ % of the run")

    def test_without_stacks(self):
        self.assertRegex(self.record("--stacks=0"), r"Recorded calls cover [\d.]+ % of .*what it did otherwise is not in the file")


if __name__ == "__main__":
    unittest.main()
