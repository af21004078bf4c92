#!/usr/bin/python3
"""`opwatch memory`: snapshots made with Python's pickle module in all protocols give the peak, the time and what was alive
that a computation over the same objects gives (tests/support/torch_snapshot.py); pickles that would run something run
nothing; whatever is cut off or hostile ends in an answer or a message. Also traces of PyTorch, and the chart."""
import collections
import json
import os
import pathlib
import pickle
import struct
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
sys.path.insert(0, str(ROOT / "tests/support"))
import torch_snapshot  # noqa: E402


def opwatch(*arguments, check=True):
    return subprocess.run([BIN, *map(str, arguments)], capture_output=True, check=check)


def view(name, path, *options):
    return json.loads(opwatch(name, path, "--json", *options).stdout)["rows"]


def line_of(frames):
    """The line that stands for a stack: the innermost one of the user's code."""
    mine = [f for f in frames if f["filename"].endswith(".py") and "/dist-packages/" not in f["filename"]]
    return f"{mine[0]['filename']}:{mine[0]['line']}:{mine[0]['name']}" if mine else None


def sum_lines(alive):
    lines = collections.Counter()
    for size, frames in alive.values():
        lines[line_of(frames) or "(unknown)"] += size
    return lines


class MemoryTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, value, protocol=4, name="m.pickle"):
        path = self.folder / name
        path.write_bytes(value if isinstance(value, bytes) else pickle.dumps(value, protocol=protocol))
        return path

    def check_snapshot(self, snap, path):
        heaps = {r["device"]: r for r in view("heaps", path)}
        start = min(e["time_us"] for t in snap["device_traces"] for e in t) * 1000
        for number in range(len(snap["device_traces"])):
            peak, when, alive, end, reserved = torch_snapshot.use_of(snap, number)
            row = heaps[f"GPU {number}"]
            self.assertEqual(row["peak_bytes"], peak)
            self.assertEqual(row["peak_ns"], None if when is None else when - start)
            self.assertEqual(row["end_bytes"], end)
            self.assertEqual(row["reserved_peak_bytes"], reserved)
            lines = sum_lines(alive)
            told = {r["name"]: r["bytes"] for r in view("memory_peak", path)
                    if r["device"] == f"GPU {number}" and r["grouped_by"] == "line"}
            if set(lines) == {"(unknown)"}:  # a grouping of which nothing is known is left out
                lines.clear()
            self.assertEqual(told, dict(lines))

    def test_every_protocol(self):
        snap = torch_snapshot.snapshot(events=1500, devices=3, seed=5)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with self.subTest(protocol=protocol):
                self.check_snapshot(snap, self.write(snap, protocol))

    def test_many_histories(self):
        for seed in range(6):
            snap = torch_snapshot.snapshot(events=400, devices=1 + seed % 2, seed=seed, forget=seed / 6, steps=3)
            with self.subTest(seed=seed):
                self.check_snapshot(snap, self.write(snap))

    def test_between_two_times(self):
        """At any time and between any two, what is in use by line equals a replay in Python; a snapshot has no events to count from."""
        for seed in range(4):
            snap = torch_snapshot.snapshot(events=500, devices=1, seed=seed, forget=seed / 6)
            times = [e["time_us"] for e in snap["device_traces"][0]]
            path = self.write(snap)
            for first, last in ((0, 0.4), (0.2, 0.5), (0.5, 0.999), (0.9, 0.95)):
                from_us, to_us = times[int(first * len(times))], times[int(last * len(times))]
                rows = view("memory_at", path, "--time-range", f"{from_us - times[0]}us:{to_us - times[0]}us")
                want = [sum_lines(torch_snapshot.alive_at(snap, 0, t)) for t in (from_us, to_us)]
                with self.subTest(seed=seed, first=first, last=last):
                    lines = [r for r in rows if r["grouped_by"] == "line"]
                    self.assertEqual({r["name"]: (r["start_bytes"], r["bytes"]) for r in lines},
                                     {name: (want[0][name], want[1][name]) for name in want[0] | want[1]})
                    self.assertTrue(all(r["change_bytes"] == r["bytes"] - r["start_bytes"] for r in rows))
                    changes = [abs(r["change_bytes"]) for r in lines if r["name"] != "(unknown)"]
                    self.assertEqual(changes, sorted(changes, reverse=True))
            end = {r["name"]: r["bytes"] for r in view("memory_at", path) if r["grouped_by"] == "line"}
            left = sum_lines(torch_snapshot.alive_at(snap, 0, times[-1]))
            self.assertEqual({name: size for name, size in end.items() if size}, dict(left))

    def test_nothing_in_use(self):
        answer = opwatch("memory_at", ROOT / "samples/resnet.profile").stdout.decode()
        self.assertIn("no memory was in use at the chosen time", answer)

    def test_steps(self):
        snap = torch_snapshot.snapshot(events=1200, devices=1, seed=9, forget=0, steps=4)
        rows = view("memory_steps", self.write(snap))
        self.assertEqual([r["step"] for r in rows], [0, 1, 2, 3])
        ends = []
        for step in range(4):
            stage = {a["stage"]: a["time_us"] for a in snap["external_annotations"] if a["name"] == f"ProfilerStep#{step}"}
            use = sum({"alloc": 1, "free_completed": -1}.get(e["action"], 0) * e["size"]
                      for e in snap["device_traces"][0] if e["time_us"] <= stage["END"])
            ends.append(use)
        self.assertEqual([r["end_bytes"] for r in rows], ends)
        self.assertEqual([r["growth_bytes"] for r in rows[1:]], [b - a for a, b in zip(ends, ends[1:])])

    def test_time_reaches_the_peak(self):
        path = self.write(torch_snapshot.snapshot(seed=2))
        for heap in view("heaps", path):
            rows = [r for r in view("memory_time", path) if r["device"] == heap["device"]]
            self.assertEqual(max(r["in_use_bytes"] for r in rows), heap["peak_bytes"])
            at = [r for r in rows if r["peak"]]
            self.assertEqual([r["in_use_bytes"] for r in at], [heap["peak_bytes"]])
            self.assertIn(".py:", at[0]["alive"])

    def test_list_of_segments(self):
        snap = torch_snapshot.snapshot(events=300, seed=3)
        path = self.write(snap["segments"])
        active = collections.Counter()
        for s in snap["segments"]:
            active[f"GPU {s['device']}"] += sum(b["size"] for b in s["blocks"] if b["state"] == "active_allocated")
        self.assertEqual({r["device"]: r["peak_bytes"] for r in view("heaps", path)}, dict(active))

    def test_survives_saving(self):
        path = self.write(torch_snapshot.snapshot(seed=4))
        saved = self.folder / "m.opw"
        opwatch("convert", path, "--to", "opw", "--out", saved)
        for name in ("heaps", "memory_peak", "memory_at", "memory_steps", "memory_time"):
            self.assertEqual(view(name, saved), view(name, path), name)

    def test_redaction_hides_lines(self):
        path = self.write(torch_snapshot.snapshot(seed=4))
        saved = self.folder / "m.opw"
        opwatch("convert", path, "--to", "opw", "--redact", "--out", saved)
        self.assertNotIn(b"forward_", saved.read_bytes())
        self.assertEqual([r["peak_bytes"] for r in view("heaps", saved)], [r["peak_bytes"] for r in view("heaps", path)])

    def test_nothing_is_run(self):
        mark = self.folder / "ran"

        class Evil:
            def __reduce__(self):
                return os.system, (f"touch {mark}",)

        snap = torch_snapshot.snapshot(events=200, seed=6)
        snap["segments"].append(Evil())
        snap["more"] = {"a": Evil(), "b": collections.OrderedDict(x=1), "c": {1, 2}, "d": frozenset([3]), "e": b"bytes",
                        "f": 1 << 70, "g": -5, "h": 1.25, "i": (1, 2, 3), "j": None, "k": bytearray(b"x"), "l": 2 ** 63}
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            path = self.write(snap, protocol)
            done = opwatch("info", path, "--json")
            notes = json.loads(done.stdout)["loss"]
            self.assertTrue(any("system" in str(n) for n in notes), notes)
            del snap["segments"][-1]
            self.check_snapshot(snap, path)
            snap["segments"].append(Evil())
        self.assertFalse(mark.exists())

    def test_cut_off(self):
        whole = pickle.dumps(torch_snapshot.snapshot(events=60, seed=8), protocol=4)
        text = pickle.dumps(torch_snapshot.snapshot(events=60, seed=8), protocol=0)
        for data in (whole, text):
            rows = []
            for size in range(len(data) // 3, len(data), len(data) // 13):
                done = opwatch("info", self.write(data[:size]), "--json", check=False)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                told = json.loads(done.stdout)
                self.assertTrue(told["model"]["damaged"])
                rows.append(told["model"]["rows"]["heap"])
            self.assertGreater(rows[-1], rows[0])

    def test_native_stacks(self):
        """With C++ stacks the unwinder, the allocator and the dispatcher are in every stack: the kernel that asks for memory counts."""
        snap = torch_snapshot.snapshot(events=10, devices=1, forget=0)
        frames = [{"filename": "??", "line": 0, "name": name} for name in (
            "torch::unwind::unwind()", "torch::CapturedTraceback::gather(bool, bool, bool)",
            "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc(signed char, unsigned long, CUstream_st*)",
            "c10::StorageImpl::StorageImpl()", "at::detail::empty_cuda(c10::ArrayRef<long>)", "at::_ops::empty_memory_format::call()",
            "c10::Dispatcher::callBoxed()", "at::native::cudnn_convolution_forward()", "main")]
        for trace in snap["device_traces"]:
            for entry in trace:
                entry["frames"] = frames
        for segment in snap["segments"]:
            for block in segment["blocks"]:
                block["frames"] = frames
        lines = {row["name"] for row in view("memory_peak", self.write(snap)) if row["grouped_by"] == "line"}
        self.assertEqual(lines, {"at::native::cudnn_convolution_forward()"})

    def test_hostile(self):
        head = b"\x80\x04}\x94(\x8c\x08segments\x94]\x94\x8c\x0ddevice_traces\x94]\x94"
        entry = b"}\x94(\x8c\x06action\x94\x8c\x05alloc\x94\x8c\x04size\x94K\x01u"
        bombs = {
            "deep lists": b"]\x94" * 300000,
            "deep marks": b"(" * 300000,
            "deep tuples": b")" + b"\x85" * 300000,
            "far memo": b"Nr\xff\xff\xff\x7f0",
            "far memo line": b"Np99999999999999999999\n0",
            "huge text": b"\x8d" + struct.pack("<Q", 1 << 62) + b"x",
            "huge bytes": b"\x8e" + struct.pack("<Q", (1 << 64) - 1) + b"x",
            "huge long": b"\x8b\xff\xff\xff\x7f",
            "unknown opcode": b"\xff",
            "nothing in the memo": b"j\x00\x01\x00\x00",
            "underflow": b"u" * 10,
            "itself": b"]\x94\x94h\x06a" * 1000,
            "doubling": b"]\x94" + b"".join(b"](h" + bytes([i]) + b"h" + bytes([i]) + b"e\x94" for i in range(6, 200)),
            "same entry": b"]\x94(" + entry + b"2" * 100000 + b"e",
            "no line": b"S'" + b"x" * 100000,
            "odd pairs": b"}\x94(K\x01u",
        }
        for name, bomb in bombs.items():
            with self.subTest(name):
                done = subprocess.run([BIN, "memory", str(self.write(head + bomb + b"u.")), "--memory-limit=512M"],
                                      capture_output=True, check=False)
                self.assertIn(done.returncode, (0, 1), done.stderr)

    def test_trace_of_torch(self):
        """Totals of the source settle what was there before; frees without an allocation are no one's."""
        events, use, live, ops = [], 1000, {}, {}
        peak, at_peak = use, None
        for i in range(200):
            ts = i * 100
            events.append({"ph": "X", "cat": "cpu_op", "name": f"aten::op{i % 7}", "pid": 1, "tid": 2, "ts": ts, "dur": 50,
                           "args": {"External id": i}})
            address = 4096 * (1 + (i * 7) % 40)
            size = -live.pop(address) if address in live else 64 * (1 + i % 9)
            if size > 0:
                live[address] = size
                ops[address] = f"aten::op{i % 7}"
            use += size
            events.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 2, "ts": ts + 10,
                           "args": {"Bytes": size, "Addr": address, "Device Type": 1, "Device Id": 0,
                                    "Total Allocated": use, "Total Reserved": 1 << 20}})
            if use >= peak:
                peak = use
                at_peak = collections.Counter()
                for a, s in live.items():
                    at_peak[ops[a]] += s
        path = self.folder / "t.json"
        path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
        row, = view("heaps", path)
        self.assertEqual((row["device"], row["peak_bytes"], row["end_bytes"], row["start_bytes"]), ("GPU 0", peak, use, 1000))
        self.assertEqual((row["reserved_peak_bytes"], row["allocations"] + row["releases"]), (1 << 20, 200))
        told = {r["name"]: r["bytes"] for r in view("memory_peak", path) if r["grouped_by"] == "op"}
        self.assertEqual(told.pop("(unknown)"), 1000)
        self.assertEqual(told, dict(at_peak))

    def test_timeline(self):
        path = self.folder / "t.raw.json"
        path.write_text("[[-1, 1, 100, 0], [5, 2, 50, 4], [6, 2, 30, 3], [7, 4, -30, 3], [8, 3, -50, 4], [8, 3, 50, 5], [9, 4, -50, 5]]")
        row, = view("heaps", path)
        self.assertEqual((row["peak_bytes"], row["start_bytes"], row["end_bytes"], row["peak_ns"]), (180, 100, 100, 1))
        self.assertEqual({r["name"]: r["bytes"] for r in view("memory_peak", path)},
                         {"parameter": 100, "activation": 50, "temporary": 30})

    def test_outputs(self):
        path = self.write(torch_snapshot.snapshot(seed=1))
        parts = json.loads(opwatch("memory", path, "--json").stdout)
        self.assertEqual(list(parts), ["heaps", "peak", "steps", "time"])
        self.assertEqual(parts["heaps"]["rows"], view("heaps", path))
        text = opwatch("memory", path).stdout.decode()
        for word in ("In use at the peak", "From step to step", "Over time", "█"):
            self.assertIn(word, text)
        csv = opwatch("memory", path, "--csv").stdout.decode()
        self.assertEqual([line for line in csv.split("\n") if line.startswith("#")], ["# heaps", "# peak", "# steps", "# time"])
        chart = self.folder / "m.svg"
        opwatch("memory", path, "--to", "svg", "--out", chart)
        svg = xml.etree.ElementTree.parse(chart).getroot()
        names = [t.text for t in svg.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("GPU 0", names)
        self.assertEqual(len(list(svg.iter("{http://www.w3.org/2000/svg}circle"))), 2)
        refused = opwatch("steps", path, "--to", "svg", check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(b"memory_time", refused.stderr)

    def test_files_without_memory(self):
        done = opwatch("memory", ROOT / "samples/graph.pb")
        self.assertIn(b"no data about memory in these files", done.stdout)


if __name__ == "__main__":
    unittest.main()
