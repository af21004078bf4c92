#!/usr/bin/python3
"""Steps of recorded programs without markers: from calls and stacks that repeat, from a function that the user names, and of a PyTorch whose
operators cannot be recorded. What is reported is compared with what the same run measured itself, step by step, so that a busy machine does not
matter. Programs that do not repeat have no steps."""
import contextlib
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests"))
from support import ports  # noqa: E402 pylint: disable=wrong-import-position
from support.patience import run_first  # noqa: E402 pylint: disable=wrong-import-position

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")

C_JOB = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static volatile double sink;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static void burn(double seconds) { double t = now(); while (now() - t < seconds) sink = sink * 1.0001 + 0.5; }
__attribute__((noinline)) double train_step(double a, double b, const char *text, int n)
{
	burn(0.012);
	return a * n + b + strlen(text);
}
int main(int argc, char **argv)
{
	static char data[1 << 16];
	int fd = open(argv[0], O_RDONLY), reads = argc > 1 && strcmp(argv[1], "reads") == 0, odd = argc > 1 && strcmp(argv[1], "odd") == 0;
	double sum = 0, last = now();

	srand(7);
	printf("[");
	for (int n = 0; n < 60; n++) {
		if (reads) { if (pread(fd, data, 8192, 0) < 0 || pread(fd, data, 64, 0) < 0) return 1; }
		if (odd) for (int i = rand() % 4; i >= 0; i--) { if (pread(fd, data, 1 << rand() % 13, 0) < 0) return 1; burn(rand() % 100 / 5e3); }
		sum += train_step(2.5, 0.25, "four", n);
		if (reads && n % 20 == 19) { FILE *f = fopen("/dev/null", "w"); fwrite(data, 1, 9000, f); fclose(f); }
		double t = now();
		printf("%s%.9f", n ? ", " : "", t - last);
		last = t;
	}
	printf("]\n");
	return sum == 2.5 * 1770 + 60 * 4.25 ? 0 : 2;
}
"""
NUMPY = """
import json, os, sys, time, numpy as np
path = sys.argv[1]
np.save(path, np.ones((128, 128), dtype='f4'))
took, weights = [], np.ones((128, 128), dtype='f4')
def train():
    last = time.perf_counter()
    for n in range(60):
        batch = np.load(path)
        t = time.perf_counter()
        while time.perf_counter() - t < 0.015: batch @ weights
        if n % 10 == 0:
            with open(path + '.log', 'a') as f: f.write('step\\n')
        now = time.perf_counter(); took.append(now - last); last = now
train()
print(json.dumps(took))
"""
# Nothing of it is recorded but stacks.
STACKS = """
import json, time, numpy as np
took, a = [], np.ones((32, 32))
def burn(seconds):
    t = time.perf_counter()
    while time.perf_counter() - t < seconds: a @ a
def load(): burn(0.1)
def forward(): burn(0.12)
def update(): burn(0.1)
def train():
    for n in range(16):
        start = time.time()
        load()
        forward()
        update()
        took.append([start, time.time()])
train()
print(json.dumps(took))
"""
IRREGULAR = """
import random, time
random.seed(5)
def a(): time.sleep(random.expovariate(25))
def b(): time.sleep(random.expovariate(25))
def serve():
    for n in range(60):
        if random.random() < 0.5:
            a()
        else:
            b()
        with open(__file__) as f: f.read(random.choice((10, 100, 1000)))
serve()
"""
OPENCL = """
import json, time, numpy as np, pyopencl as cl
q = cl.CommandQueue(cl.create_some_context(interactive=False))
a = np.ones(1 << 12, np.float32); b = np.empty_like(a)
d = cl.Buffer(q.context, cl.mem_flags.READ_WRITE, a.nbytes)
k = cl.Program(q.context, "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }").build().twice
k(q, a.shape, None, d); q.finish()
took, last = [], time.perf_counter()
for i in range(60):
    cl.enqueue_copy(q, d, a)
    for layer in range(5): k(q, a.shape, None, d)
    cl.enqueue_copy(q, b, d); q.finish()
    t = time.perf_counter()
    while time.perf_counter() - t < 0.01: pass
    now = time.perf_counter(); took.append(now - last); last = now
