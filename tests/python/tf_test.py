#!/usr/bin/python3
"""opwatch.tf: every call and preset of TensorFlow's profiler, on the bundled sample and on a stand-in session.

What is printed is compared with the shell of tfprof, values with the program's JSON. Never run with a real
TensorFlow, whose classes are imitated where it matters.
"""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
sys.path.insert(0, str(ROOT / "examples/python"))
try:
    import google.protobuf  # noqa: F401
except ImportError:
    print("skipped: this Python has no protobuf")
    sys.exit(77)

import standin_tf as stand_in  # noqa: E402
from opwatch import tf  # noqa: E402
from opwatch.tf import pprof_profiler  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
PARTS = next(path.parent for path in sorted((ROOT / "samples").rglob("graph.pb")))
GRAPH = (PARTS / "graph.pb").read_bytes()
LOG = (PARTS / "op_log").read_bytes()
RUNS = [(PARTS / ("run_meta_%d" % i)).read_bytes() for i in range(3)]
B = tf.ProfileOptionBuilder


def quiet(call, *args, **kwargs):
    """(the result, what went to standard output, what went to standard error)"""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        result = call(*args, **kwargs)
    return result, out.getvalue(), err.getvalue()


def sample_profiler():
    profiler = quiet(tf.Profiler, GRAPH, LOG)[0]
    for step, run in enumerate(RUNS):
        profiler.add_step(step, run)
    return profiler


