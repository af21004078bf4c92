#!/usr/bin/python3
"""SQL from Python and from notebook cells, on a stand-in for IPython's shell. Skipped where there is no DuckDB."""
import contextlib
import datetime
import decimal
import io
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
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
    import numpy
    import pandas
except ImportError:
    numpy = pandas = None


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

    def test_parameters(self):
        sql = self.profile.sql
        self.assertEqual(tuple(sql("SELECT ?, ?, ?, ?, ?", [1, "it's; --", None, True, 0.5])[0]), (1, "it's; --", None, True, 0.5))
        self.assertEqual(tuple(sql("SELECT $2, $1, $2", [1, 2])[0]), (2, 1, 2))
        self.assertEqual(sql("SELECT count(*) AS n FROM op WHERE type = $kind AND id > $least", {"kind": "MatMul", "least": 0})[0].n,
                         sql("SELECT count(*) AS n FROM op WHERE type = 'MatMul'")[0].n)
        self.assertEqual(sql("SELECT $a AS x; SELECT $a + $b AS y", {"a": 1, "b": 2})[0].y, 3)
        self.assertEqual(sql("SELECT [$a, 2] AS x, make_timestamp($b) AS t", {"a": 1, "b": 0})[0],
                         ([1, 2], datetime.datetime(1970, 1, 1)))
        with opwatch.Session([self.profile]) as session:
            self.assertEqual(session.query("SELECT ? AS x", ("y",))[0].x, "y")
        for text, params, kind, message in (
                ("SELECT ?", None, opwatch.UsageError, "without a value"), ("SELECT $x", {"y": 1}, opwatch.UsageError, r"\$x"),
                ("SELECT 1", [1], opwatch.UsageError, r"no parameter \$1"), ("SELECT ?", [object()], TypeError, "parameter 1"),
                ("SELECT ?", "text", TypeError, "a list or a dict"), ("SELECT $a", {1: 2}, TypeError, "name of a parameter"),
                ("SELECT ?", [2**127], OverflowError, "parameter 1"), ("SELECT ?", [[1, "x"]], opwatch.UsageError, "different types"),
                ("SELECT ?", [decimal.Decimal("0." + "1" * 39)], opwatch.UsageError, "38 digits"),
                ("SELECT ?", [{"a": 1}], TypeError, "parameter 1"), ("SELECT ?", [[object()]], TypeError, "parameter 1")):
            with self.assertRaisesRegex(kind, message):
                sql(text, params)

    def bound(self, value):
        """(type in SQL, value) of a value that goes through a query."""
        return tuple(self.profile.sql("SELECT typeof($1) AS kind, $1 AS value", [value])[0])

    def test_parameters_of_all_types(self):
        date, time = datetime.date(2024, 2, 29), datetime.datetime(1969, 12, 31, 23, 59, 59, 999999)
        zone = datetime.timezone(datetime.timedelta(hours=2))
        for value, kind, back in (
                (date, "DATE", date), (datetime.date.min, "DATE", datetime.date.min), (time, "TIMESTAMP", time),
                (datetime.datetime(2024, 2, 29, 1, 30, tzinfo=zone), "TIMESTAMP WITH TIME ZONE",
                 datetime.datetime(2024, 2, 28, 23, 30, tzinfo=datetime.timezone.utc)),
                (datetime.time(1, 2, 3, 4), "TIME", "01:02:03.000004"), (datetime.timedelta(days=-1, seconds=1), "INTERVAL", "-23:59:59"),
                (2**100, "HUGEINT", 2**100), (-2**127 + 1, "HUGEINT", -2**127 + 1), (2**63, "HUGEINT", 2**63), (-2**63, "BIGINT", -2**63),
                (decimal.Decimal("-12.50"), "DECIMAL(38,2)", -12.5), (decimal.Decimal("1E+3"), "HUGEINT", 1000),
                (decimal.Decimal("1E-3"), "DECIMAL(38,3)", 0.001), (decimal.Decimal("Infinity"), "DOUBLE", float("inf")),
                ([1, 2, None], "BIGINT[]", [1, 2, None]), ([1, 2.5], "DOUBLE[]", [1, 2.5]), (("it's", ""), "VARCHAR[]", ["it's", ""]),
                ([[1], [], [None, 2**64]], "HUGEINT[][]", [[1], [], [None, 2**64]]), ([decimal.Decimal("0.5"), 2], "DECIMAL(38,1)[]", [0.5, 2]),
                ([True, False], "BOOLEAN[]", [True, False])):
            self.assertEqual(self.bound(value), (kind, back), value)
        sql = self.profile.sql
        self.assertEqual(tuple(sql("SELECT typeof($1), hex($1), octet_length($1)", [bytes(range(256))])[0]),
                         ("BLOB", bytes(range(256)).hex().upper(), 256))
        self.assertEqual(sql("SELECT hex(?) AS h", [bytearray(b"a\0b")])[0].h, "610062")
        self.assertEqual(sql("SELECT [range] AS x FROM range(5) WHERE list_contains(?, range)", [[1, 3, 7]])["x"], [[1], [3]])
        self.assertEqual(sql("SELECT len(?) AS n", [[]])[0].n, 0)
        self.assertEqual(sql("SELECT count(*) AS n FROM op WHERE list_contains($kinds, type)", {"kinds": ["MatMul", "x'); DROP"]})[0].n,
                         sql("SELECT count(*) AS n FROM op WHERE type = 'MatMul'")[0].n)
        self.assertEqual(sql("SELECT DATE '2024-03-01' - $1 AS days, make_timestamp(0) < $2 AS before", [date, time])[0], (1, False))
        self.assertEqual(self.bound([date, time])[0], "TIMESTAMP[]")
        nested = [1]
        for _ in range(12):
            nested = [nested]
        with self.assertRaisesRegex(opwatch.UsageError, "lists in lists"):
            self.bound(nested)

    @unittest.skipUnless(pandas, "no pandas")
    def test_parameters_of_numpy_and_pandas(self):
        for value, kind, back in (
                (numpy.int64(3), "BIGINT", 3), (numpy.uint64(2**63), "HUGEINT", 2**63), (numpy.float32(0.5), "DOUBLE", 0.5),
                (numpy.bool_(True), "BOOLEAN", True), (numpy.array([1, 2]), "BIGINT[]", [1, 2]), (numpy.array(["a"]), "VARCHAR[]", ["a"]),
                (numpy.datetime64("2020-01-02"), "TIMESTAMP", datetime.datetime(2020, 1, 2)),
                (numpy.datetime64("2020-01-02T03:04:05.123456789"), "TIMESTAMP", datetime.datetime(2020, 1, 2, 3, 4, 5, 123456)),
                (pandas.Timestamp("2020-01-02 03:04:05"), "TIMESTAMP", datetime.datetime(2020, 1, 2, 3, 4, 5)),
                (pandas.Timedelta(1500, "ms"), "INTERVAL", "00:00:01.5"), (pandas.Series([1.5, 2]), "DOUBLE[]", [1.5, 2]),
                (pandas.Series(["a", "b"]), "VARCHAR[]", ["a", "b"])):
            self.assertEqual(self.bound(value), (kind, back), repr(value))
        self.assertEqual(self.bound(pandas.Timestamp("2020-01-02 03:04:05.123456789"))[0], "TIMESTAMP_NS")
        self.assertIsNone(self.bound(pandas.NaT)[1])

    @unittest.skipUnless(pandas, "no pandas")
    def test_large_whole_numbers_stay_exact(self):
        result = self.profile.sql("SELECT unnest([2::HUGEINT, NULL, 170141183460469231731687303715884105727]) AS big, "
                                  "unnest([18446744073709551615::UBIGINT, 1, NULL]) AS u, unnest([1.25, NULL, 3]) AS d, "
                                  "unnest([5::HUGEINT, NULL, 7]) AS small")
        frame = result.to_pandas()
        self.assertEqual([str(kind) for kind in frame.dtypes], ["object", "object", "float64", "Int64"])
        self.assertEqual(frame["big"].dropna().tolist(), [2, 2**127 - 1])
        self.assertEqual(frame["u"].dropna().tolist(), [2**64 - 1, 1])
        self.assertEqual(int(frame["small"].sum()), 12)
        self.assertEqual(frame["big"].isna().tolist(), [False, True, False])
        arrays = result.to_numpy()
        self.assertEqual(arrays["big"].compressed().tolist(), [2, 2**127 - 1])
        self.assertEqual(arrays["d"].compressed().tolist(), [1.25, 3])

    def test_times_and_lists(self):
        result = self.profile.sql("SELECT make_timestamp(1500000 + range) AS t, DATE '2024-02-03' + range::INT AS d, "
                                  "make_timestamp(0)::TIMESTAMPTZ AS z, [range, NULL] AS l, {'a': [1.5, 2], 'b': 'x, \"y\"'} AS s, "
                                  "['a, b', 'it''s'] AS texts FROM range(2) UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL ORDER BY ALL")
        self.assertEqual([c.type for c in result.schema], ["timestamp", "date", "timestamptz", "list", "object", "list"])
        first = (datetime.datetime(1970, 1, 1, 0, 0, 1, 500000), datetime.date(2024, 2, 3),
                 datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc), [0, None], {"a": [1.5, 2.0], "b": 'x, "y"'}, ["a, b", "it's"])
        self.assertEqual(tuple(result[0]), first)
        self.assertEqual(tuple(list(result)[0]), first)
        self.assertEqual(tuple(result[-1]), (None,) * 6)
        self.assertEqual(result["l"], [[0, None], [1, None], None])
        odd = self.profile.sql("SELECT 'infinity'::TIMESTAMP AS t, DATE '0044-03-15 (BC)' AS d")[0]
        self.assertEqual(odd.t, "infinity")
        self.assertIsInstance(odd.d, str)

    @unittest.skipUnless(pandas, "no pandas")
    def test_times_and_lists_in_pandas(self):
        frame = self.profile.sql("SELECT make_timestamp(1500000) AS t, DATE '2024-02-03' AS d, make_timestamp(0)::TIMESTAMPTZ AS z, "
                                 "[1, 2] AS l UNION ALL SELECT NULL, NULL, NULL, NULL ORDER BY t").to_pandas()
        self.assertEqual([str(kind) for kind in frame.dtypes[["t", "d"]]], ["datetime64[ns]"] * 2)
        self.assertIn("UTC", str(frame.dtypes["z"]))
        self.assertEqual(frame["t"][0], pandas.Timestamp("1970-01-01 00:00:01.5"))
        self.assertEqual(frame["d"][0], pandas.Timestamp("2024-02-03"))
        self.assertTrue(frame["t"].isna()[1] and frame["d"].isna()[1] and frame["z"].isna()[1])
        self.assertEqual(list(frame["l"]), [[1, 2], None])
        self.assertEqual(len(self.profile.sql("SELECT make_timestamp(0) AS t, [1] AS l WHERE false").to_pandas()), 0)
        self.assertEqual(self.profile.sql("SELECT 'infinity'::TIMESTAMP AS t").to_pandas()["t"][0], "infinity")
        kinds = self.profile.sql("SELECT unnest([true, NULL]) AS unknown, true AS known").to_pandas().dtypes
        self.assertEqual([str(kind) for kind in kinds], ["boolean", "bool"])
        frame = self.profile.sql("SELECT unnest([TIMESTAMP_NS '2020-01-02 03:04:05.123456789', NULL]) AS t").to_pandas()
        self.assertEqual((frame["t"][0].nanosecond, frame["t"][0].microsecond, frame["t"].isna()[1]), (789, 123456, True))

    def test_ask(self):
        result = self.profile.ask("top_ops", limit=2)
        self.assertEqual([row.op_type for row in result], ["MatchingFiles", "DecodeJpeg"])
        with self.assertRaisesRegex(opwatch.UsageError, "did you mean 'top_ops'"):
            self.profile.ask("topops")
        with self.assertRaisesRegex(opwatch.UsageError, "did you mean 'limit'"):
            self.profile.ask("top_ops", limt=2)
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "mine.sql").write_text("-- param n int 3: a number\nSELECT $n AS n")
            self.assertEqual(self.profile.ask("mine", queries=folder, n=7)[0].n, 7)
            self.assertIn("mine", [name for name, *_ in opwatch.queries(folder)])
            with self.assertRaises(FileNotFoundError):
                self.profile.ask("mine", queries=folder + "/none")
        with opwatch.Session([("a", self.profile), ("b", opwatch.open(SAMPLE))]) as session:
            self.assertEqual({row.ratio for row in session.ask("compare_steps")}, {1.0})

    def test_an_empty_answer_says_why(self):
        result = self.profile.ask("rank_waits")
        self.assertEqual((len(result), result.footer),
                         (0, "No rows: the files have no collectives. 'opwatch ask top_ops' shows what was recorded."))
        self.assertIsNone(self.profile.sql("SELECT 1 AS a").footer)

    def test_numbers_of_other_libraries(self):
        class Index:
            def __index__(self):
                return 2 ** 40

        class Real:
            def __float__(self):
                return 0.25

        self.assertEqual(tuple(self.profile.sql("SELECT ? AS a, ? AS b", [Index(), Real()])[0]), (2 ** 40, 0.25))
        for wrong in ({"a": 1}, {1, 2}, 1j, object()):
            with self.assertRaises(TypeError):
                self.profile.sql("SELECT ? AS a", [wrong])
        if numpy:
            row = self.profile.sql("SELECT $i AS i, $f AS f", {"i": numpy.int64(-3), "f": numpy.float32(1.5)})[0]
            self.assertEqual((row.i, row.f), (-3, 1.5))

    def test_export(self):
        with tempfile.TemporaryDirectory() as folder:
            written = self.profile.export(folder + "/x", tables=["op", "step"])
            self.assertEqual((written.tables, written.files, sorted(os.listdir(folder + "/x"))), (2, 2, ["op.parquet", "step.parquet"]))
            with self.assertRaises(opwatch.Error):
                self.profile.export(folder + "/x", tables="op")
            self.profile.export(folder + "/x", to="csv", tables="op", overwrite=True)
            with self.assertRaisesRegex(TypeError, "did you mean 'tables'"):
                self.profile.export(folder, table="op")
            with self.assertRaises(opwatch.UsageError):
                self.profile.export(folder + "/y", to="excel")
            with opwatch.Session([("a", self.profile), ("b", opwatch.open(SAMPLE))]) as session:
                self.assertEqual(session.export(folder + "/two", to="ndjson", tables=["step"]).rows, 6)

    def test_parquet(self):
        with tempfile.TemporaryDirectory() as folder:
            self.profile.op().to_parquet(folder + "/op.parquet")
            count = self.profile.sql("SELECT count(*) AS n FROM '%s/op.parquet'" % folder, allow_io=True)[0].n
            self.assertEqual(count, len(self.profile.op()))

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
        with self.assertRaisesRegex(opwatch.UsageError, "no profile given"):
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
