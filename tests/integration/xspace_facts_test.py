#!/usr/bin/python3
"""XSpace files of real programs: `opwatch info --json` must tell what FACTS.json does.

OPWATCH_CORPUS is the folder with the files and FACTS.json; without it the test is skipped. Compared are, exactly: the
counts of TOP, and of every plane those of PLANE and of every line those of LINE, all times in picoseconds, and the five
kinds of events with the longest sums (where several have equal sums their order is not compared).
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

TOP = ("planes", "lines", "events", "other_toplevel_fields")
PLANE = ("name", "id", "lines", "events", "event_stats", "event_metadata", "stat_metadata", "stats", "min_start_ps",
         "max_end_ps")
LINE = ("id", "name", "display_name", "events", "sum_duration_ps", "timestamp_ns")

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")


def info(path):
    return json.loads(subprocess.run([BIN, "info", "--json", str(path)], capture_output=True, check=True).stdout)


class XSpaceFacts(unittest.TestCase):
    def same(self, got, want, names):
        for name in names:  # FACTS.json leaves out what is zero or empty
            self.assertEqual(got.get(name) or None, want.get(name) or None, name)

    def plane(self, got, want):
        self.same(got, want, PLANE)
        told = [line for line in want["line_list"] if isinstance(line, dict)]  # a long list ends in "…"
        if len(told) == len(want["line_list"]):
            self.assertEqual(len(got["line_list"]), len(told))
        for a, b in zip(got["line_list"], told):
            self.same(a, b, LINE)
        told = want["top5_duration_ps"]
        self.assertEqual(sorted(n for n, _, _ in got["top5_duration_ps"]), sorted(n for n, _, _ in told))
        self.assertEqual([tuple(x[1:]) for x in got["top5_duration_ps"]], [tuple(x[1:]) for x in told])

    def test_corpus(self):
        facts = json.loads(pathlib.Path(CORPUS, "FACTS.json").read_text())
        seen = 0
        for path, want in sorted(facts.items()):
            if not path.startswith("xplane/"):
                continue
            seen += 1
            with self.subTest(path):
                got = info(pathlib.Path(CORPUS, path))
                self.assertEqual(got["format"], "xspace")
                self.same(got, want, TOP)
                for a, b in zip(got["plane_list"], want["plane_list"], strict=True):
                    with self.subTest(b["name"]):
                        self.plane(a, b)
        self.assertGreater(seen, 0)


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
