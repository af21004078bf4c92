#!/usr/bin/python3
"""Folded stacks, `perf script`, pprof and old heap profiles, larger than what is read at once: the functions' times are those of a
second computation here, plain and gzipped files give the same, and a plain file takes no longer than a gzipped one."""
import collections
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SRC / "tests/support"))
from stack_files import field, stacks, varint  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
LONG = "x" * 300_000  # longer than the window that files are read through


def functions(path):
    run = subprocess.run([BIN, "functions", path, "--json"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return {row["name"]: (row["self"], row["total"]) for row in json.loads(run.stdout)["rows"]}


def add_up(samples):
    """Self and total weight by function, of (names from the root on, weight)."""
    alone, total = collections.Counter(), collections.Counter()
    for names, weight in samples:
        if names:
            alone[names[-1]] += weight
        for name in set(names):
            total[name] += weight
    return {name: (alone[name], total[name]) for name in total}


class StackFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def compare(self, name, data, samples):
        plain, packed = self.folder / name, self.folder / (name + ".gz")
        plain.write_bytes(data)
        packed.write_bytes(gzip.compress(data, 1))
        self.assertGreater(len(data), 1 << 20, "as small files are read at once, this tests nothing")
        expected = add_up(samples)
        self.assertEqual(functions(plain), expected)
        self.assertEqual(functions(packed), expected)

    def samples(self, count, rng):
        return [([f"f{i % 97}" for i in s], rng.randrange(1, 50)) for s in stacks(count, rng.random())]

    def test_folded(self):
        rng = random.Random(1)
        for order in (sorted, list):
            samples = order(self.samples(20000, rng)) + [(["root", LONG], 3), (["root"], 4), (["root", "ro"], 5), (["r"], 1)]
            lines = [";".join(names) + f" {weight}" for names, weight in samples]
            lines[5:5] = ["# a comment", "", "not a stack"]
            self.compare(f"{order.__name__}.folded", "\n".join(lines).encode(), samples)

    def test_folded_empty_frames_and_crlf(self):
        samples = [(["a", "b"], 1), (["a"], 2), (["a", "b", "c"], 4), (["b"], 8)] * 40000
        text = ["a;;b", "a", ";a;b;c;", "b"]
        lines = [f"{text[i % 4]} {weight}" for i, (_, weight) in enumerate(samples)]
        self.compare("x.folded", "\r\n".join(lines).encode() + b"\r\n", samples)

    def test_perf_script(self):
        rng = random.Random(2)
        samples, blocks = self.samples(3000, rng), []
        for n, (names, weight) in enumerate(samples):
            frames = [f"\t{1000 + n % 5:16x} {name} (/usr/bin/job)" for name in reversed(names)]
            if n % 7 == 0:  # the source line of the last frame belongs to it alone
                frames.append(f"  {names[0]}.c:{n}")
            blocks.append(f"job {n % 3}/{n % 4} 12.{n:06d}: {weight} cycles:\n" + "\n".join(frames) + "\n")
        self.compare("x.txt", "\n".join(blocks).encode(), samples)

    def test_source_lines_stay_with_their_frame(self):
        block = "job 1/1 1.0: 5 cycles:\n\t  10 f (/bin/job)\n{}\t  20 main (/bin/job)\n\n"
        path = self.folder / "x.txt"
        path.write_text("".join(block.format(f"  f.c:{n}\n" if n % 2 else "") for n in range(6)))
        out = subprocess.run([BIN, "lines", path, "--json"], capture_output=True, text=True, check=True).stdout
        rows = {(row["function"], row["line"]): row["self"] for row in json.loads(out)["rows"] if row["self"]}
        self.assertEqual({key: rows[key] for key in rows if key[1]}, {("f", 1): 5, ("f", 3): 5, ("f", 5): 5})
        self.assertEqual(sum(rows.values()), 30)

    def test_heap_text(self):
        rng = random.Random(3)
        samples, lines = self.samples(6000, rng), ["heap profile: 1: 1 [1: 1] @ heapprofile"]
        numbers = {f"f{i}": 0x7f1000 + i * 16 for i in range(97)}
        lines += [f"#\t0x{number:x}\t{name}+0x2\t/src/a.go:1" for name, number in numbers.items()]
        for n, (names, weight) in enumerate(samples):  # a return address lies behind the call
            places = " ".join(f"0x{numbers[name] + 1:{'X' if n % 2 else 'x'}}" for name in reversed(names))
            lines.append(f" {weight}: {weight} [{weight}: {weight}] @  {places}")
        self.compare("x.heap", "\n".join(lines).encode() + b"\nMAPPED_LIBRARIES:\n", samples)

    def pprof(self, samples, drop=""):
        """Locations: 2 n + 1 is a call of function n, 2 n + 2 has function n + 1 inlined into n, and 99999 is missing. The list is
        packed, or one by one, or in two pieces; ids have one or two bytes, or more."""
        names = sorted({int(name[1:]) for names, _, _ in samples for name in names} | set(range(98)))
        out, texts = [field(1, field(1, 1) + field(2, 2))], ["", "samples", "count", drop, "key"] + [f"f{n}" for n in names]
        for number, (stack, weight, form) in enumerate(samples):
            ids = []
            left = [int(name[1:]) for name in stack]
            while left:
                n = left.pop(0)
                inlined = left and left[0] == n + 1 and number % 2
                if inlined:
                    left.pop(0)
                ids.append(2 * n + 2 if inlined else 2 * n + 1)
            ids.reverse()
            if form == "missing":
                ids.insert(len(ids) // 2, 99999)
            if form == "single":
                places = b"".join(field(1, i) for i in ids)
            elif form == "pieces":
                places = field(1, b"".join(map(varint, ids[:3]))) + field(1, b"".join(map(varint, ids[3:])))
            else:
                places = field(1, b"".join(map(varint, ids)))
            label = field(3, field(1, 4) + field(3, number % 5))
            value = field(2, varint(weight))
            out.append(field(2, places + (label + value if number % 3 else value + label)))
        for n in names:
            line = field(1, n + 1) + field(2, n)
            out.append(field(4, field(1, 2 * n + 1) + field(3, n) + field(4, line)))
            out.append(field(4, field(1, 2 * n + 2) + field(3, n) + field(4, field(1, n + 2) + field(2, 1)) + field(4, line)))
            out.append(field(5, field(1, n + 1) + field(2, 5 + names.index(n))))
        return b"".join(out) + b"".join(field(6, text.encode()) for text in texts) + (field(7, 3) if drop else b"")

    def test_pprof(self):
        rng = random.Random(4)
        forms = ["packed"] * 20 + ["single", "pieces", "missing"]
        samples = [(names, weight, rng.choice(forms)) for names, weight in self.samples(30000, rng)]
        samples += [([f"f{n}"], 7, "packed") for n in (0, 63, 64, 8191, 8192, 2_000_000)] + [(["f1"] * 9000, 1, "packed")]
        for order in (rng.shuffle, list.sort):
            order(samples)
            self.compare("x.pb", self.pprof(samples), [s[:2] for s in samples])

    def test_pprof_drops_frames(self):
        rng = random.Random(5)
        samples = [(["f0", "f50"] + names, weight, "packed") for names, weight in self.samples(30000, rng)]
        kept = []
        for names, weight, _ in samples:
            cut = next((i for i, name in enumerate(names) if name == "f7"), len(names))
            kept.append((names[:cut], weight))
        found = functions_of(self.folder / "d.pb", self.pprof(samples, "f7"))
        self.assertEqual(found["f0"], add_up(kept)["f0"])
        self.assertNotIn("f7", found)

    def test_plain_is_as_fast_as_gzip(self):
        """The window was once moved for each line, which made plain files 30 times slower."""
        plain, packed = self.folder / "x.folded", self.folder / "x.folded.gz"
        plain.write_bytes(b"".join(b"a;b;%d 1\n" % (n % 1000) for n in range(1_000_000)))
        packed.write_bytes(gzip.compress(plain.read_bytes(), 1))

        def seconds(path):
            best = 1e9
            for _ in range(3):
                before = os.times().children_user + os.times().children_system
                subprocess.run([BIN, "metrics", path], capture_output=True, check=True)
                best = min(best, os.times().children_user + os.times().children_system - before)
            return best

        self.assertLess(seconds(plain), 3 * seconds(packed) + 0.1)


def functions_of(path, data):
    path.write_bytes(data)
    return functions(path)


if __name__ == "__main__":
    unittest.main()
