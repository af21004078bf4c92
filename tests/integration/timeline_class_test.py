#!/usr/bin/python3
"""`opwatch convert RUN_META --to timeline` against a second implementation of TensorFlow's Timeline class.

The reference below follows the description of what timeline.Timeline(step_stats).generate_chrome_trace_format() gives;
messages are parsed and printed by Python's protobuf. Compared byte for byte: the sample, seeds, the corpus when
OPWATCH_CORPUS names it, and made-up steps full of odd cases. Also: several steps in one file, and steps of .opw files.
"""
import collections
import glob
import gzip
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    from google.protobuf import descriptor_pb2, descriptor_pool
    try:
        from google.protobuf.message_factory import GetMessageClass
    except ImportError:
        from google.protobuf.message_factory import MessageFactory
        GetMessageClass = MessageFactory().GetPrototype
except ImportError:
    print("Python's protobuf is not installed: nothing to compare with")
    sys.exit(77)

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
SRC = os.environ.get("OPWATCH_SRC", ".")
sys.path.insert(0, os.path.join(SRC, "tests"))
from support.pb_write import sub  # noqa: E402

CORPUS = os.environ.get("OPWATCH_CORPUS")
TYPES = {"int64": 3, "uint64": 4, "int32": 5, "bool": 8, "string": 9, "uint32": 13}
MESSAGES = {
    "Dim": [(1, "size", "int64"), (2, "name", "string")],
    "TensorShapeProto": [(2, "dim", "*Dim"), (3, "unknown_rank", "bool")],
    "AllocationDescription": [(1, "requested_bytes", "int64"), (2, "allocated_bytes", "int64"),
                              (3, "allocator_name", "string"), (4, "allocation_id", "int64"),
                              (5, "has_single_reference", "bool"), (6, "ptr", "uint64")],
    "TensorDescription": [(1, "dtype", "=DataType"), (2, "shape", "TensorShapeProto"),
                          (4, "allocation_description", "AllocationDescription")],
    "NodeOutput": [(1, "slot", "int32"), (3, "tensor_description", "TensorDescription")],
    "NodeExecStats": [(1, "node_name", "string"), (2, "all_start_micros", "int64"), (4, "op_end_rel_micros", "int64"),
                      (5, "all_end_rel_micros", "int64"), (7, "output", "*NodeOutput"),
                      (8, "timeline_label", "string"), (10, "thread_id", "uint32")],
    "DeviceStepStats": [(1, "device", "string"), (2, "node_stats", "*NodeExecStats")],
    "StepStats": [(1, "dev_stats", "*DeviceStepStats")],
    "RunMetadata": [(1, "step_stats", "StepStats")],
}
DATA_TYPES = ["DT_INVALID", "DT_FLOAT", "DT_DOUBLE", "DT_INT32", "DT_UINT8", "DT_INT16", "DT_INT8", "DT_STRING",
              "DT_COMPLEX64", "DT_INT64", "DT_BOOL"]


def make_classes():
    file = descriptor_pb2.FileDescriptorProto(name="timeline_test.proto", package="t", syntax="proto3")
    enum = file.enum_type.add(name="DataType")
    for number, name in list(enumerate(DATA_TYPES)) + [(101, "DT_FLOAT_REF")]:
        enum.value.add(name=name, number=number)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            f = message.field.add(name=field, number=number, label=3 if kind[0] == "*" else 1)
            kind = kind.lstrip("*")
            if kind in TYPES:
                f.type = TYPES[kind]
            else:
                f.type = 14 if kind[0] == "=" else 11
                f.type_name = ".t." + kind.lstrip("=")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(pool.FindMessageTypeByName("t." + name)) for name in MESSAGES}


CLASSES = make_classes()


