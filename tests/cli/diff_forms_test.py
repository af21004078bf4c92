#!/usr/bin/python3
"""`opwatch diff` on odd input: nothing is compared with itself, damaged and empty files get a message, every case ends with the exit status of
docs/diff.md, the answer has the keys that scripts rely on, and its sentence says what happened to the op."""
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position
from jobsim import US, Shape  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
KEYS = {"view": str, "columns": list, "rows": list, "schema_version": int, "comparable": bool, "comparable_why": (str, type(None)), "unit": str,
        "runs_base": int, "runs_new": int, "base_step_ns": int, "new_step_ns": int, "delta_ns": int, "delta_low_ns": (int, type(None)),
        "delta_high_ns": (int, type(None)), "shift_ns": int, "detectable_ns": (int, type(None)), "conclusion": str, "unexplained_ns": int,
        "p": (float, int, type(None)), "runs_needed_for_3_percent": (int, type(None))}
ROW = ("phase", "op", "line", "rank", "base_ns", "new_ns", "delta_ns", "base_count", "new_count", "change", "matched_by")


class Forms(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, seed in (("a", 1), ("b", 2)):
            self.write(name, jobsim.trace(jobsim.simulate(Shape(layers=5, steps=6, seed=seed))[0]))

    def write(self, name, document):
        path = self.folder / f"{name}.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return path.name

    def read(self, name):
        return json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))

    def diff(self, *words, code=0, says="", out=True):
        done = subprocess.run([BIN, "diff", *words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        if code in (1, 2):
            self.assertTrue(done.stderr.startswith("opwatch: "), done.stderr)
            self.assertEqual(done.stdout, "")
        self.assertIn(says, done.stderr)
        return json.loads(done.stdout) if out and "--json" in words else done

    def test_itself(self):
        """The same file, also by another name, compressed, linked, or with its clock moved."""
        text = (self.folder / "a.json").read_bytes()
        (self.folder / "copy.json").write_bytes(text)
        (self.folder / "a.json.gz").write_bytes(gzip.compress(text))
        (self.folder / "link.json").symlink_to("a.json")
        document = self.read("a")
        for event in document["traceEvents"]:
            if "ts" in event:
                event["ts"] += 3_000_000
        self.write("later", document)
        for other in ("a.json", "./a.json", "copy.json", "a.json.gz", "link.json", "later.json"):
            self.diff("a.json", other, code=2, says="compared with itself")
        self.diff("--base", "a.json", "b.json", "--new", "copy.json", code=2, says="compared with itself")
        (self.folder / "x.folded").write_text("".join(f"main;f{i} {i}\n" for i in range(1, 60)), encoding="utf-8")
        (self.folder / "y.folded").write_text((self.folder / "x.folded").read_text(encoding="utf-8"), encoding="utf-8")
        self.diff("x.folded", "y.folded", code=2, says="compared with itself")
        # Recordings of a few events, and of none.
        for name in ("few", "more"):
            self.write(name, {"traceEvents": document["traceEvents"][:12]})
        self.diff("few.json", "more.json", code=2, says="compared with itself")
        for name in ("m.raw", "n.raw"):
            self.memory(name, 5)
        self.diff("m.raw", "n.raw", code=2, says="compared with itself")

    def memory(self, name, blocks):
        """The raw memory timeline of torch.profiler: time, action, bytes, category; no events."""
        rows = [[-1, 1, 4 << 20, 0]] + [[1000 * i, 2, 4 << 20, 4] for i in range(1, blocks)]
        (self.folder / name).write_text(json.dumps(rows), encoding="utf-8")
        return name

    def test_other_kinds(self):
        """Recordings of memory, of requests that overlap, of samples: what both have is compared; what cannot be subtracted is said to be so."""
        answer = self.diff(self.memory("m.raw", 5), self.memory("n.raw", 8), "--json")
        self.assertEqual((answer["metric"], answer["metric_unit"], answer["base_step_ns"], answer["new_step_ns"]),
                         ("peak_memory", "bytes", 5 << 20 << 2, 8 << 20 << 2))
        self.assertEqual(sum(r["delta_ns"] for r in answer["rows"]) + answer["unexplained_ns"], 3 << 22)
        for name, dur in (("p", 100), ("q", 150)):
            self.write(name, [{"ph": ph, "cat": "net", "id": i, "pid": 1, "tid": 1, "name": "request", "ts": 1000 * i + (dur if ph == "e" else 0)}
                              for i in range(5) for ph in "be"])
        answer = self.diff("p.json", "q.json", "--json")
        self.assertEqual([(r["op"], r["base_ns"], r["new_ns"]) for r in answer["rows"]], [("request", 500_000, 750_000)])
        self.assertIsNone(answer["base_launches"])  # these recordings do not have them
        (self.folder / "x.folded").write_text("main;f_[k] 5\nmain;g 7\n", encoding="utf-8")
        (self.folder / "y.folded").write_text("main;f 2\nmain;g 1\n", encoding="utf-8")
        answer = self.diff("x.folded", "y.folded", "--json")
        self.assertEqual([(r["op"], r["delta_ns"], r["base_count"], r["matched_by"]) for r in answer["rows"]],
                         [("g", -6, None, "op"), ("f_[k]", -3, None, "normalised name")])
        answer = self.diff("x.folded", "a.json", "--json", "--fail-if", "step_time > 1%", code=4)
        self.assertIn("their difference has no meaning", answer["sentence"])
        self.assertEqual(answer["metric_unit"], "mixed")
        self.assertEqual(self.diff("p.json", "q.json", "--json")["rows"][0]["base_count"], 5)
        self.assertIn("times the base) slower", self.diff("p.json", "a.json").stdout)
        text = self.diff("p.json", "q.json").stdout
        self.assertIn("These recordings differ.", text)
        self.assertNotIn("regression", text.lower())

    def test_bad_input(self):
        self.write("empty", "")
        self.write("nothing", {"traceEvents": []})
        self.write("words", "these are no events")
        (self.folder / "folder").mkdir()
        for bad in ("empty.json", "nothing.json", "words.json", "missing.json", "folder"):
            for words in (("a.json", bad), (bad, "a.json"), ("--base", "a.json", bad, "--new", "b.json")):
                self.diff(*words, "--fail-if", "step_time > 3%", code=1, says=bad.split(".")[0])
        text = (self.folder / "b.json").read_text(encoding="utf-8")
        self.write("cut", text[:len(text) * 2 // 3])
        self.diff("a.json", "cut.json", says="cut.json: ")
        document = self.read("b")
        document["traceEvents"] = [e for e in document["traceEvents"] if not e["name"].startswith("ProfilerStep")]
        self.write("nosteps", document)
        answer = self.diff("nosteps.json", "a.json", "--json")
        self.assertIsInstance(answer["steps_known"], bool)

    def test_usage(self):
        for words in (("a.json",), ("a.json", "b.json", "a.json"), ("--base", "a.json"), ("--new", "a.json"), ("--base", "a.json", "--new"), ()):
            self.diff(*words, code=2)
        for limit in ("", "foo > 3%", "step_time", "step_time >", "step_time > x", "step_time < 3%", "step_time > nan", "step_time > 1e999",
                      "step_time > 3MB", "launches > 3ms", "peak_memory > 3ms", "op: > 1ms", "phase:nothing > 1%", "step_time > 3% or so"):
            self.diff("a.json", "b.json", "--fail-if", limit, code=2)
        self.diff("a.json", "b.json", "--metric", "cycles", code=2, says="no samples of 'cycles'")
        self.diff("a.json", "b.json", "--to", "nothing", code=2)

    def test_exit_codes(self):
        """Each of 0, 4, 5, 6, in every output, and 0 without a limit."""
        runs = {}
        for name, kernel, device in (("base", 220, None), ("same", 220, None), ("slow", 260, None), ("other", 220, "H100")):
            runs[name] = []
            for i in range(4):
                document = jobsim.trace(jobsim.simulate(Shape(layers=5, steps=6, noise=0.004, kernel=kernel * US,
                                                              seed=10 * len(runs) + i))[0])
                if device:
                    document["deviceProperties"][0]["name"] = device
                runs[name].append(self.write(f"{name}{i}", document))
        limit = ("--fail-if", "step_time > 3%")
        for new, code in (("same", 0), ("slow", 5), ("other", 4)):
            for output in ((), ("--json",), ("--to", "markdown"), ("--to", "junit"), ("--to", "github"), ("--to", "sarif"), ("--csv",)):
                self.diff("--base", *runs["base"], "--new", *runs[new], *limit, *output, code=code)
            self.diff("--base", *runs["base"], "--new", *runs[new])
        self.diff("--base", *runs["base"], "--new", *runs["slow"][:3], *limit, code=6)
        # The worst one counts: beyond, then not comparable, then inconclusive.
        self.diff("--base", *runs["base"], "--new", *runs["slow"], *limit, "--fail-if", "peak_memory > 1%", code=5)
        self.diff("--base", *runs["base"], "--new", *runs["same"], *limit, "--fail-if", "peak_memory > 1%", code=6)
        self.diff("--base", *runs["base"], "--new", *runs["same"], *limit, "--fail-if", "op:none > 1%", code=6)
        answer = self.diff("--base", *runs["base"], "--new", *runs["same"], "--json")
        small = 100 * (max(answer["delta_ns"], 0) + answer["detectable_ns"] / 4) / answer["base_step_ns"]
        limits = self.diff("--base", *runs["base"], "--new", *runs["same"], "--fail-if", f"step_time > {small:.6f}%", "--json", code=6)["limits"]
        self.assertGreater(limits[0]["runs_needed"], 4)
        self.assertIn("runs a side", limits[0]["message"])

    def test_keys(self):
        answers = [self.diff("a.json", "b.json", "--json"), self.diff("--base", "a.json", "--new", "b.json", "--json", "--fail-if",
                                                                      "step_time > 3%", code=6)]
        for answer in answers:
            for key, kind in KEYS.items():
                self.assertIsInstance(answer[key], kind, key)
            for key in ("delta_low_ns", "delta_high_ns", "detectable_ns", "comparable_why", "p", "runs_needed_for_3_percent"):
                self.assertIsNone(answer[key], key)  # unknown from one recording a side
            for row in answer["rows"]:
                self.assertEqual([key for key in ROW if key not in row], [])
                self.assertIn(row["change"], (None, "new", "gone", "count", "duration", "renamed", "split", "fused"))
                self.assertIsInstance(row["delta_ns"], int)

    def arguments(self, name, dims, kind, dur, calls=1):
        """Six steps of a convolution with its line and its arguments."""
        events, ts = [], 1000
        for step in range(6):
            begin = ts
            for _ in range(calls):
                events.append({"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {
                    "Input Dims": dims, "Input type": kind, "Call stack": "/home/me/model.py(41): forward;/home/me/train.py(7): <module>"}})
                ts += dur
            events.append({"ph": "X", "cat": "cpu_op", "name": "aten::relu", "pid": 1, "tid": 1, "ts": ts, "dur": 10, "args": {}})
            ts += 20
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": begin,
                           "dur": ts - begin, "args": {}})
        return self.write(name, {"schemaVersion": 1, "traceEvents": events})

    def test_sentence(self):
        """How much, of which op, at which line, and what happened to it."""
        half, full = [["c10::Half", "", "float"], ["float", "", "c10::Half"]]
        base = self.arguments("half", [[8, 3], [4]], half, 100)
        for name, words, says in (
                ("full", ([[8, 3], [4]], full, 180), "which now runs in fp32 instead of fp16"),
                ("large", ([[32, 3], [4]], half, 180), "whose shapes are now [[32, 3], [4]] instead of [[8, 3], [4]]"),
                ("often", ([[8, 3], [4]], half, 100, 3), "which now runs 3 times instead of 1")):
            answer = self.diff(base, self.arguments(name, *words), "--json")
            more = "80.0us" if name != "often" else "200us"
            self.assertTrue(answer["sentence"].startswith(f"new is {more} ("), answer["sentence"])
            self.assertIn(f"slower per step; {more} of it is aten::conv2d (compute) in model.py:41 forward, {says}", answer["sentence"])
        row, = (r for r in self.diff(base, "full.json", "--json")["rows"] if r["op"] == "aten::conv2d")
        self.assertEqual((json.loads(row["base_types"]), json.loads(row["new_types"])), (half, full))


if __name__ == "__main__":
    unittest.main()
