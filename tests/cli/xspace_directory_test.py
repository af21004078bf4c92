#!/usr/bin/python3
"""A log directory of several hosts: each host's XSpace is used once, the traces that viewers made of it are not, and steps of
all hosts are the same steps. The files are the fuzz seeds of the importer."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", "."))
TRACE = """{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[
{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
{"ph":"X","pid":701,"tid":1,"ts":1,"dur":5,"name":"MatMul","args":{"long_name":"a/b/MatMul:MatMul"}}]}"""


def run(*arguments):
    return json.loads(subprocess.run([BIN, *arguments], capture_output=True, check=True).stdout)


class XSpaceDirectory(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.TemporaryDirectory()
        self.addCleanup(self.root.cleanup)
        self.folder = pathlib.Path(self.root.name, "plugins/profile/2026_01_01")
        self.folder.mkdir(parents=True)

    def host(self, name, trace=False):
        shutil.copy(SRC / "tests/fuzz/seeds/xspace/host.pb", self.folder / f"{name}.xplane.pb")
        if trace:
            (self.folder / f"{name}.trace.json").write_text(TRACE)

    def test_hosts(self):
        self.host("a.example", trace=True)
        self.host("b.example")
        (self.folder / "c.trace.json").write_text(TRACE)
        sources = run("sources", "--json", self.root.name)["rows"]
        self.assertEqual([(pathlib.Path(s["path"]).name, s["format"]) for s in sources],
                         [("a.example.xplane.pb", "xspace"), ("b.example.xplane.pb", "xspace"), ("c.trace.json", "trace")])
        steps = [s for s in run("steps", "--json", str(self.folder / "a.example.xplane.pb"),
                                str(self.folder / "b.example.xplane.pb"))["rows"]]
        self.assertEqual([s["step"] for s in steps], [3, 3, 4, 4])

    def test_what_is_named_is_used(self):
        self.host("a", trace=True)
        named = run("sources", "--json", str(self.folder / "a.xplane.pb"), str(self.folder / "a.trace.json"))["rows"]
        self.assertEqual(len(named), 2)


if __name__ == "__main__":
    unittest.main()
