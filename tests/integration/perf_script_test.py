#!/usr/bin/python3
"""perf.data as opwatch reads it equals what `perf script` prints of the same file.

Recordings are made here, where the kernel allows it, of a small program with threads; OPWATCH_CORPUS adds real files. perf
prints command, process, thread, event, period and the module of each frame, and of what was recorded here its function
(addresses only relative to the module, so they are not compared; of files from elsewhere perf makes up names from this kernel); the text is read by opwatch, too, and both must fold to the same stacks, event by event. Files that perf itself refuses are left out.
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
RECORDINGS = {
    "plain": ["-F", "999", "-g"],
    "period": ["-c", "200000", "-e", "task-clock", "-d", "-T"],
    "two": ["-F", "500", "-g", "-e", "cpu-clock,page-faults"],
    "compressed": ["-F", "999", "-g", "-z"],
    "registers": ["-F", "300", "--user-regs=ax,bx", "-g"],
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

    def folded(self, path, metric):
        sums = collections.Counter()
        for line in opwatch("code", path, "--metric", metric, "--style", "tid", "--to", "folded").decode().splitlines():
            stack, count = line.rsplit(" ", 1)
            sums[stack] += int(count)
        return sums

    def by_thread(self, sums):
        threads = collections.Counter()
        for stack, weight in sums.items():
            threads[stack.split(";")[0]] += weight
        return threads

    def slack(self, text):
        """perf looks callers up at the address that they return to, we before it. Where a call is the last instruction of a
        function that is the next one: the weight of samples with such a caller."""
        weight = 0
        for block in text.split(b"\n\n"):
            head, *frames = block.strip(b"\n").split(b"\n")
            if any(re.search(rb"\+0x0 \(", frame) for frame in frames[1:]):
                weight += int(re.search(rb":\s+(\d+)\s+\S+:", head).group(1))
        return weight

    def compare(self, path, fields):
        text = script(path, fields)
        if text is None:
            return False
        printed = pathlib.Path(self.folder, "printed.txt")
        # names that perf makes up, or has from its own process
        text = re.sub(rb"\S+@plt \(", b"[unknown] (", text)
        text = re.sub(rb"\S+ \(\[vdso\]\)", b"[unknown] ([vdso])", text)
        slack = self.slack(text)
        printed.write_bytes(text)
        ours = json.loads(opwatch("metrics", path, "--json"))
        theirs = json.loads(opwatch("metrics", printed, "--json", "--format", "perf_script"))
        ours, theirs = ours.get("rows", ours), theirs.get("rows", theirs)
        count = {row["name"]: (row["samples"], row["total"]) for row in theirs}
        self.assertEqual({row["name"]: (row["samples"], row["total"]) for row in ours}, count, path)
        for name in count:
            ours, theirs = self.folded(path, name), self.folded(printed, name)
            self.assertEqual(ours.total(), theirs.total(), f"{path}: {name}")
            self.assertEqual(self.by_thread(ours), self.by_thread(theirs), f"{path}: {name}")
            differ = (ours - theirs) + (theirs - ours)
            # Symbols that share an address, or have no size, are a matter of taste: one sample in fifty, or two.
            rare = max(theirs.total() / 50, 2 * theirs.total() / count[name][0]) if "sym" in fields else 0
            self.assertLessEqual(differ.total(), 2 * (slack + rare), f"{path}: {name}: {differ}")
        return True

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
