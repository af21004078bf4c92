#!/usr/bin/python3
"""Sampled stacks inside Chrome traces are samples like any other: the list `samples` with `stackFrames`, and V8's CPU profiles in the events
Profile, ProfileChunk and CpuProfile. Times by function are computed here from the same objects."""
import collections
import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")
NAMES = ["(root)", "(program)", "(idle)", "main", "load", "step", "parse"]
PARENTS = [0, 1, 1, 1, 4, 4, 6]  # ids from 1; 0: none


def node(i):
    frame = {"functionName": NAMES[i - 1], "scriptId": 1, "codeType": "JS"}
    if not NAMES[i - 1].startswith("("):
        frame.update(url="file:///app/a.js", lineNumber=10 * i, columnNumber=0)
    out = {"id": i, "callFrame": frame}
    if PARENTS[i - 1]:
        out["parent"] = PARENTS[i - 1]
    return out


def self_times(start, samples, deltas):
    """Each sample lasts until the next one, the last as long as the one before; microseconds."""
    times, at = [], start
    for d in deltas:
        at += d
        times.append(at)
    out = collections.Counter()
    for i, s in enumerate(samples):
        span = times[i + 1] - times[i] if i + 1 < len(samples) else times[i] - times[i - 1]
        if NAMES[s - 1] != "(idle)":
            out[NAMES[s - 1]] += span
    return out


class TraceSamples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "t.json"

    def functions(self, document, *options):
        self.path.write_text(json.dumps(document))
        got = subprocess.run([BIN, "functions", str(self.path), "--json", "--limit", "0", *options], capture_output=True, text=True)
        self.assertEqual(got.returncode, 0, got.stderr)
        return {r["name"]: r["self"] for r in json.loads(got.stdout)["rows"] if r["self"]}

    def chunks(self, rng, pid, profile, start, count=60, tid=1, sampler=9):
        samples = [rng.choice([2, 3, 4, 5, 6, 7]) for _ in range(count)]
        deltas = [rng.randint(50, 300) for _ in range(count)]
        base = {"cat": "disabled-by-default-v8.cpu_profiler", "ph": "P", "pid": pid, "id": profile}
        events = [{**base, "name": "Profile", "tid": tid, "ts": start, "args": {"data": {"startTime": start}}}]
        known, at = set(), 0
        while at < count:
            n = rng.randint(1, 20)
            part = samples[at:at + n]
            new = [i for i in range(1, 8) if i not in known and (not known or i in part or i in (4, 6))]
            if not known:
                new = [1, 2, 3, 4]
            for s in part:  # a node and its callers come with or before its first sample
                while s and s not in known and s not in new:
                    new.append(s)
                    s = PARENTS[s - 1]
            new = sorted(set(new))
            known.update(new)
            events.append({**base, "name": "ProfileChunk", "tid": sampler, "ts": start + 1000 + at,
                           "args": {"data": {"cpuProfile": {"nodes": [node(i) for i in new], "samples": part},
                                             "timeDeltas": deltas[at:at + n], "lines": [1] * len(part)}}})
            at += n
        return events, self_times(start, samples, deltas)

    def test_chunks(self):
        for seed in range(6):
            rng = random.Random(seed)
            events, want = self.chunks(rng, 7, "0x2", 1000000)
            task = [{"ph": "X", "name": "RunTask", "cat": "toplevel", "pid": 7, "tid": 1, "ts": 1000000, "dur": 20000}]
            for document in (events + task, {"traceEvents": task + events}):
                self.assertEqual(self.functions(document), {k: v * 1000 for k, v in want.items()})

    def test_two_processes_with_one_id(self):
        rng = random.Random(11)
        a, want_a = self.chunks(rng, 7, "0x2", 1000000)
        b, want_b = self.chunks(rng, 8, "0x2", 1500000, tid=3)
        mixed = a + b
        got = self.functions({"traceEvents": mixed})
        self.assertEqual(got, {k: v * 1000 for k, v in (want_a + want_b).items()})
        self.path.write_text(json.dumps({"traceEvents": mixed}))
        said = subprocess.run([BIN, str(self.path)], capture_output=True, text=True).stdout
        self.assertIn("on 2 threads", said)

    def test_whole_profile_in_one_event(self):
        rng = random.Random(4)
        samples = [rng.choice([2, 4, 5, 6, 7]) for _ in range(30)]
        deltas = [rng.randint(50, 300) for _ in range(30)]
        profile = {"nodes": [node(i) for i in range(1, 8)], "startTime": 5000, "endTime": 5000 + sum(deltas),
                   "samples": samples, "timeDeltas": deltas}
        events = [{"ph": "I", "name": "CpuProfile", "cat": "devtools", "pid": 1, "tid": 2, "ts": 9000, "s": "t",
                   "args": {"data": {"cpuProfile": profile}}}]
        self.assertEqual(self.functions(events), {k: v * 1000 for k, v in self_times(5000, samples, deltas).items()})

    def test_listed_samples(self):
        frames = {"1": {"name": "[root]", "category": "x"}, "2": {"name": "f", "category": "x", "parent": 1},
                  "3": {"name": "g", "category": "x", "parent": "2"}}
        samples = [{"cpu": 0, "tid": "5", "pid": 3, "ts": str(1000 + 10 * i), "name": "cycles", "sf": sf, "weight": "1"}
                   for i, sf in enumerate([1, 2, 3, 3, 3, "2", 3])]
        document = {"traceEvents": [{"ph": "M", "name": "thread_name", "pid": 3, "tid": 5, "args": {"name": "js"}}],
                    "samples": samples, "stackFrames": frames}
        self.assertEqual(self.functions(document), {"g": 4, "f": 2, "[root]": 1})
        said = subprocess.run([BIN, str(self.path)], capture_output=True, text=True).stdout
        self.assertIn("7 samples", said)
        self.assertIn("57 % of samples are in g itself", said)

    def test_damaged_pieces(self):
        rng = random.Random(2)
        events, _ = self.chunks(rng, 7, "0x2", 1000000)
        for i, args in enumerate(({}, {"data": []}, {"data": {"cpuProfile": []}}, {"data": {"cpuProfile": {"samples": ["x", None]}}},
                                  {"data": {"timeDeltas": {"a": 1}}}, 7, "x")):
            events[1 + i % 3] = {**events[1], "args": args}
            self.path.write_text(json.dumps(events))
            got = subprocess.run([BIN, str(self.path)], capture_output=True, text=True)
            self.assertEqual(got.returncode, 0, got.stderr)

    def test_a_trace_of_chrome(self):
        if not CORPUS:
            self.skipTest("OPWATCH_CORPUS is not set")
        path = pathlib.Path(CORPUS) / "chrome-trace/ss-chrome69-simple.json"
        data = json.loads(path.read_text())
        events = data if isinstance(data, list) else data["traceEvents"]
        names, samples, deltas = {}, [], []
        for e in events:
            if e.get("name") == "ProfileChunk":
                chunk = e["args"]["data"]
                for n in chunk.get("cpuProfile", {}).get("nodes", []):
                    names[n["id"]] = n["callFrame"]["functionName"] or "(anonymous)"
                samples += chunk.get("cpuProfile", {}).get("samples", [])
                deltas += chunk.get("timeDeltas", [])
        want = collections.Counter()
        for i, s in enumerate(samples[:-1]):
            want[names[s]] += max(deltas[i + 1], 0) * 1000
        got = self.functions(data)
        self.assertEqual(got["gamma"], want["gamma"])
        self.assertNotIn("(idle)", got)


if __name__ == "__main__":
    unittest.main()
