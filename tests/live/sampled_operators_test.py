#!/usr/bin/python3
"""
Operators of PyTorch that come faster than they could be recorded are counted, and some of them are timed: counts are exact, times are
unbiased, also where long and short ones alternate and call others. The truth is what the program did and measured itself. A
profiler of the program sees all that it sees without opwatch. With OPWATCH_OVERHEAD=1 the cost is measured, too, in pairs of runs.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import unittest

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"
# Before other programs, where that is allowed: an operator in which others had the processor takes a thousand times as long.
ALONE = ["chrt", "-f", "10"] if subprocess.run(["chrt", "-f", "10", "true"], capture_output=True).returncode == 0 else []
MIXED = """
import json, sys, time, torch
torch.set_num_threads(1)
small, large, net = torch.ones(8), torch.ones(56, 56), torch.nn.functional.softmax
def each(count, work):
    begin = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(count): work()
    return [(b - a) / count for a, b in zip(begin, (time.perf_counter_ns(), time.process_time_ns()))]
count = int(sys.argv[1])
with torch.no_grad():
    for i in range(count):
        torch.mm(large, large)
        torch.add(small, small)
        net(small, 0)
    adds, mms = each(2000, lambda: torch.add(small, small)), each(2000, lambda: torch.mm(large, large))
print(json.dumps({"calls": count + 2000, "add_ns": adds[0], "mm_ns": mms[0], "alone": mms[0] < 1.2 * mms[1] and adds[0] < 1.2 * adds[1]}))
"""
TINY = """
import json, sys, time, torch
torch.set_num_threads(1)
a, b = torch.ones(8), torch.ones(8)
def turn():
    begin = time.process_time_ns()
    for i in range(20000): torch.add(a, b)
    return time.process_time_ns() - begin
turn()
print(json.dumps({"cpu_ns": sorted(turn() for _ in range(11))[5]}))
"""
PROFILED = """
import torch
from torch.profiler import profile, ProfilerActivity
a = torch.ones(8)
def work():
    for i in range(4000): torch.add(a, a)
work()
for _ in range(3):
    with profile(activities=[ProfilerActivity.CPU]) as p: work()
    print([e.count for e in p.key_averages() if e.key == "aten::add"])
    work()
"""


@unittest.skipIf(subprocess.run([PYTHON, "-c", "import importlib.util as u; exit(u.find_spec('torch') is None)"]).returncode,
                 "needs python3-torch")
class SampledOperatorsTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        self.file = os.path.join(self.dir, "x.opw")

    def run_program(self, *command):
        p = subprocess.run(command, capture_output=True, text=True, timeout=100)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def record(self, program, *words):
        return self.run_program(BIN, "record", "--stacks=0", "-o", self.file, "--", *ALONE, PYTHON, "-c", program, *map(str, words))

    def sql(self, query):
        p = subprocess.run([BIN, "sql", self.file, query, "--json"], capture_output=True, text=True)
        if "DuckDB" in p.stderr:
            self.skipTest(p.stderr)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]

    def test_long_and_short_ones_alternate(self):
        truth = json.loads(self.record(MIXED, 30000))
        rows = {r["name"]: r for r in self.sql("SELECT name, count(*) AS events, sum(greatest(runs, 1)) AS calls, sum(dur) AS ns FROM event "
                                              "WHERE name LIKE 'aten::%' GROUP BY name")}
        for name in ("aten::mm", "aten::add"):
            self.assertEqual(rows[name]["calls"], truth["calls"])
            self.assertLess(rows[name]["events"], truth["calls"] / 2)
        self.assertEqual(rows["aten::softmax"]["calls"], truth["calls"] - 2000)
        self.assertEqual(rows["aten::_softmax"]["calls"], truth["calls"] - 2000)  # which the former calls
        notes = self.run_program(BIN, "notes", self.file)
        self.assertRegex(notes, r"sampled 1 in \d+")
        if not truth["alone"]:
            self.skipTest("the machine is too busy to compare times")
        each = {name: rows[name]["ns"] / rows[name]["calls"] for name in rows}
        # The program's own times contain the interpreter's part.
        self.assertLess(each["aten::mm"], 1.15 * truth["mm_ns"], (each, truth))
        self.assertGreater(each["aten::mm"], 0.6 * truth["mm_ns"], (each, truth))
        self.assertLess(each["aten::add"], 1.4 * truth["add_ns"], (each, truth))
        # Of its own time only: all of it is in the other one.
        self.assertLess(each["aten::softmax"], 2 * each["aten::_softmax"], each)

    def test_a_profiler_of_the_program(self):
        alone = self.run_program(PYTHON, "-c", PROFILED)
        self.assertEqual(self.record(PROFILED), alone)
        self.assertEqual(re.findall(r"\d+", alone), ["4000"] * 3)

    @unittest.skipUnless(os.environ.get("OPWATCH_OVERHEAD"), "OPWATCH_OVERHEAD is not set")
    def test_overhead(self):
        parts = []
        for i in range(60):
            turns = [lambda: self.run_program(*ALONE, PYTHON, "-c", TINY), lambda: self.record(TINY)]
            spent = {k: json.loads(turns[k]())["cpu_ns"] for k in ((0, 1) if i % 2 else (1, 0))}
            parts.append(spent[1] / spent[0] - 1)
            half = 1.96 * statistics.stdev(parts) / len(parts) ** 0.5 if i > 10 else 1
            if half < 0.005:
                break
        print(f"overhead of tiny operators: {statistics.mean(parts):.1%} ± {half:.1%}, median {statistics.median(parts):.1%}, {len(parts)} pairs")
        self.assertLess(statistics.median(parts), 0.02)


if __name__ == "__main__":
    unittest.main()
