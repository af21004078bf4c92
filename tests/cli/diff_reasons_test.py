#!/usr/bin/python3
"""What `opwatch diff` blames and why, on small traces whose only difference is known: one of several calls with another precision, another kernel,
a split op at the end of the step, Python code between operators, events without a length, and files of different kinds."""
import json
import os
import pathlib
import subprocess
import sqlite3
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
STEPS = 7
HALF, FLOAT = "c10::Half", "float"


def call(name, *kernels, types=HALF, shape=(8, 64), line=0):
    """An operator and the kernels that it launches: (name, us) each."""
    return {"name": name, "kernels": kernels, "type": types, "shape": shape, "line": line}


class Reasons(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def events(self, calls, python=0):
        """What happens: (kind, name, begin, duration, more) in us. `calls` may be a function of the step."""
        found, cpu, device, number = [], 1000, 1000, 0
        for step in range(STEPS):
            begin = cpu
            if python:
                found.append(("python", "/home/me/train.py(12): prepare", cpu, python, None))
                cpu += python
            for c in calls(step) if callable(calls) else calls:
                first = cpu
                for name, dur in c["kernels"]:
                    number += 1
                    device = max(device, cpu + 4)
                    found += [("launch", "cudaLaunchKernel", cpu + 1, 2, number), ("kernel", name, device, dur, number)]
                    cpu, device = cpu + 4, device + dur
                found.append(("op", c["name"], first, cpu + 1 - first, c))
                cpu += 2
            wait = max(device - cpu, 0) + 3
            found += [("sync", "cudaDeviceSynchronize", cpu, wait, None), ("step", f"ProfilerStep#{step}", begin, cpu + wait - begin, None)]
            cpu += wait + 2
        return found

    def kineto(self, name, *args, **options):
        cats = {"python": "python_function", "launch": "cuda_runtime", "kernel": "kernel", "op": "cpu_op", "sync": "cuda_runtime", "step": "user_annotation"}
        events = []
        for kind, title, begin, dur, more in self.events(*args, **options):
            at = {"ph": "X", "cat": cats[kind], "name": title, "ts": begin, "dur": dur, "pid": 5, "tid": 5, "args": {}}
            if kind in ("launch", "kernel"):
                at["args"] = {"correlation": more}
            if kind == "kernel":
                at.update(pid=0, tid=7, args={"correlation": more, "device": 0, "stream": 7})
            if kind == "op":
                at["args"] = {"Input Dims": [more["shape"]], "Input type": [more["type"]]}
                if more["line"]:
                    events.append({**at, "cat": "python_function", "name": f"/home/me/model.py({more['line']}): forward", "ts": begin - 0.5,
                                   "dur": dur + 0.8, "args": {}})
            events.append(at)
        return self.write(name, {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A100"}], "traceEvents": events})

    def write(self, name, document):
        path = self.folder / name
        path.write_text(json.dumps(document), encoding="utf-8")
        return str(path)

    def nsys(self, name, *args):
        path = str(self.folder / name)
        texts = {}
        with sqlite3.connect(path) as db:
            db.executescript("""CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
                CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER,
                    correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
                CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
                CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER);""")
            for kind, title, begin, dur, more in self.events(*args):
                span, text = (begin * 1000, (begin + dur) * 1000), texts.setdefault(title, len(texts) + 1)
                if kind == "kernel":
                    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, ?, ?, ?)", (*span, more, 5 << 24, text, text))
                elif kind in ("launch", "sync"):
                    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", (*span, 5 << 24 | 5, more or 0, text))
                elif kind == "step":
                    db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?)", (*span, title.replace("ProfilerStep#", "iteration "), 5 << 24 | 5))
            db.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, title) for title, number in texts.items()])
        db.close()
        return path

    def diff(self, *words):
        done = subprocess.run([BIN, "diff", *words, "--json"], capture_output=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(sum(r["delta_ns"] for r in answer["rows"]) + answer["unexplained_ns"], answer["delta_ns"])
        return answer

    def compare(self, base, new):
        return self.diff(self.kineto("a.json", base), self.kineto("b.json", new))

    def test_launches_that_one_side_did_not_record(self):
        """A recording without a device, beside one with launches, has an unknown number of them; two without a device have 0."""
        calls = [call("aten::mm", ("gemm", 50))]
        host = [e for e in json.loads(pathlib.Path(self.kineto("a.json", calls)).read_text(encoding="utf-8"))["traceEvents"]
                if e["cat"] in ("cpu_op", "user_annotation")]
        self.write("h.json", {"schemaVersion": 1, "traceEvents": host})
        self.write("i.json", {"schemaVersion": 1, "traceEvents": [dict(e, dur=e["dur"] + 0.001) for e in host]})
        with_device, without = str(self.folder / "a.json"), str(self.folder / "h.json")
        answer = self.diff(with_device, without)
        self.assertEqual((answer["base_launches"], answer["new_launches"]), (1, None))
        answer = self.diff(without, with_device)
        self.assertEqual((answer["base_launches"], answer["new_launches"]), (None, 1))
        answer = self.diff(without, str(self.folder / "i.json"))
        self.assertEqual((answer["base_launches"], answer["new_launches"]), (0, 0))

    def test_one_of_several_calls(self):
        """The second of two calls, without lines, has another precision; the first one is as before."""
        first = call("aten::linear", ("gemm_h", 100))
        answer = self.compare([first, call("aten::linear", ("gemm_h", 300), shape=(4, 9))],
                              [first, call("aten::linear", ("gemm_s", 700), shape=(4, 9), types=FLOAT)])
        self.assertIn("aten::linear (compute), which now runs in fp32 instead of fp16", answer["sentence"])
        top = answer["rows"][0]
        self.assertEqual((top["base_types"], top["new_types"]), ('["c10::Half"]', '["float"]'))

    def test_one_of_equal_calls(self):
        """Two calls with the same shapes, one of which has another precision."""
        equal = call("aten::add", ("add_h", 100))
        answer = self.compare([equal, call("aten::mul", ("mul", 10)), equal], [equal, call("aten::mul", ("mul", 10)), call("aten::add", ("add_s", 200), types=FLOAT)])
        self.assertIn("aten::add (compute), which now runs in fp32 instead of fp16", answer["sentence"])

    def test_shapes_of_every_step(self):
        """Shapes that are other ones in every step of a run are not what changed."""
        def run(base, dur):
            return lambda step: [call("aten::bmm", ("gemm", dur), shape=(8, base + step)), call("aten::add", ("add", 20))]
        answer = self.compare(run(100, 100), run(200, 400))
        self.assertNotIn("shapes", answer["sentence"])
        self.assertIn("aten::bmm (compute), which now takes 400us instead of 100us", answer["sentence"])
        answer = self.compare([call("aten::bmm", ("gemm", 100), shape=(8, 1))], [call("aten::bmm", ("gemm", 400), shape=(8, 4))])
        self.assertIn("whose shapes are now [[8, 4]] instead of [[8, 1]]", answer["sentence"])

    def test_other_kernel(self):
        """The kernel that was replaced is named, although another one of the op takes longer."""
        answer = self.compare([call("aten::conv2d", ("main", 900), ("helper", 50)), call("aten::add", ("add", 20))],
                              [call("aten::conv2d", ("main", 901), ("slow_helper", 350)), call("aten::add", ("add", 20))])
        top = answer["rows"][0]
        self.assertEqual((top["op"], top["base_part"], top["new_part"]), ("aten::conv2d", "helper", "slow_helper"))
        self.assertIn("which now runs slow_helper", answer["sentence"])

    def test_split_at_the_end(self):
        """The last op of the step became two, one of which has two kernels: named in their order, whatever their shapes are."""
        start = [call("aten::mm", ("gemm", 100)), call("aten::add", ("add", 20))]
        whole, parts = call("my::norm", ("norm", 80)), [call("aten::mean", ("mean1", 40), ("mean2", 30), shape=(3, 3)), call("aten::div", ("div", 60))]
        answer = self.compare([*start, whole], [*start, *parts])
        top = answer["rows"][0]
        self.assertEqual((top["op"], top["change"], top["new_op"]), ("my::norm", "split", "aten::mean + aten::div"))
        self.assertIn("which is now aten::mean + aten::div", answer["sentence"])
        answer = self.compare([*start, *parts], [*start, whole])
        self.assertIn("aten::mean + aten::div (compute), which are now my::norm", answer["sentence"])

    def test_python_between_operators(self):
        """Python code is blamed at its line where it is recorded; else the time is unexplained, and the sentence says so."""
        calls = [call("aten::mm", ("gemm", 100))]
        answer = self.diff(self.kineto("a.json", calls, python=50), self.kineto("b.json", calls, python=450))
        top = answer["rows"][0]
        self.assertEqual((top["phase"], top["delta_ns"]), ("host", 400_000))
        self.assertIn("prepare", top["op"])
        self.assertIn("in train.py:12 prepare", answer["sentence"])
        for name in "ab":
            document = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            document["traceEvents"] = [e for e in document["traceEvents"] if e["cat"] != "python_function"]
            self.write(f"{name}2.json", document)
        answer = self.diff(str(self.folder / "a2.json"), str(self.folder / "b2.json"))
        self.assertEqual(answer["unexplained_ns"], 400_000)
        self.assertIn("400us of it is time in which nothing was recorded", answer["sentence"])

    def test_rounded_times(self):
        """Whole microseconds: events without a length count, and an operator that begins before the last one ends is not a part of it."""
        def trace(name, long):
            events = []
            for step in range(STEPS):
                ts = 1000 + 500 * step
                for title, begin, dur in ((f"ProfilerStep#{step}", 0, 490), ("aten::empty", 10, 3), ("aten::view", 11, 0), ("step", 12, long), ("aten::mul", 20, 5)):
                    events.append({"ph": "X", "cat": "user_annotation" if "#" in title else "cpu_op", "name": title, "ts": ts + begin, "dur": dur,
                                   "pid": 1, "tid": 1, "args": {}})
            return self.write(name, {"schemaVersion": 1, "traceEvents": events})

        answer = self.diff(trace("a.json", 100), trace("b.json", 200))
        self.assertEqual(answer["rows"][0]["op"], "step")
        counts = {r["op"]: r["base_count"] for r in answer["rows"]}
        self.assertEqual(counts, {"step": 2, "aten::empty": 2})  # with the events in them

    def test_different_kinds(self):
        """PyTorch against Nsight Systems: by kernel, without lines; the row names the line that one side has."""
        def calls(slow):
            return [call("aten::mm", ("gemm", 100), line=31), call("aten::add", ("add", 20), line=32), call("aten::mm", ("gemm2", slow), line=40),
                    call("aten::add", ("add", 25), line=44)]
        a, b = self.kineto("a.json", calls(200)), self.nsys("b.sqlite", calls(700))
        for words, sign in (((a, b), 1), ((b, a), -1)):
            answer = self.diff(*words)
            self.assertEqual(answer["compared_without"], "lines and operators")
            top = answer["rows"][0]
            self.assertEqual((top["op"], top["line"], top["delta_ns"]), ("gemm2", "model.py:40 forward", sign * 500_000))
            self.assertFalse([r for r in answer["rows"] if r["phase"] == "compute" and r["change"] in ("new", "gone")])
            self.assertEqual({r["op"]: r["line"] for r in answer["rows"] if r["op"] == "add"}, {"add": None})

    def test_ratios(self):
        answer = self.compare([call("aten::mm", ("gemm", 1000))], [call("aten::mm", ("gemm", 2000))])
        self.assertAlmostEqual(answer["step_ratio"], answer["new_step_ns"] / answer["base_step_ns"], places=4)
        self.assertAlmostEqual(answer["all_steps_ratio"], answer["new_all_steps_ns"] / answer["base_all_steps_ns"], places=4)


if __name__ == "__main__":
    unittest.main()
