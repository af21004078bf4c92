#!/usr/bin/python3
"""Advice on jobs of a second simulation (tests/support/worldsim.py), which was written without a look at the rules. Stricter than
advise_jobs_test.py: the truth has to lie in the stated interval itself, without a tolerance.

OPWATCH_ROUNDS sets how often each fault and each healthy job is simulated (1), with other numbers each time."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import worldsim  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
ROUNDS = int(os.environ.get("OPWATCH_ROUNDS", "1"))
REMARKS = {"accelerator_utilization", "operation", "expensive_operation"}


class World(unittest.TestCase):
    def advise(self, job):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([BIN, "advise", *job.write(folder), "--json"], capture_output=True, text=True, check=False, timeout=120)
        self.assertEqual(run.returncode, 0, run.stderr)
        answer = json.loads(run.stdout)
        after = sum(r["saving_after_ns"] or 0 for r in answer["rows"] if r["checked"])
        self.assertEqual(after, answer["step_ns"] - answer["step_if_all_ns"])
        return answer["step_ns"], [r for r in answer["rows"] if r["checked"] and r["severity"] in ("medium",
                "high") and r["rule"] not in REMARKS]

    def test_faults(self):
        tried, missed, outside, ratios = 0, [], [], []
        for name in worldsim.CASES:
            for n in range(ROUNDS):
                job, rules, true = worldsim.make_case(name, 100 + 17 * n)
                _, found = self.advise(job)
                if true < 0.05 * job.step_ns():
                    continue
                tried += 1
                rows = [r for r in found if r["rule"] in rules and r["saving_high_ns"] is not None]
                if not rows:
                    missed.append((name, n, f"{true / job.step_ns():.3f}", [r["rule"] for r in found]))
                    continue
                row = max(rows, key=lambda r: r["saving_high_ns"])
                ratios.append(row["saving_high_ns"] / true)
                self.assertTrue(row["evidence"], name)
                if not row["saving_low_ns"] <= true <= row["saving_high_ns"]:
                    outside.append((name, n, row["rule"], row["saving_low_ns"], round(true), row["saving_high_ns"]))
        print(f"{tried} faults: missed {missed}, truth outside {outside}, median high/true {statistics.median(ratios):.3f}")
        self.assertGreaterEqual(tried, 0.85 * ROUNDS * len(worldsim.CASES))
        self.assertLessEqual(len(missed), 0.1 * tried, missed)
        self.assertLessEqual(len(outside), 0.1 * len(ratios), outside)
        self.assertLessEqual(statistics.median(ratios), 1.5)

    def test_healthy(self):
        false = []
        for name in worldsim.DECOYS:
            for n in range(ROUNDS):
                job = worldsim.make_decoy(name, 500 + 13 * n)
                step, found = self.advise(job)
                self.assertAlmostEqual(step, job.step_ns(), delta=0.02 * job.step_ns(), msg=name)
                false += [(name, n, r["rule"], r["what"]) for r in found]
        self.assertLessEqual(len(false), 0.1 * ROUNDS * len(worldsim.DECOYS), false)

    def test_python_functions_are_named(self):
        """Host code that is recorded as Python functions has its function and line, and garbage collection is not only host code."""
        job = worldsim.Job(117, python=True, host_ns=3 * worldsim.MS).simulate()
        row, = [r for r in self.advise(job)[1] if r["rule"] == "host_code"]
        self.assertIn("topk_on_host", row["where"])
        self.assertEqual(row["evidence"][0]["line"], "train.py:92 topk_on_host")

    def test_memory_grows_while_the_host_runs_ahead(self):
        job = worldsim.Job(117, memory=True, leak=150 << 20, steps=16, sync="fifth").simulate()
        self.assertIn("memory_growth", [r["rule"] for r in self.advise(job)[1]])


if __name__ == "__main__":
    unittest.main()
