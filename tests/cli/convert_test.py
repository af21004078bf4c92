#!/usr/bin/python3
"""`opwatch convert`: every output from the sample and from a small trace, names of files, exit codes, damage."""
import gzip
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BIN = pathlib.Path(os.environ.get("OPWATCH_BIN", "build/release/opwatch")).resolve()
RUN = [SRC / "samples/graph.pb", SRC / "samples/run_meta_0", SRC / "samples/op_log"]
TRACE = {"traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "train \u00e9"}},
    {"ph": "X", "name": "outer", "cat": "op", "pid": 1, "tid": 7, "ts": 1000.5, "dur": 90.25, "args": {"a": [1, {"b": "x"}]}},
    {"ph": "X", "name": "inner", "cat": "op", "pid": 1, "tid": 7, "ts": 1010, "dur": 20},
    {"ph": "i", "name": "mark", "pid": 1, "tid": 7, "ts": 1015, "s": "t"},
    {"ph": "C", "name": "memory", "pid": 1, "ts": 1011, "args": {"used": 5, "free": 7.5}},
    {"ph": "s", "id": 1, "name": "f", "cat": "flow", "pid": 1, "tid": 7, "ts": 1012},
    {"ph": "f", "id": 1, "name": "f", "cat": "flow", "pid": 1, "tid": 8, "ts": 1050, "bp": "e"},
    {"ph": "X", "name": "kernel", "cat": "kernel", "pid": 1, "tid": 8, "ts": 1045, "dur": 20}]}


def opwatch(*args, code=0):
    done = subprocess.run([BIN, *args], text=True, capture_output=True)
    if done.returncode != code:
        raise AssertionError(f"opwatch {args} ended with {done.returncode}: {done.stderr}")
    return done


