"""tf.profiler's pprof_profiler: a traced run as one file per device for go tool pprof.

    pprof_profiler.profile(graph, run_metadata, output_dir)

Laid out as TensorFlow does it, the units included, which say nanoseconds and are microseconds. The pprof output
of the code view (ProfileOptionBuilder.with_pprof_output) shows more.
"""
import gzip
import os
import time

from . import _graph
from ._messages import message

_HIDDEN = ("_SOURCE", "_SINK")


class _Table:
    """Things by number, in the order of their first use."""

    def __init__(self, first):
        self.items, self._numbers, self._first = [], {}, first

    def __call__(self, key, make=None):
        if key not in self._numbers:
            self._numbers[key] = len(self.items) + self._first
            self.items.append(make(self._numbers[key]) if make else key)
        return self._numbers[key]


class _Tables:
    """Shared by the devices of a run: later profiles contain what earlier ones named."""

    def __init__(self):
        self.strings, self.functions, self.locations = _Table(0), _Table(1), _Table(1)
        self.strings("")

    def function(self, file, name, start):
        return self.functions((file, name, start), lambda number: message("Function")(
            id=number, name=self.strings(name), filename=self.strings(file), start_line=start))

    def location(self, caller, callee):
        key = (caller[0], callee[2], caller[1])
        function = self.function(callee[0], callee[2], callee[4] or 0)

        def make(number):
            made = message("Location")(id=number)
            made.line.add(function_id=function, line=caller[1] or 0)
            return made
        return self.locations(key, make)

    def stack(self, frames):
        """Callers of an op, innermost first, beyond the library's own call that makes it."""
        inner = list(reversed(list(frames)))
        below, found = [], False
        for callee, caller in zip(inner, inner[1:]):
            if found:
                below.append(self.location(caller, callee))
            found = found or callee[2] == "apply_op"
        return below


def _profile_of(stats, ops, tables, comment):
    samples = {}
    for node in stats.node_stats:
        op = ops.get(node.node_name)
        frames = list(_graph.frames(op)) if op is not None else []
        if node.node_name in _HIDDEN or not frames:
            continue
        stack = tables.stack(frames)
        sample = samples.get(node.node_name)
        if sample is None:
            sample = samples[node.node_name] = message("Sample")(value=[0, 0, 0])
            for key, value in (("node_name", node.node_name), ("op_type", op.type)):
                sample.label.add(key=tables.strings(key), str=tables.strings(value))
        sample.location_id.extend(stack)
        sample.value[0] += 1
        sample.value[1] += node.all_end_rel_micros
        sample.value[2] += node.op_end_rel_micros - node.op_start_rel_micros
    if not samples:
        return None
    made = message("Profile")()
    for kind, unit in (("count", "count"), ("all_time", "nanoseconds"), ("op_time", "nanoseconds")):
        made.sample_type.add(type=tables.strings(kind), unit=tables.strings(unit))
    made.string_table.extend(tables.strings.items)
    made.sample.extend(samples.values())
    made.function.extend(tables.functions.items)
    made.location.extend(tables.locations.items)
    made.comment.append(len(made.string_table))
    made.string_table.append(comment)
    return made


def get_profiles(graph, run_metadata):
    """A dictionary from device to Profile message."""
    ops = {op.name: op for op in _graph.operations(graph)}
    tables, profiles = _Tables(), {}
    devices = run_metadata.step_stats.dev_stats
    for number, stats in enumerate(devices, 1):
        made = _profile_of(stats, ops, tables, "Device %d of %d: %s" % (number, len(devices), stats.device))
        if made is None:
            print("Not enough data to create profile for device %s. Did you pass RunMetadata to session.run call?"
                  % stats.device)
        else:
            profiles[stats.device] = made
    return profiles


def profile(graph, run_metadata, output_dir=None):
    """Writes a file per device and returns their names; without a directory prints the messages."""
    profiles = get_profiles(graph, run_metadata)
    if not output_dir:
        print("No output directory specified, printing to stdout instead.")
        for made in profiles.values():
            print(made)
        return []
    os.makedirs(output_dir, exist_ok=True)
    stamp, files = time.strftime("%Y%m%d%H%M%S"), []
    for device, made in profiles.items():
        name = device.strip("/").replace("/", "_").replace(":", "_")
        path = os.path.join(output_dir, "%s_%s.pb.gz" % (name, stamp))
        print("Writing profile to %s..." % path)
        with gzip.open(path, "wb") as file:
            file.write(made.SerializeToString())
        files.append(path)
    return files
