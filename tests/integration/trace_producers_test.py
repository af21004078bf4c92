#!/usr/bin/python3
"""Who wrote the real traces, how many steps and ranks they have, and that every view opens on each.

OPWATCH_CORPUS is the folder with the traces; without it the test is skipped.
"""
import json
import os
import pathlib
import subprocess
import sys
import unittest

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")

# file: producer, steps, rank
KINETO = "PyTorch Kineto (%s)"
FILES = {
    "tf1-timeline/anna-timeline_01.json": ("TF1 Timeline", [1], None),
    "tf1-timeline/blackbox-timeline_01.json": ("TF1 Timeline", [1], None),
    "tf1-timeline/ikh-cpu-timeline_01.json": ("TF1 Timeline", [1], None),
    "tf1-timeline/ikh-cpu-timeline_02_step_0.json": ("TF1 Timeline", [0], None),
    "tf1-timeline/ikh-gpu-timeline_01.json": ("TF1 Timeline", [1], None),
    "tf1-timeline/ikh-gpu-timeline_02_step_0.json": ("TF1 Timeline", [0], None),
    "tf1-timeline/ikh-gpu-timeline_03_merged_5_runs.json": ("TF1 Timeline", [0, 1, 2, 3, 4], None),
    "tf2-trace/ampere-bert-cpu.trace.json.gz": ("TensorFlow 2, JAX or XProf", [0], None),
    "kineto/amd-b200-eager.json.gz": (KINETO % "2024–", [], 0),
    "kineto/amd-mi210-gpu_only.json.gz": (KINETO % "2024–", [], None),
    "kineto/amd-mi300-ddp_resnet18.json.gz": (KINETO % "2024–", [0, 1, 2, 3, 4], None),
    "kineto/docs-before_fix_trace.json": (KINETO % "2025–", [], None),
    "kineto/hta-alexnet.json.gz": (KINETO % "2022–23", [], 0),
    "kineto/hta-backward_thread.json": (KINETO % "2021–22", [552], 0),
    "kineto/hta-cpu_only.json.gz": (KINETO % "2024–", [551], 34),
    "kineto/hta-cupti_profiler.json.gz": (KINETO % "2022–23", [], 0),
    "kineto/hta-event_sync.json.gz": (KINETO % "2022–23", [100], 0),
    "kineto/hta-large_integer.json.gz": (KINETO % "2022–23", [], None),
    "kineto/hta-mi250-minitoy.json.gz": (KINETO % "2024–", [1, 2], None),
    "kineto/hta-mtia_inference_rank_0.json.gz": (KINETO % "2024–", [], None),
    "kineto/hta-ns_resolution.json.gz": (KINETO % "early 2024", None, 0),
    "kineto/hta-sampled_rank-0.json.gz": (KINETO % "2022–23", None, 0),
    "kineto/hta-sampled_rank-1.json.gz": (KINETO % "2022–23", None, 1),
    "kineto/hta-simple_add.json.gz": (KINETO % "2022–23", [], 0),
    "kineto/hta-simple_add_with_et.json.gz": (KINETO % "2022–23", [], 0),
    "kineto/hta-triton.json.gz": (KINETO % "2024–", [1], None),
    "kineto/param-linear_kineto.json.gz": (KINETO % "2022–23", None, None),
    "kineto/tb-gpu_metrics_input.json": (KINETO % "2020–21", None, None),
    "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz": (KINETO % "2020–21", None, None),
    "torch-legacy/torch113-cnn_legacy_autograd.json": ("PyTorch autograd profiler", None, None),
    "torch-legacy/torch113-ddp_gloo_rank0.json": ("PyTorch autograd profiler", None, None),
    "torch-legacy/torch113-ddp_gloo_rank1.json": ("PyTorch autograd profiler", None, None),
    "onnxruntime/ort121-ppocr_cls.json": ("ONNX Runtime", [0, 1, 2], None),
    "onnxruntime/ort121-ppocr_det_2threads.json": ("ONNX Runtime", None, None),
    "onnxruntime/ort130-silero_vad_v5.json": ("ONNX Runtime", [0, 1, 2, 3, 4], None),
    "chrome-trace/cat-x_event_trace.json": ("Chrome", [], None),
    "chrome-trace/ss-chrome69-simple.json": ("Chrome", [], None),
    "chrome-trace/clang14-time-trace-small.json": ("clang -ftime-trace", [], None),
    "chrome-trace/cat-simple_trace.json": ("unknown", [], None),
}
WITH_CODE = ("kineto/amd-b200-eager.json.gz", "kineto/amd-mi300-ddp_resnet18.json.gz",
             "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz")


def run(view, name, *options):
    command = [BIN, view, str(pathlib.Path(CORPUS) / name), "--json", *options]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def depth(rows):
    return 1 + max((depth(row.get("children", [])) for row in rows), default=0) if rows else 0


class TraceProducers(unittest.TestCase):
    def test_files(self):
        for name, (producer, steps, rank) in FILES.items():
            with self.subTest(name):
                self.assertEqual(run("info", name)["producer"], producer)
                rows = run("steps", name)["rows"]
                if steps is not None:
                    self.assertEqual([row["step"] for row in rows], steps)
                self.assertLessEqual({row["rank"] for row in rows}, {rank})
                self.assertEqual([row["rank"] for row in run("sources", name)["rows"]], [rank])

    def test_views(self):
        for name in FILES:
            for view in ("op", "scope", "graph", "tracks", "phases"):
                with self.subTest(name, view=view):
                    run(view, name)

    def test_code(self):
        for name in WITH_CODE:
            with self.subTest(name):
                self.assertGreater(depth(run("code", name)["rows"]), 5)

    def test_edges(self):
        """The graph view of a TensorFlow 1 timeline follows the inputs of its ops."""
        self.assertGreater(depth(run("graph", "tf1-timeline/anna-timeline_01.json")["rows"]), 5)


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
