#!/usr/bin/python3
"""opwatch export on a trace made here: every format holds the same rows, whatever the order, partition, packing and size of
files; Ctrl-C and wrong usage leave nothing behind. Parquet is read with DuckDB where that is."""
import csv
import gzip
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter

sys.path.insert(0, os.path.join(os.environ.get("OPWATCH_SRC", "."), "tests"))
from support import duckdb_lib  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
BIG = 50000


def trace(path, seed, events):
    """Steps with ops in two threads, an odd name or two, and a counter."""
    rng = random.Random(seed)
    names = ["MatMul", 'quote " and, comma', "línea\nnew", "conv/α", "x" * 300]
    rows = []
    for i in range(events):
        if i % 100 == 0:
            rows.append({"ph": "X", "name": f"ProfilerStep#{i // 100}", "cat": "user_annotation", "pid": 1, "tid": 1,
                         "ts": i * 100, "dur": 9990})
        rows.append({"ph": "X", "name": rng.choice(names), "cat": "cpu_op", "pid": 1, "tid": rng.choice([1, 2]),
                     "ts": i * 100 + 1, "dur": rng.randrange(1, 99), "args": {"n": i}})
    rows.append({"ph": "C", "name": "loss", "pid": 1, "ts": 5, "args": {"value": 0.1}})
    rows.append({"ph": "C", "name": "loss", "pid": 1, "ts": 6, "args": {"value": 1 / 3}})
    path.write_text(json.dumps({"traceEvents": rows}))


