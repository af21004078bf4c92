#!/usr/bin/python3
"""A wheel with DuckDB inside: pip builds it, a virtual environment of its own installs it, and SQL works there.

Skipped when the build has no libduckdb.so, for which the wheel is made."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import venv
import zipfile

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BUILD = pathlib.Path(os.environ.get("OPWATCH_BUILD", ROOT / "build/release"))
SAMPLE = str(ROOT / "samples/resnet.profile")
USE = f"""
import os, opwatch
here = os.path.dirname(opwatch.__file__)
with opwatch.open({SAMPLE!r}) as p:
    rows = p.sql("SELECT count(*) AS n, min(name) AS first FROM op").to_dict()
loaded = [line.split()[-1] for line in open("/proc/self/maps") if "libduckdb" in line]
assert loaded and all(os.path.realpath(path).startswith(os.path.realpath(here)) for path in loaded), loaded
print(rows["n"][0], here)
"""
# what would find another library
OTHERS = ("PYTHONPATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "OPWATCH_DUCKDB", "OPWATCH_WHEEL_DUCKDB")


def run(*command, **more):
    env = {name: value for name, value in os.environ.items() if name not in OTHERS}
    env.update(OPWATCH_BUILD=str(BUILD), PIP_NO_INDEX="1")
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, **more)
    if done.returncode:
        raise AssertionError("%s\n%s" % (" ".join(map(str, command)), done.stdout))
    return done.stdout


class Wheel(unittest.TestCase):
    def test_sql_of_an_installed_wheel(self):
        if not (BUILD / "libduckdb.so").exists():
            self.skipTest(f"{BUILD}/libduckdb.so is not there")
        if not (BUILD / "python/opwatch/_opwatch.abi3.so").exists():
            self.skipTest("the Python package was not built")
        with tempfile.TemporaryDirectory() as folder:
            python = pathlib.Path(folder, "venv/bin/python")
            venv.create(str(python.parents[1]), with_pip=True)
            pip = (python, "-m", "pip", "-q", "--disable-pip-version-check")
            run(*pip, "wheel", "--no-deps", "-w", folder, ROOT, cwd=folder)
            [wheel] = pathlib.Path(folder).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                self.assertIn("opwatch/libduckdb.so", archive.namelist())
            run(*pip, "install", "--no-deps", wheel, cwd=folder)
            count, here = run(python, "-c", USE, cwd=folder).split()
            self.assertGreater(int(count), 20)
            self.assertTrue(os.path.realpath(here).startswith(os.path.realpath(folder)), here)


if __name__ == "__main__":
    if "OPWATCH_SANITIZE:STRING=\n" not in (BUILD / "CMakeCache.txt").read_text():
        print("a library with sanitizers needs a program with sanitizers: not installed")
        sys.exit(77)
    unittest.main()
