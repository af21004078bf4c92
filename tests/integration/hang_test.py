#!/usr/bin/python3
"""Real hangs of four processes with gloo: one rank sleeps, loops, waits for a lock, misses a collective or enters another one. The job is recorded by
opwatch record, or by the daemon; the sentence about the stall, the answer that is saved with the minute, and opwatch hang on the recording
name the rank. OPWATCH_GLOO_HANGS says how many are tried (3; 20 before a release). Needs python3-torch."""
import glob
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from record_jobs_test import BIN, PYTHON, environment, has  # pylint: disable=wrong-import-position
from support.patience import until  # pylint: disable=wrong-import-position
from support.ports import reserve  # pylint: disable=wrong-import-position

HANGS = int(os.environ.get("OPWATCH_GLOO_HANGS", "3"))
JOB = """
import os, sys, threading, time, torch, torch.distributed as dist
rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
kind, culprit, at = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(1)

def load_batch(step):
    if rank == culprit and step == at:
        misbehave()
    return torch.ones(8, 16)

def misbehave():
    if kind == 'sleep':
        time.sleep(1000)
    elif kind == 'loop':
        while True: sum(range(1000))
    elif kind == 'lock':
        lock = threading.Lock(); lock.acquire(); lock.acquire()
    elif kind == 'read':
        os.read(os.pipe()[0], 1)
    elif kind == 'other':
        dist.barrier()

dist.init_process_group('gloo')
net = torch.nn.Linear(16, 4)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
def train_step(step):
    net(load_batch(step)).sum().backward()
    if kind == 'skip' and rank == culprit and step == at:
        time.sleep(1000)
    for p in net.parameters(): dist.all_reduce(p.grad)
    opt.step(); opt.zero_grad()
for step in range(100000):
    train_step(step)
    time.sleep(0.02)
"""
KINDS = ["sleep", "other", "loop", "lock", "read", "skip"]


@unittest.skipUnless(has("torch"), "python3-torch is not installed")
class GlooHang(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.rng = random.Random(19)

    def hang(self, number):
        """A job that hangs under record; the message, the saved answer and that of opwatch hang."""
        kind, culprit = KINDS[number % len(KINDS)], self.rng.randrange(4)
        folder = os.path.join(self.dir, str(number))
        os.mkdir(folder)
        pathlib.Path(folder, "job.py").write_text(JOB)
        env = environment()
        env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(reserve(1)[0]), WORLD_SIZE="4")
        ranks = " ".join(f"RANK={r} {PYTHON} job.py {kind} {culprit} {self.rng.randrange(8, 30)} &" for r in range(4))
        with open(folder + "/log", "wb") as log:
            p = subprocess.Popen([BIN, "record", "-o", "job.opw", "--stacks", "--on-stall", "4s", "--", "bash", "-c", ranks + " wait"], cwd=folder, env=env,
                                 stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            until(lambda: glob.glob(folder + "/*.hang.json") or p.poll() is not None, lambda: pathlib.Path(folder, "log").read_text(), 200, 0.2)
            messages = pathlib.Path(folder, "log").read_text()
            found = subprocess.run([BIN, "hang", "job.opw", "--json"], cwd=folder, capture_output=True, text=True, check=False, timeout=100)
        finally:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
        self.assertEqual(found.returncode, 0, found.stderr + messages)
        with open(glob.glob(folder + "/*.hang.json")[0], encoding="utf8") as f:
            saved = json.load(f)
        return kind, culprit, messages, saved, json.loads(found.stdout)

    def test_hangs(self):
        for number in range(HANGS):
            kind, culprit, messages, saved, found = self.hang(number)
            with self.subTest(kind=kind, culprit=culprit):
                expected = "mismatch" if kind == "other" else "hang"
                self.assertEqual((saved["conclusion"], saved["ranks"]), (expected, [culprit]), (kind, saved["sentence"], messages))
                self.assertEqual((found["conclusion"], found["ranks"]), (expected, [culprit]), (kind, found["sentence"], found["why"]))
                self.assertIn(saved["sentence"], messages)
                if expected == "hang":
                    self.assertEqual(found["collective"], "all_reduce")


if __name__ == "__main__":
    unittest.main()
