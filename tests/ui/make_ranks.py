#!/usr/bin/python3
"""make_ranks.py FOLDER: traces of a simulated job of four ranks, whose clocks differ and of which rank 2 is slow; prints their paths."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import jobsim

for path in jobsim.write(jobsim.Shape(ranks=4, steps=14, layers=8, world_bytes=64 << 20, slow_rank=(2, 1.6)), sys.argv[1]):
    trace = json.loads(pathlib.Path(path).read_text())
    for event in trace["traceEvents"]:
        if "ts" in event and event["ph"] != "M":
            event["ts"] += 137.25 * trace["distributedInfo"]["rank"]
    pathlib.Path(path).write_text(json.dumps(trace))
    print(path)
