#!/usr/bin/python3
"""opwatch sql: where the query comes from, what comes out, no file givens are a run, what is refused, Ctrl-C."""
import csv
import io
import json
import os
import stat
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
sys.path.insert(0, str(ROOT / "tests/support"))
import patience  # noqa: E402
import sql_text  # noqa: E402
from sql_text import BIN, rows, run  # noqa: E402

SAMPLE = str(ROOT / "samples/resnet.profile")
PARTS = [str(ROOT / "samples" / name) for name in ("graph.pb", "run_meta_0", "run_meta_1", "run_meta_2", "op_log")]
# In lines that fit a terminal: what wraps is shown with a line's end before the last character was read.
SLOW = ["SELECT count(*) FROM range(100000000) a,", "range(100000) b WHERE a.range * b.range % 7 = 3;"]


def trace(path, dur, name="MatMul"):
    events = [{"ph": "X", "cat": "Op", "name": name, "pid": 1, "tid": 2, "ts": 10 * i, "dur": dur, "args": {"name": f"n{i}", "op": name}}
              for i in range(3)]
    pathlib.Path(path).write_text(json.dumps({"traceEvents": events}))
    return str(path)


class Outputs(unittest.TestCase):
    def test_every_table(self):
        names = [line.split()[0] for line in run(".tables").stdout.splitlines()]
        self.assertIn("event", names)
        self.assertIn("op_view", names)
        for name in names:
            found = rows(SAMPLE, f"SELECT * FROM {name} LIMIT 3")
            columns = [line.split()[0] for line in run(".schema", name).stdout.split("  Options")[0].splitlines()[1:]]
            self.assertTrue(all(list(row) == columns for row in found), name)
        self.assertGreater(rows(SAMPLE, "SELECT count(*) AS n FROM event")[0]["n"], 400)

    def test_names_need_no_quotes(self):
        found = rows(SAMPLE, "SELECT table_name, column_name FROM duckdb_columns() c JOIN duckdb_keywords() k ON "
                             "k.keyword_name IN (lower(c.column_name), lower(c.table_name)) "
                             "WHERE NOT c.internal AND k.keyword_category = 'reserved'")
        self.assertEqual(found, [])

    def test_json_csv_text(self):
        self.assertEqual(rows(SAMPLE, "SELECT 1 AS a, 2 AS a"), [{"a": 1, "a_1": 2}])
        query = "SELECT 'a,\"b' AS t, NULL AS n, 1.5::DOUBLE AS r, 12345678901234567890::HUGEINT * 10 AS h, true AS b"
        self.assertEqual(rows(SAMPLE, query), [{"t": 'a,"b', "n": None, "r": 1.5, "h": 123456789012345678900, "b": True}])
        self.assertEqual(list(csv.reader(io.StringIO(run("--csv", SAMPLE, query).stdout))),
                         [["t", "n", "r", "h", "b"], ['a,"b', "", "1.5", "123456789012345678900", "true"]])
        self.assertEqual(run(SAMPLE, query).stdout.split(), 't n r h b a,"b - 1.5 123456789012345678900 yes'.split())

    def test_names_of_threads_stay_names(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.json"
            ids = ["7", 7, "007", "1e2", "-3", "0", "x9", ""]
            path.write_text(json.dumps([{"ph": "X", "name": str(i), "ts": i, "dur": 1, "pid": 1, "tid": tid} for i, tid in enumerate(ids)]))
            want = [7, 7, None, None, -3, 0, None, None]
            self.assertEqual([r["tid"] for r in rows(str(path), "SELECT tid FROM trace_events ORDER BY ts")], want)
            self.assertEqual([r["tid"] for r in rows(str(path), "SELECT tid FROM event ORDER BY ts")], want)

    def test_many_rows(self):
        for n in (0, 1, 2047, 2048, 2049, 30000):
            query = f"SELECT range AS x FROM range({n})"
            self.assertEqual([row["x"] for row in rows(SAMPLE, query)], list(range(n)))
            self.assertEqual(run("--csv", SAMPLE, query).stdout.split(), ["x", *map(str, range(n))])
            lines = run(SAMPLE, query).stdout.split()
            self.assertEqual([w for w in lines if w.isdigit()], list(map(str, range(n))))

    def test_a_cell_of_a_notebook_as_parquet(self):
        """The first line of a BigQuery cell is not SQL."""
        with tempfile.TemporaryDirectory() as folder:
            run(SAMPLE, "--parquet", "-o", f"{folder}/n.parquet", "%%bigquery df\nSELECT count(*) AS n FROM event")
            with open(f"{folder}/n.parquet", "rb") as f:
                self.assertEqual(f.read(4), b"PAR1")

    def test_parquet(self):
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            path = f"{folder}/it's.parquet"
            run(SAMPLE, "--parquet", "-o", path, "SELECT * FROM event")
            self.assertEqual(os.listdir(folder), ["it's.parquet"])
            quoted = path.replace("'", "''")
            self.assertEqual(rows("--allow-io", SAMPLE, f"SELECT count(*) AS n, sum(dur) AS d FROM '{quoted}'"),
                             rows(SAMPLE, "SELECT count(*) AS n, sum(dur) AS d FROM event"))
            self.assertIn("one query", run(SAMPLE, "--parquet", "-o", path, "SELECT 1; SELECT 2", status=1).stderr)
            run(SAMPLE, "--parquet", "-o", path + ".no", "SELECT nothing", status=1)
            self.assertEqual(os.listdir(folder), ["it's.parquet"])
        self.assertIn("-o FILE", run(SAMPLE, "--parquet", "SELECT 1", status=2).stderr)

    def test_without_duckdbs_internals(self):
        """The functions of DuckDB that its C interface lacks make queries faster and change no result."""
        for query in ("SELECT name, category, count(*), sum(dur) FROM event GROUP BY ALL ORDER BY ALL",
                      "SELECT name, count(*) FROM event WHERE name LIKE '%o%' GROUP BY name ORDER BY ALL",
                      "SELECT type, count(*) FROM op GROUP BY type ORDER BY ALL"):
            results = {subprocess.run([BIN, "sql", SAMPLE, query, "--csv"], capture_output=True, check=True,
                                      env=dict(os.environ, OPWATCH_DUCKDB_INTERNALS=wanted)).stdout for wanted in "01"}
            self.assertEqual(len(results), 1, query)
            self.assertGreater(len(results.pop().splitlines()), 2, query)

    def test_only_regular_files_are_replaced(self):
        """Pipes and devices are written to or refused; as root, opwatch could replace /dev/null otherwise."""
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            pipe, link, file = (f"{folder}/{name}" for name in ("pipe", "link", "file"))
            os.mkfifo(pipe)
            self.assertIn("pipe is a pipe; a Parquet file needs the name of a regular file",
                          run(SAMPLE, "--parquet", "-o", pipe, "SELECT 1", status=1).stderr)
            self.assertTrue(stat.S_ISFIFO(os.lstat(pipe).st_mode))
            open(file, "w").close()
            os.symlink("file", link)
            for options in (("--parquet",), ("--csv",)):
                run(SAMPLE, *options, "-o", link, "SELECT 1")
                self.assertTrue(os.path.islink(link))
                self.assertTrue(os.path.getsize(file))
            try:
                os.mknod(f"{folder}/null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
            except PermissionError:
                self.skipTest("only root can make a device")
            run(SAMPLE, "--parquet", "-o", f"{folder}/null", "SELECT 1", status=1)
            run(SAMPLE, "--csv", "-o", f"{folder}/null", "SELECT 1")
            self.assertTrue(stat.S_ISCHR(os.lstat(f"{folder}/null").st_mode))
            self.assertEqual(sorted(os.listdir(folder)), ["file", "link", "null", "pipe"])

    def test_out_file(self):
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            run(SAMPLE, "--csv", "-o", f"{folder}/x", "SELECT 1 AS a")
            self.assertEqual(pathlib.Path(f"{folder}/x").read_text().split(), ["a", "1"])


class Inputs(unittest.TestCase):
    def test_where_the_query_is(self):
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write("SELECT 41 + 1 AS x; -- done\n")
            file.flush()
            self.assertEqual(rows(SAMPLE, "-f", file.name), [{"x": 42}])
        self.assertEqual(run("--csv", SAMPLE, stdin="SELECT 5 AS x").stdout.split(), ["x", "5"])
        self.assertEqual(run("--csv", SAMPLE, "-", stdin="SELECT 6 AS x").stdout.split(), ["x", "6"])
        self.assertEqual(run("--csv", SAMPLE, "-f", "-", stdin="SELECT 7 AS x").stdout.split(), ["x", "7"])
        self.assertEqual(run("--csv", "FROM range(1) SELECT 8 AS x", SAMPLE).stdout.split(), ["x", "8"])
        self.assertEqual(run("--csv", SAMPLE, "SELECT 1 AS a; CREATE TEMP TABLE t AS SELECT 2 AS b; FROM t").stdout.split(),
                         ["a", "1", "b", "2"])
        self.assertIn("no file given", run("SELECT 1", status=2).stderr)
        with tempfile.TemporaryDirectory(suffix="x") as folder:  # a file may be called like anything
            path = trace(f"{folder}/my trace.json", 3)
            self.assertEqual(rows(SAMPLE, path, "SELECT count(*) AS n FROM run"), [{"n": 2}])
            self.assertIn("No such file", run(f"{folder}/no such.json", status=1, stdin="SELECT 1").stderr)

    def test_dot_commands_in_a_text(self):
        done = run("--csv", SAMPLE, stdin="\n.schema step\nSELECT 1 AS a\n;\n\n .tables\nSELECT '\n.help\n' AS b; -- x\n.quit\n.nonsense\n")
        self.assertIn("step: one training", done.stdout)
        self.assertIn("\ntrace_events ", done.stdout)
        rest = done.stdout.split("\n")
        self.assertEqual(rest[rest.index("a"):][:2], ["a", "1"])
        self.assertTrue(done.stdout.endswith('b\n"\n.help\n"\n'), done.stdout)
        self.assertIn("unknown command '.nonsense'", run(SAMPLE, stdin="SELECT 1;\n.nonsense\nSELECT 2", status=1).stderr)
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            self.assertIn("two queries", run(SAMPLE, "-f", file.name, "SELECT 5", status=2).stderr)

    def test_dot_commands(self):
        self.assertIn("op_id", run(".schema", "event").stdout)
        self.assertIn("did you mean 'event'", run(".schema", "evnt", status=1).stderr)
        self.assertIn("order_by", run(".schema op_view").stdout)

    def test_runs(self):
        def found(*words):
            return [(r["run"], r["sources"]) for r in rows(*words, "SELECT run, sources FROM run ORDER BY number")]
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            one, two = (trace(f"{folder}/timeline-{i}.json", i) for i in (1, 2))
            other = trace(f"{folder}/other.json", 3)
            self.assertEqual(found(one, two, other), [("timeline", 2), ("other", 1)])
            self.assertEqual(found(one, other, "--name", "a", "--name", "b"), [("a", 1), ("b", 1)])
            self.assertEqual(found(one, two, other, "--one-run"), [("timeline", 3)])
            self.assertEqual(found(one, other, "--name", "all"), [("all", 2)])
            self.assertEqual(found("--run", f"x={one}", "--run", f"y={two},{other}"), [("x", 1), ("y", 2)])
            self.assertEqual(found(folder, other), [(os.path.basename(folder).split(".")[0], 3), ("other", 1)])
            self.assertEqual(found(f"{folder}/t*.json"), [("t", 2)])
            os.mkdir(f"{folder}/b")
            self.assertEqual(found(other, trace(f"{folder}/b/other.json", 1)), [("other", 1), ("other-2", 1)])
            self.assertIn("--run takes", run("--run", "x", "SELECT 1", status=2).stderr)
            self.assertIn("3 names for 1 run", run(one, "--name", "a", "--name", "b", "--name", "c", "SELECT 1", status=2).stderr)
        self.assertEqual(found(*PARTS, SAMPLE), [("graph", 5), ("resnet", 1)])

    def test_two_runs_join_on_op_name(self):
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            old, new = trace(f"{folder}/old.json", 7), trace(f"{folder}/new.json", 5)
            found = rows(old, new, "SELECT a.op, a.dur - b.dur AS saved FROM event a JOIN event b USING (op) "
                                   "WHERE a.run = 'old' AND b.run = 'new' ORDER BY 1")
        self.assertEqual(found, [{"op": f"n{i}", "saved": 2000} for i in range(3)])

    def test_stored(self):
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            path = trace(f"{folder}/a.json", 7)
            subprocess.run([BIN, "convert", path, "-o", f"{folder}/a.opw"], check=True, stdout=subprocess.DEVNULL)
            query = "SELECT name, ts, dur, op, arg(id, 'op') AS x FROM event ORDER BY id"
            self.assertEqual(rows(f"{folder}/a.opw", query), rows(path, query))
            self.assertEqual(len(rows(f"{folder}/a.opw", "SELECT * FROM trace_events")), 3)
            data = bytearray(pathlib.Path(f"{folder}/a.opw").read_bytes())
            data[len(data) // 2] ^= 255
            pathlib.Path(f"{folder}/b.opw").write_bytes(data)
            done = subprocess.run([BIN, "sql", f"{folder}/b.opw", "SELECT count(*) FROM event, op, step, source, track"],
                                  text=True, capture_output=True)
            self.assertIn(done.returncode, (0, 1))

    def test_stored_flows_and_counters(self):
        """trace_events of our own file: events, flows, and a row for each series of a counter."""
        def op(tid, ts, dur, name, label):
            return {"ph": "X", "cat": "Op", "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": {"name": label, "op": name}}

        def flow(ph, tid, ts):
            return {"ph": ph, "cat": "DataFlow", "name": "t", "pid": 1, "tid": tid, "ts": ts, "id": 7}
        events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}}, op(2, 10.5, 7, "MatMul", "n0"), flow("s", 2, 11),
                  {"ph": "C", "cat": "Memory", "name": "bytes", "pid": 1, "tid": 0, "ts": 12, "args": {"bfc": 5.5, 'x"y': 7}},
                  op(3, 20, 2, "Add", "n1"), flow("t", 3, 20.25)]
        query = 'SELECT "index", ph, cat, name, pid, tid, ts, dur, arg_name, arg_op, args FROM trace_events ORDER BY 1'
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            path = f"{folder}/a.json"
            pathlib.Path(path).write_text(json.dumps({"traceEvents": events}))
            subprocess.run([BIN, "convert", path, "-o", f"{folder}/a.opw"], check=True, stdout=subprocess.DEVNULL)
            found, written = rows(f"{folder}/a.opw", query), rows(path, query)

        def told(row):
            return {**row, "index": None, "args": None}
        expected = [written[i] for i in (1, 4, 2, 5)] + [{**written[3], "cat": None}] * 2
        self.assertEqual([told(row) for row in found], [told(row) for row in expected])
        self.assertEqual([row["index"] for row in found], list(range(6)))
        self.assertEqual([row["args"] and json.loads(row["args"]) for row in found],
                         [events[1]["args"], events[4]["args"], None, None, {"bfc": 5.5}, {'x"y': 7}])