print(json.dumps(took))
"""
METHOD = """
import json, time
took = []
class Net:
    def train_step(self):
        t = time.perf_counter()
        while time.perf_counter() - t < 0.01: pass
def other(): pass
time.sleep(0.3)
net, last = Net(), time.perf_counter()
for n in range(50):
    net.train_step(); other()
    now = time.perf_counter(); took.append(now - last); last = now
print(json.dumps(took))
"""
TORCH = """
import json, os, sys, time, torch
import torch.distributed as dist, torch.multiprocessing as mp
def train(rank, world, port):
    torch.set_num_threads(1)
    net = torch.nn.Linear(64, 64)
    if world > 1:
        os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'] = '127.0.0.1', port
        dist.init_process_group('gloo', rank=rank, world_size=world)
        net = torch.nn.parallel.DistributedDataParallel(net)
    opt, ends = torch.optim.SGD(net.parameters(), lr=0.01), []
    for n in range(40):
        time.sleep(0.01 + 0.005 * rank)
        opt.zero_grad(); net(torch.ones(8, 64)).sum().backward(); opt.step()
        ends.append(time.perf_counter())
    os.write(1, (json.dumps([rank, [b - a for a, b in zip(ends, ends[1:])]]) + chr(10)).encode())
if __name__ == '__main__':
    if sys.argv[1] == '1': train(0, 1, None)
    else: mp.spawn(train, args=(int(sys.argv[1]), sys.argv[2]), nprocs=int(sys.argv[1]))
"""
# As torch.optim of PyTorch 2.0 and later, as far as hooks of all optimizers go; its library has none of the functions that the recorder knows.
FAKE_OPTIMIZER = """
before, after = [], []
def register_optimizer_step_pre_hook(hook): before.append(hook)
def register_optimizer_step_post_hook(hook): after.append(hook)
class SGD:
    def step(self, *args, **kwargs):
        for hook in before: assert hook(self, args, kwargs) is None
        for hook in after: hook(self, args, kwargs)
"""
FAKE_TRAIN = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import torch
from torch.optim.optimizer import SGD, after
opt, took = SGD(), []
end = time.monotonic() + 60
while not after and time.monotonic() < end: time.sleep(0.01)
opt.step()
last = time.perf_counter()
for n in range(40):
    t = time.perf_counter()
    while time.perf_counter() - t < 0.01: pass
    opt.step()
    now = time.perf_counter(); took.append(now - last); last = now
print(json.dumps(took))
"""


def has(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def pythons(least):
    """Interpreters of this version or later."""
    found = {}
    root = os.path.expanduser("~/.pyenv/versions")
    names = [shutil.which(f"python3.{n}") for n in range(least, 20)] + [PYTHON]
    with contextlib.suppress(OSError):
        names += [os.path.join(root, v, "bin", "python3") for v in os.listdir(root)]
    for path in [name for name in names if name and os.path.exists(name)]:
        p = subprocess.run([path, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=False)
        words = p.stdout.split()
        if p.returncode == 0 and len(words) == 2 and (3, least) <= (int(words[0]), int(words[1])):
            found.setdefault(tuple(words), path)
    return list(found.values())


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.file = os.path.join(self.dir, "x.opw")

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf8") as f:
            f.write(textwrap.dedent(text))
        return path

    def compile(self, *options):
        program = os.path.join(self.dir, "job")
        subprocess.run(["cc", "-O2", "-o", program, self.write("job.c", C_JOB), *options], check=True, capture_output=True)
        return program

    def record(self, *command, options=(), first=False):
        """What the job printed in its last line."""
        lines = self.lines(*command, options=options, first=first)
        return json.loads(lines[-1]) if lines else None

    def lines(self, *command, options=(), first=False):
        env = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "RANK", "OPWATCH_STEP_MARKER")}
        p = subprocess.run([BIN, "record", "-o", self.file, *options, "--", *command], capture_output=True, text=True, timeout=280,
                           check=False, env={**env, "OPENBLAS_NUM_THREADS": "1"}, preexec_fn=run_first if first else None)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout.splitlines()

    def rows(self, view, *options):
        p = subprocess.run([BIN, view, "--json", *options, self.file], capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]

    def steps(self):
        return [row["duration_ns"] / 1e9 for row in self.rows("steps")]

    def note(self, *words):
        notes = [row["text"] for row in self.rows("notes")]
        self.assertTrue([n for n in notes if all(w in n for w in words)], notes)

    def agree(self, steps, took):
        """The same number of steps. A thread that loses its processor between the begin of a step and the job's own reading of the clock moves time from
        one step to its neighbour: sums and medians are compared, not single steps."""
        self.assertEqual(len(steps), len(took))
        self.assertLess(abs(sum(steps) - sum(took)), 0.05 * sum(took), (steps, took))
        usual = sorted(took)
        self.assertGreater(statistics.median(steps), 0.95 * usual[int(0.4 * len(took))], (steps, took))
        self.assertLess(statistics.median(steps), 1.05 * usual[int(0.6 * len(took))], (steps, took))

    def compare(self, took):
        """The first and the last steps may be missing."""
        steps = self.steps()
        self.assertGreaterEqual(len(steps), len(took) - 3)
        self.assertLessEqual(len(steps), len(took))
        parts = [took[i:i + len(steps)] for i in range(len(took) - len(steps) + 1)]
        self.agree(steps, min(parts, key=lambda part: sum(abs(a - b) for a, b in zip(steps, part))))