def shell(command):
    """What tfprof prints for a command."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "tfprof")
        os.symlink(os.path.abspath(BIN), program)
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        done = subprocess.run(
            [program, "--graph_path=%s" % (PARTS / "graph.pb"), "--op_log_path=%s" % (PARTS / "op_log"),
             "--run_meta_path=" + ",".join(str(PARTS / ("run_meta_%d" % i)) for i in range(3))],
            input=command + "\n", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, text=True, check=True)
    return done.stdout


def words(options):
    """A dictionary of options as the shell wants them."""
    parts = []
    for key, value in options.items():
        if key == "output":
            continue
        if isinstance(value, (list, tuple)):
            value = ",".join(value) or "''"
        if isinstance(value, bool):
            value = "true" if value else "false"
        parts.append("-%s %s" % (key, value))
    return " ".join(parts)


def report(text):
    """The part of a framed print that the shell prints, too."""
    head = "==================Model Analysis Report======================\n"
    return text[text.index(head) + len(head):text.index("\n======================End of Report")]


class Options(unittest.TestCase):
    def test_base(self):
        base = B().build()
        self.assertEqual(base["max_depth"], 100)
        self.assertEqual(base["select"], ["micros"])
        self.assertEqual(base["order_by"], "name")
        self.assertNotIn("min_peak_bytes", base)
        self.assertEqual(base["account_type_regexes"], [".*"])
        self.assertEqual((base["step"], base["output"]), (-1, "stdout"))

    def test_presets(self):
        params, flops = B.trainable_variables_parameter(), B.float_operation()
        self.assertEqual((params["max_depth"], params["select"], params["account_type_regexes"]),
                         (10000, ["params"], ["_trainable_variables"]))
        self.assertTrue(params["account_displayed_op_only"])
        self.assertEqual((flops["min_float_ops"], flops["order_by"], flops["select"]), (1, "float_ops", ["float_ops"]))
        both = B.time_and_memory(min_cpu_micros=7)
        self.assertEqual((both["min_micros"], both["min_bytes"], both["min_cpu_micros"], both["min_peak_bytes"]),
                         (1, 1, 7, 0))
        self.assertEqual((both["select"], both["order_by"]), (["micros", "bytes"], "micros"))
        memory = B.memory()
        self.assertEqual((memory["order_by"], memory["min_micros"]), ("bytes", 0))
        self.assertTrue(all("bytes" in column for column in memory["select"]))

    def test_methods(self):
        given = ["a.*"]
        built = (B().with_max_depth(3).with_min_memory(1, 2, 3, 4).with_min_execution_time(5, 6, 7)
                 .with_min_parameters(8).with_min_occurrence(9).with_min_float_operations(10)
                 .with_accounted_types(given).with_node_names(show_name_regexes=["s"], trim_name_regexes=["t"])
                 .account_displayed_op_only(True).order_by("bytes").select(["bytes"]).with_step(4).build())
        given.append("changed")
        expected = {"max_depth": 3, "min_bytes": 1, "min_peak_bytes": 2, "min_residual_bytes": 3,
                    "min_output_bytes": 4, "min_micros": 5, "min_accelerator_micros": 6, "min_cpu_micros": 7,
                    "min_params": 8, "min_occurrence": 9, "min_float_ops": 10, "account_type_regexes": ["a.*"],
                    "start_name_regexes": [".*"], "show_name_regexes": ["s"], "trim_name_regexes": ["t"],
                    "hide_name_regexes": [], "account_displayed_op_only": True, "order_by": "bytes",
                    "select": ["bytes"], "step": 4, "output": "stdout"}
        self.assertEqual(built, expected)

    def test_outputs(self):
        self.assertEqual(B().with_empty_output().build()["output"], "none")
        self.assertEqual(B().with_empty_output().with_stdout_output().build()["output"], "stdout")
        self.assertEqual(B().with_file_output("f").build()["output"], "file:outfile=f")
        self.assertEqual(B().with_timeline_output("f").build()["output"], "timeline:outfile=f")
        self.assertEqual(B().with_pprof_output("f").build()["output"], "pprof:outfile=f")

    def test_copies(self):
        start = B.time_and_memory()
        builder = B(start)
        first = builder.build()
        first["select"].append("params")
        builder.order_by("bytes")
        self.assertEqual(start["order_by"], "micros")
        self.assertEqual(builder.build()["select"], ["micros", "bytes"])


class Profiling(unittest.TestCase):
    def test_prints_what_the_shell_prints(self):
        profiler = sample_profiler()
        calls = {"op": profiler.profile_operations, "scope": profiler.profile_name_scope,
                 "graph": profiler.profile_graph, "code": profiler.profile_python}
        for preset in (B.time_and_memory(), B.float_operation(), B().with_max_depth(2).with_step(1).build(),
                       B().select(["device", "op_types", "occurrence", "input_shapes"]).build()):
            for command, call in calls.items():
                with self.subTest(command=command, preset=preset):
                    printed = quiet(call, preset)[1]
                    self.assertIn("-max_depth                  %d\n" % preset["max_depth"], printed)
                    self.assertIn(report(printed), shell("%s %s" % (command, words(preset))))

    def test_values_are_the_programs(self):
        profiler = sample_profiler()
        files = [str(PARTS / name) for name in ("graph.pb", "op_log", "run_meta_0", "run_meta_1", "run_meta_2")]
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        shown = json.loads(subprocess.run(
            [BIN, "op", *files, "--json", "--order-by", "micros", "--select", "micros,bytes"],
            stdout=subprocess.PIPE, check=True, env=env).stdout)
        rows = shown["rows"] if isinstance(shown, dict) else shown
        node = quiet(profiler.profile_operations, B().order_by("micros").with_max_depth(100).build())[0]
        self.assertEqual(node.name, "_TFProfRoot")
        for row in rows[:10]:
            self.assertEqual(len(node.children), 1)  # a chain
            node = node.children[0]
            self.assertEqual((node.name, node.exec_micros, node.requested_bytes),
                             (row["name"], row["micros"], row["bytes"]))
            self.assertGreater(len(node.graph_nodes), 0)

    def test_results_are_messages(self):
        profiler = sample_profiler()
        options = B(B.time_and_memory()).with_empty_output().build()
        scope, printed, _ = quiet(profiler.profile_name_scope, options)
        self.assertEqual(printed, "")
        self.assertEqual(type(scope).DESCRIPTOR.full_name, "tensorflow.tfprof.GraphNodeProto")
        self.assertEqual(sorted(child.name for child in scope.children), ["gradients", "input", "loss", "resnet"])
        code = quiet(profiler.profile_python, options)[0]
        self.assertEqual(type(code).DESCRIPTOR.full_name, "tensorflow.tfprof.MultiGraphNodeProto")
        self.assertTrue(any("train.py" in child.name for child in code.children))
        again = type(scope).FromString(scope.SerializeToString())
        self.assertEqual(again, scope)

    def test_a_leading_scope(self):
        profiler = sample_profiler()
        options = B(B.time_and_memory()).with_empty_output().build()
        node = quiet(profiler.profile_name_scope, "resnet", options=options)[0]
        self.assertEqual([child.name for child in node.children], ["resnet"])
        with self.assertRaises(TypeError):
            profiler.profile_name_scope("resnet")

    def test_more_steps_between_the_questions(self):
        profiler = quiet(tf.Profiler, GRAPH, LOG)[0]
        options = B().with_empty_output().build()
        totals = []
        for step, run in enumerate(RUNS):
            profiler.add_step(step, run)
            totals.append(quiet(profiler.profile_name_scope, options)[0].total_exec_micros)
        self.assertEqual(totals[-1], quiet(sample_profiler().profile_name_scope, options)[0].total_exec_micros)
        self.assertNotEqual(totals[0], totals[-1])

    def test_steps_are_not_kept_as_messages(self):
        profiler = quiet(tf.Profiler, GRAPH, b"")[0]
        profiler.add_step(0, RUNS[0])
        before = profiler._native.profile.memory()[0]
        for step in range(1, 41):
            profiler.add_step(step, RUNS[0])
        grown = profiler._native.profile.memory()[0] - before
        self.assertLess(grown / 40, len(RUNS[0]))

    def test_serialized_and_saved(self):
        profiler = sample_profiler()
        with tempfile.TemporaryDirectory() as folder:
            path = profiler.save(os.path.join(folder, "logs"))
            self.assertEqual(os.path.basename(path), "profile_2")
            data = pathlib.Path(path).read_bytes()
            self.assertEqual(data, profiler.serialize_to_string())
            env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
            info = subprocess.run([BIN, "steps", path, "--json"], stdout=subprocess.PIPE, check=True, env=env).stdout
            self.assertIn(b'"step": 2', info.replace(b'"step":2', b'"step": 2'))

    def test_outputs(self):
        profiler = sample_profiler()
        with tempfile.TemporaryDirectory() as folder:
            name = os.path.join(folder, "out")
            quiet(profiler.profile_operations, B().with_file_output(name).build())
            self.assertIn("MatchingFiles", pathlib.Path(name).read_text())
            quiet(profiler.profile_graph, B().with_timeline_output(name).with_step(1).build())
            self.assertIn("traceEvents", json.loads(pathlib.Path(name + "_1").read_text()))
            node, printed, _ = quiet(profiler.profile_graph, B().with_timeline_output(name + "s").build())
            self.assertEqual(node.name, "")  # a file per step, no result
            self.assertEqual(printed.count("Timeline file is written to"), 3)
            quiet(profiler.profile_python, B().with_pprof_output(name + ".pb.gz").build())
            self.assertEqual(pathlib.Path(name + ".pb.gz").read_bytes()[:2], b"\x1f\x8b")

    def test_complaints(self):
        profiler = sample_profiler()
        for options, text in (({"output": "paper"}, "Unknown output type: paper"),
                              ({"output": "file"}, "Missing required output_options"),
                              ({"step": 9}, "Options -step=9 not found"),
                              ({"output": "timeline:outfile=x", "step": 0}, "op view doesn't support timeline")):
            node, _, err = quiet(profiler.profile_operations, dict(B().build(), **options))
            self.assertIn(text, err)
            self.assertEqual(node.name, "")
        bare = quiet(tf.Profiler, GRAPH, b"")[0]
        self.assertIn("No code trace information", quiet(bare.profile_python, B().build())[2])

    def test_wrong_calls(self):
        profiler = sample_profiler()
        with self.assertRaisesRegex(TypeError, "RunMetadata.*profile_option"):
            profiler.add_step(3, profile_option=B.memory())
        with self.assertRaises(TypeError):
            profiler.add_step(3, "a text")
        with self.assertRaises(ValueError):
            profiler.add_step(3, b"")
        with self.assertRaises(TypeError):
            quiet(tf.Profiler, 42)
        with self.assertRaises(TypeError):
            profiler.profile_operations(7)

    def test_empty_options_show_nothing(self):
        profiler = sample_profiler()
        node = quiet(profiler.profile_name_scope, {"output": "none"})[0]
        self.assertEqual(len(node.children), 0)

    def test_profile_without_a_profiler(self):
        node, printed, _ = quiet(tf.profile, GRAPH, RUNS[0], LOG, "op", B(B.time_and_memory()).build())
        self.assertIn("MatchingFiles", printed)
        self.assertEqual(node.children[0].name, "MatchingFiles")
        with self.assertRaisesRegex(tf.InvalidArgumentError, "unknown cmd: graphs"):
            tf.profile(GRAPH, cmd="graphs")
        train, _, _, _ = stand_in.mnist_model()
        node = quiet(tf.profile, train.graph)[0]  # parameters of trainable variables
        self.assertEqual(node.total_parameters, 784 * 10 + 10)

    def test_advice(self):
        advice, printed, _ = quiet(sample_profiler().advise, tf.ALL_ADVICE)
        self.assertEqual(sorted(advice.checkers), ["AcceleratorUtilizationChecker", "ExpensiveOperationChecker",
                                                   "OperationChecker"])
        self.assertIn("low utilization: 0.08", advice.checkers["AcceleratorUtilizationChecker"].reports[0])
        self.assertIn("low utilization: 0.08", printed)
        one = quiet(sample_profiler().advise, {"OperationChecker": {}})[0]
        self.assertEqual(list(one.checkers), ["OperationChecker"])
        with self.assertRaises(TypeError):
            sample_profiler().advise({"OperationChecker": {"threshold": 1}})
        self.assertIn("OperationChecker", quiet(tf.advise, GRAPH, RUNS[0])[0].checkers)

    def test_many_types_are_a_deep_chain(self):
        graph = tf.GraphDef()
        for i in range(400):
            graph.node.add(name="n%d" % i, op="Type%d" % i)
        profiler = quiet(tf.Profiler, graph)[0]
        options = B().select(["occurrence"]).order_by("occurrence").with_max_depth(1000).with_empty_output().build()
        node, depth = quiet(profiler.profile_operations, options)[0], 0
        while node.children:
            node, depth = node.children[0], depth + 1
        self.assertEqual(depth, 400)

    def test_threads(self):
        profiler = sample_profiler()
        options, totals = B().with_empty_output().build(), []

        def work(number):
            for i in range(5):
                if number == 0:
                    profiler.add_step(10 + i, RUNS[0])
                totals.append(profiler.profile_graph(dict(options, step=1)).total_exec_micros)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(totals), 20)
        self.assertEqual(len(set(totals)), 1)


class OpLogs(unittest.TestCase):
    def test_of_a_graph(self):
        stand_in.reset_default_graph()
        weights = stand_in.Variable([784, 10], "weights")
        x = stand_in.placeholder(1, [100, 784], "x")
        product = stand_in.matmul(x, weights)
        log = tf.merge_default_op_log(product.graph)
        entries = {entry.name: entry for entry in log.log_entries}
        self.assertEqual(entries["MatMul"].float_ops, 2 * 784 * 100 * 10)
        self.assertEqual(list(entries["weights"].types), ["_trainable_variables"])
        last = entries["MatMul"].code_def.traces[-1]
        self.assertTrue(log.id_to_string[last.file_id].endswith("tf_test.py"))
        self.assertEqual(log.id_to_string[last.function_id], "test_of_a_graph")
        self.assertIn("stand_in.matmul", log.id_to_string[last.line_id])
        self.assertEqual(log.id_to_string[0], "none")
        bare = tf.merge_default_op_log(product.graph, add_trace=False, add_trainable_var=False)
        self.assertEqual([entry.name for entry in bare.log_entries], ["MatMul"])

    def test_missing_shapes_are_told(self):
        stand_in.reset_default_graph()
        stand_in.matmul(stand_in.placeholder(1, [None, 4], "x"), stand_in.Variable([4, 2]))
        log, _, err = quiet(tf.merge_default_op_log, stand_in.get_default_graph(), add_trace=False)
        self.assertEqual(err, "1 ops no flops stats due to incomplete shapes.\n")
        self.assertFalse(any(entry.float_ops for entry in log.log_entries))

    def test_callers_entries_win(self):
        stand_in.reset_default_graph()
        product = stand_in.matmul(stand_in.placeholder(1, [2, 3], "x"), stand_in.Variable([3, 4], "w"))
        own = tf.OpLogProto()
        own.log_entries.add(name="MatMul", float_ops=7, types=["mine"])
        own.log_entries.add(name="elsewhere", float_ops=1)
        trace = own.log_entries.add(name="w").code_def.traces.add(file_id=5, lineno=3)
        own.id_to_string[5] = "model.py"
        merged = {entry.name: entry for entry in tf.merge_default_op_log(product.graph, own).log_entries}
        table = tf.merge_default_op_log(product.graph, own).id_to_string
        self.assertEqual((merged["MatMul"].float_ops, list(merged["MatMul"].types)), (7, ["mine"]))
        self.assertEqual(merged["elsewhere"].float_ops, 1)
        self.assertGreater(len(own.log_entries[0].code_def.traces), 0)  # in place
        self.assertEqual(table[merged["w"].code_def.traces[0].file_id], "model.py")
        self.assertEqual(trace.lineno, 3)

    def test_written(self):
        with tempfile.TemporaryDirectory() as folder:
            tf.write_op_log(GRAPH, folder)
            data = pathlib.Path(folder, "tfprof_log").read_bytes()
        self.assertEqual(tf.OpLogProto.FromString(data), tf.merge_default_op_log(GRAPH))
        self.assertEqual(len(tf.merge_default_op_log(None).log_entries), 0)


class Contexts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.train = stand_in.mnist_model()[0]

    def run_steps(self, count, **kwargs):
        with stand_in.Session() as session:
            for _ in range(count):
                quiet(session.run, self.train, **kwargs)

    def files(self):
        return sorted(os.listdir(self.folder.name))

    def test_sampling(self):
        with tf.ProfileContext(self.folder.name) as context:
            self.run_steps(99)
            self.assertEqual(self.files(), [])
            self.run_steps(3)
            self.assertGreaterEqual(context._traced, 1)
            self.assertEqual(context._seen, {"GradientDescent/update"})
        self.assertEqual(self.files(), ["profile_100"])
        self.assertFalse(hasattr(stand_in.BaseSession, "profile_context"))

    def test_given_steps(self):
        with tf.ProfileContext(self.folder.name, trace_steps=[2, 4], dump_steps=[3, 5]) as context:
            self.run_steps(6)
            self.assertEqual(context._traced, 2)
        self.assertEqual(self.files(), ["profile_3", "profile_5"])

    def test_next_step(self):
        with tf.ProfileContext(self.folder.name, trace_steps=[], dump_steps=[]) as context:
            self.run_steps(2)
            context.trace_next_step()
            context.dump_next_step()
            self.run_steps(2)
            self.assertEqual(context._traced, 1)
        self.assertEqual(self.files(), ["profile_2"])

    def test_views_meanwhile(self):
        options = B(B.time_and_memory()).with_empty_output().build()
        with tf.ProfileContext(self.folder.name, trace_steps=[], dump_steps=[]) as context:
            context.add_auto_profiling("op", options, [1, 3])
            context.add_auto_profiling("code", options, [3])
            self.run_steps(5)
            self.assertEqual(sorted(context.get_profiles("op")), [1, 3])
            self.assertIn("MatchingFiles", str(context.get_profiles("op")[3]))
            self.assertEqual(sorted(context.get_profiles("code")), [3])
            with self.assertRaisesRegex(ValueError, "No autoprofiler for command: scope"):
                context.get_profiles("scope")
            context.add_auto_profiling("views", options, [5])
            with self.assertRaisesRegex(ValueError, "Unknown cmd: views"):
                self.run_steps(1)

    def test_callers_options_and_metadata(self):
        options, metadata = tf.RunOptions(trace_level=1), tf.RunMetadata()
        with tf.ProfileContext(self.folder.name, trace_steps=[0], dump_steps=[]):
            self.run_steps(1, options=options, run_metadata=metadata)
        self.assertEqual(options.trace_level, 1)
        self.assertGreater(len(metadata.step_stats.dev_stats), 0)

    def test_disabled_and_wrong(self):
        with tf.ProfileContext("", enabled=False) as context:
            self.run_steps(1)
            self.assertIsNone(context.profiler)
            context.trace_next_step()
            context.add_auto_profiling("op", {}, [1])
        with self.assertRaisesRegex(ValueError, "Must have a directory"):
            tf.ProfileContext("")
        with self.assertRaisesRegex(ValueError, "up to 100 steps"):
            tf.ProfileContext("x", trace_steps=range(101))
        with tf.ProfileContext(self.folder.name):
            with self.assertRaisesRegex(tf.InternalError, "Already in context"):
                with tf.ProfileContext(self.folder.name):
                    pass

    def test_a_failed_run_is_not_the_end(self):
        with tf.ProfileContext(self.folder.name, trace_steps=[0, 1], dump_steps=[1]) as context:
            with stand_in.Session() as session:
                with self.assertRaises(AttributeError):
                    session.run([object()])
            self.run_steps(1)
            self.assertEqual(context._step, 2)
        self.assertEqual(self.files(), ["profile_1"])

    def test_debug(self):
        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            with tf.ProfileContext(self.folder.name, trace_steps=[0], dump_steps=[0], debug=True):
                stand_in.Session().run(self.train)
        self.assertIn("debug: tracing step: 0\n", err.getvalue())
        self.assertIn("debug: dumping file at step: 0\n", err.getvalue())
        self.assertEqual(self.files(), ["profile_0", "run_meta_0"])

    def test_every_run_is_a_step(self):
        """Also one that another thread's keeps from being profiled."""
        with tf.ProfileContext(self.folder.name, trace_steps=[], dump_steps=[]) as context:
            self.run_steps(2)
            context._lock.acquire()
            self.run_steps(3)
            context.trace_next_step()
            self.run_steps(1)
            context._lock.release()
            self.assertEqual((context._step, context._traced), (6, 0))
            self.run_steps(2)
            self.assertEqual((context._step, context._traced), (8, 1))

    def test_threads(self):
        with tf.ProfileContext(self.folder.name, trace_steps=range(20), dump_steps=[]):
            threads = [threading.Thread(target=lambda: stand_in.Session().run(self.train)) for _ in range(8)]
            with contextlib.redirect_stdout(io.StringIO()):
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()


