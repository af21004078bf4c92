#!/usr/bin/python3
"""Our pprof files read by `go tool pprof`: it accepts them, and its totals are ours.

Debian's google-pprof reads only the legacy format and is of no use here; golang-go brings the tool.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ["OPWATCH_BIN"]
SAMPLE = os.path.join(os.environ["OPWATCH_SRC"], "samples", "resnet.profile")
METRICS = ["micros", "accelerator_micros", "cpu_micros", "bytes", "peak_bytes", "residual_bytes", "output_bytes",
           "params", "float_ops"]


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
                          env={**os.environ, "HOME": tempfile.gettempdir()})
    if done.returncode:
        raise AssertionError(f"{args}: exit {done.returncode}: {done.stderr}")
    return done.stdout


class GoPprof(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "p.pb.gz")

    def write(self, metric, *options):
        run(BIN, "code", SAMPLE, "--max-depth", "100", "--select", metric, "--output", f"pprof:outfile={self.file}", *options)

    def raw_samples(self):
        raw = run("go", "tool", "pprof", "-raw", self.file)
        lines = raw[raw.index("Samples:"):raw.index("Locations")].splitlines()
        return [(int(m[1]), int(m[2])) for m in (re.match(r"\s+(-?\d+)\s+(-?\d+):", line) for line in lines) if m]

    def test_totals(self):
        for metric in METRICS:
            with self.subTest(metric=metric):
                self.write(metric)
                samples = self.raw_samples()
                self.assertGreater(len(samples), 10)
                self.assertTrue(all(count == 1 for count, _ in samples))
                leaves = self.leaf_total(metric)
                self.assertEqual(sum(value for _, value in samples), leaves)

    def leaf_total(self, metric):
        """What the code view gives to frames without callees: ops of inner frames are not sampled."""
        rows = json.loads(run(BIN, "code", SAMPLE, "--json", "--max-depth", "100", "--select", metric))["rows"]
        total, stack = 0, list(rows)
        while stack:
            row = stack.pop()
            stack += row.get("children", [])
            if "children" not in row:
                total += row["total_" + metric]
        return total

    def test_top(self):
        self.write("micros")
        top = run("go", "tool", "pprof", "-top", "-unit=us", self.file)
        self.assertIn("Type: micros", top)
        self.assertRegex(top, r"(?m)^\s*\S+us\s+\S+%\s+\S+%\s+\S+us\s+\S+%  \w+:\w+")

    def test_stacks_and_labels(self):
        self.write("float_ops")
        traces = run("go", "tool", "pprof", "-traces", self.file)
        self.assertIn("graph node::", traces)
        self.assertIn("Type: float_ops", traces)


if __name__ == "__main__":
    if not shutil.which("go"):
        print("golang-go is not installed: nothing reads pprof files here")
        sys.exit(77)
    unittest.main()
