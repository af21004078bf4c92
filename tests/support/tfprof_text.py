"""The text of tfprof's views (tfprof_views.py): documentation, legend, lines, tensors; and its advice."""
from tfprof_store import BYTES, TENSORS, TIMES, raw, signed
from tfprof_views import VIEWS, has_lines

WARNING = ("\n\nFound accelerator operation but misses accelerator stream stats!\n\nIt's likely a gpu tracing issue rather than "
           "tf-profiler issue.\nIf you found your operation missing accelerator time, consider filing a bug to xprof-dev@!\n\n")
SCOPE_DOC = "scope: The nodes in the model graph are organized by their names, which is hierarchical like filesystem."
COMMAND_DOC = {
    "scope": SCOPE_DOC,
    "graph": SCOPE_DOC,
    "code": "code: When python trace is available, the nodes are python lines and their are organized by the python call stack.",
    "op": "op: The nodes are operation kernel type, such as MatMul, Conv2D. Graph nodes belonging to the same type are aggregated "
          "together.",
}
CPU_DOC = ("cpu execution time: The time from the start to the end of the operation. It's the sum of actual cpu run time plus the "
           "time that it spends waiting if part of computation is launched asynchronously.")
ACCELERATOR_DOC = ("accelerator execution time: Time spent executing on the accelerator. This is normally measured by the actual "
                   "hardware library.")
SELECT_DOC = {
    "accelerator_micros": ACCELERATOR_DOC,
    "bytes": "requested bytes: The memory requested by the operation, accumulatively.",
    "cpu_micros": CPU_DOC,
    "device": "device: which device is placed on.",
    "float_ops": "flops: Number of float operations. Note: Please read the implementation for the math behind it.",
    "input_shapes": "input shape: The shape of input tensors",
    "micros": "total execution time: Sum of accelerator execution time and cpu execution time.\n" + CPU_DOC + "\n" + ACCELERATOR_DOC,
    "occurrence": "occurrence: The number of times it occurs",
    "op_types": "op_types: The attributes of the operation, includes the Kernel name device placed on and user-defined strings.",
    "output_bytes": "output bytes: The memory that is output from the operation (not necessarilty allocated by the operation)",
    "params": "param: Number of parameters (in the Variable).",
    "peak_bytes": "peak bytes: The peak amount of memory that the operation is holding at some point.",
    "residual_bytes": "residual bytes: The memory not de-allocated after the operation finishes.",
    "tensor_value": "tensor_value: Not supported now.",
}
CAPTIONS = {
    "params": "# parameters", "float_ops": "# float_ops", "bytes": "requested bytes", "peak_bytes": "peak bytes",
    "residual_bytes": "residual bytes", "output_bytes": "output bytes", "micros": "total execution time",
    "accelerator_micros": "accelerator execution time", "cpu_micros": "cpu execution time", "device": "assigned devices",
    "op_types": "op types", "input_shapes": "input shapes",
}
NUMBERS_FIRST = ["params", "float_ops", *BYTES, *TIMES]
BYTES_FIRST = [*BYTES, *TIMES, "params", "float_ops"]
LAST = ["device", "op_types", "occurrence", "input_shapes"]


def count(n):
    return "%d" % n if n < 1000 else "%.2fk" % (n / 1e3) if n < 1000000 else "%.2fm" % (n / 1e6) if n < 10**9 else "%.2fb" % (n / 1e9)


def micros(n):
    return "%dus" % n if n < 1000 else "%.2fms" % (n / 1e3) if n < 1000000 else "%.2fsec" % (n / 1e6)


def memory(n):
    return "%dB" % n if n < 1000 else "%.2fKB" % (n / 1e3) if n < 1000000 else "%.2fMB" % (n / 1e6)


def written(metric, n):
    return memory(n) if metric in BYTES else micros(n) if metric in TIMES else count(n)


UNITS = {"params": " params", "float_ops": " flops"}


