#!/usr/bin/python3
"""Anomaly detection on a real PyTorch job, under record, attach and the daemon: when its loader, or its computing, becomes
slow, one sentence says so and why, and the minute around it is saved; when it stands still, the sentence says where. The job does as
it is told by files, so that nothing here depends on how fast the machine is. Needs python3-torch."""
import contextlib
import glob
import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from record_jobs_test import BIN, LIBRARY, PYTHON, environment, has  # pylint: disable=wrong-import-position
from support.patience import run_first, until  # pylint: disable=wrong-import-position

# Tells each step; what it does next is in a file: fast, input, compute, stall or end.
JOB = """
import os, sys, time, torch
torch.set_num_threads(1)
folder = os.path.dirname(os.path.abspath(__file__))
def order():
    with open(folder + '/order') as f: return f.read()
class Data(torch.utils.data.Dataset):
    def __len__(self): return 1 << 30
    def __getitem__(self, i):
        time.sleep(0.8 if order() == 'input' else 0.1)
        return torch.ones(8)
def stand_still():
    while order() == 'stall': time.sleep(0.05)
net = torch.nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
big, steps = torch.ones(256, 256), 0
for x in torch.utils.data.DataLoader(Data()):
    end = time.perf_counter() + (0.8 if order() == 'compute' else 0)
    torch.mm(big, big)
    while time.perf_counter() < end: torch.mm(big, big)
    opt.zero_grad(); net(x).sum().backward(); opt.step()
    steps += 1
    with open(folder + '/steps', 'w') as f: f.write(str(steps))
    stand_still()
    if order() == 'end': break
"""
# Computes only; says how long it has waited for a processor so far.
BUSY = """
import os, torch
torch.set_num_threads(1)
folder = os.path.dirname(os.path.abspath(__file__))
def waited():
    with open('/proc/thread-self/schedstat') as f: return int(f.read().split()[1])
net = torch.nn.Linear(64, 64)
opt = torch.optim.SGD(net.parameters(), lr=1e-6)
big, steps = torch.ones(256, 256), 0
while open(folder + '/order').read() != 'end':
    for _ in range(20): torch.mm(big, big)
    opt.zero_grad(); net(torch.ones(4, 64)).sum().backward(); opt.step()
    steps += 1
    with open(folder + '/steps', 'w') as f: f.write(str(steps))
    with open(folder + '/truth', 'a') as f: print(waited(), file=f)
"""
OPTIONS = ("--on-slowdown", "150%", "--on-stall", "4s")


