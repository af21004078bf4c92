#!/usr/bin/python3
"""--redact hides every name: profiles of all kinds, in which each name that a user can choose contains one marker word, go through all
commands and all forms of output, and the marker is in none of them. What each output has without --redact is checked as well, or
the test would prove nothing."""
import base64
import gzip
import json
import os
import pathlib
import pickle
import random
import re
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", "."))
sys.path[:0] = [str(SRC / "tests"), str(SRC / "tests/support")]
from support import asked, nsys_export, patience, torch_snapshot  # noqa: E402
from support.pb_write import fixed32, num, some, sub  # noqa: E402
from support.tfprof_checkpoint import masked_crc  # noqa: E402

BIN = os.path.abspath(os.environ.get("OPWATCH_BIN", "build/release/opwatch"))
MARK = "qzmarkq"
FRAMEWORK = re.compile(r"ProfilerStep#|cuda[A-Z]|aten::|nccl|Memcpy|compile_fx|ac2g")


def named(text):
    return f"{MARK}_{text}"


# ---- files in which every name has the marker ----

def trace(path, rank, slower=0):
    events = asked.events(slower, rank)
    for n, event in enumerate(events):
        if event["name"].startswith("train.py"):
            event["name"] = f"/home/{MARK}/{MARK}.py({10 + n % 3}): {MARK}_step"
        elif not FRAMEWORK.match(event["name"]):
            event["name"] = named(event["name"])
        if event["ph"] == "X":
            event["args"].update({f"{MARK}_key": f"{MARK} value", "Call stack": f"/srv/{MARK}.py({n}): {MARK}_f;{MARK}.py(3): {MARK}_g",
                                  "Module Hierarchy": f"{MARK}.layer.{MARK}", "list": [MARK, {MARK: [MARK]}]})
        if event["name"].startswith("nccl"):
            event["args"].update({"Process Group Name": "0", "Process Group Description": f"{MARK}_group", "Collective name": "allreduce",
                                  "In msg nelems": 1000, "Out msg nelems": 1000, "Group size": 2, "dtype": "Float", "Seq": n})
        if event["ph"] == "C":
            event["args"] = {f"{MARK}_value": event["args"]["value"]}
    events += [{"ph": "i", "s": "t", "name": f"{MARK} tick é", "pid": 1, "tid": 1, "ts": 13, "args": {"x": MARK}},
               {"ph": "b", "cat": "async", "id": f"{MARK}7", "name": named("async"), "pid": 1, "tid": 1, "ts": 15},
               {"ph": "e", "cat": "async", "id": f"{MARK}7", "name": named("async"), "pid": 1, "tid": 1, "ts": 25},
               {"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": 1, "tid": 1, "ts": 16,
                "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096, "Bytes": 512, "Total Allocated": 512, "Total Reserved": 2048}},
               {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": f"python /home/{MARK}/train.py --secret={MARK}"}},
               {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": f"{MARK} loader"}},
               {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
               {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}}]
    document = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100"}], "hostname": f"{MARK}-host-3", "traceName": f"/data/{MARK}.json",
                "otherData": {"user": MARK, "command": f"python {MARK}.py"}, f"{MARK}_more": {MARK: MARK},
                "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2, "hostname": f"{MARK}-host",
                                    "pg_config": [{"pg_name": "0", "pg_desc": f"{MARK}_group", "ranks": [0, 1]}]}, "traceEvents": events}
    path.write_text(json.dumps(document))


def folded(path):
    path.write_text("".join(f"{MARK}_main;{MARK}::run (/home/{MARK}/a.py:{n});{MARK}_leaf{n} {n + 1}\n" for n in range(5)))


def perf_script(path):
    path.write_text("".join(f"{MARK} {4000 + n}/{4100 + n} [000] {100 + n}.000123: 100000 cycles:\n"
                            f"\t7f0000001000 {MARK}_leaf+0x1 (/opt/{MARK}/lib{MARK}.so)\n\t7f0000002000 {MARK}_main+0x2 (/opt/{MARK}/{MARK})\n\n"
                            for n in range(4)))


def speedscope(path):
    frames = [{"name": named(f"f{n}"), "file": f"/home/{MARK}/x.py", "line": n} for n in range(3)]
    path.write_text(json.dumps({"$schema": "https://www.speedscope.app/file-format-schema.json", "name": named("all"), "exporter": named("tool"),
                                "shared": {"frames": frames}, "profiles": [{"type": "sampled", "name": named("thread"), "unit": "milliseconds",
                                "startValue": 0, "endValue": 5, "samples": [[0, 1], [0, 2], [0, 1, 2]], "weights": [1, 2, 2]}]}))


def cpuprofile(path):
    call = {"functionName": named("fn"), "scriptId": "1", "url": f"file:///home/{MARK}/a.js", "lineNumber": 3, "columnNumber": 1}
    root = dict(call, functionName="(root)", url="")
    path.write_text(json.dumps({"nodes": [{"id": 1, "callFrame": root, "children": [2]}, {"id": 2, "callFrame": call, "hitCount": 3}],
                                "startTime": 0, "endTime": 300, "samples": [2, 2, 2], "timeDeltas": [100, 100, 100], "title": MARK}))


def pprof(path):
    texts = ["", "samples", "count", named("metric"), "nanoseconds", named("f"), named("g"), f"/home/{MARK}/x.go", f"/opt/{MARK}/bin", f"{MARK}_label",
             f"{MARK} value", f"{MARK} comment"]
    content = b"".join(sub(1, some(1, a) + some(2, b)) for a, b in ((1, 2), (3, 4)))
    content += b"".join(sub(2, sub(1, b"\1\2") + sub(2, bytes((n, 9 * n))) + sub(3, some(1, 9) + some(2, 10))) for n in (1, 2, 3))
    content += sub(3, num(1, 1) + num(2, 4096) + num(3, 8192) + some(5, 8))
    content += b"".join(sub(4, num(1, n) + num(2, 1) + num(3, 4096 + n) + sub(4, num(1, n) + num(2, 3))) for n in (1, 2))
    content += b"".join(sub(5, num(1, n) + some(2, 4 + n) + some(3, 4 + n) + some(4, 7)) for n in (1, 2))
    content += b"".join(sub(6, t.encode()) for t in texts) + num(13, 11)
    path.write_bytes(gzip.compress(content))


def memory(path):
    rng = random.Random(7)
    frames = [[{"filename": f"/home/{MARK}/model.py", "line": 10 + n, "name": named(f"forward{n}")},
               {"filename": f"/home/{MARK}/train.py", "line": 77, "name": named("main")}] for n in range(4)]
    device = torch_snapshot.Device(rng, 0, [1000], frames)
    for _ in range(40):
        device.alloc()
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [device.trace], "external_annotations": [{"name": MARK, "time_us": 1200, "device": 0}]}))


