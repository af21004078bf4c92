#!/usr/bin/python3
"""`opwatch info --json` reproduces what an independent script counted in real files.

$OPWATCH_CORPUS holds the files and FACTS.json: file -> facts. Skipped when it is not set. Which facts are compared, and
which are not and why, is in COMPARED and NOT_COMPARED; a fact that is in neither fails the test.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
CORPUS = os.environ.get("OPWATCH_CORPUS", "")

GRAPH = ["nodes", "distinct_ops", "inputs", "control_inputs", "library_functions", "producer", "devices", "top5_ops"]
# kind of file -> facts. Objects are compared member by member and may have more members than the fact.
COMPARED = {
    "ProfileProto": ["kind", "nodes", "distinct_ops", "exec_profiles", "nodes_with_exec", "nodes_with_trace", "id_to_string",
                     "has_trace", "steps", "sum_float_ops", "sum_run_count", "canonical_devices", "cpu_exec_us",
                     "accelerator_exec_us", "top5_ops", "top5_node_us"],
    "GraphDef": ["kind", "text_format", *GRAPH],
    "text graph": ["text_format", "toplevel_messages", "nodes", "distinct_ops", "top5_ops"],
    "MetaGraphDef": ["kind", "text_format", "tf_version", "collections", "graph"],
    "SavedModel": ["kind", "text_format", "schema_version", "meta_graphs"],
    "RunMetadata": ["kind", "node_stats", "devices", "top5_all_end_rel_micros"],
    "OpLogProto": ["kind", "log_entries", "id_to_string"],
    "event file": ["records", "fields", "graphs"],
    "checkpoint": ["tensors", "tensor_bytes", "first10", "bytes"],
}
NOT_COMPARED = {
    "protoc_decode_raw_ok": "about another tool",
    "final_brace_depth": "about another tool",
    "bytes_unpacked": "compared with `bytes`",
    "container": "compared with `container`, written differently",
}
# These objects count things: no member more and none less.
EXACT = {"devices", "fields", "canonical_devices", "cpu_exec_us", "accelerator_exec_us", "toplevel_messages"}
FOLDERS = {"tf1-profile", "tf1-tfprof", "tf-graph", "tf-events", "tf-checkpoint", "negative"}


def kind_of(facts):
    if "toplevel_messages" in facts:
        return "text graph"
    if "kind" in facts:
        return facts["kind"]
    return "event file" if "records" in facts else "checkpoint" if "tensors" in facts else "unusable"


def info(name):
    return subprocess.run([BIN, "info", "--json", os.path.join(CORPUS, name)], capture_output=True, text=True, timeout=300)


class Facts(unittest.TestCase):
    maxDiff = None

    def same(self, want, got, where):
        if isinstance(want, dict) and isinstance(got, dict) and where.split(".")[-1] not in EXACT:
            for key, value in want.items():
                self.assertIn(key, got if value is not None else {**got, key: None}, where)
                self.same(value, got.get(key), f"{where}.{key}")
        elif isinstance(want, list) and isinstance(got, list):
            self.assertEqual(len(want), len(got), where)
            for i, (a, b) in enumerate(zip(want, got)):
                self.same(a, b, f"{where}[{i}]")
        else:
            self.assertEqual(want, got, where)

    def check_usable(self, name, facts, kind):
        done = info(name)
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        self.assertEqual(got["loss"] if kind != "OpLogProto" else [], [])
        left = set(facts) - set(COMPARED[kind]) - set(NOT_COMPARED)
        self.assertEqual(left, set(), "facts that the test does not know")
        if "bytes_unpacked" in facts:
            self.assertEqual(facts["bytes_unpacked"], got["bytes"])
            self.assertEqual(facts["container"], [got["container"] or "plain"])
        fields = COMPARED[kind]
        if kind == "text graph" and "node" not in facts["toplevel_messages"]:
            fields = ["text_format", "toplevel_messages"]  # a MetaGraphDef: its nodes were not counted
        for field in fields:
            if field in facts:
                self.same(facts[field], got.get(field), field)
        self.assertEqual(got["sources"][0]["path"], os.path.join(CORPUS, name))

    def check_unusable(self, name):
        done = info(name)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(os.path.basename(name), done.stderr)
        self.assertEqual(done.stdout, "")

    def test_all(self):
        everything = json.loads(pathlib.Path(CORPUS, "FACTS.json").read_text())
        names = [n for n in everything if n.split("/")[0] in FOLDERS]
        self.assertGreater(len(names), 15)
        for name in names:
            facts = everything[name]
            kind = kind_of(facts)
            with self.subTest(name):
                if kind == "unusable":
                    self.check_unusable(name)
                else:
                    self.check_usable(name, facts, kind)


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    if not os.access(BIN, os.X_OK):
        print("no binary at", BIN)
        sys.exit(77)
    unittest.main()
