#!/usr/bin/python3
"""Profiles of the Firefox Profiler, made at random from one description and written as eight versions of the processed form and as
Firefox itself writes them, keys in order and out of order: samples, stacks, categories, times and markers are those of the
description, which tests/support/firefox_profile.py works out in plain Python."""
import gzip
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

SRC = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SRC / "tests/support"))
import firefox_profile  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
SEEDS = range(int(os.environ.get("FIREFOX_SEED", "1")), int(os.environ.get("FIREFOX_SEED", "1")) +
              int(os.environ.get("FIREFOX_ROUNDS", "6")))
TABLES = ("sample", "event", "arg", "stack", "frame")


def shuffled(rng, value):
    """The same document, its keys in another order."""
    if isinstance(value, list):
        return [shuffled(rng, v) for v in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    rng.shuffle(keys)
    return {k: shuffled(rng, value[k]) for k in keys}


class Read:
    """What opwatch makes of a file, in the words of firefox_profile."""

    def __init__(self, path, folder):
        run = subprocess.run([BIN, "export", str(path), "--to", "ndjson", str(folder), "--overwrite", "--table",
                              ",".join(TABLES)], capture_output=True)
        assert run.returncode == 0, run.stderr
        self.told = run.stderr.decode()
        self.rows = {t: self.table(folder, t) for t in TABLES}
        self.frames = {f["id"]: (f["function"], f["file"], f["line"], f["module"], f["address"]) for f in self.rows["frame"]}
        self.stacks = {None: ()}
        for s in self.rows["stack"]:
            self.stacks[s["id"]] = (*self.stacks[s["parent_id"]], self.frames[s["frame_id"]])

    def table(self, folder, name):
        path = folder / f"{name}.ndjson"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def samples(self):
        return sorted([(s["thread"], s["process"], s["pid"], s["tid"], s["ts"], self.stacks[s["stack_id"]], s["label"], s["metric"],
                        s["weight"]) for s in self.rows["sample"]], key=repr)

    def events(self, without=("cause", "stack", "startTime", "endTime", "interval")):
        args = {}
        for a in self.rows["arg"]:
            if a["key"] not in without:
                args.setdefault(a["event_id"], []).append((a["key"], a["value"]))
        return sorted([(e["thread"], e["name"], e["ts"], e["dur"], e["category"], e["unfinished"], e["unmatched"],
                        self.stacks[e["stack_id"]] if e["stack_id"] else None, tuple(sorted(args.get(e["id"], []))))
                       for e in self.rows["event"]], key=repr)


class Firefox(unittest.TestCase):
    maxDiff = 3000

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def read(self, document, packed=False):
        data = json.dumps(document, ensure_ascii=False).encode()
        path = self.folder / ("p.json.gz" if packed else "p.json")
        path.write_bytes(gzip.compress(data) if packed else data)
        return Read(path, self.folder / "rows")

    def check(self, profile, document, packed=False, weights=True):
        if not any(t["samples"] or t["markers"] for t in profile.threads):
            return
        got = self.read(document, packed)
        self.assertEqual(got.samples(), profile.wanted_samples(weights))
        want = profile.wanted_events()
        have = got.events()
        if document["meta"].get("preprocessedProfileVersion") == 24:  # what was an interval says so in its type
            have, want = ([(*e[:8], tuple(a for a in e[8] if a[0] != "type")) for e in rows] for rows in (have, want))
        self.assertEqual(have, want)

    def test_processed(self):
        for seed in SEEDS:
            profile = firefox_profile.made(seed)
            for form in firefox_profile.VERSIONS:
                with self.subTest(seed=seed, form=form):
                    document = profile.processed(form)
                    self.check(profile, document, packed=seed % 2)
                    self.check(profile, shuffled(random.Random(seed), document))

    def test_raw(self):
        for seed in SEEDS:
            profile = firefox_profile.made(seed)
            for first in (True, False):
                with self.subTest(seed=seed, schema_first=first):
                    self.check(profile, profile.raw(first), weights=False)


if __name__ == "__main__":
    unittest.main()
