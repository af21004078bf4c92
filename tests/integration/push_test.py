#!/usr/bin/python3
"""`opwatch push` into two real clickhouse-server processes, with everything that may go wrong on the way.

What must be in the tables is known from the trace that is written here: its number of events, and sums of their times.
After each mishap the rows are compared by COUNT, by these sums and by a sum of hashes over whole rows, which a push
without mishaps gives.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests"))
from support import clickhouse  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
SAMPLE = os.path.join(os.environ["OPWATCH_SRC"], "samples", "resnet.profile")
EVENTS = 120_000
BATCH = 2000
PASSWORD = {"OPWATCH_CLICKHOUSE_PASSWORD": clickhouse.PASSWORD}
# Everything that a row of event has, and the sums that the trace tells.
DIGEST = """SELECT count(), sum(dur), sum(cityHash64(run, id, ifNull(name, ''), ifNull(ts, 0), ifNull(dur, 0),
    ifNull(track, ''), ifNull(op, ''), ifNull(depth, 0), ifNull(self_dur, 0))) FROM {}.event"""


def write_trace(path, events=EVENTS, salt=0):
    """Slices on 40 threads; returns the sum of their durations in nanoseconds."""
    total = 0
    with open(path, "w") as file:
        file.write('{"traceEvents":[\n')
        for i in range(events):
            dur = 1 + (i * 7919 + salt) % 997
            total += dur * 1000
            file.write('%s{"ph":"X","cat":"Op","name":"op_%d/\\u00e9\\"%d","pid":%d,"tid":%d,"ts":%d,"dur":%d,"args":'
                       '{"name":"model/layer_%d/op_%d","op":"T%d"}}\n' % (
                           "," if i else "", i % 300, i % 7, i % 4, i % 40, 1000 * (i // 40), dur, i % 50, i % 300, i % 9))
        file.write("]}\n")
    return total


def setUpModule():
    if not clickhouse.installed():
        print("skipped: clickhouse-server is not installed (tools/setup integration installs it)", file=sys.stderr)
        sys.exit(77)
    version = subprocess.run([BIN, "--version"], capture_output=True, text=True).stdout
    if "libcurl was not found" in version:
        print("skipped: opwatch was built without libcurl", file=sys.stderr)
        sys.exit(77)
    Push.folder = tempfile.mkdtemp(prefix="opwatch-push-")
    unittest.addModuleCleanup(shutil.rmtree, Push.folder)
    Push.trace = os.path.join(Push.folder, "trace.json")
    total = write_trace(Push.trace)
    cluster = clickhouse.Cluster(2)
    unittest.addModuleCleanup(cluster.__exit__)
    Push.one, Push.two = cluster.__enter__()
    # What a push without mishaps gives.
    for name, options in (("alone", []), ("pair", ["--cluster", "two"])):
        for server in (Push.one, Push.two):
            server.ask(f"CREATE DATABASE {name}")
        subprocess.run([BIN, "push", Push.trace, "--to", Push.one.url(name), "--name", "t", *options], check=True,
                       env={**os.environ, **PASSWORD}, stdout=subprocess.DEVNULL)
        Push.digest = Push.one.ask(DIGEST.format(name))
        assert Push.digest.split("\t")[:2] == [str(EVENTS), str(total)], Push.digest


class Push(unittest.TestCase):
    """What the tests below have in common. `shared` is a database whose tables were made before and are emptied."""
    shared = None

    def setUp(self):
        self.database = self.shared or self.id().rsplit(".", 1)[1]
        for server in (self.one, self.two):
            if server.process.poll() is not None:
                server.start()
            if not self.shared:
                server.ask(f"CREATE DATABASE {self.database}")
                self.addCleanup(self.drop, server)
                continue
            for table in server.ask("SELECT DISTINCT table FROM system.parts WHERE active AND table != 'opwatch_schema' "
                                    f"AND database = '{self.database}'").split():
                server.ask(f"TRUNCATE TABLE {self.database}.{table}")

    def drop(self, server):
        if server.process.poll() is not None:
            server.start()
        server.ask(f"DROP DATABASE {self.database}")

    def command(self, *options, file=None, database=None, url=None):
        tables = [] if file or "--table" in options else ["--table", "event,op,source"]
        return [BIN, "push", file or self.trace, "--to", url or self.one.url(database or self.database), "--name", "t",
                "--batch-rows", str(BATCH), *tables, *options]

    def start(self, *options, env=PASSWORD, **more):
        return subprocess.Popen(self.command(*options, **more), env={**os.environ, **env}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def push(self, *options, status=0, env=PASSWORD, **more):
        """Standard output of a push that ends with the status, or standard error if that is not 0."""
        process = self.start(*options, env=env, **more)
        out, err = process.communicate(timeout=600)
        self.assertEqual(process.returncode, status, err)
        self.assertNotIn(clickhouse.PASSWORD, out + err)
        return err if status else out

    def sums(self, *options, **more):
        return json.loads(self.push("--json", *options, **more))

    def rows(self, server, table="event"):
        """How many rows people see."""
        return int(server.ask(f"SELECT count() FROM {self.database}.{table}"))

    def parts(self, server):
        """How many rows of events a node has, published or not; 0 when it does not answer."""
        try:
            return int(server.ask(f"SELECT sum(rows) FROM system.parts WHERE active AND database = '{self.database}' "
                                  "AND table = 'opwatch_event'"))
        except OSError:
            return 0

    def stop_at(self, rows, process, *servers):
        """Stops a push when the nodes have so many rows. It only runs while nobody counts, so that it cannot get far."""
        while True:
            process.send_signal(signal.SIGSTOP)
            if sum(self.parts(server) for server in servers) >= rows:
                break
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
            self.assertIsNone(process.poll(), "the push ended too early for this test")
        self.assertEqual(self.rows(self.one), 0)

    def check(self, *servers):
        for server in servers or (self.one,):
            self.assertEqual(server.ask(DIGEST.format(self.database)), self.digest)


class OneServer(Push):
    shared = "alone"

    def test_once_and_again(self):
        first = self.sums()
        self.check()
        self.assertEqual(first["sent"], first["rows"])
        self.assertEqual(first["batches_found"], 0)
        self.assertFalse(first["published_before"])
        again = self.sums()
        self.assertTrue(again["published_before"])
        self.assertEqual(again["sent"], 0)
        self.check()
        self.assertEqual(self.parts(self.one), EVENTS)

    def test_replacing(self):
        other = os.path.join(self.folder, "other.json")
        write_trace(other, EVENTS // 2, salt=3)
        self.push(file=other)
        self.assertIn("--replace", self.push(status=2))
        self.assertEqual(self.rows(self.one), EVENTS // 2)
        seen, process = set(), self.start("--replace", "--json")
        while process.poll() is None:
            seen.add(self.rows(self.one))
        out, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        self.assertTrue(json.loads(out)["replaced"])
        self.assertLessEqual(seen, {EVENTS // 2, EVENTS})
        self.check()
        self.assertEqual(self.parts(self.one), EVENTS)  # the older rows are gone

    def test_rows_taken_away_come_back(self):
        self.push()
        self.one.ask(f"ALTER TABLE {self.database}.opwatch_event DELETE WHERE opwatch_batch = 3")
        while self.one.ask("SELECT count() FROM system.mutations WHERE NOT is_done") != "0\n":
            time.sleep(0.05)
        self.assertEqual(self.rows(self.one), EVENTS - BATCH)
        sums = self.sums()
        self.assertEqual(sums["sent"], BATCH)
        self.check()

    def test_doubled_rows_are_found(self):
        self.push()
        self.one.ask(f"INSERT INTO {self.database}.opwatch_event SELECT * FROM {self.database}.opwatch_event "
                     "WHERE opwatch_batch = 5")
        self.assertEqual(self.rows(self.one), EVENTS + BATCH)
        self.push()
        self.check()

    def test_interrupted(self):
        process = self.start()
        self.stop_at(5 * BATCH, process, self.one)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("interrupted; nothing was published", err)
        self.assertEqual(self.rows(self.one), 0)
        self.assertGreaterEqual(self.sums()["batches_found"], 5)
        self.check()

    def test_two_pushers(self):
        first = self.start()
        self.stop_at(3 * BATCH, first, self.one)
        err = self.push(status=1)
        first.send_signal(signal.SIGCONT)
        self.assertIn("this run is being pushed from", err)
        self.assertIn(f"(process {first.pid},", err)
        first.communicate(timeout=600)
        self.assertEqual(first.returncode, 0)
        self.check()

    def test_who_claimed_in_the_same_second_keeps_it(self):
        self.one.ask(f"INSERT INTO {self.database}.opwatch_claim SELECT 't', 1, 'zzz', 'elsewhere', 5, now(), 1")
        self.assertIn("from elsewhere (process 5,", self.push(status=1))
        self.one.ask(f"INSERT INTO {self.database}.opwatch_claim SELECT 't', 1, 'zzz', 'elsewhere', 5, now(), 2")
        self.push()
        self.check()

    def test_many_pushers_at_once(self):
        processes = [self.start("--json") for _ in range(4)]
        ended = [(process.communicate(timeout=600), process.returncode) for process in processes]
        self.assertIn(0, [status for _, status in ended], ended)
        self.check()
        self.assertEqual(self.parts(self.one), EVENTS)

    def test_every_file_is_a_run(self):
        for name in ("a", "b"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
            write_trace(os.path.join(self.folder, name, "same.json"), 100, salt=ord(name))
        copy = shutil.copy(os.path.join(self.folder, "a", "same.json"), os.path.join(self.folder, "copy.json"))
        files = [os.path.join(self.folder, name, "same.json") for name in ("a", "b")]
        command = [BIN, "push", "--to", self.one.url(self.database), "--json"]
        env = {**os.environ, **PASSWORD}
        out = subprocess.run([*command, *files], env=env, check=True, capture_output=True, text=True).stdout
        runs = [json.loads(line)["run"] for line in out.splitlines()]
        self.assertEqual(len(set(runs)), 2)
        self.assertTrue(all(re.fullmatch("same(-2)?-[0-9a-f]{8}", run) for run in runs), runs)
        self.assertEqual(self.rows(self.one), 200)
        self.assertEqual(self.one.ask(f"SELECT count(DISTINCT id) FROM {self.database}.event"), "200\n")
        out = subprocess.run([*command, copy], env=env, check=True, capture_output=True, text=True).stdout
        self.assertEqual(json.loads(out)["run"].rsplit("-", 1)[1], runs[0].rsplit("-", 1)[1])

    def test_all_tables_are_there(self):
        rows = self.sums(file=SAMPLE)["rows"]
        names = self.one.ask(f"SELECT name FROM system.tables WHERE database = '{self.database}' AND engine = 'View'")
        self.assertIn("op_step", names.split())
        self.assertEqual(sum(self.rows(self.one, f"`{name}`") for name in names.split()), rows)
        self.assertEqual(self.one.ask(f"SELECT DISTINCT run FROM {self.database}.op"), "t\n")

    def test_redacted(self):
        """No table of the server has a name of the file, nor the file's name."""
        mark = "qzmarkq"
        with tempfile.TemporaryDirectory(suffix=mark) as folder:
            path = pathlib.Path(folder, f"{mark}.json")
            events = [{"ph": "X", "name": f"{mark}_{n % 5}", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5, "args": {f"{mark}_key": mark}}
                      for n in range(50)]
            events += [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": mark}},
                       {"ph": "C", "name": mark, "pid": 1, "ts": 5, "args": {mark: 1}}]
            path.write_text(json.dumps({"traceEvents": events, "otherData": {"user": mark}}))
            for options, there in (((), True), (("--redact",), False)):
                words = [BIN, "push", str(path), "--to", self.one.url(self.database), *options]
                done = subprocess.run(words, env={**os.environ, **PASSWORD}, text=True, capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                if not there:
                    self.assertNotIn(mark, done.stdout)
                found = [t for t in self.one.ask(f"SELECT name FROM system.tables WHERE database = '{self.database}'").split()
                         if mark in self.one.ask(f"SELECT * FROM {self.database}.{t} FORMAT TSV")]
                self.assertEqual(bool(found), there, found)
                for table in self.one.ask(f"SELECT DISTINCT table FROM system.parts WHERE active AND table != 'opwatch_schema' AND database = '{self.database}'").split():
                    self.one.ask(f"TRUNCATE TABLE {self.database}.{table}")

    def test_password_file(self):
        path = os.path.join(self.folder, "password")
        with open(path, "w") as file:
            file.write(clickhouse.PASSWORD + "\n")
        self.push("--password-file", path, env={"OPWATCH_CLICKHOUSE_PASSWORD": "wr0ng"})
        self.check()
        self.assertIn("No such file", self.push("--password-file", path + "x", status=1))

    def test_password_is_nowhere(self):
        url = f"clickhouse://pusher:hunter2@{self.one.host}:{self.one.http}/x"
        self.assertNotIn("hunter2", self.push(status=2, url=url))
        process = self.start()
        self.stop_at(BATCH, process, self.one)
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            self.assertNotIn(clickhouse.PASSWORD.encode(), file.read())
        process.send_signal(signal.SIGCONT)
        process.communicate()
        for name in ("log", "err.log"):
            with open(os.path.join(self.one.folder, name), "rb") as file:
                self.assertNotIn(clickhouse.PASSWORD.encode(), file.read())

    def test_wrong_host(self):
        self.assertIn("cannot be reached", self.push(status=1, url="clickhouse://pusher@no-such-host.invalid/x"))
        self.assertIn("cannot be reached", self.push(status=1, url=f"clickhouse://pusher@{self.one.host}:1/x"))

    def test_not_a_server(self):
        err = self.push(status=1, url=f"clickhouse://pusher@{self.one.host}:{self.one.tcp}/x")
        self.assertRegex(err, "is it a ClickHouse server|broke")

    def test_wrong_password_and_user(self):
        for env, words in (({"OPWATCH_CLICKHOUSE_PASSWORD": "wr0ng"}, "OPWATCH_CLICKHOUSE_PASSWORD"), ({}, "password")):
            err = self.push(status=1, env={**env, "HOME": self.folder})
            self.assertIn(words, err)
            self.assertNotIn("wr0ng", err)
        self.assertIn("Unknown user", self.push(status=1, url=self.one.url(self.database, "nobody")))

    def test_wrong_database(self):
        self.assertIn("CREATE DATABASE", self.push(status=1, database="no_such_database"))

    def test_reader_may_not_push(self):
        err = self.push(status=1, url=self.one.url(self.database, "looker"), env={"OPWATCH_CLICKHOUSE_PASSWORD": ""})
        self.assertIn("may only read", err)

    def test_unknown_cluster_and_table(self):
        self.assertIn("its clusters: two", self.push("--cluster", "three", status=1))
        self.assertIn("no table 'events'", self.push("--table", "events", status=2))

    def test_standard_input(self):
        self.assertIn("save it to a file", self.push(file="-", status=2))


    def ask(self, text, *options, status=0, user=None):
        url = self.one.url(self.database, *([user] if user else []))
        done = subprocess.run([BIN, "sql", "--on", url, text, *options], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL, env={**os.environ, **PASSWORD}, timeout=120)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertNotIn(clickhouse.PASSWORD, done.stdout + done.stderr)
        return done.stderr if status else done.stdout

    def test_asking(self):
        self.push()
        self.assertEqual(self.ask("SELECT count() AS n, sum(dur) AS ns FROM event;", "--csv").split(),
                         ["n,ns", ",".join(self.digest.split("\t")[:2])])
        rows = json.loads(self.ask("SELECT 'a\\tb\\'c' AS t, NULL AS x, toUInt64(-1) AS u, 0.25 AS r, [1,2] AS l", "--json"))
        self.assertEqual(rows["rows"], [{"t": "a\tb'c", "x": None, "u": 2**64 - 1, "r": 0.25, "l": "[1,2]"}])
        self.assertIn("op_7", self.ask("SELECT name FROM event WHERE name LIKE '%op_7/%' LIMIT 1"))
        self.assertEqual(self.ask("CREATE TABLE mine (a Int8) ENGINE = Memory"), "")
        self.assertIn("mine", self.ask("SHOW TABLES"))
        self.ask("DROP TABLE mine")

    def test_asking_wrongly(self):
        self.assertIn("Unknown identifier: nonsense", self.ask("SELECT nonsense FROM event", status=1))
        self.assertIn("Syntax error", self.ask("SELEC 1", status=1))
        self.assertIn("leave it out", self.ask("SELECT 1 FORMAT JSON", status=1))
        self.assertIn("Unknown user", self.ask("SELECT 1", status=1, user="nobody"))
        self.assertIn("one statement", self.ask("SELECT 1", "x", status=2))


class TwoShards(Push):
    shared = "pair"

    def test_cluster(self):
        sums = self.sums("--cluster", "two", "--connections", "3")
        self.assertEqual((sums["nodes"], sums["shards"]), (2, 2))
        self.check(self.one, self.two)
        there = [self.parts(self.one), self.parts(self.two)]
        self.assertEqual(sum(there), EVENTS)
        self.assertLess(max(there), 0.6 * EVENTS)
        self.assertTrue(self.sums("--cluster", "two", url=self.two.url(self.database))["published_before"])
        self.check(self.one, self.two)

    def test_named_nodes(self):
        nodes = f"{self.one.host}:{self.one.http},{self.two.host}"
        self.push("--cluster", "two", "--nodes", nodes)
        self.check(self.one, self.two)
        self.assertIn("more nodes are named", self.push("--cluster", "two", "--nodes", nodes + ",x", status=2))
        self.assertIn("fewer nodes are named", self.push("--cluster", "two", "--nodes", self.one.host, status=2))

    def test_readers_see_all_or_nothing(self):
        seen, process = set(), self.start("--cluster", "two")
        while process.poll() is None:
            seen.add(self.rows(self.two))
        process.communicate()
        seen.add(self.rows(self.two))
        self.assertEqual(process.returncode, 0)
        self.assertEqual(seen, {0, EVENTS})

    def test_pusher_killed_and_resumed(self):
        for rows in (10 * BATCH, 25 * BATCH, 40 * BATCH):
            process = self.start("--cluster", "two", "--json")
            self.stop_at(rows, process, self.one, self.two)
            process.kill()
            process.communicate()
            self.assertEqual(self.rows(self.two), 0)
        sums = self.sums("--cluster", "two")
        self.assertGreaterEqual(sums["batches_found"], 35)
        self.assertLess(sums["sent"], sums["rows"])
        self.check(self.one, self.two)

    def killed_and_restarted(self, server, how, rows=5 * BATCH):
        process = self.start("--cluster", "two", "--json")
        self.stop_at(rows, process, server)
        how(server)
        process.send_signal(signal.SIGCONT)
        told = os.read(process.stderr.fileno(), 65536).decode()  # that a batch did not arrive
        server.start()
        out, err = process.communicate(timeout=600)
        err = told + err
        self.assertEqual(process.returncode, 0, err)
        self.check(self.one, self.two)
        return json.loads(out), err

    def test_node_killed_and_restarted(self):
        sums, err = self.killed_and_restarted(self.two, clickhouse.Server.kill)
        self.assertGreater(sums["repeats"], 0)
        self.assertRegex(err, rf"sending batch \d+ of table \w+ to {self.two.host}:{self.two.http} again")

    def test_home_killed_and_restarted(self):
        self.killed_and_restarted(self.one, clickhouse.Server.kill)

    def test_server_restarted(self):
        self.killed_and_restarted(self.two, clickhouse.Server.end)

    def test_node_killed_twice_and_pusher_once(self):
        # In a database of its own: a killed node has truncated parts back when it starts again, and they would be counted.
        self.database = "killed_twice"
        for server in (self.one, self.two):
            server.ask(f"CREATE DATABASE {self.database}")
            self.addCleanup(self.drop, server)
        process = self.start("--cluster", "two")
        self.stop_at(5 * BATCH, process, self.two)
        self.two.kill()
        process.send_signal(signal.SIGCONT)
        time.sleep(0.5)
        process.kill()
        process.communicate()
        self.two.start()
        self.killed_and_restarted(self.two, clickhouse.Server.kill, self.parts(self.two) + 5 * BATCH)

    def test_node_away_for_too_long(self):
        process = self.start("--cluster", "two", "--retry-for", "2")
        self.stop_at(5 * BATCH, process, self.two)
        self.two.kill()
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(err, f"{self.two.host}:{self.two.http} cannot be reached|connection to {self.two.host}")
        self.assertIn("nothing was published; pushing again continues", err)
        self.two.start()
        self.assertEqual(self.rows(self.one), 0)
        self.push("--cluster", "two")
        self.check(self.one, self.two)

    def test_node_down_from_the_start(self):
        """It is waited for as long as --retry-for says."""
        self.two.kill()
        began = time.monotonic()
        err = self.push("--cluster", "two", "--retry-for", "3", status=1)
        self.assertGreater(time.monotonic() - began, 1.5)
        self.assertIn(f"{self.two.host}:{self.two.http} cannot be reached", err)
        process = self.start("--cluster", "two", "--retry-for", "100")
        time.sleep(1)
        self.assertIsNone(process.poll())
        self.two.start()
        _, err = process.communicate(timeout=200)
        self.assertEqual(process.returncode, 0, err)
        self.check(self.one, self.two)


class OtherTables(Push):
    """Databases that are not as push left them."""

    def test_wrong_nodes(self):
        """Both shards at one server: the cluster does not show what that node has twice."""
        nodes = f"{self.one.host},{self.one.host}"
        self.assertIn("nothing was published", self.push("--cluster", "two", "--nodes", nodes, status=1))
        self.assertEqual(self.one.ask(f"SELECT count() FROM {self.database}.opwatch_publish"), "0\n")

    def test_other_schema_version(self):
        self.push(file=SAMPLE)
        self.one.ask(f"ALTER TABLE {self.database}.opwatch_schema DROP PARTITION tuple()")
        self.one.ask(f"INSERT INTO {self.database}.opwatch_schema VALUES ('0-ab', '', '9.9', now())")
        err = self.push(file=SAMPLE, status=1)
        self.assertIn("have version 0-ab (made by opwatch 9.9)", err)
        self.assertIn("create another database and push to it", err)

    def test_one_run_among_many(self):
        """The key begins with the run and the time, parts of runs merge, and a query on one run reads little of the others."""
        for i in range(30):
            subprocess.run([BIN, "push", SAMPLE, "--to", self.one.url(self.database), "--name", f"r{i}"], check=True,
                           env={**os.environ, **PASSWORD}, stdout=subprocess.DEVNULL)
        key = self.one.ask(f"SELECT engine_full FROM system.tables WHERE database = '{self.database}' AND name = 'opwatch_event'")
        self.assertIn("ORDER BY (run, ifNull(ts, 0))", key)
        for table in self.one.ask(f"SELECT DISTINCT table FROM system.parts WHERE active AND database = '{self.database}'").split():
            self.one.ask(f"OPTIMIZE TABLE {self.database}.{table}")
        parts = self.one.ask(f"SELECT table, count() FROM system.parts WHERE active AND database = '{self.database}' GROUP BY table")
        self.assertLessEqual(int(dict(line.split("\t") for line in parts.splitlines())["opwatch_event"]), 3, parts)
        answer = subprocess.run([BIN, "sql", "--on", self.one.url(self.database), "--csv", "SELECT count() AS n FROM event WHERE run = 'r7'"],
                                env={**os.environ, **PASSWORD}, capture_output=True, text=True)
        self.assertEqual(answer.stdout.split(), ["n", "429"], answer.stderr)

    def engine_of_version_1(self, table):
        """Makes a table again, with its rows, as the first opwatch made it: a partition for each batch, ordered by id."""
        at = f"{self.database}.{table}"
        text = self.one.ask(f"SHOW CREATE TABLE {at}").replace("\\'", "'")
        columns = text[text.index("("):text.index(" ENGINE")]
        order = "id" if re.search(r"[(,] ?`?id`? ", columns) else "tuple()"
        self.one.ask(f"RENAME TABLE {at} TO {at}_new")
        self.one.ask(f"CREATE TABLE {at} {columns} ENGINE = MergeTree PARTITION BY (opwatch_push, opwatch_batch) ORDER BY {order}")
        self.one.ask(f"INSERT INTO {at} SELECT * FROM {at}_new")
        self.one.ask(f"DROP TABLE {at}_new")

    def test_old_layout(self):
        """A database of the first layout: refused, with the way out, and left as it is; its runs can still be read."""
        self.push(file=SAMPLE)
        version = self.one.ask(f"SELECT version FROM {self.database}.opwatch_schema").strip()
        self.assertTrue(version.startswith("2-"), version)
        tables = self.one.ask(f"SELECT name FROM system.tables WHERE database = '{self.database}' AND engine = 'MergeTree' AND name LIKE 'opwatch_%'").split()
        for table in set(tables) - {"opwatch_schema", "opwatch_publish", "opwatch_claim"}:
            self.engine_of_version_1(table)
        self.one.ask(f"ALTER TABLE {self.database}.opwatch_schema DROP PARTITION tuple()")
        self.one.ask(f"INSERT INTO {self.database}.opwatch_schema VALUES ('1-{version[2:]}', '', '0.1.0', now())")
        text = "SELECT name, engine_full FROM system.tables WHERE database = '" + self.database + "' ORDER BY name"
        before = self.one.ask(text), self.rows(self.one, "op")
        self.assertIn("PARTITION BY (opwatch_push, opwatch_batch)", before[0])
        err = self.push(file=SAMPLE, status=1)
        self.assertIn("create another database and push to it, or drop", err)
        self.assertEqual((self.one.ask(text), self.rows(self.one, "op")), before)
        answer = subprocess.run([BIN, "sql", "--on", self.one.url(self.database), "--csv", "SELECT count() AS n FROM event"],
                                env={**os.environ, **PASSWORD}, capture_output=True, text=True)
        self.assertEqual(answer.stdout.split(), ["n", "429"], answer.stderr)
        self.one.ask(f"DROP DATABASE {self.database}")  # the way that the message gives
        self.one.ask(f"CREATE DATABASE {self.database}")
        self.push(file=SAMPLE)
        self.assertNotIn("PARTITION BY (opwatch_push", self.one.ask(text))

    def test_cluster_or_not(self):
        self.push(file=SAMPLE)
        self.assertIn("for one server", self.push("--cluster", "two", file=SAMPLE, status=1))

    def test_changed_tables(self):
        self.push(file=SAMPLE)
        self.one.ask(f"ALTER TABLE {self.database}.opwatch_op DROP COLUMN device")
        self.assertIn("were changed", self.push(file=SAMPLE, status=1))

    def test_table_of_somebody_else(self):
        self.one.ask(f"CREATE TABLE {self.database}.event (mine Int8) ENGINE = Memory")
        self.assertIn("has a table 'event' of its own", self.push(file=SAMPLE, status=1))
        self.assertEqual(self.one.ask(f"SHOW TABLES FROM {self.database}"), "event\n")


class FullDisk(unittest.TestCase):
    """A server on a file system of 40 MB."""

    def test_full_disk(self):
        folder = tempfile.mkdtemp(prefix="opwatch-push-")
        self.addCleanup(shutil.rmtree, folder)
        trace = os.path.join(folder, "trace.json")
        write_trace(trace)
        cluster = clickhouse.Cluster(1)
        self.addCleanup(cluster.__exit__)
        data = os.path.join(cluster.servers[0].folder, "data")
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "opwatch-test", data],
                          capture_output=True).returncode:
            self.skipTest("no file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", "-l", data], check=True)
        (server,) = cluster.__enter__()
        self.addCleanup(server.end)
        server.ask("CREATE DATABASE d")
        with open(os.path.join(data, "ballast"), "wb") as file:
            space = os.statvfs(data)
            file.write(bytes(space.f_bavail * space.f_frsize - 2_000_000))
        done = subprocess.run([BIN, "push", trace, "--to", server.url("d"), "--batch-rows", "5000"], text=True,
                              capture_output=True, env={**os.environ, **PASSWORD}, timeout=300)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("the disk of the server is full", done.stderr)
        os.unlink(os.path.join(data, "ballast"))
        self.assertEqual(server.ask("SELECT count() FROM d.event"), "0\n")
        subprocess.run([BIN, "push", trace, "--to", server.url("d"), "--batch-rows", "5000"], check=True,
                       env={**os.environ, **PASSWORD}, stdout=subprocess.DEVNULL)
        self.assertEqual(server.ask("SELECT count() FROM d.event"), f"{EVENTS}\n")


if __name__ == "__main__":
    unittest.main()
