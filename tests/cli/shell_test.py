#!/usr/bin/env python3
"""The interactive shell, driven through a pseudo-terminal as a person would: prompt, editing, history,
completion, Ctrl-C, pager, errors that do not end it. Also the same shell fed by a pipe."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from pb_write import sub  # noqa: E402
from terminal import Terminal  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
SAMPLE = os.path.join(os.environ["OPWATCH_SRC"], "samples", "resnet.profile")


class ShellTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)

    def start(self, *args, **env):
        terminal = Terminal(list(args) or ["shell", SAMPLE], self.home, **env)
        terminal.read_until("opwatch> ")
        return terminal

    def test_view_and_quit(self):
        t = self.start()
        t.send("op -select micros -max_depth 2\n")
        self.assertIn("MatchingFiles", t.read_until(r"\n.*opwatch> $"))
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_overview_and_memory(self):
        t = self.start()
        for line, want in (("overview", "3 steps of 103ms"), ("memory", "From step to step"), ("memory --json", '"heaps"'),
                           ("overviw", "did you mean 'overview'"), ("help", "memory +memory over time"), ("memory --to svg", "text, JSON or CSV")):
            t.send(line + "\n")
            t.read_until(want)
            t.read_until(r"opwatch> $")
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_end_of_file_leaves(self):
        t = self.start()
        t.send("\x04")
        self.assertEqual(t.wait(), 0)

    def test_errors_do_not_end_it(self):
        t = self.start()
        for line in ("nonsense", "op -max_depth x", "op -step 12345", "op -output bogus", "   ", "scope -select zzz"):
            t.send(line + "\n")
            t.read_until(r"\n.*opwatch> $")
        t.send("exit\n")
        self.assertEqual(t.wait(), 0)

    def test_completion_of_commands_options_and_values(self):
        t = self.start()
        t.send("adv\t\n")                    # the screen is redrawn in pieces: look at what the line does
        t.read_until("input_wait")
        t.read_until("opwatch> ")
        t.send("op -order_by acc\t-sel\tmicros,pea\t -max\t2 -output cs\t\n")
        seen = t.read_until(r"\r\n.*opwatch> $")
        self.assertIn("peak_bytes", seen)
        self.assertNotIn("Invalid", seen)
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_control_c_gives_a_fresh_prompt(self):
        t = self.start()
        t.send("op -half a line")
        t.read_until("half a line")
        t.send("\x03")
        t.read_until("opwatch> ")
        t.send("\n")
        t.read_until("-max_depth")           # an empty line lists the options
        t.read_until("opwatch> ")
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_history_is_kept_in_the_state_directory(self):
        t = self.start()
        t.send("op -max_depth 1\n")
        t.read_until(r"\n.*opwatch> $")
        t.send("quit\n")
        t.wait()
        path = os.path.join(self.home, ".local", "state", "opwatch", "history")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        t = self.start()
        t.send("\x1b[A\x1b[A")               # up twice: quit, then the view
        t.read_until("op -max_depth 1")
        t.send("\x15quit\n")
        self.assertEqual(t.wait(), 0)

    def test_the_state_directory_may_be_elsewhere(self):
        state = os.path.join(self.home, "state")
        t = self.start(XDG_STATE_HOME=state)
        t.send("op -max_depth 1\n")
        t.read_until(r"\n.*opwatch> $")
        t.send("quit\n")
        t.wait()
        with open(os.path.join(state, "opwatch", "history"), encoding="utf8") as f:
            self.assertIn("max_depth", f.read())
        self.assertFalse(os.path.exists(os.path.join(self.home, ".local")))

    def test_control_c_ends_a_long_answer(self):
        graph = os.path.join(self.home, "chain.pb")
        with open(graph, "wb") as f:
            for i in range(100000):
                f.write(sub(1, sub(1, "n%d" % i) + sub(2, "Id") + (sub(3, "n%d" % (i - 1)) if i else b"")))
        t = self.start("shell", graph, "--no-pager")
        t.send("scope -select occurrence\n")
        t.read_until("n1000")
        t.send("\x03")
        t.read_until("opwatch> ")
        t.send("op -select occurrence\n")
        t.read_until("100k")
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_no_home_is_made(self):
        gone = os.path.join(self.home, "gone")
        t = self.start(HOME=gone)
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)
        self.assertFalse(os.path.exists(gone))

    def test_set_reset_and_help(self):
        t = self.start()
        t.send("set -max_depth 3\n")
        t.read_until("opwatch> ")
        t.send("\n")
        t.read_until(r"-max_depth +3\r\n")
        t.read_until("opwatch> ")
        t.send("reset\n")
        t.read_until("opwatch> ")
        t.send("\n")
        t.read_until(r"-max_depth +10\r\n")
        t.read_until("opwatch> ")
        t.send("help op\n")
        t.read_until("-order_by")
        t.read_until("opwatch> ")
        t.send("help -select\n")
        t.read_until("peak_bytes")
        t.read_until("opwatch> ")
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_pager_only_for_long_output(self):
        t = self.start(OPWATCH_PAGER="sed s/^/PAGED/")
        t.send("scope -max_depth 100\n")
        self.assertIn("PAGED", t.read_until("opwatch> "))
        t.send("op -max_depth 0\n")
        self.assertNotIn("PAGED", t.read_until("opwatch> "))
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)
        t = Terminal(["shell", SAMPLE, "--no-pager"], self.home, OPWATCH_PAGER="sed s/^/PAGED/")
        t.read_until("opwatch> ")
        t.send("scope -max_depth 100\n")
        self.assertNotIn("PAGED", t.read_until("opwatch> "))
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_tables_are_fitted_to_the_terminal_as_it_is_now(self):
        t = self.start("shell", SAMPLE, "--no-pager")
        widest = {}
        for columns in (80, 200, 80):
            t.resize(24, columns)
            t.send("scope -max_depth 100 -select micros,bytes,device,op_types\n")
            text = re.sub(r"\x1b\[[0-9;]*m", "", t.read_until(r"\n.*opwatch> $").split("\n", 1)[1])
            widest[columns] = max(len(line.rstrip()) for line in text.splitlines())
        self.assertLessEqual(widest[80], 80)
        self.assertGreater(widest[200], 80)
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_a_pager_that_is_left_early(self):
        t = self.start(OPWATCH_PAGER="true")
        t.send("scope -max_depth 100\n")
        t.read_until("opwatch> ")
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)

    def test_tfprof_is_neither_fitted_nor_coloured(self):
        t = Terminal(["--profile_path=" + SAMPLE], self.home, name="tfprof")
        t.read_until("tfprof> ")
        t.send("scope -max_depth 100 -select micros,bytes,params,float_ops,device\n")
        seen = t.read_until(r"tfprof> $")
        self.assertNotIn("\x1b[1m", seen)
        self.assertTrue(any(len(line) > 81 for line in seen.splitlines()))
        t.send("quit\n")
        self.assertEqual(t.wait(), 0)


class PipeTest(unittest.TestCase):
    def run_shell(self, lines):
        return subprocess.run([BIN, "shell", SAMPLE], input=lines, capture_output=True, text=True, timeout=300)

    def test_lines_from_a_pipe(self):
        p = self.run_shell("op -max_depth 1\nnonsense\nop -max_depth 1")
        self.assertEqual(p.returncode, 0)
        self.assertNotIn("opwatch>", p.stdout)
        self.assertIn("unknown command 'nonsense'", p.stderr)
        half = len(p.stdout) // 2
        self.assertEqual(p.stdout[:half], p.stdout[half:])

    def test_outputs_of_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            names = [os.path.join(folder, n) for n in "abc"]
            p = self.run_shell("op --to json\nop -t csv --out %s\nop --out=%s\nscope -o %s --to folded\n"
                               "op --to gif\nop --out\nop --to csv\n" % tuple(names))
            self.assertIn('"columns"', p.stdout)
            self.assertIn("name,micros", p.stdout)
            begins = [open(n).readline() for n in names]
        self.assertTrue(begins[0].startswith("name,micros"), begins)
        self.assertIn("name  ", begins[1])
        self.assertRegex(begins[2], r" \d+$")
        self.assertIn("gif", p.stderr)
        self.assertIn("--out needs a file", p.stderr)

    def test_spellings_of_the_command_line(self):
        p = self.run_shell("op -max_depth 1\nop --max-depth 1\nop --max-depth=1\nset -n 2\nop\n")
        self.assertEqual(p.stderr, "")
        self.assertEqual(p.stdout, p.stdout[:len(p.stdout) // 4] * 4)
        self.assertEqual(p.stdout[:5], "name ")
        self.assertIn('"view": "op"', self.run_shell("op --json -n 1\n").stdout)

    def test_help_about_words(self):
        p = self.run_shell("help sql\nhelp nonsense\nhelp -selct\nhelp reset quit\n")
        self.assertRegex(p.stdout, r"^sql: .*\nreset: .*\nquit: .*\n$")
        self.assertIn("unknown command 'nonsense'", p.stderr)
        self.assertIn("unknown option '-selct'; did you mean -select?", p.stderr)

    def test_suggestions(self):
        p = self.run_shell("opp\nop -selct micros\nop -select mircos\nop -select\nop -n x\nop x\n")
        for part in ("did you mean 'op'?", "did you mean -select?", "does not take 'mircos'", "-select needs a value",
                     "-n takes a number", "unknown option 'x'"):
            self.assertIn(part, p.stderr)
        self.assertEqual(p.stdout, "")

    def test_tfprof_keeps_its_words(self):
        p = subprocess.run(["tfprof", "--profile_path=" + SAMPLE], executable=BIN, text=True, capture_output=True,
                           input="opp\nop --max-depth 1\n", timeout=300)
        self.assertIn("First string must be a valid command", p.stderr)
        self.assertIn("Invalid option '--max-depth' value: '1'", p.stderr)

    def test_tfprof_tells_of_files_in_its_words(self):
        for flag, begin in (("profile_path", "profile: "), ("graph_path", "graph_path: "), ("run_meta_path", "run_meta_path /no/file. Status: ")):
            p = subprocess.run(["tfprof", "--%s=/no/file" % flag], executable=BIN, text=True, capture_output=True, input="op\n", timeout=300)
            self.assertEqual(p.stderr, "Failed to read " + begin + "Not found: /no/file; No such file or directory\n")
            self.assertEqual(p.returncode, 1)

    def test_quit_ends_it(self):
        self.assertEqual(self.run_shell("quit\nop\n").stdout, "")

    def test_long_and_odd_lines(self):
        p = self.run_shell("op " + "-max_depth 3 " * 20000 + "\n" + "\x00\xff\n" + "x" * 100000 + "\n")
        self.assertEqual(p.returncode, 0)


if __name__ == "__main__":
    unittest.main()
