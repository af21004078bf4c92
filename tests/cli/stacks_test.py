#!/usr/bin/env python3
"""Stacks of running Python programs: what is told is what is there, whatever the version; the job does not notice,
and may end at any time."""
import collections
import csv
import glob
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
import patience  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
PYENV = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
SUPPORTED = range(8, 14)

# Threads that wait at known places. It tells what sys._current_frames() says of them, innermost first, as often as it is asked.
WAITS = r"""
import json, os, sys, threading, time
go = threading.Event()
def waits(
    argument,
):
    a = [
        1,
        2]
    if argument:
        for i in range(1):
            (go
                .wait())
    return a
class Class:
    def methöde(self): return list(x for x in self.values())
    def values(self):
        yield 1
        try:
            lambda_ = lambda: waits(3)
            yield lambda_()
        finally:
            pass
def long():
BODY
    go.wait()
threads = [threading.Thread(target=f, daemon=True) for f in (Class().methöde, long)]
for t in threads: t.start()
def inside(frame):
    while frame:
        if frame.f_code.co_name == "wait" and frame.f_code.co_filename.endswith("threading.py"):
            return True
        frame = frame.f_back
while not all(inside(sys._current_frames().get(t.ident)) for t in threads):
    time.sleep(0.001)
def stack(frame):
    found = []
    while frame:
        found.append([frame.f_code.co_name, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return found
def tell():
    frames = sys._current_frames()
    print(json.dumps([stack(frames[t.ident]) for t in threads]), flush=True)
tell()
while sys.stdin.readline() == "again\n": tell()
print("alive", flush=True)
""".replace("BODY", "".join(f"    x = {i}\n\n" if i % 3 else f"    x = [{i},\n     {i}]\n" for i in range(300)))

# Busy, in calls that last less than a microsecond.
BUSY = r"""
def c(): pass
def b(): c()
def a():
    while True: b()
print("ready", flush=True)
a()
"""


def hostile(seed):
    """A program of deep calls that change all the time. Each line that calls says whom: a stack in which a function was
    not called from the line of its caller never was. Some calls go through C, some into generators; `shared` is
    called by two who each have it call something else, which only the caller's line tells."""
    dice = random.Random(seed)
    lines = []

    def make(name, depth):
        body = [f"    {v} = {i}" for i, v in enumerate(dice.sample("abcdefgh", dice.randint(0, 6)))]
        children = [f"{name}_{i}" for i in range(dice.choice((1, 1, 2, 3)))] if depth else []
        for child in children:
            way = dice.choice(("{}()",) * 7 + ("list(map({}, (None,)))", "sorted((1,), key={})", "for _ in {}_gen(): pass"))
            body.append(f"    {way.format(child)}  # calls {child}{'_gen' * ('_gen' in way)}")
            make(child, depth - 1)
            lines.extend((f"def {child}_gen():", f"    yield {child}()  # calls {child}", "    yield 2"))
        lines.extend([f"def {name}(x=None):", *(body or ["    pass"])])

    make("n", 7)
    return "\n".join(lines) + """
def u(): pass
def v(): pass
def shared(f):
    f()  # calls u v
def p():
    shared(u)  # calls shared
def q():
    shared(v)  # calls shared
def main():
    while True:
        n()  # calls n
        p()  # calls p
        q()  # calls q
print("ready", flush=True)
main()  # calls main
"""


def never_was(stack, lines):
    """What is wrong with a stack (innermost first) of a hostile program; None when nothing is."""
    names = [name.split(".")[-1] for name, _, _ in reversed(stack)]
    if names[0] != "<module>":
        return "not from the beginning", names
    for caller, callee, (_, _, line) in zip(names, names[1:], reversed(stack)):
        if callee not in lines[line - 1].partition("# calls ")[2].split():
            return caller, lines[line - 1], callee
    if "shared" in names and " ".join(names[-3:]) in ("p shared v", "q shared u"):
        return names[-3:]
    return None


# Python and C in turns; C calls Python, too.
MIXED = r"""
import hashlib, zlib
data = bytes(1000000)
def digest(): return hashlib.sha256(data).digest()
def pack(x): return zlib.crc32(data)
def mid():
    digest()
    sorted((1, 2), key=pack)
def outer():
    while True: mid()
print("ready", flush=True)
outer()
"""

