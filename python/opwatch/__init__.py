"""opwatch: why is my job slow, and what do I change?

    import opwatch
    p = opwatch.open("timeline_*.json")
    p.steps()                                  # in a notebook it shows itself
    p.op(order_by="micros", select=["micros", "occurrence"]).to_pandas()

Everything is done by the library libopwatch, which lies beside; this package gives it its Python shape.
"""
from . import _opwatch
from ._errors import (Corrupt, Empty, Error, FormatError, InputError, InternalError, Interrupted, LimitReached,
                      NoMemory, NotFound, PermissionDenied, Unsupported, UsageError)
from ._magic import load_ipython_extension, unload_ipython_extension
from ._profile import MergeSummary, Profile, Session, merge, open
from ._result import Column, Result, Row
from ._steps import StepRecorder, steps

__version__ = _opwatch.version
__all__ = ["Column", "Corrupt", "Empty", "Error", "FormatError", "InputError", "InternalError", "Interrupted",
           "LimitReached", "MergeSummary", "NoMemory", "NotFound", "PermissionDenied", "Profile", "Result", "Row",
           "Session", "StepRecorder", "Unsupported", "UsageError", "build_parts", "formats", "merge", "open", "rules", "sinks",
           "steps", "views"]


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


def build_parts():
    """The optional parts of this build: a list of (name, whether it is there, "")."""
    return _opwatch.build_parts()
