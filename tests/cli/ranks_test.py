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
from support.shown import shown  # noqa: E402

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

    def test_line(self):
        """The line in which a straggler's host spends more time, and the line that launches more work of its device."""
        shape = jobsim.Shape(seed=5, ranks=3, steps=7, layers=4, buckets=1, overlap=False, world_bytes=4 << 20, warmup_cost=2 * MS, loader_batch=MS,
                             python_stack=True, host_work=MS)
        folder = self.root / "lines"
        folder.mkdir()
        for kind in ("host", "device"):
            slow = shape.but(host_work=4 * MS, ranks=3) if kind == "host" else shape.but(slow_rank=(1, 1.6))
            for rank in jobsim.simulate_each([slow if r == 1 else shape for r in range(3)]):
                trace = jobsim.trace(rank)
                if kind == "device":  # each operator is called by a line of its own
                    calls = [e for e in trace["traceEvents"] if e.get("cat") == "cpu_op" and e["name"].startswith("aten::linear")]
                    trace["traceEvents"] += [{**e, "cat": "python_function", "name": f"model.py({30 + i % 4}): forward", "args": {}} for i, e in enumerate(calls)]
                (folder / f"{rank.rank}.json").write_text(json.dumps(trace))
            found = document("ranks", folder)
            row = found["rows"][1]
            self.assertEqual((found["blamed"], row["straggler"]), ([1], "persistent"))
            if kind == "host":
                self.assertEqual((row["cause"], row["line"]), ("host", "train.py:40 augment"))
                self.assertIn("3.0", found["blame_why"].split(";")[-1])
                self.assertIn("train.py:40 augment", found["blame_why"])
            else:
                self.assertEqual(row["cause"], "compute")
                self.assertRegex(row["line"], r"^model.py:3\d forward$")
            self.assertEqual(row["evidence"][0]["line"], row["line"])
            self.assertEqual({r["line"] for r in found["rows"] if r["rank"] != 1}, {None})
            hidden = document("ranks", folder, "--redact")
            self.assertEqual((hidden["blamed"], bool(hidden["rows"][1]["line"])), ([1], True))
            self.assertNotRegex(json.dumps(hidden), r"\.py|augment|forward")
            advice = {r["rule"]: r for r in document("advise", *sorted(folder.iterdir()))["rows"]}
            self.assertEqual(advice["collective_wait"]["where"], f"rank 1 arrives last; {row['line']}")

    def test_narrow_terminal(self):
        """No line is wider than the terminal, and what is wrong is before the columns that do not fit."""
        for columns in (80, 100):
            text = shown([BIN, "ranks", *map(str, self.files)], columns)
            self.assertLessEqual(max(map(len, text.splitlines())), columns, text)
            self.assertRegex(text, r"(?m)^ +2 .*persistent .*compute")
            self.assertIn("Blame: rank 2", text)
        self.assertIn("Blame: rank 2: more own work", run("ranks", *self.files).stdout)

    def test_map_of_many(self):
        """More ranks and steps than the map has room for: the straggler is in it, and so is its slow step."""
        folder = self.root / "many"
        folder.mkdir()
        ranks, steps, slow = 70, 140, 66
        for r in range(ranks):
            events, now = [], 0
            for s in range(steps):
                work = 2000 if r == slow and s % 20 == 7 else 1000
                events += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{s}", "pid": 1, "tid": 1, "ts": now, "dur": 2500},
                           {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": now, "dur": work, "args": {"stream": 7, "device": 0}},
                           {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f16", "pid": 0, "tid": 20, "ts": now + work, "dur": 2400 - work,
                            "args": {"stream": 20, "device": 0, "Collective name": "allreduce", "Process Group Name": "0", "Seq": s, "Group size": ranks,
                                     "In msg nelems": 1 << 20, "dtype": "Half"}}]
                now += 2500
            (folder / f"{r * 37 % 71}.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events,
                                                                    "distributedInfo": {"rank": r, "world_size": ranks}}))
        found = document("ranks", folder)
        self.assertEqual(found["blamed"], [slow])
        rows = {row[0]: row[1:] for row in found["map"]["rows"]}
        self.assertEqual((len(rows), found["map_steps_each"]), (64, 3))
        self.assertEqual({len(row) for row in rows.values()}, {len(found["map"]["steps"])})
        self.assertEqual(sum(x > 1.5 for x in rows[slow]), 7)
        text = run("ranks", folder).stdout
        self.assertIn("Each mark is the slowest of 3 steps", text)
        self.assertIn("64 of 70 ranks are shown", text)

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
