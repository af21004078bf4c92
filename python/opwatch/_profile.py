"""Profiles: what opwatch.open() gives, and everything that can be asked of one."""
import json
import os
import threading

from . import _opwatch
from ._errors import UsageError
from ._result import _NO_PICKLE, Result

_OPTIONS = {table: frozenset(names) for table, names in _opwatch.option_names().items()}


_METRICS = ("micros", "accelerator_micros", "cpu_micros", "bytes", "peak_bytes", "residual_bytes", "output_bytes",
            "params", "float_ops", "occurrence")
_ALL_LEVELS = 2**30 - 1


def _check(table, options, what):
    """Refuses options that nobody knows, with those that are close."""
    for name in options:
        if name not in _OPTIONS[table]:
            import difflib
            near = difflib.get_close_matches(name, _OPTIONS[table], 1)
            raise TypeError("%s has no option %r%s" % (what, name, "; did you mean %r?" % near[0] if near else ""))
    return options


def _paths(paths):
    """Strings, paths, and lists of them, as one list."""
    flat = []
    for path in paths:
        if isinstance(path, (str, bytes, os.PathLike)):
            flat.append(os.fspath(path))
        elif isinstance(path, (list, tuple, set, frozenset)):
            flat.extend(_paths(sorted(path, key=os.fspath) if isinstance(path, (set, frozenset)) else path))
        else:
            raise TypeError("a path is a str, bytes or os.PathLike, not %s" % type(path).__name__)
    return flat