class Timelines(unittest.TestCase):
    def test_is_the_programs(self):
        run = tf.RunMetadata.FromString(RUNS[1])
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        for dataflow in (True, False):
            for memory in (True, False):
                drawn = tf.Timeline(run.step_stats).generate_chrome_trace_format(dataflow, memory)
                shown = subprocess.run(
                    [BIN, "convert", str(PARTS / "run_meta_1"), "--to", "timeline",
                     "--show-dataflow=%s" % str(dataflow).lower(), "--show-memory=%s" % str(memory).lower()],
                    stdout=subprocess.PIPE, check=True, env=env).stdout.decode()
                self.assertEqual(drawn, shown)

    def test_analysis(self):
        stats = tf.StepStats()
        device = stats.dev_stats.add(device="/cpu:0")
        for i, (start, size) in enumerate(((10, 100), (20, 50), (30, 10))):
            node = device.node_stats.add(node_name="n%d" % i, all_start_micros=start, all_end_rel_micros=5,
                                         timeline_label="n%d = Op(%s)" % (i, "n0" if i == 1 else ""))
            allocation = node.output.add().tensor_description.allocation_description
            allocation.requested_bytes, allocation.allocator_name = size, "cpu"
        analysis = tf.Timeline(stats).analyze_step_stats()
        most = analysis.allocator_maximums["cpu"]
        self.assertEqual((most.timestamp, most.num_bytes, most.tensors), (20, 150, {"n0", "n1"}))
        compact = analysis.chrome_trace.format_to_string()
        self.assertNotIn("\n", compact)
        self.assertEqual(json.loads(compact), json.loads(analysis.chrome_trace.format_to_string(pretty=True)))
        self.assertEqual(tf.Timeline(stats).analyze_step_stats(show_memory=False).allocator_maximums, {})


