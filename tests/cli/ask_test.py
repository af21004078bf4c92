#!/usr/bin/python3
"""opwatch ask: every named query on a trace whose answers are known by hand (support/asked.py), or on the bundled sample where
it takes a TensorFlow profile; parameters, lists, the user's own queries and what is wrong with them."""
import collections
import csv
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ.get("OPWATCH_SRC", "."), "tests"))
from support import asked, profile_proto  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
SAMPLE = ROOT / "samples/resnet.profile"
COPY = "Memcpy HtoD (Pageable -> Device)"

# Query, files, parameters, columns that are compared, rows. A dictionary of columns in the order of the query.
ANSWERS = [
    ("top_ops", "a", ["-n", "2"], "op runs self_ms percent mean_us longest_us",
     [["gemm", 3, 1.6, 160 / 5.315, 1600 / 3, 800], ["ProfilerStep#3", 1, 1.19, 119 / 5.315, 1190, 1190]]),
    ("top_ops", "a", ["--device", "GPU", "--limit", "2"], "op self_ms percent", [["gemm", 1.6, 160 / 1.765], [COPY, .15, 15 / 1.765]]),
    ("growing_ops", "a", [], "op steps ms_per_step correlation first_ms last_ms", [["gemm", 3, .2, 3 ** .5 / 2, .4, .8]]),
    ("slow_steps", "a", [], "step step_ms median_ms ratio grew more_ms",
     [[3, 1.5, 1, 1.5, "compute", .4], [1, 1, 1, 1, None, 0], [2, 1, 1, 1, None, 0]]),
    ("idle_gaps", "a", ["--min_us", "200"], "before_op after_op gap_us step",
     [["tiny", COPY, 315, 2], ["tiny", COPY, 315, 3], [COPY, "gemm", 210, 1], [COPY, "gemm", 210, 2], [COPY, "gemm", 210, 3]]),
    ("launch_delay", "a", [], "op launches mean_us longest_us shortest_us mean_run_us",
     [["tiny", 3, 2020 / 3, 940, 540, 5], ["gemm", 3, 150, 150, 150, 1600 / 3], [COPY, 3, 20, 20, 20, 50]]),
    ("small_kernels", "a", [], "device op runs total_ms mean_us", [["GPU 0", "tiny", 3, .015, 5]]),
    ("small_kernels", "a", ["--max-us", "4.5"], "op", []),
    ("copies", "a", [], "direction size_class copies mb ms gb_per_s", [["host_to_device", "3: below 1 MB", 3, 3, .15, 20]]),
    ("communication", "ranks", [], "step rank total_ms exposed_ms overlapped_ms overlapped_percent",
     [[1, 0, .2, .095, .105, 52.5], [1, 1, .2, .095, .105, 52.5], [2, 0, .2, .095, .105, 52.5], [2, 1, .2, .095, .105, 52.5],
      [3, 0, .6, .095, .505, 505 / 6], [3, 1, .6, .095, .505, 505 / 6]]),  # the small kernel is beside it, too
    ("rank_balance", "ranks", [], "rank steps mean_ms shortest_ms longest_ms waits_ms", [[0, 3, 3.5 / 3, 1, 1.5, 0], [1, 3, 3.5 / 3, 1, 1.5, 0]]),
    ("busy_threads", "a", ["-n", "3"], "track track_kind events busy_ms busy_percent",
     [["main", "host", 3, 3.5, 100], ["main", "frames", 3, 3.1, 310 / 3.3], ["stream 7", "stream", 9, 1.765, 176.5 / 3.085]]),
    ("varying_ops", "a", [], "op runs mean_us deviation_us relative shortest_us longest_us", [["cudaLaunchKernel", 6, 12.5, 7.5, .6, 5, 20]]),
    ("warm_up", "a", [], "op first_ms later_ms more_ms", [["compile_fx", .05, 0, .05]]),
    ("longest_events", "a", ["--param", "name=gemm"], "name category track step ms self_ms at_ms",
     [["gemm", "kernel", "stream 7", 3, .8, .8, 2.3], ["gemm", "kernel", "stream 7", 1, .4, .4, .3], ["gemm", "kernel", "stream 7", 2, .4, .4, 1.3]]),
    ("time_by_category", "a", [], "category track_kind events total_ms self_ms",
     [["python_function", "frames", 3, 3.1, 3.1], ["user_annotation", "host", 3, 3.5, 2.57], ["kernel", "stream", 6, 1.615, 1.615],
      ["cpu_op", "host", 4, .65, .575], ["cuda_runtime", "host", 12, .405, .405], ["gpu_memcpy", "stream", 3, .15, .15]]),
    ("time_by_phase", "a", [], "phase steps total_ms longest_ms",
     [["compute", 3, 1.615, .805], ["host", 3, .93, .31], ["idle", 3, .4, .2], ["synchronisation", 3, .3, .1],
      ["host_to_device", 3, .15, .05], ["launch", 3, .105, .035], ["allocation", 3, 0, 0], ["communication", 3, 0, 0], ["device_to_host", 3, 0, 0],
      ["initialisation", 3, 0, 0], ["input", 3, 0, 0]]),
    ("utilisation", "a", [], "rank device events busy_ms span_ms busy_percent", [[0, "GPU 0", 9, 1.765, 3.085, 176.5 / 3.085]]),
    ("repeated_work", "a", [], "name times steps total_ms longest_ms", [["compile_fx", 1, 1, .05, .05]]),
    ("waits", "a", [], "name track times total_ms mean_us longest_us", [["cudaDeviceSynchronize", "main", 3, .3, 100, 100]]),
    ("counters", "a", [], "process name series samples least mean most", [["python", "loss", "value", 3, 1, 2, 3]]),
    ("losses", "a", [], "kind", []),
    ("compare_ops", "ab", ["-n", "2"], "op before_ms after_ms more_ms ratio", [["gemm", 1.6 / 3, 1.9 / 3, .1, 1.9 / 1.6], [COPY, .05, .05, 0, 1]]),
    ("compare_ops", "ab", ["-n", "1", "--before", "b", "--after", "a"], "op more_ms", [["gemm", -.1]]),
    ("compare_ops", "ba", ["-n", "1"], "op more_ms", [["gemm", -.1]]),
    ("compare_steps", "ba", [], "run ratio", [["b", 1], ["a", 1]]),  # the large kernel is slower, the markers are not
    ("compare_steps", "ab", [], "run steps mean_ms median_ms shortest_ms longest_ms ratio steady_steps steady_ms steady_ratio",
     [["a", 3, 3.5 / 3, 1, 1, 1.5, 1, 2, 1, 1], ["b", 3, 3.5 / 3, 1, 1, 1.5, 1, 2, 1, 1]]),
    ("kernel_launchers", "a", [], "operator kernel launches total_ms mean_us percent",
     [["aten::mm", "gemm", 3, 1.6, 1600 / 3, 160 / 1.765], ["cudaMemcpyAsync", COPY, 3, .15, 50, 15 / 1.765], ["aten::mm", "tiny", 3, .015, 5, 1.5 / 1.765]]),
    ("compare_scopes", "ab", ["-n", "2"], "scope before_ms after_ms more_ms ratio", [["gemm", 1.6 / 3, 1.9 / 3, .1, 1.9 / 1.6], [COPY, .05, .05, 0, 1]]),
    ("queueing", "a", [], "stream device launches most_waiting mean_waiting mean_delay_us", [["stream 7", "GPU 0", 9, 2, 4 / 3, 2530 / 9]]),
    ("op_steps", "a", ["--type", "gemm"], "op_type step runs self_ms", [["gemm", 1, 1, .4], ["gemm", 2, 1, .4], ["gemm", 3, 1, .8]]),
    ("durations", "a", ["--type", "gemm"], "from_us to_us runs total_ms",
     [[2 ** (74 / 4) / 1e3, 2 ** (75 / 4) / 1e3, 2, .8], [2 ** (78 / 4) / 1e3, 2 ** (79 / 4) / 1e3, 1, .8]]),
    ("step_slices", "a", ["--step", "3", "--limit", "3"], "step track depth name phase at_us dur_us",
     [[3, "stream 7", 0, "gemm", "compute", 300, 800], [3, "main", 0, "ProfilerStep#3", None, 0, 1500], [3, "main", 1, "aten::mm", "host", 100, 200]]),
    ("python_lines", "a", [], "name calls self_ms total_ms longest_ms", [["train.py(10): step", 3, 3.1, 3.1, 1.3]]),
    ("ops_by_line", "a", [], "file line function ops total_ms accelerator_ms cpu_ms", [["train.py", 10, "step", 7, 2.695, 1.765, .93]]),
]


