#!/usr/bin/python3
"""One damaged duration does not hide the rest of a recording: it is set aside with a note, shares stay between 0 and 100 %, and sums
that would not fit into 64 bits stop at the limit instead of turning negative."""
import contextlib
import json
import os
import pathlib
import pickle
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SRC / "tests/support"))
import nsys_export  # noqa: E402
import torch_snapshot  # noqa: E402
from stack_files import field  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
OPS, RUNS = 5, 10
NOTE = "durations of more than a year are ignored"


def trace(changes):
    """Five ops, ten times each, of 8 us; `changes` are other durations of some of the events."""
    events = [{"ph": "X", "cat": "Op", "name": f"T{k}", "pid": 1, "tid": 1, "ts": 100 * run + 10 * k, "dur": 8,
               "args": {"name": f"op_{k}", "op": f"T{k}"}} for run in range(RUNS) for k in range(OPS)]
    for number, dur in changes.items():
        events[number]["dur"] = dur
    return json.dumps({"traceEvents": events})


class Durations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def opwatch(self, *words):
        run = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout, run.stderr

    def check_trace(self, changes, expected):
        path = self.folder / "x.json"
        path.write_text(trace(changes))
        out, err = self.opwatch("op", path, "--json")
        rows = {row["name"]: row for row in json.loads(out)["rows"]}
        times = {name: row["micros"] for name, row in rows.items() if name.startswith("T")}
        self.assertEqual(times, expected, changes)
        self.assertIn(NOTE, err)
        for words in ([], ["op"], ["work"], ["opstats"], ["steps"]):
            text = self.opwatch(*words, path, "--no-pager")[0]
            shares = [float(share) for share in re.findall(r"(-?[0-9.]+) ?%", text)]
            self.assertTrue(all(0 <= share <= 100.05 for share in shares), (words, shares))
            self.assertNotRegex(text, r"-[0-9.]+(us|ms|s|h)\b")

    def test_traces(self):
        good = {f"T{k}": 80 for k in range(OPS)}
        for dur in (1.8e19, 9.2e15, 8e15, 4e13, 18446744073709551615):
            self.check_trace({7: dur}, {**good, "T2": 72})
        self.check_trace({3: 8e15, 8: 8e15, 13: 8e15}, {**good, "T3": 56})
        self.check_trace({n: 1e18 for n in range(2, 50, 5)}, {**good, "T2": 0})

    def test_a_long_run_is_no_damage(self):
        path = self.folder / "x.json"
        path.write_text(trace({49: 90 * 86400 * 1e6}))  # a quarter of a year
        out, err = self.opwatch("op", path, "--json")
        self.assertNotIn(NOTE, err)
        self.assertEqual({r["name"]: r["micros"] for r in json.loads(out)["rows"]}["T4"], 90 * 86400 * 10 ** 6 + 72)

    def test_run_metadata(self):
        def node(name, dur):
            return field(2, field(1, name) + field(2, 1000) + field(4, dur) + field(5, dur))
        graph = b"".join(field(1, field(1, name) + field(2, b"MatMul")) for name in (b"a", b"b"))
        device = field(1, b"/job:w/replica:0/task:0/device:CPU:0") + node(b"a", 50) + node(b"b", (1 << 63) - 1) + node(b"b", 70)
        (self.folder / "graph.pb").write_bytes(graph)
        (self.folder / "run_meta").write_bytes(field(1, field(1, device)))
        out, err = self.opwatch("scope", self.folder / "graph.pb", self.folder / "run_meta", "--json", "--select", "micros")
        rows = {row["name"]: row["micros"] for row in json.loads(out)["rows"][0]["children"]}
        self.assertEqual((rows["a"], rows["b"]), (50, 70))
        self.assertIn(NOTE.replace("year", "century"), err)

    def test_run_metadata_that_ends_before_its_start(self):
        def node(name, dur):
            return field(2, field(1, name) + field(2, 1000) + field(4, dur) + field(5, dur))
        graph = b"".join(field(1, field(1, name) + field(2, name)) for name in (b"a", b"b"))
        (self.folder / "graph.pb").write_bytes(graph)
        for dur, note in (((1 << 64) - 5, "end before their start"), (1 << 63, NOTE.replace("year", "century")), (18 * 10 ** 18, "century")):
            device = field(1, b"/job:w/replica:0/task:0/device:CPU:0") + node(b"a", 50) + node(b"b", dur)
            (self.folder / "run_meta").write_bytes(field(1, field(1, device)))
            files = self.folder / "graph.pb", self.folder / "run_meta"
            out, err = self.opwatch("work", *files, "--json")
            rows = json.loads(out)["rows"]
            self.assertTrue(all(not isinstance(value, (int, float)) or value >= 0 for row in rows for value in row.values()), rows)
            self.assertIn(note, err)
            text = self.opwatch("--no-pager", *files)[0] + self.opwatch("work", *files)[0]
            self.assertNotRegex(text, r"-[0-9.]+(us|ms|s|h|%)")

    def check_functions(self, path, names, note):
        """All functions are shown, no time is negative, no share is out of 0 to 100 %, and the note counts what was set aside."""
        out, err = self.opwatch("functions", path, "--json")
        rows = {row["name"]: row for row in json.loads(out)["rows"]}
        self.assertEqual(set(rows), set(names))
        for row in rows.values():
            self.assertTrue(all(row[key] >= 0 for key in ("self", "total")), row)
            self.assertTrue(all(0 <= row[key] <= 100 for key in ("self_percent", "total_percent")), row)
        self.assertIn(note, err)
        for words in ([], ["op"], ["lines"], ["metrics"]):
            text = self.opwatch(*words, path, "--no-pager")[0]
            self.assertTrue(all(0 <= float(share) <= 100.05 for share in re.findall(r"(-?[0-9.]+) ?%", text)), text)
            self.assertNotRegex(text, r"-[0-9.]+(ns|us|ms|s|h)\b")
        return {name: (row["self"], row["total"]) for name, row in rows.items()}

    def test_sums_of_samples_stop(self):
        path = self.folder / "x.folded"
        path.write_text("".join(f"main;a{i} {10 ** 18}\n" for i in range(10)) + "main;c 5\n")
        rows = self.check_functions(path, ["main", "c", *(f"a{i}" for i in range(10))], "sums stop at the limit")
        self.assertEqual(rows["main"], (0, (1 << 63) - 1))

    def test_weights_of_samples(self):
        path = self.folder / "x.folded"
        for weight, note in (((1 << 63) - 1, "above 10^18 are ignored: they count as 0 (2 times)"), (10 ** 18 + 1, "(2 times)"),
                             (-5, "negative weights of samples are ignored: they count as 0 "), (-(1 << 63), "(2 times)")):
            path.write_text(f"main;a {weight}\nmain;b 7\nmain;a;c 9\nmain;c {weight}\nmain;b 5\n")
            rows = self.check_functions(path, "main a b c".split(), note)
            self.assertEqual(rows, {"main": (0, 21), "a": (0, 9), "b": (12, 12), "c": (9, 9)}, weight)

    def test_weights_of_pprof(self):
        texts = [b"", b"cpu", b"milliseconds", b"main", b"a", b"b"]
        for weight in ((1 << 63) - 1, 1 << 63, (1 << 64) - 5, 1 << 62, 18 * 10 ** 18):
            data = field(1, field(1, 1) + field(2, 2))
            for places, value in ((b"\2\1", weight), (b"\3\1", 7), (b"\2\1", weight), (b"\3\2\1", 3)):
                data += field(2, field(1, places) + field(2, value))
            data += b"".join(field(4, field(1, i) + field(4, field(1, i))) + field(5, field(1, i) + field(2, i + 2)) for i in (1, 2, 3))
            path = self.folder / "x.pb"
            path.write_bytes(data + b"".join(field(6, text) for text in texts))
            rows = self.check_functions(path, "main a b".split(), "(2 times)")
            self.assertEqual(rows, {"main": (0, 10 ** 7), "a": (0, 3 * 10 ** 6), "b": (10 ** 7, 10 ** 7)}, weight)

    def test_memory_that_is_given_back(self):
        texts = [b"", b"inuse_space", b"bytes", b"main", b"a", b"b"]
        data = field(1, field(1, 1) + field(2, 2))
        for places, value in ((b"\2\1", 500), (b"\3\1", (1 << 64) - 400)):
            data += field(2, field(1, places) + field(2, value))
        data += b"".join(field(4, field(1, i) + field(4, field(1, i))) + field(5, field(1, i) + field(2, i + 2)) for i in (1, 2, 3))
        path = self.folder / "x.pb"
        path.write_bytes(data + b"".join(field(6, text) for text in texts))
        rows = {row["name"]: row for row in json.loads(self.opwatch("functions", path, "--json")[0])["rows"]}
        self.assertEqual({name: row["total"] for name, row in rows.items()}, {"main": 100, "a": 500, "b": -400})
        self.assertTrue(all(abs(row["total_percent"]) <= 100 for row in rows.values()), rows)

    def test_weights_of_perf_script(self):
        path = self.folder / "x.txt"
        path.write_text("".join(f"job 1/1 12.{n:06d}: {weight} cycles:\n\t1000 {name} (/bin/job)\n\t2000 main (/bin/job)\n\n"
                                for n, (name, weight) in enumerate([("a", 9223372036854775807), ("b", 5), ("a", 4 * 10 ** 18), ("b", 6)])))
        rows = self.check_functions(path, "main a b".split(), "(2 times)")
        self.assertEqual(rows, {"main": (0, 11), "a": (0, 0), "b": (11, 11)})

    def check_opstats(self, spans, expected):
        path = self.folder / "x.json"
        path.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "Op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {"name": name, "op": name}}
            for name, ts, dur in spans]}))
        rows = {row["name"]: row for row in json.loads(self.opwatch("opstats", path, "--json")[0])["rows"]}
        self.assertEqual({name: row["self_ns"] for name, row in rows.items() if row["self_ns"] or name != "IDLE"},
                         {name: us * 1000 for name, us in expected.items()})
        self.assertTrue(all(0 <= row[key] <= 100.0001 for row in rows.values() for key in row if key.endswith("percent") and row[key]), rows)

    def test_a_moment_belongs_to_the_op_that_started_last(self):
        self.check_opstats([("a", 0, 30), ("b", 5, 5), ("c", 7, 13), ("d", 12, 6)], {"a": 15, "b": 2, "c": 7, "d": 6})
        self.check_opstats([("a", 0, 10), ("b", 5, 10), ("c", 12, 2)], {"a": 5, "b": 8, "c": 2})
        self.check_opstats([("a", 0, 10), ("b", 2, 3), ("c", 6, 4), ("d", 20, 5)], {"a": 3, "b": 3, "c": 4, "d": 5, "IDLE": 10})
        self.check_opstats([("a", 0, 10), ("b", 0, 10), ("c", 3, 0)], {"a": 0, "b": 10, "c": 0})

    def test_random_ops(self):
        """Each microsecond looked at on its own."""
        rng = random.Random(3)
        for _ in range(20):
            spans = sorted(((f"n{i}", rng.randrange(60), rng.randrange(1, 30)) for i in range(8)), key=lambda s: (s[1], -s[2]))
            spans = [s for i, s in enumerate(spans) if s[1] not in {o[1] for o in spans[:i]}]
            expected = dict.fromkeys((name for name, _, _ in spans), 0)
            for at in range(spans[0][1], max(ts + dur for _, ts, dur in spans)):
                open_now = [name for name, ts, dur in spans if ts <= at < ts + dur]
                name = open_now[-1] if open_now else "IDLE"
                expected[name] = expected.get(name, 0) + 1
            self.check_opstats(spans, expected)


