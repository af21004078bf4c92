#!/usr/bin/python3
"""The Debian package of this build: what it depends on, what is in it, and that its program runs from where it is unpacked."""
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
NEEDED = ["cpack", "dpkg-deb", "dpkg-shlibdeps", "file", "strip"]


def run(*command):
    return subprocess.run([str(c) for c in command], check=True, text=True, capture_output=True).stdout


class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.root = pathlib.Path(scratch.name)
        run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", cls.root)
        cls.deb = next(cls.root.glob("opwatch_*.deb"))

    def words(self, field):
        return [word.split()[0] for part in run("dpkg-deb", "-f", self.deb, field).split(",") for word in part.split("|") if word.strip()]

    def test_libraries_that_are_linked(self):
        depends = self.words("Depends")
        for package in ("libc6", "zlib1g"):
            self.assertIn(package, depends)

    def test_libraries_that_are_loaded_when_needed(self):
        servers = "libcurl" in run(BUILD / "opwatch", "--version")
        self.assertEqual("libcurl4" in self.words("Recommends"), servers)

    def test_unpacked(self):
        run("dpkg-deb", "-x", self.deb, self.root / "there")
        usr = self.root / "there/usr"
        for name in ("bin/opwatch", *HEADERS, "share/man/man1/opwatch.1", "share/man/man1/tfprof.1",
                     "share/bash-completion/completions/opwatch", "share/doc/opwatch/LICENSE"):
            self.assertTrue((usr / name).is_file(), name)
        self.assertEqual(os.readlink(usr / "bin/tfprof"), "opwatch")
        text = run(usr / "bin/tfprof", f"--profile_path={ROOT}/samples/resnet.profile", "op")
        self.assertIn("MatchingFiles", text)


if __name__ == "__main__":
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing or not (BUILD / "CPackConfig.cmake").exists():
        print("no package is made without", *missing)
        sys.exit(77)
    if "OPWATCH_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text():
        print("nobody packs a build with sanitizers")
        sys.exit(77)
    unittest.main()
