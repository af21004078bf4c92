"""Profiles: what opwatch.open() gives, and everything that can be asked of one."""
import atexit
import datetime
import decimal
import json
import operator
import os
import shutil
import tempfile
import threading
import webbrowser

from . import _opwatch
from ._errors import UsageError
from ._result import _NO_PICKLE, Result

_OPTIONS = {table: frozenset(names) for table, names in _opwatch.option_names().items()}


_METRICS = ("micros", "accelerator_micros", "cpu_micros", "bytes", "peak_bytes", "residual_bytes", "output_bytes",
            "params", "float_ops", "occurrence")
_ALL_LEVELS = 2**30 - 1
_TREES = ("scope", "graph", "op", "code")
# What order_by and select take, as in the program; the titles of columns are other words for them.
_SELECT = ("bytes", "micros", "params", "float_ops", "tensor_value", "device", "op_types", "occurrence", "input_shapes",
           "accelerator_micros", "cpu_micros", "peak_bytes", "residual_bytes", "output_bytes")
_ORDER = ("name",) + _METRICS
_TITLES = {"time": "micros", "accelerator": "accelerator_micros", "cpu": "cpu_micros", "memory": "bytes",
           "peak_memory": "peak_bytes", "not_released": "residual_bytes", "output_memory": "output_bytes",
           "parameters": "params", "runs": "occurrence", "run_count": "occurrence", "defined": "occurrence",
           "definition_count": "occurrence", "share": "micros"}


def _column(option, name, known):
    """The name of a column that select or order_by takes, also for its title ("time", "total time")."""
    if not isinstance(name, str):
        raise TypeError("%s: a str is needed, not %s" % (option, type(name).__name__))
    word = name.lower().replace(" ", "_").replace("-", "_")
    if word.startswith("total_"):
        word = word[len("total_"):]
    word = _TITLES.get(word, word)
    if word in known:
        return word
    import difflib
    near = difflib.get_close_matches(word, list(known) + [title for title, of in _TITLES.items() if of in known], 1)
    raise UsageError("%s does not take %r%s It takes: %s"
                     % (option, name, "; did you mean %r?" % near[0] if near else ".", ", ".join(known)), "usage")


def _check(table, options, what):
    """Refuses unknown options and names the nearest ones."""
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


class Page:
    """The web page of a profile, as long as this object lives. In a notebook it shows as a link."""

    def __init__(self, native):
        self._native = native

    @property
    def address(self):
        """Where to open it. It holds a secret: who has the address sees the profile. Empty once it is closed."""
        return self._native.address

    def open(self):
        """Opens the page in a browser, by a file that only this user can read: other users see arguments of programs."""
        folder = tempfile.mkdtemp(prefix="opwatch-")
        path = os.path.join(folder, "opwatch.html")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write('<!doctype html><meta http-equiv="refresh" content="0;url=%s">' % self.address)
        atexit.register(shutil.rmtree, folder, True)
        return webbrowser.open("file://" + path)

    def close(self):
        """Ends the page."""
        self._native.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __repr__(self):
        return "<opwatch.Page %s>" % (self.address or "closed")

    def _repr_html_(self):
        return '<a href="%s" target="_blank" rel="noreferrer">open the page of this profile</a>' % self.address if self.address else "closed"


