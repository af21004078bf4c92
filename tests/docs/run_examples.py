#!/usr/bin/python3
"""run_examples.py [--update] [FILE...]: runs the examples of the documentation and compares what they print.

An example is a line `$ command` in a ```console block of a .md file, or between .EX and .EE (.nf, .fi) of a
man page. The lines after it, up to the next `$ `, are what it prints; without any, only the exit status counts.

- A line `...` stands for any lines, `...` inside a line for any text.
- The command goes on over lines that end in a backslash.
- Lines `tfprof> x` and `opwatch> x` are typed into the command; the prompts themselves are not compared.
- `$ command  # exits 2` expects that exit status instead of 0.
- `<!-- not run: why -->` (`.\\" not run: why` in a man page) just before a block leaves it out, `# not run: why` at the end of a command
  leaves out that command.
- `<!-- with: tests/a.pb as logs/b.pb -->` before a block copies a file of the project into the scratch directory.
- `<!-- file: train.py -->` before a code block of any language writes that block into the scratch directory.
- `<!-- needs: command -->` before a block leaves it out where the command fails.

With --update the shown output of examples in .md files becomes what is printed now, where it has no `...` and nothing is
typed; read the diff before you commit it.

Each document's examples run in order in one scratch directory, with the binary on PATH and as build/release/opwatch,
and a copy of samples/. Without FILE: README.md, docs/**/*.md and docs/man/*.1. Environment: OPWATCH_BIN, OPWATCH_SRC.
"""
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple

Example = namedtuple("Example", "line command typed output status needs files")
Block = namedtuple("Block", "lines needs files")
WITHOUT_SQL = re.compile("SQL needs DuckDB|built without SQL")  # an optional part: such examples are passed over
PROMPT = re.compile(r"^(?:tfprof|opwatch)> ?", re.M)
ROFF = [(r"\\f(?:[A-Z]|\([A-Z]{2}|\[[A-Z]*\])", ""), (r"\\-", "-"), (r"\\\(aq", "'"), (r"\\\(dq", '"'), (r"\\&", ""),
        (r"\\e|\\\\|\\\(rs", "\\\\")]


def blocks(text, is_man):
    """The example blocks of a document; files are (path, text of the document or path in the project)."""
    begin = r"\.(EX|nf)\b" if is_man else r"\s*```(\w*)\s*$"
    end = r"\.(EE|fi)\b" if is_man else r"\s*```\s*$"
    skip = r'\.\\" *not run:' if is_man else r"\s*<!-- *not run:"
    block, kind, skipped, needs, files, name = None, None, False, None, [], None
    for number, line in enumerate(text.splitlines(), 1):
        if block is None:
            opened, remark = re.match(begin, line), re.match(r"\s*<!-- *(with|file|needs): *(.*?) *-->", line)
            if opened:
                block, kind = [], "console" if is_man else opened[1]
            elif remark and remark[1] == "with":
                files.append(tuple(reversed(remark[2].split(" as "))))
            elif remark and remark[1] == "file":
                name = remark[2]
            elif remark:
                needs = remark[2]
            elif line.strip():
                skipped, needs, name = bool(re.match(skip, line)), None, None
        elif re.match(end, line):
            if name:
                files.append((name, "".join(content + "\n" for _, content in block).encode()))
            elif kind == "console" and not skipped:
                yield Block(block, needs, files)
                files = []
            block, skipped, needs, name = None, False, None, None
        else:
            if is_man:
                for pattern, plain in ROFF:
                    line = re.sub(pattern, plain, line)
            block.append((number, line))


def examples(text, is_man=False):
    """The examples of a document's text."""
    found = []
    for block in blocks(text, is_man):
        indent = min((len(t) - len(t.lstrip()) for _, t in block.lines if t.strip()), default=0)
        lines = [(n, t[indent:].rstrip()) for n, t in block.lines]
        files = block.files
        while lines:
            number, line = lines.pop(0)
            if not line.startswith("$ "):
                continue
            command, typed, output = line[2:], [], []
            while command.endswith("\\") and lines:
                command = command[:-1] + lines.pop(0)[1].removeprefix("> ").strip()
            while lines and not lines[0][1].startswith("$ "):
                shown = lines.pop(0)[1]
                prompt = PROMPT.match(shown)
                (typed if prompt else output).append(shown[prompt.end():] if prompt else shown)
            exits = re.search(r"\s+# exits (\d+)$", command)
            command = command[:exits.start()] if exits else command
            if re.search(r"\s+# not run: ", command):
                continue
            found.append(Example(number, command, typed, output, int(exits[1]) if exits else 0, block.needs, files))
            files = []
    return found


