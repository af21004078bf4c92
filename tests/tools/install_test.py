#!/usr/bin/python3
"""Installs the build into a scratch folder, uses it as a stranger would, and uninstalls it."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BUILD = pathlib.Path(os.environ.get("OPWATCH_BUILD", ROOT / "build/release"))
HEADERS = [str(p.relative_to(ROOT)) for p in ROOT.glob("include/opwatch/*.h")]
PREFIX = "/opt/opwatch"
PROGRAM = """#include <opwatch/live.h>
#include <opwatch/opwatch.h>
#include <opwatch/push.h>
#include <opwatch/ui.h>
#include <opwatch/record.h>
#include <opwatch/sql.h>
#include <stdio.h>
int main(void) { return puts(ow_status_name(OW_OK)) < 0; }
"""


def run(*command, **more):
    return subprocess.run([str(c) for c in command], check=True, text=True, stdout=subprocess.PIPE, **more).stdout


class Install(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        self.prefix = pathlib.Path(directory.name + PREFIX)
        run("cmake", "--install", BUILD, "--prefix", PREFIX, env={**os.environ, "DESTDIR": directory.name})

    def test_everything_is_there(self):
        for name in ("bin/opwatch", *HEADERS, "share/bash-completion/completions/tfprof",
                     "share/zsh/vendor-completions/_opwatch", "share/fish/vendor_completions.d/opwatch.fish"):
            self.assertTrue((self.prefix / name).is_file(), name)
        for page in ROOT.glob("docs/man/*.1"):
            self.assertTrue((self.prefix / "share/man/man1" / page.name).is_file(), page.name)
        self.assertEqual(os.readlink(self.prefix / "bin/tfprof"), "opwatch")
        self.assertIn("opwatch", run(self.prefix / "bin/opwatch", "--version"))

    @unittest.skipUnless(shutil.which("cc") and shutil.which("pkg-config"), "no compiler")
    def test_program_against_the_library(self):
        library = next(self.prefix.rglob("libopwatch.so"))
        self.assertIn("SONAME", run("readelf", "-d", library))
        env = {**os.environ, "PKG_CONFIG_PATH": str(library.parent / "pkgconfig"), "LD_LIBRARY_PATH": str(library.parent)}
        flags = run("pkg-config", "--cflags", "--libs", "opwatch", env=env).split()
        program = self.root / "program"
        run("cc", "-xc", "-", "-o", program, *flags, input=PROGRAM, env=env)
        self.assertTrue(run(program, env=env).strip())

    @unittest.skipUnless((BUILD / "python/opwatch/_opwatch.abi3.so").exists(), "built without Python.h")
    def test_python_package(self):
        package = next(self.prefix.rglob("_opwatch.abi3.so")).parent
        self.assertRegex(str(package.relative_to(self.prefix)), r"^lib/python3[.0-9]*/(dist|site)-packages/opwatch$")
        code = "import opwatch; print(len(opwatch.open(%r).steps()))" % str(ROOT / "samples/resnet.profile")
        env = {**os.environ, "PYTHONPATH": str(package.parent)}
        self.assertEqual(run(sys.executable, "-B", "-c", code, env=env, cwd="/").strip(), "3")

    def test_uninstall_leaves_nothing(self):
        run(ROOT / "tools/uninstall", BUILD, PREFIX, self.root)
        self.assertEqual(list(self.root.iterdir()), [])

    def test_uninstall_leaves_what_is_not_ours(self):
        mine = self.prefix / "share/man/man1/mine.1"
        mine.write_text("mine")
        run(ROOT / "tools/uninstall", BUILD, PREFIX, self.root)
        self.assertEqual([p for p in self.root.rglob("*") if not p.is_dir()], [mine])
        self.assertEqual(sorted(p.name for p in self.root.rglob("*") if p.is_dir()), ["man", "man1", "opt", "opwatch", "share"])

    def test_without_destdir(self):
        """The folder of the prefix goes, what is above it stays."""
        above = self.root / "above"
        above.mkdir()
        prefix = above / "there"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        self.assertTrue((prefix / "bin/opwatch").exists())
        run(ROOT / "tools/uninstall", BUILD, f"{prefix}/")
        self.assertEqual(list(above.iterdir()), [])


if __name__ == "__main__":
    if "OPWATCH_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text():
        print("a library with sanitizers needs a program with sanitizers: not installed")
        sys.exit(77)
    unittest.main()
