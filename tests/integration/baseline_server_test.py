#!/usr/bin/python3
"""`opwatch baseline` on a real ClickHouse server: runs come back whole, a nightly job gets the exit codes of docs/ci.md, a server that dies leaves no
half run, and what is missing or refused is said."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ["OPWATCH_SRC"])
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/support"))
import jobsim  # noqa: E402
from jobsim import US, Shape  # noqa: E402
from support import clickhouse  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
LIMIT = ("--fail-if", "step_time > 3%")


def setUpModule():
    if not clickhouse.installed():
        print("skipped: clickhouse-server is not installed (tools/setup integration installs it)", file=sys.stderr)
        sys.exit(77)
    if "libcurl was not found" in subprocess.run([BIN, "--version"], capture_output=True, text=True, check=False).stdout:
        print("skipped: opwatch was built without libcurl", file=sys.stderr)
        sys.exit(77)
    Server.folder = tempfile.mkdtemp(prefix="opwatch-baseline-")
    unittest.addModuleCleanup(shutil.rmtree, Server.folder)
    cluster = clickhouse.Cluster(1)
    unittest.addModuleCleanup(cluster.__exit__)
    Server.server, = cluster.__enter__()


class Server(unittest.TestCase):
    folder = server = None
    seed = 0

    def setUp(self):
        if self.server.process.poll() is not None:
            self.server.start()
        self.database = self.id().rsplit(".", 1)[1]
        self.server.ask(f"CREATE DATABASE {self.database}")
        self.place = self.server.url(self.database)

    def trace(self, name, kernel=220, device=None):
        Server.seed += 1
        document = jobsim.trace(jobsim.simulate(Shape(layers=5, steps=6, kernel=kernel * US, seed=Server.seed))[0])
        if device:
            document["deviceProperties"][0]["name"] = device
        pathlib.Path(self.folder, name).write_text(json.dumps(document), encoding="utf-8")
        return name

    def run_it(self, *words, code=0, **env):
        temp = tempfile.mkdtemp(dir=self.folder)
        done = subprocess.run([BIN, "baseline", *words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=300,
                              env={**os.environ, "TMPDIR": temp, "OPWATCH_CLICKHOUSE_PASSWORD": clickhouse.PASSWORD, **env})
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        self.assertNotIn(clickhouse.PASSWORD, done.stderr + done.stdout)
        self.assertEqual(os.listdir(temp), [])  # nothing stays behind
        return done

    def rows(self):
        return json.loads(self.run_it("list", self.place, "--json").stdout)["rows"]

    def test_nightly_job(self):
        """The same job as with a folder: the same exit codes, and the same numbers."""
        self.assertIn("no runs yet", self.run_it("list", self.place).stdout)
        self.assertIn("0 runs", self.run_it("check", self.place, self.trace("trace.json"), *LIMIT, code=6).stderr)
        commits = ["a", "b'; DROP TABLE x --", "tab\there", "é"]
        for commit in commits:
            self.trace("trace.json", device="A100")
            self.run_it("add", self.place, "trace.json", "--commit", commit)
            self.run_it("add", "runs", "trace.json", "--commit", commit)
        rows = self.rows()
        self.assertEqual([(r["run"], r["commit"], r["file"]) for r in rows], [(i + 1, c, "trace.json") for i, c in enumerate(commits)])
        self.assertEqual({r["configuration"]["device"] for r in rows}, {"A100"})
        self.assertTrue(all(r["host"] == os.uname().nodename and r["added"] for r in rows))
        self.run_it("check", self.place, *(self.trace(f"trace{i}.json", device="A100") for i in range(4)), *LIMIT)
        slow = [self.trace(f"trace{i}.json", kernel=260, device="A100") for i in range(4)]
        answers = [json.loads(self.run_it("check", place, *slow, *LIMIT, "--json", code=5).stdout) for place in (self.place, "runs")]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual((answers[0]["conclusion"], answers[0]["runs_base"]), ("slower", 4))
        self.run_it("check", self.place, slow[0], *LIMIT, code=6)
        self.run_it("check", self.place, self.trace("other.json", device="MI300"), *LIMIT, code=4)

    def test_whole_files(self):
        """A profile of several parts comes back byte by byte."""
        events = ",".join('{"ph":"X","name":"op%d","pid":1,"tid":%d,"ts":%d,"dur":7,"args":{"a":"%s"}}'
                          % (i % 977, i % 7, i * 10, hashlib.sha256(str(i).encode()).hexdigest()) for i in range(90_000))
        pathlib.Path(self.folder, "big.json").write_text('{"traceEvents":[%s]}' % events, encoding="utf-8")
        self.run_it("add", self.place, "big.json")
        size, parts = self.server.ask(f"SELECT bytes, parts FROM {self.database}.opwatch_baseline").split()
        self.assertGreater(int(parts), 1)
        self.assertEqual(self.server.ask(f"SELECT sum(length(data)), count() FROM {self.database}.opwatch_baseline_part"), f"{size}\t{parts}\n")
        # The same recording is not compared with itself: it came back as it was.
        done = self.run_it("check", self.place, "big.json", code=4)
        self.assertIn("none of its 1 runs", done.stderr)
        # A part that was sent twice counts once.
        self.server.ask(f"INSERT INTO {self.database}.opwatch_baseline_part SELECT * FROM {self.database}.opwatch_baseline_part")
        self.server.ask(f"INSERT INTO {self.database}.opwatch_baseline SELECT * FROM {self.database}.opwatch_baseline")
        self.assertEqual(len(self.rows()), 1)
        self.server.ask(f"ALTER TABLE {self.database}.opwatch_baseline_part DROP PARTITION '{self.rows()[0]['id']}'")
        self.assertIn("is incomplete", self.run_it("check", self.place, "big.json", code=4).stderr)

    def test_server_dies(self):
        """No server: a message and no run; what came before is still there after a restart."""
        self.run_it("add", self.place, self.trace("a.json"))
        self.server.kill()
        for words in (["add", self.place, "a.json"], ["list", self.place], ["check", self.place, "a.json", *LIMIT]):
            self.assertIn("opwatch: ", self.run_it(*words, code=1).stderr)
        self.server.start()
        self.assertEqual([r["file"] for r in self.rows()], ["a.json"])

    def test_refused(self):
        """Wrong passwords, users that may only read, addresses that are none."""
        self.trace("a.json")
        self.assertIn("opwatch: ", self.run_it("add", self.place, "a.json", code=1, OPWATCH_CLICKHOUSE_PASSWORD="wrong").stderr)
        looker = self.server.url(self.database, "looker")
        self.assertIn("opwatch: ", self.run_it("add", looker, "a.json", code=1, OPWATCH_CLICKHOUSE_PASSWORD="").stderr)
        self.run_it("add", self.place, "a.json")
        self.assertIn("a.json", self.run_it("list", looker, OPWATCH_CLICKHOUSE_PASSWORD="").stdout)
        self.run_it("list", "clickhouse://user:password@localhost/x", code=2)
        self.run_it("list", "ftp://localhost/x", code=2)


if __name__ == "__main__":
    unittest.main()
