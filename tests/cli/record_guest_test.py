#!/usr/bin/python3
"""The recorder is a guest: programs that shut themselves into a sandbox, give up rights, ask for what only programs of one
thread get, or close what they do not know do what they do without it; what is not recorded is said. Joining a program
time and again leaves no more behind than joining it once, and one in a sandbox is left alone."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import until  # noqa: E402

BIN, SRC = os.environ["OPWATCH_BIN"], os.environ["OPWATCH_SRC"]
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")
# Threads read files until the input ends.
THREADS = """
import sys, threading
end = threading.Event()
def work():
    while not end.wait(0.001): open('/etc/passwd', 'rb').read()
threads = [threading.Thread(target=work) for i in range(4)]
for t in threads: t.start()
print('ready', flush=True)
sys.stdin.read()
end.set()
"""


def environment():
    return {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}


class GuestTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.programs)
        os.chmod(cls.programs, 0o755)  # it may become another user
        cls.host = os.path.join(cls.programs, "guest_host")
        subprocess.run(["cc", "-O2", "-std=gnu17", "-D_GNU_SOURCE", "-pthread", f"{SRC}/tests/support/guest_host.c", "-o", cls.host], check=True)

    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, "x.opw")

    def calls(self):
        """How many the records stand for: frequent ones are counted."""
        p = subprocess.run([BIN, "sql", self.file, "SELECT coalesce(sum(greatest(runs, 1)), 0) AS calls FROM event", "--json"], capture_output=True,
                           text=True)
        if "without SQL" in p.stderr:
            self.skipTest("how many calls the records stand for needs SQL")
        return json.loads(p.stdout)["rows"][0]["calls"] if p.returncode == 0 else 0

    def run_host(self, *prefix, way):
        return subprocess.run([*prefix, self.host, way], capture_output=True, text=True, env=environment(), timeout=300)

    def record(self, way):
        """What a program does that runs as it would without."""
        alone = self.run_host(way=way)
        if alone.returncode == 77:
            self.skipTest("the system does not allow it")
        self.assertEqual((alone.returncode, alone.stdout), (0, "ok\n"))
        p = self.run_host(BIN, "record", "-o", self.file, "--", way=way)
        self.assertEqual((p.returncode, p.stdout), (0, "ok\n"), p.stderr)
        return p.stderr

    def test_sandboxes(self):
        for way in ("sandbox", "sandbox-later", "strict"):
            with self.subTest(way):
                self.assertIn("a sandbox (seccomp)", self.record(way))
        self.assertGreaterEqual(self.calls(), 20)  # before

    def test_sandboxes_of_children(self):
        for way in ("sandbox-child", "sandbox-exec"):
            with self.subTest(way):
                self.record(way)

    def test_rights_are_given_up(self):
        self.record("drop")
        self.assertGreaterEqual(self.calls(), 2000)

    def test_what_only_one_thread_may_ask_for(self):
        self.record("new-users")
        self.assertGreaterEqual(self.calls(), 2000)

    def test_rights_of_children_that_share_memory(self):
        self.record("vfork-drop")
        self.assertGreaterEqual(self.calls(), 50 * 20)

    def test_all_descriptors_are_closed(self):
        with subprocess.Popen([BIN, "record", "-o", self.file, "--", self.host, "close-all"], stdin=subprocess.PIPE, env=environment(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as p:
            until(lambda: self.calls() >= 1000, "it is not recorded any more")
            said, errors = p.communicate()
            self.assertEqual((p.returncode, said), (0, "ok\n"), errors)

    def removed(self, folder):
        try:
            os.rmdir(folder)
        except OSError:
            return False  # its last process is about to end
        return True

    def small_group(self, size):
        """A control group with so much memory; its list of processes."""
        for base, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            group = os.path.join(base, f"opwatch-test-{os.getpid()}")
            try:
                os.mkdir(group)
                self.addCleanup(until, lambda folder=group: self.removed(folder), "the group is not empty")
                with open(os.path.join(group, limit), "w", encoding="utf8") as f:
                    f.write(str(size))
                return os.path.join(group, "cgroup.procs")
            except OSError:
                continue
        return self.skipTest("no control group can be made here")

    def test_a_group_with_little_memory(self):
        """What rings take counts for the job's group, whose processes are ended when it is full."""
        processes = self.small_group(24 << 20)
        into = ["sh", "-c", f'echo $$ > {processes} && exec "$@"', "sh"]
        alone = self.run_host(*into, way="threads")
        if alone.returncode:
            self.skipTest("it does not run there")
        p = self.run_host(BIN, "record", "-o", self.file, "--", *into, way="threads")
        self.assertEqual((p.returncode, p.stdout), (0, "ok\n"), p.stderr)
        self.assertGreater(self.calls(), 1000)

    def start(self, *command):
        job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.stdin.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        return job

    def attach(self, job, *options):
        p = subprocess.run([BIN, "attach", "-o", self.file, *options, str(job.pid)], capture_output=True, text=True, timeout=300,
                           env=environment())
        if "not allowed to trace" in p.stderr:
            self.skipTest("the system allows no tracing here: " + p.stderr)
        return p

    def mappings(self, job):
        """How many are the recorder's: it makes its rings of memory files."""
        with open(f"/proc/{job.pid}/maps", encoding="utf8") as f:
            return sum("memfd:opwatch" in line for line in f)

    def test_joined_time_and_again(self):
        job = self.start("/usr/bin/python3", "-c", THREADS)
        self.assertEqual(job.stdout.readline(), b"ready\n")
        for _ in range(20):
            p = self.attach(job, "--for", "50ms")
            self.assertEqual(p.returncode, 0, p.stderr)
        self.assertLessEqual(self.mappings(job), 14)  # the region, a ring for each thread, and eight made ahead
        until(lambda: self.attach(job, "--for", "200ms").returncode == 0 and self.calls() > 10, "nothing is recorded any more")
        job.stdin.close()
        self.assertEqual(job.wait(timeout=300), 0)

    def test_a_sandboxed_process_is_left_alone(self):
        job = self.start(self.host, "sandbox-wait")
        line = job.stdout.readline()
        if line != b"ready\n":
            self.skipTest("the system does not allow it")
        p = self.attach(job, "--for", "50ms")
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertIn("sandbox (seccomp)", p.stderr)
        job.stdin.close()
        self.assertEqual(job.wait(timeout=300), 0)


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
