#!/usr/bin/python3
"""Chrome traces of real programs: `opwatch info --json` must tell what FACTS.json does.

OPWATCH_CORPUS is the folder with the traces and FACTS.json; without it the test is skipped. Compared are the names
in COUNTS and TIMES below, for every file of the kinds in KINDS. Times are compared after rounding each event to a
nanosecond: FACTS.json has sums of unrounded decimals, or doubles, so a sum may differ by half a nanosecond per event
and a single time by what a double loses.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest
from decimal import Decimal

KINDS = ("tf1-timeline", "tf2-trace", "kineto", "torch-legacy", "onnxruntime", "chrome-trace")
COUNTS = ("trace_events", "by_ph", "by_cat", "distinct_pids", "distinct_pid_tid", "distinct_X_names", "flow_ids",
          "process_names", "events_without_ph", "X_without_dur")
TIMES = ("min_ts", "max_ts", "max_X_end")  # single times
NOTHING = (None, 0, {}, [])
NANO = Decimal("0.001")

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")


def info(path):
    text = subprocess.run([BIN, "info", "--json", str(path)], capture_output=True, check=True).stdout
    return json.loads(text, parse_float=Decimal)


def no_flows(value):
    return isinstance(value, dict) and not any(value.values()) and "started" in value


def near(a, b, tolerance):
    return a is None and b is None or a is not None and b is not None and abs(Decimal(a) - Decimal(b)) <= tolerance


class TraceFacts(unittest.TestCase):
    def count(self, got, want, name):
        have, told = got.get(name), want.get(name)
        if told in NOTHING and (have in NOTHING or no_flows(have)):
            return
        self.assertEqual(have, told, name)

    def times(self, got, want):
        for name in TIMES:
            exact = want.get(name + "_text")  # the decimal as written; else what a double of 1e15 loses
            if exact is not None:
                self.assertTrue(near(got.get(name), exact, NANO), f"{name}: {got.get(name)} and {exact}")
            else:
                self.assertTrue(near(got.get(name), want.get(name), Decimal("0.13")),
                                f"{name}: {got.get(name)} and {want.get(name)}")

    def sums(self, got, want):
        # half a nanosecond per event, and a double's last digit
        slack = NANO / 2 * (1 + want.get("by_ph", {}).get("X", 0))
        self.assertTrue(near(got["total_X_dur"], want["total_X_dur"], slack))
        by_cat, told = got.get("X_dur_by_cat", {}), want.get("X_dur_by_cat", {})
        self.assertEqual(set(by_cat), set(told))
        for cat, dur in told.items():
            self.assertTrue(near(by_cat[cat], dur, slack), f"X_dur_by_cat {cat}: {by_cat[cat]} and {dur}")
        self.assertEqual([(n, c) for n, _, c in got["top5_X_dur"]], [(n, c) for n, _, c in want["top5_X_dur"]])
        for (name, a, count), (_, b, _) in zip(got["top5_X_dur"], want["top5_X_dur"]):
            self.assertTrue(near(a, b, NANO / 2 * (count + 1)), f"top5_X_dur {name}: {a} and {b}")

    def test_corpus(self):
        facts = json.loads(pathlib.Path(CORPUS, "FACTS.json").read_text(), parse_float=Decimal)
        seen = 0
        for path, want in sorted(facts.items()):
            if path.split("/")[0] not in KINDS:
                continue
            seen += 1
            with self.subTest(path):
                got = info(pathlib.Path(CORPUS, path))
                for name in COUNTS:
                    self.count(got, want, name)
                self.times(got, want)
                self.sums(got, want)
        self.assertGreater(seen, 0)


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
