#!/usr/bin/python3
"""Links between the documents lead somewhere, and docs/README.md leads to every page."""
import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("samples/*.md")]


def anchors(page):
    """GitHub's names of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf8"), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


class Links(unittest.TestCase):
    def test_targets_exist(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf8")):
                path, _, anchor = link.partition("#")
                if "://" in link:
                    continue
                target = (page.parent / path).resolve() if path else page
                self.assertTrue(target.exists(), f"{page.relative_to(ROOT)}: {link}")
                if anchor:
                    self.assertIn(anchor, anchors(target), f"{page.relative_to(ROOT)}: {link}")

    def test_index_is_complete(self):
        index = (ROOT / "docs/README.md").read_text(encoding="utf8")
        for page in (ROOT / "docs").glob("*.md"):
            if page.name != "README.md":
                self.assertIn(f"({page.name})", index)
        for page in (ROOT / "docs/views").glob("*.md"):
            self.assertIn(f"(views/{page.name})", index)
        for folder in (ROOT / "docs").iterdir():
            self.assertIn(folder.name, index)


if __name__ == "__main__":
    unittest.main()
