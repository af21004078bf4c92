#!/usr/bin/python3
"""opwatch record and attach on real jobs without any profiling code: PyTorch with loader workers, two ranks with gloo, a
slow loader, OpenCL in C and in Python. What is reported is compared with what the jobs measure themselves. Needs
python3-torch, pocl-opencl-icd, ocl-icd-opencl-dev and python3-pyopencl; parts without theirs are skipped."""
import contextlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests"))
from support import ports  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")

# Waits 30 ms for each batch and multiplies matrices for about 20 ms; prints what it measured.
TRAIN = """
import json, os, sys, time, torch
torch.set_num_threads(1)
rank, world = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1))
slow = 0.03 + (0.25 if rank and 'SLOW' in os.environ else 0)
class Data(torch.utils.data.Dataset):
    def __len__(self): return 10000
    def __getitem__(self, i):
        time.sleep(slow if __import__('torch').utils.data.get_worker_info() is None else 0)
        with open(__file__, 'rb') as f: f.read()
        return torch.ones(64, 64)
net = torch.nn.Linear(64, 64)
if world > 1:
    torch.distributed.init_process_group('gloo')
    net = torch.nn.parallel.DistributedDataParallel(net)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
big = torch.ones(512, 512)
steps, workers = int(sys.argv[1]), int(sys.argv[2])
loader = iter(torch.utils.data.DataLoader(Data(), num_workers=workers))
waits, computes, count = [], [], 0
print('ready', flush=True)
for n in range(steps):
    t0 = time.perf_counter()
    x = next(loader)
    t1 = time.perf_counter()
    while time.perf_counter() - t1 < 0.02:
        torch.mm(big, big); count += 1
    t2 = time.perf_counter()
    opt.zero_grad(); net(x).sum().backward(); opt.step()
    waits.append(t1 - t0); computes.append(t2 - t1)
print(json.dumps({'rank': rank, 'waits': waits, 'computes': computes, 'products': count}), flush=True)
"""

# No optimizer; each batch takes 5 ms or more, in a range of its own name.
# Steps with many operators, once it is told to begin.
CROWD = """
import sys, torch
torch.set_num_threads(1)
net = torch.nn.Linear(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
small = torch.ones(128, 128)  # faster operators are counted, not recorded
print('ready', flush=True)
sys.stdin.readline()
for n in range(20):
    for i in range(200): torch.mm(small, small)
    net(torch.ones(1, 8)).sum().backward(); opt.step()
print('done', flush=True)
sys.stdin.readline()
"""
INFER = """
import time, torch
torch.set_num_threads(1)
net = torch.nn.Linear(8, 8)
for n, x in enumerate(torch.utils.data.DataLoader(torch.ones(12, 8), batch_size=1)):
    with torch.autograd.profiler.record_function(f'my batch {n}'):
        net(x)
        time.sleep(0.005)
"""

OPENCL = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	const char *src = "__kernel void work(__global float *x) { int i = get_global_id(0); float v = x[i];"
			  "for (int k = 0; k < 500; k++) v = v * 1.0001f + 0.5f; x[i] = v; }";
	size_t n = 1 << 16;
	float *h = calloc(n, 4);
	cl_platform_id p; cl_device_id d; cl_int e;
	if (clGetPlatformIDs(1, &p, 0) || clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, 1, &d, 0)) return 3;
	cl_context c = clCreateContext(0, 1, &d, 0, 0, &e);
	cl_command_queue q = clCreateCommandQueue(c, d, 0, &e);
	cl_program g = clCreateProgramWithSource(c, 1, &src, 0, &e);
	if (clBuildProgram(g, 1, &d, "", 0, 0)) return 4;
	cl_kernel k = clCreateKernel(g, "work", &e);
	cl_mem b = clCreateBuffer(c, CL_MEM_READ_WRITE, n * 4, 0, &e);
	clSetKernelArg(k, 0, sizeof b, &b);
	for (int i = 0; i < 40; i++) {
		clEnqueueWriteBuffer(q, b, CL_FALSE, 0, n * 4, h, 0, 0, 0);
		clEnqueueNDRangeKernel(q, k, 1, 0, &n, 0, 0, 0, 0);
		clEnqueueReadBuffer(q, b, CL_TRUE, 0, n * 4, h, 0, 0, 0);
	}
	clFinish(q);
	printf("%f\n", h[0]);
	return 0;
}
"""

PYOPENCL = """
import numpy as np, pyopencl as cl
ctx = cl.create_some_context(interactive=False)
q = cl.CommandQueue(ctx)
a = np.ones(1 << 16, np.float32); b = np.empty_like(a)
d = cl.Buffer(ctx, cl.mem_flags.READ_WRITE, a.nbytes)
k = cl.Program(ctx, "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }").build().twice
for i in range(25):
    cl.enqueue_copy(q, d, a); k(q, a.shape, None, d); cl.enqueue_copy(q, b, d); q.finish()
