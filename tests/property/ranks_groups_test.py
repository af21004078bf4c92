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

    def run(self):
        for number in range(STEPS):
            self.step(number)
        return self

    def answer(self, edit=None):
        self.run()
        if edit:
            edit(self.events)
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


class Pipeline(Job):
    """`stages` stages of `world / stages` ranks: all micro-batches forward, then all backward, then an all-reduce per stage. `link` is of a sender and a receiver."""

    BATCHES = 6

    def __init__(self, seed, world, stages, **changes):
        super().__init__(seed, world, world // stages, **changes)
        self.stages, self.each = stages, world // stages

    def message(self, sender, receiver):
        ready = {r: self.now[r] + 3 for r in (sender, receiver)}
        moved = max(ready.values()) + self.noisy(150) * self.link.get((sender, receiver), 1)
        for r, kind in ((sender, "send"), (receiver, "recv")):
            end = moved + abs(self.rng.gauss(0, 1))
            self.launch(r, "ncclDevKernel_SendRecv", ready[r], end, **{
                "Collective name": kind, "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "BFloat16", "Group size": 2,
                "Src Rank" if kind == "recv" else "Dst Rank": sender if kind == "recv" else receiver})
            self.now[r] = end + 2

    def work(self, r, us):
        start = self.now[r] + 20
        end = start + self.noisy(us) * self.compute.get(r, 1)
        self.launch(r, "gemm_kernel", start, end)
        self.now[r] = end

    def step(self, number):
        begin = list(self.now)
        for way in (1, -1):
            for _ in range(self.BATCHES):
                for stage in range(self.stages)[::way]:
                    for r in range(stage * self.each, (stage + 1) * self.each):
                        self.work(r, 1000 if way == 1 else 2000)
                        if 0 <= r + way * self.each < self.world:
                            self.message(r, r + way * self.each)
        for stage in range(self.stages):
            self.all_reduce(f"dp{stage}", list(range(stage * self.each, (stage + 1) * self.each)), [t + 3 for t in self.now], 800, 16 << 20)
        for r in range(self.world):
            self.events[r].append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 1, "tid": 1, "ts": begin[r],
                                   "dur": self.now[r] - begin[r]})


