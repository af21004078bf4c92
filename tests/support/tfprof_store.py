"""What tfprof keeps of a model: a slow and plain transcription of its rules, apart from the program.

Graphs, op logs, run metadata and checkpoints are given as Python values (tfprof_random.py makes them and writes the files).
Nothing here is fast or saves memory; each rule is one line that can be compared with the manual.
"""
import re

CANONICAL = re.compile(r".*/(device:gpu|gpu|device:cpu|cpu|device:sycl):\d+", re.ASCII)
ROOT = "_TFProfRoot"
BYTES = ["bytes", "peak_bytes", "residual_bytes", "output_bytes"]
TIMES = ["micros", "accelerator_micros", "cpu_micros"]
METRICS = BYTES + TIMES + ["params", "float_ops", "run"]
TENSORS = {"float": 1, "double": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9, "bool": 10,
           "qint8": 11, "quint8": 12, "qint32": 13, "bfloat16": 14, "qint16": 15, "quint16": 16, "uint16": 17, "complex128": 18, "half": 19,
           "uint32": 22, "uint64": 23}


def signed(value):
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def raw(text):
    """As bytes, by which everything is ordered. Names may have been cut inside of a character."""
    return text.encode(errors="surrogateescape")


def lower(text):
    """ASCII only."""
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)


class Exec:
    """One node in one step."""

    def __init__(self):
        self.run = self.first_start = self.latest_end = 0
        self.accelerator, self.cpu = {}, {}     # device: [(start, duration)]
        self.memory = []                        # {metric: bytes}
        self.allocations = []                   # (time, bytes)
        self.devices = set()

    def value(self, metric):
        if metric == "run":
            return self.run
        if metric in BYTES:
            return sum(record[metric] for record in self.memory)
        accelerator = sum(d for times in self.accelerator.values() for _, d in times)
        cpu = sum(d for times in self.cpu.values() for _, d in times)
        return {"micros": accelerator + cpu, "accelerator_micros": accelerator, "cpu_micros": cpu}[metric]


