#!/usr/bin/python3
"""`opwatch ranks` on simulated jobs with several process groups and hosts: slow links between groups, hosts that are slow as a whole, several slow ranks at
once, devices with a lower clock. The simulation is a few lines: ranks compute, meet in the all-reduces of their tensor-parallel and their data-parallel
group, and each host has its own clock.

OPWATCH_JOBS sets how many healthy jobs are tried (8)."""
import json
import os
import random
import subprocess
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
JOBS = int(os.environ.get("OPWATCH_JOBS", "8"))
PER_HOST = 4
STEPS = 9
LAYERS = 3
KERNEL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


class Job:
    """world ranks in groups of `tensor` neighbours; rank r is in data-parallel group r % tensor."""

    def __init__(self, seed, world, tensor, compute=None, link=None, clocks=None, pause=None, was_set=None):
        self.rng = random.Random(seed)
        self.world, self.tensor = world, tensor
        self.compute = compute or {}  # rank: factor
        self.link = link or {}  # name of a group: factor
        self.clocks = clocks or {}  # rank: MHz of its device
        self.pause = pause or {}  # rank: us that its host does nothing at the begin of a step
        self.was_set = was_set or {}  # host: when its clock is set, as a part of the recording, and by how many us
        self.now = [0.0] * world
        self.events = [[] for _ in range(world)]
        self.calls = [0] * world
        self.sequence = {}

    def noisy(self, value):
        return value * (1 + 0.01 * self.rng.gauss(0, 1))

    def launch(self, rank, kernel, start, end, **args):
        self.calls[rank] += 1
        link = {"correlation": self.calls[rank]}
        self.events[rank] += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": self.now[rank] + 5, "dur": 8, "args": link},
            {"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": start, "dur": end - start,
             "args": {**link, "stream": 7, "device": 0, **args}}]

    def all_reduce(self, name, ranks, ready, duration, elements):
        self.sequence[name] = self.sequence.get(name, 0) + 1
        moved = max(ready[r] for r in ranks) + self.noisy(duration) * self.link.get(name, 1)
        for r in ranks:
            end = moved + abs(self.rng.gauss(0, 1))
            self.launch(r, KERNEL, ready[r], end, **{
                "Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "dtype": "BFloat16", "Group size": len(ranks),
                "Process Group Name": name, "Process Group Ranks": str(ranks), "Seq": self.sequence[name]})
            self.now[r] = end + 2

    def step(self, number):
        begin = list(self.now)
        for r, pause in self.pause.items():
            self.now[r] += pause
        for _ in range(LAYERS):
            ready = []
            for r in range(self.world):
                start = self.now[r] + 20
                end = start + self.noisy(2000) * self.compute.get(r, 1)
                self.launch(r, "gemm_kernel", start, end)
                ready.append(end + 3)
            for first in range(0, self.world, self.tensor):
                self.all_reduce(f"tp{first // self.tensor}", list(range(first, first + self.tensor)), ready, 600, 16 << 20)
        ready = [t + 3 for t in self.now]
        for place in range(self.tensor):
            self.all_reduce(f"dp{place}", list(range(place, self.world, self.tensor)), ready, 1500, 64 << 20)
        for r in range(self.world):
            self.events[r].append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1, "ts": begin[r],
                                   "dur": self.now[r] - begin[r]})

    def answer(self):
        for number in range(STEPS):
            self.step(number)
        offsets = [self.rng.uniform(-5000, 5000) for _ in range(self.world)]
        with tempfile.TemporaryDirectory() as folder:
            for r, events in enumerate(self.events):
                if r in self.clocks:
                    events += [{"ph": "C", "name": "GPU 0 SM clock", "pid": 0, "ts": self.now[r] * k / 20,
                                "args": {"MHz": self.clocks[r] + self.rng.randrange(-5, 5)}} for k in range(20)]
                part, moved = self.was_set.get(r // PER_HOST, (1, 0))
                for e in events:
                    e["ts"] = round(e["ts"] + 1e6 + offsets[r // PER_HOST] + moved * (e["ts"] > part * max(self.now)), 3)
                    e["dur"] = round(e.get("dur", 0), 3)
                with open(f"{folder}/{self.rng.randrange(10 ** 12)}.json", "w", encoding="utf-8") as f:
                    json.dump({"schemaVersion": 1, "hostName": f"node{r // PER_HOST}", "traceEvents": events,
                               "distributedInfo": {"backend": "nccl", "rank": r, "world_size": self.world}}, f)
            run = subprocess.run([BIN, "ranks", folder, "--json"], capture_output=True, text=True, check=False, timeout=120)
        if run.returncode:
            raise AssertionError(run.stderr)
        return json.loads(run.stdout)


class Groups(unittest.TestCase):
    def causes(self, a):
        return {r["rank"]: r["cause"] for r in a["rows"] if r["straggler"] != "none"}

    def test_healthy(self):
        for n in range(JOBS):
            world, tensor = [(8, 2), (8, 4), (16, 4), (16, 8)][n % 4]
            a = Job(f"healthy/{n}", world, tensor).answer()
            self.assertEqual((a["blame"], a["blamed"], a["slow_links"], self.causes(a)), ("none", [], [], {}), (n, a["blame_why"]))
            self.assertLess(abs(a["slowdown"] - 1), 0.02)

    def test_slow_link(self):
        for n, (world, tensor, name, ranks) in enumerate([(16, 4, "tp2", [8, 9, 10, 11]), (16, 4, "dp1", [1, 5, 9, 13]), (8, 4, "tp1", [4, 5, 6, 7])]):
            a = Job(f"link/{n}", world, tensor, link={name: 3}).answer()
            self.assertEqual((a["blame"], a["blamed"]), ("link", ranks), (name, a["blame_why"]))
            self.assertEqual(self.causes(a), dict.fromkeys(ranks, "communication"))
            self.assertEqual([link["ranks"] for link in a["slow_links"]], [ranks])
            self.assertAlmostEqual(a["slow_links"][0]["transfer_ns"] / a["slow_links"][0]["others_ns"], 3, delta=0.15)
            good = Job(f"link/{n}", world, tensor).answer()
            self.assertAlmostEqual(a["slowdown"], a["step_ns"] / good["step_ns"], delta=0.03)

    def test_slow_host(self):
        for n, (world, host) in enumerate([(16, 1), (8, 1), (8, 0)]):  # of two hosts, too, the slow one is known
            ranks = list(range(host * PER_HOST, (host + 1) * PER_HOST))
            a = Job(f"host/{n}", world, 4, compute=dict.fromkeys(ranks, 1.3)).answer()
            self.assertEqual((a["blame"], a["blamed"]), ("host", ranks), a["blame_why"])
            self.assertEqual(self.causes(a), dict.fromkeys(ranks, "compute"))
            self.assertIn(f"host node{host}", a["blame_why"])

    def test_several_slow_ranks(self):
        for n, ranks in enumerate([[3, 9], [0, 6, 13]]):
            a = Job(f"several/{n}", 16, 4, compute=dict.fromkeys(ranks, 1.3)).answer()
            self.assertEqual((a["blame"], a["blamed"]), ("rank", ranks), a["blame_why"])
            self.assertEqual({r["straggler"] for r in a["rows"] if r["rank"] in ranks}, {"persistent"})

    def test_pause_before_the_first_kernel(self):
        """The rest of the step the rank is like its peers: it costs the whole pause."""
        a = Job("pause/0", 8, 2, pause={5: 900}).answer()
        good = Job("pause/0", 8, 2).answer()
        self.assertEqual((a["blame"], a["blamed"], self.causes(a)), ("rank", [5], {5: "host"}), a["blame_why"])
        self.assertAlmostEqual(a["rows"][5]["slowdown_caused"], a["step_ns"] / good["step_ns"], delta=0.02)

    def test_clock_was_set(self):
        """Hosts beside the first one set their clock, forward and back."""
        fast = {f"{kind}{k}": 0.15 for kind in ("tp", "dp") for k in range(4)}  # short transfers bound the clocks closely
        for n, (host, part, moved) in enumerate([(1, 0.3, 7000), (3, 0.5, -3000), (2, 0.7, -5000)]):
            a = Job(f"set/{n}", 16, 4, compute={9: 1.3}, link=fast, was_set={host: (part, moved)}).answer()
            self.assertEqual((a["clock"], a["clock_why"], a["blame"], a["blamed"]), ("fitted", None, "rank", [9]), (n, a["blame_why"]))
            good = Job(f"set/{n}", 16, 4, compute={9: 1.3}, link=fast).answer()
            for one, other in zip(a["rows"], good["rows"]):
                self.assertIsNotNone(one["wait_ns"], (n, one))
                self.assertAlmostEqual(one["wait_ns"], other["wait_ns"], delta=0.05 * (other["wait_ns"] + other["transfer_ns"]), msg=(n, one["rank"]))

    def test_lower_clock(self):
        slow = Job("clock/0", 8, 4, compute={5: 1.4}, clocks={r: 1000 if r == 5 else 1400 for r in range(8)}).answer()
        self.assertEqual((slow["blame"], slow["blamed"], self.causes(slow)), ("rank", [5], {5: "clock_frequency"}))
        same = Job("clock/1", 8, 4, compute={5: 1.4}, clocks=dict.fromkeys(range(8), 1400)).answer()
        self.assertEqual((same["blame"], same["blamed"], self.causes(same)), ("rank", [5], {5: "compute"}))


if __name__ == "__main__":
    unittest.main()