class Text:
    def __init__(self, store, command, options):
        self.store, self.command, self.options = store, command, options
        self.select = set(options["select"])
        if "micros" in self.select:
            self.columns = self.select | {"accelerator_micros", "cpu_micros"}
        else:
            self.columns = self.select
        self.view = VIEWS[command](store, options).build()
        self.said = self.view.said

    def order(self):
        first = NUMBERS_FIRST if self.command in ("scope", "graph") else BYTES_FIRST
        return [c for c in first + LAST if c in self.columns]

    def caption(self, column):
        if column == "occurrence":
            return "op count (run|defined)" if self.command in ("scope", "graph") else "op occurrence (run|defined)"
        return CAPTIONS[column]

    def text(self):
        select = sorted(self.select)
        out = WARNING if self.store.miss_stream else ""
        out += "\nDoc:\n" + COMMAND_DOC[self.command] + "\n"
        out += "\n".join(SELECT_DOC.get(s, "Unknown select: " + s) for s in select) + "\n\nProfile:\n"
        if self.command == "op" and not self.store.nodes:
            return out + self.op_line(self.view.root)
        out += "node name | " + " | ".join(self.caption(c) for c in self.order()) + "\n"
        if self.command == "op":
            return out + "".join(self.op_line(row) for row in self.view.rows)
        return out + self.tree_lines(self.view.root, 0)

    # ---- lines of trees ----

    def tree_lines(self, row, depth):
        fields = self.code_fields(row) if self.command == "code" else self.node_fields(row)
        out = "  " * depth + row.name + " (" + ", ".join(fields) + ")\n"
        if "tensor_value" in self.select:
            out += self.tensor(row)
        return out + "".join(self.tree_lines(child, depth + 1) for child in row.shown)

    def number(self, row, column):
        own = written(column, row.own[column]) if row.accounted else "--"
        return own + "/" + written(column, row.total[column]) + UNITS.get(column, "")

    def node_fields(self, row):
        for column in self.order():
            if column == "params" and row.node and row.node.shape:
                yield "x".join(str(d) for d in row.node.shape)
            if column in row.own:
                yield self.number(row, column)
            elif column == "device":
                if row.node and row.node.device:
                    yield row.node.device
            elif column == "op_types":
                yield "|".join(sorted(row.types, key=raw))
            elif column == "occurrence":
                own = (count(row.own["run"]), "1") if row.accounted else ("--", "--")
                yield "%s/%s|%s/%s" % (own[0], count(row.total["run"]), own[1], count(row.total["defined"]))
            else:
                yield "|".join(self.shapes(row.node)) if row.node else ""

    def shapes(self, node):
        return ["%d:%s" % (i, "x".join(str(d) for d in dims) or "unknown")
                for i, dims in zip(node.indexes, self.store.input_shapes(node))]

    def code_fields(self, row):
        for column in self.order():
            if column in row.own:
                yield self.number(row, column)
            elif column == "device":
                if row.attached:
                    yield "|".join(sorted({n.device or "" for n in row.attached}))
            elif column == "op_types":
                yield "|".join(sorted(set().union(*(n.types for n in row.attached)), key=raw))
            else:
                yield column + " N/A in code view"

    # ---- lines of the op view ----

    def share(self, column, row):
        own, total, root = row.own[column], row.total[column], self.view.root.total[column]
        if (own if column in BYTES else total) <= 0:
            return "(0.00%, 0.00%)"
        def percent(n):
            return "%.2f" % (100.0 * n / root) if root else "-nan" if not n else "inf" if n > 0 else "-inf"
        return "(%s%%, %s%%)" % (percent(total), percent(own))

    def op_line(self, row):
        fields = []
        for column in self.order():
            if column in row.own:
                unit = {"params": " params", "float_ops": " float_ops"}.get(column, "")
                fields.append("%30s" % (written(column, row.own[column]) + unit + " " + self.share(column, row)))
            elif column == "device":
                fields.append("|".join(sorted({n.device or "" for n in row.attached})))
            elif column == "op_types":
                fields.append("|".join(sorted(set().union(*(n.types for n in row.attached)), key=raw)))
            elif column == "occurrence":
                fields.append("%10s" % ("%d|%d" % (row.own["run"], len(row.attached))))
        padding = " " * max(0, 25 - len(raw(row.name)))
        out = row.name + padding + ", ".join(fields) + "\n"
        if "input_shapes" in self.select and row.attached:
            out += "\n" + "\n".join(self.signatures(row)) + "\n\n"
        return out

    def signatures(self, row):
        groups, step = {}, self.options["step"]
        for node in row.attached:
            group = groups.setdefault(",\t".join(self.shapes(node)), [0, 0, 0])
            group[0] += node.metric("run", step)
            group[1] += 1
            group[2] = signed(group[2] + node.metric("micros", step))
        for key in sorted(sorted(groups, key=raw), key=lambda k: -groups[k][0]):
            run, defined, time = groups[key]
            yield "input_type: %s\t(run*%d|defined*%d)\texec_time: %s" % (key, run, defined, micros(time))

    # ---- tensors ----

    def tensor(self, row):
        if self.command == "code":
            self.said.append("code view has no tensor value to show")
            return ""
        if row is self.view.root or self.store.checkpoint is None:
            return ""
        if row.name not in self.store.checkpoint:
            self.said.append(("%s not found in checkpoint file" if self.store.v1 else "Key %s not found in checkpoint") % row.name)
            return ""
        kind, dims, values = self.store.checkpoint[row.name]
        if len(values) > 100000:
            self.said.append("Showing huge tensor, the tool might halt...")
        if kind not in ("float", "double", "int32", "int64", "string"):
            self.said.append("Not Supported type %d" % TENSORS[kind])
            return ""
        text = Brackets(kind, values).render(dims or [len(values)])
        return text + "...omitted from display\n\n" if len(raw(text)) >= 10000 else text


