"""opwatch: why is my job slow, and what do I change?

    import opwatch
    p = opwatch.open("timeline_*.json")
    p.steps()                                  # in a notebook it shows itself
    p.op(order_by="micros", select=["micros", "occurrence"]).to_pandas()

Everything is done by the library libopwatch, which lies beside; this package gives it its Python shape.
"""
from . import _opwatch
from ._diff import Diff, diff
from ._errors import (Corrupt, Empty, Error, FormatError, InputError, InternalError, Interrupted, LimitReached,
                      NoMemory, NotFound, PermissionDenied, Unsupported, UsageError)
from ._magic import load_ipython_extension, unload_ipython_extension
from ._profile import ExportSummary, MergeSummary, Page, Profile, Session, hang, merge, open, ranks
from ._profile import _folders
from ._result import Column, Result, Row
from ._steps import StepRecorder, steps

__version__ = _opwatch.version
__all__ = ["Column", "Corrupt", "Diff", "Empty", "Error", "ExportSummary", "FormatError", "InputError", "InternalError", "Interrupted",
           "LimitReached", "MergeSummary", "NoMemory", "NotFound", "Page", "PermissionDenied", "Profile", "Result", "Row",
           "Session", "StepRecorder", "Unsupported", "UsageError", "build_parts", "diff", "formats", "hang", "merge", "open", "queries", "ranks",
           "rules", "sinks", "steps", "views"]


def views():
    """The views: a list of (name, summary, "tree" or "")."""
    return _opwatch.views()


def formats():
    """The formats that are recognised: a list of (name, summary, usual file names)."""
    return _opwatch.importers()


def sinks():
    """The outputs of Result.write: a list of (name, summary, extension)."""
    return _opwatch.sinks()


def rules():
    """The rules of Profile.advise: a list of (name, summary, tfprof's checker)."""
    return _opwatch.rules()


def queries(*folders):
    """The named queries of Profile.ask: a list of (name, title, text, parameters); a parameter is (name, type, default, text).

    folders: more of them, a file NAME.sql each
    """
    return _opwatch.queries(_folders(folders))


def build_parts():
    """The optional parts of this build: a list of (name, whether it is there, "")."""
    return _opwatch.build_parts()
