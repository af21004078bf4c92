#!/usr/bin/python3
"""tfprof's shell on random models and random options against a plain transcription of its rules (tests/support/tfprof_*.py).

Everything on standard output and every written file is compared byte for byte. TFPROF_ROUNDS and TFPROF_SEED in the environment
ask for more than the suite does: `TFPROF_ROUNDS=5000 TFPROF_SEED=1`. A failure names the model's number; the same number alone
is tried again with TFPROF_SEED=NUMBER TFPROF_ROUNDS=1.
"""
import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from pb_write import num, packed, some, sub  # noqa: E402
from tfprof_random import Files, Maker, profile_message  # noqa: E402
from tfprof_store import BYTES, TIMES, Store, raw  # noqa: E402
from tfprof_text import SELECT_DOC, Text, advice  # noqa: E402
from tfprof_views import BAD_REGEXES, base_name, has_lines  # noqa: E402

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
NEEDS_FILE = {"file", "timeline", "pprof"}
UNITS = {**dict.fromkeys(TIMES, "microseconds"), **dict.fromkeys(BYTES, "bytes"), "params": "count", "float_ops": "count"}
COMMENTS = {
    "micros": "Sum of accelerator execution time and cpu execution time.", "accelerator_micros": "Accelerator execution time.",
    "cpu_micros": "CPU execution time.", "bytes": "Sum of operation total memory requests, excluding deallocations.",
    "peak_bytes": "Sum of operation peak memory usage.", "residual_bytes": "Sum of operation allocated memory after finish.",
    "output_bytes": "Sum of operation output size.", "params": "Model parameters.",
    "float_ops": "Model float operations (Only available if defined).",
}


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
            return ["-" + name, str(value)], {name: value}
        if kind < 0.65:
            return self.list_words(rng.choice(LISTS))
        if kind < 0.75:
            order = rng.choice(ORDERS)
            return ["-order_by", order], {"order_by": order}
        if kind < 0.8:
            text, value = rng.choice([("true", True), ("T", True), ("yes", True), ("1", True), ("no", False), ("F", False), ("0", False)])
            return ["-account_displayed_op_only", text], {"account_displayed_op_only": value}
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
                                    ("-nonsense", "1"), ("word", "-max_depth"), ("-min_micros", "0x10"), ("-min_micros", "1.5")])
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


# ---- files ----

def code_point(data):
    """As jsoncpp reads it: what follows the first byte of a character is not looked at. (code, bytes)"""
    size, least = ((1, 0) if data[0] < 0x80 else (2, 0x80) if data[0] < 0xe0 else (3, 0x800) if data[0] < 0xf0 else (4, 0x10000))
    if size == 1:
        return data[0], 1
    if len(data) < size:
        return 0xfffd, 1
    code = data[0] & 0xff >> size + 1
    for byte in data[1:size]:
        code = code << 6 | byte & 0x3f
    return (code, size) if code >= least and not 0xd800 <= code <= 0xdfff else (0xfffd, size)


def json_text(value):
    if isinstance(value, dict):
        return "{" + ",".join(json_text(k) + ":" + json_text(value[k]) for k in sorted(value)) + "}"
    if not isinstance(value, str):
        return str(value)
    data, text = raw(value), ""
    while data:
        code, size = code_point(data)
        text += chr(code)
        data = data[size:]
    return json.dumps(text)


class Abort(Exception):
    """Where the original aborts."""


def tree_timeline(view):
    """The displayed tree as nested slices, end to end."""
    events, depths = [], set()

    def place(row, start, dur, depth):
        if depth not in depths:
            depths.add(depth)
            events.append({"args": {"name": "Scope:%d" % depth}, "name": "process_name", "ph": "M", "pid": depth})
        events.append({"args": {"name": row.name, "op": row.name}, "cat": "Op", "dur": dur, "name": row.name, "ph": "X", "pid": depth,
                       "tid": 0, "ts": start})
        at = start
        for child in row.shown:
            micros = child.total["micros"]
            if micros <= 0:
                continue
            if at + micros > start + dur:
                raise Abort
            place(child, at, micros, depth + 1)
            at += micros

    place(view.root, 0, view.root.total["micros"], 0)
    return ('{"traceEvents":[' + ",".join(json_text(e) for e in events) + "]}\n").encode()


