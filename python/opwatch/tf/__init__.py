"""tf.profiler, tf.contrib.tfprof and timeline of TensorFlow 1, made by opwatch.

    from opwatch import tf as profiler

    with profiler.ProfileContext("/tmp/train_dir") as pctx:
        train_loop()

The names are TensorFlow's. It takes graphs and messages of TensorFlow 1.x and tf.compat.v1, or their bytes, and
never imports TensorFlow by itself.
"""
from . import _messages
from ._context import MAX_TRACED_STEPS, WARMUP_STEPS, ProfileContext, use_session
from ._errors import InternalError, InvalidArgumentError
from ._hook import ProfilerHook
from ._op_log import REGISTERED_FLOP_STATS, TRAINABLE_VARIABLES, merge_default_op_log, write_op_log
from ._options import ALL_ADVICE, ProfileOptionBuilder
from ._profiler import Profiler, advise, profile
from ._timeline import Timeline

__all__ = ["ALL_ADVICE", "AdviceProto", "GraphDef", "GraphNodeProto", "InternalError", "InvalidArgumentError",
           "MAX_TRACED_STEPS", "MultiGraphNodeProto", "OpLogProto", "ProfileContext", "ProfileOptionBuilder",
           "Profiler", "ProfilerHook", "REGISTERED_FLOP_STATS", "RunMetadata", "RunOptions", "StepStats",
           "TRAINABLE_VARIABLES", "Timeline", "WARMUP_STEPS", "advise", "merge_default_op_log", "profile",
           "use_session", "write_op_log"]

_MESSAGES = ("AdviceProto", "GraphDef", "GraphNodeProto", "MultiGraphNodeProto", "OpLogProto", "RunMetadata",
             "RunOptions", "StepStats")


def __getattr__(name):
    """The messages: TensorFlow's classes when it is loaded by then."""
    if name in _MESSAGES:
        return _messages.message(name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def __dir__():
    return sorted(__all__)
