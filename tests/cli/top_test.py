#!/usr/bin/python3
"""opwatch top: what is drawn on terminals of several sizes, also after a resize; keys; what is left behind however it ends;
once as text and JSON."""
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

BIN = os.environ["OPWATCH_BIN"]
JOB = os.path.join(os.environ["OPWATCH_SRC"], "tests/fuzz/seeds/live/job.opw")
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")
PATIENCE = 120


class Terminal:
    """What a terminal would show of the sequences that opwatch uses; anything else is an error."""

    def __init__(self, columns, rows):
        self.resize(columns, rows)
        self.alternate = self.hidden = False
        self.styled = False
        self.overflow = self.frames = 0

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.clear()

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]
        self.x = self.y = 0

    def feed(self, text):
        at = 0
        while at < len(text):
            match = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])").match(text, at)
            if match:
                self.sequence(*match.groups())
                at = match.end()
                continue
            self.put(text[at])
            at += 1

    def sequence(self, private, number, final):
        if private:
            assert number in ("1049", "25") and final in "hl", (number, final)
            if number == "1049":
                self.alternate = final == "h"
            else:
                self.hidden = final == "l"
        elif final == "H":
            self.x = self.y = 0
            self.frames += 1
        elif final == "K":
            self.cells[self.y][self.x:] = [" "] * (self.columns - self.x)
        elif final == "J":
            if number == "2":
                self.clear()
            else:
                for y in range(self.y, self.rows):
                    self.cells[y] = [" "] * self.columns
        else:
            assert final == "m", final
            self.styled = self.styled or number != "0"

    def put(self, c):
        if c == "\r":
            self.x = 0
        elif c == "\n":
            self.y += 1
            if self.y >= self.rows:
                self.overflow += 1
                self.y = self.rows - 1
        else:
            assert c >= " " and c != "\x1b", repr(c)
            if self.x >= self.columns:
                self.overflow += 1
                return
            self.cells[self.y][self.x] = c
            self.x += 1

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]


