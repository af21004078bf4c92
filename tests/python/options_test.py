#!/usr/bin/python3
"""No option of a view is accepted and ignored: for every view and every option that the package knows, on operations, on traces of two ranks and
on samples, the result changes as it should, or the option is refused by name."""
import json
import os
import pathlib
import tempfile
import unittest

import opwatch
from opwatch import _opwatch

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
STEPS = 6
# Values with which nothing, or almost nothing, is left; those that change how rows look are in LOOKS.
LEAVES_LITTLE = {
    "step": 1, "rank": 1, "time_from_ns": {"sample": 300_000_000, "trace": 5_500_000, "folded": 1}, "time_to_ns": 1_200_000, "limit": 1,
    "account_type_regexes": ["no such type"], "start_name_regexes": ["no such name"], "trim_name_regexes": [".*"],
    "show_name_regexes": ["no such name"], "hide_name_regexes": [".*"], "max_depth": 1,
}
LOOKS = {"order_by": "name", "select": ["bytes"], "full_names": True, "peak": "1T:1T", "metric": "cpu", "style": ("total", "lines"),
         "account_displayed_op_only": True, "all_metrics": True}
# How much of the memory is used does not depend on a start before the peak, and a sentence is one row.
MAY_STAY = {("heaps", "time_from_ns"), ("memory_peak", "time_from_ns"), ("memory_peak", "step"), ("memory_at", "time_from_ns"), ("memory_at", "step"), ("verdict", "limit"),
            ("verdict", "rank"), ("verdict", "time_from_ns")}