class Refusals(unittest.TestCase):
    def test_errors(self):
        folder = tempfile.TemporaryDirectory(suffix="x")
        self.addCleanup(folder.cleanup)
        forbidden = os.path.join(folder.name, "no")
        for query, part in (("SELECT * FROM evnt", 'Did you mean "event"'), ("SELECT nam FROM event", '"name"'),
                            ("SELEC", "SELEC"), ("SELEC name FROM event", 'syntax error at or near "SELEC"'), ("INSTALL httpfs", "--allow-io"),
                            ("SELECT e.nme FROM event e", 'Did you mean "name"'), ("SELECT * FROM op_view(order_by := 'mcros')", "micros,"),
                            ("SELECT (", "syntax error"), ("SELECT 1/0 + 'x'", ""),
                            ("SELECT * FROM '/etc/passwd'", "does not exist"), ("FROM read_text('/etc/passwd')", "--allow-io"),
                            (f"COPY event TO '{forbidden}'", "--allow-io"), ("SET threads = 1", "locked")):
            done = subprocess.run([BIN, "sql", SAMPLE, query], text=True, capture_output=True, stdin=subprocess.DEVNULL)
            self.assertNotEqual(done.returncode, 0, query)
            self.assertIn(part, done.stderr)
            self.assertNotIn("terminate", done.stderr)
        self.assertFalse(os.path.exists(forbidden))

    def test_memory_limit(self):
        query = "SELECT count(*) FROM (SELECT DISTINCT a.range, b.range FROM range(10000) a, range(10000) b)"
        done = run(SAMPLE, "--memory-limit", "40M", query, status=1)
        self.assertIn("--memory-limit", done.stderr)
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            spilling = "SELECT count(*) AS n FROM (SELECT DISTINCT hash(range), range FROM range(3000000))"
            limits = ("--threads", "1", "--memory-limit", "100M")
            run(SAMPLE, *limits, spilling, status=1)
            self.assertEqual(rows(SAMPLE, *limits, "--temp-dir", folder, spilling), [{"n": 3000000}])

    def test_a_table_name_of_bigquery_chooses(self):
        def count(*words):
            return rows(*words)[0]["n"]
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            one, two = trace(f"{folder}/tf114.json", 1), trace(f"{folder}/tf115.json", 2)
            each = count(one, "SELECT count(*) AS n FROM trace_events")
            third = trace(f"{folder}/more.trace", 3)
            for words in ((one, two), (one, two, "--run", f"other={third}"), (folder,)):
                for name in ("tf114", "TF115"):
                    self.assertEqual(count(*words, f"SELECT count(*) AS n FROM `p.traces.{name}`"), each)
                    self.assertEqual(count(*words, f"SELECT count(*) AS n FROM `p.traces.{name}` AS t, UNNEST(t.traceEvents) AS e"), each)
                self.assertIn("no run is called 'tf116'", run(*words, "SELECT 1 FROM `p.traces.tf116`", status=1).stderr)
            self.assertIn("the runs are tf114, tf115, other", run(one, two, "--run", f"other={third}", "FROM `p.d.none`", status=1).stderr)
            self.assertEqual(count(one, "SELECT count(*) AS n FROM `p.d.tf115_processed`"), each)  # one run: any name
            named = (one, two, "--name", "old", "--name", "new")
            self.assertEqual([r["run"] for r in rows(*named, "SELECT run FROM run ORDER BY number")], ["old", "new"])
            self.assertEqual(count(*named, "SELECT count(*) AS n FROM `p.d.new`"), each)

    def test_a_list_called_traceEvents(self):
        for query in ("WITH t AS (SELECT [1, 2] AS traceEvents) SELECT e FROM t, UNNEST(t.traceEvents) AS x(e) ORDER BY 1",
                      "CREATE TABLE t AS SELECT [1, 2] AS traceEvents; SELECT e FROM t, UNNEST(t.traceEvents) AS x(e) ORDER BY 1",
                      "SELECT unnest(traceEvents) AS e FROM (SELECT [1, 2] AS traceEvents)"):
            self.assertEqual(rows(SAMPLE, query), [{"e": 1}, {"e": 2}])

    def test_functions_of_bigquery(self):
        for query, value in (("SAFE_DIVIDE(1, 0)", None), ("SAFE_DIVIDE(1, 4)", 0.25), ("CAST(2 AS FLOAT64)", 2.0),
                             ("APPROX_QUANTILES(range, 4)[OFFSET(2)] FROM range(101)", 50), ("[5, 6][ORDINAL(2)]", 6),
                             ("REGEXP_CONTAINS('MatMul_1', r\"_\\d+$\")", True), ("REGEXP_CONTAINS('a.b', r'^a\\.b$')", True),
                             ("TIMESTAMP_MICROS(1000000)", "1970-01-01 00:00:01"), ("ARRAY_LENGTH([1, 2, 3])", 3),
                             ("JSON_EXTRACT_SCALAR('{\"a\": {\"b\": \"x\"}}', '$.a.b')", "x"), ("SAFE_CAST('x' AS INT64)", None),
                             ("COUNTIF(range > 1) FROM range(5)", 3), ("DIV(7, 2)", 3), ("LOGICAL_AND(range < 3) FROM range(3)", True)):
            self.assertEqual(list(rows(SAMPLE, f"SELECT {query}")[0].values()), [value], query)
        for query, value in (("TIMESTAMP_SECONDS(1700000000)", "2023-11-14 22:13:20"), ("TIMESTAMP_MILLIS(1700000000000)", "2023-11-14 22:13:20"),
                             ("GENERATE_ARRAY(1, 7, 3)", "[1, 4, 7]"), ("GENERATE_ARRAY(1, 3)", "[1, 2, 3]"), ("octet_length(CAST('ab' AS BYTES))", 2),
                             ("APPROX_TOP_COUNT(x, 2) FROM (SELECT unnest(['a', 'b', 'a', 'c', 'b', 'a']) AS x)",
                              "[{'value': a, 'count': 3}, {'value': b, 'count': 2}]"),
                             ("SAFE_DIVIDE(1, 4) FROM (SELECT 'a' AS function)", 0.25), ("SAFE_DIVIDE(length(macro), 4) FROM (SELECT 'a' AS macro)", 0.25)):
            self.assertEqual(list(rows(SAMPLE, f"SELECT {query}")[0].values()), [value], query)
        self.assertEqual(run("#standardSQL\nSELECT 1 AS x", SAMPLE, "--csv").stdout.split(), ["x", "1"])
        for head in ("#standardSQL\n", "%%bigquery x --project p\n", "-- a comment\n", "#standardSQL\n-- and\n# more\n"):
            self.assertEqual(rows(SAMPLE, f"{head}SELECT SAFE_DIVIDE(1, 4) AS x"), [{"x": 0.25}])
        self.assertEqual(list(rows(SAMPLE, "SELECT * EXCEPT(a, b) FROM (SELECT 1 AS a, 2 AS b, 3 AS c)")[0]), ["c"])
        self.assertEqual(rows(SAMPLE, "SELECT 1 AS a EXCEPT (SELECT 1)"), [])
        self.assertEqual(rows(SAMPLE, "CREATE MACRO safe_divide(a, b) AS 7; SELECT safe_divide(1, 2) AS x"), [{"x": 7}])
        done = run(SAMPLE, "SELECT TIMESTAMP_DIFF(now(), now(), SECOND)", status=1)
        self.assertIn("It is a function of BigQuery; write date_diff('second', EARLIER, LATER) instead.", done.stderr)

        for query, text in (("SELECT PERCENTILE_CONT(1, 0.5) OVER ()", "write quantile_cont(X, 0.5) OVER () instead"),
                            ("SELECT SAFE.SUBSTR('a', 1)", "write TRY(F(X)) instead of BigQuery's SAFE.F(X)"),
                            ("SELECT INITCAP('a')", "function of BigQuery"), ("SELECT CURRENT_TIMESTAMP()", "write current_timestamp instead")):
            self.assertIn(text, run(SAMPLE, query, status=1).stderr)

    def test_functions_that_mean_something_else_in_bigquery(self):
        """A statement with back-ticks is BigQuery's; all others have DuckDB's meaning."""
        for query, there, here in (("JSON_VALUE('{{\"a\": \"x\"}}', '$.a')", "x", '"x"'), ("REGEXP_REPLACE('aaa', 'a', 'b')", "bbb", "baa"),
                                   ("FORMAT('%d ms', 3)", "3 ms", "%d ms")):
            query = query.replace("{{", "{").replace("}}", "}")
            self.assertEqual(rows(SAMPLE, f"SELECT {query} AS `x`"), [{"x": there}], query)
            self.assertEqual(rows(SAMPLE, f"SELECT {query} AS x"), [{"x": here}], query)

    def check_expressions(self, cases):
        """All in one query with back-ticks, which makes it BigQuery's."""
        found = rows(SAMPLE, "SELECT " + ", ".join(f"{query} AS `x{i}`" for i, (query, _) in enumerate(cases)))[0]
        for i, (query, value) in enumerate(cases):
            self.assertEqual(found[f"x{i}"], value, query)

    def test_texts_and_patterns_of_bigquery(self):
        """Expected values are those of BigQuery's documentation, or follow from it."""
        cases = ((r'REGEXP_EXTRACT("abc123", r"[a-z]+(\d+)")', "123"), (r'REGEXP_EXTRACT("abc123", r"\d+")', "123"),
                             (r'REGEXP_EXTRACT("foo@example.org", r"^[a-zA-Z0-9_.+-]+")', "foo"), ('REGEXP_EXTRACT("abc", "x")', None),
                             (r'REGEXP_EXTRACT("a(b", r"a\((.)")', "b"), ('REGEXP_EXTRACT("a(b", "[(](?:b)")', "(b"), ('REGEXP_EXTRACT(NULL, "a")', None),
                             (r'"a\"b"', 'a"b'), (r"'it\'s'", "it's"), (r'"a\tb\n\\"', "a\tb\n\\"), (r'"\u00e9\x41\101"', "éAA"), ('"""a "b" c"""', 'a "b" c'),
                             (r'r"a\tb"', r"a\tb"), (r'"\d+"', r"\d+"), ("'it''s'", "it's"), ("LOG(8, 2)", 3.0), ("LOG(1)", 0.0), ("ROUND(LOG(10), 4)", 2.3026),
                             ('SUBSTR("apple", 0, 2)', "ap"), ('SUBSTR("apple", -3)', "ple"), ('SUBSTR("apple", -9, 2)', "ap"),
                             ('CONCAT("a", NULL)', None), ('CONCAT("a", "b", "c")', "abc"), ("GREATEST(1, NULL)", None), ("GREATEST(3, 5, 1)", 5),
                             ("LEAST(2, NULL, 1)", None), ("LEAST(3, 2)", 2), ("UNIX_SECONDS(TIMESTAMP_MICROS(-1))", -1))
        self.check_expressions(cases)
        self.assertIn("one group at most", run(SAMPLE, r'SELECT REGEXP_EXTRACT("ab", r"(a)(b)") AS `x`', status=1).stderr)
        self.assertEqual(rows(SAMPLE, "SELECT log(8) > 1 AS a, concat('a', NULL) AS b, 'a\\tb' AS c"), [{"a": False, "b": "a", "c": "a\\tb"}])
        for query, text in (("SOUNDEX('a')", "function of BigQuery, and DuckDB has nothing like it"), ("JSON_QUERY('{}', '$.a')", "write json_extract"),
                            ("IS_NAN(1.0)", "write isnan(X) instead"), ("NET.HOST('x')", "nothing like it"), ("ST_AREA(1)", "nothing like it"),
                            ("HLL_COUNT.INIT(1)", "write approx_count_distinct"), ("HLL_COUNT.MERGE(1)", "nothing like it"),
                            ("AEAD.ENCRYPT('a', 'b', 'c')", "nothing like it"), ("RANGE_START(1)", "nothing like it"), ("BOOL('a', 'b')", "X::BOOLEAN"),
                            ("KLL_QUANTILES.INIT_INT64(1)", "nothing like it"), ("ML.PREDICT(1)", "nothing like it")):
            self.assertIn(text, run(SAMPLE, f"SELECT {query}", status=1).stderr)

    def test_format_of_bigquery(self):
        cases = []
        for form, values, text in (("%d", "10", "10"), ("|%10d|", "11", "|        11|"), ("+%010d+", "12", "+0000000012+"), ("%'d", "123456789", "123,456,789"),
                                   ("-%s-", "'abcd efg'", "-abcd efg-"), ("%f %E", "1.1, 2.2", "1.100000 2.200000E+00"), ("%t", "DATE '2015-09-01'", "2015-09-01"),
                                   ("%'x", "123456789", "75b:cd15"), ("%'o", "123456789", "726,746,425"), ("%x", "-255", "-ff"), ("%#x %X", "255, 255", "0xff FF"),
                                   ("%-5d|%+d|% d", "42, 3, 3", "42   |+3| 3"), ("%*d|%-*d|", "4, 7, 3, 8", "   7|8  |"), ("%.2s|%6s|%-3s|", "'abc', 'é', 'z'", "ab|     é|z  |"),
                                   ("%5.1f|%.0f|%g", "3.14159, 2.6, 0.0001", "  3.1|3|0.0001"), ("100%%", "", "100%"), ("%t %t %t", "NULL, true, 1.5", "NULL true 1.5"),
                                   ("%d", "CAST(6 AS FLOAT64)", "6"), ("%d", "170141183460469231731687303715884105727", "170141183460469231731687303715884105727"),
                                   ("%F %f", "CAST('inf' AS FLOAT64), CAST('-inf' AS FLOAT64)", "INF -inf"), ("%s", "NULL", None), ("%d%s", "1, NULL", None)):
            cases.append((f'FORMAT("{form}"{", " if values else ""}{values})', text))
        self.check_expressions(cases)
        for form, values, text in (("%T", "1", "FORMAT has no %T here"), ("%d", "1.5", "takes an integer, not '1.5'"), ("%d %d", "1", "too few arguments for %d")):
            self.assertIn(text, run(SAMPLE, f'SELECT FORMAT("{form}", {values}) AS `x`', status=1).stderr, form)

    def test_tables_of_bigquery_in_parts(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, count in (("job7", 2), ("job8", 3)):
                events = [{"name": f"op{i}", "ph": "X", "ts": 10 * i, "dur": 5, "pid": 1, "tid": 1} for i in range(count)]
                pathlib.Path(folder, f"{name}.json").write_text(json.dumps({"traceEvents": events}))
            files = [f"{folder}/job7.json", f"{folder}/job8.json"]
            for table in ("`p.d.job8`", "`p`.`d`.`job8`", "`p-1`.d.job8", "`p.d`.`job8`", "`p.d`.job8", "p.d.job8", "`job8`"):
                self.assertEqual(rows(*files, f"SELECT count(*) AS n, max(job8.name) AS m FROM {table}"), [{"n": 3, "m": "op2"}], table)
            self.assertEqual(rows(*files, "SELECT a.name, `b`.ph, `b`.`ts` AS t FROM p.d.job7 AS a, `p`.d.job8 AS b WHERE a.name = `b`.name ORDER BY t DESC LIMIT 1"),
                             [{"name": "op1", "ph": "X", "t": 10}])
            for table in ("`p.d.job9`", "`p`.`d`.`job9`", "p.d.job9", "`job9`"):
                self.assertIn("no run is called 'job9'; the runs are job7, job8", run(*files, f"SELECT count(*) FROM {table}", status=1).stderr, table)
            self.assertEqual(rows(*files, "WITH `job9` AS (SELECT 1 AS x) SELECT x FROM `job9`"), [{"x": 1}])
            self.assertEqual(rows(*files, "CREATE TABLE mine AS SELECT 4 AS x; SELECT x FROM memory.main.mine"), [{"x": 4}])

    def test_a_query_that_begins_with_a_comment(self):
        for query in ("-- slow ops\nSELECT 42 AS x", "--slow\nSELECT 42 AS x", "--\nSELECT 42 AS x"):
            self.assertEqual(rows(SAMPLE, query), [{"x": 42}])

    def test_explain_has_lines(self):
        text = run(SAMPLE, "EXPLAIN SELECT count(*) FROM event").stdout
        self.assertNotIn("\ufffd", text)
        self.assertGreater(len(text.splitlines()), 5)

    def test_several_results_as_json(self):
        found = json.loads(run(SAMPLE, "--json", "SELECT 1 AS a; CREATE TABLE x(i INT); SELECT 2 AS b").stdout)
        self.assertEqual([document["rows"] for document in found], [[{"a": 1}], [{"b": 2}]])
        self.assertEqual(rows(SAMPLE, "CREATE TABLE x(i INT); SELECT 2 AS b"), [{"b": 2}])
        self.assertEqual(json.loads(run(SAMPLE, "--json", "CREATE TABLE x(i INT)").stdout), [])

    def test_several_results_in_one_stream(self):
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            for kind in ("arrow", "parquet"):
                done = run(SAMPLE, f"--{kind}", "-o", f"{folder}/x", "SELECT 1 AS a; SELECT 2 AS b", status=1)
                self.assertIn("holds the result of one query", done.stderr)
                self.assertEqual(os.listdir(folder), [])
            run(SAMPLE, "--arrow", "-o", f"{folder}/x", "CREATE TABLE x AS SELECT 1 AS a; FROM x")

    def test_csv_of_what_is_not_a_number(self):
        text = run(SAMPLE, "--csv", "SELECT 'nan'::DOUBLE AS a, 'inf'::DOUBLE AS b, '-inf'::DOUBLE AS c, NULL::DOUBLE AS d").stdout
        self.assertEqual(text.splitlines()[1], "NaN,Infinity,-Infinity,")

    def test_a_notebook_line_before_parquet(self):
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            run(SAMPLE, "--parquet", "-o", f"{folder}/x.parquet", "%%bigquery x\nSELECT 42 AS x")
            self.assertEqual(rows(SAMPLE, "--allow-io", f"FROM '{folder}/x.parquet'"), [{"x": 42}])

    def test_unknown_is_null(self):
        with tempfile.TemporaryDirectory(suffix="x") as folder:
            with open(f"{folder}/a.folded", "w") as out:
                out.write("main;work 3\n")
            found = rows(f"{folder}/a.folded", "SELECT f.line, f.function_line, s.cpu FROM sample s, frame f LIMIT 1")
            self.assertEqual(found, [{"line": None, "function_line": None, "cpu": None}])
            events = [{"ph": "X", "name": "a", "pid": 1, "tid": tid, "ts": i, "dur": 1} for i, tid in enumerate(("7", 7, "main"))]
            with open(f"{folder}/t.json", "w") as out:
                json.dump(events, out)
            self.assertEqual([r["tid"] for r in rows(f"{folder}/t.json", 'SELECT tid FROM trace_events ORDER BY "index"')], [7, 7, None])

    def test_interrupt(self):
        p = subprocess.Popen([BIN, "sql", SAMPLE, " ".join(SLOW)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        patience.until(lambda: p.poll() is not None or patience.catches(p.pid, signal.SIGINT), "it does not begin")
        self.assertIsNone(p.poll())
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=patience.PATIENCE)
        self.assertEqual(p.returncode, 130)
        self.assertIn("cancelled", err)

    def test_closed_pipe(self):
        done = subprocess.run(["bash", "-c", f"'{BIN}' sql --csv '{SAMPLE}' 'SELECT range FROM range(10000000)' | head -n 2"],
                              text=True, capture_output=True)
        self.assertEqual((done.stdout.split(), done.stderr), (["range", "0"], ""))


class Prompt(unittest.TestCase):
    def talk(self, *words, lines):
        """Types lines, each after the output of the one before has come to rest."""
        master, slave = pty.openpty()
        home = tempfile.TemporaryDirectory(suffix="x")
        self.addCleanup(home.cleanup)
        p = subprocess.Popen([BIN, *words], stdin=slave, stdout=slave, stderr=slave, close_fds=True, start_new_session=True,
                             preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
                             env={**os.environ, "TERM": "dumb", "ASAN_OPTIONS": "detect_leaks=0",  # libedit keeps names
                                   "HOME": home.name, "XDG_STATE_HOME": ""})
        os.close(slave)
        text = b""

        def read(wanted):
            nonlocal text
            end, seen = time.monotonic() + patience.PATIENCE, len(text)
            while wanted not in text[seen:]:
                self.assertLess(time.monotonic(), end, text)
                if select.select([master], [], [], 0.2)[0]:
                    try:
                        text += os.read(master, 65536)
                    except OSError:
                        return
        read(b"sql> ")
        for line, wanted in lines:
            os.write(master, line.encode())
            read(wanted.encode())
        p.wait(timeout=patience.PATIENCE)
        os.close(master)
        return text.decode(errors="replace"), p.returncode

    def test_lines_and_interrupt(self):
        text, code = self.talk("sql", SAMPLE, lines=[
            ("SELECT 40\n", "...>"), ("+ 2 AS answer;\n", "sql> "), (".tables\n", "sql> "), ("SELECT * FROM evnt;\n", "sql> "),
            (SLOW[0] + "\n", "...>"), (SLOW[1] + "\n", "\n"), ("\x03", "sql> "), ("SELECT 'still ' || 'here';\n", "sql> "), (".quit\n", "x")])
        self.assertEqual(code, 0, text)
        self.assertIn("42", text)
        self.assertIn("trace_events", text)
        self.assertIn("Did you mean", text)
        self.assertIn("cancelled", text)
        self.assertIn("still here", text)

    def test_in_the_shell(self):
        done = subprocess.run([BIN, "shell", SAMPLE], text=True, capture_output=True,
                              input="sql SELECT count(*) AS n FROM step\nsql\nSELECT 1\n  + 1 AS two;\n.quit\nverdict\n")
        self.assertEqual(done.returncode, 0)
        self.assertIn("two", done.stdout)
        self.assertIn("wait for input", done.stdout)


if __name__ == "__main__":
    sql_text.need_duckdb(SAMPLE)
    unittest.main()