class Hooks(unittest.TestCase):
    def steps(self, count, **kwargs):
        train = stand_in.mnist_model()[0]
        with tempfile.TemporaryDirectory() as folder:
            hook = tf.ProfilerHook(output_dir=os.path.join(folder, "profiler"),
                                   global_step=stand_in.create_global_step(), **kwargs)
            with stand_in.MonitoredSession([hook]) as session:
                for _ in range(count):
                    session.run(train)
            files = sorted(os.listdir(os.path.join(folder, "profiler"))) if os.listdir(folder) else []
            events = [name for name in files if name.startswith("events.out.tfevents.")]
            if events:
                env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
                path = os.path.join(folder, "profiler", events[0])
                rows = json.loads(subprocess.run([BIN, "steps", path, "--json"], stdout=subprocess.PIPE, check=True,
                                                 env=env).stdout)
                self.events = [row["step"] for row in (rows["rows"] if isinstance(rows, dict) else rows)]
        return [name for name in files if name.startswith("timeline")]

    def test_every_few_steps(self):
        # The first run arms the timer with 0, so that runs for steps 3, 6 and 9 are traced.
        self.assertEqual(self.steps(10, save_steps=3), ["timeline-3.json", "timeline-6.json", "timeline-9.json"])
        self.assertEqual(self.events, [3, 6, 9])

    def test_every_few_seconds(self):
        self.assertEqual(self.steps(3, save_secs=1000), [])
        self.assertEqual(self.steps(3, save_secs=0), ["timeline-2.json", "timeline-3.json"])

    def test_wrong(self):
        for wrong in ({}, {"save_steps": 1, "save_secs": 1}):
            with self.assertRaises(ValueError):
                tf.ProfilerHook(**wrong)
        with self.assertRaisesRegex(RuntimeError, "Global step"):
            tf.ProfilerHook(save_steps=1).begin()