def graph(path):
    nodes = [("a", "Placeholder", ()), ("layer/w", "VariableV2", ()), ("layer/mm", "MatMul", ("a", "layer/w")), ("loss", "Softmax", ("layer/mm",))]
    path.write_text("".join(f'node {{ name: "{named(name)}" op: "{op}" ' + "".join(f'input: "{named(i)}" ' for i in inputs) +
                            'attr { key: "dtype" value { type: DT_FLOAT } } ' + f'attr {{ key: "{MARK}_attr" value {{ s: "{MARK}" }} }} }}\n'
                            for name, op, inputs in nodes))


def run_metadata(path):
    def node(name, start, dur):
        return sub(2, sub(1, named(name).encode()) + num(2, start) + num(4, dur) + num(5, dur) + sub(8, f"{named(name)} = MatMul({MARK}_in, {MARK})".encode()))
    device = sub(1, b"/job:localhost/replica:0/task:0/device:CPU:0") + node("layer/mm", 1000000, 50) + node("loss", 1000060, 20)
    path.write_bytes(sub(1, sub(1, device)))


def nsys(path):
    nsys_export.write(str(path), launches=20)
    with sqlite3.connect(str(path)) as db:
        db.execute(f"UPDATE StringIds SET value = '{MARK}_' || value WHERE value NOT LIKE 'cuda%' AND value NOT LIKE 'cu%' AND value NOT LIKE 'nccl%'")


