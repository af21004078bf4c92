#!/usr/bin/python3
"""The web page and the report in Python."""
import json
import os
import pathlib
import tempfile
import unittest
import urllib.error
import urllib.request

import opwatch

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
SAMPLE = ROOT / "samples/resnet.profile"


def ask(address, path, token=None):
    base, secret = address.split("/#t=")
    request = urllib.request.Request(base + path, headers={"X-Opwatch-Token": secret if token is None else token})
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.loads(reply.read())


class Page(unittest.TestCase):
    def setUp(self):
        self.profile = opwatch.open(SAMPLE)
        try:
            self.page = self.profile.ui()
        except opwatch.Error as error:
            self.skipTest(str(error))
        self.addCleanup(self.page.close)

    def test_answers(self):
        rows = ask(self.page.address, "/api/view?name=work")["rows"]
        self.assertEqual([row["time_ns"] for row in rows], [row["time_ns"] for row in self.profile.work()])
        with self.assertRaises(urllib.error.HTTPError):
            ask(self.page.address, "/api/state", token="0" * 32)
        self.assertIn(self.page.address, self.page._repr_html_())

    def test_outlives_the_profile_and_ends(self):
        address = self.page.address
        self.profile.close()
        self.assertEqual(ask(address, "/api/state")["state"], "ready")
        with self.page:
            pass
        self.assertEqual(self.page.address, "")
        with self.assertRaises(OSError):
            ask(address, "/api/state")

    def test_wrong_port(self):
        with self.assertRaises(opwatch.UsageError):
            self.profile.ui(port=70000)

    def test_report(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "r.html"
            self.profile.report(path, size=2 << 20, title="a < b")
            text = path.read_text(encoding="utf8")
            self.assertIn("<title>a &#60; b</title>", text)
            self.assertLess(len(text), 2 << 20)
        with self.assertRaises(opwatch.Error):
            self.profile.report("/nonexistent/x.html")


if __name__ == "__main__":
    unittest.main()