def is_regular(took, spread):
    """Whether the job's own times are well within what the rules ask for (docs/formats/live.md): a busy machine may stretch too many of them."""
    usual = statistics.median(took)
    return sum(abs(t - usual) < spread * usual for t in took) >= 0.85 * len(took)


class RepeatsTest(Case):
    def regular(self, *command):
        """What the job printed, when it has steps. They may only be missing where the job itself measured irregular ones."""
        took = self.record(*command, first=True)
        if self.steps():
            return took
        self.assertFalse(is_regular(took, 0.5), took)
        return None

    def check(self, word, *command):
        took = self.regular(*command)
        if took:
            self.compare(took)
            self.note(word)

    def test_c(self):
        self.check("repeating call pread", self.compile(), "reads")

    def test_two_programs(self):
        """Started by a shell under one `record`: each is a job, with its own steps."""
        program = self.compile()
        took = [json.loads(line) for line in self.lines("sh", "-c", f"{program} reads & {program} reads; wait", first=True)]
        self.assertEqual(len(took), 2)
        regular = [times for times in took if is_regular(times, 0.5)]
        steps = {}
        for row in self.rows("steps"):
            steps.setdefault(row["source"], []).append(row["duration_ns"] / 1e9)
        self.assertGreaterEqual(len(steps), len(regular))
        if len(regular) < 2:
            return
        sources = self.rows("sources")
        self.assertEqual(sorted(source["job"] for source in sources), [1, 2])
        for times in steps.values():
            self.assertTrue(len(took[0]) - 3 <= len(times) <= len(took[0]), steps)
            self.assertTrue([t for t in took if abs(sum(times) - sum(t)) < 0.1 * sum(t)], (steps, took))

    @unittest.skipUnless(has("numpy"), "python3-numpy is not installed")
    def test_processes_of_one_program(self):
        """What a program starts with multiprocessing, or as a helper, is part of it."""
        job = NUMPY.replace("train()\nprint", "import multiprocessing\nhelper = multiprocessing.Process(target=sum, args=(range(10),))\n"
                            "helper.start()\ntrain()\nhelper.join()\nprint")
        self.record("sh", "-c", f"{PYTHON} {self.write('job.py', job)} {os.path.join(self.dir, 'batch.npy')}")
        self.assertEqual(len(self.rows("sources")), 1)

    @unittest.skipUnless(has("numpy"), "python3-numpy is not installed")
    def test_numpy(self):
        self.check("repeating call", PYTHON, self.write("job.py", NUMPY), os.path.join(self.dir, "batch.npy"))

    @unittest.skipUnless(has("pyopencl") and os.path.exists("/etc/OpenCL/vendors/pocl.icd"), "PoCL or pyopencl is not installed")
    def test_opencl(self):
        self.check("repeating call cl", PYTHON, self.write("job.py", OPENCL))

    @unittest.skipUnless(has("numpy"), "python3-numpy is not installed")
    def test_stacks(self):
        """Each step that is shown is one of the job's."""
        took = self.record(PYTHON, self.write("job.py", STACKS), first=True)
        steps = self.rows("steps")
        missed = [row for row in self.rows("notes") if "samples missed" in row["text"] or "samples skipped" in row["text"]]
        if not steps:  # only where the job's own times are not regular, or it could not be sampled regularly
            self.assertTrue(missed or not is_regular([end - begin for begin, end in took], 0.15), took)
            return
        self.note("repeating Python stacks in train")
        self.assertGreaterEqual(len(steps), 8)
        out = os.path.join(self.dir, "tables")
        subprocess.run([BIN, "export", self.file, "--to", "csv", "--table", "step", out], check=True, capture_output=True)
        with open(os.path.join(out, "step.csv"), encoding="utf8", newline="") as f:
            mine = [(int(row["start_ns"]) / 1e9, int(row["dur"]) / 1e9) for row in csv.DictReader(f) if row["whole"] in ("0", "false")]
        self.assertEqual(len(mine), len(steps))
        # A step may begin with any of the three functions: it is compared with the one of the job that begins next to it.
        same = [min((abs(start - begin), end - begin) for begin, end in took) for start, _ in mine]
        lengths = sum(length for _, length in same)
        self.assertLess(max(late for late, _ in same), 0.5, (mine, took))
        self.assertLess(abs(sum(dur for _, dur in mine) - lengths), 0.05 * lengths + 0.05, (mine, took))

    def test_programs_that_do_not_repeat(self):
        self.record(self.compile(), "odd")
        self.assertEqual(self.steps(), [])
        shown = subprocess.run([BIN, self.file], capture_output=True, text=True, timeout=120, check=True).stdout
        self.assertIn("no steps: nothing that repeats was found; record with --step-marker FUNCTION", shown)
        self.record(PYTHON, self.write("job.py", IRREGULAR))
        self.assertEqual(self.steps(), [])
        self.record("dd", f"if={self.write('x', 'x' * 400000)}", f"of={os.path.join(self.dir, 'y')}", "bs=4k", "status=none")
        self.assertEqual(self.steps(), [])


