#!/usr/bin/env python3
"""Where output goes: what is read is never overwritten, what cannot be written is told whatever its length, and a
file of that name keeps its content until the new one is whole."""
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
import sql_text  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
SAMPLE = os.path.join(os.environ["OPWATCH_SRC"], "samples", "resnet.profile")
EVENT = '{"ph":"X","name":"%s","pid":1,"tid":1,"ts":%d,"dur":2}'


def run(*args, **kwargs):
    kwargs.setdefault("timeout", 120)
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([BIN, *args], capture_output=True, text=True, **kwargs)


class OutputTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.profile = os.path.join(self.dir, "run.profile")
        shutil.copy(SAMPLE, self.profile)
        self.trace = os.path.join(self.dir, "trace.json")
        with open(self.trace, "w", encoding="utf8") as f:
            f.write("[%s]" % ",\n".join(EVENT % ("n%d" % (i % 7), 3 * i) for i in range(3000)))

    def content(self):
        found = {}
        for name in os.listdir(self.dir):
            with open(os.path.join(self.dir, name), "rb") as f:
                found[name] = f.read()
        return found

    def test_what_is_read_is_not_overwritten(self):
        before = self.content()
        link = os.path.join(self.dir, "link")
        os.symlink(self.profile, link)
        before = self.content()
        for words in (("op", self.profile, "-o", self.profile), ("op", self.profile, "-o", link),
                      ("op", link, "--json", "-o", self.profile), (self.profile, "-o", self.profile),
                      ("info", self.profile, "--json", "-o", self.profile),
                      ("advise", self.profile, "-o", self.profile), ("memory", self.profile, "-o", self.profile),
                      ("sql", self.profile, "select 1", "-o", self.profile),
                      ("sql", "--run", "a=" + self.profile, "select 1", "-o", self.profile),
                      ("convert", self.profile, "--to", "timeline", "-o", self.profile),
                      ("convert", os.path.join(self.dir, "*.profile"), "--to", "folded", "-o", self.profile),
                      ("code", self.profile, "--to", "pprof", "-o", self.profile),
                      ("code", self.profile, "-output", "flamegraph:outfile=" + self.profile),
                      ("merge", self.trace, "-o", self.trace),
                      ("ask", "advice", self.profile, "-o", self.profile)):
            p = run(*words)
            self.assertEqual((p.returncode, p.stdout), (2, ""), words)
            self.assertIn("would be overwritten", p.stderr)
            self.assertEqual(self.content(), before, words)

    def test_nor_in_the_shell(self):
        before = self.content()
        p = run("shell", self.profile, stdin=None, input="op --out %s\nset -output file:outfile=%s\nop\nverdict\n"
                % (self.profile, self.profile))
        self.assertEqual(p.stderr.count("would be overwritten"), 3, p.stderr)
        self.assertEqual(self.content(), before)

    def test_a_full_disk_is_told_whatever_the_length(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        for words in (("--help",), ("help", "op"), ("ask",), ("formats",), ("convert", self.trace, "--to", "timeline"),
                      ("convert", self.profile, "--to", "folded"), ("convert", self.profile, "--to", "oplog"),
                      ("memory", self.profile, "--json"), ("overview", self.profile, "--json"),
                      ("sql", self.trace, "select * from event", "--json"), ("merge", self.trace, "-o", "-")):
            if words[0] == "sql" and sql_text.why_not(self.trace):
                continue
            with open("/dev/full", "w", encoding="utf8") as full:
                p = subprocess.run([BIN, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
            self.assertEqual(p.returncode, 1, words)
            self.assertEqual(p.stderr.count("No space left"), 1, (words, p.stderr))

    def test_files_are_whole_or_as_they_were(self):
        out = os.path.join(self.dir, "out")
        with open(out, "w", encoding="utf8") as f:
            f.write("older\n")
        before = self.content()

        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        for words in (("overview", self.profile, "--json"), ("info", self.profile, "--json"),
                      ("memory", self.profile, "--csv"), ("sql", self.trace, "select * from event", "--csv")):
            if words[0] == "sql" and sql_text.why_not(self.trace):
                continue
            p = run(*words, "-o", out, preexec_fn=small)
            self.assertEqual(p.returncode, 1, (words, p.stderr))
            self.assertEqual(p.stderr, "opwatch: %s: File too large\n" % out)
            self.assertEqual(self.content(), before, words)
        for words in (("overview", "/nowhere"), ("info", "/nowhere"), ("memory", "/nowhere"),
                      ("sql", self.trace, "select nonsense"), ("sql", "/nowhere", "select 1")):
            self.assertEqual(run(*words, "-o", out).returncode, 1, words)
            self.assertEqual(self.content(), before, words)
        self.assertEqual(run("info", self.profile, "--json", "-o", out).returncode, 0)
        with open(out, encoding="utf8") as f:
            json.load(f)
        self.assertEqual(sorted(os.listdir(self.dir)), sorted(before))
        self.assertEqual(run("info", self.profile, "-o", "/dev/null").returncode, 0)
        self.assertIn("/nowhere/x: No such file", run("info", self.profile, "-o", "/nowhere/x").stderr)


if __name__ == "__main__":
    unittest.main()
