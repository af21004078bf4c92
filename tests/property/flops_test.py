#!/usr/bin/python3
"""Float operations and parameters of random graphs, against the formulas written down a second time.

The graphs carry no shapes but those of constants, variables and placeholders, as frozen graphs do; some placeholders are given on the
command line, some are not, so that what follows from them stays unknown. Half of the graphs have a part of their nodes in a function, called
once, through another function, or by both branches of an If. FLOPS_ROUNDS and FLOPS_SEED ask for more graphs.
"""
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from pb_write import num, packed, sub  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
ROUNDS = int(os.environ.get("FLOPS_ROUNDS", 60))
SEED = int(os.environ.get("FLOPS_SEED", 1))
FLOAT, INT32 = 1, 3
PASS = ["Identity", "Relu", "Tanh", "Cast", "StopGradient"]
FROM_INPUT = {"Reciprocal": 1, "Square": 1, "Log": 1, "Neg": 1, "Rsqrt": 2, "Softmax": 5}
FROM_OUTPUT = {"Add": 1, "Sub": 1, "Mul": 1, "RealDiv": 1, "Maximum": 1, "Minimum": 1, "Pow": 1, "GreaterEqual": 1, "Less": 1,
               "NotEqual": 1, "SquaredDifference": 2}


def shape_bytes(shape):
    return b"".join(sub(2, num(1, dim)) for dim in shape)


def count(shape):
    return math.prod(shape)


def broadcast(a, b):
    """None when they do not go together."""
    size = max(len(a), len(b))
    a, b = [1] * (size - len(a)) + a, [1] * (size - len(b)) + b
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
        return None
    return [y if x == 1 else x for x, y in zip(a, b)]


