"""Profiles of sampled stacks, as large as asked for: folded stacks, `perf script`, pprof and its older texts. For bench/importers and tests.

A program of 2,000 functions calls itself at random, so that stacks share their roots and differ at their leaves, as real ones do;
the same size and seed give the same file. Nothing is measured here.
"""
import random
import struct

FUNCTIONS = 2000


def stacks(count, seed=1):
    """Lists of function numbers, the root first: calls of a tree, each deeper by one or back by some."""
    rng = random.Random(seed)
    stack, out = [0], []
    for _ in range(count):
        while len(stack) > 8 and rng.random() < 0.6:
            stack.pop()
        while len(stack) < 12 or rng.random() < 0.7:
            stack.append((stack[-1] * 7 + rng.randrange(6) + 1) % FUNCTIONS)
        del stack[60:]
        out.append(list(stack))
    return out


def function(i):
    return f"torch::autograd::Engine::evaluate_function_{i}(std::shared_ptr<Node>&, int)" if i % 3 else f"PyEval_EvalFrame_{i}"


NAMES = [function(i) for i in range(FUNCTIONS)]
MODULES = ["/usr/lib/libtorch_cpu.so", "/usr/bin/python3.11", "[kernel.kallsyms]"]


def repeat(write, pieces, size, seed):
    """Writes pieces in a random order until the file has `size` bytes."""
    rng = random.Random(seed)
    done = 0
    while done < size:
        block = "".join(rng.choices(pieces, k=2000)) if isinstance(pieces[0], str) else b"".join(rng.choices(pieces, k=2000))
        block = block.encode() if isinstance(block, str) else block
        write(block)
        done += len(block)


def folded(path, size):
    lines = [";".join(NAMES[i] for i in s) + f" {n % 90 + 1}\n" for n, s in enumerate(stacks(20000))]
    with open(path, "wb") as out:
        repeat(out.write, lines, size, 2)


def perf_script(path, size):
    blocks = []
    for n, s in enumerate(stacks(20000)):
        head = f"python3 {4000 + n % 3}/{4100 + n % 7} [{n % 8:03d}] {100 + n // 1000}.{n % 1000:03d}123:     {100000 + n % 11} cycles:\n"
        frames = "".join(f"\t{0x7f0000000000 + i * 4096:16x} {NAMES[i]}+0x{i % 255:x} ({MODULES[i % 3]})\n" for i in reversed(s))
        blocks.append(head + frames + "\n")
    with open(path, "wb") as out:
        repeat(out.write, blocks, size, 3)


def heap_text(path, size):
    lines = []
    for n, s in enumerate(stacks(20000)):
        used = " ".join(f"0x{0x400000 + i * 64:x}" for i in reversed(s))
        lines.append(f"  {n % 5 + 1:6d}: {(n % 5 + 1) * 4096:8d} [{n % 9 + 5:6d}: {(n % 9 + 5) * 4096:8d}] @ {used}\n")
    with open(path, "wb") as out:
        out.write(b"heap profile:  50000: 204800000 [ 90000: 368640000] @ heap_v2/524288\n")
        repeat(out.write, lines, size, 4)
        out.write(b"\nMAPPED_LIBRARIES:\n00400000-00800000 r-xp 00000000 08:01 123 /usr/bin/job\n")


def cpu_words(path, size):
    samples = [struct.pack(f"<{2 + len(s)}Q", n % 7 + 1, len(s), *(0x400000 + i * 64 for i in reversed(s)))
               for n, s in enumerate(stacks(20000))]
    with open(path, "wb") as out:
        out.write(struct.pack("<5Q", 0, 3, 0, 10000, 0))
        repeat(out.write, samples, size, 5)
        out.write(struct.pack("<3Q", 0, 1, 0) + b"00400000-00800000 r-xp 00000000 08:01 123 /usr/bin/job\n")


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, data):
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def pprof(path, size, labels=False):
    """Two values a sample, as of Go's CPU profile; each function is called from three lines."""
    samples, texts = [], ["", "samples", "count", "cpu", "nanoseconds", "thread", "/src/engine.cpp", "/usr/bin/job", *NAMES]
    for n, s in enumerate(stacks(20000)):
        places = b"".join(varint(1 + i * 3 + (n + i) % 3) for i in reversed(s))
        values = varint(n % 9 + 1) + varint((n % 9 + 1) * 10_000_000)
        label = field(3, field(1, 5) + field(3, 4000 + n % 16)) if labels else b""
        samples.append(field(2, field(1, places) + field(2, values) + label))
    with open(path, "wb") as out:
        out.write(field(1, field(1, 1) + field(2, 2)) + field(1, field(1, 3) + field(2, 4)))
        repeat(out.write, samples, size, 6)
        out.write(field(3, field(1, 1) + field(2, 0x400000) + field(3, 0x800000) + field(5, 7)))
        for i in range(FUNCTIONS):
            for k in range(3):
                line = field(1, i + 1) + field(2, 10 * i + k + 1)
                out.write(field(4, field(1, 1 + i * 3 + k) + field(2, 1) + field(3, 0x400000 + i * 64 + k) + field(4, line)))
            out.write(field(5, field(1, i + 1) + field(2, 8 + i) + field(3, 8 + i) + field(4, 6) + field(5, 10 * i)))
        out.write(b"".join(field(6, t.encode()) for t in texts) + field(9, 1) + field(10, 10 ** 9) + field(12, 10_000_000))
