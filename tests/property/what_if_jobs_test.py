#!/usr/bin/python3
"""Predictions of what-if on simulated jobs (tests/support/jobsim.py): the step that is predicted from the trace of a job is compared
with the step of the same job, simulated with the change. The simulation shares no code with the replay.

OPWATCH_JOBS sets how many changes are tried (24)."""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
JOBS = int(os.environ.get("OPWATCH_JOBS", "24"))
SEED = int(os.environ.get("OPWATCH_SEED", "1"))


def change(rng, job):
    """A change in words, and the same change of the job."""
    kind = rng.choice(["kernel", "kernel", "op", "input", "network", "rank"])
    if kind == "rank":
        ranks = rng.randrange(2, 5)
        even = job.but(ranks=ranks, world_bytes=int(jobsim.device_time(job) * 0.1 * job.bus_rate), overlap=rng.random() < 0.5,
                       clock={r: (rng.randrange(-3 * jobsim.MS, 3 * jobsim.MS), rng.uniform(-15, 15)) for r in range(ranks)})
        slow = rng.randrange(ranks)
        return f"rank:{slow}=median", (even.but(slow_rank=(slow, rng.uniform(1.1, 1.6))), even)
    if kind == "kernel":
        factor = rng.choice([0.25, 0.5, 0.8, 1.5])
        return f"kernel:gemm*{factor}", job.but(scale=[("gemm", factor)])
    if kind == "op":
        factor = rng.choice([0.5, 0.8])
        return f"kernel:multi_tensor_apply*{factor}", job.but(scale=[("multi_tensor_apply", factor)])
    if kind == "input":
        slow = job.but(loader_on_main=True, loader_batch=int(jobsim.device_time(job) * rng.uniform(0.1, 0.6)))
        return "input=0", (slow, slow.but(loader_batch=0))
    two = job.but(ranks=2, world_bytes=int(jobsim.device_time(job) * 0.4 * job.bus_rate), overlap=rng.random() < 0.5)
    return "network*2", (two, two.but(bus_rate=two.bus_rate * 2))


class WhatIf(unittest.TestCase):
    def test_changes(self):
        errors, held, wide, refused, lines = [], 0, [], [], []
        for n in range(JOBS):
            rng = random.Random(f"{SEED}/{n}")
            job = jobsim.healthy(rng).but(op_host=rng.choice([18, 60, 120]) * jobsim.US)
            words, other = change(rng, job)
            if isinstance(other, tuple):
                job, other = other
            truth = jobsim.median_step(jobsim.simulate(other))
            before = jobsim.median_step(jobsim.simulate(job))
            with tempfile.TemporaryDirectory() as folder:
                run = subprocess.run([BIN, "what-if", *jobsim.write(job, folder, missing=jobsim.Missing(fractions=n % 3 == 2)), words, "--json"], capture_output=True,
                                     text=True, check=False, timeout=120)
            self.assertEqual(run.returncode, 0, run.stderr)
            answer = json.loads(run.stdout)
            if answer.get("refused"):
                refused.append((n, words, answer["refused"]))
                continue
            self.assertAlmostEqual(answer["base_step_ns"], before, delta=0.02 * before)
            error = answer["new_step_ns"] / truth - 1
            errors.append(abs(error))
            inside = answer["new_low_ns"] <= truth <= answer["new_high_ns"]
            held += inside
            wide.append((answer["new_high_ns"] - answer["new_low_ns"]) / truth)
            if not inside or abs(error) > 0.03:
                lines.append((n, words, f"{before / 1e6:.3f} -> true {truth / 1e6:.3f}", f"predicted {answer['new_step_ns'] / 1e6:.3f}",
                              f"[{answer['new_low_ns'] / 1e6:.3f}, {answer['new_high_ns'] / 1e6:.3f}]"))
        print(f"{len(errors)} changes: median error {100 * statistics.median(errors):.2f} %, interval holds in {held}, "
              f"median width {100 * statistics.median(wide):.1f} %, refused {len(refused)}")
        for line in lines + refused:
            print("  ", *line)
        self.assertLessEqual(statistics.median(errors), 0.02)
        self.assertGreaterEqual(held, 0.9 * len(errors))
        self.assertLessEqual(len(refused), 0.1 * JOBS)


if __name__ == "__main__":
    unittest.main()
