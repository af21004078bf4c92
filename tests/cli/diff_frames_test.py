#!/usr/bin/python3
"""Differential flame graphs (`opwatch diff --frames`, `--to flamegraph`), samples compared by function and line, and reports with a comparison."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ET

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
SVG = "{http://www.w3.org/2000/svg}"


def run(*words):
    return subprocess.run([BIN, *map(str, words)], capture_output=True, check=False, timeout=120)


def flat(rows, parent=None):
    """(row, parent) of a tree, callers first."""
    for row in rows:
        yield row, parent
        yield from flat(row.get("children", []), row)


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return path

    def answer(self, *words):
        done = run("diff", *words, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def frames(self, *words):
        """By path, after checking that every frame is its children and itself."""
        d = self.answer(*words, "--frames")
        found = {}
        self.assertEqual(len(d["rows"]), 1)
        root = d["rows"][0]
        self.assertEqual((root["base_ns"], root["new_ns"]), (d["base_step_ns"], d["new_step_ns"]))
        for row, parent in flat(d["rows"]):
            row["path"] = (parent["path"] if parent else ()) + (row["name"],)
            self.assertNotIn(row["path"], found)
            found[row["path"]] = row
            for side in ("base", "new"):
                below = sum(child[side + "_ns"] for child in row.get("children", []))
                self.assertEqual(row[side + "_ns"], below + row[side + "_self_ns"], row["path"])
            self.assertEqual(row["delta_ns"], row["new_ns"] - row["base_ns"])
        return d, found

    def svg(self, *words):
        out = self.folder / "out.svg"
        done = run("diff", *words, "--to", "flamegraph", "--out", out)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        boxes = {}
        for g in ET.parse(out).getroot().iter(SVG + "g"):
            rect, title = g.find(SVG + "rect"), g.find(SVG + "title").text
            boxes[title.split("\n")[0]] = (rect.get("class"), float(rect.get("width").rstrip("%")), title)
        return boxes, out.read_text(encoding="utf-8")


class Samples(Case):
    BASE = "main;f 60\nmain;g;x 40\nmain;old_1 7\nmain;left;deep 11\n"
    NEW = "main;f 90\nmain;g;x 20\nmain;h 5\nmain;old_2 9\n"

    def sides(self):
        return self.write("a.folded", self.BASE), self.write("b.folded", self.NEW)

    def test_stacks(self):
        _, frames = self.frames(*self.sides())
        top = ("all", "main")
        self.assertEqual([frames[top][k] for k in ("base_ns", "new_ns", "base_self_ns", "new_self_ns")], [118, 124, 0, 0])
        self.assertEqual([frames[(*top, "g")][k] for k in ("base_ns", "new_ns", "new_self_ns")], [40, 20, 0])
        self.assertEqual((frames[(*top, "h")]["change"], frames[(*top, "left")]["change"]), ("new", "gone"))
        self.assertEqual((frames[(*top, "old_1")]["change"], frames[(*top, "old_1")]["new_name"]), ("renamed", "old_2"))

    def test_picture(self):
        boxes, text = self.svg(*self.sides())
        self.assertAlmostEqual(boxes["f"][1], 100 * 90 / 124, places=3)
        self.assertAlmostEqual(boxes["g"][1], 100 * 20 / 124, places=3)
        self.assertEqual(boxes["f"][0], "more6")  # the largest difference of a frame
        self.assertRegex(boxes["g"][0], "^less[1-6]$")
        self.assertNotIn("left", boxes)
        self.assertIn("2 frames are gone and have no width (11 in base)", text)
        self.assertIn("60 → 90, 30 more (+50.0%)", boxes["f"][2])
        self.assertIn("renamed, now old_2", boxes["old_1"][2])
        self.assertNotRegex(boxes["g"][2], "itself")  # has nothing of its own

    def test_own_part_is_explained(self):
        a, b = self.write("a.folded", "m 3\nm;f 10\n"), self.write("b.folded", "m 9\nm;f 10\n")
        boxes, _ = self.svg(a, b)
        self.assertIn("\nitself 3 → 9, 6 more (+200.0%)", boxes["m"][2])
        self.assertRegex(boxes["f"][0], "0$")

    def test_several_runs(self):
        """Means of the runs: 7, 8 and 8 against 1, 2, 2."""
        base = [self.write(f"a{i}.folded", f"m;f {n}\nm;g {i}\n") for i, n in enumerate((7, 8, 8))]
        new = [self.write(f"b{i}.folded", f"m;f {n}\nm;g 1\n") for i, n in enumerate((1, 2, 2))]
        d, frames = self.frames("--base", *base, "--new", *new)
        self.assertAlmostEqual(frames[("all", "m", "f")]["base_ns"], 23 / 3, delta=1)
        self.assertEqual(frames[("all",)]["base_ns"], d["base_step_ns"])

    def test_odd_names(self):
        a = self.write("a.folded", 'a<b>&"c";d 5\nwide→name 3\n')
        b = self.write("b.folded", 'a<b>&"c";d 9\nwide→name 1\n')
        boxes, _ = self.svg(a, b)
        self.assertIn('a<b>&"c"', boxes)

    def test_refused(self):
        a, b = self.sides()
        done = run("diff", a, b, "--to", "flamegraph", "--style", "inverted", "--out", self.folder / "x.svg")
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.folder / "x.svg").exists())

    def test_text(self):
        a, b = self.write("a.folded", "m;f 1000\nm;g 1\n"), self.write("b.folded", "m;f 1000\nm;g 2\n")
        done = run("diff", a, b, "--frames")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"Frames below 1 % of a step are not shown: 1,", done.stdout)


def speedscope(lines, name="work", file="/src/job.py"):
    """A profile of samples: {line: weight} of one function."""
    numbers = sorted(lines)
    return {"$schema": "https://www.speedscope.app/file-format-schema.json",
            "shared": {"frames": [{"name": "main", "file": file, "line": 1}, *({"name": name, "file": file, "line": n} for n in numbers)]},
            "profiles": [{"type": "sampled", "name": "t", "unit": "none", "startValue": 0, "endValue": sum(lines.values()),
                          "samples": [[0, i + 1] for i in range(len(numbers))], "weights": [lines[n] for n in numbers]}]}


class Lines(Case):
    def rows(self, base, new):
        d = self.answer(self.write("a.speedscope.json", speedscope(base)), self.write("b.speedscope.json", speedscope(new)))
        self.assertEqual(sum(r["delta_ns"] for r in d["rows"]) + d["unexplained_ns"], d["delta_ns"])
        return d, {r["line"]: r for r in d["rows"]}

    def test_lines_of_a_function(self):
        d, rows = self.rows({10: 60, 12: 40}, {10: 60, 12: 70})
        self.assertEqual((rows["job.py:12"]["base_ns"], rows["job.py:12"]["new_ns"], rows["job.py:12"]["op"]), (40, 70, "work"))
        self.assertEqual((rows["job.py:12"]["file"], rows["job.py:12"]["line_number"]), ("/src/job.py", 12))
        self.assertIn("in work (host) in job.py:12", d["sentence"])

    def test_moved_lines(self):
        """Three lines were added above: each line is compared with what it was, and the annotation is at the new one."""
        _, rows = self.rows({10: 60, 11: 40, 13: 5}, {13: 61, 14: 80, 16: 5})
        self.assertEqual(sorted(rows), ["job.py:10", "job.py:11", "job.py:13"])
        row = rows["job.py:11"]
        self.assertEqual((row["base_ns"], row["new_ns"], row["matched_by"], row["line_number"]), (40, 80, "op and moved line", 14))

    def test_lines_that_stay(self):
        """Two lines are gone and two are new: the others did not move."""
        _, rows = self.rows({10: 60, 11: 40, 12: 5, 30: 2}, {10: 60, 11: 40, 15: 5, 19: 3})
        self.assertEqual({k: r["change"] for k, r in rows.items()},
                         {"job.py:10": None, "job.py:11": None, "job.py:12": "gone", "job.py:30": "gone", "job.py:15": "new", "job.py:19": "new"})

    def test_annotations(self):
        """At the line, in the unit of the samples."""
        a, b = (self.write(n, speedscope(lines)) for n, lines in (("a.speedscope.json", {10: 60, 12: 40}), ("b.speedscope.json", {10: 60, 12: 70})))
        done = run("diff", a, b, "--to", "github")
        self.assertEqual(done.returncode, 0, done.stderr)
        line = next(text for text in done.stdout.decode().splitlines() if "file=" in text)
        self.assertIn("file=/src/job.py,line=12,", line)
        self.assertRegex(line, r",title=more samples::work \(host\): 30 more$")
        done = run("diff", a, b, "--fail-if", "step_time > 3%", "--json")
        self.assertEqual(done.returncode, 6, done.stderr)
        limit = json.loads(done.stdout)["limits"][0]
        self.assertEqual(limit["unit"], "count")
        self.assertIn("100 → 130: 30 more, at most 3 more allowed", limit["message"])


def trace(kernels, batch=4):
    """Steps with operators that launch kernels: [(op, kernel, us)]."""
    events, ts, number = [], 1000, 0
    for step in range(batch + 3):
        begin = ts
        for op, kernel, dur in kernels:
            number += 1
            events.append({"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": ts, "dur": dur})
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": ts + 1, "dur": 2,
                           "args": {"correlation": number}})
            events.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": ts + 3, "dur": dur - 4,
                           "args": {"correlation": number, "device": 0, "stream": 7}})
            ts += dur
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": begin, "dur": ts - begin})
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "X"}], "traceEvents": events}


class Traces(Case):
    def test_phases_and_kernels(self):
        a = self.write("a.json", trace([("aten::mm", "gemm_a", 100), ("aten::add", "add_k", 50), ("aten::gelu", "gelu_k", 30)]))
        b = self.write("b.json", trace([("aten::mm", "gemm_b", 160), ("aten::add", "add_k", 50)]))
        _, frames = self.frames(a, b)
        row = frames[("all", "compute", "aten::mm", "gemm_a")]
        self.assertEqual((row["base_ns"], row["new_ns"], row["change"], row["new_name"]), (96000, 156000, "renamed", "gemm_b"))
        self.assertEqual(frames[("all", "compute", "aten::gelu")]["change"], "gone")
        self.assertEqual(frames[("all", "compute", "aten::gelu")]["new_ns"], 0)
        boxes, _ = self.svg(a, b)
        self.assertRegex(boxes["gemm_a"][0], "^more")
        self.assertIn("96us → 156us", boxes["gemm_a"][2].replace(".0", ""))

    def test_fused_and_split(self):
        """Kernels that became one, and the other way round: one row with the time of all of them, which names them."""
        apart = [("x", "a", 20), ("x", "b", 30), ("x", "c", 40), ("x", "d", 20), ("x", "b", 30), ("x", "c", 40), ("x", "f", 15)]
        fused = [("x", "a", 20), ("x", "one", 50), ("x", "d", 20), ("x", "one", 50), ("x", "f", 15)]

        def device_only(name, kernels):
            document = trace(kernels)
            document["traceEvents"] = [e for e in document["traceEvents"] if e["cat"] in ("kernel", "user_annotation")]
            return self.write(name, document)

        a, b = device_only("a.json", apart), device_only("b.json", fused)
        for base, new, op, called, change, times in ((a, b, "b + c", "one", "fused", (124000, 92000)), (b, a, "one", "b + c", "split", (92000, 124000))):
            d = json.loads(run("diff", base, new, "--fail-if", "op:c > 1ms", "--json").stdout)
            row = next(r for r in d["rows"] if r["change"] == change)
            self.assertEqual((row["op"], row["new_op"], row["base_ns"], row["new_ns"]), (op, called, *times))
            self.assertEqual([r for r in d["rows"] if r["change"] in ("new", "gone")], [])
            self.assertEqual(sum(r["delta_ns"] for r in d["rows"]) + d["unexplained_ns"], d["delta_ns"])
            self.assertEqual((d["limits"][0]["base"], d["limits"][0]["new"]), times)

    def test_limits_that_cannot_be_meant(self):
        """Another unit, no number, a phase or an op that does not exist: a gate that never fails is worse than none."""
        a, b = self.write("a.json", trace([("aten::mm", "k", 100)])), self.write("b.json", trace([("aten::mm", "k", 160)]))
        for limit in ("step_time > 3MB", "peak_memory > 3ms", "launches > 3ms", "step_time > nan", "step_time > inf", "step_time > 1e999", "phase:computing > 1%"):
            done = run("diff", a, b, "--fail-if", limit)
            self.assertEqual((done.returncode, done.stdout), (2, b""), limit)
        done = run("diff", a, b, "--fail-if", "op:aten::mmm > 1ms", "--json")
        self.assertEqual(done.returncode, 6)
        self.assertIn("no run has an op of that name", json.loads(done.stdout)["limits"][0]["message"])

    def test_gate_stays(self):
        """The exit status is that of the limits, whatever the output."""
        a, b = self.write("a.json", trace([("aten::mm", "k", 100)])), self.write("b.json", trace([("aten::mm", "k", 160)]))
        done = run("diff", a, b, "--fail-if", "step_time > 3%", "--to", "flamegraph", "--out", self.folder / "x.svg")
        self.assertEqual(done.returncode, 6, done.stderr)


class Report(Case):
    def report(self, *words):
        """The answers that the page in the file holds."""
        out = self.folder / "report.html"
        done = run("report", *words, "-o", out)
        if b"no web page" in done.stderr:
            self.skipTest(done.stderr.decode().strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(re.search(r'id="opwatch-report">(.*?)</script>', out.read_text(encoding="utf-8"), re.S)[1])

    def sides(self):
        return (self.write("a.json", trace([("aten::mm", "k", 100), ("aten::add", "l", 40)])),
                self.write("b.json", trace([("aten::mm", "k", 160), ("aten::add", "l", 40)])))

    def test_comparison(self):
        a, b = self.sides()
        held, expected = self.report(b, "--base", a), self.answer(a, b)
        self.assertEqual(held["/api/state"]["base"], [str(a)])
        for key in ("sentence", "delta_ns", "unexplained_ns", "conclusion", "rows"):
            self.assertEqual(held["/api/diff"][key], expected[key])
        self.assertEqual(held["/api/diff?frames=1"]["rows"][0]["delta_ns"], expected["delta_ns"])
        self.assertTrue(held["/api/view?name=steps&base=1"]["rows"])

    def test_several_runs(self):
        base = [self.write(f"a{i}.json", trace([("aten::mm", "k", 100 + i)])) for i in range(4)]
        new = [self.write(f"b{i}.json", trace([("aten::mm", "k", 160 + i)])) for i in range(4)]
        words = [word for path in base for word in ("--base", path)]
        held = self.report(*new, *words)["/api/diff"]
        self.assertEqual((held["runs_base"], held["runs_new"], held["conclusion"]), (4, 4, "slower"))

    def test_none(self):
        a, _ = self.sides()
        held = self.report(a)
        self.assertEqual([key for key in held if "diff" in key or "base=1" in key], [])

    def test_redacted(self):
        """Names of both sides become the same hashes, or nothing would match."""
        a, b = self.sides()
        held = self.report(b, "--base", a, "--redact")
        self.assertEqual({r["change"] for r in held["/api/diff"]["rows"]} & {"new", "gone", "renamed"}, set())
        self.assertNotRegex(json.dumps(held), r"\b[ab]\.json|aten|opwatch-test")

    def test_bad_base(self):
        a, b = self.sides()
        for base, code in ((b, 2), (self.folder / "missing.json", 1), (self.write("empty.json", '{"traceEvents": []}'), 1)):
            out = self.folder / "report.html"
            done = run("report", b, "--base", base, "-o", out)
            if b"no web page" in done.stderr:
                self.skipTest(done.stderr.decode().strip())
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertFalse(out.exists())
        self.assertTrue(a.exists())


if __name__ == "__main__":
    unittest.main()
