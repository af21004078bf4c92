#!/usr/bin/python3
"""What is read on several cores is what is read on one, byte for byte of the file that opwatch makes of it.

Traces large enough to be cut into parts, and with enough events for links, flows and phases to be worked out on several
threads: PyTorch's (calls, kernels, flows, communication), TensorFlow 1's (scheduling, device, dataflow) and one of no
known producer, with events out of order, of equal times, and partly overlapping.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ["OPWATCH_BIN"]
EVENTS = 60000
PADDING = "x" * 120  # two parts of 4 MB at least


def kineto(r):
    at = 0
    for i in range(EVENTS // 6):
        name = r.choice(["aten::mm", "aten::add", "aten::copy_", "nccl:all_reduce", "enumerate(DataLoader)#_S.__next__"])
        dur, tid, at = r.randint(5, 50), r.randint(1, 4), at + r.randint(0, 30)
        yield {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": at, "dur": dur, "args": {"x": PADDING}}
        yield {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": tid, "ts": at + 1, "dur": 2,
               "args": {"correlation": i, "x": PADDING}}
        yield {"ph": "X", "cat": "kernel", "name": f"kernel_{r.randrange(50)}", "pid": 0, "tid": 7 + i % 3, "ts": at + r.randint(3, 90),
               "dur": r.randint(1, 40), "args": {"correlation": i, "device": 0, "stream": 7 + i % 3, "x": PADDING}}
        for ph, where in (("s", (1, tid)), ("f", (0, 7 + i % 3))):
            yield {"ph": ph, "id": i, "cat": "ac2g", "name": "ac2g", "bp": "e", "pid": where[0], "tid": where[1], "ts": at + 2}
        yield {"ph": "C", "name": "memory", "pid": 1, "ts": at, "args": {"bytes": i, "x": 1}}


def tf1(r):
    for pid, name in ((1, "/job:w/device:GPU:0 Compute"), (2, "/device:GPU:0/stream:all Compute"), (3, "Tensors")):
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
    at = 0
    for i in range(EVENTS // 4):
        op, at = f"layer/{r.randrange(400)}", at + r.randint(0, 30)
        args = {"name": op, "op": "MatMul", "input0": f"layer/{r.randrange(400)}", "x": PADDING}
        yield {"ph": "X", "cat": "Op", "name": "MatMul", "pid": 1, "tid": i % 3, "ts": at, "dur": r.randint(1, 40), "args": args}
        yield {"ph": "X", "cat": "Op", "name": "MatMul", "pid": 2, "tid": i % 2, "ts": at + r.randint(0, 9), "dur": 9, "args": args}
        yield {"ph": "s", "id": i, "cat": "DataFlow", "name": op, "pid": 1, "tid": i % 3, "ts": at + 1}
        yield {"ph": "t", "id": i, "cat": "DataFlow", "name": op, "pid": 2, "tid": i % 2, "ts": at + 5}


def plain(r):
    for i in range(EVENTS):
        ts = r.randrange(200000)
        ph = r.choice("XXXXBEsf")
        event = {"ph": ph, "name": f"n{r.randrange(300)}", "pid": r.randrange(3), "tid": r.randrange(5), "ts": ts, "args": {"x": PADDING}}
        if ph == "X":
            event["dur"] = r.randrange(100)
        if ph in "sf":
            event["id"] = r.randrange(5000)
        yield event


class Cores(unittest.TestCase):
    def check(self, events, seed):
        cores = sorted(os.sched_getaffinity(0))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.json")
            with open(path, "w") as out:
                json.dump({"traceEvents": list(events(random.Random(seed)))}, out)
            for name, use in (("all", cores), ("one", cores[:1])):
                subprocess.run([BIN, "convert", path, "-o", os.path.join(folder, name + ".opw")], check=True, capture_output=True,
                               preexec_fn=lambda use=use: os.sched_setaffinity(0, use))
            with open(os.path.join(folder, "all.opw"), "rb") as a, open(os.path.join(folder, "one.opw"), "rb") as b:
                self.assertTrue(a.read() == b.read(), "files made on one core and on all differ")

    def test_kineto(self):
        self.check(kineto, 1)

    def test_tf1(self):
        self.check(tf1, 2)

    def test_plain(self):
        self.check(plain, 3)


if __name__ == "__main__":
    if len(os.sched_getaffinity(0)) < 2:
        print("only one core")
        sys.exit(77)
    unittest.main()
