#!/usr/bin/python3
"""make_sample.py [DIRECTORY]: writes the bundled sample (samples/ by default); byte for byte the same every time.

A toy training job, made up but plausible: a little residual network on one GPU whose input pipeline lists all of its files in
every step. Three steps; in the last one the file server is slow. The same run is written twice: as one profile, the way
TensorFlow's ProfileContext does (resnet.profile), and as graph.pb, run_meta_0..2 and op_log, the files it is made from.

The numbers: kernels run at 4.5 TFLOP/s or 450 GB/s, whichever is slower, the host launches them one after the other, images are
decoded by four threads. Jitter comes from a hash of the op's name and the step.
"""
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from support.pb_write import packed, some as num, sub  # noqa: E402


def entry(field, key, value):
    """One entry of a map; both arguments are fields 1 and 2, already written."""
    return sub(field, key + value)


# ---- the program that is being profiled --------------------------------------------------------------------------------

HOME = "/home/ann/net/"
# place: file, line, function, first line of the function, text of the line
LINES = {
    "module": ("train.py", 88, "<module>", 0, "main()"),
    "main_input": ("train.py", 52, "main", 49, "images, labels = input_batch(FLAGS.data, BATCH)"),
    "main_model": ("train.py", 54, "main", 49, "logits = resnet(images)"),
    "main_loss": ("train.py", 56, "main", 49, "loss = mean_loss(logits, labels)"),
    "main_train": ("train.py", 58, "main", 49, "train_op = minimize(loss)"),
    "list": ("input.py", 14, "list_files", 12, "return tf.io.matching_files(pattern)"),
    "files": ("input.py", 31, "input_batch", 29, "files = list_files(data + '/*/*.jpg')"),
    "map": ("input.py", 33, "input_batch", 29, "images = tf.map_fn(load, pick(files), tf.uint8)"),
    "load_read": ("input.py", 21, "load", 20, "data = tf.io.read_file(name)"),
    "load_decode": ("input.py", 22, "load", 20, "return tf.io.decode_jpeg(data, channels=3)"),
    "resize": ("input.py", 34, "input_batch", 29, "return tf.image.resize(images, (128, 128)), labels"),
    "stem": ("model.py", 41, "resnet", 40, "x = conv_bn_relu(x, 64, 7, stride=2, name='stem')"),
    "block": ("model.py", 42, "resnet", 40, "x = block(x, 64, name='block1')"),
    "block_1": ("model.py", 27, "block", 25, "y = conv_bn_relu(x, depth, 3, name='conv1')"),
    "block_2": ("model.py", 28, "block", 25, "y = conv_bn(y, depth, 3, name='conv2')"),
    "shortcut": ("model.py", 29, "block", 25, "return tf.nn.relu(x + y)"),
    "relu": ("model.py", 20, "conv_bn_relu", 19, "return tf.nn.relu(conv_bn(x, depth, size, stride))"),
    "conv": ("model.py", 12, "conv_bn", 9, "x = tf.nn.conv2d(x, kernel, stride, 'SAME')"),
    "kernel": ("model.py", 11, "conv_bn", 9, "kernel = variable('kernel', shape)"),
    "bn": ("model.py", 14, "conv_bn", 9, "return tf.compat.v1.nn.fused_batch_norm(x, one, zero)[0]"),
    "pool": ("model.py", 43, "resnet", 40, "x = tf.reduce_mean(x, (1, 2))"),
    "dense": ("model.py", 44, "resnet", 40, "return dense(x, 1000)"),
    "matmul": ("model.py", 35, "dense", 32, "return tf.matmul(x, weights)"),
    "weights": ("model.py", 33, "dense", 32, "weights = variable('weights', shape)"),
    "xent": ("loss.py", 8, "mean_loss", 6, "each = tf.nn.sparse_softmax_cross_entropy_with_logits("),
    "mean": ("loss.py", 10, "mean_loss", 6, "return tf.reduce_mean(each)"),
    "minimize": ("train.py", 34, "minimize", 31, "return optimizer.minimize(loss)"),
}

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"
STREAM = "/device:GPU:0/stream:all"
MEMCPY = "/device:GPU:0/memcpy"

