#!/usr/bin/python3
"""Unit tests of tools/check-layers and tools/check-tables, on small trees made for the purpose."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve() / "tools"


class Checks(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def write(self, path, text=""):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def check(self, tool):
        done = subprocess.run([sys.executable, TOOLS / tool, self.root], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout.splitlines()


class Layers(Checks):
    def test_allowed(self):
        self.write("src/import/import_a.c", '#include <zlib.h>\n#include "base/str.h"\n#include "wire/proto.h"\n'
                   '#include "opwatch/opwatch.h"\n#include "import/importers.def"\n#include "opwatch_config.h"\n')
        self.write("src/import/import_a_test.c", '#include "sink/sink.h"\n')
        self.assertEqual(self.check("check-layers"), [])

    def test_forbidden(self):
        self.write("src/import/import_a.c", '\n#include "sink/sink.h"\n')
        self.write("src/cli/main.c", '#include "model/model.h"\n')
        self.write("src/base/str.h", "#include <model/model.h>\n")
        self.assertEqual(self.check("check-layers"), [
            "src/base/str.h:1: base may not include model/model.h",
            "src/cli/main.c:1: cli may not include model/model.h",
            "src/import/import_a.c:2: import may not include sink/sink.h"])

    def test_unknown_folder(self):
        self.write("src/odd/x.c")
        self.assertIn("folder odd", self.check("check-layers")[0])

    def test_only_cli_prints(self):
        self.write("src/cli/main.c", 'printf("x"); exit(1);\n')
        self.write("src/sink/table/sink_text.c", 'snprintf(a, b, "printf(");\n/* stdout */\nfprintf(stderr, "x");\n')
        found = self.check("check-layers")
        self.assertEqual(len(found), 1)
        self.assertIn("src/sink/table/sink_text.c:3:", found[0])


class Tables(Checks):
    def setUp(self):
        super().setUp()
        for table in ("import/importers", "import/interpret/producers", "analyze/views", "advise/rules", "relation/relations", "export/exports", "sink/sinks",
                      "cli/commands"):
            self.write(f"src/{table}.def", "/* IMPORTER(name) */\n")

    def complete(self):
        self.write("src/import/importers.def", "IMPORTER(a)\n")
        self.write("src/import/import_a.c")
        self.write("src/import/import_a_test.c")
        self.write("tests/fuzz/seeds/a/one")
        self.write("docs/formats/a.md")

    def test_complete(self):
        self.complete()
        self.assertEqual(self.check("check-tables"), [])

    def test_line_without_file(self):
        self.write("src/sink/sinks.def", "SINK(x)\nSINK(x)\n")
        self.assertEqual(self.check("check-tables"), ["src/sink/sinks.def: SINK(x) twice",
                                                      "src/sink/sinks.def: SINK(x) has no sink_x.c"])

    def test_file_without_line(self):
        self.write("src/cli/cmd_x.c")
        self.assertEqual(self.check("check-tables"), ["src/cli/cmd_x.c: no line COMMAND(x) in commands.def"])

    def test_folder_without_row(self):
        self.write("ARCHITECTURE.md", "| `src/sink` | outputs |\n| `sink/own` | own files |\n")
        self.write("src/sink/a.c")
        self.write("src/sink/own/a.c")
        self.write("src/sink/new/a.c")
        self.assertEqual(self.check("check-tables"), ["src/sink/new/: no row in ARCHITECTURE.md"])

    def test_too_many_files(self):
        for i in range(46):
            self.write(f"src/sink/f{i}.c")
            self.write(f"src/sink/f{i}_test.c")
        self.assertEqual(self.check("check-tables"),
                         ["src/sink/: 46 files, more than 45: group them in subfolders"])

    def test_without_seed_and_page(self):
        self.complete()
        os.remove(self.root / "tests/fuzz/seeds/a/one")
        os.remove(self.root / "docs/formats/a.md")
        self.assertEqual(self.check("check-tables"), ["tests/fuzz/seeds/a/: no seed for the importer",
                                                      "docs/formats/a.md: no page for IMPORTER(a)"])


class RunCtest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_ctest(self, first, second="", rerun="1"):
        """Runs the tool on a ctest that prints `first`, and `second` when it is asked to run failed tests again."""
        fake = pathlib.Path(self.folder.name) / "ctest"
        fake.write_text("#!/bin/sh\n"
                        'case "$*" in\n'
                        f"*--rerun-failed*) case \"$*\" in *-j*) exit 3; esac; cat <<'END'\n{second}\nEND\n"
                        "! grep -q Failed <<END\n" + second + "\nEND\n"
                        "exit;;\nesac\n"
                        f"cat <<'END'\n{first}\nEND\nexit 8\n")
        fake.chmod(0o755)
        return subprocess.run([sys.executable, TOOLS / "run-ctest", fake, "-j", "2"], capture_output=True, text=True,
                              env={**os.environ, "OPWATCH_RERUN": rerun})

    def test_the_summary_stays_last(self):
        lines = [f" {i}/12 Test #{i}: unit.t{i} ....   Passed    {i}.50 sec" for i in range(1, 13)]
        done = self.run_ctest("\n".join([*lines, "", "92% tests passed, 1 tests failed out of 12", "", "Total Test time (real) = 9 sec"]))
        self.assertEqual(done.returncode, 8)
        self.assertIn("The ten slowest tests:\n   12.50 s  unit.t12\n", done.stdout)
        self.assertNotIn(" s  unit.t2\n", done.stdout)
        self.assertTrue(done.stdout.endswith("92% tests passed, 1 tests failed out of 12\n\nTotal Test time (real) = 9 sec\n"))

    FAILURE = " 1/2 Test #1: cli.record ....***Failed    1.50 sec\nAssertionError\n 2/2 Test #2: cli.x ...***Skipped 0.1 sec\n\n50% tests passed, 1 tests failed out of 2"

    def test_a_second_run_that_passes(self):
        done = self.run_ctest(self.FAILURE, " 1/1 Test #1: cli.record ....   Passed    1.50 sec\n\n100% tests passed, 0 tests failed out of 1")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("unstable: cli.record failed, and passed in a second run\n", done.stdout)
        self.assertNotIn("cli.x failed", done.stdout)

    def test_a_second_run_that_fails(self):
        done = self.run_ctest(self.FAILURE, " 1/1 Test #1: cli.record ....***Failed    1.50 sec\n\n0% tests passed, 1 tests failed out of 1")
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("unstable", done.stdout)

    def test_only_when_asked_for(self):
        done = self.run_ctest(self.FAILURE, "100% tests passed", rerun="")
        self.assertEqual(done.returncode, 8)
        self.assertNotIn("second run", done.stdout)

    def test_what_is_final(self):
        for text in ("==1==ERROR: AddressSanitizer: heap-use-after-free", "x.c:3:2: runtime error: signed integer overflow", "-11 SIGSEGV"):
            done = self.run_ctest(self.FAILURE.replace("AssertionError", text), "100% tests passed")
            self.assertEqual(done.returncode, 8, text)
        many = "\n".join(f" {i}/9 Test #{i}: cli.t{i} ....***Failed    1.50 sec" for i in range(1, 5))
        self.assertEqual(self.run_ctest(many + "\n\n50% tests passed", "100% tests passed").returncode, 8)


if __name__ == "__main__":
    unittest.main()
