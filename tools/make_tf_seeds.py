#!/usr/bin/python3
"""make_tf_seeds.py [ROOT]: writes the fuzz seeds of the TensorFlow importers to tests/fuzz/seeds.

Each seed is a small message with every field that its importer reads, in binary and, where texts are
read, in text form. Run it after changing an importer; equal versions give equal bytes.
"""
import pathlib
import struct
import sys


sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from support.pb_write import fixed32, num, sub, varint  # noqa: E402


def field(number, value):
    """int: varint, float: fixed32, str or bytes: length-delimited."""
    if isinstance(value, int):
        return num(number, int(value))
    if isinstance(value, float):
        return fixed32(number, int.from_bytes(struct.pack("<f", value), "little"))
    return sub(number, value)


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def entry(key, value):
    return message((1, key), (2, value))


def packed(*values):
    return b"".join(varint(v) for v in values)


# ---- graph ----

def shape(*dims, unknown=False):
    return message(*[(2, message((1, d), (2, "d"))) for d in dims], *([(3, True)] if unknown else []))


def node(name, op, inputs=(), device="", attrs=()):
    return message((1, name), (2, op), *[(3, i) for i in inputs], *([(4, device)] if device else []),
                   *[(5, entry(k, v)) for k, v in attrs])


TENSOR = message((1, 1), (2, shape(2, 2)), (4, bytes(range(16))))
GRAPH = message(
    (1, node("x", "Placeholder", attrs=[("shape", message((7, shape(-1, 4)))), ("dtype", message((6, 1)))])),
    (1, node("w", "VariableV2", device="/device:GPU:0", attrs=[
        ("shape", message((7, shape(4, 3)))),
        ("_output_shapes", message((1, message((7, shape(4, 3)))))), ])),
    (1, node("s", "Const", attrs=[("value", message((8, TENSOR))), ("shape", message((7, shape())))])),
    (1, node("layer/mul", "MatMul", ["x", "w:0", "^s"], attrs=[
        ("_output_shapes", message((1, message((7, shape(-1, 3)), (7, shape(unknown=True)), (7, shape()))))),
        ("transpose_a", message((5, True))), ])),
    (1, node("conv", "Conv2D", ["layer/mul:1", "layer/mul", "gone:2"], attrs=[
        ("data_format", message((2, "NHWC"))), ("strides", message((1, message((3, packed(1, 2, 2, 1)))))), ])),
    (1, node("x", "Twice")),
    (1, node("bad", "Identity", ["x:z", "x:1:2"])),
    (2, message((1, message((1, message((1, "f"))))))),
    (4, message((1, 24), (2, 12))),
)
GRAPH_TEXT = """# a graph
node { name: "x" op: "Placeholder" attr { key: "shape" value { shape { dim { size: -1 } dim { size: 4 } } } } }
node { name: "w" op: 'VariableV2' device: "/device:GPU:0"
  attr { key: "_output_shapes" value { list { shape { dim { size: 4 } dim { size: 0x3 } } shape { } } } } }
node < name: "layer/" "mul" op: "MatMul" input: "x" input: "w:0" input: "^w"
  attr { key: "data_format" value { s: "NH\\127C\\n" } } >
library { function { signature { name: "f" } } }
versions { producer: 24 bad_consumers: [1, 2] }
"""

# ---- run metadata ----

CPU, GPU = "/job:worker/replica:0/task:0/device:CPU:0", "/job:worker/replica:0/task:0/device:GPU:0"


def output(slot, requested, allocated, dims):
    tensor = message((1, 1), (2, shape(*dims)), (4, message((1, requested), (2, allocated), (3, "GPU_0_bfc"), (4, 7),
                                                            (5, True), (6, 0x7F0000001000))))
    return message((1, slot), (3, tensor))


def stats(name, start, end, *more):
    return message((1, name), (2, start), (3, 1), (4, end), (5, end + 1), *more)


STEP = message(
    (1, message((1, CPU),
                (2, stats("x", 1000, 10, (6, message((1, "cpu"), (2, 100), (3, 120), (4, -5))),
                          (7, output(0, 64, 128, [2, 4])), (8, "x = Placeholder()"), (10, 3),
                          (12, message((1, 3), (3, 4), (5, packed(1, 2)))))),
                (2, stats("late", 0, 5)), (2, stats("new", 1020, 0)), (2, stats("_SOURCE", 990, 1)),
                (3, entry(3, "worker thread")))),
    (1, message((1, GPU),
                (2, stats("w", 1010, 20, (6, message((1, "GPU_0_bfc"), (2, 1000), (3, 900), (4, 800), (5, 4096),
                                                     (6, message((1, 1010), (2, 512))),
                                                     (6, message((1, 1020), (2, -512))))),
                          (6, message((1, "GPU_1"), (5, 10))), (7, output(1, 9, 2, [])))),
                (2, stats("x", 1015, 1)))),
    (1, message((1, "/device:GPU:0/stream:all"), (2, stats("w:MatMul", 1030, 40)))),
    (1, message((1, "/device:GPU:0/stream:14"), (2, stats("w:MatMul", 1030, 40)))),
    (1, message((1, "/device:GPU:0/memcpy"), (2, stats("edge_MEMCPYHtoD", 1001, 2)))),
    (1, message((2, stats("y", 5, 5)), (1, "/job:x/device:XLA_CPU:0"))),
)
RUN = message((1, STEP), (2, message((1, message((1, "x"))))), (3, GRAPH))
RUN_TEXT = f"""step_stats {{
  dev_stats {{ device: "{CPU}"
    node_stats {{ node_name: "x" all_start_micros: 1000 op_end_rel_micros: 10 all_end_rel_micros: 11
      memory {{ allocator_name: "cpu" total_bytes: 10 live_bytes: -3 }} thread_id: 4 }}
  }}
}}
"""

