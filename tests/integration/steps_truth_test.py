#!/usr/bin/python3
"""Steps of real traces against the raw files: each number is computed here a second time, by the rules of docs/views/steps.md, from the JSON.

OPWATCH_CORPUS is the folder with the traces; without it the test is skipped.

A step of PyTorch lasts from its marker to the end of the device work launched in it, and begins when the one before has ended. Work that starts
before the first kernel whose launch is in the file was queued before the recording: it belongs to no step, and the first step begins after it.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import unittest
from decimal import Decimal

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver", "hip_runtime", "Runtime")


def corpus(name):
    return str(pathlib.Path(CORPUS) / name)


def run(*words):
    return subprocess.run([BIN, *words], capture_output=True, check=True).stdout


def view(name, *files):
    return json.loads(run(name, "--json", *files))["rows"]


def sql(text, *files):
    return json.loads(run("sql", *files, text, "--json"))["rows"]


def ask(name, *files):
    return json.loads(run("ask", name, *files, "--json"))["rows"]


def ns(value):
    return int((Decimal(str(value)) * 1000).to_integral_value())


def kineto_steps(path):
    """[(start, end)] of a Kineto trace, from its events."""
    data = pathlib.Path(path).read_bytes()
    data = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=Decimal)
    slices = [e for e in data["traceEvents"] if e.get("ph") == "X" and "dur" in e]
    times = {id(e): (ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])) for e in slices}
    # markers are written a second time for the GPU, as gpu_user_annotation
    markers = sorted(times[id(e)] for e in slices
                     if re.fullmatch(r"ProfilerStep#\d+", e["name"]) and e.get("cat") in ("user_annotation", "cpu_op", "Operator"))
    calls = {e["args"]["correlation"]: times[id(e)] for e in slices if e.get("cat") in CALLS and "correlation" in e.get("args", {})}
    work = [(times[id(e)], calls.get(e.get("args", {}).get("correlation"))) for e in slices if e.get("cat") in DEVICE]
    first = min(w[0] for w, call in work if call)
    before = max([w[1] for w, call in work if w[0] < first], default=None)
    steps = []
    for begin, end in markers:
        start = begin if before is None else max(before, begin)
        ends = [w[1] for w, call in work if call and begin <= call[0] < end]
        before = max([end, start] + ends)
        steps.append((start, before))
    return steps


class Kineto(unittest.TestCase):
    def check(self, name):
        path = corpus(name)
        truth = kineto_steps(path)
        lengths = [end - start for start, end in truth]
        self.assertEqual([r["duration_ns"] for r in view("steps", path)], lengths)
        self.assertEqual([r["dur"] for r in sql("SELECT dur FROM step WHERE NOT whole ORDER BY number", path)], lengths)
        self.assertEqual([r["dur"] for r in sql("SELECT step, max(dur) AS dur FROM phase GROUP BY step ORDER BY step", path)], lengths)
        return lengths

    def test_steps_do_not_overlap_in_sql(self):
        control, test = "kineto/hta-trace_diff_control.json.gz", "kineto/hta-trace_diff_test.json.gz"
        lengths = [self.check(name) for name in (control, test)]
        rows = ask("compare_steps", corpus(control), corpus(test))
        self.assertEqual([r["steps"] for r in rows], [6, 6])
        ratio = statistics.mean(lengths[1]) / statistics.mean(lengths[0])
        self.assertAlmostEqual(rows[1]["ratio"], ratio, 6)
        self.assertAlmostEqual(ratio, 1.60, 2)

    def test_recordings_that_begin_with_queued_work(self):
        lengths = self.check("kineto/amd-mi300-resnet_act_checkpoint.json.gz")
        self.assertAlmostEqual(statistics.mean(lengths) / 1e6, 18.84, 1)
        for name in ("hta-ns_resolution", "amd-sglang_decode-bs_32_rank0"):
            self.check(f"kineto/{name}.json.gz")

    def test_median_of_steady_steps_leads(self):
        path = corpus("kineto/hta-trace_diff_test.json.gz")
        steady = [end - start for start, end in kineto_steps(path)][1:-1]
        rows = view("steps", path)
        self.assertEqual([r["in_means"] for r in rows], [False, True, True, True, True, False])
        self.assertEqual([r["steady"] for r in sql("SELECT steady FROM step ORDER BY number", path)], [r["in_means"] for r in rows])
        self.assertAlmostEqual(ask("compare_steps", "--run", f"a={path}", "--run", f"b={path}")[0]["steady_ms"], statistics.median(steady) / 1e6, 6)
        self.assertIn("6 steps of %.0fms" % (statistics.median(steady) / 1e6), run(path).decode())


class Runs(unittest.TestCase):
    """Files are of one job only if their content says so."""

    def jobs(self, *names):
        return [r["job"] for r in view("sources", *map(corpus, names))]

    def test_ranks_of_one_job(self):
        ranks = [f"kineto/hta-sampled_rank-{i}.json.gz" for i in (0, 1)]
        self.assertEqual(self.jobs(*ranks), [1, 1])
        text = run(*map(corpus, ranks)).decode()
        self.assertIn("2 of 128 ranks are here", text)
        self.assertIn("2 steps of 615ms on 2 ranks", text)
        # a kernel's time is that of a rank, not of both
        alone = [{r["name"]: r["time_ns"] for r in view("work", corpus(rank))} for rank in ranks]
        both = {r["name"]: r["time_ns"] for r in view("work", *map(corpus, ranks))}
        name = "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"
        self.assertAlmostEqual(both[name] / 1e6, (alone[0][name] + alone[1][name]) / 2e6, 1)
        # the mean of both ranks, not the sum of their steps
        rows = view("phases", *map(corpus, ranks))
        self.assertEqual([r["steps"] for r in rows if r["device"] == "all"], [2] * (len(rows) // 3))

    def test_files_given_to_a_comparison_are_runs(self):
        ranks = [corpus(f"kineto/hta-sampled_rank-{i}.json.gz") for i in (0, 1)]
        self.assertEqual([r["run"] for r in ask("compare_steps", *ranks)], ["hta-sampled_rank-0", "hta-sampled_rank-1"])
        self.assertTrue(any(r["ratio"] not in (None, 1) for r in ask("compare_ops", *ranks)))

    def test_unrelated_files(self):
        names = sorted(str(p.relative_to(CORPUS)) for p in pathlib.Path(CORPUS, "kineto").iterdir() if "resnet50" not in p.name)[:21]
        jobs = self.jobs(*names)
        pairs = [names.index(n) for n in names if "hta-sampled" in n]
        self.assertEqual(len(set(jobs)), len(names) - (1 if len(pairs) == 2 else 0))
        text = run(*map(corpus, names)).decode()
        self.assertIn("different jobs", text)
        self.assertNotIn("Operations by time", text)

    def test_timelines_of_tensorflow(self):
        """Other graphs, other devices, other months; only the two of one graph on a GPU, 6 s apart, are one job. Merged, 7 files of 11 runs have
        11 steps, none longer than the longest file of one run."""
        names = sorted(str(p.relative_to(CORPUS)) for p in pathlib.Path(CORPUS, "tf1-timeline").iterdir())
        self.assertEqual(self.jobs(*names), [1, 2, 3, 4, 5, 6, 6])
        with tempfile.TemporaryDirectory() as folder:
            run("merge", *map(corpus, names), "-o", f"{folder}/all.json")
            lengths = sorted(r["duration_ns"] for r in view("steps", f"{folder}/all.json"))
            self.assertEqual(lengths, sorted(r["duration_ns"] for n in names for r in view("steps", corpus(n))))

    def test_a_copy_is_no_second_rank(self):
        path = corpus("kineto/hta-sampled_rank-0.json.gz")
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(path, f"{folder}/again.json.gz")
            self.assertIn("has the same events as", run("notes", path, copy).decode())
            self.assertEqual([r["job"] for r in view("sources", path, copy)], [1, 2])

    def test_windows_of_one_process_are_one_job(self):
        self.assertEqual(self.jobs("kineto/tb-resnet50_num_workers_0.pt.trace.json.gz",
                                   "kineto/tb-resnet50_num_workers_0-span2.pt.trace.json.gz"), [1, 1])


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
