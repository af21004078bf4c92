#!/usr/bin/python3
"""make_xspace_seeds.py [ROOT]: writes the fuzz seeds of the XSpace importer to tests/fuzz/seeds/xspace.

host.pb: threads of a host with ops, frames, tf.data, steps, memory and links. gpu.pb: kernels with the ops and HLO
instructions that they run. tpu.pb: a TPU's lines, with every property in the dictionary. damaged.pb: entries that
are missing, bytes that are none, a line cut short. Equal versions give equal bytes. Other files in there were found by fuzzing.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from make_tf_seeds import entry, field, message, packed  # noqa: E402


class Plane:
    def __init__(self, name, number=0):
        self.fields = [(1, number), (2, name)]
        self.events, self.stats, self.entry_stats = [], [], {}

    def id(self, names, name):
        if name not in names:
            names.append(name)
        return names.index(name) + 1

    def stat(self, name, value):
        head = (1, self.id(self.stats, name))
        if isinstance(value, str):
            return message(head, (7, self.id(self.stats, value)))
        if isinstance(value, bytes):
            return message(head, (6, value))
        return message(head, (4, value))

    def event(self, name, offset, duration, **stats):
        return (4, message((1, self.id(self.events, name)), (2, offset), (3, duration),
                           *[(4, self.stat(k, v)) for k, v in stats.items()]))

    def add_type(self, name, **stats):
        self.id(self.events, name)
        self.entry_stats[name] = [(5, self.stat(k.replace("__", " "), v)) for k, v in stats.items()]

    def line(self, number, name, timestamp, *events):
        self.fields.append((3, message((1, number), (2, name), (3, timestamp), *events, (11, name))))

    def value(self, **stats):
        self.fields += [(6, self.stat(k, v)) for k, v in stats.items()]

    def bytes(self):
        out = list(self.fields)
        for i, name in enumerate(self.events, 1):
            parts = name.split("|")
            out.append((4, entry(i, message((1, i), (2, parts[0]), *[(4, p) for p in parts[1:]],
                                            *self.entry_stats.get(name, [])))))
        out += [(5, entry(i, message((1, i), (2, name)))) for i, name in enumerate(self.stats, 1)]
        return field(1, message(*out))


def host():
    p = Plane("/host:CPU")
    memory = dict(allocator_name="GPU_0_bfc", bytes_reserved=0, bytes_allocated=512, bytes_available=9000,
                  peak_bytes_in_use=600, requested_bytes=500, allocation_bytes=512, addr=7, data_type=1)
    p.line(77, "python", 1000,
           p.event("train", 0, 900000, step_num=3, group_id=0, step_name="train 3", _r=1),
           p.event("$train.py:12 run", 1000, 800000),
           p.event("$builtins isinstance", 1500, 500),
           p.event("a/b/MatMul:MatMul|MatMul", 2000, 300500, is_eager=1, _pt=1, _p=99),
           p.event("MemoryAllocation", 2100, 0, **memory),
           p.event("MemoryDeallocation", 2200, 0, **memory),
           p.event("cudaLaunchKernel", 3000, 9000, correlation_id=5),
           p.event("Iterator::Batch::Map|Iterator::Map", 400000, 100000, id=1, parent_id=0),
           p.event("train", 1000000, 900000, step_num=4, group_id=1, step_name="train 4"))
    p.line(78, "tf_data_private", 1000, p.event("Iterator::Map", 0, 5000, _ct=1, _c=99),
           p.event("ThreadpoolListener::StartRegion", 6000, 0))
    env = Plane("Task Environment")
    env.value(profile_start_time=1700000000000000000, profile_stop_time=1700000001000000000)
    return p.bytes() + env.bytes() + field(4, "host-1") + field(3, "a warning")


def hlo():
    def shape(kind, *dims):
        return message((2, kind), (3, packed(*dims)))
    fused = message((1, "fused"), (2, message((1, "p"), (2, "parameter"), (3, shape(11, 4, 8)), (35, 1))),
                    (2, message((1, "dot.1"), (2, "dot"), (3, shape(11, 4, 4)), (30, message((1, packed(1)))),
                                (35, 2), (36, packed(1, 1)))), (5, 10))
    main = message((1, "main"), (2, message((1, "q"), (2, "parameter"), (3, shape(11, 4, 8)), (35, 3))),
                   (2, message((1, "fusion.1"), (2, "fusion"), (3, shape(11, 4, 4)), (11, "kLoop"),
                               (7, message((2, "jit(f)/dot"), (3, "f.py"), (4, 9))), (35, 4), (36, packed(3)),
                               (38, packed(10)))), (5, 11))
    return message((1, message((1, "jit_f"), (3, fused), (3, main), (5, 1))))


def gpu():
    meta = Plane("/host:metadata")
    meta.add_type("jit_f(42)", Hlo__Proto=hlo())
    p = Plane("/device:GPU:0", 1)
    p.value(clock_rate=2100000, core_count=304, memory_bandwidth=2662400000000, device_vendor="AMD")
    p.line(14, "Stream #14(Kernel)", 1000,
           p.event("gemm", 20000, 500000, correlation_id=5, tf_op="a/b/MatMul:MatMul", kernel_details="regs:1"),
           p.event("loop_fusion", 600000, 1000, tf_op="XlaModule:", hlo_op="x::fusion.1", program_id=42),
           p.event("MemcpyH2D", 700000, 1000, memcpy_details="kind:pageable size:4096 dest:0 async:1"))
    p.line(-559038734, "TensorFlow Ops", 1000, p.event("MatMul", 20000, 500000))
    return meta.bytes() + host() + p.bytes()


def tpu():
    p = Plane("/device:TPU:0", 2)
    name = "%fusion.1 = f32[8] fusion(f32[8] %p)|fusion.1"
    p.add_type(name, hlo_category="convolution fusion", program_id=99, symbol_id=1, flops=1000, model_flops=2000,
           bytes_accessed=640, tf_op="jit(f)/dot:", source="a/f.py:38")
    p.line(2, "XLA Modules", 0, p.event("jit_f(99)", 0, 9001, run_id=1, _ct=12, _c=-5))
    p.line(3, "XLA Ops", 0, p.event(name, 1001, 5003, device_offset_ps=1000, device_duration_ps=5000))
    p.line(4, "Async XLA Ops", 0, p.event("copy", 0, 5000, _a=1), p.event("copy", 2000, 5000, _a=1))
    counted = message((1, p.id(p.events, name)), (3, 7000), (5, 7))
    p.line(5, "Steps", 0, p.event("1", 0, 9100), (4, counted))
    return p.bytes()


def damaged():
    p = Plane("/host:CPU")
    p.line(1, b"\xff", 1 << 62, p.event("a", (1 << 64) - 5, 3), (4, message((1, 999), (2, 5), (3, 1 << 63))),
           (4, b"\x08"), (4, b"\x22\x7f\x08"))
    p.line(1, "again", 0, p.event("b", 9000, 1), p.event("b", 1000, 1))
    good = p.bytes()
    return good + field(1, good)[:-9]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    seeds = root / "tests/fuzz/seeds/xspace"
    seeds.mkdir(parents=True, exist_ok=True)
    for make in (host, gpu, tpu, damaged):
        (seeds / f"{make.__name__}.pb").write_bytes(make())


if __name__ == "__main__":
    main()
