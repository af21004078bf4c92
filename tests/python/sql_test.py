#!/usr/bin/python3
"""SQL from Python and from notebook cells, on a stand-in for IPython's shell. Skipped where there is no DuckDB."""
import contextlib
import io
import os
import pathlib
import signal
import subprocess
import sys
import threading
import unittest

import opwatch
from opwatch._magic import Magic

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
SAMPLE = str(ROOT / "samples/resnet.profile")
TRACE = str(ROOT / "tests/fuzz/seeds/trace/kineto.json")
QUERY = "SELECT op_type, sum(exec_ns) AS ns FROM op_step GROUP BY ALL ORDER BY ns DESC LIMIT 2"
ROWS = [("MatchingFiles", 293732000), ("DecodeJpeg", 115009000)]

try:
    import pandas
except ImportError:
    pandas = None


class Shell:
    """As much of IPython's shell as the magic uses."""

    def __init__(self, **names):
        self.user_ns = names


class Sql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.profile = opwatch.open(SAMPLE)

    def test_rows(self):
        self.assertEqual(list(self.profile.sql(QUERY)), ROWS)
        self.assertEqual(list(self.profile.sql("SELECT 1 AS a; SELECT 2 AS b"))[0].b, 2)
        self.assertEqual(len(self.profile.sql("SELECT 1 WHERE false")), 0)

    def test_types(self):
        row = self.profile.sql("SELECT 1::BIGINT AS i, 0.5::DOUBLE AS r, 'x' AS t, true AS b, NULL::BIGINT AS n, "
                               "170141183460469231731687303715884105727::HUGEINT AS big, 1.25 AS d, sum(1) AS s")[0]
        self.assertEqual(tuple(row), (1, 0.5, "x", True, None, 2**127 - 1, 1.25, 1))
        self.assertEqual([type(value) for value in row], [int, float, str, bool, type(None), int, float, int])

    def test_equal_names(self):
        self.assertEqual(self.profile.sql("SELECT 1 AS a, 2 AS a, 3 AS b").to_dict(), {"a": [1], "a_1": [2], "b": [3]})

    def test_results_outlive_everything(self):
        profile = opwatch.open(SAMPLE)
        result = profile.sql(QUERY)
        profile.close()
        self.assertEqual(list(result), ROWS)
        with self.assertRaisesRegex(ValueError, "closed"):
            profile.sql(QUERY)

    def test_tables_stay(self):
        self.profile.sql("CREATE OR REPLACE TABLE mine AS " + QUERY)
        self.assertEqual(list(self.profile.sql("SELECT * FROM mine")), ROWS)

    def test_errors(self):
        with self.assertRaises(opwatch.Error):
            self.profile.sql("SELEC")
        with self.assertRaises(opwatch.Error):
            self.profile.sql("SELECT * FROM read_csv('/etc/passwd')")
        with self.assertRaises(TypeError):
            self.profile.sql(3)
        with self.assertRaises(TypeError):
            self.profile.sql("SELECT 1", no_such=1)

    def test_several_runs(self):
        with opwatch.Session([("a", self.profile), opwatch.open(TRACE)]) as session:
            runs = session.query("SELECT DISTINCT run FROM event ORDER BY run")["run"]
        self.assertEqual(runs, ["a", "kineto"])
        with self.assertRaises(ValueError):
            session.query("SELECT 1")

    def test_threads_wait_for_each_other(self):
        found = []
        threads = [threading.Thread(target=lambda: found.append(list(self.profile.sql(QUERY)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [ROWS] * 4)

    def test_interrupt(self):
        code = ("import opwatch, sys\np = opwatch.open(%r)\np.sql('SELECT 1')\n"
                "try:\n    print('ready', flush=True)\n    p.sql('SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range %% 7 = 3')\n"
                "except KeyboardInterrupt:\n    print('interrupted', list(p.sql('SELECT 2 AS x'))[0].x)\n" % SAMPLE)
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline().strip(), "ready")
        threading.Timer(0.5, process.send_signal, (signal.SIGINT,)).start()
        self.assertEqual(process.communicate(timeout=600)[0].strip(), "interrupted 2")


class Cells(unittest.TestCase):
    def test_variable_and_destination(self):
        shell = Shell(p=opwatch.open(SAMPLE))
        magic = Magic(shell)
        self.assertEqual(list(magic("", QUERY + ";")), ROWS)  # the only profile around
        self.assertIsNone(magic("df --run p", QUERY))
        frame = shell.user_ns["df"]
        if pandas:
            self.assertEqual(frame.values.tolist(), [list(row) for row in ROWS])
        self.assertEqual(list(magic("--destination_table my.ops --project any", QUERY)), ROWS)
        self.assertEqual(list(magic("", "SELECT op_type FROM my.ops LIMIT 1")), [("MatchingFiles",)])
        self.assertEqual(list(magic("", "SELECT op_type FROM `any.my.ops` LIMIT 1")), [("MatchingFiles",)])
        magic.close()

    def test_paths_and_words(self):
        shell = Shell(where=SAMPLE)
        magic = Magic(shell)
        with self.assertRaisesRegex(opwatch.UsageError, "which profile"):
            magic("", QUERY)
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            self.assertEqual(list(magic("--verbose --run %s" % SAMPLE, QUERY)), ROWS)
        self.assertIn("2 rows", told.getvalue())
        self.assertEqual(list(magic("--run where", QUERY)), ROWS)
        self.assertEqual(list(magic("", QUERY)), ROWS)
        for line, cell in (("a b", QUERY), ("--what", QUERY), ("3x", QUERY), ("", " ;"), ("--destination_table a;b", QUERY)):
            with self.assertRaises(opwatch.UsageError):
                magic(line, cell)
        magic.close()


def has_sql():
    try:
        opwatch.open(SAMPLE).sql("SELECT 1")
        return True
    except opwatch.Unsupported as error:
        print(error)
        return False


if __name__ == "__main__":
    if os.environ.get("LD_PRELOAD"):
        print("skipped: DuckDB's exceptions do not pass a sanitizer that was loaded before it")
        sys.exit(77)
    if not has_sql():
        sys.exit(77)
    unittest.main()
