#!/usr/bin/python3
"""Profiles in Python: opening, views, errors, closing, threads. Values are compared with the program's --json."""
import gc
import json
import os
import pathlib
import pickle
import subprocess
import tempfile
import threading
import unittest

import opwatch

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BIN = os.environ.get("OPWATCH_BIN", ROOT / "build/release/opwatch")
SAMPLE = ROOT / "samples/resnet.profile"
TRACE = ROOT / "tests/fuzz/seeds/trace/kineto.json"


def program(*arguments):
    """What the program prints as JSON; its own process must not load a sanitizer twice."""
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run([str(BIN), *map(str, arguments), "--json"], stdout=subprocess.PIPE, check=True, env=env)
    return json.loads(done.stdout)


class Opening(unittest.TestCase):
    def test_paths_of_every_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "a b.profile")
            pathlib.Path(copy).write_bytes(SAMPLE.read_bytes())
            for paths in ((SAMPLE,), (str(SAMPLE),), (os.fsencode(SAMPLE),), ([str(SAMPLE)],),
                          (os.path.join(folder, "*.profile"),), (folder,)):
                with self.subTest(paths=paths):
                    self.assertEqual(len(opwatch.open(*paths).steps()), 3)

    def test_errors_are_the_librarys(self):
        with self.assertRaises(opwatch.NotFound) as caught:
            opwatch.open("/no/such/file")
        self.assertIn("/no/such/file", str(caught.exception))
        self.assertEqual(caught.exception.status, "not found")
        self.assertIsInstance(caught.exception, FileNotFoundError)
        self.assertIsInstance(caught.exception, opwatch.Error)
        with self.assertRaises(opwatch.FormatError):
            opwatch.open(ROOT / "LICENSE")
        with self.assertRaises(opwatch.NoMemory) as caught:
            opwatch.open(SAMPLE, memory_limit=1000)
        self.assertIsInstance(caught.exception, MemoryError)

    def test_settings_of_the_advice(self):
        """./opwatch.toml, as for the program."""
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            try:
                os.chdir(folder)
                pathlib.Path("opwatch.toml").write_text('[advise]\nmute = ["data_quality"]\n', encoding="utf-8")
                self.assertNotIn("data_quality", list(opwatch.open(TRACE).advise().to_dict()["rule"]))
                pathlib.Path("opwatch.toml").write_text("[advise]\nmut = []\n", encoding="utf-8")
                with self.assertRaises(opwatch.Error) as caught:
                    opwatch.open(TRACE)
                self.assertIn("did you mean 'mute'?", str(caught.exception))
            finally:
                os.chdir(before)

    def test_an_exception_can_be_pickled(self):
        try:
            opwatch.open("/no/such/file")
        except opwatch.Error as error:
            copy = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(copy), str(copy), copy.status), (type(error), str(error), error.status))

    def test_wrong_types(self):
        for call in (lambda: opwatch.open(), lambda: opwatch.open(3), lambda: opwatch.open(None),
                     lambda: opwatch.open(SAMPLE, no_such_option=1), lambda: opwatch.open(SAMPLE, progress=3),
                     lambda: opwatch.open(SAMPLE, memory_limit="much"), lambda: opwatch.open(SAMPLE, step_marker=b"x"),
                     lambda: opwatch.open(SAMPLE, input_shapes=[3])):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(ValueError):
            opwatch.open("a\0b")
        with self.assertRaises(OverflowError):
            opwatch.open(SAMPLE, memory_limit=-1)
        with self.assertRaises(OverflowError):
            opwatch.open(SAMPLE, memory_limit=2**70)

    def test_progress_is_told_and_cancels(self):
        calls = []
        opwatch.open(TRACE, progress=lambda file, done, total: calls.append((file, done, total)))
        self.assertTrue(calls)
        self.assertTrue(calls[-1][0].endswith("kineto.json"))
        with self.assertRaises(opwatch.Interrupted):
            opwatch.open(TRACE, progress=lambda file, done, total: False)
        with self.assertRaisesRegex(RuntimeError, "mine"):
            opwatch.open(TRACE, progress=self.raise_mine)

    @staticmethod
    def raise_mine(file, done, total):
        raise RuntimeError("mine")

    def test_redact(self):
        names = opwatch.open(SAMPLE, redact=True).scope()["name"]
        self.assertFalse([name for name in names if "resnet" in name])


