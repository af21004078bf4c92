#!/usr/bin/python3
"""Four real jobs at once under one daemon, which is killed and started anew meanwhile: PyTorch with loader workers, two ranks
with gloo, an OpenCL program in C, plain Python. Each is told from the others, and what is kept of each is its own. Needs what
record_jobs_test.py needs; jobs without theirs are left out."""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from record_jobs_test import BIN, LIBRARY, OPENCL, PYTHON, TRAIN, environment, has  # pylint: disable=wrong-import-position

# Until it is told to end, and a little longer.
PLAIN = """
import os, sys, time
done = 0
def work():
    global done
    for k in range(50):
        with open(__file__, 'rb') as f: f.read()
    done += 50
while not os.path.exists(sys.argv[1]):
    work()
    time.sleep(0.05)
work()
print(done, flush=True)
"""


class FourJobs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.socket = os.path.join(self.dir, "socket")
        self.log = os.path.join(self.dir, "log")
        self.go = os.path.join(self.dir, "go")
        self.daemon = None
        self.running = {}
        self.addCleanup(self.end_all)

    def end_all(self):
        for p in [self.daemon, *(p for group in self.running.values() for p in group)]:
            if p and p.poll() is None:
                p.kill()
            if p:
                p.wait()

    def start_daemon(self):
        with open(self.log, "ab") as log:
            size = os.path.getsize(self.log)
            self.daemon = subprocess.Popen([BIN, "daemon", "--socket", self.socket, "--dir", self.dir + "/rings", "--no-kineto"],
                                           stderr=log, env=environment())
        self.wait(lambda: b"serving at" in pathlib.Path(self.log).read_bytes()[size:], "the daemon does not start")

    def wait(self, condition, what):
        for _ in range(6000):
            if condition():
                return
            time.sleep(0.05)
        self.fail(f"{what}: {self.jobs()}; {pathlib.Path(self.log).read_text()}")

    def jobs(self):
        p = subprocess.run([BIN, "jobs", "--json", "--socket", self.socket], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, f"{p.stderr}; {self.daemon.poll()}; {pathlib.Path(self.log).read_text()}")
        return {row["job"]: row for row in json.loads(p.stdout)["rows"]}

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        pathlib.Path(path).write_text(text, encoding="utf8")
        return path

    def spawn(self, name, command, **env):
        """Each of the jobs runs until the file GO is there, however long the daemon is away."""
        log = open(os.path.join(self.dir, name + ".log"), "ab")
        self.addCleanup(log.close)
        self.running.setdefault(name, []).append(subprocess.Popen(command, stdout=log, stderr=log,
                                                                  env=environment(GO=self.go, **env)))

    def run_named(self, name, *command):
        self.spawn(name, [BIN, "record", "--job", name, "--socket", self.socket, "--", *command])

    def start_ranks(self):
        """As a launcher would that knows nothing of names: both are told the same place to meet at."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = str(s.getsockname()[1])
        script = self.write("ranks.py", TRAIN)
        for rank in ("0", "1"):
            self.spawn("ranks.py", [PYTHON, script, "40", "0"], RANK=rank, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=port, LD_PRELOAD=LIBRARY, OPWATCH_RECORDER_SOCKET=self.socket)

    def start_opencl(self):
        if not os.path.exists("/etc/OpenCL/vendors/pocl.icd") or not os.path.exists("/usr/include/CL/cl.h"):
            return
        source = self.write("job.c", OPENCL)
        program = os.path.join(self.dir, "job")
        subprocess.run(["cc", "-o", program, source, "-lOpenCL"], check=True, capture_output=True)
        self.run_named("opencl", "sh", "-c", f"while ! [ -e {self.go} ]; do sleep 0.05; done; exec {program}")

    def rows(self, name, view, *options):
        p = subprocess.run([BIN, view, "--json", "--job", name, "--socket", self.socket, *options], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]

    def names(self, job):
        return {row["name"] for row in self.rows(job, "op", "--max-depth", "100000")}

    def test_four_jobs(self):
        self.start_daemon()
        if has("torch"):
            self.run_named("loader", PYTHON, self.write("train.py", TRAIN), "60", "2")
            self.start_ranks()
        self.start_opencl()
        self.run_named("plain", PYTHON, self.write("plain.py", PLAIN), self.go)
        self.wait(lambda: set(self.jobs()) == set(self.running) and self.jobs()["plain"]["events"], "jobs do not come")
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()
        self.start_daemon()
        self.wait(lambda: all(r["state"] == "running" for r in self.jobs().values()), "jobs do not come again")
        self.write("go", "")
        for name, group in self.running.items():
            for p in group:
                self.assertEqual(p.wait(), 0, pathlib.Path(self.dir, name + ".log").read_text())
        self.wait(lambda: all(r["state"] == "ended" for r in self.jobs().values()), "jobs do not end")
        rows = self.jobs()
        self.assertEqual(set(rows), set(self.running))
        for name, row in rows.items():
            self.assertEqual(row["drops"], 0, name)
            damage = [n for n in self.rows(name, "notes") if n["kind"] in ("damaged", "dropped", "missing")]
            self.assertFalse(damage, name)
        self.check_plain(rows["plain"])
        if "loader" in rows:
            self.check_loader(rows["loader"])
            self.check_ranks(rows["ranks.py"])
        if "opencl" in rows:
            self.check_opencl(rows["opencl"])

    def check_plain(self, row):
        self.assertEqual((row["framework"], row["ranks"]), ("Python", 1))
        opens = [r["runs"] for r in self.rows("plain", "work") if r["name"] == "open"]
        done = int(pathlib.Path(self.dir, "plain.log").read_text().split()[-1])
        self.assertGreaterEqual(sum(opens), done)
        self.assertLess(sum(opens), done + 1500)
        self.assertFalse([n for n in self.names("plain") if n.startswith(("aten::", "cl"))])

    def check_loader(self, row):
        self.assertTrue(row["framework"].startswith("PyTorch"), row)
        self.assertEqual(len(self.rows("loader", "steps")), 60)
        kinds = [r["kind"] for r in self.rows("loader", "tracks")]
        self.assertGreaterEqual(kinds.count("loader"), 2)
        self.assertGreater(row["step_ns"], 19e6)
        self.assertFalse([n for n in self.names("loader") if n.startswith("gloo:")])

    def check_ranks(self, row):
        self.assertTrue(row["identity"].startswith("master 127.0.0.1:"), row)
        self.assertEqual(row["ranks"], 2)
        steps = self.rows("ranks.py", "steps")
        self.assertEqual([sum(s["rank"] == r for s in steps) for r in (0, 1)], [40, 40])
        for rank in (0, 1):
            self.assertGreater(sum(s["communication_ns"] for s in steps if s["rank"] == rank), 0)

    def check_opencl(self, row):
        self.assertEqual(row["framework"], "OpenCL", row)
        device = sum(r["events"] for r in self.rows("opencl", "tracks") if r["kind"] in ("stream", "copy"))
        self.assertEqual(device, 3 * 40)
        self.assertFalse([n for n in self.names("opencl") if n.startswith("aten::")])


if __name__ == "__main__":
    unittest.main()
