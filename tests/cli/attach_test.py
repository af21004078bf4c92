#!/usr/bin/python3
"""opwatch attach: a process that runs is recorded and left as it was: no hooks, threads or descriptors stay; it may be
attached to again; wrong processes are refused with a reason."""
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import until

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
STATIC = "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n"
# Its threads execute it again and again, as often as its argument says; it ends with 7.
EXECUTES = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static char **words;
static void *again(void *number)
{
	char left[16];
	usleep((unsigned)((long)number % 3 * 700));
	snprintf(left, sizeof(left), "%d", atoi(words[1]) - 1);
	if (atoi(left) <= 0)
		_exit(7);
	execl("/proc/self/exe", words[0], left, (char *)0);
	return 0;
}
int main(int count, char **args)
{
	pthread_t thread;
	(void)count;
	words = args;
	for (long i = 0; i < 4; i++)
		pthread_create(&thread, 0, again, (void *)(i + getpid()));
	for (;;)
		pause();
}
"""
# Reads files until it is told to end, then says how often.
VICTIM = """
import select, sys
n = 0
print('ready', flush=True)
while not select.select([sys.stdin], [], [], 0.001)[0]:
    open('/etc/passwd', 'rb').read()
    n += 1
print(n, flush=True)
"""
# Traces a process until its input ends, as debuggers do.
TRACER = """
import ctypes, sys
print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None), flush=True)
sys.stdin.read()
"""
# Waits for a child as vfork does; the child has memory of its own, and ends with its input.
ASLEEP = """
import ctypes, os, platform, signal, sys
print('ready', flush=True)
number = {'x86_64': 56, 'aarch64': 220}[platform.machine()]
if ctypes.CDLL(None).syscall(number, 0x4000 | signal.SIGCHLD, None, None, None, None) == 0:
    os.read(0, 1)
    os._exit(0)