class Convert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.trace = self.folder / "trace.json"
        self.trace.write_text(json.dumps(TRACE))

    def test_names_choose_the_output(self):
        for name, begin in (("run.opw", b"\x89OPW\r\n"), ("flame.svg", b"<"), ("stacks.folded", b""), ("code.pb.gz", b"\x1f\x8b"),
                            ("line.json", b"{"), ("line.json.gz", b"\x1f\x8b")):
            opwatch("convert", *RUN, "-o", self.folder / name)
            data = (self.folder / name).read_bytes()
            self.assertTrue(data.startswith(begin) and data, name)
        self.assertIn(b";", (self.folder / "stacks.folded").read_bytes())
        json.loads(gzip.decompress((self.folder / "line.json.gz").read_bytes()))

    def test_info_counts_the_same_rows(self):
        for files in ([SRC / "samples/resnet.profile"], RUN, [self.trace]):
            saved = self.folder / "run.opw"
            opwatch("convert", *files, "-o", saved)
            counts = [json.loads(opwatch("info", "--json", *f).stdout)["model"]["rows"] for f in (files, [saved])]
            self.assertEqual(*counts)
            self.assertEqual(counts[0]["stack"] > 0, files != [self.trace])

    def test_overview_tells_damage(self):
        """A wrong bit anywhere is told by the overview, whichever of its tables it is in."""
        saved, damaged = self.folder / "run.opw", self.folder / "damaged.opw"
        opwatch("convert", SRC / "samples/resnet.profile", "-o", saved)
        data = saved.read_bytes()
        told = 0
        for at in range(100, len(data), len(data) // 60):
            damaged.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1:])
            run = subprocess.run([BIN, damaged], capture_output=True, text=True)
            self.assertIn(run.returncode, (0, 1), (at, run.stderr))
            self.assertEqual(run.returncode == 1, "damaged: " in run.stderr, (at, run))
            told += run.returncode
        self.assertGreater(told, 20)

    def test_names_that_drive_a_terminal(self):
        odd = self.folder / "a\033[31mb\n.json"
        odd.write_text(json.dumps(TRACE))
        for args in (["info", "--estimate", odd], ["info", odd], [odd], ["notes", odd], ["op", odd, "--step", "99"],
                     ["merge", odd, "-o", self.folder / "merged.json"]):
            run = subprocess.run([BIN, *args], capture_output=True, text=True)
            self.assertNotIn("\033", run.stdout + run.stderr, args)

    def test_standard_output(self):
        self.assertTrue(opwatch("convert", *RUN, "--to", "folded").stdout)
        self.assertIn("traceEvents", opwatch("convert", *RUN, "--to", "timeline", "-o", "-").stdout)
        self.assertEqual(opwatch("convert", *RUN, "--to", "opw", code=2).stdout, "")

    def test_wrong_usage(self):
        self.assertIn("no output given", opwatch("convert", self.trace, code=2).stderr)
        self.assertIn("unknown output", opwatch("convert", self.trace, "--to", "gif", code=2).stderr)
        self.assertIn("true or false", opwatch("convert", self.trace, "--to", "timeline", "--show-memory=3", code=2).stderr)
        opwatch("convert", self.folder / "none", "-o", self.folder / "x.opw", code=1)
        self.assertFalse((self.folder / "x.opw").exists())
        opwatch("convert", self.trace, "-o", self.folder / "no/such/x.opw", code=1)

    def test_an_opwatch_file_says_the_same(self):
        saved = self.folder / "run.opw"
        opwatch("convert", self.trace, "-o", saved)
        text = {v: opwatch(v, self.trace).stdout for v in ("op", "steps", "tracks", "sources")}
        self.trace.unlink()
        for view, shown in text.items():
            self.assertEqual(opwatch(view, saved).stdout, shown)
        self.assertIn("checksums", opwatch("info", "--verify", saved).stdout)

    def test_trace_and_back(self):
        saved, again = self.folder / "run.opw", self.folder / "again.json"
        opwatch("convert", self.trace, "-o", saved)
        opwatch("convert", saved, "-o", again)
        def plain(event):
            return {k: v for k, v in event.items() if k in ("ph", "name", "cat", "pid", "ts", "dur", "args", "s", "bp")}
        got = [plain(e) for e in json.loads(again.read_text())["traceEvents"]]
        for event in TRACE["traceEvents"]:
            self.assertIn(plain(event), got)

    def test_cut_files_are_used_and_told(self):
        saved, cut = self.folder / "run.opw", self.folder / "cut.opw"
        opwatch("convert", self.trace, "-o", saved)
        data = saved.read_bytes()
        cut.write_bytes(data[:len(data) - 100])
        done = opwatch("op", cut)
        self.assertIn("outer", done.stdout)
        self.assertTrue("footer" in done.stderr or "notes" in done.stderr, done.stderr)
        self.assertIn("footer", opwatch("notes", cut).stdout)
        opwatch("op", cut, "--strict", code=3)
        cut.write_bytes(data[:200])
        self.assertIn("the opwatch file has no usable part", opwatch("op", cut, code=1).stderr)

    def test_damaged_files_are_refused(self):
        saved = self.folder / "run.opw"
        opwatch("convert", self.trace, "-o", saved)
        data = bytearray(saved.read_bytes())
        at = data.index(b"outer")
        data[at] ^= 1
        saved.write_bytes(data)
        done = opwatch("op", saved, code=1)
        self.assertIn("checksum", done.stderr)
        self.assertIn("at byte", done.stderr)

    def test_an_interrupt_leaves_nothing(self):
        events = ",".join('{"ph":"X","pid":1,"tid":%d,"ts":%d,"dur":1,"name":"n%d","args":{"x":"%s"}}' %
                          (i % 5, i, i % 100, "y" * 300) for i in range(150000))
        self.trace.write_text("[" + events + "]")
        run = subprocess.Popen([BIN, "convert", self.trace, "-o", self.folder / "big.opw"], stderr=subprocess.DEVNULL)
        while run.poll() is None and not list(self.folder.glob("big.opw.tmp*")):
            time.sleep(.001)
        run.send_signal(signal.SIGINT)
        run.wait()
        self.assertEqual(list(self.folder.glob("big.opw.tmp*")), [])


if __name__ == "__main__":
    unittest.main()
