#!/usr/bin/python3
"""perf.data as opwatch reads it equals what `perf script` prints of the same file.

Recordings are made here, where the kernel allows it, of a small program with threads; OPWATCH_CORPUS adds real files. Each sample
that perf prints must be one of ours: of the same event, process, thread and time, with the same period, and frame by frame with the
same module and, of what was recorded here, the same function (of files from elsewhere perf makes up names from this kernel). Where
the two differ on purpose stands in same_name. The sums of opwatch's reading of perf's text are compared, too. Files that perf itself
refuses are left out.
"""
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")
PROGRAM = """
import threading
def f(n): return sum(i * i for i in range(n))
def g(): [f(3000) for _ in range(60)]
threads = [threading.Thread(target=g) for _ in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
"""
HEAD = re.compile(r"\s*.*?\s(\d+)/(\d+)\s+(\d+)\.(\d{9}):\s+(\d+)\s+(\S+):\s*(.*)")
SWITCH = re.compile(r"^ *.*?\s(\d+)/(\d+)\s+(\d+)\.(\d{9}):\s+PERF_RECORD_SWITCH(?:_CPU_WIDE)? (IN|OUT) *(preempt)?", re.M)
FRAME = re.compile(r"\s*[0-9a-f]+ (?:(.*) )?\((.*)\)$")
RECORDINGS = {
    "plain": ["-F", "999", "-g"],
    "period": ["-c", "200000", "-e", "task-clock", "-d", "-T"],
    "two": ["-F", "500", "-g", "-e", "cpu-clock,page-faults"],
    "compressed": ["-F", "999", "-g", "-z"],
    "registers": ["-F", "300", "--user-regs=ax,bx", "-g"],
    "group": ["-c", "500000", "-g", "-e", "{cpu-clock,page-faults}:S"],
    "switches": ["-F", "500", "-g", "--switch-events"],
}


def opwatch(*words):
    run = subprocess.run([BIN, *map(str, words)], capture_output=True)
    if run.returncode:
        raise AssertionError(run.stderr.decode())
    return run.stdout


def record(name, options, folder):
    path = pathlib.Path(folder, name + ".data")
    run = subprocess.run(["perf", "record", "-q", *options, "-o", str(path), sys.executable, "-c", PROGRAM],
                         capture_output=True)
    return path if run.returncode == 0 and path.exists() and path.stat().st_size else None


def script(path, fields):
    run = subprocess.run(["perf", "script", "--ns", "-F", "comm,pid,tid,time,event,period,ip," + fields, "-i", str(path)],
                         capture_output=True)
    return run.stdout if run.returncode == 0 and run.stdout.strip() else None


