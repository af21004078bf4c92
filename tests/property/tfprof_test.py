#!/usr/bin/python3
"""tfprof's shell on random models and random options against a plain transcription of its rules (tests/support/tfprof_*.py).

Everything on standard output and every written file is compared byte for byte. TFPROF_ROUNDS and TFPROF_SEED in the environment
ask for more than the suite does: `TFPROF_ROUNDS=5000 TFPROF_SEED=1`. A failure names the model's number; the same number alone
is tried again with TFPROF_SEED=NUMBER TFPROF_ROUNDS=1.
"""
import gzip
import os
import re
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from tfprof_files import UNITS, WRITTEN, Abort, GraphTimeline, Pprof, tree_timeline  # noqa: E402
from tfprof_random import PROFILE, Files, Maker, profile_message, scrambled, vary_profile  # noqa: E402
from tfprof_store import BYTES, TIMES, Store, raw  # noqa: E402
from tfprof_text import SELECT_DOC, Text, advice  # noqa: E402
from tfprof_views import BAD_REGEXES, has_lines  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
ROUNDS = int(os.environ.get("TFPROF_ROUNDS", 60))
SEED = int(os.environ.get("TFPROF_SEED", 1))
NUMBERS = ["max_depth", *("min_" + m for m in BYTES + TIMES + ["params", "float_ops", "occurrence"]), "step"]
LISTS = ["account_type_regexes", "start_name_regexes", "trim_name_regexes", "show_name_regexes", "hide_name_regexes"]
ORDERS = ["name", *BYTES, *TIMES, "params", "float_ops", "occurrence"]
SELECT = sorted(SELECT_DOC)
DEFAULTS = {**dict.fromkeys(NUMBERS, 0), "max_depth": 10, "step": -1, "order_by": "name", "account_type_regexes": [".*"],
            "start_name_regexes": [".*"], "trim_name_regexes": [], "show_name_regexes": [".*"], "hide_name_regexes": [],
            "account_displayed_op_only": False, "select": ["micros"], "output": "stdout", "keys": {}}
LISTED = ["max_depth", *("min_" + m for m in BYTES + TIMES + ["params", "float_ops", "occurrence"]), "step", "order_by", *LISTS,
          "account_displayed_op_only", "select", "output"]
HELP = """\
See https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core/profiler/README.md for profiler tutorial.
See https://github.com/tensorflow/tensorflow/tree/master/tensorflow/core/profiler/g3doc/command_line.md for command line tool tutorial.
profiler --profile_path=<ProfileProto binary file> # required

Or:

profiler --graph_path=<GraphDef proto file>  # Contains model graph info (no needed for eager execution)
         --run_meta_path=<RunMetadata proto file>  # Contains runtime info. Optional.
         --run_log_path=<OpLogProto proto file>  # Contains extra source code, flops, custom type info. Optional


To skip interactive mode, append one of the following commands:
  scope: Organize profiles based on name scopes.
  graph: Organize profiles based on graph node input/output.
  op: Organize profiles based on operation type.
  code: Organize profiles based on python codes (need op_log_path).
  advise: Auto-profile and advise. (experimental)
  set: Set options that will be default for follow up commands.
  help: Show helps.
"""
NEEDS_FILE = {"file", "timeline", "pprof"}


# ---- random lines, and the options that they mean ----

