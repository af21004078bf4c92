"""The files that tfprof's views write: timelines of displayed trees, timelines of one step, pprof profiles (before packing)."""
import json

from pb_write import num, packed, some, sub
from tfprof_store import BYTES, CANONICAL, TIMES, raw, signed
from tfprof_views import base_name

UNITS = {**dict.fromkeys(TIMES, "microseconds"), **dict.fromkeys(BYTES, "bytes"), "params": "count", "float_ops": "count"}
COMMENTS = {
    "micros": "Sum of accelerator execution time and cpu execution time.", "accelerator_micros": "Accelerator execution time.",
    "cpu_micros": "CPU execution time.", "bytes": "Sum of operation total memory requests, excluding deallocations.",
    "peak_bytes": "Sum of operation peak memory usage.", "residual_bytes": "Sum of operation allocated memory after finish.",
    "output_bytes": "Sum of operation output size.", "params": "Model parameters.",
    "float_ops": "Model float operations (Only available if defined).",
}


def code_point(data):
    """As jsoncpp reads it: what follows the first byte of a character is not looked at. (code, bytes)"""
    size, least = ((1, 0) if data[0] < 0x80 else (2, 0x80) if data[0] < 0xe0 else (3, 0x800) if data[0] < 0xf0 else (4, 0x10000))
    if size == 1:
        return data[0], 1
    if len(data) < size:
        return 0xfffd, 1
    code = data[0] & 0xff >> size + 1
    for byte in data[1:size]:
        code = code << 6 | byte & 0x3f
    return (code, size) if code >= least and not 0xd800 <= code <= 0xdfff else (0xfffd, size)


def json_text(value):
    if isinstance(value, dict):
        return "{" + ",".join(json_text(k) + ":" + json_text(value[k]) for k in sorted(value)) + "}"
    if not isinstance(value, str):
        return str(value)
    data, text = raw(value), ""
    while data:
        code, size = code_point(data)
        text += chr(code)
        data = data[size:]
    return '"' + "\x7f".join(json.dumps(part)[1:-1] for part in text.split("\x7f")) + '"'


class Abort(Exception):
    """Where the original aborts."""


def tree_timeline(view):
    """The displayed tree as nested slices, end to end."""
    events, depths = [], set()

    def place(row, start, dur, depth):
        if depth not in depths:
            depths.add(depth)
            events.append({"args": {"name": "Scope:%d" % depth}, "name": "process_name", "ph": "M", "pid": depth})
        events.append({"args": {"name": row.name, "op": row.name}, "cat": "Op", "dur": dur, "name": row.name, "ph": "X", "pid": depth,
                       "tid": 0, "ts": start})
        at = start
        for child in row.shown:
            micros = child.total["micros"]
            if micros <= 0:
                continue
            if at + micros > start + dur:
                raise Abort
            place(child, at, micros, depth + 1)
            at += micros

    place(view.root, 0, view.root.total["micros"], 0)
    return ('{"traceEvents":[' + ",".join(json_text(e) for e in events) + "]}\n").encode()


# ---- the timeline of one step, of the graph view ----

WRITTEN = ("\n******************************************************\nTimeline file is written to %s.\nOpen a Chrome browser, "
           "enter URL chrome://tracing and load the timeline file.\n******************************************************\n")


def displayed(row):
    for child in row.shown:
        yield child.node
        yield from displayed(child)


