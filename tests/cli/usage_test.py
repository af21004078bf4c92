#!/usr/bin/env python3
"""The command line as people get it wrong: exit codes, messages that name the file and what to try, closed
pipes, colours, limits, standard input."""
import csv
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests"))
from support import sql_text  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
SAMPLES = os.path.join(os.environ["OPWATCH_SRC"], "samples")
SAMPLE = os.path.join(SAMPLES, "resnet.profile")


def run(*args, **kwargs):
    kwargs.setdefault("timeout", 120)
    kwargs.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([BIN, *args], capture_output=True, text=True, **kwargs)


class UsageTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def topics(self):
        """Every command and every view of --help."""
        shown = run("--help").stdout
        return re.findall(r"^  ([a-z][a-z_-]*) ", shown.split("Commands:")[1], re.M) + ["view"]

    def test_help_fits_80_columns(self):
        topics = self.topics()
        self.assertLessEqual({"shell", "op", "memory_steps"}, set(topics))
        for args in ((), ("--help",), ("help",), ("formats",), ("--version",), (SAMPLE,), ("advise", SAMPLE),
                     *(("help", topic) for topic in topics)):
            p = run(*args)
            self.assertEqual(p.stderr, "")
            self.assertLessEqual(max(map(len, p.stdout.replace(SAMPLE, "x").split("\n"))), 80, args)
        self.assertLessEqual(run().stdout.count("\n"), 24)

    def test_help_on_every_topic_is_complete(self):
        arguments = {}
        for topic in self.topics():
            shown = run(topic, "--help").stdout
            self.assertEqual(shown, run("help", topic).stdout)
            self.assertTrue(shown.startswith(f"opwatch {topic}"), topic)
            self.assertRegex(shown.split("\n")[1], r"^  \S.* \S", topic)  # one sentence
            for name, argument in re.findall(r"^  (?:-., |    )--([a-z-]+)( [^ ]+)?", shown, re.M):
                argument = bool(argument and argument.strip())
                self.assertEqual(arguments.setdefault(name, argument), argument, f"--{name} of {topic}")
            self.assertEqual(len(re.findall(r"^  \S", shown.split("\nExamples:\n")[1], re.M)), 2, topic)
        for view in ("op", "steps", "memory_peak", "advise"):
            self.assertRegex(run(view, "--help").stdout, r"\nColumns:\n(  \w+ .*\n)+", view)

    def test_examples_of_the_help(self):
        """They are run. Those that need a job, a daemon or a server fail, but not because of their words."""
        env = {**os.environ, "PATH": self.dir + ":" + os.environ["PATH"], "HOME": self.dir, "XDG_RUNTIME_DIR": self.dir,
               "OPWATCH_CLICKHOUSE_PASSWORD": "x"}
        os.symlink(BIN, os.path.join(self.dir, "opwatch"))
        self.write("train.py", b"import os\nfor i in range(3):\n    os.getpid()\n")
        for name in ("run.opw", "other.opw", "trace.json", "rank0.json", "rank1.json"):
            self.assertEqual(run("convert", SAMPLE, "-o", name, cwd=self.dir).returncode, 0, name)
        for name, dur in (("before.json", 5), ("after.json", 6)):
            self.write(name, b'[{"ph":"X","name":"a","ts":1,"dur":%d,"pid":1,"tid":1}]' % dur)
        os.mkdir(os.path.join(self.dir, "dumps"))
        self.write("train.log", b"[rank1]: ValueError: no such sample\n")
        for rank in range(2):
            self.write(f"dumps/rank{rank}.json", b'{"version": "2.4", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}}')
        live = {"attach", "daemon", "jobs", "top", "stacks", "capture", "push", "ui"}
        for topic in self.topics():
            for example in re.findall(r"^  (\S.*)", run("help", topic).stdout.split("\nExamples:\n")[1], re.M):
                if topic in ("daemon", "capture", "ui"):
                    example = "timeout 1 " + example
                p = subprocess.run(["bash", "-c", example], cwd=self.dir, env=env, capture_output=True, text=True,
                                   stdin=subprocess.DEVNULL, timeout=120)
                if "SQL needs DuckDB" in p.stderr or "built without SQL" in p.stderr or "has no web page" in p.stderr:
                    continue
                if topic in live or "--last" in example:
                    self.assertNotEqual(p.returncode, 2, example + p.stderr)
                else:
                    self.assertEqual(p.returncode, 0, example + p.stderr)
                self.assertNotRegex(p.stderr, "does not take|unknown option", example)

    def test_help_on_a_command_lists_its_options(self):
        shown = {}
        for command in ("record", "attach", "stacks", "capture", "daemon", "jobs"):
            p = run("help", command)
            self.assertLessEqual(max(map(len, p.stdout.split("\n"))), 80, command)
            shown[command] = set(re.findall(r"^ .{5}--([a-z-]+)", p.stdout, re.M))
            self.assertFalse({"checkpoint", "bigquery", "input-shape"} & shown[command], command)
        self.assertLessEqual({"out", "ring", "job", "last", "max-size", "socket"}, shown["record"])
        self.assertLessEqual({"for", "hz", "to", "style", "no-children"}, shown["stacks"])
        self.assertLessEqual({"socket", "dir", "metrics", "max-size", "total-size"}, shown["daemon"])
        self.assertLessEqual({"json", "csv", "env", "socket"}, shown["jobs"])
        self.assertLessEqual({"out", "for", "job", "detach"}, shown["attach"])
        self.assertLessEqual({"out", "for", "tf", "kineto"}, shown["capture"])

    def test_what_the_daemon_records_takes_no_options_of_a_recording(self):
        for option in (("--on-slowdown", "20%"), ("--on-stall", "3s"), ("--stacks",)):
            for words in (("record", "--job", "x", *option, "--", "true"), ("attach", "1", "--job", "x", *option),
                          *[("attach", "--job", "x", *option)] * (option != ("--stacks",))):
                p = run(*words)
                self.assertEqual((p.returncode, p.stdout), (2, ""), words)
                self.assertIn("the daemon records", p.stderr)
        for option in (("-o", "x.opw"), ("--for", "3s")):
            p = run("attach", "1", "--job", "x", *option)
            self.assertEqual((p.returncode, p.stdout), (2, ""), option)
            self.assertIn("reports to the daemon", p.stderr)

    def test_options_that_a_live_command_does_not_use_are_refused(self):
        for words in (("attach", "1", "--ring", "65536"), ("--ring", "65536", "attach", "1"), ("jobs", "--rank", "3"),
                      ("daemon", "--json"), ("record", "--csv", "--", "true"), ("capture", "--select", "micros")):
            p = run(*words)
            self.assertEqual(p.returncode, 2, words)
            command = next(word for word in words if word in ("attach", "jobs", "daemon", "record", "capture"))
            self.assertRegex(p.stderr, f"'opwatch {command}' does not take --[a-z-]+; it is an option of: ")
            self.assertIn(f"Try 'opwatch {command} --help'", p.stderr)
        self.assertIn("it is an option of: record\n", run("attach", "1", "--ring", "65536").stderr)

    def test_an_unknown_option_names_the_nearest_of_the_command(self):
        for words, nearest in ((("op", SAMPLE, "--ordr-by", "micros"), "--order-by"), (("record", "--stack"), "--stacks"),
                               (("merge", "--keep-names", "x"), "--keep-name"), (("daemon", "--metric5"), "--metrics"),
                               (("op", SAMPLE, "-max_dept", "3"), "--max-depth")):
            p = run(*words)
            self.assertEqual(p.returncode, 2, words)
            self.assertIn(f"did you mean {nearest}?", p.stderr)

    def test_what_a_recording_is_called_is_told(self):
        for command in ("record", "attach"):
            self.assertRegex(run("help", command).stdout, r"-o, --out FILE +write the recording to FILE \(default:\s+opwatch-DATE-TIME.opw\)\n")
        self.assertRegex(run("help", "capture").stdout, r"-o, --out DIR +write the traces to this folder")
        self.assertIn("instead of standard output", run("help", "op").stdout)

    def test_options_of_other_commands_are_refused(self):
        for words, owner in ((("op", SAMPLE, "--allow-io"), "sql"), (("--keep-pid", "3", "scope", SAMPLE), "merge"),
                             ((SAMPLE, "--on-stall", "3s"), "record"), (("info", SAMPLE, "--run", "a=" + SAMPLE), "sql"),
                             (("advise", SAMPLE, "--table", "op"), "export"), (("code", SAMPLE, "--verify"), "info"),
                             (("op", SAMPLE, "--estimate"), "info"), (("steps", SAMPLE, "--for", "3s"), "stacks")):
            p = run(*words)
            self.assertEqual((p.returncode, p.stdout), (2, ""), words)
            self.assertRegex(p.stderr, "does not take --[a-z-]+; it is an option of: .*" + owner)
        for words in (("code", SAMPLE, "--style", "inverted", "--to", "flamegraph"), ("roofline", SAMPLE, "--peak", "A100"),
                      (SAMPLE, "--estimate"), ("convert", SAMPLE, "--to", "timeline", "--show-memory")):
            self.assertEqual(run(*words).returncode, 0, words)
        self.assertIn("--style", run("help", "code").stdout)
        for command in ("op", "advise", "info", "shell", "memory"):
            self.assertNotRegex(run("help", command).stdout, "--(run|table|on|max-size|name|for|on-stall) ", command)

    def test_columns_by_their_titles(self):
        for view in ("op", "scope"):
            for title, name in (("time", "micros"), ("total time", "micros"), ("Memory", "bytes"), ("peak-memory", "peak_bytes"),
                                ("runs", "occurrence"), ("time,parameters", "micros,params"), ("float ops", "float_ops")):
                for option in ("--select",) if "," in name else ("--select", "--order-by"):
                    p = run(view, SAMPLE, option, title, "--csv")
                    self.assertEqual((p.returncode, p.stdout), (0, run(view, SAMPLE, option, name, "--csv").stdout), title)
        titles = [title for title in run("op", SAMPLE, "-n", "1").stdout.splitlines()[0].split() if title != "name"]
        for title in titles:  # every column that is shown can be selected by what stands above it
            self.assertEqual(run("op", SAMPLE, "--select", title).returncode, 0, title)

    def test_a_wrong_value_is_told_alone(self):
        self.assertIn("--select does not take 'mircos';", run("op", SAMPLE, "--select", "micros,mircos,bytes").stderr)
        self.assertIn("--select does not take 'mircos';", run("op", SAMPLE, "--select", "time,mircos").stderr)
        self.assertIn("at most 2147483647", run("op", SAMPLE, "--max-depth", "9999999999").stderr)
        p = run("op", SAMPLE, "-o", "")
        self.assertEqual(p.returncode, 2)
        self.assertIn("--out needs a value: FILE", p.stderr)

    def test_stacks_for_other_programs_are_whole(self):
        for view in ("scope", "graph", "code"):
            want = run(view, SAMPLE, "--to", "folded", "--max-depth", "90").stdout
            self.assertEqual(run(view, SAMPLE, "--to", "folded").stdout, want, view)
            self.assertTrue(want)

    def test_help_is_aligned(self):
        for args in (("help", "op"), ("help", "sql"), ("help", "merge")):
            for line in run(*args).stdout.split("\nOptions:\n")[1].split("\n\n")[0].splitlines():
                if line.startswith("      --"):
                    self.assertRegex(line, r"^.{33} \S|^ {6}\S+( \S+)?$", line)
                elif not line.startswith("  -"):
                    self.assertRegex(line, r"^ {34}\S", line)

    def test_an_invalid_regular_expression_is_wrong_usage(self):
        p = run("scope", SAMPLE, "--start-name-regexes", "a,b(")
        self.assertEqual((p.returncode, p.stdout), (2, ""))
        self.assertEqual(p.stderr, "opwatch: 'b(' is not a valid regular expression: missing closing ): b(\n")

    def test_what_a_graph_alone_cannot_tell(self):
        graph = os.path.join(SAMPLES, "graph.pb")
        p = run("lines", graph)
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        self.assertIn("(nothing to show)\n\nno source lines in these files", p.stdout)
        self.assertIn("no source lines in these files", run("code", graph).stdout)
        self.assertIn("no steps found", run("steps", graph).stdout)
        self.assertRegex(run("op", graph, "-n", "1").stdout, r"^name +parameters +share +float ops")
        self.assertNotIn("steps\n", run("info", graph).stdout)

    def write(self, name, data):
        path = os.path.join(self.dir, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def test_exit_codes(self):
        self.assertEqual(run().returncode, 2)
        self.assertEqual(run("--help").returncode, 0)
        self.assertEqual(run("--version").returncode, 0)
        self.assertEqual(run(SAMPLE).returncode, 0)
        self.assertEqual(run("op").returncode, 2)
        self.assertEqual(run("op", SAMPLE, "--no-such-option").returncode, 2)
        self.assertEqual(run("op", SAMPLE, "--max-depth", "many").returncode, 2)
        self.assertEqual(run("op", "/proc/nonexistent").returncode, 1)
        self.assertEqual(run("op", self.write("empty", b"")).returncode, 1)
        self.assertEqual(run("op", self.write("text", b"hello, this is no profile\n")).returncode, 1)

    def test_messages_say_what_where_and_what_to_try(self):
        p = run("op", "/proc/nonexistent/x.pb")
        self.assertIn("/proc/nonexistent/x.pb", p.stderr)
        self.assertIn("No such file", p.stderr)
        path = self.write("x", b"hello, this is no profile\n")
        p = run(path)
        self.assertIn(path, p.stderr)
        self.assertIn("opwatch formats", p.stderr)
        p = run("op", self.write("nothing", b""))
        self.assertIn("nothing: the file is empty; was it written to the end?", p.stderr)
        p = run("op", SAMPLE, "--ordr-by", "micros")
        self.assertIn("--order-by", p.stderr)
        p = run("scop", SAMPLE)
        self.assertEqual(p.returncode, 2)
        self.assertIn("'scope'", p.stderr)
        p = run("op", SAMPLE, "--order-by", "speed")
        self.assertIn("accelerator_micros", p.stderr)

    def test_a_truncated_profile_is_used_and_told(self):
        with open(SAMPLE, "rb") as f:
            data = f.read()
        path = self.write("cut.profile", data[:len(data) * 2 // 3])
        p = run("op", path)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stderr, r"cut\.profile: truncated: .* \(at byte \d+\)")
        self.assertEqual(run("op", path, "--strict").returncode, 3)
        notes = json.loads(run("notes", path, "--json").stdout)
        self.assertIn("truncated", json.dumps(notes))

    def test_damage_is_told_with_its_place(self):
        node = b"\x0a\x09\x0a\x01%c\x12\x04NoOp"
        whole = b"".join(node % c for c in b"abcdef")
        hurt = self.write("hurt.pb", whole[:25] + b"\x7f" + whole[26:])  # the length of a name
        twice = self.write("log", b"\x0a\x07\x0a\x03abc\x10\x05" * 2)
        for args in (("info", hurt), (hurt,)):
            p = run(*args)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertRegex(" ".join((p.stderr + p.stdout).split()), r"damaged records of the \w+ were skipped \(at byte \d+\)")
        self.assertIn("(2 times, first at byte 0)", run("info", twice).stderr)

    def test_json_and_csv_everywhere(self):
        for view in ("op", "scope", "graph", "code", "steps", "devices", "tracks", "sources", "notes", "advise", "info",
                     "overview"):
            p = run(view, SAMPLE, "--json")
            self.assertEqual(p.returncode, 0, view + p.stderr)
            json.loads(p.stdout)
            self.assertEqual(run(view, SAMPLE, "--csv").returncode, 0, view)
        for words in (("formats",), ("ask",)):
            rows = json.loads(run(*words, "--json").stdout)
            names = {row["name"] for row in (rows["rows"] if isinstance(rows, dict) else rows)}
            table = list(csv.DictReader(run(*words, "--csv").stdout.splitlines()))
            self.assertEqual({row["name"] for row in table}, names)
            self.assertGreater(len(names), 10)
        both = json.loads(run("info", "--estimate", SAMPLE, SAMPLE, "--json").stdout)
        self.assertEqual([one["path"] for one in both], [SAMPLE, SAMPLE])
        self.assertEqual(len(list(csv.DictReader(run("info", "--estimate", SAMPLE, "--csv").stdout.splitlines()))), 1)

    def test_help_lists_the_columns_of_answers(self):
        """Every column of the JSON is in --help, with a sentence."""
        for words in (("path", SAMPLE), ("what-if", SAMPLE, "input=0"), ("diff", SAMPLE, SAMPLE), ("ranks", SAMPLE), ("hang", SAMPLE), ("jobs",),
                      ("baseline", "check", SAMPLE + ".none", SAMPLE)):
            text = run(words[0], "--help").stdout
            listed = re.findall(r"^  ([a-z_]+)  +[a-z]", text[text.index("\nColumns:\n"):text.index("\nExamples:")], re.M)
            self.assertGreater(len(listed), 8, words[0])
            answer = run(*words, "--json").stdout
            if answer:  # what has no answer for this file says so and ends
                self.assertEqual([c["name"] for c in json.loads(answer)["columns"]], listed, words[0])

    def test_limit(self):
        self.assertEqual(len(run("op", SAMPLE, "--csv", "-n", "3").stdout.splitlines()), 4)
        queries = (("sql", SAMPLE, "select name from op"), ("ask", "top_ops", SAMPLE), ("ask", "advice", SAMPLE))
        if sql_text.why_not(SAMPLE):
            queries = ()
        for words in (("advise", SAMPLE), ("formats",), ("steps", SAMPLE), ("ask",), *queries):
            for limit in ("1", "2"):
                p = run(*words, "--csv", "-n", limit)
                self.assertEqual(len(list(csv.reader(p.stdout.splitlines()))), int(limit) + 1, (words, p.stderr))
        text = run("advise", SAMPLE, "-n", "1").stdout
        self.assertIn("input_wait", text)
        self.assertNotIn("data_quality", text)

    def test_standard_input(self):
        with open(SAMPLE, "rb") as f:
            p = run("op", "-", "--csv", stdin=f)
        self.assertEqual(p.stdout, run("op", SAMPLE, "--csv").stdout)

    def test_several_files_make_one_model(self):
        files = [os.path.join(SAMPLES, name) for name in ("op_log", "run_meta_1", "graph.pb", "run_meta_0")]
        p = run("steps", "--json", *files)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(len(json.loads(p.stdout)["rows"]), 2)

    def test_spellings(self):
        want = run("op", SAMPLE, "--max-depth", "3").stdout
        for spelling in (["--max_depth=3"], ["-max_depth", "3"], ["--max-depth=3"]):
            self.assertEqual(run("op", SAMPLE, *spelling).stdout, want)
        self.assertEqual(run("op", "--max-depth", "3", SAMPLE).stdout, want)

    def test_a_directory_with_a_dangling_link(self):
        shutil.copy(SAMPLE, self.dir)
        os.symlink("/proc/nonexistent/x", os.path.join(self.dir, "gone"))
        p = run("op", self.dir)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertNotIn("gone", p.stderr)

    def test_what_is_given_twice_is_read_once(self):
        shutil.copy(SAMPLE, self.dir)
        os.symlink(self.dir, os.path.join(self.dir, "again"))
        file = os.path.join(self.dir, "resnet.profile")
        want = run("op", SAMPLE).stdout
        for twice in ((self.dir, self.dir), (self.dir, self.dir + "/."), (self.dir, file), (file, self.dir), (file, file),
                      (self.dir, os.path.join(self.dir, "again"))):
            p = run("op", *twice)
            self.assertEqual((p.returncode, p.stdout, p.stderr), (0, want, ""), twice)
            self.assertEqual(len(json.loads(run("info", "--json", *twice).stdout)["sources"]), 1, twice)

    def test_closed_pipe_is_quiet(self):
        p = subprocess.run(["sh", "-c", '"$0" scope "$1" --max-depth 100 | head -n 1', BIN, SAMPLE],
                           capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stderr), (0, ""))

    def test_full_disk_is_told(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            p = subprocess.run([BIN, "op", SAMPLE], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertIn("No space left", p.stderr)

    def test_memory_limit_refuses_cleanly(self):
        p = run("op", SAMPLE, "--memory-limit", "20K")
        self.assertEqual(p.returncode, 1)
        self.assertIn("--memory-limit", p.stderr)

    def test_no_colour_in_pipes(self):
        self.assertNotIn("\x1b", run(SAMPLE).stdout)

    def test_estimate(self):
        p = run("info", "--estimate", SAMPLE, "--json")
        self.assertEqual(json.loads(p.stdout)["format"], "profile")

    def test_redact_hides_names(self):
        plain = run("scope", SAMPLE, "--max-depth", "100", "--csv").stdout
        hidden = run("scope", SAMPLE, "--max-depth", "100", "--csv", "--redact").stdout
        self.assertEqual(len(plain.splitlines()), len(hidden.splitlines()))
        self.assertIn("conv", plain)
        self.assertNotIn("conv", hidden)

    @unittest.skipIf(sql_text.why_not(SAMPLE), "no SQL")
    def test_redact_hides_names_of_files_everywhere(self):
        files = [os.path.join(self.dir, name) for name in ("customer.profile", "acme.profile")]
        for file in files:
            shutil.copy(SAMPLE, file)
        tables = os.path.join(self.dir, "tables")
        self.assertEqual(run("export", *files, "--to", "ndjson", "--redact", tables).returncode, 0)
        texts = [run("sql", *files, "--redact", "select * from source", "--json").stdout,
                 run("ask", "compare_steps", *files, "--redact").stdout, run(*files, "--redact", "-v").stdout]
        for folder, _, names in os.walk(tables):
            for name in names:
                with open(os.path.join(folder, name), encoding="utf8") as f:
                    texts.append(f.read())
        self.assertEqual(len({row["run"] for row in json.loads(texts[0])["rows"]}), 2)
        for text in texts:
            self.assertNotRegex(text, "customer|acme")
        named = run("sql", files[0], "--redact", "--name", "mine", "select run from source", "--csv").stdout
        self.assertIn("mine", named)

    def test_output_files_are_whole_or_absent(self):
        out = os.path.join(self.dir, "x.json")
        self.assertEqual(run("op", SAMPLE, "--json", "-o", out).returncode, 0)
        with open(out) as f:
            json.load(f)
        self.assertEqual(run("op", SAMPLE, "--json", "-o", "/proc/nonexistent/x.json").returncode, 1)
        self.assertEqual(os.listdir(self.dir), ["x.json"])

    def test_no_core_dumps_needed(self):
        """A tiny address space ends in a message, not in a crash."""
        limit = 64 << 20

        def small():
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        if "asan" in BIN or "san" in os.path.basename(os.path.dirname(BIN)):
            self.skipTest("sanitizers need address space")
        p = run("op", SAMPLE, preexec_fn=small)
        self.assertIn(p.returncode, (0, 1))


class TfprofTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.bin = os.path.join(self.dir, "tfprof")
        os.symlink(BIN, self.bin)

    def run_tfprof(self, *args, text=""):
        return subprocess.run([self.bin, *args], input=text, capture_output=True, text=True, cwd=self.dir, timeout=300)

    def test_the_name_decides(self):
        p = self.run_tfprof("--profile_path=" + SAMPLE, "op")
        self.assertEqual(p.returncode, 0)
        self.assertTrue(p.stdout.startswith("Reading Files...\n\nDoc:\nop: "))

    def test_errors(self):
        self.assertEqual(self.run_tfprof("--profile_path=/proc/nonexistent", "op").returncode, 1)
        self.assertEqual(self.run_tfprof("--max_depth=x", "op").returncode, 2)
        self.assertEqual(self.run_tfprof("--profile_path=a", "--graph_path=b").returncode, 1)
        self.assertEqual(self.run_tfprof("--profile_path=" + SAMPLE, "--output=bogus", "op").returncode, 1)

    def test_blank_lines_and_quit(self):
        p = self.run_tfprof("--profile_path=" + SAMPLE, text="   \nquit\nop\n")
        self.assertEqual(p.returncode, 0)
        self.assertIn("-max_depth", p.stdout)
        self.assertNotIn("Doc:", p.stdout)

    def test_account_and_start_flags_do_what_they_say(self):
        base = ("--profile_path=" + SAMPLE, "--max_depth=100")
        every = self.run_tfprof(*base, "op").stdout
        some = self.run_tfprof(*base, "--account_type_regexes=Conv2D", "op").stdout
        self.assertIn("Conv2D", some)
        self.assertLess(len(some), len(every))
        start = self.run_tfprof(*base, "--start_name_regexes=Conv2D", "op").stdout
        self.assertNotEqual(start, every)


if __name__ == "__main__":
    unittest.main()