def window(size, kernel, stride, padding):
    return -(-size // stride) if padding == "SAME" else (size - kernel) // stride + 1


class Graph:
    """Nodes as bytes; what each gives (None: unknown), and how many float operations it takes (None: unknown)."""

    def __init__(self, rng):
        self.rng, self.nodes, self.shapes, self.flops, self.params, self.given = rng, {}, {}, {}, {}, []
        self.library = b""

    def add(self, op, inputs, gives, flops=0, **attrs):
        name = "n%d" % len(self.nodes)
        self.nodes[name] = (op, list(inputs), b"".join(sub(5, sub(1, key) + sub(2, value)) for key, value in attrs.items()))
        self.shapes[name], self.flops[name] = gives, flops
        return name

    def constant(self, values, scalar=False):
        """A vector of numbers that another node takes as an argument."""
        content = b"".join(struct.pack("<i", v) for v in values)
        tensor = num(1, INT32) + sub(2, b"" if scalar else shape_bytes([len(values)])) + sub(4, content)
        return self.add("Const", [], [] if scalar else [len(values)], dtype=num(6, INT32), value=sub(8, tensor))

    def variable(self, shape):
        name = self.add("VariableV2", [], shape, dtype=num(6, FLOAT), shape=sub(7, shape_bytes(shape)))
        self.params[name] = count(shape) if shape else 1
        return name

    def source(self):
        rng = self.rng
        shape = [rng.choice([1, 2, 3, 4, 8]) for _ in range(rng.choice([0, 1, 2, 2, 4, 4]))]
        kind = rng.random()
        if kind < 0.5:
            return self.variable(shape)
        known = kind < 0.8
        name = self.add("Placeholder", [], shape if known else None, dtype=num(6, FLOAT))
        if known:
            self.given += ["--input-shape", "%s=%s" % (name, "x".join(map(str, shape)) or "scalar")]
        return name

    def pick(self, rank=None):
        names = [n for n, s in self.shapes.items() if rank is None or (s is not None and len(s) == rank)]
        return self.rng.choice(names) if names else None

    def derived(self, op, inputs, shape, flops, **attrs):
        known = all(self.shapes[i] is not None for i in inputs)
        return self.add(op, inputs, shape() if known else None, flops() if known else None, **attrs)

    # ---- one kind each ----

    def same(self):
        a = self.pick()
        op = self.rng.choice(PASS)
        name = self.add(op, [a], self.shapes[a], 0)
        return name

    def unary(self):
        a, op = self.pick(), self.rng.choice(list(FROM_INPUT))
        return self.derived(op, [a], lambda: self.shapes[a], lambda: FROM_INPUT[op] * count(self.shapes[a]))

    def binary(self):
        a, b, op = self.pick(), self.pick(), self.rng.choice(list(FROM_OUTPUT))
        if None not in (self.shapes[a], self.shapes[b]) and broadcast(self.shapes[a], self.shapes[b]) is None:
            return None
        def out():
            return broadcast(self.shapes[a], self.shapes[b])
        return self.derived(op, [a, b], out, lambda: FROM_OUTPUT[op] * count(out()))

    def mat_mul(self):
        a = self.pick(2)
        if not a:
            return None
        (m, k), left, right = self.shapes[a], self.rng.random() < 0.3, self.rng.random() < 0.3
        if left:
            m, k = k, m
        n = self.rng.randint(1, 5)
        b = self.variable([n, k] if right else [k, n])
        return self.add("MatMul", [a, b], [m, n], 2 * k * m * n, transpose_a=num(5, int(left)), transpose_b=num(5, int(right)))

    def batch_mat_mul(self):
        a = self.pick(4)
        if not a:
            return None
        s, n = self.shapes[a], self.rng.randint(1, 4)
        b = self.variable(s[:2] + [s[3], n])
        return self.add("BatchMatMul", [a, b], s[:3] + [n], 2 * s[3] * count(s[:3] + [n]), adj_x=num(5, 0), adj_y=num(5, 0))

    def image(self):
        """An input of rank 4, strides, a kernel that fits, a padding."""
        a, rng = self.pick(4), self.rng
        if not a or 0 in self.shapes[a]:
            return None
        s, stride = self.shapes[a], rng.randint(1, 2)
        kernel = [rng.randint(1, min(3, s[1])), rng.randint(1, min(3, s[2]))]
        return a, s, stride, kernel, rng.choice(["SAME", "VALID"])

    def places(self, s, stride, kernel, padding):
        return [window(s[1], kernel[0], stride, padding), window(s[2], kernel[1], stride, padding)]

    def convolution(self):
        image = self.image()
        if not image:
            return None
        a, s, stride, kernel, padding = image
        channels, deep = self.rng.randint(1, 4), self.rng.random() < 0.3
        filter_shape = kernel + [s[3], channels]
        out = [s[0], *self.places(s, stride, kernel, padding), s[3] * channels if deep else channels]
        flops = 2 * count(out) * count(kernel if deep else kernel + [s[3]])
        return self.add("DepthwiseConv2dNative" if deep else "Conv2D", [a, self.variable(filter_shape)], out, flops,
                        strides=sub(1, packed(3, [1, stride, stride, 1])), padding=sub(2, padding), data_format=sub(2, "NHWC"))

    def gradient_of_convolution(self):
        image = self.image()
        if not image:
            return None
        a, s, stride, kernel, padding = image
        channels = self.rng.randint(1, 4)
        filter_shape = kernel + [s[3], channels]
        above = self.variable([s[0], *self.places(s, stride, kernel, padding), channels])
        attrs = {"strides": sub(1, packed(3, [1, stride, stride, 1])), "padding": sub(2, padding), "data_format": sub(2, "NHWC")}
        if self.rng.random() < 0.5:
            flops = 2 * count(s) * count(filter_shape) / (s[3] * stride * stride)
            return self.add("Conv2DBackpropInput", [self.constant(s), self.variable(filter_shape), above], s, int(flops), **attrs)
        flops = 2 * count(s) * count(filter_shape) / (s[3] * stride * stride)
        return self.add("Conv2DBackpropFilter", [a, self.constant(filter_shape), above], filter_shape, int(flops), **attrs)

    def pool(self):
        image = self.image()
        if not image:
            return None
        a, s, stride, kernel, padding = image
        out = [s[0], *self.places(s, stride, kernel, padding), s[3]]
        attrs = {"ksize": sub(1, packed(3, [1, *kernel, 1])), "strides": sub(1, packed(3, [1, stride, stride, 1])),
                 "padding": sub(2, padding), "data_format": sub(2, "NHWC")}
        kind = self.rng.choice(["MaxPool", "AvgPool"])
        name = self.add(kind, [a], out, count(kernel) * count(out), **attrs)
        if self.rng.random() < 0.5:
            return name
        if kind == "MaxPool":
            return self.add("MaxPoolGrad", [a, name, name], s, (count(kernel) + 1) * count(out), **attrs)
        return self.add("AvgPoolGrad", [self.constant(s), name], s, 2 * count(kernel) * count(out), **attrs)

    def bias(self):
        a = self.pick(4)
        if not a:
            return None
        s = self.shapes[a]
        if self.rng.random() < 0.5:
            return self.add("BiasAdd", [a, self.variable([s[3]])], s, count(s))
        return self.add("BiasAddGrad", [a], [s[3]], count(s) - s[3])

    def reduction(self):
        a, rng = self.pick(), self.rng
        s = self.shapes[a]
        if not s:
            return None
        keep, axes = rng.random() < 0.5, sorted(rng.sample(range(len(s)), rng.randint(1, len(s))))
        given = [x - len(s) if rng.random() < 0.3 else x for x in axes]
        out = [1 if i in axes else d for i, d in enumerate(s) if keep or i not in axes]
        op = rng.choice(["Mean", "Sum", "Max"])
        flops = {"Mean": count(s), "Sum": count(s) - count(out), "Max": 0}[op]
        return self.add(op, [a, self.constant(given)], out, flops, keep_dims=num(5, int(keep)))

    def arg(self):
        a = self.pick()
        s = self.shapes[a]
        if not s:
            return None
        axis = self.rng.randrange(len(s))
        out = s[:axis] + s[axis + 1:]
        return self.add(self.rng.choice(["ArgMax", "ArgMin"]), [a, self.constant([axis], True)], out, count(s) - count(out))

    def reshape(self):
        a = self.pick()
        s = self.shapes[a]
        if s is None:
            return None         # a part of the shape would be known
        out = [count(s)] if self.rng.random() < 0.5 else list(reversed(s)) + [1]
        asked = list(out)
        if out and 0 not in out and self.rng.random() < 0.5:
            asked[self.rng.randrange(len(out))] = -1
        return self.add("Reshape", [a, self.constant(asked)], out, 0)

    def transpose(self):
        a = self.pick()
        s = self.shapes[a]
        if not s:
            return None
        order = self.rng.sample(range(len(s)), len(s))
        return self.add("Transpose", [a, self.constant(order)], [s[i] for i in order], 0)

    def joined(self):
        a = self.pick()
        s = self.shapes[a]
        if not s:
            return None
        many = self.rng.randint(1, 3)
        if self.rng.random() < 0.5:
            axis = self.rng.randrange(len(s))
            out = s[:axis] + [s[axis] * many] + s[axis + 1:]
            return self.add("ConcatV2", [a] * many + [self.constant([axis], True)], out, 0, N=num(3, many))
        axis = self.rng.randrange(len(s) + 1)
        return self.add("Pack", [a] * many, s[:axis] + [many] + s[axis:], 0, N=num(3, many), axis=num(3, axis))

    def sums(self):
        a, many = self.pick(), self.rng.randint(1, 4)
        if self.rng.random() < 0.3:
            return self.add("L2Loss", [a], [], None if self.shapes[a] is None else 3 * count(self.shapes[a]) - 1)
        return self.derived("AddN", [a] * many, lambda: self.shapes[a], lambda: count(self.shapes[a]) * (many - 1), N=num(3, many))

    def grow(self):
        for _ in range(self.rng.randint(1, 4)):
            self.source()
        kinds = [self.same, self.unary, self.binary, self.mat_mul, self.batch_mat_mul, self.convolution, self.gradient_of_convolution,
                 self.pool, self.bias, self.reduction, self.arg, self.reshape, self.transpose, self.joined, self.sums]
        for _ in range(self.rng.choice([5, 20, 60])):
            self.rng.choice(kinds)()
            if max((count(s) for s in self.shapes.values() if s), default=0) > 10**9:
                break


    # ---- functions ----

    def node(self, name, inputs=None):
        op, given, attrs = self.nodes[name]
        return sub(1, name) + sub(2, op) + b"".join(sub(3, i) for i in (given if inputs is None else inputs)) + attrs

    def function(self, name, args, result, nodes):
        """Appends to the library; nodes are encoded already."""
        signature = sub(1, name) + b"".join(sub(2, sub(1, a)) for a in args) + sub(3, sub(1, "result"))
        body = sub(1, signature) + b"".join(sub(3, n) for n in nodes)
        self.library += sub(2, sub(1, body + sub(4, sub(1, "result") + sub(2, result))))

    def choose_inside(self):
        """Nobody outside reads what is inside, so that the order of nodes decides."""
        inside = []
        for name, (op, inputs, _) in self.nodes.items():
            if op in ("Placeholder", "VariableV2"):
                continue
            if any(i in inside for i in inputs) or self.rng.random() < 0.4:
                inside.append(name)
        return inside

    def fold(self):
        """Moves a part into a function. What was inside is now called by another name, perhaps by two."""
        inside = self.choose_inside()
        if not inside:
            return
        args = []
        for name in inside:
            args += [i for i in self.nodes[name][1] if i not in inside and i not in args]
        bodies = [self.node(n, ["%s:out:0" % i if i in inside else i for i in self.nodes[n][1]]) for n in inside]
        self.rng.shuffle(bodies)
        self.function("f", args, "%s:out:0" % inside[-1], bodies)
        func = {"f": sub(10, sub(1, "f"))}
        kind = self.rng.choice(["call", "nested", "direct", "if"])
        prefixes = {"call": ["call/"], "nested": ["call/inner/"], "direct": ["call/"],
                    "if": ["call/then_branch/", "call/else_branch/"]}[kind]
        if kind == "nested":
            attrs = sub(5, sub(1, "f") + sub(2, func["f"]))
            self.function("g", args, "inner:output:0",
                          [sub(1, "inner") + sub(2, "PartitionedCall") + b"".join(sub(3, a) for a in args) + attrs])
            func = {"f": sub(10, sub(1, "g"))}
        if kind == "if":
            args = [self.source(), *args]
            func = {"then_branch": func["f"], "else_branch": func["f"]}
        last, shapes, flops = self.shapes[inside[-1]], {}, {}
        for name in inside:
            for prefix in prefixes:
                shapes[prefix + name], flops[prefix + name] = self.shapes[name], self.flops[name]
        for name in inside:
            del self.nodes[name], self.shapes[name], self.flops[name]
        self.nodes["call"] = ({"direct": "f", "if": "If"}.get(kind, "StatefulPartitionedCall"), args,
                              b"" if kind == "direct" else
                              b"".join(sub(5, sub(1, key) + sub(2, value)) for key, value in func.items()))
        self.nodes["after"] = ("Neg", ["call"], b"")
        shapes["after"], flops["after"] = last, None if last is None else count(last)
        self.shapes.update(shapes)
        self.flops.update(flops)

    def bytes(self):
        nodes = [sub(1, self.node(n)) for n in self.nodes]
        self.rng.shuffle(nodes)
        return b"".join(nodes) + self.library


def rows(tree):
    for row in tree:
        yield row
        yield from rows(row.get("children", []))


class Flops(unittest.TestCase):
    def one(self, number):
        graph = Graph(random.Random(number))
        graph.grow()
        if number % 2:
            graph.fold()
        with tempfile.NamedTemporaryFile() as f:
            f.write(graph.bytes())
            f.flush()
            done = subprocess.run([BIN, "scope", f.name, "--select", "float_ops,params", "--max-depth", "100", "--json", *graph.given],
                                  capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 0, done.stderr)
            notes = subprocess.run([BIN, "notes", f.name, "--json", *graph.given], capture_output=True, text=True, timeout=600).stdout
        seen = {row["name"]: row for row in rows(json.loads(done.stdout)["rows"])}
        for name, flops in graph.flops.items():
            self.assertEqual(seen[name]["float_ops"], flops or 0, "graph %d, %s: %r" % (number, name, graph.shapes[name]))
            self.assertEqual(seen[name]["params"], graph.params.get(name, 0), "graph %d, %s" % (number, name))
        unknown = sum(flops is None for flops in graph.flops.values())
        told = re.search(r"(\d+) ops have no float operations because their shapes are unknown", notes)
        self.assertEqual(int(told.group(1)) if told else 0, unknown, "graph %d: %s" % (number, notes))

    def test_random_graphs(self):
        for number in range(SEED, SEED + ROUNDS):
            self.one(number)


if __name__ == "__main__":
    unittest.main()