def trace(rank):
    events = []
    for step in range(STEPS):
        start = 1000 * step
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": start, "dur": 990})
        for k in range(5):
            at, link = start + 100 * k, 10 * step + k
            call = {"ph": "X", "pid": 1, "tid": 1}
            events += [
                {**call, "cat": "cpu_op", "name": f"aten::op{k}", "ts": at + 5, "dur": 20 + 10 * k + step + 3 * rank,
                 "args": {"External id": link, "Call stack": f"train.py({k + 1}): f{k}"}},
                {**call, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 8, "dur": 2,
                 "args": {"correlation": link, "External id": link}},
                {"ph": "X", "cat": "kernel", "name": f"void ns::kernel{k}<float, int>(float*)", "pid": 0, "tid": 7, "ts": at + 30,
                 "dur": 40 + k + rank, "args": {"correlation": link, "External id": link, "device": 0, "stream": 7}},
                {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": at + 6,
                 "args": {"Device Type": 0, "Device Id": -1, "Addr": link + 1, "Bytes": 1000 * (k + 1 + rank)}}]
        events.append({"ph": "X", "cat": "user_annotation", "name": "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "pid": 1,
                       "tid": 1, "ts": start + 700, "dur": 50 + rank})
    return {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": events}


class Options(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        folder = pathlib.Path(folder.name)
        for rank in (0, 1):
            (folder / f"rank{rank}.json").write_text(json.dumps(trace(rank)))
        (folder / "x.folded").write_text("main (m.py:1);a (m.py:2);b (m.py:3) 30\nmain (m.py:1);a (m.py:2);c 20\nmain (m.py:1);d 10\n")
        cls.profiles = {"sample": opwatch.open(ROOT / "samples/resnet.profile"),
                        "trace": opwatch.open(folder / "rank0.json", folder / "rank1.json"),
                        "folded": opwatch.open(folder / "x.folded")}
        cls.views = [view if isinstance(view, str) else view[0] for view in opwatch.views()]
        cls.options = sorted(_opwatch.option_names()["view"])

    def test_path_and_what_if(self):
        """They use the step, the rank and the time; every other option is refused by its name."""
        for profile in self.profiles.values():
            for options in ({"hide_name_regexes": ["x"]}, {"min_micros": 5}, {"order_by": "micros"}, {"metric": "cpu"}, {"max_depth": 3}):
                for call in (profile.path, lambda **o: profile.what_if("input=0", **o)):
                    with self.assertRaisesRegex(opwatch.UsageError, next(iter(options))):
                        call(**options)
        self.profiles["trace"].path(rank=0)

    def answer(self, what, view, **options):
        """The rows as JSON, or None when the option is refused by its name, which must be the reason."""
        try:
            return self.profiles[what].view(view, **options).to_json()
        except opwatch.UsageError as refused:
            names = [name.replace("time_from_ns", "time_range").replace("time_to_ns", "time_range") for name in options]
            self.assertTrue(any(name in str(refused) for name in names), (what, view, options, str(refused)))
            return None
        except (opwatch.NotFound, opwatch.Unsupported):  # no such step, no times
            return None

    def test_every_option_is_tried(self):
        self.assertEqual(set(self.options), {*LEAVES_LITTLE, *LOOKS} | {name for name in self.options if name.startswith("min_")})

    def test_filters(self):
        tried = 0
        for what in self.profiles:
            for view in self.views:
                plain = self.answer(what, view)
                rows = len(plain["rows"]) if plain else 0
                for option in self.options:
                    value = 10**15 if option.startswith("min_") else LEAVES_LITTLE.get(option)
                    value = value[what] if isinstance(value, dict) else value
                    if value is None or (view, option) in MAY_STAY or rows <= 1:
                        continue
                    with self.subTest(what=what, view=view, option=option):
                        tried += 1
                        self.assertNotEqual(self.answer(what, view, **{option: value}), plain)
        self.assertGreater(tried, 500)

    def test_looks(self):
        """These change what rows show where it can be shown: refused everywhere, or seen in one of the inputs."""
        for view in self.views:
            for option, values in LOOKS.items():
                if (view, option) == ("code", "account_displayed_op_only"):
                    continue
                with self.subTest(view=view, option=option):
                    accepted, changed = 0, 0
                    for what in self.profiles:
                        base = {"hide_name_regexes": ["Conv.*", ".*op1.*", ".*f1.*", ".*py.*"]} if option == "account_displayed_op_only" else {}
                        plain = self.answer(what, view, **base)
                        for value in values if isinstance(values, tuple) else (values,):
                            got = self.answer(what, view, **base, **{option: value})
                            accepted += got is not None and plain is not None
                            changed += got != plain and got is not None
                    self.assertTrue(changed or not accepted or option == "all_metrics" or
                                    (option == "metric" and view in ("op", "code", "functions", "lines", "verdict", "tracks")))

    def test_the_code_view_says_what_it_ignores(self):
        self.assertIn("Note: code view ignores account_displayed_op_only", self.profiles["sample"].code(account_displayed_op_only=True).messages)

    def test_refusals_say_who_takes_it(self):
        with self.assertRaisesRegex(opwatch.UsageError, "the view steps does not use hide_name_regexes; it is for scope, graph, op, code"):
            self.profiles["trace"].steps(hide_name_regexes=["a"])
        for option in ({"select": ["bytes"]}, {"select": ["duratoin"]}, {"order_by": "duration"}):
            with self.assertRaisesRegex(opwatch.UsageError, "the view steps does not use %s; it is for scope, graph, op, code" % list(option)[0]):
                self.profiles["trace"].steps(**option)
        with self.assertRaisesRegex(opwatch.UsageError, "metric is for sampled stacks, and these files have none"):
            self.profiles["trace"].op(metric="cpu")
        with self.assertRaisesRegex(opwatch.UsageError, "the view functions has no style 'lines'; it has total"):
            self.profiles["folded"].functions(style="lines")
        with self.assertRaisesRegex(opwatch.UsageError, "min_micros is for operations, and this profile has sampled functions"):
            self.profiles["folded"].op(min_micros=3)

    def test_usual_values_are_no_choice(self):
        for what, profile in self.profiles.items():
            for view in self.views:
                plain = self.answer(what, view)
                if plain is not None:
                    self.assertEqual(self.answer(what, view, min_micros=0, step=-1, rank=-1, account_type_regexes=[".*"], select=["micros"],
                                                 hide_name_regexes=[]), plain)

    def test_a_range_of_everything(self):
        """A part of the time in which all lies shows what the whole shows."""
        for what in ("sample", "trace"):
            for view in self.views:
                for part in ({"time_from_ns": 0}, {"time_to_ns": 10**15}, {"time_from_ns": 0, "time_to_ns": 10**15}):
                    with self.subTest(what=what, view=view, part=part):
                        plain, got = self.answer(what, view), self.answer(what, view, **part)
                        if got is None or view == "verdict":  # which begins with an advice, and that is of the whole
                            continue
                        self.assertEqual(len(got["rows"]), len(plain["rows"]))
                        for one, other in zip(got["rows"], plain["rows"]):  # some sums are unknown for a part of a step
                            self.assertEqual({**other, **{name: value for name, value in one.items() if value is not None}}, other)

    def test_time_range_of_sums(self):
        """A roofline of a profile counts what ran in the part of the time only."""
        profile = self.profiles["sample"]
        whole = profile.roofline()[0].runs
        middle = profile.steps()[1].start_ns - profile.steps()[0].start_ns
        parts = [profile.roofline(time_to_ns=middle), profile.roofline(time_from_ns=middle)]
        self.assertEqual(sum(part[0].runs for part in parts), whole)


if __name__ == "__main__":
    unittest.main()
