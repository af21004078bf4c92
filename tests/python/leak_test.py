#!/usr/bin/python3
"""Memory stays where it is, however often things are opened, asked, handed over and dropped; also when they fail."""
import gc
import os
import pathlib
import tempfile
import unittest
import weakref

import opwatch

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
SAMPLE = str(ROOT / "samples/resnet.profile")


def resident():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def attempt(call, *kinds):
    try:
        call()
    except kinds:
        return
    raise AssertionError("no exception")


class Leaks(unittest.TestCase):
    def repeat(self, work, times=400, allowed=1 << 20):
        """What is lost is lost each time; what the system gives or takes by itself (a huge page) is not."""
        for _ in range(60):
            work()
        grown = []
        for _ in range(3):
            before = resident()
            for _ in range(times):
                work()
            grown.append(resident() - before)
            if grown[-1] < allowed:
                return
        self.fail(f"grown by {grown} bytes")

    def test_profiles_and_results(self):
        def work():
            with opwatch.open(SAMPLE) as profile:
                result = profile.op(select=["micros", "bytes"], hide_name_regexes=["a.*", "b.*"])
                list(result), result[0], result[1:3], result.to_dict(), repr(result), result.to_json()
                result.__arrow_c_stream__(), result.__arrow_c_schema__()
                profile.advise(), profile.info(), profile.timeline(), profile.scope()._repr_html_()
        self.repeat(work, 150)

    def test_sql(self):
        """A profile ends with its last name, also after SQL: no cycle waits for the collector, no thread of DuckDB stays."""
        if "SQL" not in " ".join(name for name, there, _ in opwatch.build_parts() if "not" not in there):
            try:
                opwatch.open(SAMPLE).sql("SELECT 1")
            except opwatch.Unsupported:
                self.skipTest("no DuckDB")

        def work():
            profile = opwatch.open(SAMPLE)
            self.assertGreater(profile.sql("SELECT count(*) AS n FROM op")[0].n, 0)
        gc.disable()
        self.addCleanup(gc.enable)
        work()
        threads = len(os.listdir("/proc/self/task"))
        self.repeat(work, int(os.environ.get("OPWATCH_OPENS", 300)), 8 << 20)  # 10000 at night
        self.assertLessEqual(len(os.listdir("/proc/self/task")), threads)
        profile = opwatch.open(SAMPLE)
        profile.sql("SELECT 1")
        ended = weakref.ref(profile)
        del profile
        self.assertIsNone(ended())

    def test_frames(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("no pandas")
        profile = opwatch.open(SAMPLE)
        self.repeat(lambda: (profile.scope().to_pandas(), profile.steps().to_numpy()))

    def test_failures(self):
        profile = opwatch.open(SAMPLE)

        def work():
            attempt(lambda: opwatch.open("/no/such/file", memory_limit=10**9), opwatch.NotFound)
            attempt(lambda: opwatch.open(SAMPLE, input_shapes=["a", 3]), TypeError)
            attempt(lambda: opwatch.open(SAMPLE, memory_limit=20000), opwatch.NoMemory)
            attempt(lambda: profile.op(select=["micros"], step=99), opwatch.NotFound)
            attempt(lambda: profile.op(step=2**80), OverflowError)
            attempt(lambda: profile.op(max_depth="x"), TypeError)
            attempt(lambda: profile.steps().flamegraph(), opwatch.UsageError)
        self.repeat(work)

    def test_recordings(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.opw")

            def work():
                with opwatch.steps(path) as s:
                    for i in s.track(range(20)):
                        s.mark("name %d" % i)
                        s.value("loss", i)
            self.repeat(work)


if __name__ == "__main__":
    if os.environ.get("LD_PRELOAD"):
        print("memory is not given back at once under a sanitizer")
        raise SystemExit(77)
    unittest.main()
