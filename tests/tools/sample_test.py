#!/usr/bin/python3
"""The bundled sample is what tools/make_sample.py writes, byte for byte, and stays small."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
NAMES = {"resnet.profile", "graph.pb", "op_log", "run_meta_0", "run_meta_1", "run_meta_2"}


class Sample(unittest.TestCase):
    def test_regenerates(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", str(ROOT / "tools/make_sample.py"), folder], check=True)
            self.assertEqual({p.name for p in pathlib.Path(folder).iterdir()}, NAMES)
            for name in sorted(NAMES):
                with self.subTest(name):
                    made = (pathlib.Path(folder) / name).read_bytes()
                    self.assertTrue(made == (ROOT / "samples" / name).read_bytes(), "run tools/make_sample.py")

    def test_is_small(self):
        for name in sorted(NAMES):
            self.assertLessEqual((ROOT / "samples" / name).stat().st_size, 60 * 1024, name)


if __name__ == "__main__":
    unittest.main()
