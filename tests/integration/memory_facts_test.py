#!/usr/bin/python3
"""Memory of real programs: `opwatch info --json` must tell what FACTS.json does of the files in torch-memory, and the
memory views what a computation over the same files gives.

OPWATCH_CORPUS is the folder with the files and FACTS.json; without it the test is skipped. Compared are the names in
FIELDS below, for every file of KIND; and peak, end and what was in use at the peak by category for raw timelines, and by
device for traces of PyTorch with [memory] events.
"""
import collections
import gzip
import json
import os
import pathlib
import subprocess
import sys
import unittest

KIND = "torch-memory"
FIELDS = {"bytes_unpacked": "bytes", "container": "container", "len": "len", "toplevel": "toplevel",
          "first_item_keys": "first_item_keys"}  # in FACTS.json, and in ours
NOTHING = (None, [], "")
CATEGORIES = ("parameter", "optimizer state", "input", "temporary", "activation", "gradient", "autograd detail", "(unknown)")

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")


def run(*arguments):
    done = subprocess.run([BIN, *map(str, arguments), "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)


def unpacked(path):
    data = pathlib.Path(path).read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


class MemoryFacts(unittest.TestCase):
    def test_facts(self):
        facts = json.loads(pathlib.Path(CORPUS, "FACTS.json").read_text())
        seen = 0
        for path, want in sorted(facts.items()):
            if path.split("/")[0] != KIND:
                continue
            seen += 1
            with self.subTest(path):
                got = run("info", pathlib.Path(CORPUS, path))
                for theirs, ours in FIELDS.items():
                    have, told = got.get(ours), want.get(theirs)
                    if theirs == "container":
                        told = told[0] if told else None
                    if told in NOTHING and have in NOTHING:
                        continue
                    self.assertEqual(have, told, theirs)
        self.assertGreater(seen, 0)

    def test_raw_timelines(self):
        for path in sorted(pathlib.Path(CORPUS, KIND).iterdir()):
            data = json.loads(unpacked(path)) if unpacked(path)[:1] == b"[" else None
            if not isinstance(data, list) or not isinstance(data[0], list):
                continue
            with self.subTest(path.name):
                entries = sorted(data, key=lambda e: e[0])  # stable, and -1 comes first
                use, peak, by, at = 0, -1, collections.Counter(), None
                for _, _, size, category in entries:
                    use += size
                    by[category] += size
                    if use >= peak:
                        peak, at = use, +by
                row, = run("heaps", path)["rows"]
                self.assertEqual((row["peak_bytes"], row["end_bytes"]), (peak, use))
                told = {r["name"]: r["bytes"] for r in run("memory_peak", path)["rows"]}
                self.assertEqual(told, {CATEGORIES[c]: size for c, size in at.items()})

    def test_traces(self):
        seen = 0
        for path in sorted(pathlib.Path(CORPUS, "kineto").iterdir()):
            text = unpacked(path)
            if b'"[memory]"' not in text:
                continue
            seen += 1
            changes = collections.defaultdict(list)
            for e in json.loads(text)["traceEvents"]:
                if e.get("name") == "[memory]":
                    a = e["args"]
                    changes["CPU" if a["Device Type"] == 0 else f"GPU {a['Device Id']}"].append((e["ts"], a["Bytes"], a.get("Total Allocated", 0)))
            with self.subTest(path.name):
                heaps = {r["device"]: r for r in run("heaps", path)["rows"]}
                self.assertEqual(set(heaps), set(changes))
                for device, list_ in changes.items():
                    list_.sort(key=lambda c: c[0])
                    use, low, uses = 0, 0, [0]
                    for _, size, _ in list_:
                        use += size
                        low = min(low, use)
                        uses.append(use)
                    # In use before the first change: as the first one says, and at least what is released later.
                    start = max(-low, list_[0][2] - list_[0][1])
                    self.assertEqual(heaps[device]["peak_bytes"], max(uses[1:]) + start)
                    self.assertEqual(heaps[device]["end_bytes"], use + start)
                    told = collections.Counter()
                    for r in run("memory_peak", path)["rows"]:
                        if r["device"] == device:
                            told[r["grouped_by"]] += r["bytes"]
                    for by, size in told.items():
                        self.assertEqual(size, heaps[device]["peak_bytes"], by)
        self.assertGreater(seen, 0)


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