assert b[0] == 2
"""

# Reads a file for ever; how often is in memory that a file keeps, whenever it is killed.
SMALL = """
import mmap, os, sys
with open(sys.argv[1], 'r+b') as f: done = mmap.mmap(f.fileno(), 8)
f, n = os.open(__file__, os.O_RDONLY), 0
while True:
    os.pread(f, 16, 0)
    n += 1
    done[:] = n.to_bytes(8, 'little')
"""


def has(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, env=environment()).returncode == 0


def environment(**more):
    drop = ("LD_PRELOAD", "RANK", "WORLD_SIZE", "SLURM_PROCID", "PYTHONPATH")
    return {**{k: v for k, v in os.environ.items() if k not in drop}, "OMP_NUM_THREADS": "1", **more}


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, "x.opw")

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf8") as f:
            f.write(text)
        return path

    def record(self, *command, **more):
        p = subprocess.run([BIN, "record", "-o", self.file, "--", *command], capture_output=True, text=True,
                           timeout=600, env=environment(**more))
        self.assertEqual(p.returncode, 0, p.stderr)
        return p

    def rows(self, view, *options):
        p = subprocess.run([BIN, view, "--json", *options, self.file], capture_output=True, text=True, timeout=300)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]

    def near(self, reported_ns, measured_s, what):
        """Medians within 5 %, and a millisecond for what lies between the two clocks' readings."""
        reported, measured = statistics.median(reported_ns) / 1e9, statistics.median(measured_s)
        self.assertLess(abs(reported - measured), 0.05 * measured + 0.001, f"{what}: {reported} s, measured {measured} s")


