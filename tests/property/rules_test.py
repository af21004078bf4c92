#!/usr/bin/python3
"""Rules that hold on any input, whatever it is: over generated jobs, and over files of OPWATCH_CORPUS if that is set (one per producer;
OPWATCH_RULES=all takes every file).

- Steps of one rank do not overlap, and together are not longer than the recording.
- The phases of a step add up to it; a device is not busy for longer than the step, and the mean of that is a mean of steady steps.
- What a device still does when the recording begins is in no step, and in no mean of steps.
- A file alone gives the same steps as beside an unrelated one; reordered events, gzip and .opw change nothing.
- The view, SQL, the named queries, Python's source of both (ndjson) and exports give the same numbers for the same thing.
- Each list of the first screen names the base of its shares, and its shares are of that base.
- "step" is said only where steps are known; programs that JAX runs again and again are steps.
"""
import collections
import csv
import gzip
import io
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")
ALL = os.environ.get("OPWATCH_RULES") == "all"
ROUNDS = int(os.environ.get("RULES_ROUNDS", "12"))
SEED = int(os.environ.get("RULES_SEED", "7"))
PHASES = ("input_ns", "host_ns", "initialisation_ns", "allocation_ns", "launch_ns", "host_to_device_ns", "compute_ns", "communication_ns",
          "device_to_host_ns", "synchronisation_ns", "run_queue_ns", "idle_ns")
SAMPLE = ("kineto/hta-trace_diff_test.json.gz", "kineto/amd-mi300-resnet_act_checkpoint.json.gz", "kineto/hta-sampled_rank-0.json.gz",
          "kineto/hta-alexnet.json.gz", "torch-legacy/torch113-ddp_gloo_rank0.json", "onnxruntime/ort121-ppocr_cls.json",
          "nsys-sqlite/pipit-saxpy-mpi-cuda.sqlite", "tf1-timeline/ikh-gpu-timeline_03_merged_5_runs.json",
          "tf1-profile/resnet-dist2-profile_100", "tf2-trace/ampere-bert-cpu.trace.json.gz", "xplane/amd-jax08-gemm.xplane.pb",
          "stragglers/bytedance-ST-timeline.json.gz", "chrome-trace/cat-x_event_trace.json", "chrome-trace/ss-simple-object.json")
TFPROF = ("accelerator_utilization", "operation", "expensive_operation")
TRACES = ("kineto", "torch-legacy", "onnxruntime", "nsys-sqlite", "tf1-timeline", "tf1-profile", "tf2-trace", "xplane", "stragglers", "chrome-trace")


def run(*words):
    done = subprocess.run([BIN, *map(str, words)], capture_output=True)
    if done.returncode:
        raise AssertionError(f"{words}: {done.stderr.decode()[:400]}")
    return done.stdout


def view(name, *files):
    return json.loads(run(name, "--json", *files))["rows"]


def sql(text, *files):
    return json.loads(run("sql", "--json", *files, text))["rows"]


def column_sum(name, column, path):
    return sum(row[column] or 0 for row in view(name, path))


NUMBER = r"[\d.]+(?:ns|us|ms|s|h|min|B|kB|MB|GB|k|M|G|T)?"
UNITS = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6, "min": 60e6, "h": 3600e6, "": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9,
         "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def union(spans):
    """How long at least one of the spans lasts."""
    total, covered = 0, None
    for begin, end in sorted(spans):
        if covered is None or begin > covered:
            covered = begin
        total += max(0, end - covered)
        covered = max(covered, end)
    return total


def amount(text):
    """A number of the first screen; times are in microseconds."""
    digits = re.match(r"[\d.]+", text).group()
    return float(digits) * UNITS[text[len(digits):]]


# ---- generated jobs ----

