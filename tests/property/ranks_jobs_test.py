#!/usr/bin/python3
"""`opwatch ranks` on simulated jobs (tests/support/jobsim.py), whose clocks, waits and slow ranks are known: healthy jobs have no straggler,
injected ones are named with their cause, clocks hold their bounds, waits and transfers are those of the simulation.

OPWATCH_JOBS sets how many jobs are tried (14)."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
JOBS = int(os.environ.get("OPWATCH_JOBS", "14"))
SEED = int(os.environ.get("OPWATCH_SEED", "1"))
MS = jobsim.MS


def answer(ranks, names=None):
    """Writes the traces under names that say nothing of their ranks, in any order."""
    with tempfile.TemporaryDirectory() as folder:
        order = list(range(len(ranks)))
        random.Random(len(ranks)).shuffle(order)
        paths = []
        for place, rank in enumerate(order):
            path = f"{folder}/{names[place] if names else chr(97 + place)}.json"
            with open(path, "w", encoding="utf-8") as f:
                json.dump(jobsim.trace(ranks[rank]), f)
            paths.append(path)
        run = subprocess.run([BIN, "ranks", *paths, "--json"], capture_output=True, text=True, check=False, timeout=120)
    if run.returncode:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout)


def base_job(rng):
    count = rng.choice([2, 3, 4, 8])
    job = jobsim.healthy(rng).but(ranks=count, buckets=rng.choice([2, 4]), overlap=rng.random() < 0.6, warmup_cost=5 * MS, hip=False,
                                  loader_batch=2 * MS, steps=rng.randrange(8, 12), layers=rng.randrange(10, 18))
    job = job.but(world_bytes=int(jobsim.device_time(job) * rng.uniform(0.05, 0.3) * job.bus_rate))
    return job.but(clock={r: (rng.randrange(-40 * MS, 40 * MS), rng.uniform(-40, 40)) for r in range(1, count)})


def true_offset(job, rank, ranks):
    """What has to be added to the times of a rank at the middle of its recording."""
    offset, drift = job.clock.get(rank, (0, 0.0))
    first, drift0 = job.clock.get(0, (0, 0.0))
    middle = (min(e["start"] for e in ranks[rank].events) + max(e["start"] + e["dur"] for e in ranks[rank].events)) / 2
    return first - offset + middle * (drift0 - drift) / 1e6


def waits(ranks, steps):
    """Wait and transfer of each rank per step, from the simulation."""
    calls = {}
    for r in ranks:
        for e in r.events:
            if "Seq" in e["args"]:
                calls.setdefault(e["args"]["Seq"], {})[r.rank] = (e["start"], e["start"] + e["dur"])
    per_step = ranks[0].shape.buckets
    out = [[0, 0] for _ in ranks]
    for seq, members in calls.items():
        if (seq - 1) // per_step not in steps:
            continue
        last = max(start for start, _ in members.values())
        for r, (start, end) in members.items():
            out[r][0] += (last - start) / len(steps)
            out[r][1] += (end - last) / len(steps)
    return out


class Ranks(unittest.TestCase):
    def test_healthy_jobs_and_clocks(self):
        likely = total = 0
        for n in range(JOBS):
            rng = random.Random(f"{SEED}/healthy/{n}")
            job = base_job(rng)
            ranks = jobsim.simulate_each([job] * job.ranks)
            a = answer(ranks)
            self.assertEqual([r["rank"] for r in a["rows"]], list(range(job.ranks)), n)
            self.assertEqual((a["world_size"], a["missing_ranks"], a["mixed_jobs"], a["duplicates"]), (job.ranks, [], False, []))
            self.assertEqual(a["clock"], "fitted", (n, a["clock_why"]))
            self.assertEqual((a["blame"], a["blamed"]), ("none", []), (n, a["blame_why"]))
            self.assertEqual({r["straggler"] for r in a["rows"]}, {"none"})
            for r in a["rows"][1:]:
                wrong = abs(r["clock_offset_ns"] - true_offset(job, r["rank"], ranks))
                self.assertLessEqual(wrong, r["clock_proven_ns"] + 10, (n, r))
                self.assertLessEqual(wrong, 100_000, (n, r))
                likely += wrong <= r["clock_likely_ns"]
                total += 1
        self.assertGreaterEqual(likely, 0.95 * total)

    def test_slow_ranks(self):
        named = right = 0
        lines = []
        for n in range(JOBS):
            rng = random.Random(f"{SEED}/slow/{n}")
            job = base_job(rng)
            slow, kind = rng.randrange(job.ranks), rng.choice(["compute", "input", "host", "more_work"])
            busy = jobsim.device_time(job)
            size = rng.uniform(0.15, 0.6)
            bad = {"compute": job.but(slow_rank=(slow, 1 + size)),
                   "input": job.but(loader_on_main=True, loader_batch=int(busy * size)),
                   "host": job.but(host_work=int(busy * size)),
                   "more_work": job.but(layers=job.layers, kernels_per_layer=1, layout=1, layout_kernel=int(busy * size / job.layers))}[kind]
            ranks = jobsim.simulate_each([bad if r == slow else job for r in range(job.ranks)])
            truth = jobsim.median_step(ranks) / jobsim.median_step(jobsim.simulate_each([job] * job.ranks))
            a = answer(ranks)
            good = a["blame"] == "rank" and a["blamed"] == [slow] and a["rows"][slow]["straggler"] == "persistent"
            named += good
            right += good and a["rows"][slow]["cause"] == kind
            lines.append((n, kind, slow, job.ranks, job.overlap, round(size, 2), "true", round(truth, 3), a["blame"], a["blamed"], a["slowdown"],
                          a["rows"][slow]["slowdown_caused"], a["rows"][slow]["straggler"], a["rows"][slow]["cause"]))
            if good:
                self.assertAlmostEqual(a["rows"][slow]["slowdown_caused"], truth, delta=0.04 + 0.1 * (truth - 1), msg=lines[-1])
            steps = a["map"]["steps"]
            for r, (wait, transfer) in zip(a["rows"], waits(ranks, set(steps))):
                if r["wait_ns"] is not None and wait > 0.02 * a["step_ns"]:
                    self.assertAlmostEqual(r["wait_ns"], wait, delta=0.05 * wait + r["clock_likely_ns"] * 8, msg=(n, r["rank"]))
                if r["wait_ns"] is not None:
                    self.assertAlmostEqual(r["wait_ns"] + r["transfer_ns"], wait + transfer, delta=0.01 * (wait + transfer) + 20000)
        text = "\n".join(map(str, lines))
        self.assertGreaterEqual(named, 0.9 * JOBS, text)
        self.assertGreaterEqual(right, 0.9 * JOBS, text)

    def test_transient_and_periodic(self):
        rng = random.Random(f"{SEED}/periodic")
        job = base_job(rng).but(ranks=4, steps=14, clock={})
        busy = jobsim.device_time(job)
        ranks = jobsim.simulate_each([job.but(pause_every=3, pause=busy) if r == 2 else job for r in range(4)])
        a = answer(ranks)
        self.assertEqual((a["rows"][2]["straggler"], a["rows"][2]["cause"], a["blamed"]), ("periodic", "host", [2]))
        ranks = jobsim.simulate_each([job.but(pause_every=7, pause=busy) if r == 1 else job for r in range(4)])
        a = answer(ranks)
        self.assertEqual((a["rows"][1]["straggler"], a["blamed"]), ("transient", [1]))

    def test_all_pause_together(self):
        job = base_job(random.Random(5)).but(ranks=4, steps=12, pause_every=4, clock={})
        job = job.but(pause=jobsim.device_time(job))
        a = answer(jobsim.simulate_each([job] * 4))
        self.assertEqual((a["blame"], {r["straggler"] for r in a["rows"]}), ("none", {"none"}))


if __name__ == "__main__":
    unittest.main()
