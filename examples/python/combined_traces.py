"""Traces of several runs: each as a timeline, all of them in one by hand as people do, and by opwatch."""
import json
import os
import sys
from typing import Any, List

import opwatch
import standin_tf as tf
from opwatch.tf import RunMetadata, RunOptions, Timeline


def main(model_dir: str) -> None:
    os.makedirs(model_dir, exist_ok=True)
    train_op, _, _, _ = tf.mnist_model()
    all_trace_events: List[Any] = []
    files: List[str] = []
    with tf.Session() as sess:
        for i in range(5):
            run_options = RunOptions(trace_level=RunOptions.FULL_TRACE)
            run_metadata = RunMetadata()
            sess.run(train_op, options=run_options, run_metadata=run_metadata)
            text = Timeline(run_metadata.step_stats).generate_chrome_trace_format()
            files.append(os.path.join(model_dir, "timeline_%d.json" % i))
            with open(files[-1], "w") as f:
                f.write(text)
            all_trace_events.extend(json.loads(text)["traceEvents"])
    with open(os.path.join(model_dir, "by_hand.json"), "w") as f:
        json.dump({"traceEvents": all_trace_events}, f)

    summary = opwatch.merge(*files, out=os.path.join(model_dir, "all.json"))
    print("%d events by hand, %d by opwatch" % (len(all_trace_events), summary.events_out))
    print(opwatch.open(os.path.join(model_dir, "all.json")).verdict_text())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python3 combined_traces.py FOLDER   (where the files go)", file=sys.stderr)
        sys.exit(2)
    main(sys.argv[1])
