#!/usr/bin/python3
"""The server of `opwatch ui`, without a browser: its answers equal the JSON of the commands, and what it must refuse it refuses.
Skips when this build has no page or no web server."""
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse
from random import Random

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
sys.path.insert(0, str(ROOT / "tests/support"))
from patience import PATIENCE, until  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
SAMPLE = str(ROOT / "samples/resnet.profile")


class Server:
    """`opwatch ui` as a process."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([BIN, "ui", *arguments, "--no-browser"], text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            why = self.process.stderr.read()
            self.stop()
            if "no web page" in why or "web server" in why:
                raise unittest.SkipTest(why.strip())
            raise AssertionError(why)
        parts = urllib.parse.urlsplit(self.address)
        self.port, self.token = parts.port, parts.fragment.removeprefix("t=")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.wait(PATIENCE)

    def ask(self, path, body=None, method=None, **headers):
        """(status, bytes); a header that is None is not sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        all_headers = {"X-Opwatch-Token": self.token, **{k.replace("_", "-"): v for k, v in headers.items()}}
        with contextlib.closing(connection):
            connection.request(method or ("GET" if body is None else "POST"), path, body,
                               {k: v for k, v in all_headers.items() if v is not None})
            reply = connection.getresponse()
            self.headers = dict(reply.getheaders())
            return reply.status, reply.read()

    def get(self, path, **parameters):
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        status, body = self.ask(path + query)
        if status != 200:
            raise AssertionError(f"{path}: {status} {body}")
        return json.loads(body)

    def wait(self):
        def done():
            state = self.get("/api/state")
            return state if state["state"] != "loading" else None
        return until(done, "still loading", pause=0.05)


