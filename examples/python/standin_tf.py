"""A small stand-in for the part of TensorFlow 1 that the examples use, so that they run where it is not installed.

Graphs are made op by op as in TensorFlow, with the line that made each of them; a session "runs" them on a made-up
device and fills real RunMetadata messages when it is asked for a trace. Nothing is computed but how long it would
take. With TensorFlow itself write `import tensorflow.compat.v1 as tf` instead of `import standin_tf as tf`.
"""
import collections
import random
import sys
import traceback

from opwatch import tf as _profiler
from opwatch.tf import RunMetadata, RunOptions

profiler = _profiler
float32 = 1

_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
_COST_US = {"MatMul": 900, "MatMulGrad": 1700, "Softmax": 120, "MatchingFiles": 6000, "ReadFile": 700,
            "VariableV2": 2, "Const": 1, "Placeholder": 1}


class Operation:
    def __init__(self, graph, name, kind, inputs, shape, frames):
        self.graph, self.name, self.type, self.inputs, self.shape = graph, name, kind, inputs, shape
        self.traceback = frames

    @property
    def op(self):
        return self


class Graph:
    """Ops in the order of their making, and collections."""

    def __init__(self):
        self._ops, self._names, self._scopes, self._collections = [], {}, [], collections.defaultdict(list)

    @property
    def version(self):
        return len(self._ops)

    def get_operations(self):
        return list(self._ops)

    def get_collection(self, name):
        return list(self._collections[name])

    def add_to_collection(self, name, value):
        self._collections[name].append(value)

    def make(self, kind, name, inputs=(), shape=()):
        name = "/".join(self._scopes + [name])
        count = self._names[name] = self._names.get(name, -1) + 1
        name = "%s_%d" % (name, count) if count else name
        stack = [(frame.filename, frame.lineno, frame.name, frame.line)
                 for frame in traceback.extract_stack() if frame.filename != __file__]
        self._ops.append(Operation(self, name, kind, list(inputs), list(shape), stack))
        return self._ops[-1]

    def as_graph_def(self, add_shapes=False):
        graph = _profiler.GraphDef()
        for op in self._ops:
            node = graph.node.add(name=op.name, op=op.type, device=_CPU)
            node.input.extend(source.name for source in op.inputs)
            shapes = [node.attr["shape"].shape] if op.type in ("VariableV2", "Placeholder") else []
            if add_shapes:
                shapes.append(node.attr["_output_shapes"].list.shape.add())
            for shape in shapes:
                for size in op.shape:
                    shape.dim.add(size=size)
            if op.type == "MatMul":
                node.attr["transpose_a"].b = node.attr["transpose_b"].b = False
        return graph


_default = Graph()


def get_default_graph():
    return _default


def reset_default_graph():
    global _default
    _default = Graph()


class name_scope:
    def __init__(self, name):
        self._name = name

    def __enter__(self):
        _default._scopes.append(self._name)

    def __exit__(self, *exception):
        _default._scopes.pop()


# ---- ops ----

def placeholder(dtype, shape, name="Placeholder"):
    return _default.make("Placeholder", name, shape=[-1 if size is None else size for size in shape])


def zeros(shape):
    return list(shape)


def Variable(shape, name="Variable", trainable=True):
    variable = _default.make("VariableV2", name, shape=shape)
    if trainable:
        _default.add_to_collection("trainable_variables", variable)
    return variable


def matmul(a, b, name="MatMul"):
    return _default.make("MatMul", name, (a, b), (a.shape[0], b.shape[1]))


def add(a, b, name="add"):
    return _default.make("Add", name, (a, b), a.shape)


def softmax_cross_entropy(labels, logits):
    with name_scope("loss"):
        return _default.make("Softmax", "softmax", (logits, labels), logits.shape)


def matching_files(pattern, name="MatchingFiles"):
    return _default.make("MatchingFiles", name, shape=(1,))


def read_file(files, name="ReadFile"):
    return _default.make("ReadFile", name, (files,), (1,))


def equal(a, b):
    return _default.make("Equal", "Equal", (a, b), a.shape[:1])


