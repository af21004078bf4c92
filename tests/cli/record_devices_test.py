#!/usr/bin/python3
"""opwatch record and the libraries of accelerators, played by small programs of our own (tests/support): NCCL calls the
recorder's profiler plugin in all versions of that interface. Neither needs a GPU, nor says how a real one behaves."""
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

BIN, SRC = os.environ["OPWATCH_BIN"], os.environ["OPWATCH_SRC"]
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")


def environment(**more):
    names = ("LD_PRELOAD", "RANK", "SLURM_PROCID", "NCCL_PROFILER_PLUGIN", "CUDA_INJECTION64_PATH")
    return {**{k: v for k, v in os.environ.items() if k not in names}, **more}


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        self.file = os.path.join(self.dir, "x.opw")

    def build(self, source, *options):
        out = os.path.join(self.dir, os.path.splitext(source)[0])
        p = subprocess.run(["cc", "-std=gnu17", "-O1", "-D_GNU_SOURCE", "-I", f"{SRC}/recorder",
                            f"{SRC}/tests/support/{source}", "-o", out, "-pthread", *options], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        return out

    def record(self, *command, **env):
        p = subprocess.run([BIN, "record", "-o", self.file, "--", *command], capture_output=True, text=True, timeout=300,
                           env=environment(**env))
        self.assertEqual(p.returncode, 0, p.stderr)
        return p

    def rows(self, view, *options):
        p = subprocess.run([BIN, view, "--json", *options, self.file], capture_output=True, text=True, timeout=120)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]


    def events(self):
        out = os.path.join(self.dir, "tables")
        subprocess.run([BIN, "export", self.file, "--to", "csv", "--table", "event", "--overwrite", out], check=True,
                       capture_output=True)
        with open(os.path.join(out, "event.csv"), encoding="utf8", newline="") as f:
            return list(csv.DictReader(f))


class NcclTest(Case):
    def test_all_versions(self):
        driver = self.build("nccl_driver.c", "-ldl")
        for version in range(1, 6):
            with self.subTest(version=version):
                self.record(driver, str(version), "20")
                work = {row["name"]: row for row in self.rows("work")}
                for name, runs in (("ncclAllReduce", 15), ("ncclSend", 5), ("nccl:AllReduce", 15), ("nccl:Send", 5)):
                    self.assertEqual(work[name]["runs"], runs, name)
                tracks = [row for row in self.rows("tracks") if row["kind"] == "communication"]
                self.assertEqual([row["events"] for row in tracks], [20])
                self.assertEqual("rank 1 of 2" in tracks[0]["name"], version >= 4, tracks)
                # Each lasts 4 ms or more on the device, whoever is asked for the time.
                self.assertGreaterEqual(work["ncclAllReduce"]["accelerator_ns"], 15 * 4e6)
                phases = {row["phase"]: row["total_ns"] for row in self.rows("phases")}
                self.assertGreaterEqual(phases["communication"], 20 * 4e6)
                self.assertFalse([row for row in self.rows("notes") if row["kind"] in ("damaged", "missing")])

    def test_bytes_of_a_collective(self):
        self.record(self.build("nccl_driver.c", "-ldl"), "4", "4")
        self.assertEqual({row["bytes"] for row in self.events() if row["name"] == "ncclAllReduce"}, {"4000"})

    def test_the_users_own_plugin_stays(self):
        p = self.record("sh", "-c", "echo $NCCL_PROFILER_PLUGIN", NCCL_PROFILER_PLUGIN="mine")
        self.assertEqual(p.stdout, "mine\n")

    def test_without_a_recorder_the_plugin_asks_for_nothing(self):
        p = subprocess.run([self.build("nccl_driver.c", "-ldl"), "4", "1"], env=environment(NCCL_PROFILER_PLUGIN=LIBRARY))
        self.assertEqual(p.returncode, 4)  # the driver's word for a mask without collectives


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