class Session:
    """opwatch on a pseudo-terminal."""

    def __init__(self, *args, columns=80, rows=24, env=None, cwd=None):
        self.terminal = Terminal(columns, rows)
        self.master, slave = pty.openpty()
        self.set_size(columns, rows)
        self.before = termios.tcgetattr(slave)
        full = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
        full.update({"TERM": "xterm"}, **(env or {}))
        self.process = subprocess.Popen([BIN, "top", *args], stdin=slave, stdout=slave, stderr=subprocess.PIPE, env=full,
                                        cwd=cwd, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave = slave
        self.pending = b""

    def set_size(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            try:
                self.pending += os.read(self.master, 65536)
            except OSError:
                return False
            text = self.pending.decode(errors="ignore")
            cut = text.rfind("\x1b")
            if cut >= 0 and not re.match(r"\x1b\[\??[0-9;]*[A-Za-z]", text[cut:]):
                text = text[:cut]
            self.pending = self.pending[len(text.encode()):]
            self.terminal.feed(text)
        return True

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition(self.terminal):
            if time.monotonic() > end or self.process.poll() is not None and not select.select([self.master], [], [], 0)[0]:
                raise AssertionError("%s: not seen in\n%s" % (what, "\n".join(self.terminal.lines())))
            self.read(0.1)

    def until_text(self, text):
        self.until(lambda t: text in "\n".join(t.lines()), repr(text))

    def key(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """Waits for its end; what it wrote to stderr."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.05)
        while select.select([self.master], [], [], 0)[0] and self.read(0):
            pass
        err = self.process.stderr.read().decode()
        self.process.stderr.close()
        return err

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            self.process.stderr.close()
        os.close(self.master)
        os.close(self.slave)


class Top(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def session(self, *args, **kwargs):
        session = Session(*(args or (JOB,)), cwd=self.dir, **kwargs)
        self.addCleanup(session.close)
        return session

    def test_fits_every_size(self):
        for columns, rows in ((80, 24), (60, 15), (200, 60), (40, 10), (20, 5), (8, 3), (1, 1)):
            with self.subTest(columns=columns, rows=rows):
                s = self.session(columns=columns, rows=rows)
                s.until(lambda t: any(t.lines()), "anything")
                if columns >= 60:
                    s.until_text("opwatch top  1 job")
                    s.until_text("STEP")
                    s.until_text("phases")
                s.key("hq")
                self.assertEqual(s.end(), "")
                self.assertEqual(s.process.returncode, 0)
                self.assertEqual(s.terminal.overflow, 0)

    def test_80_by_24(self):
        s = self.session()
        s.until_text("OPERATION")
        lines = s.terminal.lines()
        self.assertRegex(lines[0], r"^opwatch top  1 job  by job  \d\d:\d\d:\d\d .*h help  q quit$")
        self.assertRegex(lines[1], r"^ cpu +.* of \d+  load .*  mem [\d.]+.B of [\d.]+.B  disk ")
        self.assertRegex(lines[2], r"^ JOB +STEP +STEP/S +TREND WHERE THE TIME… +INPUT +COMM +CPU +DEV$")
        self.assertRegex(lines[3], r"^>")
        self.assertIn("C compute", lines[4])
        self.assertTrue(s.terminal.styled and s.terminal.alternate and s.terminal.hidden)

    def test_jobs_that_do_not_fit_are_counted(self):
        files = [os.path.join(self.dir, f"job{number}.opw") for number in range(12)]
        for file in files:
            shutil.copy(JOB, file)
        s = self.session(*files)
        s.until_text("opwatch top  12 jobs")
        shown = re.compile(r"  (\d+) more above, (\d+) below$")

        def counts():
            return next((tuple(map(int, m.groups())) for m in map(shown.match, s.terminal.lines()) if m), None)
        s.until(lambda t: counts() and counts()[0] == 0 and counts()[1] > 1, "jobs below")
        below = counts()[1]
        s.key("j" * 11)
        s.until(lambda t: counts() == (below, 0), "the same number above")
        s.key("q")
        s.end()

    def test_resize(self):
        s = self.session()
        s.until_text("OPERATION")
        for columns, rows in ((60, 15), (120, 40), (30, 6), (80, 24)):
            s.set_size(columns, rows)
            for _ in range(50):  # frames that were on their way may have had the old size
                s.terminal.resize(columns, rows)
                s.terminal.overflow = s.terminal.frames = 0
                s.until(lambda t: t.frames >= 3, "two whole frames")
                if not s.terminal.overflow and s.terminal.lines()[0].startswith("opwatch top"):
                    break
            self.assertEqual(s.terminal.overflow, 0)
            lines = s.terminal.lines()
            self.assertTrue(any(line.startswith(">") for line in lines), lines)
            self.assertLessEqual(max(map(len, lines)), columns)
        s.key("q")
        s.end()

    def test_keys(self):
        second = os.path.join(self.dir, "zz.opw")
        shutil.copy(JOB, second)
        s = self.session(JOB, second)
        s.until_text("2 jobs")
        s.key("h")
        s.until_text("freeze or continue")
        s.key("h")
        s.until_text("OPERATION")
        s.key("h")
        s.until_text("freeze or continue")
        s.until(lambda t: not [line for line in t.lines()[1:] if len(line.rstrip()) == 80], "help that is not cut off")
        s.key("s")  # what it does is seen
        s.until_text("by step")
        s.until_text("OPERATION")
        s.key(" ")
        s.until_text("FROZEN")
        s.key(" ")
        s.until(lambda t: "FROZEN" not in t.lines()[0], "goes on")
        marked = lambda t: [i for i, l in enumerate(t.lines()) if l.startswith(">")]
        first = marked(s.terminal)
        s.key("\x1b[B")
        s.until(lambda t: marked(t) == [first[0] + 1], "the second one")
        s.key("k")
        s.until(lambda t: marked(t) == first, "the first one")
        s.key("q")
        self.assertEqual(s.end(), "")

    def test_writes_the_last_minute(self):
        s = self.session()
        s.until_text("OPERATION")
        s.key("w")
        s.until_text("written: opwatch-")
        s.key("f")
        s.until_text(".svg, of operations")
        s.key("q")
        s.end()
        names = sorted(os.listdir(self.dir))
        self.assertEqual([os.path.splitext(n)[1] for n in names], [".opw", ".svg"])
        self.assertEqual(os.stat(os.path.join(self.dir, names[0])).st_mode & 0o777, 0o600)
        steps = [subprocess.run([BIN, "steps", "--json", f], capture_output=True, check=True).stdout
                 for f in (JOB, os.path.join(self.dir, names[0]))]
        self.assertEqual(*[[(r["rank"], r["duration_ns"], r["compute_ns"]) for r in json.loads(t)["rows"]] for t in steps])
        with open(os.path.join(self.dir, names[1])) as f:
            self.assertIn("<svg", f.read(4096))

    @unittest.skipUnless(os.path.exists(LIBRARY), "the recorder is not built")
    def test_writes_all_ranks_of_a_job(self):
        """Recordings of ranks that say that they are of one job are shown as one, and saved as one."""
        files = [os.path.join(self.dir, f"rank{rank}.opw") for rank in range(2)]
        for rank, file in enumerate(files):
            env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
            subprocess.run([BIN, "record", "-o", file, "--", "/usr/bin/python3", "-c", "for i in range(50): open('/etc/passwd').read()"],
                           env={**env, "OPWATCH_JOB": "ours", "RANK": str(rank)}, check=True, capture_output=True)
        s = self.session(*files)
        s.until_text("opwatch top  1 job")
        s.until_text("OPERATION")
        s.key("w")
        s.until_text("written: opwatch-")
        s.key("q")
        s.end()
        saved = [os.path.join(self.dir, n) for n in os.listdir(self.dir) if n.startswith("opwatch-")]
        self.assertEqual(len(saved), 1)
        self.assertEqual(os.stat(saved[0]).st_mode & 0o777, 0o600)
        rows = json.loads(subprocess.run([BIN, "sources", "--json", saved[0]], capture_output=True, check=True).stdout)["rows"]
        self.assertEqual({r["rank"] for r in rows}, {0, 1})

    def test_gives_the_terminal_back(self):
        for how in ("q", "\x03", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            with self.subTest(how=how):
                s = self.session()
                s.until_text("OPERATION")
                self.assertNotEqual(termios.tcgetattr(s.slave), s.before)
                if isinstance(how, str):
                    s.key(how)
                else:
                    s.process.send_signal(how)
                self.assertEqual(s.end(), "")
                self.assertEqual(s.process.returncode, 0)
                self.assertEqual(termios.tcgetattr(s.slave), s.before)
                self.assertFalse(s.terminal.alternate or s.terminal.hidden)

    def test_no_colour(self):
        s = self.session(env={"NO_COLOR": "1"})
        s.until_text("OPERATION")
        s.key("q")
        s.end()
        self.assertFalse(s.terminal.styled)

    def test_once(self):
        p = subprocess.run([BIN, "top", "--once", JOB], capture_output=True, text=True, check=True)
        self.assertRegex(p.stdout, r"(?m)^ JOB +STEP")
        self.assertIn("OPERATION", p.stdout)
        self.assertNotIn("\x1b", p.stdout)
        self.assertEqual(p.stderr, "")
        for line in p.stdout.splitlines():
            self.assertLessEqual(len(line), 100, line)

    def test_json(self):
        p = subprocess.run([BIN, "top", "--json", JOB, JOB], capture_output=True, text=True, check=True)
        jobs = json.loads(p.stdout)
        job = jobs[0]
        self.assertEqual(job["state"], "ended")
        self.assertGreater(job["step_ns"], 0)
        self.assertEqual(set(job["phase_ns"]), {"input", "host", "initialisation", "allocation", "launch", "host_to_device", "compute", "device_to_host",
                                               "communication", "synchronisation", "run_queue", "idle"})
        self.assertIsNone(job["cpu"])
        self.assertTrue(job["ops"] and job["ranks"])
        self.assertTrue(all(0 < op["share"] <= 1 for op in job["ops"]), job["ops"])
        for rank in job["ranks"]:
            self.assertGreater(rank["pid"], 0)
            self.assertAlmostEqual(rank["steps_per_s"], 1e9 / rank["step_ns"], delta=0.05 * rank["steps_per_s"])

    def busy(self, name="busy_function", before=""):
        """A Python process that computes in one function, as long as the test runs."""
        script = os.path.join(self.dir, "busy.py")
        with open(script, "w") as f:
            f.write("%s\ndef %s():\n    x = 0\n    while True:\n        x += 1\n\ndef main():\n    %s()\n\nmain()\n" % (before, name, name))
        p = subprocess.Popen(["/usr/bin/python3", script], stdout=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def test_a_process_and_its_functions(self):
        p = self.busy()
        for columns, rows in ((80, 24), (200, 50)):
            s = self.session(str(p.pid), columns=columns, rows=rows)
            s.until_text("opwatch top  1 process")
            s.until(lambda t: any(re.search(r"(^|  )busy_function +\S*busy.py:2 +\d\d+ %", line) for line in t.lines()), "its function")
            s.until(lambda t: any(re.match(r"> +%d \S+ +[RS] +\d\.\d\d +\d" % p.pid, line) for line in t.lines()), "its row")
            s.key("q")
            self.assertEqual(s.end(), "")
            self.assertEqual(s.terminal.overflow, 0)

    def test_threads_of_a_process(self):
        """Beside the functions where there is room, instead of them where there is not; a thread that has ended keeps its name for some seconds."""
        name = "libc = ctypes.CDLL(None)\ndef pool():\n    libc.prctl(15, b'decode-1', 0, 0, 0)\n    time.sleep(%s)\n"
        p = self.busy(before="import ctypes, threading, time\n" + name % 1e6 + "threading.Thread(target=pool).start()")
        s = self.session(str(p.pid), columns=200, rows=50)
        s.until(lambda t: any(re.match(r" +TID S +CPU +WAIT THREAD +FUNCTION +WHERE", line) for line in t.lines()), "both")
        s.until(lambda t: any(re.match(r" *\d+ S +\d\.\d\d +\d\.\d\d decode-1", line) for line in t.lines()), "its thread")
        s.key("q")
        self.assertEqual(s.end(), "")
        p.kill()
        p = self.busy(before="import ctypes, os, threading, time\n" + name % 0.7 + "def start():\n    while True:\n"
                      "        t = threading.Thread(target=pool)\n        t.start()\n        t.join()\n"
                      "threading.Thread(target=start).start()")
        s = self.session(str(p.pid))
        s.until_text("FUNCTION")
        s.key("t")
        s.until(lambda t: any(re.match(r" *\d+ X +- +- decode-1  ended", line) for line in t.lines()), "a thread that has ended")
        self.assertNotIn("FUNCTION", "\n".join(s.terminal.lines()))
        s.key("t")
        s.until_text("FUNCTION")
        s.key("q")
        self.assertEqual(s.end(), "")
        self.assertEqual(s.terminal.overflow, 0)

    def test_json_of_a_process(self):
        """CPU time is what the kernel says of the process in the same time."""
        p = self.busy()
        answer = json.loads(subprocess.run([BIN, "top", "--json", str(p.pid)], capture_output=True, check=True).stdout)
        row, = answer["processes"]
        self.assertEqual((row["pid"], row["parent"], row["name"]), (p.pid, os.getpid(), "python3"))
        self.assertGreater(row["cpu"] + row["run_wait"], 0.5)
        self.assertLess(row["cpu"], 1.1)
        self.assertGreater(row["memory_bytes"], 1 << 20)
        self.assertEqual(answer["functions"][0]["name"], "busy_function")
        self.assertGreaterEqual(answer["host"]["cpus"], 1)

    def test_a_native_process_shows_its_functions(self):
        answer = None
        p = subprocess.Popen(["/usr/bin/perl", "-e", "while(1){$x+=1}"])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        version = subprocess.run([BIN, "--version"], capture_output=True, text=True, check=True).stdout
        for _ in range(20):
            answer = json.loads(subprocess.run([BIN, "top", "--json", str(p.pid)], capture_output=True, check=True).stdout)
            if answer["functions"]:
                break
        if "libdw" not in version or os.geteuid() != 0:
            self.skipTest("needs libdw and permission to sample")
        self.assertTrue(any(f["name"].startswith("Perl_") for f in answer["functions"]), answer["functions"])

    def test_names_cannot_drive_the_terminal(self):
        """A process that calls itself what turns the text, or moves the cursor, is shown escaped."""
        p = self.busy(before="import sys\nopen('/proc/self/comm', 'w').write('ok\u202etxt')\nprint(1, flush=True)")
        p.stdout.readline()
        s = self.session(str(p.pid))
        s.until_text("ok\\u202etxt")
        self.assertNotIn("\u202e", "\n".join(s.terminal.lines()))
        s.key("q")
        s.end()
        text = subprocess.run([BIN, "top", "--once", str(p.pid)], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("\u202e", text)

    def test_end_a_process_only_after_a_question(self):
        p = self.busy()
        s = self.session(str(p.pid))
        s.until_text("opwatch top  1 process")
        s.key("K")
        s.until_text("end python3, pid %d?" % p.pid)
        s.key("n")
        s.until_text("not ended")
        self.assertIsNone(p.poll())
        s.key("Ky")
        s.until_text("sent SIGTERM to 1 process")
        self.assertEqual(p.wait(PATIENCE), -signal.SIGTERM)
        s.until_text("The process has ended.")
        s.key("q")
        s.end()

    def test_filter_and_sort_all_processes(self):
        p = self.busy("named_by_me")
        s = self.session(str(p.pid), str(os.getpid()))
        s.until_text("busy.py")
        s.key("/BUSY.py\r")
        s.until(lambda t: "/BUSY.py" in t.lines()[0] and "1 process " in t.lines()[0], "only one")
        s.key("\x1b")
        s.until(lambda t: "/BUSY.py" not in t.lines()[0], "all of them")
        s.key("ss")
        s.until_text("by memory")
        s.key("S")
        s.until_text("by wait")
        s.key("sss" + "s")  # read, written, pid
        s.until_text("by pid")
        order = lambda t: [int(m.group(1)) for m in (re.match(r"[> ] +(\d+) \S+ +[A-Z] ", line) for line in t.lines()) if m]
        both = sorted([p.pid, os.getpid()])
        s.until(lambda t: [pid for pid in order(t) if pid in both] == both, "the order of pids")
        s.key("r")
        s.until(lambda t: [pid for pid in order(t) if pid in both] == both[::-1], "the other way round")
        s.key("q")
        self.assertEqual(s.end(), "")

    def test_without_a_daemon_the_host_is_shown(self):
        env = {k: v for k, v in os.environ.items() if k != "OPWATCH_SOCKET"}
        env["XDG_RUNTIME_DIR"] = self.dir
        if os.path.exists("/run/opwatch/socket"):
            self.skipTest("a daemon runs here")
        p = subprocess.run([BIN, "top", "--json"], capture_output=True, text=True, env=env, check=True)
        self.assertIn(os.getpid(), [row["pid"] for row in json.loads(p.stdout)["processes"]])

    def test_steps_that_a_program_writes_of_itself(self):
        python = os.path.join(os.environ["OPWATCH_BUILD"], "python")
        if not os.path.exists(os.path.join(python, "opwatch")):
            self.skipTest("the Python package is not built")
        with open(os.path.join(os.environ["OPWATCH_BUILD"], "CMakeCache.txt")) as cache:
            if "OPWATCH_SANITIZE:STRING=\n" not in cache.read():
                self.skipTest("a library with sanitizers needs a program with sanitizers")
        script = os.path.join(self.dir, "steps.py")
        path = os.path.join(self.dir, "own.opw")
        with open(script, "w") as f:
            f.write("import sys, time\nsys.path.insert(0, %r)\nimport opwatch\ns = opwatch.steps(%r)\nprint(1, flush=True)\n"
                    "for i in range(int(sys.argv[1])):\n    s.step()\n    with s.phase('load'):\n        time.sleep(0.01)\n"
                    "    with s.phase('forward'):\n        time.sleep(0.03)\ns.close()\n" % (python, path))
        p = subprocess.Popen(["/usr/bin/python3", script, "100000"], stdout=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        p.stdout.readline()
        s = self.session(path)
        s.until(lambda t: re.search(r"own.opw  runs  [1-9]\d* steps? ?s?", "\n".join(t.lines())), "steps while it runs")
        s.until(lambda t: any(re.match(r" +%d \S+ " % p.pid, line) for line in t.lines()), "the process that writes it")
        s.until_text("forward")
        s.key("q")
        self.assertEqual(s.end(), "")
        p.kill()
        p.wait()
        subprocess.run(["/usr/bin/python3", script, "6"], check=True, capture_output=True)
        job, = json.loads(subprocess.run([BIN, "top", "--json", path], capture_output=True, check=True).stdout)
        self.assertEqual((job["steps"], job["state"]), (6, "ended"))
        self.assertGreater(job["step_ns"], 40e6)
        self.assertGreater(job["phase_ns"]["compute"], 30e6)

    def test_wrong_use(self):
        trace = os.path.join(self.dir, "x.json")
        with open(trace, "w") as f:
            f.write("{}")
        for args, code, words in (((os.path.join(self.dir, "none.opw"),), 1, "No such file"),
                                  ((trace,), 1, "not an opwatch recording"), ((JOB, "--csv"), 2, "does not take --csv"),
                                  (("999999999",), 1, "no process has the id"), ((JOB, "1"), 2, "not both")):
            p = subprocess.run([BIN, "top", *args], capture_output=True, text=True, check=False)
            self.assertEqual(p.returncode, code, args)
            self.assertIn(words, p.stderr)


if __name__ == "__main__":
    unittest.main()
