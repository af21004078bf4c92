"""Writes profiles in the forms that pprof read before profile.proto, from the same description of samples.

A profile is a list of (count, [addresses, the leaf first]), and `maps` a list of (start, end, file). Written from the documents
of the formats, apart from the importer that reads them.
"""
import struct


def proc_maps(maps):
    return "".join(f"{start:08x}-{end:08x} r-xp 00000000 08:01 1234       {name}\n" for start, end, name in maps)


def words(samples, maps=(), period_us=10000, size=8, big=False, text=None, java=False, end=True):
    """A CPU profile: words of `size` bytes."""
    form = (">" if big else "<") + ("Q" if size == 8 else "I")
    out = [0, 3, int(java), period_us, 0]
    for count, addresses in samples:
        out += [count, len(addresses), *addresses]
    if end:
        out += [0, 1, 0]
    return b"".join(struct.pack(form, w) for w in out) + (text if text is not None else proc_maps(maps)).encode()


def stack(addresses):
    return " ".join(f"0x{a:x}" for a in addresses)


def heap(samples, kind, maps=()):
    """samples: (objects, bytes, objects allocated, bytes allocated, addresses); kind: heap_v2/524288, growthz, …"""
    total = [sum(s[i] for s in samples) for i in range(4)]
    lines = [f"heap profile: {total[0]:6}: {total[1]:8} [{total[2]:6}: {total[3]:8}] @ {kind}"]
    lines += [f"{a:6}: {b:8} [{c:6}: {d:8}] @ {stack(at)}" for a, b, c, d, at in samples]
    return "\n".join([*lines, "", "MAPPED_LIBRARIES:", proc_maps(maps)])


def jemalloc(samples, rate, maps=()):
    total = [sum(s[i] for s in samples) for i in range(4)]
    lines = [f"heap_v2/{rate}", f"  t*: {total[0]}: {total[1]} [{total[2]}: {total[3]}]"]
    for a, b, c, d, at in samples:
        lines += [f"@ {stack(at)}", f"  t*: {a}: {b} [{c}: {d}]", f"  t0: {a}: {b} [{c}: {d}]"]
    return "\n".join([*lines, "", "MAPPED_LIBRARIES:", proc_maps(maps)])


def contention(samples, hz, period, maps=()):
    """samples: (cycles, times, addresses)"""
    lines = ["--- contentionz 1 ---", f"cycles/second = {hz}", f"sampling period = {period}", "ms since reset = 20",
             "discarded samples = 0"]
    lines += [f"{cycles:10} {times:8} @ {stack(at)}" for cycles, times, at in samples]
    return "\n".join([*lines, "--- Memory map: ---", *(f"  {a:08x}-{b:08x}: {name}" for a, b, name in maps), ""])


def threads(stacks, maps=()):
    """stacks: (name, thread, [(address, function)] or None for "the same as the one before")"""
    lines = ["--- threadz 1 ---", ""]
    for name, tid, frames in stacks:
        lines.append(f"--- Thread 7f{tid:x} (name: {name}/{tid}) stack: ---")
        if frames is None:
            lines.append("  [same as previous thread]")
            continue
        lines += [("  PC:  " if i == 0 else "  ") + f"0x{a:08x}: {function}" for i, (a, function) in enumerate(frames)]
    return "\n".join([*lines, "--- Memory map: ---", *(f"  {a:08x}-{b:08x}: {name}" for a, b, name in maps), ""])


def go_counts(name, samples):
    """samples: (count, [(address, function, file, line)])"""
    lines = [f"{name} profile: total {sum(s[0] for s in samples)}"]
    for count, frames in samples:
        lines.append(f"{count} @ {stack(f[0] for f in frames)}")
        lines += [f"#\t{a - 1:#x}\t{function}+0x12\t{file}:{line}" for a, function, file, line in frames] + [""]
    return "\n".join(lines)
