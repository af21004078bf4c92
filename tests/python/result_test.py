#!/usr/bin/python3
"""Results in Python: rows, columns, slices, numpy, pandas, Arrow's capsules."""
import ctypes
import gc
import html.parser
import os
import pathlib
import sys
import pickle
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

import opwatch

try:
    import numpy
except ImportError:
    numpy = None
try:
    import pandas
except ImportError:
    pandas = None

sys.path.insert(0, os.path.join(os.environ.get("OPWATCH_SRC", "."), "tests"))
from support import asked  # noqa: E402

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
SAMPLE = ROOT / "samples/resnet.profile"
TRACE = ROOT / "tests/fuzz/seeds/trace/kineto.json"
sys.path.insert(0, str(ROOT / "tests/support"))
import arrow_c  # noqa: E402


def all_results():
    for path in (SAMPLE, TRACE):
        profile = opwatch.open(path)
        for name, _, _ in opwatch.views():
            yield profile.view(name)
        yield profile.advise()


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = opwatch.open(SAMPLE).op(order_by="micros", select=["micros", "occurrence"])

    def test_names_numbers_and_slices(self):
        first = self.result[0]
        self.assertEqual(first.name, "MatchingFiles")
        self.assertEqual((first["name"], first[0], first.micros), ("MatchingFiles", "MatchingFiles", 97910))
        self.assertEqual(self.result[-1], list(self.result)[-1])
        self.assertEqual(self.result[2:5], list(self.result)[2:5])
        self.assertEqual(self.result[::-1], list(self.result)[::-1])
        self.assertEqual(first._asdict(), dict(zip(self.result.columns, first)))
        self.assertEqual(pickle.loads(pickle.dumps(first)), first)
        self.assertEqual(pickle.loads(pickle.dumps(first)).name, first.name)
        self.assertIn("micros=97910", repr(first))
        self.assertIn("micros", dir(first))
        name, *_ = first
        self.assertEqual(name, "MatchingFiles")

    def test_wrong_places(self):
        for key in (len(self.result), -len(self.result) - 1, 10**30):
            with self.assertRaises(IndexError):
                self.result[key]
        for key in (1.5, None, (1, 2)):
            with self.assertRaises(TypeError):
                self.result[key]
        with self.assertRaisesRegex(KeyError, "micros"):
            self.result["nothing"]
        with self.assertRaises(AttributeError):
            self.result[0].nothing
        with self.assertRaises(KeyError):
            self.result[0]["nothing"]

    def test_shapes_agree(self):
        for result in all_results():
            with self.subTest(view=result.view):
                rows = list(result)
                self.assertEqual(len(rows), len(result))
                self.assertEqual(rows, [result[i] for i in range(len(result))])
                self.assertEqual(result.to_dict(), {name: result[name] for name in result.columns})
                self.assertEqual(rows, list(map(tuple, zip(*result.to_dict().values()))))
                self.assertEqual(len(result.depths), len(result))
                self.assertEqual(result.to_csv().count(b"\n") >= len(result), True)

    def test_columns_say_what_they_are(self):
        micros = self.result.schema[self.result.columns.index("micros")]
        self.assertEqual((micros.name, micros.title, micros.unit), ("micros", "time", "us"))
        self.assertIn("micros", repr(micros))

    def test_text_is_the_programs(self):
        self.assertEqual(str(self.result).splitlines()[1].split()[0], "MatchingFiles")

    def test_depths_of_a_tree(self):
        tree = opwatch.open(SAMPLE).scope()
        self.assertGreater(max(tree.depths), 1)
        self.assertEqual(tree.depths[0], 0)

    def test_unknown_values_are_none(self):
        self.assertEqual(opwatch.open(SAMPLE).steps()["xprof_step_ps"], [None] * 3)


@unittest.skipUnless(numpy, "no numpy")
class Numpy(unittest.TestCase):
    def test_values(self):
        for result in all_results():
            with self.subTest(view=result.view):
                for name, array in result.to_numpy().items():
                    self.assertEqual(array.tolist(), result[name])

    def test_numbers_are_not_copied_and_outlive_everything(self):
        result = opwatch.open(SAMPLE).op()
        expected = result["micros"]
        array = result.to_numpy()["micros"]
        self.assertFalse(array.flags.writeable)
        self.assertFalse(array.flags.owndata)
        self.assertEqual(array.__array_interface__["data"], result.to_numpy()["micros"].__array_interface__["data"])
        del result
        gc.collect()
        self.assertEqual(array.tolist(), expected)

    def test_masks(self):
        steps = opwatch.open(SAMPLE).steps().to_numpy()
        self.assertTrue(numpy.ma.isMaskedArray(steps["xprof_step_ps"]) and steps["xprof_step_ps"].mask.all())
        self.assertFalse(numpy.ma.isMaskedArray(steps["duration_ns"]))


@unittest.skipUnless(pandas, "no pandas")
class Pandas(unittest.TestCase):
    def test_values(self):
        for result in all_results():
            with self.subTest(view=result.view):
                frame = result.to_pandas()
                self.assertEqual(list(frame.columns), list(result.columns))
                self.assertEqual(len(frame), len(result))
                for name in result.columns:
                    column = [None if value is pandas.NA or value != value else value for value in frame[name].tolist()]
                    self.assertEqual(column, result[name], name)

    def test_it_can_be_written_to(self):
        result = opwatch.open(SAMPLE).op()
        frame = result.to_pandas()
        frame.loc[0, "micros"] = 7
        frame.loc[0, "name"] = "mine"
        self.assertEqual(result[0].micros, 97910)
        self.assertEqual(result.to_pandas()["name"][0], "MatchingFiles")

    def test_types(self):
        types = opwatch.open(SAMPLE).steps().to_pandas().dtypes
        self.assertEqual((str(types["duration_ns"]), str(types["xprof_step_ps"]), str(types["outlier"])), ("int64", "Int64", "bool"))


