#!/usr/bin/python3
"""Random Chrome traces against Python's own JSON reader: `opwatch info --json` must count and add as it does.

Valid files of every form (list, object with other keys around, odd white space, all escapes, decimals, exponents,
text for numbers, nested arguments) on both ways of scanning; and the same files cut at any byte, of which every
complete event must be seen. TRACE_SEEDS=N tries more files.
"""
import json
import os
import random
import subprocess
import tempfile
import unittest
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
SEEDS = int(os.environ.get("TRACE_SEEDS", "60"))
NANO = Decimal("0.001")


class Text(str):
    """A number as it is to be written."""


def number(r, low, high):
    """A number in one of the ways people write them."""
    form = r.randrange(8)
    whole = r.randint(low, high)
    if form < 3:
        return Text(whole)
    if form < 5:
        return Text(f"{whole}.{r.randrange(1000):03d}")
    if form == 5:
        return Text(f"{whole}.{r.randrange(10**9):09d}")
    if form == 6:
        return Text(f"{whole // 1000}.{r.randrange(1000)}e{r.randrange(4)}")
    return f"{whole}.{r.randrange(100)}"  # in quotes


def text(r):
    kinds = ["a", "MatMul", "aten::mm", "é", "名前", "😀", '"', "\\", "/", "\n", "\t", "\x01", "{", "}", "[", "]", ",", ":",
             '{"ph":"X"},{"ph":"X"}', "//", "/*", "\u2028", "x" * 70]
    return "".join(r.choice(kinds) for _ in range(r.randrange(5)))


def value(r, depth=0):
    kind = r.randrange(8 if depth < 4 else 5)
    if kind == 0:
        return text(r)
    if kind == 1:
        return number(r, -10**6, 10**6)
    if kind == 2:
        return r.choice([True, False, None])
    if kind < 5:
        return r.randrange(2**70)
    if kind == 5:
        return [value(r, depth + 1) for _ in range(r.randrange(4))]
    return {text(r): value(r, depth + 1) for _ in range(r.randrange(4))}


def event(r, names):
    e = {}
    ph = r.choice("XXXXXXBEiIRbneSTpFstfCPNODMvVcZ")
    if r.random() < 0.98:
        e["ph"] = ph
    if r.random() < 0.95:
        e["name"] = r.choice(names)
    if r.random() < 0.7:
        e["cat"] = r.choice(["Op", "kernel", "cpu_op,x", "é", ""])
    if r.random() < 0.95:
        e["pid"] = r.choice([0, 1, "1", -7, "CPU functions", 2**64 - 1])
    if r.random() < 0.9:
        e["tid"] = r.choice([0, 1, 2, "2", "stream 7", -2**63])
    if ph != "M" or r.random() < 0.5:
        e["ts"] = number(r, 0, r.choice([1000, 10**15]))
    if ph == "X" and r.random() < 0.95:
        e["dur"] = number(r, 0, r.choice([10, 10**7]))
    if ph in "bneSTpFstfNOD" or r.random() < 0.05:
        e["id"] = r.choice([1, 2, "1", "0x2", 2**63, text(r)])
    if r.random() < 0.6:
        e["args"] = {text(r): value(r) for _ in range(r.randrange(4))}
        if ph == "M":
            e["name"] = r.choice(["process_name", "thread_name"])
            e["args"] = {"name": text(r) + "p"}
    keys = list(e.items())
    r.shuffle(keys)
    return dict(keys)


def write(r, v):
    """JSON text of a value, with random escapes and white space."""
    gap = lambda: r.choice(["", "", "", " ", "\n", "\t ", "\r\n    "])
    if isinstance(v, Text):
        return str(v)
    if isinstance(v, str):
        out = []
        for c in v:
            if c in '"\\' or ord(c) < 32:
                out.append(json.dumps(c)[1:-1])
            elif r.random() < 0.05:
                units = c.encode("utf-16-be")
                out.append("".join("\\u" + units[i:i + 2].hex() for i in range(0, len(units), 2)))
            elif c == "/" and r.random() < 0.5:
                out.append("\\/")
            else:
                out.append(c)
        return '"' + "".join(out) + '"'
    if isinstance(v, dict):
        return "{" + gap() + ("," + gap()).join(write(r, str(k)) + gap() + ":" + gap() + write(r, x)
                                                for k, x in v.items()) + gap() + "}"
    if isinstance(v, list):
        return "[" + gap() + (gap() + "," + gap()).join(write(r, x) for x in v) + gap() + "]"
    return json.dumps(v)


