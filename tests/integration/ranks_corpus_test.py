#!/usr/bin/python3
"""`opwatch ranks` on recordings of real jobs (OPWATCH_CORPUS): two published jobs with a slow worker and an unbalanced stage, recordings whose
collectives do not match, and real ranks whose clocks are shifted."""
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
CORPUS = os.environ.get("OPWATCH_CORPUS")


def ranks(*paths):
    run = subprocess.run([BIN, "ranks", *paths, "--json"], capture_output=True, text=True, check=False, timeout=120)
    if run.returncode:
        raise AssertionError(run.stderr)
    return json.loads(run.stdout)


class Corpus(unittest.TestCase):
    def test_slow_worker(self):
        a = ranks(f"{CORPUS}/stragglers/bytedance-AR-timeline.json.gz")
        self.assertEqual((a["blame"], a["clock"], len(a["rows"])), ("rank", "shared", 16))
        slow = [r for r in a["rows"] if r["straggler"] != "none"]
        self.assertEqual([(r["dp"], r["stage"], r["straggler"], r["cause"]) for r in slow], [(0, 0, "persistent", "compute")])
        self.assertEqual(a["blamed"], [slow[0]["rank"]])
        self.assertAlmostEqual(a["slowdown"], 1.97, delta=0.05)
        self.assertLess(a["replay_error"], 0.02)

    def test_unbalanced_stage(self):
        a = ranks(f"{CORPUS}/stragglers/bytedance-ST-timeline.json.gz")
        self.assertEqual((a["blame"], a["blamed"]), ("stage", [3]))
        self.assertAlmostEqual(a["slowdown"], 1.18, delta=0.04)
        self.assertEqual({r["straggler"] for r in a["rows"]}, {"none"})

    def test_bubble(self):
        """The stages' own work, added up from the file: slices that do not communicate."""
        for name, batches in (("AR", 32), ("ST", 4)):
            path = f"{CORPUS}/stragglers/bytedance-{name}-timeline.json.gz"
            with gzip.open(path) as f:
                events = [e for e in json.load(f) if e.get("ph") == "X"]
            own, spans = {}, {}
            for e in events:
                step, begin, end = e["args"]["step"], e["ts"], e["ts"] + e["dur"]
                first, last = spans.get(step, (begin, end))
                spans[step] = min(first, begin), max(last, end)
                if not re.search("send|recv|reduce|gather", e["name"]):
                    own[step] = own.get(step, 0) + e["dur"]
            a = ranks(path)
            steps = a["map"]["steps"]
            bubbles = sorted(1 - own[s] / (len(a["rows"]) * (spans[s][1] - spans[s][0])) for s in steps)
            self.assertEqual((a["stages"], a["micro_batches"]), (4, batches))
            self.assertAlmostEqual(a["bubble"], bubbles[len(bubbles) // 2], delta=0.02)
            self.assertAlmostEqual(a["bubble_ideal"], 3 / (batches + 3), places=4)

    def test_collectives_that_do_not_match(self):
        a = ranks(f"{CORPUS}/kineto/hta-sampled_rank-0.json.gz", f"{CORPUS}/kineto/hta-sampled_rank-1.json.gz")
        self.assertEqual((a["clock"], a["blame"], a["world_size"]), ("impossible", "none", 128))
        self.assertIn("contradict", a["clock_why"])
        self.assertEqual(a["missing_ranks"], list(range(2, 128)))
        self.assertEqual({(r["wait_ns"], r["clock_offset_ns"]) for r in a["rows"]}, {(None, None)})

    def test_other_jobs_and_copies(self):
        one, other = f"{CORPUS}/kineto/hta-trace_diff_control.json.gz", f"{CORPUS}/kineto/hta-trace_diff_test.json.gz"
        self.assertTrue(ranks(one, other)["mixed_jobs"])
        with tempfile.TemporaryDirectory() as folder:
            copy = f"{folder}/rank7.json.gz"
            with open(one, "rb") as source, open(copy, "wb") as f:
                f.write(source.read())
            a = ranks(one, copy)
        self.assertEqual([d["rank"] for d in a["duplicates"]], [3])
        self.assertEqual((len(a["rows"]), a["mixed_jobs"]), (1, False))

    def test_shifted_clock(self):
        """Rank 1 of a recorded job, all of its times moved: the fit moves by as much."""
        first, second = (f"{CORPUS}/torch-legacy/torch113-ddp_gloo_rank{r}.json" for r in (0, 1))
        before = ranks(first, second)["rows"][1]
        with open(second, encoding="utf-8") as f:
            events = json.load(f)
        with tempfile.TemporaryDirectory() as folder:
            for shift in (-37, 2500, 777_777):
                for e in events:
                    e["ts"] += shift
                with open(f"{folder}/x.json", "w", encoding="utf-8") as f:
                    json.dump(events, f)
                for e in events:
                    e["ts"] -= shift
                after = ranks(first, f"{folder}/x.json")["rows"][1]
                self.assertAlmostEqual(after["clock_offset_ns"], before["clock_offset_ns"] - shift * 1000, delta=100_000)
                self.assertLessEqual(after["clock_likely_ns"], after["clock_proven_ns"])


if __name__ == "__main__":
    if not CORPUS:
        print("skipped: OPWATCH_CORPUS is not set")
        sys.exit(77)
    unittest.main()
