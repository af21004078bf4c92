"""Every view can be written as newline-delimited JSON, as a stream of Arrow and as Parquet, with the values of --json; a tree has the
columns depth and parent. Also SQL and named queries, and what is refused."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
sys.path.insert(0, str(ROOT / "tests/support"))
import arrow_stream  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
SAMPLE = str(ROOT / "samples/resnet.profile")
TRACE = {"traceEvents": [{"ph": "X", "pid": 1, "tid": 1 + i % 2, "ts": 10 * i, "dur": 7, "name": f"op{i % 5}"} for i in range(100)]
         + [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "é \"quoted\", with\nlines"}}]}


def run(*words, status=0):
    p = subprocess.run([BIN, *map(str, words)], capture_output=True)
    assert p.returncode == status, (words, p.returncode, p.stderr)
    return p


def flat(document):
    """Rows of --json as ndjson has them."""
    rows = []

    def walk(row, depth, parent):
        number = len(rows)
        rows.append({"depth": depth, "parent": parent, **{k: v for k, v in row.items() if k != "children"}})
        for child in row.get("children", []):
            walk(child, depth + 1, number)
    for row in document["rows"]:
        walk(row, 0, None)
    return rows


class TableOutputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = tempfile.TemporaryDirectory(prefix="tables")
        cls.addClassCleanup(cls.temp.cleanup)
        cls.root = pathlib.Path(cls.temp.name)
        cls.trace = cls.root / "trace.json"
        cls.trace.write_text(json.dumps(TRACE))
        listing = run("help").stdout.decode()
        cls.views = re.findall(r"^  (\w+) ", listing[listing.index("\nViews"):].split("\n\n")[0], re.M)
        try:
            run("sql", SAMPLE, "SELECT 1")
            cls.sql = True
        except AssertionError:
            cls.sql = False

    def expected(self, *words):
        document = json.loads(run(*words, "--json").stdout)
        tree = any("children" in row for row in document["rows"])
        return flat(document) if tree else document["rows"], tree

    def check(self, *words):
        rows, tree = self.expected(*words)
        lines = [json.loads(line) for line in run(*words, "--ndjson").stdout.decode().split("\n") if line]
        if lines and "parent" in lines[0] and not tree:  # a tree of one row
            rows = [{"depth": 0, "parent": None, **row} for row in rows]
        self.assertEqual(lines, rows, words)
        names, arrow = arrow_stream.read(run(*words, "--arrow").stdout)
        self.assertEqual(arrow, rows, words)
        self.assertEqual(len(names), len(set(names)))
        if not self.sql:
            return len(rows)
        path = self.root / "x.parquet"
        run(*words, "--parquet", "-o", path)
        read = json.loads(run("sql", SAMPLE, "--allow-io", f"FROM '{path}'", "--json").stdout)
        self.assertEqual([c["name"] for c in read["columns"]], names)
        self.assertEqual(read["rows"], rows, words)
        path.unlink()
        return len(rows)

    def test_every_view(self):
        self.assertGreater(len(self.views), 20)
        rows = 0
        for view in self.views:
            for file in (SAMPLE, self.trace):
                if subprocess.run([BIN, view, file, "--json"], capture_output=True).returncode == 0:
                    with self.subTest(view=view, file=file):
                        rows += self.check(view, file)
        self.assertGreater(rows, 300)

    def test_trees(self):
        for view in ("scope", "graph", "code"):
            self.check(view, SAMPLE, "--max-depth", 50, "--select", "micros,device,op_types,params,float_ops")

    def test_queries(self):
        if not self.sql:
            self.skipTest("no DuckDB")
        query = ("SELECT 1 AS a, 'é' AS b, NULL AS c, 1.5::DOUBLE AS d, true AS e UNION ALL SELECT 2, '', 'x', NULL, NULL "
                 "UNION ALL SELECT i, 'y', NULL, i / 2, i % 2 = 0 FROM range(5000) AS t(i)")
        rows = json.loads(run("sql", SAMPLE, query, "--json").stdout)["rows"]
        self.assertEqual(len(rows), 5002)
        self.assertEqual(arrow_stream.read(run("sql", SAMPLE, query, "--arrow").stdout)[1], rows)
        self.assertEqual([json.loads(line) for line in run("sql", SAMPLE, query, "--ndjson").stdout.splitlines()], rows)
        self.check("ask", "busy_threads", SAMPLE)

    def test_all_or_nothing(self):
        out = self.root / "no.arrows"
        run("op", self.root / "missing", "--arrow", "-o", out, status=1)
        self.assertFalse(out.exists())
        run("op", SAMPLE, "--arrow", "-o", out)
        self.assertGreater(len(arrow_stream.read(out.read_bytes())[1]), 10)


if __name__ == "__main__":
    unittest.main()
