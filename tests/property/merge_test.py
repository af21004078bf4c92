#!/usr/bin/python3
"""opwatch merge against an independent JSON parser: random traces with every odd thing, all alignments and filters,
cut and damaged inputs, packed inputs and outputs, interrupted merges. See tests/support/trace_text.py for what
"merged right" means."""
import gzip
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from decimal import Decimal

sys.path.insert(0, os.path.join(os.environ.get("OPWATCH_SRC", "."), "tests"))
from support import patience  # noqa: E402
from support.trace_text import Checker, Event, Trace, base_ns, number  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
ROUNDS = 25
WORDS = ["MatMul", "été", 'quote"d', "back\\slash", "new\nline", "", "日本", "a/b:0", "{\"ph\":\"X\"}", "]", "\u0000", "x" * 200]


# ---- random traces ----

def blanks(rng):
    return rng.choice(["", "", " ", "\n  ", "\t"])


def text_of(rng, value):
    """JSON text of a value in one of its spellings."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if isinstance(value, dict):
        inner = ("," + blanks(rng)).join(
            json.dumps(k) + blanks(rng) + ":" + blanks(rng) + text_of(rng, v) for k, v in value.items())
        return "{" + blanks(rng) + inner + blanks(rng) + "}"
    if isinstance(value, list):
        return "[" + ",".join(blanks(rng) + text_of(rng, v) for v in value) + blanks(rng) + "]"
    if isinstance(value, Raw):
        return value.text
    return json.dumps(value)


class Raw:
    def __init__(self, text):
        self.text = text


def random_time(rng, epoch):
    base = 1584128411446459 if epoch else 0
    whole = base + rng.randrange(10**6)
    kind = rng.randrange(7)
    if kind == 0:
        return Raw(f"{whole}.{rng.randrange(1000):03}")
    if kind == 1:
        return Raw(f'"{whole}.{rng.randrange(10)}"')
    if kind == 2:
        return Raw(f"{whole}.{rng.randrange(10**12):012}")
    if kind == 3:
        return Raw(f"{whole}e0")
    if kind == 4:
        return Raw(f"{whole}0.0E-1")
    return Raw(str(whole))


def random_value(rng, depth=0):
    kind = rng.randrange(9 if depth < 3 else 6)
    if kind == 0:
        return rng.choice(WORDS)
    if kind == 1:
        return Raw(rng.choice(["18446744073709551615", "-0", "1e400", "0.1e-9", "123456789012345678901234567890"]))
    if kind == 2:
        return rng.choice([True, False, None])
    if kind < 6:
        return rng.randrange(-5, 10**rng.randrange(1, 12))
    if kind == 6:
        return [random_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(WORDS) + str(i): random_value(rng, depth + 1) for i in range(rng.randrange(4))}


def random_id(rng):
    n = rng.randrange(20)
    return rng.choice([n, n, str(n), hex(n), hex(n + (1 << 47)), f"{n + 200:x}", "id" + str(n), Raw(str(n + (1 << 63))), -n])


def random_pid(rng):
    return rng.choice([0, 1, 2, 7, "7", "Spans", "CPU functions", -1, 4000, 4000, "", Raw("1.0"), 2**40])


def random_event(rng, epoch):
    ph = rng.choice("XXXXXBEbenSTpFstfiICPNODMvVc(R")
    event = {"ph": ph, "name": rng.choice(WORDS)}
    if rng.random() < 0.95:
        event["pid"] = random_pid(rng)
    if rng.random() < 0.9:
        event["tid"] = rng.choice([1, 2, "t", -5])
    if ph != "M" or rng.random() < 0.3:
        event["ts"] = random_time(rng, epoch) if rng.random() < 0.97 or ph == "M" else Raw("null")
    if ph == "M":
        event["name"] = rng.choice(["process_name", "thread_name", "process_sort_index", "other"])
        event["args"] = {"name": rng.choice(WORDS), "sort_index": 3}
        if rng.random() < 0.2:
            event["ts"] = 0
    elif rng.random() < 0.7:
        event["args"] = random_value(rng)
    if ph == "X":
        event["dur"] = rng.choice([5, 0, Raw("1.5"), "7"])
    if ph in "bensSTtpFfNODvVC(" or rng.random() < 0.05:
        if rng.random() < 0.8:
            event["id"] = random_id(rng)
        else:
            event["id2"] = {rng.choice(["global", "local"]): random_id(rng)}
    if rng.random() < 0.1:
        event["bind_id"] = random_id(rng)
    if rng.random() < 0.1:
        event["sf"] = rng.choice([1, "2"])
    if rng.random() < 0.1:
        event["cname"] = "good"
    if rng.random() < 0.5:
        event["cat"] = rng.choice(["Op", "a,b", "été"])
    items = list(event.items())
    rng.shuffle(items)
    return dict(items)


def random_trace(rng, small=False):
    """(text, list of event texts)"""
    epoch = rng.random() < 0.5
    events = [text_of(rng, random_event(rng, epoch)) for _ in range(rng.randrange(0, 12 if small else 400))]
    if events and rng.random() < 0.2:
        events.append("{}")
    body = "[" + ("," + blanks(rng)).join(blanks(rng) + e for e in events) + blanks(rng) + "]"
    if rng.random() < 0.3:
        return body
    others = {"displayTimeUnit": rng.choice(["ns", "ms"]), "schemaVersion": 1, "traceName": rng.choice(WORDS),
              "note": random_value(rng)}
    if rng.random() < 0.3:
        others["distributedInfo"] = {"rank": rng.randrange(4), "world_size": 8}
    if rng.random() < 0.3:
        others["baseTimeNanoseconds"] = rng.choice([1759200000000000000, 1759200000000000123, 0])
    if rng.random() < 0.2:
        others["stackFrames"] = {"1": {"name": "main"}, "2": {"name": "f", "parent": "1"}}
    if rng.random() < 0.2:
        others["samples"] = [{"cpu": 0, "tid": 1, "ts": 5.5, "name": "c", "sf": 1, "weight": 1}] * 3
    pairs = list(others.items())
    rng.shuffle(pairs)
    cut = rng.randrange(len(pairs) + 1)
    items = [(k, text_of(rng, v)) for k, v in pairs[:cut]] + [("traceEvents", body)] + \
        [(k, text_of(rng, v)) for k, v in pairs[cut:]]
    return "{" + ",".join(f"{json.dumps(k)}:{blanks(rng)}{v}" for k, v in items) + "}"


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="merge"))
        self.addCleanup(shutil.rmtree, self.dir)

    def file(self, name, data):
        path = self.dir / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def merge(self, *args, out="all.json", ok=(0,), env=None, read=True):
        run = subprocess.run([BIN, "merge", *map(str, args), "-o", str(self.dir / out), "--json"],
                             capture_output=True, text=True, env={**os.environ, **(env or {})})
        self.assertIn(run.returncode, ok, run.stderr)
        self.stderr = run.stderr
        self.assertEqual(sorted(self.dir.glob("*.tmp*")), [])
        self.sums = json.loads(run.stdout) if run.returncode in (0, 3) else None
        return Trace((self.dir / out).read_bytes()) if read and run.returncode in (0, 3) else None


class Random(Case):
    """Whatever is in the files, it is in the output."""
    def check(self, texts, *options, several=True):
        paths = [self.file(f"f{i}.json", t) for i, t in enumerate(texts)]
        merged = self.merge(*paths, *options)
        inputs = [Trace(p.read_bytes()) for p in paths]
        self.assertEqual(self.sums["events_in"], sum(len(t.events) for t in inputs))
        self.assertEqual(self.sums["events_out"], self.sums["events_in"])
        self.assertEqual((self.sums["repaired"], self.sums["damaged"], self.sums["others"]), (0, 0, 0), self.stderr)
        checker = Checker(self, inputs, merged, self.sums["added"], labels="--no-labels" not in options)
        checker.run()
        return inputs, merged, checker

    def test_keep(self):
        for seed in range(ROUNDS):
            rng = random.Random(seed)
            with self.subTest(seed):
                inputs, merged, checker = self.check([random_trace(rng) for _ in range(rng.randrange(1, 5))])
                bases = [base_ns(t) for t in inputs]
                if len(inputs) > 1:
                    out = base_ns(merged) or 0
                    if all(b is not None for b in bases):
                        self.assertEqual(out, min(bases))
                    for base, shift in zip(bases, checker.shifts):
                        if shift is not None:
                            self.assertEqual(shift, ((base or 0) - out) / 1000)

    def test_start(self):
        for seed in range(ROUNDS):
            rng = random.Random(seed + 1000)
            with self.subTest(seed):
                inputs, merged, checker = self.check([random_trace(rng) for _ in range(3)], "--align", "start")
                for trace, shift in zip(inputs, checker.shifts):
                    times = [number(e.raw["ts"]) for e in trace.events if "ts" in e.raw and e.get("ph") != "M"]
                    times = [t for t in times if t is not None]
                    if times:  # to the nanosecond, of which the first begins there
                        self.assertLessEqual(abs(min(times) + shift), Decimal("0.001"))

    def test_sequence(self):
        for seed in range(ROUNDS):
            rng = random.Random(seed + 2000)
            with self.subTest(seed):
                inputs, merged, checker = self.check([random_trace(rng) for _ in range(3)], "--align", "sequence")
                last = Decimal(-1)
                for trace, shift in zip(inputs, checker.shifts):
                    spans = [(number(e.raw["ts"]), number(e.raw.get("dur", "0")) if e.get("ph") == "X" else 0)
                             for e in trace.events if "ts" in e.raw and e.get("ph") != "M"]
                    spans = [(t + shift, t + shift + d) for t, d in spans if t is not None]
                    if spans:
                        self.assertGreater(min(a for a, _ in spans), last)
                        last = max(b for _, b in spans)

    def test_no_labels(self):
        rng = random.Random(5)
        for _ in range(10):
            self.check([random_trace(rng) for _ in range(3)], "--no-labels")
            self.assertEqual(self.sums["added"], 0)

    def test_portable_path(self):
        rng = random.Random(6)
        paths = [self.file(f"f{i}.json", random_trace(rng)) for i in range(3)]
        self.merge(*paths, out="a.json")
        self.merge(*paths, out="b.json", env={"OPWATCH_PORTABLE": "1"})
        self.assertEqual((self.dir / "a.json").read_bytes(), (self.dir / "b.json").read_bytes())

    def test_alone_nothing_changes(self):
        for seed in range(30):
            text = random_trace(random.Random(seed + 3000))
            path = self.file("one.json", text)
            merged, trace = self.merge(path), Trace(text.encode())
            self.assertEqual([e.text for e in merged.events], [e.text for e in trace.events])
            others = {k: v for k, v in merged.others.items() if k != "metadata"}
            self.assertEqual(others, {k: v for k, v in trace.others.items() if k != "metadata"})


class Large(Case):
    """Files of many parts, so that threads guess where events begin; some texts look like events."""
    def test_parts(self):
        rng = random.Random(11)
        traps = ['{"ph":"X","pid":9,"ts":1}', ',{"ph":"M","pid":77}', '[{"ph":"B","ts":5}]']
        for round_ in range(2):
            texts = []
            for f in range(2):
                events = []
                for i in range(12000):
                    pid = rng.choice([1, 2, 3]) if i < 6000 else 100 + i // 500
                    events.append(json.dumps({
                        "ph": "X", "name": rng.choice(traps), "pid": pid, "tid": 1, "ts": i, "dur": 1,
                        "args": {"text": rng.choice(traps) * rng.randrange(8), "deep": [[{"ph": "X"}]] * 3}}))
                texts.append('{"traceEvents":[\n' + ",\n".join(events) + "]}")
            paths = [self.file(f"f{i}.json", t) for i, t in enumerate(texts)]
            merged = self.merge(*paths)
            Checker(self, [Trace(t.encode()) for t in texts], merged, self.sums["added"]).run()
            first = (self.dir / "all.json").read_bytes()
            for _ in range(3):
                self.merge(*paths, read=False)
                self.assertEqual((self.dir / "all.json").read_bytes(), first)

    def test_packed_in_parts(self):
        events = ",".join(json.dumps({"ph": "X", "name": "n" * (i % 50), "pid": 1, "ts": i}) for i in range(60000))
        paths = [self.file(f"f{i}.json", f"[{events}]") for i in range(2)]
        self.merge(*paths, read=False)
        plain = (self.dir / "all.json").read_bytes()
        self.merge(*paths, out="all.json.gz", read=False)
        self.assertEqual(gzip.decompress((self.dir / "all.json.gz").read_bytes()), plain)
        subprocess.run(["gzip", "-t", self.dir / "all.json.gz"], check=True)
        if shutil.which("zstd"):
            self.merge(*paths, out="all.json.zst", read=False)
            self.assertEqual(subprocess.run(["zstd", "-dcq", self.dir / "all.json.zst"], check=True,
                                            capture_output=True).stdout, plain)


class Containers(Case):
    TEXT = '{"traceEvents":[{"ph":"X","name":"a","pid":1,"ts":1,"dur":1}]}'

    def test_gzip_zip_tar(self):
        names = ["rank0.json", "rank1.json"]
        for name in names:
            self.file(name, self.TEXT)
        self.file("rank2.json.gz", gzip.compress(self.TEXT.encode()))
        with zipfile.ZipFile(self.dir / "more.zip", "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("rank3.json", self.TEXT)
            z.writestr("README", "nothing to see")
        with tarfile.open(self.dir / "more.tar.gz", "w:gz") as t:
            t.add(self.dir / "rank0.json", "x/rank4.json")
            t.add(self.dir / "rank0.json", "x/rank5.json")
        merged = self.merge(*(self.dir / n for n in names), self.dir / "rank2.json.gz", self.dir / "more.zip",
                            self.dir / "more.tar.gz")
        self.assertEqual((self.sums["files"], self.sums["skipped_files"]), (6, 0))
        labels = [e.get("args")["name"] for e in merged.events if e.get("ph") == "M"]
        self.assertEqual(labels, [f"rank {i}" for i in range(6)])

    def test_standard_input_and_output(self):
        path = self.file("a.json", self.TEXT)
        run = subprocess.run([BIN, "merge", str(path), "-"], input=self.TEXT.encode(), capture_output=True, check=True)
        self.assertEqual(len(Trace(run.stdout).events), 4)  # two and two names

    def test_directory(self):
        for i in range(3):
            self.file(f"d/timeline-{i * 100}.json", self.TEXT)
        self.file("d/notes.txt", "hello")
        merged = self.merge(self.dir / "d")
        self.assertEqual(self.sums["skipped_files"], 0)
        self.assertEqual([e.get("args")["name"] for e in merged.events if e.get("ph") == "M"],
                         ["step 000", "step 100", "step 200"])

    def test_cut_gzip(self):
        events = ",\n".join(json.dumps({"ph": "X", "name": "n%d" % random.Random(i).randrange(10**9), "pid": 1, "ts": i})
                            for i in range(20000))
        packed = gzip.compress(f"[{events}]".encode())
        merged = self.merge(self.file("a.json.gz", packed[:len(packed) // 2]), self.file("b.json", self.TEXT))
        self.assertEqual(self.sums["truncated_files"], 1)
        self.assertIn("a.json.gz", self.stderr)
        self.assertGreater(len(merged.events), 1000)


class Lenient(Case):
    """What only lenient readers take becomes strict JSON with the same meaning."""
    def events(self, text, *options):
        merged = self.merge(self.file("x.json", text), *options)
        return [json.loads(e.text) for e in merged.events]

    def test_spellings(self):
        e = self.events('[{"ph":"X",/*c*/"ts":+5,"dur":.5,"pid":007,"args":{"a":NaN,"b":[1,,2,],"c":-Infinity,}},'
                        '\n// line\n{"ph":"i" "ts":1,"name":"tab\there","args":{"k":True,"l":\'x\'}},,]')
        self.assertEqual(e, [{"ph": "X", "ts": 5, "dur": 0.5, "pid": 7, "args": {"a": None, "b": [1, 2], "c": None}},
                             {"ph": "i", "ts": 1, "name": "tab\there", "args": {"k": "True", "l": "'x'"}}])
        self.assertEqual(self.sums["repaired"], 2)

    def test_bytes(self):
        e = self.events(b'[{"ph":"X","name":"\xff\xfe\xe9a","args":{"p":"C:\\dir\\new","u":"\\uZZ"}}]')
        self.assertEqual(e, [{"ph": "X", "name": "\ufffd\ufffd\ufffda",
                              "args": {"p": "C:\ufffddir\new", "u": "\ufffduZZ"}}])

    def test_documents_lines_and_marks(self):
        text = '\ufeff{"traceEvents":[{"ph":"X","pid":1}],"a":1}\n{"b":2,"traceEvents":[{"ph":"i","pid":1}]}\n[{"ph":"B"}]'
        self.assertEqual([e["ph"] for e in self.events(text)], ["X", "i", "B"])
        self.assertEqual([e["ph"] for e in self.events('{"ph":"X"}\n{"ph":"i"}\n')], ["X", "i"])

    def test_elements_that_are_no_events(self):
        self.assertEqual(self.events('[null,{"ph":"X"},5,"text",[1],{}]'), [{"ph": "X"}, {}])
        self.assertEqual(self.sums["others"], 4)

    def test_deep(self):
        deep = "[" * 5000 + "]" * 5000  # Python's parser does not go there
        path = self.file("x.json", f'[{{"ph":"X","args":{deep}}}]')
        subprocess.run([BIN, "merge", path, "-o", self.dir / "o.json"], check=True, capture_output=True)
        self.assertIn(deep.encode(), (self.dir / "o.json").read_bytes())


class Damaged(Case):
    def whole_events(self, text, cut):
        """Events that end before the cut."""
        at, found = text.index("[") + 1, []
        decoder = json.JSONDecoder()
        while True:
            match = re.compile(r"[\s,]*").match(text, at)
            at = match.end()
            if text[at] == "]":
                return found
            _, end = decoder.raw_decode(text, at)
            if end > cut:
                return found
            found.append(text[at:end])
            at = end

    def test_every_prefix(self):
        rng = random.Random(3)
        events = [text_of(rng, random_event(rng, False)) for _ in range(6)]
        text = '{"displayTimeUnit":"ns","traceEvents":[' + ",".join(events) + '],"after":{"x":1}}'
        other = self.file("b.json", '[{"ph":"X","pid":1,"ts":1}]')
        raw = text.encode()
        for cut in range(0, len(raw), 7):
            prefix = raw[:cut].decode(errors="ignore")
            merged = self.merge(self.file("a.json", raw[:cut]), other, "--no-labels")
            if "traceEvents" not in prefix or "[" not in prefix.split("traceEvents")[1]:
                self.assertEqual(self.sums["skipped_files"], 1)
                continue
            want = self.whole_events(text, len(prefix))
            self.assertEqual([e.text for e in merged.events[:-1]], want)
            self.assertEqual(self.sums["truncated_files"], 1)

    def test_damage_inside(self):
        events = [json.dumps({"ph": "X", "name": f"e{i}", "pid": 1, "ts": i}) for i in range(50)]
        events[20] = '{"ph":"X","name":"lost'
        merged = self.merge(self.file("a.json", "[" + ",\n".join(events) + "]"))
        names = [e.get("name") for e in merged.events]
        self.assertGreaterEqual(self.sums["damaged"], 1)
        self.assertEqual(names[:20] + names[-20:], [f"e{i}" for i in range(20)] + [f"e{i}" for i in range(30, 50)])
        self.assertIn("a.json", self.stderr)

    def test_random_damage(self):
        rng = random.Random(8)
        for _ in range(40):
            data = bytearray(random_trace(rng, small=True).encode())
            for _ in range(rng.randrange(1, 6)):
                if data:
                    data[rng.randrange(len(data))] = rng.randrange(256)
            self.merge(self.file("a.json", bytes(data)), self.file("b.json", '[{"ph":"X","ts":1}]'))

    def test_not_a_trace(self):
        good = self.file("a.json", '[{"ph":"X","ts":1}]')
        for data in ("hello", '{"nodes":[]}', b"\x0a\x05hello", "", '[{"a":1}]', '{"traceEvents":5}'):
            self.merge(good, self.file("b.bin", data))
            self.assertEqual(self.sums["skipped_files"], 1, data)
            self.assertIsNone(self.merge(self.file("b.bin", data), out="none.json", ok=(1,)))
            self.assertFalse((self.dir / "none.json").exists())
            self.assertEqual(self.stderr.count("b.bin"), 1, self.stderr)
        self.merge(good, self.dir / "missing.json", "--strict", ok=(3,))
        self.assertIn("missing.json", self.stderr)


class Names(Case):
    X = '{"ph":"X","name":"a","pid":1,"ts":1,"dur":1}'

    def labels(self, names, texts=None, options=()):
        for i, name in enumerate(names):
            self.file(name, texts[i] if texts else f"[{self.X}]")
        merged = self.merge(*(self.dir / n for n in names), *options)
        return [e.get("args")["name"] for e in merged.events if e.get("name") == "process_name"]

    def test_ranks_steps_and_files(self):
        self.assertEqual(self.labels(["rank9.json", "rank10.json"]), ["rank 09", "rank 10"])
        self.assertEqual(self.labels(["timeline_5.json", "timeline_6.json"]), ["step 5", "step 6"])
        self.assertEqual(self.labels(["rank0_step1.json", "rank0_step2.json"]), ["step 1", "step 2"])
        self.assertEqual(self.labels(["r/rank0_step1.json", "r/rank1_step1.json"]), ["rank 0", "rank 1"])
        self.assertEqual(self.labels(["u/rank0_step1.json", "u/rank0_step2.json", "u/rank1_step1.json"]),
                         ["rank 0 step 1", "rank 0 step 2", "rank 1 step 1"])
        self.assertEqual(self.labels(["cpu.json", "gpu.pt.trace.json"]), ["cpu", "gpu"])
        self.assertEqual(self.labels(["a/t.json", "b/t.json"]), ["a/t", "b/t"])

    def test_rank_of_the_content_wherever_it_stands(self):
        def text(rank):
            return f'{{"traceEvents":[{self.X}],"distributedInfo":{{"rank":{rank}}}}}'
        self.assertEqual(self.labels(["one.json", "two.json"], [text(3), text(12)]), ["rank 03", "rank 12"])

    def test_names_are_prefixed(self):
        named = '[{"ph":"M","name":"process_name","pid":1,"args":{ "name" : "pyt\\u0068on"}},' + self.X + "]"
        for i in range(2):
            self.file(f"rank{i}.json", named)
        merged = self.merge(self.dir / "rank0.json", self.dir / "rank1.json")
        self.assertEqual(self.sums["added"], 0)
        self.assertEqual(merged.events[0].raw["args"], '{ "name" : "rank 0 · pyt\\u0068on"}')
        self.assertEqual(merged.events[2].get("args"), {"name": "rank 1 · python"})
        self.assertNotEqual(merged.events[0].get("pid"), merged.events[2].get("pid"))

    def test_pids_that_do_not_clash_stay(self):
        texts = ['[{"ph":"X","pid":10,"ts":1},{"ph":"X","pid":"Spans","ts":1},{"ph":"X","pid":11,"ts":1}]',
                 '[{"ph":"X","pid":20,"ts":1},{"ph":"X","pid":"Spans","ts":1},{"ph":"X","pid":"11","ts":1}]']
        merged = self.merge(*(self.file(f"f{i}.json", t) for i, t in enumerate(texts)), "--no-labels")
        pids = [e.get("pid") for e in merged.events]
        self.assertEqual(pids[:4], [10, "Spans", 11, 20])
        self.assertEqual(len(set(pids)), 6)
        self.assertTrue(all(isinstance(p, int) for p in pids[4:]))

    def test_frames_and_samples(self):
        text = ('{"traceEvents":[{"ph":"X","pid":1,"ts":10,"dur":1,"sf":7,"esf":"8"}],"stackFrames":{"7":{"name":"m"},'
                '"8":{"name":"f","parent":7}},"samples":[{"cpu":0,"ts":12,"sf":8,"weight":1}]}')
        merged = self.merge(*(self.file(f"f{i}.json", text) for i in range(2)), "--align", "start")
        frames, samples = merged.others["stackFrames"], merged.others["samples"]
        self.assertEqual(len(frames), 4)
        for event in merged.events[:2]:
            leaf = frames[str(event.get("esf"))]
            self.assertEqual(frames[str(leaf["parent"])], frames[str(event.get("sf"))])
        self.assertEqual([s["ts"] for s in samples], [2, 2])
        self.assertEqual([frames[str(s["sf"])]["name"] for s in samples], ["f", "f"])

    def test_members(self):
        texts = [f'{{"schemaVersion":1,"metadata":{{"highres":true}},"traceName":"t{i}","env":{{"A":1}},'
                 f'"otherData":{{"HF_TOKEN":"s3cret","x":[{{"LD_LIBRARY_PATH":["s3cret"],"y":2}}]}},'
                 f'"traceEvents":[{self.X}]}}' for i in range(2)]
        merged = self.merge(*(self.file(f"f{i}.json", t) for i, t in enumerate(texts)))
        self.assertNotIn("s3cret", (self.dir / "all.json").read_text())
        self.assertEqual(self.sums["hidden"], 3)
        self.assertEqual(merged.others["schemaVersion"], 1)
        self.assertEqual(merged.others["metadata"]["highres"], True)
        self.assertEqual(merged.others["otherData"]["x"][0]["y"], 2)
        files = merged.others["metadata"]["opwatch-merge"]["files"]
        self.assertEqual([f["members"]["traceName"] for f in files], ["t0", "t1"])
        again = self.merge(self.dir / "all.json", self.file("f2.json", texts[0]), out="again.json")
        self.assertEqual(len(again.events), 5 + 1 - 1 + 1)


class Clocks(Case):
    def times(self, texts, *options):
        merged = self.merge(*(self.file(f"f{i}.json", t) for i, t in enumerate(texts)), *options, "--no-labels")
        return [e.raw["ts"] for e in merged.events], merged

    def test_base_before_and_behind(self):
        times, merged = self.times([
            '{"baseTimeNanoseconds":1759200000000000000,"traceEvents":[{"ph":"X","ts":10.500}]}',
            '{"traceEvents":[{"ph":"X","ts":10}],"baseTimeNanoseconds":1759200000000002001}'])
        self.assertEqual(times, ["10.500", "12.001"])
        self.assertEqual(merged.others["baseTimeNanoseconds"], 1759200000000000000)
        times, merged = self.times(['[{"ph":"X","ts":1759200000000010}]',
                                    '{"traceEvents":[{"ph":"X","ts":5.25}],"beginningOfTime":1759200000000000}'])
        self.assertEqual(times, ["1759200000000010", "1759200000000005.25"])
        self.assertNotIn("baseTimeNanoseconds", merged.others)

    def test_shorter_when_done_again(self):
        many = ",".join('{"ph":"X","ts":%d,"name":"%s"}' % (i, "n" * 90) for i in range(30000))
        times, _ = self.times([f'{{"traceEvents":[{many}],"baseTimeNanoseconds":123000}}', '[{"ph":"X","ts":1}]'])
        self.assertEqual((times[0], times[-1]), ("123", "1"))

    def test_zeros_that_mean_nothing(self):
        times, _ = self.times(['[{"ph":"X","ts":0},{"ph":"X","ts":1584128411446459},{"ph":"X","ts":1584128411446460}]'],
                              "--align", "start")
        self.assertEqual(times, ["0", "0", "1"])

    def test_exact(self):
        times, _ = self.times(['[{"ph":"X","ts":1712195495406752.797},{"ph":"X","ts":"1712195495406753.05799999999"},'
                               '{"ph":"X","ts":1.712195495406754e15},{"ph":"M","ts":0},{"ph":"X","ts":1712195495406752.7970}]'],
                              "--align", "start")
        self.assertEqual(times, ["0.000", '"0.26099999999"', "1.203", "0", "0.0000"])

    def test_entries(self):
        self.merge(self.file("a.json", '[{"ph":"C","name":"c","ts":100,"entries":[[100,1],[102.5,2]]}]'), "--align", "start")
        self.assertIn('"ts":0,"entries":[[0,1],[2.5,2]]', (self.dir / "all.json").read_text())

    def test_unrelated_clocks_are_told(self):
        self.times(['[{"ph":"X","ts":5}]', '[{"ph":"X","ts":1584128411446459}]'])
        self.assertTrue(self.sums["unrelated_clocks"])
        self.assertIn("--align", self.stderr)


class Filters(Case):
    def kept(self, text, *options, name="x.json"):
        merged = self.merge(self.file(name, text), *options)
        self.assertEqual(self.sums["events_in"], self.sums["events_out"] + self.sums["filtered"])
        return [e.get("name", e.get("ph")) for e in merged.events]

    def test_name_category_pid(self):
        text = ('[{"ph":"M","name":"process_name","pid":1,"args":{"name":"p"}},{"ph":"M","name":"thread_name","pid":2,"args":{}},'
                '{"ph":"X","name":"aten::add","cat":"cpu_op","pid":1,"ts":1},{"ph":"X","name":"aten::m\\u0075l","pid":2,"ts":2},'
                '{"ph":"i","name":"mark","cat":"x,cpu_op","pid":"2","ts":3},{"ph":"C","name":"mem","pid":3,"ts":4},{}]')
        meta = ["process_name", "thread_name"]
        self.assertEqual(self.kept(text, "--keep-name", "aten::.*"), meta + ["aten::add", "aten::mul"])
        self.assertEqual(self.kept(text, "--keep-name", "add|m.*", "--keep-name", "aten::add"), meta + ["aten::add", "mark", "mem"])
        self.assertEqual(self.kept(text, "--keep-category", "cpu_op"), meta + ["aten::add", "mark"])
        self.assertEqual(self.kept(text, "--keep-pid", "2,3"), ["thread_name", "aten::mul", "mark", "mem"])
        self.assertEqual(self.kept(text, "--keep-pid", "[13]"), ["process_name", "aten::add", "mem"])
        self.assertEqual(self.kept(text, "--keep-name", ".*", "--keep-time", "0:2us"), meta + ["aten::add", "aten::mul"])
        run = subprocess.run([BIN, "merge", self.dir / "x.json", "-o", self.dir / "y.json", "--keep-name", "(a"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertFalse((self.dir / "y.json").exists())

    def test_ends_follow_beginnings(self):
        text = ('[{"ph":"B","name":"outer","pid":1,"tid":1,"ts":0},{"ph":"B","name":"in","pid":1,"tid":1,"ts":1},'
                '{"ph":"B","name":"in","pid":1,"tid":2,"ts":1},{"ph":"E","pid":1,"tid":1,"ts":2},{"ph":"E","pid":1,"tid":1,"ts":9},'
                '{"ph":"E","name":"in","pid":1,"tid":2,"ts":3},{"ph":"E","pid":1,"tid":2,"ts":4},'
                '{"ph":"b","cat":"c","id":1,"name":"req","ts":1},{"ph":"n","cat":"c","id":1,"name":"in","ts":2},'
                '{"ph":"e","cat":"c","id":1,"name":"req","ts":5}]')
        def phs(*options):
            merged = self.merge(self.file("x.json", text), *options)
            return "".join(e.get("ph") + str(e.get("ts")) for e in merged.events)
        self.assertEqual(phs("--keep-name", "outer"), "B0E9")
        self.assertEqual(phs("--keep-name", "in"), "B1B1E2E3n2")
        self.assertEqual(phs("--keep-name", "req"), "b1e5")
        # from 4 on: what lasts until then is there with both its ends
        self.assertEqual(phs("--keep-time", "4us:"), "B0E9E4b1e5")
        self.assertEqual(phs("--keep-time", "6us:8us"), "B0E9")

    def test_time_against_the_slow_way(self):
        for seed in range(30):
            rng = random.Random(seed)
            start = 1584128411446459
            events = []
            for i in range(200):
                events.append({"ph": rng.choice("XXXiC"), "name": f"n{i}", "pid": 1, "ts": start + rng.randrange(1000)})
                if events[-1]["ph"] == "X":
                    events[-1]["dur"] = rng.choice([0, 1, 50, 500])
            first = min(e["ts"] for e in events)
            a, b = sorted(rng.sample(range(1000), 2))
            def wanted(e):
                t, d = e["ts"] - first, e.get("dur", 0)
                return t < b and t + d > a if d else a <= t < b
            got = self.kept(json.dumps(events), "--keep-time", f"{a}us:{b}us")
            self.assertEqual(got, [e["name"] for e in events if wanted(e)])

    def test_steps(self):
        def step(n, ts, cat="user_annotation"):
            return {"ph": "X", "name": f"ProfilerStep#{n}", "cat": cat, "pid": 1, "ts": ts, "dur": 10}
        events = [step(1, 0), step(2, 10), step(3, 20), step(1, 60, "gpu_user_annotation")]
        events += [{"ph": "X", "name": f"op{t}", "pid": 1, "ts": t, "dur": 2} for t in (1, 9, 15, 25, 40, 61)]
        text = json.dumps(events)
        self.assertEqual(self.kept(text, "--keep-step", "2"), ["ProfilerStep#2", "op9", "op15"])
        self.assertEqual(self.kept(text, "--keep-step", "2-3"), ["ProfilerStep#2", "ProfilerStep#3", "op9", "op15", "op25"])
        self.assertEqual(self.kept(text, "--keep-step", "9"), [])
        files = [self.file(f"timeline-{n}.json", '[{"ph":"X","name":"s%d","ts":1}]' % n) for n in (100, 200, 300)]
        merged = self.merge(*files, "--keep-step", "150-300", "--no-labels")
        self.assertEqual([e.get("name") for e in merged.events], ["s200", "s300"])


class Whole(Case):
    """The file is there whole, or not at all."""
    FILES = 12

    def big(self):
        event = ",".join(json.dumps({"ph": "X", "name": "n" * 60, "pid": 1, "ts": i}) for i in range(100000))
        return [self.file(f"in/big{i}.json", f"[{event}]") for i in range(self.FILES)]

    def left(self):
        return sorted(p.name for p in self.dir.iterdir())

    def writing(self, run):
        """The output is open: it has no name before it is whole where the file system can do that."""
        if len(self.left()) > 1:
            return True
        try:
            fds = [os.readlink(f.path) for f in os.scandir(f"/proc/{run.pid}/fd")]
        except OSError:
            return False
        return any(f.startswith(str(self.dir.resolve())) and "/in/" not in f for f in fds)

    def interrupted(self, number):
        """A merge that was faster than the signal leaves a whole file; then another one is interrupted."""
        files = self.big()
        patience.until(lambda: self.interrupt_one(files, number), "every merge is faster than the signal")
        self.assertEqual(self.left(), ["in"])

    def interrupt_one(self, files, number):
        run = subprocess.Popen([BIN, "merge", *files, "-o", self.dir / "all.json"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        patience.until(lambda: run.poll() is not None or self.writing(run), "the merge does not begin", pause=0.001)
        run.send_signal(number)
        run.communicate()
        if self.left() == ["all.json", "in"]:
            whole = Trace((self.dir / "all.json").read_bytes()).events
            self.assertEqual(sum(e.get("ph") == "X" for e in whole), self.FILES * 100000)
            (self.dir / "all.json").unlink()
            return False
        self.assertEqual(run.returncode, -number)
        return True

    def test_interrupt(self):
        self.interrupted(signal.SIGINT)

    def test_terminate(self):
        self.interrupted(signal.SIGTERM)

    def test_failure_leaves_the_old_file(self):
        path = self.file("a.json", '[{"ph":"X","ts":1}]')
        self.file("all.json", "old")
        run = subprocess.run([BIN, "merge", path, "-o", self.dir / "all.json", "--keep-name", "("], capture_output=True)
        self.assertEqual((run.returncode, (self.dir / "all.json").read_text()), (2, "old"))
        run = subprocess.run([BIN, "merge", path, "-o", self.dir / "no/such/all.json"], capture_output=True)
        self.assertEqual(run.returncode, 1)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full")
    def test_full_disk(self):
        path = self.file("a.json", '[{"ph":"X","ts":1}]')
        run = subprocess.run([BIN, "merge", path, "-o", "/dev/full"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1)
        self.assertIn("No space left", run.stderr)
        run = subprocess.run(["sh", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "sh", BIN, "merge", *map(str, self.big()),
                              "-o", str(self.dir / "all.json")], capture_output=True, text=True)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertEqual(self.left(), ["a.json", "in"])

    def test_onto_an_input(self):
        path = self.file("a.json", '[{"ph":"X","ts":1}]')
        before = path.read_bytes()
        run = subprocess.run([BIN, "merge", path, self.file("b.json", path.read_text()), "-o", path], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn("would be overwritten", run.stderr)
        self.assertEqual(path.read_bytes(), before)

    def test_given_twice(self):
        path = self.file("a.json", '[{"ph":"X","ts":1}]')
        (self.dir / "link.json").symlink_to("a.json")
        out = self.dir / "all.json"
        run = subprocess.run([BIN, "merge", self.dir, path, self.dir / "link.json", "-o", out], capture_output=True, text=True)
        self.assertIn(f"{path}: given more than once, merged once", run.stderr)
        self.assertEqual(len([e for e in Trace(out.read_bytes()).events if e.get("ph") == "X"]), 1)

    def test_memory_stays(self):
        files = self.big()
        run = subprocess.run([BIN, "merge", *files, "-o", self.dir / "all.json", "--memory-limit", "30M"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
