"""Two programs as tutorials write them: time by name scope, and memory, each saved for later."""
import sys
from typing import Any

import standin_tf as tf
from opwatch.tf import Profiler, ProfileOptionBuilder, RunMetadata, RunOptions


def run_traced(sess: Any, train_op: Any) -> Any:
    run_metadata = RunMetadata()
    sess.run(train_op, options=RunOptions(trace_level=RunOptions.FULL_TRACE), run_metadata=run_metadata)
    return run_metadata


def main(log_dir: str) -> None:
    train_op, _, _, _ = tf.mnist_model()
    with tf.Session() as sess:
        for name, options in (("time", ProfileOptionBuilder.time_and_memory()),
                              ("memory", ProfileOptionBuilder.memory())):
            profiler = Profiler(graph=tf.get_default_graph())
            for global_step in range(3):
                profiler.add_step(global_step, run_traced(sess, train_op))
            profiler.profile_name_scope("my_training_loop", options=options)
            print("saved", profiler.save("%s/%s" % (log_dir, name)))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python3 tutorials.py FOLDER   (where the files go)", file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1])
