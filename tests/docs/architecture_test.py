#!/usr/bin/python3
"""ARCHITECTURE.md is true: the files that it names exist, the paths of a record have as many files as their headings say and at most
25, and its table of layers is the one that tools/check-layers checks."""
import ast
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
PAGE = re.sub(r"^```.*?^```$", "", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf8"), flags=re.M | re.S)
MOST_FILES = 25


def expand(text):
    """`a/{b.c, c.h}` → a/b.c, a/c.h"""
    match = re.fullmatch(r"(.*)\{(.*)\}(.*)", text)
    return [match[1] + part.strip() + match[3] for part in match[2].split(",")] if match else [text]


def files(text):
    quoted = (re.sub(r"\s+", " ", q) for q in re.findall(r"`([^`]+)`", text))
    return [f for q in quoted for f in expand(q) if re.search(r"\.(c|h|def|md)$", f)]


def exists(name):
    return any((ROOT / folder / name).exists() for folder in ("", "src"))


def paths():
    """Title, number in the title, and text of each path of a record."""
    part = PAGE[PAGE.index("These are the files that hold"):PAGE.index("## Key structs")]
    return re.findall(r"^\*\*(.+)\*\* \((\d+) files\)\n((?:(?!\*\*).*\n)*)", part, re.M)


def layers():
    """The table of tools/check-layers."""
    for node in ast.parse((ROOT / "tools/check-layers").read_text(encoding="utf8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "MAY_INCLUDE":
            return ast.literal_eval(node.value)
    raise AssertionError("tools/check-layers has no MAY_INCLUDE")


class Architecture(unittest.TestCase):
    def test_named_files_exist(self):
        for name in files(PAGE):
            if "/" in name and "foo" not in name and "*" not in name:
                self.assertTrue(exists(name), f"{name} does not exist")

    def test_paths_of_a_record(self):
        self.assertEqual(len(paths()), 3)
        shared = re.search(r"- view: .*?(?=\n\n)", PAGE, re.S)[0]
        for title, count, text in paths():
            names = files(text)
            if "the seven files of the list above" in text:
                self.assertEqual(len(files(shared)), 7)
                names += files(shared)
            self.assertEqual(len(names), len(set(names)), f"{title}: a file is named twice")
            self.assertEqual(len(names), int(count), title)
            self.assertLessEqual(len(names), MOST_FILES, title)

    def test_layers(self):
        rows = dict(re.findall(r"^\| `src/(\w+)` \|.*\| ([^|]*) \|$", PAGE, re.M))
        known = layers()
        self.assertEqual(set(rows), set(known))
        above = set()  # "all of the above" are the rows so far
        for name, text in rows.items():
            if text == "libc":
                may = set()
            elif text == "all of the above":
                may = set(above)
            else:
                may = {word.strip() for word in text.split(",")} - {"the public headers"}
            above.add(name)
            self.assertEqual(may - {name}, known[name] - {name}, f"src/{name}")


if __name__ == "__main__":
    unittest.main()