FLOAT, INT32, UINT8, STRING, RESOURCE = 1, 3, 4, 7, 20
WIDTH = {FLOAT: 4, INT32: 4, UINT8: 1, STRING: 1, RESOURCE: 0}
BATCH, SIDE, CLASSES = 32, 128, 1000
STEPS = 3
FIRST_START = 1573862400000000  # microseconds
STEP_DISTANCE = 250000


class Node:
    def __init__(self, name, op, inputs=(), shapes=((),), dtype=FLOAT, place="", device="", flops=0, host_us=0, **attrs):
        self.name, self.op, self.inputs, self.shapes, self.dtype = name, op, list(inputs), list(shapes), dtype
        self.place, self.device, self.flops, self.host_us, self.attrs = place.split(), device, flops, host_us, attrs
        self.runs, self.trainable, self.in_place = 1, False, False

    def bytes(self, port=0):
        return count(self.shapes[port]) * WIDTH[self.dtype] if self.shapes else 0

    def all_bytes(self):
        return 0 if self.in_place else sum(self.bytes(i) for i in range(len(self.shapes)))


def count(shape):
    product = 1
    for dim in shape:
        product *= dim
    return product


class Graph:
    def __init__(self):
        self.nodes = []

    def add(self, name, op, *args, **kwargs):
        node = Node(name, op, *args, **kwargs)
        self.nodes.append(node)
        return node

    def find(self, name):
        return next(n for n in self.nodes if n.name == name.lstrip("^").split(":")[0])


def add_input(g):
    g.add("input/pattern", "Const", shapes=[()], dtype=STRING, place="module main_input files list")
    g.add("input/MatchingFiles", "MatchingFiles", ["input/pattern"], [(50000,)], STRING, "module main_input files list", CPU,
          host_us=64000)
    read = g.add("input/map/while/ReadFile", "ReadFile", ["input/MatchingFiles"], [()], STRING,
                 "module main_input map load_read", CPU, host_us=310)
    decode = g.add("input/map/while/DecodeJpeg", "DecodeJpeg", ["input/map/while/ReadFile"], [(256, 256, 3)], UINT8,
                   "module main_input map load_decode", CPU, host_us=1200)
    read.runs = decode.runs = BATCH
    g.add("input/map/stack", "TensorArrayGatherV3", ["input/map/while/DecodeJpeg"], [(BATCH, 256, 256, 3)], UINT8,
          "module main_input map", CPU, host_us=1400)
    g.add("input/resize/size", "Const", shapes=[(2,)], dtype=INT32, place="module main_input resize")
    g.add("input/resize/ResizeBilinear", "ResizeBilinear", ["input/map/stack", "input/resize/size"], [(BATCH, SIDE, SIDE, 3)],
          FLOAT, "module main_input resize", CPU, host_us=5200)
    g.add("input/labels", "Placeholder", shapes=[(BATCH,)], dtype=INT32, place="module main_input")


def add_variable(g, name, shape, place):
    node = g.add(name, "VarHandleOp", [], [()], RESOURCE, place, shape=shape)
    node.trainable = True
    g.add(name + "/Momentum", "VarHandleOp", [], [()], RESOURCE, "module main_train minimize", shape=shape)
    node = g.add(name + "/read", "ReadVariableOp", [name], [shape], FLOAT, place, GPU, host_us=5)
    node.in_place = True


