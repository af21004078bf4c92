"""Random models for tfprof, odd on purpose, and the files that hold them.

A model is a dict: graph (node definitions), op_log (entries), steps (devices and their records, or None), checkpoint (tensors).
`Files` writes GraphDef (binary or text), OpLogProto, RunMetadata, ProfileProto and a checkpoint.
"""
import os
import struct

from pb_scramble import MANY, NUMBERS, ONE, TEXTS, WHOLE, Scrambler
from pb_write import num, packed, some, sub
from tfprof_checkpoint import IN_V1, shape_message, write_checkpoint, write_v1
from tfprof_store import TENSORS, raw, signed

HOST = "/job:w/replica:0/task:0"
DEVICES = [HOST + "/device:CPU:0", HOST + "/device:CPU:1", HOST + "/device:GPU:0", "/gpu:1", "/job:w/device:SYCL:0", "/cpu:0",
           "/device:GPU:0/stream:all", "/gpu:1/stream:all", "/device:GPU:0/stream:14", "/device:GPU:0/memcpy", "/device:TPU:0",
           "/job:x/device:XLA_CPU:0", "/host:CPU", "", "CPU:0", "/device:gpu:12", "/device:GPU:0\n", "/device:SYCL:0/stream:all",
           "/stream:all/gpu:0", "\n/gpu:0", "/cpu:", "/cpu:0x", "/GPU:٣", "//device:CPU:00", "/device:GPU:0/gpu:1", "/device:CPU:0/stream:all",
           "/É/gpu:0", "/gpu:0/device:CPU:0", "/DEVICE:Cpu:7", "/sycl:0", "/device:gpu:99999999999999999999"]
PARTS = ["a", "b", "c", "A", "a_1", "layer", "", "é", "日本", "x y", "x.y", "conv(2)", "BatchNorm", "gradients", "a_grad", "mul_grad",
         "w|v", "'q'", "[0]", "tab\tbed", "\x01", "%s", "-min_bytes", "_TFProfRooo", "x" * 300, "\U0001f600", "new\nline", "\x7f", "\\", "\"",
         "p:0", "q:r:s", "^ctl", "_kTFScopeParent", "gradients/a_grad", "\r", "MEMCPY", "\u2028"]
OPS = ["MatMul", "Conv2D", "Const", "VariableV2", "NoOp", "Relu", "FusedBatchNorm", "Ünïcode", "a b", "op_with_a_name_longer_than_25",
       "A", "a", ""]
FILES = ["/p/main.py", "/p/lib/ops.py", "/q/lib/ops.py", "ops.py", "", "gs://bucket/dir/x.py", "gs://bucket", "/p/dir/", ".hidden",
         "/p/no_extension", "a.b.c", "/ü/ü.py", "two\nlines.py", "dir\n/x.py", "gs://bucket/", "C:\\d\\x.py", "://x/y", "1s://h/y.py", "s3.x://h/a/b",
         "a-b://h/y.py", "/", "x/", "a//b", ".py", "/d.ir/x", "//", "\t"]
FUNCTIONS = ["<module>", "f", "build", "n" * 19, "n" * 20, "n" * 21, "ü" * 12, "", "g (gradient)", "a\nb", "日" * 7, "(x)"]
LINES = [0, -1, 2**31 - 1, -2**31]
ALLOCATORS = ["cpu", "GPU_0_bfc", "gpu_host_bfc", ""]
SHOWN = ("float", "double", "int32", "int64", "string")