class Timeline:
    """What the class of that name does, from its description."""

    def __init__(self, stats, dataflow, memory):
        self.metadata, self.events = [], []
        self.compute_pids, self.tensor_pids = {}, {}
        self.tensors = collections.OrderedDict()
        self.flow_starts, self.flows = {}, 0
        self.dataflow, self.memory = dataflow, memory
        self.pids(stats)
        self.lanes(stats)
        self.produce(stats)
        self.compute(stats)
        if memory:
            self.allocations()

    def process(self, pid, name):
        self.metadata.append({"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}})

    def event(self, ph, cat, name, pid, tid, ts, **extra):
        self.events.append({"ph": ph, "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, **extra})

    def pids(self, stats):
        self.process(0, "Allocators")
        pid = 1
        for dev in stats.dev_stats:
            self.compute_pids[dev.device], self.tensor_pids[dev.device] = pid, pid + 1
            self.process(pid, dev.device + " Compute")
            self.process(pid + 1, dev.device + " Tensors")
            pid += 2

    @staticmethod
    def lanes(stats):
        for dev in stats.dev_stats:
            ends = [0]
            for node in dev.node_stats:
                free = [i for i, end in enumerate(ends) if end < node.all_start_micros]
                lane = free[0] if free else len(ends)
                ends[lane:lane + 1] = [node.all_start_micros + node.all_end_rel_micros]
                node.thread_id = lane

    def produce(self, stats):
        for dev in stats.dev_stats:
            compute, tensors = self.compute_pids[dev.device], self.tensor_pids[dev.device]
            for node in dev.node_stats:
                start, end = node.all_start_micros, node.all_start_micros + node.all_end_rel_micros
                for i, output in enumerate(node.output):
                    name = f"{node.node_name}:{i}" if i else node.node_name
                    allocation = output.tensor_description.allocation_description
                    tensor = {"id": len(self.tensors), "create": start, "unref": end, "pid": tensors,
                              "allocator": allocation.allocator_name, "bytes": allocation.requested_bytes}
                    self.tensors[name] = tensor
                    self.flow_starts[name] = (end, compute, node.thread_id)
                    if self.memory:
                        text = str(output.tensor_description).replace('"', "")
                        self.event("N", "Tensor", name, tensors, node.thread_id, start, id=tensor["id"])
                        self.event("O", "Tensor", name, tensors, node.thread_id, end - 1, id=tensor["id"],
                                   args={"snapshot": {"tensor_description": text}})

    def compute(self, stats):
        for dev in stats.dev_stats:
            pid = self.compute_pids[dev.device]
            gpu = "/stream:" in dev.device or "/memcpy" in dev.device
            for node in dev.node_stats:
                name, op, inputs = node.node_name, "unknown", []
                label = re.match(r"(.*) = (.*)\((.*)\)", node.timeline_label)
                if gpu:
                    name, op = (name.split(":") + ["unknown"])[:2]
                elif name == "RecvTensor":
                    op = "RecvTensor"
                elif label:
                    op, inputs = label[2], label[3].split(", ") if label[3] else []
                args = {"name": name, "op": op, **{f"input{i}": x for i, x in enumerate(inputs)}}
                start = node.all_start_micros
                self.event("X", "Op", op, pid, node.thread_id, start, dur=node.all_end_rel_micros, args=args)
                for x in inputs:
                    self.consume(x, pid, node.thread_id, start, start + node.all_end_rel_micros)

    def consume(self, name, pid, tid, start, end):
        if name not in self.tensors and name.rfind("/_") > 0:
            name = name[:name.rfind("/_")]
        if name not in self.tensors:
            return
        tensor = self.tensors[name]
        tensor["unref"] = max(tensor["unref"], end - 1)
        when, from_pid, from_tid = self.flow_starts[name]
        if self.dataflow and (from_pid, from_tid) != (pid, tid):
            self.event("s", "DataFlow", name, from_pid, from_tid, when, id=self.flows)
            self.event("t", "DataFlow", name, pid, tid, start, id=self.flows)
            self.flows += 1

    def allocations(self):
        lists = collections.OrderedDict()
        for name, t in self.tensors.items():
            self.event("D", "Tensor", name, t["pid"], 0, t["unref"], id=t["id"])
            lists.setdefault(t["allocator"], []).extend([(t["create"], t["bytes"], name), (t["unref"], -t["bytes"], name)])
        for allocator, changes in lists.items():
            total = 0
            for ts, size, _ in sorted(changes):
                total += size
                self.event("C", "Memory", allocator, 0, 0, ts, args={allocator: total})

    def text(self):
        return json.dumps({"traceEvents": self.metadata + self.events}, indent=4, separators=(",", ": "))


def convert(*args):
    return subprocess.run([BIN, "convert", *args], check=True, capture_output=True).stdout.decode()


def made_up(seed):
    """A step with everything that could go wrong."""
    rng = random.Random(seed)
    run = CLASSES["RunMetadata"]()
    devices = ["/job:w/replica:0/task:0/device:CPU:0", "/gpu:0/stream:all", "/job:w/task:0/gpu:1", "/gpu:0/memcpy",
               "/job:w/replica:0/task:0/device:CPU:0", "empty", "d\u00e9vice \u2713"]
    names = ["a/b", "a/b/c", "RecvTensor", "conv:Conv2D", "x", "grad/\U0001f600", "n\"q\\\n", "x/_3"]
    labels = ["a/b = MatMul(x, a/b/c)", "x = Add(a/b:1, nope/_7, x/_3/_9)", "no label", "", "y = Op()", "p = q = F(g(x, h)",
              "l = M(x)\nz = N(y)", "a = B(c) tail", "= C(x)", " = C(x)"]
    for device in rng.sample(devices, rng.randint(1, len(devices))):
        dev = run.step_stats.dev_stats.add(device=device)
        if device == "empty":
            continue
        now = rng.choice([1, 1500000000000000])
        for _ in range(rng.randint(0, 12)):
            now += rng.randint(0, 5)
            node = dev.node_stats.add(node_name=rng.choice(names), all_start_micros=now,
                                      all_end_rel_micros=rng.randint(0, 9), timeline_label=rng.choice(labels))
            for slot in range(rng.choice([0, 0, 1, 2, 3])):
                out = node.output.add(slot=slot)
                if rng.random() < .8:
                    t = out.tensor_description
                    t.dtype = rng.choice([0, 1, 9, 101])
                    for size in rng.choice([[], [3], [0, -1]]):
                        t.shape.dim.add(size=size)
                    if rng.random() < .8:
                        t.allocation_description.requested_bytes = rng.choice([0, 4, 1 << 40])
                        t.allocation_description.allocator_name = rng.choice(["cpu", "GPU_0_bfc", "\u00fc\"", ""])
                        t.allocation_description.ptr = rng.choice([0, (1 << 64) - 1])
                        t.allocation_description.has_single_reference = rng.random() < .5
    return run.SerializeToString()


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)


def record(data):
    """One record of a TensorBoard event file."""
    size = struct.pack("<Q", len(data))
    return size + masked_crc(size) + data + masked_crc(data)


class Convert(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, data):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as f:
            f.write(data)
        return path

    def compare(self, path, data):
        for dataflow in (True, False):
            for memory in (True, False):
                stats = CLASSES["RunMetadata"].FromString(data).step_stats
                mine = convert(path, "--format", "runmeta", "--to", "timeline",
                               f"--show-dataflow={str(dataflow).lower()}", f"--show-memory={str(memory).lower()}")
                self.assertEqual(mine, Timeline(stats, dataflow, memory).text(), f"{path} {dataflow} {memory}")

    def test_made_up_steps(self):
        for seed in range(60):
            data = made_up(seed)
            if CLASSES["RunMetadata"].FromString(data).step_stats.dev_stats:
                self.compare(self.file(f"run_meta_{seed}", data), data)

    def test_real_steps(self):
        paths = sorted(glob.glob(f"{SRC}/samples/run_meta*")) + [f"{SRC}/tests/fuzz/seeds/runmeta/run_meta"]
        if CORPUS:
            paths.append(f"{CORPUS}/tf1-tfprof/run_meta")
        for path in paths:
            if os.path.exists(path):
                with open(path, "rb") as f:
                    self.compare(path, f.read())

    def test_several_steps_are_one_file(self):
        paths = sorted(glob.glob(f"{SRC}/samples/run_meta*"))
        out = os.path.join(self.folder.name, "all.json.gz")
        subprocess.run([BIN, "convert", *paths, "--to", "timeline", "--show-memory", "-o", out], check=True)
        with gzip.open(out) as f:
            events = json.load(f)["traceEvents"]
        one = json.loads(convert(paths[0], "--to", "timeline"))["traceEvents"]
        names = [e["args"]["name"] for e in events if e["ph"] == "M"]
        self.assertEqual(names[:-1], [e["args"]["name"] for e in one if e["ph"] == "M"])
        self.assertEqual(names[-1], "Steps")
        ops = [e for e in events if e["ph"] == "X" and e["cat"] == "Op"]
        self.assertEqual(len(ops), sum(len([e for e in json.loads(convert(p, "--to", "timeline"))["traceEvents"]
                                            if e["ph"] == "X"]) for p in paths))
        self.assertEqual(len([e for e in events if e["ph"] == "X" and e["cat"] == "Step"]), len(paths))
        starts = [e["id"] for e in events if e["ph"] == "s"]
        self.assertEqual(starts, list(range(len(starts))))
        alone = {e["id"] for e in json.loads(convert(paths[0], "--to", "timeline", "--show-memory"))["traceEvents"]
                 if e["ph"] == "N"}
        created = {e["id"] for e in events if e["ph"] == "N"}
        self.assertEqual(len(created), len(paths) * len(alone))  # no step uses an id of another

    def test_one_step_of_several(self):
        paths = sorted(glob.glob(f"{SRC}/samples/run_meta*"))
        self.assertEqual(convert(*paths, "--to", "timeline", "--step", "1"), convert(paths[1], "--to", "timeline"))

    def test_from_an_opwatch_file(self):
        paths = sorted(glob.glob(f"{SRC}/samples/run_meta*"))
        saved = os.path.join(self.folder.name, "run.opw")
        subprocess.run([BIN, "convert", *paths, "-o", saved], check=True)
        self.assertEqual(convert(saved, "--to", "timeline", "--show-memory"),
                         convert(*paths, "--to", "timeline", "--show-memory"))


    def test_from_an_event_file(self):
        with open(f"{SRC}/samples/run_meta_0", "rb") as f:
            run = f.read()
        tagged = sub(1, b"step_0") + sub(2, run)
        data = record(b"\x09" + struct.pack("<d", 1e9) + sub(3, b"brain.Event:2")) + record(b"\x10\x00" + sub(8, tagged))
        path = self.file("events.out.tfevents.1", data)
        self.assertEqual(convert(path, "--to", "timeline", "--show-memory"),
                         convert(f"{SRC}/samples/run_meta_0", "--to", "timeline", "--show-memory"))


if __name__ == "__main__":
    unittest.main()
