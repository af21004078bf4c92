#!/usr/bin/python3
"""Options are applied or refused, never accepted and ignored: every option of the views of ops on sampled profiles and traces, in every view
that takes it."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
STACKS = "main;a;b 30\nmain;a;c 20\nmain;d 10\n"
MINIMA = ["bytes", "peak-bytes", "residual-bytes", "output-bytes", "micros", "accelerator-micros", "cpu-micros", "params", "float-ops",
          "occurrence"]
NAMES = [("--hide-name-regexes", "b"), ("--show-name-regexes", "c"), ("--start-name-regexes", "a"), ("--trim-name-regexes", "a")]
OTHERS = [(f"--min-{name}", "3") for name in MINIMA] + [("--account-type-regexes", "x")]


class SampleFilters(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "x.folded"
        self.path.write_text(STACKS)
        self.trace = pathlib.Path(folder.name) / "x.json"
        self.trace.write_text(json.dumps({"traceEvents": [
            {"ph": "X", "cat": "Op", "name": f"T{k}", "pid": 1, "tid": 1, "ts": 10 * k, "dur": k + 1,
             "args": {"name": f"s/op_{k}", "op": f"T{k}"}} for k in range(5)]}))

    def run_it(self, *words):
        return subprocess.run([BIN, *map(str, words), "--no-pager"], capture_output=True, text=True)

    def applied_or_refused(self, view, path, option):
        plain, run = self.run_it(view, path), self.run_it(view, path, *option)
        if run.returncode == 0:
            self.assertNotEqual(run.stdout, plain.stdout, (view, option))
        else:
            self.assertEqual(run.returncode, 2, (view, option, run.stderr))
            word = option[0].lstrip("-")
            self.assertTrue(word in run.stderr or word.replace("-", "_") in run.stderr, run.stderr)

    def test_samples(self):
        for view in ("op", "functions", "lines", "metrics"):
            for option in NAMES + OTHERS:
                self.applied_or_refused(view, self.path, option)

    def test_what_describes_the_whole(self):
        for option in (("--step", "1"), ("--rank", "1"), ("--metric", "x")):
            run = self.run_it("info", self.trace, "--json", *option)
            self.assertEqual(run.returncode, 2, option)
            self.assertIn(option[0] + " is for views", run.stderr)
        run = self.run_it("what-if", self.trace, "input=0", "--step", "1")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("does not use step", run.stderr)
        run = self.run_it("path", self.trace, "--metric", "x")
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn("metric", run.stderr)

    def test_commands_of_several_views(self):
        """Metrics, styles, names and depths: applied by the first screen where they can be, refused by commands that do not use them."""
        for command in ("memory", "nsys-stats", "path"):
            for option in (("--metric", "x"), ("--style", "total"), ("--full-names",)):
                run = self.run_it(command, self.trace, *option)
                self.assertEqual((run.returncode, run.stdout), (2, ""), (command, option))
                self.assertIn(f"'opwatch {command}' does not take {option[0]}", run.stderr)
        for words in (("--metric", "x"), ("--style", "total"), ("--max-depth", "2"), ("--metric", "x", "--json"), ("--style", "total", "--csv")):
            for path in (self.trace, self.path):
                run = self.run_it(path, *words)
                if "--csv" in words and path == self.path:
                    self.assertNotEqual(run.stdout, self.run_it(path, "--csv").stdout)
                    continue
                self.assertNotEqual(run.returncode, 0, (words, path))
                self.assertIn(words[0].strip("-").replace("-", ""), run.stderr.replace("-", ""))
        other = self.path.with_name("y.folded")
        other.write_text(STACKS.replace("20", "50"))
        for option in (("--step", "1"), ("--rank", "0"), ("--time-range", "1:2"), ("--full-names",), ("--style", "total")):
            run = self.run_it("diff", self.path, other, *option)
            self.assertEqual((run.returncode, run.stdout), (2, ""), option)
            self.assertIn(option[0], run.stderr)
        self.path.write_text("main;a 30 10\nmain;b 5 50\n")
        before, after = self.run_it(self.path, "--metric", "before").stdout, self.run_it(self.path, "--metric", "after").stdout
        self.assertNotEqual(before, after)
        self.assertEqual(after, self.run_it(self.path).stdout)

    def test_code_of_samples(self):
        for option in NAMES:
            run = self.run_it("code", self.path, *option)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertNotEqual(run.stdout, self.run_it("code", self.path).stdout, option)
        for option in OTHERS:
            self.assertEqual(self.run_it("code", self.path, *option).returncode, 2, option)

    def test_options_of_columns(self):
        for option in (("--select", "micros"), ("--select", "bytes"), ("--order-by", "name"), ("--order-by", "micros"), ("--max-depth", "1")):
            run = self.run_it("op", self.path, *option)
            self.assertEqual(run.returncode, 2, option)
            self.assertIn(option[0] + " is for operations", run.stderr)
            run = self.run_it("code", self.path, *option)
            self.assertEqual(run.returncode, 0 if option[0] == "--max-depth" else 2, option)
        self.assertNotEqual(self.run_it("code", self.path, "--max-depth", "2").stdout, self.run_it("code", self.path).stdout)

    def test_scopes_of_samples(self):
        for view in ("scope", "graph"):
            run = self.run_it(view, self.path)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("sampled stacks and no operations", run.stdout)

    def test_views_of_traces(self):
        for view in ("opstats", "tracks", "devices", "steps", "work", "phases", "roofline", "pipeline"):
            for option in NAMES + OTHERS:
                run = self.run_it(view, self.trace, *option)
                self.assertEqual(run.returncode, 2, (view, option))

    def test_options_of_other_views(self):
        """Those of a view by `opwatch view`, of samples, of kernels, of parts of the time: each view takes what it uses."""
        for words, name in ((("view", "steps", self.trace, "--hide-name-regexes", "b"), "hide_name_regexes"),
                            (("view", "tracks", self.trace, "--min-micros", "3"), "min_micros"),
                            (("view", "steps", self.trace, "--max-depth", "3"), "max_depth"),
                            (("view", "devices", self.trace, "--order-by", "name"), "order_by"),
                            (("op", self.trace, "--metric", "cpu"), "metric"), (("steps", self.trace, "--metric", "cpu"), "metric"),
                            (("op", self.trace, "--style", "total"), "style"), (("functions", self.path, "--style", "lines"), "lines"),
                            (("code", self.path, "--style", "total"), "total"), (("steps", self.trace, "--full-names"), "full_names"),
                            (("sources", self.trace, "--time-range", "1:2"), "time_"), (("sources", self.trace, "--step", "1"), "step"),
                            (("notes", self.trace, "--step", "1"), "step"), (("code", self.trace, "--min-occurrence", "3"), "min_occurrence"),
                            (("code", self.path, "--style", "icicle"), "--to flamegraph")):
            run = self.run_it(*words)
            self.assertEqual((run.returncode, run.stdout), (2, ""), (words, run.stderr))
            self.assertIn(name, run.stderr)
        run = self.run_it("code", self.path, "--style", "lines,inverted", "--to", "flamegraph")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotEqual(run.stdout, self.run_it("code", self.path, "--style", "lines", "--to", "flamegraph").stdout)

    def test_views_with_usual_options(self):
        """`opwatch view NAME` and `opwatch NAME` show the same."""
        for view in ("op", "scope", "graph", "steps", "devices", "tracks", "work", "opstats", "sources", "notes", "verdict", "lines"):
            for path in (self.trace, self.path):
                a, b = self.run_it(view, path), self.run_it("view", view, path)
                self.assertEqual((a.returncode, a.stdout), (b.returncode, b.stdout), view)

    def test_the_shell(self):
        """An option of the line is applied or refused; what `set` chose is for the views that use it."""
        def shell(path, *lines):
            run = subprocess.run([BIN, "shell", path], input="\n".join(lines) + "\n", capture_output=True, text=True)
            return run.stdout + run.stderr
        self.assertIn("does not use min_micros", shell(self.trace, "tracks -min_micros 3"))
        self.assertNotIn("does not use", shell(self.trace, "set -min_micros 3", "tracks", "steps", "op"))
        self.assertIn("is for operations", shell(self.path, "op -min_micros 3"))
        self.assertNotIn("is for operations", shell(self.path, "op", "code", "functions", "tracks"))

    def test_sql(self):
        if "DuckDB" not in self.run_it("--version").stdout:
            self.skipTest("no SQL in this build")
        for path, query, good in ((self.trace, "op_view(min_micros := 3)", True), (self.trace, "tracks_view(min_micros := 3)", False),
                                  (self.trace, "steps_view(hide_name_regexes := 'x')", False), (self.trace, "op_view(metric := 'cpu')", False),
                                  (self.path, "op_view(min_bytes := 3)", False), (self.path, "functions_view(style := 'total')", True),
                                  (self.path, "op_view()", True), (self.trace, "tracks_view(step := 0)", None)):
            run = self.run_it("sql", f"SELECT * FROM {query}", path)
            if good:
                self.assertEqual(run.returncode, 0, (query, run.stderr))
            elif good is False:
                self.assertNotEqual(run.returncode, 0, query)
                self.assertRegex(run.stderr, "does not use|is for ", query)

    def test_the_usual_values_are_no_filter(self):
        for view in ("op", "code"):
            run = self.run_it(view, self.path, "--min-micros", "0", "--account-type-regexes", ".*")
            self.assertEqual((run.returncode, run.stdout), (0, self.run_it(view, self.path).stdout))


if __name__ == "__main__":
    unittest.main()
