#!/usr/bin/python3
"""Trouble of opwatch never keeps a program from starting: it runs unrecorded, soon, and one line says so.

--must-record asks for the opposite: the program does not start.
"""
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import until  # pylint: disable=wrong-import-position

BIN = os.environ["OPWATCH_BIN"]
PROGRAM = ["sh", "-c", "echo runs; exit 7"]
SOON = 1.0  # seconds that opwatch may take
LOAD = 3.0  # seconds for a busy machine


class FailOpenTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.socket = os.path.join(self.dir, "socket")
        self.daemon = None

    def start_daemon(self):
        log = pathlib.Path(self.dir, "log")
        with log.open("wb") as to:
            self.daemon = subprocess.Popen([BIN, "daemon", "--socket", self.socket, "--dir", self.dir + "/rings", "--no-kineto"],
                                           stderr=to, stdin=subprocess.DEVNULL)
        self.addCleanup(self.daemon.wait)
        self.addCleanup(self.daemon.kill)
        until(lambda: b"serving at" in log.read_bytes(), log.read_text)

    def record(self, *options):
        begin = time.monotonic()
        p = subprocess.run([BIN, "record", *options, "--", *PROGRAM], capture_output=True, text=True, timeout=120,
                           stdin=subprocess.DEVNULL)
        return p, time.monotonic() - begin

    def runs(self, *options, says):
        p, took = self.record(*options)
        self.assertEqual((p.returncode, p.stdout), (7, "runs\n"), p.stderr)
        self.assertEqual(p.stderr.count("\n"), 1, p.stderr)
        self.assertRegex(p.stderr, says)
        self.assertLess(took, SOON + LOAD)

    def fails(self, *options, says):
        p, took = self.record("--must-record", *options)
        self.assertEqual((p.returncode, p.stdout), (1, ""), p.stderr)
        self.assertRegex(p.stderr, says)
        self.assertLess(took, SOON + LOAD)

    def both(self, *options, says):
        self.runs(*options, says=says)
        self.fails(*options, says=says)

    def test_no_daemon(self):
        self.both("--job", "x", "--socket", self.socket, says="no daemon")

    def test_stopped_daemon(self):
        self.start_daemon()
        self.daemon.send_signal(signal.SIGSTOP)
        self.both("--job", "x", "--socket", self.socket, says="the daemon at .*/socket does not answer|the daemon does not answer")

    def test_program_of_a_stopped_daemon_is_recorded_later(self):
        self.start_daemon()
        self.daemon.send_signal(signal.SIGSTOP)
        with subprocess.Popen([BIN, "record", "--job", "later", "--socket", self.socket, "--", "sh", "-c", "echo runs; cat"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as p:
            self.assertEqual(p.stdout.readline(), "runs\n")
            self.daemon.send_signal(signal.SIGCONT)
            until(lambda: "later" in subprocess.run([BIN, "jobs", "--socket", self.socket], capture_output=True, text=True,
                                                    check=True).stdout, lambda: "not recorded")
            p.communicate("")

    def test_full_queue(self):
        self.start_daemon()
        self.daemon.send_signal(signal.SIGSTOP)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        waiting = []
        try:
            while True:
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                waiting.append(s)
                s.setblocking(False)
                s.connect(self.socket)
        except BlockingIOError:
            pass
        self.addCleanup(lambda: [s.close() for s in waiting])
        self.both("--job", "x", "--socket", self.socket, says="does not answer|queue")

    def test_socket_of_something_else(self):
        other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(other.close)
        other.bind(self.socket)
        other.listen(1)
        self.both("--job", "x", "--socket", self.socket, says="not the socket of an opwatch daemon")

    def test_silent_socket(self):
        other = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(other.close)
        other.bind(self.socket)
        other.listen(5)
        self.both("--job", "x", "--socket", self.socket, says="does not answer")

    def test_folder_that_cannot_be_written(self):
        self.both("-o", "/proc/self/x.opw", says="/proc/self/x.opw: ")

    def test_no_recorder(self):
        os.environ["OPWATCH_RECORDER"] = self.dir + "/none.so"
        self.addCleanup(os.environ.pop, "OPWATCH_RECORDER")
        self.both("-o", self.dir + "/x.opw", says="none.so")
        self.runs("--job", "x", "--socket", self.socket, says="none.so")

    def test_usage_is_still_an_error(self):
        p, _ = self.record("-o", self.dir + "/x.opw", "--ring", "3")
        self.assertEqual((p.returncode, p.stdout), (2, ""), p.stderr)


if __name__ == "__main__":
    unittest.main()
