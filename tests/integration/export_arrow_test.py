"""Arrow files as Arrow's own library for JavaScript reads them (npm's apache-arrow, installed into a folder of this test's):
every value of every table is that of the newline-delimited JSON. Not packed: that library needs a codec for it. Skipped when npm
cannot get it.

OPWATCH_CORPUS adds real files to the bundled sample.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BUILD = pathlib.Path(os.environ.get("OPWATCH_BUILD", "build"))
CORPUS = os.environ.get("OPWATCH_CORPUS")
REAL = ("kineto/param-linear_kineto.json.gz", "kineto/hta-ns_resolution.json.gz")


class Arrow(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("npm") or not shutil.which("node"):
            raise unittest.SkipTest("npm is not installed")
        cls.temp = tempfile.TemporaryDirectory(prefix="arrow")
        cls.addClassCleanup(cls.temp.cleanup)
        cls.root = pathlib.Path(cls.temp.name)
        shutil.copy(ROOT / "tests/integration/arrow/read.mjs", cls.root)
        try:
            install = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "apache-arrow@21"],
                                     cwd=cls.root, text=True, capture_output=True, timeout=300)
        except subprocess.TimeoutExpired as problem:
            raise unittest.SkipTest("npm does not come to an end: the network may be away") from problem
        if install.returncode:
            raise unittest.SkipTest(f"npm cannot install apache-arrow: {install.stderr[-300:]}")

    def export(self, to, files, *options):
        out = pathlib.Path(tempfile.mkdtemp(dir=self.root))
        subprocess.run([BIN, "export", *map(str, files), "--to", to, str(out), *options], check=True, capture_output=True)
        return out

    def compare(self, files, *options):
        arrow, plain = self.export("arrow", files, *options), self.export("ndjson", files, *options)
        for path in sorted(arrow.rglob("*.arrow")):
            other = plain / path.relative_to(arrow).with_suffix(".ndjson")
            read = subprocess.run(["node", "read.mjs", str(path)], cwd=self.root, capture_output=True)
            self.assertEqual(read.returncode, 0, read.stderr.decode()[-500:])
            lines = read.stdout.split(b"\n")
            expected = [json.loads(line) for line in other.read_bytes().split(b"\n") if line]
            self.assertEqual(json.loads(lines[0])["rows"], len(expected))
            self.assertEqual([json.loads(line) for line in lines[1:] if line], expected, path.name)

    def test_sample(self):
        self.compare([ROOT / "samples/resnet.profile"])
        self.compare([ROOT / "samples/resnet.profile"], "--sort", "name", "--partition", "step")

    def test_several_runs(self):
        self.compare(["--run", f"one={ROOT}/samples/resnet.profile", "--run", f"two={ROOT}/samples/graph.pb,{ROOT}/samples/run_meta_0"])

    def test_real_files(self):
        if not CORPUS:
            self.skipTest("OPWATCH_CORPUS is not set")
        self.compare([pathlib.Path(CORPUS, name) for name in REAL], "--table", "event,op,link,flow,track", "--sort", "ts")


if __name__ == "__main__":
    unittest.main()
