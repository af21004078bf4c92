#!/usr/bin/python3
"""The magics in a real IPython shell: %load_ext opwatch, cells, what they leave, %unload_ext."""
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
sys.path.insert(0, os.path.join(os.environ.get("OPWATCH_BUILD", str(ROOT / "build/release")), "python"))
SAMPLE = str(ROOT / "samples/resnet.profile")

try:
    import opwatch
    from IPython.core.interactiveshell import InteractiveShell
except ImportError as missing:
    print("not run:", missing)
    sys.exit(77)


class Magics(unittest.TestCase):
    def test_cells(self):
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "opwatch")
        shell.run_cell("import opwatch\np = opwatch.open(%r)" % SAMPLE)
        done = shell.run_cell("%%opwatch df --run p --destination_table my.t\nSELECT number, dur FROM step ORDER BY 1")
        done.raise_error()
        self.assertEqual(shell.user_ns["df"]["number"].tolist(), [0, 1, 2])
        done = shell.run_cell("%%opwatch\nSELECT max(dur) AS longest FROM my.t")
        done.raise_error()
        self.assertEqual(done.result["longest"], [199342000])
        shown = shell.display_formatter.format(done.result)[0]
        self.assertIn("text/html", shown)
        self.assertFalse(shell.run_cell("%%opwatch\nSELEC").success)
        shell.run_line_magic("unload_ext", "opwatch")
        self.assertNotIn("opwatch", shell.magics_manager.magics["cell"])


if __name__ == "__main__":
    try:
        opwatch.open(SAMPLE).sql("SELECT 1")
    except opwatch.Unsupported as error:
        print("not run:", error)
        sys.exit(77)
    unittest.main()