class MarkerTest(Case):
    def check(self, took):
        self.assertEqual(len(self.steps()), len(took) - 1)
        self.compare(took)

    @unittest.skipUnless(os.uname().machine == "x86_64", "functions of programs are seen on x86-64 only")
    def test_function_of_the_program(self):
        """Its arguments reach it, and so does its result the caller: otherwise the program fails."""
        for options in (["-O0"], ["-O3"], ["-no-pie", "-fno-pie"]):
            with self.subTest(options=options):
                self.check(self.record(self.compile(*options), options=["--step-marker", "train_step"]))
                self.note("from one call of train_step to the next")

    @unittest.skipUnless(os.uname().machine == "x86_64", "functions of libraries are seen on x86-64 only")
    def test_function_of_a_library(self):
        self.check(self.record(self.compile("-fno-builtin"), options=["--step-marker", "strlen"]))

    def test_recorded_call(self):
        took = self.record(self.compile(), "reads", options=["--step-marker", "pread"])
        self.assertEqual(len(self.steps()), 2 * len(took) - 1)

    def test_python(self):
        found = pythons(12)
        if not found:
            self.skipTest("no Python 3.12 or later")
        for python, name in zip(found * 2, ("Net.train_step", "train_step")):
            with self.subTest(python=python, name=name):
                self.check(self.record(python, self.write("job.py", METHOD), options=["--step-marker", name]))

    def test_python_before_monitoring(self):
        """Python 3.8 to 3.11: steps begin with the first sampled stack that has the function, and none is missing from then on."""
        found = [path for path in pythons(8) if path not in pythons(12)]
        if not found:
            self.skipTest("no Python 3.8 to 3.11")
        for python, name in zip((found[0], found[-1]), ("Net.train_step", "train_step")):
            with self.subTest(python=python, name=name):
                took = self.record(python, self.write("job.py", METHOD.replace("range(50)", "range(300)")), options=["--step-marker", name])
                if [row for row in self.rows("notes") if "needs perf_event_open" in row["text"] or "none is free" in row["text"]]:
                    self.skipTest("no watchpoints here")
                steps = self.steps()
                self.assertGreater(len(steps), 20)
                self.agree(steps, took[-len(steps) - 1:-1])
                self.note("from one call of %s to the next" % name)

    def test_python_function_that_is_called_too_often(self):
        found = [path for path in pythons(8) if path not in pythons(12)]
        if not found:
            self.skipTest("no Python 3.8 to 3.11")
        job = METHOD.replace("0.01:", "0.0001:").replace("range(50)", "range(20000)")
        self.record(found[-1], self.write("job.py", job), options=["--step-marker", "train_step"])
        if not [row for row in self.rows("notes") if "needs perf_event_open" in row["text"] or "none is free" in row["text"]]:
            self.note("step marker train_step", "more than 400 times a second")

    def test_attach(self):
        found = pythons(12)
        if not found:
            self.skipTest("no Python 3.12 or later")
        script = self.write("job.py", METHOD.replace("time.sleep(0.3)", "print('ready', flush=True); input()"))
        with subprocess.Popen([found[0], script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
            job.stdout.readline()
            watch = subprocess.Popen([BIN, "attach", str(job.pid), "--step-marker", "Net.train_step", "-o", self.file],
                                     stderr=subprocess.PIPE, text=True)
            self.addCleanup(watch.stderr.close)
            self.addCleanup(watch.kill)
            while not os.path.exists(self.file):
                self.assertIsNone(watch.poll(), "attach has ended")
            job.stdin.write("\n")
            job.stdin.close()
            took = json.loads(job.stdout.readlines()[-1])
            self.assertEqual(job.wait(), 0)
            self.assertEqual(watch.wait(), 0, watch.stderr.read())
        steps = self.steps()  # the interpreter is asked some milliseconds after it goes on
        self.assertGreater(len(steps), 20)
        self.agree(steps, took[-len(steps) - 1:-1])

    def test_name_that_is_not_called(self):
        self.record(self.compile(), options=["--step-marker", "no_such_function"])
        self.note("step marker no_such_function: fewer than two calls were recorded")
        p = subprocess.run([BIN, "record", "-o", self.file, "--step-marker", "x" * 200, "--", "true"], capture_output=True, text=True,
                           check=False)
        self.assertEqual(p.returncode, 2, p.stderr)
        self.assertIn("a step marker is the name of a function", p.stderr)


@unittest.skipUnless(has("torch.distributed"), "python3-torch is not installed")
class TorchTest(Case):
    def check(self, world):
        port = ports.reserve(1)[0] if world > 1 else 0
        said = [json.loads(line) for line in self.lines(PYTHON, self.write("job.py", TORCH), str(world), str(port))]
        self.assertEqual(sorted(rank for rank, _ in said), list(range(world)))
        rows = self.rows("steps")
        for rank, took in said:
            mine = [row["duration_ns"] / 1e9 for row in rows if world == 1 or row["rank"] == rank][1:]  # the first begins with the program
            self.agree(mine, took)

    def test_one_process(self):
        self.check(1)

    def test_ranks_of_spawn(self):
        self.check(2)


class NewTorchTest(Case):
    def test_steps_without_operators(self):
        """PyTorch 2.10, played by a module and a library of ours: no such version ever ran here."""
        lib = os.path.join(self.dir, "fake", "torch", "lib")
        os.makedirs(lib)
        empty = self.write("empty.c", "int at_something_else(void) { return 0; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", os.path.join(lib, "libtorch_cpu.so"), empty], check=True)
        self.write("fake/torch/version.py", "__version__ = '2.10.0+cpu'\n")
        self.write("fake/torch/__init__.py", "import ctypes, os\nctypes.CDLL(os.path.dirname(__file__) + '/lib/libtorch_cpu.so')\n")
        self.write("fake/torch/optim/__init__.py", "")
        self.write("fake/torch/optim/optimizer.py", FAKE_OPTIMIZER)
        took = self.record(PYTHON, self.write("job.py", FAKE_TRAIN), os.path.join(self.dir, "fake"))
        self.note("PyTorch 2.10", "its operators are not recorded, but its steps")
        self.agree(self.steps()[1:], took)  # the first one begins with the program


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
