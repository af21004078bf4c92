#!/usr/bin/python3
"""What time is counted as, on small generated traces: waiting is not work, one-off initialisation is not launching, allocation is a class
of its own. Each test writes a Kineto trace whose truth follows from how it is made.
"""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")


class Trace:
    """A Kineto trace of one host thread and one stream; times in microseconds."""

    def __init__(self):
        self.events = []
        self.correlation = 0

    def slice(self, cat, name, ts, dur, tid=1, **args):
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 0 if cat in ("kernel", "gpu_memcpy") else 100,
                            "tid": 7 if cat in ("kernel", "gpu_memcpy") else tid, "args": args})

    def call(self, name, ts, dur, work=None):
        """A call of CUDA's library; work is (category, name, ts, dur) of what it starts."""
        self.correlation += 1
        self.slice("cuda_runtime", name, ts, dur, correlation=self.correlation)
        if work:
            self.slice(*work, correlation=self.correlation, device=0, stream=7)

    def step(self, number, ts, dur):
        self.slice("user_annotation", "ProfilerStep#%d" % number, ts, dur)

    def text(self):
        return json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Device"}], "traceEvents": self.events})


class Classes(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name) / "trace.json"

    def tearDown(self):
        self.folder.cleanup()

    def run_view(self, *arguments):
        done = subprocess.run([BIN, *arguments, str(self.path)], capture_output=True, text=True, check=True)
        return done.stdout

    def rows(self, view, *arguments):
        return json.loads(self.run_view(view, *arguments, "--json"))["rows"]

    def shares(self, trace):
        """Microseconds by phase, over all steps."""
        self.path.write_text(trace.text())
        sums = {}
        for row in self.rows("steps"):
            for key, value in row.items():
                if key.endswith("_ns"):
                    sums[key[:-3]] = sums.get(key[:-3], 0) + (value or 0) / 1000
        parts = ("input", "host", "initialisation", "allocation", "launch", "host_to_device", "compute", "communication",
                 "device_to_host", "synchronisation", "idle")
        self.assertAlmostEqual(sum(sums[part] for part in parts), sums["duration"])
        return sums

    def test_allocation_is_a_class(self):
        t = Trace()
        for step in range(4):
            at = step * 1000
            t.step(step, at, 1000)
            t.call("cudaMalloc", at, 300)
            t.call("cudaLaunchKernel", at + 300, 10, ("kernel", "k", at + 310, 390))
            t.call("cudaFree", at + 700, 300)
        got = self.shares(t)
        self.assertEqual((got["allocation"], got["launch"], got["compute"]), (2400, 40, 1560))

    def test_graphs_are_not_launched_kernel_by_kernel(self):
        """The same kernels, started by a call each or by one call for all: only the first can be captured in a graph."""
        for graph in (False, True):
            t = Trace()
            for step in range(8):
                at = step * 2000
                t.step(step, at, 1990)
                for i in range(30):
                    if not graph:
                        t.slice("cpu_op", "aten::add", at + i * 60, 55)
                        t.call("cudaLaunchKernel", at + i * 60 + 40, 10, ("kernel", "k", at + i * 60 + 55, 4))
                    elif i == 0:
                        t.call("cudaGraphLaunch", at + 500, 40, ("kernel", "k", at + 560, 4))
                    else:
                        t.slice("kernel", "k", at + 560 + i * 5, 4, correlation=t.correlation, device=0, stream=7)
            self.path.write_text(t.text())
            found = [r for r in self.rows("advise") if r["rule"] == "launch_bound" and r["severity"] in ("medium", "high")]
            self.assertEqual(len(found), 0 if graph else 1)

    def test_frees_that_repeat_stay_allocation(self):
        """Every step has one free that is far longer than the others: not a one-off."""
        t = Trace()
        for step in range(5):
            at = step * 100000
            t.step(step, at, 100000)
            for i in range(10):
                t.call("hipFree", at + i * 100, 50)
            t.call("hipFree", at + 2000, 70000)
            t.call("hipLaunchKernel", at + 72000, 10, ("kernel", "k", at + 72010, 20000))
        got = self.shares(t)
        self.assertEqual(got["initialisation"], 0)
        self.assertEqual(got["allocation"], 5 * 70500)

    def test_first_calls_are_initialisation(self):
        """A context is created by the first call, whatever it is called; a query never works; a module is loaded by a first launch."""
        t = Trace()
        t.step(0, 0, 100000)
        t.call("cudaFree", 0, 30000)
        t.call("cudaDeviceGetStreamPriorityRange", 30000, 20000)
        t.call("cudaLaunchKernel", 50000, 40000, ("kernel", "loaded_late", 90000, 100))
        for i in range(20):
            t.call("cudaLaunchKernel", 91000 + i * 200, 10, ("kernel", "k%d" % (i % 3), 91020 + i * 200, 100))
        got = self.shares(t)
        self.assertEqual(got["initialisation"], 90000)
        self.assertEqual(got["launch"], 200)

    def test_a_first_allocation_makes_the_context(self):
        """Among few calls, none of which is short: the first one makes the context, those at the end are what they are called."""
        for first, initialisation in (("cudaMallocManaged", 200000), ("cudaFree", 0)):
            with self.subTest(first):
                t = Trace()
                t.step(0, 0, 400000)
                t.call(first, 0, 200000)
                t.call("cudaMallocManaged", 200000, 40)
                t.call("cudaMemPrefetchAsync", 210000, 16000)
                t.call("cudaLaunchKernel", 230000, 50, ("kernel", "add", 230060, 100000))
                # as long: then freeing takes that long, every time
                t.call("cudaFree", 340000, 20000 if initialisation else 190000)
                t.call("cudaFree", 360000, 20000 if initialisation else 200000)
                self.assertEqual(self.shares(t)["initialisation"], initialisation)

    def test_freeing_at_the_end_is_not_initialisation(self):
        """Two long cudaFree behind all work, as with managed memory."""
        t = Trace()
        t.step(0, 0, 900000)
        t.call("cudaMallocManaged", 0, 350000)
        t.call("cudaMallocManaged", 350000, 50)
        t.call("cudaLaunchKernel", 400000, 50, ("kernel", "add", 400060, 100000))
        t.call("cudaFree", 510000, 170000)
        t.call("cudaFree", 690000, 195000)
        got = self.shares(t)
        self.assertEqual((got["initialisation"], got["allocation"]), (350000, 365050))

    def test_only_a_warm_up(self):
        """Nothing is said to be well where initialisation hides the work."""
        t = Trace()
        t.step(0, 0, 100000)
        t.call("cudaFree", 0, 90000)
        for i in range(20):
            t.call("cudaLaunchKernel", 91000 + i * 200, 10, ("kernel", "k", 91020 + i * 200, 180))
        self.shares(t)
        said = " ".join(self.run_view("verdict").split())
        self.assertIn("This is mostly warm-up: record later steps to judge the work that repeats.", said)
        self.assertNotIn("Nothing worth changing", self.run_view())

    def test_a_launch_that_waits_for_room_is_not_initialisation(self):
        """A full queue blocks one launch of a kernel that ran before; its work starts later."""
        t = Trace()
        t.step(0, 0, 60000)
        for i in range(50):
            t.call("cudaLaunchKernel", i * 10, 5, ("kernel", "k", 100 + i * 1000, 990))
        t.call("cudaLaunchKernel", 500, 40000, ("kernel", "k", 50100, 990))
        got = self.shares(t)
        self.assertEqual(got["initialisation"], 0)

    def test_a_copy_that_blocks_is_synchronisation(self):
        """A copy of 5 us returns after 400 ms, when the kernel before it has ended and a second stream is empty."""
        t = Trace()
        t.step(0, 0, 600000)
        t.call("cudaLaunchKernel", 0, 10, ("kernel", "k", 10, 100000))
        t.call("cudaMemcpyAsync", 20, 463000, ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 463000, 5))
        got = self.shares(t)
        self.assertEqual(got["compute"], 100000)
        self.assertEqual(got["device_to_host"], 5)
        self.assertEqual(got["synchronisation"], 463020 - 100010 - 5)
        self.assertEqual(got["launch"], 10)
        # waiting is not work: the copy's call does not lead the operations, and one that only starts a copy counts
        t.call("cudaMemcpyAsync", 500000, 14, ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 500020, 50))
        self.shares(t)
        work = {r["name"]: r["time_ns"] for r in self.rows("work")}
        self.assertEqual(work["cudaMemcpyAsync"], 14000)
        self.assertEqual(work["k"], 100000000)

    def test_a_copy_that_starts_and_returns_is_launching(self):
        t = Trace()
        t.step(0, 0, 10000)
        t.call("cudaMemcpyAsync", 0, 14, ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 20, 5000))
        t.call("cudaMemcpyAsync", 6000, 14, ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 6004, 3))
        got = self.shares(t)
        self.assertEqual((got["synchronisation"], got["host_to_device"]), (0, 5003))

    def test_a_copy_without_async_waits(self):
        t = Trace()
        t.step(0, 0, 1000)
        t.call("cudaMemcpy", 0, 100, ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 20, 60))
        got = self.shares(t)
        self.assertEqual((got["synchronisation"], got["host_to_device"], got["launch"]), (40, 60, 0))
        self.assertNotIn("cudaMemcpy", self.run_view("work"))

    def test_files_are_input(self):
        """TensorFlow's ops that find, read and decode files are input wherever they run."""
        names = {"MatchingFiles": 100, "ReadFile": 50, "DecodeJpeg": 200, "MatMul": 300, "ReadVariableOp": 10}
        events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/job:localhost/replica:0/task:0/device:CPU:0 Compute"}}]
        at = 0
        for name, dur in names.items():
            events.append({"ph": "X", "cat": "Op", "name": name, "pid": 1, "tid": 0, "ts": at, "dur": dur,
                           "args": {"name": "a/" + name, "op": name}})
            at += dur
        self.path.write_text(json.dumps({"traceEvents": events}))
        row = self.rows("steps")[0]
        self.assertEqual((row["input_ns"], row["compute_ns"]), (350000, 310000))

    def test_outliers_lead_no_list(self):
        """clip takes 10 us in each of 5 steps but 9 ms in one; conv takes 500 us in each: conv comes first, and what came from the
        outlier is said."""
        t = Trace()
        for step in range(5):
            at = step * 20000
            t.step(step, at, 15000)
            t.slice("cpu_op", "conv", at, 500)
            t.slice("cpu_op", "clip", at + 1000, 9010 if step == 3 else 10)
        self.path.write_text(t.text())
        rows = self.rows("work")
        self.assertEqual([row["name"] for row in rows], ["conv", "clip"])
        clip = rows[1]
        self.assertEqual((clip["time_ns"], clip["outlier_ns"], clip["median_ns"]), (1810000, 1800000, 10000))
        screen = self.run_view()
        self.assertIn("outliers and one-off runs, above all clip (100 %)", screen)

    def test_one_run_is_one_off(self):
        t = Trace()
        for step in range(6):
            t.step(step, step * 1000, 900)
            t.slice("cpu_op", "mm", step * 1000, 100)
        t.slice("cpu_op", "save", 2300, 500)
        self.path.write_text(t.text())
        rows = {row["name"]: row for row in self.rows("work")}
        self.assertEqual(rows["save"]["outlier_ns"], rows["save"]["time_ns"])
        self.assertEqual(rows["mm"]["outlier_ns"], 0)

    def test_every_fourth_step_is_not_one_off(self):
        """An optimizer that runs in every fourth step is periodic work."""
        t = Trace()
        for step in range(16):
            t.step(step, step * 1000, 900)
            t.slice("cpu_op", "mm", step * 1000, 100)
            if step % 4 == 3:
                t.slice("cpu_op", "adam", step * 1000 + 200, 300)
        self.path.write_text(t.text())
        rows = {row["name"]: row for row in self.rows("work")}
        self.assertEqual(rows["adam"]["outlier_ns"], 0)

    def test_lines_have_the_time_of_kernels(self):
        """Two operators with a call stack each launch a kernel; the runtime call has no stack of its own. The type of a line is the one
        with the largest sum: five small mm beat one add."""
        t = Trace()
        t.step(0, 0, 10000)
        for i in range(5):
            t.slice("cpu_op", "aten::mm", i * 100, 50, **{"Call stack": "train.py(7): main"})
            t.call("cudaLaunchKernel", i * 100 + 10, 5, ("kernel", "gemm%d" % i, i * 100 + 20, 60))
        t.slice("cpu_op", "aten::add", 600, 100, **{"Call stack": "train.py(9): main"})
        t.call("cudaLaunchKernel", 610, 5, ("kernel", "add", 620, 700))
        self.path.write_text(t.text())
        rows = {row["line"]: row for row in self.rows("lines")}
        self.assertEqual(rows[7]["accelerator_ns"], 300000)
        self.assertEqual(rows[9]["accelerator_ns"], 700000)
        self.assertEqual(rows[7]["top_type"], "aten::mm")

    def test_ranges_are_not_lines(self):
        """The time of a range belongs to what runs in it, not to the line that opens it."""
        t = Trace()
        stack = {"Call stack": "torch/profiler.py(614): __enter__;train.py(54): main"}
        t.slice("cpu_op", "ProfilerStep#0", 0, 10000, **stack)
        t.slice("user_annotation", "forward", 100, 5000, **stack)
        t.slice("cpu_op", "aten::mm", 200, 50, **{"Call stack": "train.py(7): main"})
        self.path.write_text(t.text())
        self.assertEqual([row["line"] for row in self.rows("lines")], [7])
        self.assertNotIn("__enter__", self.run_view("convert", "--to", "folded", "-o", "-"))

    def test_an_executor_in_an_op_is_part_of_it(self):
        """ONNX Runtime runs the body of If by an executor of its own, inside of the node: what it takes itself is of the If."""
        def event(cat, name, ts, dur, **args):
            return {"cat": cat, "pid": 1, "tid": 1, "ph": "X", "name": name, "ts": ts, "dur": dur, "args": args}
        node = {"provider": "CPUExecutionProvider"}
        events = [event("Session", "model_run", 0, 1000), event("Session", "SequentialExecutor::Execute", 10, 980),
                  event("Node", "If_0_kernel_time", 20, 900, op_name="If", **node),
                  event("Session", "SequentialExecutor::Execute", 30, 880),
                  event("Node", "Conv_1_kernel_time", 40, 500, op_name="Conv", **node)]
        self.path.write_text(json.dumps(events))
        rows = {row["name"]: row["time_ns"] for row in self.rows("work")}
        self.assertEqual(rows, {"Conv": 500000, "If": 400000})
        self.assertEqual(self.rows("steps")[0]["compute_ns"], 900000)

    def test_python_between_operators(self):
        """with_stack=True: frames cover the step; what no operator covers is Python, and a wait where Python sleeps."""
        t = Trace()
        t.step(0, 0, 1000)
        t.slice("python_function", "train.py(3): main", 0, 1000)
        t.slice("python_function", "train.py(9): step", 100, 800)
        t.slice("python_function", "<built-in function sleep>", 600, 200)
        t.slice("cpu_op", "aten::mm", 200, 50)
        t.call("cudaLaunchKernel", 210, 10, ("kernel", "k", 230, 100))
        got = self.shares(t)
        self.assertEqual((got["idle"], got["compute"], got["synchronisation"]), (0, 100, 200))
        self.assertEqual(got["launch"] + got["host"], 700)
        self.assertIn("Python between operators", self.run_view("verdict"))

    def test_frames_of_other_threads_do_not_count(self):
        t = Trace()
        t.step(0, 0, 1000)
        t.slice("python_function", "threading.py(3): run", 0, 1000, tid=2)
        t.call("cudaLaunchKernel", 210, 10, ("kernel", "k", 230, 100))
        got = self.shares(t)
        self.assertEqual(got["idle"], 890)

    def test_scopes_of_names_that_begin_with_a_slash(self):
        def event(name, ts, dur):
            return {"cat": "Node", "pid": 1, "tid": 1, "ph": "X", "name": name + "_kernel_time", "ts": ts, "dur": dur,
                    "args": {"op_name": "Conv", "provider": "CPUExecutionProvider"}}
        events = [{"cat": "Session", "pid": 1, "tid": 1, "ph": "X", "name": "model_run", "ts": 0, "dur": 1000, "args": {}},
                  event("/layer1/conv1", 0, 100), event("/layer1/conv2", 100, 200), event("/layer2/conv", 300, 400)]
        self.path.write_text(json.dumps(events))
        root = self.rows("scope", "--select", "micros")[0]
        scopes = {child["name"]: child["total_micros"] for child in root["children"]}
        self.assertEqual(scopes, {"/layer1": 300, "/layer2": 400, "model_run": 300})

    def test_roofline_of_shapes(self):
        """record_shapes=True: a product of (100, 200) and (200, 300) is 2*100*200*300 operations; a convolution of 4 images of 8x16x16 with
        32 kernels of 8x3x3, padding 1, stride 2, has 4*32*8*8 results of 72 taps. Copies that prepare operands have none of it."""
        t = Trace()
        t.step(0, 0, 10000)
        t.slice("cpu_op", "aten::mm", 0, 50, **{"Input Dims": [[100, 200], [200, 300]], "Input type": ["c10::Half", "c10::Half"]})
        t.call("cudaLaunchKernel", 10, 5, ("kernel", "gemm", 20, 10))
        t.slice("cpu_op", "aten::cudnn_convolution", 100, 50, **{
            "Input Dims": [[4, 8, 16, 16], [32, 8, 3, 3], [], [], []], "Input type": ["float", "float", "", "", ""],
            "Concrete Inputs": ["", "", "[1, 1]", "[2, 2]", "[1, 1]"]})
        t.call("cudaLaunchKernel", 110, 5, ("kernel", "transpose_nchw", 120, 30))
        t.call("cudaLaunchKernel", 120, 5, ("kernel", "conv_kernel", 150, 20))
        self.path.write_text(t.text())
        rows = {row["name"]: row for row in self.rows("roofline", "--peak", "1T:1T")}
        self.assertEqual(rows["gemm"]["flops"], 2 * 100 * 200 * 300)
        self.assertEqual(rows["gemm"]["bytes"], 2 * (100 * 200 + 200 * 300 + 100 * 300))
        self.assertEqual(rows["conv_kernel"]["flops"], 2 * 4 * 32 * 8 * 8 * 72)
        self.assertNotIn("transpose_nchw", rows)

    def test_collectives_wait_for_the_other_rank(self):
        """Rank 1 enters each of three all-reduces 900 us late: rank 0 takes 1000 us for what takes rank 1 100 us."""
        folder = self.path.parent
        for rank, late in ((0, 0), (1, 900)):
            t = Trace()
            for step in range(3):
                t.step(step, step * 2000, 1600)
                t.slice("cpu_op", "aten::mm", step * 2000, 600 + late)
                t.slice("user_annotation", "gloo:all_reduce", step * 2000 + 600 + late, 1000 - late)
            content = json.loads(t.text())
            content["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "gloo"}
            (folder / ("rank%d.json" % rank)).write_text(json.dumps(content))
        done = subprocess.run([BIN, "verdict", str(folder / "rank0.json"), str(folder / "rank1.json")], capture_output=True, text=True,
                              check=True)
        self.assertIn("at least 82 % is waiting for the other rank", " ".join(done.stdout.split()))

    def test_collectives_with_holes(self):
        """Four all-reduces a step, in turn long and short; rank 1 is 900 us late to the first. The trace of rank 1 lacks the first of step 1 and the last of
        step 2, and its clock is 5 ms ahead: pairs by order would compare long ones with short ones there."""
        folder = self.path.parent
        wait = total = 0
        for rank, late in ((0, 0), (1, 900)):
            t = Trace()
            for step in range(4):
                base = step * 6000 + 5000 * rank
                t.step(step, base, 3360)
                for begin, end in ((0, 300 + late), (1300, 1500), (1530, 1800), (2800, 3330)):
                    t.slice("cpu_op", "aten::mm", base + begin, end - begin)
                for k, (start, end) in enumerate(((300, 1300), (1500, 1530), (1800, 2800), (3330, 3360))):
                    if rank == 1 and (step, k) in ((1, 0), (2, 3)):
                        continue
                    begin = start + (late if k == 0 else 0)
                    t.slice("user_annotation", "gloo:all_reduce", base + begin, end - begin)
                    total += end - begin
                    wait += 900 if rank == 0 and k == 0 and step != 1 else 0
            content = json.loads(t.text())
            content["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "gloo"}
            (folder / ("rank%d.json" % rank)).write_text(json.dumps(content))
        done = subprocess.run([BIN, "verdict", str(folder / "rank0.json"), str(folder / "rank1.json")], capture_output=True, text=True, check=True)
        self.assertIn("at least %.0f %% is waiting for the other rank" % (100 * wait / total), " ".join(done.stdout.split()))

    def test_waiting_after_every_launch(self):
        t = Trace()
        for i in range(200):
            t.call("cudaLaunchKernel", i * 100, 5, ("kernel", "k", i * 100 + 10, 50))
            t.call("cudaDeviceSynchronize", i * 100 + 10, 60)
        self.path.write_text(t.text())
        self.assertIn("waits for the device 200 times for 200 launches", " ".join(self.run_view("verdict").split()))


if __name__ == "__main__":
    unittest.main()
