#!/usr/bin/python3
"""One damaged duration does not hide the rest of a recording: it is set aside with a note, shares stay between 0 and 100 %, and sums
that would not fit into 64 bits stop at the limit instead of turning negative."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SRC / "tests/support"))
from stack_files import field  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
OPS, RUNS = 5, 10
NOTE = "durations of more than a year are ignored"


def trace(changes):
    """Five ops, ten times each, of 8 us; `changes` are other durations of some of the events."""
    events = [{"ph": "X", "cat": "Op", "name": f"T{k}", "pid": 1, "tid": 1, "ts": 100 * run + 10 * k, "dur": 8,
               "args": {"name": f"op_{k}", "op": f"T{k}"}} for run in range(RUNS) for k in range(OPS)]
    for number, dur in changes.items():
        events[number]["dur"] = dur
    return json.dumps({"traceEvents": events})


class Durations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def opwatch(self, *words):
        run = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout, run.stderr

    def check_trace(self, changes, expected):
        path = self.folder / "x.json"
        path.write_text(trace(changes))
        out, err = self.opwatch("op", path, "--json")
        rows = {row["name"]: row for row in json.loads(out)["rows"]}
        times = {name: row["micros"] for name, row in rows.items() if name.startswith("T")}
        self.assertEqual(times, expected, changes)
        self.assertIn(NOTE, err)
        for words in ([], ["op"], ["work"], ["opstats"], ["steps"]):
            text = self.opwatch(*words, path, "--no-pager")[0]
            shares = [float(share) for share in re.findall(r"(-?[0-9.]+) ?%", text)]
            self.assertTrue(all(0 <= share <= 100.05 for share in shares), (words, shares))
            self.assertNotRegex(text, r"-[0-9.]+(us|ms|s|h)\b")

    def test_traces(self):
        good = {f"T{k}": 80 for k in range(OPS)}
        for dur in (1.8e19, 9.2e15, 8e15, 4e13, 18446744073709551615):
            self.check_trace({7: dur}, {**good, "T2": 72})
        self.check_trace({3: 8e15, 8: 8e15, 13: 8e15}, {**good, "T3": 56})
        self.check_trace({n: 1e18 for n in range(2, 50, 5)}, {**good, "T2": 0})

    def test_a_long_run_is_no_damage(self):
        path = self.folder / "x.json"
        path.write_text(trace({49: 90 * 86400 * 1e6}))  # a quarter of a year
        out, err = self.opwatch("op", path, "--json")
        self.assertNotIn(NOTE, err)
        self.assertEqual({r["name"]: r["micros"] for r in json.loads(out)["rows"]}["T4"], 90 * 86400 * 10 ** 6 + 72)

    def test_run_metadata(self):
        def node(name, dur):
            return field(2, field(1, name) + field(2, 1000) + field(4, dur) + field(5, dur))
        graph = b"".join(field(1, field(1, name) + field(2, b"MatMul")) for name in (b"a", b"b"))
        device = field(1, b"/job:w/replica:0/task:0/device:CPU:0") + node(b"a", 50) + node(b"b", (1 << 63) - 1) + node(b"b", 70)
        (self.folder / "graph.pb").write_bytes(graph)
        (self.folder / "run_meta").write_bytes(field(1, field(1, device)))
        out, err = self.opwatch("scope", self.folder / "graph.pb", self.folder / "run_meta", "--json", "--select", "micros")
        rows = {row["name"]: row["micros"] for row in json.loads(out)["rows"][0]["children"]}
        self.assertEqual((rows["a"], rows["b"]), (50, 70))
        self.assertIn(NOTE.replace("year", "century"), err)

    def test_sums_of_samples_stop(self):
        path = self.folder / "x.folded"
        path.write_text(f"main;a {(1 << 63) - 1}\nmain;b {(1 << 63) - 1}\nmain;c 5\n")
        out, err = self.opwatch("functions", path, "--json")
        rows = {row["name"]: row for row in json.loads(out)["rows"]}
        self.assertEqual(rows["main"]["total"], (1 << 63) - 1)
        self.assertTrue(all(0 <= row["total_percent"] <= 100 for row in rows.values()), rows)
        self.assertIn("sums stop at the limit", err)


if __name__ == "__main__":
    unittest.main()
