#!/usr/bin/python3
"""Real jobs at once under one daemon, which is killed and started anew meanwhile: PyTorch with loader workers, two ranks with
gloo of which one is slow, OpenCL programs in C and in Python, plain Python. Each is told from the others, top shows of each what
it does, and what is kept of each is its own. Needs what record_jobs_test.py needs; jobs without theirs are left out."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from record_jobs_test import BIN, LIBRARY, PYTHON, environment, has  # pylint: disable=wrong-import-position
from support import ports  # pylint: disable=wrong-import-position
from support.patience import run_first, until  # pylint: disable=wrong-import-position

# All of them work until a file is there, and then say how much they did.
LOADER = """
import os, sys, time, torch
torch.set_num_threads(1)
class Data(torch.utils.data.Dataset):
    def __len__(self): return 1 << 30
    def __getitem__(self, i):
        with open(__file__, 'rb') as f: f.read()
        return torch.ones(64, 64)
net = torch.nn.Linear(64, 64)
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
big = torch.ones(256, 256)
steps = 0
for x in torch.utils.data.DataLoader(Data(), num_workers=2):
    t = time.perf_counter()
    while time.perf_counter() - t < 0.02: torch.mm(big, big)
    opt.zero_grad(); net(x).sum().backward(); opt.step()
    steps += 1
    if os.path.exists(sys.argv[1]): break
print(steps, flush=True)
"""
# The ranks agree on when to end; rank 1 has more to do.
RANKS = """
import os, sys, time, torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group('gloo')
net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
opt = torch.optim.SGD(net.parameters(), lr=1e-3)
big, end, steps = torch.ones(256, 256), torch.zeros(1), 0
while not end.item():
    t = time.perf_counter()
    while time.perf_counter() - t < (0.08 if dist.get_rank() else 0.01): torch.mm(big, big)
    opt.zero_grad(); net(torch.ones(8, 64)).sum().backward(); opt.step()
    steps += 1
    end[0] = float(dist.get_rank() == 0 and os.path.exists(sys.argv[1]))
    dist.broadcast(end, 0)
os.write(1, b"%d\\n" % steps)  # at once: both write to one file
"""
OPENCL = r"""
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	const char *src = "__kernel void work(__global float *x) { int i = get_global_id(0); float v = x[i];"
			  "for (int k = 0; k < 500; k++) v = v * 1.0001f + 0.5f; x[i] = v; }";
	size_t n = 1 << 14;
	float *h = calloc(n, 4);
	int rounds = 0;
	cl_platform_id p; cl_device_id d; cl_int e;
	if (clGetPlatformIDs(1, &p, 0) || clGetDeviceIDs(p, CL_DEVICE_TYPE_ALL, 1, &d, 0)) return 3;
	cl_context c = clCreateContext(0, 1, &d, 0, 0, &e);
	cl_command_queue q = clCreateCommandQueue(c, d, 0, &e);
	cl_program g = clCreateProgramWithSource(c, 1, &src, 0, &e);
	if (clBuildProgram(g, 1, &d, "", 0, 0)) return 4;
	cl_kernel k = clCreateKernel(g, "work", &e);
	cl_mem b = clCreateBuffer(c, CL_MEM_READ_WRITE, n * 4, 0, &e);
	clSetKernelArg(k, 0, sizeof b, &b);
	while (argc > 1 && access(argv[1], F_OK) != 0) {
		clEnqueueWriteBuffer(q, b, CL_FALSE, 0, n * 4, h, 0, 0, 0);
		clEnqueueNDRangeKernel(q, k, 1, 0, &n, 0, 0, 0, 0);
		clEnqueueReadBuffer(q, b, CL_TRUE, 0, n * 4, h, 0, 0, 0);
		usleep(10000);
		rounds++;
	}
	clFinish(q);
	printf("%d\n", rounds);
	return 0;
}
"""
PYOPENCL = """
import os, sys, time, numpy as np, pyopencl as cl
ctx = cl.create_some_context(interactive=False)
q = cl.CommandQueue(ctx)
a = np.ones(1 << 14, np.float32); b = np.empty_like(a)
d = cl.Buffer(ctx, cl.mem_flags.READ_WRITE, a.nbytes)
k = cl.Program(ctx, "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }").build().twice
rounds = 0
while not os.path.exists(sys.argv[1]):
    cl.enqueue_copy(q, d, a); k(q, a.shape, None, d); cl.enqueue_copy(q, b, d); q.finish()
    time.sleep(0.01)
    rounds += 1
print(rounds, flush=True)
"""
PLAIN = """
import os, sys, time
done = 0
while not os.path.exists(sys.argv[1]):
    for k in range(20):
        with open(__file__, 'rb') as f: f.read()
    done += 20
    time.sleep(0.05)
