#!/usr/bin/python3
"""`opwatch ranks --on` on two real clickhouse-server processes: 64 simulated ranks, pushed in runs of 16, give the same JSON as their files."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests"))
from support import clickhouse, jobsim  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
RANKS = int(os.environ.get("OPWATCH_RANKS", "64"))
EACH = 16  # ranks of one push
STEPS = 14
ENV = {**os.environ, "OPWATCH_CLICKHOUSE_PASSWORD": clickhouse.PASSWORD}
TABLES = "job_rank,job_step,job_collective,job_op,job_line,job_clock"
MS = jobsim.MS


def run(*words, status=0, **env):
    done = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, env={**ENV, **env}, check=False, timeout=600)
    if done.returncode != status:
        raise AssertionError(done.stderr + done.stdout)
    return done


def setUpModule():
    if not clickhouse.installed():
        print("skipped: clickhouse-server is not installed (tools/setup integration installs it)", file=sys.stderr)
        sys.exit(77)
    if "libcurl was not found" in run("--version").stdout:
        print("skipped: opwatch was built without libcurl", file=sys.stderr)
        sys.exit(77)


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="opwatch-ranks-on-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        clock = {r: ((r * 7919 % 97 - 48) * MS, (r * 31 % 61) - 30.0) for r in range(1, RANKS)}
        job = jobsim.simulate(jobsim.Shape(seed=11, ranks=RANKS, steps=STEPS, layers=3, buckets=2, overlap=False, world_bytes=16 << 20, warmup_cost=3 * MS,
                                           loader_batch=MS, clock=clock, slow_rank=(RANKS // 3, 1.4)))
        cls.files = []
        for rank in job:
            cls.files.append(f"{cls.folder}/{rank.rank:04d}.json")
            with open(cls.files[-1], "w", encoding="utf-8") as file:
                json.dump(jobsim.trace(rank), file)
        cluster = clickhouse.Cluster(2)
        cls.addClassCleanup(cluster.__exit__)
        cls.one, cls.two = cluster.__enter__()
        for server in (cls.one, cls.two):
            server.ask("CREATE DATABASE ranks")
        for first in range(0, RANKS, EACH):  # as hosts with several ranks do
            run("push", *cls.files[first:first + EACH], "--to", cls.one.url("ranks"), "--name", f"job7-{first:04d}", "--cluster", "two", "--table", TABLES)

    def answer(self, *words, **env):
        return json.loads(run("ranks", *words, "--json", **env).stdout)

    def test_same_as_files(self):
        """From both servers; only names of files and what a server adds may differ."""
        wanted = self.answer(*self.files)
        self.assertEqual((wanted["blame"], wanted["blamed"], wanted["clock"]), ("rank", [RANKS // 3], "fitted"))
        for server in (self.one, self.two):
            found = self.answer("--on", server.url("ranks"), "job7-*")
            self.assertEqual((found.pop("steps_on_server"), found.pop("steps_added_on_server")), (STEPS, 0))
            self.assertEqual(found, wanted)

    def test_some_of_the_runs(self):
        found = self.answer("--on", self.one.url("ranks"), "job7-000*")
        self.assertEqual([r["rank"] for r in found["rows"]], list(range(min(EACH, RANKS))))
        self.assertEqual(found["missing_ranks"], list(range(EACH, RANKS)))
        done = run("ranks", "--on", self.one.url("ranks"), "other", status=1)
        self.assertIn("the server has no ranks for these runs", done.stderr)

    def test_some_of_the_steps(self):
        """A job that is too large is compared on some of its steps; the server adds up waits and transfers of all of them, on the clocks that were fitted here."""
        wanted = self.answer(*self.files)
        for server in (self.one, self.two):
            found = self.answer("--on", server.url("ranks"), "job7-*", OPWATCH_RANKS_COLLECTIVES=str(RANKS * STEPS * 2 // 2))
            self.assertEqual((found["steps_on_server"], found["blame"], found["blamed"]), (STEPS, "rank", [RANKS // 3]))
            self.assertLess(len(found["map"]["steps"]), len(wanted["map"]["steps"]))  # that were read here
            self.assertEqual(found["steps_added_on_server"], len(wanted["map"]["steps"]))
            self.assertEqual(found["step_ns"], wanted["step_ns"])
            for mine, other in zip(found["rows"], wanted["rows"], strict=True):
                self.assertEqual(mine["step_ns"], other["step_ns"])
                self.assertAlmostEqual(mine["wait_ns"] + mine["transfer_ns"], other["wait_ns"] + other["transfer_ns"], delta=1)
                self.assertAlmostEqual(mine["wait_ns"], other["wait_ns"], delta=0.02 * other["wait_ns"] + 20_000)

    def test_line(self):
        """The line of a straggler comes from the server, too; without the table of lines it is not known."""
        shape = jobsim.Shape(seed=5, ranks=3, steps=7, layers=4, buckets=1, overlap=False, world_bytes=4 << 20, warmup_cost=2 * MS, loader_batch=MS,
                             python_stack=True, host_work=MS)
        paths = []
        for rank in jobsim.simulate_each([shape.but(host_work=4 * MS) if r == 1 else shape for r in range(3)]):
            paths.append(f"{self.folder}/line{rank.rank}.json")
            with open(paths[-1], "w", encoding="utf-8") as file:
                json.dump(jobsim.trace(rank), file)
        wanted = self.answer(*paths)
        self.assertEqual((wanted["rows"][1]["cause"], wanted["rows"][1]["line"]), ("host", "train.py:40 augment"))
        run("push", *paths, "--to", self.one.url("ranks"), "--name", "lines", "--cluster", "two", "--table", TABLES)
        for server in (self.one, self.two):
            found = self.answer("--on", server.url("ranks"), "lines")
            self.assertEqual((found["blame_why"], found["rows"][1]), (wanted["blame_why"], wanted["rows"][1]))
        self.one.ask("CREATE DATABASE plain")
        run("push", *paths, "--to", self.one.url("plain"), "--name", "lines", "--table", TABLES.replace("job_line,", ""))
        found = self.answer("--on", self.one.url("plain"), "lines")
        self.assertEqual((found["blamed"], found["rows"][1]["line"]), ([1], None))

    def test_ask(self):
        rows = json.loads(run("ask", "rank_waits", "--on", self.one.url("ranks"), "--only_run", "job7-0000", "--json").stdout)["rows"]
        self.assertEqual([(r["kind"], r["calls"]) for r in rows], [("all-reduce", 2 * STEPS * EACH)])


if __name__ == "__main__":
    unittest.main()
