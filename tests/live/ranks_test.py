#!/usr/bin/python3
"""
Steps are counted per process, whatever the environment says: ranks of mp.spawn have no variable for their rank, and two
trainings under one `record` are two. The truth is what each process has measured itself.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from ports import reserve  # pylint: disable=wrong-import-position

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"
TRAIN = """
import json, os, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

def train(rank, world, port, steps, pause):
    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 64)
    if world > 1:
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
        dist.init_process_group("gloo", rank=rank, world_size=world)
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.utils.data.TensorDataset(torch.randn(steps * 8, 64))
    begins, ends = [], []
    for (x,) in torch.utils.data.DataLoader(data, batch_size=8):
        begins.append(time.monotonic())
        time.sleep(pause)
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        ends.append(time.monotonic())
    medians = [sorted(b - a for a, b in zip(times, times[1:]))[(steps - 1) // 2] * 1e9 for times in (begins, ends)]
    # One write: lines of several processes must not mix.
    os.write(1, (json.dumps({"rank": rank, "steps": len(ends), "medians": medians, "all": (ends[-1] - begins[0]) * 1e9}) + "\\n").encode())
    if world > 1:
        dist.barrier()
        dist.destroy_process_group()

if __name__ == "__main__":
    world, port, steps, pause = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    if world > 1:
        mp.spawn(train, args=(world, port, steps, pause), nprocs=world)
    else:
        train(0, 1, port, steps, pause)
"""


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch.distributed as d; assert d.is_gloo_available()"], capture_output=True).returncode == 0


@unittest.skipUnless(has_torch(), "needs PyTorch with gloo")
class RanksTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.program = os.path.join(self.dir, "train.py")
        pathlib.Path(self.program).write_text(TRAIN)
        self.file = os.path.join(self.dir, "x.opw")

    def record(self, *command):
        p = subprocess.run([BIN, "record", "--stacks=0", "-o", self.file, "--", *command], capture_output=True, text=True, timeout=300,
                           env={k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")})
        self.assertEqual(p.returncode, 0, p.stderr)
        return [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]

    def view(self, name):
        return json.loads(subprocess.run([BIN, name, self.file, "--json"], capture_output=True, text=True, check=True).stdout)["rows"]

    def check_steps(self, durations, truth):
        """Where a step begins is a matter of definition (between two batches, or between two updates), and a loaded machine stretches single steps:
        the median may be off by the difference of its neighbours, the sum by a step."""
        durations = sorted(durations)
        self.assertEqual(len(durations), truth["steps"])
        third = len(durations) // 3
        self.assertGreater(durations[-third], 0.95 * min(truth["medians"]) - 500e3, truth)
        self.assertLess(durations[third], 1.05 * max(truth["medians"]) + 500e3, truth)
        self.assertLess(abs(sum(durations) - truth["all"]), 0.05 * truth["all"] + durations[-1], truth)

    def test_spawned_ranks(self):
        truth = self.record(PYTHON, self.program, "4", str(reserve(1)[0]), "40", "0.02")
        self.assertEqual(sorted(t["rank"] for t in truth), [0, 1, 2, 3])
        sources = self.view("sources")
        self.assertEqual([(s["rank"], s["steps"], s["job"], s["world_size"]) for s in sources], [(i, 40, 1, 4) for i in range(4)])
        for t in truth:
            self.check_steps([s["duration_ns"] for s in self.view("steps") if s["rank"] == t["rank"]], t)

    def test_two_trainings(self):
        """At the same time and one after the other; none communicates with another."""
        one = lambda steps, pause: f"{PYTHON} {self.program} 1 0 {steps} {pause}"
        truth = self.record("sh", "-c", f"{one(30, 0.01)} & {one(20, 0.03)}; wait; {one(25, 0.02)}")
        by_steps = {t["steps"]: t for t in truth}
        self.assertEqual(sorted(by_steps), [20, 25, 30])
        sources = self.view("sources")
        self.assertEqual(sorted(s["steps"] for s in sources), [20, 25, 30])
        self.assertEqual(sorted(s["job"] for s in sources), [1, 2, 3])
        of_source = {s["path"]: [] for s in sources}
        for step in self.view("steps"):
            of_source[step["source"]].append(step["duration_ns"])
        for durations in of_source.values():
            self.check_steps(durations, by_steps[len(durations)])


if __name__ == "__main__":
    unittest.main()
