#!/usr/bin/python3
"""opwatch record and the libraries of accelerators, played by small programs of our own (tests/support): NCCL calls the
recorder's profiler plugin in all versions of that interface; CUPTI hands over what a device did. Neither needs a GPU, nor says how a real one behaves."""
import csv
import json
import os
import re
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

    def build(self, source, *options, name="driver"):
        out = os.path.join(self.dir, name)
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


class CudaTest(Case):
    """Only what happens to the records: the library is a fake, and the device is, too."""

    def setUp(self):
        super().setUp()
        symbols = subprocess.run(["nm", "-D", LIBRARY], capture_output=True, text=True).stdout
        if "InitializeInjection" not in symbols:
            self.skipTest("the recorder was built without the headers of CUPTI")
        with open(os.path.join(os.environ["OPWATCH_BUILD"], "CMakeCache.txt"), encoding="utf8") as f:
            headers = re.search(r"^OPWATCH_CUPTI_INCLUDE:PATH=(.*)$", f.read(), re.M).group(1)
        self.program = self.build("cupti_fake.c", "-I", headers, "-DDRIVER", "-ldl", name="driver")
        fake = self.build("cupti_fake.c", "-I", headers, "-shared", "-fPIC", name="libcupti.so")
        with open(os.path.join(headers, "cuda.h"), encoding="utf8") as f:
            major = int(re.search(r"define CUDA_VERSION (\d+)", f.read()).group(1)) // 1000
        os.symlink(fake, f"{fake}.{major}")

    def test_copies_kernels_and_calls(self):
        self.record(self.program, "20", LD_LIBRARY_PATH=self.dir)
        whole = ("--step-marker", "nothing is called so")  # and not per step, which its repeating calls are
        work = {row["name"]: row for row in self.rows("work", *whole)}
        self.assertNotIn("cudaGetDevice", work)
        for name in ("Memcpy HtoD", "Memcpy DtoH", "Memset", "cudaLaunchKernel", "cudaMemcpyAsync"):
            self.assertEqual(work[name]["runs"], 20, name)
        waits = [row for row in self.events() if row["name"] == "cudaStreamSynchronize"]
        self.assertEqual([row["phase"] for row in waits], 20 * ["synchronisation"])
        kernel = [row for row in work.values() if "matmul" in row["name"]]
        self.assertEqual([(row["runs"], row["accelerator_ns"]) for row in kernel], [(20, 20 * 5_000_000)])
        streams = [row for row in self.rows("tracks") if row["device"]]
        self.assertEqual([(row["name"], row["device"], row["events"]) for row in streams], [("stream 7", "GPU 0", 80)])
        phases = {row["phase"]: row["total_ns"] for row in self.rows("phases", *whole)}
        self.assertEqual(phases["device_to_host"], 20 * 2_000_000)
        self.assertEqual(phases["host_to_device"], 20 * 990_000)
        hosts = [row for row in self.rows("tracks") if row["kind"] == "host" and row["events"]]
        self.assertEqual([row["pid"] for row in hosts], [row["tid"] for row in hosts])  # told by another thread
        self.assertTrue([row for row in self.rows("notes") if row["kind"] == "dropped" and row["count"] == 60])

    def test_calls_and_their_work_are_joined(self):
        self.record(self.program, "5", LD_LIBRARY_PATH=self.dir)
        events = self.events()
        launches = {row["correlation"] for row in events if row["name"] == "cudaLaunchKernel"}
        self.assertEqual(len(launches), 5)
        self.assertEqual(launches, {row["correlation"] for row in events if "matmul" in row["name"]})

    def test_another_version_is_refused(self):
        p = self.record(self.program, "2", LD_LIBRARY_PATH=self.dir, FAKE_CUPTI_VERSION="999999")
        self.assertIn("CUPTI has version 999999", p.stderr)

    def test_without_cupti_the_job_goes_on(self):
        script = "import ctypes, os; print(ctypes.CDLL(os.environ['CUDA_INJECTION64_PATH']).InitializeInjection())"
        p = self.record("/usr/bin/python3", "-c", script, LD_LIBRARY_PATH="")
        self.assertEqual(p.stdout, "1\n")


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
