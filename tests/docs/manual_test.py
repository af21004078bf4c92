#!/usr/bin/python3
"""The man pages and the completions know every command, view and option of the help, and no others."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
MAN = ROOT / "docs/man"
LOOPS = {"$metric": ["bytes", "peak-bytes", "residual-bytes", "output-bytes", "micros", "accelerator-micros", "cpu-micros",
                     "params", "float-ops", "occurrence"],
         "$part": ["account-type", "start-name", "trim-name", "show-name", "hide-name"]}


def printed(name, *arguments):
    return subprocess.run([name, *arguments], executable=BIN, text=True, capture_output=True).stdout


def part(text, begin, end):
    """The lines between the two that match."""
    found = re.search(rf"^{begin}.*?\n(.*?)^{end}", text, re.M | re.S)
    return found[1] if found else ""


def plain(page):
    """A man page without its escapes."""
    text = re.sub(r"\\f[A-Z]", "", (MAN / page).read_text(encoding="utf8"))
    return text.replace("\\-", "-").replace("\\|", "")


def tags(text):
    """The lines that name the items of lists."""
    return re.findall(r"^\.TP\n(.*)$", text, re.M)


def options():
    """(letter, name) of every option that a command or view takes."""
    topics = re.findall(r"^  ([\w-]+) ", part(printed("opwatch", "--help"), "Commands:", r"\Z"), re.M) + ["view"]
    return {pair for topic in topics for pair in
            re.findall(r"^  (?:(-\w), |    )(--[a-z-]+)", part(printed("opwatch", "help", topic), "Options:", "$"), re.M)}


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.help = printed("opwatch", "--help")
        cls.page = plain("opwatch.1")

    def test_commands(self):
        shown = set(re.findall(r"^  ([\w-]+) ", part(self.help, "Commands:", r"\S"), re.M))
        told = {tag.split()[-1] for tag in tags(part(self.page, r"\.SH COMMANDS", r"\.SH"))}
        self.assertEqual(shown | {"view"}, told)

    def test_views(self):
        shown = set(re.findall(r"^  (\w+) ", part(self.help, "Views", r"\S"), re.M))
        told = {tag.split()[-1] for tag in tags(part(self.page, r"\.SH VIEWS", r"\.SH"))}
        self.assertEqual(shown, told)

    def test_options(self):
        shown = {word for pair in options() for word in pair if word}
        section = "\n".join(tags(part(self.page, r"\.SH OPTIONS", r"\.SH")))
        told = set(re.findall(r"(?<![\w-])(--?[a-zA-Z][a-z-]*)", section))
        self.assertEqual(shown, told)
        self.assertGreater(len(shown), 40)

    def test_outputs(self):
        shown = set(re.findall(r"^  (\w+) ", part(printed("opwatch", "formats"), "Outputs", r"\Z"), re.M))
        told = {tag.split()[-1] for tag in tags(part(self.page, r"\.SH OUTPUTS", r"\.SH"))}
        self.assertEqual(shown | {"none"}, told)

    def test_tfprof_flags(self):
        shown = set(re.findall(r"--(\w+)", printed("tfprof", "--help"))) | {"start_name_regexes"}
        told = set(re.findall(r"--(\w+)", "\n".join(tags(part(plain("tfprof.1"), r"\.SH FLAGS", r"\.SH")))))
        self.assertEqual(shown, told)

    @unittest.skipUnless(shutil.which("groff"), "groff is not there")
    def test_no_warnings(self):
        for page in sorted(MAN.glob("*.1")):
            run = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-z", str(page)], text=True, capture_output=True)
            self.assertEqual(run.stderr, "", page.name)


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shown = printed("opwatch", "--help")
        cls.options = {name[2:] for _, name in options()}
        cls.words = set(re.findall(r"^  ([\w-]+) ", part(shown, "Commands:", r"'opwatch"), re.M)) | {"view"}

    def check(self, name, options, words):
        self.assertEqual(self.options, options, name)
        self.assertEqual(self.words, words, name)

    def test_bash(self):
        text = (ROOT / "completions/opwatch.bash").read_text()
        named = dict(re.findall(r'^_opwatch_(\w+)="([^"]*)"', text, re.M))
        # Options come from the program; tests/cli/completions_test.py compares them. What is there without it:
        self.assertLessEqual(set(named["view_options"].split() + named["general_options"].split()), self.options)
        self.assertEqual(set(named["commands"].split()), self.words)

    def test_zsh(self):
        text = (ROOT / "completions/_opwatch").read_text().replace("--{profile,", "")
        self.check("zsh", set(re.findall(r"--([a-z][a-z-]*[a-z])(?=[=\[}])", text)),
                   set(re.findall(r"^\t'([\w-]+):", part(text, r"commands=\(", r"\)"), re.M)))

    def test_fish(self):
        lines = [line for line in (ROOT / "completions/opwatch.fish").read_text().splitlines() if "-c opwatch" in line]
        options = set(re.findall(r" -l ([$\w-]+)", "\n".join(lines)))
        for variable, values in LOOPS.items():
            for option in [o for o in options if variable in o]:
                options.remove(option)
                options |= {option.replace(variable, value) for value in values}
        self.check("fish", options, set(re.findall(r"-n \$first -a ([\w-]+)", "\n".join(lines))))


if __name__ == "__main__":
    unittest.main()
