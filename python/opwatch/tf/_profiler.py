"""tf.profiler: Profiler, profile, advise.

Results are protocol-buffer messages, as in TensorFlow. Steps are kept in the library's columns, not as
messages, so that online profiling of a long training holds a few numbers per op and step.
"""
import copy
import os
import sys
import threading

from .. import _opwatch
from .._errors import Error
from . import _errors, _graph, _options
from ._messages import message, parse, serialized
from ._op_log import merge_default_op_log
from ._options import ProfileOptionBuilder

_RESULT = {"code": "MultiGraphNodeProto", "op": "MultiGraphNodeProto",
           "graph": "GraphNodeProto", "scope": "GraphNodeProto"}

_LISTED = ("max_depth", "min_bytes", "min_peak_bytes", "min_residual_bytes", "min_output_bytes", "min_micros",
           "min_accelerator_micros", "min_cpu_micros", "min_params", "min_float_ops", "min_occurrence", "step",
           "order_by", "account_type_regexes", "start_name_regexes", "trim_name_regexes", "show_name_regexes",
           "hide_name_regexes", "account_displayed_op_only", "select", "output")

_PPROF = ("bytes", "micros", "params", "float_ops", "accelerator_micros", "cpu_micros", "peak_bytes",
          "residual_bytes", "output_bytes")


def _print(text):
    sys.stderr.write(text + "\n")


def _parse_output(text):
    """(type, outfile); a ValueError with tfprof's words."""
    kind, colon, rest = (text or "stdout").partition(":")
    if kind not in ("timeline", "stdout", "file", "pprof", "none"):
        raise ValueError("E.g. Unknown output type: %s, Valid types: file,none,pprof,stdout,timeline\n" % kind)
    outfile = None
    for piece in filter(None, rest.split(",")) if colon else ():
        words = [word for word in piece.split("=") if word]
        if len(words) < 2:
            raise ValueError("Visualize format: -output timeline:key=value,key=value,...")
        if words[0] != "outfile" or kind in ("stdout", "none"):
            raise ValueError("Unrecognized options %s for output_type: %s\n" % (words[0], kind))
        outfile = "=".join(words[1:])
    if kind in ("timeline", "file", "pprof") and outfile is None:
        raise ValueError("Missing required output_options for %s\nE.g. -output %s:outfile=...\n" % (kind, kind))
    return kind, outfile


def _option_lines(options, kind, outfile):
    """The options as tfprof lists them."""
    lines = []
    for name in _LISTED:
        value = options.get(name)
        if name == "output":
            value = "%s:%s" % (kind, "outfile=" + outfile if outfile is not None else "")
        elif name == "select":
            value = ",".join(sorted(set(value)))
        elif isinstance(value, bool):
            value = "true" if value else "false"
        elif isinstance(value, list):
            value = ",".join(value)
        lines.append("%-28s%s\n" % ("-" + name, value))
    return "".join(lines)