print(done, flush=True)
"""


class RealJobs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.socket = os.path.join(self.dir, "socket")
        self.log = os.path.join(self.dir, "log")
        self.go = os.path.join(self.dir, "go")
        self.daemon = None
        self.running = {}
        self.addCleanup(self.end_all)

    def end_all(self):
        for p in [self.daemon, *(p for group in self.running.values() for p in group)]:
            if p and p.poll() is None:
                p.kill()
            if p:
                p.wait()

    def start_daemon(self):
        with open(self.log, "ab") as log:
            size = os.path.getsize(self.log)
            self.daemon = subprocess.Popen([BIN, "daemon", "--socket", self.socket, "--dir", self.dir + "/rings", "--no-kineto"],
                                           stderr=log, env=environment())
        self.wait(lambda: b"serving at" in pathlib.Path(self.log).read_bytes()[size:], "the daemon does not start")

    def wait(self, condition, what):
        """Until it holds, however long that takes on a busy machine, but not longer than the jobs live."""
        said = None

        def holds():
            nonlocal said
            try:
                if condition():
                    return True
            except (KeyError, IndexError, TypeError) as problem:  # not there, or not known yet
                said = problem
            for name, group in self.running.items():
                if not os.path.exists(self.go) and any(p.poll() is not None for p in group):
                    self.fail(f"{what}: job {name} has ended: {self.said(name)}")
            if self.daemon.poll() is not None:
                self.fail(f"{what}: the daemon has ended: {pathlib.Path(self.log).read_text()} {said}")
            return False

        until(holds, lambda: f"{what}: {said} {self.jobs()} {self.top()}", 800, 0.1)

    def jobs(self):
        p = subprocess.run([BIN, "jobs", "--json", "--socket", self.socket], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, f"{p.stderr}; {self.daemon.poll()}; {pathlib.Path(self.log).read_text()}")
        return {row["job"]: row for row in json.loads(p.stdout)["rows"]}

    def top(self):
        p = subprocess.run([BIN, "top", "--json", "--socket", self.socket], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        return {job["job"]: job for job in json.loads(p.stdout)}

    def write(self, name, text):
        path = os.path.join(self.dir, name)
        pathlib.Path(path).write_text(text, encoding="utf8")
        return path

    def said(self, name):
        return pathlib.Path(self.dir, name + ".log").read_text()

    def spawn(self, name, command, before=None, **env):
        log = open(os.path.join(self.dir, name + ".log"), "ab")
        self.addCleanup(log.close)
        self.running.setdefault(name, []).append(subprocess.Popen(command, stdout=log, stderr=log, env=environment(**env), preexec_fn=before))

    def run_named(self, name, *command):
        self.spawn(name, [BIN, "record", "--job", name, "--socket", self.socket, "--", *command, self.go])

    def start_ranks(self):
        """As a launcher would that knows nothing of names: both get the same place to meet at. They run before the other jobs, or the slow rank
        would first of all wait for a processor."""
        port, = ports.reserve(1)
        script = self.write("ranks.py", RANKS)
        for rank in ("0", "1"):
            self.spawn("ranks.py", [PYTHON, script, self.go], run_first, RANK=rank, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                       MASTER_PORT=str(port), LD_PRELOAD=LIBRARY, OPWATCH_RECORDER_SOCKET=self.socket)

    def start_opencl(self):
        symbols = subprocess.run(["nm", "-D", LIBRARY], capture_output=True, text=True).stdout
        if not os.path.exists("/etc/OpenCL/vendors/pocl.icd") or "clInitLayer" not in symbols:
            return
        program = os.path.join(self.dir, "job")
        built = subprocess.run(["cc", "-w", "-o", program, self.write("job.c", OPENCL), "-lOpenCL"], capture_output=True)
        if built.returncode == 0:
            self.run_named("opencl", program)
        if has("pyopencl"):
            self.run_named("pyopencl", PYTHON, self.write("twice.py", PYOPENCL))

    def start_all(self):
        if has("torch"):
            self.run_named("loader", PYTHON, self.write("train.py", LOADER))
            self.start_ranks()
        self.start_opencl()
        self.run_named("plain", PYTHON, self.write("plain.py", PLAIN))

    def rows(self, name, view, *options):
        p = subprocess.run([BIN, view, "--json", "--job", name, "--socket", self.socket, *options], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]

    def names(self, job):
        return {row["name"] for row in self.rows(job, "op", "--max-depth", "100000")}

    # ---- what top shows ----

    def shown(self, least):
        """Whether top shows all of them as they are; a machine that is busy may take some looks."""
        seen = self.top()
        if set(seen) != set(self.running) or any(job["state"] != "runs" for job in seen.values()):
            return False
        ops = {name: " ".join(op["name"] for op in job["ops"]) for name, job in seen.items()}
        good = "open" in ops["plain"] and seen["plain"]["phase_ns"]["input"] > 0 and seen["plain"]["step_ns"] is None
        good = good and all(job["cpu"] is not None for job in seen.values()) and seen["plain"]["cpu"] > 0
        if "loader" in seen:
            job = seen["loader"]
            good = good and job["steps"] >= least and job["step_ns"] >= 20e6 and job["trend"] is not None
            good = good and "aten::mm" in ops["loader"] and job["phase_ns"]["compute"] > job["phase_ns"]["communication"]
            job = seen["ranks.py"]
            good = good and job["steps"] >= least and job["step_ns"] >= 80e6 and len(job["ranks"]) == 2
            good = good and job["slowest_rank"] == 1 and job["communication_wait"] > 0.1
            good = good and job["ranks"][1]["own_ns"] > job["ranks"][0]["own_ns"]
        for name in ("opencl", "pyopencl"):
            if name in seen:
                good = good and 0 < seen[name]["device"] < 1 and "work" in ops["opencl"] and "twice" in ops.get("pyopencl", "twice")
        return good

    def test_jobs_at_once(self):
        self.start_daemon()
        self.start_all()
        self.wait(lambda: self.shown(9), "top does not show them")
        before = {name: (row["id"], row["ring"], row["events"]) for name, row in self.jobs().items()}
        self.assertEqual(set(before), set(self.running))
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.wait()
        self.start_daemon()
        self.wait(lambda: all(row["state"] == "running" and row["events"] > before[name][2] for name, row in self.jobs().items()),
                  "jobs do not come again")
        self.wait(lambda: self.shown(9), "top does not show them again")
        self.write("go", "")
        for name, group in self.running.items():
            for p in group:
                self.assertEqual(p.wait(), 0, self.said(name))
        self.wait(lambda: all(r["state"] == "ended" for r in self.jobs().values()), "jobs do not end")
        rows = self.jobs()
        self.assertEqual({name: (row["id"], row["ring"]) for name, row in rows.items()}, {n: b[:2] for n, b in before.items()})
        for name in rows:
            self.assertFalse([n for n in self.rows(name, "notes") if n["kind"] in ("damaged", "missing")], name)
        self.check_plain(rows["plain"])
        if "loader" in rows:
            self.check_loader(rows["loader"])
            self.check_ranks(rows["ranks.py"])
        for name in ("opencl", "pyopencl"):
            if name in rows:
                self.check_opencl(name, rows[name])

    # ---- what is kept: all that was done, but for what is counted as dropped ----

    def done(self, name):
        return int(self.said(name).split()[-1])

    def check_plain(self, row):
        self.assertEqual((row["framework"], row["ranks"]), ("Python", 1))
        opens = sum(r["runs"] for r in self.rows("plain", "work") if r["name"] == "open")
        self.assertGreaterEqual(opens + row["drops"], self.done("plain"))
        self.assertLess(opens, self.done("plain") + 1500)  # those of the interpreter are there, too
        self.assertFalse([n for n in self.names("plain") if n.startswith(("aten::", "cl"))])

    def check_loader(self, row):
        self.assertRegex(row["framework"], r"^PyTorch \d+\.\d+$")
        steps = len(self.rows("loader", "steps"))
        self.assertLessEqual(steps, self.done("loader"))
        self.assertGreaterEqual(steps + row["drops"], self.done("loader"))
        kinds = [r["kind"] for r in self.rows("loader", "tracks")]
        self.assertEqual(kinds.count("loader") >= 2, True, kinds)
        self.assertFalse([n for n in self.names("loader") if n.startswith(("gloo:", "cl"))])

    def check_ranks(self, row):
        self.assertTrue(row["identity"].startswith("master 127.0.0.1:"), row)
        self.assertEqual(row["ranks"], 2)
        steps = self.rows("ranks.py", "steps")
        for rank in (0, 1):
            mine = [s for s in steps if s["rank"] == rank]
            self.assertLessEqual(len(mine), self.done("ranks.py"))
            self.assertGreaterEqual(len(mine) + row["drops"], self.done("ranks.py"))
            self.assertGreater(sum(s["communication_ns"] for s in mine), 0)
        p = subprocess.run([BIN, "verdict", "--job", "ranks.py", "--socket", self.socket], capture_output=True, text=True)
        self.assertIn("Rank 1 is slow: it computes", " ".join(p.stdout.split()), p.stderr)
        self.assertFalse([n for n in self.names("ranks.py") if n.startswith("cl")])

    def check_opencl(self, name, row):
        self.assertEqual(row["framework"], "OpenCL", row)
        device = sum(r["events"] for r in self.rows(name, "tracks") if r["kind"] in ("stream", "copy"))
        self.assertLessEqual(device, 3 * self.done(name))
        self.assertGreaterEqual(device + row["drops"], 3 * self.done(name))
        self.assertFalse([n for n in self.names(name) if n.startswith(("aten::", "gloo:"))])


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