@unittest.skipUnless(has("torch"), "python3-torch is not installed")
class Attention(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.log = os.path.join(self.dir, "log")
        self.script = self.write("job.py", JOB)
        self.order("fast")
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.end = time.monotonic() + 800

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        pathlib.Path(path + ".new").write_text(text, encoding="utf8")
        os.rename(path + ".new", path)  # whole at any moment
        return path

    def order(self, what):
        self.write("order", what)

    def start(self, *command, **kwargs):
        """What it says goes to the log."""
        log = self.stack.enter_context(open(self.log, "ab"))
        p = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd=self.dir, env=environment(),
                             **kwargs)
        self.stack.callback(p.wait)
        self.stack.callback(lambda: p.poll() is None and p.kill())
        return p

    def said(self):
        return pathlib.Path(self.log).read_text()

    def wait(self, condition, what):
        until(condition, lambda: f"{what}: {self.said()}", self.end - time.monotonic(), 0.1)

    def steps(self):
        try:
            return int(pathlib.Path(self.dir, "steps").read_text() or 0)
        except FileNotFoundError:
            return 0

    def go_on(self, count, until=lambda: False):
        """So many steps, or until something holds."""
        last = self.steps() + count
        self.wait(lambda: self.steps() >= last or until(), "the job makes no steps")

    def make_slow(self, what, sentence):
        """Makes the job slow until that is told; again, should something else have come between."""
        while not re.search(sentence, self.said()):
            self.order("fast")
            self.go_on(45)
            self.order(what)
            self.go_on(25, lambda: re.search(sentence, self.said()))
        return re.search(sentence, self.said())

    def make_stall(self):
        self.order("stall")
        place = r"process \d+ is in stand_still \(job\.py:\d+\)" if os.geteuid() == 0 else "(process|nothing was recorded)"
        self.wait(lambda: re.search(r"no step for [0-9.]+ (s|min); steps took .*: " + place, self.said()), "the stall is not told")

    def check_saved(self, paths, slow):
        self.assertTrue(paths, self.said())
        for path in paths:
            self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
            p = subprocess.run([BIN, "steps", "--json", path], capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)
        rows = [json.loads(subprocess.run([BIN, "steps", "--json", path], capture_output=True, text=True).stdout)["rows"]
                for path in paths]
        # One of them has fast steps, and slow ones for the reason that was told.
        self.assertTrue(any(sum(r[slow] < 400e6 for r in found) >= 5 and sum(r[slow] > 750e6 for r in found) >= 5 for found in rows))

    def file(self, kind):
        return sorted(glob.glob(os.path.join(self.dir, f"job-{kind}-*.opw")))

    def sentence(self, phase, op):
        return rf"steps take \d+ % longer since \d\d:\d\d:\d\d \(.*\): {phase} went from .* to .*, most of it in {op}\S* " \
               r"\([0-9.]+ ms to [0-9.]+ (ms|s) per step\); saving the minute around it to (\S+)"

    def test_record(self):
        p = self.start(BIN, "record", "-o", "job.opw", *OPTIONS, "--", PYTHON, self.script)
        found = self.make_slow("input", self.sentence("input", r"enumerate\(DataLoader\)"))
        self.make_stall()
        self.order("end")
        self.assertEqual(p.wait(), 0, self.said())
        self.assertIn(os.path.join(self.dir, os.path.basename(found[2])), self.file("slow"))
        self.check_saved(self.file("slow"), "input_ns")

    def test_attach(self):
        job = self.start(PYTHON, self.script, preexec_fn=run_first)  # on a busy machine more computing is first of all more waiting for a processor
        self.go_on(1)
        p = self.start(BIN, "attach", str(job.pid), "-o", "job.opw", *OPTIONS)
        self.wait(lambda: p.poll() is not None or os.path.exists(self.dir + "/job.opw"), "nothing is recorded")
        if "not allowed to trace" in self.said():
            self.skipTest(self.said())
        self.make_slow("compute", self.sentence("compute", "aten::mm"))
        self.make_stall()
        self.order("end")
        self.assertEqual((job.wait(), p.wait()), (0, 0), self.said())
        self.check_saved(self.file("slow"), "compute_ns")

    def somebody(self):
        """Of root's daemon a job is somebody else's, where that can be."""
        who = {"user": 65534, "group": 65534, "extra_groups": []}
        if os.geteuid() != 0:
            return {}
        for words in ([BIN, "--version"], ["cat", LIBRARY]):
            with contextlib.suppress(OSError):
                if subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who).returncode == 0:
                    continue
            return {}
        for path in (self.dir, self.script):
            os.chown(path, 65534, 65534)
        return who

    def test_daemon(self):
        socket, rings = (os.path.join(self.dir, name) for name in ("socket", "rings"))
        who = self.somebody()
        # Rings of a few seconds, so that there is always another file before the minute is saved.
        daemon = self.start(BIN, "daemon", "--socket", socket, "--dir", rings, "--no-kineto", "--stacks=20", "--max-size", "1M", *OPTIONS,
                            *(["--all-users"] if who else []))
        self.wait(lambda: "serving at" in self.said() or daemon.poll() is not None, "the daemon does not start")
        p = self.start(BIN, "record", "--job", "a job", "--socket", socket, "--", PYTHON, self.script, **who)
        other = self.start(BIN, "record", "--job", "quiet", "--socket", socket, "--", PYTHON, "-c",
                           "import sys, time\nwhile open(sys.argv[1]).read() != 'end': time.sleep(0.1)", self.dir + "/order")
        self.make_slow("input", "a job: " + self.sentence("input", r"enumerate\(DataLoader\)"))
        self.make_stall()
        self.order("end")
        self.assertEqual((p.wait(), other.wait()), (0, 0), self.said())
        self.wait(lambda: glob.glob(rings + "/a job-*-slow-*.opw"), "the minute is not saved")
        listed = json.loads(subprocess.run([BIN, "jobs", "--anomalies", "--json", "--socket", socket], capture_output=True, text=True,
                                           check=True).stdout)["rows"]
        self.assertEqual({r["file"] for r in listed if r["kind"] == "slow" and r["saved"]}, set(glob.glob(rings + "/a job-*-slow-*.opw")))
        self.assertTrue(all(r["job"] == "a job" and r["why"] for r in listed), listed)
        self.assertTrue(any("steps take" in r["why"] for r in listed), listed)
        daemon.terminate()
        self.assertEqual(daemon.wait(), 0, self.said())
        for path in glob.glob(rings + "/a job-*-slow-*.opw"):
            self.assertEqual(os.stat(path).st_uid, who.get("user", os.geteuid()))  # whose job it is
        self.check_saved(glob.glob(rings + "/a job-*-slow-*.opw"), "input_ns")
        self.assertNotIn("quiet: ", self.said())
        if os.geteuid() == 0:  # others may not be allowed to read stacks
            for path in glob.glob(rings + "/a job-*-slow-*.opw"):
                self.check_stacks(path)

    def check_stacks(self, path):
        """Most of what is saved, the job waits for data."""
        rows = json.loads(subprocess.run([BIN, "functions", "--json", path], capture_output=True, text=True).stdout)["rows"]
        self.assertTrue([r for r in rows if r["name"].endswith("__getitem__")], (path, rows))

    def test_other_programs_take_the_processor(self):
        """On one processor with others the job waits for it, and the sentence says that, not that its operators are slow."""
        script = self.write("busy.py", BUSY)
        processor = str(min(os.sched_getaffinity(0)))
        p = self.start(BIN, "record", "-o", "job.opw", "--on-slowdown", "60%", "--", "taskset", "-c", processor, PYTHON, script)
        self.go_on(60)
        others = [self.start("taskset", "-c", processor, PYTHON, "-c", "while True: pass") for _ in range(4)]
        sentence = r"steps take \d+ % longer since .*: .*waits for processors went from [0-9.]+ m?s to [0-9.]+ m?s.* \(load \d+ on \d+ processors\)"
        self.wait(lambda: re.search(sentence, self.said()), "the wait is not reported")
        for other in others:
            other.kill()
        self.order("end")
        self.assertEqual(p.wait(), 0, self.said())
        truth = [json.loads(line) for line in pathlib.Path(self.dir, "truth").read_text().splitlines()]
        rows = json.loads(subprocess.run([BIN, "steps", "--json", "job.opw"], capture_output=True, text=True, cwd=self.dir).stdout)["rows"]
        self.assertEqual(len(rows), len(truth))
        # The kernel's own account of the thread, of all steps but the first, which begins with the program. What the thread waits after the last
        # look, at most 40 ms and one wait, is not seen.
        waited, really = sum(r["run_queue_ns"] for r in rows[1:]), truth[-1] - truth[0]
        self.assertGreater(waited, 0.95 * really - 200e6, (waited, really))
        self.assertLess(waited, 1.05 * really + 200e6, (waited, really))

    def test_a_stall_by_itself(self):
        p = self.start(BIN, "record", "-o", "job.opw", "--on-stall", "4s", "--", PYTHON, self.script)
        self.go_on(10)
        self.make_stall()
        self.order("end")
        self.assertEqual(p.wait(), 0, self.said())
        self.assertTrue(self.file("stall"), self.said())
        for path in self.file("stall"):
            found = json.loads(subprocess.run([BIN, "steps", "--json", path], capture_output=True, text=True).stdout)["rows"]
            self.assertGreater(len(found), 5)


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
