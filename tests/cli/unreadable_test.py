#!/usr/bin/python3
"""Files of formats that opwatch does not read: each is named by its content, with what to do instead.

The beginnings below are written as the named programs write them. A renamed file, one inside gzip and one larger than the part that is
looked at give the same answer."""
import gzip
import json
import marshal
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "tests/support"))
import nsys_export  # noqa: E402

OPWATCH = os.environ["OPWATCH_BIN"]


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def tensorflow_stats(number):
    record = b"\x08\x01" + field(2, b"Host") + field(3, b"MatMul") + field(4, b"model/MatMul") + b"\x28\x07"
    return field(number, field(1, record) * 40)


def chakra(version):
    metadata = field(1, version)
    return varint(len(metadata)) + metadata + b"\x08\x08\x01\x12\x04node"


def cprofile():
    return marshal.dumps({("train.py", 3, "step"): (1, 1, 0.5, 0.5, {})})


PAD = {f"k{i}": "x" * 1000 for i in range(200)}  # behind what is looked at
JSON = {
    "rocprofv3": ({"rocprofiler-sdk-tool": [{"metadata": {}, **PAD}]}, "traceconv json"),
    "torch execution trace": ({"schema": "1.1.1-chakra.0.0.4", "pid": 3, "time": "x", "start_ts": 1,
                               "nodes": [{"name": "[pytorch]", **PAD}]}, "Kineto"),
    "pyinstrument": ({"start_time": 1.5, "duration": 2.0, "sample_count": 3, "target_description": "x", "cpu_time": 1.0,
                      "root_frame": {"function": "<module>", **PAD}}, "-r speedscope"),
    "pyinstrument session": ({"session": {"start_time": 1}, "frame_tree": {**PAD}}, "-r speedscope"),
    "stackprof": ({"version": 1.2, "mode": "wall", "interval": 1000, "samples": 15, "gc_samples": 0,
                   "missed_samples": 0, "frames": {**PAD}}, "--stackcollapse"),
    "straggler analysis": ({"job_meta": {"trial_name": "AR"}, "step_t_base": {"16": 46.67}, **PAD}, "opwatch ranks"),
    "straggler analysis ": ({"trem": 46.3, "tadd": 23.5, "tori": 46.3, "tideal": 23.4, "rem": -0.1, "add": 0.1, "Ms": -0.1}, "opwatch ranks"),
    "thread trace": ({"code": [["; fill", 0, 0, "", 1, 18432, 0, 0]], "header": "ISA, _, LineNumber", "version": "3.0.0"}, "traceconv json"),
    "thread trace ": ({"duration": 40196, "name": "SE0", "num_insts": 2502, "num_stitched": 2502, "wave": {"begin": 1}}, "traceconv json"),
    "Scalene": ({"alloc_samples": 1, "args": [], "elapsed_time_sec": 2.5, "files": {**PAD}}, "py-spy"),
    "DHAT": ({"dhatFileVersion": 2, "mode": "heap", "verb": "Allocated", "pps": [PAD]}, "jemalloc"),
    "OpenTelemetry": ({"resourceSpans": [{"resource": {}, **PAD}]}, "opwatch record"),
    "Triton": ([{"id": 1, "model_name": "simple", "model_version": 1},
                {"id": 1, "timestamps": [{"name": "REQUEST_START", "ns": 1}]}, PAD], "nsys"),
    "GHC": ({"program": "x", "arguments": [], "rts_arguments": ["-pj"], "end_time": "x", "cost_centres": []},
            "hs-speedscope"),
    "Safari": ({"version": 1, "recording": {"displayName": "x", **PAD}}, "speedscope"),
    "TensorBoard": ({"memoryProfilePerAllocator": {}, **PAD}, ".xplane.pb"),
}
BYTES = {
    "Go execution trace": (b"go 1.22 trace\0\0\0" + b"\x01\x02" * 400, "go tool trace -pprof="),
    "OTF2": (b"\x03BOTF2\0\x03\x02\x02\x03" + b"\0" * 200, "nsys"),
    "a part of an OTF2": (b"\x03B\x01" + b"\0" * 200, "nsys"),
    "Caliper": (b"__rec=node,id=1,attr=8,data=main\n__rec=ctx,ref=1\n" * 30, "cali2traceevent"),
    "ftrace": (b"# tracer: nop\n#\n# entries-in-buffer/entries-written: 2/2   #P:8\n"
               b"  bash-1  [000] d..2 1.5: sched_switch: prev_comm=bash\n" * 9, "perf record"),
    "atrace": (b"TRACE:\n# tracer: nop\n", "perf record"),
    "trace-cmd": (b"\x17\x08\x44tracing6\0\0\0" + b"\0" * 100, "perf record"),
    "tensorflow_stats": (tensorflow_stats(4), ".xplane.pb"),
    "tensorflow_stats ": (tensorflow_stats(1), ".xplane.pb"),
    "Chakra": (chakra(b"0.0.4"), "Kineto"),
    "cProfile": (cprofile(), "opwatch record"),
    "Java Flight Recorder": (b"FLR\0\0\x02\0\x01" + b"\0" * 80, "jfrconv"),
    "Callgrind": (b"# callgrind format\nversion: 1\ncreator: callgrind-3.1\npid: 1\nfn=main\n16 400\n17 3\n" * 9, "perf"),
    "Callgrind ": (b"version: 1\ncreator: callgrind-3.1\npid: 1\nfn=main\n16 400\n17 3\n" * 9, "perf"),
    "Xdebug": (b"version: 1\ncreator: xdebug 3.0.2 (PHP 7.4.14)\ncmd: /a.php\npart: 1\npositions: line\n\nevents: Time_(10ns)\n\nfn=(1) main\n16 20\n" * 3, "perf"),
    "--preprocess": (b'{\n  "code": [{"name":"/usr/bin/node","type":"SHARED_LIB"}],\n  "functions": [],\n  "ticks": []}\n', "--cpu-prof"),
    "Massif": (b"desc: --tool=massif\ncmd: ./a\ntime_unit: i\n#---\nsnapshot=0\n", "jemalloc"),
    "stackprof": (b"\x04\x08{\x0d:\x0cversionf\x081.2:\x09modeI:\x09wall\x06:\x06EF:\x0dintervali\x02\xe8\x03", "raw: true"),
    "GHC": (b"\tThu Oct 25 10:51 2018 Time and Allocation Profiling Report  (Final)\n\n\t   bench +RTS -p -RTS\n\n"
            b"\ttotal time  =        0.80 secs\n\ttotal alloc = 1,921 bytes\n\nCOST CENTRE MODULE SRC %time %alloc\n\n"
            + b"make Main m.hs:3:1-9 44.6 80\n" * 60, "hs-speedscope"),
    "pprof -raw": (b"PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\nsamples/count cpu/nanoseconds\n"
                   + b"          3   30000000: 1 2 3 \n" * 90, "open the profile"),
    "pprof -top": (b"File: a\nType: cpu\nShowing nodes accounting for 5s, 99% of 5s total\n"
                   + b"      flat  flat%   sum%        cum   cum%\n     1s 10% 10%  2s 20% main.f\n" * 9, "open the profile"),
    "perf report": (b"# To display the perf.data header info, please use --header/--header-only options.\n#\n"
                    b"    42.00%  a  a  [.] main\n" * 9, "perf.data"),
    "Instruments": (b"Weight\tSelf Weight\t\tSymbol Name\n1.5 s 100%\t0 s\t \tmain 3\n" * 9, "speedscope"),
    "Cachegrind": (b"desc: I1 cache: 32768 B\ncmd: ./a\nevents: Ir I1mr\nfl=a.c\nfn=main\n1 2 3\n2 5 6\n" * 9, "perf record"),
    "gprof": (b"Flat profile:\n\nEach sample counts as 0.01 seconds.\n  %   cumulative   self\n"
              + b" 33.34      0.02     0.02     7208     0.00     0.00  open\n" * 30, "perf record"),
    "gmon.out": (b"gmon\1\0\0\0" + b"\0" * 100, "perf record"),
    "program or library": (b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x03\0>\0" + b"\0" * 100, "opwatch record"),
    "core dump": (b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x04\0>\0" + b"\0" * 100, "gdb"),
    "core dump ": (b"\x7fELF\x02\x02\x01" + b"\0" * 9 + b"\0\x04\0\x16" + b"\0" * 100, "gdb"),
    "PNG": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0" * 80, "made from"),
    "JPEG": (b"\xff\xd8\xff\xe0\0\x10JFIF\0" + b"\0" * 80, "made from"),
    "WebP": (b"RIFF\x10\0\0\0WEBPVP8 " + b"\0" * 80, "made from"),
    "PDF": (b"%PDF-1.4\n" + b"\0" * 80, "made from"),
    "PyTorch checkpoint": (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03." + b"\0" * 80, "torch.profiler"),
    "NumPy": (b"\x93NUMPY\x01\0v\0{'descr': '<f8', 'fortran_order': False, 'shape': (9,), }" + b"\0" * 90, "profile"),
    "GGUF": (b"GGUF\x03\0\0\0" + b"\0" * 90, "opwatch record"),
    "safetensors": (b"\x40\0\0\0\0\0\0\0" + b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'.ljust(64) + b"\0" * 8,
                    "torch.profiler"),
    "ONNX": (b"\x08\x08\x12\x07pytorch\x1a\x051.13:\x8a\x01\n\x1b\n\x01x\n\x01w\x12\x01y\"\x06MatMul" + b"\0" * 300,
             "enable_profiling"),
    "script": (b"#!/usr/bin/env python3\nfor i in range(3):\n    x = i\n", "opwatch record"),
    "compiled Python": (b"\xa7\r\r\n" + b"\0" * 90, "opwatch record"),
    "Parquet": (b"PAR1" + b"\0" * 90 + b"PAR1", "DuckDB"),
    "compressed by xz": (b"\xfd7zXZ\0" + b"\0" * 90, "xz -dk"),
    "Graphviz": (b"digraph \"x\" {\nnode [style=filled fillcolor=\"#f8f8f8\"]\n}\n", "made from"),
    "systrace": (b"<!DOCTYPE html>\n<html>\n<script class=\"trace-data\" type=\"application/text\">\n# tracer: nop\n", "perf"),
}


class Unreadable(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.dir.name) / "x"

    def tearDown(self):
        self.dir.cleanup()

    def open(self, data):
        self.path.write_bytes(data)
        got = subprocess.run([OPWATCH, str(self.path), "--no-pager"], capture_output=True, text=True, timeout=60)
        self.assertEqual(got.returncode, 1, (data[:60], got.stdout[:400]))
        self.assertNotIn("no events", got.stderr)
        return got.stderr

    def expect(self, data, name, way):
        for form in (data, gzip.compress(data)):
            said = self.open(form)
            self.assertIn("this is ", said, name)
            self.assertIn(name.strip().lower(), said.lower())
            self.assertIn(way, said, name)

    def test_bytes_and_text(self):
        for name, (data, way) in BYTES.items():
            with self.subTest(name):
                self.expect(data, name, way)

    def test_json(self):
        for name, (value, way) in JSON.items():
            for indent in (None, 2):
                with self.subTest(name, indent=indent):
                    self.expect(json.dumps(value, indent=indent).encode(), name.split()[0] if "torch" not in name else "pytorch",
                                way)

    def test_by_name_where_content_says_nothing(self):
        for name, way in (("h.nsys-rep", "nsys export --type sqlite"), ("h.qdrep", "nsys export --type sqlite"),
                          ("h.qdstrm", "QdstrmImporter"), ("h.rocpd", "pftrace"), ("h.onnx", "enable_profiling"),
                          ("train.py", "opwatch record -- python3"), ("x.csv", "recording"), ("w.pth", "torch.profiler")):
            # nothing known; a damaged gzip file; the begin of a zip archive
            for content in (bytes(range(7, 200)), b"\x1f\x8b\x08\0" + bytes(range(255, 7, -1)), b"PK\x03\x04" + bytes(range(7, 200))):
                path = pathlib.Path(self.dir.name) / name
                path.write_bytes(content)
                got = subprocess.run([OPWATCH, str(path)], capture_output=True, text=True, timeout=60)
                self.assertEqual(got.returncode, 1)
                self.assertIn("this is ", got.stderr)
                self.assertIn(way, got.stderr, (name, content[:4]))

    def test_archives(self):
        for members, name in ((("m/data.pkl", "m/version", "m/data/0"), "PyTorch checkpoint"), (("x.npy", "y.npy"), "NumPy"),
                              (("a/b.py", "a-1.dist-info/METADATA"), "Python package")):
            with zipfile.ZipFile(self.path, "w") as archive:
                for member in members:
                    archive.writestr(member, bytes(range(128, 250)))
            said = self.open(self.path.read_bytes())
            self.assertIn("this is ", said)
            self.assertIn(name, said)

    def test_logs_are_not_stacks(self):
        """Lines that end with a number, as folded stacks do."""
        for line in ("epoch 1 step {} loss 0.25\n", "Iteration {}\nval accuracy is 71\n"):
            said = self.open("".join(line.format(i) for i in range(30)).encode())
            self.assertIn("unknown format", said)
        for lines in ("main 3\nidle 4\n", "std::map<int, a b>::find(int, int) 3\n(anonymous namespace)::f 4\n", "a b;c 3\nd e;f 4\n"):
            self.path.write_text(lines)
            got = subprocess.run([OPWATCH, str(self.path), "--no-pager"], capture_output=True, text=True, timeout=60)
            self.assertIn("7 samples", got.stdout, got.stderr)

    def add_views(self, terms):
        """As in databases of rocprofv3: a view over several tables, and a deep expression."""
        db = sqlite3.connect(self.path)
        db.execute("CREATE VIEW regions AS " + " UNION ALL ".join(f"SELECT {i} AS id, 'k{i}' AS name" for i in range(terms)))
        db.execute("CREATE VIEW deep AS SELECT " + " + ".join(['1'] * 300) + " AS n")
        db.commit()
        db.close()

    def test_database_of_rocprofv3(self):
        for terms in (3, 40):
            self.path.unlink(missing_ok=True)
            db = sqlite3.connect(self.path)
            for table in ("string", "info_node", "kernel_dispatch", "region", "event"):
                db.execute(f"CREATE TABLE rocpd_{table}_0000abcd (id INTEGER PRIMARY KEY, guid TEXT)")
            db.commit()
            db.close()
            self.add_views(terms)
            said = self.open(self.path.read_bytes())
            self.assertIn("rocprofv3", said)
            self.assertIn("traceconv json", said)

    def test_views_are_not_damage(self):
        nsys_export.write(str(self.path), launches=50)
        self.add_views(5)
        got = subprocess.run([OPWATCH, str(self.path), "--no-pager"], capture_output=True, text=True, timeout=60)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertNotIn("damaged", got.stdout + got.stderr)

    def test_other_json_is_not_called_a_trace(self):
        self.assertIn("unknown format", self.open(json.dumps({"anything": PAD}).encode()))

    def test_an_empty_trace_is_called_that(self):
        self.path.write_text('{"traceEvents":[]}')
        got = subprocess.run([OPWATCH, str(self.path)], capture_output=True, text=True, timeout=60)
        self.assertIn("the trace has no events", got.stderr)

    def test_a_readable_file_with_such_words_is_read(self):
        """A trace whose object also has the keys of another format, and folded stacks whose names are such words."""
        events = [{"ph": "X", "name": "a", "ts": 0, "dur": 5, "pid": 1, "tid": 1}]
        for text in (json.dumps({"schema": "1", "pid": 3, "nodes": [], "traceEvents": events}),
                     json.dumps({"version": 1, "recording": {}, "traceEvents": events}),
                     "main;Showing nodes;gmon 5\nmain;desc: x 7\n"):
            self.path.write_text(text)
            got = subprocess.run([OPWATCH, str(self.path), "--no-pager"], capture_output=True, text=True, timeout=60)
            self.assertEqual(got.returncode, 0, (text, got.stderr))


if __name__ == "__main__":
    unittest.main()
