#!/usr/bin/python3
"""docs/schema.md says what src/model/schema.def says."""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()


class Schema(unittest.TestCase):
    def test_up_to_date(self):
        run = subprocess.run([sys.executable, str(ROOT / "tools/make-schema-doc"), "--check"], text=True, capture_output=True)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