class _Checker(html.parser.HTMLParser):
    """Every tag is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        self.text.append(data)


class Notebook(unittest.TestCase):
    def look(self, result):
        checker = _Checker()
        checker.feed(result._repr_html_())
        checker.close()
        self.assertEqual(checker.open, [])
        return checker

    def test_everything_shows_itself(self):
        for result in all_results():
            with self.subTest(view=result.view):
                self.look(result)

    def test_table_tree_and_steps(self):
        profile = opwatch.open(SAMPLE)
        table = self.look(profile.op())
        self.assertIn("MatchingFiles", table.text)
        self.assertIn("97.9ms", table.text)  # as the program prints it
        tree = self.look(profile.scope())
        self.assertIn("details", tree.tags)
        self.assertEqual(sum(tag in ("summary", "div") for tag in tree.tags) - 1, len(profile.scope()))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "steps.json"
            asked.write(path)
            self.assertIn("compute", "".join(self.look(opwatch.open(path).steps()).text))
        self.assertEqual(len(opwatch.open(TRACE).steps()), 0)  # nothing says where its steps begin

    def test_names_are_escaped(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.json")
            with open(path, "w") as file:
                file.write('{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "pid": 1, "tid": 1,'
                           ' "name": "<script>alert(1)</script>"}]}')
            for result in (opwatch.open(path).op(), opwatch.open(path).scope()):
                self.assertNotIn("<script", result._repr_html_())

    def test_flame_graph(self):
        svg = opwatch.open(SAMPLE).code().flamegraph(title="mine")
        self.assertTrue(svg._repr_svg_().lstrip().startswith("<"))
        self.assertIn("mine", svg)
        with self.assertRaises(opwatch.UsageError):
            opwatch.open(SAMPLE).steps().flamegraph()


class _Schema(ctypes.Structure):
    pass


_Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p),
                    ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))), ("dictionary", ctypes.c_void_p),
                    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))), ("private_data", ctypes.c_void_p)]


class Arrow(unittest.TestCase):
    """The capsules themselves; what is in the arrays is tested beside the C code, and through DuckDB."""

    def pointer(self, capsule, name):
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        return get(capsule, name)

    def test_schema(self):
        result = opwatch.open(SAMPLE).op()
        capsule = result.__arrow_c_schema__()
        schema = _Schema.from_address(self.pointer(capsule, b"arrow_schema"))
        self.assertEqual(schema.format, b"+s")
        self.assertEqual([schema.children[i].contents.name.decode() for i in range(schema.n_children)],
                         list(result.columns))

    def test_stream_that_nobody_takes(self):
        for _ in range(100):
            opwatch.open(SAMPLE).op().__arrow_c_stream__()
        stream = opwatch.open(SAMPLE).op().__arrow_c_stream__(None)
        gc.collect()
        self.assertTrue(self.pointer(stream, b"arrow_array_stream"))



class Consumers(unittest.TestCase):
    """to_arrow and to_polars hand the result to the library's constructor; these stand-ins read its stream."""

    def check(self, module, constructor, method):
        consumer = types.ModuleType(module)
        setattr(consumer, constructor, arrow_c.rows)
        with unittest.mock.patch.dict(sys.modules, {module: consumer}):
            for result in (opwatch.open(SAMPLE).op(), opwatch.open(SAMPLE).steps(), opwatch.open(SAMPLE).sources(),
                           opwatch.open(SAMPLE).op(hide_name_regexes=[".*"])):
                names, rows = getattr(result, method)()
                self.assertEqual(names, list(result.columns))
                self.assertEqual(rows, [tuple(row) for row in result])

    def test_to_arrow(self):
        self.check("pyarrow", "table", "to_arrow")

    def test_to_polars(self):
        self.check("polars", "DataFrame", "to_polars")

    def test_columns_that_do_not_exist(self):
        profile = opwatch.open(SAMPLE)
        for options, word in ((dict(select=["tme"]), "'time'"), (dict(select="micrs"), "'micros'"), (dict(order_by="bytez"), "'bytes'"),
                              (dict(select=["micros", "perams"]), "'params'"), (dict(order_by="tim"), "'time'")):
            with self.assertRaisesRegex(opwatch.UsageError, "did you mean " + word):
                profile.op(**options)
        self.assertEqual(profile.op(select=["time"]).to_dict(), profile.op(select=["micros"]).to_dict())
        self.assertEqual(profile.scope(select=["total time", "Peak memory"], order_by="total_time").to_dict(),
                         profile.scope(select=["micros", "peak_bytes"], order_by="micros").to_dict())
        with self.assertRaises(TypeError):
            profile.op(select=[1])

    def test_select_knows_what_the_program_knows(self):
        from opwatch import _profile
        program = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
        for option, known in (("--select", _profile._SELECT), ("--order-by", _profile._ORDER)):
            text = subprocess.run([program, "op", SAMPLE, option, "zzz"], stderr=subprocess.PIPE, text=True).stderr
            self.assertEqual(sorted(text.split("it takes:")[1].replace(",", " ").split()), sorted(known))


if __name__ == "__main__":
    unittest.main()