class GraphTimeline:
    """`text` is the file's, `told` what standard output gets before the file is written."""

    def __init__(self, view, step):
        self.view, self.store, self.step = view, view.store, step
        self.early, self.late, self.pids, self.slices = [], [], {}, {}
        self.next_pid, self.told = 0, "generating trace file.\n"
        self.shown = [n for n in displayed(view.root) if self.trackable(n)]
        for node in self.shown:
            self.add_runs(node)
        self.link()
        self.place()
        self.emit()
        for device in sorted({n.device for n in self.shown}, key=raw):
            if "cpu" not in device:
                self.memory(device, [n for n in self.shown if n.device == device])
        self.text = ('{"traceEvents":[' + ",".join(json_text(e) for e in self.early + self.late) + "]}\n").encode()

    def trackable(self, node):
        return self.step in node.execs and node.execs[self.step].first_start and node.device is not None

    def process(self, name):
        self.early.append({"args": {"name": name}, "name": "process_name", "ph": "M", "pid": self.next_pid})
        self.next_pid += 1
        return self.next_pid - 1

    def add_runs(self, node):
        run = node.execs[self.step]
        lists = {**run.accelerator, **run.cpu}
        for device in sorted(lists, key=raw):
            if device not in self.pids:
                self.pids[device] = self.process("Op %s threads: %s" % ("execution" if "stream" in device else "scheduling", device))
                self.slices[device] = {}
            for start, dur in lists[device]:
                self.slices[device].setdefault(start, {"node": node, "start": start, "dur": dur, "device": device, "next": []})

    def link(self):
        for device in sorted(self.slices, key=raw):
            if not CANONICAL.fullmatch(device):
                continue
            for _, piece in sorted(self.slices[device].items()):
                for name in piece["node"].inputs:
                    producer = self.store.nodes.get(name)
                    if not producer or not self.view.accounted(producer.types) or not self.trackable(producer):
                        continue
                    for other, runs in sorted(producer.execs[self.step].cpu.items(), key=lambda item: raw(item[0])):
                        for start, _ in runs:
                            if other != device and start in self.slices.get(other, {}):
                                self.slices[other][start]["next"].append(piece)

    def place(self):
        for device in sorted(self.slices, key=raw):
            lanes = []
            for start, piece in sorted(self.slices[device].items()):
                piece["lane"] = next((i for i, lane in enumerate(lanes) if self.is_free(lane, start)), len(lanes))
                if piece["lane"] == len(lanes):
                    lanes.append([])
                lanes[piece["lane"]].append(piece)

    @staticmethod
    def is_free(lane, start):
        for other in reversed(lane):
            end = other["start"] + other["dur"]
            if end != start:
                return end < start
        return True

    def emit(self):
        flow = 0
        for device in sorted(self.slices, key=lambda d: self.pids[d]):
            for p in sorted(self.slices[device].values(), key=lambda p: (p["lane"], p["start"])):
                name, place = p["node"].name, {"pid": self.pids[device], "tid": p["lane"]}
                self.early.append({"args": {"name": name}, "cat": "Op", "dur": p["dur"], "name": name, "ph": "X", "ts": p["start"], **place})
                for target in p["next"]:
                    flow += 1
                    both = {"cat": "DataFlow", "id": flow, "name": name + "_flow"}
                    self.late.append({**both, **place, "ph": "s", "ts": p["start"] + p["dur"]})
                    self.late.append({**both, "ph": "t", "pid": self.pids[target["device"]], "tid": target["lane"], "ts": target["start"]})

    @staticmethod
    def persistent(node):
        return max([0] + [signed(sum(m["persistent"] for m in e.memory if not m["on_host"])) for e in node.execs.values()])

    def live(self, node, at):
        changes = [size for when, size in node.execs[self.step].allocations if when < at]
        return signed(self.persistent(node) + sum(changes))

    def memory(self, device, holders):
        pid = self.process("mem usage on:" + device)
        self.process("mem usage on:" + device + " allocations")
        samples = {}
        for node in holders:
            samples.update((m["at"], m["in_use"]) for m in node.execs[self.step].memory if m["at"] > 0)
        last = 0
        for at, in_use in sorted(samples.items()):
            if at - last < 100:
                continue
            last = at
            counter = {"cat": "Memory", "ph": "C", "tid": 0, "ts": at}
            self.late.append({**counter, "args": {"Allocator Bytes in Use": in_use}, "name": "Allocated Bytes", "pid": pid})
            self.late.append({**counter, "args": self.top(holders, at, in_use), "name": "Top Allocations", "pid": pid + 1})
        if "gpu" in device or "sycl" in device:
            self.told += "%s peak memory: %.2f MB\n" % (device, max([0] + list(samples.values())) / 1e6)

    def top(self, holders, at, left):
        groups = {}
        for node in sorted(holders, key=lambda n: raw(n.name)):
            groups.setdefault(self.live(node, at), []).append(node)
        args, count = {"Top Allocation %02d" % i: "N/A" for i in range(1, 10)}, 0
        for size in sorted((size for size in groups if size > 0), reverse=True):
            for node in groups[size]:
                if left < size or count >= 10:
                    break
                args["Top Allocation %02d" % count] = "%s MB from %s" % (megabytes(size), node.name)
                count += 1
                left -= size
        return {**args, "Not Displayed": "%.2f MB" % (left / 1e6)}


def megabytes(size):
    text = "%.15g" % (size / 1e6)
    return text if float(text) == size / 1e6 else "%.17g" % (size / 1e6)


# ---- pprof ----

class Pprof:
    def __init__(self, view, attribute):
        self.step, self.attribute = view.options["step"], attribute
        self.strings, self.locations, self.functions, self.samples = {"": 0}, {}, {}, {}
        for row in view.root.shown:
            self.walk(row, None, [])

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def location(self, parent, child):
        key = (raw(parent[0]), raw(child[2]), parent[1] & (1 << 64) - 1)      # lines are ordered without a sign
        if key not in self.locations:
            name = (raw(child[0]), raw(child[2]), child[3] & (1 << 64) - 1)
            if name not in self.functions:
                base = base_name(child[0])
                title = (base.rpartition(".")[0] if "." in base else base) + ":" + child[2]
                self.functions[name] = (len(self.functions) + 1, self.string(title), self.string(child[0]), child[3])
            self.locations[key] = (len(self.locations) + 1, self.functions[name][0], parent[1])
        return self.locations[key][0]

    def walk(self, row, parent, path):
        if parent:
            path = [self.location(parent.frame, row.frame)] + path
        for child in row.shown:
            self.walk(child, row, path)
        if not row.shown:
            self.leaves(row, path)

    def leaves(self, row, path):
        if row.every:
            for child in row.every:
                self.leaves(child, path)
            return
        for node in row.attached:
            key = node.name
            while key in self.samples:
                key += "@"
            label = (self.string("graph node:"), self.string(node.name))
            self.samples[key] = (path, [1, node.metric(self.attribute, self.step)], label)

    def message(self):
        count, attribute = self.string("count"), self.string(self.attribute)
        unit, comment = self.string(UNITS[self.attribute]), self.string(COMMENTS[self.attribute])
        out = sub(1, num(1, count) + num(2, count)) + sub(1, num(1, attribute) + num(2, unit))
        for key in sorted(self.samples, key=raw):
            path, values, (name, text) = self.samples[key]
            out += sub(2, packed(1, path) + packed(2, values) + sub(3, num(1, name) + some(2, text)))
        for key in sorted(self.locations):
            number, function, line = self.locations[key]
            out += sub(4, num(1, number) + sub(4, num(1, function) + some(2, line)))
        for key in sorted(self.functions):
            number, name, file, first = self.functions[key]
            out += sub(5, num(1, number) + num(2, name) + some(4, file) + some(5, first))
        return out + b"".join(sub(6, s) for s in self.strings) + packed(13, [comment])