def printed(*arguments):
    return json.loads(subprocess.run([BIN, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout)


class Answers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(SAMPLE)
        cls.server.wait()

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def test_views_equal_the_commands(self):
        for view in ("verdict", "steps", "phases", "work", "lines", "devices", "tracks", "sources", "notes", "opstats", "heaps",
                     "memory_peak", "memory_steps", "memory_time", "pipeline", "roofline", "metrics", "functions"):
            with self.subTest(view):
                self.assertEqual(self.server.get("/api/view", name=view), printed(view, SAMPLE, "--json"))
        self.assertEqual(self.server.get("/api/advise"), printed("advise", SAMPLE, "--json"))
        facts = [json.dumps(x) for x in (self.server.get("/api/info"), printed("info", SAMPLE, "--json"))]
        both = [re.sub(r'memory_bytes": \d+', "", x) for x in facts]  # what a process holds in memory is its own
        self.assertEqual(*both)

    def test_path_equals_the_command(self):
        self.assertEqual(self.server.get("/api/path"), printed("path", SAMPLE, "--json"))
        with tempfile.TemporaryDirectory() as folder:
            make = ROOT / "tests/ui/make_ranks.py"
            path = subprocess.run(["/usr/bin/python3", make, folder], check=True, text=True, stdout=subprocess.PIPE).stdout.split()[0]
            server = Server(path)
            self.addCleanup(server.stop)
            server.wait()
            self.assertTrue(server.get("/api/path")["rows"])
            self.assertEqual(server.get("/api/path"), printed("path", path, "--json"))
            self.assertEqual(server.get("/api/path", step=5), printed("path", path, "--step", "5", "--json"))
            self.assertIn("not among the steps", server.get("/api/path", step=999)["refused"])

    def test_ranks_equal_the_command(self):
        self.assertEqual(self.server.get("/api/ranks"), printed("ranks", SAMPLE, "--json"))
        with tempfile.TemporaryDirectory() as folder:
            make = ROOT / "tests/ui/make_ranks.py"
            paths = subprocess.run(["/usr/bin/python3", make, folder], check=True, text=True, stdout=subprocess.PIPE).stdout.split()
            server = Server(*paths)
            self.addCleanup(server.stop)
            server.wait()
            for _ in range(2):  # the second answer is the one that was kept
                self.assertEqual(server.get("/api/ranks"), printed("ranks", *paths, "--json"))
            for sides in ((0, 2), (3, 1)):
                want = printed("diff", *[paths[i] for i in sides], "--json")
                self.assertEqual(server.get("/api/diff", base_rank=sides[0], new_rank=sides[1]), want)
            self.assertEqual(server.ask("/api/diff?base_rank=0&new_rank=9")[0], 404)
            self.assertEqual(server.ask("/api/diff?base_rank=0")[0], 404)  # without --base there is nothing else to compare with
            whole = Server(folder)
            self.addCleanup(whole.stop)
            whole.wait()
            self.assertEqual(whole.get("/api/diff", base_rank=3, new_rank=1), want)
            hidden = Server(folder, "--redact")
            self.addCleanup(hidden.stop)
            hidden.wait()
            status, body = hidden.ask("/api/diff?base_rank=0&new_rank=1")
            self.assertEqual((status, folder.encode() in body), (501, False))
            status, body = hidden.ask("/api/ranks")
            self.assertEqual(status, 200, body)
            self.assertEqual(json.loads(body)["blamed"], [2])
            self.assertNotIn(b"job_rank", body)
            self.assertNotIn(os.fsencode(os.path.basename(folder)), body)
            profile = pathlib.Path(folder, "stacks.folded")
            profile.write_text("main;f 3\n")
            none = Server(str(profile))
            self.addCleanup(none.stop)
            none.wait()
            answer = none.get("/api/ranks")
            self.assertEqual(answer["rows"], [])
            self.assertIn("no timed work", answer["footer"])

    def test_options_equal_the_commands(self):
        for view, options in (("op", {"select": "bytes\nfloat_ops", "order_by": "bytes", "max_depth": 5}),
                              ("scope", {"max_depth": 3, "order_by": "micros", "step": 1}),
                              ("op", {"order_by": "micros", "account_type_regexes": ".*gpu.*", "max_depth": 100}),
                              ("code", {"max_depth": 6, "order_by": "micros", "min_micros": 100}),
                              ("work", {"time_from": 250000000, "time_to": 400000000})):
            words = [w for k, v in options.items() if not k.startswith("time") for w in ("--" + k.replace("_", "-"), str(v).replace("\n", ","))]
            if "time_from" in options:
                words += ["--time-range", f"{options['time_from']}ns:{options['time_to']}ns"]
            with self.subTest(view, **options):
                self.assertEqual(self.server.get("/api/view", name=view, **options), printed(view, SAMPLE, "--json", *words))

    def test_wrong_requests(self):
        for path in ("/api/view", "/api/view?name=nonsense", "/api/search?q=("):
            status, body = self.server.ask(path)
            self.assertEqual(status, 400, path)
            self.assertTrue(json.loads(body)["error"], path)
        for path in ("/api/event?id=0", "/api/event?id=99999999", "/api/event?id=-1", "/api/near?row=77777"):
            self.assertEqual(self.server.ask(path)[0], 404, path)
        for body in (b"1 2", b"x y z", b"-1 0 0", b"0 99 0", b"999999 0 0", b"\xff\x00", b"0 0 0\n" * 600):
            self.assertEqual(self.server.ask("/api/tiles", body)[0], 400, body[:20])

    def tiles(self, *keys):
        """Decoded as the page does it: (row, level, index, cells) with cells of (x, width, item, name, count, busy)."""
        status, data = self.server.ask("/api/tiles", "\n".join(" ".join(map(str, key)) for key in keys).encode())
        self.assertEqual(status, 200, data)
        at, out = 0, []
        while at < len(data):
            index, row, level, n, kind = struct.unpack_from("<dIIII", data, at)
            self.assertLess(kind, 2)
            at += 24
            item, name, count = (struct.unpack_from(f"<{n}I", data, at + 4 * n * i) for i in range(3))
            at += 12 * n
            x, width = (struct.unpack_from(f"<{n}H", data, at + 2 * n * i) for i in range(2))
            at += 4 * n
            busy = data[at:at + n]
            at += 2 * n
            at = (at + 7) // 8 * 8
            out.append((row, level, int(index), list(zip(x, width, item, name, count, busy))))
        return out

    def test_every_event_is_in_a_tile(self):
        rows = self.server.get("/api/rows")
        rows["rows"] = [row for row in rows["rows"] if row["kind"] == "events"]
        level = max(0, rows["top_level"])
        tiles = self.tiles(*((row["row"], level, 0) for row in rows["rows"]))
        self.assertEqual(sum(cell[4] for tile in tiles for cell in tile[3]), sum(row["items"] for row in rows["rows"]))
        events = printed("sql", SAMPLE, "SELECT count(*) AS n FROM event", "--json")["rows"][0]["n"] if has_sql() else 429
        self.assertEqual(sum(row["items"] for row in rows["rows"]), events)

    def test_memory_rows_have_the_peaks_of_the_heaps(self):
        rows = self.server.get("/api/rows")
        series = [row for row in rows["rows"] if row["kind"] == "series"]
        heaps = printed("heaps", SAMPLE, "--json")["rows"]
        peaks = []
        for row in series:
            status, data = self.server.ask("/api/tiles", f"{row['row']} {rows['top_level']} 0".encode())
            self.assertEqual(status, 200)
            n, = struct.unpack_from("<I", data, 16)
            peaks.append(int(max(struct.unpack_from(f"<{n}d", data, 24 + 8 * n))))
        self.assertEqual(sorted(peaks), sorted(row["peak_bytes"] for row in heaps)[-16:])

    def test_graph(self):
        closed = self.server.get("/api/graph")
        self.assertEqual(closed["kind"], "dataflow")
        ids = {node["id"] for node in closed["nodes"]}
        self.assertTrue(closed["edges"])
        self.assertTrue(all(edge[0] in ids and edge[1] in ids and edge[0] != edge[1] for edge in closed["edges"]))
        scope = max((node for node in closed["nodes"] if node["scope"]), key=lambda node: node["ops"])
        opened = self.server.get("/api/graph", open=scope["name"])
        inside = [node for node in opened["nodes"] if node["name"].startswith(scope["name"] + "/") or node["name"] == scope["name"]]
        self.assertEqual(sum(node["ops"] for node in inside), scope["ops"])
        self.assertEqual(sum(node["ops"] for node in opened["nodes"]), sum(node["ops"] for node in closed["nodes"]))

    def test_names_and_details(self):
        rows = self.server.get("/api/rows")
        cell = self.tiles((0, rows["top_level"], 0))[0][3][0]
        status, body = self.server.ask("/api/names", f"{cell[3]}\n999999999\n-4\nx\n".encode())
        name = json.loads(body)
        self.assertEqual((status, name[1:]), (200, [None, None, None]))
        event = self.server.get("/api/event", id=cell[2])
        self.assertEqual((event["name"], event["row"]), (name[0], 0))
        near = self.server.get("/api/near", row=0, at=event["ts"], direction=1)
        later = self.server.get("/api/event", id=near["item"])
        self.assertGreater(later["ts"], event["ts"])
        self.assertEqual(self.server.get("/api/near", row=0, at=later["ts"], direction=-1)["item"], cell[2])

    def test_source_lines_of_an_event(self):
        found = self.server.get("/api/search", q="^input/MatchingFiles$")["rows"]
        self.assertEqual(len(found), 1)
        frame = self.server.get("/api/event", id=found[0]["longest"])["stack"][0]
        self.assertEqual((frame["file"].rsplit("/")[-1], frame["line"]), ("input.py", 14))

    def test_area_equals_sql(self):
        if not has_sql():
            self.skipTest("SQL is not available")
        span = self.server.get("/api/state")["span_ns"]
        for begin, end in ((0, span), (span // 3, span // 2), (100, 101)):
            got = self.server.get("/api/area", **{"from": begin, "to": end})
            sql = ("SELECT name, count(*) AS count, sum(least(ts + dur, z + {1}) - greatest(ts, z + {0})) AS time_ns FROM event, (SELECT "
                   "min(ts) AS z FROM event) WHERE ts < z + {1} AND ts + dur > z + {0} GROUP BY name").format(begin, end)
            want = {row["name"]: (row["count"], row["time_ns"]) for row in printed("sql", SAMPLE, sql, "--json")["rows"]}
            self.assertEqual({row["name"]: (row["count"], row["time_ns"]) for row in got["rows"]}, want)
            self.assertEqual(got["events"], sum(count for count, _ in want.values()))


def has_sql():
    return subprocess.run([BIN, "sql", SAMPLE, "SELECT 1"], capture_output=True).returncode == 0


class Sources(unittest.TestCase):
    """Source files are shown only if a frame names them and they are in the folder of the user."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name).resolve()
        (self.dir / "work").mkdir()
        (self.dir / "work/train.py").write_text("one\ntwo <b>\n")
        (self.dir / "secret.py").write_text("secret")
        (self.dir / "work/link.py").symlink_to(self.dir / "secret.py")
        os.mkfifo(self.dir / "work/pipe.py")
        (self.dir / "work/unnamed.py").write_text("unnamed")

    def frames(self, *files):
        """A speedscope file with a frame per source file."""
        path = self.dir / "x.speedscope.json"
        path.write_text(json.dumps({
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "shared": {"frames": [{"name": f"f{i}", "file": str(file), "line": 1} for i, file in enumerate(files)]},
            "profiles": [{"type": "sampled", "name": "x", "unit": "milliseconds", "startValue": 0, "endValue": len(files),
                          "samples": [[i] for i in range(len(files))], "weights": [1] * len(files)}]}))
        return str(path)

    def test_only_named_files_inside(self):
        work = self.dir / "work"
        names = ["/elsewhere/project/train.py", "train.py", work / "train.py", "/etc/passwd", work / "../secret.py", "../secret.py",
                 work / "link.py", work / "pipe.py", work, "/nonexistent/x.py"]
        server = Server(self.frames(*names), "--source", str(work))
        self.addCleanup(server.stop)
        server.wait()
        for i, name in enumerate(names):
            answer = server.get("/api/source", file=str(name))
            if i < 3:
                self.assertEqual((answer["path"], answer["text"]), (str(work / "train.py"), "one\ntwo <b>\n"), name)
            else:
                self.assertNotIn("text", answer, name)
                self.assertIn("--source", answer["error"], name)
        for name in (work / "unnamed.py", "unnamed.py", "", "/etc/shadow"):
            self.assertEqual(server.ask("/api/source?file=" + urllib.parse.quote(str(name)))[0], 404, name)


@unittest.skipUnless(subprocess.run([BIN, "sql", SAMPLE, "SELECT 1"], capture_output=True).returncode == 0, "SQL is not available")
class Questions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(SAMPLE)
        cls.server.wait()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_sql_equals_the_command(self):
        text = "SELECT name, sum(dur) AS t FROM event GROUP BY name ORDER BY t DESC, name LIMIT 7"
        status, body = self.server.ask("/api/sql", text.encode())
        self.assertEqual((status, json.loads(body)), (200, printed("sql", SAMPLE, text, "--json")))

    def test_sql_only_reads(self):
        for text in ("SELECT * FROM read_text('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/x.csv'", "ATTACH '/tmp/x.db'", "INSTALL httpfs",
                     "SET enable_external_access = true", "CREATE TABLE x AS SELECT * FROM '/etc/passwd'", "SELEC", ""):
            status, body = self.server.ask("/api/sql", text.encode())
            if text:
                self.assertEqual(status, 400, text)
                self.assertNotIn(b"root:", body)
            for kind in ("csv", "parquet"):
                status, body = self.server.ask("/api/sql?format=" + kind, text.encode())
                self.assertTrue(status == 400 or not text, (kind, text, status))
                self.assertNotIn(b"root:", body)

    def test_answers_as_files(self):
        text = "SELECT name, dur FROM event ORDER BY id LIMIT 3"
        status, body = self.server.ask("/api/sql?format=csv", text.encode())
        self.assertEqual((status, body), (200, subprocess.run([BIN, "sql", SAMPLE, text, "--csv"], capture_output=True).stdout))
        status, body = self.server.ask("/api/sql?format=parquet", text.encode())
        self.assertEqual((status, body[:4], body[-4:]), (200, b"PAR1", b"PAR1"))

    def test_parts_of_the_time(self):
        """The views that the page may ask for a part of the time are those whose commands take --time-range."""
        parts = self.server.get("/api/state")["parts"]
        self.assertIn("work", parts)
        for view in ("work", "lines", "memory_at", "notes", "sources"):
            taken = subprocess.run([BIN, view, SAMPLE, "--time-range", "0ms:300ms"], capture_output=True).returncode == 0
            self.assertEqual(view in parts, taken, view)

    def test_the_server_ends_while_a_query_runs(self):
        server = Server(SAMPLE)
        server.wait()
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)) as connection:
            connection.request("POST", "/api/sql", "SELECT sum(sin(x) * cos(x)) FROM range(90000000000) a(x)", {"X-Opwatch-Token": server.token})
            time.sleep(0.5)
            self.assertEqual(server.stop(), 0)  # it is patient, but the query would take hours

    def test_named_queries(self):
        queries = self.server.get("/api/queries")
        self.assertIn("top_ops", [query["name"] for query in queries])
        status, body = self.server.ask("/api/ask", b"top_ops\n")
        self.assertEqual(status, 200, body)
        want = printed("ask", "top_ops", SAMPLE, "--json")["rows"]
        self.assertEqual([{**row, "run": ""} for row in json.loads(body)["rows"]], [{**row, "run": ""} for row in want])
        self.assertEqual(self.server.ask("/api/ask", b"nonsense")[0], 400)
        self.assertIn("event", [table["name"] for table in self.server.get("/api/tables")])

    def test_compare(self):
        server = Server(SAMPLE, "--base", SAMPLE)
        self.addCleanup(server.stop)
        server.wait()
        status, body = server.ask("/api/ask", b"compare_ops")
        self.assertEqual(status, 200, body)
        self.assertTrue(json.loads(body)["rows"])


class Reports(unittest.TestCase):
    def test_size_and_redaction(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/r.html"
            done = subprocess.run([BIN, "report", SAMPLE, "-o", path], capture_output=True, text=True)
            if "no web page" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            text = pathlib.Path(path).read_text(encoding="utf8")
            self.assertLess(len(text), 5 << 20)
            self.assertIn("connect-src 'none'", text)
            self.assertIn("resnet/block1", text)
            data = json.loads(re.search(r'id="opwatch-report">(.*?)</script>', text, re.S)[1])
            self.assertEqual(data["/api/view?name=work"], printed("work", SAMPLE, "--json"))
            subprocess.run([BIN, "report", SAMPLE, "-o", path, "--redact", "--size", "1M"], check=True)
            text = pathlib.Path(path).read_text(encoding="utf8")
            self.assertLess(len(text), 1 << 20)
            self.assertNotIn("block1", text)

    def test_usage(self):
        self.assertEqual(subprocess.run([BIN, "report", SAMPLE], capture_output=True).returncode in (1, 2), True)

    def test_markup(self):
        """A name cannot end the element that holds the data."""
        with tempfile.TemporaryDirectory() as folder:
            trace, path = folder + "/t.json", folder + "/r.html"
            pathlib.Path(trace).write_text(json.dumps({"traceEvents": [
                {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 9, "name": "</script><script>alert(1)</script>"}]}))
            done = subprocess.run([BIN, "report", trace, "-o", path, "--title", "<b>&"], capture_output=True, text=True)
            if "no web page" in done.stderr:
                self.skipTest(done.stderr)
            text = pathlib.Path(path).read_text(encoding="utf8")
            self.assertNotIn("<script>alert", text)
            self.assertIn("<title>&#60;b&#62;&#38;</title>", text)


class Minutes(unittest.TestCase):
    """From the page Jobs to recordings of the daemon: only what it lists is opened."""

    def test_files_that_the_daemon_lists(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
            daemon_socket, rings = folder + "/socket", pathlib.Path(folder, "rings")
            daemon = subprocess.Popen([BIN, "daemon", "--socket", daemon_socket, "--dir", str(rings), "--no-kineto"],
                                      stderr=subprocess.DEVNULL)
            stack.callback(daemon.wait)
            stack.callback(daemon.terminate)
            until(lambda: os.path.exists(daemon_socket) and rings.is_dir(), "the daemon does not listen", pause=0.05)
            server = Server("--daemon-socket", daemon_socket)
            stack.callback(server.stop)
            self.assertEqual(server.get("/api/anomalies")["rows"], [])
            saved = rings / "work-3-slow-120304.opw"
            subprocess.run([BIN, "convert", SAMPLE, "-o", saved], check=True, capture_output=True)
            saved.with_suffix(".why.txt").write_text("steps take 50 % longer\n")
            (rings / "work-3-stall-120305.why.txt").write_text("no step\n")
            (rings / "other.opw").write_bytes(saved.read_bytes())
            rows = server.get("/api/anomalies")["rows"]
            self.assertEqual(rows, printed("jobs", "--anomalies", "--socket", daemon_socket, "--json")["rows"])
            self.assertEqual({(r["kind"], r["saved"]) for r in rows}, {("slow", True), ("stall", False)})
            for path in ("/etc/passwd", str(rings / "other.opw"), str(rings / "work-3-stall-120305.opw"), str(saved) + "/", "", "x" * 2000,
                         str(rings / ".." / "rings" / saved.name), str(saved) + "\0", str(saved) + "\nx"):
                status, body = server.ask("/api/minute", b"file\n" + path.encode())
                self.assertIn(status, (400, 404), (path, body))
            for body in (b"", b"else\nx", b"job\nnothing", b"job\n" + b"x" * 3000):
                self.assertIn(server.ask("/api/minute", body)[0], (400, 404), body)
            self.assertEqual(server.ask("/api/keep", b"nothing")[0], 404)
            addresses = set()
            for _ in range(2):
                status, body = server.ask("/api/minute", b"file\n" + os.fsencode(saved))
                self.assertEqual(status, 200, body)
                addresses.add(json.loads(body)["address"])
            self.assertEqual(len(addresses), 1)  # the second time it is open already
            parts = urllib.parse.urlsplit(addresses.pop())
            child = Server.__new__(Server)
            child.port, child.token = parts.port, parts.fragment.removeprefix("t=")
            self.assertNotEqual(child.token, server.token)
            self.assertEqual(child.wait()["files"], [str(saved)])
            self.assertEqual(child.get("/api/view", name="work")["rows"], printed("work", SAMPLE, "--json")["rows"])


class Refusals(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(SAMPLE)
        cls.server.wait()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_token(self):
        ask = self.server.ask
        self.assertEqual(ask("/api/state")[0], 200)
        for token in (None, "", "0" * 32, self.server.token[:-1], self.server.token + "0"):
            for path in ("/api/state", "/api/view?name=op", "/api/rows", "/api/nothing"):
                self.assertEqual(ask(path, X_Opwatch_Token=token)[0], 401, (token, path))
        self.assertEqual(ask("/api/state?token=" + self.server.token, X_Opwatch_Token=None)[0], 401)

    def test_other_pages(self):
        ask, port = self.server.ask, self.server.port
        self.assertEqual(ask("/api/state", Host="evil.example")[0], 403)
        self.assertEqual(ask("/api/state", Host=f"evil.example:{port}")[0], 403)
        self.assertEqual(ask("/", Host="evil.example")[0], 403)
        self.assertEqual(ask("/api/state", Origin="http://evil.example")[0], 403)
        self.assertEqual(ask("/api/state", Origin="null")[0], 403)
        self.assertEqual(ask("/api/state", Sec_Fetch_Site="cross-site")[0], 403)
        self.assertEqual(ask("/api/state", Origin=f"http://127.0.0.1:{port}")[0], 200)

    def test_odd_paths(self):
        for path in ("//api/state", "/api/../api/state", "/%2e%2e/etc/passwd", "/api/%73tate", "/api/state/", "/etc/passwd", "/app.js.map"):
            self.assertIn(self.server.ask(path)[0], (401, 404), path)

    def test_bodies_and_methods(self):
        with socket.create_connection(("127.0.0.1", self.server.port), 20) as s:  # refused before it is sent
            s.sendall((f"POST /api/tiles HTTP/1.1\r\nHost: 127.0.0.1:{self.server.port}\r\nContent-Length: {2 << 20}\r\n"
                       f"X-Opwatch-Token: {self.server.token}\r\n\r\n").encode())
            self.assertIn(b" 413 ", s.recv(200))
        self.assertEqual(self.server.ask("/api/tiles")[0], 405)
        self.assertEqual(self.server.ask("/api/state", b"x")[0], 405)
        self.assertEqual(self.server.ask("/api/state", method="DELETE")[0], 405)

    def test_page_needs_no_token_and_says_nothing(self):
        status, body = self.server.ask("/", X_Opwatch_Token=None)
        self.assertEqual(status, 200)
        self.assertIn("default-src 'none'", self.server.headers["Content-Security-Policy"])
        self.assertEqual(self.server.headers["Referrer-Policy"], "no-referrer")
        self.assertNotIn(b"resnet", body)
        self.assertNotIn("Access-Control-Allow-Origin", self.server.headers)

    def test_token_is_not_in_the_process_list(self):
        shown = pathlib.Path(f"/proc/{self.server.process.pid}/cmdline").read_bytes()
        self.assertNotIn(self.server.token.encode(), shown)


class Devices(unittest.TestCase):
    """Gaps of a device and chains of links, against the trace itself."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.events = []
        self.slice(1, 0, 900, "load", "cpu_op")
        self.slice(1, 100, 300, "read", "cpu_op")
        self.launch(1, 1000, 1100, 50)
        self.launch(2, 1010, 1300, 50)  # launched before the gap: it waited
        path = folder.name + "/t.json"
        pathlib.Path(path).write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0}], "traceEvents": self.events}))
        self.server = Server(path)
        self.addCleanup(self.server.stop)
        self.server.wait()

    def slice(self, tid, ts, dur, name, cat, pid=1, **args):
        self.events.append({"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": name, "cat": cat, "args": args})

    def launch(self, number, at, start, dur):
        self.slice(1, at, 5, "cudaLaunchKernel", "cuda_runtime", correlation=number)
        self.slice(7, start, dur, f"kernel {number}", "kernel", 0, correlation=number, device=0, stream=7)
        if number == 1:  # something before the first gap
            self.slice(1, -50, 5, "cudaLaunchKernel", "cuda_runtime", correlation=9)
            self.slice(7, -20, 30, "kernel 9", "kernel", 0, correlation=9, device=0, stream=7)

    def test_gap(self):
        rows = self.server.get("/api/rows")
        tracks = {track["id"]: track for track in rows["tracks"]}
        row = next(row for row in rows["rows"] if tracks[row["track"]]["kind"] == "stream")["row"]
        late = self.server.get("/api/gap", row=row, at=(50 + 500) * 1000)
        self.assertEqual((late["from"], late["to"], late["launched"]), (60000, 1150000, 1050000))
        self.assertEqual(late["after"]["name"], "kernel 1")
        # "load" covers 10 … 900, of which "read" covers 300; what is nested counts for itself only
        self.assertEqual([(d["name"], d["ns"]) for d in late["during"][:2]], [("load", 590000), ("read", 300000)])
        queued = self.server.get("/api/gap", row=row, at=(50 + 1200) * 1000)
        self.assertEqual((queued["from"], queued["to"], queued["launched"], queued["during"]), (1200000, 1350000, 1060000, []))
        self.assertFalse(self.server.get("/api/gap", row=row, at=(50 + 1120) * 1000)["gap"])
        self.assertEqual(self.server.ask("/api/gap?row=99&at=0")[0], 404)

    def test_chain(self):
        found = self.server.get("/api/search", q="^kernel 1$")["rows"][0]["longest"]
        chain = self.server.get("/api/chain", id=found)
        self.assertEqual([(link["from"]["name"], link["to"]["name"]) for link in chain["links"]], [("cudaLaunchKernel", "kernel 1")])
        self.assertEqual(self.server.ask("/api/chain?id=0")[0], 404)


