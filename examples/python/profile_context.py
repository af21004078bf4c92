"""ProfileContext in three ways: by itself, step by step, and with views made while the program trains."""
import os
import sys
from typing import Any

import standin_tf as tf
from opwatch.tf import ProfileContext, ProfileOptionBuilder


def train(train_op: Any, steps: int) -> None:
    with tf.Session() as sess:
        for _ in range(steps):
            sess.run(train_op)


def main(model_dir: str) -> None:
    train_op, _, _, _ = tf.mnist_model()
    builder = ProfileOptionBuilder

    # Some steps are sampled, and the profile is dumped after step 100.
    with ProfileContext(os.path.join(model_dir, "sampled")):
        train(train_op, 120)
    print("sampled:", sorted(os.listdir(os.path.join(model_dir, "sampled"))))

    # The program says which step.
    opts = builder(builder.time_and_memory()).order_by("micros").with_empty_output().build()
    with ProfileContext(os.path.join(model_dir, "asked"), trace_steps=[], dump_steps=[]) as pctx:
        with tf.Session() as sess:
            sess.run(train_op)
            pctx.trace_next_step()
            pctx.dump_next_step()
            sess.run(train_op)
            first = pctx.profiler.profile_operations(options=opts).children[0]
    print("asked:", sorted(os.listdir(os.path.join(model_dir, "asked"))), "slowest", first.name)

    # Views at given steps.
    opts2 = builder(builder.trainable_variables_parameter()).with_empty_output().build()
    with ProfileContext(os.path.join(model_dir, "views"), trace_steps=range(10, 20), dump_steps=[20]) as pctx:
        pctx.add_auto_profiling("op", opts, [15, 18, 20])
        pctx.add_auto_profiling("scope", opts2, [20])
        train(train_op, 25)
        print("views:", sorted(pctx.get_profiles("op")), "parameters",
              pctx.get_profiles("scope")[20].total_parameters)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python3 profile_context.py FOLDER   (where the files go)", file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1])
