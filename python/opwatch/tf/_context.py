"""ProfileContext: traces some of the steps that a program runs, without a change to its loop.

    with ProfileContext("/tmp/train_dir") as pctx:
        train_loop()

Every run of a session is a step. Some are traced and added to a profile, which is dumped at given steps to
files (profile_100) that opwatch and tfprof open.
"""
import os
import random
import sys
import threading

from . import _errors, _graph
from ._messages import message
from ._profiler import Profiler

WARMUP_STEPS = 10
MAX_TRACED_STEPS = 100
_FULL_TRACE = 3

_session_class = None


def use_session(cls):
    """Sets the class whose run() is profiled, for sessions that are not TensorFlow's. None: TensorFlow's."""
    global _session_class
    _session_class = cls


def _base_session():
    if _session_class is not None:
        return _session_class
    module = sys.modules.get("tensorflow.python.client.session")
    if module is None:
        raise _errors.make("InternalError", "ProfileContext profiles TensorFlow's sessions, and TensorFlow is not "
                           "loaded: import it first, or name another class with opwatch.tf.use_session()")
    return module.BaseSession


def _profiled_run(session, fetches, feed_dict=None, options=None, run_metadata=None):
    context, plain = session.profile_context, type(session)._profiler_run_internal
    step, locked = context._begin()
    if not locked:
        context._count()
        return plain(session, fetches, feed_dict, options, run_metadata)
    try:
        if context._is_fast(step):
            context._end()
            locked = False
            return plain(session, fetches, feed_dict, options, run_metadata)
        if context._should_trace(step, fetches):
            result = context._run_traced(session, step, plain, fetches, feed_dict, options, run_metadata)
        else:
            result = plain(session, fetches, feed_dict, options, None)
        context._dump(step)
        context._profile(step)
        return result
    finally:
        if locked:
            context._end()


