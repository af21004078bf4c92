#!/usr/bin/python3
"""Unit tests of run_examples.py: what it takes for an example, and what it takes for equal."""
import os
import tempfile
import unittest

import run_examples as r


class Examples(unittest.TestCase):
    def test_console_blocks_only(self):
        text = "```sh\n$ no\n```\n\n```console\n$ echo a\na\n$ true\n```\n"
        self.assertEqual([(e.line, e.command, e.output) for e in r.examples(text)], [(6, "echo a", ["a"]), (8, "true", [])])

    def test_indented_block(self):
        self.assertEqual(r.examples("- x\n  ```console\n  $ echo a\n   a\n  ```\n")[0].output, [" a"])

    def test_not_run(self):
        self.assertEqual(r.examples("<!-- not run: needs a network -->\n```console\n$ x\n```\n"), [])
        self.assertEqual(len(r.examples("<!-- not run: x -->\ntext\n```console\n$ x\n```\n")), 1)

    def test_one_command_is_not_run(self):
        self.assertEqual([e.command for e in r.examples("```console\n$ x  # not run: needs a cluster\n$ y\n```\n")], ["y"])

    def test_files_and_needs(self):
        text = ("<!-- file: a/x.py -->\n```python\nprint(1)\n```\nwords\n<!-- with: samples/b as b -->\n<!-- needs: false -->\n"
                "```console\n$ x\n$ y\n```\n\n```console\n$ z\n```\n")
        x, y, z = r.examples(text)
        self.assertEqual((x.needs, x.files), ("false", [("a/x.py", b"print(1)\n"), ("b", "samples/b")]))
        self.assertEqual((y.needs, y.files, z.needs, z.files), ("false", [], None, []))

    def test_continued_command(self):
        self.assertEqual(r.examples("```console\n$ echo a \\\n    b\nout\n```\n")[0].command, "echo a b")

    def test_exit_status(self):
        example = r.examples("```console\n$ false  # exits 1\n```\n")[0]
        self.assertEqual((example.command, example.status), ("false", 1))

    def test_typed_lines(self):
        example = r.examples("```console\n$ tfprof\ntfprof> op\nname\ntfprof> quit\n```\n")[0]
        self.assertEqual((example.typed, example.output), (["op", "quit"], ["name"]))

    def test_man_page(self):
        text = '.SH EXAMPLES\n.EX\n$ \\fBopwatch\\fR op \\-\\-limit 3\n.EE\n.\\" not run: x\n.nf\n$ no\n.fi\n'
        self.assertEqual([e.command for e in r.examples(text, True)], ["opwatch op --limit 3"])


class Matching(unittest.TestCase):
    def test_exact(self):
        self.assertTrue(r.matches(["a", "b"], "a\nb\n"))
        self.assertTrue(r.matches(["a"], "a  \n\n"))
        self.assertFalse(r.matches(["a"], "a\nb\n"))
        self.assertFalse(r.matches(["a.c"], "abc\n"))

    def test_wildcard_lines(self):
        self.assertTrue(r.matches(["a", "..."], "a\nb\nc\n"))
        self.assertTrue(r.matches(["a", "...", "c"], "a\nc\n"))
        self.assertFalse(r.matches(["a", "...", "c"], "a\nb\n"))

    def test_wildcard_text(self):
        self.assertTrue(r.matches(["took ... ms"], "took 12 ms\n"))
        self.assertFalse(r.matches(["took ... ms"], "took 12 s\n"))


class Running(unittest.TestCase):
    def run_one(self, text):
        with tempfile.TemporaryDirectory() as directory:
            return r.run(r.examples("```console\n" + text + "```\n")[0], directory, dict(os.environ))

    def test_needs(self):
        with tempfile.TemporaryDirectory() as directory:
            for needs, failed in (("false", False), ("true", True)):
                example = r.examples(f"<!-- file: f -->\n```\ntext\n```\n<!-- needs: {needs} -->\n```console\n$ cat f; false\n```\n")[0]
                self.assertEqual(r.run(example, directory, dict(os.environ)) is not None, failed)

    def test_good(self):
        self.assertIsNone(self.run_one("$ echo a; echo b >&2\na\nb\n"))
        self.assertIsNone(self.run_one("$ echo whatever\n"))
        self.assertIsNone(self.run_one("$ (exit 3)  # exits 3\n"))
        self.assertIsNone(self.run_one("$ while read x; do echo \"tfprof> got $x\"; done\ntfprof> 1\ngot 1\n"))

    def test_bad(self):
        self.assertIn("-a\n+b", self.run_one("$ echo b\na\n"))
        self.assertIn("exit status 1", self.run_one("$ false\n"))


if __name__ == "__main__":
    unittest.main()