class Lines:
    def __init__(self, rng, store):
        self.rng = rng
        self.names = list(store.nodes) + [n.op for n in store.nodes.values()] + \
            [t for n in store.nodes.values() for t in sorted(n.types)] + ["ops.py:1:f", "main.py:.*", "_TFProfRoot", "_kTFScopeParent"]
        self.steps = sorted(store.steps)

    def regex(self):
        rng = self.rng
        if rng.random() < 0.07:
            return rng.choice(sorted(BAD_REGEXES))
        name = rng.choice(self.names)
        escaped = "".join("\\" + c if c in ".[]()|+*?{}^$\\" else c for c in name)
        cut = rng.randint(0, len(escaped) // 2 + 1)
        while cut < len(escaped) and cut and escaped[cut - 1] == "\\":
            cut += 1
        made = rng.choice([escaped, escaped, escaped[:cut] + ".*", ".*" + escaped[-1:], ".*a.*", "[a-c].*", "(a|b|.*/c)", ".*", ".+",
                           "(?i)a.*", "\\w+", "^a.*$", "x?", "\\d", ".*/.*", "[^/]*", "gradients.*", "a{1"])
        return made if not made.endswith("\\") else ".*"

    def words(self):
        """A random option: its words, and what it sets; None when it is wrong."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.35:
            name = rng.choice(NUMBERS)
            value = self.number(name)
            return ["-" + name, rng.choice(["", "", "", "\t"]) + str(value) + rng.choice(["", "", "", "\t\v"])], {name: value}
        if kind < 0.65:
            return self.list_words(rng.choice(LISTS))
        if kind < 0.75:
            order = rng.choice(ORDERS)
            return ["-order_by", order], {"order_by": order}
        if kind < 0.8:
            text, value = rng.choice([("true", True), ("T", True), ("yes", True), ("1", True), ("no", False), ("F", False), ("0", False), ("", True),
                                      ("YES", True), ("n", False), ("fAlSe", False)])
            return ["-account_displayed_op_only"] + ([text] if text else []), {"account_displayed_op_only": value}
        if kind < 0.95:
            chosen = rng.choice([SELECT, rng.sample(SELECT, rng.randint(0, 5))])
            quote = rng.choice(["", "'", '"'])
            return ["-select", quote + ",".join(chosen) + quote if chosen else "''"], {"select": sorted(chosen)}
        return self.wrong()

    def number(self, name):
        rng = self.rng
        if name == "max_depth":
            return rng.choice([1, 2, 3, 4, 10, 100, 2**31 - 1, 0, -3])
        if name == "step":
            return rng.choice([-1, -1, -7, -2**63] + self.steps * 4 + [3])
        return rng.choice([0, 0, 1, 2, 10, 100, 1000, 10**6, -1, -10**6, 2**63 - 1, -2**63])

    def list_words(self, name):
        regexes = [self.regex() for _ in range(self.rng.choice([0, 1, 1, 1, 2, 3]))]
        word = ",".join(regexes)
        if self.rng.random() < 0.3 or not word:
            word = "'" + word + "'"
        word = word.replace(" ", ".").replace("\n", ".")
        return ["-" + name, word], {name: [piece for piece in word.strip("\"'").split(",") if piece]}

    def wrong(self):
        rng = self.rng
        option, value = rng.choice([("-max_depth", "2147483648"), ("-max_depth", "+1"), ("-step", "1x"), ("-min_bytes", "9223372036854775808"),
                                    ("-order_by", "size"), ("-select", "micros,time"), ("-account_displayed_op_only", "maybe"),
                                    ("-nonsense", "1"), ("-word", "-max_depth"), ("-min_micros", "0x10"), ("-min_micros", "1.5")])
        return [option, value], "E: Invalid argument: Invalid option '%s' value: '%s'\n" % (option, value)


def listing(options):
    out = ""
    for name in LISTED:
        value = options[name]
        if name == "output":
            value += ":" + ",".join("%s=%s" % item for item in sorted(options["keys"].items()))
        elif isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, list):
            value = ",".join(value)
        out += "%-28s%s\n" % ("-" + name, value)
    return out


# ---- flags of the command line ----

def flag_options(rng, lines):
    """Flags, and what they mean: lists keep their quotes, and nobody checks words."""
    flags, options = [], {**DEFAULTS, "keys": {}}
    for _ in range(rng.randint(0, 5)):
        kind = rng.random()
        if kind < 0.4:
            name = rng.choice(NUMBERS)
            means = {name: lines.number(name)}
            text = rng.choice(["", "", " ", "+"] if means[name] >= 0 else [""]) + str(means[name])
        elif kind < 0.7:
            name = rng.choice(LISTS)
            (_, text), _ = lines.list_words(name)
            text = text.strip("'")
            means = {name: [piece for piece in text.split(",") if piece]}
        elif kind < 0.8:
            name, text = "order_by", rng.choice(ORDERS + ["", "size"])
            means = {name: text}
        elif kind < 0.9:
            name, text, means = "account_displayed_op_only", "true", {"account_displayed_op_only": True}
        else:
            name, text = "select", ",".join(rng.sample(SELECT + ["'micros'", "zeit"], rng.randint(0, 4)))
            means = {name: sorted(set(piece for piece in text.split(",") if piece))}
        flags.append("--%s=%s" % (name, text))
        options.update(means)
    return flags, options


# ---- what a line prints ----

class Shell:
    def __init__(self, rng, store, folder):
        self.rng, self.store, self.folder = rng, store, folder
        self.lines = Lines(rng, store)
        self.defaults = dict(DEFAULTS)
        self.number = 0

    def next(self):
        """(line, what standard output gets, what standard error gets at least, {file: content})"""
        rng = self.rng
        if rng.random() < 0.1:
            return self.odd_line()
        command = rng.choice(["scope", "scope", "graph", "graph", "op", "op", "code", "code", "advise", "set"])
        words, options = [command], {**self.defaults, "keys": dict(self.defaults["keys"])}
        for _ in range(rng.choice([0, 1, 2, 3, 5, 8])):
            more, means = self.lines.words()
            words += more
            if isinstance(means, str):
                return " ".join(words), "", means, {}
            options.update(means)
        self.settle(words, options, command)
        if rng.random() < 0.3:
            error = self.output(words, options)
            if error:
                return " ".join(words), "", "E: Invalid argument: " + error, {}
        line = rng.choice([" ", " ", "   "]).join(words)
        if command == "set":
            self.defaults = options
            return line, "", "", {}
        if command == "advise":
            text, said = advice(self.store)
            return line, text, "".join(s + "\n" for s in said), {}
        return (line,) + self.answer(command, options)

    def odd_line(self):
        """Lines that show nothing of the model."""
        rng = self.rng
        line = rng.choice(["", "", "help", "help -max_depth 3", "reset", "foo", "Scope", "\tscope", "-max_depth 3", "scope\t", "#", "\r", "scope\r",
                           "%s -max_depth", "%s -select", "%s -account_displayed_op_only x", "%s -output", "%s -order_by", "%s extra", "%s -step ''",
                           "%s -min_bytes  -select  micros", "%s -Select micros", "%s --max_depth 3", "%s -max_depth=3",
                           "%s -select micros, bytes", "%s -select 'micros' bytes", "%s -hide_name_regexes"])
        if line == "reset":
            self.defaults = {**DEFAULTS, "keys": {}}
            return line, "", "", {}
        if line in ("", "help", "help -max_depth 3"):
            return line, listing(self.defaults) if not line else HELP, "", {}
        if "%s" not in line:
            return line, "", "E: Invalid argument: First string must be a valid command.\n", {}
        line %= rng.choice(["scope", "graph", "op", "code", "set", "advise"])       # help tells about words, ours does
        option, value = {"extra": ("extra", ""), "-min_bytes  -select  micros": ("-min_bytes", "-select"), "-select micros, bytes": ("bytes", ""),
                         "-select 'micros' bytes": ("bytes", "")}.get(line.partition(" ")[2]) or (line.split(" ")[1:] + [""])[:2]
        if option == "-output":
            return line, "", "E: Invalid argument: Invalid option '-output' value: ''\n", {}
        return line, "", "E: Invalid argument: Invalid option '%s' value: '%s'\n" % (option, value), {}

    def settle(self, words, options, command):
        """Where the original crashes there is nothing to compare with."""
        if command in ("code", "set") and options["max_depth"] <= 0:
            words += ["-max_depth", "3"]
            options["max_depth"] = 3
        trims = options["trim_name_regexes"]
        if command in ("code", "set") and any(r in (".*", ".+", "\\w+", "[^/]*") or "Root" in r for r in trims):
            words += ["-trim_name_regexes", "none"]
            options["trim_name_regexes"] = ["none"]

    def output(self, words, options):
        rng = self.rng
        self.number += 1
        path = os.path.join(self.folder, "out%d" % self.number)
        kind = rng.choice(["stdout", "none", "file", "timeline", "pprof", "bad"])
        if kind == "bad":
            word, error = rng.choice([
                ("gif", "E.g. Unknown output type: gif, Valid types: file,none,pprof,stdout,timeline\n"),
                ("file:outfile", "Visualize format: -output timeline:key=value,key=value,..."),
                ("file:out=x", "Unrecognized options out for output_type: file\n"),
                ("stdout:outfile=x", "Unrecognized options outfile for output_type: stdout\n"),
            ])
            words += ["-output", word]
            return error
        options["output"] = kind
        if kind in NEEDS_FILE and (rng.random() < 0.8 or "outfile" not in options["keys"]):
            options["keys"]["outfile"] = path + rng.choice(["", "=x"])
            kind += ":" + rng.choice(["", ",,"]) + "outfile=" + options["keys"]["outfile"]
        words += ["-output", kind]
        return None

    def answer(self, command, options):
        step, steps = options["step"], sorted(self.store.steps)
        if step >= 0 and step not in steps:
            return "", "Options -step=%d not found.\nAvailable steps: %s\n" % (step, "".join("%d " % s for s in steps)), {}
        if command == "code" and not has_lines(self.store):
            if self.store.has_traces and options["output"] != "stdout":
                raise Abort
            return "", "No code trace information\n", {}
        shown = Text(self.store, command, options)
        said = []
        text, files, kind, path = "", {}, options["output"], options["keys"].get("outfile")
        if kind == "stdout":
            text = shown.text()
        elif kind == "file":
            files = {path: shown.text()}
        elif kind == "pprof":
            text, said, files = self.pprof(command, options, shown, path)
        elif kind == "timeline":
            text, said, files = self.timeline(command, options, shown, path)
        return text, "".join(s + "\n" for s in shown.said + said), files

    def pprof(self, command, options, shown, path):
        if command != "code":
            return "", ["Only 'code' view supports pprof output now."], {}
        if len(options["select"]) != 1:
            return "", ["Can only select 1 attribute for pprof output."], {}
        attribute = options["select"][0]
        if attribute not in UNITS:
            return "", ["pprof doesn't support -select=" + attribute], {}
        made = Pprof(shown.view, attribute)
        return "\nRun pprof -png --nodecount=100 --sample_index=1 <%s>\n" % path, [], {path: made.message()}

    def timeline(self, command, options, shown, path):
        if command == "op":
            return "", ["op view doesn't support timeline yet. Consider graph/scope/code view."], {}
        if command == "graph":
            return self.graph_timelines(options, path)
        path += "_%d" % options["step"]
        return WRITTEN % path, [], {path: tree_timeline(shown.view)}

    def graph_timelines(self, options, path):
        """One file per step."""
        text, files = "", {}
        for step in [options["step"]] if options["step"] >= 0 else sorted(self.store.steps):
            if step < 0:
                raise Abort     # of a step whose number means the average nothing is known
            made = GraphTimeline(Text(self.store, "graph", {**options, "step": step}).view, step)
            files["%s_%d" % (path, step)] = made.text
            text += made.told + WRITTEN % ("%s_%d" % (path, step))
        return text, [], files


def load(model):
    """The store, and what reading it prints."""
    store = Store()
    text = "Reading Files...\nTry to use a single --profile_path instead of graph_path,op_log_path,run_meta_path\nParsing Inputs...\n"
    store.add_graph(model["graph"])
    if model["op_log"] is not None:
        store.add_op_log(model["op_log"])
    if model["checkpoint"] is not None:
        store.add_checkpoint(model["checkpoint"])
        store.v1 = model["v1"]
    for i, devices in enumerate(model["steps"]):
        text += "run graph coverage: %.2f\n" % store.add_step(i, devices)
    return store, text


def apart(want, got):
    """Both from a little before the first difference."""
    same = len(os.path.commonprefix([want, got]))
    return "\n%s bytes are the same, then want\n%r\ngot\n%r" % (same, want[max(0, same - 300):same + 300], got[max(0, same - 300):same + 300])


def plain(data):
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


class Views(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)

    def tfprof(self, flags, lines, folder):
        return subprocess.run(["tfprof", *flags], executable=BIN, input=lines, capture_output=True, timeout=900, cwd=folder,
                              env={**os.environ, "HOME": folder, "ASAN_OPTIONS": "detect_leaks=0"})

    def compare(self, number, flags, begin, shell, many):
        cases = [("(loading)", begin, "", {})]
        while len(cases) < many:
            try:
                cases.append(shell.next())
            except Abort:
                continue
        lines = "".join(case[0] + "\n" for case in cases[1:])
        done = self.tfprof(flags, lines.encode(), shell.folder)
        out, err = done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")
        self.assertEqual(done.returncode, 0, "model %d %s: %s" % (number, flags, err[-2000:]))
        last = {}
        for i, (line, text, said, files) in enumerate(cases):
            if not out.startswith(text):
                self.fail("model %d, line %d %r of %r%s" % (number, i, line, flags, apart(text, out)))
            out = out[len(text):]
            for message in said.splitlines(True):
                # Control characters do not reach standard error: they could drive the terminal.
                message = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "\ufffd", message)
                at = err.find(message)
                self.assertGreaterEqual(at, 0, "model %d, line %d %r of %r: no %r in %r" % (number, i, line, flags, message, err[:2000]))
                err = err[at + len(message):]
            last.update({path: (line, content) for path, content in files.items()})
        self.assertEqual(out, "", "model %d: more than asked for" % number)
        for path, (line, content) in last.items():
            with open(path, "rb") as f:
                got = plain(f.read())
            want = content if isinstance(content, bytes) else raw(content)
            if got != want:
                self.fail("model %d, %r of %r%s" % (number, line, flags, apart(want, got)))
            os.unlink(path)

    def one(self, number):
        rng = random.Random(number)
        model = Maker(rng).model()
        store, begin = load(model)
        files = Files(self.scratch.name, model, rng)
        self.compare(number, files.flags + files.checkpoint, begin, Shell(rng, store, self.scratch.name), 25)
        self.one_shot(number, files, begin, Shell(rng, store, self.scratch.name))
        if all(name in store.nodes for n in store.nodes.values() for name in n.inputs):
            self.as_profile(number, store, files, rng)

    def one_shot(self, number, files, begin, shell):
        command = shell.rng.choice(["scope", "graph", "op", "code"])
        flags, options = flag_options(shell.rng, shell.lines)
        shell.settle([], options, command)
        flags = ["--max_depth=%d" % options["max_depth"], "--trim_name_regexes=" + ",".join(options["trim_name_regexes"]),
                 *(f for f in flags if not f.startswith(("--max_depth", "--trim_name")))]
        text, said, _ = shell.answer(command, options)
        done = self.tfprof(files.flags + files.checkpoint + flags + [command], b"", shell.folder)
        what = "model %d, %r" % (number, flags + [command])
        got = done.stdout.decode(errors="surrogateescape")
        self.assertTrue(got == begin + text, what + apart(begin + text, got))
        for message in said.splitlines(True):
            self.assertIn(message, done.stderr.decode(errors="surrogateescape"), what)
        self.assertEqual(done.returncode, 0)

    def as_profile(self, number, store, files, rng):
        store.miss_stream = False
        for node in store.nodes.values():
            node.types.discard("_checkpoint_variables")
        written = os.path.join(self.scratch.name, "written.profile")
        made = subprocess.run([BIN, "convert", *files.paths, "--no-infer", "-o", written], capture_output=True, timeout=900)
        # what files are is not told by names that begin with \1, nor by graphs of nodes without ops
        if b"not used" not in made.stderr and not made.returncode and all(n.op for n in store.nodes.values()):
            self.compare(number, ["--profile_path=" + written] + files.checkpoint, "Reading Files...\n",
                         Shell(rng, store, self.scratch.name), 8)
        vary_profile(store, rng)
        profile = files.write("profile", scrambled(profile_message(store, rng), PROFILE, rng))
        self.compare(number, ["--profile_path=" + profile] + files.checkpoint, "Reading Files...\n",
                     Shell(rng, store, self.scratch.name), 15)

    def test_random_models(self):
        for number in range(SEED, SEED + ROUNDS):
            self.one(number)


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    unittest.main()
