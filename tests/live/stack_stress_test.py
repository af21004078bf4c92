#!/usr/bin/python3
"""
No stack is reported that the program never had. The functions of the job are named by their callers (n_0_2_1 is called by n_0_2
only), and it changes them as fast as Python can. OPWATCH_STRESS=60 samples for so many seconds.
"""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

BIN = os.environ["OPWATCH_BIN"]
SECONDS = os.environ.get("OPWATCH_STRESS", "4")
PYTHONS = [p for p in ("/usr/bin/python3", shutil.which("python3")) if p]
JOB = """
import itertools, sys
source = []
def make(name, depth):
    children = [f"{name}_{i}" for i in range(3)] if depth else []
    source.append(f"def {name}():\\n" + ("".join(f"    {c}()\\n" for c in children) or "    pass\\n"))
    for c in children: make(c, depth - 1)
make("n", 5)
exec("\\n".join(source))
print("ready", flush=True)
while True: n()
"""


class StackStressTest(unittest.TestCase):
    def check(self, python):
        with tempfile.TemporaryDirectory() as folder, subprocess.Popen([python, "-c", JOB], stdout=subprocess.PIPE, text=True) as job:
            try:
                self.assertEqual(job.stdout.readline(), "ready\n")
                file = os.path.join(folder, "x.opw")
                p = subprocess.run([BIN, "stacks", str(job.pid), "--for", SECONDS + "s", "--hz", "1000", "-o", file], capture_output=True,
                                   text=True, timeout=600)
                self.assertEqual(p.returncode, 0, p.stderr)
            finally:
                job.kill()
            folded = subprocess.run([BIN, "convert", file, "--to", "folded", "-o", "-"], capture_output=True, text=True)
            self.assertEqual(folded.returncode, 0, folded.stderr)
            stacks = 0
            for line in folded.stdout.splitlines():
                names = re.findall(r"\bn(?:_\d)*\b", line.rsplit(" ", 1)[0])
                stacks += 1
                for caller, callee in zip(names, names[1:]):
                    self.assertRegex(callee, rf"^{caller}_\d$", line)
            self.assertGreater(stacks, 10, folded.stdout + p.stderr)

    def test_no_impossible_stack(self):
        for python in PYTHONS:
            with self.subTest(python=python):
                self.check(python)


if __name__ == "__main__":
    unittest.main()
