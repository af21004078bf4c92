"""Options of the profiling calls, as dictionaries, and their builder."""
import copy

_BASE = {
    "max_depth": 100,
    "min_bytes": 0,
    "min_micros": 0,
    "min_params": 0,
    "min_float_ops": 0,
    "min_occurrence": 0,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": False,
    "select": ["micros"],
    "step": -1,
    "output": "stdout",
}

# What a call takes when a key is missing: not the same as the builder's start.
_MISSING = {
    "max_depth": 10,
    "min_bytes": 0, "min_peak_bytes": 0, "min_residual_bytes": 0, "min_output_bytes": 0,
    "min_micros": 0, "min_accelerator_micros": 0, "min_cpu_micros": 0,
    "min_params": 0, "min_float_ops": 0, "min_occurrence": 0,
    "step": -1,
    "order_by": "name",
    "account_type_regexes": (), "start_name_regexes": (), "trim_name_regexes": (), "show_name_regexes": (),
    "hide_name_regexes": (),
    "account_displayed_op_only": False,
    "select": (),
    "output": "stdout",
    "dump_to_file": "",
}

ALL_ADVICE = {
    "ExpensiveOperationChecker": {},
    "AcceleratorUtilizationChecker": {},
    "JobChecker": {},
    "OperationChecker": {},
}


def complete(options):
    """The options with every key; unknown keys are ignored, lists may be any iterable."""
    if not hasattr(options, "get"):
        raise TypeError("options: a dict is needed, as ProfileOptionBuilder makes it, not %s" % type(options).__name__)
    full = {}
    for key, default in _MISSING.items():
        value = options.get(key, default)
        if isinstance(default, tuple):
            value = [value] if isinstance(value, str) else [str(item) for item in value]
        elif isinstance(default, bool):
            value = bool(value)
        elif isinstance(default, int):
            value = int(value)
        full[key] = value
    return full


class ProfileOptionBuilder:
    """Builds the options of the profiling calls:

        builder = ProfileOptionBuilder
        opts = builder(builder.time_and_memory()).with_step(-1).order_by("micros").build()
    """

    def __init__(self, options=None):
        self._options = copy.deepcopy(_BASE if options is None else options)

    # ---- presets: plain dictionaries ----

    @staticmethod
    def trainable_variables_parameter():
        """The parameters of trainable variables, by name scope."""
        return dict(copy.deepcopy(_BASE), max_depth=10000, account_type_regexes=["_trainable_variables"],
                    account_displayed_op_only=True, select=["params"])

    @staticmethod
    def float_operation():
        """Float operations; only ops that have any."""
        return dict(copy.deepcopy(_BASE), max_depth=10000, min_float_ops=1, order_by="float_ops",
                    account_displayed_op_only=True, select=["float_ops"])

    @staticmethod
    def time_and_memory(min_micros=1, min_bytes=1, min_accelerator_micros=0, min_cpu_micros=0, min_peak_bytes=0,
                        min_residual_bytes=0, min_output_bytes=0):
        """Time and memory; only what is not less than these."""
        return dict(copy.deepcopy(_BASE), max_depth=10000, min_bytes=min_bytes, min_peak_bytes=min_peak_bytes,
                    min_residual_bytes=min_residual_bytes, min_output_bytes=min_output_bytes, min_micros=min_micros,
                    min_accelerator_micros=min_accelerator_micros, min_cpu_micros=min_cpu_micros,
                    order_by="micros", account_displayed_op_only=True, select=["micros", "bytes"])

    @staticmethod
    def memory(min_bytes=1, min_peak_bytes=0, min_residual_bytes=0, min_output_bytes=0):
        """Memory alone, the largest first. Not in TensorFlow, but in many a tutorial."""
        options = ProfileOptionBuilder.time_and_memory(
            min_micros=0, min_bytes=min_bytes, min_peak_bytes=min_peak_bytes,
            min_residual_bytes=min_residual_bytes, min_output_bytes=min_output_bytes)
        return dict(options, order_by="bytes", select=["bytes", "peak_bytes", "residual_bytes", "output_bytes"])

    # ---- changes: each returns the builder ----

    def _set(self, **values):
        self._options.update(values)
        return self

    def build(self):
        """A copy of the options."""
        return copy.deepcopy(self._options)

    def with_max_depth(self, max_depth):
        """How many levels are shown."""
        return self._set(max_depth=max_depth)

    def with_min_memory(self, min_bytes=0, min_peak_bytes=0, min_residual_bytes=0, min_output_bytes=0):
        """Only what has at least so many bytes."""
        return self._set(min_bytes=min_bytes, min_peak_bytes=min_peak_bytes, min_residual_bytes=min_residual_bytes,
                         min_output_bytes=min_output_bytes)

    def with_min_execution_time(self, min_micros=0, min_accelerator_micros=0, min_cpu_micros=0):
        """Only what takes at least so long."""
        return self._set(min_micros=min_micros, min_accelerator_micros=min_accelerator_micros,
                         min_cpu_micros=min_cpu_micros)

    def with_min_parameters(self, min_params):
        """Only what has at least so many parameters."""
        return self._set(min_params=min_params)

    def with_min_occurrence(self, min_occurrence):
        """Only what occurs so often."""
        return self._set(min_occurrence=min_occurrence)

    def with_min_float_operations(self, min_float_ops):
        """Only what has at least so many float operations."""
        return self._set(min_float_ops=min_float_ops)

    def with_accounted_types(self, account_type_regexes):
        """Only ops of types that match are added up."""
        return self._set(account_type_regexes=copy.copy(account_type_regexes))

    def with_node_names(self, start_name_regexes=None, show_name_regexes=None, hide_name_regexes=None,
                        trim_name_regexes=None):
        """Which nodes to start from, show, hide and cut below."""
        given = {"start_name_regexes": start_name_regexes, "show_name_regexes": show_name_regexes,
                 "hide_name_regexes": hide_name_regexes, "trim_name_regexes": trim_name_regexes}
        return self._set(**{key: copy.copy(value) for key, value in given.items() if value is not None})

    def account_displayed_op_only(self, is_true):
        """Whether only what is shown is added up."""
        return self._set(account_displayed_op_only=is_true)

    def with_empty_output(self):
        """Print nothing."""
        return self._set(output="none")

    def with_stdout_output(self):
        """Print the result."""
        return self._set(output="stdout")

    def with_file_output(self, outfile):
        """Print into a file."""
        return self._set(output="file:outfile=%s" % outfile)

    def with_timeline_output(self, timeline_file):
        """Write a timeline for chrome://tracing."""
        return self._set(output="timeline:outfile=%s" % timeline_file)

    def with_pprof_output(self, pprof_file):
        """Write a file for go tool pprof."""
        return self._set(output="pprof:outfile=%s" % pprof_file)

    def order_by(self, attribute):
        """The column to sort by."""
        return self._set(order_by=attribute)

    def select(self, attributes):
        """The columns to show."""
        return self._set(select=copy.copy(attributes))

    def with_step(self, step):
        """Which step; -1 is the average of all."""
        return self._set(step=step)