class Ask(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temp = tempfile.TemporaryDirectory(prefix="ask")
        cls.addClassCleanup(cls.temp.cleanup)
        cls.root = pathlib.Path(cls.temp.name)
        (cls.root / "ranks").mkdir()
        asked.write(cls.root / "a.json")
        asked.write(cls.root / "b.json", slower=100)
        asked.write(cls.root / "ranks/rank0.json", rank=0)
        asked.write(cls.root / "ranks/rank1.json", rank=1)
        cls.files = {"a": [cls.root / "a.json"], "ab": [cls.root / "a.json", cls.root / "b.json"], "ba": [cls.root / "b.json", cls.root / "a.json"], "ranks": [cls.root / "ranks"],
                     "sample": [SAMPLE]}
        if cls.run_ask("time_by_phase", *cls.files["a"]).returncode == 1:
            raise unittest.SkipTest("no DuckDB")

    @classmethod
    def run_ask(cls, *words, **environment):
        return subprocess.run([BIN, "ask", *map(str, words)], text=True, capture_output=True,
                              env={**os.environ, "XDG_CONFIG_HOME": str(cls.root / "config"), **environment})

    def rows(self, name, files, *options, columns=None):
        run = self.run_ask(name, *files, "--json", *options)
        self.assertEqual(run.returncode, 0, run.stderr)
        document = json.loads(run.stdout)
        names = [c["name"] for c in document["columns"]]
        return [[row[names.index(c)] if isinstance(row, list) else row[c] for c in columns or names] for row in document["rows"]]

    def same(self, found, expected, message):
        self.assertEqual(len(found), len(expected), (message, found))
        for row, wanted in zip(found, expected):
            for value, want in zip(row, wanted):
                if isinstance(want, float) or isinstance(value, float):
                    self.assertAlmostEqual(value, want, 9, (message, row, wanted))
                else:
                    self.assertEqual(value, want, (message, row, wanted))

    def test_answers(self):
        for name, files, options, columns, expected in ANSWERS:
            with self.subTest(name, options=options):
                self.same(self.rows(name, self.files[files], *options, columns=columns.split()), expected, name)

    def test_name_after_the_files(self):
        run = self.run_ask(*self.files["ab"], "losses", "--csv")
        self.assertEqual((run.returncode, run.stdout), (0, self.run_ask("losses", *self.files["ab"], "--csv").stdout), run.stderr)
        run = self.run_ask(*self.files["a"], "lossses")
        self.assertEqual(run.returncode, 2)
        self.assertIn("unknown query 'lossses'; did you mean losses?", run.stderr)

    def test_own_wrong(self):
        folder = self.root / "wrong"
        folder.mkdir()
        (folder / "mine.sql").write_text("SELECT count(*) AS n FROM op WHERE type = $kind")
        run = self.run_ask("mine", *self.files["a"], "--queries", folder)
        self.assertEqual(run.returncode, 2)
        self.assertIn("-- param kind text", run.stderr)
        run = self.run_ask("mine", *self.files["a"], "--queries", folder / "none")
        self.assertEqual(run.returncode, 2)
        self.assertIn("none: No such file", run.stderr)
        for text in ("SELECT 1 AS a; SELECT 2 AS b", "-- title: two\nSELECT 1;\n;SELECT 2;", "CREATE TABLE x(i INT); SELECT 1"):
            (folder / "mine.sql").write_text(text)
            run = self.run_ask("mine", *self.files["a"], "--queries", folder)
            self.assertEqual(run.returncode, 1)
            self.assertIn("more than one statement", run.stderr)
        (folder / "mine.sql").write_text("SELECT ';' AS a; -- the end;\n")
        self.assertEqual(self.run_ask("mine", *self.files["a"], "--queries", folder).returncode, 0)

    def test_tensorflow(self):
        """The sample's answers, computed from the bytes of its ProfileProto (support/profile_proto.py)."""
        nodes = [n for n in profile_proto.nodes(SAMPLE) if n["steps"]]
        host = [n for n in nodes if not any(s["accelerator"] for s in n["steps"].values())]

        def cpu(node):
            return {step: sum(d for _, _, d in s["cpu"]) / 1e3 for step, s in node["steps"].items()}

        by_time = sorted(((n["name"], n["type"], sum(s["runs"] for s in n["steps"].values()), cpu(n)) for n in host),
                         key=lambda n: (-sum(n[3].values()), n[0]))
        top = self.rows("top_ops", [SAMPLE], "-n", 3, columns=["op", "op_type", "runs", "self_ms"])
        self.same(top, [[name, kind, runs, sum(ms.values())] for name, kind, runs, ms in by_time[:3]], "top_ops")
        files = [n for n in by_time if n[1] in ("MatchingFiles", "ReadFile")]
        self.same(self.rows("file_ops", [SAMPLE], columns=["op", "op_type", "runs", "total_ms", "longest_step_ms"]),
                  [[name, kind, runs, sum(ms.values()), max(ms.values())] for name, kind, runs, ms in files], "file_ops")
        made_of_these = ("input/resize/ResizeBilinear", "input/map/stack")  # ops of the host with no other data inputs
        stages = [n for n in by_time if re.search("dataset|iterator|decode|readfile|matchingfiles|reader|queue", n[1].lower()) or n[0] in made_of_these]
        self.same(self.rows("input_pipeline", [SAMPLE], columns=["op", "op_type", "runs", "self_ms", "total_ms"]),
                  [[name, kind, runs, sum(ms.values()), sum(ms.values())] for name, kind, runs, ms in stages], "input_pipeline")
        inputs = [n for n in by_time if n[0].split("/")[0] == "input"]
        scope = [r for r in self.rows("scopes", [SAMPLE], "--depth", 1) if r[1] == "input"]
        total = sum(sum(ms.values()) for _, _, _, ms in inputs)
        self.same(scope, [["resnet", "input", len(inputs), total, 0, total]], "scopes")

    def test_tensorflow_memory(self):
        nodes = [n for n in profile_proto.nodes(SAMPLE) if n["steps"]]
        peaks = []
        for n in nodes:
            for s in n["steps"].values():
                if sum(m.get(7, 0) for m in s["memory"]) > 0:
                    peaks.append((n["name"], *(sum(m.get(field, 0) for m in s["memory"]) / 1e6 for field in (7, 8, 9, 6))))
        most = {name: [name, *(max(p[i] for p in peaks if p[0] == name) for i in range(1, 5))] for name, *_ in peaks}
        self.same(self.rows("memory_peak", [SAMPLE], columns=["op", "peak_mb", "kept_mb", "output_mb", "requested_mb"]),
                  sorted(most.values(), key=lambda p: (-p[1], p[0]))[:20], "memory_peak")

        # allocations of all ops in order of time; what is taken comes before what is given back
        changes = sorted((ts, -size, n["name"], step) for n in nodes for step, s in n["steps"].items() for ts, size in s["allocations"])
        use, peak, alive, at_peak, steps = 0, 0, collections.Counter(), {}, {}
        for _, size, name, step in changes:
            use -= size
            alive[name] -= size
            if use >= peak:
                peak, at_peak = use, {k: v for k, v in alive.items() if v}
            one = steps.setdefault(step, [0, 0, 0])
            one[0] = max(one[0], use)
            one[1] += size < 0
            one[2] -= min(size, 0)
        rows = self.rows("memory_at_peak", [SAMPLE], "-n", 100, columns=["name", "mb", "percent", "allocator"])
        self.same([r[:3] for r in rows], [[k, v / 1e6, 100 * v / peak] for k, v in sorted(at_peak.items(), key=lambda i: (-i[1], i[0]))],
                  "memory_at_peak")
        grown = self.rows("memory_growth", [SAMPLE], columns=["allocator", "step", "peak_mb", "growth_mb", "allocations", "allocated_mb"])
        self.same([r[1:] for r in grown if r[0] is None],
                  [[step, p / 1e6, 0, count, total / 1e6] for step, (p, count, total) in sorted(steps.items())], "memory_growth")

    def test_tensorflow_others(self):
        advice = json.loads(subprocess.run([BIN, "advise", str(SAMPLE), "--json"], text=True, capture_output=True, check=True).stdout)
        checked = [[f["severity"], f["rule"], f["what"]] for f in advice["rows"] if f.get("checked", True)]
        self.assertEqual(sorted(self.rows("advice", [SAMPLE], columns=["severity", "rule", "what"])), sorted(checked))
        self.assertEqual(self.rows("largest_tensors", [SAMPLE]), [])  # a ProfileProto holds none
        run_meta = ROOT / "samples/run_meta_0"
        largest, times = {}, collections.Counter()
        for name, slot, size in profile_proto.outputs(run_meta):
            largest[name, slot] = max(largest.get((name, slot), 0), size)
            times[name, slot] += 1
        rows = self.rows("largest_tensors", [run_meta], "-n", 1000, columns=["tensor", "slot", "mb", "times"])
        self.same(rows, [[name, slot, size / 1e6, times[name, slot]] for (name, slot), size in
                         sorted(largest.items(), key=lambda t: (-t[1], t[0]))], "largest_tensors")

    def test_every_query(self):
        """Each has a title, a sentence, documented parameters, and an answer above."""
        queries = json.loads(self.run_ask("--json").stdout)
        names = {q["name"] for q in queries}
        self.assertEqual(names, {p.stem for p in (ROOT / "queries").glob("*.sql")})
        self.assertGreaterEqual(len(names), 25)
        self.assertGreaterEqual(sum(q["clickhouse"] for q in queries), 15)
        tested = {a[0] for a in ANSWERS} | {"file_ops", "input_pipeline", "scopes", "memory_peak", "memory_at_peak", "memory_growth",
                                              "advice", "largest_tensors", "hot_functions", "nccl_bandwidth"}
        tested |= {"rank_slowest", "rank_waits", "rank_bandwidth", "rank_slow_steps"}  # ranks_test.py
        self.assertEqual(names, tested)
        page = (ROOT / "docs/ask.md").read_text()
        for query in queries:
            self.assertIn(f"`{query['name']}`", page)
            self.assertGreater(len(query["doc"]), 40, query)
            self.assertTrue(all(p["doc"] for p in query["params"]))
            shown = self.run_ask(query["name"], "--show").stdout
            self.assertIn(f"-- title: {query['title']}\n", shown)
            self.assertIn("SELECT", shown)

    def test_samples_and_collectives(self):
        folded = self.root / "s.folded"
        folded.write_text("main;work 3\nmain;rest 1\nmain;work;deep 4\n")
        self.same(self.rows("hot_functions", [folded], columns=["function", "weight", "percent"]),
                  [["deep", 4, 50], ["work", 3, 37.5], ["rest", 1, 12.5]], "hot_functions")
        events = [{"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}}]
        for i, (elements, kind, dur) in enumerate(((1000000, "Float", 100), (500000, "Half", 50), (10, "Strange", 10))):
            events.append({"ph": "X", "name": "ncclDevKernel_AllReduce", "cat": "kernel", "pid": 0, "tid": 7, "ts": 1000 * i, "dur": dur,
                           "args": {"device": 0, "stream": 7, "In msg nelems": elements, "dtype": kind}})
        trace = self.root / "nccl.json"
        trace.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": events}))
        self.same(self.rows("nccl_bandwidth", [trace], columns=["name", "messages", "total_ms", "total_mb", "gb_per_s", "without_bytes"]),
                  [["ncclDevKernel_AllReduce", 3, .16, 5, 5e6 / 150e3, 1]], "nccl_bandwidth")

    def test_no_rows_say_why(self):
        def footer(name, *files, options=()):
            run = self.run_ask(name, *files, "--json", *options)
            self.assertEqual(run.returncode, 0, run.stderr)
            document = json.loads(run.stdout)
            self.assertEqual(document["rows"], [])
            self.assertIn(document["footer"], self.run_ask(name, *files, *options).stdout)
            return document["footer"]
        folded = self.root / "t.folded"
        folded.write_text("main;work 3\n")
        self.assertEqual(footer("top_ops", folded), "No rows: the files have no timed ops. 'opwatch ask hot_functions' has an answer.")
        self.assertEqual(footer("hot_functions", *self.files["a"]), "No rows: the files have no sampled stacks. 'opwatch ask top_ops' has an answer.")
        self.assertEqual(footer("losses", *self.files["a"]), "No rows: nothing was damaged or left out. 'opwatch ask top_ops' shows what was recorded.")
        self.assertEqual(footer("memory_at_peak", folded),
                         "No rows: the files have no history of allocations. 'opwatch ask hot_functions' shows what was recorded.")
        instant = self.root / "instant.json"
        instant.write_text(json.dumps([{"ph": "i", "name": "tick", "pid": 1, "tid": 1, "ts": 5, "s": "t"}]))
        self.assertEqual(footer("top_ops", instant), "No rows: the files have no timed ops. 'opwatch info' shows what the files have.")
        whole = self.root / "whole.json"
        whole.write_text(json.dumps([{"ph": "X", "name": n, "pid": 1, "tid": 1, "ts": t, "dur": 5} for t, n in ((1, "a"), (10, "b"), (20, "a"))]))
        for query, why in (("slow_steps", "no steps are known"), ("warm_up", "no steps are known"), ("growing_ops", "no steps are known"),
                           ("varying_ops", "no op ran five times"), ("waits", "no event is a wait"), ("file_ops", "no op lists, matches or opens files"),
                           ("repeated_work", "no event has a name that says compile")):
            text = footer(query, whole)
            self.assertIn(f"No rows: {why}", text)
            self.assertRegex(text, r"\. 'opwatch ask (top_ops|longest_events)' (has an answer|shows what was recorded)\.$")
        own = self.root / "mine"
        own.mkdir()
        (own / "void.sql").write_text("SELECT 1 AS a FROM event WHERE false")
        self.assertIn("nothing in the files meets the conditions of the query. 'opwatch", footer("void", whole, options=("--queries", own)))
        self.assertIn("with --max_us=4.5", footer("small_kernels", *self.files["a"], options=("--max_us", "4.5")))
        queries = {p.stem for p in (ROOT / "queries").glob("*.sql")}
        for query in sorted(queries):
            text = (ROOT / f"queries/{query}.sql").read_text()
            self.assertIn("-- needs: ", text, query)
            for line in text.splitlines():
                if line.startswith("-- instead: "):
                    self.assertIn(line[12:].split(" | ")[0], queries)
            if not query.startswith("compare"):  # each reason is a query that runs, on files that have nothing
                found = json.loads(self.run_ask(query, folded, "--json").stdout)
                self.assertTrue(found["rows"] or found["footer"].startswith("No rows: "), query)

    def test_comparisons_need_two_runs(self):
        for query in ("compare_ops", "compare_steps", "compare_scopes"):
            run = self.run_ask(query, *self.files["a"])
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertIn("give at least 2", run.stderr)

    def test_profiles_of_tensorflow(self):
        rows = self.rows("slow_steps", [SAMPLE], columns=["step", "step_ms", "grew"])
        self.assertEqual([rows[0][0], rows[0][2]], [2, "input"])
        self.assertAlmostEqual(rows[0][1], 199.342)
        phases = self.rows("time_by_phase", [SAMPLE], columns=["phase", "steps", "total_ms"])
        self.assertTrue(phases and all(steps == 3 for _, steps, _ in phases))
        sql = subprocess.run([BIN, "sql", str(SAMPLE), "--csv", "SELECT sum(dur) / 1e6 FROM step"], text=True, capture_output=True)
        self.assertAlmostEqual(sum(ms for _, _, ms in phases), float(sql.stdout.split()[-1]), 6)

    def test_long_kernel_names(self):
        kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>>(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)"
        trace = self.root / "long.json"
        trace.write_text(json.dumps([{"ph": "X", "name": kernel, "cat": "kernel", "pid": 0, "tid": 7, "ts": 1, "dur": 5, "args": {"device": 0, "stream": 7}}]))
        text = self.run_ask("top_ops", trace).stdout
        self.assertNotIn("(int, at::native", text)
        self.assertIn("vectorized_elementwise_kernel", text)
        self.assertIn(kernel, json.dumps(self.rows("top_ops", [trace])))

    def test_outputs(self):
        text = self.run_ask("counters", *self.files["a"]).stdout
        self.assertRegex(text, r"(?m)^a +python +loss +value +3 +1 +2 +3$")
        rows = list(csv.reader(io.StringIO(self.run_ask("counters", *self.files["a"], "--csv").stdout)))
        self.assertEqual(rows[1], ["a", "python", "loss", "value", "3", "1", "2", "3"])
        out = self.root / "out.csv"
        self.run_ask("counters", *self.files["a"], "--csv", "-o", out)
        self.assertIn("loss", out.read_text())

    def test_parameters(self):
        def refused(*words):
            run = self.run_ask(*words, *self.files["a"])
            self.assertEqual(run.returncode, 2, run.stderr)
            return run.stderr
        self.assertIn("limit takes an integer, not 'x'", refused("top_ops", "--param", "limit=x"))
        self.assertIn("min_us takes a number, not ''", refused("idle_gaps", "--min-us", ""))
        self.assertIn("has no parameter colour; it has limit, only_run, min_steps", refused("growing_ops", "--colour", "red"))
        self.assertIn("name=value", refused("top_ops", "--param", "limit"))
        self.assertIn("did you mean top_ops", refused("top_op"))
        # A value is a value, whatever is in it.
        for odd in ("'", "'; SELECT 1 --", "%", "\\", "$run"):
            self.assertEqual(self.rows("longest_events", self.files["a"], "--only_run", odd), [])
        self.assertEqual({row[0] for row in self.rows("longest_events", self.files["a"], "--name", "mine", columns=["run"])}, {"mine"})

    def test_own_queries(self):
        own = self.root / "own"
        own.mkdir(exist_ok=True)
        (own / "mine.sql").write_text("-- title: Mine\n-- Says it.\n-- param who text 'a: b': whom\n-- param count int 2: times\n"
                                      "-- param x real 0.5: half\n\nSELECT $who AS who, $count * $x AS product\n")
        (own / "counters.sql").write_text("SELECT 1 AS one")  # takes the place of the one that is built in
        (own / "notes.txt").write_text("not a query")
        self.assertEqual(self.rows("mine", self.files["a"], "--queries", own), [["a: b", 1.0]])
        self.assertEqual(self.rows("mine", self.files["a"], "--queries", own, "--who=x", "--count", "4"), [["x", 2.0]])
        self.assertEqual(self.rows("counters", self.files["a"], "--queries", own), [[1]])
        self.assertIn("\n  mine               Mine\n", self.run_ask("--queries", own).stdout)
        usual = self.root / "other/opwatch/queries"
        usual.mkdir(parents=True)
        (usual / "usual.sql").write_text("SELECT 2 AS two")
        self.assertIn("usual", self.run_ask(XDG_CONFIG_HOME=str(self.root / "other")).stdout)

    def test_broken_queries(self):
        for text, message in (("-- param a int", ":1:"), ("-- title: x\n", "there is no query"), ("-- param 1a int 3: x\nSELECT 1", ":1:"),
                              ("SELECT 1\n-- clickhouse:\n", "nothing follows"), ("-- param a int 1: x\nSELECT $c AS a", "not declared"),
                              ("-- param a text 'x: y\nSELECT 1", "quote"), ("SELECT nothing FROM event", "nothing"),
                              ("\xff", "UTF-8")):
            broken = self.root / "broken"
            broken.mkdir(exist_ok=True)
            (broken / "bad.sql").write_bytes(text.encode("latin1"))
            run = self.run_ask("bad", *self.files["a"], "--queries", broken)
            self.assertIn(run.returncode, (1, 2), text)
            self.assertIn(message, run.stderr, text)

    def test_write_nothing(self):
        """A query of somebody else reaches no files."""
        sly = self.root / "sly"
        sly.mkdir(exist_ok=True)
        (sly / "sly.sql").write_text(f"COPY (SELECT 1) TO '{self.root}/stolen.csv'")
        self.assertNotEqual(self.run_ask("sly", *self.files["a"], "--queries", sly).returncode, 0)
        self.assertFalse((self.root / "stolen.csv").exists())


if __name__ == "__main__":
    unittest.main()