def xspace(path):
    def entry(key, content):
        return num(1, key) + sub(2, num(1, key) + content)
    texts = [named("mm"), named("scope/add"), f"{MARK}_step"]
    plane = num(1, 1) + sub(2, b"/host:CPU")
    plane += b"".join(sub(4, entry(n + 1, sub(2, text.encode()) + sub(4, text.encode()))) for n, text in enumerate(texts))
    plane += b"".join(sub(5, entry(n + 1, sub(2, text.encode()))) for n, text in enumerate(["tf_op", f"{MARK}_stat", "source"]))
    events = b"".join(sub(4, num(1, n % 3 + 1) + num(2, 1000000 * n) + num(3, 900000) + sub(4, num(1, 1) + sub(5, f"{MARK}/x:MatMul".encode())) +
                          sub(4, num(1, 2) + sub(5, MARK.encode())) + sub(4, num(1, 3) + sub(5, f"/home/{MARK}/a.py:3".encode()))) for n in range(9))
    plane += sub(3, num(1, 7) + sub(2, f"{MARK} thread".encode()) + num(3, 1000) + events)
    path.write_bytes(sub(1, plane) + sub(2, f"{MARK} failed".encode()) + sub(3, f"{MARK} is old".encode()) + sub(4, f"{MARK}-host".encode()))