class Maker:
    def __init__(self, rng):
        self.rng = rng
        self.few = rng.random() < 0.5           # few different names and devices, so that they meet
        self.devices = rng.sample(DEVICES, rng.randint(1, 4)) if self.few else DEVICES
        self.parts = rng.sample(PARTS, 4) if self.few else PARTS
        self.wild = rng.random() < 0.15         # numbers that nobody measured

    def size(self):
        if self.wild and self.rng.random() < 0.3:
            return self.rng.choice([-1, -1000, -10**6, 10**12, 2**40, -2**33, 2**63 - 1, -2**63, 2**62, -2**62 - 5, 2**63 - 1000])
        return self.rng.choice([0, 0, 1, 9, 99, 999, 1000, 999999, 10**6, 10**9, self.rng.randint(0, 5000)])

    def name(self):
        return "/".join(self.rng.choice(self.parts) for _ in range(self.rng.choice([1, 1, 2, 2, 3, 4])))

    def shape(self):
        rng = self.rng
        return rng.choice([None, [], [1], [2, 3], [4, -1], [-1], [0], [7, 1, 5], [1000, 1000]])

    def graph(self):
        rng = self.rng
        names = [self.name() for _ in range(rng.choice([0, 1, 2, 5, 10, 20, 40]))]
        if rng.random() < 0.3:
            names += ["gradients/%s_grad/%s" % (n, rng.choice("xyz")) for n in names if rng.random() < 0.5]
        if rng.random() < 0.7:                  # edges point back only
            names = list(dict.fromkeys(names))
        return [self.definition(name, names[:i] if rng.random() < 0.9 else names) for i, name in enumerate(names)]

    def definition(self, name, sources):
        rng = self.rng
        inputs = []
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3, 6])):
            if rng.random() < 0.03:
                inputs.append("missing")
            elif sources:
                source = rng.choice(sources)
                if ":" in source or source.startswith("^"):     # the first is refused, the second means another
                    continue
                inputs.append(rng.choice(["", "", "", "^"]) + source + rng.choice(["", "", "", ":0", ":1", ":3", ":-1", ":2147483647"]))
        made = {"name": name, "op": rng.choice(OPS), "inputs": inputs}
        if rng.random() < 0.3:
            made["shape"] = self.shape()
        if rng.random() < 0.6:
            made["output_shapes"] = [self.shape() for _ in range(rng.randint(0, 3))]
        if rng.random() < 0.2:
            made["data_format"] = rng.choice(["NHWC", "NCHW"])
        return made

    def op_log(self, names):
        rng, entries = self.rng, []
        frames = [(rng.choice(FILES), rng.choice([rng.randint(1, 30), rng.randint(1, 30), rng.choice(LINES)]), rng.choice(FUNCTIONS),
                   rng.choice([-1, 0, 3, *LINES])) for _ in range(8)]
        deep = [rng.choice(frames) for _ in range(rng.choice([70, 130]))] if rng.random() < 0.1 else []
        for name in names:
            if rng.random() < 0.8:
                traced = [rng.choice(frames) for _ in range(rng.randint(0, 6))] if rng.random() < 0.8 else None
                if deep and traced:
                    traced = deep[:rng.choice([len(deep), rng.randint(0, len(deep))])] + traced
                types = rng.sample(["_trainable_variables", "tt", "é", "a|b"], rng.randint(0, 2))
                entries.append({"name": name, "types": types, "float_ops": rng.choice([0, 1, 1000, self.size()]), "frames": traced})
        if rng.random() < 0.3:
            entries += rng.sample(entries, min(len(entries), 2))
            entries.append({"name": "nobody", "types": [], "float_ops": 1, "frames": None})
        return entries

    def record(self, name):
        rng = self.rng
        start = rng.choice([0, -5, -2**63]) if rng.random() < 0.05 else rng.randint(1, 100000)
        dur = max(-10**15, min(self.size(), 10**15))        # of more, nanoseconds hold the nearest
        if not self.wild or rng.random() < 0.5:
            dur = max(0, dur)
        return {
            "name": name + rng.choice(["", "", "", ":Mul", ":"]), "start": start, "dur": dur,
            "memory": [{"name": rng.choice(ALLOCATORS), "total": self.size(), "peak": self.size(),
                        "live": signed(self.size() * rng.choice([1, 1, -1])), "in_use": self.size(),
                        "records": [(rng.randint(0, 100000), signed(self.size() * rng.choice([1, -1])))
                                    for _ in range(rng.choice([0, 0, 1, 3]))]} for _ in range(rng.choice([0, 1, 1, 2]))],
            "outputs": [None if rng.random() < 0.1 else (self.size(), self.size()) for _ in range(rng.choice([0, 1, 2]))],
            "memory_stats": rng.choice([None, (self.size(), self.size())]),
        }

    def step(self, names):
        rng = self.rng
        if rng.random() < 0.05:
            return None
        names = names + ["made_by_the_run", "_SOURCE", "edge_MEMCPYHtoD", "RecvTensor", "other/made", ":"][:rng.randint(0, 6)]
        devices = []
        for device in rng.choices(self.devices, k=rng.randint(0, 4)):
            devices.append((device, [self.record(rng.choice(names)) for _ in range(rng.choice([0, 1, 5, 30]))] if names else []))
        return devices

    def checkpoint(self, names, v1):
        rng, tensors = self.rng, {}
        for name in [n for n in names if rng.random() < 0.4 and n] + ["not_in_the_graph"]:
            kind = rng.choice(list(IN_V1) if v1 else list(TENSORS))
            dims = rng.choice([[], [0], [1], [3], [2, 2], [2, 0], [0, 2], [2, 3, 2], [100, 40], [1, 1, 1, 1], [300, 300]])
            many = 1
            for d in dims:
                many *= d
            tensors[name] = (kind, dims, [self.element(kind) for _ in range(many)])
        return tensors

    def element(self, kind):
        rng = self.rng
        if kind == "string":
            return rng.choice([b"", b"x", b"long " * 5, "é".encode()])
        if kind not in SHOWN:
            return (1, 2) if kind.startswith("complex") else 1
        if kind in ("int32", "int64"):
            return rng.choice([rng.randint(-2**31, 2**31 - 1), -2**31, 2**31 - 1] + [2**63 - 1, -2**63] * (kind == "int64"))
        value = rng.choice([0.0, 1.5, -2.25, 1234567.0, 1e10, -1e-7, 0.005, 123.456, 1e20, -0.0, 1e38, float("inf"), float("-inf"), 1e-40,
                            999999.5, 123456.5, 0.125, 1e300 if kind == "double" else 2.5])
        return struct.unpack("<f", struct.pack("<f", value))[0] if kind == "float" else value

    def model(self):
        graph, v1 = self.graph(), self.rng.random() < 0.3
        names = [d["name"] for d in graph]
        steps = self.rng.choice([0, 1, 1, 2, 3])
        return {"graph": graph, "op_log": self.op_log(names) if self.rng.random() < 0.7 else None,
                "steps": [self.step(names) for _ in range(steps)],
                "checkpoint": self.checkpoint(names, v1) if self.rng.random() < 0.2 else None, "v1": v1}


