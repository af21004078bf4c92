#!/usr/bin/python3
"""opwatch record of programs whose children outlive them: daemons, sessions of their own, workers in the background. Without more
the recording ends with the program, and says of whom no more is recorded; with --wait-children it goes on until they end."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import PATIENCE, until  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"
READS = "for i in range({}): open('/etc/passwd', 'rb').read()\n"

# Forks twice into a session of its own, as daemons do, and waits for a file before it reads; the program itself ends with the one
# between, so that one process is left.
DAEMON = """
import os, sys, time
gate, done = sys.argv[1:3]
{before}
middle = os.fork()
if middle:
    os.waitpid(middle, 0)
    sys.exit(3)
os.setsid()
if os.fork():
    os._exit(0)
{then}
"""
WORKS = """
with open(gate + '.pid', 'w') as f:
    f.write(str(os.getpid()))
os.rename(gate + '.pid', gate + '.ready')
while not os.path.exists(gate):
    time.sleep(0.01)
flushed = os.memfd_create('flushed')  # frequent reads would be counted; each of these is recorded
for i in range(800):
    os.fsync(flushed)
open(done, 'w').close()
"""
# Nothing of what the recorder sees is done before the gate opens, which a signal is.
SILENT = """
import signal
signal.sigwait([signal.SIGUSR1])
flushed = os.memfd_create('flushed')
for i in range(800):
    os.fsync(flushed)
"""


def environment():
    return {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "RANK", "SLURM_PROCID")}


class ChildrenTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.file, self.gate, self.done = (os.path.join(self.dir, name) for name in ("x.opw", "gate", "done"))
        self.pids = []
        self.addCleanup(self.end_all)

    def end_all(self):
        for pid in self.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def open_gate(self):
        with open(self.gate, "w", encoding="utf8"):
            pass

    def script(self, before="", then=WORKS):
        path = os.path.join(self.dir, "job.py")
        with open(path, "w", encoding="utf8") as f:
            f.write(DAEMON.format(before=before, then=then))
        return [PYTHON, path, self.gate, self.done]

    def start(self, command, *options):
        # Not a pipe: the children have it, too, and whoever reads it waits for them.
        with open(os.path.join(self.dir, "told"), "w", encoding="utf8") as told:
            return subprocess.Popen([BIN, "record", "-o", self.file, *options, "--", *command], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.DEVNULL, stderr=told, env=environment())

    def told(self):
        with open(os.path.join(self.dir, "told"), encoding="utf8") as f:
            return f.read()

    def child(self):
        def read():
            try:
                with open(self.gate + ".ready", encoding="utf8") as f:
                    return int(f.read())
            except OSError:
                return 0
        pid = until(read, "the child does not come")
        self.pids.append(pid)
        return pid

    def rows(self, view):
        p = subprocess.run([BIN, view, "--json", self.file], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]

    def events_of(self, pid):
        return sum(row["events"] for row in self.rows("tracks") if row["pid"] == pid)

    def notes(self):
        return [row["text"] for row in self.rows("notes")]

    def test_a_daemon_is_told_and_counted(self):
        p = self.start(self.script())
        pid = self.child()
        self.assertEqual(p.wait(timeout=PATIENCE), 3)
        self.assertIn(f"1 process of the job still runs: {pid} (python3)", self.told())
        self.assertIn("--wait-children", self.told())
        self.assertTrue(any(f"1 process of the job still ran: {pid} (python3)" in text for text in self.notes()), self.notes())
        self.open_gate()
        until(lambda: os.path.exists(self.done), "the child does not go on")  # as it would without us

    def test_a_daemon_is_waited_for(self):
        p = self.start(self.script(), "--wait-children")
        pid = self.child()
        until(lambda: f"still runs: {pid} (python3)" in self.told(), self.told)
        self.assertIsNone(p.poll())
        self.open_gate()
        self.assertEqual(p.wait(timeout=PATIENCE), 3, "the status is the program's")
        self.assertGreaterEqual(self.events_of(pid), 800)
        self.assertFalse([text for text in self.notes() if "still ran" in text])

    def test_a_child_that_has_recorded_nothing_is_found(self):
        for options, events in ((), 0), (("--wait-children",), 800):
            with self.subTest(options=options):
                p = self.start(self.script(before="import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])",
                                           then=SILENT), *options)
                until(lambda: "still runs: " in self.told(), "nothing is said of the child")
                pid = int(self.told().split("still runs: ")[1].split()[0])
                self.pids.append(pid)
                if events:
                    os.kill(pid, signal.SIGUSR1)
                self.assertEqual(p.wait(timeout=PATIENCE), 3)
                self.assertGreaterEqual(self.events_of(pid), events)

    def test_a_signal_ends_the_waiting_and_no_process(self):
        p = self.start(self.script(), "--wait-children")
        pid = self.child()
        until(lambda: "still runs" in self.told(), self.told)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(timeout=PATIENCE), 3)
        self.assertTrue(any(f"still ran: {pid}" in text for text in self.notes()), self.notes())
        self.open_gate()
        until(lambda: os.path.exists(self.done), "the child does not go on")

    def test_many(self):
        script = ("import os, sys, time\nfor i in range(12):\n    if os.fork() == 0:\n        " +
                  "\n        ".join(WORKS.replace("gate + '.ready'", "gate + '.ready%d' % i")
                                    .replace("gate + '.pid'", "gate + '.pid%d' % i").strip().split("\n")) +
                  "\n        os._exit(0)\n"
                  "while any(not os.path.exists(gate + '.ready%d' % i) for i in range(12)):\n    time.sleep(0.01)\n")
        script = script.replace("import os, sys, time\n", "import os, sys, time\ngate, done = sys.argv[1:3]\n", 1)
        p = self.start([PYTHON, "-c", script, self.gate, self.done])
        self.assertEqual(p.wait(timeout=PATIENCE), 0)
        for i in range(12):
            with open(f"{self.gate}.ready{i}", encoding="utf8") as f:
                self.pids.append(int(f.read()))
        self.assertIn("12 processes of the job still run: ", self.told())
        self.assertIn(" and 4 more", self.told())
        self.open_gate()

    def test_nothing_is_said_of_programs_that_wait(self):
        for options in ((), ("--wait-children",)):
            p = self.start(["sh", "-c", f"{PYTHON} -c '{READS.format(5)}' & sleep 0 & wait; exit 4"], *options)
            self.assertEqual(p.wait(timeout=PATIENCE), 4)
            self.assertNotIn("still run", self.told())


if __name__ == "__main__":
    unittest.main()
