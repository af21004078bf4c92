#!/usr/bin/python3
"""The simulation of jobs that other tests use: times that can be computed by hand come out, and the traces it writes are read with
the steps that were simulated."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position
from jobsim import MS, US, Shape  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
PLAIN = {"noise": 0, "warmup": 0, "steps": 6, "copy_bytes": 0}


class Simulation(unittest.TestCase):
    def test_device_bound(self):
        """The device works all the time but for the first launch of a step and the read at its end."""
        shape = Shape(layers=10, kernel=1 * MS, backward=1.0, optimizer_kernels=1, optimizer_kernel=1 * MS, **PLAIN)
        step = jobsim.median_step(jobsim.simulate(shape))
        self.assertEqual(jobsim.device_time(shape), 21 * MS)
        self.assertTrue(21 * MS < step < 21.3 * MS, step)

    def test_loader_on_main(self):
        shape = Shape(loader_on_main=True, loader_batch=5 * MS, **PLAIN)
        self.assertAlmostEqual(jobsim.saving(shape, shape.but(loader_batch=1), "median"), 5 * MS, delta=10)

    def test_loader_behind(self):
        """Two workers of 100 ms each: a batch every 50 ms, whatever the device does in less."""
        shape = Shape(loader_workers=2, prefetch=1, loader_batch=100 * MS, **{**PLAIN, "steps": 20, "warmup": 5})
        self.assertAlmostEqual(jobsim.mean_step(jobsim.simulate(shape)), 50 * MS, delta=5 * MS)

    def test_collective_ends_together(self):
        shape = Shape(ranks=3, world_bytes=80 << 20, slow_rank=(1, 1.5), **PLAIN)
        ranks = jobsim.simulate(shape)
        ends = [{e["start"] + e["dur"] for e in r.events if e["name"].startswith("nccl")} for r in ranks]
        self.assertEqual(ends[0], ends[1])
        self.assertEqual(ends[0], ends[2])
        arrive = [[e["start"] for e in r.events if e["name"].startswith("nccl")] for r in ranks]
        self.assertTrue(all(a < b for a, b in zip(arrive[0], arrive[1])), "the slow rank arrives later")

    def test_stream_order(self):
        for rank in jobsim.simulate(Shape(seed=3, steps=4, ranks=2, world_bytes=64 << 20)):
            for stream in (7, 20):
                rows = sorted((e["start"], e["dur"]) for e in rank.events if e.get("stream") == stream)
                self.assertTrue(rows)
                for (a, dur), (b, _) in zip(rows, rows[1:]):
                    self.assertLessEqual(a + dur, b)

    def test_read_by_opwatch(self):
        shape = Shape(steps=5, warmup=0, noise=0.01)
        with tempfile.TemporaryDirectory() as folder:
            paths = jobsim.write(shape, folder)
            run = subprocess.run([BIN, "steps", *paths, "--json"], capture_output=True, text=True, check=True)
            ranks = jobsim.simulate(shape)
        rows = json.loads(run.stdout)["rows"]
        self.assertEqual(len(rows), 5, rows)
        self.assertEqual(len(ranks[0].step_starts), 6)
        self.assertGreater(jobsim.median_step(ranks), 100 * US)


if __name__ == "__main__":
    unittest.main()
