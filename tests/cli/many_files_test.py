#!/usr/bin/python3
"""More inputs than a process may have open files: an archive of many ranks, packed members, and plain files."""
import gzip
import io
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import unittest

BIN = os.environ["OPWATCH_BIN"]
DESCRIPTORS = 88  # 64 inputs keep one, and the program needs a few
RANKS = 100
SANITIZED = b"__asan_init" in open(BIN, "rb").read()


def trace(rank, padding):
    events = [{"ph": "X", "name": "work", "pid": 1, "tid": 1, "ts": 10 * i, "dur": rank + 1, "args": {"rank": rank}} for i in range(3)]
    return json.dumps({"pad": "x" * padding, "traceEvents": events}).encode()


def run(*arguments):
    """Output of opwatch with few descriptors; the test fails unless it ends well."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    done = subprocess.run([BIN, *arguments], capture_output=True, text=True, preexec_fn=limit)
    if done.returncode:
        raise AssertionError(done.stderr)
    return done.stdout


class ManyFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def archive(self, suffix, padding, pack=lambda b: b):
        path = self.path("ranks.tar" + suffix)
        with tarfile.open(path, "w:gz" if suffix else "w", compresslevel=1) if suffix else tarfile.open(path, "w") as tar:
            for rank in range(RANKS):
                member = tarfile.TarInfo(f"rank_{rank}.json")
                data = pack(trace(rank, padding))
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        return path

    def check(self, *paths):
        """All ranks are there, and so are arguments, which are read from where the text is."""
        rows = json.loads(run("sources", "--json", *paths))["rows"]
        self.assertEqual(len(rows), RANKS)
        out = self.path("all.opw")
        run("convert", *paths, "-o", out)
        run("convert", out, "--to", "timeline", "-o", self.path("back.json"))
        with open(self.path("back.json")) as text:
            events = [e for e in json.load(text)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(events), 3 * RANKS)
        self.assertEqual(sorted((e["args"]["rank"], e["dur"]) for e in events), sorted((r, r + 1) for r in range(RANKS) for _ in range(3)))

    # members beyond 4 MB are not kept in memory
    def test_archive(self):
        self.check(self.archive(".gz", 4300000))

    def test_packed_members(self):
        self.check(self.archive("", 4300000, lambda b: gzip.compress(b, 1)))

    def test_plain_files(self):
        for rank in range(RANKS):
            with open(self.path(f"rank_{rank}.json"), "wb") as out:
                out.write(trace(rank, 1100000))  # small ones are read when opened
        self.check(*(self.path(f"rank_{rank}.json") for rank in range(RANKS)))

    def test_merge(self):
        run("merge", self.archive(".gz", 1200000), "-o", self.path("all.json"))
        with open(self.path("all.json")) as text:
            events = [e for e in json.load(text)["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(events), 3 * RANKS)


if __name__ == "__main__":
    if SANITIZED:
        print("skipped: a gigabyte of traces takes twenty under the address sanitizer")
        sys.exit(77)
    unittest.main()
