#!/usr/bin/python3
"""The critical path as a track of a timeline (`convert --to timeline --show-path`): the same pieces as `opwatch path` has, with the
numbers of their events, and a timeline that is still the same recording when it is read again."""
import decimal
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))


def opwatch(*args, code=0):
    run = subprocess.run([BIN, *args], capture_output=True, text=True, check=False, timeout=120)
    if run.returncode != code:
        raise AssertionError(f"{args}: exit {run.returncode}: {run.stderr}")
    return run


class PathTrack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.trace = jobsim.write(jobsim.Shape(layers=6, steps=6), cls.folder.name)[0]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def convert(self, *args):
        out = os.path.join(self.folder.name, "timeline.json")
        opwatch("convert", self.trace, "--to", "timeline", *args, "-o", out)
        with open(out, encoding="utf-8") as file:
            return out, json.load(file, parse_float=decimal.Decimal)["traceEvents"]

    def check(self, *step):
        rows = json.loads(opwatch("path", self.trace, *step, "--json").stdout)["rows"]
        _, events = self.convert("--show-path", *step)
        track = [e for e in events if e.get("cat") == "critical_path"]
        begins, ends = [e for e in track if e["ph"] == "b"], [e for e in track if e["ph"] == "e"]
        self.assertEqual([(r["op"], r["event"], r["kind"], r["track"], r["ts_ns"]) for r in rows],
                         [(e["name"], e["args"].get("event"), e["args"]["kind"], e["args"]["track"], round(e["ts"] * 1000)) for e in begins])
        self.assertEqual([r["ts_ns"] + r["dur_ns"] for r in rows], [round(e["ts"] * 1000) for e in ends])
        self.assertEqual(len({e["pid"] for e in track}), 1)
        name, = [e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name" and e["pid"] == begins[0]["pid"]]
        self.assertEqual(name, "critical path")

    def test_pieces(self):
        self.check()

    def test_of_a_step(self):
        steps = json.loads(opwatch("steps", self.trace, "--json").stdout)["rows"]
        self.check("--step", str(steps[-2]["step"]))

    def test_off_by_default(self):
        self.assertFalse([e for e in self.convert()[1] if e.get("cat") == "critical_path"])

    def test_is_still_the_same_recording(self):
        out, _ = self.convert("--show-path")
        with tempfile.TemporaryDirectory() as folder:
            plain = os.path.join(folder, "plain.json")
            opwatch("convert", self.trace, "--to", "timeline", "-o", plain)
            for key in ("step_ns", "step_if_all_ns"):
                self.assertEqual(*(json.loads(opwatch("advise", path, "--json").stdout)[key] for path in (plain, out)))

    def test_refusal(self):
        out = os.path.join(self.folder.name, "none.json")
        run = opwatch("convert", str(ROOT / "samples/run_meta_0"), "--to", "timeline", "--show-path", "-o", out, code=1)
        self.assertIn("no critical path: ", run.stderr)
        self.assertFalse(os.path.exists(out))


if __name__ == "__main__":
    unittest.main()