class Hostile(unittest.TestCase):
    """Clients that misbehave. The server answers others before, meanwhile or at the latest afterwards."""

    def setUp(self):
        self.server = Server(SAMPLE)
        self.addCleanup(self.server.stop)
        self.server.wait()

    def test_a_thousand_connections_and_slow_headers(self):
        waiting, sockets = [], []
        with contextlib.ExitStack() as stack:
            for _ in range(1000):
                waiting.append(stack.enter_context(socket.socket()))
                waiting[-1].setblocking(False)  # those that are not accepted would wait
                waiting[-1].connect_ex(("127.0.0.1", self.server.port))

            def connected():  # a busy machine takes a while to connect them
                for s in list(waiting):
                    with contextlib.suppress(OSError):
                        s.send(b"GET /api/state HTTP/1.1\r\nHost: ")
                        sockets.append(s)
                        waiting.remove(s)
                return len(sockets) > 100
            until(connected, lambda: f"only {len(sockets)} connections")
            threads = int(re.search(r"Threads:\s+(\d+)", pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text())[1])
            self.assertLess(threads, 200)
            # Headers that do not come: the server ends the connection by itself.
            slow = sockets[0]
            slow.settimeout(PATIENCE)
            with contextlib.suppress(ConnectionResetError):
                self.assertLess(len(slow.recv(4096)), 4096)

        def answers():
            with contextlib.suppress(OSError, http.client.HTTPException):
                return self.server.ask("/api/state")[0] == 200
            return False
        until(answers, "the server does not answer any more", pause=0.1)

    def test_random_requests(self):
        """Requests with bytes changed, cut, repeated. Fixed seeds; OPWATCH_FUZZ_REQUESTS asks for more."""
        random = Random(20261117)
        head = f"Host: 127.0.0.1:{self.server.port}\r\nX-Opwatch-Token: {self.server.token}\r\nConnection: close\r\n"
        gets = ["/api/view?name=work&limit=3&step=1&order_by=micros", "/api/event?id=7", "/api/near?row=1&at=5&direction=-1", "/api/rows",
                "/api/gap?row=2&at=100", "/api/chain?id=9", "/api/graph?open=resnet%0Aresnet/a", "/api/search?q=(Conv|%5Ba-z%5D%2B)", "/",
                "/api/area?from=0&to=900000&tracks=1,2,3", "/api/source?file=train.py", "/api/folded?name=scope&value=micros", "/api/diff"]
        posts = [("/api/tiles", "1 2 3\n0 20 0"), ("/api/names", "1\n2\n99999"), ("/api/ask", "time_by_phase\na=b"), ("/api/freeze", "1")]
        requests = [f"GET {path} HTTP/1.1\r\n{head}\r\n".encode() for path in gets]
        requests += [f"POST {path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}".encode() for path, body in posts]
        for _ in range(int(os.environ.get("OPWATCH_FUZZ_REQUESTS", "200"))):
            data = bytearray(random.choice(requests))
            for _ in range(random.randint(0, 6)):
                at = random.randrange(len(data))
                kind = random.randrange(4)
                if kind == 0:
                    data[at] = random.randrange(256)
                elif kind == 1:
                    del data[at:at + random.randint(1, 20)]
                elif kind == 2:
                    data[at:at] = data[at:at + random.randint(1, 40)] * random.choice((1, 1, 200))
                else:
                    data[at:at] = random.choice((b"%00", b"%ff", b"-9223372036854775808", b"\r\n", b"&", b"=" * 50, b"9" * 30, b"/.."))
                data = data or bytearray(b"x")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.server.port), 10) as s:
                s.settimeout(0.3)  # the server waits ten seconds for what is missing
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):
                    pass
            self.assertIsNone(self.server.process.poll(), bytes(data))
        self.assertEqual(self.server.ask("/api/state")[0], 200)

    def test_names_of_any_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.json")
            long = b"a" * (1 << 20)
            names = [long, b"\xff\xfe\x80", "\u202egnp.evil".encode(), b"<script>alert(1)</script>", b"\\u0000", b"&lt;"]
            path.write_bytes(b'{"traceEvents": [' + b",".join(
                b'{"ph": "X", "pid": 1, "tid": 1, "ts": %d, "dur": 5, "name": "%s"}' % (10 * i, name) for i, name in enumerate(names)) + b"]}")
            server = Server(str(path))
            self.addCleanup(server.stop)
            server.wait()
            for request in ("/api/rows", "/api/view?name=work", "/api/search?q=", "/api/event?id=1", "/api/event?id=2", "/api/graph", "/api/advise"):
                status, body = server.ask(request)
                self.assertEqual(status, 200, request)
                json.loads(body.decode("utf-8"))  # valid, whatever the names are
                self.assertEqual(server.headers["X-Content-Type-Options"], "nosniff")
                self.assertTrue(server.headers["Content-Type"].startswith("application/json"), request)

    def test_token_stays_out_of_what_others_see(self):
        pid = self.server.process.pid
        token = self.server.token.encode()
        for name in ("cmdline", "environ"):
            self.assertNotIn(token, pathlib.Path(f"/proc/{pid}/{name}").read_bytes())
        for path in ("/", "/app.js", "/api/state", "/api/view?name=work", "/api/rows", "/api/nothing"):
            _, body = self.server.ask(path)
            self.assertNotIn(token, body, path)
            self.assertNotIn(self.server.token, str(self.server.headers), path)


