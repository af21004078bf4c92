#!/usr/bin/python3
"""Other users of the host cannot lock anybody out of root's daemon, nor have files written where they like."""
import http.client
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import until  # pylint: disable=wrong-import-position
from ring import ring_version  # pylint: disable=wrong-import-position

BIN = os.environ["OPWATCH_BIN"]
NOBODY = 65534
SILENT = """
import socket, sys
all = []
for i in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    all.append(s)
print("ready", flush=True)
sys.stdin.read()
"""

ASK = """
import socket, struct, subprocess, sys
REQUEST = struct.Struct("<8sIIIIq64s320s")
def expect(pid, name):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    s.send(REQUEST.pack(b"OPW-ASK\\n", 2, 3, 0, pid, 0, name.encode(), b""))
    answer = []
    while True:
        packet = s.recv(2048)
        kind, _, status = struct.unpack("<III", packet[12:24])
        if kind == 5: answer.append((status, packet[24:].decode()))
        if kind == 6: return answer
"""
OWN = ASK + """
all = [subprocess.Popen(["sleep", "60"]) for i in range(20)]
print(all[0].pid, sum(not expect(p.pid, "mine") for p in all), flush=True)
for line in sys.stdin:
    print(len(expect(int(line), "stolen")), flush=True)
for p in all: p.kill(); p.wait()
"""
RINGS = """
import fcntl, mmap, os, socket, struct, sys
F_ADD_SEALS, SHRINK_GROW_SEAL = 1033, 2 | 4 | 1
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
version = int(sys.argv[2])
def send(kind, number, size, begin, at_64):
    fd = os.memfd_create("x", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    os.pwrite(fd, begin, 0)
    os.pwrite(fd, at_64, 64)
    fcntl.fcntl(fd, F_ADD_SEALS, SHRINK_GROW_SEAL)
    socket.send_fds(s, [struct.pack("<8sIIII", b"OPW-HELO", version, kind, os.getpid(), number)], [fd])
    os.close(fd)
region = struct.pack("<8sIIIIIIQQII", b"OPW-PROC", version, 0, os.getpid(), os.getppid(), 0, 1 << 20, 1, 1, 0, 0)
send(1, 0, 4096 + (1 << 20), region, b"")
records = 1 << 24
for i in range(1, 101):
    size = (128 << 40) - 4096 if i % 10 == 0 else 4096 + records * 64
    send(2, i, size, struct.pack("<8sIIII", b"OPW-RING", version, records if i % 10 else 1 << 31, i, os.getpid()),
         struct.pack("<Q", records))
print("ready", flush=True)
sys.stdin.read()
"""


