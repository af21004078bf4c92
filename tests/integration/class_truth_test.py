#!/usr/bin/python3
"""What time is counted as in real files, against values computed here from the raw file.

OPWATCH_CORPUS is the folder with the files; without it the test is skipped. Each test says how its truth follows from the file. None
of it uses the program's own idea of a phase: names and times are read from the file, and unions of spans are computed in Python.
"""
import gzip
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")


def run(*arguments):
    return subprocess.run([BIN, *arguments], capture_output=True, text=True, check=True).stdout


def path_of(name):
    return str(pathlib.Path(CORPUS) / name)


def view(name, file, *arguments):
    return json.loads(run(name, "--json", *arguments, path_of(file)))["rows"]


def slices(file):
    path = path_of(file)
    with (gzip.open if path.endswith("gz") else open)(path, "rt") as stream:
        content = json.load(stream)
    events = content["traceEvents"] if isinstance(content, dict) else content
    return [e for e in events if e.get("ph") == "X" and "dur" in e]


def shares(file):
    """Microseconds by phase: of all steps, or of the whole recording where no steps are known."""
    first = {}
    for row in view("phases", file):
        first.setdefault(row["phase"], row["share_ns"] / 1000)
    return first


class ClassTruth(unittest.TestCase):
    def test_waits_of_a_tpu_are_transfers(self):
        """copy-done waits for copy-start. The shapes of both name memory space 5 (the host's), as source or as target, in all but 11 of
        315 seconds that the devices were busy; nothing but the instruction's own text is needed to see it."""
        got = shares("xplane/tpu_inference_2-early.xplane.pb")
        whole = sum(got.values()) - got["between"]
        self.assertAlmostEqual((got["host_to_device"] + got["device_to_host"]) / whole, 304 / 315, delta=0.005)
        self.assertLess(got["compute"], whole * 11 / 315)
        verdict = run(path_of("xplane/tpu_inference_2-early.xplane.pb")).split("Verdict")[1]
        self.assertNotIn("Compute-bound", verdict)

    def test_initialisation_is_not_launching(self):
        """In these files single calls last 0.2 to 30 s where their like last microseconds: the first cudaFree (which frees nothing), a
        query of stream priorities, one launch that loads a module. What is left of launching is small."""
        for file, least_ms in (("kineto/hta-alexnet.json.gz", 29927.4 + 6008.7 + 525 + 3055.6 + 732.7),
                               ("kineto/hta-simple_add.json.gz", 24587.2 + 5179.2 + 2810.3 + 4219.3 + 474.3)):
            with self.subTest(file):
                got = shares(file)
                calls = [e for e in slices(file) if e.get("cat") == "cuda_runtime"]
                longest = max(e["dur"] for e in calls if e["name"] == "cudaDeviceGetStreamPriorityRange")
                self.assertGreater(longest, 24e6)
                self.assertGreaterEqual(got["initialisation"] / 1000, least_ms * 0.999)
                self.assertLess(got["launch"], 10000)

    def test_first_free_of_a_benchmark(self):
        """param-linear: cudaFree lasts 266 and 715 ms before the first kernel, and 8 us after it; all are in step 0, which warms up."""
        file = "kineto/param-linear_kineto.json.gz"
        frees = sorted(e["dur"] for e in slices(file) if e["name"] == "cudaFree")
        self.assertEqual(len(frees), 3)
        first = min(view("steps", file), key=lambda row: row["start_ns"])
        self.assertAlmostEqual(first["initialisation_ns"] / 1000, frees[1] + frees[2], delta=frees[2] / 100)

    def test_first_allocation_under_nsys(self):
        """dlprof: the first of ten cudaMalloc lasts 2.08 s, the others 0.2 ms together: it creates the context."""
        file = "nsys-sqlite/dlprof-nsys_profile.sqlite"
        with sqlite3.connect("file:%s?mode=ro" % path_of(file), uri=True) as base:
            mallocs = [row[0] for row in base.execute(
                "SELECT end - start FROM CUPTI_ACTIVITY_KIND_RUNTIME AS call JOIN StringIds ON id = nameId "
                "WHERE value LIKE 'cudaMalloc%' ORDER BY 1")]
        got = shares(file)
        self.assertAlmostEqual(got["initialisation"], mallocs[-1] / 1000, delta=500)
        self.assertLess(got["launch"], 1000)

    def test_first_allocation_among_few_calls(self):
        """vectoraddition: 203 ms for the first cudaMallocManaged, 0.04 ms for the second: a pool of memory would save nothing."""
        file = "nsys-sqlite/vectoraddition-report4.sqlite"
        with sqlite3.connect("file:%s?mode=ro" % path_of(file), uri=True) as base:
            first, second = (row[0] for row in base.execute(
                "SELECT end - start FROM CUPTI_ACTIVITY_KIND_RUNTIME AS call JOIN StringIds ON id = nameId "
                "WHERE value LIKE 'cudaMallocManaged%' ORDER BY start"))
        self.assertGreater(first, 1000 * second)
        self.assertAlmostEqual(shares(file)["initialisation"], first / 1000, delta=500)
        self.assertNotIn("allocation:", run(path_of(file)))

    def test_first_run_of_tensorflow(self):
        """blackbox: three scheduling slices of 439, 237 and 12.8 ms among 15 whose median is 24 us, before kernels of 0.2 and 2.4 ms:
        cuRAND, cuBLAS and the runtime start."""
        got = shares("tf1-timeline/blackbox-timeline_01.json")
        self.assertGreater(got["initialisation"], 688000)
        self.assertLess(got["launch"], 100)

    def test_allocation_of_every_step(self):
        """mi300-ddp_resnet18: from step 2 on about 290 hipMalloc and 270 hipFree per step; the frees alone take 3.35 of 4.1 s."""
        file = "kineto/amd-mi300-ddp_resnet18.json.gz"
        frees = sum(e["dur"] for e in slices(file) if e["name"] in ("hipFree", "hipMalloc", "hipHostMalloc"))
        got = shares(file)
        self.assertGreater(got["allocation"], frees * 0.85)
        self.assertLess(got["launch"], 20000)
        self.assertRegex(run("verdict", path_of(file)), r"564 calls per step allocate or free device memory .*\bthe costliest call is hipFree")

    def test_sleeping_threads_do_not_work(self):
        """rodinia: poll (1.17 s) and pthread_cond_timedwait (0.5 s) are of three threads that only sleep; Fan2 is what takes the time."""
        file = "nsys-sqlite/rodinia-gaussian-report5.sqlite"
        shown = run("work", path_of(file))
        self.assertNotIn("poll", shown)
        self.assertNotIn("pthread_cond_timedwait", shown)
        with sqlite3.connect("file:%s?mode=ro" % path_of(file), uri=True) as base:
            malloc = max(row[0] for row in base.execute(
                "SELECT end - start FROM CUPTI_ACTIVITY_KIND_RUNTIME AS call JOIN StringIds ON id = nameId "
                "WHERE value LIKE 'cudaMalloc%'"))
        got = shares(file)
        self.assertAlmostEqual(got["initialisation"], malloc / 1000, delta=2000)

    def test_sleeping_threads_delay_nothing(self):
        """Threads of CUDA poll and wait for conditions beside the program: advice is about the program's own thread, which cannot run
        code of its own while it waits in cudaThreadSynchronize (742 ms of 1.19 s)."""
        file = "nsys-sqlite/rodinia-gaussian-report5.sqlite"
        base = sqlite3.connect(path_of(file))
        waits, = base.execute("select sum(end - start) from CUPTI_ACTIVITY_KIND_RUNTIME r join StringIds s on s.id = r.nameId "
                              "where s.value like 'cudaThreadSynchronize%'").fetchone()
        base.close()
        answer = json.loads(run("advise", "--json", path_of(file)))
        row = next(r for r in answer["rows"] if r["rule"] == "host_code")
        self.assertNotIn("poll", row["where"])
        self.assertNotIn("poll", [e.get("op") for e in row["evidence"]])
        number, unit = row["what"].split("host code for ")[1].split()[:2]
        self.assertEqual(unit, "ms")
        self.assertLess(float(number) * 1e6, answer["step_ns"] - waits)
        self.assertGreater(row["saving_high_ns"], 0.8 * float(number) * 1e6)

    def test_costs_are_of_the_median_step(self):
        """Calls to hipMalloc and hipFree take 110 ms in the first two steps and a second in the other three; the median step takes 1.01 s."""
        file = "kineto/amd-mi300-ddp_resnet18.json.gz"
        events = slices(file)
        ends = sorted(e["ts"] + e["dur"] for e in events if e["name"].startswith("Optimizer.step#") and e["cat"] == "user_annotation")
        calls = [e for e in events if e["name"] in ("hipMalloc", "hipFree")]
        sums = sorted(sum(e["dur"] for e in calls if begin <= e["ts"] < end) for begin, end in zip([0] + ends, ends))
        row = next(r for r in view("advise", file) if r["rule"] == "allocation")
        number, unit = row["what"].split("take ")[1].split()[:2]
        self.assertAlmostEqual(float(number) * {"s": 1e6, "ms": 1e3}[unit], sums[len(sums) // 2], delta=0.02 * sums[len(sums) // 2])

    def test_first_run_of_a_session_is_cold(self):
        """3 runs: 5.9, 1.0 and 1.3 ms around the operators, which are 12 % of the second and third."""
        file = "onnxruntime/ort121-ppocr_cls.json"
        got = shares(file)
        self.assertLess(got["host"] / (got["host"] + got["compute"]), 0.12)
        verdict = run("verdict", path_of(file))
        self.assertIn("Conv (", verdict)
        self.assertNotIn("Clip", verdict)

    def test_verdict_and_list_have_one_share(self):
        """The largest type of the list, with its share."""
        file = "tf1-profile/resnet-dist2-profile_100"
        rows = view("work", file)
        typical = [r["time_ns"] - r["outlier_ns"] for r in rows]
        verdict = run("verdict", path_of(file))
        self.assertIn(f"the costliest op is {rows[0]['name']} ({100 * typical[0] / sum(typical):.0f} % of compute, outliers apart)", verdict)

    def test_two_runs_of_54_do_not_lead(self):
        """ppocr_cls: Clip has 54 runs of which two take 8.1 and 12.1 ms, the others at most 106 us; without these two Conv leads."""
        file = "onnxruntime/ort121-ppocr_cls.json"
        clips = sorted(e["dur"] for e in slices(file) if e["args"].get("op_name") == "Clip" and e["name"].endswith("_kernel_time"))
        self.assertEqual(len(clips), 54)
        self.assertLess(clips[-3], clips[-2] / 50)
        rows = view("work", file)
        self.assertEqual(rows[0]["name"], "Conv")
        clip = next(row for row in rows if row["name"] == "Clip")
        self.assertAlmostEqual(clip["outlier_ns"] * 3 / 1000, clips[-1] + clips[-2], delta=50)

    def test_ops_sum_to_their_phase(self):
        """silero: own times of nodes, with what executors inside of If nodes take counted for these, are the union of the nodes."""
        file = "onnxruntime/ort130-silero_vad_v5.json"
        nodes = [(e["ts"], e["ts"] + e["dur"]) for e in slices(file) if e["name"].endswith("_kernel_time")]
        union, covered = 0, 0
        for begin, end in sorted(nodes):
            union += max(0, end - max(begin, covered))
            covered = max(covered, end)
        rows = view("work", file)
        self.assertAlmostEqual(sum(row["time_ns"] for row in rows) * 5 / 1000, union, delta=5)
        self.assertEqual(rows[0]["name"], "If")
        self.assertAlmostEqual(rows[0]["percent"], 35, delta=1)

    def test_lines_of_a_trainer(self):
        """tb-resnet50: kernels are joined to calls by correlation, calls to operators by time, operators of the backward pass to those
        of the forward pass by sequence numbers. 98.6 ms of compute per step; almost all of it has a line. Line 54 is prof.step()."""
        file = "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz"
        rows = view("lines", file)
        self.assertGreater(sum(row["accelerator_ns"] for row in rows), 95e6)
        lines = {row["line"]: row for row in rows}
        self.assertGreater(lines[46]["accelerator_ns"], 90e6)
        self.assertLess(lines[54]["time_ns"], 20000)
        folded = run("convert", "--to", "folded", "-o", "-", path_of(file))
        weights = {"all": 0, "enter": 0}
        for line in folded.splitlines():
            stack, weight = line.rsplit(" ", 1)
            weights["all"] += float(weight)
            weights["enter"] += float(weight) if "__enter__" in stack else 0
        self.assertLess(weights["enter"], weights["all"] / 1000)

    def test_samples_are_samples(self):
        """ss-simple.prof has 9 stacks whose counts sum to 150. The folded stacks of dd have 9 lines, one of them with twice the weight of
        the others: 10 samples of one period."""
        for file, count in (("pprof/ss-simple.prof", 150), ("folded/fg-perf-dd-stacks-01-collapsed-kernel.txt", 10)):
            with self.subTest(file):
                self.assertIn("\n%d samples" % count, run(path_of(file)))

    def test_devices_are_measured(self):
        """Files with device work: how busy the device is answers the rule that asks for it."""
        for file in ("kineto/tb-resnet50_num_workers_0.pt.trace.json.gz", "xplane/amd-jax08-gemm.xplane.pb",
                     "nsys-sqlite/rodinia-gaussian-report5.sqlite"):
            with self.subTest(file):
                told = run("advise", path_of(file))
                self.assertNotIn("nothing was measured on an accelerator", told)
        kernels = [e for e in slices("kineto/tb-resnet50_num_workers_0.pt.trace.json.gz") if e.get("cat") in ("Kernel", "Memcpy", "Memset")]
        self.assertGreater(len(kernels), 1000)
        # There the advice is a finding with a saving; where none is known, the device's utilisation is said.
        self.assertIn("input_wait", run("advise", path_of("kineto/tb-resnet50_num_workers_0.pt.trace.json.gz")))

    def test_peaks_are_not_exceeded(self):
        """MI300X moves 5.3 TB/s; the file says 2.66, for two transfers per clock. Transfers that a TPU only starts have no rate."""
        for file in ("amd-jax08-elementwise", "amd-jax08-gemm", "amd-jax-conv-minimal-08", "tpu_inference_2-early"):
            with self.subTest(file):
                rows = view("roofline", "xplane/%s.xplane.pb" % file)
                self.assertTrue(rows)
                self.assertLessEqual(max(row["efficiency_percent"] or 0 for row in rows), 105)
                if "amd" in file:
                    self.assertAlmostEqual(rows[0]["peak_gbytes_per_second"], 5325, delta=5)

    def test_waiting_in_collectives(self):
        """ddp_gloo: the k-th all-reduce of both ranks is the same; what it takes longer than on the faster rank is a wait."""
        ranks = []
        for rank in (0, 1):
            events = [e for e in slices("torch-legacy/torch113-ddp_gloo_rank%d.json" % rank) if e["name"] == "gloo:all_reduce"]
            ranks.append([float(e["dur"]) for e in sorted(events, key=lambda e: float(e["ts"]))])
        least = sum(2 * min(pair) for pair in zip(*ranks))
        part = 1 - least / sum(map(sum, ranks))
        self.assertGreater(part, 0.6)
        told = run("verdict", *(path_of("torch-legacy/torch113-ddp_gloo_rank%d.json" % rank) for rank in (0, 1)))
        self.assertIn("at least %.0f %% is waiting for the other rank" % (100 * part), " ".join(told.split()))

    def test_communication_of_few_steps_is_of_the_mean(self):
        """ddp_gloo, rank 1: 5.7, 4.8, 3.9 and 38 ms: the saving is of the mean step, and so is the time that the sentence names."""
        file = "torch-legacy/torch113-ddp_gloo_rank1.json"
        times = [row["exposed_communication_ns"] / 1e6 for row in view("steps", file) if row["in_means"]]
        mean = sum(times) / len(times)
        self.assertGreater(mean, 2 * sorted(times)[1])
        self.assertIn("%.3g ms of the mean step are communication" % mean, " ".join(run("verdict", path_of(file)).split()))

    def test_every_launch_is_waited_for(self):
        """rodinia: cudaThreadSynchronize 8,190 times for 8,190 launches."""
        told = run("verdict", path_of("nsys-sqlite/rodinia-gaussian-report5.sqlite"))
        self.assertIn("8190 times for 8190 launches", " ".join(told.split()))

    def test_roofline_from_shapes(self):
        """b200-eager: 108 addmm whose Input Dims give 2 m k n each; together with one mm that is what the device's kernels do."""
        file = "kineto/amd-b200-eager.json.gz"
        flops = 0
        for e in slices(file):
            dims = e.get("args", {}).get("Input Dims")
            if e["name"] in ("aten::addmm", "aten::mm") and dims:
                a, b = dims[1:3] if e["name"] == "aten::addmm" else dims[:2]
                flops += 2 * a[0] * a[1] * b[1]
        whole = view("roofline", file)[0]
        self.assertAlmostEqual(whole["flops"] / flops, 1, delta=0.01)


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