def marked(value, key=""):
    """A document with the marker in every text of these keys."""
    if isinstance(value, dict):
        return {name: marked(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [marked(item, key) for item in value]
    if isinstance(value, str) and key in ("stringArray", "stringTable", "name", "processName", "url", "path", "debugPath", "title"):
        return named(value)
    return value


def firefox(path):
    path.write_text(json.dumps(marked(json.loads((SRC / "tests/fuzz/seeds/firefox/raw.json").read_text()))))


def legacy(path):
    path.write_text(f"heap profile: 2: 2048 [3: 4096] @ heapprofile\n 1: 1024 [2: 2048] @ 0x401000 0x402000\n 1: 1024 [1: 2048] @ 0x401800\n\n"
                    f"MAPPED_LIBRARIES:\n00400000-00500000 r-xp 00000000 08:01 1234 /opt/{MARK}/lib{MARK}.so\n")


def scalars(path):
    records = []
    for step in range(5):
        value = sub(1, f"{MARK}/loss".encode()) + fixed32(2, 0x3f000000)
        event = b"\x09" + struct.pack("<d", 1.7e9 + step) + num(2, step + 1) + sub(5, sub(1, value))
        length = struct.pack("<Q", len(event))
        records.append(length + struct.pack("<I", masked_crc(length)) + event + struct.pack("<I", masked_crc(event)))
    path.write_bytes(b"".join(records))


def saved_model(path):
    node = b"".join(sub(1, sub(1, named(name).encode()) + sub(2, op)) for name, op in (("a", b"Placeholder"), ("b/c", b"MatMul")))
    path.write_bytes(num(1, 1) + sub(2, sub(1, sub(4, b"serve")) + sub(2, node)))


def recording(path):
    program = path.parent / f"{MARK}_job.py"
    program.write_text(f"import threading\n\ndef {MARK}_read():\n    for _ in range(20):\n        open(__file__).read()\n"
                       f"t = threading.Thread(target={MARK}_read, name='{MARK}')\nt.start()\nt.join()\n")
    subprocess.run([BIN, "record", "--stacks", "-o", path, "--", "/usr/bin/python3", program, f"--token={MARK}"], capture_output=True, check=True)


KINDS = {"trace": ("a.pt.trace.json", lambda p: trace(p, 0)), "folded": ("a.folded", folded), "perf_script": ("a.perf", perf_script),
         "speedscope": ("a.speedscope.json", speedscope), "cpuprofile": ("a.cpuprofile", cpuprofile), "pprof": ("a.pb.gz", pprof),
         "torch_memory": ("a.pickle", memory), "graph": ("a.pbtxt", graph), "runmeta": ("a.run_metadata", run_metadata), "nsys": ("a.sqlite", nsys), "xspace": ("a.xplane.pb", xspace), "firefox": ("a.firefox.json", firefox), "legacy": ("a.heap", legacy),
         "scalars": ("events.out.tfevents.1", scalars), "saved": ("saved_model.pb", saved_model), "recording": ("live.opw", recording)}


# ---- looking ----

def unpacked(data):
    """The bytes, and what is packed in them: gzip, base64 of gzip, escaped and encoded texts."""
    yield data
    if data[:2] == b"\x1f\x8b":
        yield from unpacked(gzip.decompress(data))
    for packed in re.findall(rb"H4sI[A-Za-z0-9+/=]{20,}", data):
        yield gzip.decompress(base64.b64decode(packed))
    if b"%" in data:
        yield urllib.parse.unquote_to_bytes(data)
    if b"\\u00" in data:
        yield re.sub(rb"\\u00([0-7][0-9a-f])", lambda m: bytes.fromhex(m[1].decode()), data)


def around(data):
    """Where the marker is, or None."""
    for content in unpacked(data):
        for form in (MARK.encode(), MARK.encode("utf-16-le"), MARK[::-1].encode()):
            at = content.lower().find(form)
            if at >= 0:
                return content[max(0, at - 60):at + 60]
    return None


class Marked(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.held.cleanup)
        cls.root = pathlib.Path(cls.held.name)
        cls.inputs = cls.root / MARK
        cls.inputs.mkdir()
        cls.paths = {}
        for kind, (name, write) in KINDS.items():
            cls.paths[kind] = cls.inputs / f"{MARK}_{name}"
            write(cls.paths[kind])
        cls.ranks = [cls.inputs / f"{MARK}_rank{rank}.json" for rank in (0, 1)]
        for rank, path in enumerate(cls.ranks):
            trace(path, rank)
        cls.slower = cls.inputs / f"{MARK}_slower.json"
        trace(cls.slower, 0, slower=300)
        cls.tables = [t.split(":")[0].split()[0] for t in cls.run_bare("sql", ".tables").stdout.decode().splitlines() if t.strip()]
        found = cls.run_bare("sql", cls.paths["trace"], "SELECT 1 AS a")
        cls.has_sql = found.returncode == 0

    @staticmethod
    def run_bare(*words, stdin=None):
        return subprocess.run([BIN, *map(str, words)], capture_output=True, input=stdin, cwd=tempfile.gettempdir())

    def hidden(self, *words, stdin=None, files=(), there=None, may_fail=False):
        """Runs the command with --redact: the marker is not in its output. With there=True it is without --redact."""
        done = self.run_bare(*words, "--redact", stdin=stdin)
        text = done.stdout + done.stderr if done.returncode < 0 else done.stdout
        self.assertGreaterEqual(done.returncode, 0, (words, done.stderr))
        if not may_fail:
            self.assertEqual(done.returncode, 0, (words, done.stderr))
        self.assertIsNone(around(text), (words, around(text)))
        for path in files:
            found = [p for p in ([path] if path.is_file() else path.rglob("*")) if p.is_file()]
            for p in found:
                self.assertIsNone(around(p.read_bytes()), (words, p.name, around(p.read_bytes())))
                self.assertNotIn(MARK, str(p.relative_to(self.root)).lower())
        if there:
            bare = self.run_bare(*words, stdin=stdin)
            self.assertIsNotNone(around(bare.stdout), (words, "has no name even without --redact"))
        return done

    # ---- views ----

    def views(self):
        text = self.run_bare("--help").stdout.decode()
        return re.findall(r"^  ([a-z_]+) ", text[text.index("Views, which"):], re.M)

    def test_every_view_of_every_kind(self):
        views = self.views()
        self.assertGreater(len(views), 15)
        named_views = set()
        for kind, path in self.paths.items():
            for view in ["overview", "info", "advise", "memory", *views]:
                with self.subTest(kind=kind, view=view):
                    self.hidden(view, path, "--json", may_fail=True)
            for view in ("overview", "op", "functions", "sources", "tracks"):
                with self.subTest(kind=kind, view=view):
                    self.hidden(view, path, "--no-pager", "-v", may_fail=True)
                    bare = self.run_bare(view, path, "--no-pager")
                    if around(bare.stdout):
                        named_views.add((kind, view))
        self.assertGreaterEqual(len({kind for kind, _ in named_views}), len(KINDS), "a kind shows no name at all")

    def test_every_output_of_a_view(self):
        outputs = re.findall(r"^  ([a-z]+) ", re.split(r"Outputs[^\n]*\n", self.run_bare("formats").stdout.decode())[1], re.M)
        self.assertIn("flamegraph", outputs)
        for kind in ("trace", "folded", "pprof", "graph", "runmeta", "torch_memory"):
            for view in ("op", "code", "functions", "roofline", "memory_time", "scope"):
                for to in outputs:
                    if to in ("json", "parquet", "junit", "github", "sarif"):
                        continue
                    out = self.root / "view.out"
                    out.unlink(missing_ok=True)
                    with self.subTest(kind=kind, view=view, to=to):
                        self.hidden(view, self.paths[kind], "--to", to, "-o", out, files=[out] if out.exists() else [], may_fail=True)
                        if out.exists():
                            self.assertIsNone(around(out.read_bytes()), around(out.read_bytes()))

    def test_conversions(self):
        for kind, path in self.paths.items():
            for to, name in (("opw", "x.opw"), ("timeline", "x.json"), ("folded", "x.folded"), ("pprof", "x.pb.gz"), ("flamegraph", "x.svg")):
                out = self.root / name
                out.unlink(missing_ok=True)
                with self.subTest(kind=kind, to=to):
                    self.run_bare("convert", path, "--to", to, "-o", out, "--redact")
                    if out.exists():
                        self.assertIsNone(around(out.read_bytes()), around(out.read_bytes()))
                        if to == "opw":
                            self.assertIsNone(around(self.run_bare("op", out, "--json").stdout))
                    if to == "opw":
                        self.assertTrue(out.exists())
            plain = self.root / f"{MARK}_{kind}.opw"  # a file of ours with its names, redacted when it is read
            self.run_bare("convert", path, "-o", plain)
            with self.subTest(kind=kind, to="opw again"):
                self.hidden("op", plain, "--json", may_fail=True)
                self.hidden("sources", plain, "--json")
            plain.unlink()

    # ---- commands of several files ----

    def test_comparisons_and_ranks(self):
        pair = [self.paths["trace"], self.slower]
        for to in ("text", "json", "markdown", "junit", "github", "sarif", "csv"):
            with self.subTest(to=to):
                self.hidden("diff", *pair, "--to", to, there=to in ("text", "json", "markdown"))
                self.hidden("diff", *pair, "--to", to, "--fail-if", "step_time > 3%", may_fail=True)
                self.hidden("diff", "--base", pair[0], "--new", pair[1], "--to", to)
        for to in ("text", "json", "csv", "markdown"):
            with self.subTest(to=to):
                self.hidden("advise", *self.ranks, "--to", to, may_fail=True)
                self.hidden("ranks", *self.ranks, "--to", to, may_fail=True, there=to in ("text", "json"))
                self.hidden("path", self.ranks[0], "--to", to, may_fail=True)
                self.hidden("path", *self.ranks, "--to", to, may_fail=True)
        for change in ("input=0", "kernel:.*gemm*0.5", "op:.*=0", "launch=0", "rank:1=median", "fuse:.*"):
            for form in ((), ("--json",)):
                with self.subTest(change=change):
                    self.hidden("what-if", *self.ranks, change, *form, may_fail=True)
                    self.hidden("what-if", self.ranks[0], change, *form, may_fail=True)
        with tempfile.TemporaryDirectory() as kept:
            for redact in ((), ("--redact",)):
                place = pathlib.Path(kept, f"kept{len(redact)}")
                added = self.run_bare("baseline", "add", place, self.paths["trace"], *redact)
                self.assertEqual(added.returncode, 0, added.stderr)
                files = [path for path in place.rglob("*") if path.is_file()]
                found = {path.suffix for path in files if around(path.read_bytes())}
                self.assertEqual(found, set() if redact else {".opw", ".run"}, "what has names")
                self.assertNotIn(MARK, " ".join(path.name for path in files))
                host = socket.gethostname()
                self.assertEqual(f"host {host}\n" in "".join(path.read_text() for path in files if path.suffix == ".run"), not redact)
                listed = self.run_bare("baseline", "list", place, "--json").stdout
                self.assertEqual(around(listed) is None, bool(redact))

    def test_merge(self):
        for name in ("all.json", "all.json.gz", "-"):
            out = self.root / name
            self.hidden("merge", *self.ranks, "-o", out if name != "-" else "-", files=[out] if name != "-" else [], there=name == "-")
            if name != "-":
                self.assertIsNone(around(out.read_bytes()), around(out.read_bytes()))

    def test_report_and_page(self):
        out = self.root / "report.html"
        for paths in ([self.paths["trace"]], self.ranks, [self.paths["folded"]], [self.paths["torch_memory"]], [self.paths["runmeta"], self.paths["graph"]]):
            done = self.run_bare("report", *paths, "--redact", "-o", out)
            if done.returncode and b"page" in done.stderr:
                self.skipTest("no page in this build")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIsNone(around(out.read_bytes()), (paths, around(out.read_bytes())))
            out.unlink()
        server = subprocess.Popen([BIN, "ui", *map(str, self.ranks), "--redact", "--no-browser", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        line = b""
        while b"#t=" not in line:
            line = server.stdout.readline()
            self.assertTrue(line, "the server does not start")
        address, token = re.search(rb"(http://\S+?)/?#t=([0-9a-f]+)", line).groups()
        code = (SRC / "src/page").rglob("*.c")
        routes = sorted({r for path in code for r in re.findall(r'"(/api/[a-z_/]+)"', path.read_text())})
        self.assertGreater(len(routes), 5)
        asked_for = [f"/api/view?name={view}" for view in self.views()] + routes
        answered = 0
        for route in asked_for:
            request = urllib.request.Request(address.decode() + route, headers={"X-Opwatch-Token": token.decode()})
            try:
                with urllib.request.urlopen(request, timeout=patience.PATIENCE) as answer:
                    content = answer.read()
                    answered += 1
            except urllib.error.HTTPError as e:
                content = e.read()
            except (TimeoutError, urllib.error.URLError):
                continue
            self.assertIsNone(around(content), (route, around(content)))
        self.assertGreater(answered, 15)

    # ---- tables ----

    def test_tables(self):
        if not self.has_sql:
            self.skipTest("no SQL in this build")
        self.assertGreater(len(self.tables), 25)
        for kind, path in self.paths.items():
            query = ";".join(f"SELECT * FROM {table}" for table in self.tables)
            with self.subTest(kind=kind):
                self.hidden("sql", path, query, "--json", there=True)
                self.hidden("export", path, "--to", "ndjson", "-o", self.root / f"out-{kind}", files=[self.root / f"out-{kind}"])
                self.assertIsNone(around(b"".join(p.read_bytes() for p in (self.root / f"out-{kind}").rglob("*") if p.is_file())))
        for to, more in (("csv", ()), ("arrow", ()), ("parquet", ("--compress", "none")), ("parquet", ("--compress", "none", "--partition", "run", "--bigquery"))):
            out = self.root / f"tables-{to}{len(more)}"
            self.hidden("export", *self.ranks, self.slower, "--to", to, "-o", out, *more)
            self.assertGreater(len([p for p in out.rglob("*") if p.is_file()]), 20)
            for p in out.rglob("*"):
                self.assertNotIn(MARK, str(p.relative_to(out)))
                if p.is_file():
                    self.assertIsNone(around(p.read_bytes()), (to, p.name, around(p.read_bytes())))
        for form in ("csv", "ndjson", "arrow", "parquet"):
            out = self.root / f"event.{form}"
            self.hidden("sql", self.paths["trace"], "SELECT * FROM trace_events", f"--{form}", "-o", out)
            self.assertIsNone(around(out.read_bytes()), form)

    def test_questions(self):
        if not self.has_sql:
            self.skipTest("no SQL in this build")
        names = [q["name"] for q in json.loads(self.run_bare("ask", "--json").stdout)]
        shown = 0
        for name in names:
            with self.subTest(name):
                if name.startswith("compare"):
                    self.hidden("ask", name, self.paths["trace"], self.slower, "--json")
                    continue
                done = self.hidden("ask", name, *(self.ranks if name.startswith("rank") else self.ranks[:1]), "--json")
                shown += bool(json.loads(done.stdout)["rows"])
        self.assertGreater(shown, 15)

    def test_shell(self):
        words = b"op\nfunctions\nsources\ntracks\nsteps\nadvise\nmemory\noverview\nsql SELECT * FROM event LIMIT 5\n"
        self.hidden("shell", self.paths["trace"], stdin=words, may_fail=True, there=True)
        self.hidden("shell", self.paths["folded"], stdin=words, may_fail=True)

    def test_nsys_stats(self):
        for form in ((), ("--json",), ("--csv",)):
            self.hidden("nsys-stats", self.paths["nsys"], *form, may_fail=True)


if __name__ == "__main__":
    unittest.main()