def is_collective(event):
    return event["name"].startswith("nccl")


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

    def test_another_run(self):
        """One rank is of a run of the same job at the same time, on a host of its own or beside ranks of this one."""
        for n, (world, rank) in enumerate([(16, 5), (16, 0), (4, 2)]):
            other = Job(f"other/{n}", world, world).run()
            a = Job(f"this/{n}", world, world).answer(lambda events, rank=rank, other=other: events.__setitem__(rank, other.events[rank]))
            self.assertEqual((a["mixed_jobs"], [w["rank"] for w in a["left_out"]], a["missing_ranks"]), (True, [rank], [rank]), a["mixed_why"])
            self.assertIn("another run", a["mixed_why"])
            self.assertEqual((a["blame"], len(a["rows"])), ("none", world - 1), a["blame_why"])
            self.assertFalse(Job(f"this/{n}", world, world).answer()["mixed_jobs"])

    def test_wrong_rank(self):
        """The recordings of two ranks have each other's number: the groups of their collectives do not contain them."""
        def swap(events):
            events[2], events[9] = events[9], events[2]

        a = Job("wrong/0", 16, 4).answer(swap)
        self.assertEqual((a["mixed_jobs"], [w["rank"] for w in a["left_out"]]), (True, [2, 9]))
        self.assertIn("wrong rank", a["mixed_why"])

    def test_lost_collectives(self):
        """Without sequence numbers, and with collectives that some recordings lack."""
        def lose(events):
            rng = random.Random(3)
            for one in events:
                one[:] = [e for e in one if not is_collective(e) or rng.random() > 0.02]
                for e in one:
                    e.get("args", {}).pop("Seq", None)

        whole = Job("lost/0", 16, 4, compute={5: 1.3}).answer()
        a = Job("lost/0", 16, 4, compute={5: 1.3}).answer(lose)
        self.assertEqual((a["clock"], a["blame"], a["blamed"], self.causes(a)), ("fitted", "rank", [5], {5: "compute"}), a["blame_why"])
        self.assertGreater(a["collectives_paired"], 0.95 * whole["collectives_paired"])
        for one, other in zip(a["rows"], whole["rows"]):
            if one["wait_ns"] is not None:
                self.assertAlmostEqual(one["wait_ns"], other["wait_ns"], delta=0.08 * (other["wait_ns"] + other["transfer_ns"]), msg=one["rank"])

    def test_groups_without_names(self):
        """Sequence numbers of groups that have no names say nothing: nothing may be called certain."""
        def no_names(events):
            for e in sum(events, []):
                for key in ("Process Group Name", "Process Group Ranks"):
                    e.get("args", {}).pop(key, None)

        a = Job("names/0", 16, 4).answer(no_names)
        self.assertEqual((a["clock"], a["blame"], a["collectives_paired"]), ("impossible", "none", 0), a["clock_why"])

    def test_pipeline(self):
        """Stages follow from who sends to whom."""
        a = Pipeline("pipe/0", 16, 4).answer()
        self.assertEqual([r["stage"] for r in a["rows"]], [r // 4 for r in range(16)])
        self.assertEqual((a["blame"], a["stages"], a["micro_batches"], a["bubble_ideal"]), ("none", 4, 6, round(3 / 9, 4)), a["blame_why"])
        self.assertTrue(a["bubble_ideal"] < a["bubble"] < a["bubble_ideal"] + 0.15, a["bubble"])
        a = Pipeline("pipe/1", 16, 4, compute=dict.fromkeys(range(8, 12), 1.5)).answer()
        self.assertEqual((a["blame"], a["blamed"]), ("stage", [2]), a["blame_why"])
        a = Pipeline("pipe/2", 16, 4, compute={6: 1.5}).answer()
        self.assertEqual((a["blame"], a["blamed"]), ("rank", [6]), a["blame_why"])
        a = Pipeline("pipe/3", 16, 4, link={(5, 9): 6}).answer()
        self.assertEqual((a["blame"], a["blamed"]), ("link", [5, 9]), a["blame_why"])

    def test_work_without_length(self):
        """A mark of no length at the end of other work does not take its place."""
        def slowdown(marks):
            events = [{"ph": "M", "name": "thread_name", "pid": dp, "tid": stage, "args": {"name": f"PP rank {stage}, TP rank 0, compute"}}
                      for dp in range(2) for stage in range(2)]
            for step in range(8):
                for dp in range(2):
                    for stage in range(2):
                        at = step * 10000 + stage * 1000
                        args = {"step": step}
                        for _ in range(4):
                            events.append({"ph": "X", "name": "forward-compute", "pid": dp, "tid": stage, "ts": at, "dur": 1000 + 500 * stage, "args": args})
                            at += 1000 + 500 * stage + 100
                        mark = {"ph": "X", "name": "gc", "pid": dp, "tid": stage, "ts": at - 100, "dur": 0, "args": args}
                        events[len(events) - (step + stage) % 2:len(events) - (step + stage) % 2] = [mark] if marks else []
            with tempfile.TemporaryDirectory() as folder:
                with open(f"{folder}/job.json", "w", encoding="utf-8") as f:
                    json.dump({"traceEvents": events}, f)
                return json.loads(subprocess.run([BIN, "ranks", f.name, "--json"], capture_output=True, text=True, check=True, timeout=60).stdout)["slowdown"]

        self.assertEqual(slowdown(True), slowdown(False))

    def test_lower_clock(self):
        slow = Job("clock/0", 8, 4, compute={5: 1.4}, clocks={r: 1000 if r == 5 else 1400 for r in range(8)}).answer()
        self.assertEqual((slow["blame"], slow["blamed"], self.causes(slow)), ("rank", [5], {5: "clock_frequency"}))
        same = Job("clock/1", 8, 4, compute={5: 1.4}, clocks=dict.fromkeys(range(8), 1400)).answer()
        self.assertEqual((same["blame"], same["blamed"], self.causes(same)), ("rank", [5], {5: "compute"}))


if __name__ == "__main__":
    unittest.main()
