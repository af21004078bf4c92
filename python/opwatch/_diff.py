"""Comparisons of runs: opwatch.diff()."""
import os

from . import _opwatch
from ._errors import UsageError
from ._profile import Profile, open as _open
from ._result import Result


class Diff(Result):
    """What opwatch.diff() gives: a table of cells (phase, op, line, rank) whose differences, with unexplained_ns, sum to delta_ns.

    The values beside the rows are attributes: conclusion, delta_ns, base_step_ns, gate, sentence, … (docs/diff.md; extras has all).
    """

    def __init__(self, native):
        super().__init__(native, "diff")
        self._values_beside = Result.extras.fget(self)

    @property
    def extras(self):
        """All values beside the rows: a dict."""
        return dict(self._values_beside)

    def __getattr__(self, name):
        try:
            return self.__dict__["_values_beside"][name]
        except KeyError:
            raise AttributeError("a comparison has no value %r; it has: %s"
                                 % (name, ", ".join(self.__dict__.get("_values_beside", ())))) from None

    def __dir__(self):
        return list(super().__dir__()) + list(self._values_beside)

    def __repr__(self):
        return "%s.\nConclusion: %s.\n%s" % (self.sentence, self.conclusion, super().__repr__())

    def to_markdown(self, limit=15):
        """The sentence, the limits and the largest rows as Markdown, for a pull request."""
        lines = self.write(to="markdown").decode("utf-8", "replace").split("\n")
        table = next(i for i, line in enumerate(lines) if line.startswith("| "))  # head, then a line of dashes
        return "\n".join(lines[:table + 2 + limit]).rstrip("\n") + "\n"


def _runs(side, name, opened):
    """The profiles of a side: Profile, path, or a list of them; a tuple of paths is one run of several files."""
    if side is None:
        raise UsageError("diff: give both sides: diff(a, b) or diff(base=[…], new=[…])", "usage")
    found = []
    for run in side if isinstance(side, list) else [side]:
        if isinstance(run, Profile):
            found.append(run)
        elif isinstance(run, (str, bytes, os.PathLike, tuple)):
            profile = _open(*(run if isinstance(run, tuple) else (run,)))
            opened.append(profile)
            found.append(profile)
        else:
            raise TypeError("diff: %s is a Profile, a path, a tuple of paths or a list of them, not %s" % (name, type(run).__name__))
    return found


def diff(base=None, new=None, *, fail_if=()):
    """Compares the steps of runs before and after a change (docs/diff.md).

    base, new: a run each (a Profile, a path, a tuple with the paths of its ranks), or a list of runs
    fail_if: limits such as "step_time > 3%"; the attribute gate says how they did
    """
    opened = []
    limits = [fail_if] if isinstance(fail_if, str) else list(fail_if)
    try:
        sides = [_runs(side, name, opened) for side, name in ((base, "base"), (new, "new"))]
        runs = [("", profile._native) for side in sides for profile in side]
        return Diff(_opwatch.diff(runs, len(sides[0]), limits))
    finally:
        for profile in opened:
            profile.close()
