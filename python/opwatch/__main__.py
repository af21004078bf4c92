"""The program `opwatch` of this package: what the console script and `python -m opwatch` start.

A wheel has it beside this file, a build two folders above; an installation by `make install` or a Debian package has it on the
path. It replaces this process, so signals, terminal and exit status are the program's own.
"""
import os
import shutil
import sys


def program():
    """The path of the program, or None."""
    package = os.path.dirname(os.path.abspath(__file__))
    for path in (os.path.join(package, "opwatch"), os.path.join(package, os.pardir, os.pardir, "opwatch")):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.normpath(path)
    found = shutil.which("opwatch")
    # The console script itself would start this file again, for ever.
    return found if found and not is_script(found) else None


def is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def run(name):
    path = program()
    if not path:
        sys.exit("opwatch: this Python package was built without the program 'opwatch'; "
                 "the Debian package and the tarball of a release have it, and so has its wheel")
    os.execv(path, [name, *sys.argv[1:]])


def main():
    run("opwatch")


def tfprof():
    run("tfprof")


if __name__ == "__main__":
    main()
