#!/usr/bin/python3
"""Matching and statistics of `opwatch diff`: renamed, split and fused kernels are found, runs of the same job are not called slower, and the
smallest change that is printed is seen as often as promised. OPWATCH_AA=1000 is the long form (nightly), which also records runs of PyTorch."""
import collections
import csv
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import kernel_names  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
ROUNDS = int(os.environ.get("OPWATCH_AA", "20"))
LONG = ROUNDS >= 1000
STEPS = 7

TORCH = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
data = torch.randn(32, 64)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU],
                            schedule=torch.profiler.schedule(wait=1, warmup=1, active=8)) as prof:
    for _ in range(10):
        model(data).sum().backward()
        prof.step()
prof.export_chrome_trace(sys.argv[1])
"""


def trace(sequence):
    """A device whose stream runs the same kernels in every step: (name, us) each."""
    events, ts = [{"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}}], 1000.0
    for step in range(STEPS):
        begin = ts
        for name, dur in sequence(step):
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": round(ts, 3), "dur": round(dur, 3),
                           "args": {"device": 0, "stream": 7}})
            ts += dur
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 4000, "tid": 4000,
                       "ts": round(begin, 3), "dur": round(ts - begin, 3), "args": {}})
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A100"}], "traceEvents": events}


class Statistics(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.count = 0

    def write(self, document):
        self.count += 1
        path = f"{self.folder}/run{self.count}.json"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(document, f)
        return path

    def diff(self, *words, codes=(0,)):
        done = subprocess.run([BIN, "diff", *words, "--json"], capture_output=True, check=False, timeout=120)
        self.assertIn(done.returncode, codes, done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(sum(r["delta_ns"] for r in answer["rows"]) + answer["unexplained_ns"], answer["delta_ns"])
        return done.returncode, answer

    def job(self, seed, change=lambda kernels: kernels):
        """200 launches of 100 kernels with names of their own."""
        rng = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        names = ["".join(rng.choice(letters) for _ in range(8)) + "_kernel" for _ in range(100)]
        kernels = [(rng.choice(names), rng.uniform(5, 80)) for _ in range(200)]
        return names, self.write(trace(lambda step: change(kernels)))

    def test_renamed(self):
        """30 % of the kernels have another name: of those at least 95 % are matched, and at most 1 % to a wrong one."""
        right = wrong = renamed = 0
        for seed in range(4):
            names, base = self.job(seed)
            rng = random.Random(seed + 1000)
            other = {name: "".join(rng.choice("nopqrstuvwxyz") for _ in range(9)) + "_fn" for name in rng.sample(names, 30)}
            _, new = self.job(seed, lambda kernels, other=other: [(other.get(name, name), dur) for name, dur in kernels])
            _, answer = self.diff(base, new)
            rows = {r["op"]: r for r in answer["rows"] if r["phase"] == "compute"}
            for old, now in other.items():
                if old not in rows:
                    continue  # never launched
                renamed += 1
                right += rows[old]["new_op"] == now and rows[old]["change"] == "renamed"
                wrong += rows[old]["new_op"] not in (None, now)
            for name, r in rows.items():
                if name in names and name not in other:
                    self.assertIsNone(r["new_op"], r)
        self.assertGreater(renamed, 80)
        self.assertGreaterEqual(right, 0.95 * renamed, (right, wrong, renamed))
        self.assertLessEqual(wrong, 0.01 * renamed)

    def shown(self, path):
        """What rows call each kernel: names are shortened."""
        done = subprocess.run([BIN, "sql", path, "SELECT name, coalesce(type, name) FROM op", "--csv"], capture_output=True, text=True, check=True)
        return dict(list(csv.reader(io.StringIO(done.stdout)))[1:])

    def test_real_names(self):
        """30 % of the kernels were renamed as updates do; one is gone, one is new. Names that are shortened to the same text are left out."""
        count = collections.Counter()
        for seed in range(int(os.environ.get("OPWATCH_RENAMED", "6"))):
            rng = random.Random(seed)
            names = list({kernel_names.make(rng, i): 0 for i in range(rng.choice([30, 60, 120]))})
            before = [(rng.choice(names), rng.uniform(5, 80)) for _ in range(rng.choice([60, 200, 400]))]
            used = list(dict.fromkeys(name for name, _ in before))
            other = {name: kernel_names.rename(rng, name) for name in rng.sample(used[1:], round(0.3 * len(used)))}
            other = {old: now for old, now in other.items() if now not in used}
            gone = next(name for name in used if name not in other)
            after = [(other.get(name, name), dur * rng.uniform(0.95, 1.05)) for name, dur in before if name != gone]
            after.insert(rng.randrange(len(after)), ("brand_new_thing_kernel", 20))
            base, new = (self.write(trace(lambda step, k=k: k)) for k in (before, after))
            _, answer = self.diff(base, new)
            rows = {r["op"]: r for r in answer["rows"]}
            short, short_now, truth, sources = self.shown(base), self.shown(new), collections.defaultdict(set), collections.defaultdict(set)
            for name in used:
                now = None if name == gone else short_now[other.get(name, name)]
                truth[short[name]].add(now)
                sources[now].add(short[name])
            for old, (now, *more) in truth.items():
                if more or len(sources[now]) > 1:
                    continue
                row = rows.get(old)
                found = "joined" if row is None else row["new_op"] or (None if row["change"] == "gone" else old)
                kind = "gone" if now is None else "kept" if now == old else "renamed"
                count[kind] += 1
                count[kind + " right"] += found == now
                count["wrong"] += found not in (now, None)
        self.assertGreater(count["renamed"], 50)
        self.assertGreaterEqual(count["renamed right"], 0.95 * count["renamed"], count)
        self.assertEqual(count["kept right"], count["kept"])
        self.assertLessEqual(count["wrong"], max(1, 0.01 * (count["renamed"] + count["kept"] + count["gone"])), count)

    def test_split_and_fused(self):
        one = [("load", 10), ("big_softmax", 60), ("store", 12), ("relu", 5)]
        two = [("load", 10), ("softmax_max", 25), ("softmax_sum", 40), ("store", 12), ("relu", 5)]
        whole, parts = (self.write(trace(lambda step, k=k: k * 5)) for k in (one, two))
        _, answer = self.diff(whole, parts)
        row = next(r for r in answer["rows"] if r["op"] == "big_softmax")
        self.assertEqual(row["new_op"], "softmax_max + softmax_sum")
        self.assertEqual((row["change"], row["base_ns"], row["new_ns"]), ("split", 5 * 60000, 5 * 65000))
        self.assertFalse([r for r in answer["rows"] if r["change"] in ("new", "gone")])
        _, answer = self.diff(parts, whole)
        row = next(r for r in answer["rows"] if r["change"] == "fused")
        self.assertEqual((row["op"], row["new_op"], row["base_ns"], row["new_ns"]),
                         ("softmax_max + softmax_sum", "big_softmax", 5 * 65000, 5 * 60000))
        self.assertEqual(answer["unexplained_ns"], 0)

    def noisy(self, rng, shift=0.0, kind="even"):
        """A run: its own speed, and noise of each step. A quarter of the runs of some jobs has another speed; of others every twelfth is cold."""
        speed = 1 + rng.gauss(0, 0.02 if kind == "even" else 0.005) + shift
        if kind == "two speeds" and rng.random() < 0.25:
            speed += 0.08
        if kind == "rarely cold" and rng.random() < 0.08:
            speed += 0.25
        return self.write(trace(lambda step: [("gemm", 400 * speed * (1 + rng.gauss(0, 0.01))), ("relu", 100 * speed)]))

    def gate_failures(self, pool, rounds):
        rng, failed = random.Random(5), 0
        for _ in range(rounds):
            chosen = rng.sample(pool, 8)
            code, answer = self.diff("--base", *chosen[:4], "--new", *chosen[4:], "--fail-if", "step_time > 3%", codes=(0, 5, 6))
            failed += code == 5
            self.assertIn(answer["conclusion"], ("slower", "faster", "same", "inconclusive"))
        return failed

    def test_same_job(self):
        """Runs of one job, split at random: the gate fails in at most 1 % of the comparisons."""
        rng = random.Random(3)
        pool = [self.noisy(rng) for _ in range(40)]
        self.assertLessEqual(self.gate_failures(pool, ROUNDS), 0.01 * ROUNDS)

    @unittest.skipUnless(LONG, "the long form: OPWATCH_AA=1000")
    def test_same_torch_job(self):
        pool = []
        for i in range(40):
            path = f"{self.folder}/torch{i}.json"
            if subprocess.run([sys.executable, "-c", TORCH, path], check=False, stderr=subprocess.DEVNULL).returncode:
                self.skipTest("PyTorch is not here")
            pool.append(path)
        self.assertLessEqual(self.gate_failures(pool, ROUNDS), 0.01 * ROUNDS)

    @unittest.skipUnless(LONG, "the long form: OPWATCH_AA=1000")
    def test_power(self):
        """A change as large as the one that is printed is seen in 80 % of the cases, within 10 points."""
        for kind in ("even", "two speeds", "rarely cold"):
            rng, seen, rounds = random.Random(7), 0, 300
            for _ in range(rounds):
                _, answer = self.diff("--base", *[self.noisy(rng, kind=kind) for _ in range(5)], "--new", *[self.noisy(rng, kind=kind) for _ in range(5)])
                shift = answer["detectable_ns"] / answer["base_step_ns"]
                _, answer = self.diff("--base", *[self.noisy(rng, kind=kind) for _ in range(5)],
                                      "--new", *[self.noisy(rng, shift, kind) for _ in range(5)])
                seen += answer["conclusion"] == "slower"
            self.assertAlmostEqual(seen / rounds, 0.8, delta=0.1, msg=kind)

    def test_means_turned_round(self):
        """Two cold runs of the base make its mean larger, although all other runs became slower: the first line says both."""
        def runs(times):
            return [self.write(trace(lambda step, t=t: [("gemm", t), ("relu", 100)])) for t in times]

        base = runs([400, 401, 399, 400.5, 399.5, 400.2, 399.8, 400.3, 400.7, 900])
        new = runs([404, 405, 403, 404.5, 403.5, 404.2, 403.8, 404.3, 404.7, 405.2])
        _, answer = self.diff("--base", *base, "--new", *new)
        self.assertEqual(answer["conclusion"], "slower")
        self.assertLess(answer["delta_ns"], 0)
        self.assertGreater(answer["shift_ns"], 3000)
        self.assertRegex(answer["sentence"], r"^new is 4\S+us \(.*faster per step; .*; a typical run is 4\S*us slower: a few runs decide the mean$")


if __name__ == "__main__":
    unittest.main()
