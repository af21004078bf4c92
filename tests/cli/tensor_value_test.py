#!/usr/bin/env python3
"""Values of variables from a checkpoint, in the tables and JSON of the scope and graph views; the checkpoint is written without
the program's help."""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from tfprof_checkpoint import write_checkpoint, write_v1  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
TENSORS = {"w": ("float", [2, 2], [1.0, 2.5, -3.0, 4.0]), "s": ("int64", [], [7]), "text": ("string", [2], ["é".encode(), b"\xff\xfe"]),
           "long": ("int32", [300], list(range(300)))}
VALUES = {"w": "[[1.00 2.50],[-3.00 4.00]]", "s": "[7]", "text": "['é' '??']"}


def run(*args):
    p = subprocess.run([BIN, *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert p.returncode == 0, p.stderr
    return p.stdout


class TensorValueTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.graph = os.path.join(self.dir, "graph.pbtxt")
        with open(self.graph, "w") as f:
            f.write("".join('node { name: "%s" op: "VariableV2" }\n' % name for name in (*TENSORS, "other")))
        self.prefix = os.path.join(self.dir, "model")

    def values(self, view):
        rows = json.loads(run(view, self.graph, "--checkpoint", self.prefix, "--select", "tensor_value", "--json"))["rows"]
        found = {}
        while rows:
            row = rows.pop()
            found[row["name"]] = row["tensor_value"]
            rows += row.get("children", [])
        return found

    def check(self, view):
        found = self.values(view)
        self.assertEqual({name: found[name] for name in VALUES}, VALUES)
        self.assertIsNone(found["other"])
        self.assertTrue(found["long"].startswith("[0 1 2 3 ") and found["long"].endswith("…"), found["long"])

    def test_both_versions(self):
        write_checkpoint(self.prefix, TENSORS, random.Random(1))
        self.check("scope")
        self.check("graph")
        self.assertIn(VALUES["w"], run("scope", self.graph, "--checkpoint", self.prefix, "--select", "tensor_value"))
        for end in (".index", ".data-00000-of-00001"):
            os.remove(self.prefix + end)
        write_v1(self.prefix, TENSORS)
        self.check("scope")

    def test_without_a_checkpoint_there_is_no_column(self):
        text = run("scope", self.graph, "--select", "tensor_value", "--json")
        self.assertNotIn("tensor_value", text)

    def test_values_that_are_lost_say_so(self):
        write_checkpoint(self.prefix, TENSORS, random.Random(1))
        os.truncate(self.prefix + ".data-00000-of-00001", 0)
        found = self.values("scope")
        self.assertTrue(all(found[name].startswith("(") for name in TENSORS), found)
        self.assertIsNone(found["other"])


if __name__ == "__main__":
    unittest.main()
