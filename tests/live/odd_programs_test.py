#!/usr/bin/python3
"""Programs that do unusual things behave the same with and without opwatch: status, output, time to end.

Each file in programs/ is compiled and run alone and under `opwatch record`.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import until  # pylint: disable=wrong-import-position

BIN, SRC = os.environ["OPWATCH_BIN"], os.environ["OPWATCH_SRC"]
# How many records there are to be, kept and dropped together: the program's calls, and one for each thread or so.
CALLS = {"threads_come_and_go": (8001, 8010), "closes_all_descriptors": (2004, 2040), "fibers": (6400, 6410),
         "many_children": (4125, 4510)}
OPTIONS = {"addresses_of_calls": ["-fno-pie", "-no-pie"]}
PROGRAMS = sorted(glob.glob(f"{SRC}/tests/live/programs/*.c"))


class OddProgramsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp()
        os.chmod(cls.dir, 0o755)
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)

    def run_program(self, command):
        p = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        return p.returncode, p.stdout, p.stderr

    def check_command(self, name, command):
        alone = self.run_program(command)
        recording = os.path.join(self.dir, name + ".opw")
        status, out, messages = self.run_program([BIN, "record", "-o", recording, "--", *command])
        # A program that a signal ended is reported as a shell does it.
        expected = 128 - alone[0] if alone[0] < 0 else alone[0]
        self.assertEqual((status, out), (expected, alone[1]))
        return messages

    def check_under_daemon(self, name):
        """Each has the recorder's thread from the start there."""
        alone = self.run_program([self.build(name)])
        status, out, messages = self.run_program([BIN, "record", "--job", name, "--socket", self.socket, "--", self.build(name)])
        # The program replaces opwatch: the status is its own.
        self.assertEqual((status, out), alone[:2], messages)

    def start_daemon(self):
        self.socket = os.path.join(self.dir, "socket")
        daemon = subprocess.Popen([BIN, "daemon", "--socket", self.socket, "--dir", os.path.join(self.dir, "rings"), "--no-kineto"],
                                  stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        until(lambda: os.path.exists(self.socket), "the daemon does not start")

    @unittest.skipUnless(os.environ.get("OPWATCH_ODD_DAEMON"), "OPWATCH_ODD_DAEMON is not set; make nightly sets it")
    def test_all_under_the_daemon(self):
        self.start_daemon()
        for source in PROGRAMS:
            with self.subTest(program=os.path.basename(source)):
                self.check_under_daemon(os.path.basename(source)[:-2])

    def build(self, name):
        program = os.path.join(self.dir, name)
        if not os.path.exists(program):
            subprocess.run(["cc", "-O1", "-std=gnu17", "-pthread", *OPTIONS.get(name, []), f"{SRC}/tests/live/programs/{name}.c", "-o", program,
                            "-lm"], check=True)
        return program

    def check(self, source):
        name = os.path.basename(source)[:-2]
        messages = self.check_command(name, [self.build(name)])
        if name in CALLS:
            found = re.search(r"(\d+) records of", messages), re.search(r"(\d+) more were dropped", messages)
            kept, dropped = (int(m.group(1)) if m else 0 for m in found)
            least, most = CALLS[name]
            # Fast calls are counted, and a record stands for several.
            sums = subprocess.run([BIN, "sql", os.path.join(self.dir, name + ".opw"), "--csv",
                                   "SELECT coalesce(sum(runs - 1), 0) FROM event WHERE runs > 1"], capture_output=True, text=True)
            if sums.returncode and "without SQL" in sums.stderr:
                self.skipTest("how many calls the records stand for needs SQL")
            self.assertEqual(sums.returncode, 0, sums.stderr)
            more = int(float(sums.stdout.splitlines()[1]))
            self.assertTrue(least <= kept + dropped + more <= most, messages + sums.stdout)

    def test_unshare_by_a_pointer_from_dlsym(self):
        """Python's ctypes; only a program of one thread may do that."""
        code = "import ctypes, time; time.sleep(.1); print(ctypes.CDLL(None).unshare(0x10000000))"
        self.check_command("ctypes", ["/usr/bin/python3", "-c", code])

    def test_python_that_flushes_files(self):
        """Checkpoints do; in Debian's Python the addresses of these functions are in the program itself."""
        code = "import os\nf = os.memfd_create('f')\nfor i in range(100): os.write(f, b'x'); os.fsync(f); os.fdatasync(f)\nprint(os.lseek(f, 0, 1))"
        self.check_command("flushes", ["/usr/bin/python3", "-c", code])

    def test_full_and_read_only_disks(self):
        """The program runs as alone, whatever becomes of the recording."""
        place = os.path.join(self.dir, "small")
        os.mkdir(place)
        program = self.build("siglongjmp_from_handler")
        for options in ("size=64k", "ro"):
            script = (f"mount -t tmpfs -o {options} none {place} || exit 77; "
                      f"exec {BIN} record -o {place}/x.opw -- {program}")
            status, out, messages = self.run_program(["unshare", "-m", "sh", "-c", script])
            if status in (1, 77) and "jumps" not in out:
                self.skipTest("no mounts here: " + messages)
            with self.subTest(options=options):
                self.assertEqual((status, out), (0, "jumps: 3000\n"), messages)
                self.assertIn("opwatch: ", messages)  # says so


def add_test(source):
    def test(self):
        self.check(source)
    setattr(OddProgramsTest, "test_" + os.path.basename(source)[:-2], test)


for path in PROGRAMS:
    add_test(path)

if __name__ == "__main__":
    unittest.main()
