"""The exceptions: one class per kind of failure that a program may want to handle apart.

The extension module calls make() with the library's status, so the text of an exception is the library's.
"""


class Error(Exception):
    """The library could not do what was asked.

    status: the library's name of what went wrong, such as "not found"
    offset: where in the input, in bytes, or None
    """

    status: str = "internal"
    offset = None

    def __init__(self, message="", status=None, offset=None):
        super().__init__(message)
        if status is not None:
            self.status = status
        self.offset = offset

    def __reduce__(self):
        return type(self), (str(self), self.status, self.offset)


class UsageError(Error, ValueError):
    """The request is not valid: no such view, a regular expression that does not parse."""


class NotFound(Error, FileNotFoundError):
    """No such file, step or column."""

    __str__ = Exception.__str__


class PermissionDenied(Error, PermissionError):
    """The system said no."""

    __str__ = Exception.__str__


class InputError(Error, OSError):
    """Reading or writing failed, or a file changed meanwhile."""

    __str__ = Exception.__str__


class FormatError(Error, ValueError):
    """The bytes are not of any format that is known, or there is nothing usable in them."""


class Corrupt(Error, ValueError):
    """The format is known, but the file is damaged where damage cannot be passed over."""


class Empty(FormatError):
    """The file has no bytes."""


class NoMemory(Error, MemoryError):
    """An allocation failed, or memory_limit was reached."""


class LimitReached(Error):
    """Another limit was reached: steps of a regular expression, nesting, rows of a table."""


class Unsupported(Error, NotImplementedError):
    """This build, or this source, cannot do it."""


class Interrupted(Error):
    """A progress callback returned False. (Ctrl-C raises KeyboardInterrupt.)"""


class InternalError(Error):
    """A bug in opwatch: please report it."""


# In the order of ow_status.
_CLASSES = (Error, UsageError, NotFound, PermissionDenied, InputError, FormatError, Corrupt, Empty, NoMemory,
            LimitReached, Unsupported, Interrupted, InternalError)


def make(status, name, offset, text):
    """The exception of a status of the library; text is UTF-8."""
    kind = _CLASSES[status] if 0 <= status < len(_CLASSES) else Error
    return kind(text.decode("utf-8", "replace") or name, name, offset)
