#!/usr/bin/python3
"""Files that were made to do harm, or by accident would: names that drive the terminal, archives that overlap, pipes where a file is
expected, traces of the processor that are not decoded. All are answered with a sentence."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
import zipfile

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SRC / "tests/support"))
import nsys_export  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
TRACE = json.dumps({"traceEvents": [{"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]})


class Hostile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_it(self, *words):
        return subprocess.run([BIN, *map(str, words)], capture_output=True, timeout=60)

    def test_names_in_archives_do_not_drive_the_terminal(self):
        for name in ("\x1b[31mred\x1b]0;title\x07.json", "\x9b2J.json", "del\x7f\r.json"):
            path = self.folder / "x.zip"
            with zipfile.ZipFile(path, "w") as z:
                z.writestr(name, TRACE[:-10])
                z.writestr("b" + name, "not a profile")
            for words in (["notes"], [], ["op"], ["merge"]):
                run = self.run_it(*words, path)
                for text in (run.stderr,) if words == ["merge"] else (run.stderr, run.stdout):
                    for bad in (b"\x1b", b"\x07", b"\xc2\x9b", b"\x7f", b"\r"):
                        self.assertNotIn(bad, text, (name, words))
        run = self.run_it("op", self.folder / "\x1b[31mmissing")
        self.assertNotIn(b"\x1b", run.stderr)
        self.assertIn("\ufffd[31mmissing".encode(), run.stderr)

    def test_names_inside_a_trace(self):
        """Processes, threads, categories, ops and arguments of a trace: no output brings them raw to the terminal."""
        bad = "\x1b[31mred\x1b]0;t\x07\x9b2J\x7f\u202e"
        about = [{"ph": "M", "name": f"{what}_name", "pid": 1, "tid": 1, "args": {"name": what + bad}} for what in ("process", "thread")]
        path = self.folder / "x.json"
        path.write_text(json.dumps({"traceEvents": about + [
            {"ph": "X", "name": f"op{i % 3}{bad}", "cat": "cat" + bad, "pid": 1, "tid": 1, "ts": i * 10, "dur": 8,
             "args": {"key" + bad: "value" + bad}} for i in range(30)]}))
        for words in ([], ["op"], ["work"], ["tracks"], ["steps"], ["opstats"], ["phases"], ["advise"], ["path"], ["functions"],
                      ["diff", path], ["ranks", path]):
            run = self.run_it(*words, path, "--no-pager")
            for raw in (b"\x1b", b"\x07", b"\xc2\x9b", b"\x7f", "\u202e".encode()):
                self.assertNotIn(raw, run.stdout + run.stderr, words)

    def test_overlapping_members(self):
        path = self.folder / "x.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
            z.writestr("a.json", TRACE)
            z.writestr("b.json", TRACE)
        self.assertEqual(self.run_it("op", path).returncode, 0)
        data = bytearray(path.read_bytes())
        second = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 4)
        first_offset = struct.unpack_from("<I", data, data.index(b"PK\x01\x02") + 42)[0]
        for offset in (first_offset, first_offset + 20):
            struct.pack_into("<I", data, second + 42, offset)
            path.write_bytes(data)
            run = self.run_it("op", path)
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn(b"overlap", run.stderr)
            self.assertIn(b"a.json", run.stderr)

    def test_same_name_twice_is_no_overlap(self):
        path = self.folder / "x.zip"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with zipfile.ZipFile(path, "w") as z:
                z.writestr("a.json", TRACE)
                z.writestr("a.json", TRACE)
        self.assertEqual(self.run_it("op", path).returncode, 0)

    def test_pipe_as_checkpoint(self):
        prefix = self.folder / "model"
        os.mkfifo(str(prefix) + ".index")
        os.mkfifo(prefix)
        run = self.run_it("op", SRC / "samples/resnet.profile", "--checkpoint", prefix)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn(b"pipe", run.stderr)

    def test_intel_pt_is_noted(self):
        seed = (SRC / "tests/fuzz/seeds/perf_data/pipe-little.data").read_bytes()
        for kind, name in ((1, b"Intel PT"), (3, b"Arm CoreSight"), (99, b"a hardware trace")):
            info = struct.pack("<IHHII", 70, 0, 16, kind, 0)
            trace = struct.pack("<IHHQQQIIII", 71, 0, 48, 104, 0, 0, 0, 0, 0, 0) + bytes(104)
            path = self.folder / "x.data"
            path.write_bytes(seed + info + trace)
            run = self.run_it("notes", path)
            self.assertIn(b"104 bytes of " + name, run.stdout + run.stderr)
        path.write_bytes(seed)
        self.assertNotIn(b"hardware trace", self.run_it("notes", path).stdout)


class NsysStats(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "x.sqlite"
        nsys_export.write(str(self.path), 100)

    def run_it(self, *words):
        return subprocess.run([BIN, "nsys-stats", *map(str, words)], capture_output=True, text=True, timeout=60)

    def test_usual_reports(self):
        run = self.run_it(self.path)
        self.assertEqual(run.returncode, 0, run.stderr)
        names = ["nvtx_sum", "osrt_sum", "cuda_api_sum", "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum"]
        at = [run.stdout.index(f"({name}):") for name in names]
        self.assertEqual(at, sorted(at))
        for name in names:
            self.assertIn(self.run_it(name, self.path).stdout.strip(), run.stdout)

    def test_json_is_one_document(self):
        listed = json.loads(self.run_it(self.path, "--json").stdout)
        self.assertEqual(len(listed), 6)
        self.assertEqual(listed[3], json.loads(self.run_it("cuda_gpu_kern_sum", self.path, "--json").stdout))

    def test_csv(self):
        tables = self.run_it(self.path, "--csv").stdout.replace("\r", "").split("\n\n")
        self.assertEqual(tables[2].strip(), self.run_it("cuda_api_sum", self.path, "--csv").stdout.replace("\r", "").strip())

    def test_outputs_for_one_report_only(self):
        self.assertEqual(self.run_it(self.path, "--ndjson").returncode, 2)
        self.assertEqual(self.run_it(self.path, "-o", str(self.path) + ".txt").returncode, 2)

    def test_misspelt_report(self):
        run = self.run_it("cuda_api_sun", self.path)
        self.assertEqual(run.returncode, 2)
        self.assertIn("did you mean cuda_api_sum?", run.stderr)

    def test_trace_without_anything(self):
        path = self.path.with_suffix(".json")
        path.write_text(TRACE)
        self.assertEqual(self.run_it(path).returncode, 0)


if __name__ == "__main__":
    unittest.main()
