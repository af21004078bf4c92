#!/usr/bin/python3
"""What the daemon sends elsewhere: roll-ups and anomalies into a real ClickHouse server, which is lost and comes back; metrics to a
receiver of OpenTelemetry; anomalies to an address and to a program; and `top --on`, which shows it. Needs python3-torch."""
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from record_jobs_test import BIN, LIBRARY, PYTHON, environment, has  # pylint: disable=wrong-import-position
from support import clickhouse  # pylint: disable=wrong-import-position
from support.patience import until  # pylint: disable=wrong-import-position

TOKEN = "0123456789abcdef01"
NAME = "it's \"a\"; $(touch hit) job"
JOB = """
import os, sys, time, torch
torch.set_num_threads(1)
net = torch.nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
for i in range(1 << 30):
    time.sleep(0.02)
    torch.mm(torch.ones(64, 64), torch.ones(64, 64))
    opt.zero_grad(); net(torch.ones(8)).sum().backward(); opt.step()
    while os.path.exists('stall'): time.sleep(0.05)
    if os.path.exists('end'): break
"""


class Receiver:
    """Keeps what is posted to it; refuses it while `status` is not 200."""

    def __init__(self):
        self.got, self.status = [], 200
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.status == 200:
                    receiver.got.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = "http://127.0.0.1:%d" % self.server.server_port

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def listening(pid):
    """Addresses on which a process waits for connections over TCP."""
    inodes = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            inodes.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass
    found = []
    for file in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(file) as f:
            for line in list(f)[1:]:
                fields = line.split()
                if fields[3] == "0A" and "socket:[%s]" % fields[9] in inodes:
                    found.append(fields[1])
    return found


