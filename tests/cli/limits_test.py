#!/usr/bin/python3
"""Limits of the system: files that may not grow, full disks, few descriptors, little address space. Each ends in a
message and a status, and leaves nothing half-written behind."""
import gzip
import os
import pathlib
import resource
import subprocess
import tempfile
import unittest

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
BIN = pathlib.Path(os.environ.get("OPWATCH_BIN", "build/release/opwatch")).resolve()
PROFILE = SRC / "samples/resnet.profile"
EVENT = b'{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}'


def limited(what, value):
    return lambda: resource.setrlimit(what, (value, value))


def opwatch(*args, limit=None, **more):
    return subprocess.run([BIN, *map(str, args)], capture_output=True, text=True, preexec_fn=limit, **more)


class Limits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def fails(self, run, *words):
        self.assertEqual(run.returncode, 1, run)
        for word in words:
            self.assertIn(word, run.stderr)

    def test_output_may_not_grow(self):
        trace = self.folder / "trace.json"
        trace.write_bytes(b"[" + EVENT + b"]")
        left = sorted(os.listdir(self.folder))
        for args in (["convert", PROFILE], ["merge", trace], ["scope", PROFILE, "--json"],
                     ["convert", PROFILE, "--to", "timeline"]):
            out = self.folder / "out"
            if args[-1] == PROFILE:
                out = self.folder / "out.opw"
            self.fails(opwatch(*args, "-o", out, limit=limited(resource.RLIMIT_FSIZE, 100)), "out", "too large")
            self.assertEqual(sorted(os.listdir(self.folder)), left)

    def test_unpacked_data_may_not_grow(self):
        packed = self.folder / "trace.json.gz"
        packed.write_bytes(gzip.compress(b"[" + b" " * (100 << 20) + EVENT + b"]"))
        for command in ("op", "merge"):
            run = opwatch(command, packed, "-o", self.folder / "out.json",
                          limit=limited(resource.RLIMIT_FSIZE, 1 << 20))
            self.fails(run, "TMPDIR", "trace.json.gz")

    def test_nowhere_to_unpack(self):
        packed = self.folder / "trace.json.gz"
        packed.write_bytes(gzip.compress(b"[" + b" " * (100 << 20) + EVENT + b"]"))
        self.fails(opwatch("op", packed, env={**os.environ, "TMPDIR": str(self.folder / "none")}), "TMPDIR", "trace.json.gz")

    def test_output_that_is_full(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            for args in ([PROFILE], ["op", PROFILE], ["info", PROFILE, "--json"], ["advise", PROFILE]):
                run = subprocess.run([BIN, *map(str, args)], stdout=full, stderr=subprocess.PIPE, text=True)
                self.fails(run, "space")

    def test_commands_without_an_end(self):
        # The address sanitizer reserves more address space than any limit leaves.
        space = None if b"__asan_init" in open(BIN, "rb").read() else limited(resource.RLIMIT_AS, 400 << 20)
        with open("/dev/zero", "rb") as zeros:
            run = opwatch("shell", PROFILE, stdin=zeros, limit=space)
        self.assertIn("more than 1048576 bytes", run.stderr)
        run = opwatch("shell", PROFILE, input="a" * 100000 + "\nop -max_depth 1\nop -max_depth 2")
        self.assertIn("unknown command", run.stderr)
        self.assertEqual(run.stdout.count("MatchingFiles"), 2)


if __name__ == "__main__":
    unittest.main()