def job(rng, rank=None, base=1_700_000_000_000_000, launched_before=0):
    """Events as PyTorch writes them, the host running ahead of the device; and the steps that are in them, in nanoseconds."""
    rows, steps, device, host = [], [], base + rng.randrange(100), base
    count, kernels = rng.randrange(1, 12), rng.randrange(1, 8)

    def add(name, cat, ts, dur, tid, pid, **args):
        rows.append({"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args})

    for _ in range(launched_before):
        took = rng.randrange(50, 400)
        add("old_gemm", "kernel", device, took, 7, 0, correlation=10 ** 6 + len(rows), device=0, stream=7)
        device += took
    before = device if launched_before else None
    correlation = 0
    for number in range(10, 10 + count):
        begin, at = host, host + 5
        ends = []
        for _ in range(kernels):
            correlation += 1
            add("aten::mm", "cpu_op", at, 30, 1, 1)
            add("cudaLaunchKernel", "cuda_runtime", at + 5, 10, 1, 1, correlation=correlation)
            start, took = max(device, at + 15), rng.randrange(10, 300)
            add("gemm", "kernel", start, took, 7, 0, correlation=correlation, device=0, stream=7)
            device = start + took
            ends.append(device)
            at += rng.randrange(30, 60)
        if rng.random() < 0.3:
            add("cudaDeviceSynchronize", "cuda_runtime", at, max(device - at, 1), 1, 1)
            at = max(at, device)
        end = at + 10
        add(f"ProfilerStep#{number}", "user_annotation", begin, end - begin, 1, 1)
        host = end + rng.randrange(0, 20)
        start = begin if before is None else max(begin, before)
        before = max([end, start] + ends)
        steps.append((number, (before - start) * 1000))
    rng.shuffle(rows)
    info = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": rows}
    if rank is not None:
        info["distributedInfo"] = {"rank": rank, "world_size": 4, "backend": "nccl"}
    return info, steps


def write(path, info):
    path.write_text(json.dumps(info))
    return path


class Rules(unittest.TestCase):
    maxDiff = 2000

    def check_steps(self, path):
        """Of one file; returns its steps as the view gives them."""
        rows = view("steps", path)
        by_source = collections.defaultdict(list)
        for row in rows:
            by_source[row["source"]].append(row)
            if row["idle_ns"] is not None:
                self.assertEqual(sum(row[p] for p in PHASES), row["duration_ns"], row)
                self.assertGreaterEqual(min(row[p] for p in PHASES), 0)
            if row["device_busy_ns"] is not None:
                self.assertLessEqual(row["device_busy_ns"], row["duration_ns"], row)
        span = sql("SELECT max(ts + coalesce(dur, 0)) - min(ts) AS span FROM event", path)[0]["span"]
        for steps in by_source.values():
            known = sorted((r for r in steps if r["duration_ns"] is not None), key=lambda r: r["start_ns"])
            for one, two in zip(known, known[1:]):
                self.assertLessEqual(one["start_ns"] + one["duration_ns"], two["start_ns"], (one["step"], two["step"]))
            if span is not None:
                self.assertLessEqual(sum(r["duration_ns"] for r in known), span)
        return rows

    def check_numbers(self, path, rows):
        """The same thing has the same number wherever it is shown."""
        found = {r["number"]: r for r in sql("SELECT number, dur, steady FROM step WHERE NOT whole", path)}
        self.assertEqual({n: r["dur"] for n, r in found.items()}, {r["step"]: r["duration_ns"] for r in rows})
        classified = [r for r in rows if r["in_means"] is not None]
        self.assertEqual([found[r["step"]]["steady"] for r in classified], [r["in_means"] for r in classified])
        asked = json.loads(run("ask", "compare_steps", "--run", f"a={path}", "--run", f"b={path}", "--json"))["rows"]
        lengths = [r["duration_ns"] for r in rows if r["duration_ns"] is not None]
        if lengths:
            self.assertEqual(asked[0]["steps"], len(lengths))
            self.assertAlmostEqual(asked[0]["mean_ms"], statistics.mean(lengths) / 1e6, 5)
        else:
            self.assertEqual(asked, [])
        table = list(csv.DictReader(io.StringIO(run("steps", path, "--csv").decode())))
        self.assertEqual([int(r["duration_ns"]) for r in table if r["duration_ns"]], lengths)
        lines = [json.loads(line) for line in run("steps", path, "--ndjson").splitlines()]
        self.assertEqual([r["duration_ns"] for r in lines], [r["duration_ns"] for r in rows])

    def check_sums(self, path, rows):
        """The ops that compute are the compute of their step: exactly, where they run one after the other; of several devices in the mean.
        And what the list of operations has on devices is the sum of these events."""
        events = sql("SELECT ts, dur, self_dur, phase, track_kind, device, source_id, op_type, step FROM event WHERE dur IS NOT NULL AND op_id <> 0", path)
        on_device = [e for e in events if e["track_kind"] in ("stream", "device", "copy")]
        compute = [e for e in on_device if e["phase"] == "compute"] or [e for e in events if e["phase"] == "compute" and not on_device]
        devices = {(e["source_id"], e["device"]) for e in compute}
        begins = {r["number"]: r["start_ns"] for r in sql("SELECT number, start_ns FROM step WHERE NOT whole", path)}
        if len({d[0] for d in devices}) == 1:
            for row in rows:
                if row["compute_ns"] is None:
                    continue
                begin, end = begins[row["step"]], begins[row["step"]] + row["duration_ns"]
                sums = [union((max(begin, e["ts"]), min(end, e["ts"] + e["dur"])) for e in compute
                              if (e["source_id"], e["device"]) == d and e["ts"] < end and e["ts"] + e["dur"] > begin) for d in devices]
                self.assertAlmostEqual(row["compute_ns"], statistics.mean(sums), delta=1 + len(sums), msg=row["step"])
        in_steps = [e for e in events if e["step"] is not None] or events
        steps = len({e["step"] for e in in_steps})
        sums = collections.Counter()
        for event in in_steps:
            if event["track_kind"] in ("stream", "device", "copy"):
                sums[event["op_type"]] += event["self_dur"] if event["self_dur"] is not None else event["dur"]
        for row in view("work", path):
            if row["accelerator_ns"] and row["name"] in sums and len({e["source_id"] for e in in_steps}) == 1:
                self.assertAlmostEqual(row["accelerator_ns"], sums[row["name"]] / steps, delta=2, msg=row["name"])

    def check_phases(self, path):
        """The events of a phase in steady steps are its time, exactly, where one rank has one device. Time on the host may be longer: what
        runs between the recorded calls of a thread counts, too."""
        phases = [r for r in view("phases", path) if r["device"] != "all"]
        if len({(r["rank"], r["device"]) for r in phases}) != 1 or any(r["job"] is not None for r in phases):
            return
        events = sql("SELECT ts, dur, phase, track_kind FROM event WHERE dur IS NOT NULL", path)
        steps = sql("SELECT start_ns AS b, start_ns + dur AS e FROM step WHERE NOT whole AND steady AND dur IS NOT NULL", path)
        steps = steps or sql("SELECT start_ns AS b, start_ns + dur AS e FROM step WHERE NOT whole AND dur IS NOT NULL", path)
        steps = steps or [{"b": min(e["ts"] for e in events), "e": max(e["ts"] + e["dur"] for e in events)}]
        for row in phases:
            if row["phase"] in ("host", "idle", "between", "run_queue"):
                continue
            mine = [e for e in events if e["phase"] == row["phase"]]
            on_device = [e for e in mine if e["track_kind"] not in ("host", "derived")]
            spans = [(max(s["b"], e["ts"]), min(s["e"], e["ts"] + e["dur"])) for e in on_device or [e for e in mine if e["track_kind"] == "host"]
                     for s in steps if e["ts"] < s["e"] and e["ts"] + e["dur"] > s["b"]]
            if row["phase"] in ("synchronisation", "input"):  # waits in Python functions count as well
                self.assertGreaterEqual(row["total_ns"], union(spans), row["phase"])
            else:
                self.assertEqual(row["total_ns"], union(spans), row["phase"])

    def check_advice(self, path, rows):
        """Sentences about a recording without steps do not speak of steps; a part of the recording saves no more than itself."""
        advice = json.loads(run("advise", "--json", path))
        for row in advice["rows"]:
            if not row["checked"] or row["rule"] in TFPROF:
                continue
            for key in ("what", "advice", "falsified_by"):
                if not advice["steps_known"]:
                    self.assertNotRegex(row[key] or "", r"\bsteps?\b", row["rule"])
            if row["saving_high_ns"] is not None and row["basis"] != "mean":
                self.assertLessEqual(row["saving_high_ns"], advice["step_ns"], row["rule"])
        verdict = view("verdict", path)[0]["verdict"]
        if rows and not verdict.startswith("Nothing"):
            return
        self.assertEqual(run(path).decode().count("Nothing worth changing"), verdict.count("Nothing worth changing"))
        if not advice["steps_known"] and not rows:
            self.assertNotRegex(verdict, r"\b(a|the|per|mean|every) steps?\b")

    def check_words(self, path, rows):
        text = run(path).decode()
        said = re.search(rf"^\d+ steps? of ({NUMBER})", text, re.M)
        if said:
            steady = [r["duration_ns"] for r in rows if r["in_means"] in (True, None)] or [r["duration_ns"] for r in rows]
            median = statistics.median(steady) / 1e3
            self.assertAlmostEqual(amount(said.group(1)), median, delta=0.006 * median, msg="the median of steady steps")
            ends = re.search(rf"^\d+ steps? of {NUMBER}[^(\n]*\(({NUMBER}) to ({NUMBER})\)", text, re.M)
            whole = [r["duration_ns"] / 1e3 for r in rows if not (r["left_out"] or "").startswith("incomplete")]
            self.assertEqual(bool(ends), len(whole) > 1)
            for shown, true in zip(ends.groups() if ends else (), (min(whole), max(whole))):
                self.assertAlmostEqual(amount(shown), true, delta=0.006 * true, msg="the range of whole steps")
        said = re.search(r"Steps cover (?:(\d+)|under 1) % of the recording", " ".join(text.split()))
        if rows and all(r["duration_ns"] is not None for r in rows):
            events = sql("SELECT min(ts) AS first, max(ts + dur) AS last, count(*) FILTER (step IS NULL) AS outside FROM event "
                         "WHERE dur IS NOT NULL AND track_kind IN ('host', 'device', 'stream', 'copy', 'accelerator')", path)[0]
            covered = 100 * sum(r["duration_ns"] for r in rows) / max(events["last"] - events["first"], 1)
            if len({r["source"] for r in rows}) == 1 and abs(covered - 90) > 1:
                self.assertEqual(bool(said), covered < 90 and events["outside"] > 0, "how much of the recording the steps cover")
            if said:
                self.assertAlmostEqual(float(said.group(1) or 0), covered, delta=1)
        if not rows:
            self.assertNotRegex(text, r"\d steps? of")
            self.assertNotIn("busy per step", text)
            self.assertNotIn("in an average step", text)
            self.assertNotRegex(text, r"% of a step")
            footer = json.loads(run("steps", "--json", path))["footer"]
            if sql("SELECT count(*) AS n FROM event", path)[0]["n"]:
                self.assertIn("no steps are known", footer)

    def check_devices(self, path, rows):
        """Busy per step is of the same steps as the duration beside it."""
        of_device = {}
        for row in rows:
            if row["in_means"] and row["device_busy_ns"] is not None:
                of_device.setdefault(row["source"], []).append(row["device_busy_ns"])
        busy = [r["busy_step_ns"] for r in view("devices", path) if r["kind"] in ("gpu", "tpu") and r["events"]]
        if len(of_device) == 1 and len(busy) == 1:
            mean = statistics.mean(next(iter(of_device.values())))
            self.assertAlmostEqual(busy[0], mean, delta=1 + mean / 1e6)

    def check_shares(self, path):
        """Every list of the first screen names what its shares are of, and they are of that; lines have no more time than all operations."""
        bases, base, title, last = {}, None, None, None
        for line in run(path).decode().splitlines():
            row = re.match(rf" {{2,}}({NUMBER}) +([\d.]+)%  ", line)
            if not line.startswith(" "):
                found = re.search(rf", of ({NUMBER})(?=\W|$)", line)
                title, base = line.split(",")[0], found and amount(found.group(1))
                bases[title], last = base, None
            elif row and title not in ("Memory in use at the peak", "Float operations", "Parameters"):
                self.assertIsNotNone(base, f"{title}: no base is named")
                value, share = amount(row.group(1)), float(row.group(2)) / 100
                self.assertLessEqual(value, last or value, f"{title}: the order")
                last = value
                self.assertAlmostEqual(value, share * base, delta=0.006 * value + 0.0006 * base + 0.006 * share * base, msg=line)
        apart = column_sum("work", "outlier_ns", path) / 1e3
        lines, work = bases.get("Lines of code that created them"), bases.get("Operations by time")
        if lines and work:
            self.assertLessEqual(lines, 1.01 * (work + apart))

    def check(self, path):
        self.check_shares(path)
        rows = self.check_steps(path)
        self.check_devices(path, rows)
        self.check_sums(path, rows)
        self.check_phases(path)
        self.check_advice(path, rows)
        self.check_numbers(path, rows)
        self.check_words(path, rows)
        return rows

    def test_two_recordings_of_a_job(self):
        """One after the other on one device: busy per step is that of a step, not of two. So it is for two at the same time."""
        with tempfile.TemporaryDirectory() as folder:
            for later in (0, 3_600_000_000):
                infos = [job(random.Random(SEED), rank=0)[0], job(random.Random(SEED), rank=0, base=1_700_000_000_000_000 + later)[0]]
                paths = [write(pathlib.Path(folder) / f"{later}-{i}.json", info) for i, info in enumerate(infos)]
                alone = [r["busy_step_ns"] for r in view("devices", paths[0]) if r["kind"] == "gpu" and r["events"]]
                both = [r["busy_step_ns"] for r in view("devices", *paths) if r["kind"] == "gpu" and r["events"]]
                self.assertEqual(len(alone), 1)
                for busy in both:
                    self.assertAlmostEqual(busy, alone[0], delta=0.01 * alone[0], msg=later)

    def test_generated_jobs(self):
        rng = random.Random(SEED)
        with tempfile.TemporaryDirectory() as folder:
            for i in range(ROUNDS):
                info, steps = job(rng, launched_before=rng.choice((0, 0, 3)))
                path = write(pathlib.Path(folder) / f"job{i}.json", info)
                with self.subTest(round=i, seed=SEED):
                    rows = self.check(path)
                    self.assertEqual([(r["step"], r["duration_ns"]) for r in rows], steps)
                    took = sum(e["dur"] for e in info["traceEvents"] if e["name"] == "gemm") * 1000
                    work = {r["name"]: r["time_ns"] for r in view("work", path)}
                    self.assertAlmostEqual(work["gemm"], took / len(steps), delta=1)
                    self.assertNotIn("old_gemm", work)
                    # an op that ran in one step only: its mean is over all steps, on every screen
                    info["traceEvents"].append({"ph": "X", "name": "rare", "cat": "cpu_op", "pid": 1, "tid": 1, "dur": 1, "args": {},
                                                "ts": min(e["ts"] for e in info["traceEvents"] if e["name"] == "aten::mm") + 1})
                    write(path, info)
                    work = {r["name"]: r["time_ns"] for r in view("work", path)}
                    ops = {r["name"]: r["micros"] * 1000 for r in view("op", path)}
                    for name in ("gemm", "aten::mm", "rare"):
                        self.assertAlmostEqual(ops[name], work[name], delta=1000)
                    self.assertAlmostEqual(work["rare"], 1000 / len(steps), delta=1)

    def same(self, before, path):
        """The same steps and the same first screen, but for the first line, which names the file."""
        rows, screen = before
        keep = [k for k in rows[0] if k not in ("source", "start_ns")] if rows else []
        self.assertEqual([{k: r[k] for k in keep} for r in view("steps", path)], [{k: r[k] for k in keep} for r in rows])
        self.assertEqual(run(path).decode().splitlines()[1:], screen)

    def test_form_of_the_file_does_not_matter(self):
        rng = random.Random(SEED + 1)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for i in range(max(ROUNDS // 4, 2)):
                info, _ = job(rng)
                path = write(folder / f"a{i}.json", info)
                rows = view("steps", path), run(path).decode().splitlines()[1:]
                with self.subTest(round=i, seed=SEED):
                    rng.shuffle(info["traceEvents"])
                    self.same(rows, write(folder / f"shuffled{i}.json", info))
                    packed = folder / f"packed{i}.json.gz"
                    packed.write_bytes(gzip.compress(path.read_bytes()))
                    self.same(rows, packed)
                    run("convert", path, "-o", folder / f"own{i}.opw")
                    self.same(rows, folder / f"own{i}.opw")
                    run("merge", path, "-o", folder / f"merged{i}.json")
                    self.same(rows, folder / f"merged{i}.json")

    def test_order_of_equal_things(self):
        """What takes the same time is shown by name, whatever comes first in the file; and the verdict does not single one out."""
        rng = random.Random(SEED + 5)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.json"
            names = [rng.choice("abcdefgh") + str(i) for i in range(6)]
            events = [{"ph": "X", "name": name, "ts": 100 * i, "dur": 50, "pid": 1, "tid": 1} for i, name in enumerate(names)]
            screens = set()
            for _ in range(4):
                rng.shuffle(events)
                for i, event in enumerate(events):
                    event["ts"] = 100 * i
                screens.add(run(write(path, {"traceEvents": events})))
            self.assertEqual(len(screens), 1)
            text = screens.pop().decode()
            self.assertEqual(re.findall(r"% +([a-h]\d)$", text, re.M), sorted(names)[:5])
            self.assertIn(f"17 % of op time is {min(names)}; as much is each of 5 others.", " ".join(text.split()))
            path = pathlib.Path(folder) / "a.folded"
            for lines in (("a;c 5", "a;b 5", "a;d 4"), ("a;d 4", "a;b 5", "a;c 5")):
                path.write_text("\n".join(lines) + "\n")
                self.assertIn("36 % of samples are in b itself; as much in c", " ".join(run(path).decode().split()))

    def test_beside_an_unrelated_file(self):
        rng = random.Random(SEED + 2)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            one = write(folder / "one1.json", job(rng, rank=0)[0])
            # years later, and as many ranks: still another job
            two = write(folder / "one2.json", job(rng, rank=1, base=1_760_000_000_000_000)[0])
            alone = {str(p): [r["duration_ns"] for r in view("steps", p)] for p in (one, two)}
            both = collections.defaultdict(list)
            for row in view("steps", one, two):
                both[row["source"]].append(row["duration_ns"])
            self.assertEqual(both, alone)
            self.assertEqual([r["job"] for r in view("sources", one, two)], [1, 2])
            self.assertIn("2 different jobs", run(one, two).decode())
            self.assertEqual([r["run"] for r in json.loads(run("ask", "compare_steps", one, two, "--json"))["rows"]], ["one1", "one2"])

    def test_corpus_beside_an_unrelated_file(self):
        """Whatever is known of a step is the same beside another job; sums of ops are of a step's number, and unknown where two jobs have it."""
        if not CORPUS:
            self.skipTest("OPWATCH_CORPUS is not set")
        rng = random.Random(SEED + 6)
        alone = {name: view("steps", pathlib.Path(CORPUS, name)) for name in SAMPLE}
        for name in SAMPLE:
            other = rng.choice([n for n in SAMPLE if n.split("/")[0] != name.split("/")[0]])
            path = pathlib.Path(CORPUS, name)
            with self.subTest(name, other=other):
                both = [r for r in view("steps", path, pathlib.Path(CORPUS, other)) if r["source"] in (str(path), None)]
                shared = {r["step"] for r in alone[name]} & {r["step"] for r in alone[other]}
                for row, mate in zip(alone[name], both, strict=True):
                    for key, value in row.items():
                        if key in ("source", "start_ns", "step") or (shared and key in ("cpu_ns", "accelerator_ns", "ops", "peak_bytes")):
                            continue
                        self.assertEqual(mate[key], value, key)

    def test_steps_without_phases_beside_the_same_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            events = [{"ph": "X", "name": "compute", "pid": w, "tid": 0, "ts": 1000 * step + 10 * w, "dur": 700, "args": {"step": 10 + step}}
                      for step in range(4) for w in range(3)]
            plain = write(folder / "plain.json", {"traceEvents": events})
            other = write(folder / "other.json", job(random.Random(SEED + 7))[0])
            both = [(r["step"], r["duration_ns"]) for r in view("steps", plain, other) if r["source"] == str(plain)]
            self.assertEqual(both, [(10 + i, 720000) for i in range(4)])

    def test_ranks_of_one_job(self):
        rng = random.Random(SEED + 3)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            files = [write(folder / f"r{i}.json", job(rng, rank=i)[0]) for i in (0, 1)]
            self.assertEqual([r["job"] for r in view("sources", *files)], [1, 1])
            self.assertIn("2 of 4 ranks are here", run(*files).decode())

    def test_merged_step_files_keep_their_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            files = []
            for step in range(3):
                begin = 1_700_000_000_000_000 + step * 10_000_000
                events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/job:localhost/replica:0/task:0/cpu:0 Compute"}}]
                events += [{"ph": "X", "cat": "Op", "name": "MatMul", "pid": 1, "tid": 0, "ts": begin + 100 * i, "dur": 90,
                            "args": {"name": f"layer/MatMul_{i}", "op": "MatMul"}} for i in range(5)]
                files.append(write(folder / f"timeline-{step + 1}.json", {"traceEvents": events}))
            run("merge", *files, "-o", folder / "all.json")
            self.assertEqual([(r["step"], r["duration_ns"]) for r in view("steps", folder / "all.json")], [(i, 490000) for i in (1, 2, 3)])
            self.assertEqual([(r["step"], r["duration_ns"]) for r in view("steps", *files)], [(i, 490000) for i in (1, 2, 3)])

    def timeline(self, path, begin, names, devices=("cpu:0",), runs=1):
        """A timeline of TensorFlow 1: every run begins with _SOURCE; pids are rows of the picture."""
        events = []
        for pid, device in enumerate(devices, 1):
            events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": f"/job:localhost/replica:0/task:0/{device} Compute"}})
        for i in range(runs):
            at = begin + 1_000_000 * i
            events += [{"ph": "X", "cat": "Op", "name": "NoOp", "pid": pid, "tid": 0, "ts": at, "dur": 90, "args": {"name": "_SOURCE", "op": "NoOp"}}
                       for pid in range(1, len(devices) + 1)]
            events += [{"ph": "X", "cat": "Op", "name": "MatMul", "pid": len(devices), "tid": 0, "ts": at + 100 * k, "dur": 90,
                        "args": {"name": name, "op": "MatMul"}} for k, name in enumerate(names, 1)]
        return write(path, {"traceEvents": events})

    def test_timelines_of_other_programs(self):
        """Timelines of one graph within hours are one job; of other graphs, on another kind of device, or weeks apart they are not.
        Merged, every run is a step, and the time between the recordings is in none."""
        base, hour = 1_700_000_000_000_000, 3_600_000_000
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            graph = [f"a/MatMul_{i}" for i in range(5)]
            files = [self.timeline(folder / "one.json", base, graph), self.timeline(folder / "two.json", base + hour, graph),
                     self.timeline(folder / "other.json", base + 5_000_000, [f"b/x{i}" for i in range(5)]),
                     self.timeline(folder / "weeks.json", base + 500 * hour, graph),
                     self.timeline(folder / "gpu.json", base + 10_000_000, graph, ("cpu:0", "gpu:0"), runs=2)]
            self.assertEqual([r["job"] for r in view("sources", *files)], [1, 1, 2, 3, 4])
            run("merge", *files, "-o", folder / "all.json")
            self.assertEqual([r["duration_ns"] for r in view("steps", folder / "all.json")], [590000] * 6)
            self.assertIn("merged from 5 recordings", run(folder / "all.json").decode())
            # recordings at the same time are not steps that follow each other
            late = self.timeline(folder / "late.json", base + 50, graph)
            run("merge", files[0], late, "-o", folder / "both.json")
            self.assertNotIn("merged from", run(folder / "both.json").decode())

    def test_steps_in_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            events = [{"ph": "X", "name": "compute", "pid": w, "tid": 0, "ts": 1000 * step + 10 * w, "dur": 700, "args": {"step": 40 + step}}
                      for step in range(4) for w in range(3)]
            path = write(pathlib.Path(folder) / "a.json", {"traceEvents": events})
            self.assertEqual([(r["step"], r["duration_ns"]) for r in self.check(path)], [(40 + i, 720000) for i in range(4)])

    def jax(self, programs, kernels):
        """A trace of JAX without markers: calls of compiled functions in this order; kernels(i) are what call i launches."""
        events = [{"ph": "M", "name": "process_name", "pid": 10, "args": {"name": "/host:CPU"}},
                  {"ph": "M", "name": "thread_name", "pid": 10, "tid": 1, "args": {"name": "python"}},
                  {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "/device:GPU:0"}},
                  {"ph": "M", "name": "thread_name", "pid": 2, "tid": 7, "args": {"name": "Stream #7(Kernel)"}}]
        number = 0
        for i, name in enumerate(programs):
            at = 1000 * i
            # the function's call is recorded twice, one inside the other
            events += [{"ph": "X", "name": f"PjitFunction({name})", "pid": 10, "tid": 1, "ts": at + k, "dur": 500 - 2 * k} for k in (0, 1)]
            for k, kernel in enumerate(kernels(i)):
                number += 1
                args = {"correlation_id": str(number)}
                events.append({"ph": "X", "name": "cuLaunchKernel", "pid": 10, "tid": 1, "ts": at + 10 + 20 * k, "dur": 5, "args": args})
                events.append({"ph": "X", "name": kernel, "pid": 2, "tid": 7, "ts": at + 30 + 20 * k, "dur": 15, "args": args})
        with tempfile.TemporaryDirectory() as folder:
            path = write(pathlib.Path(folder) / "a.trace.json", {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True},
                                                                 "traceEvents": events})
            return [(r["step"], r["duration_ns"]) for r in self.check(path)]

    def test_repeated_programs_are_steps(self):
        def same(i):
            return [f"fusion_{k}" for k in range(4)]
        step, last = 1000000, 500000
        self.assertEqual(self.jax(["train"] * 5, same), [(i, step) for i in range(4)] + [(4, last)])
        self.assertEqual(self.jax(["a", "b", "a"] * 4, same), [(i, 3 * step) for i in range(3)] + [(3, 2 * step + last)])
        # what comes before the loop is in no step
        self.assertEqual(self.jax(["init", "load"] + ["a", "b"] * 5, same), [(i, 2 * step) for i in range(4)] + [(4, step + last)])
        # nothing repeats, too rarely, or the same function with other shapes
        self.assertEqual(self.jax(["a", "b", "c", "a", "d", "e", "b"], same), [])
        self.assertEqual(self.jax(["a", "b"] * 2, same), [])
        self.assertEqual(self.jax(["dot"] * 6, lambda i: ["copy", f"gemm_{i}", f"tail_{i}"]), [])
        # programs of the host alone have nothing to compare
        self.assertEqual(len(self.jax(["train"] * 4, lambda i: [])), 4)

    def test_part_of_a_recording_without_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            events = [{"ph": "X", "name": "work", "pid": 1, "tid": 0, "ts": i * 1_000_000, "dur": 900_000} for i in range(60)]
            path = write(pathlib.Path(folder) / "a.json", {"traceEvents": events})
            text = run(path, "--time-range", "0s:20s").decode()
            self.assertNotRegex(text, r"\d steps? of")

    def test_corpus(self):
        if not CORPUS:
            self.skipTest("OPWATCH_CORPUS is not set")
        names = SAMPLE
        if ALL:
            names = [str(p.relative_to(CORPUS)) for folder in TRACES for p in sorted(pathlib.Path(CORPUS, folder).iterdir())
                     if "result" not in p.name and "-AR-m" not in p.name]
        for name in names:
            with self.subTest(name):
                self.check(pathlib.Path(CORPUS, name))


if __name__ == "__main__":
    unittest.main()
