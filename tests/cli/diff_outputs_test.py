#!/usr/bin/python3
"""The outputs of `opwatch diff` for CI systems: Markdown, JUnit, annotations of GitHub, SARIF, a flame graph. Names in them are escaped."""
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position
from jobsim import US, Shape  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))

# What would be markup, a mention, a link, the end of a cell, of an attribute or of a command.
NASTY = "a|b`c*d_e[f](http://g)<script>alert(1)</script>&amp; @user \"q\" 'p' ::error::x%0Ay,z:\\|\n::error title=h::i ]]> \x01\u2028é"
FILE = "/home/me/a repo/mo,del:1%.py"


def nasty_trace(shape):
    document = jobsim.trace(jobsim.simulate(shape)[0])
    for e in document["traceEvents"]:
        if e.get("cat") == "cpu_op" and e["name"] == "aten::linear":
            e["name"] = NASTY
            e["args"]["Call stack"] = f"{FILE}(41): forward;/usr/lib/python3/dist-packages/torch/nn/modules/module.py(1190): _call_impl"
    return document


class Outputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.sides = {"base": [], "new": []}
        for i in range(4):
            for side, kernel in (("base", 220), ("new", 260)):
                path = f"{cls.folder.name}/{side}{i}.json"
                with open(path, "w", encoding="utf-8") as f:
                    json.dump(nasty_trace(Shape(layers=6, steps=6, kernel=kernel * US, backward=0.1,
                                                seed=i + (50 if side == "new" else 0))), f)
                cls.sides[side].append(path)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def diff(self, *words, code=5, single=False):
        count = 1 if single else 4
        run = subprocess.run([BIN, "diff", "--base", *self.sides["base"][:count], "--new", *self.sides["new"][:count],
                              *words], capture_output=True, check=False, timeout=120)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout.decode()

    LIMITS = ("--fail-if", "step_time > 3%", "--fail-if", "launches > 1%", "--fail-if", "peak_memory > 1%")

    def test_limits_in_json(self):
        answer = json.loads(self.diff(*self.LIMITS, "--json"))
        self.assertEqual([(x["limit"], x["gate"]) for x in answer["limits"]],
                         [("step_time > 3%", "beyond"), ("launches > 1%", "within"), ("peak_memory > 1%", "inconclusive")])
        step = answer["limits"][0]
        self.assertEqual(round(step["delta"]), answer["delta_ns"])
        self.assertTrue(step["allowed"] < step["delta_low"] < step["delta"] < step["delta_high"])
        self.assertIsNone(answer["limits"][2]["base"])
        top = answer["rows"][0]
        self.assertEqual((top["file"], top["line_number"]), (FILE, 41))
        self.assertIn("41 forward", answer["sentence"])
        self.assertTrue(all(r["line"] is None or r["line"] for r in answer["rows"]))  # unknown is null

    def test_github(self):
        """Each line is one command; unescaping as the runner does gives the texts back."""
        def data(text):
            return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")

        lines = self.diff(*self.LIMITS, "--to", "github").rstrip("\n").split("\n")
        found = []
        for line in lines:
            match = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line)
            self.assertTrue(match, line)
            properties = dict(p.split("=", 1) for p in match[2].split(","))
            for key, value in properties.items():
                properties[key] = data(value.replace("%3A", ":").replace("%2C", ","))
            found.append((match[1], properties, data(match[3])))
        self.assertIn(("error", "step_time > 3%"), [(kind, p.get("title")) for kind, p, _ in found])
        self.assertIn(("warning", "peak_memory > 1%"), [(kind, p.get("title")) for kind, p, _ in found])
        at_line = [(kind, text) for kind, p, text in found if p.get("file") == FILE and p.get("line") == "41"]
        self.assertTrue(at_line)
        self.assertTrue(all(kind == "error" for kind, _ in at_line))
        self.assertIn("::error title=h::i", at_line[0][1])
        # Without a limit nothing is an error.
        self.assertNotIn("::error", [x[:7] for x in self.diff("--to", "github", code=0).splitlines()])

    def test_junit(self):
        root = ElementTree.fromstring(self.diff(*self.LIMITS, "--to", "junit"))
        suite = root.find("testsuite")
        self.assertEqual(root.tag, "testsuites")
        self.assertEqual({k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")},
                         {"tests": "3", "failures": "1", "errors": "0", "skipped": "1"})
        cases = suite.findall("testcase")
        self.assertEqual([c.get("name") for c in cases], ["step_time > 3%", "launches > 1%", "peak_memory > 1%"])
        self.assertTrue(all(c.get("classname") and c.get("time") for c in cases))
        self.assertIn("more", cases[0].find("failure").get("message"))
        self.assertIsNone(cases[1].find("failure"))
        self.assertIsNotNone(cases[2].find("skipped"))
        self.assertIn("<script>", suite.find("system-out").text)
        single = ElementTree.fromstring(self.diff("--fail-if", "step_time > 3%", "--to", "junit", code=6, single=True))
        self.assertIn("fewer than 4 runs", single.find("testsuite/testcase/skipped").get("message"))

    def test_sarif(self):
        """What the schema of SARIF 2.1.0 requires of the objects that are used."""
        log = json.loads(self.diff(*self.LIMITS, "--to", "sarif"))
        self.assertEqual(log["version"], "2.1.0")
        self.assertTrue(log["$schema"].endswith("sarif-schema-2.1.0.json"))
        run, = log["runs"]
        self.assertEqual(set(run), {"tool", "results", "properties"})
        driver = run["tool"]["driver"]
        self.assertEqual(driver["name"], "opwatch")
        rules = [r["id"] for r in driver["rules"]]
        levels = []
        for result in run["results"]:
            self.assertEqual(rules[result["ruleIndex"]], result["ruleId"])
            self.assertIn(result["level"], ("none", "note", "warning", "error"))
            self.assertTrue(result["message"]["text"])
            levels.append((result["ruleId"], result["level"]))
            self.assertEqual(len(result["locations"]), 1)  # without one, code scanning pages do not show it
            for location in result.get("locations", []):
                physical = location["physicalLocation"]
                uri = urllib.parse.urlsplit(physical["artifactLocation"]["uri"])
                self.assertEqual((uri.scheme, urllib.parse.unquote(uri.path)), ("file", FILE))
                self.assertEqual(physical["region"], {"startLine": 41})
        self.assertEqual(levels[:2], [("limit", "error"), ("limit", "warning")])
        self.assertIn(("slower-line", "warning"), levels)

    def test_markdown(self):
        text = self.diff(*self.LIMITS, "--to", "markdown")
        self.assertTrue(text.startswith("**new is "))
        lines = text.split("\n")
        rows = [line for line in lines if line.startswith("| ")]
        self.assertEqual(len(rows), 2 + 15)  # the default limit
        for row in rows:
            self.assertEqual(row.count("|"), rows[0].count("|"), row)
            self.assertTrue(row.endswith(" |"))
        # Outside of code nothing is markup.
        cell = next(row for row in rows if "alert" in row).split("|")[2].strip()
        self.assertTrue(cell.startswith("<code>") and cell.endswith("</code>"), cell)
        inner = cell[len("<code>"):-len("</code>")]
        self.assertFalse(re.search(r"[<>`*_\[\]|\\]", inner), inner)
        self.assertEqual(html.unescape(inner).replace("@\u2060", "@"), NASTY.replace("\n", " ").replace("\x01", " "))
        self.assertNotIn("<script>", text)
        self.assertIn("- `step_time > 3%`: **beyond**", text)
        self.assertIn("**inconclusive**", text)

    def test_other_views(self):
        """Markdown is for every table; the others are for comparisons."""
        path = self.sides["base"][0]
        done = subprocess.run([BIN, "phases", path, "--to", "markdown"], capture_output=True, text=True, check=True)
        self.assertRegex(done.stdout, r"^\| .*\|\n\| ---")
        for sink in ("junit", "github", "sarif"):
            done = subprocess.run([BIN, "phases", path, "--to", sink], capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("opwatch diff", done.stderr)
            self.assertEqual(done.stdout, "")

    def test_file(self):
        """A file is written whole, also when the limit is exceeded."""
        path = f"{self.folder.name}/out.xml"
        self.assertEqual(self.diff(*self.LIMITS, "--to", "junit", "--out", path), "")
        self.assertEqual(ElementTree.parse(path).getroot().get("failures"), "1")


if __name__ == "__main__":
    unittest.main()
