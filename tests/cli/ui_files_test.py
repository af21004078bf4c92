#!/usr/bin/python3
"""What the page asks about single events, samples and lines of code, and the files that a user adds, removes and saves on it. The other
answers of the server are in ui_test.py."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "tests/cli")]
from patience import until  # pylint: disable=wrong-import-position
from ui_test import BIN, SAMPLE, Server, printed  # pylint: disable=wrong-import-position

PERF = """python 7 100.000000: 1000 cycles:
\t    1000 inner (/usr/bin/prog)
\t    2000 outer (/usr/bin/prog)

python 7 100.010000: 1000 cycles:
\t    1000 other (/usr/bin/prog)
\t    2000 outer (/usr/bin/prog)

"""


def trace(path, name, stack=None):
    """Two threads with three events each."""
    arguments = {"Call stack": stack} if stack else {}
    events = [{"ph": "X", "pid": 1, "tid": tid, "ts": 100 * i + tid, "dur": 10 * tid, "name": f"{name}{i % 2}", "cat": "cpu_op",
               "args": arguments} for i in range(3) for tid in (1, 2)]
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
    return str(path)


class Items(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(SAMPLE)
        cls.server.wait()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def test_parts_of_an_event_are_all_of_it(self):
        event = self.server.get("/api/search", q="^input/MatchingFiles$")["rows"][0]["longest"]
        whole = self.server.get("/api/event", id=event)
        facts = self.server.get("/api/event", id=event, part="facts")
        others = self.server.get("/api/event", id=event, part="others")
        self.assertEqual({**facts, **others}, whole)
        self.assertEqual(set(facts) & set(others), {"event"})
        self.assertIn("same_name", others)
        self.assertIn("stack", facts)

    def test_events_of_a_line(self):
        file = printed("lines", SAMPLE, "--json")["rows"][0]["file"]
        found = self.server.get("/api/search", file=file, line=14)["rows"]
        self.assertIn("input/MatchingFiles", [row["name"] for row in found])
        for row in found:
            stack = self.server.get("/api/event", id=row["longest"])["stack"]
            self.assertIn((file, 14), [(frame["file"], frame["line"]) for frame in stack])
        self.assertEqual(self.server.get("/api/search", file=file, line=99999)["rows"], [])
        self.assertEqual(self.server.get("/api/search", file="/etc/passwd", line=1)["rows"], [])

    def test_tracks_of_a_search(self):
        rows = self.server.get("/api/search", q="^input/MatchingFiles$", tracks=1)
        track = self.server.get("/api/event", id=rows["rows"][0]["longest"])["track"]
        self.assertEqual(rows["tracks"], [track])
        self.assertEqual(self.server.get("/api/search", q="no such name", tracks=1)["tracks"], [])

    def test_no_such_items(self):
        for path in ("/api/sample?id=1", "/api/sample?id=0", "/api/sample?id=-1", "/api/event?id=99999999&part=facts"):
            self.assertEqual(self.server.ask(path)[0], 404, path)

    def test_a_sample(self):
        with tempfile.TemporaryDirectory() as folder:
            file = folder + "/x.perf.txt"
            pathlib.Path(file).write_text(PERF)
            server = Server(file)
            self.addCleanup(server.stop)
            server.wait()
            sample = server.get("/api/sample", id=1)
            self.assertEqual((sample["name"], sample["ts"], sample["metric"], sample["weight"]), ("inner", 0, "cycles", 1000))
            self.assertEqual([frame["function"] for frame in sample["stack"]], ["inner", "outer"])
            row = next(row for row in server.get("/api/rows")["rows"] if row["kind"] == "samples")
            after = server.get("/api/near", row=row["row"], at=0, direction=1)["item"]
            self.assertEqual(server.get("/api/sample", id=after)["name"], "other")


class Files(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.first = trace(self.folder / "a.json", "first")
        self.second = trace(self.folder / "b.json", "second")
        (self.folder / "bad.json").write_text("not a profile\n")
        (self.folder / ".hidden.json").write_text("{}")

    def serve(self, *arguments):
        server = Server(*arguments)
        self.addCleanup(server.stop)
        server.wait()
        return server

    def choose(self, server, *lines):
        """Sends a choice and waits until it was taken or refused; returns the state."""
        before = server.get("/api/state")["epoch"]
        status, body = server.ask("/api/choose", "\n".join(lines).encode())
        self.assertEqual(status, 200, body)

        def taken():
            state = server.get("/api/state")
            return state if state["epoch"] != before or "refused" in state else None
        return until(taken, "the files were not read", pause=0.05)

    def names(self, server):
        return {row["name"][:-1] for row in server.get("/api/search", q=".")["rows"]}

    def test_add_and_remove(self):
        server = self.serve(self.first)
        files = server.get("/api/files")
        self.assertEqual(files["files"], [self.first])
        self.assertEqual({near["name"] for near in files["near"]}, {"b.json", "bad.json"})
        self.assertGreater(files["read_bytes"], 0)
        state = self.choose(server, "add", "0", "b.json")
        self.assertEqual([pathlib.Path(path).name for path in state["files"]], ["a.json", "b.json"])
        self.assertEqual(self.names(server), {"first", "second"})
        self.assertEqual(len(server.get("/api/view", name="sources")["rows"]), 2)
        state = self.choose(server, "remove", server.get("/api/files")["files"][0])
        self.assertEqual([pathlib.Path(path).name for path in state["files"]], ["b.json"])
        self.assertEqual(self.names(server), {"second"})
        self.assertEqual(server.ask("/api/choose", ("remove\n" + server.get("/api/files")["files"][0]).encode())[0], 400)

    def test_a_file_of_no_use_changes_nothing(self):
        server = self.serve(self.first)
        state = self.choose(server, "add", "0", "bad.json")
        self.assertIn("bad.json", state["refused"])
        self.assertEqual((state["files"], self.names(server)), ([self.first], {"first"}))
        self.assertNotIn("refused", self.choose(server, "add", "0", "b.json"))

    def test_only_files_of_the_list(self):
        outside = self.folder / "inside"
        outside.mkdir()
        server = self.serve(trace(outside / "x.json", "x"))
        for body in (f"add\n0\n{self.first}", "add\n0\n../a.json", "add\n0\n/etc/passwd", "add\n1\na.json", "add\n-1\na.json", "add\nx\na.json",
                     "add", "add\n0\n", "add\n0\n.", "add\n0\n..", "remove\n/etc/passwd", "remove\n", "", "keep\nx", "add\n0\nx.json"):
            self.assertIn(server.ask("/api/choose", body.encode())[0], (400, 404), body)
        self.assertEqual(server.ask("/api/choose", b"add\n0\n..", X_Opwatch_Token=None)[0], 401)
        self.assertEqual(server.get("/api/state")["epoch"], 0)

    def test_members_of_a_folder(self):
        (self.folder / "bad.json").unlink()
        server = self.serve(str(self.folder))
        self.assertEqual(self.names(server), {"first", "second"})
        self.choose(server, "remove", self.first)
        self.assertEqual(self.names(server), {"second"})

    def test_save(self):
        for redact in ([], ["--redact"]):
            server = self.serve(self.first, self.second, *redact)
            status, body = server.ask("/api/save", b"")
            self.assertEqual(status, 200)
            saved = self.folder / "saved.opw"
            saved.write_bytes(body)
            want = server.get("/api/view", name="tracks")["rows"]
            self.assertEqual(printed("tracks", str(saved), "--json")["rows"], want)
            self.assertEqual(b"second0" in body, not redact)
        self.assertEqual(server.ask("/api/save", b"", X_Opwatch_Token=None)[0], 401)

    def test_redacted_names_stay_hidden(self):
        server = self.serve(self.first, "--redact")
        files = server.get("/api/files")
        self.assertIn("--redact", files["fixed"])
        self.assertNotIn("a.json", json.dumps(files))
        self.assertEqual(server.ask("/api/choose", b"add\n0\nb.json")[0], 409)

    def test_lines_of_code_of_a_trace(self):
        server = self.serve(trace(self.folder / "c.json", "op", "/src/train.py(12): main;/src/train.py(40): <module>"))
        self.assertEqual({row["name"] for row in server.get("/api/search", file="/src/train.py", line=12)["rows"]}, {"op0", "op1"})


if __name__ == "__main__":
    subprocess.run([BIN, "--version"], check=True, stdout=subprocess.DEVNULL)
    unittest.main()