# ---- messages ----

def attr(name, value):
    return sub(1, name) + sub(2, value)


def definition_message(d):
    out = (sub(1, d["name"]) if d["name"] else b"") + sub(2, d["op"]) + b"".join(sub(3, i) for i in d["inputs"])
    return out + b"".join(sub(5, a) for a in attrs_of(d))


def attrs_of(d):
    if "shape" in d:
        yield attr("shape", sub(7, shape_message(d["shape"])))
    if "output_shapes" in d:
        yield attr("_output_shapes", sub(1, b"".join(sub(7, shape_message(s)) for s in d["output_shapes"])))
    if "data_format" in d:
        yield attr("data_format", sub(2, d["data_format"]))


def graph_message(graph):
    return b"".join(sub(1, definition_message(d)) for d in graph)


def quoted(text):
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else "\\%03o" % b for b in text.encode()) + '"'


def shape_text(shape):
    return "unknown_rank: true" if shape is None else " ".join("dim { size: %d }" % d for d in shape)


def graph_text(graph):
    out = []
    for d in graph:
        lines = ["name: " + quoted(d["name"]), "op: " + quoted(d["op"])] + ["input: " + quoted(i) for i in d["inputs"]]
        if "shape" in d:
            lines.append('attr { key: "shape" value { shape { %s } } }' % shape_text(d["shape"]))
        if "output_shapes" in d:
            lines.append('attr { key: "_output_shapes" value { list { %s } } }' %
                         " ".join("shape { %s }" % shape_text(s) for s in d["output_shapes"]))
        if "data_format" in d:
            lines.append('attr { key: "data_format" value { s: %s } }' % quoted(d["data_format"]))
        out.append("node {\n  " + "\n  ".join(lines) + "\n}\n")
    return "".join(out).encode()


class Strings:
    """The table of an op log: half of the frames spell their names out, the others name them by number."""

    def __init__(self, rng):
        self.rng, self.ids = rng, {}

    def trace(self, frame):
        file, line, function, first = frame
        out = num(2, line) + some(5, first)
        for text, inline, by_id in ((file, 1, 6), (function, 3, 7)):
            if text and self.rng.random() < 0.5:
                out += sub(inline, text)
            else:
                out += num(by_id, self.ids.setdefault(text, len(self.ids)))
        return out

    def code(self, frames):
        return b"".join(sub(1, self.trace(frame)) for frame in frames)

    def table(self, field):
        return b"".join(sub(field, num(1, i) + sub(2, text)) for text, i in self.ids.items())


def op_log_message(entries, rng):
    strings = Strings(rng)
    out = b""
    for e in entries:
        code = b"" if e["frames"] is None else sub(4, strings.code(e["frames"]))
        out += sub(1, sub(1, e["name"]) + some(2, e["float_ops"]) + b"".join(sub(3, t) for t in e["types"]) + code)
    return out + strings.table(2)


