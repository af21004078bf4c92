#!/usr/bin/python3
"""pprof's older forms, written here from one description each: every way to write the words of a CPU profile gives the same
stacks and sums; text forms give the values that pprof computes; cut files are read up to there."""
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SRC / "tests/support"))
import pprof_legacy as legacy  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
MAPS = [(0x400000, 0x500000, "/bin/prog"), (0x7000000, 0x7100000, "/lib/libc.so")]


class Legacy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "x.prof")

    def opwatch(self, data, *command):
        self.path.write_bytes(data if isinstance(data, bytes) else data.encode())
        run = subprocess.run([BIN, command[0], str(self.path), *command[1:]], capture_output=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.decode()

    def info(self, data):
        return json.loads(self.opwatch(data, "info", "--json"))

    def folded(self, data, *options):
        return sorted(self.opwatch(data, "code", "--to", "folded", *options).splitlines())

    def samples(self, seed):
        rng = random.Random(seed)
        places = [rng.randrange(0x400010, 0x4fff00) for _ in range(40)]
        return [(rng.randint(1, 9), [rng.choice(places) for _ in range(rng.randint(3, 12))]) for _ in range(60)]

    def test_words(self):
        samples = self.samples(1)
        want = None
        for size in (4, 8):
            for big in (False, True):
                data = legacy.words(samples, MAPS, size=size, big=big)
                info = self.info(data)
                count = sum(c for c, _ in samples)
                self.assertEqual(info["format"], "legacy: binary words")
                self.assertEqual((info["samples"], info["mappings"]), (60, 2))
                self.assertEqual(info["sum_values"], [count, count * 10_000_000])
                self.assertEqual(info["locations"],
                                 len({a - (i > 0) for _, at in samples for i, a in enumerate(at)}))
                folded = self.folded(data)
                self.assertEqual(sum(int(line.rsplit(" ", 1)[1]) for line in folded), count * 10_000_000)
                want = want or folded
                self.assertEqual(folded, want)

    def test_handler(self):
        """An address that nearly all samples have behind their leaf is the signal handler's; so is a doubled leaf."""
        samples = [(1, [0x400100 + i, 0x7000001, 0x400900, 0x400a00 + i]) for i in range(64)]
        samples[5] = (1, [0x400105, 0x400800, 0x400a05])
        info = self.info(legacy.words(samples, MAPS))
        self.assertEqual(info["locations"], 64 + 64 + 1)  # leaves, roots, the exception: both common ones are gone
        doubled = [(1, [0x400100 + 16 * i, 0x400100 + 16 * i, 0x400a00 + 16 * i]) for i in range(4)]
        self.assertEqual(self.info(legacy.words(doubled, MAPS))["locations"], 8)

    def test_java(self):
        text = " 0x3 com.example.A.run (A.java:12)\n 0x4 GC\n 0x5 native (/lib/x/libjvm.so)\n 0x6 generated stub/JIT\n"
        data = legacy.words([(2, [4, 3]), (1, [5, 3]), (1, [6, 3])], text=text, size=4, java=True)
        self.assertEqual(self.folded(data), ["com.example.A.run;GC 20000000", "com.example.A.run;STUB 10000000",
                                             "com.example.A.run;native 10000000"])

    def test_heap(self):
        rows = [(3, 96, 10, 4000, [0x400101, 0x400201]), (1, 1 << 20, 1, 1 << 20, [0x400301])]
        for kind, rate in (("heap_v2/524288", 524288), ("heapz_v2/1000", 1000), ("heap/1048576", 524288),
                           ("heapprofile", 0)):
            info = self.info(legacy.heap(rows, kind, MAPS))
            want = [0, 0, 0, 0]
            for row in rows:
                for i in (0, 2):
                    factor = 1 / (1 - math.exp(-(row[i + 1] / row[i]) / rate)) if rate else 1
                    want[(i + 2) % 4] += int(row[i] * factor)
                    want[(i + 2) % 4 + 1] += int(row[i + 1] * factor)
            self.assertEqual(info["sum_values"], want, kind)
            self.assertEqual(info["sample_types"][3], ["inuse_space", "bytes"])
        info = self.info(legacy.heap([(a, b, a, b, at) for a, b, _, _, at in rows], "growthz", MAPS))
        self.assertEqual((info["kind"], info["sum_values"]), ("growth", [4, 96 + (1 << 20)]))
        self.assertEqual(info["sample_types"], [["objects", "count"], ["space", "bytes"]])

    def test_jemalloc(self):
        rows = [(3, 96, 0, 0, [0x400101, 0x400201]), (1, 1 << 20, 0, 0, [0x400301])]
        same = self.info(legacy.heap([(a, b, a, b, at) for a, b, _, _, at in rows], "heap_v2/524288", MAPS))
        info = self.info(legacy.jemalloc(rows, 524288, MAPS))
        for name in ("samples", "locations", "mappings", "sample_types", "sum_values", "period"):
            self.assertEqual(info[name], same[name], name)

    def test_contention(self):
        rows = [(3_000_000, 4, [0x400101, 0x400201]), (500, 1, [0x400301])]
        info = self.info(legacy.contention(rows, 2_000_000_000, 100, MAPS))
        self.assertEqual(info["sum_values"], [500, 150_000_000 + 25_000])
        self.assertEqual(info["duration_nanos"], 20_000_000)
        self.assertEqual(self.folded(legacy.contention(rows, 2_000_000_000, 100, MAPS), "--metric", "contentions"),
                         ["[prog] 100", "[prog];[prog] 400"])

    def test_threads(self):
        data = legacy.threads([("main", 12, [(0x400101, "wait(int)"), (0x400201, "main")]), ("one", 13, None),
                               ("two", 14, [(0x400301, "poll"), (0x400201, "main")])], MAPS)
        info = self.info(data)
        self.assertEqual((info["kind"], info["samples"], info["sum_values"]), ("thread", 3, [3]))
        tracks = json.loads(self.opwatch(data, "tracks", "--json"))
        tracks = tracks.get("rows", tracks)
        self.assertEqual([(t["name"], t["tid"]) for t in tracks], [("main", 12), ("one", 13), ("two", 14)])
        self.assertEqual(len(self.folded(data)), 3)

    def test_go(self):
        data = legacy.go_counts("goroutine", [(7, [(0x401, "main.work", "/src/a.go", 12), (0x501, "main.main", "/src/b.go", 3)])])
        self.assertEqual(self.folded(data), ["main.main;main.work 7"])

    def test_cut(self):
        whole = legacy.words(self.samples(2), MAPS)
        for cut in range(100, len(whole) - 400, 997):
            info = self.info(whole[:cut])
            self.assertTrue(info["loss"] or info["samples"] == 60, cut)

    def test_damaged_lines(self):
        text = legacy.heap([(1, 2, 1, 2, [0x400101])], "heapprofile", MAPS).replace("\n\n", "\nwhat is this\n\n")
        notes = self.opwatch(text, "notes")
        self.assertIn("cannot be understood", notes)


if __name__ == "__main__":
    unittest.main()
