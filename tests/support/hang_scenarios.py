"""Jobs that stand still, or do not, as dumps of PyTorch's flight recorder: what each process of a simulated job would have written.

A job is played: every rank has a program (a list of collectives and messages of its groups), and runs it until all are done or wait. What a
rank has entered, started and completed becomes its dump. The truth (conclusion, ranks, collective, sequence) is known from how the programs
were spoilt, not from the dumps. Shares no definition with the library.
"""
import json
import os
import pickle
import random

NAMES = ["all_reduce", "broadcast", "_reduce_scatter_base", "_all_gather_base"]
START = 1_760_000_000_000_000_000


class Call:
    def __init__(self, group, name, size=1024, dtype="Float", wait=True):
        self.group, self.name, self.size, self.dtype, self.wait = group, name, size, dtype, wait


class Job:
    """ranks: world size; groups: {name: (description, [ranks])}; programs: per rank a list of Call, or "stop" (hangs in code), "die"."""

    def __init__(self, rng, world, groups):
        self.rng, self.world, self.groups = rng, world, groups
        self.programs = [[] for _ in range(world)]
        self.buffer = rng.choice([8, 20, 2000])
        self.started_known = rng.random() < 0.5
        self.timeout_ms = 600000
        self.now = START + rng.randrange(10**15)

    def all_call(self, group, name, size=1024, dtype="Float", wait=True, spoilt=None):
        for rank in self.groups[group][1]:
            call = Call(group, name, size, dtype, wait)
            self.programs[rank].append(spoilt.get(rank, call) if spoilt else call)

    def play(self):
        """Runs the programs; entries[rank] is what it recorded."""
        self.entries = [[] for _ in range(self.world)]
        self.at = [0] * self.world
        self.waits = [None] * self.world
        self.sequence = [dict.fromkeys(self.groups, 0) for _ in range(self.world)]
        self.met = {}
        self.dead = set()
        moved = True
        while moved:
            moved = False
            for rank in self.rng.sample(range(self.world), self.world):
                moved |= self.turn(rank)

    def turn(self, rank):
        if self.waits[rank] is not None:
            if self.waits[rank]["state"] != "completed":
                return False
            self.waits[rank] = None
        if self.at[rank] >= len(self.programs[rank]):
            return False
        call = self.programs[rank][self.at[rank]]
        if call in ("stop", "die"):
            if call == "die":
                self.dead.add(rank)
            return False
        self.at[rank] += 1
        self.enter(rank, call)
        return True

    def enter(self, rank, call):
        self.now += self.rng.randrange(1_000_000, 30_000_000)
        self.sequence[rank][call.group] += 1
        number = self.sequence[rank][call.group]
        entry = {"record_id": len(self.entries[rank]), "pg_id": list(self.groups).index(call.group), "process_group":
                 (call.group, self.groups[call.group][0]), "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number,
                 "profiling_name": "nccl:" + call.name, "time_created_ns": self.now, "input_sizes": [[call.size]],
                 "input_dtypes": [call.dtype], "output_sizes": [[call.size]], "output_dtypes": [call.dtype],
                 "state": "scheduled", "time_discovered_started_ns": None, "time_discovered_completed_ns": None,
                 "retired": False, "timeout_ms": self.timeout_ms, "is_p2p": False,
                 "frames": [{"name": call.name, "filename": "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "line": 2000},
                            {"name": "train_step", "filename": "/home/me/train.py", "line": 40 + number % 7}]}
        self.entries[rank].append(entry)
        if call.wait:
            self.waits[rank] = entry
        met = self.met.setdefault((call.group, number), [])
        met.append((rank, call, entry))
        same = len({(c.name, c.size, c.dtype) for _, c, _ in met}) == 1
        if self.started_known:
            entry["state"], entry["time_discovered_started_ns"] = "started", self.now + 5000
        if len(met) == len(self.groups[call.group][1]) and same:
            self.now += self.rng.randrange(100_000, 5_000_000)
            for _, _, e in met:
                e["state"], e["retired"] = "completed", True
                e["time_discovered_completed_ns"] = self.now
                if self.started_known:
                    e["time_discovered_started_ns"] = e["time_discovered_started_ns"] or self.now - 1000

    def dump(self, rank):
        kept = self.entries[rank][-self.buffer:]
        ours = {g: v for g, v in self.groups.items() if rank in v[1]}
        status = {}
        for g in ours:
            mine = [e for e in self.entries[rank] if e["process_group"][0] == g]
            done = [e["collective_seq_id"] for e in mine if e["state"] == "completed"]
            status[str(list(self.groups).index(g))] = {"last_enqueued_collective": len(mine), "last_started_collective": len(mine),
                                                       "last_completed_collective": max(done, default=-1)}
        return {"version": "2.5", "pg_config": {g: {"name": g, "desc": v[0], "ranks": str(v[1])} for g, v in ours.items()},
                "pg_status": status, "entries": kept}

    def write(self, folder, lost=(), form=None):
        os.makedirs(folder, exist_ok=True)
        form = form or self.rng.choice(["json", "pickle"])
        with_status = self.rng.random() < 0.7
        for rank in range(self.world):
            if rank in lost or rank in self.dead:
                continue
            content = self.dump(rank)
            if not with_status:
                del content["pg_status"]
            path = os.path.join(folder, f"nccl_trace_rank_{rank}" + (".json" if form == "json" else ""))
            if form == "json":
                text = json.dumps(content, sort_keys=self.rng.random() < 0.5, indent=self.rng.choice([None, 1]))
                with open(path, "w") as f:
                    f.write(text)
            else:
                with open(path, "wb") as f:
                    pickle.dump(content, f, protocol=self.rng.choice([0, 2, 4, 5]))


def layout(rng, least=2):
    """A world with a default group, and maybe data and tensor parallel ones."""
    world = rng.choice([w for w in (2, 4, 8, 16) if w >= least])
    groups = {"0": ("default_pg", list(range(world)))}
    if world >= 4 and rng.random() < 0.7:
        for i in range(world // 2):
            groups[str(1 + i)] = ("tp", [2 * i, 2 * i + 1])
        for i in range(2):
            groups[str(50 + i)] = ("dp", list(range(i, world, 2)))
    return world, groups


def steps(job, count):
    rng = job.rng
    for _ in range(count):
        for g in job.groups:
            job.all_call(g, rng.choice(NAMES), rng.choice([16, 1024, 4096]))


def truth(conclusion, ranks, **more):
    return dict(conclusion=conclusion, ranks=sorted(ranks), **more)


def hang(rng, folder):
    world, groups = layout(rng)
    job = Job(rng, world, groups)
    steps(job, rng.randrange(3, 20))
    culprits = rng.sample(range(world), 1 if world < 8 or rng.random() < 0.7 else 2)
    for rank in culprits:
        program = job.programs[rank]
        program.insert(rng.randrange(len(program) // 2, len(program)), "stop")
    job.play()
    job.write(folder)
    # a culprit that never came to where it stops, because it waits for another one, has done nothing wrong
    guilty = [r for r in culprits if job.programs[r][job.at[r]] == "stop" and (job.waits[r] or {}).get("state", "completed") == "completed"]
    return truth("hang", guilty)


def deadlock(rng, folder):
    world = rng.choice([2, 4, 8])
    groups = {"0": ("default_pg", list(range(world))), "1": ("tp", [0, 1]), "2": ("dp", [0, 1])}
    job = Job(rng, world, groups)
    steps(job, rng.randrange(1, 8))
    a, b = Call("1", "all_reduce"), Call("2", "all_reduce")
    job.programs[0] += [a, b]
    job.programs[1] += [b, a]
    job.all_call("0", "all_reduce")
    job.play()
    job.write(folder)
    return truth("deadlock", [0, 1])


def mismatch(rng, folder):
    world, groups = layout(rng, 4)
    job = Job(rng, world, groups)
    steps(job, rng.randrange(2, 10))
    odd = rng.randrange(world)
    kind = rng.choice(["op", "size", "dtype"])
    wrong = {"op": Call("0", "broadcast"), "size": Call("0", "all_reduce", 2048), "dtype": Call("0", "all_reduce", 1024, "Half")}[kind]
    job.all_call("0", "all_reduce", spoilt={odd: wrong})
    steps(job, 2)
    job.play()
    job.write(folder)
    return truth("mismatch", [odd])


def crash(rng, folder):
    world, groups = layout(rng, 4)
    job = Job(rng, world, groups)
    steps(job, rng.randrange(3, 12))
    dead = rng.randrange(world)
    job.programs[dead].insert(rng.randrange(len(job.programs[dead]) // 2, len(job.programs[dead])), "die")
    job.play()
    job.write(folder)
    return truth("crash", [dead])


def none(rng, folder):
    world, groups = layout(rng)
    job = Job(rng, world, groups)
    steps(job, rng.randrange(3, 12))
    job.play()
    job.write(folder)
    return truth("none", [])


def slow(rng, folder):
    """One rank is late: it is in other groups, and went on after the others had come; or all have come and the transfer runs."""
    world, groups = layout(rng, 4)
    job = Job(rng, world, groups)
    steps(job, rng.randrange(3, 10))
    job.play()
    late = rng.randrange(world)
    if rng.random() < 0.5:
        for rank in range(world):  # all have entered, none has finished
            job.enter(rank, Call("0", "all_reduce"))
        for rank in range(world):
            job.entries[rank][-1].update(state="started" if job.started_known else "scheduled", retired=False, time_discovered_completed_ns=None)
    else:
        groups["90"] = ("self", [late])
        for i in range(world):
            job.sequence[i]["90"] = 0
        for rank in range(world):
            if rank != late:
                job.enter(rank, Call("0", "all_reduce"))
        for _ in range(3):
            job.enter(late, Call("90", "all_reduce"))
    job.write(folder)
    return truth("none", [])


KINDS = [hang, deadlock, mismatch, crash, none, slow]


def make(seed, folder):
    """Scenario number `seed`; returns its truth."""
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
    result = kind(rng, folder)
    result["kind"] = kind.__name__
    return result
