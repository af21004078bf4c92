#!/usr/bin/python3
"""The type hints of the extension module name what it has; public functions have documentation."""
import ast
import inspect
import os
import pathlib
import unittest

import opwatch

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()


def public(names):
    return {name for name in names if not name.startswith("_")}


class Hints(unittest.TestCase):
    def test_extension(self):
        tree = ast.parse((ROOT / "python/opwatch/_opwatch.pyi").read_text(encoding="utf-8"))
        told = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        self.assertEqual(public(told), public(dir(opwatch._opwatch)) - {"version"})
        for name, node in told.items():
            if isinstance(node, ast.ClassDef):
                members = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
                members |= {m.target.id for m in node.body if isinstance(m, ast.AnnAssign)}
                self.assertEqual(public(members), public(dir(getattr(opwatch._opwatch, name))), name)

    def test_everything_public_is_documented(self):
        for name in opwatch.__all__:
            thing = getattr(opwatch, name)
            self.assertTrue(inspect.getdoc(thing), name)
            if inspect.isclass(thing) and not issubclass(thing, (BaseException, tuple, dict)):
                for member, value in vars(thing).items():
                    if not member.startswith("_") and callable(value):
                        self.assertTrue(inspect.getdoc(value), "%s.%s" % (name, member))

    def test_marker_file(self):
        self.assertTrue((ROOT / "python/opwatch/py.typed").exists())


if __name__ == "__main__":
    unittest.main()
