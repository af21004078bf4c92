#!/usr/bin/python3
"""Every rule of `opwatch advise` finds its fault under its own name, and says nothing of the same job without the fault. RULES lists
the jobs; a rule without one fails the test. The rules of tfprof have unit tests (src/advise/rule_*_test.c)."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(ROOT / "tests/support"))
import jobsim  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
OF_TFPROF = {"accelerator_utilization", "operation", "expensive_operation"}
# Rules that do not speak of a saving of at least 3 %: bounds that the device sets, and what the recording lacks.
REMARKS = {"precision", "roof", "data_quality"}


def plain(**changes):
    return jobsim.Shape(steps=10, **changes)


def fault(kind, seed=1):
    _, bad, good, _ = jobsim.faults(random.Random(f"rules/{seed}"), kind)
    return bad, good


def pageable():
    """The thread that trains waits for a copy behind the work of the step before, and has to fill the device again."""
    job = plain(copy_pageable=True, op_host=250 * jobsim.US, python_gap=30 * jobsim.US, copy_bytes=32 << 20)
    return job, job.but(copy_pageable=False, copy_stream=21, copy_ahead=True)


many_stages = jobsim.DECOYS["stages of equal length, many micro-batches"]

RULES = {
    "input_wait": fault("input_main"),
    "slow_input_stage": fault("input_stage"),
    "storage_or_gc": fault("collector"),
    "launch_bound": fault("launch"),
    "host_code": fault("host_work"),
    "synchronization": fault("items"),
    "blocking_copy": pageable(),
    "transfer": fault("copies_back"),
    "allocation": fault("mallocs"),
    "initialization": fault("init_calls"),
    "layout_copies": fault("layout"),
    "fusible": fault("pointwise"),
    "precision": fault("precision"),
    "roof": fault("roof"),
    "exposed_communication": fault("communication"),
    "collective_wait": fault("slow_rank"),
    "small_messages": fault("small_messages"),
    "pipeline_bubble": (fault("pipeline")[0], many_stages(jobsim.healthy(random.Random("rules/stages")))),
    "imbalance": fault("uneven_work"),
    "outlier_steps": (plain(pause_every=4, pause=20 * jobsim.MS), plain()),
    "step_change": (plain().but(steps=16, change_at=(8, 1.4)), plain().but(steps=16)),
    "recompilation": fault("compilation"),
    "checkpoint_or_logging": (plain(pause_every=4, pause=20 * jobsim.MS, pause_name="save_checkpoint"), plain()),
    "op_on_cpu": fault("cpu_op"),
    "suspicious_op": fault("checks"),
    "memory_pressure": (plain(memory=75 << 30), plain(memory=40 << 30)),
    "memory_growth": (plain(memory=20 << 30, memory_growth=700 << 20), plain(memory=20 << 30)),
    "data_quality": (plain(), plain()),  # the first one loses its correlation ids
}


def found(shape, rule, missing=None):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([BIN, "advise", *jobsim.write(shape, folder, missing=missing), "--json"], capture_output=True, text=True,
                             check=False, timeout=120)
    if run.returncode:
        raise AssertionError(f"advise ended with {run.returncode}: {run.stderr}")
    rows = [r for r in json.loads(run.stdout)["rows"] if r["checked"]]
    return [r for r in rows if r["rule"] == rule and (rule in REMARKS or r["severity"] in ("medium", "high"))], rows


class Rules(unittest.TestCase):
    def test_all_are_listed(self):
        listed = re.findall(r"^RULE\((\w+)\)", (ROOT / "src/advise/rules.def").read_text(), re.M)
        self.assertEqual(set(listed) - OF_TFPROF, set(RULES))
        for name in OF_TFPROF:
            self.assertTrue((ROOT / f"src/advise/rule_{name}_test.c").exists(), name)

    def test_faults(self):
        for rule, (bad, _) in RULES.items():
            with self.subTest(rule):
                lost = jobsim.Missing(correlation=True) if rule == "data_quality" else None
                rows, all_rows = found(bad, rule, lost)
                self.assertTrue(rows, [(r["rule"], r["severity"]) for r in all_rows])
                self.assertTrue(rows[0]["what"] and rows[0]["where"] and rows[0]["advice"] and rows[0]["falsified_by"])

    def test_without(self):
        for rule, (_, good) in RULES.items():
            with self.subTest(rule):
                self.assertEqual([(r["what"], r["saving_high_ns"]) for r in found(good, rule)[0]], [])

    def test_steps_at_the_ends_may_have_it_as_well(self):
        """A pause of 20 ms in every fifth step costs 4 ms of the mean step. The recording of 20 steps has three of them, and the first and
        the last step do not count, so its own mean is 3.3 ms: the interval holds what the job pays, and not much more."""
        rows, _ = found(jobsim.Shape(steps=20, pause_every=5, pause=20 * jobsim.MS, pause_name="save_checkpoint"), "checkpoint_or_logging")
        self.assertLessEqual(rows[0]["saving_low_ns"], 4e6)
        self.assertLessEqual(4e6, rows[0]["saving_high_ns"])
        self.assertLess(rows[0]["saving_high_ns"], 6e6)


if __name__ == "__main__":
    unittest.main()