def add_conv(g, scope, x, depth, size, stride, place):
    batch, height, width, channels = g.find(x).shapes[0]
    kernel = (size, size, channels, depth)
    out = (batch, height // stride, width // stride, depth)
    add_variable(g, scope + "/kernel", kernel, place + " kernel")
    g.add(scope + "/Conv2D", "Conv2D", [x, scope + "/kernel/read"], [out], FLOAT, place + " conv", GPU,
          2 * count(out) * size * size * channels, 62, data_format="NHWC", strides=(1, stride, stride, 1))
    for name in ("one", "zero"):
        g.add(scope + "/" + name, "Const", shapes=[(depth,)], place=place + " bn")
    g.add(scope + "/FusedBatchNorm", "FusedBatchNorm", [scope + "/Conv2D", scope + "/one", scope + "/zero"],
          [out] + [(depth,)] * 4, FLOAT, place + " bn", GPU, host_us=34, data_format="NHWC")
    return scope + "/FusedBatchNorm"


def add_relu(g, scope, x, place):
    g.add(scope + "/Relu", "Relu", [x], [g.find(x).shapes[0]], FLOAT, place, GPU, host_us=14)
    return scope + "/Relu"


def add_model(g):
    top = "module main_model "
    x = add_conv(g, "resnet/stem", "input/resize/ResizeBilinear", 64, 7, 2, top + "stem relu")
    x = add_relu(g, "resnet/stem", x, top + "stem relu")
    y = add_conv(g, "resnet/block1/conv1", x, 64, 3, 1, top + "block block_1 relu")
    y = add_relu(g, "resnet/block1/conv1", y, top + "block block_1 relu")
    y = add_conv(g, "resnet/block1/conv2", y, 64, 3, 1, top + "block block_2")
    shape = g.find(x).shapes[0]
    g.add("resnet/block1/Add", "Add", [x, y], [shape], FLOAT, top + "block shortcut", GPU, count(shape), 17)
    x = add_relu(g, "resnet/block1", "resnet/block1/Add", top + "block shortcut")
    g.add("resnet/head/Mean", "Mean", [x], [(BATCH, 64)], FLOAT, top + "pool", GPU, count(shape), 21)
    add_variable(g, "resnet/head/weights", (64, CLASSES), top + "dense weights")
    g.add("resnet/head/MatMul", "MatMul", ["resnet/head/Mean", "resnet/head/weights/read"], [(BATCH, CLASSES)], FLOAT,
          top + "dense matmul", GPU, 2 * 64 * BATCH * CLASSES, 26)


def add_loss(g):
    g.add("loss/xent", "SparseSoftmaxCrossEntropyWithLogits", ["resnet/head/MatMul", "input/labels"],
          [(BATCH,), (BATCH, CLASSES)], FLOAT, "module main_loss xent", GPU, host_us=31)
    g.add("loss/Mean", "Mean", ["loss/xent"], [()], FLOAT, "module main_loss mean", GPU, BATCH, 19)


def add_gradients(g):
    place = "module main_train minimize"

    def grad(forward, op, inputs, shape, flops=0, host_us=18, last=None, **attrs):
        name = "gradients/" + forward + "_grad/" + (last or op)
        g.add(name, op, inputs, [shape], FLOAT, place, GPU, flops, host_us, **attrs)
        return name

    def conv_grad(scope, d, with_input=True):
        conv = g.find(scope + "/Conv2D")
        strides = {"data_format": "NHWC", "strides": conv.attrs["strides"]}
        d = grad(scope + "/FusedBatchNorm", "FusedBatchNormGrad", [d, scope + "/Conv2D", scope + "/one"], conv.shapes[0],
                 host_us=38, data_format="NHWC")
        kernel, x = g.find(scope + "/kernel/read").shapes[0], conv.inputs[0]
        grad(scope + "/Conv2D", "Conv2DBackpropFilter", [x, d], kernel, conv.flops, 71, **strides)
        if with_input:
            return grad(scope + "/Conv2D", "Conv2DBackpropInput", [scope + "/kernel/read", d], g.find(x).shapes[0],
                        conv.flops, 66, **strides)
        return None

    def relu_grad(scope, d):
        return grad(scope + "/Relu", "ReluGrad", [d, scope + "/Relu"], g.find(scope + "/Relu").shapes[0])

    d = grad("loss/Mean", "Tile", ["loss/Mean"], (BATCH,))
    d = grad("loss/xent", "Mul", [d, "loss/xent:1"], (BATCH, CLASSES), BATCH * CLASSES, last="mul")
    grad("resnet/head/MatMul", "MatMul", ["resnet/head/Mean", d], (64, CLASSES), 2 * BATCH * 64 * CLASSES, 27, "MatMul_1",
         transpose_a=True)
    d = grad("resnet/head/MatMul", "MatMul", [d, "resnet/head/weights/read"], (BATCH, 64), 2 * CLASSES * BATCH * 64, 27,
             transpose_b=True)
    d = grad("resnet/head/Mean", "Tile", [d], g.find("resnet/block1/Relu").shapes[0])
    d = block = relu_grad("resnet/block1", d)
    d = conv_grad("resnet/block1/conv2", d)
    d = relu_grad("resnet/block1/conv1", d)
    d = conv_grad("resnet/block1/conv1", d)
    shape = g.find("resnet/stem/Relu").shapes[0]
    g.add("gradients/AddN", "AddN", [block, d], [shape], FLOAT, place, GPU, count(shape), 18)
    d = relu_grad("resnet/stem", "gradients/AddN")
    conv_grad("resnet/stem", d, with_input=False)


def add_training(g):
    place = "module main_train minimize"
    grads = {"resnet/head/weights": "gradients/resnet/head/MatMul_grad/MatMul_1"}
    for name in ("learning_rate", "momentum"):
        g.add("train/" + name, "Const", place=place)
    for var in [n for n in g.nodes if n.trainable]:
        scope = var.name.rsplit("/", 1)[0]
        source = grads.get(var.name, "gradients/" + scope + "/Conv2D_grad/Conv2DBackpropFilter")
        node = g.add("train/update_" + var.name + "/ResourceApplyMomentum", "ResourceApplyMomentum",
                     [var.name, var.name + "/Momentum", "train/learning_rate", source, "train/momentum"], [], FLOAT, place, GPU,
                     host_us=19)
        node.update = count(var.attrs["shape"]) * 4
    g.add("train/update", "NoOp", ["^" + n.name for n in g.nodes if n.op == "ResourceApplyMomentum"], [], FLOAT, place, CPU,
          host_us=2)


def make_graph():
    g = Graph()
    for part in (add_input, add_model, add_loss, add_gradients, add_training):
        part(g)
    return g


# ---- a run of it -------------------------------------------------------------------------------------------------------


def jitter(name, step, run=0):
    return 0.95 + zlib.crc32(f"{name} {step} {run}".encode()) % 1000 / 10000


def kernel_us(g, node):
    """What the kernel takes on the GPU; 0 when the op starts none."""
    if node.device != GPU or node.in_place:
        return 0
    moved = node.all_bytes() + 3 * getattr(node, "update", 0)
    for name in node.inputs:
        source = g.find(name)
        moved += source.bytes() if source.dtype == FLOAT else 0
    return max(node.flops / 4.5e12, moved / 450e9) * 1e6 + 3


class Record:
    def __init__(self, node, start, dur):
        self.node, self.start, self.dur = node, int(start), max(int(dur), 1)
        self.kernel = None  # start, duration
        self.in_use, self.freed_at, self.temp = 0, 0, 0


def run_input(g, step, start):
    """Lists the files, decodes with four threads, resizes. Gives the records and the end."""
    records, clock = [], start + 40
    slow = 2.6 if step == 2 else 1.0
    for node in [n for n in g.nodes if n.name.startswith("input/") and n.host_us]:
        threads = [clock] * 4
        for run in range(node.runs):
            dur = node.host_us * jitter(node.name, step, run) * (slow if node.op == "MatchingFiles" else 1)
            at = threads.index(min(threads)) if node.runs > 1 else 0
            records.append(Record(node, threads[at], dur))
            threads[at] += int(dur) + 3
        clock = max(threads) + 4
    return records, clock


def run_gpu(g, step, start, ready):
    """Reads variables at once; the rest when the images have been copied."""
    records, host, stream = [], start + 60, 0
    copy = (ready + 20, 1050)
    waiting = True
    for node in [n for n in g.nodes if n.device == GPU]:
        if waiting and not node.in_place:
            host, waiting = max(host, copy[0] + copy[1] + 5), False
        if node.in_place and not waiting:
            continue
        record = Record(node, host, node.host_us * jitter(node.name, step))
        host += record.dur + 2
        if node.in_place:
            records.append(record)
            continue
        begin = max(stream, record.start + 9)
        record.kernel = (int(begin), max(int(kernel_us(g, node) * jitter(node.name, step, 1)), 2))
        stream = sum(record.kernel) + 1
        record.temp = 16777216 if "Conv2D" in node.op else 0
        records.append(record)
    return records, copy, stream


def order_reads_first(g):
    """The executor runs what is ready: reads of variables have no inputs to wait for."""
    g.nodes.sort(key=lambda n: 0 if n.in_place else 1)


def account_memory(g, records):
    """Tensors live until the last op that reads them has run."""
    last = {}
    for record in records:
        for name in record.node.inputs:
            last[name.lstrip("^").split(":")[0]] = record
    in_use = 2 * sum(count(n.attrs["shape"]) * 4 for n in g.nodes if n.trainable)
    for record in records:
        in_use += record.node.all_bytes()
        record.in_use = in_use + record.temp
        for owner in records:
            if owner is not record and last.get(owner.node.name) is record and not owner.freed_at and owner.kernel:
                owner.freed_at = sum((record.kernel or (record.start, record.dur)))
                in_use -= owner.node.all_bytes()


def run_step(g, step):
    start = FIRST_START + step * STEP_DISTANCE
    cpu, ready = run_input(g, step, start)
    gpu, copy, end = run_gpu(g, step, start, ready)
    account_memory(g, gpu)
    cpu.append(Record(g.find("train/update"), end + 15, 2))
    return cpu, gpu, copy, end


# ---- GraphDef ------------------------------------------------------------------------------------------------------------


def shape_proto(shape):
    return b"".join(sub(2, num(1, dim)) for dim in shape)


def attr_value(value):
    if isinstance(value, str):
        return sub(2, value)
    if isinstance(value, bool):
        return num(5, value)
    if isinstance(value, int):
        return num(3, value)
    return sub(1, packed(3, value))


def attributes(node):
    out = {"_output_shapes": sub(1, b"".join(sub(7, shape_proto(s)) for s in node.shapes))}
    out["dtype" if not node.inputs else "T"] = num(6, node.dtype)
    for key, value in node.attrs.items():
        out[key] = sub(7, shape_proto(value)) if key == "shape" else attr_value(value)
    if node.op == "Const":
        # one value stands for all elements
        value = {STRING: sub(8, "data/*/*.jpg"), INT32: packed(7, [SIDE]), FLOAT: sub(5, b"\0\0\x80\x3f")}[node.dtype]
        out["value"] = sub(8, num(1, node.dtype) + sub(2, shape_proto(node.shapes[0])) + value)
    return sorted(out.items())


def write_graph(g):
    out = b""
    for node in g.nodes:
        content = sub(1, node.name) + sub(2, node.op) + b"".join(sub(3, name) for name in node.inputs)
        content += sub(4, node.device) if node.device else b""
        content += b"".join(entry(5, sub(1, key), sub(2, value)) for key, value in attributes(node))
        out += sub(1, content)
    return out + sub(4, num(1, 134) + num(2, 12))


# ---- RunMetadata ---------------------------------------------------------------------------------------------------------


def tensor_proto(node, port, allocator):
    size = node.bytes(port)
    allocated = (size + 255) // 256 * 256
    about = num(1, size) + num(2, allocated) + sub(3, allocator)
    return num(1, node.dtype) + sub(2, shape_proto(node.shapes[port])) + sub(4, about)


def node_stats(record, thread):
    node = record.node
    gpu = node.device == GPU
    allocator = "GPU_0_bfc" if gpu else "cpu"
    total = node.all_bytes()
    out = sub(1, node.name) + num(2, record.start) + num(3, 1) + num(4, record.dur) + num(5, record.dur + 1)
    if total:
        used = sub(1, allocator) + num(2, total) + num(3, total) + num(4, total if gpu else 0) + num(5, record.in_use)
        if gpu:
            used += sub(6, num(1, record.start) + num(2, total))
            used += sub(6, num(1, record.freed_at) + num(2, -total)) if record.freed_at else b""
        out += sub(6, used)
    for port in range(len(node.shapes) if not node.in_place else 0):
        out += sub(7, num(1, port) + sub(3, tensor_proto(node, port, allocator)))
    inputs = ", ".join(node.inputs)
    out += sub(8, f"{node.name} = {node.op}({inputs})") + num(9, record.start - 7) + num(10, thread)
    return out + sub(12, num(1, record.temp))


def kernel_stats(record):
    start, dur = record.kernel
    return sub(1, f"{record.node.name}:{record.node.op}") + num(2, start) + num(4, dur) + num(5, dur)


def write_run(run):
    cpu, gpu, copy, end = run
    returned = sub(1, "_retval_loss/Mean_0_0") + num(2, end + 18) + num(4, 3) + num(5, 4)
    copied = sub(1, "edge_12_input/resize/ResizeBilinear_MEMCPYHtoD:MEMCPYHtoD") + num(2, copy[0]) + num(4, copy[1])
    devices = [
        (CPU, [node_stats(r, 1 + i % 4) for i, r in enumerate(cpu)] + [returned]),
        (GPU, [node_stats(r, 5) for r in gpu]),
        (STREAM, [kernel_stats(r) for r in gpu if r.kernel]),
        (MEMCPY, [copied + num(5, copy[1])]),
    ]
    return sub(1, b"".join(sub(1, sub(1, name) + b"".join(sub(2, s) for s in stats)) for name, stats in devices))


# ---- OpLogProto ----------------------------------------------------------------------------------------------------------


class Strings:
    """Ids in order of first use; 0 means none."""

    def __init__(self):
        self.ids = {"none": 0}

    def id(self, text):
        return self.ids.setdefault(text, len(self.ids))

    def write(self, field):
        return b"".join(entry(field, num(1, i), sub(2, text)) for text, i in self.ids.items())


def code_def(node, strings):
    out = b""
    for place in node.place:
        file, line, function, start, text = LINES[place]
        out += sub(1, num(2, line) + num(5, start or -1) + num(6, strings.id(HOME + file)) +
                   num(7, strings.id(function)) + num(8, strings.id(text)))
    return out


def write_op_log(g):
    strings, out = Strings(), b""
    for node in g.nodes:
        types = sub(3, "_trainable_variables") if node.trainable else b""
        out += sub(1, sub(1, node.name) + num(2, node.flops) + types + sub(4, code_def(node, strings)))
    return out + strings.write(2)


# ---- ProfileProto: what TensorFlow makes of the above ------------------------------------------------------------------------


def exec_times(field, device, times):
    return entry(field, sub(1, device), sub(2, b"".join(sub(1, packed(1, t)) for t in times)))


def memory_record(record):
    node = record.node
    total, temp = node.all_bytes(), record.temp
    outputs = sum((node.bytes(i) + 255) // 256 * 256 for i in range(len(node.shapes))) if not node.in_place else 0
    gpu = node.device == GPU
    return (num(1, record.start + record.dur) + num(4 if gpu else 2, temp) + num(6, total + temp) + num(7, total + temp) +
            num(8, total if gpu else 0) + num(9, outputs) + num(10, record.in_use if gpu and total else 0))


def exec_profile(records):
    """All records of a node in one step."""
    device = records[0].node.device.lower()
    kernels = [r.kernel for r in records if r.kernel]
    spans = [(r.start, r.dur) for r in records] + kernels
    out = num(1, len(records)) + num(2, min(s for s, _ in spans)) + num(3, max(s + d for s, d in spans))
    if kernels:
        out += exec_times(4, STREAM.lower(), kernels)
    out += exec_times(5, device, [(r.start, r.dur) for r in records])
    out += b"".join(sub(6, d) for d in sorted({device} | ({STREAM.lower()} if kernels else set())))
    out += b"".join(sub(7, memory_record(r)) for r in records)
    for r in records:
        if r.node.device == GPU and r.node.all_bytes():
            out += sub(11, num(1, r.start) + num(2, r.node.all_bytes()))
            out += sub(11, num(1, r.freed_at) + num(2, -r.node.all_bytes())) if r.freed_at else b""
    return out


def returned_profile(runs, node_id):
    """The fetched loss: known from the run only, so its type is its name."""
    name, device = "_retval_loss/Mean_0_0", CPU.lower()
    out = sub(1, name) + b"".join(sub(5, t) for t in sorted([name, device])) + sub(6, device) + sub(7, device) + sub(9, name)
    for step, (_, _, _, end) in enumerate(runs):
        memory = sub(7, num(1, end + 21))
        times = exec_times(5, device, [(end + 18, 3)])
        out += entry(12, num(1, step), sub(2, num(1, 1) + num(2, end + 18) + num(3, end + 21) + times + sub(6, device) + memory))
    return out + num(13, node_id)


def profile_node(g, node, ids, runs, strings):
    device = node.device.lower()
    types = {node.op} | ({device} if device else set()) | ({"_trainable_variables"} if node.trainable else set())
    out = sub(1, node.name)
    ports = {}
    for i, name in enumerate(node.inputs):
        source, _, port = name.lstrip("^").partition(":")
        out += entry(2, num(1, i), num(2, ids[source]))
        ports[ids[source]] = int(port or 0)
    if "shape" in node.attrs:
        out += packed(4, node.attrs["shape"] or (1,))
    out += b"".join(sub(5, t) for t in sorted(types))
    if device:
        out += sub(6, device) + sub(7, device.replace("gpu:0", "cpu:0"))
    out += num(8, node.flops) + sub(9, node.op) + sub(10, code_def(node, strings))
    out += b"".join(entry(11, sub(1, key), sub(2, value)) for key, value in attributes(node))
    for step, (cpu, gpu, _, _) in enumerate(runs):
        records = [r for r in cpu + gpu if r.node is node]
        if records:
            out += entry(12, num(1, step), sub(2, exec_profile(records)))
    out += num(13, ids[node.name])
    out += b"".join(entry(14, num(1, source), num(2, port)) for source, port in ports.items())
    return out + b"".join(entry(15, num(1, i), sub(2, packed(1, s or (1,)))) for i, s in enumerate(node.shapes))


def write_profile(g, runs):
    ids = {node.name: i for i, node in enumerate(g.nodes)}
    strings, out = Strings(), b""
    for node in g.nodes:
        out += entry(1, num(1, ids[node.name]), sub(2, profile_node(g, node, ids, runs, strings)))
    out += entry(1, num(1, len(ids)), sub(2, returned_profile(runs, len(ids))))
    return out + num(2, 1) + packed(3, range(STEPS)) + strings.write(4)


def make_files():
    g = make_graph()
    order_reads_first(g)
    runs = [run_step(g, step) for step in range(STEPS)]
    files = {"resnet.profile": write_profile(g, runs), "graph.pb": write_graph(g), "op_log": write_op_log(g)}
    files.update({f"run_meta_{step}": write_run(run) for step, run in enumerate(runs)})
    return files


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "samples"
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in make_files().items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
