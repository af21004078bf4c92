"""torch_snapshot.py: makes what torch.cuda.memory._snapshot() returns, by playing a small caching allocator, and computes
from the same objects what was in use, when it was most, and what was alive then. It shares nothing with the program."""
import random

ALIGN = 512
SEGMENT = 20 << 20


def make_frames(rng, lines=12, stacks=40):
    """Stacks of a model with C++ frames on top; frames are shared objects, as torch shares them."""
    python = [{"filename": f"/home/me/model_{i % 3}.py", "line": 10 + i, "name": f"forward_{i}"} for i in range(lines)]
    library = {"filename": "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", "line": 1501, "name": "_call_impl"}
    native = {"filename": "??", "line": 0, "name": "c10::cuda::CUDACachingAllocator::Native::malloc"}
    main = {"filename": "/home/me/train.py", "line": 77, "name": "<module>"}
    return [[native, library] + rng.sample(python, rng.randint(1, 4)) + [main] for _ in range(stacks)]


class Device:
    """One device's allocator: blocks live in segments and are never split or merged; good enough for totals."""

    def __init__(self, rng, number, clock, stacks):
        self.rng, self.number, self.clock, self.stacks = rng, number, clock, stacks
        self.trace, self.live, self.segments = [], {}, {}
        self.next = 0x7f0000000000 + (number << 36)

    def entry(self, action, address, size, frames=(), **more):
        self.clock[0] += self.rng.randint(0, 40)
        self.trace.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": self.clock[0],
                           "compile_context": "N/A", "user_metadata": "", "frames": list(frames) if not frames else frames, **more})

    def alloc(self):
        size = ALIGN * self.rng.choice((1, 2, 8, 64, 1000, 4000))
        free = [a for a, (s, used) in self.segments.items() if not used and s >= size]
        if free and self.rng.random() < 0.7:
            address = self.rng.choice(free)
        else:
            address, self.next = self.next, self.next + SEGMENT
            self.segments[address] = [SEGMENT, False]
            self.entry("segment_alloc", address, SEGMENT, self.rng.choice(self.stacks))
        self.segments[address][1] = True
        frames = self.rng.choice(self.stacks)
        self.live[address] = (size, frames)
        self.entry("alloc", address, size, frames)

    def free(self):
        address = self.rng.choice(list(self.live))
        size, _ = self.live.pop(address)
        self.entry("free_requested", address, size, self.rng.choice(self.stacks))
        self.entry("free_completed", address, size)
        self.segments[address][1] = False
        if self.rng.random() < 0.1:
            self.entry("segment_free", address, self.segments.pop(address)[0])

    def segment_records(self):
        for address, (total, used) in self.segments.items():
            blocks = []
            if used:
                size, frames = self.live[address]
                blocks.append({"address": address, "size": size, "requested_size": size - 3, "state": "active_allocated",
                               "frames": frames})
            taken = sum(b["size"] for b in blocks)
            blocks.append({"address": address + taken, "size": total - taken, "requested_size": 0, "state": "inactive",
                           "frames": []})
            yield {"device": self.number, "segment_pool_id": (0, 0), "address": address, "total_size": total,
                   "allocated_size": taken, "active_size": taken, "requested_size": taken, "stream": 0,
                   "segment_type": "large", "is_expandable": False, "frames": [], "blocks": blocks}


def snapshot(events=2000, devices=2, seed=1, forget=0.3, steps=5):
    """forget: the share of the trace that the ring buffer has lost, so that it begins in the middle."""
    rng = random.Random(seed)
    clock = [1_700_000_000_000_000]
    machines = [Device(rng, i, clock, make_frames(rng)) for i in range(devices)]
    annotations = []
    for i in range(events):
        if steps and i % (events // steps) == 0:
            if annotations:
                annotations.append(dict(annotations[-1], stage="END", time_us=clock[0]))
            annotations.append({"name": f"ProfilerStep#{i // (events // steps)}", "stage": "START", "device": 0,
                                "time_us": clock[0] + 1})
        machine = rng.choice(machines)
        if machine.live and rng.random() < (0.45 if i < events * 0.7 else 0.6):
            machine.free()
        else:
            machine.alloc()
    if annotations:
        annotations.append(dict(annotations[-1], stage="END", time_us=clock[0]))
    machines[0].entry("oom", 0, 1 << 33, machines[0].stacks[0], device_free=12345)
    return {"segments": [s for m in machines for s in m.segment_records()],
            "device_traces": [m.trace[int(len(m.trace) * forget):] for m in machines],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": False},
            "external_annotations": annotations}


def alive_before(snap, number):
    """What was in use before the first event of a device: {address: (size, frames)}."""
    seen, start = set(), {}
    for e in events_of(snap, number):
        if e["action"] in ("alloc", "free_completed") and e["addr"] not in seen:
            seen.add(e["addr"])
            if e["action"] == "free_completed":
                start[e["addr"]] = (e["size"], [])
    for s in snap["segments"]:
        for b in s["blocks"]:
            if s["device"] == number and b["state"].startswith("active") and b["address"] not in seen:
                start[b["address"]] = (b["size"], b["frames"])
    return start


def events_of(snap, number):
    return snap["device_traces"][number] if number < len(snap["device_traces"]) else []


def alive_at(snap, number, time_us):
    """What was in use after all events up to a time: {address: (size, frames)}."""
    live = alive_before(snap, number)
    for e in events_of(snap, number):
        if e["time_us"] > time_us:
            break
        if e["action"] == "alloc":
            live[e["addr"]] = (e["size"], e["frames"])
        elif e["action"] == "free_completed":
            del live[e["addr"]]
    return live


def use_of(snap, number):
    """(peak, time of the peak in ns, alive at it: {address: (size, frames)}, in use at the end, most reserved)."""
    trace, start = events_of(snap, number), alive_before(snap, number)
    changes = {"segment_alloc": 1, "segment_free": -1, "segment_map": 1, "segment_unmap": -1}
    held = sum(s["total_size"] for s in snap["segments"] if s["device"] == number)
    held -= sum(changes.get(e["action"], 0) * e["size"] for e in trace)
    live = dict(start)
    use = peak = sum(size for size, _ in live.values())
    when, alive, reserved = None, dict(live), held
    for e in trace:
        held += changes.get(e["action"], 0) * e["size"]
        reserved = max(reserved, held)
        if e["action"] == "alloc":
            live[e["addr"]] = (e["size"], e["frames"])
            use += e["size"]
        elif e["action"] == "free_completed":
            use -= live.pop(e["addr"])[0]
        else:
            continue
        if use >= peak:
            peak, when, alive = use, e["time_us"] * 1000, dict(live)
    return peak, when, alive, use, reserved