class _Native:
    """A profile of the library to which more is added between the questions."""

    def __init__(self, graph, op_log):
        self.lock = threading.RLock()
        self.profile = _opwatch.Profile.new({"infer": True})
        self.last_step = None
        if graph:
            self.profile.add_memory("graph", graph, "graphdef")
        self.add_op_log(op_log)

    def _loading(self):
        if self.profile.frozen:
            self.profile.thaw()
        return self.profile

    def _asking(self):
        if not self.profile.frozen:
            self.profile.freeze()
        return self.profile

    def add_graph(self, graph):
        with self.lock:
            if graph:
                self._loading().add_memory("graph", graph, "graphdef")

    def add_op_log(self, op_log):
        with self.lock:
            if op_log:
                self._loading().add_memory("op_log", op_log, "oplog", -2**63, None, True)

    def add_step(self, step, run_meta):
        """Part of the graph that ran."""
        with self.lock:
            _, coverage, missing = self._loading().add_memory("run_meta of step %d" % step, run_meta, "runmeta",
                                                              step, None, True)
            if missing:
                _print("Invalid RunMetadata for step %d" % step)
            else:
                self.last_step = step
            return coverage

    def serialize(self):
        with self.lock:
            return self._asking().tf_profile()

    # ---- views ----

    def run(self, command, options):
        """The message of a view, serialized; prints or writes what the options say."""
        options = _options.complete(options)
        if options["dump_to_file"]:
            _print("-dump_to_file option is deprecated. Please use -output file:outfile=<filename>")
            _print("-output %s is overwritten with -output file:outfile=%s"
                  % (options["output"], options["dump_to_file"]))
            options["output"] = "file:outfile=" + options["dump_to_file"]
        try:
            kind, outfile = _parse_output(options["output"])
        except ValueError as problem:
            _print("Invalid argument: %s" % problem)
            return b""
        asked = {key: options[key] for key in _LISTED if key != "output"}
        asked["all_metrics"] = True
        with self.lock:
            try:
                return self._run(command, options, asked, kind, outfile)
            except Error as problem:
                _print(str(problem))
                return b""

    def _run(self, command, options, asked, kind, outfile):
        profile = self._asking()
        if kind == "timeline" and command == "op":
            _print("op view doesn't support timeline yet. Consider graph/scope/code view.")
            return b""
        if kind == "timeline" and command == "graph" and asked["step"] < 0:
            for step in profile.step_numbers():
                result = self._view(profile, command, dict(asked, step=step))
                self._write_timeline(result, outfile, step)
                del result
            return b""
        result = self._view(profile, command, asked)
        data = result.write("proto", None, None)[0]
        if kind == "stdout":
            text = result.write("tfprof", None, None)
            self._messages(text[1])
            sys.stdout.write("\n=========================Options=============================\n"
                             + _option_lines(options, kind, outfile)
                             + "\n==================Model Analysis Report======================\n"
                             + text[0].decode("utf-8", "replace")
                             + "\n======================End of Report==========================\n")
        elif kind == "file":
            self._messages(result.write("tfprof", None, outfile)[1])
        elif kind == "timeline":
            self._write_timeline(result, outfile, asked["step"])
        elif kind == "pprof" and not self._write_pprof(command, asked, result, outfile):
            return message(_RESULT[command])(name="_TFProfRoot").SerializeToString()
        del result  # before anything is added
        return data

    @staticmethod
    def _messages(lines):
        if lines:
            sys.stderr.write(lines.decode("utf-8", "replace") if isinstance(lines, bytes) else lines)

    def _view(self, profile, command, asked):
        if command == "code":  # the original's code view does not look at it
            asked = {name: value for name, value in asked.items() if name != "min_occurrence"}
        result = profile.view(command, asked)
        for line in result.messages():
            _print(line)
        return result

    def _write_timeline(self, result, outfile, step):
        name = "%s_%d" % (outfile, step)
        self._messages(result.write("timeline", None, name)[1])
        sys.stdout.write("\n******************************************************\n"
                         "Timeline file is written to %s.\n"
                         "Open a Chrome browser, enter URL chrome://tracing and load the timeline file.\n"
                         "******************************************************\n" % name)

    def _write_pprof(self, command, asked, result, outfile):
        if command != "code":
            _print("Only 'code' view supports pprof output now.")
        elif len(asked["select"]) != 1:
            _print("Can only select 1 attribute for pprof output.")
        elif asked["select"][0] not in _PPROF:
            _print("pprof doesn't support -select=%s" % asked["select"][0])
        else:
            result.write("pprof", {"metric": asked["select"][0]}, outfile)
            sys.stdout.write("\nRun pprof -png --nodecount=100 --sample_index=1 <%s>\n" % outfile)
            return True
        return False

    # ---- advice ----

    def advise(self, checkers):
        """AdviceProto; the reports are printed, too."""
        advice = message("AdviceProto")()
        rules = [(name, checker) for name, _, checker in _opwatch.rules() if checker and checker in checkers]
        with self.lock:
            result = self._asking().advise([name for name, _ in rules]) if rules else None
            columns = [column[0] for column in result.schema()] if result else []
            rows = [dict(zip(columns, result.row(i))) for i in range(len(result))] if result else []
            del result
        for rule, checker in rules:
            reports = [row["what"] for row in rows if row["rule"] == rule and row["checked"]]
            advice.checkers[checker].reports.extend(reports)
            sys.stdout.write("\n%s:\n%s" % (checker, "".join(report + "\n" for report in reports)))
        return advice


def _checkers(options):
    for name, inner in (options or {}).items():
        if inner:
            raise TypeError("options of %s: checkers take none, but got %r" % (name, inner))
    return frozenset(options or ())