def minimize(loss):
    with name_scope("gradients"):
        grads = [_default.make("MatMulGrad", variable.name + "_grad/MatMul", (loss, variable), variable.shape)
                 for variable in _default.get_collection("trainable_variables")]
    with name_scope("GradientDescent"):
        return _default.make("NoOp", "update", grads)


def create_global_step():
    step = _default.make("VariableV2", "global_step", shape=())
    _default.add_to_collection("global_step", step)
    return step


# ---- sessions ----

class BaseSession:
    """Runs what is asked for and all that it needs."""

    def __init__(self, target="", graph=None, config=None):
        self.graph = graph if graph is not None else _default
        self._random, self._clock, self.global_step = random.Random(7), 1584128411000000, 0

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def _needed(self, fetches):
        found, waiting = [], list(fetches) if isinstance(fetches, (list, tuple)) else [fetches]
        while waiting:
            op = waiting.pop()
            if op not in found:
                found.append(op)
                waiting.extend(op.inputs)
        return sorted(found, key=self.graph.get_operations().index)

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        if isinstance(fetches, dict):
            return {key: self.run(value, feed_dict, options, run_metadata) for key, value in fetches.items()}
        if isinstance(fetches, Operation) and fetches.name == "global_step":
            return self.global_step
        traced = options is not None and options.trace_level == RunOptions.FULL_TRACE and run_metadata is not None
        device = run_metadata.step_stats.dev_stats.add(device=_CPU) if traced else None
        for op in self._needed(fetches):
            micros = int(_COST_US.get(op.type, 10) * self._random.uniform(0.9, 1.1)) + 1
            if traced:
                self._record(device, op, micros)
            self._clock += micros
        self._clock += 500
        return 0.92

    def _record(self, device, op, micros):
        stats = device.node_stats.add(node_name=op.name, all_start_micros=self._clock, op_start_rel_micros=1,
                                      op_end_rel_micros=micros, all_end_rel_micros=micros + 2)
        stats.timeline_label = "%s = %s(%s)" % (op.name, op.type, ", ".join(source.name for source in op.inputs))
        size = 4
        for dim in op.shape:
            size *= max(dim, 100)
        stats.memory.add(allocator_name="cpu", total_bytes=size, peak_bytes=size)
        tensor = stats.output.add(slot=0).tensor_description
        tensor.dtype = float32
        for dim in op.shape:
            tensor.shape.dim.add(size=max(dim, 100))
        tensor.allocation_description.requested_bytes = size
        tensor.allocation_description.allocator_name = "cpu"


class Session(BaseSession):
    pass


_profiler.use_session(BaseSession)

SessionRunValues = collections.namedtuple("SessionRunValues", ("results", "options", "run_metadata"))
SessionRunContext = collections.namedtuple("SessionRunContext", ("session",))


class MonitoredSession:
    """A session that calls hooks around each run, as estimators do."""

    def __init__(self, hooks):
        self._hooks, self._session = hooks, Session()
        for hook in hooks:
            hook.begin()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for hook in self._hooks:
            hook.end(self._session)

    def run(self, train_op):
        asked = [hook.before_run(SessionRunContext(self._session)) for hook in self._hooks]
        options = next((args.options for args in asked if args.options is not None), None)
        run_metadata = RunMetadata()
        stale = self._session.global_step
        self._session.run(train_op, None, options, run_metadata)
        self._session.global_step += 1
        for hook in self._hooks:
            values = SessionRunValues({"global_step": stale}, options, run_metadata)
            hook.after_run(SessionRunContext(self._session), values)


def mnist_model():
    """The softmax regression of the tutorials: (train op, accuracy, input, labels)."""
    reset_default_graph()
    with name_scope("input"):
        read_file(matching_files("/data/mnist/*"))
    x = placeholder(float32, [None, 784], "x")
    labels = placeholder(float32, [None, 10], "labels")
    weights, bias = Variable(zeros([784, 10]), "weights"), Variable(zeros([10]), "bias")
    with name_scope("my_training_loop"):
        y = add(matmul(x, weights), bias)
        loss = softmax_cross_entropy(labels, y)
    train = minimize(loss)
    train.inputs.append(_default.get_operations()[1])
    return train, equal(y, labels), x, labels


sys.modules.setdefault("standin_tf", sys.modules[__name__])