class Node:
    def __init__(self, name, op, number):
        self.name, self.op, self.number = name, op, number
        self.types = {op}
        self.shape = []
        self.output_shapes = {}
        self.inputs = []            # names, in order of
        self.indexes = []           # these, which count up unless a profile says otherwise
        self.ports = {}             # name of the source: the port of its last mention
        self.attrs = {}
        self.float_ops = 0
        self.frames = None          # [(file, line, function, first line of the function)]
        self.device = None
        self.execs = {}

    def metric(self, metric, step):
        if metric == "params":
            return self.params()
        if metric == "float_ops":
            return signed(self.float_ops * self.metric("run", step)) if self.execs else self.float_ops
        if step >= 0:
            return signed(self.execs[step].value(metric)) if step in self.execs else 0
        if not self.execs:
            return 0
        total = sum(e.value(metric) for e in self.execs.values())
        return signed((total & (1 << 64) - 1) // len(self.execs))     # the division has no sign

    def params(self):
        product = 1 if self.shape else 0
        for dim in self.shape:
            if dim < 0:
                return 0
            product *= dim
        return signed(product)


def shape_dims(shape):
    """None is an unknown rank; a scalar is one element."""
    return [] if shape is None else list(shape) or [1]


class Store:
    def __init__(self):
        self.nodes, self.steps, self.covered = {}, set(), set()
        self.has_traces = self.miss_stream = False
        self.checkpoint, self.v1 = None, False      # {name: (type, dims, values)}
        self.said = []              # on standard error

    def in_order(self):
        return [self.nodes[name] for name in sorted(self.nodes, key=raw)]

    def add_graph(self, graph):
        """[{name, op, inputs, shape, output_shapes, data_format}]"""
        for definition in graph:
            if definition["name"] in self.nodes:
                continue
            node = Node(definition["name"], definition["op"], len(self.nodes))
            self.nodes[node.name] = node
            if "shape" in definition:
                node.shape = shape_dims(definition["shape"])
            for i, shape in enumerate(definition.get("output_shapes", [])):
                node.output_shapes[i] = shape_dims(shape)
            node.attrs = {k: v for k, v in definition.items() if k == "data_format"}
            for text in definition["inputs"]:
                source, _, port = text.partition(":")
                source = source[1:] if source.startswith("^") else source
                node.indexes.append(len(node.inputs))
                node.inputs.append(source)
                node.ports[source] = int(port or 0)

    def add_op_log(self, entries):
        """[{name, types, float_ops, frames or None}]; frames are resolved already"""
        for entry in entries:
            node = self.nodes.get(entry["name"])
            if not node:
                continue
            node.types.update(entry["types"])
            node.float_ops = entry["float_ops"] or node.float_ops
            if entry["frames"] is not None:
                self.has_traces = True
                if node.frames is None:     # also when the first had no frame
                    node.frames = entry["frames"]

    def add_checkpoint(self, tensors):
        self.checkpoint = tensors
        for name in tensors:
            if name in self.nodes:
                self.nodes[name].types.add("_checkpoint_variables")

    def add_step(self, step, devices):
        """[(device, [record])]; returns the coverage. devices None: no step_stats"""
        if devices is None:
            self.said.append("Invalid RunMetadata for step %d" % step)
        else:
            self.steps.add(step)
            accelerators = [d for d in (lower(device) for device, _ in devices) if "gpu" in d or "sycl" in d]
            if accelerators and not any("stream:all" in d for d in accelerators):
                self.miss_stream = True
            for device, records in devices:
                for record in records:
                    self.add_record(step, lower(device), record)
        return len(self.covered) / (len(self.nodes) + 1e-10)

    def add_record(self, step, device, record):
        name = record["name"].split(":")[0]
        node = self.nodes.get(name)
        if node:
            self.covered.add(name)
        elif name in ("RecvTensor", "_SOURCE") or "MEMCPY" in name:
            return
        else:
            node = self.nodes[name] = Node(name, name, len(self.nodes))
        self.account(node, step, device, record)

    def account(self, node, step, device, record):
        canonical = bool(CANONICAL.fullmatch(device))
        if canonical:
            if node.device is None:
                node.device = device
                node.types.add(device)
            if node.device != device:
                return
        run = node.execs.setdefault(step, Exec())
        run.devices.add(device)
        start, dur = record["start"], record["dur"]
        if start > 0:
            lasts = dur or 1
            run.first_start = min(run.first_start or start, start)
            run.latest_end = max(run.latest_end, signed(start + lasts))
            if "stream:all" in device:
                run.accelerator.setdefault(device, []).append((start, lasts))
            elif canonical:
                run.cpu.setdefault(device, []).append((start, lasts))
                run.run += 1
        if device == node.device:
            self.account_memory(run, device, record)

    def account_memory(self, run, device, record):
        if record["start"] <= 0:
            self.said.append("%s has no start time, skipping" % record["name"])
            return
        temp, persistent = record["memory_stats"] or (0, 0)
        of_gpu = [m for m in record["memory"] if "GPU" in m["name"]]
        for m in of_gpu:
            run.allocations += m["records"]
        run.memory.append({
            "at": signed(record["start"] + record["dur"]),
            "in_use": max([0] + [m["in_use"] for m in of_gpu]),
            "on_host": "cpu" in device, "temp": temp, "persistent": persistent,
            "bytes": signed(sum(m["total"] for m in record["memory"]) + temp + persistent),
            "peak_bytes": signed(sum(m["peak"] for m in record["memory"]) + temp + persistent),
            "residual_bytes": signed(sum(m["live"] for m in record["memory"]) + persistent),
            "output_bytes": signed(sum(max(o) for o in record["outputs"] if o is not None)),
        })

    def input_shapes(self, node):
        """[dims or nothing] of the inputs."""
        shapes = []
        for source in node.inputs:
            known = self.nodes.get(source)
            shapes.append(known.output_shapes.get(node.ports[source], []) if known else [])
        return shapes