class Profile:
    """An open profile: views are methods (p.op(), p.steps(), …; opwatch.views() lists them).

    It is read-only and may be used from several threads at once. It is closed by close(), at the end of a
    with block, or when the last reference goes away; results stay valid.
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
        self._choose(name, options)
        return Result(self._native.view(name, options), name, self, options)

    def _choose(self, view, options):
        """Defaults of the views of ops: sort by cost and show all levels (tfprof sorts by name and shows ten)."""
        if view in _TREES and options.get("max_depth") is None:
            options["max_depth"] = _ALL_LEVELS
        if view not in _TREES:
            return  # the library refuses what such a view does not take
        if options.get("select") is not None:
            chosen = options["select"]
            options["select"] = [_column("select", word, _SELECT)
                                 for word in ([chosen] if isinstance(chosen, str) else chosen)]
        if options.get("order_by"):
            options["order_by"] = _column("order_by", options["order_by"], _ORDER)
        order, select = options.get("order_by"), options.get("select")
        if order is None and select is None and not self._has_times():
            options["select"] = ["float_ops", "occurrence", "params"]  # a graph that never ran
            options["order_by"] = "float_ops"
        elif order is None:
            chosen = select or ()
            options["select"] = list(chosen) or ["micros"]  # the library sorts by the first that is a cost
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
                raise UsageError("no rule is called %r; the rules are: %s" % (rule, ", ".join(sorted(known))), "usage")
        return Result(self._native.advise(list(rules)), "advise", self)

    def path(self, by=None, **options):
        """The critical path of a step (step=N, or the steady step nearest the median). by: op, line, kind or rank adds it up."""
        return Result(self._native.path(by, _check("view", options, "path")), "path", self)

    def what_if(self, *changes, **options):
        """The step with changes such as "input=0" or "op:REGEX*0.5": rows are the new path, extras has the numbers."""
        return Result(self._native.what_if(list(changes), _check("view", options, "what_if")), "what-if", self)

    def nsys_stats(self, report, **options):
        """A table as `nsys stats` of Nsight Systems prints it: "cuda_gpu_kern_sum", … (docs/nsys-stats.md)."""
        return Result(self._native.nsys_stats(report, _check("view", options, "nsys_stats")), report, self)

    def verdict_text(self, **options):
        """One sentence on where the time goes."""
        return self._native.verdict(_check("view", options, "verdict"))

    def sql(self, text, params=None, **options):
        """Runs SQL over the tables of this profile (docs/sql.md) and gives the result of the last query.

        params: values for ? and $1, $2, … (a list), or for $name (a dict); they are never parsed as SQL. Dates,
            times, bytes, decimals and lists (also numpy's and pandas') have their type in SQL.
        Tables that a statement creates are there for the next call. Options, for the first call: memory_limit,
        temp_dir, threads, allow_io. One query runs at a time; others wait. Ctrl-C cancels.
        """
        _check("sql", options, "sql")
        with self._lock:
            if self.closed:
                raise ValueError("the profile is closed")
            if self._session is None or options:
                # Without this object in it: a profile and its session must not keep each other alive.
                old, self._session = self._session, _Queries([(_run_name(self), self._native)], options)
                if old is not None:
                    old.close()
            session = self._session
        return session.query(text, params)

    def ask(self, name, queries=(), memory_limit=None, temp_dir=None, **params):
        """Runs a named query (opwatch.queries() lists them; docs/ask.md): p.ask("top_ops", limit=5).

        params: the query's own parameters
        queries: folders with files NAME.sql of your own
        """
        return _ask([(_run_name(self), self)], name, queries, memory_limit, temp_dir, params)

    def export(self, folder, to="parquet", progress=None, **options):
        """Writes the tables as files (docs/export.md): "parquet", "ndjson", "csv" or "arrow". Returns what was written.

        tables: only these; partition: "run" or "step"; sort: a column; compress: "gzip", "zstd" or "none";
        file_bytes: start another file after about so many; bigquery, overwrite: True or False
        """
        return _export([(_run_name(self), self)], folder, to, progress, options)

    def info(self):
        """The contents of the inputs and their damage: `opwatch info --json` as a dict."""
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

    def report(self, path, size=5 << 20, title=None):
        """Writes the web page as one HTML file of at most `size` bytes, for readers without opwatch."""
        self._native.report(path, size, title)

    def ui(self, port=0, listen=None, source=None, browser=False):
        """Shows the profile as a web page; returns a Page with its address. The page ends with close(), at the end of a with
        block, or when the last reference goes away. `source` is the folder whose source files it may show; with browser=True
        a browser is opened."""
        page = Page(_opwatch.Ui.open(self._native, listen, port, source))
        if browser:
            page.open()
        return page

    def verify(self):
        """Checks every checksum of an opwatch file; its size, or 0 for other files."""
        return self._native.verify()

    def timeline(self, path=None, **options):
        """The runs as a Chrome trace: bytes, or into a file.

        Options: show_dataflow, show_memory, show_path, step, rank, time_from_ns, time_to_ns, metric, gzip (by itself for paths that end in .gz).
        """
        if path is not None and "gzip" not in options:
            options["gzip"] = os.fsdecode(path).endswith(".gz")
        return self._native.timeline(_check("timeline", options, "timeline"), path)

    def convert(self, path, to=None, **options):
        """Writes the profile in another form: "opw", "timeline", "flamegraph", "folded", "pprof".

        Without `to` the extension of the file decides. Options are those of the view.
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


def _micros(delta):
    """The microseconds of a timedelta, exactly."""
    return (delta.days * 86400 + delta.seconds) * 1000000 + delta.microseconds