def record_message(r):
    out = sub(1, r["name"]) + some(2, r["start"]) + some(4, r["dur"])
    for m in r["memory"]:
        out += sub(6, sub(1, m["name"]) + some(2, m["total"]) + some(3, m["peak"]) + some(4, m["live"]) + some(5, m["in_use"]) +
                   b"".join(sub(6, some(1, at) + some(2, size)) for at, size in m["records"]))
    for i, o in enumerate(r["outputs"]):
        out += sub(7, some(1, i) + sub(3, b"" if o is None else sub(4, some(1, o[0]) + some(2, o[1]))))
    if r["memory_stats"]:
        out += sub(12, some(1, r["memory_stats"][0]) + some(3, r["memory_stats"][1]))
    return out


def step_message(devices):
    if devices is None:
        return sub(3, b"")      # a graph, but no times
    return sub(1, b"".join(sub(1, sub(1, device) + b"".join(sub(2, record_message(r)) for r in records))
                           for device, records in devices))


def record_text(r):
    out = "node_name: %s all_start_micros: %d op_end_rel_micros: %d\n" % (quoted(r["name"]), r["start"], r["dur"])
    for m in r["memory"]:
        out += "memory { allocator_name: %s total_bytes: %d peak_bytes: %d live_bytes: %d allocator_bytes_in_use: %d %s }\n" % (
            quoted(m["name"]), m["total"], m["peak"], m["live"], m["in_use"],
            " ".join("allocation_records { alloc_micros: %d alloc_bytes: %d }" % record for record in m["records"]))
    for i, o in enumerate(r["outputs"]):
        described = "" if o is None else "allocation_description < requested_bytes: %d, allocated_bytes: %d >" % o
        out += "output { slot: %d tensor_description { %s } }\n" % (i, described)
    if r["memory_stats"]:
        out += "memory_stats { temp_memory_size: %d; persistent_memory_size: %d }\n" % r["memory_stats"]
    return out


def step_text(devices):
    return ("step_stats {\n" + "".join("dev_stats {\ndevice: %s\n%s}\n" % (
        quoted(device), "".join("node_stats: {\n%s}\n" % record_text(r) for r in records)) for device, records in devices) + "}\n").encode()


# ---- ProfileProto ----


def entry(field, key, value):
    return sub(field, (num(1, key) if isinstance(key, int) else sub(1, key)) + value)


def times_message(field, lists):
    return b"".join(entry(field, device, sub(2, b"".join(sub(1, packed(1, t)) for t in times))) for device, times in lists.items())


def exec_message(e):
    out = some(1, e.run) + some(2, e.first_start) + some(3, e.latest_end)
    out += times_message(4, e.accelerator) + times_message(5, e.cpu) + b"".join(sub(6, d) for d in sorted(e.devices))
    for m in e.memory:
        temp, persistent = (2, 3) if m["on_host"] else (4, 5)
        out += sub(7, some(1, m["at"]) + some(temp, m["temp"]) + some(persistent, m["persistent"]) + some(6, m["bytes"]) +
                   some(7, m["peak_bytes"]) + some(8, m["residual_bytes"]) + some(9, m["output_bytes"]) + some(10, m["in_use"]))
    return out + b"".join(sub(11, some(1, at) + some(2, size)) for at, size in e.allocations)


def vary_profile(store, rng):
    """What a profile can say and run metadata cannot."""
    numbers = rng.sample([-2**63, -3, -1, 0, 1, 2, 3, 5, 100, 2**31, 2**40, 2**63 - 1], len(store.steps))
    renamed = dict(zip(sorted(store.steps), rng.choice([sorted(store.steps), numbers, sorted(numbers)])))
    store.steps = set(renamed.values()) | ({77} if rng.random() < 0.1 else set())
    store.has_traces = store.has_traces and rng.random() < 0.9
    for node in store.nodes.values():
        node.execs = {renamed[s]: e for s, e in node.execs.items()}
        node.indexes = sorted(rng.sample(range(2 * len(node.inputs)), len(node.inputs))) if rng.random() < 0.2 else node.indexes
        if rng.random() < 0.1:
            node.types.discard(rng.choice([node.op, node.device]))
        for e in node.execs.values():
            if rng.random() < 0.2:
                e.run, e.latest_end = rng.choice([0, 1, 7, -2, 10**6]), rng.choice([0, 5, 10**6])


