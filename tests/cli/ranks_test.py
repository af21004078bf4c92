#!/usr/bin/python3
"""Ranks outside of `opwatch ranks`: the tables job_…, named queries, ranks in names of files. The jobs are simulated (support/jobsim.py), so that clocks,
waits and the slow rank are known."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ.get("OPWATCH_SRC", "."), "tests"))
from support import jobsim  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
MS = jobsim.MS
RANKS, STEPS, BUCKETS, SLOW = 4, 10, 4, 2
CLOCK = {1: (30 * MS, 20.0), 2: (-7 * MS, -35.0), 3: (250 * MS, 3.0)}


def run(*words, status=0):
    done = subprocess.run([BIN, *map(str, words)], text=True, capture_output=True, check=False, timeout=120)
    if done.returncode != status:
        raise AssertionError(done.stderr + done.stdout)
    return done


def document(*words):
    return json.loads(run(*words, "--json").stdout)


class Ranks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temp = tempfile.TemporaryDirectory(prefix="ranks")
        cls.addClassCleanup(temp.cleanup)
        cls.root = pathlib.Path(temp.name)
        shape = jobsim.Shape(seed=3, ranks=RANKS, steps=STEPS, layers=10, buckets=BUCKETS, overlap=False, world_bytes=40 << 20, warmup_cost=5 * MS,
                             loader_batch=2 * MS, clock=CLOCK, slow_rank=(SLOW, 1.3))
        cls.job = jobsim.simulate(shape)
        (cls.root / "job").mkdir()
        for rank in cls.job:  # names say nothing
            (cls.root / f"job/{'dbca'[rank.rank]}.json").write_text(json.dumps(jobsim.trace(rank)))
        cls.files = sorted((cls.root / "job").iterdir())
        cls.duckdb = subprocess.run([BIN, "sql", str(cls.files[0]), "SELECT 1 AS one"], capture_output=True, check=False).returncode == 0

    def calls(self):
        """Per sequence number: rank: (start, end), on one clock."""
        calls = {}
        for rank in self.job:
            for e in rank.events:
                if "Seq" in e["args"]:
                    calls.setdefault(e["args"]["Seq"], {})[rank.rank] = (e["start"], e["start"] + e["dur"])
        return calls

    def sql(self, text):
        if not self.duckdb:
            self.skipTest("no DuckDB")
        return document("sql", *self.files, "--one-run", text)["rows"]

    def check_ends(self, last):
        """`last`: the end of the last collective of each rank, in ns; all leave it together."""
        self.assertEqual(len(last), RANKS)
        self.assertLess(max(last) - min(last), 100_000)

    def test_aligned_times(self):
        """--align clocks: the ranks leave a collective together in SQL and timelines, of traces and of our own files; without it they do not."""
        own = []
        for path in self.files:
            own.append(self.root / f"{path.stem}.opw")
            run("convert", path, "-o", own[-1])
        run("convert", *self.files, "--to", "timeline", "-o", self.root / "all.json", "--align", "clocks")
        ends = {}
        for e in json.loads((self.root / "all.json").read_text())["traceEvents"]:
            if e["ph"] == "X" and e["name"].startswith("nccl"):
                ends[e["pid"]] = max(ends.get(e["pid"], 0), int((e["ts"] + e["dur"]) * 1000))
        self.check_ends(ends.values())
        query = "SELECT max(ts + dur) AS t FROM event WHERE name LIKE 'nccl%' GROUP BY source_id"
        rows = self.sql(query)
        self.assertGreater(max(r["t"] for r in rows) - min(r["t"] for r in rows), 200 * MS)
        for files in (self.files, own):
            aligned = document("sql", *files, "--one-run", "--align", "clocks", query)["rows"]
            self.check_ends([r["t"] for r in aligned])
            steps = document("sql", *files, "--one-run", "--align", "clocks", "SELECT step, max(end_ns) - min(start_ns) AS t FROM step_window GROUP BY step")
            self.assertLess(max(r["t"] for r in steps["rows"]), 150 * MS)

    def test_collectives(self):
        """Wait and transfer sum to each collective; waits are those of the simulation."""
        rows = self.sql("SELECT rank, seq, dur, wait, transfer, meeting, members, last, job_ts, ts FROM job_collective")
        calls = self.calls()
        self.assertEqual(len(rows), RANKS * STEPS * BUCKETS)
        self.assertEqual(len({r["meeting"] for r in rows}), len(calls))
        for row in rows:
            self.assertEqual(row["wait"] + row["transfer"], row["dur"])
            self.assertEqual(row["members"], RANKS)
            members = calls[row["seq"]]
            true = max(start for start, _ in members.values()) - members[row["rank"]][0]
            self.assertAlmostEqual(row["wait"], true, delta=60_000, msg=row)
        self.assertEqual({r["meeting"] for r in rows if r["last"]}, {r["meeting"] for r in rows})
        late = [r for r in rows if r["last"] and any(o["wait"] > 500_000 for o in rows if o["meeting"] == r["meeting"])]
        self.assertEqual(({r["rank"] for r in late}, len(late)), ({SLOW}, STEPS))
        first = {r["rank"]: r for r in rows if r["seq"] == min(calls)}
        for rank, row in first.items():  # on the clock of rank 0
            self.assertAlmostEqual(row["job_ts"] - first[0]["ts"], calls[row["seq"]][rank][0] - calls[row["seq"]][0][0], delta=60_000)

    def test_tables_are_those_of_ranks(self):
        answer = {r["rank"]: r for r in document("ranks", *self.files)["rows"]}
        for row in self.sql("SELECT * FROM job_rank"):
            wanted = answer[row["rank"]]
            for column, key in (("step", "step_ns"), ("own_work", "own_work_ns"), ("wait", "wait_ns"), ("transfer", "transfer_ns"),
                                ("clock_offset", "clock_offset_ns"), ("clock_likely", "clock_likely_ns"), ("clock_proven", "clock_proven_ns"),
                                ("straggler", "straggler"), ("cause", "cause"), ("pairs_used", "pairs_used")):
                self.assertEqual(row[column], wanted[key], column)
        sums = self.sql("SELECT s.rank, CAST(sum(s.wait) AS BIGINT) // count(*) AS wait, CAST(sum(s.own_work) AS BIGINT) // count(*) AS own FROM job_step s "
                        "WHERE in_means GROUP BY s.rank")
        self.assertEqual({r["rank"]: (r["wait"], r["own"]) for r in sums}, {k: (r["wait_ns"], r["own_work_ns"]) for k, r in answer.items()})
        clocks = self.sql("SELECT c.rank, c.shift + c.drift * (r.first_ts - c.origin_ts) AS moved, r.first_ts FROM job_clock c JOIN job_rank r USING (number)")
        self.assertEqual(len(clocks), RANKS)
        for row in clocks:
            offset, drift = CLOCK.get(row["rank"], (0, 0))
            true = -(offset + (min(e["start"] for e in self.job[row["rank"]].events)) * drift / 1e6)
            self.assertAlmostEqual(row["moved"], true, delta=100_000)

    def test_unknown_float_operations(self):
        """The simulated kernels have none; that is not 0."""
        row, = self.sql("SELECT count(*) AS ops, count(float_ops) AS known FROM job_op")
        self.assertGreater(row["ops"], 0)
        self.assertEqual(row["known"], 0)

    def test_queries(self):
        if not self.duckdb:
            self.skipTest("no DuckDB")
        slowest = document("ask", "rank_slowest", *self.files, "--one-run")["rows"]
        self.assertEqual((slowest[0]["rank"], slowest[0]["straggler"], slowest[0]["cause"]), (SLOW, "persistent", "compute"))
        self.assertEqual(min(slowest, key=lambda r: r["wait_ms"])["rank"], SLOW)
        waits = document("ask", "rank_waits", *self.files, "--one-run")["rows"]
        durations = sum(end - start for members in self.calls().values() for start, end in members.values())
        self.assertEqual([(r["kind"], r["calls"], r["unknown_calls"]) for r in waits], [("all-reduce", RANKS * STEPS * BUCKETS, 0)])
        self.assertAlmostEqual(waits[0]["wait_ms"] + waits[0]["transfer_ms"], durations / 1e6, delta=0.1)
        speed = document("ask", "rank_bandwidth", *self.files, "--one-run")["rows"]
        fastest = [min(end - start for start, end in members.values()) for members in self.calls().values()]
        self.assertEqual(sum(r["times"] for r in speed), len(fastest))
        self.assertAlmostEqual(sum(r["mean_us"] * r["times"] for r in speed), sum(fastest) / 1e3, delta=1)
        for row in speed:
            self.assertAlmostEqual(row["bus_gb_per_s"], row["bytes"] * 2 * (RANKS - 1) / RANKS / (row["mean_us"] * 1e3), delta=row["bus_gb_per_s"] / 1e6)
        slow = document("ask", "rank_slow_steps", *self.files, "--one-run")["rows"]
        self.assertEqual({r["rank"] for r in slow}, {SLOW})
        self.assertGreaterEqual(len(slow), STEPS - 4)

    def merged(self, *files):
        """Starts of collectives in the merged file: per rank label, by sequence number, in ns of the simulation."""
        out = self.root / "all.json"
        run("merge", *files, "--align", "clocks", "-o", out)
        events = json.loads(out.read_text())["traceEvents"]
        starts = {}
        for e in events:
            if "Seq" in e.get("args", {}) and e.get("ph") == "X" and e.get("cat") == "kernel":
                starts.setdefault(e["args"]["Seq"], []).append((e["pid"], round(e["ts"] * 1000)))
        return starts

    def test_merge_on_one_clock(self):
        """Collectives of all ranks end within the error of the fit; without it they are up to 250 ms apart."""
        starts = self.merged(*self.files)
        calls = self.calls()
        self.assertEqual(sorted(starts), sorted(calls))
        for seq, found in starts.items():
            times = sorted(ts for _, ts in found)
            true = sorted(start for start, _ in calls[seq].values())
            self.assertEqual(len(times), RANKS)
            self.assertAlmostEqual(times[-1] - times[0], true[-1] - true[0], delta=120_000)
        files = json.loads((self.root / "all.json").read_text())["metadata"]["opwatch-merge"]["files"]
        drifts = sorted(f.get("clock_drift_ppm", 0) for f in files)
        for found, true in zip(drifts, sorted([0] + [-drift for _, drift in CLOCK.values()])):
            self.assertAlmostEqual(found, true, delta=2)

    def test_merge_refuses(self):
        alone = self.root / "alone.json"
        content = json.loads(self.files[0].read_text())
        content["traceEvents"] = [e for e in content["traceEvents"] if "nccl" not in e["name"].lower() and "Seq" not in e.get("args", {})]
        alone.write_text(json.dumps(content))
        out = self.root / "no.json"
        done = run("merge", alone, self.files[1], "--align", "clocks", "-o", out, status=1)
        self.assertIn("cannot be fitted", done.stderr)
        copy = self.root / "copy.json"
        copy.write_bytes(self.files[0].read_bytes())
        done = run("merge", *self.files, copy, "--align", "clocks", "-o", out, status=1)
        self.assertIn("it is a copy of another file", done.stderr)
        self.assertFalse(out.exists())

    def test_ranks_in_names(self):
        """The name of a file alone is not a rank. With the same collectives as another file it is; a copy is not."""
        def trace(collectives, shift):
            events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": i * 100 + shift, "dur": 50} for i in range(4)]
            events += [{"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 1, "tid": 1, "ts": i * 100 + 60 + shift, "dur": 20}
                       for i in range(collectives)]
            return json.dumps({"schemaVersion": 1, "traceEvents": events})
        folder = self.root / "named"
        folder.mkdir()
        for name, collectives, shift in (("a_rank0", 3, 0), ("b_rank1", 3, 7), ("c_rank2", 2, 3), ("d_rank5", 0, 3), ("e_rank6", 0, 9), ("f_rank3", 3, 0)):
            (folder / f"{name}.json").write_text(trace(collectives, shift))

        def ranks(*names):
            return [r.get("rank") for r in document("sources", *(folder / f"{n}.json" for n in names))["rows"]]
        self.assertEqual(ranks("a_rank0"), [None])
        self.assertEqual(ranks("a_rank0", "b_rank1"), [0, 1])
        self.assertEqual(ranks("a_rank0", "c_rank2"), [None, None])  # other collectives
        self.assertEqual(ranks("d_rank5", "e_rank6"), [None, None])  # none
        self.assertEqual(ranks("a_rank0", "f_rank3"), [None, None])  # a copy


if __name__ == "__main__":
    unittest.main()
