"""Errors of the names that TensorFlow gives them: its own classes when it is loaded."""
import sys


class InvalidArgumentError(ValueError):
    """An argument that no call takes."""


class InternalError(RuntimeError):
    """A call at a time when it cannot be made."""


def make(name, text):
    """The error of that name, to be raised."""
    tensorflow = sys.modules.get("tensorflow")
    theirs = getattr(getattr(tensorflow, "errors", None), name, None)
    if theirs is not None:
        return theirs(None, None, text)
    return globals()[name](text)
