#!/usr/bin/python3
"""Graph timelines of random models against a plain transcription of tfprof's rules.

Models are a GraphDef and two RunMetadata files with what makes timelines hard: equal starts, loops, several devices, producers
elsewhere, allocations and releases at the same time. Which ops are displayed, and in which order, is taken from the JSON of the
same view; everything after that is worked out here the slow way.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from pb_write import num, sub  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
ROUNDS = 25
CPU = "/job:w/replica:0/task:0/device:CPU:0"
DEVICES = [CPU, "/job:w/replica:0/task:0/device:CPU:1", "/job:w/replica:0/task:0/device:GPU:0", "/gpu:1", "/job:w/device:SYCL:0"]
CANONICAL = re.compile(r".*/(device:gpu|gpu|device:cpu|cpu|device:sycl):\d+")


# ---- random models ----

class Op:
    def __init__(self, name, device, inputs):
        self.name, self.device, self.inputs = name, device, inputs


class Run:
    """One record of a step: (device, op, start, duration) and its memory, None on streams."""
    def __init__(self, device, op, start, dur, memory=None):
        self.device, self.op, self.start, self.dur, self.memory = device, op, start, dur, memory


def random_ops(rng):
    ops = []
    for i in range(rng.randint(1, 40)):
        inputs = [rng.choice(ops) for _ in range(rng.randint(0, 3))] if ops else []
        ops.append(Op(f"{rng.choice('abc')}/{i}{rng.choice(['', 'é', chr(34)])}", rng.choice(DEVICES), inputs))
    return ops


def random_memory(rng):
    return {"in_use": rng.randint(0, 300), "persistent": rng.choice([0, 0, 7, 20]),
            "allocations": [(rng.randint(0, 1200), rng.randint(-30, 60)) for _ in range(rng.randint(0, 4))]}


def random_step(rng, ops):
    runs = []
    for op in ops:
        for _ in range(rng.choice([0, 1, 1, 1, 2, 5])):
            start = rng.randint(1, 1000)
            runs.append(Run(op.device, op, start, rng.randint(0, 150), random_memory(rng)))
            if "GPU" in op.device and rng.random() < 0.7:
                runs.append(Run("/device:GPU:0/stream:all", op, rng.randint(1, 1000), rng.randint(0, 150)))
    rng.shuffle(runs)
    return runs or [Run(ops[0].device, ops[0], 1, 1, random_memory(rng))]


def write_graph(path, ops):
    with open(path, "wb") as f:
        for op in ops:
            f.write(sub(1, sub(1, op.name) + sub(2, "T") + b"".join(sub(3, i.name) for i in op.inputs)))


def write_memory(memory):
    records = b"".join(sub(6, num(1, at) + num(2, size)) for at, size in memory["allocations"])
    return (sub(6, sub(1, "GPU_0_bfc") + num(5, memory["in_use"]) + records) + sub(12, num(3, memory["persistent"])))


def write_step(path, runs):
    stats = b""
    for device in dict.fromkeys(run.device for run in runs):
        nodes = b""
        for run in runs:
            if run.device == device:
                nodes += sub(2, sub(1, run.op.name) + num(2, run.start) + num(4, run.dur) +
                             (write_memory(run.memory) if run.memory else b""))
        stats += sub(1, sub(1, device) + nodes)
    with open(path, "wb") as f:
        f.write(sub(1, stats))


# ---- the rules ----

class Timeline:
    def __init__(self, ops, steps, step, shown, accounted):
        self.ops, self.steps, self.step, self.accounted = ops, steps, step, accounted
        self.by_name = {op.name: op for op in ops}
        self.shown = [self.by_name[name] for name in shown]
        self.early, self.late, self.pids, self.slices = [], [], {}, defaultdict(dict)
        self.next_pid = 0

    def records(self, op, step=None):
        """In the order in which the file has them: by device, as it first appears."""
        runs = self.steps[self.step if step is None else step]
        order = list(dict.fromkeys(run.device for run in runs))
        return sorted((r for r in runs if r.op is op), key=lambda r: order.index(r.device))

    def trackable(self, op):
        return any(CANONICAL.fullmatch(r.device.lower()) for runs in self.steps.values() for r in runs if r.op is op) and \
            bool(self.records(op))

    def lists(self, op, executor_only=False):
        lists = defaultdict(list)
        for r in self.records(op):
            device = r.device.lower()
            if not executor_only or "stream:all" not in device:
                lists[device].append((r.start, r.dur or 1))
        return sorted(lists.items(), key=lambda item: item[0].encode())

    def process(self, name):
        self.early.append({"args": {"name": name}, "name": "process_name", "ph": "M", "pid": self.next_pid})
        self.next_pid += 1
        return self.next_pid - 1

    def make(self):
        for op in self.shown:
            if not self.trackable(op):
                continue
            for device, runs in self.lists(op):
                if device not in self.pids:
                    kind = "execution" if "stream" in device else "scheduling"
                    self.pids[device] = self.process(f"Op {kind} threads: {device}")
                for start, dur in runs:
                    self.slices[device].setdefault(start, {"op": op, "start": start, "dur": dur, "device": device, "next": []})
        self.link()
        self.place()
        self.emit()
        for device in sorted({op.device.lower() for op in self.shown if self.trackable(op)}):
            if "cpu" not in device:
                self.memory(device)
        return {"traceEvents": self.early + self.late}

    def link(self):
        for device in sorted(self.slices):
            if not CANONICAL.fullmatch(device):
                continue
            for _, piece in sorted(self.slices[device].items()):
                for producer in piece["op"].inputs:
                    if not self.accounted(producer) or not self.trackable(producer):
                        continue
                    for other, runs in self.lists(producer, executor_only=True):
                        for start, _ in runs:
                            if other != device and start in self.slices.get(other, {}):
                                self.slices[other][start]["next"].append(piece)

    def place(self):
        for device in sorted(self.slices):
            lanes = []
            for start, piece in sorted(self.slices[device].items()):
                for number, lane in enumerate(lanes):
                    busy = False
                    for other in reversed(lane):
                        end = other["start"] + other["dur"]
                        busy = end > start
                        if end != start:
                            break
                    if not busy:
                        break
                else:
                    number = len(lanes)
                    lanes.append([])
                lanes[number].append(piece)
                piece["lane"] = number

    def emit(self):
        flow = 0
        for device in sorted(self.slices, key=lambda d: self.pids[d]):
            pieces = sorted(self.slices[device].values(), key=lambda p: (p["lane"], p["start"]))
            for p in pieces:
                name, pid, tid = p["op"].name, self.pids[device], p["lane"]
                self.early.append({"args": {"name": name}, "cat": "Op", "dur": p["dur"], "name": name, "ph": "X", "pid": pid,
                                   "tid": tid, "ts": p["start"]})
                for target in p["next"]:
                    flow += 1
                    both = {"cat": "DataFlow", "id": flow, "name": name + "_flow"}
                    self.late.append({**both, "ph": "s", "pid": pid, "tid": tid, "ts": p["start"] + p["dur"]})
                    self.late.append({**both, "ph": "t", "pid": self.pids[target["device"]], "tid": target["lane"],
                                      "ts": target["start"]})

    def live(self, op, at):
        persistent = max(sum(r.memory["persistent"] for r in self.records(op, step) if r.memory) for step in self.steps)
        return max(persistent, 0) + sum(size for r in self.records(op) if r.memory for when, size in r.memory["allocations"]
                                        if when < at)

    def memory(self, device):
        pid = self.process(f"mem usage on:{device}")
        self.process(f"mem usage on:{device} allocations")
        holders = [op for op in self.shown if self.trackable(op) and op.device.lower() == device]
        samples = {}
        for op in holders:
            for r in self.records(op):
                if r.memory:
                    samples[r.start + r.dur] = r.memory["in_use"]
        last = 0
        for at, in_use in sorted(samples.items()):
            if at - last < 100:
                continue
            last = at
            self.late.append({"args": {"Allocator Bytes in Use": in_use}, "cat": "Memory", "name": "Allocated Bytes", "ph": "C",
                              "pid": pid, "tid": 0, "ts": at})
            groups = defaultdict(list)
            for op in sorted(holders, key=lambda o: o.name.encode()):
                if self.live(op, at) > 0:
                    groups[self.live(op, at)].append(op)
            args, count = {f"Top Allocation {i:02}": "N/A" for i in range(1, 10)}, 0
            for size in sorted(groups, reverse=True):
                for op in groups[size]:
                    if in_use < size or count >= 10:
                        break
                    args[f"Top Allocation {count:02}"] = f"{size / 1e6:.15g} MB from {op.name}"
                    count += 1
                    in_use -= size
            args["Not Displayed"] = f"{in_use / 1e6:.2f} MB"
            self.late.append({"args": args, "cat": "Memory", "name": "Top Allocations", "ph": "C", "pid": pid + 1, "tid": 0,
                              "ts": at})


def names(rows):
    for row in rows:
        yield row["name"]
        yield from names(row.get("children", []))


class RandomModels(unittest.TestCase):
    def run_view(self, *args):
        done = subprocess.run([BIN, "graph", *self.files, "--max-depth", "100000", *args], capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check(self, seed, folder):
        rng = random.Random(seed)
        ops = random_ops(rng)
        steps = {0: random_step(rng, ops), 1: random_step(rng, ops)}
        self.files = [os.path.join(folder, name) for name in ("graph", "run0", "run1")]
        write_graph(self.files[0], ops)
        for step, path in enumerate(self.files[1:]):
            write_step(path, steps[step])
        select = rng.choice([[], ["--account-type-regexes", ".*gpu.*"], ["--show-name-regexes", "[ab]/.*"]])
        select += ["--order-by", rng.choice(["name", "micros"]), "--step", "1"]
        ran = {r.op for runs in steps.values() for r in runs}
        shown = list(names(json.loads(self.run_view("--json", *select))["rows"]))[1:]
        want = Timeline(ops, steps, 1, shown, lambda op: "--account-type-regexes" not in select or
                        (op in ran and "GPU" in op.device or "/gpu" in op.device and op in ran)).make()
        self.run_view(*select, "--output", f"timeline:outfile={folder}/t")
        with open(os.path.join(folder, "t_1"), encoding="ascii") as f:
            text = f.read()
        self.assertEqual(text, json.dumps(want, separators=(",", ":"), sort_keys=True) + "\n")

    def test_random_models(self):
        for seed in range(ROUNDS):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                self.check(seed, folder)


if __name__ == "__main__":
    if not os.path.exists(BIN):
        print("no binary: nothing to try")
        sys.exit(77)
    unittest.main()