# C, without frame pointers, and with a name that C++ would mangle; for so many seconds of a processor, or for ever.
NATIVE = r"""
#include <stdlib.h>
#include <time.h>
volatile unsigned sum;
__attribute__((noinline)) void _ZN4Deep5innerEv(void) { for (int i = 0; i < 100000; i++) sum += i; }
__attribute__((noinline)) void middle(void) { _ZN4Deep5innerEv(); sum++; }
__attribute__((noinline)) void OUTER(void) { middle(); sum++; }
int main(int argc, char **argv)
{
	clock_t end = argc > 1 ? atoi(argv[1]) * CLOCKS_PER_SEC : 0;
	while (!end || clock() < end) OUTER();
	return 0;
}
"""

# When it is told to: starts a worker, a program, and a worker that becomes another program after a while.
STARTS = r"""
import hashlib, os, sys, time, zlib
data = bytes(100000)
def burn(what):
    end = time.process_time() + 1.5
    while time.process_time() < end: what(data)
def fork(what):
    pid = os.fork()
    if pid == 0:
        what()
        os._exit(0)
    return pid
def execute(program): os.execv(program, [program, "2"])
def becomes(program):
    burn(zlib.crc32)
    execute(program)
print("ready", flush=True)
input()
pids = [fork(lambda: burn(hashlib.sha256)), fork(lambda: execute(sys.argv[1])), fork(lambda: becomes(sys.argv[2]))]
print(*pids, flush=True)
for pid in pids: os.waitpid(pid, 0)
"""

WORKERS = r"""
import multiprocessing, os, sys, time
def work(barrier):
    barrier.wait()
    parent = os.getppid()
    while os.getppid() == parent: time.sleep(0.01)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(3)
    workers = [context.Process(target=work, args=(barrier,), daemon=True) for i in range(2)]
    for w in workers: w.start()
    barrier.wait()
    print(*(w.pid for w in workers), flush=True)
    sys.stdin.readline()
"""


def pythons():
    """The interpreters to try, by version: Debian's and those of pyenv."""
    found = {}
    for path in sorted(glob.glob(os.path.join(PYENV, "versions", "3.*", "bin", "python3"))) + ["/usr/bin/python3"]:
        p = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
        if p.returncode == 0:
            major, minor = map(int, p.stdout.split())
            found[(minor, path)] = path
    return [(minor, path) for (minor, path) in sorted(found)]


