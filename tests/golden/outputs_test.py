#!/usr/bin/python3
"""What the outputs write, read back by other people's parsers: json, csv, xml, and sums that must agree.

The exact bytes are compared in the unit tests; here the question is whether programs can use the files.
"""
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

BIN = os.environ["OPWATCH_BIN"]
SAMPLE = os.path.join(os.environ["OPWATCH_SRC"], "samples", "resnet.profile")
ALL = ["--max-depth", "1000"]
VIEWS = ["scope", "graph", "code"]


def run(*args):
    done = subprocess.run([BIN, *args], capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    if done.returncode:
        raise AssertionError(f"{args}: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode("utf-8")


def walk(rows, depth=0):
    for row in rows:
        yield depth, row
        yield from walk(row.get("children", []), depth + 1)


class Json(unittest.TestCase):
    def test_shape(self):
        for view in ["op", *VIEWS, "steps", "devices", "tracks", "sources", "notes"]:
            with self.subTest(view=view):
                document = json.loads(run(view, SAMPLE, "--json"))
                self.assertEqual(list(document), ["view", "columns", "rows", "schema_version", "footer"])
                self.assertEqual(document["view"], view)
                names = [c["name"] for c in document["columns"]]
                for column in document["columns"]:
                    self.assertIn(column["type"], ["int", "real", "text", "bool"])
                    self.assertIn(column["unit"], [None, "ns", "us", "bytes", "count", "percent"])
                for _, row in walk(document["rows"]):
                    self.assertEqual([n for n in row if n != "children"], names)

    def test_same_rows_as_csv(self):
        for view in ["op", *VIEWS]:
            with self.subTest(view=view):
                rows = list(walk(json.loads(run(view, SAMPLE, "--json"))["rows"]))
                table = list(csv.DictReader(io.StringIO(run(view, SAMPLE, "--csv"), newline="")))
                self.assertEqual(len(rows), len(table))
                self.assertGreater(len(rows), 5)
                for (depth, row), record in zip(rows, table):
                    self.assertEqual(depth, int(record.get("depth", 0)))
                    for name, value in row.items():
                        if name != "children":
                            self.assertEqual("" if value is None else str(value), record[name])


class Folded(unittest.TestCase):
    def test_adds_up_to_the_total(self):
        for view in VIEWS:
            for limits in [ALL, ["--max-depth", "3"], [*ALL, "--min-micros", "500"]]:
                with self.subTest(view=view, limits=limits):
                    rows = json.loads(run(view, SAMPLE, "--json", *limits))["rows"][0]
                    lines = run(view, SAMPLE, "--output", "folded", *limits).splitlines()
                    values = [re.fullmatch(r"([^;]+(?:;[^;]+)*) (\d+)", line) for line in lines]
                    self.assertTrue(all(values), lines)
                    top = sum(child["total_micros"] for child in rows.get("children", []))
                    self.assertEqual(sum(int(v[2]) for v in values), top)

    def test_other_metric(self):
        total = json.loads(run("scope", SAMPLE, "--json", "--select", "float_ops", *ALL))["rows"][0]["total_float_ops"]
        lines = run("scope", SAMPLE, "--output", "folded", "--select", "float_ops", *ALL).splitlines()
        self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in lines), total)


class FlameGraph(unittest.TestCase):
    SVG = "{http://www.w3.org/2000/svg}"

    def graph(self, view, *options):
        text = run(view, SAMPLE, "--output", "flamegraph", *options)
        self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), r"https?:|href|@import|url\(")
        root = ElementTree.fromstring(text)
        self.assertEqual(root.tag, self.SVG + "svg")
        return root, [g for g in root.iter(self.SVG + "g") if "f" in g.get("class", "").split()]

    def test_boxes_nest(self):
        for view in VIEWS:
            with self.subTest(view=view):
                root, boxes = self.graph(view, *ALL)
                places = []
                for box in boxes:
                    rect = box.find(self.SVG + "rect")
                    x, width = (float(rect.get(a).rstrip("%")) for a in ("x", "width"))
                    places.append((int(rect.get("y")), x, x + width))
                self.assertGreater(len(places), 10)
                top = min(y for y, _, _ in places)
                self.assertEqual([p for p in places if p[0] == top], [(top, 0.0, 100.0)])
                stack = []
                for y, begin, end in places:  # in pre-order
                    while stack and stack[-1][0] >= y:
                        left = stack.pop()
                        if stack and left[0] == y:
                            self.assertLessEqual(left[2], begin + 1e-3)
                    if stack:
                        self.assertGreaterEqual(begin, stack[-1][1] - 1e-3)
                        self.assertLessEqual(end, stack[-1][2] + 1e-3)
                    stack.append((y, begin, end))
                self.assertLess(max(y for y, _, _ in places), int(root.get("height")))

    def test_every_box_has_a_tooltip(self):
        _, boxes = self.graph("scope", "--select", "bytes")
        for box in boxes:
            self.assertRegex(box.find(self.SVG + "title").text, r"(?s)^[^\n]*\n.*\(\d+\.\d\d%\)")


class Timeline(unittest.TestCase):
    def events(self, view, *options):
        with tempfile.TemporaryDirectory() as folder:
            run(view, SAMPLE, "--output", f"timeline:outfile={folder}/t", *options)
            return {path.name: json.loads(path.read_text(encoding="ascii"))["traceEvents"]
                    for path in sorted(pathlib.Path(folder).iterdir())}

    def test_scope_and_code_nest(self):
        for view in ["scope", "code"]:
            with self.subTest(view=view):
                (events,) = self.events(view, *ALL).values()
                regions = [e for e in events if e["ph"] == "X"]
                for event in regions[1:]:
                    self.assertTrue(any(p["pid"] == event["pid"] - 1 and p["ts"] <= event["ts"] and
                                        event["ts"] + event["dur"] <= p["ts"] + p["dur"] for p in regions), event)

    def test_graph_writes_every_step_and_lanes_do_not_overlap(self):
        files = self.events("graph", *ALL)
        self.assertEqual(len(files), len(json.loads(run("steps", SAMPLE, "--json"))["rows"]))
        for events in files.values():
            ends = {}
            for event in events:
                if event["ph"] == "X":
                    lane = event["pid"], event["tid"]
                    self.assertGreaterEqual(event["ts"], ends.get(lane, 0))
                    ends[lane] = event["ts"] + event["dur"]
            flows = [e for e in events if e["ph"] in "st"]
            self.assertEqual([e["id"] for e in flows[::2]], list(range(1, len(flows) // 2 + 1)))
            self.assertEqual([e["id"] for e in flows[::2]], [e["id"] for e in flows[1::2]])


class Text(unittest.TestCase):
    def test_no_escape_sequences_in_a_pipe(self):
        self.assertNotIn("\033", run("scope", SAMPLE))


if __name__ == "__main__":
    if not os.path.exists(BIN) or not os.path.exists(SAMPLE):
        print("no binary or no samples/resnet.profile: nothing to try")
        sys.exit(77)
    unittest.main()