def text(value):
    """A value of JSON as CSV has it."""
    if value is None:
        return ""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def real(value):
    """Real numbers in one form; DuckDB writes 1.0."""
    return repr(float(value)).removesuffix(".0") if value and re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", value) and \
        ("." in value or "e" in value) else value


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = tempfile.TemporaryDirectory(prefix="export")
        cls.root = pathlib.Path(cls.temp.name)
        cls.files = [cls.root / "one.json", cls.root / "two.json"]
        for seed, path in enumerate(cls.files):
            trace(path, seed, 3000)
        cls.export("ndjson", "all")
        cls.tables = sorted(p.name[:-7] for p in (cls.root / "all").iterdir())
        cls.rows = {t: cls.lines(cls.root / f"all/{t}.ndjson") for t in cls.tables}

    @classmethod
    def tearDownClass(cls):
        cls.temp.cleanup()

    @classmethod
    def export(cls, to, directory, *options, status=0, files=None):
        run = subprocess.run([BIN, "export", *map(str, files or cls.files), "--to", to, str(cls.root / directory), *options],
                             text=True, capture_output=True)
        assert run.returncode == status, run.stderr
        return run.stdout if status == 0 else run.stderr

    @staticmethod
    def lines(path):
        packed = path.read_bytes()
        data = gzip.decompress(packed) if path.suffix == ".gz" else packed
        return [json.loads(line, parse_float=str) for line in data.split(b"\n") if line]

    def same(self, found, expected):
        key = lambda row: json.dumps(row, sort_keys=True)
        self.assertEqual(Counter(map(key, found)), Counter(map(key, expected)))

    def test_tables(self):
        self.assertLess({"event", "op", "step", "source", "counter", "run"}, set(self.tables))
        self.assertEqual({row["run"] for row in self.rows["event"]}, {"one", "two"})
        self.assertGreater(len(self.rows["event"]), 6000)
        self.assertEqual({row["value"] for row in self.rows["counter"]}, {"0.1", "0.3333333333333333"})
        self.assertEqual({row["name"] for row in self.rows["op"] if row["name"].startswith("l")}, {"línea\nnew"})

    def test_csv(self):
        self.export("csv", "csv")
        for table, expected in self.rows.items():
            data = (self.root / f"csv/{table}.csv").read_bytes()
            found = list(csv.reader(data.decode("utf8").splitlines(keepends=True), strict=True))
            self.assertTrue(data.endswith(b"\r\n"))
            self.assertEqual(found[1:], [[text(v) for v in row.values()] for row in expected], table)
            if expected:
                self.assertEqual(found[0], list(expected[0]))

    def test_sorted(self):
        self.export("ndjson", "sorted", "--sort", "ts", "--table", "event,op")
        found = self.lines(self.root / "sorted/event.ndjson")
        expected = sorted(self.rows["event"], key=lambda row: (row["ts"], row["id"]))
        self.assertEqual(found, expected)
        self.assertEqual(self.lines(self.root / "sorted/op.ndjson"), self.rows["op"])  # has no ts
        self.export("ndjson", "sorted", "--sort", "dur", "--table", "event", "--overwrite")
        found = self.lines(self.root / "sorted/event.ndjson")
        self.assertEqual([row["id"] for row in found],
                         [row["id"] for row in sorted(self.rows["event"], key=lambda row:
                                                      (row["dur"] is None, row["dur"] or 0, row["id"]))])

    def test_partitioned(self):
        self.export("ndjson", "parts", "--partition", "step", "--table", "event,op", "--sort", "ts", "--compress", "gzip")
        found = []
        for path in (self.root / "parts/event").rglob("*.gz"):
            run, step = re.fullmatch(r"run=(.*)/step=(.*)/part-0.ndjson.gz", str(path.relative_to(self.root / "parts/event"))
                                     ).groups()
            rows = self.lines(path)
            self.assertEqual([r["ts"] for r in rows], sorted(r["ts"] for r in rows))
            for row in rows:
                self.assertNotIn("step", row)
                found.append({**row, "run": run, "step": None if step.startswith("_") else int(step)})
        self.same(found, self.rows["event"])
        self.assertEqual(len(list((self.root / "parts/op").rglob("*.gz"))), 2)

    def test_split(self):
        for how in ("none", "gzip"):
            self.export("ndjson", f"split-{how}", "--split", "20K", "--table", "event", "--compress", how)
            parts = sorted((self.root / f"split-{how}/event").iterdir(), key=lambda p: int(re.search(r"part-(\d+)", p.name)[1]))
            self.assertGreater(len(parts), 1)
            found = [row for path in parts for row in self.lines(path)]
            self.assertEqual(found, self.rows["event"])

    def test_one_run(self):
        self.export("ndjson", "named", "--name", "job", "--table", "event,run")
        self.assertEqual({row["run"] for row in self.lines(self.root / "named/event.ndjson")}, {"job"})
        self.assertEqual(len(self.lines(self.root / "named/run.ndjson")), 1)

    def test_parquet_partitions_units_and_groups(self):
        events = [{"ph": "X", "name": "ProfilerStep#1", "cat": "user_annotation", "pid": 1, "tid": 1, "ts": 0, "dur": 1000}]
        events += [{"ph": "X", "name": "op", "pid": 1, "tid": 2, "ts": i / 10, "dur": 0.05} for i in range(150000)]
        trace = self.root / "many.json"
        trace.write_text(json.dumps(events))
        ask = lambda query: json.loads(subprocess.run([BIN, "sql", str(trace), "--json", "--allow-io", query], text=True,  # noqa: E731
                                                      capture_output=True, check=True).stdout)["rows"]
        folders = {}
        for to, extra in (("parquet", ()), ("ndjson", ())):
            self.export(to, f"steps-{to}", "--partition", "step", "--table", "event", *extra, files=[trace])
            folders[to] = sorted(p.name for p in (self.root / f"steps-{to}/event/run=many").iterdir())
        self.assertEqual(folders["parquet"], folders["ndjson"])
        self.assertIn("step=__HIVE_DEFAULT_PARTITION__", folders["parquet"])
        parts = f"{self.root}/steps-parquet/event"
        self.assertEqual(ask(f"SELECT count(*) AS n FROM '{parts}/**/*.parquet'"), [{"n": 150001}])
        self.assertEqual(ask(f"SELECT count(*) AS n FROM read_parquet('{parts}/**/*.parquet', hive_partitioning = true, hive_types_autocast = 0) "
                             "WHERE step = '__HIVE_DEFAULT_PARTITION__'"),
                         ask("SELECT count(*) AS n FROM event WHERE step IS NULL"))
        self.export("parquet", "whole", "--table", "event", files=[trace])
        file = f"{self.root}/whole/event.parquet"
        groups = ask(f"SELECT DISTINCT row_group_id, row_group_num_rows AS n FROM parquet_metadata('{file}') ORDER BY 1")
        self.assertEqual([g["n"] for g in groups], [122880, 150001 - 122880])
        units = {r["k"]: r["v"] for r in ask(f"SELECT decode(key) AS k, decode(value) AS v FROM parquet_kv_metadata('{file}')")}
        self.assertEqual((units["opwatch.table"], units["opwatch.unit.ts"], units["opwatch.unit.bytes"]), ("event", "ns", "bytes"))
        self.assertNotIn("opwatch.unit.name", units)
        subprocess.run([BIN, "op", str(trace), "--parquet", "-o", f"{self.root}/op.parquet"], check=True, capture_output=True)
        units = {r["k"]: r["v"] for r in ask(f"SELECT decode(key) AS k, decode(value) AS v FROM parquet_kv_metadata('{self.root}/op.parquet')")}
        self.assertEqual(units["opwatch.unit.micros"], "us")

    def test_what_a_killed_export_leaves(self):
        """The next export into the folder removes it; that of a running export, and files that were moved away, stay."""
        out = self.root / "killed"
        for _ in range(40):
            p = subprocess.Popen([BIN, "export", *map(str, self.files), "--to", "ndjson", str(out), "--overwrite"], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
            while p.poll() is None and not list(out.glob(".opwatch-export-*")):
                pass
            p.send_signal(signal.SIGSTOP)
            if p.poll() is None and list(out.glob(".opwatch-export-*")):
                break
            p.send_signal(signal.SIGCONT)
            p.communicate()
        running = set(out.glob(".opwatch-export-*"))
        self.assertEqual(len(running), 1)
        self.export("ndjson", "killed", "--table", "step", "--overwrite")
        self.assertEqual(set(out.glob(".opwatch-export-*")), running)  # it is stopped, not dead
        p.kill()
        p.communicate()
        self.assertEqual(set(out.glob(".opwatch-export-*")), running)
        kept = out / ".opwatch-export-999999999-abcdef"
        kept.mkdir()
        (kept / "replaced-0").write_text("yours")
        old = out / ".opwatch-export-XyZ123"
        old.mkdir()
        (old / "event.ndjson").write_text("half")
        os.utime(old, (1, 1))
        self.export("ndjson", "killed", "--table", "step", "--overwrite")
        self.assertEqual(list(out.glob(".opwatch-export-*")), [kept])

    def test_bigquery_without_a_format_is_parquet(self):
        out = self.root / "bq-default"
        done = subprocess.run([BIN, "export", *map(str, self.files), "--bigquery", "--table", "step", str(out)], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(p.name for p in out.iterdir()), ["load.sh", "step.parquet", "step.schema.json"])

    def test_bigquery(self):
        out = self.export("ndjson", "bq", "--bigquery")
        self.assertIn("load.sh", out)
        script = (self.root / "bq/load.sh").read_text()
        for table in self.tables:
            self.assertIn(f'bq load --replace --source_format=NEWLINE_DELIMITED_JSON "$dataset.{table}" '
                          f"{table}.ndjson {table}.schema.json\n", script)
            schema = json.loads((self.root / f"bq/{table}.schema.json").read_text())
            names = [field["name"] for field in schema]
            self.assertTrue(all(re.fullmatch(r"[A-Za-z_]\w{0,299}", name, re.A) for name in names))
            self.assertEqual(len({name.lower() for name in names}), len(names))
            kinds = {f["name"]: {"INTEGER": (int, str), "NUMERIC": (int, str), "FLOAT": (float, int), "STRING": str,
                                 "BOOLEAN": bool}[f["type"]] for f in schema}
            for row in map(json.loads, (self.root / f"bq/{table}.ndjson").read_bytes().splitlines()):
                self.assertEqual(list(row), names)
                self.assertTrue(all(value is None or isinstance(value, kinds[name]) for name, value in row.items()), row)
        # The script runs, with a bq that only tells what it was called with.
        fake = self.root / "bin"
        fake.mkdir()
        (fake / "bq").write_text("#!/bin/sh\nfor f; do [ -e \"$f\" ] && echo \"$f\"; done\n")
        (fake / "bq").chmod(0o755)
        run = subprocess.run([self.root / "bq/load.sh", "mine"], text=True, capture_output=True,
                             env={**os.environ, "PATH": f"{fake}:{os.environ['PATH']}"})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(run.stdout.split()), 2 * len(self.tables))
        self.export("ndjson", "bq2", "--bigquery", "--partition", "run", "--table", "event")
        run = subprocess.run([self.root / "bq2/load.sh", "mine"], text=True, capture_output=True,
                             env={**os.environ, "PATH": f"{fake}:{os.environ['PATH']}"})
        self.assertEqual(len(run.stdout.split()), 4, run.stdout)

    def test_parquet(self):
        db = duckdb_lib.open_library()
        if not db:
            self.skipTest("no DuckDB")
        for options in ((), ("--sort", "ts"), ("--partition", "step"), ("--split", "50K"), ("--compress", "gzip"),
                        ("--bigquery",), ("--partition", "run", "--sort", "ts", "--bigquery")):
            out = self.root / ("parquet" + "".join(options))
            self.export("parquet", out, *options)
            for table, expected in self.rows.items():
                if not expected:
                    continue
                names = list(expected[0])
                place = f"{out}/{table}.parquet" if (out / f"{table}.parquet").exists() else f"{out}/{table}/**/*.parquet"
                columns = ", ".join(f'"{n}"' for n in names)
                found = db.query(f"SELECT {columns} FROM read_parquet('{place}', hive_partitioning = true)")
                want = [[None if v is None else text(v) for v in row.values()] for row in expected]
                # DuckDB takes Hive's name of NULL for a text.
                found = [[None if v == "__HIVE_DEFAULT_PARTITION__" else real(v) for v in row] for row in found]
                want = [[real(v) for v in row] for row in want]
                if options in ((), ("--compress", "gzip"), ("--bigquery",)):
                    self.assertEqual(found, want, table)
                else:
                    self.assertEqual(Counter(map(str, found)), Counter(map(str, want)), (table, options))
                if options == ("--sort", "ts") and table == "event":
                    stamps = [int(row[names.index("ts")]) for row in found]
                    self.assertEqual(stamps, sorted(stamps))

    def test_refused(self):
        self.assertIn("--to parquet", subprocess.run([BIN, "export", "x", "y"], text=True, capture_output=True).stderr)
        self.assertIn("'xls' is not a table format", self.export("xls", "no", status=2))
        self.assertIn("no table evnt; did you mean event?", self.export("csv", "no", "--table", "evnt", status=1))
        self.assertIn("compress: gzip", self.export("csv", "no", "--compress", "lzma", status=2))
        self.assertIn("already exists", self.export("ndjson", "all", status=2))
        self.assertIn("not a folder", self.export("csv", "one.json", status=2))
        self.assertIn("2 names for 1 run", self.export("csv", "no", "--name", "a", "--name", "b", files=self.files[:1], status=2))
        self.assertFalse((self.root / "no").exists())

    def test_interrupted(self):
        big = self.root / "big.json"
        trace(big, 3, BIG)
        for to in ("csv", "arrow", "parquet"):
            out = self.root / f"stopped-{to}"
            run = subprocess.Popen([BIN, "export", big, "--to", to, out, "--compress", "none"], stderr=subprocess.PIPE)
            for _ in range(2000):
                if list(out.glob(".opwatch-export-*/*")) or run.poll() is not None:
                    break
                time.sleep(0.005)
            run.send_signal(signal.SIGINT)
            _, error = run.communicate()
            if run.returncode == 1:
                self.assertIn(b"SQL", error)  # no DuckDB
            elif run.returncode != 0:  # else it was faster than this test
                self.assertEqual(run.returncode, -signal.SIGINT)
            left = list(out.iterdir()) if out.exists() else []
            self.assertFalse([p for p in left if p.name.startswith(".")], left)


if __name__ == "__main__":
    unittest.main()
