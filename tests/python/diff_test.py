#!/usr/bin/python3
"""opwatch.diff and the table diff of SQL: what the program's --json has, as a table with attributes."""
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import opwatch

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BIN = os.environ.get("OPWATCH_BIN", ROOT / "build/release/opwatch")
sys.path.insert(0, str(ROOT / "tests/support"))
import jobsim  # noqa: E402
from jobsim import US, Shape  # noqa: E402


def program(*arguments, codes=(0,)):
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([str(BIN), *map(str, arguments), "--json"], stdout=subprocess.PIPE, check=False, env=env)
    assert done.returncode in codes, done
    return json.loads(done.stdout)


class Compared(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.base, cls.new = [], []
        for i in range(4):
            for side, kernel, seed in ((cls.base, 220, i), (cls.new, 250, 40 + i)):
                path = f"{cls.folder.name}/run{kernel}_{i}.json"
                shape = Shape(layers=6, steps=6, kernel=kernel * US, seed=seed)
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(jobsim.trace(jobsim.simulate(shape)[0]), f)
                side.append(path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_two_runs(self):
        expected = program("diff", self.base[0], self.new[0])
        for a, b in ((self.base[0], self.new[0]), (pathlib.Path(self.base[0]), (self.new[0],)),
                     (opwatch.open(self.base[0]), [opwatch.open(self.new[0])])):
            d = opwatch.diff(a, b)
            self.assertEqual([row._asdict() for row in d], expected["rows"])
            for name in ("conclusion", "delta_ns", "unexplained_ns", "sentence", "unit", "delta_low_ns", "gate", "limits"):
                self.assertEqual(getattr(d, name), expected[name])
                self.assertEqual(d.extras[name], expected[name])
        self.assertEqual(sum(d["delta_ns"]) + d.unexplained_ns, d.delta_ns)
        self.assertIn("conclusion", dir(d))
        with self.assertRaisesRegex(AttributeError, "conclusion"):
            d.no_such_value  # pylint: disable=pointless-statement

    def test_lists(self):
        d = opwatch.diff(base=self.base, new=self.new, fail_if=["step_time > 3%", "launches > 1%"])
        expected = program("diff", "--base", *self.base, "--new", *self.new, "--fail-if", "step_time > 3%", "--fail-if",
                           "launches > 1%", codes=(5,))
        self.assertEqual((d.gate, d.conclusion, d.runs_base), ("beyond", "slower", 4))
        self.assertEqual(d.limits, expected["limits"])
        self.assertEqual(opwatch.diff(base=self.base, new=self.new, fail_if="step_time > 90%").gate, "within")

    def test_shown(self):
        """In a notebook and as text: the sentence first; names are escaped."""
        path = f"{self.folder.name}/nasty.json"
        with open(self.new[0], encoding="utf-8") as f:
            text = f.read().replace("aten::linear", "<script>alert(1)</script>")
        pathlib.Path(path).write_text(text, encoding="utf-8")
        d = opwatch.diff(self.base[0], path)
        page = d._repr_html_()
        self.assertIn("slower per step", page)
        self.assertNotIn("<script>", page)
        self.assertIn("&lt;script&gt;", page)
        self.assertTrue(repr(d).startswith(d.sentence))
        self.assertEqual(len(d.to_markdown(limit=2).split("\n\n")[-1].splitlines()), 4)
        self.assertEqual(len(d.to_pandas()) if self.has("pandas") else len(d), len(d))

    def has(self, name):
        try:
            __import__(name)
            return True
        except ImportError:
            return False

    def test_outlives_its_profiles(self):
        a, b = opwatch.open(self.base[0]), opwatch.open(self.new[0])
        d = opwatch.diff(a, b)
        rows = [tuple(row) for row in d]
        a.close()
        b.close()
        del a, b
        gc.collect()
        self.assertEqual([tuple(row) for row in d], rows)

    def test_wrong_use(self):
        for call, error in ((lambda: opwatch.diff(self.base[0]), opwatch.UsageError),
                            (lambda: opwatch.diff(self.base[0], self.base[0]), opwatch.UsageError),
                            (lambda: opwatch.diff(base=[], new=self.new), opwatch.UsageError),
                            (lambda: opwatch.diff(self.base[0], 3), TypeError),
                            (lambda: opwatch.diff(self.base[0], "/no/such/file"), opwatch.NotFound),
                            (lambda: opwatch.diff(self.base[0], self.new[0], fail_if="speed > 3"), opwatch.UsageError)):
            with self.assertRaises(error):
                call()

    def test_sql(self):
        """The table has the rows and the unexplained rest: its sums are those of the steps."""
        try:
            session = opwatch.Session([("old", opwatch.open(self.base[0])), ("now", opwatch.open(self.new[0]))])
        except opwatch.Unsupported as error:
            self.skipTest(str(error))
        expected = program("diff", self.base[0], self.new[0])
        (delta, base, new), = session.query("SELECT sum(delta_ns), sum(base_ns), sum(new_ns) FROM diff")
        self.assertEqual((delta, base, new), tuple(expected[name] for name in ("delta_ns", "base_step_ns", "new_step_ns")))
        (run, base_run, phase, op), = session.query(
            "SELECT run, base_run, phase, op FROM diff ORDER BY abs(delta_ns) DESC LIMIT 1")
        self.assertEqual((run, base_run, phase, op), ("now", "old", expected["rows"][0]["phase"], expected["rows"][0]["op"]))
        (other,), = session.query("SELECT sum(delta_ns) FROM diff(base := 'now')")
        self.assertEqual(other, -expected["delta_ns"])
        if not os.environ.get("LD_PRELOAD"):  # DuckDB's exceptions do not pass a sanitizer that was loaded before it
            with self.assertRaisesRegex(opwatch.Error, "no run is called 'none'"):
                session.query("SELECT * FROM diff(base := 'none')")
        alone = opwatch.open(self.base[0]).sql("SELECT count(*) FROM diff")
        self.assertEqual(alone[0][0], 0)


if __name__ == "__main__":
    unittest.main()