class EveryFormat(unittest.TestCase):
    """A damaged duration, weight, time or size in each format: nothing is negative, no share is beyond 100 %, the rest is shown, and a note
    says that something is wrong."""
    BAD = (-5, -2 ** 62, 18446744073709551615, 1.8e19, 1e300, float("nan"), float("inf"), -float("inf"), 2 ** 63 - 1)
    FAR = re.compile(r"(?<![\w.:-])-[0-9.]+(?:ns|us|ms|s|h)\b|\b[0-9]{4,}\.?[0-9]*(?:h|PB)\b")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    @staticmethod
    def number(value):
        """64 bits that a damaged message may have."""
        if value != value:
            return 0x7ff8000000000000
        if abs(value) >= 2 ** 64:
            return 2 ** 64 - 1 if value > 0 else 2 ** 63
        return int(value) & (2 ** 64 - 1)

    def check(self, name, content, good, views=("op", "functions", "work", "tracks", "metrics", "devices", "memory")):
        path = self.folder / name
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        for words in ((), *((view,) for view in views)):
            run = subprocess.run([BIN, *words, str(path), "--no-pager"], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, (name, words, run.stderr))
            self.assertTrue(all(0 <= float(share) <= 100.05 for share in re.findall(r"(-?[0-9.]+) ?%", run.stdout)), run.stdout)
            self.assertNotRegex(run.stdout, self.FAR)
            if not words:
                self.assertIn(good, run.stdout)
        return run

    def noted(self, name):
        return subprocess.run([BIN, "notes", self.folder / name, "--json"], capture_output=True, text=True, check=True).stdout

    def test_traces(self):
        spans = ("good", 0, 7), ("bad", 10, None), ("good", 20, 7)
        for bad in self.BAD:
            events = [{"ph": "X", "cat": "cpu_op", "name": f"aten::{n}", "pid": 1, "tid": 1, "ts": t, "dur": bad if d is None else d,
                       "args": {"External id": i}} for i, (n, t, d) in enumerate(spans)]
            events += [{"ph": "X", "cat": "kernel", "name": n, "pid": 0, "tid": 7, "ts": t, "dur": bad if d is None else d,
                        "args": {"device": 0, "stream": 7, "correlation": i}} for i, (n, t, d) in enumerate(spans)]
            self.check("k.json", json.dumps({"schemaVersion": 1, "traceEvents": events}), "good")
            self.assertIn('"kind"', self.noted("k.json"))
            pairs = (("good", "B", 0), ("good", "E", 7), ("bad", "B", 10), ("bad", "E", bad), ("good", "B", 20), ("good", "E", 27))
            self.check("b.json", json.dumps([{"ph": p, "cat": "Op", "name": n, "pid": 1, "tid": 1, "ts": t} for n, p, t in pairs]), "good")

    def test_xspace(self):
        def entry(key, content):
            return field(1, key) + field(2, field(1, key) + content)
        plane = field(1, 1) + field(2, b"/device:GPU:0") + b"".join(field(4, entry(i + 1, field(2, n))) for i, n in enumerate((b"good", b"bad")))
        for bad in self.BAD:
            events = b"".join(field(4, field(1, m) + field(2, o) + field(3, d))
                              for m, o, d in ((1, 1, 7000000), (2, 10000000, self.number(bad)), (1, 20000000, 7000000)))
            self.check("x.xplane.pb", field(1, plane + field(3, field(1, 7) + field(2, b"Stream #7") + field(3, 1000) + events)), "good")
            self.assertIn("times out of range", self.noted("x.xplane.pb"))

    def test_speedscope(self):
        document = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": n} for n in ("main", "good", "bad")]}}
        for bad in self.BAD:
            profile = {"type": "sampled", "name": "p", "unit": "milliseconds", "startValue": 0, "endValue": 100, "samples": [[0, 1], [0, 2], [0, 1]],
                       "weights": [3, bad, 4]}
            self.check("s.json", json.dumps({**document, "profiles": [profile]}), "good")
            events = [("O", 0, 0), ("O", 1, 1), ("C", 1, 8), ("O", 2, 8), ("C", 2, bad), ("C", 0, bad)]
            profile = {"type": "evented", "name": "p", "unit": "milliseconds", "startValue": 0, "endValue": 100,
                       "events": [{"type": t, "frame": f, "at": at} for t, f, at in events]}
            self.check("e.json", json.dumps({**document, "profiles": [profile]}), "good")
            self.assertIn('"kind"', self.noted("e.json"))

    def test_cpuprofile(self):
        nodes = [{"id": i, "callFrame": {"functionName": n, "scriptId": "1", "url": "a.js", "lineNumber": i, "columnNumber": 0},
                  "children": [2, 3] if i == 1 else []} for i, n in ((1, "(root)"), (2, "good"), (3, "bad"))]
        for bad in self.BAD:
            for end, deltas in ((1000, [100, 100, bad, 100]), (bad, [100] * 4)):
                self.check("c.cpuprofile", json.dumps({"nodes": nodes, "startTime": 0, "endTime": end, "samples": [2, 2, 3, 2],
                                                       "timeDeltas": deltas}), "good")

    def test_firefox(self):
        for bad in self.BAD:
            document = json.loads((SRC / "tests/fuzz/seeds/firefox/raw.json").read_text())
            samples = document["threads"][0]["samples"]
            samples["data"][1][samples["schema"]["time"]] = bad
            self.check("f.json", json.dumps(document), "Functions")

    def test_texts(self):
        for bad in self.BAD:
            self.check("x.folded", f"main;good 7\nmain;bad {bad}\nmain;good 7\n", "good")
            self.assertIn('"kind"', self.noted("x.folded"))
            if isinstance(bad, int):  # perf writes whole numbers
                self.check("p.txt", "".join(f"job 1/1 12.{n:06d}: {weight} cycles:\n\t1000 {name} (/bin/job)\n\t2000 main (/bin/job)\n\n"
                                            for n, (name, weight) in enumerate((("good", 7), ("bad", bad), ("good", 7)))), "good")
            big = self.number(bad)
            self.check("l.heap", f"heap profile: 3: 3072 [4: 6144] @ heapprofile\n 1: 1024 [2: 2048] @ 0x401000\n {big}: {big} [{big}: {big}] @ "
                       "0x402000\n\nMAPPED_LIBRARIES:\n00400000-00500000 r-xp 00000000 08:01 1234 /opt/lib.so\n", "lib.so")

    def test_memory(self):
        for bad in self.BAD:
            for key in ("time_us", "size"):
                snapshot = torch_snapshot.snapshot(events=200)
                snapshot["device_traces"][0][5][key] = bad
                run = self.check("m.pickle", pickle.dumps(snapshot), "GPU 0", views=("steps", "memory"))
                self.assertNotRegex(run.stdout, r"EB|[0-9]{4}PB")
                if isinstance(bad, int):
                    self.assertIn('"kind"', self.noted("m.pickle"))
            for entry in ([bad, 1, 1024, 2], [10, 1, bad, 2]):
                self.check("t.json", json.dumps([[0, 1, 512, 1], entry, [20, 2, 512, 1]]), "memory", views=("memory",))

    def test_nsys(self):
        for bad in self.BAD:
            path = self.folder / "n.sqlite"
            path.unlink(missing_ok=True)
            nsys_export.write(str(path), launches=20)
            with contextlib.closing(sqlite3.connect(str(path))) as db:
                value = bad if isinstance(bad, float) or bad < 2 ** 63 else float(bad)
                db.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = ? WHERE rowid = 3", (value,))
                db.commit()
            self.check("n.sqlite", None, "kernel")
            self.assertIn('"kind"', self.noted("n.sqlite"))


if __name__ == "__main__":
    unittest.main()
