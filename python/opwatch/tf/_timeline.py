"""timeline.Timeline: traced steps for chrome://tracing, as TensorFlow's class draws them."""
import collections
import json

from .. import _opwatch
from ._messages import field, serialized

AllocationMaximum = collections.namedtuple("AllocationMaximum", ("timestamp", "num_bytes", "tensors"))
StepStatsAnalysis = collections.namedtuple("StepStatsAnalysis", ("chrome_trace", "allocator_maximums"))


class ChromeTrace:
    """A trace that was drawn."""

    def __init__(self, text):
        self._text = text

    def format_to_string(self, pretty=False):
        """The trace as JSON, on many lines or on one."""
        return self._text if pretty else json.dumps(json.loads(self._text), separators=(",", ":"))


class Timeline:
    """Timeline(run_metadata.step_stats).generate_chrome_trace_format() gives the text of a timeline.json.

    step_stats: a StepStats or its bytes. graph is not needed and kept for those who pass it.
    """

    def __init__(self, step_stats, graph=None):
        del graph
        self._run_meta = field(1, serialized(step_stats, "step_stats"))

    def _draw(self, show_dataflow, show_memory):
        native = _opwatch.Profile.new({"infer": False})
        native.add_memory("step_stats", self._run_meta, "runmeta", 0)
        native.freeze()
        return native.timeline_memory({"show_dataflow": show_dataflow, "show_memory": show_memory})

    def generate_chrome_trace_format(self, show_dataflow=True, show_memory=False):
        """The JSON text for chrome://tracing."""
        return self._draw(show_dataflow, show_memory)[0].decode("ascii")

    def analyze_step_stats(self, show_dataflow=True, show_memory=True):
        """(the trace, per allocator when it held most: a time, the bytes and the tensors)"""
        text, changes = self._draw(show_dataflow, show_memory)
        return StepStatsAnalysis(ChromeTrace(text.decode("ascii")), _maximums(changes))


def _maximums(changes):
    maximums, state = {}, {}
    for allocator, timestamp, num_bytes, tensor in changes:
        total, live = state.setdefault(allocator, [0, set()])
        total += num_bytes
        if num_bytes < 0:
            live.discard(tensor)
        else:
            live.add(tensor)
        state[allocator][0] = total
        best = maximums.get(allocator)
        if total > (best.num_bytes if best else 0):
            maximums[allocator] = AllocationMaximum(timestamp, total, set(live))
        elif best is None:
            maximums[allocator] = AllocationMaximum(0, 0, set())
    return maximums
