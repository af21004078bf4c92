#!/usr/bin/python3
"""pip puts the package into a virtual environment, offline, in every way; every Python that is there loads it."""
import glob
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import venv
import zipfile

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BUILD = os.environ.get("OPWATCH_BUILD", str(ROOT / "build/release"))
SAMPLE = str(ROOT / "samples/resnet.profile")
USE = "import opwatch; p = opwatch.open(%r); print(len(p.op()), opwatch.__file__)" % SAMPLE
PATTERN = os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions/3.*/bin/python")


def run(*command, **more):
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_PRELOAD")}
    env.update(more.pop("env", {}))
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=env, **more)
    if done.returncode:
        raise AssertionError("%s\n%s" % (" ".join(map(str, command)), done.stdout))
    return done.stdout


def versions():
    for path in sorted(glob.glob(PATTERN)):
        minor = int(path.split("/versions/3.")[1].split(".")[0])
        if 8 <= minor <= 13:
            yield path


class Pip(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.python = self.folder / "venv/bin/python"

    def pip(self, *arguments, **more):
        return run(self.python, "-m", "pip", "-q", "--disable-pip-version-check", *arguments, cwd=self.folder,
                   env={"OPWATCH_BUILD": BUILD, "PIP_NO_INDEX": "1", "OPWATCH_WHEEL_DUCKDB": "no"}, **more)

    def make(self):
        venv.create(str(self.folder / "venv"), with_pip=True)

    def expect_package(self):
        count, path = run(self.python, "-c", USE, cwd=self.folder).split()
        self.assertEqual(count, "26")
        return path

    def expect_program(self):
        """The console scripts and `python -m opwatch` are the program: its answers, and its exit statuses."""
        bin = self.python.parent
        for command in ([bin / "opwatch"], [self.python, "-m", "opwatch"]):
            self.assertRegex(run(*command, "--version", cwd=self.folder), r"^opwatch [0-9.]+")
            self.assertIn("Operations by time", run(*command, SAMPLE, "--no-pager", cwd=self.folder))
            self.assertEqual(subprocess.run([*map(str, command), "op", "/no/such/file"], stderr=subprocess.PIPE).returncode, 1)
        self.assertIn("MatchingFiles", run(bin / "tfprof", "--profile_path=" + SAMPLE, "op", cwd=self.folder))

    def test_missing_sql_is_fetched_or_said(self):
        """The backend runs the script that fetches DuckDB, and says what is missing when that did not help."""
        source = self.folder / "source"
        (source / "python/_build").mkdir(parents=True)
        (source / "tools").mkdir()
        (source / "python/_build/backend.py").write_bytes((ROOT / "python/_build/backend.py").read_bytes())
        (source / "tools/setup-duckdb").write_text("echo fetched >> '%s/log'\n" % self.folder)
        code = "import sys; sys.path.insert(0, 'python/_build'); import backend; " \
               "backend.fetch_duckdb(%r); backend.build_native = lambda s: (backend.pathlib.Path('x'), backend.pathlib.Path('x')); " \
               "backend.package_files = lambda: []; backend.stripped = lambda p: b''; backend.soname = lambda p: 'x'; " \
               "backend.write_wheel = lambda *a: 'w'; print(backend.build_wheel('.', %r))"
        for settings, fetched, said in (({}, 1, True), ({"duckdb": "no"}, 1, False)):
            text = run(sys.executable, "-c", code % (settings, settings), cwd=source, env={"DUCKDB_ROOT": "", "OPWATCH_WHEEL_DUCKDB": ""},
                       start_new_session=True)
            self.assertEqual((self.folder / "log").read_text().count("fetched"), fetched)
            self.assertEqual("tools/setup sql" in text, said, text)

    def test_isolated_and_not(self):
        self.make()
        self.pip("install", ROOT)
        self.assertIn(str(self.folder), self.expect_package())
        self.expect_program()
        self.assertEqual(run(self.python, "-c", "import importlib.metadata as m; print(m.version('opwatch'))").strip(),
                         run(self.python, "-c", "import opwatch; print(opwatch.__version__)").strip())
        self.pip("uninstall", "-y", "opwatch")
        self.assertEqual(list(self.folder.glob("venv/lib/*/site-packages/opwatch*")), [])
        self.pip("install", "--no-build-isolation", ROOT)
        self.expect_package()

    def test_editable(self):
        self.make()
        self.pip("install", "-e", ROOT)
        self.assertIn(BUILD, self.expect_package())
        self.expect_program()

    def test_wheel_and_sdist(self):
        sys.path.insert(0, str(ROOT / "python/_build"))
        self.addCleanup(sys.path.remove, str(ROOT / "python/_build"))
        import backend
        name = backend.build_wheel(str(self.folder), {"build-dir": BUILD, "duckdb": "no"})
        self.assertRegex(name, r"^opwatch-[0-9.]+-cp38-abi3-linux_\w+\.whl$")
        with zipfile.ZipFile(self.folder / name) as wheel:
            self.assertIsNone(wheel.testzip())
            names = wheel.namelist()
            record = wheel.read(next(n for n in names if n.endswith("/RECORD"))).decode()
        self.assertLessEqual({"opwatch/__init__.py", "opwatch/_opwatch.abi3.so", "opwatch/libopwatch.so.0",
                              "opwatch/py.typed", "opwatch/opwatch", "opwatch/__main__.py"}, set(names))
        self.assertEqual(sorted(line.split(",")[0] for line in record.splitlines()), sorted(names))
        other = self.folder / "again"
        other.mkdir()
        backend.build_wheel(str(other), {"build-dir": BUILD, "duckdb": "no"})
        self.assertEqual((other / name).read_bytes(), (self.folder / name).read_bytes())
        sdist = backend.build_sdist(str(self.folder))
        with tarfile.open(self.folder / sdist) as archive:
            inside = {n.split("/", 1)[1] for n in archive.getnames()}
        self.assertLessEqual({"pyproject.toml", "CMakeLists.txt", "PKG-INFO", "python/_build/backend.py",
                              "src/api/opwatch.map"}, inside)


class Versions(unittest.TestCase):
    def test_every_python_that_is_there(self):
        found = list(versions())
        if not found:
            self.skipTest("no other Python in " + PATTERN)
        for python in found:
            for script in ("profile", "result", "steps"):
                with self.subTest(python=python, script=script):
                    run(python, "-B", ROOT / "tests/python" / (script + "_test.py"),
                        env={"PYTHONPATH": os.path.join(BUILD, "python")})
        print("also run:", ", ".join(path.split("/versions/")[1].split("/")[0] for path in found))


if __name__ == "__main__":
    if "OPWATCH_SANITIZE:STRING=\n" not in pathlib.Path(BUILD, "CMakeCache.txt").read_text():
        print("a library with sanitizers needs a program with sanitizers: not installed")
        sys.exit(77)
    unittest.main()
