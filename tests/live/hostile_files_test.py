#!/usr/bin/python3
"""
What belongs to a job cannot stop the daemon: a "libpython" that is a pipe in the job's mount namespace, or has a write
lease, and memory that does not answer (userfaultfd, as with files of a hung file system). Other jobs are served meanwhile.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import until  # pylint: disable=wrong-import-position

BIN = os.environ["OPWATCH_BIN"]
PATIENCE = 1.0  # seconds for most answers of the daemon; a lease takes 45
NOBODY = 65534
GOOD = "import sys, threading\ndef wait_here():\n    sys.stdin.read()\nopen('/etc/passwd').read()\nwait_here()\n"
JOB = """
import ctypes, fcntl, mmap, os, signal, struct, subprocess, sys
path, kind = sys.argv[1:]
signal.signal(signal.SIGIO, signal.SIG_IGN)
libc = ctypes.CDLL(None, use_errno=True)
if kind == "memory":
    # The file of a real interpreter; in memory all after its first page is such that a read of it waits for us, who never answer.
    with open("/proc/self/exe", "rb") as f, open(path, "wb") as to: to.write(f.read())
    size = (os.path.getsize(path) + (16 << 20)) & ~4095
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    at = libc.mmap(None, size, 3, 0x22, -1, 0)
    fd = os.open(path, os.O_RDONLY)
    libc.mmap(at, 4096, 1, 0x12, fd, 0)
    u = libc.syscall(323, os.O_CLOEXEC)
    if u < 0:
        print("no userfaultfd", flush=True)
    fcntl.ioctl(u, 0xc018aa3f, struct.pack("QQQ", 0xaa, 0, 0))
    fcntl.ioctl(u, 0xc020aa00, struct.pack("QQQQ", at + 4096, size - 4096, 1, 0))
else:
    with open(path, "wb") as f: f.write(bytes(8192))
    fd = os.open(path, os.O_RDWR)
    m = mmap.mmap(fd, 8192, prot=mmap.PROT_READ)
if kind == "lease":
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
if kind == "pipe":
    # Over the file, for this process only: /proc/PID/root leads there.
    os.mkfifo(path + ".pipe")
    if subprocess.run(["mount", "--bind", path + ".pipe", path]).returncode:
        print("no mounts", flush=True)
open("/etc/passwd").read()
print("ready", flush=True)
sys.stdin.read()
"""
# Takes steps, and stands still; with a path, after it has made its memory unreadable.
STEPS = """
import sys, time, torch
for _ in range(12):
    with torch.autograd.profiler.record_function("Optimizer.step#SGD.step"): time.sleep(0.05)
    time.sleep(0.05)
def wait_here():
    sys.stdin.read()
"""


@unittest.skipIf(os.geteuid() != 0, "needs root")
class HostileFilesTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.chmod(self.dir, 0o755)
        self.socket = os.path.join(self.dir, "socket")
        # Where other users can run it: the build may be in a folder that they cannot enter.
        self.program = shutil.copy(BIN, self.dir)
        shutil.copy(os.path.join(os.path.dirname(BIN), "libopwatch-recorder.so"), self.dir)
        self.log = pathlib.Path(self.dir, "log")

    def start_daemon(self, *options):
        with self.log.open("wb") as to:
            self.daemon = subprocess.Popen([BIN, "daemon", "--all-users", "--socket", self.socket, "--dir", self.dir + "/rings",
                                            "--no-kineto", *options], stderr=to, stdin=subprocess.DEVNULL)
        self.addCleanup(self.daemon.wait)
        self.addCleanup(self.daemon.kill)
        until(lambda: b"serving at" in self.log.read_bytes(), self.log.read_text)

    def ask(self, *words):
        begin = time.monotonic()
        p = subprocess.run([BIN, *words, "--socket", self.socket], capture_output=True, text=True, timeout=100)
        return p.stdout, time.monotonic() - begin

    def start_job(self, name, *program, **options):
        # pylint: disable=consider-using-with
        job = subprocess.Popen([self.program, "record", "--job", name, "--socket", self.socket, "--must-record", "--", *program],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)
        self.addCleanup(job.wait)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.stdin.close)
        self.addCleanup(job.kill)
        return job

    def check(self, kind, **options):
        self.start_daemon("--stacks")
        usual = sorted(self.ask("jobs")[1] for _ in range(9))[4]  # without the hostile job: what this machine takes for it
        folder = os.path.join(self.dir, "work")
        os.mkdir(folder)
        os.chmod(folder, 0o777)
        own_mounts = ["unshare", "--mount"] if kind == "pipe" else []
        hostile = self.start_job("hostile", *own_mounts, "/usr/bin/python3", "-c", JOB, folder + "/libpython3.11.so", kind, **options)
        line = hostile.stdout.readline()
        if line != "ready\n":
            self.skipTest("the system does not allow it: " + line)
        self.start_job("good", "/usr/bin/python3", "-c", GOOD)
        until(lambda: "good" in self.ask("jobs")[0], self.log.read_text)
        took = []
        for _ in range(9):
            text, seconds = self.ask("jobs")
            took.append(seconds)
            self.assertIn("hostile", text)
            self.assertIn("good", text)
            time.sleep(0.1)
        self.assertLess(sorted(took)[len(took) // 2], PATIENCE + 3 * usual, (took, usual))
        self.assertLess(max(took), 10 * PATIENCE + 10 * usual, (took, usual))
        # The other job's stacks are sampled.
        until(lambda: "wait_here" in self.ask("functions", "--job", "good", "--last", "60s")[0],
              lambda: self.ask("functions", "--job", "good", "--last", "60s")[0])
        hostile.stdin.close()
        self.assertEqual(hostile.wait(60), 0)
        self.daemon.terminate()
        self.assertEqual(self.daemon.wait(30), 0)

    def test_pipe(self):
        self.check("pipe")

    def test_write_lease(self):
        self.check("lease", user=NOBODY)

    def test_memory_that_does_not_answer(self):
        self.check("memory")

    def test_stalled_jobs(self):
        """One whose stack cannot be read does not keep the others from being reported."""
        if subprocess.run(["/usr/bin/python3", "-c", "import importlib.util as u; exit(u.find_spec('torch') is None)"]).returncode:
            self.skipTest("needs python3-torch")
        self.start_daemon("--on-stall", "2s")
        hostile = self.start_job("hostile", "/usr/bin/python3", "-c", STEPS + JOB, self.dir + "/libpython3.11.so", "memory")
        line = hostile.stdout.readline()
        if line != "ready\n":
            self.skipTest("the system does not allow it: " + line)
        until(lambda: "hostile: no step for" in self.log.read_text(), self.log.read_text)
        good = self.start_job("good", "/usr/bin/python3", "-c", STEPS + "wait_here()")
        until(lambda: "good: no step for" in self.log.read_text(), self.log.read_text)
        self.assertRegex(self.log.read_text(), r"good: no step for .* process \d+ is in wait_here \(<string>:\d+\)")
        for job in (hostile, good):
            job.stdin.close()
            self.assertEqual(job.wait(60), 0)
        self.daemon.terminate()
        self.assertEqual(self.daemon.wait(30), 0)


if __name__ == "__main__":
    unittest.main()
