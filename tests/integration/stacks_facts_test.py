#!/usr/bin/python3
"""Sampled profiles of real programs: `opwatch info --json` must tell what FACTS.json does.

OPWATCH_CORPUS is the folder with the profiles and FACTS.json; without it the test is skipped. Compared are the names in
FIELDS, for every file of these kinds. `perf script` texts must fold to the collapsed files of the corpus, byte for byte;
what lies in negative/ must be refused with a word on what it is.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

FIELDS = {
    "folded": ("bad_lines", "crlf", "distinct_stacks", "encoding", "max_depth", "stacks", "sum", "top5_leaf",
               "top5_root"),
    "perf-data": ("attr_size", "attrs", "data_offset", "data_size", "feature_bits", "magic", "mode", "records"),
    "speedscope": ("len_profiles", "toplevel", "toplevel_keys"),
    "perf-script": ("comment_lines", "events", "frame_lines", "lines_nonblank", "sample_headers", "top5_comm"),
    "pprof": ("duration_nanos", "functions", "locations", "mappings", "period", "sample_types", "samples", "strings",
              "sum_values", "time_nanos"),
}
LEGACY = "legacy"  # forms of pprof of which the facts tell little: these are what pprof itself decodes
DECODED = {  # samples, addresses, sums of the values
    "pprof/cppbench.cpu": (52, 109, [712, 7120000000]),
    "pprof/go.crc32.cpu": (69, 11, [211, 2110000000]),
    "pprof/gobench.cpu": (206, 202, [305, 3050000000]),
    "pprof/gobench.heap": (15, 100, [83134, 350314738, 11445, 7721316]),
    "pprof/java.cpu": (8, 64, [7, 70000000]),
}
# Without a period that is printed the name of an event stands before its colon; the facts leave it out there.
UNKNOWN_EVENT = ("perf-script/fg-perf-js-stacks-01.txt",)
COLLAPSED = {"all": "all", "kernel": "kernel", "tid": "tid", "pid": "pid", "jit": "jit", "addrs": "addrs"}

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")


def opwatch(*words):
    return subprocess.run([BIN, *map(str, words)], capture_output=True)


class StacksFacts(unittest.TestCase):
    def compare(self, path, want, kind):
        run = opwatch("info", "--json", pathlib.Path(CORPUS, path))
        self.assertEqual(run.returncode, 0, run.stderr)
        got = json.loads(run.stdout)
        for name in FIELDS[kind]:
            if name == "events" and path in UNKNOWN_EVENT:
                continue
            if name in want:
                given = got.get(name)
                self.assertEqual(sorted(given) if name == "toplevel_keys" else given, want[name], name)
        if want.get("perf_script_samples") is not None:
            self.assertEqual(got.get("samples"), want["perf_script_samples"])

    def compare_legacy(self, path, want):
        got = json.loads(opwatch("info", "--json", pathlib.Path(CORPUS, path)).stdout)
        self.assertEqual(got["format"], want["format"])
        self.assertEqual(got["bytes"], want["bytes_unpacked"])
        self.assertEqual((got["samples"], got["locations"], got["sum_values"]), DECODED[path])

    def test_facts(self):
        facts = json.loads(pathlib.Path(CORPUS, "FACTS.json").read_text())
        seen = set()
        for path, want in sorted(facts.items()):
            kind = path.split("/")[0]
            if kind not in FIELDS:
                continue
            seen.add(kind)
            if want.get("format", "").startswith(LEGACY):
                with self.subTest(path):
                    self.compare_legacy(path, want)
                continue
            with self.subTest(path):
                self.compare(path, want, kind)
        self.assertEqual(seen, set(FIELDS))

    def test_folding(self):
        seen = 0
        for reference in sorted(pathlib.Path(CORPUS, "folded").glob("*-collapsed-*.txt")):
            name, style = reference.stem.split("-collapsed-")
            with self.subTest(reference.name):
                run = opwatch("code", pathlib.Path(CORPUS, "perf-script", name + ".txt"), "--to", "folded",
                              "--style", COLLAPSED[style] + ",stackcollapse")
                self.assertEqual(run.stdout, reference.read_bytes())
                # and back: a collapsed file is read and written as it is
                self.assertEqual(opwatch("code", reference, "--to", "folded").stdout, reference.read_bytes())
            seen += 1
        self.assertGreater(seen, 0)

    def test_refused(self):
        for path, word in (("chip8-profile.folded", "SVG"), ("lfs-pointer-report1.sqlite", "git-LFS")):
            run = opwatch(pathlib.Path(CORPUS, "negative", path))
            self.assertEqual(run.returncode, 1)
            self.assertIn(word, run.stderr.decode())


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