# ---- op log and code ----

CODE = message((1, message((2, 10), (6, 1), (7, 2), (8, 3), (5, 1))), (1, message((2, 5), (6, 1), (7, 4), (8, 99))))
OLD_CODE = message((1, message((1, "/p/main.py"), (2, 3), (3, "main"), (4, "x = f()"))))
STRINGS = [(1, "/p/model.py"), (2, "<module>"), (3, "build()"), (4, "build")]
LOG = message((1, message((1, "x"), (2, 1000), (3, "_trainable_variables"), (3, "mine"), (4, CODE))),
              (1, message((1, "layer/mul"), (4, OLD_CODE))), (1, message((1, "w"), (2, -7), (4, b""))),
              (1, message((1, "nobody"), (2, 5))), *[(2, entry(k, v)) for k, v in STRINGS])

# ---- profile ----

TIMES = message((1, message((1, packed(1000, 10)))), (1, message((1, packed(1020, 3)))))
MEMORY = message((1, 1010), (2, 1), (3, 2), (4, 3), (5, 4), (6, 100), (7, 90), (8, -5), (9, 50), (10, 4096),
                 (11, entry(0, message((1, 64), (2, 0x7F0000000000)))))
EXEC = message((1, 2), (2, 1000), (3, 1023), (4, entry("/device:gpu:0/stream:all", TIMES)), (5, entry(GPU.lower(), TIMES)),
               (6, GPU.lower()), (7, MEMORY), (11, message((1, 1000), (2, 64))))
NODES = [
    (0, message((1, "x"), (4, packed(4, 3)), (5, "Placeholder"), (9, "Placeholder"), (13, 0),
                (15, entry(0, message((1, packed(4, 3))))))),
    (7, message((1, "layer/mul"), (2, entry(1, 55)), (2, entry(0, 0)), (5, GPU.lower()), (5, "MatMul"), (6, GPU.lower()),
                (7, CPU.lower()), (8, 2400), (9, "MatMul"), (10, CODE),
                (11, entry("data_format", message((2, "NCHW")))), (12, entry(3, EXEC)), (12, entry(1, EXEC)), (13, 7),
                (14, entry(0, 0)), (14, entry(99, 1)))),
    (-3, message((1, "x"), (9, "Twice"))),
]
PROFILE = message(*[(1, entry(k, v)) for k, v in NODES], (2, True), (3, packed(1, 3)),
                  *[(4, entry(k, v)) for k, v in STRINGS], (5, True))

# ---- meta graphs ----

VARIABLE = message((1, "w:0"), (2, "w/Assign"), (3, "w/read:0"))
META = message(
    (1, message((1, "1"), (2, message((1, message((1, "MatMul"), (2, message((1, "a"))))))), (4, "serve"), (5, "1.15.0"))),
    (2, GRAPH), (3, message((1, "save/Const:0"))),
    (4, entry("trainable_variables", message((2, message((1, VARIABLE), (1, message((1, "gone:0")))))))),
    (4, entry("losses", message((1, message((1, "conv:0")))))),
    (5, entry("serving_default", message((3, "predict")))),
)
META_TEXT = """meta_info_def { meta_graph_version: "1" tags: "train" tensorflow_version: "1.15.0" }
graph_def { node { name: "w" op: "VariableV2" } versions { producer: 24 } }
collection_def { key: "trainable_variables" value { bytes_list { value: "\\n\\003w:0" } } }
"""
SAVED = message((1, 1), (2, META), (2, META))

SEEDS = {
    "graphdef": {"graph.pb": GRAPH, "graph.pbtxt": GRAPH_TEXT},
    "runmeta": {"run_meta": RUN, "step_stats": STEP, "run_meta.pbtxt": RUN_TEXT},
    "oplog": {"op_log": LOG},
    "profile": {"profile_3": PROFILE},
    "metagraph": {"model.meta": META, "model.pbtxt": META_TEXT},
    "savedmodel": {"saved_model.pb": SAVED},
}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve() / "tests/fuzz/seeds"
    for name, files in SEEDS.items():
        (root / name).mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (root / name / file).write_bytes(content if isinstance(content, bytes) else content.encode())


if __name__ == "__main__":
    main()
