#!/usr/bin/python3
"""Whatever is killed, and whenever: jobs come to no harm, nothing stays behind, and every file can be read.

Killed are `record`, the daemon, the job and its children, at random moments. OPWATCH_KILLS=1000 asks for more kills than the
suite's; `make nightly` does. Kills of `attach` and of its guardian are in attach_kill_test.py.
"""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests"))
from support import patience  # noqa: E402

BIN, SRC = os.environ["OPWATCH_BIN"], os.environ["OPWATCH_SRC"]
KILLS = int(os.environ.get("OPWATCH_KILLS", "24"))
JOB = """
import os, sys, threading, time
def read():
    end = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < end:
        with open('/etc/passwd', 'rb') as f: f.read()
child = os.fork()
t = threading.Thread(target=read); t.start(); read(); t.join()
if child == 0: os._exit(0)
print('job ended', os.waitpid(child, 0)[1] >> 8, flush=True)
"""


class KillTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.chance = random.Random(11)

    def left_behind(self):
        """Processes of this test that still run."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    mine = f"OPWATCH_KILL_TEST={self.dir}\0".encode() in f.read()
                with open(f"/proc/{pid}/stat", encoding="utf8") as f:
                    dead = f.read().rpartition(")")[2].split()[0] in "ZX"
            except OSError:
                continue
            if mine and not dead:
                found.append(int(pid))
        return found

    def start(self, *command, **more):
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, OPWATCH_KILL_TEST=self.dir), **more)

    def check_file(self, path):
        """Readable up to the last whole block, or no file at all."""
        if not os.path.exists(path):
            return
        p = subprocess.run([BIN, "info", "--verify", path], capture_output=True, text=True, timeout=60)
        self.assertIn(p.returncode, (0, 1), p.stderr)
        self.assertNotRegex(p.stderr, "damaged|corrupt|wrong checksum")
        if os.path.getsize(path) > 65536:
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertRegex(p.stdout, "all checksums of .* MB are correct")

    def wait_until_gone(self):
        patience.until(lambda: not self.left_behind(), lambda: f"left behind: {self.left_behind()}", pause=0.05)

    def test_killed_record(self):
        """The job goes on to its end."""
        for number in range(KILLS // 3):
            path = os.path.join(self.dir, f"record{number}.opw")
            out = os.path.join(self.dir, "out")
            script = f"/usr/bin/python3 -c \"$0\" 0.5 > {out}; echo status $? >> {out}"
            record = self.start(BIN, "record", "-o", path, "--", "sh", "-c", script, JOB)
            time.sleep(self.chance.uniform(0.02, 0.6))
            record.kill()
            record.communicate()
            self.wait_until_gone()
            text = ""
            if os.path.exists(out):  # the shell was started before the kill
                with open(out, encoding="utf8") as f:
                    text = f.read()
                os.remove(out)
            if text:
                self.assertEqual(text, "job ended 0\nstatus 0\n")
            self.check_file(path)

    def test_a_changed_byte_is_found(self):
        """What check_file relies on."""
        path = os.path.join(self.dir, "changed.opw")
        subprocess.run([BIN, "record", "-o", path, "--", "dd", "if=/bin/sh", "of=/dev/null", "bs=4k"], check=True, capture_output=True)
        for where, status in ((None, 0), (0.5, 1), (0.7, 1)):
            with open(path, "r+b") as f:
                size = f.seek(0, os.SEEK_END)
                if where:
                    f.seek(int(size * where))
                    byte = f.read(1)[0]
                    f.seek(-1, os.SEEK_CUR)
                    f.write(bytes([byte ^ 0x40]))
            p = subprocess.run([BIN, "info", "--verify", path], capture_output=True, text=True, timeout=60)
            self.assertEqual(p.returncode, status, p.stderr)

    def test_killed_job(self):
        for number in range(KILLS // 3):
            path = os.path.join(self.dir, f"job{number}.opw")
            record = self.start(BIN, "record", "-o", path, "--", "/usr/bin/python3", "-c", JOB, "0.5")
            time.sleep(self.chance.uniform(0.1, 0.5))
            jobs = [pid for pid in self.left_behind() if pid != record.pid]
            for pid in jobs:
                os.kill(pid, signal.SIGKILL)
            out, messages = record.communicate(timeout=60)
            if jobs:
                self.assertEqual((record.returncode, out), (137, ""), messages)
                self.assertRegex(messages, r"\d+ records of")
            self.check_file(path)
            self.wait_until_gone()

    def test_killed_daemon(self):
        """The job goes on; what the daemon kept can be read by the next one."""
        rings, where = os.path.join(self.dir, "rings"), os.path.join(self.dir, "socket")
        for _ in range(KILLS // 3):
            daemon = self.start(BIN, "daemon", "--socket", where, "--dir", rings, "--no-kineto")
            patience.until(lambda: os.path.exists(where), "the daemon does not listen")
            job = self.start(BIN, "record", "--job", "killed", "--socket", where, "--", "/usr/bin/python3", "-c", JOB, "0.6")
            time.sleep(self.chance.uniform(0.05, 0.6))
            daemon.kill()
            daemon.communicate()
            out, messages = job.communicate(timeout=60)
            self.assertEqual((job.returncode, out), (0, "job ended 0\n"), messages)
            self.wait_until_gone()
            for folder, _, files in os.walk(rings):
                for name in files:
                    if name.endswith(".opw"):
                        self.check_file(os.path.join(folder, name))


if __name__ == "__main__":
    unittest.main()
