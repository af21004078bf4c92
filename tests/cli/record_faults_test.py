#!/usr/bin/python3
"""What goes wrong around a recorded job: crashes, descriptors that are closed, own preloads, children, full disks, sandboxes. The
job ends as it would without the recorder, and what was and was not recorded is told."""
import ctypes
import json
import mmap
import os
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")
READS = "for i in range({}): open('/etc/passwd', 'rb').read()"
FLUSHES = "import os; f = os.memfd_create('f')\nfor i in range({}): os.fsync(f)"  # frequent reads would be counted; each of these is recorded
CALLS = {"x86_64": {"ptrace": 101, "memfd_create": 319}, "aarch64": {"ptrace": 117, "memfd_create": 279}}
OWN_PRELOAD = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
static long calls;
ssize_t read(int fd, void *to, size_t len)
{
	static ssize_t (*real)(int, void *, size_t);
	if (!real) *(void **)&real = dlsym(RTLD_NEXT, "read");
	calls++;
	return real(fd, to, len);
}
__attribute__((destructor)) static void end(void) { if (calls > 100) dprintf(1, "own preload saw it\\n"); }
"""


def environment(**more):
    return {**{k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "RANK", "SLURM_PROCID")}, **more}


def forbid(name):
    """For preexec_fn: that system call fails with EPERM from here on, for what is executed, too."""
    number = CALLS[platform.machine()][name]

    def install():
        program = struct.pack("HBBI", 0x20, 0, 0, 0) + struct.pack("HBBI", 0x15, 0, 1, number)  # load the number; equal?
        program += struct.pack("HBBI", 0x06, 0, 0, 0x00050000 | 1) + struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)  # EPERM; allow
        code = ctypes.create_string_buffer(program, len(program))
        head = struct.pack("HxxxxxxP", 4, ctypes.addressof(code))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.create_string_buffer(head, len(head)), 0, 0):
            os._exit(99)

    return install


class FaultsTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, "x.opw")

    def record(self, *command, out=None, options=(), **kwargs):
        kwargs.setdefault("env", environment())
        return subprocess.run([BIN, "record", "-o", out or self.file, *options, "--", *command], capture_output=True, text=True,
                              timeout=300, **kwargs)

    def rows(self, view, file=None):
        p = subprocess.run([BIN, view, "--json", file or self.file], capture_output=True, text=True, timeout=120)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]

    def events(self, file=None):
        return sum(row["events"] for row in self.rows("tracks", file))

    def test_a_job_that_crashes(self):
        p = self.record(PYTHON, "-c", READS.format(200) + "\nimport ctypes; ctypes.string_at(0)")
        self.assertEqual(p.returncode, 128 + signal.SIGSEGV, p.stderr)
        self.assertGreaterEqual(self.events(), 400)

    def test_a_job_that_closes_all_descriptors(self):
        script = READS.format(100) + "\nimport os, time; os.closerange(3, 4096)\n" + READS.format(100) + "\nprint('done')"
        p = self.record(PYTHON, "-c", script)
        self.assertEqual((p.returncode, p.stdout), (0, "done\n"), p.stderr)
        self.assertGreaterEqual(self.events(), 200)

    def test_a_job_with_a_preload_of_its_own(self):
        own = os.path.join(self.dir, "own.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", own, "-ldl"], input=OWN_PRELOAD, text=True, check=True)
        p = self.record("sh", "-c", f'LD_PRELOAD="{own}:$LD_PRELOAD" exec {PYTHON} -c "{READS.format(200)}"')
        self.assertEqual((p.returncode, p.stdout), (0, "own preload saw it\n"), p.stderr)
        self.assertGreaterEqual(self.events(), 400)

    def test_many_children(self):
        script = ("import os\nfor i in range(40):\n    if os.fork() == 0:\n        " + READS.format(5) + "\n        os._exit(0)\n"
                  "for i in range(40): os.wait()\n")
        p = self.record(PYTHON, "-c", script)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertGreaterEqual(len({row["pid"] for row in self.rows("tracks") if row["events"] >= 10}), 40)

    def test_threads_have_their_names(self):
        script = ("import ctypes, threading, time\ntime.sleep(.2)\ndef work(n):\n    ctypes.CDLL(None).prctl(15, b'reader %d' % n, 0, 0, 0)\n    " + READS.format(20) +
                  "\nfor n in range(3):\n    t = threading.Thread(target=work, args=(n,)); t.start(); t.join()\n")
        p = self.record(PYTHON, "-c", script)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertTrue({"reader 0", "reader 1", "reader 2"} <= {row["name"] for row in self.rows("tracks")})

    @unittest.skipIf(os.geteuid() != 0, "only root can make a disk")
    def test_a_full_disk(self):
        disk = os.path.join(self.dir, "disk")
        os.mkdir(disk)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True, text=True)
        if made.returncode:
            self.skipTest("no disk can be made here: " + made.stderr)
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        out = os.path.join(disk, "x.opw")
        # Pauses let the records be written as they come: a full ring would drop them, and the disk would never be full.
        job = "import os, time; f = os.memfd_create('f')\nfor i in range(60000):\n    os.fsync(f)\n    if i % 4000 == 0: time.sleep(.1)\nprint('done')"
        p = self.record(PYTHON, "-c", job, out=out)
        self.assertEqual((p.returncode, p.stdout), (0, "done\n"), p.stderr)
        self.assertIn("the job continues, and records that cannot be written count as dropped", p.stderr)
        self.assertGreater(self.events(out), 0)
        self.assertFalse([row for row in self.rows("notes", out) if row["kind"] == "damaged"])

    @unittest.skipUnless(platform.machine() in CALLS, "another kind of machine")
    def test_a_sandbox_without_memory_files(self):
        p = self.record(PYTHON, "-c", READS.format(10) + "\nprint('done')", preexec_fn=forbid("memfd_create"))
        if p.returncode == 99:
            self.skipTest("no sandbox can be made here")
        self.assertEqual((p.returncode, p.stdout), (0, "done\n"), p.stderr)
        self.assertIn("no process reported", p.stderr)

    @unittest.skipUnless(platform.machine() in CALLS, "another kind of machine")
    def test_a_sandbox_without_ptrace(self):
        job = subprocess.Popen([PYTHON, "-c", "print('ready', flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               env=environment())
        self.assertEqual(job.stdout.readline(), b"ready\n")
        p = subprocess.run([BIN, "attach", str(job.pid), "-o", self.file, "--for", "100ms"], capture_output=True, text=True, timeout=300,
                           env=environment(), preexec_fn=forbid("ptrace"))
        with open(f"/proc/{job.pid}/maps", encoding="utf8") as f:
            self.assertNotIn("recorder", f.read())
        job.communicate(b"\n", timeout=120)
        self.assertEqual(job.returncode, 0)
        if p.returncode == 99:
            self.skipTest("no sandbox can be made here")
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("not allowed to trace", p.stderr)

    def test_a_ring_that_fills_drops_and_counts(self):
        """The reader is this test: it empties the ring when it likes. The hooks say nothing: no call of their own."""
        head, dropped, tail, records = 64, 72, 256, 4096  # of struct ring
        code = ("import os, sys\nf = os.memfd_create('f')\nprint('ready', flush=True)\nfor line in sys.stdin:\n"
                "    for i in range(int(line)): os.fsync(f)\n    print('ready', flush=True)\n")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(os.path.join(self.dir, "s"))
            listener.listen()
            job = subprocess.Popen([PYTHON, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                   env=environment(LD_PRELOAD=LIBRARY, OPWATCH_RECORDER_RING=str(records),
                                                   OPWATCH_RECORDER_SOCKET=os.path.join(self.dir, "s")))
            self.addCleanup(job.kill)
            connection = listener.accept()[0]
        with connection, job:
            self.assertEqual(job.stdout.readline(), "ready\n")
            kinds, rings = self.messages(connection)
            self.assertEqual(kinds[:2], [1, 2])
            maps = [mmap.mmap(fd, 4096) for fd in rings[1:]]  # the first has the process's texts
            ring = next(m for m in maps if struct.unpack_from("Q", m, head)[0])
            number = lambda at: struct.unpack_from("Q", ring, at)[0]
            self.assertLess(number(head), records // 4)
            job.stdin.write(f"{2 * records}\n")
            self.assertEqual(job.stdout.readline(), "ready\n")
            full = records - records // 16  # the rest is for ends of steps
            self.assertEqual(number(head), full)
            lost = number(dropped)
            self.assertGreater(lost, 0)
            struct.pack_into("Q", ring, tail, full)
            job.stdin.write("10\n")
            self.assertEqual(job.stdout.readline(), "ready\n")
            self.assertGreaterEqual(number(head), full + 10)
            self.assertLessEqual(set(self.messages(connection)[0]), {2})  # other rings, made ahead
            job.stdin.close()
            self.assertEqual(job.wait(timeout=120), 0)

    def messages(self, connection):
        """The kinds of those that wait, and the descriptors that came with them."""
        kinds, fds = [], []
        connection.setblocking(False)
        try:
            while True:
                data, more = socket.recv_fds(connection, 64, 1)[:2]
                if not data:
                    break
                kinds.append(struct.unpack_from("I", data, 12)[0])
                fds += more
        except BlockingIOError:
            pass
        for fd in fds:
            self.addCleanup(os.close, fd)
        return kinds, fds

    def test_a_job_whose_collector_is_gone_before_it_starts(self):
        env = environment(LD_PRELOAD=LIBRARY, OPWATCH_RECORDER_SOCKET=os.path.join(self.dir, "nobody"))
        p = subprocess.run([PYTHON, "-c", READS.format(100) + "\nprint('done')"], capture_output=True, text=True, timeout=300, env=env)
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "done\n", ""))


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
