#!/usr/bin/python3
"""The types of the package: up to date with the build, complete, and accepted by mypy --strict together with the examples."""
import ast
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import opwatch
import opwatch.tf

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
MYPY = shutil.which("mypy", path=os.environ.get("PATH", "") + ":/usr/bin")
GOOD = """
from typing import List
import opwatch

p = opwatch.open("a.json", ["b.json"], memory_limit=1 << 30)
rows: List[opwatch.Row] = list(p.op(select=["micros"], order_by="micros", limit=3))
name: str = rows[0].name
counted: opwatch.Result = p.sql("SELECT count(*) AS n FROM op WHERE type = $kind", {"kind": "MatMul"}, threads=1)
one: opwatch.Row = p.sql("SELECT ?, ?", [1, None])[0]
top: opwatch.Result = p.ask("top_ops", limit=5)
written: int = p.export("tables", to="csv", tables=["op"], overwrite=True).rows
with opwatch.Session([p, ("other", opwatch.open("b.opw"))]) as session:
    session.query("SELECT 1").to_parquet("x.parquet")
    session.ask("compare_ops")
with opwatch.steps("run.opw") as s:
    for batch in s.track([1, 2]):
        twice: int = batch * 2
try:
    text: bytes = p.timeline()
except opwatch.NotFound as error:
    where = error.offset
"""
BAD = ('p.op(slect=["micros"])', 'p.ask(7)', 'p.export("x", to="excel")', 'p.sql("SELECT ?", [object()])', 'p.no_view()',
       'x: str = p.sql("SELECT 1")', 'opwatch.open()  .sequel("x")', 'opwatch.merge("a")')


def stub(name):
    return ast.parse((ROOT / "python/opwatch" / name).read_text(encoding="utf-8"))


def names_of(body):
    found = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
    return found


def mypy(folder, *files):
    return subprocess.run([MYPY, "--strict", "--no-error-summary", "--cache-dir", os.path.join(folder, "cache"), *map(str, files)],
                          cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, MYPYPATH="%s:%s" % (ROOT / "python", ROOT / "examples/python")))


class Types(unittest.TestCase):
    def test_up_to_date(self):
        done = subprocess.run([sys.executable, str(ROOT / "tools/make-python-stubs"), "--check"], text=True, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_complete(self):
        for module, name in ((opwatch, "__init__.pyi"), (opwatch.tf, "tf/__init__.pyi")):
            tree = stub(name)
            self.assertLessEqual(set(module.__all__), names_of(tree.body))
            for node in tree.body:
                if not isinstance(node, ast.ClassDef) or node.name.startswith("_") or not hasattr(module, node.name):
                    continue
                thing = getattr(module, node.name)
                has = {member for kind in thing.__mro__[:-1] if kind.__module__.startswith("opwatch")
                       for member in vars(kind) if not member.startswith("_")}
                bases = {name for kind in thing.__mro__[1:] for base in tree.body
                         if isinstance(base, ast.ClassDef) and base.name == kind.__name__ for name in names_of(base.body)}
                self.assertLessEqual(has, names_of(node.body) | bases, node.name)

    @unittest.skipUnless(MYPY, "mypy is not installed (tools/setup test)")
    def test_examples(self):
        with tempfile.TemporaryDirectory() as folder:
            done = mypy(folder, *sorted(path for path in (ROOT / "examples/python").glob("*.py") if path.stem != "standin_tf"))
            self.assertEqual((done.returncode, done.stdout), (0, ""))

    @unittest.skipUnless(MYPY, "mypy is not installed (tools/setup test)")
    def test_programs(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "good.py")
            program.write_text(GOOD)
            done = mypy(folder, program)
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            program.write_text("import opwatch\np = opwatch.open('a')\n" + "\n".join(BAD) + "\n")
            wrong = {int(line.split(":")[1]) for line in mypy(folder, program).stdout.splitlines() if ": error:" in line}
            self.assertEqual(wrong, set(range(3, 3 + len(BAD))))


if __name__ == "__main__":
    unittest.main()