@unittest.skipIf(os.geteuid() != 0, "needs root")
class NeighboursTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        os.chmod(self.dir, 0o755)

    def start_daemon(self, *options):
        self.socket = os.path.join(self.dir, "socket")
        log = pathlib.Path(self.dir, "log")
        with log.open("wb") as to:
            daemon = subprocess.Popen([BIN, "daemon", "--all-users", "--socket", self.socket, "--dir", self.dir + "/rings",
                                       "--no-kineto", "--metrics", "0", *options], stderr=to, stdin=subprocess.DEVNULL)
        self.daemon = daemon
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        return int(until(lambda: re.search(r"http://127\.0\.0\.1:(\d+)/metrics", log.read_text()), log.read_text)[1])

    def listed(self):
        return subprocess.run([BIN, "jobs", "--socket", self.socket], capture_output=True, text=True, timeout=100, check=True).stdout

    def answers(self):
        begin = time.monotonic()
        p = subprocess.run([BIN, "jobs", "--socket", self.socket], capture_output=True, text=True, timeout=100)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertLess(time.monotonic() - begin, 5)

    def test_silent_connections(self):
        self.start_daemon()
        for user in ({"user": NOBODY}, {}):
            with subprocess.Popen(["/usr/bin/python3", "-c", SILENT, self.socket, "300"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True, **user) as p:
                self.assertEqual(p.stdout.readline(), "ready\n")
                if not user:
                    time.sleep(1.5)  # root's own are closed after a second
                self.answers()
                p.communicate("")

    def test_announcements(self):
        """A user announces 16 processes, not those of others; root's announcements stay, and root has room left."""
        self.start_daemon()
        with subprocess.Popen(["/usr/bin/python3", "-c", OWN, self.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              user=NOBODY) as p:
            pid, accepted = map(int, p.stdout.readline().split())
            self.assertEqual(accepted, 16)
            ask = lambda body, *args: subprocess.run(["/usr/bin/python3", "-c", ASK + body, self.socket, *args], capture_output=True,
                                                     text=True, timeout=60, check=True).stdout
            self.assertIn("another user", subprocess.run(["/usr/bin/python3", "-c", ASK + "print(expect(1, 'init'))", self.socket],
                                                         capture_output=True, text=True, user=NOBODY, check=True).stdout)
            # Root says what one of them is: its user cannot change that any more.
            self.assertEqual(ask("print(expect(int(sys.argv[2]), 'by-root'))", str(pid)), "[]\n")
            p.stdin.write(f"{pid}\n")
            p.stdin.flush()
            self.assertEqual(p.stdout.readline(), "1\n")
            self.assertEqual(ask("print(sum(not expect(10000000 + i, 'root') for i in range(60)))"), "48\n")
            p.communicate("")

    def test_sparse_rings(self):
        """Rings of 1 GB of which nothing exists, and of 128 TiB: the daemon maps what one user may have, and goes on."""
        self.start_daemon()
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        status = lambda what: int(re.search(what + r":\s+(\d+) kB",
                                            pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text())[1]) << 10
        before = status("VmSize")
        with subprocess.Popen(["/usr/bin/python3", "-c", RINGS, self.socket, ring_version()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              user=NOBODY) as p:
            self.assertEqual(p.stdout.readline(), "ready\n")
            for _ in range(5):
                self.answers()
                time.sleep(0.2)
            self.assertLess(status("VmSize") - before, memory // 8 + (2 << 30))
            self.assertLess(status("VmRSS"), memory // 8 + (1 << 30))
            # A job of root is recorded meanwhile.
            done = subprocess.run([BIN, "record", "--job", "good", "--must-record", "--socket", self.socket, "--", "dd", "if=/bin/ls",
                                   "of=/dev/null", "status=none"], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            until(lambda: re.search(r"good .*ended", self.listed()), self.listed)
            p.communicate("")

    def test_host_of_metrics(self):
        port = self.start_daemon()
        for host, status in ((f"127.0.0.1:{port}", 200), (f"localhost:{port}", 200), (f"[::1]:{port}", 200), ("evil.example", 421),
                             (f"evil.example:{port}", 421), ("127.0.0.1", 421), (f"127.0.0.1:{port}.evil.example", 421)):
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            c.request("GET", "/metrics", headers={"Host": host})
            self.assertEqual(c.getresponse().status, status, host)
            c.close()

    def test_names_in_metrics(self):
        """Root and the owner of a job see its name; others do not, unless the daemon was asked for that."""
        code = "import sys, urllib.request as u; print(u.urlopen('http://127.0.0.1:%s/metrics' % sys.argv[1]).read().decode())"
        for options, for_others in (((), False), (("--metrics-names",), True)):
            port = self.start_daemon(*options)
            job = subprocess.Popen([BIN, "record", "--job", "secret", "--socket", self.socket, "--", "/usr/bin/python3", "-c",
                                    "open('/etc/passwd').read(); input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
            ask = lambda user: subprocess.run(["/usr/bin/python3", "-c", code, str(port)], capture_output=True, text=True, user=user,
                                              timeout=60, check=True).stdout
            until(lambda: 'job="secret"' in ask(0), lambda: ask(0))
            self.assertEqual('job="secret"' in ask(NOBODY), for_others)
            self.assertIn("opwatch_job_records", ask(NOBODY))
            job.communicate(b"\n")
            self.doCleanups()
            self.setUp()

    def test_link_of_another_user(self):
        """Also where fs.protected_symlinks is off."""
        shared = os.path.join(self.dir, "shared")
        os.mkdir(shared)
        os.chmod(shared, 0o1777)
        victim = pathlib.Path(self.dir, "victim")
        victim.write_text("precious")
        link = os.path.join(shared, "x.opw")
        os.symlink(victim, link)
        for owner, code in ((NOBODY, 1), (0, 0)):
            os.chown(link, owner, owner, follow_symlinks=False)
            p = subprocess.run([BIN, "record", "--must-record", "-o", link, "--", "true"], capture_output=True, text=True)
            self.assertEqual(p.returncode, code, p.stderr)
            self.assertEqual(victim.read_bytes() == b"precious", code == 1)
        os.unlink(link)
        os.mkfifo(link)
        os.chown(link, NOBODY, NOBODY)
        p = subprocess.run([BIN, "record", "--must-record", "-o", link, "--", "true"], capture_output=True, text=True, timeout=60)
        self.assertEqual(p.returncode, 1, p.stderr)

    def test_folder_of_another_user_is_a_link(self):
        shared, other = os.path.join(self.dir, "shared2"), os.path.join(self.dir, "other")
        for folder in (shared, other):
            os.mkdir(folder)
        os.chmod(shared, 0o1777)
        os.symlink("../other", os.path.join(shared, "folder"))
        os.symlink("shared2/folder", os.path.join(self.dir, "own-link"))  # root's own leads through it
        for path in (os.path.join(shared, "folder", "x.opw"), os.path.join(self.dir, "own-link", "x.opw")):
            for owner, code in ((NOBODY, 1), (0, 0)):
                os.chown(os.path.join(shared, "folder"), owner, owner, follow_symlinks=False)
                p = subprocess.run([BIN, "record", "--must-record", "-o", path, "--", "true"], capture_output=True, text=True)
                self.assertEqual(p.returncode, code, p.stderr)
                self.assertEqual(os.path.exists(os.path.join(other, "x.opw")), code == 0)
            os.unlink(os.path.join(other, "x.opw"))


if __name__ == "__main__":
    unittest.main()