@unittest.skipUnless(has("torch") and clickhouse.installed(), "needs python3-torch and clickhouse-server")
class Fleet(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dir = self.folder.name
        cluster = clickhouse.Cluster(1)
        self.server = cluster.__enter__()[0]
        self.addCleanup(cluster.__exit__)
        self.server.ask("CREATE DATABASE fleet")
        self.hook, self.otlp = Receiver(), Receiver()
        self.addCleanup(self.hook.close)
        self.addCleanup(self.otlp.close)
        self.url = "clickhouse://%s@%s:%d/fleet" % (clickhouse.USER, self.server.host, self.server.http)
        self.env = {**environment(), "OPWATCH_CLICKHOUSE_PASSWORD": clickhouse.PASSWORD, "OPWATCH_ANOMALY_TOKEN": "s3cret"}

    def path(self, name, text=None, mode=0o644):
        path = os.path.join(self.dir, name)
        if text is not None:
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, mode)
        return path

    def start(self, *argv):
        with open(self.path("log"), "ab") as log:
            p = subprocess.Popen(argv, cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(p.wait)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        return p

    def log(self):
        with open(self.path("log")) as f:
            return f.read()

    def wait(self, condition, what, seconds=120):
        until(condition, lambda: "%s: %s" % (what, self.log()), seconds, 0.1)

    def count(self, table, where="1"):
        try:
            return int(self.server.ask("SELECT count() FROM fleet.%s WHERE %s" % (table, where)))
        except (OSError, clickhouse.Refused):
            return 0

    def test_all(self):
        program = self.path("on-anomaly", "#!/bin/sh\ncat > got.new; echo \"$#\" >> arguments; mv got.new got\n", 0o755)
        daemon = self.start(BIN, "daemon", "--socket", self.path("socket"), "--dir", self.path("rings"), "--no-kineto", "--push", self.url,
                            "--push-every", "1s", "--otlp", self.otlp.address + "/v1/metrics", "--anomaly-post", self.hook.address + "/hook?x=1",
                            "--anomaly-run", program, "--on-stall", "2s", "--listen", "127.0.0.1:0", "--token-file",
                            self.path("token", TOKEN + "\n", 0o600))
        self.wait(lambda: os.path.exists(self.path("socket")), "no daemon")
        job = self.start(BIN, "record", "--job", NAME, "--socket", self.path("socket"), "--", PYTHON, self.path("job.py", JOB))
        self.wait(lambda: self.count("opwatch_live_job", "steps > 20 AND steps_per_s > 1 AND cpu >= 0 AND memory_bytes > 1000000"), "no roll-ups")
        self.check_rows()
        self.check_otlp()
        self.assertEqual([address.split(":")[0] for address in listening(daemon.pid)], ["0100007F"])  # where it was asked to
        self.questions()
        self.stall()
        self.lose_the_server(job)
        self.assertFalse(os.path.exists(self.path("hit")))
        self.path("end", "")
        self.assertEqual(job.wait(60), 0)
        daemon.terminate()
        self.assertEqual(daemon.wait(60), 0)
        self.assertNotIn(clickhouse.PASSWORD, self.log())
        self.assertNotIn("s3cret", self.log())
        self.assertNotIn(TOKEN, self.log())

    def questions(self):
        address = re.search(r"http://127.0.0.1:\d+/jobs", self.log()).group()
        for token, status in ((None, 401), ("0123456789abcdef00", 401), (TOKEN, 200)):
            request = urllib.request.Request(address, headers={"X-Opwatch-Token": token} if token else {})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    self.assertEqual(answer.status, status)
                    self.assertGreater(json.loads(answer.read().splitlines()[0])["steps"], 0)
            except urllib.error.HTTPError as refused:
                self.assertIn(refused.code, (401, 403))
                self.assertNotEqual(status, 200)

    def check_rows(self):
        row = json.loads(self.server.ask("SELECT * FROM fleet.opwatch_live_job ORDER BY time_ns DESC LIMIT 1 FORMAT JSONEachRow"))
        self.assertEqual((row["host"], row["state"]), (os.uname().nodename, "runs"))
        self.assertIn("job", row["job"])
        self.assertGreater(float(row["step_ns"]), 20e6)
        age = int(self.server.ask("SELECT toInt64(now()) - toInt64(max(time)) FROM fleet.opwatch_live_job"))
        self.assertTrue(-2 <= age < 60, age)
        self.wait(lambda: self.count("opwatch_live_op", "op LIKE 'aten::%' AND self_ns > 0"), "no operations")
        self.assertGreater(self.count("opwatch_live_rank", "own_ns > 0"), 0)
        p = subprocess.run([BIN, "top", "--on", self.url, "--json"], capture_output=True, text=True, env=self.env)
        self.assertEqual(p.returncode, 0, p.stderr)
        shown = json.loads(p.stdout)["rows"]
        self.assertEqual([r["host"] for r in shown], [os.uname().nodename])
        self.assertGreater(shown[0]["step_ms"], 20)
        p = subprocess.run([BIN, "top", "--on", self.url, "--once"], capture_output=True, text=True, env=self.env)
        self.assertRegex(p.stdout, r"job +host +user +state +step_ms")

    def check_otlp(self):
        self.wait(lambda: self.otlp.got, "no metrics")
        path, headers, body = self.otlp.got[-1]
        self.assertEqual((path, headers["Content-Type"]), ("/v1/metrics", "application/json"))
        resource = body["resourceMetrics"][0]
        self.assertIn({"key": "host.name", "value": {"stringValue": os.uname().nodename}}, resource["resource"]["attributes"])
        metrics = {m["name"]: m for m in resource["scopeMetrics"][0]["metrics"]}
        steps = metrics["opwatch.steps"]["sum"]
        self.assertEqual((steps["aggregationTemporality"], steps["isMonotonic"]), (2, True))
        self.assertGreater(int(steps["dataPoints"][0]["asInt"]), 0)
        self.assertLess(abs(int(steps["dataPoints"][0]["timeUnixNano"]) / 1e9 - time.time()), 60)
        self.wait(lambda: any(m["name"] == "opwatch.step.duration" and m["gauge"]["dataPoints"][0]["asDouble"] > 0.02
                              for got in self.otlp.got for m in got[2]["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]), "no duration")
        self.otlp.status = 503  # it may be away as long as it likes

    def stall(self):
        self.path("stall", "")
        self.wait(lambda: self.hook.got and os.path.exists(self.path("got")) and self.count("opwatch_live_anomaly", "kind = 'stall'"), "no anomaly")
        os.unlink(self.path("stall"))
        path, headers, body = self.hook.got[0]
        self.assertEqual((path, headers["Authorization"]), ("/hook?x=1", "Bearer s3cret"))
        with open(self.path("got")) as f:
            read = json.load(f)
        with open(self.path("arguments")) as f:
            self.assertEqual(f.read().split()[0], "0")  # nothing of a job is on a command line
        for message in (body, read):
            self.assertEqual((message["kind"], message["host"]), ("stall", os.uname().nodename))
            self.assertRegex(message["why"], r"^no step for \d")
            self.assertRegex(message["file"], r"-stall-\d+\.opw$")

    def lose_the_server(self, job):
        self.server.kill()
        self.wait(lambda: "trying again" in self.log(), "the loss is not reported")
        time.sleep(2)
        self.assertIsNone(job.poll())
        self.server.start()
        lost = time.time()
        self.wait(lambda: re.search(r"sending again; \d+ messages were dropped", self.log()), "it does not come back")
        self.wait(lambda: self.count("opwatch_live_job", "time_ns > %d" % int(lost * 1e9)), "no new rows")

    def test_redacted(self):
        """With --redact no name of the job, user or host leaves the machine; names of PyTorch's operators do."""
        self.start(BIN, "daemon", "--socket", self.path("socket"), "--dir", self.path("rings"), "--no-kineto", "--push", self.url,
                   "--push-every", "1s", "--otlp", self.otlp.address + "/v1/metrics", "--anomaly-post", self.hook.address + "/hook",
                   "--on-stall", "2s", "--listen", "127.0.0.1:0", "--token-file", self.path("token", TOKEN + "\n", 0o600), "--redact")
        self.wait(lambda: os.path.exists(self.path("socket")), "no daemon")
        job = self.start(BIN, "record", "--job", "secret_project/train", "--socket", self.path("socket"), "--", PYTHON, self.path("job.py", JOB))
        self.wait(lambda: self.count("opwatch_live_op", "op LIKE 'aten::%'"), "no operations")
        self.path("stall", "")
        self.wait(lambda: self.hook.got and self.count("opwatch_live_anomaly") and self.otlp.got, "no anomaly")
        os.unlink(self.path("stall"))
        address = re.search(r"http://127.0.0.1:\d+/jobs", self.log()).group()
        with urllib.request.urlopen(urllib.request.Request(address, headers={"X-Opwatch-Token": TOKEN}), timeout=60) as answer:
            sent = [answer.read().decode()]
        tables = ("job", "rank", "op", "anomaly")
        sent += [self.server.ask("SELECT * FROM fleet.opwatch_live_%s FORMAT JSONEachRow" % t) for t in tables]
        sent += [json.dumps([got[2] for got in receiver.got]) for receiver in (self.otlp, self.hook)]
        self.path("end", "")
        self.assertEqual(job.wait(60), 0)
        for text in sent:
            self.assertRegex(text, r"n[0-9a-f]{7}")
            for word in ("secret", "project", "train", "job.py", self.dir, os.uname().nodename):
                self.assertNotIn(word, text)
        users = {json.loads(line)["user"] for line in sent[1].splitlines()}
        self.assertTrue(all(re.fullmatch("n[0-9a-f]{7,16}", user) for user in users), users)
        self.assertEqual({(a["why"], a["file"]) for a in json.loads(sent[-1])}, {("", None)})

    def test_wrong_use(self):
        for args, words in ((("--anomaly-run", "/bin/true"), "--on-slowdown"), (("--push", "nonsense"), "clickhouse://"),
                            (("--otlp", "ftp://x"), "not an address"), (("--listen", "127.0.0.1:0"), "--token-file"),
                            (("--listen", "0.0.0.0:0"), "--token-file"),
                            (("--listen", "127.0.0.1:0", "--token-file", self.path("short", "abc\n")), "3 characters"), (("--anomaly-run", "no-such-program", "--on-stall", "2s"), "no program")):
            p = subprocess.run([BIN, "daemon", "--socket", self.path("s"), "--dir", self.path("r"), "--no-kineto", *args], capture_output=True,
                               text=True, env=self.env, timeout=60)
            self.assertNotEqual(p.returncode, 0, args)
            self.assertIn(words, p.stderr)


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("skipped: the recorder is not built", file=sys.stderr)
        sys.exit(0)
    unittest.main()
