"""A hook saves the timeline of every tenth step; opwatch then looks at all of them together."""
import os
import sys

import opwatch
import standin_tf as tf
from opwatch.tf import ProfilerHook


def main(model_dir: str) -> None:
    train_op, _, _, _ = tf.mnist_model()
    hook = ProfilerHook(save_steps=10, output_dir=os.path.join(model_dir, "profiler"), show_dataflow=True,
                        show_memory=True, global_step=tf.create_global_step())
    with tf.MonitoredSession(hooks=[hook]) as session:
        for _ in range(45):
            session.run(train_op)

    profile = opwatch.open(os.path.join(model_dir, "profiler", "timeline-*.json"))
    for step in profile.steps():
        print("step %d: %.1f ms" % (step.step, step.duration_ns / 1e6))
    print("most expensive:", profile.op(order_by="micros")[0].name)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python3 estimator_hook.py FOLDER   (where the files go)", file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1])
