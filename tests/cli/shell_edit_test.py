#!/usr/bin/env python3
"""The shell under people's fingers: words in quotes, completion in both spellings, of lists and of files, the history of
two shells at once, terminals that are dumb or end early, locales that are not set."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from terminal import Terminal  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
SAMPLE = os.path.join(os.environ["OPWATCH_SRC"], "samples", "resnet.profile")
TRACE = '[{"ph":"X","name":"copy to device","pid":1,"tid":1,"ts":1,"dur":2},{"ph":"X","name":"copy","pid":1,"tid":1,"ts":9,"dur":1}]'


def piped(lines, *args, **kwargs):
    return subprocess.run([BIN, "shell", *(args or [SAMPLE])], input=lines, capture_output=True, text=True, timeout=300,
                          **kwargs)


def names(text):
    return [line.split()[0] for line in text.splitlines()[1:]]


class WordsTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def test_quotes_keep_blanks(self):
        path = os.path.join(self.dir, "trace.json")
        with open(path, "w", encoding="utf8") as f:
            f.write(TRACE)
        for quoted in ("-show_name_regexes 'copy to .*'", '-show_name_regexes "copy to .*"', "--show-name-regexes='copy to .*'"):
            p = piped("op %s\n" % quoted, path)
            self.assertEqual(p.stderr, "", quoted)
            self.assertEqual([line[:14] for line in p.stdout.splitlines()[1:]], ["copy to device"], quoted)
        p = piped("op --to csv --out 'my file.csv' -n 1\nop -show_name_regexes '' \nop -hide_name_regexes it's\n", path, cwd=self.dir)
        self.assertEqual(p.stderr, "")
        self.assertIn("my file.csv", os.listdir(self.dir))
        self.assertEqual(p.stdout.count("copy"), 2)     # nothing, then both

    def test_tables_are_ordered_by_what_they_show(self):
        want = names(subprocess.run([BIN, "op", SAMPLE, "--select", "bytes", "-n", "3"], capture_output=True, text=True).stdout)
        for lines in ("op -select bytes -n 3\n", "set -select bytes\nop -n 3\n"):
            self.assertEqual(names(piped(lines).stdout), want)
        by_name = names(piped("op -select bytes -order_by name -n 3\n").stdout)
        self.assertEqual(by_name, sorted(by_name))
        self.assertEqual(names(piped("set -order_by name\nop -select bytes -n 3\n").stdout), by_name)
        self.assertEqual(names(piped("op -select bytes -n 3\n", SAMPLE, "--order-by", "name").stdout), by_name)
        self.assertRegex(piped("set -select bytes\n\n").stdout, r"-order_by +bytes\n")

    def test_outputs_of_the_command_line_are_the_usual_ones(self):
        self.assertIn('"view": "op"', piped("op\n", SAMPLE, "--json").stdout)
        p = piped("op\n", SAMPLE, "--to", "nonsense")
        self.assertEqual(p.returncode, 2)

    def test_help_tells_all_options(self):
        text = piped("help op\n").stdout
        for word in ("-n, --limit", "-t, --to", "-o, --out", "--json", "--csv"):
            self.assertIn(word, text)
        p = piped("help --order-by --limit -o\n")
        self.assertEqual(p.stderr, "")
        for word in ("peak_bytes", "rows", "file"):
            self.assertIn(word, p.stdout)
        self.assertLessEqual(max(map(len, piped("help\n").stdout.splitlines())), 80)


class EditTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)

    def start(self, **env):
        t = Terminal(["shell", SAMPLE], self.home, **env)
        t.read_until("opwatch> ")
        return t

    def leave(self, t):
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_both_spellings_are_completed(self):
        t = self.start()
        # the screen is redrawn in pieces: look at what the line does
        t.send("op --max-d\t9 --sel\tcpu\t,byt\t --ord\tby\t --to=cs\t --lim\t1\n")
        t.read_until(r"name,cpu_micros,[a-z_,]*bytes_percent,total_bytes\r+\n")
        self.assertEqual(t.read_until("opwatch> ").count("\n"), 1)
        self.leave(t)

    def test_files_are_completed(self):
        os.mkdir(os.path.join(self.home, "folder"))
        with open(os.path.join(self.home, "folder", "table.csv"), "w", encoding="utf8"):
            pass
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.home)     # lines that fit the terminal, wherever that is
        t = self.start()
        t.send("op --to csv --out fol\ttab\t\n")
        t.read_until(r"\n.*opwatch> $")
        t.send("scope -output folded:outfile=folder/ta\t\n")
        t.read_until(r"\n.*opwatch> $")
        self.leave(t)
        with open(os.path.join(self.home, "folder", "table.csv"), encoding="utf8") as f:
            self.assertRegex(f.readline(), r"^\S+ \d+$")
        self.assertEqual(os.listdir(os.path.join(self.home, "folder")), ["table.csv"])

    def test_choices_fit_the_terminal(self):
        t = self.start()
        t.send("op -m\t\t")
        seen = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", t.read_until("min_residual_bytes(.|\n)*opwatch> op -m"))
        self.assertLessEqual(max(len(line) for line in seen.splitlines()), 80)
        t.send("\x15")
        self.leave(t)

    def test_shells_at_the_same_time_keep_each_others_lines(self):
        first, second = self.start(), self.start()
        for t, line in ((first, "op -n 1"), (second, "verdict"), (first, "op -n 2 -show_name_regexes .*"),
                        (first, "op -n 2 -show_name_regexes .*")):
            t.send(line + "\n")
            t.read_until(r"\n.*opwatch> $")
        self.leave(second)
        self.leave(first)
        with open(os.path.join(self.home, ".local/state/opwatch/history"), encoding="utf8") as f:
            kept = [line.replace("\\040", " ").replace("\\012", "").strip() for line in f]
        self.assertEqual(kept[1:], ["op -n 1", "verdict", "op -n 2 -show_name_regexes .*", "quit", "quit"])
        t = self.start()
        t.send("\x1b[A\x1b[A\x1b[A\n")       # quit, what came before it, and the other shell's line
        t.read_until("82 %")
        self.leave(t)

    def test_a_long_history_is_cut(self):
        path = os.path.join(self.home, ".local/state/opwatch/history")
        os.makedirs(os.path.dirname(path))
        with open(path, "w", encoding="utf8") as f:
            f.write("_HiStOrY_V2_\n" + "".join("op\\040-n\\040%d%s\\012\n" % (i, "\\040" * 60) for i in range(3000)))
        self.leave(self.start())
        with open(path, encoding="utf8") as f:
            lines = f.readlines()
        self.assertLess(len(lines), 1100)
        self.assertIn("2999", lines[-2])

    def test_the_terminal_is_given_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            t = self.start()
            t.send("op -half")
            t.read_until("half")
            raw = termios.tcgetattr(t.fd)[3]
            self.assertFalse(raw & termios.ICANON)
            keep = os.dup(t.fd)
            os.kill(t.pid, number)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]), -number)
            self.assertTrue(termios.tcgetattr(keep)[3] & termios.ICANON)
            self.assertTrue(termios.tcgetattr(keep)[3] & termios.ECHO)
            os.close(keep)
            os.close(t.fd)

    def test_no_pager_on_a_dumb_terminal(self):
        with open(os.path.join(self.home, "pager"), "w", encoding="utf8") as f:
            f.write("#!/bin/sh\nsed s/^/PAGED/\n")
        os.chmod(f.name, 0o755)
        for kind, paged in (("dumb", False), ("xterm", True)):
            t = self.start(TERM=kind, OPWATCH_PAGER="", PAGER=f.name)
            t.send("help\n")
            self.assertEqual("PAGED" in t.read_until(r"describe an option(.|\n)*opwatch> $"), paged)
            self.leave(t)

    def test_letters_without_a_locale(self):
        t = self.start(LC_ALL="", LANG="")
        t.send("op -show_name_regexes ünïcode(\n")
        t.read_until(r"'ünïcode\(' is not a valid regular expression")
        self.leave(t)


if __name__ == "__main__":
    unittest.main()
