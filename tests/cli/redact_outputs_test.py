#!/usr/bin/python3
"""--redact in everything that leaves the machine: merged traces, exported tables, converted files, SQL, reports. None of them has a word that
the user chose; what frameworks name stays, and so do times and structure."""
import base64
import gzip
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
SECRETS = ("zanzibar", "quokka", "marigold", "tungsten", "walrus", "pangolin", "obsidian", "lapislazuli", "heliotrope", "cassowary")


def trace(rank):
    z, q, m, t, w, p, o, la, h, c = SECRETS
    events = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": f"python /home/{z}/train.py"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": f"{q} loader"}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10, "dur": 5,
         "args": {"External id": 5, "Call stack": f"{m}.py(12): forward;{t}_layer", "Input Dims": [[2, 3]], "Input type": ["float"]}},
        {"ph": "X", "cat": "user_annotation", "name": f"{w}/{p} \"block\"", "pid": 1, "tid": 1, "ts": 5, "dur": 20, "args": {"note": [o, {la: h}]}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 11, "dur": 1, "args": {"correlation": 7}},
        {"ph": "X", "cat": "kernel", "name": f"void {c}_kernel<float>(int)", "pid": 0, "tid": 7, "ts": 12, "dur": 3, "args": {"correlation": 7}},
        {"ph": "C", "name": f"{z} memory", "pid": 1, "ts": 12, "args": {f"{q}_bytes": 100}},
        {"ph": "i", "s": "t", "name": f"{m}é\\u00e9", "pid": 1, "tid": 1, "ts": 13},
    ]
    return {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2},
            "traceName": f"/data/{o}/{h}.json", "traceEvents": events}


