"""Hanging jobs as all the kinds of files that they leave: dumps of the flight recorder (JSON, pickle), logs of PyTorch's watchdog and of NCCL, dumps of py-spy, and
mixtures of these. Shares nothing with hang_scenarios.py but the idea that a job is played: each rank runs a list of actions until it is done or waits.

An action is ("all", group, op, size), ("send", to), ("recv", from), ("stuck", function) or ("raise", text). The truth is known from how the lists were spoilt."""
import json
import os
import pickle
import random

T0 = 1_761_000_000_000_000_000
MODES = ("json", "pickle")


class Play:
    def __init__(self, rng, world, groups):
        self.rng, self.world = rng, world
        self.groups = {"0": ("default_pg", list(range(world))), **groups}
        self.todo = [[] for _ in range(world)]
        self.log = [[] for _ in range(world)]  # entries
        self.open = [None] * world
        self.place = [None] * world  # function in which a stuck rank is
        self.raised = {}
        self.count = [{} for _ in range(world)]
        self.messages = {}
        self.met = {}
        self.time = T0 + rng.randrange(10**15)

    def all(self, group, op="all_reduce", size=512):
        for r in self.groups[group][1]:
            self.todo[r].append(("all", group, op, size))

    def warm_up(self, least=2, most=9):
        names = list(self.groups)
        for _ in range(self.rng.randrange(least, most)):
            for g in names:
                self.all(g, self.rng.choice(["all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor"]), self.rng.choice([8, 512, 65536]))

    def entry(self, rank, group, name, size, number, message=False):
        self.time += self.rng.randrange(200_000, 40_000_000)
        e = {"record_id": len(self.log[rank]), "pg_id": list(self.groups).index(group), "process_group": [group, self.groups[group][0]],
             "collective_seq_id": 0 if message else number, "p2p_seq_id": number if message else 0, "op_id": len(self.log[rank]) + 1,
             "profiling_name": "nccl:" + name, "time_created_ns": self.time, "duration_ms": None, "input_sizes": [[size]], "input_dtypes": ["BFloat16"],
             "output_sizes": [[size]], "output_dtypes": ["BFloat16"], "state": "started", "time_discovered_started_ns": self.time + 900,
             "time_discovered_completed_ns": None, "retired": False, "timeout_ms": 600000, "is_p2p": message,
             "frames": [{"name": name.split()[0], "filename": "/opt/torch/distributed/distributed_c10d.py", "line": 2501},
                        {"name": "step", "filename": "/job/main.py", "line": 60 + number % 5}]}
        self.log[rank].append(e)
        self.open[rank] = e
        return e

    def finish(self, entries):
        self.time += self.rng.randrange(50_000, 3_000_000)
        for e in entries:
            e.update(state="completed", retired=True, time_discovered_completed_ns=self.time)

    def act(self, rank):
        if self.open[rank] is not None:
            if self.open[rank]["state"] != "completed":
                return False
            self.open[rank] = None
        if not self.todo[rank]:
            return False
        what = self.todo[rank][0]
        if what[0] in ("stuck", "raise"):
            if what[0] == "raise":
                self.raised[rank] = what[1]
            self.place[rank] = what[1]
            return False
        self.todo[rank].pop(0)
        if what[0] == "all":
            _, group, op, size = what
            number = self.count[rank][group] = self.count[rank].get(group, 0) + 1
            e = self.entry(rank, group, op, size, number)
            met = self.met.setdefault((group, number), [])
            met.append(e)
            if len(met) == len(self.groups[group][1]) and len({(x["profiling_name"], str(x["input_sizes"])) for x in met}) == 1:
                self.finish(met)
            return True
        pair = (rank, what[1]) if what[0] == "send" else (what[1], rank)
        number = self.count[rank][pair] = self.count[rank].get(pair, 0) + 1
        e = self.entry(rank, "0", f"send {rank}->{what[1]}" if what[0] == "send" else f"recv {rank}<-{what[1]}", 256, number, True)
        other = self.messages.setdefault((pair, number), [])
        other.append(e)
        if len(other) == 2:
            self.finish(other)
        return True

    def run(self):
        moved = True
        while moved:
            moved = any([self.act(r) for r in self.rng.sample(range(self.world), self.world)])
        return self

    def flight(self, folder, skip=(), form=None):
        form = form or self.rng.choice(MODES)
        for r in range(self.world):
            if r in skip:
                continue
            groups = {g: {"name": g, "desc": d, "ranks": str(m)} for g, (d, m) in self.groups.items() if r in m}
            content = {"version": "2.7", "pg_config": groups, "entries": self.log[r][-self.rng.choice([64, 2000]):]}
            with open(f"{folder}/fr_{r}" + (".json" if form == "json" else ""), "wb") as f:
                f.write(json.dumps(content).encode() if form == "json" else pickle.dumps(content, protocol=self.rng.choice([2, 3, 4])))

    def last(self, rank, group="0"):
        """Number of the last operation of a group that a rank has entered, and that it has completed."""
        mine = [e for e in self.log[rank] if e["process_group"][0] == group and not e["is_p2p"]]
        return len(mine), sum(e["state"] == "completed" for e in mine)

    def watchdog(self, folder, one_file):
        """What PyTorch prints after the time-out: ranks that wait report it, the others are asked to dump."""
        for r in range(self.world):
            entered, done = self.last(r)
            lines = [f"step {n} loss {self.rng.random():.3f}\n" for n in range(3)]
            if r in self.raised:
                lines += [f"[rank{r}]: Traceback (most recent call last):\n", f'[rank{r}]:   File "/job/main.py", line 71, in step\n',
                          f"[rank{r}]: {self.raised[r]}\n"]
            elif entered > done:
                e = [x for x in self.log[r] if not x["is_p2p"] and x["process_group"][0] == "0"][-1]
                op = e["profiling_name"][5:].upper().replace("_", "")
                size = e["input_sizes"][0][0]
                lines += [f"[rank{r}]:[E704 10:01:02.3 ProcessGroupNCCL.cpp:629] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={entered}, "
                          f"OpType={op}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran for 600041 milliseconds before timing out.\n",
                          f"[rank{r}]:[E704 10:01:02.4 ProcessGroupNCCL.cpp:2168] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Exception (either an error or timeout) "
                          f"detected by watchdog at work: {entered}, last enqueued NCCL work: {entered}, last completed NCCL work: {done}.\n"]
            else:
                lines += [f"[rank{r}]:[E704 10:01:03.0 ProcessGroupNCCL.cpp:1670] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Received a dump signal due to a collective "
                          f"timeout from rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: {entered}, last completed NCCL work: {done}.\n"]
            with open(f"{folder}/{'job' if one_file else f'out.{r}'}.log", "a", encoding="utf-8") as f:
                f.writelines(lines)

    def nccl(self, folder):
        for r in range(self.world):
            head = f"gpu{r // 4}:{3000 + r}:{4000 + r} [{r % 4}] NCCL INFO "
            with open(f"{folder}/nccl.{r}.txt", "w", encoding="utf-8") as f:
                f.write(head + f"ncclCommInitRank comm 0x7{r} rank {r} nranks {self.world} cudaDev {r % 4} nvmlDev {r % 4} busId 1b000 commId 0xfeed - Init COMPLETE\n")
                for n in range(self.last(r)[0]):
                    f.write(head + f"AllReduce: opCount {n:x} sendbuff 0x7f recvbuff 0x7f count 512 datatype 9 op 0 root 0 comm 0x7{r} [nranks={self.world}] stream 0x3\n")

    def frames(self, rank):
        """The stack of the main thread, innermost first."""
        e = self.open[rank] if self.open[rank] and self.open[rank]["state"] != "completed" else None
        if e is None:
            return [(self.place[rank] or "write_log", "/job/main.py", 33), ("<module>", "/job/main.py", 99)]
        return [(e["profiling_name"][5:].split()[0], "/opt/torch/distributed/distributed_c10d.py", 2501), ("step", "/job/main.py", 64), ("<module>", "/job/main.py", 99)]

    def pyspy(self, folder, ranks=None):
        as_json = self.rng.random() < 0.5
        for r in range(self.world) if ranks is None else ranks:
            command = f"/usr/bin/python3 /job/main.py --rank={r} --steps=100"
            with open(f"{folder}/stack_{r}.txt", "w", encoding="utf-8") as f:
                if as_json:
                    info = {"pid": 700 + r, "command_line": command, "parent": None}
                    json.dump([{"pid": 700 + r, "thread_id": 900 + k, "thread_name": name, "os_thread_id": 700 + r + k, "active": k == 0, "owns_gil": False,
                                "frames": [{"name": n, "filename": p, "module": None, "short_filename": p, "line": l, "locals": None} for n, p, l in frames],
                                "process_info": info}
                               for k, (name, frames) in enumerate((("MainThread", self.frames(r)), ("pin_memory", [("wait", "/usr/lib/python3/threading.py", 300)])))], f)
                    continue
                f.write(f"Process {700 + r}: {command}\nPython v3.10.6 (/usr/bin/python3.10)\n\n")
                f.write(f'Thread {700 + r} (idle): "MainThread"\n' + "".join(f"    {n} ({p}:{l})\n" for n, p, l in self.frames(r)))
                f.write(f'Thread {800 + r} (idle): "pin_memory"\n    wait (threading.py:300)\n')