class Profile:
    """An open profile: views are methods (p.op(), p.steps(), …; opwatch.views() lists them).

    It is read-only and may be used from several threads at once. It is closed by close(), at the end of a
    with block, or when nobody refers to it any more; results stay valid.
    """

    def __init__(self, native, paths=()):
        self._native = native
        self.paths = tuple(paths)
        self._timed = None
        self._session = None
        self._lock = threading.Lock()

    # ---- life ----

    def close(self):
        """Gives the memory back, as soon as no result needs it. Calling it twice is fine."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()
        self._native.close()

    @property
    def closed(self):
        return self._native.closed

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __reduce__(self):
        raise TypeError(_NO_PICKLE % ("profile", "its paths, or save() it,"))

    def __repr__(self):
        if self.closed:
            return "<opwatch.Profile, closed>"
        names = ", ".join(os.fsdecode(path) for path in self.paths[:3]) + (", …" if len(self.paths) > 3 else "")
        return "<opwatch.Profile of %s>" % (names or "memory")

    # ---- asking ----

    def view(self, name, **options):
        """A view by its name; the named methods are shorter. Options are those of the command line."""
        _check("view", options, "the view %s" % name)
        self._choose(options)
        return Result(self._native.view(name, options), name, self, options)

    def _choose(self, options):
        """What nobody chose: tfprof orders by name and shows ten levels; here it is the cost, and all levels."""
        if options.get("max_depth") is None:
            options["max_depth"] = _ALL_LEVELS
        order, select = options.get("order_by"), options.get("select")
        if order is None and select is None and not self._has_times():
            options["select"] = ["float_ops", "occurrence", "params"]  # a graph that never ran
            options["order_by"] = "float_ops"
        elif order is None:
            chosen = [select] if isinstance(select, str) else list(select or ())
            options["select"] = chosen or ["micros"]
            options["order_by"] = next((metric for metric in _METRICS if metric in chosen), "micros")
        elif select is None and order not in ("", "name"):
            options["select"] = [order]

    def _has_times(self):
        if self._timed is None:
            self._timed = bool(self.step_numbers) or len(self._native.view("tracks", {})) > 0
        return self._timed

    def advise(self, *rules):
        """What to change: one row per finding. Without names all rules run (opwatch.rules())."""
        known = {word for name, _, checker in _opwatch.rules() for word in (name, checker) if word}
        for rule in rules:
            if rule not in known:
                raise UsageError("no rule is called %r; there are: %s" % (rule, ", ".join(sorted(known))), "usage")
        return Result(self._native.advise(list(rules)), "advise", self)

    def nsys_stats(self, report, **options):
        """A table as `nsys stats` of Nsight Systems prints it: "cuda_gpu_kern_sum", … (docs/nsys-stats.md)."""
        return Result(self._native.nsys_stats(report, _check("view", options, "nsys_stats")), report, self)

    def verdict_text(self, **options):
        """One sentence on what the time goes to."""
        return self._native.verdict(_check("view", options, "verdict"))

    def sql(self, text, **options):
        """Runs SQL over the tables of this profile (docs/sql.md) and gives the result of the last query.

        Tables that a statement creates are there for the next call. Options, for the first call: memory_limit,
        temp_dir, threads, allow_io. One query runs at a time; others wait. Ctrl-C cancels.
        """
        _check("sql", options, "sql")
        with self._lock:
            if self.closed:
                raise ValueError("the profile is closed")
            if self._session is None or options:
                old, self._session = self._session, Session([self], **options)
                if old is not None:
                    old.close()
            session = self._session
        return session.query(text)

    def info(self):
        """What is in the inputs, and what was lost: `opwatch info --json` as a dict."""
        return json.loads(self._native.info_json())

    def loss(self):
        """What of the inputs was lost, repaired or missing."""
        return self.view("notes")

    @property
    def damaged(self):
        """Something of the input was lost, repaired or missing: see loss()."""
        return self._native.damaged

    @property
    def has_code(self):
        """The profile knows which lines of code made its operations."""
        return self._native.has_code

    @property
    def step_numbers(self):
        """The numbers of the steps, ascending."""
        return self._native.step_numbers()

    @property
    def memory(self):
        """Bytes that the library holds for this profile: (used, peak, limit)."""
        return self._native.memory()

    # ---- writing ----

    def save(self, path, progress=None):
        """Writes an opwatch file (.opw), which holds all of the profile and opens in milliseconds."""
        self._native.save(path, progress)

    def verify(self):
        """Checks every checksum of an opwatch file; its size, or 0 for other files."""
        return self._native.verify()

    def timeline(self, path=None, **options):
        """The runs as a Chrome trace: bytes, or into a file.

        Options: show_dataflow, show_memory, step, rank, time_from_ns, time_to_ns, metric, gzip (by itself for paths that end in .gz).
        """
        if path is not None and "gzip" not in options:
            options["gzip"] = os.fsdecode(path).endswith(".gz")
        return self._native.timeline(_check("timeline", options, "timeline"), path)

    def convert(self, path, to=None, **options):
        """Writes the profile in another form: "opw", "timeline", "flamegraph", "folded", "pprof".

        Without `to` the name of the file tells. Options are those of the view behind it.
        """
        to = to or _form_of(os.fsdecode(path))
        if to == "opw":
            return self.save(path)
        if to == "timeline":
            return self.timeline(path, **options)
        view = "code" if self.has_code else "scope"
        metric = (list(options["select"]) or [None])[0] if options.get("select") else None
        self.view(view, **options).write(path, to=to, metric=metric)
        return None

    def merge(self, out, **options):
        """Puts the Chrome traces that this profile was opened from together in one file; see opwatch.merge."""
        if not self.paths:
            raise UsageError("this profile was not opened from files", "usage")
        return merge(*self.paths, out=out, **options)


class Session:
    """SQL over several profiles at once; each is a run, which the column `run` names.

    runs: profiles, or (name, profile); without a name it is that of the file.
    """

    def __init__(self, runs, **options):
        self._lock = threading.Lock()
        self.runs = tuple(run if isinstance(run, tuple) else (_run_name(run), run) for run in runs)
        self._native = _opwatch.Sql.open([(name, profile._native) for name, profile in self.runs],
                                         _check("sql", options, "sql"))

    def query(self, text):
        """Runs the statements of a text and gives the result of the last that has one."""
        with self._lock:
            return Result(self._native.query(text), "sql")

    def close(self):
        """Ends the session; results stay valid."""
        with self._lock:
            self._native.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __reduce__(self):
        raise TypeError(_NO_PICKLE % ("session", "the paths of its profiles"))


def _run_name(profile):
    """The name of the file, without folders and extension."""
    if not profile.paths:
        return "run"
    name = os.path.basename(os.fsdecode(profile.paths[0]).rstrip("/"))
    return name.split(".")[0].rstrip("*-_") or "run"


_ENDINGS = ((".opw", "opw"), (".svg", "flamegraph"), (".html", "flamegraph"), (".folded", "folded"),
            (".collapsed", "folded"), (".pprof", "pprof"), (".pb.gz", "pprof"), (".json", "timeline"),
            (".json.gz", "timeline"), (".trace.gz", "timeline"))


def _form_of(path):
    for ending, form in _ENDINGS:
        if path.endswith(ending):
            return form
    raise UsageError("%s: which form? Give to=, one of %s"
                     % (path, ", ".join(sorted({form for _, form in _ENDINGS}))), "usage")


def open(*paths, progress=None, **options):
    """Opens profiles: files, directories and glob patterns of any recognised format, together as one.

    memory_limit: bytes that the library may hold
    step_marker: slices of a trace are steps if all of their name matches this regular expression
    redact: replace names and paths by hashes
    infer: compute shapes and float operations that no source gives (on by default)
    input_shapes: "NAME=100x784", shapes of placeholders for infer
    progress: called now and then with (file, bytes done, bytes in all); False cancels
    """
    names = _paths(paths)
    if not names:
        raise TypeError("open: which file?")
    if progress is not None and not callable(progress):
        raise TypeError("progress: something to call is needed, not %s" % type(progress).__name__)
    return Profile(_opwatch.Profile.open(names, _check("open", options, "open"), progress), names)


class MergeSummary(dict):
    """What merge() did: counts by name, also as attributes; messages is a list of remarks on the files."""

    __getattr__ = dict.__getitem__


def merge(*paths, out, progress=None, **options):
    """Puts Chrome traces (files, directories, patterns, archives) together in one file.

    align: "keep" (the clocks stay), "start" (every file starts at zero), "sequence" (one after the other)
    keep_names, keep_categories, keep_pids: regular expressions of what is kept
    keep_from_ns, keep_to_ns, keep_first_step, keep_last_step: the part that is kept
    no_labels: leave the names of processes alone
    memory_limit, progress: as for open()
    """
    counts, messages = _opwatch.merge(_paths(paths), out, _check("merge", options, "merge"), progress)
    return MergeSummary(counts, messages=messages)


def _add_view(name, summary):
    def method(self, **options):
        return self.view(name, **options)
    method.__name__ = name
    method.__qualname__ = "Profile." + name
    method.__doc__ = summary + "\n\nOptions: " + ", ".join(sorted(_OPTIONS["view"]))
    setattr(Profile, name, method)


for _name, _summary, _ in _opwatch.views():  # a view of the library is a method at once
    if not hasattr(Profile, _name):
        _add_view(_name, _summary)
