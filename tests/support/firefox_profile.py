"""Profiles of the Firefox Profiler: one description written in the forms of many versions, and what it means worked out a second
time, in plain Python. See docs/formats/firefox.md."""
import random

PHASES = {"instant": 0, "interval": 1, "start": 2, "end": 3}
VERSIONS = {"v24": 24, "v41": 41, "v56": 56, "v58": 58, "v60": 60, "v66": 66, "v70": 70, "v75": 75}


def ms(ns):
    return None if ns is None else ns / 1e6


class Table:
    """Rows that are there once."""

    def __init__(self):
        self.rows, self.index = [], {}

    def add(self, row):
        if row not in self.index:
            self.index[row] = len(self.rows)
            self.rows.append(row)
        return self.index[row]


class Tables:
    def __init__(self, strings=None):
        self.strings = strings or Table()
        self.frames, self.funcs, self.stacks, self.resources, self.sources = (Table() for _ in range(5))

    def frame(self, libs, frame):
        function, file, line, lib, address, category = frame
        name = self.strings.add(function if function is not None else hex(address))
        resource = self.resources.add((self.strings.add(libs[lib]["name"]), lib)) if lib >= 0 else -1
        source = None if file is None else self.sources.add(self.strings.add(file))
        func = self.funcs.add((name, resource, source, None if file is None else self.strings.add(file)))
        return self.frames.add((func, address, line or None, category, lib))

    def stack(self, libs, frames):
        at = None
        for frame in frames:
            at = self.stacks.add((at, self.frame(libs, frame)))
        return at

    def dump(self, version):
        frames, funcs, stacks = self.frames.rows, self.funcs.rows, self.stacks.rows
        none = 0 if version >= 71 else None
        out = {
            "frameTable": {
                "length": len(frames), "func": [f[0] for f in frames],
                "address": [max(f[1], 0) if version >= 71 else f[1] for f in frames],
                "line": [f[2] if f[2] else none for f in frames],
                "category": [f[3] if f[3] is not None else none for f in frames],
                "inlineDepth": [0] * len(frames)},
            "funcTable": {
                "length": len(funcs), "name": [f[0] for f in funcs],
                "resource": [max(f[1], 0) if version >= 75 else f[1] for f in funcs],
                "lineNumber": [0 if version >= 75 else None] * len(funcs)},
            "stackTable": {"length": len(stacks), "frame": [s[1] for s in stacks]},
            "resourceTable": {"length": len(self.resources.rows), "name": [r[0] for r in self.resources.rows],
                              "type": [1] * len(self.resources.rows)}}
        if version >= 70:
            out["frameTable"]["lib"] = [max(f[4], 0) if version >= 71 else f[4] for f in frames]
        else:
            out["resourceTable"]["lib"] = [r[1] for r in self.resources.rows]
        if version >= 58:
            out["funcTable"]["source"] = [(0 if version >= 75 else None) if f[2] is None else f[2] for f in funcs]
        else:
            out["funcTable"]["fileName"] = [f[3] for f in funcs]
        if version >= 66:
            out["stackTable"]["prefixOffset"] = [0 if s[0] is None else i - s[0] for i, s in enumerate(stacks)]
        else:
            out["stackTable"]["prefix"] = [s[0] for s in stacks]
        if version >= 71:
            out["frameTable"]["flags"] = [(2 if f[4] >= 0 else 0) | (4 if f[3] is not None else 0) | (16 if f[2] else 0)
                                          for f in frames]
        if version >= 75:
            out["funcTable"]["flags"] = [(4 if f[1] >= 0 else 0) | (8 if f[2] is not None else 0) for f in funcs]
        return out

    def dump_sources(self):
        return {"length": len(self.sources.rows), "filename": self.sources.rows}


