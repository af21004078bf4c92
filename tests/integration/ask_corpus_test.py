"""Every named query on real files of every kind; and, where there is a ClickHouse server to start, those with a form for it
give the same rows there as in the embedded engine (real numbers to 1e-9).

OPWATCH_CORPUS is the folder with the files; without it, or without DuckDB, the test is skipped.
"""
import json
import math
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ.get("OPWATCH_SRC", "."), "tests"))

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")
SAMPLE = pathlib.Path(os.environ.get("OPWATCH_SRC", "."), "samples/resnet.profile")
KINDS = ("kineto", "tf1-timeline", "tf2-trace", "torch-legacy", "onnxruntime", "chrome-trace", "tf1-profile", "tf1-tfprof", "tf-graph")
OTHERS = ("folded", "pprof", "perf-data", "perf-script", "speedscope", "nsys-sqlite", "torch-memory", "xplane")
MOST = 4 << 20


def files():
    """Of each kind the smallest, the median and the largest that is not too large; of the others the median."""
    found = []
    for kind in KINDS + OTHERS:
        paths = sorted((p for p in pathlib.Path(CORPUS, kind).rglob("*") if p.is_file() and p.stat().st_size < MOST),
                       key=lambda p: (p.stat().st_size, p.name)) if pathlib.Path(CORPUS, kind).is_dir() else []
        which = (0, len(paths) // 2, len(paths) - 1) if kind in KINDS else (len(paths) // 2,)
        found += {paths[i] for i in which} if paths else set()
    return sorted(found)


def ask(*words):
    run = subprocess.run([BIN, "ask", *map(str, words), "--json"], text=True, capture_output=True)
    return run.returncode, run.stderr, json.loads(run.stdout) if run.returncode == 0 else None


def table(document):
    names = [column["name"] for column in document["columns"]]
    return names, [[row[name] for name in names] for row in document["rows"]]


def need_sql():
    status, error, _ = ask("time_by_phase", SAMPLE)
    if status == 1 and "SQL" in error:
        raise unittest.SkipTest("opwatch was built without SQL, or libduckdb.so is not there: " + error.strip())


class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        need_sql()
        if not CORPUS:
            raise unittest.SkipTest("OPWATCH_CORPUS is not set")
        cls.queries = ask()[2]
        cls.files = [path for path in files() if subprocess.run([BIN, "info", path], capture_output=True).returncode == 0]

    def test_all(self):
        answered = set()
        for path in self.files:
            for query in self.queries:
                if query["name"].startswith("compare_"):  # of two runs
                    continue
                with self.subTest(query["name"], file=path.name):
                    status, error, document = ask(query["name"], path)
                    self.assertEqual(status, 0, error)
                    if document["rows"]:
                        answered.add(query["name"])
                        continue
                    self.assertRegex(document["footer"], "^No rows: .*'opwatch (ask [a-z_]+' (has an answer|shows what was recorded)|info' shows)")
                    self.assertNotIn("the conditions of the query", document["footer"])  # it says which
        self.assertGreaterEqual(len(answered), 22, sorted({q["name"] for q in self.queries} - answered))


def near(a, b):
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return a == b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


class OnClickHouse(unittest.TestCase):
    SETS = (("kineto/hta-ns_resolution.json.gz", "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz"),)
    NOT_EMPTY = ("memory_at_peak", "memory_growth", "top_ops")  # of the sample

    def test_same_rows(self):
        need_sql()
        try:
            from support import clickhouse
        except ImportError:
            self.skipTest("opwatch push is not there")
        if not clickhouse.installed():
            self.skipTest("clickhouse-server is not installed")
        environment = {**os.environ, "OPWATCH_CLICKHOUSE_PASSWORD": clickhouse.PASSWORD}
        sets = [[SAMPLE]] + ([[pathlib.Path(CORPUS, f) for f in s] for s in self.SETS] if CORPUS else [])
        with clickhouse.Cluster(1) as [server]:
            for number, paths in enumerate(sets):
                server.ask(f"CREATE DATABASE ask{number}")
                url = server.url(f"ask{number}")
                names = [f"run{i}" for i in range(len(paths))]
                for path, name in zip(paths, names):
                    subprocess.run([BIN, "push", path, "--to", url, "--name", name], check=True, capture_output=True, env=environment)
                self.compare(paths, names, url, environment)

    def compare(self, paths, names, url, environment):
        runs = [word for path, name in zip(paths, names) for word in ("--run", f"{name}={path}")]
        for query in ask()[2]:
            limit = ["--limit", "100000"] if any(p["name"] == "limit" for p in query["params"]) else []
            remote = subprocess.run([BIN, "ask", query["name"], "--on", url, "--json", *limit], text=True, capture_output=True,
                                    env=environment)
            with self.subTest(query["name"], files=[p.name for p in paths]):
                if not query["clickhouse"]:
                    self.assertNotEqual(remote.returncode, 0)
                    self.assertIn("embedded engine", remote.stderr)
                    continue
                self.assertEqual(remote.returncode, 0, remote.stderr)
                status, error, local = ask(query["name"], *runs, *limit)
                self.assertEqual(status, 0, error)
                (columns, here), (there_columns, there) = table(local), table(json.loads(remote.stdout))
                if paths == [SAMPLE] and query["name"] in self.NOT_EMPTY:
                    self.assertTrue(here)
                self.assertEqual(there_columns, columns)
                self.assertEqual(len(there), len(here))
                for a, b in zip(here, there):
                    self.assertTrue(all(map(near, a, b)), (a, b))


if __name__ == "__main__":
    unittest.main()