class Asking(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.profile = opwatch.open(SAMPLE)

    def test_every_view_is_a_method(self):
        for name, summary, _ in opwatch.views():
            method = getattr(opwatch.Profile, name)
            self.assertTrue(method.__doc__.startswith(summary))
            self.assertEqual(method(self.profile).view, name)

    def test_values_are_the_programs(self):
        for path in (SAMPLE, TRACE):
            profile = opwatch.open(path)
            for name, _, _ in opwatch.views():
                with self.subTest(path=path.name, view=name):
                    # No depth: the program's default is for terminals.
                    levels = ["--max_depth", 2**30 - 1] if name in ("op", "scope", "graph", "code") else []
                    self.assertEqual(profile.view(name).to_json(), program(name, path, *levels))

    def test_order_and_select(self):
        result = self.profile.op(order_by="occurrence", select=["occurrence", "params"], max_depth=3)
        self.assertEqual(result.to_json(), program("op", SAMPLE, "--order_by", "occurrence", "--select",
                                                   "occurrence,params", "--max_depth", 3))
        self.assertEqual(self.profile.op(order_by="params").to_json(),
                         program("op", SAMPLE, "--order_by", "params", "--max_depth", 2**30 - 1))

    def test_samples_of_a_metric(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "x.perf")
            path.write_text("".join(f"p 7/7 {at}: 5 {event}:\n\t1000 {name} (/bin/p)\n\n"
                                    for at, event, name in (("1.0", "cycles", "f"), ("2.0", "page-faults", "g"))))
            with opwatch.open(path) as profile:
                for options, name in (({}, "f"), ({"metric": "page-faults"}, "g")):
                    self.assertEqual([row["name"] for row in profile.functions(**options)], [name])
                    profile.timeline(os.path.join(folder, "t.json"), **options)
                    events = json.loads(pathlib.Path(folder, "t.json").read_text())["traceEvents"]
                    self.assertEqual([event["name"] for event in events if event["ph"] == "X"], [name])

    def test_wrong_options(self):
        with self.assertRaisesRegex(opwatch.UsageError, "no view is called 'opp'; did you mean 'op'?"):
            self.profile.view("opp")
        with self.assertRaisesRegex(TypeError, "did you mean 'order_by'"):
            self.profile.op(oder_by="micros")
        for options in ({"max_depth": "3"}, {"max_depth": 1.5}, {"order_by": 3}, {"select": 3}, {"select": [3]}):
            with self.assertRaises(TypeError, msg=str(options)):
                self.profile.op(**options)
        with self.assertRaises(OverflowError):
            self.profile.op(max_depth=2**40)
        with self.assertRaises(opwatch.UsageError):
            self.profile.view("no_such_view")
        self.assertIn("(", "".join(self.profile.scope(show_name_regexes=["("]).messages))
        with self.assertRaises(opwatch.NotFound):
            self.profile.op(step=77)

    def test_advice_and_facts(self):
        self.assertEqual(self.profile.advise().to_json(), program("advise", SAMPLE))
        self.assertEqual(opwatch.open(SAMPLE).info(), program("info", SAMPLE))
        self.assertEqual({row.rule for row in self.profile.advise("operation")}, {"operation"})
        with self.assertRaises(opwatch.Error):
            self.profile.advise("no_such_rule")
        self.assertEqual(self.profile.step_numbers, [0, 1, 2])
        self.assertTrue(self.profile.verdict_text())
        self.assertEqual(len(self.profile.nsys_stats("cuda_api_sum")), 0)  # TensorFlow's records have no calls
        with self.assertRaises(opwatch.UsageError):
            self.profile.nsys_stats("no_such_report")

    def test_outputs(self):
        with tempfile.TemporaryDirectory() as folder:
            saved = os.path.join(folder, "x.opw")
            self.profile.convert(saved)
            again = opwatch.open(saved)
            self.assertEqual(again.op().to_dict(), self.profile.op().to_dict())
            self.assertEqual(again.verify(), os.path.getsize(saved))
            for name in ("t.json", "t.json.gz", "x.folded", "x.svg", "x.pb.gz"):
                path = os.path.join(folder, name)
                self.profile.convert(path)
                self.assertGreater(os.path.getsize(path), 100, name)
            self.assertIn("traceEvents", json.loads(self.profile.timeline()))
            with self.assertRaises(opwatch.UsageError):
                self.profile.convert(os.path.join(folder, "x.what"))
            with self.assertRaises(opwatch.Error):
                self.profile.save(os.path.join(folder, "no/such/folder/x.opw"))
            merged = os.path.join(folder, "m.json")
            twin = os.path.join(folder, "twin.json")
            pathlib.Path(twin).write_bytes(TRACE.read_bytes())
            summary = opwatch.merge(TRACE, twin, out=merged, align="start")
            self.assertEqual(summary.files, 2)
            self.assertEqual(summary.events_out, 2 * opwatch.merge(TRACE, out=merged).events_out)
            with self.assertRaises(ValueError):
                opwatch.merge(TRACE, out=merged, align="never")


class Ending(unittest.TestCase):
    def test_closed(self):
        with opwatch.open(SAMPLE) as profile:
            result = profile.op()
        self.assertTrue(profile.closed)
        profile.close()
        self.assertIn("closed", repr(profile))
        for call in (profile.op, profile.advise, profile.info, profile.timeline, lambda: profile.memory,
                     lambda: profile.damaged, lambda: profile.step_numbers, lambda: profile.save("/dev/null")):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()
        self.assertEqual(len(result), 26)  # still there
        self.assertIn("Conv2D", result["name"])

    def test_results_keep_what_they_need(self):
        result = opwatch.open(SAMPLE).scope()
        gc.collect()
        self.assertIn("resnet", repr(result))

    def test_pickling_is_refused_with_advice(self):
        profile = opwatch.open(SAMPLE)
        with self.assertRaisesRegex(TypeError, "save"):
            pickle.dumps(profile)
        with self.assertRaisesRegex(TypeError, "to_dict"):
            pickle.dumps(profile.op())

    def test_native_types_are_not_made_by_hand(self):
        for kind in (opwatch._opwatch.Profile, opwatch._opwatch.Result):
            with self.assertRaises(TypeError):
                kind()

    def test_interpreter_ends_with_live_objects(self):
        code = ("import opwatch, threading, sys\n"
                "p = opwatch.open(%r); r = p.op(); it = iter(r); next(it)\n"
                "class Late:\n"
                "    def __del__(self, p=p, r=r): len(r); p.close()\n"
                "late = Late(); sys.keep = (p, r, late)\n"
                "threading.Thread(target=lambda: [p.scope() for _ in range(10000)], daemon=True).start()\n"
                % str(SAMPLE))
        for _ in range(3):
            done = subprocess.run([os.sys.executable, "-c", code], stderr=subprocess.PIPE, timeout=120)
            self.assertEqual((done.returncode, done.stderr), (0, b""))


class Sharing(unittest.TestCase):
    def run_all(self, work, count=4):
        failures = []

        def run():
            try:
                work()
            except BaseException as error:  # pylint: disable=broad-except
                failures.append(error)
        threads = [threading.Thread(target=run) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_threads_share_a_profile(self):
        expected = {name: opwatch.open(SAMPLE).view(name).to_dict() for name, _, _ in opwatch.views()}
        profile = opwatch.open(SAMPLE)

        def work():
            for _ in range(3):
                for name, values in expected.items():
                    self.assertEqual(profile.view(name).to_dict(), values)
        self.run_all(work)

    def test_threads_share_a_result(self):
        result = opwatch.open(SAMPLE).scope()
        expected = list(opwatch.open(SAMPLE).scope())
        self.run_all(lambda: self.assertEqual([list(result) for _ in range(20)], [expected] * 20))

    def test_close_while_others_ask(self):
        for _ in range(10):
            profile = opwatch.open(SAMPLE)

            def work():
                try:
                    while True:
                        profile.scope()
                except ValueError:
                    pass
            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            profile.scope()
            profile.close()
            for thread in threads:
                thread.join(60)
                self.assertFalse(thread.is_alive())

    def test_fork(self):
        profile = opwatch.open(SAMPLE)
        expected = profile.op().to_dict()
        child = os.fork()
        if not child:
            os._exit(0 if profile.op().to_dict() == expected and not profile.close() else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(profile.op().to_dict(), expected)


class Filling(unittest.TestCase):
    """The part below opwatch.tf: profiles that are put together in memory."""

    def test_memory_and_freeze(self):
        native = opwatch._opwatch.Profile.new({})
        with self.assertRaises(opwatch.UsageError):
            native.view("op", {})
        self.assertEqual(native.add_memory("sample", SAMPLE.read_bytes())[0], "profile")
        native.freeze()
        self.assertTrue(native.frozen)
        with self.assertRaises(opwatch.UsageError):
            native.add_memory("sample", SAMPLE.read_bytes())
        with self.assertRaises(TypeError):
            native.add_memory("sample", "text")
        self.assertEqual(len(native.view("steps", {})), 3)

    def test_damage_is_told(self):
        native = opwatch._opwatch.Profile.new({})
        native.add_memory("cut", SAMPLE.read_bytes()[:5000])
        native.freeze()
        self.assertTrue(native.damaged)


if __name__ == "__main__":
    unittest.main()
