#!/usr/bin/python3
"""A system call that `opwatch attach` interrupts is made once: not again after it was done, and not left out.

OPWATCH_ATTACHES=200 attaches more often than the suite does.
"""
import os
import shutil
import subprocess
import tempfile
import unittest

BIN, SRC = os.environ["OPWATCH_BIN"], os.environ["OPWATCH_SRC"]
ATTACHES = int(os.environ.get("OPWATCH_ATTACHES", "12"))


class AttachCallsTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.target = os.path.join(self.dir, "target")
        subprocess.run(["cc", "-O2", "-std=gnu17", "-pthread", f"{SRC}/tests/support/pipe_target.c", "-o", self.target], check=True)

    def test_reads_and_writes_of_pipes(self):
        job = subprocess.Popen([self.target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        self.assertEqual(job.stdout.readline(), "ready\n")
        for number in range(ATTACHES):
            p = subprocess.run([BIN, "attach", "-o", os.path.join(self.dir, "x.opw"), "--for", "10ms", str(job.pid)], capture_output=True,
                               text=True, timeout=60)
            self.assertIsNone(job.poll(), f"attach {number}")
            self.assertEqual(p.returncode, 0, p.stderr)
        out, err = job.communicate("", timeout=60)
        self.assertEqual((job.returncode, out, err), (0, "ok\n", ""))


if __name__ == "__main__":
    unittest.main()
