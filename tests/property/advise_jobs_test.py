#!/usr/bin/python3
"""Advice on simulated jobs (tests/support/jobsim.py): a fault of known size has to be found, its saving has to lie in the stated
interval, and jobs without a fault get no finding. The simulation shares no definition with the rules: it computes the true saving by
running the same job without the fault.

OPWATCH_JOBS sets how many jobs with a fault are simulated (24); as many healthy ones follow in proportion."""
import collections
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
JOBS = int(os.environ.get("OPWATCH_JOBS", "24"))
HEALTHY = max(len(jobsim.DECOYS), JOBS * 18 // 24)
SEED = int(os.environ.get("OPWATCH_SEED", "1"))
REMARKS = {"accelerator_utilization", "operation", "expensive_operation", "data_quality"}
# Bounds that the device sets: remarks, because only a trial shows how near a job gets.
BOUNDS = {"precision", "roof"}
# Names under which an engineer would accept the same fault.
ALSO = {
    "synchronization": {"synchronization"},
    "transfer": {"transfer", "blocking_copy"},
    "blocking_copy": {"blocking_copy", "transfer"},
    "fusible": {"fusible", "launch_bound"},
    "op_on_cpu": {"op_on_cpu", "host_code"},
    "checkpoint_or_logging": {"checkpoint_or_logging", "outlier_steps"},
    "outlier_steps": {"outlier_steps", "storage_or_gc", "checkpoint_or_logging"},
    "exposed_communication": {"exposed_communication"},
    "collective_wait": {"collective_wait", "imbalance"},
    "storage_or_gc": {"storage_or_gc", "outlier_steps"},
    "recompilation": {"recompilation", "outlier_steps"},
    "suspicious_op": {"suspicious_op", "synchronization"},
}


def advise(paths):
    run = subprocess.run([BIN, "advise", *paths, "--json"], capture_output=True, text=True, check=False, timeout=120)
    if run.returncode:
        raise AssertionError(f"advise ended with {run.returncode}: {run.stderr}")
    return json.loads(run.stdout)


def findings(answer):
    return [r for r in answer["rows"] if r.get("checked") is not False and r.get("severity") in ("medium", "high")
            and r["rule"] not in REMARKS]


class Judge(unittest.TestCase):
    maxDiff = None

    def check_sums(self, answer):
        with_saving = [r for r in findings(answer) if r.get("saving_after_ns") is not None]
        rows = [r for r in answer["rows"] if r.get("saving_after_ns") is not None]
        if answer.get("step_if_all_ns") is None:
            self.assertEqual(with_saving, [])
            return
        self.assertEqual(sum(r["saving_after_ns"] for r in rows), answer["step_ns"] - answer["step_if_all_ns"])
        for r in rows:
            self.assertGreaterEqual(r["saving_after_ns"], 0, r)
            self.assertLessEqual(r["saving_low_ns"], r["saving_high_ns"], r)
            self.assertLessEqual(r["saving_high_ns"], answer["step_ns"], r)

    def judge(self, rule, bad, good, basis, missing=None):
        """(true saving, step, rows of the rule or one that means the same, all findings)"""
        true = jobsim.saving(bad, good, basis)
        with tempfile.TemporaryDirectory() as folder:
            answer = advise(jobsim.write(bad, folder, missing=missing))
        self.check_sums(answer)
        step = jobsim.median_step(jobsim.simulate(bad))
        rows = findings(answer)
        if rule in BOUNDS:
            rows = [r for r in answer["rows"] if r.get("checked") is not False]
        return true, step, [r for r in rows if r["rule"] in ALSO.get(rule, {rule})], findings(answer)

    def test_faults(self):
        found, inside, ratios, missed = 0, 0, [], []
        by_rule = collections.Counter()
        tried = 0
        for n in range(JOBS):
            rng = random.Random(f"{SEED}/{n}")
            rule, bad, good, basis = jobsim.faults(rng)
            true, step, rows, found_all = self.judge(rule, bad, good, basis)
            if true < 0.05 * step:
                continue
            tried += 1
            if not rows:
                missed.append((n, rule, f"{100 * true / step:.1f} %", [
                    (r["rule"], r["severity"], r.get("saving_high_ns")) for r in found_all]))
                continue
            found += 1
            by_rule[rule] += 1
            rows = [r for r in rows if r["saving_high_ns"] is not None]
            best = max(rows, key=lambda r: r["saving_high_ns"])
            good_one = any(r["saving_low_ns"] <= true * 1.05 and r["saving_high_ns"] >= true * 0.95 for r in rows)
            inside += good_one
            ratios.append(best["saving_high_ns"] / true)
            if not good_one:
                missed.append((n, rule, "outside", round(true), best["saving_low_ns"], best["saving_high_ns"]))
        print(f"faults {tried}: found {found}, truth inside {inside}, median high/true "
              f"{statistics.median(ratios) if ratios else 0:.2f}; {dict(by_rule)}")
        for m in missed:
            print("  ", *m)
        self.assertGreaterEqual(found, 0.9 * tried)
        self.assertGreaterEqual(inside, 0.9 * found)
        self.assertLessEqual(statistics.median(ratios), 1.5)

    def test_rules_of_their_own(self):
        """Rules that the jobs above seldom draw: each finds its fault, and the truth lies in its interval."""
        for kind in jobsim.KINDS[jobsim.KINDS.index("pipeline"):]:
            rule, bad, good, basis = jobsim.faults(random.Random(f"{SEED}/{kind}"), kind)
            true, step, rows, found_all = self.judge(rule, bad, good, basis)
            with self.subTest(kind):
                self.assertGreaterEqual(true, 0.05 * step)
                row, = [r for r in rows if r["rule"] == rule] or [None]
                self.assertIsNotNone(row, [(r["rule"], r["what"]) for r in found_all])
                self.assertLessEqual(row["saving_low_ns"], 1.05 * true)
                self.assertGreaterEqual(row["saving_high_ns"], 0.95 * true)
                self.assertLessEqual(row["saving_high_ns"], 2 * true)
                self.assertTrue(row["evidence"])
                if rule in BOUNDS:
                    self.assertEqual((row["severity"], row["basis"], row["saving_after_ns"]), ("low", "bound", None))

    def test_without_correlation(self):
        """Without launches nothing can be replayed: shares of the step find the faults all the same, with at most medium confidence."""
        kinds = [kind for kind in jobsim.KINDS if kind not in BOUNDS]
        tried, missed, inside = 0, [], 0
        for kind in kinds:
            rule, bad, good, basis = jobsim.faults(random.Random(f"{SEED}/lost/{kind}"), kind)
            true, step, rows, _ = self.judge(rule, bad, good, basis, jobsim.Missing(correlation=True))
            if true < 0.05 * step:
                continue
            tried += 1
            if not rows:
                missed.append(kind)
            inside += any(r["saving_low_ns"] <= true * 1.05 and r["saving_high_ns"] >= true * 0.95 for r in rows)
            self.assertNotIn("high", [r["confidence"] for r in rows], kind)
        print(f"without correlation {tried}: missed {missed}, truth inside {inside}")
        self.assertLessEqual(len(missed), 0.1 * tried, missed)
        self.assertGreaterEqual(inside, 0.8 * tried)

    def test_healthy_without_correlation(self):
        false = []
        for n, name in enumerate(jobsim.DECOYS):
            shape = jobsim.DECOYS[name](jobsim.healthy(random.Random(f"{SEED}/healthy/lost/{n}")))
            with tempfile.TemporaryDirectory() as folder:
                answer = advise(jobsim.write(shape, folder, missing=jobsim.Missing(correlation=True)))
            self.check_sums(answer)
            false += [(name, r["rule"], r["saving_high_ns"], answer["step_ns"]) for r in findings(answer)]
        self.assertLessEqual(len(false), 0.1 * len(jobsim.DECOYS), false)

    def advise_memory(self, **memory):
        with tempfile.TemporaryDirectory() as folder:
            answer = advise(jobsim.write(jobsim.Shape(layers=8, steps=8, **memory), folder))
        self.check_sums(answer)
        return {r["rule"]: r for r in answer["rows"] if r["rule"].startswith("memory_") and r["checked"]}

    def test_memory(self):
        """What grows is named in bytes, and what has to be freed, too; memory that is used again is neither."""
        self.assertEqual(self.advise_memory(memory=40 << 30), {})
        found = self.advise_memory(memory=20 << 30, memory_growth=700 << 20)
        self.assertEqual(list(found), ["memory_growth"])
        self.assertIn(f"{700 << 20} bytes", found["memory_growth"]["what"])
        self.assertEqual(found["memory_growth"]["severity"], "medium")
        self.assertIsNone(found["memory_growth"]["saving_high_ns"])
        # The simulated allocator holds 5 % more than is in use, of the 85024112640 bytes that the trace says the device has.
        found = self.advise_memory(memory=75 << 30)
        self.assertEqual(list(found), ["memory_pressure"])
        held = int(((75 << 30) + 4 * (64 << 20)) * 1.05)
        excess = held - int(0.9 * 85024112640)
        self.assertIn(f"free {excess} bytes", found["memory_pressure"]["advice"])
        self.assertIn(f"{(75 << 30) + 4 * (64 << 20)} bytes", found["memory_pressure"]["what"])

    def test_healthy(self):
        false = []
        names = list(jobsim.DECOYS)
        for n in range(HEALTHY):
            rng = random.Random(f"{SEED}/healthy/{n}")
            name = names[n % len(names)]
            shape = jobsim.DECOYS[name](jobsim.healthy(rng))
            with tempfile.TemporaryDirectory() as folder:
                answer = advise(jobsim.write(shape, folder))
            self.check_sums(answer)
            for r in findings(answer):
                false.append((n, name, r["rule"], r["severity"], r.get("saving_high_ns"), answer["step_ns"], r["what"]))
        print(f"healthy {HEALTHY}: {len(false)} findings")
        for f in false:
            print("  ", *f)
        self.assertLessEqual(len(false), 0.1 * HEALTHY)


if __name__ == "__main__":
    unittest.main()
