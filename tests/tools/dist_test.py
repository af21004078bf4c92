#!/usr/bin/python3
"""The parts of `make dist` that can be tried without a second build: which libraries a release carries, the oldest glibc, the name of the
wheel, and the commit in --version. tools/dist-test tries the whole, as root."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
TOOL = SRC / "tools/dist-libraries"
sys.path.insert(0, str(SRC / "python/_build"))
import backend  # noqa: E402


class Dist(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_libraries(self):
        to = self.folder / "lib/opwatch"
        to.mkdir(parents=True)
        subprocess.run([TOOL, "copy", to, BIN], check=True, capture_output=True)
        names = {path.name for path in to.iterdir()}
        self.assertIn("libz.so.1", names)
        for name in names:
            self.assertNotRegex(name, r"^(ld-linux|lib(c|m|stdc\+\+|gcc_s)\.so)")
        needed = subprocess.run(["ldd", BIN], capture_output=True, text=True, check=True).stdout
        for name in re.findall(r"^\s*(lib\S+) => /", needed, re.M):
            self.assertTrue(name in names or re.match(r"lib(c|m|dl|pthread|rt|resolv|stdc\+\+|gcc_s|[at]san|ubsan)\.so", name), name)

    def test_missing_library_is_an_error(self):
        data = pathlib.Path(BIN).read_bytes().replace(b"libz.so.1\0", b"liby.so.1\0")
        (self.folder / "broken").write_bytes(data)
        os.chmod(self.folder / "broken", 0o755)
        (self.folder / "to").mkdir()
        run = subprocess.run([TOOL, "copy", self.folder / "to", self.folder / "broken"], capture_output=True, text=True)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("liby.so.1", run.stderr)

    def test_oldest_glibc(self):
        (self.folder / "text").write_text("GLIBC_9.99")
        os.symlink(os.path.abspath(BIN), self.folder / "link")
        self.assertEqual(self.glibc(), "0")
        os.link(BIN, self.folder / "opwatch") if os.stat(BIN).st_dev == os.stat(self.folder).st_dev else \
            (self.folder / "opwatch").write_bytes(pathlib.Path(BIN).read_bytes())
        self.assertRegex(self.glibc(), r"^2\.[0-9]+$")

    def glibc(self):
        return subprocess.run([TOOL, "glibc", self.folder], capture_output=True, text=True, check=True).stdout.strip()

    def test_name_of_the_wheel(self):
        self.assertRegex(backend.wheel_tag(), r"^cp38-abi3-linux_\w+$")
        self.assertRegex(backend.wheel_tag("2.34"), r"^cp38-abi3-manylinux_2_34_\w+$")
        self.assertIn(b"Tag: cp38-abi3-manylinux_2_34_", backend.metadata_files("2.34")["WHEEL"])

    def test_libraries_of_the_wheel(self):
        for name in ("libz.so.1", "libduckdb.so", "libopwatch-recorder.so"):
            (self.folder / name).write_bytes(b"x")
        names = [name for name, _, _ in backend.bundled_libraries(str(self.folder))]
        self.assertEqual(names, ["opwatch/libopwatch-recorder.so", "opwatch/libs/libz.so.1"])
        self.assertEqual(backend.bundled_libraries(""), [])

    def test_commit(self):
        text = subprocess.run([BIN, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
        if not (SRC / ".git").exists() or not shutil.which("git"):
            self.assertRegex(text, r"^opwatch [0-9.]+$")
            return
        self.assertRegex(text, r"^opwatch [0-9.]+ \(commit [0-9a-f]{12}(, changed)?\)$")


if __name__ == "__main__":
    unittest.main()
