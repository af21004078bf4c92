#!/usr/bin/python3
"""Where recordings go: a file that is there stays until there is something to put in its place, whatever goes wrong before; `-` is
standard output; folders, pipes, devices and places that cannot be written are told."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests", "support"))
import daemon_test
from patience import until

BIN = os.environ["OPWATCH_BIN"]
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")
PYTHON = "/usr/bin/python3"
JOB = """
import select, sys
print('ready', flush=True)
while not select.select([sys.stdin], [], [], 0.001)[0]:
    open('/etc/passwd', 'rb').read()
"""
READS = ("cat", "/etc/passwd")
ENV = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, "x.opw")
        with open(self.file, "w", encoding="utf8") as f:
            f.write("mine")

    def run_it(self, *args, **kwargs):
        kwargs.setdefault("stdout", subprocess.PIPE)
        return subprocess.run([BIN, *args], stderr=subprocess.PIPE, timeout=300, env=ENV, **kwargs)

    def job(self):
        job = subprocess.Popen([PYTHON, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.stdin.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        self.assertEqual(job.stdout.readline(), b"ready\n")
        return job

    def said(self, p, code, *texts):
        text = p.stderr.decode()
        if "not allowed to trace" in text:
            self.skipTest(text)
        self.assertEqual(p.returncode, code, text)
        for part in texts:
            self.assertIn(part, text)
        self.assertNotIn(".tmp", text, "a name that the user did not give")

    def kept(self):
        with open(self.file, encoding="utf8") as f:
            self.assertEqual(f.read(), "mine")
        self.assertEqual([name for name in os.listdir(self.dir) if ".tmp" in name], [])

    def opens(self, data):
        self.assertTrue(data)
        path = os.path.join(self.dir, "copy.opw")
        with open(path, "wb") as f:
            f.write(data)
        self.opens_file(path)

    def opens_file(self, path):
        p = self.run_it("tracks", path)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertNotIn(b"damaged", p.stderr)


class Stays(Case):
    """What is there stays."""

    def test_programs_that_cannot_be_started(self):
        os.mkdir(os.path.join(self.dir, "folder"))
        with open(os.path.join(self.dir, "script"), "w", encoding="utf8") as f:
            f.write("#!/no/such/interpreter")
        os.chmod(f.name, 0o755)
        for program, code in (("nothing", 127), ("x.opw", 126), ("folder", 126), ("script", 127)):
            p = self.run_it("record", "-o", self.file, "--", os.path.join(self.dir, program))
            self.said(p, code, program)
            self.kept()

    def test_through_a_link(self):
        link = os.path.join(self.dir, "l.opw")
        os.symlink("x.opw", link)
        self.said(self.run_it("record", "-o", link, "--", self.file), 126)
        self.kept()
        self.said(self.run_it("record", "-o", link, "--", *READS), 0)
        self.assertTrue(os.path.islink(link))
        self.opens_file(self.file)

    def test_a_link_to_nothing(self):
        os.symlink("new.opw", os.path.join(self.dir, "l.opw"))
        self.said(self.run_it("record", "-o", f"{self.dir}/l.opw", "--", self.file), 126)
        self.assertFalse(os.path.exists(f"{self.dir}/new.opw"))
        self.said(self.run_it("record", "-o", f"{self.dir}/l.opw", "--", *READS), 0)
        self.opens_file(f"{self.dir}/new.opw")

    def test_a_process_that_cannot_be_joined(self):
        self.said(self.run_it("attach", str(os.getpid()), str(2**22 + 1), "-o", self.file, "--ring", "3"), 2)
        self.kept()
        stuck = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(stuck.wait)
        self.addCleanup(stuck.kill)
        stuck.kill()
        until(lambda: pathlib.Path(f"/proc/{stuck.pid}/stat").read_text(encoding="utf8").split()[2] == "Z", "it does not die")
        p = self.run_it("attach", str(stuck.pid), "-o", self.file, "--for", "1s")  # dead, and not yet buried
        self.said(p, 1, str(stuck.pid))
        self.kept()

    def test_a_job_of_no_daemon(self):
        for args in (("record", "--last", "60s"), ("attach",)):
            p = self.run_it(*args, "--job", "x", "--socket", f"{self.dir}/none", "-o", self.file)
            self.said(p, 1, "none")
            self.kept()

    def test_until_the_program_runs(self):
        """From then on the file is the recording, also when the recorder is killed."""
        p = subprocess.Popen([BIN, "record", "-o", self.file, "--", PYTHON, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=ENV)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stdin.close)
        self.assertEqual(p.stdout.readline(), b"ready\n")
        until(lambda: os.path.getsize(self.file) > 4096, "nothing is written")
        p.kill()
        p.wait()
        self.opens_file(self.file)
        self.assertEqual(os.listdir(self.dir), ["x.opw"])


class Places(Case):
    def test_a_folder(self):
        job = self.job()
        for args in (("record", "--must-record", "-o", self.dir, "--", "true"), ("attach", str(job.pid), "-o", self.dir, "--for", "1ms"),
                     ("stacks", str(job.pid), "-o", self.dir, "--for", "1ms")):
            self.said(self.run_it(*args), 1, "is a directory", self.dir)
        self.kept()

    def test_a_device(self):
        p = self.run_it("record", "-o", "/dev/null", "--", "true")
        self.said(p, 0, "of 1 process")
        self.assertNotIn(b"Invalid", p.stderr)
        self.assertTrue(os.path.exists("/dev/null"))

    def test_a_pipe(self):
        job = self.job()
        for args in (("record", "--must-record", "-o", "/dev/stdout", "--", "true"), ("attach", str(job.pid), "-o", "/dev/stdout", "--for", "1ms")):
            p = self.run_it(*args)
            self.said(p, 1, "/dev/stdout is a pipe")
            self.assertEqual(p.stdout, b"")

    @unittest.skipIf(os.geteuid() != 0, "only root can be another user")
    def test_a_place_of_somebody_else(self):
        try:
            subprocess.run([BIN, "--version"], check=True, capture_output=True, **NOBODY)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("that user cannot run " + BIN)
        os.chmod(self.dir, 0o755)
        self.said(self.run_it("record", "--must-record", "-o", self.file, "--", "true", **NOBODY), 1, self.file + ": Permission denied")
        self.kept()


class Standard(Case):
    """-o -"""

    def setUp(self):
        super().setUp()
        self.before = os.getcwd()
        os.chdir(self.dir)
        self.addCleanup(os.chdir, self.before)

    def tearDown(self):
        self.assertFalse(os.path.exists("-"), "a file of that name")

    def some_time(self, there, *args):
        """The same for longer, unless there is something, on a machine that has no time for it."""
        for time in ("200ms", "10s", "60s"):
            p = self.run_it(*args, "-o", "-", "--for", time)
            self.said(p, 0)
            if there(p):
                return p
        return self.fail("nothing is recorded")

    def test_attach(self):
        p = self.some_time(lambda p: b": 0 records" not in p.stderr, "attach", str(self.job().pid))
        self.said(p, 0, "standard output: ")
        self.opens(p.stdout)

    def test_attach_ends_with_a_signal(self):
        job = self.job()
        tmp = os.path.join(self.dir, "tmp")
        os.mkdir(tmp)
        p = subprocess.Popen([BIN, "attach", str(job.pid), "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**ENV, "TMPDIR": tmp})
        until(lambda: p.poll() is not None or self.size_below(tmp) > 4096, "nothing is recorded")
        p.send_signal(signal.SIGINT)
        data, p.stderr = p.communicate(timeout=300)
        self.said(p, 0)
        self.opens(data)
        self.assertEqual(os.listdir(tmp), [])

    def size_below(self, folder):
        try:
            return sum(os.path.getsize(os.path.join(d, name)) for d, _, names in os.walk(folder) for name in names if name == "x.opw")
        except FileNotFoundError:
            return 0

    def test_attach_to_nothing(self):
        p = self.run_it("attach", str(2**22 + 1), "-o", "-")
        self.said(p, 1, "there is no process")
        self.assertEqual(p.stdout, b"")

    def test_stacks(self):
        job = self.job()
        probe = self.run_it("stacks", str(job.pid))
        if b"may not" in probe.stderr:
            self.skipTest(probe.stderr)
        self.opens(self.some_time(lambda p: b" 0 stacks" not in p.stderr, "stacks", str(job.pid)).stdout)
        self.some_time(lambda p: b"<module>" in p.stdout, "stacks", str(job.pid), "--to", "folded")

    def test_the_program_has_it(self):
        p = self.run_it("record", "-o", "-", "--", "echo", "hello")
        self.said(p, 2, "the program uses standard output")
        self.assertEqual(p.stdout, b"")

    def test_a_terminal(self):
        master, terminal = os.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, terminal)
        job = self.job()
        for args in (("attach", str(job.pid), "--for", "1ms"), ("stacks", str(job.pid), "--for", "1ms"), ("attach", "--job", "x"),
                     ("record", "--last", "60s", "--job", "x")):
            self.said(self.run_it(*args, "-o", "-", stdout=terminal), 2, "cannot be written to a terminal")

    def test_nobody_reads(self):
        read, write = os.pipe()
        os.close(read)
        p = self.run_it("attach", str(self.job().pid), "-o", "-", "--for", "1ms", stdout=write)
        os.close(write)
        self.said(p, 0)

    def test_a_full_disk(self):
        with open("/dev/full", "wb") as full:
            self.said(self.run_it("attach", str(self.job().pid), "-o", "-", "--for", "1ms", stdout=full), 1,
                      "standard output: No space left on device")

    def test_what_is_saved_beside_it_has_no_place(self):
        p = self.run_it("attach", str(self.job().pid), "-o", "-", "--on-stall", "1s", "--for", "1ms")
        self.said(p, 2, "--on-stall")

    def test_captures_are_folders(self):
        for args in (("--kineto",), ("--tf", "localhost:1")):
            self.said(self.run_it("capture", *args, "-o", "-"), 2, "folder")


class Daemon(daemon_test.Case):
    """Out of the ring of the daemon."""

    def test_standard_output(self):
        self.start()
        job = self.job("train")
        self.wait(lambda: self.events("train"), "nothing is recorded")
        file = os.path.join(self.dir, "copy.opw")
        for args in (("record", "--last", "60s"), ("attach", "--for", "100ms")):
            with open(file, "wb") as out:
                p = subprocess.run([BIN, *args, "--job", "train", "-o", "-", "--socket", self.socket], stdout=out, stderr=subprocess.PIPE,
                                   cwd=self.dir, timeout=300, env=daemon_test.environment())
            if args[0] == "attach" and b"nothing" in p.stderr:
                continue  # it had no time to do anything
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertIn(b"standard output: ", p.stderr)
            self.assertTrue(self.view("work", file))
        self.assertFalse(os.path.exists(os.path.join(self.dir, "-")))
        self.finish(job)

    def test_the_screen_once(self):
        self.start()
        job = self.job("train")
        p = subprocess.run([BIN, "top", "--json", "-o", "-", "--socket", self.socket], capture_output=True, cwd=self.dir, timeout=300,
                           env=daemon_test.environment())
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"train", p.stdout)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "-")))
        self.finish(job)


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
