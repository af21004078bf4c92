"""Merging real traces: every event of every file is in the output, byte for byte but for pids, ids, times and names
of processes; and what opwatch says about the merged file is the sum of what it says about the parts.

OPWATCH_CORPUS is the folder with the traces; without it the test is skipped.
"""
import gzip
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from decimal import Decimal

sys.path.insert(0, os.path.join(os.environ.get("OPWATCH_SRC", "."), "tests"))
from support.trace_text import Checker, Trace, refuse  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")
KINDS = ("tf1-timeline", "tf2-trace", "kineto", "torch-legacy", "onnxruntime", "chrome-trace")
PAIR_BYTES = 300 << 10  # Python's share of the work is the slow one
SUMS = ("trace_events", "distinct_pids", "distinct_pid_tid", "events_without_ph", "X_without_dur")


def files():
    return sorted((p for kind in KINDS for p in pathlib.Path(CORPUS, kind).iterdir()), key=lambda p: p.stat().st_size)


def read(path):
    data = path.read_bytes()
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            data = z.read(z.namelist()[0])
    try:
        return Trace(data)
    except (ValueError, IndexError):  # no closing bracket
        return Trace(re.sub(rb"[\s,]*$", b"", data) + b"]")


def info(paths):
    text = subprocess.run([BIN, "info", "--json", *map(str, paths)], capture_output=True, check=True).stdout
    return json.loads(text, parse_float=Decimal)["sources"]


class Corpus(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="merge")
        self.addCleanup(self.dir.cleanup)
        self.out = pathlib.Path(self.dir.name, "all.json")

    def merge(self, paths, *options):
        run = subprocess.run([BIN, "merge", *map(str, paths), "-o", str(self.out), "--json", *options],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.sums = json.loads(run.stdout)

    def check(self, paths, *options):
        self.merge(paths, *options)
        merged = Trace(self.out.read_bytes())
        inputs = [read(p) for p in paths]
        self.assertEqual(self.sums["files"], len(paths))
        self.assertEqual(self.sums["events_out"], sum(len(t.events) for t in inputs))
        checker = Checker(self, inputs, merged, self.sums["added"], labels="--no-labels" not in options)
        checker.run()
        return checker

    def test_every_file_with_the_next(self):
        paths = [p for p in files() if p.stat().st_size < PAIR_BYTES]
        for a, b in zip(paths, paths[1:]):
            with self.subTest(f"{a.name} {b.name}"):
                self.check([a, b])

    def test_every_file_with_its_copy_from_zero(self):
        for path in files():  # the same file twice would count once
            if path.stat().st_size < PAIR_BYTES // 4:
                copy = pathlib.Path(self.dir.name, path.name)
                copy.write_bytes(path.read_bytes())
                with self.subTest(path.name):
                    self.check([path, copy], "--align", "start", "--no-labels")

    def test_kinds_together(self):
        for kind in KINDS:
            paths = [p for p in files() if p.parent.name == kind and p.stat().st_size < PAIR_BYTES]
            with self.subTest(kind):
                self.check(paths)
                self.check(paths, "--align", "sequence")

    def test_all_together_by_count(self):
        self.merge(files(), "--no-labels")
        self.assertEqual(self.sums["repaired"], 0)
        total = sum(len(read(p).events) for p in files() if p.stat().st_size < PAIR_BYTES)
        for path in files():
            if path.stat().st_size >= PAIR_BYTES:
                data = path.read_bytes()
                trace = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
                total += len(trace if isinstance(trace, list) else trace["traceEvents"])
        self.assertEqual(len(json.loads(self.out.read_bytes(), parse_constant=refuse)["traceEvents"]), total)

    def added_up(self, parts, table, keys):
        return {k: sum(p[table].get(k, 0) for p in parts) for k in keys}

    def test_merged_is_the_sum_of_the_parts(self):
        paths = [p for p in files() if p.suffix != ".zip"]
        for some in (paths[0::3], paths[1::3], paths[2::3]):
            self.merge(some, "--no-labels")
            self.assertGreater(len(some), 10)
            parts, (whole,) = info(some), info([self.out])
            for name in SUMS:
                self.assertEqual(whole[name], sum(p[name] for p in parts), name)
            self.assertEqual(whole["by_ph"], self.added_up(parts, "by_ph", whole["by_ph"]))
            if all(p["distinct_cats"] == len(p["by_cat"]) for p in parts):  # else only the most frequent are told
                self.assertEqual(whole["by_cat"], self.added_up(parts, "by_cat", whole["by_cat"]))
            for end in ("started", "stepped_or_ended", "both"):
                self.assertEqual(whole["flow_ids"][end], sum(p["flow_ids"][end] for p in parts), end)
            self.assertEqual(whole["total_X_dur"], sum(p["total_X_dur"] for p in parts))


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
