"""Chrome traces as text, for tests that compare bytes: an independent reader on top of Python's json module.

Every event comes as its own text and as a list of (key, raw value text), so that "unchanged byte for byte" can be
checked. Only strict JSON is taken: what opwatch writes must be that.
"""
import gzip
import json
import re
from decimal import Decimal

BLANK = re.compile(r"[ \t\r\n]*")


def refuse(word):
    raise ValueError(f"{word} is not JSON")


DECODER = json.JSONDecoder(parse_constant=refuse)


def blank(text, at):
    return BLANK.match(text, at).end()


def elements(text, at):
    """(start, end) of every element of the list whose bracket is at `at`; the last item is the list's end."""
    at = blank(text, at + 1)
    while text[at] != "]":
        _, end = DECODER.raw_decode(text, at)
        yield at, end
        at = blank(text, end)
        if text[at] == ",":
            at = blank(text, at + 1)
            if text[at] == "]":
                raise ValueError("a comma before the end")
        elif text[at] != "]":
            raise ValueError("no comma")
    yield at, at + 1


def members(text):
    """[(key, raw value)] of the object that the text is."""
    found = []
    at = blank(text, 1)
    while text[at] != "}":
        key, at = DECODER.raw_decode(text, at)
        at = blank(text, at)
        assert text[at] == ":"
        at = blank(text, at + 1)
        _, end = DECODER.raw_decode(text, at)
        found.append((key, text[at:end]))
        at = blank(text, end)
        if text[at] == ",":
            at = blank(text, at + 1)
    return found


class Event:
    def __init__(self, text):
        self.text = text
        self.members = members(text) if text.startswith("{") else []
        self.raw = dict(self.members)

    def get(self, key, default=None):
        return json.loads(self.raw[key]) if key in self.raw else default


class Trace:
    """A trace in strict JSON; others = the members beside traceEvents."""
    def __init__(self, data):
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        text = data.decode("utf-8-sig")
        json.loads(text, parse_constant=refuse)
        at = blank(text, 0)
        self.others = {}
        self.events = []
        if text[at] == "[":
            self.take_list(text, at)
            return
        at = blank(text, at + 1)
        while text[at] != "}":
            key, at = DECODER.raw_decode(text, at)
            at = blank(text, blank(text, at) + 1)
            value, end = DECODER.raw_decode(text, at)
            if key == "traceEvents":
                self.take_list(text, at)
            else:
                self.others[key] = value
            at = blank(text, end)
            if text[at] == ",":
                at = blank(text, at + 1)

    def take_list(self, text, at):
        places = list(elements(text, at))
        self.events = [Event(text[a:b]) for a, b in places[:-1]]


def base_ns(trace):
    if "baseTimeNanoseconds" in trace.others:
        return Decimal(trace.others["baseTimeNanoseconds"])
    if "beginningOfTime" in trace.others:
        return Decimal(str(trace.others["beginningOfTime"])) * 1000
    return None


def number(raw):
    """A time as a Decimal, or None."""
    value = raw.strip('"')
    return Decimal(value) if re.fullmatch(r"[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?", value) else None


GLOBAL_IDS = set("stfbenSTpFvV")


class Checker:
    """Compares a merged trace with its inputs; raises AssertionError.

    Pids of different files must differ; ids of flows and asynchronous events must keep apart what was apart and
    together what was together; times must be moved by one exact amount per file; all else must be the same text.
    """
    def __init__(self, test, inputs, merged, added=0, labels=True):
        self.test, self.inputs, self.merged = test, inputs, merged
        self.several = len(inputs) > 1
        self.labels = labels and self.several
        self.pids, self.ids, self.frames, self.shifts = {}, {}, {}, []
        total = sum(len(t.events) for t in inputs)
        test.assertEqual(len(merged.events), total + added)

    def run(self):
        at = 0
        for number_, trace in enumerate(self.inputs):
            out = self.merged.events[at:at + len(trace.events)]
            at += len(trace.events)
            self.file(number_, trace, out)
        for event in self.merged.events[at:]:
            self.test.assertEqual((event.get("ph"), event.get("name")), ("M", "process_name"))
        self.distinct(self.pids, "pids")
        self.distinct(self.ids, "ids")
        self.distinct(self.frames, "frames")

    def distinct(self, table, what):
        # (file, old) -> new: a function, and no two files share a new one
        owner = {}
        for (file, old), new in table.items():
            self.test.assertEqual(owner.setdefault(new, (file, old)), (file, old), what)

    def same(self, table, key, new, what):
        self.test.assertEqual(table.setdefault(key, new), new, what)

    def file(self, file, trace, out):
        shift = None
        for a, b in zip(trace.events, out):
            shift = self.event(file, a, b, shift)
        self.shifts.append(shift)

    def event(self, file, a, b, shift):
        if not self.several and a.text == b.text:
            return shift
        keys = [k for k, _ in a.members]
        others = [k for k, _ in b.members]
        if others != keys:  # only a pid may be put in front
            self.test.assertEqual(others, ["pid"] + keys)
        for key in dict.fromkeys(keys):
            old, new = a.raw[key], b.raw[key]
            if key == "pid":
                continue
            if key == "ts":
                shift = self.time(a, old, new, shift)
            elif key == "id" and a.get("ph") in GLOBAL_IDS or key == "bind_id":
                self.identity(file, old, new)
            elif key == "id2" and "global" in json.loads(old):
                self.identity(file, json.dumps(json.loads(old)["global"]), json.dumps(json.loads(new)["global"]))
            elif key in ("sf", "esf"):
                self.same(self.frames, (file, canonical(old)), canonical(new), "frame")
            elif key == "args" and a.get("ph") == "M" and a.get("name") == "process_name" and self.labels:
                self.name(old, new)
            else:
                self.test.assertEqual(new, old, key)
        if a.raw and "ph" in a.raw:
            self.same(self.pids, (file, canonical(a.raw.get("pid", "null"))), canonical(b.raw.get("pid", "null")), "pid")
        return shift

    def identity(self, file, old, new):
        self.same(self.ids, (file, canonical(old)), canonical(new), "id")

    def name(self, old, new):
        a, b = json.loads(old), json.loads(new)
        if isinstance(a, dict) and isinstance(a.get("name"), str):
            self.test.assertTrue(b["name"].endswith((" · " if a["name"] else "") + a["name"]), b)
            a.pop("name"), b.pop("name")
        self.test.assertEqual(a, b)

    def time(self, event, old, new, shift):
        a, b = number(old), number(new)
        if a is None or b is None or event.get("ph") == "M" and a == 0:
            self.test.assertEqual(old, new)
            return shift
        if shift is None:
            shift = b - a
        self.test.assertEqual(b - a, shift, f"{old} and {new}")
        self.test.assertEqual(old.startswith('"'), new.startswith('"'))
        if shift == 0:
            self.test.assertEqual(old, new)
        return shift


def canonical(raw):
    """Numbers and text of digits are the same id; other text is itself."""
    value = json.loads(raw)
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+", value):
        return int(value)
    if isinstance(value, float) and value == int(value):
        return int(value)
    return value
