#!/usr/bin/python3
"""Views of sampled stacks as people see them: the tree has the samples' weights, its root a name of its own, and frames
without a line number show none; samples with times become a timeline."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
FRAMES = [{"name": "main", "file": "/src/a.c", "line": 12}, {"name": "leaf"}, {"name": "f", "file": "/src/b.c"}]
PROFILE = {
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "shared": {"frames": FRAMES},
    "profiles": [{"type": "sampled", "name": "one", "unit": "milliseconds", "startValue": 0, "endValue": 10,
                  "samples": [[0, 1], [0, 1], [0, 2], [0, 1]], "weights": [3, 2, 4, 1]}],
}


class SampleViews(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "x.speedscope.json"
        self.path.write_text(json.dumps(PROFILE))

    def opwatch(self, *words):
        run = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_code(self):
        lines = [line.split() for line in self.opwatch("code", self.path).splitlines()]
        self.assertEqual(lines[0][:3], ["name", "self", "share"])
        rows = {line[0]: line[1:] for line in lines[1:]}
        self.assertEqual(rows["all"], ["0ns", "0.0%", "10.0ms", "100.0%"])
        self.assertEqual(rows["leaf"], ["6.00ms", "60.0%", "6.00ms", "60.0%"])
        self.assertEqual(rows["f"], ["4.00ms", "40.0%", "4.00ms", "40.0%"])

    def test_root(self):
        for words in (["code", self.path, "--json"], ["code", self.path, "--csv"], ["code", self.path]):
            self.assertNotIn("_TFProfRoot", self.opwatch(*words))

    def test_lines(self):
        for words in (["lines", self.path], [self.path]):
            text = self.opwatch(*words)
            self.assertIn("leaf", text)
            self.assertNotIn(":0", text)

    def timeline(self, *words):
        out = self.folder / "out.json"
        self.opwatch("convert", self.path, "--to", "timeline", "-o", out, *words)
        return json.loads(out.read_text())["traceEvents"]

    def test_two_inputs_that_measure_different_things(self):
        other = self.folder / "b.folded"
        other.write_text("main;g 4\n")
        told = f"Not shown: samples of {other}"
        for words in (["code"], ["code", "--to", "flamegraph"], ["convert", "--to", "folded"]):
            run = subprocess.run([BIN, words[0], self.path, other, *words[1:]], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(told, run.stderr)
        self.assertIn(told, self.opwatch("functions", self.path, other))
        text = self.opwatch(self.path, other)
        self.assertRegex(text, r"4 samples of \S+ over \S+; also samples\n")
        self.assertIn("leaf", text)
        text = self.opwatch(self.path, other, "--metric", "samples")
        self.assertRegex(text, r"(?m)^4 samples; also ")
        self.assertNotIn("leaf", text)

    def test_two_inputs_that_measure_the_same(self):
        other = self.folder / "y.speedscope.json"
        other.write_text(json.dumps(PROFILE))
        text = self.opwatch(self.path, other)
        self.assertRegex(text, r"(?m)^8 samples of \S+ on 2 threads")
        self.assertNotIn("also", text)

    def test_tracks_have_samples(self):
        lines = [line.split() for line in self.opwatch("tracks", self.path).splitlines()]
        self.assertEqual([lines[0][-1], lines[1][-1]], ["samples", "4"])
        self.assertNotIn("events", lines[0])

    def test_timeline(self):
        slices = [(e["name"], e["ts"], e["dur"]) for e in self.timeline() if e["ph"] == "X"]
        self.assertEqual(sorted(slices), [("f", 5000, 4000), ("leaf", 0, 5000), ("leaf", 9000, 1000), ("main", 0, 10000)])

    def test_timeline_of_a_metric(self):
        script = self.folder / "x.perf"
        script.write_text("".join(f"p 7/7 {at}: 5 {event}:\n\t1000 {name} (/bin/p)\n\n"
                                  for at, event, name in (("1.0", "cycles", "f"), ("2.0", "page-faults", "g"), ("3.0", "cycles", "f"))))
        self.path = script
        for words, names in (([], {"f"}), (["--metric", "page-faults"], {"g"})):
            self.assertEqual({e["name"] for e in self.timeline(*words) if e["ph"] == "X"}, names)
        run = subprocess.run([BIN, "convert", script, "--to", "timeline", "--metric", "bytes"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("there is no metric 'bytes'; metrics are: cycles, page-faults", run.stderr)

    def test_what_simpleperf_reports(self):
        path = self.folder / "report.trace"
        path.write_bytes(b"SIMPLEPERF\x01\x00X\x00\x00\x00\x12")
        run = subprocess.run([BIN, path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("open the perf.data that it was made from", run.stderr)


if __name__ == "__main__":
    unittest.main()
