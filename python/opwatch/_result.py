"""Results: what views, advice and queries give. A table whose rows may form a tree."""
import datetime
import functools
import json
import re

_NO_PICKLE = "an opwatch %s cannot be pickled: pickle %s instead"


class Row(tuple):
    """One row: a tuple whose values also have the names of the columns (row.name, row["name"])."""

    __slots__ = ()
    _fields = ()
    _places = {}

    def __getitem__(self, key):
        if isinstance(key, str):
            try:
                return tuple.__getitem__(self, self._places[key])
            except KeyError:
                raise KeyError("there is no column %r; the columns are: %s" % (key, ", ".join(self._fields))) from None
        return tuple.__getitem__(self, key)

    def __getattr__(self, name):
        try:
            return tuple.__getitem__(self, self._places[name])
        except KeyError:
            raise AttributeError("there is no column %r; the columns are: %s" % (name, ", ".join(self._fields))) from None

    def __dir__(self):
        return list(super().__dir__()) + list(self._fields)

    def __repr__(self):
        return "Row(%s)" % ", ".join("%s=%r" % pair for pair in zip(self._fields, self))

    def __reduce__(self):
        return _row_of, (self._fields, tuple(self))

    def _asdict(self):
        return dict(zip(self._fields, self))


@functools.lru_cache(maxsize=256)  # a class is a cycle, and slow to make
def _row_class(fields):
    places = {name: place for place, name in enumerate(fields)}
    return type("Row", (Row,), {"__slots__": (), "_fields": tuple(fields), "_places": places})


def _row_of(fields, values):
    """For unpickling."""
    return _row_class(tuple(fields))(values)


class Column:
    """What a column is: name, title (for people), type (int, real, text, bool, number, and in SQL timestamp, timestamptz,
    date, time, interval, list, object), unit ("" or ns, us, bytes, …)."""

    __slots__ = ("name", "title", "type", "unit")

    def __init__(self, name, title, type, unit):
        self.name, self.title, self.type, self.unit = name, title, type, unit

    def __repr__(self):
        return "Column(%r, %s%s)" % (self.name, self.type, ", " + self.unit if self.unit else "")


# ---- what texts of SQL stand for ----

_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})\d*)?(?:([+-])(\d\d)(?::?(\d\d))?)?$")

_NANOSECONDS = re.compile(r"\.\d{7}")


def _stamp(text):
    """A datetime; what it cannot hold (infinity, years before 1 or after 9999) stays a text."""
    found = _STAMP.match(text)
    if not found:
        return text
    zone = None
    if found[8]:
        minutes = int(found[9]) * 60 + int(found[10] or 0)
        zone = datetime.timezone(datetime.timedelta(minutes=-minutes if found[8] == "-" else minutes))
    try:
        return datetime.datetime(*map(int, found.groups()[:6]), int((found[7] or "").ljust(6, "0")), zone)
    except ValueError:
        return text


def _date(text):
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return text


