"""Op logs: float operations, source lines and trainable variables of a graph, as OpLogProto."""
import os
import sys

from .. import _opwatch
from . import _graph
from ._messages import message, serialized

TRAINABLE_VARIABLES = "_trainable_variables"
REGISTERED_FLOP_STATS = "flops"


class _Strings:
    """Texts by number, in the order of their first use; 0 is "none"."""

    def __init__(self):
        self.numbers = {"none": 0}

    def __call__(self, text):
        return self.numbers.setdefault(text, len(self.numbers)) if text else 0


def _float_ops(graph, run_meta):
    """Float operations by op, computed by the library, and how many ops lack the shapes for it."""
    native = _opwatch.Profile.new({"infer": True})
    native.add_memory("graph", _graph.graph_bytes(graph), "graphdef")
    run = serialized(run_meta, "run_meta")
    if run:
        native.add_memory("run_meta", run, "runmeta", 0)
    native.freeze()
    log = message("OpLogProto").FromString(native.tf_op_log())
    return {entry.name: entry.float_ops for entry in log.log_entries if entry.float_ops}, _incomplete(native)


def _incomplete(native):
    """From the note that the library leaves."""
    notes = native.view("notes", {})
    names = [column[0] for column in notes.schema()]
    rows = (dict(zip(names, notes.row(i))) for i in range(len(notes)))
    return sum(row.get("count", 0) for row in rows if "no float operations" in str(row.get("text", row.get("what", ""))))


def _add_traces(log, entry, op, strings):
    for file, line, function, text, start in _graph.frames(op):
        entry.code_def.traces.add(file_id=strings(file), function_id=strings(function), line_id=strings(text),
                                  lineno=line or -1, func_start_line=start or -1)
    return log


def _default_log(graph, run_meta, add_trace, add_trainable_var):
    log, strings, entries = message("OpLogProto")(), _Strings(), {}
    float_ops, missing = _float_ops(graph, run_meta)
    ops = _graph.operations(graph)
    for op in ops:
        flops = float_ops.get(op.name, 0)
        if not flops and not add_trace:
            continue
        entry = entries[op.name] = log.log_entries.add(name=op.name)
        if flops:
            entry.float_ops = flops
        if add_trace:
            _add_traces(log, entry, op, strings)
    if not ops:  # a definition only: it is unknown where its ops were made
        for name, flops in float_ops.items():
            entries[name] = log.log_entries.add(name=name, float_ops=flops)
    if add_trainable_var:
        for name in _graph.trainable_names(graph):
            if name not in entries:
                entries[name] = log.log_entries.add(name=name)
            entries[name].types.append(TRAINABLE_VARIABLES)
    if missing and run_meta is None:
        sys.stderr.write("%d ops no flops stats due to incomplete shapes.\n" % missing)
    if add_trace:
        for text, number in strings.numbers.items():
            log.id_to_string[number] = text
    return log


def merge_default_op_log(graph, op_log=None, run_meta=None, add_trace=True, add_trainable_var=True):
    """Facts about the ops of a graph, joined with a log of the caller.

    The caller's entries are completed in place: types are appended, float operations and traces are set where
    they have none. Float operations are those that TensorFlow registers, computed by the library.
    """
    if graph is None:
        graph = _graph.default_graph()
    if graph is None:
        return message("OpLogProto")()
    default = _default_log(graph, run_meta, add_trace, add_trainable_var)
    if op_log is None:
        return default
    if isinstance(op_log, (bytes, bytearray)):
        op_log = message("OpLogProto").FromString(bytes(op_log))
    merged = message("OpLogProto")()
    given = {entry.name: entry for entry in op_log.log_entries}
    completed = set()  # whose traces are numbered by our table
    for entry in default.log_entries:
        own = given.get(entry.name)
        if own is None:
            merged.log_entries.add().CopyFrom(entry)
            continue
        own.types.extend(entry.types)
        if not own.float_ops and entry.float_ops > 0:
            own.float_ops = entry.float_ops
        if entry.code_def.traces and not own.code_def.traces:
            own.code_def.MergeFrom(entry.code_def)
            completed.add(entry.name)
    for number, text in default.id_to_string.items():
        merged.id_to_string[number] = text
    for name, entry in given.items():
        copy = merged.log_entries.add()
        copy.CopyFrom(entry)
        if name not in completed:
            _renumber(copy, op_log.id_to_string, merged.id_to_string)
    return merged


def _renumber(entry, texts, known):
    """Texts of a log with a table of its own get numbers in ours. (TensorFlow loses them.)"""
    numbers = {text: number for number, text in known.items()}
    for trace in entry.code_def.traces:
        for part in ("file_id", "function_id", "line_id"):
            text = texts.get(getattr(trace, part)) if texts else None
            if text is None:
                continue
            if text not in numbers:
                numbers[text] = max(known, default=0) + 1
                known[numbers[text]] = text
            setattr(trace, part, numbers[text])


def write_op_log(graph, log_dir, op_log=None, run_meta=None, add_trace=True):
    """Writes the merged log to log_dir/tfprof_log."""
    log = merge_default_op_log(graph, op_log, run_meta, add_trace)
    os.makedirs(log_dir, exist_ok=True)
    path = os.path.join(log_dir, "tfprof_log")
    with open(path + ".tmp", "wb") as file:
        file.write(log.SerializeToString())
    os.replace(path + ".tmp", path)