class Pprof:
    def __init__(self, view, attribute):
        self.step, self.attribute = view.options["step"], attribute
        self.strings, self.locations, self.functions, self.samples = {"": 0}, {}, {}, {}
        for row in view.root.shown:
            self.walk(row, None, [])

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def location(self, parent, child):
        key = (raw(parent[0]), raw(child[2]), parent[1])
        if key not in self.locations:
            name = (raw(child[0]), raw(child[2]), child[3] & (1 << 64) - 1)   # lines are ordered without a sign
            if name not in self.functions:
                base = base_name(child[0])
                title = (base.rpartition(".")[0] if "." in base else base) + ":" + child[2]
                self.functions[name] = (len(self.functions) + 1, self.string(title), self.string(child[0]), child[3])
            self.locations[key] = (len(self.locations) + 1, self.functions[name][0], parent[1])
        return self.locations[key][0]

    def walk(self, row, parent, path):
        if parent:
            path = [self.location(parent.frame, row.frame)] + path
        for child in row.shown:
            self.walk(child, row, path)
        if not row.shown:
            self.leaves(row, path)

    def leaves(self, row, path):
        if row.every:
            for child in row.every:
                self.leaves(child, path)
            return
        for node in row.attached:
            key = node.name
            while key in self.samples:
                key += "@"
            label = (self.string("graph node:"), self.string(node.name))
            self.samples[key] = (path, [1, node.metric(self.attribute, self.step)], label)

    def message(self):
        count, attribute = self.string("count"), self.string(self.attribute)
        unit, comment = self.string(UNITS[self.attribute]), self.string(COMMENTS[self.attribute])
        out = sub(1, num(1, count) + num(2, count)) + sub(1, num(1, attribute) + num(2, unit))
        for key in sorted(self.samples, key=raw):
            path, values, (name, text) = self.samples[key]
            out += sub(2, packed(1, path) + packed(2, values) + sub(3, num(1, name) + some(2, text)))
        for key in sorted(self.locations):
            number, function, line = self.locations[key]
            out += sub(4, num(1, number) + sub(4, num(1, function) + some(2, line)))
        for key in sorted(self.functions):
            number, name, file, first = self.functions[key]
            out += sub(5, num(1, number) + num(2, name) + some(4, file) + some(5, first))
        return out + b"".join(sub(6, s) for s in self.strings) + packed(13, [comment])


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
        if rng.random() < 0.05:
            return "", listing(self.defaults), "", {}
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
        return text, "".join(s + "\n" for s in said), files

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
            raise Abort         # tests/property/timeline_test.py has them
        path += "_%d" % options["step"]
        text = ("\n******************************************************\nTimeline file is written to %s.\nOpen a Chrome browser, "
                "enter URL chrome://tracing and load the timeline file.\n******************************************************\n")
        return text % path, [], {path: tree_timeline(shown.view)}


def load(model):
    """The store, and what reading it prints."""
    store = Store()
    text = "Reading Files...\nTry to use a single --profile_path instead of graph_path,op_log_path,run_meta_path\nParsing Inputs...\n"
    store.add_graph(model["graph"])
    if model["op_log"] is not None:
        store.add_op_log(model["op_log"])
    if model["checkpoint"] is not None:
        store.add_checkpoint(model["checkpoint"])
    for i, devices in enumerate(model["steps"]):
        text += "run graph coverage: %.2f\n" % store.add_step(i, devices)
    return store, text


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
                self.fail("model %d, line %d %r of %r\nwant\n%s\ngot\n%s" %
                          (number, i, line, flags, text, out[:len(text) + 200]))
            out = out[len(text):]
            at = err.find(said)
            self.assertGreaterEqual(at, 0, "model %d, line %d %r of %r: no %r in %r" % (number, i, line, flags, said, err))
            err = err[at + len(said):]
            last.update({path: (line, content) for path, content in files.items()})
        self.assertEqual(out, "", "model %d: more than asked for" % number)
        for path, (line, content) in last.items():
            with open(path, "rb") as f:
                got = plain(f.read())
            want = content if isinstance(content, bytes) else raw(content)
            if got != want:
                self.fail("model %d, %r of %r\nwant\n%r\ngot\n%r" % (number, line, flags, want, got))
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
        self.assertEqual(done.stdout.decode(errors="surrogateescape"), begin + text, what)
        self.assertIn(said, done.stderr.decode(errors="surrogateescape"), what)
        self.assertEqual(done.returncode, 0)

    def as_profile(self, number, store, files, rng):
        profile = files.write("profile", profile_message(store, rng))
        store.miss_stream = False
        for node in store.nodes.values():
            node.types.discard("_checkpoint_variables")
        self.compare(number, ["--profile_path=" + profile] + files.checkpoint, "Reading Files...\n",
                     Shell(rng, store, self.scratch.name), 15)

    def test_random_models(self):
        for number in range(SEED, SEED + ROUNDS):
            self.one(number)


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    unittest.main()
