#!/usr/bin/python3
"""What `opwatch attach` interrupts goes on: a system call is made once, not again after it was done, and not left out; a start of
the recorder that another one interrupts does not begin again.

OPWATCH_ATTACHES=200 attaches more often than the suite does.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from ring import ring_version  # pylint: disable=wrong-import-position

BIN, SRC = os.environ["OPWATCH_BIN"], os.environ["OPWATCH_SRC"]
ATTACHES = int(os.environ.get("OPWATCH_ATTACHES", "12"))


class AttachCallsTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.target = os.path.join(self.dir, "target")

    def build(self, name):
        subprocess.run(["cc", "-O2", "-std=gnu17", "-D_GNU_SOURCE", "-pthread", f"{SRC}/tests/support/{name}.c", "-o", self.target],
                       check=True)

    def test_a_start_that_is_interrupted_by_another_one(self):
        self.build("nested_start")
        library = os.path.join(os.path.dirname(BIN), "libopwatch-recorder.so")
        p = subprocess.run([self.target, library, ring_version()], capture_output=True, text=True, timeout=120)
        self.assertEqual((p.returncode, p.stdout), (0, "ok\n"), p.stderr)

    def test_reads_and_writes_of_pipes(self):
        self.build("pipe_target")
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