class Profile:
    """libs: name, path, start, end. categories: names, the first of which is that of stacks without one. threads: name, process, pid, tid,
    samples (ns, weight, cpu in us, frames), markers (name, kind, start, end, category, data, frames). Frames: function or None, file or
    None, line, library or -1, address or -1, category or None."""

    def __init__(self, rng):
        self.start = rng.choice([0, 1_600_000_000_123_250_000])
        self.libs = [{"name": f"lib{i}.so", "path": f"/opt/none/lib{i}.so", "start": 0x10000 * (i + 1),
                      "end": 0x10000 * (i + 1) + 0x8000} for i in range(3)]
        self.categories = ["Other", "JavaScript", "Layout"]
        self.threads = [self.thread(rng, i) for i in range(rng.randint(1, 4))]

    def thread(self, rng, number):
        pool = [self.frame(rng) for _ in range(12)]
        stacks = [[rng.choice(pool) for _ in range(rng.randint(0, 9))] for _ in range(20)]
        at, samples, markers = rng.randrange(10**6), [], []
        for _ in range(rng.randrange(40)):
            at += rng.randrange(1, 2 * 10**6)
            samples.append((at, rng.randint(1, 5), rng.randrange(900), rng.choice(stacks)))
        at = 0
        for i in range(rng.randrange(12)):
            at += rng.randrange(1, 10**6)
            end = at + rng.randrange(1, 3 * 10**6)
            kind = rng.choice(["instant", "interval", "pair", "end", "start"])
            markers.append((f"{kind}{i}", kind, at, end, rng.randrange(3), {"type": "Text", "name": f"é{i}"},
                            rng.choice(stacks) if rng.random() < 0.5 else None))
        return {"name": f"thread {number}", "process": f"process {number % 2}", "pid": 100 + number % 2, "tid": 1000 + number,
                "samples": samples, "markers": markers}

    def frame(self, rng):
        category = rng.choice([None, 0, 1, 2])
        kind = rng.randrange(4)
        if kind == 0:
            return (None, None, 0, rng.randrange(3), rng.randrange(1, 0x7fff), category)
        if kind == 1:
            return (f"native{rng.randrange(9)}", None, 0, rng.randrange(3), rng.randrange(1, 0x7fff), category)
        if kind == 2:
            return (f"js{rng.randrange(9)}", f"http://a.b/{rng.randrange(3)}.js", rng.randrange(1, 99), -1, -1, category)
        return (f"label{rng.randrange(9)}", None, 0, -1, -1, category)

    # ---- what it means ----

    def frame_text(self, frame):
        function, file, line, lib, address, _ = frame
        module = self.libs[lib]["path"] if lib >= 0 else None
        return (function, file, line or None, module, (address if function is None else 0) or None)

    def category(self, frames):
        found = [f[5] for f in frames if f[5] is not None]
        return f"category={self.categories[found[-1] if found else 0]}"

    def wanted_samples(self, weights=True):
        rows = []
        for thread in self.threads:
            for i, (at, weight, cpu, frames) in enumerate(thread["samples"]):
                row = (thread["name"], thread["process"], thread["pid"], thread["tid"], self.start + at,
                       tuple(map(self.frame_text, frames)), self.category(frames) if frames else None)
                rows.append((*row, "samples", weight if weights else 1))
                if i and cpu:
                    rows.append((*row, "cpu", 1000 * cpu))
        return sorted(rows, key=repr)

    def wanted_events(self):
        rows = []
        for thread in self.threads:
            last = max([s[0] for s in thread["samples"]] +
                       [m[3] if m[1] in ("interval", "pair", "end") else m[2] for m in thread["markers"]], default=0)
            for name, kind, start, end, category, data, frames in thread["markers"]:
                dur = {"instant": None, "end": None, "start": last - start}.get(kind, end - start)
                rows.append((thread["name"], name, self.start + (end if kind == "end" else start), dur,
                             self.categories[category], kind == "start", kind == "end",
                             tuple(map(self.frame_text, frames)) if frames else None,
                             tuple(sorted(data.items()))))
        return sorted(rows, key=repr)

    # ---- as it is written ----

    def meta(self, version):
        meta = {"interval": 1, "startTime": self.start / 1e6, "processType": 0, "product": "made", "stackwalk": 1, "version": 24,
                "categories": [{"name": c, "color": "grey" if i == 0 else "blue", "subcategories": ["Other"]}
                               for i, c in enumerate(self.categories)],
                "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs"}}
        if version:
            meta["preprocessedProfileVersion"] = version
        return meta

    def events(self, thread):
        """Pairs are two markers; what is in a pair's end is no business of its begin."""
        for name, kind, start, end, category, data, frames in thread["markers"]:
            if kind == "pair":
                yield name, "start", start, None, category, data, frames
                yield name, "end", None, end, category, None, None
            elif kind == "end":
                yield name, kind, None, end, category, data, frames
            else:
                yield name, kind, start, end if kind == "interval" else None, category, data, frames

    def processed(self, form):
        version = VERSIONS[form]
        shared = Tables() if version >= 60 else None
        strings = shared.strings if shared else Table() if version >= 56 else None
        sources = shared or Tables(strings)
        threads = []
        for thread in self.threads:
            t = shared or Tables(strings)
            if 58 <= version < 60:
                t.sources = sources.sources
            out = {"name": thread["name"], "processName": thread["process"], "processType": "default",
                   "pid": str(thread["pid"]) if version >= 47 else thread["pid"], "tid": thread["tid"]}
            times = [s[0] for s in thread["samples"]]
            out["samples"] = {"length": len(times), "stack": [t.stack(self.libs, s[3]) for s in thread["samples"]],
                              "weight": [s[1] for s in thread["samples"]], "weightType": "samples",
                              "threadCPUDelta": [s[2] for s in thread["samples"]]}
            if version >= 66:
                out["samples"]["timeDeltas"] = [ms(b - a) for a, b in zip([0] + times, times)]
            else:
                out["samples"]["time"] = [ms(at) for at in times]
            out["markers"] = self.markers(t, thread, version)
            if not shared:
                out.update(t.dump(version))
                if version < 56:
                    out["stringArray"] = t.strings.rows
            if version < 41:
                out["libs"] = self.libs
            threads.append(out)
        profile = {"meta": self.meta(version), "libs": self.libs if version >= 41 else [], "threads": threads}
        if version >= 56:
            profile["shared"] = {"stringArray": strings.rows}
        if version >= 58:
            profile["shared"]["sources"] = sources.dump_sources()
        if shared:
            profile["shared"].update(shared.dump(version))
        return profile

    def markers(self, t, thread, version):
        rows = list(self.events(thread))
        data = [self.payload(t, row, version) for row in rows]
        table = {"length": len(rows), "name": [t.strings.add(r[0]) for r in rows], "category": [r[4] for r in rows], "data": data}
        if version < 30:
            table["time"] = [ms(r[3] if r[1] == "end" else r[2]) for r in rows]
        else:
            table["phase"] = [PHASES[r[1]] for r in rows]
            table["startTime"] = [ms(r[2]) for r in rows]
            table["endTime"] = [ms(r[3]) for r in rows]
        return table

    def payload(self, t, row, version):
        _, kind, start, end, _, data, frames = row
        out = dict(data) if data else None
        stack = t.stack(self.libs, frames) if frames else None
        if version < 30 and kind in ("start", "end"):
            out = dict(out or {}, type="tracing", interval=kind)
        elif version < 30 and kind == "interval":
            out = dict(out or {}, startTime=ms(start), endTime=ms(end))
        if stack is not None:
            out["cause"] = {"time": 0, "stack": stack}
        return out

    def raw(self, schema_first):
        """As Firefox itself and `perf script gecko` write it: rows, and a profile for each process."""
        parts = {}
        for thread in self.threads:
            parts.setdefault(thread["process"], []).append(self.raw_thread(thread, schema_first))
        profiles = [{"meta": self.meta(0), "libs": self.libs, "threads": threads, "processes": []} for threads in parts.values()]
        profiles[0]["processes"] = profiles[1:]
        return profiles[0]

    def location(self, frame):
        function, file, line, lib, address, _ = frame
        if function is None:
            return hex(self.libs[lib]["start"] + address)
        if file is not None:
            return f"{function} ({file}:{line}:7)"
        return function if lib < 0 else f"{function} (in {self.libs[lib]['path']})"

    def raw_thread(self, thread, schema_first):
        strings, frames, stacks = Table(), Table(), Table()

        def stack_of(list_of_frames):
            at = None
            for f in list_of_frames:
                row = (strings.add(self.location(f)), False, None, None, None, None, f[5])
                at = stacks.add((at, frames.add(row if f[5] is not None else row[:1])))
            return at

        def table(columns, rows):
            schema = {c: i for i, c in enumerate(columns)}
            return {"schema": schema, "data": rows} if schema_first else {"data": rows, "schema": schema}

        samples = [[stack_of(s[3]), ms(s[0]), 0, s[2]] for s in thread["samples"]]
        markers = []
        for name, kind, start, end, category, data, causes in self.events(thread):
            row = [strings.add(name), ms(start), ms(end), PHASES[kind], category]
            if data and causes:
                data = dict(data, stack={"name": "SyncProfile", "samples": table(["stack", "time"], [[stack_of(causes), 1.0]]),
                                         "markers": {"schema": {}, "data": []}})
            markers.append(row + [data] if data else row)
        return {"name": thread["name"], "processName": thread["process"], "pid": thread["pid"], "tid": thread["tid"],
                "samples": table(["stack", "time", "eventDelay", "threadCPUDelta"], samples),
                "markers": table(["name", "startTime", "endTime", "phase", "category", "data"], markers),
                "frameTable": table(["location", "relevantForJS", "innerWindowID", "implementation", "line", "column", "category",
                                     "subcategory"], [list(f) for f in frames.rows]),
                "stackTable": table(["prefix", "frame"], [list(s) for s in stacks.rows]),
                "stringTable": strings.rows}


def made(seed):
    return Profile(random.Random(seed))
