#!/usr/bin/python3
"""
Calls that come faster than they could be recorded are counted, and some of them are timed: counts and bytes are exact, times are
unbiased, also where calls alternate. The truth is what the program measured itself. With OPWATCH_OVERHEAD=1 the cost is
measured, too, in pairs of runs on one processor.
"""
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import unittest

BIN, SRC = os.environ["OPWATCH_BIN"], os.environ["OPWATCH_SRC"]
# Before other programs, where that is allowed: a read in which others had the processor takes a thousand times as long.
ALONE = ["chrt", "-f", "10"] if subprocess.run(["chrt", "-f", "10", "true"], capture_output=True).returncode == 0 else []


class SampledCallsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.program = os.path.join(cls.dir, "small_reads")
        cls.file = os.path.join(cls.dir, "x.opw")
        cls.frequent = os.path.join(cls.dir, "frequent_calls")
        for name in ("small_reads", "frequent_calls"):
            subprocess.run(["cc", "-O2", "-std=gnu17", f"{SRC}/tests/support/{name}.c", "-o", os.path.join(cls.dir, name)], check=True)

    def record(self, *words, program=None, prefix=ALONE):
        p = subprocess.run([BIN, "record", "--stacks=0", "-o", self.file, "--", *prefix, program or self.program, *map(str, words)],
                           capture_output=True, text=True, timeout=100)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def sql(self, query):
        p = subprocess.run([BIN, "sql", self.file, query, "--json"], capture_output=True, text=True)
        if "DuckDB" in p.stderr:
            self.skipTest(p.stderr)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"][0]

    def check(self, calls, more, least):
        truth = self.record(calls, more, "each")
        row = self.sql("SELECT count(*) AS events, sum(greatest(runs, 1)) AS calls, sum(bytes) AS bytes, sum(dur) AS ns FROM event "
                       "WHERE name LIKE 'pread%'")
        self.assertEqual((row["calls"], row["bytes"]), (calls, truth["bytes"]))
        self.assertLess(row["events"], calls / least)
        self.assertEqual(self.sql("SELECT sum(run_count) AS n FROM op_step WHERE op LIKE 'pread%'")["n"],
                         calls)
        if truth["wall_ns"] < 1.3 * truth["cpu_ns"]:  # it had a processor all the time
            self.assertLess(abs(row["ns"] - truth["within_ns"]), 0.2 * truth["within_ns"], (row, truth))
        notes = subprocess.run([BIN, "notes", self.file], capture_output=True, text=True, check=True).stdout
        self.assertIn("sampled 1 in", notes)

    def test_small_reads(self):
        self.check(600001, 64, 4)

    def test_reads_that_alternate(self):
        self.check(300000, 8192, 4)

    def test_slow_reads_are_all_recorded(self):
        self.record(300, 64)
        row = self.sql("SELECT count(*) AS events FROM event WHERE name LIKE 'pread%'")
        self.assertGreaterEqual(row["events"], 256)

    def calls(self, name):
        return self.sql("SELECT count(*) AS events, sum(greatest(runs, 1)) AS calls, coalesce(sum(bytes), 0) AS bytes FROM event "
                        f"WHERE name = '{name}'")

    def test_files_that_are_opened_and_closed(self):
        """Each is another descriptor's life, and yet they are sampled together."""
        count = 50000
        truth = self.record("files", count, self.program, program=self.frequent)["result"]
        opens, reads = self.calls("open"), self.calls("read")
        self.assertEqual((opens["calls"], reads["calls"], reads["bytes"]), (count, count, truth))
        self.assertLess(opens["events"], count / 4)
        self.assertLess(reads["events"], count / 4)

    def test_buffers(self):
        """Of the calls of stdio those that go to the system are recorded, with what the C library read or wrote for them."""
        path = os.path.join(self.dir, "lines")
        lines = self.record("buffers", 100000, path, program=self.frequent)["result"]
        size = os.path.getsize(path)
        self.assertEqual(lines, 200000)
        for name in ("fgets", "getdelim", "fread"):
            row = self.calls(name)
            self.assertEqual(row["bytes"], size, name)
            self.assertLess(abs(row["calls"] - size / 4096), 4, name)  # the buffer's size, and the end of the file
        written = self.calls("fwrite")
        self.assertLessEqual(size - written["bytes"], 4096)  # fclose writes the rest

    def test_pipe(self):
        """Calls on a pipe are counted: what the system counts does not exceed that."""
        self.assertEqual(self.record("pipe", 6000, "-", program=self.frequent, prefix=[])["result"], 6000 * 65536)
        notes = subprocess.run([BIN, "notes", self.file], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("does not see", notes)

    @unittest.skipUnless(os.environ.get("OPWATCH_OVERHEAD"), "OPWATCH_OVERHEAD is not set")
    def test_overhead(self):
        parts = []
        for _ in range(30):
            p = subprocess.run([*ALONE, self.program, "1000000", "64"], capture_output=True, text=True, check=True)
            parts.append(self.record(1000000, 64)["cpu_ns"] / json.loads(p.stdout)["cpu_ns"] - 1)
        half = 1.96 * statistics.stdev(parts) / len(parts) ** 0.5
        print(f"overhead of small reads: {statistics.mean(parts):.1%} ± {half:.1%}")
        self.assertLess(statistics.median(parts), 0.03)


if __name__ == "__main__":
    unittest.main()
