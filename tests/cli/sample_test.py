#!/usr/bin/python3
"""The two forms of the bundled sample give the same views, and what the README tells about it is so."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
SAMPLES = ROOT / "samples"
PARTS = ["graph.pb", "run_meta_0", "run_meta_1", "run_meta_2", "op_log"]
SELECT = ("bytes,peak_bytes,residual_bytes,output_bytes,micros,params,float_ops,occurrence,device,op_types,input_shapes")


def run(*args, cwd=SAMPLES, expect=0):
    done = subprocess.run([BIN, *args], cwd=cwd, capture_output=True, timeout=300)
    if done.returncode != expect:
        raise AssertionError(f"{args}: exit {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode()


def rows(*args):
    return json.loads(run(*args, "--json"))


def without_source(answer):
    """The rows of an answer without the path of the file they are from."""
    return [{key: value for key, value in row.items() if key != "source"} for row in answer["rows"]]


class Sample(unittest.TestCase):
    def test_forms_agree(self):
        for step in ("-1", "0", "2"):
            for view in ("scope", "graph", "op", "code"):
                options = ["--select", SELECT, "--max-depth", "100", "--step", step]
                with self.subTest(view=view, step=step):
                    self.assertEqual(run(view, "resnet.profile", *options), run(view, *PARTS, *options))

    def test_folder_counts_the_run_once(self):
        """In a folder or an archive the profile stands for its parts; what is named is used."""
        with tempfile.TemporaryDirectory() as folder:
            archive = os.path.join(folder, "samples.tar")
            subprocess.run(["tar", "cf", archive, "-C", SAMPLES, "resnet.profile", *PARTS], check=True)
            for name in (".", archive):
                self.assertEqual(without_source(rows("steps", name)), without_source(rows("steps", "resnet.profile")), name)
                self.assertIn("info", run("notes", name))
                self.assertIn("in the same folder holds the whole run", run("notes", name))
            self.assertEqual(len(rows("steps", ".", "run_meta_0")["rows"]), 4)
            # parts of another folder are another run's
            other = os.path.join(folder, "parts")
            os.mkdir(other)
            for part in PARTS:
                os.symlink(SAMPLES / part, os.path.join(other, part))
            self.assertEqual(len(rows("steps", other)["rows"]), 3)
            self.assertEqual(len(rows("steps", "resnet.profile", other)["rows"]), 6)

    def test_advice_agrees(self):
        with tempfile.TemporaryDirectory() as folder:
            tfprof = os.path.join(folder, "tfprof")
            os.symlink(os.path.abspath(BIN), tfprof)
            ask = lambda *args: subprocess.run([tfprof, *args, "advise"], cwd=SAMPLES, capture_output=True, timeout=300,
                                               check=True).stdout.decode()
            one = ask("--profile_path=resnet.profile")
            other = ask("--graph_path=graph.pb", "--run_meta_path=run_meta_0,run_meta_1,run_meta_2", "--op_log_path=op_log")
        self.assertEqual(one.split("Checker:")[1:], other.split("Checker:")[1:])
        self.assertIn("device:gpu:0 low utilization: 0.08", one)
        self.assertIn("top 1 operation type: MatchingFiles", one)

    def test_redacted(self):
        """No word of the sample's own names is left in any output."""
        words = ["resnet", "/stem", "block1", "/ann", "list_files", "train.py", "input.py", "MatchingFiles/"]
        with tempfile.TemporaryDirectory() as folder:
            for view in ("op", "scope", "graph", "code", "steps", "devices", "tracks", "sources", "notes"):
                for sink in ("--json", "--csv"):
                    text = run(view, "resnet.profile", "--redact", sink)
                    self.assertEqual([w for w in words if w in text], [], f"{view} {sink}")
            for text in (run("resnet.profile", "--redact"), run("info", "resnet.profile", "--redact", "--json")):
                self.assertEqual([w for w in words if w in text], [])
            for kind in ("timeline", "flamegraph", "folded"):
                target = os.path.join(folder, kind)
                run("scope", "resnet.profile", "--redact", "--output", f"{kind}:outfile={target}")
                for path in pathlib.Path(folder).glob(kind + "*"):
                    text = path.read_text()
                    self.assertEqual([w for w in words if w in text], [], kind)
        self.assertIn("MatchingFiles", run("op", "resnet.profile", "--redact"))

    def test_steps(self):
        table = rows("steps", "resnet.profile")
        table = table["rows"] if isinstance(table, dict) else table
        self.assertEqual([r["step"] for r in table], [0, 1, 2])
        self.assertEqual([bool(r["outlier"]) for r in table], [False, False, True])


if __name__ == "__main__":
    if not os.access(BIN, os.X_OK):
        print("no binary at", BIN)
        sys.exit(77)
    unittest.main()