def run(*args, **kwargs):
    kwargs.setdefault("timeout", 240)
    return subprocess.run([BIN, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL, **kwargs)


class Stacks(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def start(self, text, python=sys.executable, wait=True, args=()):
        """Runs a program, and gives it and the first line that it prints."""
        path = os.path.join(self.dir, f"victim{len(os.listdir(self.dir))}.py")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        child = subprocess.Popen([python, path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        self.addCleanup(self.end, child)
        return child, child.stdout.readline() if wait else None

    @staticmethod
    def end(child):
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()

    def stacks(self, pid, *args, dropped=False):
        """The stacks as they are, a list of (function, file, line) per thread."""
        p = run("stacks", pid, "--csv", *args)
        if dropped and p.returncode:  # a stack that never holds still may be
            self.assertRegex(p.stderr, "^opwatch: the stacks changed while they were read")
            return {}
        self.assertEqual((p.returncode, p.stderr), (0, ""))
        found = collections.defaultdict(list)
        for row in csv.DictReader(io.StringIO(p.stdout)):
            found[int(row["pid"]), int(row["tid"])].append((row["function"], row["file"], int(row["line"])))
        return found

    def standing_still(self, child, line):
        """What Python tells of its threads (it has just told `line`), and what we tell, of a time in which they did not move."""
        while True:
            found = list(self.stacks(child.pid).values())
            child.stdin.write("again\n")
            child.stdin.flush()
            before, line = line, child.stdout.readline()
            if line == before:
                return json.loads(line), found

    def test_every_version_tells_what_python_itself_tells(self):
        tried = [python for minor, python in pythons() if minor in SUPPORTED]
        self.assertTrue(tried, "no CPython 3.8 to 3.13 is installed")
        for python in tried:
            with self.subTest(python):
                child, line = self.start(WAITS, python)
                expected, found = self.standing_still(child, line)
                plain = [[(f.split(".")[-1], path, n) for f, path, n in stack] for stack in found]
                for stack in expected:
                    self.assertIn([tuple(frame) for frame in stack], plain)
                self.assertEqual(len(found), 3)
                child.stdin.write("\n")
                child.stdin.flush()
                self.assertEqual(child.stdout.readline(), "alive\n")

    def test_no_stack_is_told_that_never_was(self):
        tried = [(minor, python) for minor, python in pythons() if minor in SUPPORTED]
        for number, (minor, python) in enumerate(tried):
            with self.subTest(python):
                text = hostile(number)
                lines = text.split("\n")
                child, _ = self.start(text, python)
                seen = 0
                for _ in range(40 if minor >= 11 else 10):
                    for stack in self.stacks(child.pid, dropped=True).values():
                        self.assertIsNone(never_was(stack, lines))
                        seen += 1
                self.assertGreater(seen, 20 if minor >= 11 else 0)  # before, frames lie apart
                self.assertIsNone(child.poll())
                self.end(child)

    def test_no_stack_is_recorded_that_never_was(self):
        """What is sampled over some time: the callers of a function are in its name."""
        child, _ = self.start(hostile(1))
        p = run("stacks", child.pid, "--for", "2s", "--hz", "500", "--to", "folded")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stderr, r"^opwatch: \d+ stacks of 1 process in")
        seen, wrong = 0, []
        for stack in [line.rpartition(" ")[0].split(";") for line in p.stdout.splitlines()]:
            names = [re.sub(r"_gen$", "", re.split("[ :(]", frame)[0]) for frame in stack]
            names = names[names.index("main") + 1:] if "main" in names else []
            tree = [name for name, after in zip(names, names[1:] + [""]) if name != after and name.startswith("n")]
            if any(callee.rpartition("_")[0] != caller for caller, callee in zip(tree, tree[1:])):
                wrong.append(stack)
            seen += max(len(tree) - 1, 0)
        self.assertGreater(seen, 10, p.stdout[:1000])
        self.assertEqual(wrong, [])
        self.assertIsNone(child.poll())

    def test_a_process_that_runs_another_program_is_counted_once(self):
        child, _ = self.start("import os, sys\n"
                              "print('ready', flush=True)\n"
                              "if len(sys.argv) == 1:\n"
                              "    sys.stdin.readline()\n"
                              "    os.execv(sys.executable, [sys.executable, sys.argv[0], 'again'])\n"
                              "sys.stdin.readline()\n")
        sampler = subprocess.Popen([BIN, "stacks", str(child.pid), "--for", "3s"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        patience.until(lambda: sampler.poll() is not None or self.reads(sampler.pid), "it does not begin")
        child.stdin.write("\n")
        child.stdin.flush()
        self.assertEqual(child.stdout.readline(), "ready\n")
        _, err = sampler.communicate(timeout=240)
        self.assertEqual(sampler.returncode, 0, err)
        self.assertRegex(err, r"^opwatch: \d+ stacks of 1 process in")

    def test_no_stack_at_all_is_said(self):
        child, _ = self.start(WAITS)
        p = run("stacks", child.pid, "--for", "1us")  # over before the first look
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        self.assertRegex(p.stderr, r"^opwatch: 0 stacks of 1 process in .*\nopwatch: no thread ran Python code in that time\n$")

    def test_what_was_sampled_is_a_profile(self):
        child, _ = self.start(WAITS)
        out = os.path.join(self.dir, "x.opw")
        p = run("stacks", child.pid, "--for", "500ms", "-o", out)
        self.assertEqual(p.returncode, 0, p.stderr)
        tracks = json.loads(run("tracks", out, "--json").stdout)
        self.assertIn("main", json.dumps(tracks))
        p = run("export", out, os.path.join(self.dir, "tables"), "--table", "sample", "--to", "ndjson")
        if p.returncode == 0:  # not without the library for tables
            with open(os.path.join(self.dir, "tables", "sample.ndjson"), encoding="utf-8") as f:
                weights = [json.loads(line) for line in f]
            self.assertGreater(len(weights), 2)

    def functions(self, path):
        p = run("functions", path, "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        return {row["name"].split(".")[-1]: row for row in json.loads(p.stdout)["rows"]}

    def tracks(self, path):
        return json.loads(run("tracks", path, "--json").stdout)["rows"]

    def test_a_recording_has_the_stacks_of_its_job(self):
        """record --stacks: what the recorder saw and what was sampled are on the same tracks."""
        out = os.path.join(self.dir, "x.opw")
        program = os.path.join(self.dir, "job.py")
        with open(program, "w", encoding="utf-8") as f:
            f.write("import sys, threading, time\n"
                    "def waits(): time.sleep(3)\n"
                    "def reads():\n"
                    "    until = time.time() + 3\n"
                    "    while time.time() < until: open('/etc/passwd', 'rb').read(); time.sleep(0.05)\n"
                    "t = threading.Thread(target=waits, name='waiter'); t.start(); reads(); t.join()\n")
        p = run("record", "--stacks=50", "-o", out, "--", "/usr/bin/python3", program)
        self.assertEqual(p.returncode, 0, p.stderr)
        functions = self.functions(out)
        self.assertEqual(functions["waits"]["file"], program)
        self.assertGreater(functions["waits"]["self"], 0)
        self.assertGreater(functions["reads"]["total"], 0)
        tracks = self.tracks(out)
        self.assertEqual(len(tracks), 2, tracks)
        self.assertEqual(len({track["pid"] for track in tracks}), 1)
        self.assertGreater(max(track["events"] for track in tracks), 10)
        self.assertEqual(run("record", "--stacks=-1", "--", "true").returncode, 2)

    def test_stacks_of_a_job_that_is_attached_to(self):
        child, _ = self.start(WAITS, "/usr/bin/python3")
        out = os.path.join(self.dir, "x.opw")
        p = run("attach", child.pid, "--stacks", "--for", "2s", "-o", out)
        if p.returncode and re.search("ptrace|trace", p.stderr):
            self.skipTest("the system allows no tracing here: " + p.stderr)
        self.assertEqual(p.returncode, 0, p.stderr)
        functions = self.functions(out)
        self.assertIn("methöde", functions)
        self.assertGreater(functions["waits"]["total"], 0)

    def native(self, pid, out, *args):
        p = run("stacks", pid, "--native", "--for", "2s", "-o", out, *args)
        if p.returncode and re.search("perf_event|without libdw", p.stderr):
            self.skipTest(p.stderr)
        self.assertEqual(p.returncode, 0, p.stderr)

    def compiled(self, outer):
        compiler = shutil.which("cc")
        if not compiler:
            self.skipTest("no C compiler")
        program = os.path.join(self.dir, outer)
        subprocess.run([compiler, f"-DOUTER={outer}", "-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-x", "c", "-o", program,
                        "-"], input=NATIVE, text=True, check=True)
        return program

    def is_followed(self, stacks, outer):
        self.assertRegex(stacks, rf"(?m)main;{outer};middle;Deep::inner(\(\))? \d+$")

    def test_native_stacks_of_a_program_in_c(self):
        out = os.path.join(self.dir, "x.opw")
        with subprocess.Popen([self.compiled("outer")]) as child:
            try:
                self.native(child.pid, out)
            finally:
                child.kill()
        self.is_followed(self.folded(out), "outer")

    def folded(self, out):
        return run("code", out, "--metric", "native", "--max-depth", "500", "--to", "folded").stdout

    def test_native_stacks_of_what_is_started_later(self):
        """By fork, by exec, and a process that becomes another program while it is sampled."""
        out = os.path.join(self.dir, "x.opw")
        job, _ = self.start(STARTS, "/usr/bin/python3", args=[self.compiled(name) for name in ("executed", "became")])
        sampler = subprocess.Popen([BIN, "stacks", str(job.pid), "--native", "-o", out], stderr=subprocess.PIPE, text=True)
        self.addCleanup(sampler.stderr.close)
        self.addCleanup(sampler.wait)
        self.addCleanup(sampler.kill)
        patience.until(lambda: self.reads(sampler.pid) or sampler.poll() is not None, "it does not begin")
        job.stdin.write("\n")
        job.stdin.flush()
        pids = set(map(int, job.stdout.readline().split()))
        said = sampler.communicate(timeout=300)[1]
        if sampler.returncode and re.search("perf_event|without libdw", said):
            self.skipTest(said)
        self.assertEqual(sampler.returncode, 0, said)
        self.assertIn("of 4 processes", said)
        threads = [(track["pid"], track["tid"]) for track in self.tracks(out)]
        self.assertLessEqual(pids, {pid for pid, _ in threads})
        self.assertEqual(len(threads), len(set(threads)), "both kinds of stacks are on one track")
        stacks = self.folded(out)
        self.is_followed(stacks, "executed")
        self.is_followed(stacks, "became")
        self.assertRegex(stacks, "(?i)sha256|EVP_Digest")
        self.assertRegex(stacks, "crc32")
        self.assertIn("burn", self.functions(out))  # and the Python stacks

    def test_native_stacks_of_a_python_program(self):
        child, _ = self.start(BUSY, "/usr/bin/python3")
        out = os.path.join(self.dir, "x.opw")
        self.native(child.pid, out)
        functions = run("functions", out, "--metric", "native").stdout
        self.assertRegex(functions, "_PyEval_EvalFrameDefault|PyEval_EvalCode|Py_RunMain|Py_BytesMain")
        self.assertIn("a", self.functions(out))  # and its Python stacks
        self.assertEqual(run("stacks", child.pid, "--native").returncode, 2)

    def test_native_and_python_stacks_are_one(self):
        """The functions of Python stand where the interpreter's loop ran them."""
        for minor, python in pythons():
            if minor not in SUPPORTED:
                continue
            with self.subTest(python):
                child, _ = self.start(MIXED, python)
                out = os.path.join(self.dir, "x.opw")
                self.native(child.pid, out)
                self.end(child)
                stacks = run("code", out, "--metric", "native", "--max-depth", "500", "--to", "folded").stdout.splitlines()
                joined = [line for line in stacks if "<module>;" in line]
                if not joined and "_PyEval_EvalFrameDefault" in "".join(stacks):  # too busy to read one soon after the other
                    self.assertRegex(run("notes", out).stdout, "native samples without Python functions")
                for line in joined:
                    self.assertRegex(line, r"<module>;(.*;)?outer[; ]")
                    self.assertNotIn("_PyEval_EvalFrameDefault", line)

    def test_children_are_followed(self):
        child, line = self.start(WORKERS)
        workers = {int(pid) for pid in line.split()}
        self.assertEqual({pid for pid, _ in self.stacks(child.pid)}, workers | {child.pid})
        self.assertEqual({pid for pid, _ in self.stacks(child.pid, "--no-children")}, {child.pid})
        self.assertEqual({pid for pid, _ in self.stacks(child.pid, *workers)}, workers | {child.pid})

    def test_the_job_is_killed_at_any_moment(self):
        for delay in range(20):
            child, _ = self.start(BUSY)
            out = os.path.join(self.dir, "x.opw")
            sampler = subprocess.Popen([BIN, "stacks", str(child.pid), "--hz", "1000", "-o", out],
                                       stderr=subprocess.PIPE, text=True)
            time.sleep(delay * 0.004)
            child.kill()
            _, err = sampler.communicate(timeout=240)
            if sampler.returncode:  # it was gone before it was found
                self.assertRegex(err, f"opwatch: (no process has the id {child.pid}|process {child.pid} .* has ended|"
                                 f"the Python of process {child.pid} )")
            else:
                self.assertIn("stacks of 1 process", err)
                self.assertEqual(run("notes", out).returncode, 0)
                os.unlink(out)

    def test_we_are_stopped(self):
        child, _ = self.start(BUSY)
        out = os.path.join(self.dir, "x.opw")
        sampler = subprocess.Popen([BIN, "stacks", str(child.pid), "-o", out], stderr=subprocess.PIPE, text=True)
        patience.until(lambda: sampler.poll() is not None or self.reads(sampler.pid), "it does not begin")
        sampler.send_signal(signal.SIGINT)
        _, err = sampler.communicate(timeout=240)
        self.assertEqual(sampler.returncode, 0, err)
        self.assertEqual(run("sources", out).returncode, 0)
        self.assertIsNone(child.poll())

    @staticmethod
    def reads(pid):
        """It is in its loop: it sleeps until the next sample."""
        try:
            with open(f"/proc/{pid}/wchan", encoding="ascii") as f:
                return re.search("nanosleep|poll", f.read())
        except OSError:
            return False

    def test_what_cannot_be_read_is_said(self):
        self.assertRegex(run("stacks", 2 ** 22 + 5).stderr, "no process has the id")
        self.assertEqual(run("stacks", 2 ** 22 + 5).returncode, 1)
        self.assertEqual(run("stacks").returncode, 2)
        self.assertEqual(run("stacks", "python3").returncode, 2)
        self.assertEqual(run("stacks", 1, "--hz", "0").returncode, 2)
        self.assertEqual(run("stacks", 1, "--for", "soon").returncode, 2)
        with subprocess.Popen(["sleep", "1000"]) as other:
            p = run("stacks", other.pid)
            other.kill()
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr, r"process \d+ \(sleep\) is not a Python process")

    def test_a_version_that_is_not_known(self):
        old = [python for minor, python in pythons() if minor not in SUPPORTED]
        if not old:
            self.skipTest("no other CPython is installed")
        for python in old:
            child, _ = self.start("import sys; print('ready', flush=True); sys.stdin.readline()", python)
            p = run("stacks", child.pid)
            self.assertEqual(p.returncode, 1)
            self.assertRegex(p.stderr, r"runs Python 3\.\d+; stacks can be read of CPython 3\.8 to 3\.13")

    def test_the_process_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root has processes of other users")
        child, _ = self.start("import sys; print('ready', flush=True); sys.stdin.readline()")
        try:
            nobody = subprocess.run([BIN, "--version"], user=65534, capture_output=True).returncode
        except PermissionError:  # a clone below /root
            nobody = 1
        if nobody:
            self.skipTest("nobody cannot run the program")
        p = run("stacks", child.pid, user=65534)
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr, f"process {child.pid} belongs to user 0: only that user and root")


if __name__ == "__main__":
    unittest.main()
