#!/usr/bin/python3
"""The server of `opwatch ui` on files that are wrong (OPWATCH_CORPUS): all of negative/, and files of the corpus with bytes changed, cut out, repeated
or swapped. It says that a file cannot be opened, or that parts are damaged, or shows it; it never ends, and every answer is JSON. Fixed seeds;
OPWATCH_UI_MUTANTS=500 is the nightly run."""
import json
import os
import pathlib
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor
from random import Random

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
sys.path.insert(0, str(ROOT / "tests/cli"))
from ui_test import Server  # pylint: disable=wrong-import-position

CORPUS = os.environ.get("OPWATCH_CORPUS")
COUNT = int(os.environ.get("OPWATCH_UI_MUTANTS", "40"))
LARGEST = 400000  # bytes: many small ones find more than few large ones
ASKED = ("/api/rows", "/api/view?name=verdict", "/api/view?name=work", "/api/view?name=steps", "/api/view?name=notes", "/api/view?name=tracks",
         "/api/view?name=heaps", "/api/view?name=scope&max_depth=3", "/api/advise", "/api/search?q=.", "/api/graph", "/api/ranks", "/api/event?id=1",
         "/api/area?from=0&to=1000000000000")


def mutate(data, random):
    data = bytearray(data)
    for _ in range(random.randint(1, 8)):
        if not data:
            break
        at, length, kind = random.randrange(len(data)), random.choice((1, 2, 4, 16, 300)), random.randrange(6)
        if kind == 0:
            data[at] = random.randrange(256)
        elif kind == 1:
            del data[at:at + length]
        elif kind == 2:
            data[at:at] = data[at:at + length] * random.choice((1, 1, 50))
        elif kind == 3:
            data[at:at + 4] = random.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff", b"9999"))
        elif kind == 4:
            other = random.randrange(len(data))
            data[at:at + length], data[other:other + length] = data[other:other + length], data[at:at + length]
        else:
            del data[max(1, at):]
    return bytes(data)


def seconds_used(pid):
    """The time that a process has computed; a clock on the wall would also count the work of others."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="latin1").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Mutants(unittest.TestCase):
    def look(self, path):
        """What the page would say about the file: failed, damaged or shown."""
        server = Server(str(path))
        try:
            state = server.wait()
            if state["state"] == "failed":
                self.assertTrue(state["error"], path)
                self.assertLess(seconds_used(server.process.pid), 20, path)
                return "failed"
            self.assertEqual(state["state"], "ready", path)
            for request in ASKED:
                status, body = server.ask(request)
                self.assertIsNone(server.process.poll(), (path, request))
                self.assertIn(status, (200, 400, 404, 500, 501, 503), (path, request, body[:300]))
                answer = json.loads(body.decode("utf-8"))
                self.assertTrue(status == 200 or answer["error"], (path, request))
            self.assertEqual(server.ask("/api/state")[0], 200, path)
            return "damaged" if state["damaged"] else "shown"
        finally:
            self.assertEqual(server.stop(), 0, path)

    def look_at_all(self, paths):
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(self.look, paths))

    def test_negative(self):
        paths = sorted(p for p in pathlib.Path(CORPUS, "negative").rglob("*") if p.is_file())
        self.assertTrue(paths)
        said = self.look_at_all(paths)
        self.assertIn("failed", said)

    def test_mutants(self):
        files = sorted(p for p in pathlib.Path(CORPUS).rglob("*") if p.is_file() and 0 < p.stat().st_size < LARGEST and p.suffix not in (".tsv", ".md")
                       and "negative" not in p.parts and p.name != "FACTS.json")
        random = Random(20261117)
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for i in range(COUNT):
                source = random.choice(files)
                path = pathlib.Path(folder, f"{i}-{source.name}")
                path.write_bytes(mutate(source.read_bytes(), random))
                paths.append(path)
            said = self.look_at_all(paths)
        print({what: said.count(what) for what in set(said)})
        self.assertGreater(len(set(said)), 1)


if __name__ == "__main__":
    if not CORPUS:
        print("skipped: OPWATCH_CORPUS is not set")
        sys.exit(77)
    unittest.main()
