"""%load_ext opwatch, then %%opwatch: SQL in a notebook's cell, as BigQuery's magic does it.

    %%opwatch [VARIABLE] [--run PROFILE] [--destination_table a.b] [--verbose] [--project ignored]
    SELECT …
"""
import argparse
import re
import shlex
import sys

from ._profile import Profile, Session, open as open_profile
from ._errors import UsageError

_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_TICKED = re.compile(r"`([^`]*)`")


class _Arguments(argparse.ArgumentParser):
    def error(self, message):
        raise UsageError("%%opwatch: " + message + "\n" + self.format_usage().strip(), "usage")


def _parser():
    parser = _Arguments(prog="%%opwatch", add_help=False, usage="%%opwatch [VARIABLE] [--run PROFILE]... "
                        "[--destination_table a.b] [--verbose] [--project NAME]".replace("%", "%%"))
    parser.add_argument("variable", nargs="?")
    parser.add_argument("--run", action="append", default=[])
    parser.add_argument("--destination_table", "--destination-table")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--project")
    return parser


class Magic:
    """The state behind the cells of one shell: the profiles that are open and the session that asks them.

    shell needs `user_ns`, a dict: an IPython shell, or any object that has one.
    """

    def __init__(self, shell):
        self.shell = shell
        self.opened = {}  # by what was written after --run
        self.names = ()
        self.session = None
        self.tables = set()  # made by --destination_table

    def close(self):
        if self.session is not None:
            self.session.close()
        for profile in self.opened.values():
            profile.close()
        self.opened, self.session, self.names, self.tables = {}, None, (), set()

    def profile(self, word):
        """A profile in the variable of that name, or opened from a path or pattern."""
        value = self.shell.user_ns.get(word)
        if isinstance(value, Profile):
            return value
        if isinstance(value, str) and _NAME.match(word):
            word = value
        if word not in self.opened:
            self.opened[word] = open_profile(word)
        return self.opened[word]

    def choose(self, words):
        """The session over the runs that --run names; without any, over those of the cell before."""
        if not words and self.session is not None:
            return
        if not words:  # the only profile around, if there is one
            words = [name for name, value in self.shell.user_ns.items()
                     if isinstance(value, Profile) and not name.startswith("_") and not value.closed]
            if len(words) != 1:
                raise UsageError("%%opwatch: no profile given; use --run with a path or the name of a variable", "usage")
        profiles = tuple(self.profile(word) for word in words)
        if self.session is not None and profiles == self.names:
            return
        session = Session(profiles)
        if self.session is not None:
            self.session.close()
        self.session, self.names, self.tables = session, profiles, set()

    def own_tables(self, text):
        """Tables of --destination_table in back-ticks, where the library expects those of BigQuery."""
        def plain(match):
            name = ".".join(match[1].split(".")[-2:])
            return name if name.lower() in self.tables else match[0]
        return _TICKED.sub(plain, text)

    def store(self, name, query):
        """The rows as a table; gives them, too."""
        parts = name.strip("`").replace(":", ".").split(".")[-2:]
        if not all(_NAME.match(part) for part in parts):
            raise UsageError("%%opwatch: --destination_table " + name + ": letters, digits and _, as in dataset.table",
                             "usage")
        table = ".".join(parts)
        if len(parts) == 2:
            self.session.query("CREATE SCHEMA IF NOT EXISTS " + parts[0])
        self.session.query("CREATE OR REPLACE TABLE %s AS %s" % (table, query))
        self.tables.add(table.lower())
        return self.session.query("SELECT * FROM " + table)

    def __call__(self, line, cell):
        arguments = _parser().parse_args(shlex.split(line))
        if arguments.variable and not arguments.variable.isidentifier():
            raise UsageError("%%opwatch: " + arguments.variable + " cannot be the name of a variable", "usage")
        self.choose(arguments.run)
        query = self.own_tables(cell).strip().rstrip(";").rstrip()
        if not query:
            raise UsageError("%%opwatch: the cell has no SQL", "usage")
        if arguments.verbose:
            print("runs: %s" % ", ".join(name for name, _ in self.session.runs), file=sys.stderr)
        result = (self.store(arguments.destination_table, query) if arguments.destination_table
                  else self.session.query(query))
        if arguments.verbose:
            print("%d rows%s" % (len(result), ", kept as " + arguments.destination_table
                                 if arguments.destination_table else ""), file=sys.stderr)
        if not arguments.variable:
            return result
        self.shell.user_ns[arguments.variable] = _frame(result)
        return None


def _frame(result):
    """A DataFrame; the result itself where pandas is not installed."""
    try:
        return result.to_pandas()
    except ImportError:
        return result


def load_ipython_extension(shell):
    """%load_ext opwatch"""
    magic = Magic(shell)
    shell.register_magic_function(magic, magic_kind="cell", magic_name="opwatch")


def unload_ipython_extension(shell):
    """%unload_ext opwatch"""
    magic = shell.magics_manager.magics["cell"].pop("opwatch", None)
    if isinstance(magic, Magic):
        magic.close()
