#!/usr/bin/python3
"""opwatch record: the job runs as it would without, its exit status and signals pass, and what it did is in the file:
plain programs, children, programs that are executed, many threads, own preloads, killed jobs, full disks, other versions."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import until  # noqa: E402

BIN, SRC = os.environ["OPWATCH_BIN"], os.environ["OPWATCH_SRC"]
PYTHON = "/usr/bin/python3"
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")
READS = "for i in range({}): open('/etc/passwd', 'rb').read()"
FLUSHES = "import os; f = os.memfd_create('f')\nfor i in range({}): os.fsync(f)"  # frequent reads would be counted; each of these is recorded


def environment(**more):
    env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "RANK", "SLURM_PROCID")}
    return {**env, **more}


class RecordTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, "x.opw")

    def record(self, *command, options=(), **kwargs):
        kwargs.setdefault("env", environment())
        return subprocess.run([BIN, "record", "-o", self.file, *options, "--", *command], capture_output=True,
                              text=True, timeout=300, **kwargs)

    def rows(self, view, *options):
        p = subprocess.run([BIN, view, "--json", *options, self.file], capture_output=True, text=True, timeout=120)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]

    def rows_so_far(self, view):
        """Of a file that may not be there yet."""
        p = subprocess.run([BIN, view, "--json", self.file], capture_output=True, text=True)
        return json.loads(p.stdout)["rows"] if p.returncode == 0 else []

    def record_until_told(self, part, script, if_large=None):
        """Records a script that goes on until its input ends, until there is such a note; what the script printed first. If that is
        more than 8 MB, another note must come, too."""
        with subprocess.Popen([BIN, "record", "-o", self.file, "--", PYTHON, "-c", script], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as p:
            said = int(p.stdout.readline())
            for wanted in [part] * (said >= 0) + [if_large] * (if_large is not None and said > 8e6):
                until(lambda: any(wanted in row["text"] for row in self.rows_so_far("notes")), f"no note says '{wanted}'")
            self.assertEqual((p.communicate()[0], p.returncode), ("", 0))
        return said

    def count(self, op):
        return sum(row["runs"] for row in self.rows("work") if row["name"] == op)

    def test_output_and_exit_status_are_the_jobs(self):
        p = self.record("sh", "-c", "echo out; echo err >&2; exit 7")
        self.assertEqual((p.returncode, p.stdout), (7, "out\n"))
        self.assertTrue(p.stderr.startswith("err\n"), p.stderr)
        self.assertEqual(self.record("sh", "-c", "kill -TERM $$").returncode, 128 + signal.SIGTERM)

    def test_a_program_that_is_not_there(self):
        p = self.record("no-such-program-here", env=environment(PATH="/usr/bin:/bin"))  # folders that may be searched
        self.assertEqual(p.returncode, 127)
        self.assertIn("no-such-program-here: No such file", p.stderr)
        self.assertFalse(os.path.exists(self.file), "nothing was recorded")
        with open(self.file, "w", encoding="utf8") as f:
            f.write("mine")
        for program in ("no-such-program-here", "./no-such-program-here"):
            self.assertEqual(self.record(program).returncode, 127)
        with open(self.file, encoding="utf8") as f:
            self.assertEqual(f.read(), "mine")
        self.assertEqual(subprocess.run([BIN, "record"], capture_output=True).returncode, 2)

    def test_file_reads(self):
        p = self.record(PYTHON, "-c", READS.format(120))
        self.assertEqual(p.returncode, 0, p.stderr)
        reads = sum(row["events"] for row in self.rows("tracks"))
        self.assertGreaterEqual(reads, 240)

    def test_children_and_executed_programs(self):
        script = ("import os, sys\n" + READS.format(10) + "\nif os.fork() == 0:\n    " + READS.format(200) +
                  f"\n    os.execv('{PYTHON}', ['{PYTHON}', '-c', \"{READS.format(300)}\"])\nos.wait()\n")
        p = self.record(PYTHON, "-c", script)
        self.assertEqual(p.returncode, 0, p.stderr)
        tracks = [row for row in self.rows("tracks") if row["events"]]
        self.assertEqual(len({row["pid"] for row in tracks}), 2)
        self.assertGreaterEqual(sum(row["events"] for row in tracks), 1000)

    def test_many_threads_one_after_the_other(self):
        script = ("import threading\ndef work():\n    " + READS.format(2) + "\nfor i in range(300):\n"
                  "    t = threading.Thread(target=work); t.start(); t.join()\n")
        p = self.record(PYTHON, "-c", script, options=("--ring", "1024"))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertGreaterEqual(len(self.rows("tracks")), 300)

    def test_a_full_ring_drops_and_counts(self):
        p = self.record(PYTHON, "-c", FLUSHES.format(40000), options=("--ring", "64"))
        self.assertEqual(p.returncode, 0, p.stderr)
        notes = [row for row in self.rows("notes") if "dropped" in row["text"]]
        events = sum(row["events"] for row in self.rows("tracks"))
        self.assertEqual(bool(notes), "more were dropped" in p.stderr)
        self.assertGreaterEqual(events + sum(row["count"] for row in notes), 40000)

    def test_a_killed_job(self):
        p = self.record(PYTHON, "-c", "import signal\n" + FLUSHES.format(600) + "\nos.kill(os.getpid(), signal.SIGKILL)")
        self.assertEqual(p.returncode, 128 + signal.SIGKILL)
        self.assertGreaterEqual(sum(row["events"] for row in self.rows("tracks")), 600)

    def test_signals_are_passed_on(self):
        script = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(42))\nprint('ready', flush=True)\nsignal.pause()"
        p = subprocess.Popen([BIN, "record", "-o", self.file, "--", PYTHON, "-c", script], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=environment())
        self.assertEqual(p.stdout.readline(), b"ready\n")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(timeout=120), 42)
        p.stdout.close()

    def test_opens_while_it_runs_and_survives_the_collectors_death(self):
        script = "import sys\n" + READS.format(200) + "\nprint('ready', flush=True)\nsys.stdin.read()\nprint('done', flush=True)"
        p = subprocess.Popen([BIN, "record", "-o", self.file, "--", PYTHON, "-c", script], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment())
        self.assertEqual(p.stdout.readline(), b"ready\n")
        until(lambda: sum(row["events"] for row in self.rows_so_far("tracks")) >= 400, "nothing was written while the job ran")
        p.kill()
        p.wait()
        self.assertGreaterEqual(sum(row["events"] for row in self.rows("tracks")), 400)
        p.stdin.close()
        self.assertEqual(p.stdout.readline(), b"done\n")  # the job goes on
        p.stdout.close()

    def test_what_a_killed_collector_leaves_is_removed_by_the_next(self):
        sockets = os.path.join(self.dir, "run")
        os.mkdir(sockets)
        env = environment(XDG_RUNTIME_DIR=sockets)
        p = subprocess.Popen([BIN, "record", "-o", self.file, "--", "sh", "-c", "echo ready; cat"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        self.assertEqual(p.stdout.readline(), b"ready\n")
        left = [os.path.join(sockets, name) for name in os.listdir(sockets)]
        self.assertEqual(len(left), 1)
        for path in (os.path.join(left[0], "s"), left[0]):
            os.utime(path, (1, 1))
        self.record("true", env=env)
        self.assertTrue(os.path.exists(left[0]), "of one that still listens")
        p.kill()
        p.wait()
        p.stdin.close()
        p.stdout.close()
        self.record("true", env=env)
        self.assertEqual(os.listdir(sockets), [])

    def test_the_users_own_preload_stays_first(self):
        shutil.copy(LIBRARY, os.path.join(self.dir, "own.so"))
        own = os.path.join(self.dir, "own.so")
        p = self.record("sh", "-c", "echo $LD_PRELOAD", env=environment(LD_PRELOAD=own, ASAN_OPTIONS="verify_asan_link_order=0"))
        self.assertEqual(p.stdout, f"{own}:{os.path.realpath(LIBRARY)}\n")

    def test_a_recorder_of_another_version_refuses(self):
        script = f"exec env OPWATCH_RECORDER_VERSION=999 {PYTHON} -c \"{READS.format(10)}\""
        p = self.record("sh", "-c", script)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("its recorder has protocol version", p.stderr)

    def test_strangers_on_the_socket(self):
        script = ("import os, socket, time\nsilent, rude = (socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for i in 'ab')\n"
                  "for s in (silent, rude): s.connect(os.environ['OPWATCH_RECORDER_SOCKET'])\n"
                  "rude.send(b'GET / HTTP/1.0')\nfor i in range(15): open('/etc/passwd').read(); time.sleep(0.1)\n")
        p = self.record(PYTHON, "-c", script)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertGreaterEqual(sum(row["events"] for row in self.rows("tracks")), 30)

    def test_a_full_disk_stops_the_recording_only(self):
        p = self.record(PYTHON, "-c", READS.format(3000) + "\nprint('done')", options=("--max-size", "20K"))
        self.assertEqual((p.returncode, p.stdout), (0, "done\n"))
        self.assertIn("reached its size limit of", p.stderr)
        self.assertLessEqual(os.path.getsize(self.file), 21000)

    def test_a_file_that_may_not_grow(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))

        p = self.record(PYTHON, "-c", READS.format(3000) + "\nprint('done')", preexec_fn=limit)
        self.assertEqual((p.returncode, p.stdout), (0, "done\n"))
        self.assertIn("no process reported", p.stderr)  # rings are files, too

    def test_no_room_at_all(self):
        p = subprocess.run([BIN, "record", "--must-record", "-o", "/dev/full", "--", "true"], capture_output=True, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertIn("No space left on device", p.stderr)

    def test_a_place_that_cannot_be_written(self):
        p = subprocess.run([BIN, "record", "--must-record", "-o", "/no/such/dir/x.opw", "--", "true"], capture_output=True, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertIn("/no/such/dir/x.opw: No such file", p.stderr)

    def test_others_may_not_read_it(self):
        self.record("true")
        self.assertEqual(os.stat(self.file).st_mode & 0o777, 0o600)

    def test_nothing_of_the_environment_is_stored_that_is_not_named(self):
        secret = "nobody-shall-find-this"
        env = environment(SECRET=secret, RANK="3", OPWATCH_JOB="named")
        p = self.record(PYTHON, "-c", READS.format(20), env=env)
        self.assertEqual(p.returncode, 0, p.stderr)
        with open(self.file, "rb") as f:
            content = f.read()
        self.assertNotIn(secret.encode(), content)
        self.assertNotIn(b"SECRET", content)
        self.assertNotIn(b"PATH=", content)
        self.assertIn(b"RANK=3", content)

    def notes(self, part):
        return [row["text"] for row in self.rows("notes") if part in row["text"]]

    def big_file(self):
        path = os.path.join(self.dir, "data")
        with open(path, "wb") as f:
            f.write(os.urandom(1 << 20) * 8)
            f.flush()
            os.fsync(f.fileno())
        return path

    def test_blind_spots_nothing_to_tell(self):
        p = self.record(PYTHON, "-c", f"for i in range(4): open('{self.big_file()}', 'rb').read()")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(self.notes("were read in ways"), [])
        self.assertEqual(self.notes("mapped 8"), [])

    def test_blind_spots_of_children_that_were_recorded(self):
        """What they read the system also counts for whoever waited for them."""
        script = (f"import os, sys\nfor i in range(3):\n    if os.fork() == 0:\n        for k in range(5): open('{self.big_file()}', 'rb').read()\n"
                  "        os._exit(0)\nfor i in range(3): os.wait()\n"
                  f"open('{self.dir}/passed', 'w').close()\nsys.stdin.read()\n")
        with subprocess.Popen([BIN, "record", "-o", self.file, "--", PYTHON, "-c", script], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, env=environment()) as p:
            until(lambda: os.path.exists(f"{self.dir}/passed"), "the children do not end")
            self.assertIn("records of 4 processes", p.communicate()[1])
        self.assertEqual(self.notes("were read in ways"), [])

    def test_blind_spots_calls_without_hooks(self):
        # Again and again: a busy recorder asks the system late for the first time.
        script = (f"import os, select\nf = open('{self.big_file()}', 'rb'); o = open('{self.dir}/copy', 'wb')\ndef copy():\n"
                  "    os.lseek(f.fileno(), 0, 0); os.lseek(o.fileno(), 0, 0)\n"
                  "    while os.sendfile(o.fileno(), f.fileno(), None, 1 << 20): pass\n"
                  "copy(); print(0, flush=True)\ncopies = 1\nwhile not select.select([0], [], [], 0.1)[0]: copy(); copies += 1\n"
                  f"open('{self.dir}/copies', 'w').write(str(copies))\n")
        self.record_until_told("were read in ways", script)  # once it has ended only root may ask what it read
        told = re.search(r"process \d+: (\d+\.\d) MB were read in ways that the recorder does not", " ".join(self.notes("were read in ways")))
        with open(f"{self.dir}/copies", encoding="utf8") as f:
            copies = int(f.read())
        self.assertTrue(8.3 <= float(told[1]) <= 8.4 * copies + 0.1, (told[0], copies))  # each 8.4 MB

    def test_blind_spots_mapped_files(self):
        # What came from the disk is as the program itself measures it: nothing on a disk in memory. Again and again: calls of a module
        # are seen from some hundredths of a second after it was loaded, and a busy recorder asks the system late for the first time.
        script = ("import mmap, os, select\ndef disk(): return int([x for x in open('/proc/self/io') if x.startswith('read_bytes')][0].split()[1])\n"
                  f"f = open('{self.big_file()}', 'rb')\ndef read():\n    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)\n"
                  "    with mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ) as m: sum(m[::4096])\n"
                  "before = disk(); read(); print(disk() - before, flush=True)\n"
                  "while not select.select([0], [], [], 0.1)[0]: read()\n")
        from_disk = "came from the disk in ways that the recorder does not see"
        said = self.record_until_told("mapped", script, from_disk)
        self.assertRegex(" ".join(self.notes("mapped")), r"process \d+ mapped \d+\.\d MB of files \(mmap\)")
        if said > 8e6:
            self.assertEqual(len(self.notes(from_disk)), 1)

    def test_blind_spots_io_uring(self):
        script = ("import ctypes, sys\nfd = ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(120))\n"
                  "print(fd, flush=True)\nsys.stdin.read()\n")
        if self.record_until_told("uses io_uring", script) < 0:
            self.skipTest("the system allows no io_uring here")
        self.assertEqual(len(self.notes("uses io_uring")), 1)

    def test_the_clock_keeps_to_the_systems(self):
        program = os.path.join(self.dir, "clock")
        subprocess.run(["cc", "-O2", "-std=gnu17", "-D_GNU_SOURCE", "-I", f"{SRC}/recorder", "-I", f"{SRC}/src",
                        f"{SRC}/tests/support/clock_check.c", f"{SRC}/recorder/clock.c", "-o", program], check=True)
        p = subprocess.run([program], capture_output=True, text=True, timeout=300)
        self.assertEqual(p.returncode, 0, p.stdout)

    def test_ranks_are_sources(self):
        script = f"for r in 0 1; do RANK=$r {PYTHON} -c \"{READS.format(50)}\" & done; wait"
        p = self.record("sh", "-c", script)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertTrue({0, 1} <= {row["rank"] for row in self.rows("sources")})

    def test_ranks_of_two_jobs_are_told_apart(self):
        read = f'{PYTHON} -c "{READS.format(20)}"'
        script = "".join(f"MASTER_ADDR=10.0.0.{job} MASTER_PORT=29500 WORLD_SIZE=2 RANK={rank} {read}\n"
                         for job in (1, 2) for rank in (0, 1))
        p = self.record("sh", "-c", script)
        self.assertEqual(p.returncode, 0, p.stderr)
        info = json.loads(subprocess.run([BIN, "info", "--json", self.file], capture_output=True, text=True).stdout)
        self.assertEqual([(s["job"], s["rank"], s["world_size"]) for s in info["sources"]],
                         [("10.0.0.1:29500", 0, 2), ("10.0.0.1:29500", 1, 2), ("10.0.0.2:29500", 0, 2), ("10.0.0.2:29500", 1, 2)])


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
