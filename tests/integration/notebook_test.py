#!/usr/bin/python3
"""Runs examples/python/bigquery_walkthrough.ipynb cell by cell in IPython, and compares what it finds with a
computation of its own over the same timelines."""
import glob
import json
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
sys.path.insert(0, str(ROOT / "examples/python"))
sys.path.insert(0, os.path.join(os.environ.get("OPWATCH_BUILD", str(ROOT / "build/release")), "python"))
try:
    import opwatch
    import google.protobuf  # noqa: F401
    import pandas  # noqa: F401
    from IPython.core.interactiveshell import InteractiveShell
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)


class Notebook(unittest.TestCase):
    def test_walk_through(self):
        notebook = json.loads((ROOT / "examples/python/bigquery_walkthrough.ipynb").read_text())
        shell = InteractiveShell.instance()
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                done = shell.run_cell("".join(cell["source"]))
                self.assertTrue(done.success, "".join(cell["source"]))
        rows = shell.user_ns["tf115_processed"]
        sums = {}
        for path in glob.glob(os.path.join(shell.user_ns["folder"], "timeline_*.json")):
            for event in json.loads(pathlib.Path(path).read_text())["traceEvents"]:
                durations = sums.setdefault(event.get("args", {}).get("name"), [])
                if "dur" in event:
                    durations.append(event["dur"])
        expected = {name: values for name, values in sums.items() if values}
        self.assertEqual(rows["arg_name"].iloc[0], "input/MatchingFiles")
        checked = 0
        for row in rows.itertuples():
            values = expected.get(row.arg_name)
            if values is None:
                continue
            self.assertEqual((row.total_dur, row.min_dur, row.max_dur), (sum(values), min(values), max(values)))
            self.assertAlmostEqual(row.avg_dur, sum(values) / len(values))
            checked += 1
        self.assertEqual(checked, min(len(expected), 20))


if __name__ == "__main__":
    try:
        opwatch.open(str(ROOT / "samples")).sql("SELECT 1")
    except opwatch.Unsupported as error:
        print("skipped:", error)
        sys.exit(77)
    unittest.main()