def grid(rng, world):
    """Tensor-parallel pairs and data-parallel groups across them."""
    groups = {f"t{i}": ("tp", [2 * i, 2 * i + 1]) for i in range(world // 2)}
    groups.update({f"d{i}": ("dp", list(range(i, world, 2))) for i in range(2)})
    return groups


def stall(play, rank, function="load_shard"):
    play.todo[rank].insert(play.rng.randrange(len(play.todo[rank]) // 2, len(play.todo[rank])), ("stuck", function))


def hang_in_grid(rng, folder):
    play = Play(rng, rng.choice([4, 8, 16]), {})
    play.groups.update(grid(rng, play.world))
    play.warm_up()
    bad = rng.randrange(play.world)
    stall(play, bad)
    play.run().flight(folder)
    return "hang", [bad]


def stage_does_not_send(rng, folder):
    play = Play(rng, rng.choice([3, 4, 6]), {})
    play.warm_up(1, 3)
    bad = rng.randrange(play.world - 1)
    for batch in range(6):
        for r in range(play.world):
            if r:
                play.todo[r].append(("recv", r - 1))
            if r == bad and batch == 4:
                play.todo[r].append(("stuck", "tokenize"))
            if r + 1 < play.world:
                play.todo[r].append(("send", r + 1))
    play.all("0")
    play.run().flight(folder)
    return "hang", [bad]


def ring_of_receives(rng, folder):
    play = Play(rng, rng.choice([3, 4, 5]), {})
    play.warm_up(1, 4)
    for r in range(play.world):
        play.todo[r] += [("recv", (r - 1) % play.world), ("send", (r + 1) % play.world)]
    play.run().flight(folder)
    return "deadlock", list(range(play.world))


def three_groups_in_a_circle(rng, folder):
    play = Play(rng, rng.choice([3, 4, 6]), {"a": ("x", [0, 1]), "b": ("y", [1, 2]), "c": ("z", [0, 2])})
    play.warm_up(1, 5)
    for rank, order in ((0, "ac"), (1, "ba"), (2, "cb")):
        play.todo[rank] += [("all", g, "all_reduce", 64) for g in order]
    play.all("0")
    play.run().flight(folder)
    return "deadlock", [0, 1, 2]


def another_size(rng, folder):
    play = Play(rng, rng.choice([3, 4, 8]), {})
    play.warm_up()
    bad = rng.randrange(play.world)
    for r in range(play.world):
        play.todo[r].append(("all", "0", "all_reduce", 777 if r == bad else 512))
    play.run()
    if rng.random() < 0.5:
        play.flight(folder)
    else:
        play.watchdog(folder, rng.random() < 0.5)
    return "mismatch", [bad]


def time_out(rng, folder):
    play = Play(rng, rng.choice([3, 4, 8]), {})
    play.warm_up()
    bad = rng.randrange(play.world)
    stall(play, bad)
    play.run().watchdog(folder, rng.random() < 0.5)
    return "hang", [bad]


def exception(rng, folder):
    play = Play(rng, rng.choice([3, 4, 8]), {})
    play.warm_up()
    bad = rng.randrange(play.world)
    play.todo[bad].insert(rng.randrange(len(play.todo[bad])), ("raise", rng.choice(["torch.OutOfMemoryError: CUDA out of memory.", "KeyError: 'label'",
                                                                                  "OSError: [Errno 28] No space left on device"])))
    play.run().watchdog(folder, rng.random() < 0.5)
    if rng.random() < 0.5:
        play.flight(folder, skip={bad})
    return "crash", [bad]


def calls_of_nccl(rng, folder):
    play = Play(rng, rng.choice([3, 4, 8]), {})
    for _ in range(rng.randrange(4, 30)):
        play.all("0")
    bad = rng.randrange(play.world)
    stall(play, bad)
    play.run().nccl(folder)
    return "hang", [bad]


def stacks(rng, folder):
    play = Play(rng, rng.choice([3, 4, 8]), {})
    play.warm_up()
    bad = rng.randrange(play.world)
    stall(play, bad, rng.choice(["load_shard", "save_checkpoint", "evaluate"]))
    play.run().pyspy(folder)
    return "hang", [bad]


def stack_beside_dumps(rng, folder):
    """The rank that did not come left a stack and no dump."""
    play = Play(rng, rng.choice([3, 4, 8]), {})
    play.warm_up()
    bad = rng.randrange(play.world)
    stall(play, bad)
    play.run().flight(folder, skip={bad})
    play.pyspy(folder, [bad])
    return "hang", [bad]


def all_done(rng, folder):
    play = Play(rng, rng.choice([2, 4, 8]), {})
    play.groups.update(grid(rng, play.world))
    play.warm_up()
    play.run().flight(folder)
    return "none", []


def two_do_not_come(rng, folder):
    play = Play(rng, rng.choice([4, 8]), {})
    play.warm_up()
    bad = rng.sample(range(play.world), 2)
    at = rng.randrange(len(play.todo[0]) // 2, len(play.todo[0]))
    for r in bad:
        play.todo[r].insert(at, ("stuck", "fetch"))
    play.run()
    play.flight(folder)
    play.pyspy(folder)
    return "hang", sorted(bad)


KINDS = [hang_in_grid, stage_does_not_send, ring_of_receives, three_groups_in_a_circle, another_size, time_out, exception, calls_of_nccl, stacks, stack_beside_dumps,
         all_done, two_do_not_come]


def make(number, folder, seed="1"):
    """Case `number` of `seed`; returns its kind, conclusion and ranks."""
    os.makedirs(folder, exist_ok=True)
    kind = KINDS[number % len(KINDS)]
    conclusion, ranks = kind(random.Random(f"{seed}/{number}"), folder)
    return kind.__name__, conclusion, ranks
