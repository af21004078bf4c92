#!/usr/bin/python3
"""The tables in docs/sql.md are those of the binary."""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")


class SqlPage(unittest.TestCase):
    def test_up_to_date(self):
        run = subprocess.run([sys.executable, str(ROOT / "tools/make-sql-doc"), "--check", BIN], text=True, capture_output=True)
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