OTHER_USER = """
import http.client, os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
pid, port, page, path = sys.argv[1:]
for name in (page, f"/proc/{pid}/environ", f"/proc/{pid}/mem", f"/proc/{pid}/maps", f"/proc/{pid}/fd/1"):
    try:
        open(name, "rb").read(1)
        print("can read", name)
    except PermissionError:
        pass
connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
for request in ("/api/state", "/api/rows", "/api/view?name=work"):
    connection.request("GET", request)
    reply = connection.getresponse()
    body = reply.read()
    if reply.status != 401 or b"resnet" in body:
        print(request, reply.status, body)
try:
    socket.socket(socket.AF_UNIX).connect(path)
    print("can connect to", path)
except PermissionError:
    pass
"""


class Neighbours(unittest.TestCase):
    """The machine has other users: they see the list of processes and every port of the loopback address."""

    def start_with_browser(self, folder):
        """`opwatch ui` with a browser that notes its arguments and stays; returns the process, its address and the file that the browser got."""
        browser = pathlib.Path(folder, "xdg-open")
        browser.write_text(f'#!/bin/sh\nfor word in "$0" "$@"; do echo "$word"; done > {folder}/words.new\nmv {folder}/words.new {folder}/words\nexec sleep 300\n')
        browser.chmod(0o755)
        process = subprocess.Popen([BIN, "ui", SAMPLE], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, "DISPLAY": ":9", "PATH": folder + ":" + os.environ["PATH"]}, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(lambda: os.killpg(process.pid, signal.SIGKILL))
        address = process.stdout.readline().strip()
        if not address:
            self.skipTest(process.stderr.read())
        words = until(lambda: pathlib.Path(folder, "words").exists() and pathlib.Path(folder, "words").read_text().split(), "no browser", pause=0.05)
        return process, address, words

    def test_the_browser_gets_a_private_file(self):
        with tempfile.TemporaryDirectory() as folder:
            process, address, words = self.start_with_browser(folder)
            token = address.partition("#t=")[2]
            self.assertEqual(len(words), 2)
            self.assertNotIn(token, " ".join(words))
            self.assertEqual(stat.S_IMODE(os.stat(words[1]).st_mode), 0o600)
            self.assertIn(address, pathlib.Path(words[1]).read_text())
            for pid in pathlib.Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    self.assertNotIn(token.encode(), (pid / "cmdline").read_bytes(), pid)
            process.send_signal(signal.SIGTERM)  # while the browser is still there
            self.assertEqual(process.wait(PATIENCE), 0)
            self.assertFalse(os.path.exists(words[1]))
            self.assertNotIn(token, process.stderr.read())

    @unittest.skipUnless(os.getuid() == 0, "only root can become another user")
    def test_another_user_gets_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)  # the socket itself must refuse
            process, address, words = self.start_with_browser(folder)
            path = folder + "/s"
            listening = Server(SAMPLE, "--socket", path)
            self.addCleanup(listening.stop)
            done = subprocess.run([sys.executable, "-c", OTHER_USER, str(process.pid), str(urllib.parse.urlsplit(address).port), words[1], path],
                                  capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_files_that_leave_the_server_have_no_token(self):
        with tempfile.TemporaryDirectory() as folder:
            source = folder + "/x.profile"
            pathlib.Path(source).write_bytes(pathlib.Path(SAMPLE).read_bytes())
            server = Server(source)
            self.addCleanup(server.stop)
            server.wait()
            for path, body in (("/api/save", b""), ("/api/sql?format=csv", b"SELECT * FROM event"), ("/api/sql?format=parquet", b"SELECT * FROM event")):
                status, answer = server.ask(path, body)
                self.assertIn(status, (200, 501), path)
                self.assertNotIn(server.token.encode(), answer, path)
            for name in os.listdir(folder):
                self.assertNotIn(server.token.encode(), pathlib.Path(folder, name).read_bytes(), name)


class Starting(unittest.TestCase):
    def test_loopback_only(self):
        server = Server(SAMPLE)
        self.addCleanup(server.stop)
        self.assertTrue(server.address.startswith("http://127.0.0.1:"))
        self.assertEqual(len(server.token), 32)
        listening = [line.split()[1] for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
                     if line.split()[3] == "0A" and line.split()[1].endswith(f":{server.port:04X}")]
        self.assertEqual(listening, [f"0100007F:{server.port:04X}"])

    def test_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/s"
            server = Server(SAMPLE, "--socket", path)
            mode = stat.S_IMODE(os.stat(path).st_mode)
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                self.assertIn(b"200 OK", s.recv(100))
            self.assertEqual((mode, server.stop()), (0o600, 0))
            self.assertFalse(os.path.exists(path))

    def test_files_that_cannot_be_read(self):
        server = Server("/nonexistent/x.json")
        self.addCleanup(server.stop)
        state = server.wait()
        self.assertEqual(state["state"], "failed")
        self.assertIn("/nonexistent/x.json", state["error"])
        self.assertEqual(server.ask("/api/view?name=op")[0], 503)

    def test_redacted(self):
        server = Server(SAMPLE, "--redact")
        self.addCleanup(server.stop)
        self.assertTrue(server.wait()["redacted"])
        self.assertNotIn("block1", json.dumps(server.get("/api/search", q=".")))
        times = [[row["time_ns"] for row in view["rows"]] for view in  # the hashes differ from run to run
                 (server.get("/api/view", name="work"), printed("work", SAMPLE, "--json"))]
        self.assertEqual(*times)

    def test_own_format(self):
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/x.opw"
            subprocess.run([BIN, "convert", SAMPLE, "-o", path], check=True, capture_output=True)
            server = Server(path)
            self.addCleanup(server.stop)
            server.wait()
            self.assertEqual(server.get("/api/view", name="work")["rows"], printed("work", SAMPLE, "--json")["rows"])
            os.truncate(path, 4096)  # while it is open: an error, not a crash
            status, body = server.ask("/api/area?from=0&to=1000000000")
            self.assertIn(status, (200, 500, 503), body)
            self.assertEqual(server.get("/api/state")["state"], "ready")

    def test_cancel_when_all_is_read(self):
        """Nothing is cancelled: queries, comparisons and files that change still work."""
        server = Server(SAMPLE)
        self.addCleanup(server.stop)
        server.wait()
        self.assertEqual(server.ask("/api/cancel", b"")[0], 200)
        self.assertEqual(server.get("/api/state")["state"], "ready")
        self.assertEqual(len(server.get("/api/ranks")["rows"]), 1)

    def test_cancel(self):
        with tempfile.TemporaryDirectory() as folder:
            fifo = folder + "/f.json"
            os.mkfifo(fifo)
            server = Server(fifo)
            self.addCleanup(server.stop)
            with open(fifo, "wb", buffering=0) as f:
                f.write(b'{"traceEvents": [\n')
                self.assertEqual(server.get("/api/state")["state"], "loading")
                self.assertEqual(server.get("/api/state", wait=1)["state"], "loading")  # it waits for the end of loading, but not for long
                self.assertEqual(server.ask("/api/cancel", b"")[0], 200)
                for _ in range(200):
                    if server.get("/api/state")["state"] != "loading":
                        break
                    with contextlib.suppress(BrokenPipeError):
                        f.write(b'{"ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"name":"a"},\n' * 10000)
            state = server.wait()
            self.assertEqual((state["state"], state.get("error")), ("failed", "loading was cancelled"))


if __name__ == "__main__":
    unittest.main()
