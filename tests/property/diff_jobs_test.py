#!/usr/bin/python3
"""Comparisons of simulated jobs (tests/support/jobsim.py): rows sum to the difference, the blame falls on what was changed, renamed
kernels are matched, runs of the same job are not called slower, and limits end with the exit codes of docs/diff.md."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position
from jobsim import MS, US, Shape  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
ROUNDS = int(os.environ.get("OPWATCH_JOBS", "12"))


class Diff(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.count = 0

    def job(self, shape, change=None):
        """A run: its file. `change` may alter the trace before it is written."""
        self.count += 1
        path = f"{self.folder}/run{self.count}.json"
        document = jobsim.trace(jobsim.simulate(shape)[0])
        if change:
            change(document)
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f)
        return path

    def diff(self, *words, code=0):
        run = subprocess.run([BIN, "diff", *words, "--json"], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(run.returncode, code, run.stderr)
        answer = json.loads(run.stdout)
        self.assertEqual(sum(r["delta_ns"] for r in answer["rows"]) + answer["unexplained_ns"], answer["delta_ns"])
        self.assertEqual(answer["new_step_ns"] - answer["base_step_ns"], answer["delta_ns"])
        for r in answer["rows"]:
            self.assertEqual(r["new_ns"] - r["base_ns"], r["delta_ns"])
        return answer

    def test_blame(self):
        """The row with the largest difference is the one that was changed."""
        right = 0
        cases = [("compute", "linear", lambda s: s.but(scale=[("gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn", 1.3)])),
                 ("input", "DataLoader", lambda s: s.but(loader_on_main=True)),
                 ("compute", "foreach", lambda s: s.but(scale=[("multi_tensor", 9)])),
                 ("synchronisation|allocation", "empty", lambda s: s.but(mallocs=6))]
        for n in range(ROUNDS):
            rng = random.Random(n)
            phase, name, change = cases[n % len(cases)]
            shape = jobsim.healthy(rng).but(noise=0.005)
            answer = self.diff(self.job(shape), self.job(change(shape).but(seed=shape.seed + 1)))
            top = max(answer["rows"], key=lambda r: abs(r["delta_ns"]))
            good = top["phase"] in phase.split("|") and name in str(top["op"])
            right += good
            if not good:
                print(n, phase, name, top)
        self.assertGreaterEqual(right, 0.95 * ROUNDS - 1)

    def test_one_recording_a_side(self):
        shape = Shape(seed=5)
        answer = self.diff(self.job(shape), self.job(shape.but(seed=6, kernel=260 * US)))
        self.assertEqual(answer["unit"], "recordings")
        self.assertEqual(answer["conclusion"], "differs")
        self.assertIsNone(answer["delta_low_ns"])
        self.assertIsNone(answer["detectable_ns"])

    def test_renamed_kernels(self):
        """Launched by the same operator or not: a kernel with another name is the same thing."""
        def gpu_only(document):
            document["traceEvents"] = [e for e in document["traceEvents"]
                                       if e.get("cat") in ("kernel", "gpu_memcpy") or e["ph"] == "M"
                                       or e["name"].startswith("ProfilerStep")]

        def renamed(document):
            gpu_only(document)
            for e in document["traceEvents"]:
                if e["ph"] == "X":
                    e["name"] = e["name"].replace("multi_tensor_apply_kernel", "fused_adam_update")
                    e["name"] = e["name"].replace("ampere_fp16_s16816gemm", "hopper_fp16_s16816gemm")

        shape = Shape(seed=7, pointwise=1)
        answer = self.diff(self.job(shape, gpu_only), self.job(shape, renamed))
        by_op = {r["op"]: r for r in answer["rows"]}
        self.assertFalse([r for r in answer["rows"] if r["change"] in ("new", "gone")], by_op.keys())
        self.assertEqual({r["change"] for r in answer["rows"] if "gemm" in r["op"]}, {"renamed"})
        self.assertEqual({r["matched_by"] for r in answer["rows"] if "gemm" in r["op"]}, {"normalised name"})
        self.assertEqual([r["matched_by"] for r in answer["rows"] if "multi_tensor" in r["op"]], ["order of the step"])

    def test_runs(self):
        """Five runs a side: the same job is not slower, one with longer kernels is, and a limit says so."""
        shape = Shape(layers=10, noise=0.01)
        base = [self.job(shape.but(seed=i)) for i in range(5)]
        same = [self.job(shape.but(seed=100 + i)) for i in range(5)]
        slow = [self.job(shape.but(seed=200 + i, kernel=250 * US)) for i in range(5)]
        answer = self.diff("--base", *base, "--new", *same, "--fail-if", "step_time > 3%")
        self.assertIn(answer["conclusion"], ("same", "inconclusive"))
        self.assertEqual((answer["unit"], answer["runs_base"], answer["runs_new"]), ("runs", 5, 5))
        answer = self.diff("--base", *base, "--new", *slow, "--fail-if", "step_time > 3%", code=5)
        self.assertEqual(answer["conclusion"], "slower")
        self.assertTrue(answer["delta_low_ns"] < answer["delta_ns"] < answer["delta_high_ns"])
        self.assertTrue(0 < answer["detectable_ns"] < answer["delta_ns"])
        self.diff("--base", *base, "--new", *slow, "--fail-if", "step_time > 50%")
        self.diff("--new", *slow, "--base", *base, "--fail-if", "phase:compute > 1%", code=5)
        self.diff("--base", *base, "--new", *slow, "--fail-if", "op:aten::linear > 100ms")
        self.diff("--base", *base, "--new", *slow, "--fail-if", "launches > 1%")
        self.diff("--base", *base, "--new", *slow, "--fail-if", "peak_memory > 1%", code=6)
        # One recording a side proves nothing.
        self.diff(base[0], slow[0], "--fail-if", "step_time > 3%", code=6)

    def test_same_job_twice(self):
        """A gate that lets 3 % pass must not fail on two groups of runs of the same job."""
        rng, failed, rounds = random.Random(11), 0, max(4, ROUNDS // 2)
        pool = [self.job(Shape(layers=8, steps=6, noise=0.06, seed=1000 + i)) for i in range(16)]
        for _ in range(rounds):
            chosen = rng.sample(pool, 8)
            run = subprocess.run([BIN, "diff", "--base", *chosen[:4], "--new", *chosen[4:], "--fail-if", "step_time > 3%",
                                  "--json"], capture_output=True, text=True, check=False)
            self.assertIn(run.returncode, (0, 5, 6), run.stderr)
            failed += run.returncode == 5
        self.assertEqual(failed, 0)

    def test_not_comparable(self):
        two = Shape(ranks=2, world_bytes=32 << 20, steps=6)
        four = two.but(ranks=4)
        answer = self.diff(self.job(two), self.job(four), "--fail-if", "step_time > 3%", code=4)
        self.assertEqual(answer["conclusion"], "not_comparable")
        self.assertIn("2 → 4", answer["comparable_why"])
        self.assertNotEqual(answer["delta_ns"], None)

    def test_wrong_usage(self):
        a, b = self.job(Shape(steps=4)), self.job(Shape(steps=4, seed=1, kernel=1 * MS))
        for words, text in ((["diff", a], "two files"), (["diff", a, a], "itself"),
                            (["diff", "--base", a], "both sides"),
                            (["diff", a, b, "--fail-if", "speed > 3"], "is not a limit"),
                            (["diff", a, self.folder + "/none.json"], "none.json")):
            run = subprocess.run([BIN, *words], capture_output=True, text=True, check=False)
            self.assertIn(run.returncode, (1, 2), words)
            self.assertIn(text, run.stderr)
            self.assertEqual(run.stdout, "")


if __name__ == "__main__":
    unittest.main()
