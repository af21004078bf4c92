#!/usr/bin/python3
"""The shell completions: what bash offers, and that all three know every command and option of the binary."""
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
FILES = {name: (ROOT / "completions" / name).read_text() for name in ("opwatch.bash", "_opwatch", "opwatch.fish")}


def bash(*words):
    """What bash offers for the last word; words are split as readline does, at blanks and '='."""
    script = f"""compopt() {{ :; }}; source {ROOT}/completions/opwatch.bash
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        case $1 in tfprof) _opwatch_tfprof ;; *) _opwatch ;; esac; printf '%s\\n' "${{COMPREPLY[@]}}" """
    path = os.path.dirname(os.path.abspath(BIN)) + ":" + os.environ["PATH"]
    return subprocess.run(["bash", "-c", script, "bash", *words], cwd=ROOT / "completions", check=True, text=True,
                          env={**os.environ, "PATH": path}, stdout=subprocess.PIPE).stdout.split()


class Bash(unittest.TestCase):
    def test_commands_and_files(self):
        self.assertEqual(bash("opwatch", "sc"), ["scope"])
        self.assertIn("opwatch.fish", bash("opwatch", "op", "opw"))

    def test_help_takes_a_command(self):
        self.assertEqual(bash("opwatch", "help", "adv"), ["advise"])

    def test_options(self):
        self.assertEqual(bash("opwatch", "op", "--order"), ["--order-by"])
        self.assertEqual(bash("opwatch", "info", "--est"), ["--estimate"])
        self.assertEqual(bash("tfprof", "--graph"), ["--graph_path="])

    def test_values(self):
        self.assertEqual(bash("opwatch", "op", "--select", "bytes,mi"), ["bytes,micros"])
        self.assertEqual(bash("opwatch", "op", "--order-by", "=", "par"), ["params"])
        self.assertEqual(bash("tfprof", "--order_by", "=", "cpu"), ["cpu_micros"])
        self.assertEqual(bash("opwatch", "op", "-max_depth", ""), [])
        self.assertEqual(bash("opwatch", "op", "--order-by", "tensor"), [])


class Complete(unittest.TestCase):
    def known(self, name):
        """The words of a completion file, with the options it composes in loops."""
        words = set(re.findall(r"[a-z][a-z-]*[a-z]", FILES[name]))
        parts = ["account-type", "start-name", "trim-name", "show-name", "hide-name"]
        metrics = re.findall(r"for metric in (.*)", FILES[name])
        words |= {f"min-{m}" for line in metrics for m in line.split()}
        return words | ({f"{p}-regexes" for p in parts} if "$part-regexes" in FILES[name] else set())

    def test_commands(self):
        table = ROOT / "src/cli/commands.def"
        for command in re.findall(r"^\s*COMMAND\((\w+)", table.read_text() if table.exists() else "", re.M):
            for name in FILES:
                word = command.replace("_", "-")  # nsys_stats in C, nsys-stats for people
                self.assertRegex(FILES[name], rf"\b{word}\b", f"{name}: command {word}")

    def test_options_of_commands(self):
        """No more and no less than the help tells."""
        if not os.access(BIN, os.X_OK):
            self.skipTest("the binary is not built")
        general = {"verbose", "version", "help"}
        for command in ("record", "attach", "daemon", "jobs", "top", "stacks", "capture", "op", "roofline", "sql", "convert",
                        "merge", "export", "ask", "push", "memory", "advise", "info", "formats"):
            shown = subprocess.run([BIN, command, "--help"], text=True, capture_output=True, check=True).stdout
            taken = set(re.findall(r"^  (?:-.,|   ) --([a-z][a-z-]*[a-z])", shown, re.M)) - general
            offered = {word[2:] for word in bash("opwatch", command, "--") if word.startswith("--")} - general
            self.assertEqual(offered, taken, f"bash: {command}")
            known = {option for line in FILES["opwatch.fish"].splitlines() for option in re.findall(r" -l ([a-z-]+)", line)
                     if f" {command} " in " " + " ".join(re.findall(r"__fish_seen_subcommand_from ([a-z -]*)", line)) + " "}
            self.assertEqual(known - taken, set(), f"fish: {command}")

    def test_options(self):
        if not os.access(BIN, os.X_OK):
            self.skipTest("the binary is not built")
        for command in ("op", "info", "advise", "shell", "record", "attach", "daemon", "jobs", "top", "stacks", "capture"):
            shown = subprocess.run([BIN, command, "--help"], text=True, capture_output=True, check=True).stdout
            for option in set(re.findall(r"(?<!\S)--([a-z][a-z-]*[a-z])", shown)):
                for name in ("_opwatch", "opwatch.fish"):       # bash asks the program, which is compared above
                    self.assertIn(option, self.known(name), f"{name}: option --{option} of {command}")


if __name__ == "__main__":
    unittest.main()