class Pprof(unittest.TestCase):
    def run_of(self, *nodes):
        run = tf.RunMetadata()
        device = run.step_stats.dev_stats.add(device="/device:CPU:0")
        for name, start, end in nodes:
            device.node_stats.add(node_name=name, op_start_rel_micros=start, op_end_rel_micros=end,
                                  all_end_rel_micros=end + 5)
        run.step_stats.dev_stats.add(device="/device:GPU:0")
        return run

    def test_a_profile_per_device(self):
        stand_in.reset_default_graph()
        op = stand_in.matmul(stand_in.placeholder(1, [2, 3], "x"), stand_in.Variable([3, 4], "w"))
        op.traceback = [("train.py", 9, "main", "build()"), ("model.py", 4, "build", "matmul()"),
                        ("ops.py", 7, "matmul", "apply_op()"), ("library.py", 1, "apply_op", "make()")]
        run = self.run_of(("MatMul", 2, 12), ("MatMul", 1, 6), ("_SOURCE", 0, 1), ("unknown", 0, 1))
        profiles, printed, _ = quiet(pprof_profiler.get_profiles, op.graph, run)
        self.assertIn("Not enough data to create profile for device /device:GPU:0", printed)
        self.assertEqual(list(profiles), ["/device:CPU:0"])
        made = profiles["/device:CPU:0"]
        text = list(made.string_table)
        self.assertEqual(list(made.sample[0].value), [2, 28, 15])
        self.assertEqual([text[label.str] for label in made.sample[0].label], ["MatMul", "MatMul"])
        self.assertEqual([text[function.name] for function in made.function], ["matmul", "build"])
        self.assertEqual(list(made.sample[0].location_id), [1, 2, 1, 2])
        self.assertEqual([text[kind.unit] for kind in made.sample_type], ["count", "nanoseconds", "nanoseconds"])
        self.assertEqual(text[made.comment[0]], "Device 1 of 2: /device:CPU:0")

    def test_files(self):
        stand_in.reset_default_graph()
        op = stand_in.matmul(stand_in.placeholder(1, [2, 3], "x"), stand_in.Variable([3, 4], "w"))
        with tempfile.TemporaryDirectory() as folder:
            files, printed, _ = quiet(pprof_profiler.profile, op.graph, self.run_of(("MatMul", 0, 3)),
                                      os.path.join(folder, "out"))
            self.assertEqual(len(files), 1)
            self.assertRegex(os.path.basename(files[0]), r"^device_CPU_0_[0-9]{14}\.pb\.gz$")
            self.assertEqual(pathlib.Path(files[0]).read_bytes()[:2], b"\x1f\x8b")
            self.assertIn("Writing profile to %s..." % files[0], printed)
        printed = quiet(pprof_profiler.profile, op.graph, self.run_of(("MatMul", 0, 3)))[1]
        self.assertIn("No output directory specified, printing to stdout instead.", printed)


class WithTensorFlow(unittest.TestCase):
    """Modules of TensorFlow's names, to see that its classes are taken when it is loaded."""

    def test_its_classes_are_used(self):
        class TheirNode:
            pass
        module = types.ModuleType("tensorflow.core.profiler.tfprof_output_pb2")
        module.GraphNodeProto = TheirNode
        names = {"tensorflow": types.ModuleType("tensorflow"), "tensorflow.core": types.ModuleType("x"),
                 "tensorflow.core.profiler": types.ModuleType("x"), module.__name__: module}
        before = {name: sys.modules.get(name) for name in names}
        sys.modules.update(names)
        try:
            self.assertIs(tf.GraphNodeProto, TheirNode)
            self.assertEqual(tf.RunMetadata.DESCRIPTOR.full_name, "tensorflow.RunMetadata")  # not in theirs
        finally:
            for name, module in before.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module

    def test_it_is_never_imported(self):
        self.assertNotIn("tensorflow", sys.modules)


if __name__ == "__main__":
    unittest.main()
