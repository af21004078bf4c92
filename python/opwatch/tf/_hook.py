"""ProfilerHook: writes the timeline of a step now and then, from a monitored session or an estimator."""
import collections
import logging
import os
import socket
import struct
import sys
import time

from ._messages import field, message, serialized, varint
from ._timeline import Timeline

_log = logging.getLogger("opwatch")

SessionRunArgs = collections.namedtuple("SessionRunArgs", ("fetches", "feed_dict", "options"))
SessionRunArgs.__new__.__defaults__ = (None, None)


class _Timer:
    """Triggers every so many steps or seconds, never twice for a step."""

    def __init__(self, every_steps, every_secs):
        self._steps, self._secs = every_steps, every_secs
        self._last_step = self._last_time = None

    def should_trigger(self, step):
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._secs is not None:
            return time.time() >= self._last_time + self._secs
        return step >= self._last_step + self._steps

    def arm(self, step):
        self._last_step, self._last_time = step, time.time()


def _tensorflow_part(*path):
    found = sys.modules.get("tensorflow")
    for part in path:
        found = getattr(found, part, None)
    return found


class ProfilerHook(_tensorflow_part("compat", "v1", "train", "SessionRunHook") or object):
    """Saves output_dir/timeline-<step>.json every save_steps steps or save_secs seconds, and the RunMetadata in
    an event file beside, under the tag step_<step>.

    Open the directory with opwatch: every file is a step.
    """

    def __init__(self, save_steps=None, save_secs=None, output_dir="", show_dataflow=True, show_memory=False,
                 global_step=None):
        if (save_steps is None) == (save_secs is None):
            raise ValueError("exactly one of save_steps and save_secs must be given")
        self._output_dir = os.fspath(output_dir)
        self._timer = _Timer(save_steps, save_secs)
        self._show_dataflow, self._show_memory = show_dataflow, show_memory
        self._global_step = global_step
        self._next_step = None
        self._traced = False
        self._events = None

    def begin(self):
        """Before the session is made."""
        self._next_step = None
        if self._global_step is None:
            get = _tensorflow_part("compat", "v1", "train", "get_global_step")
            self._global_step = get() if get else None
        if self._global_step is None:
            raise RuntimeError("Global step should be created to use ProfilerHook.")

    def after_create_session(self, session, coord):
        """Nothing to be done then."""

    def before_run(self, run_context):
        """Asks for the global step, and for a trace when it is time."""
        self._traced = self._next_step is not None and self._timer.should_trigger(self._next_step)
        options = message("RunOptions")(trace_level=3) if self._traced else None
        make = _tensorflow_part("compat", "v1", "train", "SessionRunArgs") or SessionRunArgs
        return make({"global_step": self._global_step}, options=options)

    def after_run(self, run_context, run_values):
        """Writes what was traced."""
        stale = int(run_values.results["global_step"])
        if self._next_step is None:
            self._timer.arm(stale)
        step = stale + 1
        if self._traced:
            step = int(run_context.session.run(self._global_step))
            self._timer.arm(step)
            self._save(step, run_values.run_metadata)
        self._next_step = step + 1

    def end(self, session):
        """After the last run."""
        if self._events:
            self._events.close()
            self._events = None

    def _save(self, step, run_metadata):
        path = os.path.join(self._output_dir, "timeline-%d.json" % step)
        _log.info("Saving timeline for %d into '%s'.", step, path)
        if self._output_dir:
            os.makedirs(self._output_dir, exist_ok=True)
        text = Timeline(run_metadata.step_stats).generate_chrome_trace_format(self._show_dataflow, self._show_memory)
        with open(path + ".tmp", "w") as file:
            file.write(text)
        os.replace(path + ".tmp", path)
        if self._events is None:
            self._events = _EventFile(self._output_dir)
        self._events.add_run_metadata("step_%d" % step, step, serialized(run_metadata, "run_metadata"))


# ---- event files ----

def _table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def _masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xff]
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


class _EventFile:
    """An events.out.tfevents file, which TensorBoard and opwatch read."""

    def __init__(self, directory):
        name = "events.out.tfevents.%010d.%s" % (time.time(), socket.gethostname())
        self._file = open(os.path.join(directory, name), "ab")
        self._event(0, field(3, b"brain.Event:2"))

    def _event(self, step, what):
        data = b"\x09" + struct.pack("<d", time.time()) + b"\x10" + varint(step) + what
        length = struct.pack("<Q", len(data))
        self._file.write(length + struct.pack("<I", _masked_crc(length)) + data
                         + struct.pack("<I", _masked_crc(data)))
        self._file.flush()

    def add_run_metadata(self, tag, step, data):
        self._event(step, field(8, field(1, tag.encode()) + field(2, data)))

    def close(self):
        self._file.close()
