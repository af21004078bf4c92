#!/usr/bin/python3
"""`opwatch ranks` on TensorFlow 1 jobs with parameter servers (tests/support/tf1_cluster.py), whose clocks and slow tasks are known. Every step is a file with
the records of all tasks.

OPWATCH_JOBS sets how many jobs are tried (16)."""
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
from tf1_cluster import Cluster  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
JOBS = int(os.environ.get("OPWATCH_JOBS", "16"))
SEED = int(os.environ.get("OPWATCH_SEED", "1"))
CLOCKS = {("worker", 1): (3_000, 5), ("ps", 0): (5_000, 10), ("ps", 1): (-80_000, -20), ("ps", 2): (700_000, 0)}


def run(*words):
    return subprocess.run([BIN, *words], capture_output=True, text=True, check=False, timeout=120)


def step(job):
    """The median time from the first to the last record of a file."""
    return statistics.median(max(r[1] for rows in f.values() for r in rows) - min(r[0] for rows in f.values() for r in rows) for f in job.files)


def task_of(job, rank):
    return ("worker", rank) if rank < job.workers else ("ps", rank - job.workers)


class Servers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, job, timeline=False):
        for name in os.listdir(self.folder):
            os.remove(f"{self.folder}/{name}")
        paths = job.write(self.folder, timeline)
        random.Random(len(paths)).shuffle(paths)
        return paths

    def answer(self, job, timeline=False):
        done = run("ranks", *self.write(job, timeline), "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def check_clocks(self, job, a):
        likely = 0
        for r in a["rows"]:
            wrong = abs(r["clock_offset_ns"] - job.offset(task_of(job, r["rank"])))
            self.assertLessEqual(wrong, r["clock_proven_ns"] + 1000, r)
            likely += wrong <= r["clock_likely_ns"] + 1000
        return likely

    def random_job(self, rng, kind):
        workers, servers, alone = rng.choice([1, 2, 3, 4]), rng.choice([2, 3, 4]), rng.random() < 0.4
        if kind == "slow":
            workers = max(workers, 3)
        if kind == "apply":  # the work of servers is compared when one session drives them
            alone = False
        clocks = {(job, i): (rng.randrange(-500_000, 500_000), rng.uniform(-40, 40))
                  for job, count in (("worker", workers), ("ps", servers)) for i in range(count)}
        base = dict(workers=workers, servers=servers, alone=alone, clocks=clocks, steps=rng.randrange(6, 12), compute_us=rng.randrange(5_000, 30_000))
        hot = rng.randrange(workers if kind == "slow" else servers)
        seed = rng.randrange(1 << 30)
        good = Cluster(seed, **base)
        change = {"healthy": {}, "rate": {"rate": {hot: rng.uniform(150, 350)}}, "apply": {"apply_cost": {hot: rng.uniform(15, 40)}},
                  "slow": {"slow": {hot: rng.uniform(1.3, 1.8)}},
                  "bytes": {"variables": [(name, size * (5 if server == hot else 1), server) for name, size, server in good.variables]}}[kind]
        return good.run(), Cluster(seed, **base, **change).run(), hot if kind == "slow" else workers + hot

    def test_random_jobs(self):
        likely = total = missed = 0
        for n in range(JOBS):
            rng = random.Random(f"{SEED}/servers/{n}")
            kind = ["healthy", "rate", "apply", "slow", "bytes"][n % 5]
            good, job, hot = self.random_job(rng, kind)
            truth = step(job) / step(good)
            a = self.answer(job, timeline=rng.random() < 0.3)
            self.assertEqual(a["clock"], "fitted", (n, a["clock_why"]))
            likely += self.check_clocks(job, a)
            total += len(a["rows"])
            if kind == "healthy":
                self.assertEqual((a["blame"], a["blamed"]), ("none", []), (n, a["blame_why"]))
                continue
            if truth < 1.04:
                continue
            found = a["blamed"] == [hot]
            missed += not found
            if found:
                self.assertIn(a["rows"][hot]["cause"], {"rate": ["communication"], "apply": ["compute"], "slow": ["compute"],
                                                        "bytes": ["more_work", "communication"]}[kind], (n, kind))
                if kind in ("apply", "slow") and a["rows"][hot]["slowdown_caused"] is not None and not job.alone:
                    self.assertAlmostEqual(a["rows"][hot]["slowdown_caused"], truth, delta=0.1 * truth, msg=(n, kind))
        self.assertGreaterEqual(likely, 0.95 * total)
        self.assertLessEqual(missed, JOBS // 10)

    def test_tasks(self):
        job = Cluster(2, clocks=CLOCKS, rate={1: 250}).run()
        a = self.answer(job)
        self.assertEqual([r["rank"] for r in a["rows"]], [0, 1, 2, 3, 4])
        self.assertEqual([r["role"] for r in a["rows"]], ["/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1", "/job:ps/replica:0/task:0",
                                                         "/job:ps/replica:0/task:1", "/job:ps/replica:0/task:2"])
        self.assertEqual((a["blame"], a["blamed"], a["rows"][3]["cause"]), ("rank", [3], "communication"))
        self.assertIn("messages of /job:ps/replica:0/task:1 are under way for", a["blame_why"])
        self.assertIn("2 other parameter servers", a["blame_why"])
        for r in a["rows"]:  # a moment is counted once, however many messages are open
            self.assertLessEqual(r["wait_ns"] + r["transfer_ns"], r["step_ns"], r)
            self.assertLessEqual(r["own_work_ns"] + r["transfer_ns"], 1.5 * r["step_ns"], r)

    def test_single_file(self):
        """One step has few messages: first in one direction, then in the other, which does not mean that a clock was set."""
        for seed in range(6):
            job = Cluster(seed, clocks=CLOCKS).run()
            for records in job.files[:3]:
                job.files = [records]
                a = self.answer(job)
                self.assertEqual((a["clock"], a["clock_why"]), ("fitted", None), seed)
                self.check_clocks(job, a)

    def test_copy(self):
        job = Cluster(3, clocks=CLOCKS).run()
        paths = self.write(job)
        shutil.copy(paths[0], f"{self.folder}/again")
        done = run("ranks", *paths, f"{self.folder}/again", "--json")
        a = json.loads(done.stdout)
        self.assertEqual(len(a["duplicates"]), 1, a["duplicates"])
        self.assertEqual(len(a["rows"]), 5)
        self.assertEqual(len(a["map"]["steps"]), len(self.answer(job)["map"]["steps"]))

    def test_aligned(self):
        """With --align clocks each task of a file is moved by its own clock."""
        for timeline in (False, True):
            job = Cluster(4, clocks=CLOCKS).run()
            path = self.write(job, timeline)[0]
            query = "SELECT device, min(ts) FROM event GROUP BY ALL ORDER BY 1"
            apart = [json.loads(run("sql", query, path, "--json", *align).stdout)["rows"] for align in ([], ["--align", "clocks"])]
            starts = [[row["min(ts)"] if isinstance(row, dict) else row[1] for row in rows] for rows in apart]
            self.assertGreater(max(starts[0]) - min(starts[0]), 700_000_000)
            self.assertLess(max(starts[1]) - min(starts[1]), 2_000_000)

    def test_merge_refuses(self):
        paths = self.write(Cluster(5, clocks=CLOCKS).run(), timeline=True)
        done = run("merge", *paths, "-o", f"{self.folder}/merged.json", "--align", "clocks")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tasks of several hosts", done.stderr)


if __name__ == "__main__":
    unittest.main()
