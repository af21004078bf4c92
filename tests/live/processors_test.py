#!/usr/bin/python3
"""
Computing without recorded calls is not idle, waiting for a processor is a phase of its own, and threads that sleep do not come
before the one that works. The truth is the kernel's account of the program itself.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"
WORK = """
import json, sys, threading, time
def sleeper():
    time.sleep(100)
for _ in range(4):
    threading.Thread(target=sleeper, daemon=True).start()
def work(n):
    return sum(i * i % 7 for i in range(n))
def account():
    with open("/proc/thread-self/schedstat") as f: return [int(x) for x in f.read().split()[:2]]
sleeps = float(sys.argv[1])
open("/etc/passwd").read()
first, begin = account(), time.monotonic_ns()
while time.monotonic_ns() - begin < 2e9:
    work(20000)
    time.sleep(sleeps)
open("/etc/passwd").read()
running, waiting = (b - a for a, b in zip(first, account()))
print(json.dumps({"all": time.monotonic_ns() - begin, "running": running, "waiting": waiting}))
"""


class ProcessorsTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.file = os.path.join(self.dir, "x.opw")
        pathlib.Path(self.dir, "work.py").write_text(WORK)

    def record(self, sleeps, *prefix):
        p = subprocess.run([BIN, "record", "-o", self.file, "--", *prefix, PYTHON, os.path.join(self.dir, "work.py"), str(sleeps)],
                           capture_output=True, text=True, timeout=100)
        self.assertEqual(p.returncode, 0, p.stderr)
        rows = self.view("phases")
        return json.loads(p.stdout), {r["phase"]: r["share_ns"] for r in rows}

    def view(self, name, *options):
        p = subprocess.run([BIN, name, self.file, "--json", *options], capture_output=True, text=True, check=True)
        return json.loads(p.stdout)["rows"]

    def check(self, sleeps, *prefix):
        truth, phases = self.record(sleeps, *prefix)
        if truth["all"] > 3e9:
            self.skipTest("the machine is too busy")
        # Start and end of the interpreter are in the recording, too, and the last look is up to 40 ms before the end.
        near = lambda got, want: self.assertLess(abs(got - want), 0.1 * want + 150e6, (truth, phases))
        near(phases["host"], truth["running"])
        self.assertLess(abs(phases["run_queue"] - truth["waiting"]), 0.15 * truth["waiting"] + 250e6, (truth, phases))
        self.assertLess(phases["idle"], truth["all"] - truth["running"] - truth["waiting"] + 400e6, (truth, phases))

    def test_computes(self):
        self.check(0)

    def test_computes_and_sleeps(self):
        self.check(0.005)

    def test_waits_for_a_processor(self):
        """Three of them on one processor: each gets a third."""
        processor = str(min(os.sched_getaffinity(0)))
        spin = ["taskset", "-c", processor, PYTHON, "-c", "while True: pass"]
        others = [subprocess.Popen(spin) for _ in range(2)]
        try:
            self.check(0, "taskset", "-c", processor)
            verdict = subprocess.run([BIN, "verdict", self.file], capture_output=True, text=True, check=True).stdout
            self.assertIn("run_queue", json.dumps(self.view("phases")), verdict)
        finally:
            for p in others:
                p.kill()
                p.wait()

    def test_sleeping_threads(self):
        self.record(0)
        functions = self.view("functions")
        self.assertNotIn("sleeper", [f["name"] for f in functions])
        self.assertIn("sleeper", [f["name"] for f in self.view("functions", "--metric", "wall")])


if __name__ == "__main__":
    unittest.main()