def _bound_time(value):
    """A date, time, datetime or timedelta as (kind, number)."""
    if isinstance(value, datetime.datetime):
        if value != value:  # NaT of pandas
            return None
        if value.tzinfo is not None:
            return "timestamptz", _micros(value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc))
        if getattr(value, "nanosecond", 0):  # a Timestamp of pandas
            return "timestamp_ns", value.value
        return "timestamp", _micros(value - datetime.datetime(1970, 1, 1))
    if isinstance(value, datetime.date):
        return "date", (value - datetime.date(1970, 1, 1)).days
    if isinstance(value, datetime.time):
        return "time", _micros(datetime.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second,
                                                  microseconds=value.microsecond))
    return "interval", _micros(value)


def _bound(name, value):
    """A value for a parameter, as the extension takes it: None, bool, int, float, str, or (kind, value)."""
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        if not -1 << 127 < value < 1 << 127:
            raise OverflowError("parameter %s: the number needs more than 128 bits" % name)
        return value if -1 << 63 <= value < 1 << 63 else ("number", str(value))
    if isinstance(value, decimal.Decimal):
        return ("number", format(value, "f")) if value.is_finite() else float(value)
    if isinstance(value, (datetime.date, datetime.time, datetime.timedelta)):
        return _bound_time(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "bytes", bytes(value)
    if isinstance(value, (list, tuple)):
        return "list", [_bound(name, item) for item in value]
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # numpy's numbers and arrays, pandas' columns
        if value.dtype.kind in "Mm" and not hasattr(value, "to_numpy"):
            value = value.astype(value.dtype.kind + "8[us]")  # nanoseconds would become whole numbers
        return _bound(name, value.tolist())
    if hasattr(value, "__index__"):
        return _bound(name, operator.index(value))
    if hasattr(value, "__float__"):
        return float(value)
    raise TypeError("parameter %s: a str, number, bool, date, time, bytes, list or None is needed, not %r" % (name, type(value)))


def _params(params):
    """[(name, value)] of a list (? and $1) or a dict ($name)."""
    if params is None:
        return []
    if isinstance(params, dict):
        for name in params:
            if not isinstance(name, str):
                raise TypeError("params: the name of a parameter is a str, not %s" % type(name).__name__)
        return [(name, _bound(name, value)) for name, value in params.items()]
    if isinstance(params, (list, tuple)):
        return [(str(place), _bound(place, value)) for place, value in enumerate(params, 1)]
    raise TypeError("params: a list or a dict is needed, not %s" % type(params).__name__)


class _Queries:
    """One session of the library. It keeps what the library needs of the profiles, not the profiles themselves."""

    def __init__(self, runs, options):
        self._lock = threading.Lock()
        self._native = _opwatch.Sql.open(runs, options)

    def query(self, text, params=None):
        """Runs the statements of a text and gives the result of the last that has one.

        params: values for ? and $1, $2, … (a list), or for $name (a dict)
        """
        values = _params(params)
        with self._lock:
            return Result(self._native.query(text, values), "sql")

    def close(self):
        """Ends the session; results stay valid."""
        with self._lock:
            self._native.close()


class Session(_Queries):
    """SQL over several profiles at once; each is a run, which the column `run` names.

    runs: profiles, or (name, profile); without a name it is that of the file.
    """

    def __init__(self, runs, **options):
        self.runs = _named(runs)
        super().__init__([(name, profile._native) for name, profile in self.runs], _check("sql", options, "sql"))

    def ask(self, name, queries=(), memory_limit=None, temp_dir=None, **params):
        """Runs a named query over the profiles of the session: s.ask("compare_ops"). See Profile.ask."""
        return _ask(self.runs, name, queries, memory_limit, temp_dir, params)

    def export(self, folder, to="parquet", progress=None, **options):
        """Writes the tables of all runs as files; see Profile.export."""
        return _export(self.runs, folder, to, progress, options)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __reduce__(self):
        raise TypeError(_NO_PICKLE % ("session", "the paths of its profiles"))


def _named(runs):
    """(name, profile) of each; a repeated name gets a number."""
    named, taken = [], set()
    for run in runs:
        name, profile = run if isinstance(run, tuple) else (_run_name(run), run)
        place, first = 2, name
        while not isinstance(run, tuple) and name in taken:
            name, place = "%s-%d" % (first, place), place + 1
        taken.add(name)
        named.append((name, profile))
    return tuple(named)


def _folders(queries):
    """Folders with named queries: the user's, then those that are given, as in the program."""
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    given = _paths([queries] if isinstance(queries, (str, bytes, os.PathLike)) else queries)
    for folder in given:
        if not os.path.exists(folder):
            raise FileNotFoundError(2, "No such folder with queries", os.fsdecode(folder))
    return [os.path.join(config, "opwatch", "queries")] + given


def _ask(runs, name, queries, memory_limit, temp_dir, params):
    folders = _folders(queries)
    known = {query: [param[0] for param in its] for query, _, _, its in _opwatch.queries(folders)}
    _nearest("query", name, known)
    for param in params:
        _nearest("parameter of %s" % name, param, known[name])
    options = {"memory_limit": memory_limit or 0}
    if temp_dir is not None:
        options["temp_dir"] = os.fspath(temp_dir)
    texts = ["%s=%s" % (param, value) for param, value in params.items()]
    return Result(_opwatch.ask([(run, profile._native) for run, profile in runs], name, texts, folders, options), name)


def _nearest(what, name, known):
    if name in known:
        return
    import difflib
    near = difflib.get_close_matches(str(name), list(known), 1)
    raise UsageError("unknown %s %r%s" % (what, name, "; did you mean %r?" % near[0] if near else
                                         "; there are: %s" % (", ".join(sorted(known)) or "none")), "usage")


def _export(runs, folder, to, progress, options):
    options = dict(_check("export", options, "export"), to=to)
    return ExportSummary(_opwatch.export([(name, profile._native) for name, profile in runs], os.fspath(folder), options,
                                         progress))


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
    raise UsageError("%s: no output form given; to= takes one of %s"
                     % (path, ", ".join(sorted({form for _, form in _ENDINGS}))), "usage")


def open(*paths, progress=None, **options):
    """Opens profiles: files, directories and glob patterns of any recognised format, together as one.

    memory_limit: bytes that the library may hold
    step_marker: slices of a trace are steps if all of their name matches this regular expression
    align_clocks: the files are ranks of a job: all times are those of the lowest rank's clock
    redact: replace names and paths by hashes
    infer: compute shapes and float operations that no source gives (on by default)
    input_shapes: "NAME=100x784", shapes of placeholders for infer
    progress: called now and then with (file, bytes done, bytes in all); False cancels
    """
    names = _paths(paths)
    if not names:
        raise TypeError("open: no file given")
    if progress is not None and not callable(progress):
        raise TypeError("progress: a callable is needed, not %s" % type(progress).__name__)
    return Profile(_opwatch.Profile.open(names, _check("open", options, "open"), progress), names)


class ExportSummary(dict):
    """What export() wrote: the number of tables, files, rows and bytes; also as attributes."""

    __getattr__ = dict.__getitem__


class MergeSummary(dict):
    """What merge() did: counts by name, also as attributes; messages is a list of remarks on the files."""

    __getattr__ = dict.__getitem__


def merge(*paths, out, progress=None, **options):
    """Puts Chrome traces (files, directories, patterns, archives) together in one file.

    align: "keep" (the clocks stay), "start" (every file starts at zero), "sequence" (one after the other),
        "clocks" (ranks of one job, on the fitted clock of the lowest rank)
    keep_names, keep_categories, keep_pids: regular expressions of what is kept
    keep_from_ns, keep_to_ns, keep_first_step, keep_last_step: the part that is kept
    no_labels: leave the names of processes alone
    redact: replace private names by pseudonyms
    memory_limit, progress: as for open()
    """
    counts, messages = _opwatch.merge(_paths(paths), out, _check("merge", options, "merge"), progress)
    return MergeSummary(counts, messages=messages)


def hang(*paths, **options):
    """Why a job of many processes stands still: which rank did not come to which collective.

    Files and directories: dumps of PyTorch's flight recorder (JSON or pickle), logs of the watchdog, of torchrun and of NCCL,
    `py-spy dump`, recordings. The rows are the ranks; .extras has conclusion, certain, ranks, collective, group, sequence, why.

    memory_limit, redact: as for open()
    """
    return Result(_opwatch.hang(_paths(paths), _check("hang", options, "hang")), "hang")


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


def ranks(*paths, **options):
    """Compares the ranks of one job: files and directories, read one after the other (docs/ranks.md).

    Rows are ranks: own work, waits, clocks, stragglers. `.extras` has missing_ranks, clock, blame, blamed, slowdown and others.
    """
    return Result(_opwatch.ranks(_paths(paths), _check("ranks", options, "ranks")), "ranks")