class Profiler:
    """Profiles steps of a session:

        profiler = Profiler(sess.graph)
        for step in range(100):
            run_meta = tf.compat.v1.RunMetadata()
            sess.run(train_op, options=RunOptions(trace_level=FULL_TRACE), run_metadata=run_meta)
            profiler.add_step(step, run_meta)
        profiler.profile_operations(options)

    graph: a tf.Graph, a GraphDef or its bytes; TensorFlow's default graph when it is None.
    op_log: an OpLogProto or its bytes, to be joined with what is known of the graph.
    """

    def __init__(self, graph=None, op_log=None):
        self._coverage = 0.0
        self._graph = _graph.default_graph() if graph is None else graph
        if isinstance(op_log, (bytes, bytearray)):
            op_log = message("OpLogProto").FromString(bytes(op_log))
        self._op_log = op_log
        sys.stdout.write("Parsing Inputs...\n")
        data = _graph.graph_bytes(self._graph) if self._graph is not None else b""
        self._native = _Native(data, self._log(None))

    def _log(self, run_meta):
        """The log of the ops of the graph. The library computes float operations itself."""
        if self._graph is None:
            return serialized(self._op_log, "op_log")
        log = copy.deepcopy(self._op_log) if self._op_log is not None else None
        return merge_default_op_log(self._graph, log, run_meta).SerializeToString()

    def add_step(self, step, run_meta=None, **unknown):
        """Adds what session.run() recorded of a step: a RunMetadata or its bytes."""
        if unknown or run_meta is None:
            raise TypeError("add_step(step, run_meta) takes the RunMetadata that session.run() filled in that step"
                            + ("; options belong to the profile_… calls, not to %s=" % ", ".join(unknown)
                               if unknown else ""))
        data = serialized(run_meta, "run_meta")
        if not data:
            raise ValueError("add_step: the RunMetadata is empty; was the run traced "
                             "(RunOptions(trace_level=FULL_TRACE))?")
        if self._graph is not None and hasattr(self._graph, "as_graph_def"):
            version = getattr(self._graph, "version", None)
            if version is None or version != getattr(self, "_version", None):  # new nodes only
                self._version = version
                self._native.add_graph(_graph.graph_bytes(self._graph))
                self._native.add_op_log(self._log(run_meta))
        self._coverage = self._native.add_step(int(step), data)

    def _profile(self, command, options):
        data = self._native.run(command, options)
        try:
            return parse(_RESULT[command], data)
        except Exception as problem:  # a message is better than none
            _print("Cannot parse returned proto: %s." % problem)
            return message(_RESULT[command])()

    def profile_python(self, options):
        """By the lines of Python that made the ops: a MultiGraphNodeProto."""
        return self._profile("code", options)

    def profile_operations(self, options):
        """By type of operation: a MultiGraphNodeProto."""
        return self._profile("op", options)

    def profile_name_scope(self, *args, **kwargs):
        """By name scope: a GraphNodeProto. profile_name_scope(options), or with a scope to start from:
        profile_name_scope("tower_0", options=options)."""
        return self._profile("scope", _scoped(args, kwargs))

    def profile_graph(self, options):
        """By data flow: a GraphNodeProto."""
        return self._profile("graph", options)

    def advise(self, options):
        """Runs the checkers that the dictionary names (ALL_ADVICE): an AdviceProto."""
        return self._native.advise(_checkers(options))

    def serialize_to_string(self):
        """All of the profile as a ProfileProto, serialized."""
        return self._native.serialize()

    def _write_profile(self, filename):
        try:
            _write(filename, self.serialize_to_string())
        except OSError as problem:
            _print(str(problem))

    def save(self, directory):
        """Writes directory/profile_<last step> and returns its name; opwatch and tfprof open it."""
        os.makedirs(directory, exist_ok=True)
        last = self._native.last_step
        path = os.path.join(directory, "profile_%d" % (0 if last is None else last))
        _write(path, self.serialize_to_string())
        return path


def _write(path, data):
    with open(path + ".tmp", "wb") as file:
        file.write(data)
    os.replace(path + ".tmp", path)


def _scoped(args, kwargs):
    names = []
    given = list(args)
    while given and isinstance(given[0], str):
        names.append(given.pop(0))
    if given and "options" not in kwargs:
        kwargs = dict(kwargs, options=given.pop(0))
    if given or set(kwargs) != {"options"}:
        raise TypeError('profile_name_scope(options), or profile_name_scope("scope", options=options)')
    options = kwargs["options"]
    return dict(options, start_name_regexes=names) if names else options


def profile(graph=None, run_meta=None, op_log=None, cmd="scope", options=None):
    """One view of one step, without a Profiler: a GraphNodeProto (scope, graph) or MultiGraphNodeProto
    (op, code). The default options show the parameters of trainable variables."""
    if cmd not in _RESULT:
        raise _errors.make("InvalidArgumentError", "unknown cmd: %s\n" % cmd)
    if options is None:
        options = ProfileOptionBuilder.trainable_variables_parameter()
    if graph is None:
        graph = _graph.default_graph()
    log = merge_default_op_log(graph, op_log, run_meta, add_trace=cmd == "code")
    native = _Native(_graph.graph_bytes(graph) if graph is not None else b"", b"")
    data = serialized(run_meta, "run_meta")
    if data:
        native.add_step(0, data)
    native.add_op_log(log.SerializeToString())
    return parse(_RESULT[cmd], native.run(cmd, options))


def advise(graph=None, run_meta=None, options=None):
    """Runs the checkers on one step: an AdviceProto."""
    if graph is None:
        graph = _graph.default_graph()
    checkers = _checkers(copy.deepcopy(_options.ALL_ADVICE) if options is None else options)
    native = _Native(_graph.graph_bytes(graph) if graph is not None else b"", b"")
    data = serialized(run_meta, "run_meta")
    if data:
        native.add_step(0, data)
    native.add_op_log(merge_default_op_log(graph, None, run_meta).SerializeToString())
    return native.advise(checkers)