def profile_message(store, rng):
    """What WriteProfile would write; numbers of nodes are shuffled, because nothing says that they count up."""
    strings, ids = Strings(rng), {}
    for number, name in enumerate(rng.sample(sorted(store.nodes), len(store.nodes))):
        ids[name] = number * 7 + 3
    out = b""
    for name in rng.sample(sorted(store.nodes), len(store.nodes)):
        n = store.nodes[name]
        edges = list(zip(n.indexes, n.inputs))
        body = sub(1, n.name) + b"".join(entry(2, i, num(2, ids[s])) for i, s in rng.sample(edges, len(edges)))
        body += packed(4, n.shape) if rng.random() < 0.5 else b"".join(num(4, dim) for dim in n.shape)
        body += b"".join(sub(5, t) for t in sorted(n.types - {"_checkpoint_variables"})) + (sub(6, n.device) if n.device else b"")
        body += some(8, n.float_ops) + sub(9, n.op)
        if n.frames is not None:
            body += sub(10, strings.code(n.frames))
        body += b"".join(entry(11, k, sub(2, sub(2, v))) for k, v in n.attrs.items())
        steps = rng.sample(sorted(n.execs), len(n.execs))
        body += b"".join(entry(12, step, sub(2, exec_message(n.execs[step]))) for step in steps)
        body += num(13, ids[name]) + b"".join(entry(14, ids[s], num(2, port)) for s, port in n.ports.items())
        body += b"".join(entry(15, i, sub(2, packed(1, dims))) for i, dims in n.output_shapes.items())
        out += entry(1, ids[name], sub(2, body))
    return out + some(2, int(store.has_traces)) + packed(3, sorted(store.steps)) + strings.table(4) + some(5, int(store.miss_stream))


# ---- schemas, for those who write the same differently ----

SHAPE = {2: (MANY, {})}
ATTR = {1: (WHOLE, {7: (MANY, SHAPE)}), 7: (WHOLE, SHAPE)}
NODE_DEF = {3: TEXTS, 5: (MANY, {1: TEXTS, 2: (WHOLE, ATTR)})}
GRAPH = {1: (MANY, NODE_DEF), 4: (ONE, {})}
CODE = {1: (MANY, {})}
STRINGS = {}
OP_LOG = {1: (MANY, {3: TEXTS, 4: (WHOLE, CODE)}), 2: (MANY, STRINGS)}
OUTPUT = {3: (ONE, {2: (ONE, SHAPE), 4: (ONE, {})})}
RECORD = {6: (MANY, {6: (MANY, {})}), 7: (MANY, OUTPUT), 12: (ONE, {})}
STEP_STATS = {1: (MANY, {1: TEXTS, 2: (MANY, RECORD)})}       # of a device all read the first name
RUN_METADATA = {1: (ONE, STEP_STATS), 3: (MANY, {})}
TUPLE = {1: NUMBERS}
EXEC_TIMES = {2: (WHOLE, {1: (MANY, TUPLE)})}
EXEC = {4: (MANY, EXEC_TIMES), 5: (MANY, EXEC_TIMES), 6: TEXTS, 7: (MANY, {}), 11: (MANY, {})}
PROFILE_NODE = {2: (MANY, {}), 4: NUMBERS, 5: TEXTS, 10: (WHOLE, CODE), 11: (MANY, {1: TEXTS, 2: (WHOLE, ATTR)}), 12: (MANY, {2: (WHOLE, EXEC)}), 14: (MANY, {}),
                15: (MANY, {2: (WHOLE, TUPLE)}), 16: (MANY, {2: (WHOLE, TUPLE)})}
PROFILE = {1: (MANY, {2: (WHOLE, PROFILE_NODE)}), 3: NUMBERS, 4: (MANY, STRINGS)}


def scrambled(message, schema, rng):
    return Scrambler(rng).message(message, schema) if rng.random() < 0.4 else message


class Files:
    """Writes a model into a folder; `flags` are tfprof's."""

    def __init__(self, folder, model, rng):
        self.folder, self.flags, self.paths = folder, [], []
        graph = graph_text(model["graph"]) if rng.random() < 0.3 else scrambled(graph_message(model["graph"]), GRAPH, rng)
        self.flags.append("--graph_path=" + self.write("graph", graph))
        if model["op_log"] is not None:
            self.flags.append("--op_log_path=" + self.write("op_log", scrambled(op_log_message(model["op_log"], rng), OP_LOG, rng)))
        steps = [self.write("step%d" % i, step_text(devices) if devices and rng.random() < 0.2 else scrambled(step_message(devices), RUN_METADATA, rng))
                 for i, devices in enumerate(model["steps"])]
        if steps:
            self.flags.append("--run_meta_path=" + ",".join(steps))
        self.checkpoint = []
        if model["checkpoint"] is not None:
            prefix = os.path.join(folder, "ckpt%d" % (model["v1"]))
            if model["v1"]:
                write_v1(prefix, model["checkpoint"])
            else:
                write_checkpoint(prefix, model["checkpoint"], rng)
            self.checkpoint = ["--checkpoint_path=" + prefix]

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(content)
        self.paths.append(path)
        return path