def pattern(output):
    """The regular expression that an example's output stands for."""
    parts = []
    for line in output:
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(r"[^\n]*".join(re.escape(p) for p in line.split("...")) + r"[ ]*\n")
    return "".join(parts) + r"\n*\Z"


def matches(output, got):
    got = "".join(line.rstrip() + "\n" for line in got.splitlines())
    return re.match(pattern([line.rstrip() for line in output]), got) is not None


def start(example, cwd, env):
    typed = "".join(line + "\n" for line in example.typed)
    return subprocess.run(["bash", "-c", example.command], cwd=cwd, env=env, input=typed, timeout=120, text=True,
                          errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def put_files(example, root, cwd):
    """Writes the files that the example's block reads."""
    for name, content in example.files:
        path = pathlib.Path(cwd, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else (root / content).read_bytes())


def can_run(example, cwd, env):
    return not example.needs or subprocess.run(["bash", "-c", example.needs], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                               capture_output=True, timeout=120).returncode == 0


def run(example, cwd, env, root=pathlib.Path(".")):
    """None when the example does what it shows, else a text that says what it did."""
    put_files(example, root, cwd)
    if not can_run(example, cwd, env):
        return None
    done = start(example, cwd, env)
    if WITHOUT_SQL.search(done.stdout):
        return None
    if done.returncode != example.status:
        return f"exit status {done.returncode}, not {example.status}; it printed:\n{done.stdout}"
    got = PROMPT.sub("", done.stdout) if example.typed else done.stdout
    shown = [line for line in example.output]
    while shown and not shown[-1]:
        shown.pop()
    if shown and not matches(shown, got):
        return "\n".join(difflib.unified_diff(shown, [x.rstrip() for x in got.splitlines()], "shown", "printed", lineterm=""))
    return None


def scratch(root, binary, directory):
    """Fills the directory the examples run in, and returns their environment."""
    for place in ("bin", "build/release"):
        os.makedirs(f"{directory}/{place}")
        for name in ("opwatch", "tfprof"):
            os.symlink(binary, f"{directory}/{place}/{name}")
    if os.path.exists("/usr/bin/python3"):  # the one with the distribution's packages
        os.symlink("/usr/bin/python3", f"{directory}/bin/python3")
    if (root / "samples").is_dir():
        shutil.copytree(root / "samples", f"{directory}/samples")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OPWATCH_", "XDG_", "LC_")) and k != "COLUMNS"}
    return {**env, "PATH": f"{directory}/bin:" + os.environ.get("PATH", "/usr/bin:/bin"), "HOME": directory, "LC_ALL": "C.UTF-8"}


def update(path, example, printed):
    """Puts what was printed into the document; the numbers of later lines change, so examples go from the last."""
    lines = path.read_text(encoding="utf8").split("\n")
    first = example.line
    while lines[first - 1].endswith("\\"):
        first += 1
    indent = re.match(r"\s*", lines[example.line - 1])[0]
    lines[first:first + len(example.output)] = [indent + line.rstrip() for line in printed.splitlines()]
    path.write_text("\n".join(lines), encoding="utf8")


def can_update(path, example):
    return path.suffix == ".md" and example.output and not example.typed and "..." not in "".join(example.output)


def update_document(path, root, binary):
    found, changed = examples(path.read_text(encoding="utf8"), path.suffix == ".1"), []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:  # a job may still end in it
        env = scratch(root, binary, directory)
        for example in found:
            put_files(example, root, directory)
            done = start(example, directory, env)
            if done.returncode == example.status and can_update(path, example):
                changed.append((example, done.stdout))
    for example, printed in reversed(changed):
        update(path, example, printed)


def run_document(path, root, binary):
    """(number of examples, number that failed) of one document."""
    found, failed = examples(path.read_text(encoding="utf8"), path.suffix == ".1"), 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:  # a job may still end in it
        env = scratch(root, binary, directory)
        for example in found:
            wrong = run(example, directory, env, root)
            if wrong is not None:
                failed += 1
                print(f"{path.relative_to(root)}:{example.line}: $ {example.command}\n{wrong}\n")
    return len(found), failed


def main(arguments):
    updating = "--update" in arguments
    arguments = [a for a in arguments if a != "--update"]
    root = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
    binary = os.path.abspath(os.environ.get("OPWATCH_BIN", root / "build/release/opwatch"))
    paths = [pathlib.Path(a).resolve() for a in arguments] or [
        p for p in [root / "README.md", *sorted(root.glob("docs/**/*.md")), *sorted(root.glob("docs/man/*.1"))] if p.exists()]
    total = failures = 0
    if updating:
        for path in paths:
            update_document(path, root, binary)
    for path in paths:
        count, failed = run_document(path, root, binary)
        total, failures = total + count, failures + failed
    print(f"{total} examples in {len(paths)} documents, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