os._exit(7)
"""


def environment():
    return {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}


class AttachTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, "x.opw")

    def start(self, code=VICTIM, **kwargs):
        job = subprocess.Popen([PYTHON, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), **kwargs)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.stdin.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        self.assertEqual(job.stdout.readline(), b"ready\n")
        return job

    def test_threads_that_execute_programs(self):
        """The first thread's end is not reported then: attach ends with a reason, or records what it got."""
        program = os.path.join(self.dir, "executes")
        subprocess.run(["cc", "-O1", "-pthread", "-x", "c", "-", "-o", program], input=EXECUTES, text=True, check=True)
        for _ in range(12):
            job = subprocess.Popen([program, "400"], env=environment())
            try:
                p = subprocess.run([BIN, "attach", str(job.pid), "--for", "50ms", "-o", self.file], capture_output=True, text=True,
                                   timeout=30)
            finally:
                self.assertEqual(job.wait(60), 7)
            self.assertIn(p.returncode, (0, 1), p.stderr)
            self.assertRegex(p.stderr, "^opwatch: ")
            self.assertNotIn("kernel thread", p.stderr)

    def finish(self, job):
        job.stdin.close()
        self.assertGreaterEqual(int(job.stdout.readline()), 0)
        self.assertEqual(job.wait(timeout=120), 0)

    def attach(self, *args, **kwargs):
        p = subprocess.run([BIN, "attach", "-o", self.file, *args], capture_output=True, text=True, timeout=300,
                           env=environment(), **kwargs)
        if "not allowed to trace" in p.stderr:
            self.skipTest("the system allows no tracing here: " + p.stderr)
        return p

    def maps(self, job):
        with open(f"/proc/{job.pid}/maps", encoding="utf8") as f:
            return f.readlines()

    def events(self):
        p = subprocess.run([BIN, "tracks", "--json", self.file], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        return sum(row["events"] for row in json.loads(p.stdout)["rows"])

    def attach_for_some_time(self, job, *args, **kwargs):
        """For a second, in which a job does much unless the machine has no time for it."""
        for seconds in (1, 10, 60):
            p = self.attach(str(job.pid), "--for", f"{seconds}s", *args, **kwargs)
            self.assertEqual(p.returncode, 0, p.stderr)
            if self.events() > 10:
                return p
        return self.fail("hardly anything is recorded")

    def wait_for_records(self, p):
        until(lambda: p.poll() is not None or os.path.exists(self.file) and os.path.getsize(self.file) > 4096, "nothing is recorded")

    def test_leaves_the_process_as_it_was(self):
        job = self.start()
        before = self.descriptors(job)
        for _ in range(2):  # and again
            p = self.attach_for_some_time(job)
            self.assertNotIn("hooks", p.stderr)
            self.assertEqual(self.descriptors(job), before)
            until(lambda: "opwatch" not in self.threads(job), "the recorder's thread stays")
        slots = self.hooks(job.pid)
        self.assertEqual(slots, [], "slots that still lead into the recorder")
        self.finish(job)

    def threads(self, job):
        names = []
        for tid in os.listdir(f"/proc/{job.pid}/task"):
            try:
                with open(f"/proc/{job.pid}/task/{tid}/comm", encoding="utf8") as f:
                    names.append(f.read().strip())
            except OSError:
                pass
        return names

    def descriptors(self, job):
        """But for what it reads at this moment."""
        found, folder = {}, f"/proc/{job.pid}/fd"
        for name in os.listdir(folder):
            try:
                found[name] = os.readlink(os.path.join(folder, name))
            except FileNotFoundError:
                pass
        return {name: to for name, to in found.items() if to != "/etc/passwd"}

    def hooks(self, pid):
        """Pointers into the recorder's code in the writable and read-only data of the program's objects."""
        ours, data = [], []
        with open(f"/proc/{pid}/maps", encoding="utf8") as f:
            for line in f:
                fields = line.split()
                low, high = (int(x, 16) for x in fields[0].split("-"))
                path = fields[5] if len(fields) > 5 else ""
                if "libopwatch-recorder" in path:
                    if "x" in fields[1]:
                        ours.append((low, high))
                elif path.startswith("/") and "x" not in fields[1]:
                    data.append((low, high))
        self.assertTrue(ours, "the recorder is not loaded")
        found = []
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for low, high in data:
                try:
                    memory.seek(low)
                    words = memoryview(memory.read(high - low)).cast("Q")
                except (OSError, ValueError, TypeError):
                    continue
                found += [hex(low + 8 * i) for i, w in enumerate(words) if any(a <= w < b for a, b in ours)]
        return found

    def test_ends_with_the_process(self):
        job = self.start()
        p = subprocess.Popen([BIN, "attach", "-o", self.file, str(job.pid)], stderr=subprocess.PIPE, text=True,
                             env=environment())
        self.wait_for_records(p)
        job.kill()
        said = p.communicate(timeout=120)[1]
        if "not allowed to trace" in said:
            self.skipTest(said)
        self.assertEqual(p.returncode, 0, said)

    def test_ends_with_a_signal(self):
        job = self.start()
        p = subprocess.Popen([BIN, "attach", "-o", self.file, str(job.pid)], stderr=subprocess.PIPE, text=True,
                             env=environment())
        self.wait_for_records(p)
        p.send_signal(signal.SIGINT)
        said = p.communicate(timeout=120)[1]
        if "not allowed to trace" in said:
            self.skipTest(said)
        self.assertEqual(p.returncode, 0, said)
        self.assertGreater(self.events(), 0)
        self.finish(job)

    def test_a_process_that_sleeps(self):
        job = self.start("import signal\nprint('ready', flush=True)\nsignal.pause()")
        p = self.attach(str(job.pid), "--for", "100ms")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIsNone(job.poll())

    def test_wrong_processes(self):
        gone = subprocess.Popen(["true"])
        gone.wait()
        p = self.attach(str(gone.pid))
        self.assertEqual(p.returncode, 1)
        self.assertIn(f"there is no process {gone.pid}", p.stderr)
        self.assertFalse(os.path.exists(self.file), "nothing was recorded")
        with open(self.file, "w", encoding="utf8") as f:
            f.write("mine")
        self.assertEqual(self.attach(str(gone.pid)).returncode, 1)
        with open(self.file, encoding="utf8") as f:
            self.assertEqual(f.read(), "mine")
        self.assertEqual(self.attach("abc").returncode, 2)
        self.assertEqual(self.attach().returncode, 2)

    def test_processes_that_run_nothing(self):
        job = self.start()
        with open(f"/proc/{job.pid}/stat", encoding="utf8") as f:
            state = lambda: (f.seek(0), f.read().rpartition(")")[2].split()[0])[1]
            job.send_signal(signal.SIGSTOP)
            until(lambda: state() == "T", "it does not stop")
            p = self.attach(str(job.pid))
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertIn(f"is stopped: resume it first (kill -CONT {job.pid})", p.stderr)
            job.kill()
            until(lambda: state() == "Z", "it does not end")
            p = self.attach(str(job.pid))
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertIn(f"process {job.pid} has ended", p.stderr)
        with open("/proc/2/comm", encoding="utf8") if os.path.exists("/proc/2/comm") else open(os.devnull, encoding="utf8") as f:
            if f.read() == "kthreadd\n" and os.geteuid() == 0:
                self.assertIn("is a kernel thread", self.attach("2").stderr)
        self.assertFalse(os.path.exists(self.file))

    def test_processes_that_end_just_now(self):
        """That is told, and not that tracing is not allowed."""
        self.attach(str(self.start().pid), "--for", "10ms")  # skips where it is so
        for i in range(20):
            with subprocess.Popen([PYTHON, "-c", f"import time\ntime.sleep({i * 0.003})"], env=environment()) as job:
                p = subprocess.run([BIN, "attach", "-o", self.file, str(job.pid), "--for", "50ms"], capture_output=True, text=True,
                                   timeout=300, env=environment())
            self.assertEqual(job.returncode, 0)
            self.assertRegex(p.stderr, "records of 1 process|has ended|ended while|there is no process" if p.returncode else "records of 1 process")

    def test_processes_that_begin_just_now(self):
        """They are joined as soon as they are linked."""
        self.attach(str(self.start().pid), "--for", "10ms")  # skips where it is so
        for _ in range(10):
            with subprocess.Popen([PYTHON, "-c", "import time\ntime.sleep(60)"], env=environment()) as job:
                p = subprocess.run([BIN, "attach", "-o", self.file, str(job.pid), "--for", "10ms"], capture_output=True, text=True,
                                   timeout=300, env=environment())
                job.kill()
            self.assertEqual(p.returncode, 0, p.stderr)

    def test_threads_that_end_just_now(self):
        job = self.start("import threading\ndef churn():\n    while True:\n        t = threading.Thread(target=len, args=('',))\n"
                         "        t.start()\n        t.join()\nthreading.Thread(target=churn, daemon=True).start()\n" + VICTIM)
        for _ in range(10):
            p = self.attach(str(job.pid), "--for", "10ms")
            self.assertEqual(p.returncode, 0, p.stderr)
        self.finish(job)

    def test_a_process_without_its_first_thread(self):
        code = ("import ctypes, os, platform, sys, threading\nprint('ready', flush=True)\n"
                "threading.Thread(target=lambda: (sys.stdin.read(), os._exit(5))).start()\n"
                "ctypes.CDLL(None).syscall({'x86_64': 60, 'aarch64': 93}[platform.machine()], 0)\n")
        job = self.start(code)
        with open(f"/proc/{job.pid}/stat", encoding="utf8") as f:
            until(lambda: (f.seek(0), f.read().rpartition(")")[2].split()[0])[1] == "Z", "it does not end")
        p = self.attach(str(job.pid))
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("its main thread has ended while other threads still run", p.stderr)
        job.stdin.close()
        self.assertEqual(job.wait(timeout=300), 5)

    def test_a_thread_is_no_process(self):
        job = self.start("import threading, time\nt = threading.Thread(target=time.sleep, args=(10000,), daemon=True)\nt.start()\n" + VICTIM)
        thread = next(tid for tid in os.listdir(f"/proc/{job.pid}/task") if int(tid) != job.pid)
        for command in (("attach", "-o", self.file), ("stacks",), ("stacks", "--for", "1s"), ("stacks", "--native", "--for", "1s")):
            p = subprocess.run([BIN, *command, thread], capture_output=True, text=True, timeout=300, env=environment())
            self.assertEqual((p.returncode, p.stdout), (1, ""), command)
            self.assertIn(f"{thread} is not a process but a thread of process {job.pid}: use that number", p.stderr)
        self.assertFalse(os.path.exists(self.file))
        self.finish(job)

    def test_a_process_that_is_traced_already(self):
        job = self.start()
        tracer = subprocess.Popen([PYTHON, "-c", TRACER, str(job.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(tracer.stdout.close)
        self.addCleanup(tracer.wait)
        self.addCleanup(tracer.stdin.close)
        if tracer.stdout.readline() != b"0\n":
            self.skipTest("the system allows no tracing here")
        p = self.attach(str(job.pid))
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn(f"process {job.pid} is traced by process {tracer.pid} (python3)", p.stderr)
        self.assertFalse(os.path.exists(self.file))
        tracer.stdin.close()
        tracer.wait()
        self.finish(job)

    def test_a_process_that_cannot_be_stopped(self):
        """Whoever asks it to would wait until it is over, and so would Ctrl-C."""
        job = subprocess.Popen([PYTHON, "-c", ASLEEP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.stdin.close)
        if job.stdout.readline() != b"ready\n":
            self.skipTest("no such child can be made here")
        with open(f"/proc/{job.pid}/stat", encoding="utf8") as f:
            until(lambda: (f.seek(0), f.read().rpartition(")")[2].split()[0])[1] == "D", "it does not wait")
        p = self.attach(str(job.pid))
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn(f"process {job.pid} cannot be stopped while it waits for a disk or for a child", p.stderr)
        self.assertIsNone(job.poll())
        job.stdin.close()
        self.assertEqual(job.wait(timeout=300), 7)

    @unittest.skipIf(os.uname().machine != "x86_64", "made of machine code")
    def test_a_32_bit_program(self):
        code = bytes.fromhex("b81d000000cd80ebf7")  # pause, for ever
        head = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, 3, 1, 0x08048054, 52, 0, 0, 52, 32, 1, 0, 0, 0)
        part = struct.pack("<IIIIIIII", 1, 0, 0x08048000, 0x08048000, 84 + len(code), 84 + len(code), 5, 4096)
        path = os.path.join(self.dir, "small")
        with open(path, "wb") as f:
            f.write(head + part + code)
        os.chmod(path, 0o700)
        try:
            job = subprocess.Popen([path])
        except OSError:
            self.skipTest("the system runs no 32-bit programs")
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        if job.poll() is not None:
            self.skipTest("the system runs no 32-bit programs")
        p = self.attach(str(job.pid))
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn(f"process {job.pid} is a 32-bit program", p.stderr)
        self.assertIsNone(job.poll())

    def test_a_process_that_has_another_recorder(self):
        """Of another installation: all would be recorded twice."""
        other, first = os.path.join(self.dir, "libother.so"), os.path.join(self.dir, "first.opw")
        shutil.copy(LIBRARY, other)
        record = subprocess.Popen([BIN, "record", "-o", first, "--", PYTHON, "-c", VICTIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env={**environment(), "OPWATCH_RECORDER": other})
        self.addCleanup(record.stderr.close)
        self.addCleanup(record.stdout.close)
        self.addCleanup(record.wait)
        self.addCleanup(record.kill)
        self.assertEqual(record.stdout.readline(), b"ready\n")
        with open(f"/proc/{record.pid}/task/{record.pid}/children", encoding="utf8") as f:
            job = f.read().split()[0]
        p = self.attach(job)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("a recorder of another version or installation is already loaded", p.stderr)
        record.stdin.close()
        self.assertGreater(int(record.stdout.readline()), 0)
        self.assertIn(b" of 1 process\n", record.stderr.read())

    @unittest.skipIf(os.geteuid() != 0, "only root can make a container")
    def test_a_process_in_a_container(self):
        job = subprocess.Popen(["unshare", "-m", PYTHON, "-c", VICTIM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
                               stderr=subprocess.DEVNULL)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.stdin.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        if job.stdout.readline() != b"ready\n":
            self.skipTest("no container can be made here")
        p = self.attach(str(job.pid))
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("runs in a container: run opwatch inside that container", p.stderr)
        self.finish(job)

    @unittest.skipIf(os.geteuid() != 0, "only root can be another user")
    def test_root_attaches_to_a_users_process(self):
        probe = subprocess.run(["cat", LIBRARY], **NOBODY, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        if probe.returncode:
            self.skipTest("that user cannot read " + LIBRARY)
        job = self.start(**NOBODY)
        self.attach_for_some_time(job)
        self.finish(job)

    @unittest.skipIf(os.geteuid() != 0, "only root can be another user")
    def test_a_user_without_rights(self):
        """Who is not served before others works in a session of its own; what that says is told as ever."""
        try:
            for command in ([BIN, "--version"], ["cat", LIBRARY]):
                subprocess.run(command, check=True, capture_output=True, **NOBODY)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("that user cannot run " + BIN)
        os.chmod(self.dir, 0o777)
        job = self.start(**NOBODY)
        for _ in range(3):
            p = self.attach_for_some_time(job, "-v", **NOBODY)
            self.assertRegex(p.stderr, r"a thread was stopped for \d")
        self.assertEqual(self.hooks(job.pid), [])
        self.finish(job)
        static = self.start_static()
        p = self.attach(str(static.pid), "--for", "1s", **NOBODY)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("does not use the GNU C library", p.stderr)

    def start_static(self):
        program = os.path.join(self.dir, "static")
        subprocess.run(["cc", "-static", "-x", "c", "-", "-o", program], input=STATIC, text=True, check=True)
        job = subprocess.Popen([program], **(NOBODY if os.geteuid() == 0 else {}))
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    @unittest.skipIf(os.geteuid() != 0, "only root can be another user")
    def test_another_users_process(self):
        try:
            subprocess.run([BIN, "--version"], **NOBODY, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("that user cannot run " + BIN)
        job = self.start()
        os.chmod(self.dir, 0o777)
        p = self.attach(str(job.pid), **NOBODY)
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("another user", p.stderr)
        self.assertFalse([line for line in self.maps(job) if "recorder" in line])
        self.finish(job)


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
