#!/usr/bin/python3
"""roofline, pipeline and memory of real XSpace files: numbers that can be computed by hand, and a chart that is well-formed XML.

OPWATCH_CORPUS is the folder with the files; without it the test is skipped.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest
import xml.etree.ElementTree

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")


def run(*arguments):
    return subprocess.run([BIN, *map(str, arguments)], capture_output=True, check=True).stdout


def rows(view, name, *options):
    return json.loads(run(view, "--json", pathlib.Path(CORPUS, "xplane", name), *options))["rows"]


class XSpaceViews(unittest.TestCase):
    def test_gemm(self):
        got = rows("roofline", "amd-jax08-gemm.xplane.pb")
        gemms = [r for r in got if r["type"] == "custom-call"]
        # program 79 multiplies 16384 x 1024 by 1024 x 4096, in 16 bits
        product = next(r for r in gemms if r["name"].endswith("@79"))
        self.assertEqual(product["flops"], 2 * 16384 * 1024 * 4096)
        self.assertGreaterEqual(product["bytes"], 2 * (16384 * 1024 + 1024 * 4096 + 16384 * 4096))
        self.assertTrue(all(r["bound_by"] in ("compute", "memory") and 0 < r["efficiency_percent"] <= 100 for r in gemms))
        # 304 processors at 2.1 GHz with 2048 operations each
        self.assertAlmostEqual(got[0]["peak_gflops_per_second"], 304 * 2.1 * 2048, 3)
        # the file says 2662.4, for two transfers per clock of the memory; HBM3 makes four
        self.assertAlmostEqual(got[0]["peak_gbytes_per_second"], 5324.8, 6)

    def test_tpu_tells_its_peaks(self):
        got = rows("roofline", "tpu_inference_2-early.xplane.pb")
        self.assertAlmostEqual(got[0]["peak_gflops_per_second"], 918000)
        reduce = next(r for r in got if r["type"] == "all-reduce")
        self.assertEqual((reduce["flops"], reduce["bytes"]), (1342177280, 10737418240))

    def test_chart(self):
        chart = run("roofline", "--to", "svg", pathlib.Path(CORPUS, "xplane/amd-jax08-gemm.xplane.pb"))
        root = xml.etree.ElementTree.fromstring(chart)
        self.assertGreater(len(root.findall(".//{http://www.w3.org/2000/svg}circle")), 3)

    def test_memory(self):
        heaps = rows("heaps", "amd-jax08-gemm.xplane.pb")
        gpu = next(h for h in heaps if h["allocator"] == "GPU_0_bfc")
        self.assertEqual(gpu["device"], "/device:GPU:0")
        self.assertEqual((gpu["allocations"], gpu["releases"], gpu["end_bytes"]), (69, 69, 0))


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
