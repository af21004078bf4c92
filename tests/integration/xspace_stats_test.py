#!/usr/bin/python3
"""One run of TensorFlow 2 in all the forms that its profiler wrote: its XSpace and its trace give the same answers here, and
these equal the answers of TensorFlow's own tools (tensorflow_stats.pb, overview_page.pb, input_pipeline.pb).

OPWATCH_CORPUS is the folder with the files; without it the test is skipped. Compared are every row of the op statistics, with
and without idle time (order, side, type, name, count, total and self time to a picosecond, shares), the steps with all
parts, and from the XSpace and the trace: ops with types and times, steps with their phases.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from pb_fields import fields, message  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")
RUN = "ampere-bert-cpu"


def path(folder, ending):
    return pathlib.Path(CORPUS, folder, f"{RUN}.{ending}")


def rows(view, *arguments):
    out = subprocess.run([BIN, view, "--json", *map(str, arguments)], capture_output=True, check=True).stdout
    return json.loads(out)["rows"]


def steps_of(pages):
    """PerGenericStepDetails of an InputPipelineAnalysisResult."""
    for number, value in fields(pages):
        if number == 4:
            yield message(message(value)[2])


PARTS = {2: "xprof_step_ps", 3: "xprof_unknown_ps", 5: "xprof_device_to_host_ps", 7: "xprof_device_to_device_ps",
         8: "xprof_host_compute_ps", 9: "xprof_host_prepare_ps", 11: "xprof_host_wait_input_ps",
         12: "xprof_host_to_device_ps", 13: "xprof_device_collectives_ps"}


class XSpaceStats(unittest.TestCase):
    def table(self, told, got, idle):
        whole = sum(row["self_ps"] for row in got)
        running = 0
        self.assertGreaterEqual(len(got), len(told))
        for want, row in zip(told, got):
            want = message(want)
            name = want[4].decode()
            self.assertEqual((row["where"], row["type"], row["name"], row["runs"]),
                             (want[2].decode().lower(), want[3].decode(), name, want.get(5, 0)))
            for field, column in ((6, "total_ps"), (8, "self_ps")):
                self.assertLess(abs(want.get(field, 0) * 1e6 - row[column]), 1, f"{name} {column}")
            running += row["self_ps"]
            self.assertAlmostEqual(want[12], row["self_ps"] / whole, 12)
            self.assertAlmostEqual(want[12] * 100, row["percent" if idle else "busy_percent"], 10)
            self.assertAlmostEqual(want[13], running / whole, 10)

    def test_op_stats(self):
        told = dict(fields(path("tf2-derived", "tensorflow_stats.pb").read_bytes()))
        got = rows("opstats", path("xplane", "xplane.pb"))
        with_idle = [v for k, v in fields(told[4]) if k == 1]
        without = [v for k, v in fields(told[5]) if k == 1]
        self.assertEqual((len(with_idle), len(without)), (500, 499))
        self.table(with_idle, got, True)
        self.table(without, [row for row in got if row["type"] != "IDLE"], False)

    def test_steps(self):
        got = rows("steps", path("xplane", "xplane.pb"))
        for source, pages in (("input_pipeline", path("tf2-derived", "input_pipeline.pb").read_bytes()),
                              ("overview_page", message(path("tf2-derived", "overview_page.pb").read_bytes())[2])):
            told = list(steps_of(pages))
            self.assertEqual(len(told), len(got), source)
            for want, row in zip(told, got):
                for field, column in PARTS.items():
                    self.assertLess(abs(want.get(field, 0) * 1e9 - row[column]), 1, f"{source} {column}")
                compute = row["xprof_device_compute_16_ps"] + row["xprof_device_compute_32_ps"]
                self.assertLess(abs(want.get(6, 0) * 1e9 - compute), 1)

    def same(self, view, columns):
        a, b = (rows(view, p) for p in (path("xplane", "xplane.pb"), path("tf2-trace", "trace.json.gz")))
        self.assertGreater(len(a), 0)
        self.assertEqual([[row[c] for c in columns] for row in a], [[row[c] for c in columns] for row in b])

    def test_same_from_either_file(self):
        self.same("opstats", ("where", "type", "name", "runs", "total_ps", "self_ps"))
        steps = [column for column in rows("steps", path("xplane", "xplane.pb"))[0] if column != "source"]
        self.same("steps", steps)
        self.same("phases", ("phase", "where", "share_ns", "total_ns", "overlapped_ns", "exposed_ns", "steps"))
        self.same("work", ("name", "time_ns", "runs", "ops", "top_op"))
        self.same("op", ("name", "micros", "total_micros", "cpu_micros", "accelerator_micros"))


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