class ProfileContext:
    """See the module.

    profile_dir: where profiles are dumped
    trace_steps: steps to trace; None samples some of them
    dump_steps: steps after which the profile is dumped; None is 100
    enabled: False makes every method do nothing
    debug: print progress on stderr, and write each traced RunMetadata as text
    """

    def __init__(self, profile_dir, trace_steps=None, dump_steps=None, enabled=True, debug=False):
        self._enabled = enabled
        self._profiler = None
        if not enabled:
            return
        if not profile_dir:
            raise ValueError("Must have a directory for profile.\n")
        if trace_steps is not None and len(list(trace_steps)) > MAX_TRACED_STEPS:
            raise ValueError("Only support tracing up to 100 steps.\n")
        self._profile_dir = os.fspath(profile_dir)
        self._debug = debug
        self._automatic = trace_steps is None
        self._trace_steps = set(trace_steps or ())
        self._dump_steps = {100} if dump_steps is None else set(dump_steps)
        self._slow_steps = self._trace_steps | self._dump_steps
        self._random = random.Random(111)
        self._lock = threading.Lock()
        self._counting = threading.Lock()
        self._step = 0
        self._traced = 0
        self._seen = set()
        self._auto_profiles = []
        self._views = {}
        self._trace_next = self._dump_next = False
        self._base = None

    # ---- what users call ----

    @property
    def profiler(self):
        """The Profiler, made on first use; None when the context is not enabled."""
        if not self._enabled:
            return None
        if self._profiler is None:
            self._profiler = Profiler(_graph.default_graph())
        return self._profiler

    def add_auto_profiling(self, cmd, options, profile_steps):
        """Makes a view (graph, scope, op or code) after each of these steps, which are traced for it."""
        if not self._enabled:
            return
        steps = list(profile_steps)
        self._auto_profiles.append((cmd, options, steps))
        self._slow_steps |= set(steps)
        self._trace_steps |= set(steps)

    def get_profiles(self, cmd):
        """The views that were made: a dictionary from step to message."""
        if cmd not in self._views:
            raise ValueError("No autoprofiler for command: %s, was run" % cmd)
        return self._views[cmd]

    def trace_next_step(self):
        """Traces the next run."""
        if self._enabled:
            self._trace_next = True
            self._slow_steps.add(self._step)

    def dump_next_step(self):
        """Dumps the profile after the next run."""
        if self._enabled:
            self._dump_next = True
            self._slow_steps.add(self._step)

    # ---- around the program ----

    def __enter__(self):
        if not self._enabled:
            return self
        base = _base_session()
        if getattr(base, "profile_context", None) is not None or hasattr(base, "_profiler_run_internal"):
            raise _errors.make("InternalError", "Already in context or context not cleaned.")
        self._base = base
        base._profiler_run_internal = base.run
        base.profile_context = self
        base.run = _profiled_run
        return self

    def __exit__(self, *exception):
        if not self._enabled or self._base is None:
            return
        base, self._base = self._base, None
        base.run = base._profiler_run_internal
        del base._profiler_run_internal
        del base.profile_context
        self._profiler = None

    # ---- one step ----

    def _print(self, text):
        if self._debug:
            sys.stderr.write("debug: %s\n" % text)

    def _begin(self):
        """(the step, whether this thread may profile it)"""
        return self._step, self._lock.acquire(False)

    def _count(self):
        """Every run is a step, also one that is not profiled because another thread's is."""
        with self._counting:
            self._step += 1

    def _end(self):
        """Also when the run raised: the next one is profiled again."""
        self._count()
        self._trace_next = self._dump_next = False
        self._lock.release()

    def _is_fast(self, step):
        sampling = self._automatic and step > WARMUP_STEPS and self._traced <= MAX_TRACED_STEPS
        asked = self._trace_next or self._dump_next     # other threads may have run the step of that number
        return step not in self._slow_steps and not sampling and not asked

    def _should_trace(self, step, fetches):
        if self._traced > MAX_TRACED_STEPS:
            return False
        chosen = step in self._trace_steps or self._trace_next or self._sampled(step, fetches)
        self._traced += chosen
        return chosen

    def _sampled(self, step, fetches):
        if not self._automatic or step <= WARMUP_STEPS:
            return False
        key = "-".join(_graph.node_names(fetches))
        if key not in self._seen:
            self._seen.add(key)
            self._print("trace fetches: %s" % key)
            return True
        return self.profiler._coverage < 0.5 and step < MAX_TRACED_STEPS and self._random.randint(0, 10) < 2

    def _run_traced(self, session, step, plain, fetches, feed_dict, options, run_metadata):
        self._print("tracing step: %d" % step)
        if run_metadata is None:
            run_metadata = message("RunMetadata")()
        if options is None:
            options = message("RunOptions")()
        before, options.trace_level = options.trace_level, _FULL_TRACE
        try:
            result = plain(session, fetches, feed_dict, options, run_metadata)
        finally:
            options.trace_level = before
        if self._debug:
            os.makedirs(self._profile_dir, exist_ok=True)
            with open(os.path.join(self._profile_dir, "run_meta_%d" % step), "w") as file:
                file.write(str(run_metadata))
        self.profiler._graph = session.graph
        self.profiler.add_step(step, run_metadata)
        return result

    def _dump(self, step):
        if step not in self._dump_steps and not self._dump_next:
            return
        self._print("dumping file at step: %d" % step)
        os.makedirs(self._profile_dir, exist_ok=True)
        self.profiler._write_profile(os.path.join(self._profile_dir, "profile_%d" % step))

    def _profile(self, step):
        calls = {"graph": "profile_graph", "scope": "profile_name_scope", "op": "profile_operations",
                 "code": "profile_python"}
        for cmd, options, steps in self._auto_profiles:
            if step not in steps:
                continue
            if cmd not in calls:
                raise ValueError("Unknown cmd: %s\n" % cmd)
            self._print("profiling %s step: %d" % (cmd, step))
            self._views.setdefault(cmd, {})[step] = getattr(self.profiler, calls[cmd])(options)