class Brackets:
    def __init__(self, kind, values):
        self.kind, self.values, self.at, self.out = kind, values, 0, b""

    def element(self):
        value = self.values[self.at]
        self.at += 1
        if self.kind == "string":
            return b"'" + value + b"' "
        if self.kind in ("float", "double"):
            return b"%.2f " % float("%g" % value)
        return b"%d " % value

    def render(self, dims):
        self.level(dims)
        return self.out.decode(errors="surrogateescape")

    def level(self, dims):
        self.out += b"["
        for _ in range(dims[0]):
            if len(dims) > 1:
                self.level(dims[1:])
            else:
                self.out += self.element()
        self.out = self.out[:10000] + b"],\n"


# ---- advice ----

ADVICE = {"account_type_regexes": [".*"], "start_name_regexes": [".*"], "show_name_regexes": [".*"], "trim_name_regexes": [],
          "hide_name_regexes": [], "account_displayed_op_only": False, "select": [], "step": -1, "order_by": "micros",
          "min_occurrence": 0, **{"min_" + m: 0 for m in BYTES + TIMES + ["params", "float_ops"]}}


def times_of(numbers):
    return "cpu: %s, accelerator: %s, total: %s" % tuple(micros(numbers[m]) for m in ("cpu_micros", "accelerator_micros", "micros"))


def advice(store):
    said, blocks = [], []
    blocks.append(("AcceleratorUtilizationChecker", utilization(store)))
    blocks.append(("OperationChecker", operations(store)))
    blocks.append(("ExpensiveOperationChecker", expensive(store, said)))
    return "".join("\n%s:\n%s" % (name, "".join(r + "\n" for r in reports)) for name, reports in blocks), said


def accelerator(device):
    return device and ("gpu" in device or "sycl" in device)


def utilization(store):
    for device in sorted({n.device for n in store.nodes.values() if n.execs and accelerator(n.device)}):
        start = end = busy = 0
        for node in store.in_order():
            if node.device != device or not node.execs:
                continue
            last = node.execs[max(node.execs)]
            if last.first_start:
                start = min(start or last.first_start, last.first_start)
            end = max(end, last.latest_end)
            busy += last.value("accelerator_micros")
        if end - start > 0:
            share = busy / (end - start)
            yield "device: %s %sutilization: %.2f" % (device, "" if share >= 0.5 else "low ", share)


def operations(store):
    nodes = store.nodes.values()
    if any("BatchNorm" in n.name for n in nodes) and not any("FusedBatchNorm" in n.types for n in nodes):
        yield "Maybe use faster FusedBatchNorm instead of BatchNorm"
    if any(n.attrs.get("data_format") == "NHWC" and accelerator(n.device) for n in nodes):
        yield "Found operation using NHWC data_format on GPU. Maybe NCHW is faster."


def report(lines):
    """One report, or none when there is nothing to tell."""
    text = "\n".join(lines)
    return [text] if text else []


def expensive(store, said):
    if store.steps:
        view = VIEWS["op"](store, {**ADVICE, "max_depth": 3, "min_micros": 1}).build()
        root = view.root.total["micros"]
        yield from report("top %d operation type: %s, %s (%.2f%%)" %
                          (i + 1, row.name, times_of(row.own), 100.0 * row.own["micros"] / (root + 1e-10))
                          for i, row in enumerate(view.rows[:3]))
    else:
        said += ["Missing RunMetadata info. Skip ExpensiveOperationChecker", "Missing run_meta for ExpensiveOperationChecker"]
    view = VIEWS["scope"](store, {**ADVICE, "max_depth": 100, "min_micros": 100}).build()
    yield from report("top %d graph node: %s, %s" % (i + 1, row.name, times_of(row.own)) for i, row in enumerate(view.root.shown[:3]))
    if not has_lines(store):
        said.append("Missing op_log (code traces) for ExpensiveOperationChecker")
        return
    row = VIEWS["code"](store, {**ADVICE, "max_depth": 100, "min_micros": 1}).build().root
    while len(row.shown) == 1:
        row = row.shown[0]
    if row.shown:
        yield "\n".join(expensive_code(row, 0))


def expensive_code(row, depth):
    if len(row.shown) <= 1 or depth > 3:
        return
    for child in row.shown[:3]:
        if child.total["micros"] >= 1000:
            yield "  " * depth + child.name + ", " + times_of(child.total)
            yield from expensive_code(child, depth + 1)