def trace(r):
    """Text of a trace, and where its events end."""
    names = [text(r) for _ in range(6)] + ["MatMul", "aten::mm"]
    head, tail = "[", "]"
    if r.random() < 0.6:
        before = "".join(write(r, k) + ":" + write(r, value(r)) + "," for k in r.sample(["a", "otherData", "é"], r.randrange(4)))
        after = "".join("," + write(r, k) + ":" + write(r, value(r)) for k in r.sample(["b", "metadata"], r.randrange(3)))
        head, tail = "{" + before + '"traceEvents":[', "]" + after + "}"
    out, ends = head, []
    for i in range(r.randrange(1, 60)):
        out += (r.choice([",", ", ", ",\n"]) if i else "") + write(r, event(r, names))
        ends.append(len(out.encode()))
    return (out + tail).encode(), ends


def ns(v):
    """A time rounded to a nanosecond; None when it is none."""
    if isinstance(v, bool) or v is None:
        return None
    try:
        return Decimal(v).quantize(NANO, ROUND_HALF_UP)
    except ArithmeticError:
        return None


def facts(events):
    x = [e for e in events if e.get("ph") == "X"]
    durations = [(e, ns(e.get("dur")) or 0) for e in x]
    by_name, by_cat = Counter(), Counter()
    for e, dur in durations:
        by_name[e.get("name", "None")] += dur
        if "cat" in e:
            by_cat[e["cat"]] += dur
    times = [t for e in events if e.get("ph") != "M" and (t := ns(e.get("ts"))) is not None]
    ends = [t + dur for e, dur in durations if (t := ns(e.get("ts"))) is not None]
    started = {(e.get("cat"), str(e.get("id"))) for e in events if e.get("ph") == "s"}
    ended = {(e.get("cat"), str(e.get("id"))) for e in events if e.get("ph") in ("t", "f")}
    return {
        "trace_events": len(events),
        "by_ph": dict(Counter(str(e.get("ph")) for e in events)),
        "by_cat": dict(Counter(e["cat"] for e in events if "cat" in e)),
        "distinct_pids": len({str(e["pid"]) for e in events if "pid" in e}),
        "distinct_pid_tid": len({(str(e.get("pid")), str(e.get("tid"))) for e in events if "pid" in e or "tid" in e}),
        "distinct_X_names": len({e.get("name") for e in x}),
        "total_X_dur": sum(d for _, d in durations),
        "X_dur_by_cat": dict(by_cat),
        "min_ts": min(times, default=None),
        "max_ts": max(times, default=None),
        "max_X_end": max(ends, default=None),
        "flow_ids": {"started": len(started), "stepped_or_ended": len(ended), "both": len(started & ended)},
        "events_without_ph": sum("ph" not in e for e in events),
        "X_without_dur": sum("dur" not in e for e in x),
    }


def info(data, portable):
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        f.write(data)
        f.flush()
        environment = dict(os.environ, OPWATCH_PORTABLE="1" if portable else "")
        run = subprocess.run([BIN, "info", "--json", "--format", "trace", f.name], capture_output=True, env=environment)
    return json.loads(run.stdout, parse_float=Decimal) if run.returncode == 0 else run.stderr.decode()


class RandomTraces(unittest.TestCase):
    def compare(self, got, want, what):
        self.assertIsInstance(got, dict, f"{what}: {got}")
        for name, told in want.items():
            self.assertEqual(got.get(name), told, f"{what}: {name}")

    def test_valid(self):
        for seed in range(SEEDS):
            r = random.Random(seed)
            data, _ = trace(r)
            parsed = json.loads(data, parse_float=Decimal)
            events = parsed if isinstance(parsed, list) else parsed["traceEvents"]
            self.compare(info(data, seed % 2), facts(events), f"seed {seed}")

    def test_cut(self):
        for seed in range(SEEDS):
            r = random.Random(1000 + seed)
            data, ends = trace(r)
            at = r.randrange(len(data))
            got = info(data[:at], seed % 2)
            complete = sum(end <= at for end in ends)
            if complete:
                self.assertIsInstance(got, dict, f"seed {seed} cut at {at}: {got}")
                self.assertEqual(got["trace_events"], complete, f"seed {seed} cut at {at}")
            elif isinstance(got, dict):
                self.assertEqual(got["trace_events"], 0)


if __name__ == "__main__":
    unittest.main()
