#!/usr/bin/python3
"""Files that any earlier opwatch wrote open for ever. tests/cli/opw_versions has at least one file of each version of the format, called
MAJOR.MINOR-what.opw, and expected.json says what is in them; both are never rewritten. A new version of the format needs a new file:
write it with `opwatch convert` or `record`, add what `opw_versions_test.py --show FILE` prints, and leave the others alone."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
FILES = SRC / "tests/cli/opw_versions"


def opwatch(*words):
    return subprocess.run([BIN, *map(str, words)], capture_output=True, text=True)


def flat(rows):
    for row in rows:
        yield row
        yield from flat(row.get("children", []))


def content(path):
    """What must stay the same: the ops with their times, and how many steps and tracks there are."""
    def rows(view, *options):
        run = opwatch(view, path, "--json", *options)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)["rows"]

    steps, ops = rows("steps"), {}
    ranks = sorted({row["rank"] for row in steps if row["rank"] is not None})
    for rank in ranks if len(ranks) > 1 else [None]:  # of several ranks, what all of them do in a step
        for row in flat(rows("op", "--select", "micros", "--max-depth", "1000", *([] if rank is None else ["--rank", str(rank)]))):
            if row["micros"] is not None:
                ops[row["name"]] = ops.get(row["name"], 0) + row["micros"]
    return {"ops": ops, "steps": len(steps), "tracks": len(rows("tracks"))}


def version(path):
    return struct.unpack_from("<II", path.read_bytes(), 8)


class OpwVersions(unittest.TestCase):
    def test_every_version(self):
        expected = json.loads((FILES / "expected.json").read_text())
        paths = sorted(FILES.glob("*.opw"))
        self.assertEqual([path.name for path in paths], sorted(expected))
        for path in paths:
            self.assertEqual("%d.%d" % version(path), path.name.split("-")[0])
            self.assertEqual(content(path), expected[path.name], path.name)

    def test_the_current_version_is_among_them(self):
        source = (SRC / "src/wire/own/opw.h").read_text()
        now = tuple(int(re.search(rf"#define OPW_{part} (\d+)", source)[1]) for part in ("MAJOR", "MINOR"))
        known = {version(path) for path in FILES.glob("*.opw")}
        self.assertIn(now, known, "a new version of the format: add a file of it, see the top of this test")
        for minor in range(now[1] + 1):
            self.assertIn((now[0], minor), known)

    def test_they_convert_to_today(self):
        expected = json.loads((FILES / "expected.json").read_text())
        with tempfile.TemporaryDirectory() as folder:
            for path in sorted(FILES.glob("*.opw")):
                out = pathlib.Path(folder) / path.name
                run = opwatch("convert", path, "--to", "opw", "-o", out)
                self.assertEqual(run.returncode, 0, (path.name, run.stderr))
                self.assertEqual(content(out)["ops"], expected[path.name]["ops"], path.name)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--show":
        print(json.dumps({os.path.basename(sys.argv[2]): content(sys.argv[2])}, indent=1))
    else:
        unittest.main()