class PerfScript(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def samples(self, path):
        """(event, pid, tid, time, period) → stacks, the leaf first: of (function, module)."""
        folder = pathlib.Path(self.folder, path.name + ".tables")
        opwatch("export", path, "--to", "ndjson", "--table", "sample,stack,frame", folder)
        rows = {name: [json.loads(line) for line in open(folder / f"{name}.ndjson")] for name in ("sample", "stack", "frame")}
        frames = {row["id"]: (row["function"] or None, row["module"] or None) for row in rows["frame"]}
        stacks = {row["id"]: row for row in rows["stack"]}
        found = collections.defaultdict(list)
        for row in rows["sample"]:
            chain, at = [], row["stack_id"]
            while at:
                chain.append(frames[stacks[at]["frame_id"]])
                at = stacks[at]["parent_id"]
            found[row["metric"], row["pid"], row["tid"], row["ts"], row["weight"]].append(chain)
        shutil.rmtree(folder)
        return found

    def printed(self, text):
        """The same of perf's text; a function has its offset behind it, as +0x12."""
        found = collections.defaultdict(list)
        for line in filter(str.strip, text.decode(errors="replace").split("\n")):
            head = HEAD.match(line)
            if head:
                pid, tid, seconds, nanoseconds, period, event, line = head.groups()
                stack = []
                found[event, int(pid), int(tid), int(seconds) * 10**9 + int(nanoseconds), int(period)].append(stack)
            if line:  # the only frame of a sample is on its line
                name, module = FRAME.match(line).groups()
                stack.append((name if name != "[unknown]" else None, module if module != "[unknown]" else None))
        return found

    def same_name(self, ours, theirs, caller):
        """Whether two names are of one function, or perf is known not to tell."""
        name, offset = theirs.rsplit("+", 1) if theirs else (None, None)
        if caller and offset == "0x0":
            return True  # perf looks up where a call returns to; a call that is the last instruction returns to the next function
        if name == "@plt":
            return bool(ours) and ours.endswith("@plt")  # perf of that time does not know functions that are chosen at run time
        return ours == name

    def same_stack(self, ours, theirs, names):
        if not theirs:
            return True  # perf drops a chain with a number in it that is no address: a frame pointer that is none
        if len(ours) != len(theirs):
            return False
        for depth, ((function, module), (name, dso)) in enumerate(zip(ours, theirs)):
            if module != dso:
                return False
            # perf takes the names of [vdso] from its own process
            if names and dso != "[vdso]" and not self.same_name(function, name, depth > 0):
                return False
        return True

    def compare(self, path, fields):
        text = script(path, fields)
        if text is None:
            return False
        ours, theirs, names = self.samples(path), self.printed(text), "sym" in fields
        ours, waits = self.apart(ours, lambda key: key[0] != "off-cpu")
        self.compare_switches(path, waits)
        # where the file says what the wall clock was, our times are its
        shift = min(key[3] for key in ours) - min(key[3] for key in theirs)
        ours = {(*key[:3], key[3] - shift, key[4]): stacks for key, stacks in ours.items()}
        self.assertEqual(ours.keys(), theirs.keys(), path)
        for key, stacks in theirs.items():
            left = list(ours[key])
            for stack in stacks:
                match = next((one for one in left if self.same_stack(one, stack, names)), None)
                self.assertIsNotNone(match, f"{path}: {key}: perf has {stack}, opwatch {left}")
                left.remove(match)
            self.assertEqual(left, [], f"{path}: {key}")
        self.compare_text(path, text)
        return True

    def apart(self, samples, test):
        wanted = {key: stacks for key, stacks in samples.items() if test(key)}
        return wanted, {key: stacks for key, stacks in samples.items() if key not in wanted}

    def compare_switches(self, path, waits):
        """What was off a processor, from when to when, and why, by perf's list of the same."""
        run = subprocess.run(["perf", "script", "--ns", "--show-switch-events", "-F", "comm,pid,tid,time", "-i", str(path)],
                             capture_output=True)
        left, want = {}, []
        for line in sorted(SWITCH.findall(run.stdout.decode(errors="replace")), key=lambda m: (int(m[2]), int(m[3]))):
            who, time = line[:2], int(line[2]) * 10**9 + int(line[3])
            if line[4] == "IN" and who in left:
                why = "[preempted]" if left[who][1] else "[waiting]"
                want.append(("off-cpu", *map(int, who), left[who][0], time - left[who][0], why))
            left.pop(who, None)
            if line[4] == "OUT":
                left[who] = time, line[5]
        have = [(*key, stack[0][0]) for key, stacks in waits.items() for stack in stacks]
        self.assertEqual(sorted(have), sorted(want), path)

    def compare_text(self, path, text):
        printed = pathlib.Path(self.folder, "printed.txt")
        printed.write_bytes(text)
        sums = []
        for words in ([path], [printed, "--format", "perf_script"]):
            rows = json.loads(opwatch("metrics", *words, "--json"))
            sums.append({row["name"]: (row["samples"], row["total"]) for row in rows.get("rows", rows) if row["name"] != "off-cpu"})
        self.assertEqual(*sums, path)

    def test_recordings(self):
        made = 0
        for name, options in RECORDINGS.items():
            path = record(name, options, self.folder)
            with self.subTest(name):
                made += bool(path) and self.compare(path, "sym,symoff,dso")
        if not made:
            self.skipTest("the kernel, or this machine, does not let perf record")

    def test_corpus(self):
        if not CORPUS:
            self.skipTest("OPWATCH_CORPUS is not set")
        seen = 0
        for path in sorted(pathlib.Path(CORPUS, "perf-data").iterdir()):
            with self.subTest(path.name):
                seen += self.compare(path, "dso")
        self.assertGreater(seen, 0)


if __name__ == "__main__":
    if not shutil.which("perf"):
        print("there is no perf (package linux-perf): skipped")
        sys.exit(77)
    unittest.main()