class Redact(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        inputs = self.folder / "in"
        inputs.mkdir()
        self.paths = [inputs / f"cassowary_rank{rank}.json" for rank in (0, 1)]
        for rank, path in enumerate(self.paths):
            path.write_text(json.dumps(trace(rank)))

    def opwatch(self, *words, good=True):
        run = subprocess.run([BIN, *map(str, words)], capture_output=True)
        if good:
            self.assertEqual(run.returncode, 0, (words, run.stderr))
        return run.stdout

    def check(self, data, what):
        low = data.lower()
        for secret in SECRETS:
            for form in (secret.encode(), secret.encode("utf-16-le")):
                self.assertNotIn(form, low, (what, secret))

    def test_ranks(self):
        self.assertIn(b"cassowary", self.opwatch("ranks", *self.paths, "--json"))
        for words in ((), ("--json",)):
            self.check(self.opwatch("ranks", *self.paths, "--redact", *words), "ranks")

    def test_secrets_are_there_without_it(self):
        """Or the other tests would test nothing."""
        self.opwatch("merge", *self.paths, "-o", self.folder / "all.json")
        text = (self.folder / "all.json").read_text()
        for secret in SECRETS:
            self.assertIn(secret, text)

    def test_merge(self):
        for ending, unpack in ((".json", bytes), (".json.gz", gzip.decompress)):
            out = self.folder / f"all{ending}"
            self.opwatch("merge", *self.paths, "--redact", "-o", out)
            data = unpack(out.read_bytes())
            self.check(data, ending)
            events = json.loads(data)["traceEvents"]
            self.assertEqual(len([e for e in events if e["ph"] == "X"]), 8)
            names = {e["name"] for e in events}
            self.assertLessEqual({"aten::mm", "cudaLaunchKernel", "process_name", "thread_name"}, names)
            by_rank = [[e["name"] for e in events if e["ph"] == "X" and e.get("cat") == "user_annotation"]][0]
            self.assertEqual(len(set(by_rank)), 1, "the same name has the same pseudonym in all files")
            self.assertEqual(sorted(e["ts"] for e in events if e["ph"] == "X"), sorted([10, 5, 11, 12] * 2))
            self.assertIn([[2, 3]], [e["args"].get("Input Dims") for e in events if e["ph"] == "X"])
        self.check(self.opwatch("merge", *self.paths, "--redact", "-o", "-"), "standard output")
        self.assertIn("aten::mm", self.opwatch("op", self.folder / "all.json").decode())

    def test_letters_that_are_digits(self):
        """A name of the letters a to f alone is a name; ids that are texts are, too."""
        path = self.folder / "in" / "hex.json"
        path.write_text(json.dumps([{"ph": "b", "cat": "x", "id": "facade", "name": "decade", "pid": 1, "tid": 1, "ts": 1, "args": {"who": "Ada"}},
                                    {"ph": "e", "cat": "x", "id": "facade", "name": "decade", "pid": 1, "tid": 1, "ts": 9},
                                    {"ph": "s", "cat": "x", "id": "0x1f", "id2": {"local": "0xab"}, "name": "feed", "pid": 1, "tid": 1, "ts": 2,
                                     "args": {"a": "1.5e3", "b": "[1, 2]"}}]))
        text = self.opwatch("merge", path, "--redact", "-o", "-").decode()
        for word in ("facade", "decade", "Ada", "feed"):
            self.assertNotIn(word, text)
        first, second, third = (e for e in json.loads(text)["traceEvents"] if e["ph"] in "bes")
        self.assertEqual(first["id"], second["id"])
        self.assertEqual((third["id"], third["id2"], set(third["args"].values())), ("0x1f", {"local": "0xab"}, {"1.5e3", "[1, 2]"}))

    def test_phases_stay(self):
        """Messages of NCCL are messages in a merged trace, too."""
        path = self.folder / "in" / "nccl.json"
        kernels = ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "ncclDevKernel_AllReduce(ncclDevKernelArgsStorage<4096ul>)")
        others = ("ncclKernel_secret(pangolin, unsigned long)", "ncclKernel pangolin(int)", "pangolin(int)")
        path.write_text(json.dumps([{"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 9 * i, "dur": 5, "args": {"device": 0, "stream": 7}}
                                    for i, name in enumerate(kernels + others)]))
        text = self.opwatch("merge", path, "--redact", "-o", "-").decode()
        self.assertNotIn("pangolin", text)
        self.assertNotIn("secret", text)
        for name in kernels:
            self.assertIn(name, text)

    def test_merge_zstd_opens(self):
        out = self.folder / "all.json.zst"
        run = subprocess.run([BIN, "merge", *self.paths, "--redact", "-o", out], capture_output=True)
        if run.returncode and b"zstd" in run.stderr:
            self.skipTest("built without zstd")
        self.assertIn(b"aten::mm", self.opwatch("op", out))

    def test_two_runs_have_other_pseudonyms(self):
        first, second = (self.opwatch("merge", *self.paths, "--redact", "-o", "-") for _ in range(2))
        self.assertNotEqual(first, second)

    def test_export(self):
        for kind in ("parquet", "ndjson", "csv", "arrow"):
            out = self.folder / kind
            run = subprocess.run([BIN, "export", *map(str, self.paths), "--redact", "--to", kind, "-o", out], capture_output=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            files = [path for path in out.rglob("*") if path.is_file()]
            self.assertGreater(len(files), 5)
            for path in files:
                data = path.read_bytes()
                self.check(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, (kind, path.name))
                self.check(str(path.relative_to(out)).encode(), "names of files")

    def test_views_and_conversions(self):
        for view in ([], ["op"], ["steps"], ["tracks"], ["sources"], ["notes"], ["info"], ["advise"], ["verdict"], ["nsys-stats"], ["lines"],
                     ["memory"]):
            for form in ([], ["--json"]):
                self.check(self.opwatch(*view, self.paths[0], "--redact", *form, good=False), (view, form))
        for to, name in (("opw", "x.opw"), ("timeline", "x.json"), ("json", "y.json")):
            out = self.folder / name
            self.opwatch("convert", self.paths[0], "--redact", "--to", to, "-o", out, good=False)
            if out.exists():
                self.check(out.read_bytes(), to)

    def test_comparisons_ranks_and_advice(self):
        other = self.folder / "in" / "cassowary_new.json"
        text = json.dumps(trace(0)).replace('"dur": 3', '"dur": 9')
        other.write_text(text)
        for words in (["diff", self.paths[0], other], ["diff", self.paths[0], other, "--to", "markdown"], ["ranks", *self.paths],
                      ["diff", self.paths[0], other, "--to", "sarif"], ["diff", self.paths[0], other, "--to", "junit"],
                      ["diff", self.paths[0], other, "--to", "github"], ["advise", *self.paths, "--to", "markdown"],
                      ["ranks", *self.paths, "--json"], ["path", *self.paths, "--json"], ["advise", *self.paths, "--json"],
                      ["diff", self.paths[0], other, "--json"], ["what-if", *self.paths, "input=0", "--json"]):
            run = subprocess.run([BIN, *map(str, words), "--redact"], capture_output=True)
            self.check(run.stdout, words)

    def test_sql(self):
        run = subprocess.run([BIN, "sql", "SELECT * FROM event", self.paths[0], "--redact", "--json"], capture_output=True)
        if b"DuckDB" in run.stderr or b"without SQL" in run.stderr:
            self.skipTest("no SQL in this build")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.check(run.stdout, "sql")
        for table in ("trace_events", "track", "fact", "note", "source", "stack", "counter"):
            run = subprocess.run([BIN, "sql", f"SELECT * FROM {table}", self.paths[0], "--redact", "--json"], capture_output=True)
            self.check(run.stdout, table)

    def test_ask(self):
        names = [q["name"] for q in json.loads(self.opwatch("ask", "--json"))]
        run = subprocess.run([BIN, "ask", names[0], self.paths[0], "--redact"], capture_output=True)
        if b"DuckDB" in run.stderr or b"without SQL" in run.stderr:
            self.skipTest("no SQL in this build")
        for name in ("top_ops", "busy_threads", "slow_steps", "ops_by_line", "utilisation"):
            if name in names:
                for form in ([], ["--json"]):
                    self.check(self.opwatch("ask", name, self.paths[0], "--redact", *form, good=False), (name, form))

    def test_report(self):
        out = self.folder / "report.html"
        run = subprocess.run([BIN, "report", *map(str, self.paths), "--redact", "-o", out], capture_output=True)
        if run.returncode and b"page" in run.stderr:
            self.skipTest("no page in this build")
        self.assertEqual(run.returncode, 0, run.stderr)
        text = out.read_bytes()
        self.check(text, "report")
        for packed in re.findall(rb"H4sI[A-Za-z0-9+/=]{40,}", text):  # tables are packed in it
            self.check(gzip.decompress(base64.b64decode(packed)), "tables of the report")

    def test_push_waits_for_a_server_only_when_asked(self):
        words = [BIN, "push", str(self.paths[0]), "--redact", "--to", "clickhouse://u@127.0.0.1:9/d"]
        run = subprocess.run(words, capture_output=True, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertNotIn(b"trying for", run.stderr)
        run = subprocess.run(words + ["--retry-for", "1"], capture_output=True, timeout=60)
        self.assertEqual(run.returncode, 1)
        self.assertIn(b"127.0.0.1:9 cannot be reached yet; trying for 1 s", run.stderr)
        self.check(run.stderr, "messages of push")


if __name__ == "__main__":
    unittest.main()
