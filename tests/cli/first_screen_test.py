#!/usr/bin/python3
"""The first screen says what matters most in inputs that are not timelines of steps: memory over time, heap profiles, samples without
names; and it shows no note about what is normal. Truths are computed here from the same objects, or from the files of the corpus."""
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
CORPUS = os.environ.get("OPWATCH_CORPUS")
sys.path.insert(0, str(ROOT / "tests/support"))
import torch_snapshot  # noqa: E402


def human(n):
    for unit in ("B", "kB", "MB", "GB"):
        if n < 999.5:
            return f"{n:.{0 if unit == 'B' else max(0, 2 - len(str(int(n))) + 1)}f}{unit}"
        n /= 1000


class FirstScreen(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def screen(self, *paths):
        got = subprocess.run([BIN, *map(str, paths), "--no-pager"], capture_output=True, text=True, timeout=120)
        self.assertEqual(got.returncode, 0, got.stderr)
        return re.sub(r"\s+", " ", got.stdout)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_memory_snapshot(self):
        for seed in (5, 6):
            snap = torch_snapshot.snapshot(events=1500, devices=2, seed=seed)
            path = self.folder / "m.pickle"
            path.write_bytes(pickle.dumps(snap))
            said = self.screen(path)
            peaks = {n: torch_snapshot.use_of(snap, n)[0] for n in range(2)}
            most = max(peaks, key=peaks.get)
            self.assertIn(f"Memory in use on GPU {most} peaks at {human(peaks[most])}", said)
            self.assertIn("peak memory: ", said)
            self.assertNotIn("describes a program", said)
            self.assertRegex(said, r"% of it is from /home/me/\w+\.py:\d+")

    def snapshot_of(self, before, stacks):
        """A snapshot with `before` bytes in use that have no stack, and an allocation per stack, which is a size and frames."""
        blocks = [{"size": before, "requested_size": before, "address": 1 << 40, "state": "active_allocated", "frames": []}]
        trace, address = [], (1 << 40) + before
        for size, frames in stacks:
            frames = [{"name": name, "filename": file, "line": line} for name, file, line in frames]
            blocks.append({"size": size, "requested_size": size, "address": address, "state": "active_allocated", "frames": frames})
            trace.append({"action": "alloc", "addr": address, "size": size, "stream": 0, "time_us": 1000 + len(trace), "frames": frames})
            address += size
        whole = sum(b["size"] for b in blocks)
        segment = {"address": 1 << 40, "total_size": whole, "allocated_size": whole, "active_size": whole, "requested_size": whole,
                   "stream": 0, "segment_type": "large", "device": 0, "blocks": blocks, "frames": []}
        path = self.folder / "known.pickle"
        path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [trace], "allocator_settings": {}}))
        return path

    def test_memory_from_before_the_recording(self):
        """Of 10 GB only 50 MB have a stack: no line has 0 % of the peak, and what is not known is said."""
        said = self.screen(self.snapshot_of(9_950_000_000, [(50_000_000, [("forward", "/home/me/model.py", 7)])]))
        self.assertIn("peaks at 10.0GB", said)
        self.assertIn("100 % of it (9.95GB) was allocated before the recording began, or has no recorded stack; "
                      "under 1 % is from /home/me/model.py:7:forward", said)
        self.assertIn("9.95GB 99.5% (from before the recording, or without a stack) 50.0MB 0.5% /home/me/model.py:7", said)

    def test_memory_of_the_backward_pass(self):
        """Threads of autograd run no Python code: what is named is the gradient, not what records the stack or makes an empty tensor."""
        native = ["torch::unwind::unwind()", "torch::CapturedTraceback::gather(bool, bool, bool)",
                  "torch::cuda::(anonymous namespace)::gather_with_cpp()", "c10::cuda::CUDACachingAllocator::Native::malloc(void**)",
                  "at::TensorBase at::detail::_empty_generic<long>(c10::ArrayRef<long>)", "at::detail::empty_cuda(c10::ArrayRef<long>)",
                  "at::(anonymous namespace)::create_out(c10::ArrayRef<long>)", "at::meta::structured_bmm::meta(at::Tensor const&)",
                  "at::_ops::bmm::call(at::Tensor const&)", "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&)",
                  "torch::autograd::Engine::thread_main(std::shared_ptr<int> const&)"]
        said = self.screen(self.snapshot_of(1000, [(50_000_000, [(name, "??", 0) for name in native])]))
        self.assertIn("of it is from torch::autograd::generated::BmmBackward0::apply (50.0MB in 1 block)", said)

    def test_memory_timeline(self):
        if not CORPUS:
            self.skipTest("OPWATCH_CORPUS is not set")
        said = self.screen(pathlib.Path(CORPUS) / "torch-memory/hta-memory_timeline.raw.gz")
        self.assertIn("peaks at 3.08GB, 891ms after the first record: 84 % of it is activation", said)

    def test_heap_profile(self):
        path = self.write("h.heapprofile", json.dumps({"head": {
            "callFrame": {"functionName": "(root)", "scriptId": "0", "url": "", "lineNumber": -1, "columnNumber": -1},
            "selfSize": 0, "id": 1, "children": [
                {"callFrame": {"functionName": "fill", "scriptId": "1", "url": "a.js", "lineNumber": 3, "columnNumber": 1},
                 "selfSize": 3000000, "id": 2, "children": []},
                {"callFrame": {"functionName": "keep", "scriptId": "1", "url": "a.js", "lineNumber": 9, "columnNumber": 1},
                 "selfSize": 1000000, "id": 3, "children": []}]}}))
        said = self.screen(path)
        self.assertIn("75 % of the 4.00MB was allocated in fill", said)

    def test_names_that_are_missing(self):
        path = self.write("x.folded", "main;[unknown] 60\nmain;0x7f12ab 20\nmain;f 20\n")
        said = self.screen(path)
        self.assertIn("80 % of samples have no function names", said)
        self.assertIn("of the named functions f takes most (20 %)", said)
        self.assertIn("To see function names", said)

    def test_few_missing_names_are_mentioned(self):
        said = self.screen(self.write("x.folded", "main;f 80\nmain;[unknown] 20\n"))
        self.assertIn("80 % of samples are in f itself", said)
        self.assertIn("20 % has no function names", said)

    def test_names_of_a_perf_recording(self):
        if not CORPUS:
            self.skipTest("OPWATCH_CORPUS is not set")
        said = self.screen(pathlib.Path(CORPUS) / "perf-data/lpd-sleep.compressed.data")
        self.assertIn("100 % of cycles:P has no function names, all of it in [kernel.kallsyms]", said)
        self.assertIn("as root", said)

    def test_a_caller_without_a_name_is_not_the_story(self):
        said = self.screen(self.write("x.folded", "[unknown];f 60\n[unknown];g;h 30\ng;h 10\n"))
        self.assertNotIn("below [unknown]", said)

    def test_a_first_line_longer_than_what_is_looked_at(self):
        line = ";".join(f"module::function_number_{i}" for i in range(3500))
        self.assertGreater(len(line), 70000)
        said = self.screen(self.write("x.folded", f"{line} 30\nmain;f 10\n"))
        self.assertIn("75 % of samples are in module::function_number_3499", said)

    def test_a_first_frame_longer_than_what_is_looked_at(self):
        name = "std::vector<" + "float, " * 10000 + "int>"
        for first in (f"main;{'x' * 70000}", f"{'x' * 70000};main", f"main;{name}", f"{name};main", "x" * 70000):
            for last in ("main;f 10", "main;f 10\n"):
                path = self.write("x.folded", f"{first} 30\n{last}")
                got = subprocess.run([BIN, "functions", path, "--json"], capture_output=True, text=True, check=True).stdout
                rows = {row["name"]: row for row in json.loads(got)["rows"]}
                self.assertEqual(rows["f"]["self"], 10)
                self.assertEqual(rows[first.split(";")[-1]]["self"], 30)
        for text in ("x" * 70000, "word " * 20000 + "3", "{" + "x" * 70000 + " 3", "a,b " * 20000 + "x 5"):
            path = self.write("x.txt", text)
            run = subprocess.run([BIN, "info", path], capture_output=True, text=True)
            self.assertIn("unknown format", run.stderr)

    def test_perf_script_behind_messages(self):
        samples = "".join(f"prog  100  {i}.000001:     250000 cpu-clock: \n\t    401000 work+0x10 (/bin/prog)\n"
                          f"\t    402000 main+0x5 (/bin/prog)\n\n" for i in range(20))
        for before in ("[ perf record: Woken up 1 times to write data ]\n[ perf record: Captured and wrote 0.1 MB ]\n",
                       "Warning:\nProcessed 1234 events and lost 1 chunks!\n\nCheck IO/CPU overload!\n\n",
                       "Failed to open /lib/libx.so, continuing without symbols\n", ""):
            said = self.screen(self.write("p.txt", before + samples))
            self.assertIn("20 samples of cpu-clock", said, before)
            self.assertIn("100 % of cpu-clock is spent in work", said, before)

    def test_an_empty_trace_beside_a_good_one(self):
        (self.folder / "run").mkdir()
        self.write("run/a.json", '{"traceEvents":[]}')
        self.write("run/b.json", json.dumps([{"ph": "X", "name": "work", "ts": 0, "dur": 5, "pid": 1, "tid": 1}]))
        said = self.screen(self.folder / "run")
        self.assertIn("not used:", said)
        self.assertIn("a.json: the trace has no events", said)
        self.assertIn("work", said)

    def test_a_step_that_is_slow_on_all_ranks_is_one(self):
        paths = []
        for rank in range(3):
            at, events = 0, []
            for step in range(12):
                took = 50000 if step == 4 or (step == 9 and rank == 1) else 10000
                events += [{"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": at, "dur": took},
                           {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": at + 10, "dur": took - 100}]
                at += took
            paths.append(self.write(f"rank{rank}.json", json.dumps({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 3},
                                                                   "traceEvents": events})))
        self.assertIn("12 steps of 10.0ms on 3 ranks (10.0ms to 50.0ms), slow: step 4 (3 ranks), 9 ", self.screen(*paths))

    def test_every_empty_view_says_why(self):
        graph = self.write("g.pbtxt", 'node { name: "a" op: "Placeholder" }\n')
        stacks = self.write("s.folded", "main;f 3\n")
        for view in ("steps", "phases", "devices", "tracks", "functions", "metrics", "work", "opstats", "heaps", "memory_peak",
                     "memory_steps", "memory_time", "pipeline", "roofline", "lines", "code", "notes"):
            for path in (graph, stacks):
                got = subprocess.run([BIN, view, str(path), "--json"], capture_output=True, text=True, timeout=60)
                self.assertEqual((got.returncode, got.stderr), (0, ""), view)
                answer = json.loads(got.stdout)
                self.assertTrue(answer["rows"] or answer["footer"], (view, path))
                text = subprocess.run([BIN, view, str(path)], capture_output=True, text=True, timeout=60)
                self.assertEqual(text.returncode, 0, view)
                self.assertNotEqual(text.stdout.strip(), "(nothing to show)", view)

    def test_samples_without_a_stack_count(self):
        said = self.screen(self.write("h.heap", "heap profile: 2: 300 [2: 300] @ heapprofile\n1: 100 [1: 100] @ 0x420cef 0x422151\n"
                                                "1: 200 [1: 200] @\n"))
        self.assertIn("300B 100.0% [unknown]", said)

    def test_samples_last_beyond_the_last(self):
        text = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": [{"name": "a"}, {"name": "b"}]},
                "profiles": [{"type": "sampled", "name": "x", "unit": "seconds", "startValue": 0, "endValue": 14,
                              "samples": [[0], [0, 1]], "weights": [5, 9]}]}
        self.assertIn("2 samples of time over 14.0s", self.screen(self.write("s.json", json.dumps(text))))
        self.assertNotIn("over 0us", self.screen(self.write("p.txt", "prog  100  1.000001:     3 cycles: \n\t 401000 work+0x10 (/bin/prog)\n\n")))

    def test_variables_of_another_type(self):
        graph = 'node { name: "w" op: "VarHandleOp" attr { key: "shape" value { shape { dim { size: 3 } } } } }\n'
        path = self.write("g.pbtxt", graph)
        for view in ("op", "scope", "graph"):
            answer = json.loads(subprocess.run([BIN, view, str(path), "--account-type-regexes", "VariableV2", "--select", "params", "--json"],
                                               capture_output=True, text=True, check=True).stdout)
            self.assertIn("its variables are of the type VarHandleOp", answer["footer"] or "", view)
        answer = json.loads(subprocess.run([BIN, "op", str(path), "--account-type-regexes", "VarHandleOp", "--select", "params", "--json"],
                                           capture_output=True, text=True, check=True).stdout)
        self.assertEqual(answer["rows"][0]["params"], 3)
        self.assertIsNone(answer["footer"])

    def test_lines_are_lines(self):
        """Frames without a file are not lines of code, waits are not work, and parts of a thousandth are not shown."""
        def event(name, cat, ts, dur, tid=1, **args):
            return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}
        events = [event("train.py(7): step", "python_function", 0, 1000, **{"Python id": 1}),
                  event("<built-in method relu of type object at 0x7f00>", "python_function", 10, 200,
                        **{"Python id": 2, "Python parent id": 1}),
                  event("aten::relu", "cpu_op", 20, 100), event("cudaDeviceSynchronize", "cuda_runtime", 300, 600)]
        said = self.screen(self.write("t.json", json.dumps({"schemaVersion": 1, "traceEvents": events})))
        self.assertIn("Lines of code that created them, of 100us: ops with a known line; main type 100us 100.0% train.py:7 step", said)
        self.assertNotIn("built-in", said)
        events.append(event("aten::mm", "cpu_op", 2000, 100000))
        said = self.screen(self.write("t.json", json.dumps({"schemaVersion": 1, "traceEvents": events})))
        self.assertNotIn("Lines of code", said)

    def test_a_copy_that_waits_is_not_work_of_its_line(self):
        """Two calls of one name: one starts a copy and returns, one waits 5 ms for a kernel before its copy. The lists have the same base."""
        def event(name, cat, ts, dur, pid=1, **args):
            return {"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur, "pid": pid, "tid": 7, "args": args}
        events = [event("train.py(7): step", "python_function", 0, 6000, **{"Python id": 1}),
                  event("train.py(9): log", "python_function", 200, 5600, **{"Python id": 2, "Python parent id": 1})]
        work = {"device": 0, "stream": 7}
        for at, call, name, cat, began, dur in ((10, 50, "Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", 30, 20),
                                                (100, 20, "gemm", "kernel", 130, 5000),
                                                (300, 4900, "Memcpy DtoH (Device -> Pageable)", "gpu_memcpy", 5140, 10)):
            correlation = at
            events += [event("cudaLaunchKernel" if cat == "kernel" else "cudaMemcpyAsync", "cuda_runtime", at, call, correlation=correlation),
                       event(name, cat, began, dur, pid=0, correlation=correlation, **work)]
        said = self.screen(self.write("t.json", json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}],
                                                            "traceEvents": events})))
        base = re.search(r"Operations by time, of (\S+) on host and device", said).group(1)
        self.assertIn(f"Lines of code that created them, of {base}: ops with a known line", said)
        self.assertRegex(said, r"5\.\d+ms 9\d\.\d% train\.py:7 step gemm")
        self.assertNotRegex(said, r"ms +[\d.]+% train\.py:9 log")

    def test_shares_of_samples_name_their_base(self):
        self.assertIn("Functions by own cost, of 14 samples", self.screen(self.write("t.folded", "a;b 5\na;c 9\n")))
        self.assertIn("Functions by own cost, of 1 sample ", self.screen(self.write("t.folded", "a;b 1\n")))

    def firefox(self, **samples):
        """A profile with the stacks main;work and main;wait, of which the second is idle."""
        return self.write("profile.json", json.dumps({
            "meta": {"version": 29, "preprocessedProfileVersion": 47, "interval": 1, "startTime": 0, "product": "made",
                     "categories": [{"name": "Idle", "color": "grey"}, {"name": "Other", "color": "grey"}],
                     "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"}},
            "libs": [], "threads": [{
                "name": "t", "pid": "1", "tid": 1, "processName": "p", "stringArray": ["main", "work", "wait"],
                "frameTable": {"length": 3, "func": [0, 1, 2], "category": [1, 1, 0], "address": [-1, -1, -1], "line": [None] * 3},
                "funcTable": {"length": 3, "name": [0, 1, 2], "resource": [-1] * 3, "fileName": [None] * 3, "lineNumber": [None] * 3},
                "resourceTable": {"length": 0, "lib": [], "name": []},
                "stackTable": {"length": 3, "prefix": [None, 0, 0], "frame": [0, 1, 2]},
                "samples": {"length": 4, "stack": [1, 1, 2, 2], "time": [0, 1, 2, 3], "weightType": "samples", **samples}}]}))

    def test_a_waiting_thread_of_firefox_is_not_work(self):
        said = self.screen(self.firefox(weight=[1, 2, 9, 9]))
        self.assertIn("3 samples over", said)
        self.assertIn("Functions by own cost, of 3 samples 3 100.0% work", said)
        self.assertIn("category Idle, are left out (2 times)", said)

    def test_processor_time_comes_before_samples(self):
        """samply writes a row for each second that a thread sleeps: 1 of 90 samples has processor time."""
        path = self.firefox(weight=[1, 1, 0, 0], stack=[0, 1, 0, 0], threadCPUDelta=[0, 900, 0, 0])
        self.assertIn("Functions by own cost, of 900us 900us 100.0% work", self.screen(path))

    def test_a_long_name_does_not_widen_a_table(self):
        events = [{"ph": "X", "name": name, "ts": 10 * i, "dur": 5, "pid": 1, "tid": 1} for i, name in enumerate(["short", "n" * 1500])]
        path = self.write("t.json", json.dumps(events))
        lines = subprocess.run([BIN, "op", str(path)], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(len(lines), 3)
        for line in lines:
            self.assertLess(len(line), 300 if "nnn" not in line else 1600)
        for line in subprocess.run([BIN, str(path)], capture_output=True, text=True, check=True).stdout.splitlines():
            self.assertLessEqual(len(line), 120)

    def test_threads_without_a_process_are_counted(self):
        events = [{"ph": "X", "name": "a", "ts": 0, "dur": 5, "tid": i} for i in (1, 2, 3, 3)]
        path = self.write("t.json", json.dumps(events))
        got = json.loads(subprocess.run([BIN, "info", str(path), "--json"], capture_output=True, text=True, check=True).stdout)
        self.assertEqual(got["sources"][0]["distinct_pid_tid"], 3)
        self.assertEqual(got["sources"][0]["distinct_pids"], 0)

    def kineto(self, kernel_without_launch):
        host, device = {"pid": 7, "tid": 1}, {"pid": 0, "tid": 7}
        events = [{"ph": "M", "name": "process_labels", "pid": 7, "tid": 0, "args": {"labels": "CPU"}},
                  {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}}]
        for i, name in enumerate(["cudaLaunchKernel", "cudaEventQuery", "cudaMalloc", "cudaLaunchKernel"]):
            at, arrow = 100 * i, {"ph": "s", "id": i, "name": "ac2g", "cat": "ac2g", "ts": 100 * i}
            call = {"ph": "X", "cat": "cuda_runtime", "name": name, "ts": at, "dur": 50, "args": {"correlation": i}, **host}
            work = {"ph": "X", "cat": "kernel", "name": "k", "ts": at + 60, "dur": 30,
                    "args": {"correlation": i, "stream": 7, "device": 0}, **device}
            if not (kernel_without_launch and i == 3):
                events += [call, {**arrow, **host}]
            if name == "cudaLaunchKernel":
                events += [work, {**arrow, "ph": "f", "ts": at + 60, "bp": "e", **device}]
        return self.write("t.json", json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}],
                                                "traceEvents": events}))

    def test_calls_that_start_nothing_are_normal(self):
        self.assertNotIn("flow ids", self.screen(self.kineto(False)))

    def test_work_without_its_launch_is_a_note(self):
        said = self.screen(self.kineto(True))
        self.assertIn("flow ids have only one end in the file", said)
        self.assertNotIn("times)", said[said.index("flow ids"):].split("Verdict")[0])

    def test_one_graph_in_two_files_is_not_damage(self):
        nodes = 'node { name: "a" op: "Placeholder" }\nnode { name: "b" op: "Identity" input: "a" }\n'
        a, b = self.write("a.pbtxt", nodes), self.write("b.pbtxt", nodes)
        said = self.screen(a, b)
        self.assertNotIn("Damaged", said)
        self.assertIn("in an earlier input, too", said)

    def test_the_kernel_that_takes_the_time(self):
        if not CORPUS:
            self.skipTest("OPWATCH_CORPUS is not set")
        said = self.screen(pathlib.Path(CORPUS) / "nsys-sqlite/rodinia-gaussian-report5.sqlite")
        self.assertIn("the costliest kernel is Fan2 (98 % of compute)", said)

    def test_what_was_not_recorded_is_not_0(self):
        if not CORPUS:
            self.skipTest("OPWATCH_CORPUS is not set")
        for name in ("nsys-sqlite/centerformer-baseline.sqlite", "kineto/hta-cpu_only.json.gz"):
            self.assertNotIn("0 % computes", self.screen(pathlib.Path(CORPUS) / name))
        said = self.screen(pathlib.Path(CORPUS) / "kineto/hta-triton.json.gz")
        self.assertIn("Over 99 % of ", said)
        self.assertIn("has nothing recorded", said)

    def kineto_events(self, name, events):
        rows = [{"ph": "X", "name": n, "cat": cat, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}
                for n, cat, ts, dur, pid, tid, args in events]
        return self.write(name, json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": rows}))

    def test_an_operator_that_launches_is_on_the_device(self):
        """5 ms of preparation before a launch is host code; the operator need not be put on the device, where it is. One that launches nothing
        should be."""
        stream = {"device": 0, "stream": 7, "correlation": 1}
        launch = ("cudaLaunchKernel", "cuda_runtime", 6000, 10, 1, 1, {"correlation": 1})
        kernel = ("gemm", "kernel", 6020, 900, 0, 7, stream)
        said = self.screen(self.kineto_events("on.json", [("aten::mm", "cpu_op", 1000, 5020, 1, 1, {}), launch, kernel]))
        self.assertNotIn("op_on_cpu", said)
        self.assertIn("host_code: saves up to", said)
        said = self.screen(self.kineto_events("off.json", [("aten::sort", "cpu_op", 1000, 4900, 1, 1, {}),
                                                   ("aten::mm", "cpu_op", 5990, 30, 1, 1, {}), launch, kernel]))
        self.assertIn("op_on_cpu: saves up to", said)

    def test_first_launches_load_modules(self):
        """Ten kernels whose first launch takes 20 ms and all later ones 10 us: modules are loaded; fewer launches would save nothing. What
        takes long each time is launching."""
        for loads in (1, 4):
            events, at = [], 1000
            for run in range(4):
                for kernel in range(10):
                    number, took = len(events) + 1, 20000 if run < loads else 10
                    events += [("cudaLaunchKernel", "cuda_runtime", at, took, 1, 1, {"correlation": number}),
                               (f"kernel_{kernel}", "kernel", at + took + 5, 40, 0, 7, {"device": 0, "stream": 7, "correlation": number})]
                    at += took + 60
            said = self.screen(self.kineto_events("loads.json", events))
            self.assertEqual(bool(re.search(r"9\d % of the recording is one-off initialisation", said)), loads == 1)
            self.assertEqual("launch_bound: saves" in said, loads == 4)

    def test_the_line_of_host_code(self):
        """Four calls of normalize take 4 ms each, one of read takes 6: the line with the largest sum is named, and stacks need not be
        recorded again. The time of a range is that of the functions in it."""
        def frame(name, ts, dur, number, parent=None):
            return (name, "python_function", ts, dur, 1, 1, {"Python id": number, "Python parent id": parent})

        kernel = [("aten::mm", "cpu_op", 30000, 40, 1, 1, {}), ("cudaLaunchKernel", "cuda_runtime", 30010, 10, 1, 1, {"correlation": 1}),
                  ("gemm", "kernel", 30030, 9000, 0, 7, {"device": 0, "stream": 7, "correlation": 1})]
        events = [("aten::empty", "cpu_op", 1000, 5, 1, 1, {}), frame("train.py(5): main", 900, 39000, 1), frame("train.py(20): read", 1100, 6000, 2, 1)]
        events += [frame("prepare.py(10): normalize", 8000 + 5000 * i, 4000, 3 + i, 1) for i in range(4)]
        said = self.screen(self.kineto_events("lines.json", events + kernel))
        self.assertIn("and launches no work in that time, above all prepare.py:10 normalize", said)
        self.assertNotIn("record with Python stacks", said)
        events += [("augment", "user_annotation", 8000, 20000, 1, 1, {})]
        said = self.screen(self.kineto_events("lines.json", events + kernel))
        self.assertIn("above all prepare.py:10 normalize", said)
        said = self.screen(self.kineto_events("none.json", [e for e in events if e[1] != "python_function"] + kernel))
        self.assertIn("record with Python stacks", said)

    def test_host_code_of_two_ranks(self):
        """Each rank has 10 ms of host code per step; of both it is as much, not half of it."""
        files = []
        for rank in (0, 1):
            events = []
            for step in range(3):
                at = 1_700_000_000_000_000 + step * 20000
                events += [(f"ProfilerStep#{step}", "user_annotation", at, 20000, 1, 1, {}), ("aten::empty", "cpu_op", at + 10, 5, 1, 1, {}),
                           ("prepare", "user_annotation", at + 20, 10000, 1, 1, {}), ("aten::mm", "cpu_op", at + 10030, 30, 1, 1, {}),
                           ("cudaLaunchKernel", "cuda_runtime", at + 10040, 10, 1, 1, {"correlation": step + 1}),
                           ("gemm", "kernel", at + 10060, 9000, 0, 7, {"device": 0, "stream": 7, "correlation": step + 1})]
            path = self.kineto_events(f"rank{rank}.json", events)
            path.write_text(json.dumps({**json.loads(path.read_text()),
                                        "distributedInfo": {"rank": rank, "world_size": 2, "backend": "nccl"}}))
            files.append(path)
        times = [re.search(r"host code for ([\d.]+) ms per step", self.screen(*some)).group(1) for some in ([files[0]], files)]
        self.assertEqual(*times)

    def test_allocation_that_happens_once(self):
        events = [("cudaMalloc", "cuda_runtime", 1000 + 500 * i, 400, 1, 1, {}) for i in range(3)]
        for i in range(4):
            events += [("aten::mm", "cpu_op", 3000 + 100 * i, 40, 1, 1, {}), ("cudaLaunchKernel", "cuda_runtime", 3010 + 100 * i, 10, 1, 1, {"correlation": i}),
                       ("gemm", "kernel", 3030 + 100 * i, 95, 0, 7, {"device": 0, "stream": 7, "correlation": i})]
        said = self.screen(self.kineto_events("once.json", events))
        self.assertNotIn("in every step", said)
        self.assertNotRegex(said[said.index("Verdict"):], r"\bsteps?\b")

    def onnxruntime(self, models):
        """A profile of runs: each model is a list of (node, type, us)."""
        events, now = [], 1000

        def add(name, cat, ts, dur, **args):
            events.append({"cat": cat, "pid": 7, "tid": 7, "ph": "X", "name": name, "ts": ts, "dur": dur, "args": args})

        for nodes in models:
            begin = now
            for node, kind, dur in nodes:
                add(node + "_kernel_time", "Node", now + 5, dur, op_name=kind, provider="CPUExecutionProvider")
                now += dur + 10
            add("model_run", "Session", begin, now - begin)
            now += 100
        return self.write("onnxruntime.json", json.dumps(events))

    def test_onnxruntime_models_that_take_turns(self):
        """A detector of 8 ms, then a classifier of 0.7 ms, again and again: no run takes 5 ms, which would be the median of all."""
        detect = [(f"node_{i}", "Conv", 1000) for i in range(8)]
        classify = [("node_0", "Conv", 600), ("class", "Softmax", 70)]
        text = self.screen(self.onnxruntime([detect, classify] * 10))
        self.assertIn("10 steps of 8.87ms (8.87ms to 8.87ms)", text)
        self.assertIn("runs of 2 models take turns", text)
        text = self.screen(self.onnxruntime([detect] + [detect, classify, classify] * 6))
        self.assertIn("7 steps of 9.66ms (8.08ms to 9.66ms)", text)

    def test_onnxruntime_runs_of_one_model(self):
        """One model whose branches differ, and two models one after the other, are runs as they come."""
        nodes = [(f"node_{i}", "Conv", 1000) for i in range(8)]
        for runs in ([nodes[:7], nodes[1:]] * 5, [nodes] * 5 + [[("other", "MatMul", 7070)]] * 5):
            text = self.screen(self.onnxruntime(runs))
            self.assertRegex(text, r"[^0-9]10 steps of 7\.\d+ms")
            self.assertNotIn("take turns", text)


if __name__ == "__main__":
    unittest.main()
