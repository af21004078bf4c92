"""Softmax regression on MNIST with a profiler: every step is collected, the average goes to a file."""
import argparse

import standin_tf as tf
from opwatch.tf import Profiler, ProfileOptionBuilder, RunMetadata, RunOptions


def main(flags: argparse.Namespace) -> None:
    train_step, accuracy, x, y_ = tf.mnist_model()
    with tf.Session() as sess:
        profiler = Profiler(sess.graph)
        options = RunOptions(trace_level=RunOptions.FULL_TRACE)
        for i in range(flags.steps):
            run_metadata = RunMetadata()
            sess.run(train_step, options=options, run_metadata=run_metadata, feed_dict={x: None, y_: None})
            profiler.add_step(i, run_metadata)

        run_metadata = RunMetadata()
        print(sess.run(accuracy, options=options, run_metadata=run_metadata))
        profiler.add_step(flags.steps, run_metadata)

        option_builder = ProfileOptionBuilder
        opts = (option_builder(option_builder.time_and_memory()).
                with_step(-1).  # the average of all steps
                with_file_output(flags.out).
                select(["micros", "bytes", "occurrence"]).order_by("micros").
                build())
        profiler.profile_operations(options=opts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10, help="Number of steps to run.")
    parser.add_argument("--out", required=True, help="Output filename.")
    main(parser.parse_args())
