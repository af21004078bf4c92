#!/usr/bin/python3
"""--time-range and --rank: a small trace is cut in the middle of its slices; wrong values are told."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")

# microseconds: outer 0…100, inner 20…50, after 200…300; the trace starts at 1000
SLICES = (("outer", 1000, 100), ("inner", 1020, 30), ("after", 1200, 100))


class Range(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.trace = pathlib.Path(cls.folder.name) / "trace.json"
        cls.trace.write_text(json.dumps(
            [{"name": name, "ph": "X", "ts": ts, "dur": dur, "pid": 1, "tid": 1} for name, ts, dur in SLICES]))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_it(self, *words):
        return subprocess.run([BIN, *words, str(self.trace)], capture_output=True, text=True, check=False)

    def times(self, *words):
        done = self.run_it("op", "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["name"]: row["micros"] for row in json.loads(done.stdout)["rows"]}

    def test_own_time(self):
        self.assertEqual(self.times(), {"outer": 70, "inner": 30, "after": 100})
        self.assertEqual(self.times("--time-range", "10us:30us"), {"outer": 10, "inner": 10, "after": 0})
        self.assertEqual(self.times("--time-range=0.03:0.25"), {"outer": 50, "inner": 20, "after": 50})
        self.assertEqual(self.times("--time-range", "0.0002s:"), {"outer": 0, "inner": 0, "after": 100})
        self.assertEqual(self.times("--time-range", ":20000ns"), {"outer": 20, "inner": 0, "after": 0})

    def test_other_views(self):
        for view in ("scope", "graph", "steps", "tracks", "devices", "phases", "lines", "verdict"):
            done = self.run_it(view, "--time-range", "10us:30us", "--json")
            self.assertEqual(done.returncode, 0, f"{view}: {done.stderr}")
        for view in ("notes", "sources"):  # of the inputs, whatever the time
            done = self.run_it(view, "--time-range", "10us:30us")
            self.assertEqual(done.returncode, 2, view)
            self.assertIn(f"the view {view} does not use time_range", done.stderr)
        tracks = json.loads(self.run_it("tracks", "--time-range", "40us:250us", "--json").stdout)["rows"]
        self.assertEqual([row["busy_ns"] for row in tracks], [110000])

    def test_timeline(self):
        """Only what is asked for is drawn: slices, arrows and counters; whole slices, though they reach out of the range."""
        events = [{"name": "memory", "ph": "C", "ts": ts, "pid": 1, "args": {"bytes": ts}} for ts in (1010, 1210)]
        events += [{"name": "f", "cat": "c", "ph": ph, "id": 1, "ts": ts, "pid": 1, "tid": 1} for ph, ts in (("s", 1010), ("f", 1210))]
        events += [{"name": name, "ph": "X", "ts": ts, "dur": dur, "pid": 1, "tid": 1} for name, ts, dur in SLICES]
        events += [{"name": f"step {i}", "ph": "X", "ts": 1000 + 200 * i, "dur": 100, "pid": 1, "tid": 2} for i in range(2)]
        paths = [pathlib.Path(self.folder.name) / f"rank{rank}.json" for rank in range(2)]
        for rank, path in enumerate(paths):
            path.write_text(json.dumps({"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}))

        def drawn(*words, inputs=paths[:1]):
            done = subprocess.run([BIN, "convert", "--to", "timeline", "--step-marker", "step [0-9]", *words, *map(str, inputs)],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            events = json.loads(done.stdout)["traceEvents"]
            return sorted((e["name"], e["ph"], e.get("dur", 0)) for e in events if e["ph"] != "M")

        early = [("f", "s", 0), ("inner", "X", 30), ("memory", "C", 0), ("outer", "X", 100), ("step 0", "X", 100)]
        late = [("after", "X", 100), ("f", "f", 0), ("memory", "C", 0), ("step 1", "X", 100)]
        self.assertEqual(drawn(), sorted(early + late))
        self.assertEqual(drawn("--time-range", ":30us"), early)
        self.assertEqual(drawn("--time-range", "40us:60us"), [e for e in early if e[1] == "X"])
        self.assertEqual(drawn("--step", "1"), late)
        self.assertEqual(drawn("--rank", "1", inputs=paths), sorted(early + late))
        self.assertEqual(drawn("--rank", "1", "--step", "1", inputs=paths), late)

    def test_wrong_values(self):
        for text in ("5", ":", "5:4", "a:b", "1:2:3", "-1:5", "1ms2:5", ""):
            done = self.run_it("op", f"--time-range={text}")
            self.assertEqual(done.returncode, 2, text)
            self.assertIn("--time-range takes", done.stderr)
        for text in ("x", "-1", ""):
            self.assertEqual(self.run_it("op", f"--rank={text}").returncode, 2)
        done = self.run_it("op", "--rank", "3")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rank", done.stderr)


if __name__ == "__main__":
    unittest.main()