def _json(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


_READERS = {"timestamp": _stamp, "timestamptz": _stamp, "date": _date, "list": _json, "object": _json}


def _read(reader, values):
    return [None if value is None else reader(value) for value in values]


class _Memory:
    """The numbers of a column where they are, for numpy, which keeps this object and with it the result."""

    __slots__ = ("_native", "__array_interface__")

    def __init__(self, native, address, kind):
        self._native = native
        self.__array_interface__ = {"version": 3, "shape": (len(native),), "typestr": kind, "data": (address, True)}


def _numbers(numpy, values):
    """Exact numbers as int64 or, beyond it, as objects; fractions as float64. Unknown values are 0, None or NaN."""
    known = [value for value in values if value is not None]
    if not known or not all(isinstance(value, int) for value in known):
        return numpy.array([numpy.nan if value is None else float(value) for value in values])
    if all(-1 << 63 <= value < 1 << 63 for value in known):
        return numpy.array([value or 0 for value in values], dtype=numpy.int64)
    return values


def _array(numpy, native, column):
    """(values, mask or None): texts as objects, truth values as bool, numbers where they are."""
    known = native.known(column)
    mask = None if known is None else numpy.frombuffer(known, dtype=numpy.uint8) == 0
    values = native.values(column)
    if values is None:
        texts = numpy.empty(len(native), dtype=object)
        if len(texts):
            native.fill(column, texts.__array_interface__["data"][0])
        if native.schema()[column][2] == "number":
            texts = _numbers(numpy, texts)
        return texts, mask
    if isinstance(values, bytes):
        return numpy.frombuffer(values, dtype=bool), mask
    return numpy.asarray(_Memory(native, *values)) if len(native) else numpy.empty(0, values[1]), mask


def _numpy(numpy, native, column):
    values, mask = _array(numpy, native, column)
    return values if mask is None else numpy.ma.MaskedArray(values, mask=mask)


def _pandas(pandas, native, column, kind):
    import numpy
    if kind in _READERS:
        return _pandas_read(pandas, native.column(column), kind)
    values, mask = _array(numpy, native, column)
    if kind == "number" and values.dtype == object:  # whole numbers of more than 64 bits
        if mask is not None:
            values[mask] = pandas.NA
        return values
    if kind in ("int", "real", "bool", "number"):
        values = values.copy()
    if mask is None:
        return values
    if values.dtype == numpy.int64:
        return pandas.arrays.IntegerArray(values, mask)
    if kind == "bool":
        return pandas.arrays.BooleanArray(values, mask)
    if kind in ("real", "number"):
        values[mask] = numpy.nan
    return values


def _pandas_read(pandas, texts, kind):
    """Times as datetime64, lists and objects as Python values; times that pandas cannot hold as objects."""
    values = _read(_READERS[kind], texts)
    if kind in ("list", "object"):
        return pandas.Series(values, dtype=object).to_numpy()
    try:
        if kind == "timestamp" and any(text and _NANOSECONDS.search(text) for text in texts):
            return pandas.to_datetime(pandas.Series(texts, dtype=object))  # datetime has microseconds
        return pandas.to_datetime(pandas.Series(values, dtype=object), utc=kind == "timestamptz")
    except (ValueError, TypeError, OverflowError):
        return pandas.Series(values, dtype=object)


class FlameGraph(str):
    """The text of an SVG file; shows itself in a notebook."""

    __slots__ = ()

    def _repr_svg_(self):
        return str(self)


class Result:
    """A table of typed columns. Immutable; it stays valid after the profile is closed.

    len(result), result[3], result[-1], result[2:5] (a list of rows), result["name"] (a column as a list),
    and iteration, which gives rows. Unknown values are None.
    """

    def __init__(self, native, view, profile=None, options=None):
        self._native = native
        self.view = view
        self._options = options or {}
        self.schema = tuple(Column(*column) for column in native.schema())
        self.columns = tuple(column.name for column in self.schema)
        self._readers = {place: _READERS[column.type] for place, column in enumerate(self.schema) if column.type in _READERS}
        self._row = _row_class(self.columns)

    # ---- reading ----

    def __len__(self):
        return len(self._native)

    def __iter__(self):
        return map(self._row, zip(*self._columns())) if self.columns else iter(())

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.column(key)
        if isinstance(key, slice):
            return [self._row_at(i) for i in range(*key.indices(len(self)))]
        try:
            index = key.__index__()
        except AttributeError:
            raise TypeError("a row is named by an int and a column by a str, not by %s" % type(key).__name__) from None
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError("there is no row %d: the result has %d rows" % (key, len(self)))
        return self._row_at(index)

    def _row_at(self, index):
        values = self._native.row(index)
        if self._readers:
            values = tuple(self._readers[place](value) if place in self._readers and value is not None else value
                           for place, value in enumerate(values))
        return self._row(values)

    def column(self, name):
        """The values of a column, as a list."""
        return self._values(self._place(name))

    def _values(self, place):
        values = self._native.column(place)
        return _read(self._readers[place], values) if place in self._readers else values

    def _place(self, name):
        try:
            return self.columns.index(name)
        except ValueError:
            raise KeyError("there is no column %r; the columns are: %s" % (name, ", ".join(self.columns))) from None

    def _columns(self):
        return [self._values(i) for i in range(len(self.columns))]

    @property
    def depths(self):
        """The depth of every row in the tree; zeros in a flat result."""
        return self._native.depths()

    @property
    def extras(self):
        """Values beside the rows, such as step_ns of advise(): a dict."""
        return {name: json.loads(text) for name, text in self._native.extras().items()}

    @property
    def footer(self):
        """The text below the rows: why there are none, what shares are of. None without one."""
        return self._native.footer()

    @property
    def messages(self):
        """Remarks on how the result came about."""
        return self._native.messages()

    # ---- other shapes ----

    def to_dict(self):
        """{column: list of values}"""
        return dict(zip(self.columns, self._columns()))

    def to_numpy(self):
        """{column: numpy array}, in the order of the columns.

        Numbers are not copied: these arrays are read-only and keep the result. Texts are arrays of str.
        Columns with unknown values are masked arrays.
        """
        import numpy
        return {name: _numpy(numpy, self._native, i) for i, name in enumerate(self.columns)}

    def to_pandas(self):
        """A pandas DataFrame of its own. Columns of whole numbers or truth values that have unknown ones are of
        pandas' nullable types; timestamps and dates of SQL are datetime64, lists are lists. Whole numbers of more than 64
        bits (HUGEINT) are Python's int."""
        import pandas
        data = {name: _pandas(pandas, self._native, i, self.schema[i].type) for i, name in enumerate(self.columns)}
        return pandas.DataFrame(data, index=pandas.RangeIndex(len(self)), columns=list(self.columns), copy=False)

    def __arrow_c_stream__(self, requested_schema=None):
        """Arrow's PyCapsule interface: pyarrow.table(result), polars.DataFrame(result), DuckDB and others."""
        return self._native.arrow_stream()

    def __arrow_c_schema__(self):
        return self._native.arrow_schema()

    def to_arrow(self):
        """A pyarrow.Table; numbers are not copied."""
        import pyarrow
        return pyarrow.table(self)

    def to_polars(self):
        """A polars.DataFrame; numbers are not copied."""
        import polars
        return polars.DataFrame(self)

    def to_parquet(self, path):
        """Writes a Parquet file; needs the same library as SQL."""
        self.write(path, to="parquet")

    def write(self, path=None, to="text", **options):
        """Writes through one of the library's outputs (opwatch.sinks()): text, json, csv, tfprof, folded, …

        Without a path the bytes are returned. Options: width, colour, metric, title.
        """
        return self._native.write(to, options, path)[0]

    def to_json(self):
        """What `opwatch VIEW FILES --json` prints, as Python values."""
        return json.loads(self.write(to="json"))

    def to_csv(self, path=None):
        """As CSV: bytes, or into a file."""
        return self.write(path, to="csv")

    def flamegraph(self, metric=None, title=None, path=None):
        """A flame graph of a tree (scope, graph, code) as SVG: text that shows itself in a notebook, or a file."""
        options = {name: value for name, value in (("metric", metric), ("title", title)) if value is not None}
        svg = self.write(path, to="flamegraph", **options)
        return None if path is not None else FlameGraph(svg.decode("utf-8", "replace"))

    def _repr_html_(self):
        from . import _html
        return _html.page(self)

    def __repr__(self):
        return self.write(to="text", width=100).decode("utf-8", "replace").rstrip("\n")

    def __reduce__(self):
        raise TypeError(_NO_PICKLE % ("result", "what to_dict() or to_pandas() gives"))
