"""Simulated TensorFlow 1 jobs with parameter servers, written as RunMetadata: each traced step is one file with the records of all tasks of the session, each
on its own clock. Variables go from servers to workers as messages (`_Send`, `_Recv`, `RecvTensor`), gradients back. Used by tests of `opwatch ranks`.

Labels are those of TensorFlow: "NAME = _Send(edge_3_w @RECEIVER)", "NAME = _Recv(edge_3_w @SENDER)", "[1.5MB] edge_3_w from SENDER to RECEIVER". Times are
microseconds."""
import heapq
import json
import random

from pb_write import num, sub


def device(job, task):
    return f"/job:{job}/replica:0/task:{task}/device:CPU:0"


class Cluster:
    """`variables` is a list of (name, bytes, server). `alone` makes one session per worker, else one session drives all workers. `clocks` has (offset in us, ppm)
    per task. `slow` multiplies the compute of a worker, `apply_cost` the work of a server, `rate` has bytes per us of each server's network."""

    def __init__(self, seed, workers=2, servers=3, steps=8, alone=False, **changes):
        self.rng = random.Random(seed)
        self.workers, self.servers, self.steps, self.alone = workers, servers, steps, alone
        self.variables = [(f"layer{i}/w", self.rng.randrange(400_000, 600_000), i % servers) for i in range(4 * servers)]
        self.clocks, self.slow, self.apply_cost, self.rate = {}, {}, {}, {}
        self.compute_us = 12_000
        self.start_us = 1_500_000_000_000_000
        for name, value in changes.items():
            if not hasattr(self, name):
                raise AttributeError(name)
            setattr(self, name, value)
        self.free = [0.0] * servers  # when the network of a server is free again
        self.files = []  # records of each file: {(job, task): [(start, end, name, label, bytes)]}

    def noisy(self, us, part=0.02):
        return us * (1 + self.rng.gauss(0, part))

    def send(self, server, ready, size):
        """The end of a message from or to a server, whose network moves one after the other. Called in the order of time."""
        begin = max(ready, self.free[server])
        self.free[server] = begin + self.noisy(size / self.rate.get(server, 1000), 0.01)
        return self.free[server] + self.noisy(60, 0.3)

    def transfer(self, records, sender, receiver, edge, send_at, asked_at, end, size):
        """The three records of a message."""
        source, target = device(*sender), device(*receiver)
        records[sender].append((send_at, send_at + self.noisy(12, 0.3), f"{edge}_S1", f"{edge}_S1 = _Send({edge} @{target})", 0))
        records[receiver].append((asked_at, end + self.noisy(20, 0.3), f"{edge}_S2", f"{edge}_S2 = _Recv({edge} @{source})", 0))
        shown = f"[{size}B]" if size < 0.1 * 1048576 else f"[{size / 1048576:.1f}MB]"
        records[receiver].append((max(asked_at, min(send_at, end - 1)), end, "RecvTensor", f"{shown} {edge} from {source} to {target}", size))

    def session(self, start, workers):
        """One run of a session: yields the time of each message before it is sent; returns its end."""
        records = {("worker", w): [] for w in workers} | {("ps", s): [] for s in range(self.servers)}
        begin = {task: start + self.noisy(120, 0.3) for task in records}
        messages, got = [], {}
        for s in range(self.servers):
            at = begin["ps", s]
            for number, (name, size, server) in enumerate(self.variables):
                if server != s:
                    continue
                took = self.noisy(15, 0.2)
                records["ps", s].append((at, at + took, f"{name}/read", f"{name}/read = Identity({name})", 0))
                at += took
                messages += [(max(at, begin["worker", w]), at, s, w, number, size) for w in workers]
        for ready, sent_at, s, w, number, size in sorted(messages):
            yield ready
            end = self.send(s, ready, size)
            edge = f"edge_{number}_{self.variables[number][0]}/read"
            self.transfer(records, ("ps", s), ("worker", w), edge, sent_at, begin["worker", w], end, size)
            got[w] = max(got.get(w, 0), end)
        messages, arrived = [], {}
        for w in workers:
            at = got[w] + 30
            for number, (name, size, server) in reversed(list(enumerate(self.variables))):
                took = self.noisy(self.slow.get(w, 1) * self.compute_us / len(self.variables))
                records["worker", w].append((at, at + took, f"grad/{name}", f"grad/{name} = MatMul({name}, x)", 0))
                at += took
                messages.append((at, server, w, number, size))
        for sent_at, s, w, number, size in sorted(messages):
            yield sent_at
            end = self.send(s, sent_at, size)
            edge = f"edge_{100 + number}_grad/{self.variables[number][0]}"
            self.transfer(records, ("worker", w), ("ps", s), edge, sent_at, begin["ps", s], end, size)
            arrived[number] = max(arrived.get(number, 0), end)
        done = dict(begin)
        for number in sorted(arrived, key=arrived.get):
            name, size, s = self.variables[number]
            at = max(done["ps", s], arrived[number]) + 10
            done["ps", s] = at + self.noisy(self.apply_cost.get(s, 1) * size / 2500)
            records["ps", s].append((at, done["ps", s], f"{name}/Apply", f"{name}/Apply = ApplyGradientDescent({name}, lr, grad)", 0))
        self.files.append(records)
        return max(done.values())

    def loop(self, workers):
        at = 0.0
        for _ in range(self.steps):
            at = (yield from self.session(at, workers)) + self.noisy(300, 0.2)

    def run(self):
        loops = [self.loop([w]) for w in range(self.workers)] if self.alone else [self.loop(range(self.workers))]
        waiting = [(next(loop), number) for number, loop in enumerate(loops)]
        heapq.heapify(waiting)
        while waiting:
            _, number = heapq.heappop(waiting)
            for at in loops[number]:
                heapq.heappush(waiting, (at, number))
                break
        return self

    def shown(self, task, us):
        """A moment on the clock of a task."""
        offset, ppm = self.clocks.get(task, (0, 0))
        return round(self.start_us + us * (1 + ppm / 1e6) + offset)

    def run_metadata(self, records):
        stats = b""
        for task, rows in records.items():
            nodes = b""
            for start, end, name, label, size in sorted(rows):
                begin, last = self.shown(task, start), self.shown(task, end)
                memory = sub(7, sub(3, sub(4, num(1, size)))) if size else b""
                nodes += sub(2, sub(1, name) + num(2, begin) + num(4, last - begin) + num(5, last - begin) + memory + sub(8, label))
            stats += sub(1, sub(1, device(*task)) + nodes)
        return sub(1, stats)

    def timeline(self, records):
        """The same as TensorFlow's Timeline writes it: messages are known by their arguments, RecvTensor says nothing."""
        events = []
        for pid, (task, rows) in enumerate(records.items()):
            events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"{device(*task)} Compute"}})
            for start, end, name, label, _ in sorted(rows):
                op, inputs = "RecvTensor", []
                if name != "RecvTensor":
                    op, inputs = label.split(" = ")[1].split("(", 1)
                    inputs = inputs.rstrip(")").split(", ")
                begin, last = self.shown(task, start), self.shown(task, end)
                events.append({"ph": "X", "cat": "Op", "name": op, "pid": pid, "tid": 0, "ts": begin, "dur": last - begin,
                               "args": {"name": name, "op": op, **{f"input{i}": text for i, text in enumerate(inputs)}}})
        return json.dumps({"traceEvents": events}).encode()

    def write(self, folder, timeline=False):
        paths = []
        for number, records in enumerate(self.files):
            paths.append(f"{folder}/{'timeline' if timeline else 'run'}{number:03d}{'.json' if timeline else ''}")
            with open(paths[-1], "wb") as f:
                f.write(self.timeline(records) if timeline else self.run_metadata(records))
        return paths

    def offset(self, task, reference=("worker", 0)):
        """Nanoseconds to add to the times of a task, at the middle of its recording, to get those of the reference."""
        ends = [t for records in self.files for row in records.get(task, []) for t in row[:2]]
        middle = (min(ends) + max(ends)) / 2
        (mine, ppm), (other, other_ppm) = self.clocks.get(task, (0, 0)), self.clocks.get(reference, (0, 0))
        return 1000 * (other - mine + middle * (other_ppm - ppm) / 1e6)
