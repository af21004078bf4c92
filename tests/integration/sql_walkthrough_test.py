#!/usr/bin/python3
"""Loading a timeline into a warehouse, flattening traceEvents, grouping by args.name: both queries as people write them,
on real files, row by row against the same computed here. And every table on every real trace."""
import collections
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
sys.path.insert(0, str(ROOT / "tests/support"))
import sql_text  # noqa: E402
from sql_text import BIN, rows, run  # noqa: E402

CORPUS = pathlib.Path(os.environ.get("OPWATCH_CORPUS", "/nonexistent"))

FLATTEN = """%%bigquery --project some-project --verbose --destination_table traces.tf115_processed

SELECT
index,
traceEvent.ph,
traceEvent.cat,
traceEvent.name,
traceEvent.pid,
traceEvent.tid,
traceEvent.ts,
traceEvent.dur,
traceEvent.args.name as arg_name,
traceEvent.args.op as arg_op
FROM
`some-project.traces.tf115` AS t,
UNNEST(t.traceEvents) as traceEvent WITH OFFSET AS index;
"""
GROUP = """SELECT
sum(dur) as total_dur,
avg(dur) as avg_dur,
min(dur) as min_dur,
max(dur) as max_dur,
arg_name
FROM `some-project.traces.tf115_processed`
group by arg_name order by 1 desc
limit 20;
"""


def events(path):
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    document = json.loads(data)
    return document["traceEvents"] if isinstance(document, dict) else document


def text(value):
    """As SQL shows it: text as it is, anything else as JSON; null is nothing."""
    return value if isinstance(value, str) or value is None else json.dumps(value)


def flat(index, event):
    args = event.get("args")
    args = args if isinstance(args, dict) else {}
    number = lambda v: v if isinstance(v, (int, float)) and not isinstance(v, bool) else None  # noqa: E731
    return {"index": index, "ph": event.get("ph"), "cat": event.get("cat"), "name": event.get("name"),
            "pid": number(event.get("pid")), "tid": number(event.get("tid")), "ts": number(event.get("ts")),
            "dur": number(event.get("dur")), "arg_name": text(args.get("name")), "arg_op": text(args.get("op"))}


class WalkThrough(unittest.TestCase):
    def files(self):
        found = sorted((CORPUS / "tf1-timeline").glob("*.json")) + sorted((CORPUS / "tf1-profile").rglob("*.json"))
        self.assertTrue(found)
        return found

    def test_flatten(self):
        for path in self.files():
            with self.subTest(path.name):
                self.assertEqual(rows(path, "--name", "x", FLATTEN), [flat(i, e) for i, e in enumerate(events(path))])

    def test_group(self):
        for path in self.files():
            groups = collections.defaultdict(list)
            for event in events(path):
                row = flat(0, event)
                groups[row["arg_name"]].append(row["dur"])
            expected = {}
            for name, durs in groups.items():
                known = [d for d in durs if d is not None]
                expected[name] = (sum(known), sum(known) / len(known), min(known), max(known)) if known else (None,) * 4
            with self.subTest(path.name):
                # All groups, then the first twenty in their order.
                whole = rows(path, "--name", "x", GROUP.replace("limit 20", ""))
                self.assertEqual(len(whole), len(expected))
                for row in whole:
                    for got, wanted in zip(list(row.values())[:4], expected[row["arg_name"]]):
                        self.assertTrue(got == wanted or abs(got - wanted) <= 1e-9 * abs(wanted), row)
                sums = [row["total_dur"] for row in whole]
                self.assertEqual(sums, sorted(sums, key=lambda s: (s is None, -(s or 0))))
                self.assertEqual([row["total_dur"] for row in rows(path, "--name", "x", GROUP)], sums[:20])

    def test_run_by_its_name(self):
        first, second = self.files()[:2]
        count = "SELECT count(*) AS n FROM `p.d.b`"
        self.assertEqual(rows(first, second, "--name", "a", "--name", "b", count), [{"n": len(events(second))}])

    def test_any_trace(self):
        """Elements of all kinds: begins and ends, flows, counters, text for numbers."""
        checked = 0
        for folder in ("chrome-trace", "kineto", "torch-legacy", "onnxruntime"):
            for path in sorted((CORPUS / folder).rglob("*")):
                try:
                    expected = events(path)
                    assert all(isinstance(e, dict) for e in expected) and len(expected) < 50000
                except (ValueError, KeyError, OSError, AssertionError, TypeError):
                    continue
                checked += 1
                with self.subTest(path.name):
                    got = rows(path, "--one-run", "SELECT index, ph, name, ts, dur, arg_name FROM trace_events")
                    self.assertEqual(len(got), len(expected))
                    for row, (i, event) in zip(got, enumerate(expected)):
                        wanted = flat(i, event)
                        self.assertEqual((row["index"], row["ph"], row["name"], row["arg_name"]),
                                         (i, wanted["ph"], text(wanted["name"]), wanted["arg_name"]))
                        if wanted["dur"] is not None:
                            self.assertAlmostEqual(row["dur"], wanted["dur"])
        self.assertGreater(checked, 5)


class EveryTable(unittest.TestCase):
    def test_corpus(self):
        names = [line.split()[0] for line in run(".tables").stdout.splitlines()]
        query = "; ".join(f"SELECT count(*) AS n FROM (SELECT * FROM {name})" for name in names)
        tried = 0
        for folder in ("tf1-timeline", "kineto", "xplane", "tf-graph", "tf-events", "tf1-tfprof", "torch-legacy", "negative"):
            for path in sorted(p for p in (CORPUS / folder).rglob("*") if p.is_file())[:12]:
                if path.stat().st_size > 20 << 20:
                    continue
                done = subprocess.run([BIN, "sql", "--csv", path, query], text=True, capture_output=True, timeout=300)
                tried += done.returncode == 0
                self.assertIn(done.returncode, (0, 1), f"{path}: {done.stderr[-500:]}")
                if done.returncode == 0:
                    self.assertEqual(len(re.findall(r"^\d+$", done.stdout, re.M)), len(names), path)
        self.assertGreater(tried, 10)


if __name__ == "__main__":
    if not CORPUS.is_dir():
        print("skipped: OPWATCH_CORPUS is not set")
        sys.exit(77)
    sql_text.need_duckdb(ROOT / "samples/resnet.profile")
    unittest.main()
