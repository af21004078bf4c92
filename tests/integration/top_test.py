#!/usr/bin/python3
"""opwatch top and attention on real PyTorch jobs without any profiling code: a job that waits 30 ms for data and computes for
20 ms is shown as such; one that becomes slower, and then stands still, is told of, and why."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"

# Sleeping and burning by the clock: as long on a busy machine, but for what it is not given.
JOB = """
import sys, time, torch
from torch.utils.data import Dataset, DataLoader

steps, slow_from, stall = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
torch.set_num_threads(1)

class Data(Dataset):
    def __len__(self):
        return steps + 5
    def __getitem__(self, i):
        time.sleep(0.030 if i < slow_from else 0.200)
        return torch.zeros(4)

def stand_still(seconds):
    time.sleep(seconds)

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
n = 0
for x in DataLoader(Data(), batch_size=1):
    with torch.autograd.profiler.record_function("aten::burn"):
        end = time.perf_counter() + 0.020
        while time.perf_counter() < end:
            torch.relu(x)
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    n += 1
    if n == steps:
        stand_still(stall)
        break
"""


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode == 0


class TopTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.script = os.path.join(self.dir, "job.py")
        self.file = os.path.join(self.dir, "job.opw")
        with open(self.script, "w") as f:
            f.write(JOB)

    def job(self, *options, args):
        return subprocess.Popen([BIN, "record", "-o", self.file, *options, "--", PYTHON, self.script, *args],
                                stderr=subprocess.PIPE, text=True, cwd=self.dir)

    def top(self):
        p = subprocess.run([BIN, "top", "--json", self.file], capture_output=True, text=True, check=False)
        return json.loads(p.stdout)[0] if p.returncode == 0 else None

    def test_shows_what_the_job_does(self):
        job = self.job(args=("100000", "100000", "0"))
        try:
            end = time.monotonic() + 300
            while True:
                seen = self.top()
                if seen and seen["steps"] >= 30 or time.monotonic() > end:
                    break
                time.sleep(0.5)
            self.assertEqual(seen["state"], "runs")
            self.assertEqual(seen["job"], "python3 job.py")
            self.assertGreater(seen["cpu"], 0)
            self.assertGreater(seen["phase_ns"]["input"], 29e6)
            self.assertTrue(any("DataLoader" in op["name"] for op in seen["ops"]))
            if os.environ.get("OPWATCH_QUIET_MACHINE"):
                self.assertLess(abs(seen["phase_ns"]["input"] - 30e6), 1.5e6)
                self.assertLess(abs(seen["step_ns"] - 51e6), 2.5e6)
        finally:
            job.terminate()
            job.communicate()
        # The same file, offline: the same steps.
        steps = json.loads(subprocess.run([BIN, "steps", "--json", self.file], capture_output=True, text=True,
                                          check=True).stdout)["rows"]
        last = self.top()
        recent = [r["duration_ns"] for r in steps][-len(last["recent_ns"]):]
        self.assertEqual(recent, last["recent_ns"])

    def test_says_why(self):
        job = self.job("--on-slowdown", "50%", "--on-stall", "3s", args=("110", "60", "8"))
        _, err = job.communicate(timeout=600)
        self.assertEqual(job.returncode, 0, err)
        slow = re.search(r"steps take (\d+) % longer since .*input went from .* to .*, most of it in (\S+)", err)
        self.assertTrue(slow, err)
        self.assertGreater(int(slow[1]), 50)
        self.assertIn("DataLoader", slow[2])
        self.assertRegex(err, r"no step for .*: process \d+ is in stand_still \(job.py:\d+\)")
        saved = re.findall(r"goes to (\S+\.opw)", err)
        self.assertTrue(saved, err)
        for name in saved:
            path = os.path.join(self.dir, os.path.basename(name))
            self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
            p = subprocess.run([BIN, "steps", "--json", path], capture_output=True, text=True, check=True)
            self.assertGreater(len(json.loads(p.stdout)["rows"]), 20)


if __name__ == "__main__":
    if not has_torch():
        print("skipped: no PyTorch")
        sys.exit(77)
    unittest.main()