@unittest.skipUnless(has("torch"), "python3-torch is not installed")
class TorchTest(Case):
    def test_waits_and_computing_are_as_the_job_measures(self):
        p = self.record(PYTHON, self.write("train.py", TRAIN), "40", "0")
        said = json.loads(p.stdout.splitlines()[-1])
        steps = self.rows("steps")
        self.assertEqual(len(steps), 40)
        self.near([s["input_ns"] for s in steps[1:]], said["waits"][1:], "input")
        # Where the job has no processor, its clock goes on, and it does not compute.
        measured = statistics.median(said["computes"][1:])
        self.assertLess(statistics.median(s["compute_ns"] for s in steps[1:]) / 1e9, 1.05 * measured + 0.001)
        self.assertGreater(statistics.median(s["compute_ns"] + s["run_queue_ns"] for s in steps[1:]) / 1e9, 0.95 * measured - 0.001)
        products = [row for row in self.rows("op", "--max-depth", "10") if row["name"] == "aten::mm"]
        self.assertTrue(products)

    def test_loader_workers(self):
        self.record(PYTHON, self.write("train.py", TRAIN), "20", "2")
        kinds = [row["kind"] for row in self.rows("tracks")]
        self.assertGreaterEqual(kinds.count("loader"), 2)
        self.assertEqual(len(self.rows("steps")), 20)
        self.assertFalse([row for row in self.rows("notes") if row["kind"] in ("missing", "dropped", "damaged")])

    def test_two_ranks_and_which_one_is_slow(self):
        port, = ports.reserve(1)
        script = self.write("train.py", TRAIN)
        job = self.write("job.sh", f"for r in 0 1; do RANK=$r {PYTHON} {script} 15 0 & done; wait\n")
        self.record("sh", job, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE="2", SLOW="1")
        steps = self.rows("steps")
        self.assertEqual({s["rank"] for s in steps}, {0, 1})
        waits = [statistics.median(s["input_ns"] for s in steps if s["rank"] == r) for r in (0, 1)]
        self.assertGreater(waits[1], waits[0] + 30e6)
        verdict = subprocess.run([BIN, "verdict", self.file], capture_output=True, text=True).stdout
        self.assertIn("Rank 1 is slow: it waits for input", " ".join(verdict.split()))
        info = json.loads(subprocess.run([BIN, "info", "--json", self.file], capture_output=True, text=True).stdout)
        self.assertEqual({s["job"] for s in info["sources"]}, {f"127.0.0.1:{port}"})
        for rank in (0, 1):
            self.assertGreater(sum(s["communication_ns"] for s in steps if s["rank"] == rank), 0)

    def test_ends_of_steps_find_room_in_a_full_ring(self):
        """While the ring is not read, operators are dropped, and no end of a step."""
        command = [BIN, "record", "-o", self.file, "--ring", "1024", "--", PYTHON, self.write("crowd.py", CROWD)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=environment()) as p:
            self.assertEqual(p.stdout.readline(), "ready\n")
            os.kill(p.pid, signal.SIGSTOP)
            try:
                p.stdin.write("go\n")
                p.stdin.flush()
                self.assertEqual(p.stdout.readline(), "done\n")
            finally:
                os.kill(p.pid, signal.SIGCONT)
            said = p.communicate()[1]
            self.assertEqual(p.returncode, 0, said)
        self.assertEqual(len(self.rows("steps")), 20)
        notes = [row for row in self.rows("notes") if row["kind"] == "dropped"]
        self.assertEqual(len(notes), 1, notes)  # of operators, not of ends of steps
        self.assertGreater(notes[0]["count"], 2000)

    def test_steps_without_an_optimizer_are_iterations_of_the_loader(self):
        self.record(PYTHON, self.write("infer.py", INFER))
        self.assertEqual(len(self.rows("steps")), 12)  # what comes after the last wait is the end of the data

    def test_steps_that_the_user_names(self):
        self.record(PYTHON, self.write("infer.py", INFER))
        steps = self.rows("steps", "--step-marker", "my batch [0-9]+")
        self.assertEqual(len(steps), 12)
        self.assertTrue(all(s["duration_ns"] >= 5e6 for s in steps), steps)

    def test_attach(self):
        job = subprocess.Popen([PYTHON, self.write("train.py", TRAIN), "100000", "0"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=environment())
        self.addCleanup(job.stdout.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        self.assertEqual(job.stdout.readline(), b"ready\n")
        for seconds in (3, 20, 100):  # a busy machine may need more for some steps
            p = subprocess.run([BIN, "attach", str(job.pid), "-o", self.file, "--for", f"{seconds}s"], capture_output=True,
                               text=True, env=environment())
            if "not allowed to trace" in p.stderr:
                self.skipTest(p.stderr)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertNotIn("hooks", p.stderr)
            steps = len(self.rows("steps"))
            if steps > 5:
                break
        self.assertGreater(steps, 5)
        self.assertIsNone(job.poll())

    def test_killed_at_any_moment(self):
        script = self.write("train.py", TRAIN)
        for i in range(10):
            p = subprocess.Popen([BIN, "record", "-o", self.file, "--", "sh", "-c",
                                  f"{PYTHON} {script} 100000 0 & echo $!; wait $!"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
            pid = int(p.stdout.readline())
            self.assertEqual(p.stdout.readline(), "ready\n")
            time.sleep(random.uniform(0.1, 0.8))
            os.kill(pid, signal.SIGKILL)
            said = p.communicate(timeout=120)[1]
            self.assertEqual(p.returncode, 137, said)
            self.assertGreater(sum(row["events"] for row in self.rows("tracks")), 0)
            self.assertFalse([row for row in self.rows("notes") if row["kind"] == "damaged"])


class KillTest(Case):
    def test_two_hundred_times(self):
        """Whatever the moment, the recording opens, nothing in it is damaged, and record itself ends well. All that was done is
        there, or counted as dropped: of the last call nobody knows."""
        script = self.write("small.py", SMALL)
        most = 0
        for i in range(200):
            count = self.write("count", "\0" * 8)
            p = subprocess.Popen([BIN, "record", "-o", self.file, "--", PYTHON, "-S", "-E", script, count], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment())
            time.sleep(random.uniform(0.0, 0.25))
            while p.poll() is None:  # again, when it was not there yet
                for pid in self.children(p.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.005)
            said = p.communicate()[1]
            self.assertEqual(p.returncode, 137, said)
            q = subprocess.run([BIN, "notes", "--json", self.file], capture_output=True, text=True)
            with open(count, "rb") as f:
                done = int.from_bytes(f.read(8), "little")
            most = max(most, done)
            if q.returncode:
                self.assertIn("the recording has no records", q.stderr)
                self.assertEqual(done, 0)
                continue
            notes = json.loads(q.stdout)["rows"]
            self.assertFalse([r for r in notes if r["kind"] == "damaged"], q.stdout)
            if not done:
                continue
            dropped = sum(r["count"] for r in notes if r["kind"] == "dropped")
            kept = sum(r["runs"] for r in self.rows("work") if r["name"] == "pread64")
            self.assertLessEqual(kept, done + 1)
            self.assertGreaterEqual(kept + dropped, done, said)
        self.assertGreater(most, 0)

    @staticmethod
    def children(pid):
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="utf8") as f:
                return [int(x) for x in f.read().split()]
        except OSError:
            return []


class OpenClTest(Case):
    def check(self, count):
        events = {}
        for row in self.rows("tracks"):
            events[row["kind"]] = events.get(row["kind"], 0) + row["events"]
        self.assertEqual(sum(n for kind, n in events.items() if kind in ("stream", "copy")), 3 * count, events)
        phases = {}
        for row in self.rows("phases"):
            phases[row["phase"]] = phases.get(row["phase"], 0) + row["total_ns"]
        for phase in ("host_to_device", "compute", "device_to_host"):
            self.assertGreater(phases[phase], 0, phases)
        names = {row["name"] for row in self.rows("op", "--max-depth", "1000")}
        self.assertTrue({"clBuildProgram", "clEnqueueNDRangeKernel", "Memcpy HtoD", "Memcpy DtoH"} <= names, names)

    def setUp(self):
        super().setUp()
        if not os.path.exists("/etc/OpenCL/vendors/pocl.icd"):
            self.skipTest("pocl-opencl-icd is not installed")
        symbols = subprocess.run(["nm", "-D", LIBRARY], capture_output=True, text=True).stdout
        if "clInitLayer" not in symbols:
            self.skipTest("the recorder was built without CL/cl_layer.h")

    def test_c(self):
        source, program = self.write("job.c", OPENCL), os.path.join(self.dir, "job")
        built = subprocess.run(["cc", "-O1", "-w", source, "-o", program, "-lOpenCL"], capture_output=True, text=True)
        if built.returncode:
            self.skipTest("ocl-icd-opencl-dev is not installed: " + built.stderr)
        self.record(program)
        self.check(40)

    @unittest.skipUnless(has("pyopencl"), "python3-pyopencl is not installed")
    def test_python(self):
        self.record(PYTHON, self.write("job.py", PYOPENCL))
        self.check(25)


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
