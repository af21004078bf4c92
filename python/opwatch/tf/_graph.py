"""Reads from a graph of TensorFlow: its definition, where its ops were made, its trainable variables.

A graph is a tf.Graph (or anything that has its methods), a GraphDef, or the bytes of one.
"""
import sys

from ._messages import serialized


def default_graph():
    """TensorFlow's default graph, or None when TensorFlow is not loaded or runs eagerly."""
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return None
    v1 = getattr(getattr(tensorflow, "compat", None), "v1", tensorflow)
    eager = getattr(v1, "executing_eagerly", None)
    if eager is not None and eager():
        return None
    return v1.get_default_graph()


def graph_bytes(graph):
    """The GraphDef, with the shapes that TensorFlow inferred."""
    as_graph_def = getattr(graph, "as_graph_def", None)
    if as_graph_def is None:
        return serialized(graph, "graph")
    return as_graph_def(add_shapes=True).SerializeToString()


def operations(graph):
    """The ops of a graph in the order of their making; none when it is only a definition."""
    get = getattr(graph, "get_operations", None)
    return get() if get else []


def trainable_names(graph):
    """Names of the ops that are trainable variables."""
    get = getattr(graph, "get_collection", None)
    names = []
    for variable in get("trainable_variables") if get else []:
        op = getattr(variable, "op", None)
        name = getattr(op, "name", None) or getattr(variable, "name", "").split(":")[0]
        if name:
            names.append(name)
    return names


def frames(op):
    """(file, line number, function, line, first line of the function) of an op, the outermost call first."""
    for frame in getattr(op, "traceback_with_start_lines", None) or getattr(op, "traceback", None) or ():
        if isinstance(frame, (tuple, list)):
            file, line, function, text = (list(frame) + [None] * 4)[:4]
            start = frame[-1] if len(frame) > 4 and isinstance(frame[-1], int) else None
        else:
            file, line, function, text = frame.filename, frame.lineno, frame.name, frame.line
            start = getattr(frame, "func_start_line", None)
        yield file, line, function, text.strip() if text else text, start


def node_names(values):
    """Names of what a session is asked for, however it is nested."""
    found, waiting = [], [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting.extend(value)
        elif isinstance(value, str):
            found.append(value)
        elif value is not None:
            found.append(getattr(value, "name", None) or repr(value))
    return sorted(found)
