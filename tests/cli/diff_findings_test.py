#!/usr/bin/python3
"""What `opwatch diff` says about the advice after a change: findings of the base that are gone, still there, or new, on simulated jobs
(tests/support/jobsim.py) that differ by one fault."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
MS = jobsim.MS


def diff(*args):
    run = subprocess.run([BIN, "diff", *args], capture_output=True, text=True, check=False, timeout=120)
    if run.returncode:
        raise AssertionError(f"diff ended with {run.returncode}: {run.stderr}")
    return run.stdout


class Findings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        base = jobsim.Shape(steps=8, loader_on_main=True, loader_batch=6 * MS, host_work=3 * MS)
        shapes = {"both": base, "host": base.but(loader_on_main=False), "none": base.but(loader_on_main=False, host_work=0)}
        cls.files = {name: jobsim.write(shape, cls.folder.name, stem=name)[0] for name, shape in shapes.items()}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def states(self, base, new):
        answer = json.loads(diff(self.files[base], self.files[new], "--json"))
        return {f["rule"]: f for f in answer["findings"]}

    def test_gone_and_still_there(self):
        found = self.states("both", "host")
        self.assertEqual(found["input_wait"]["state"], "gone")
        self.assertEqual(found["input_wait"]["base_severity"], "high")
        self.assertGreater(found["input_wait"]["base_saving_ns"], 5 * MS)
        self.assertIsNone(found["input_wait"]["new_saving_ns"])
        self.assertEqual(found["host_code"]["state"], "still_there")
        self.assertAlmostEqual(found["host_code"]["new_saving_ns"], 3 * MS, delta=0.3 * MS)

    def test_new(self):
        found = self.states("none", "both")
        self.assertEqual(found["input_wait"]["state"], "new")
        self.assertIsNone(found["input_wait"]["base_where"])
        self.assertIn("SingleProcess", found["input_wait"]["new_where"])

    def test_text(self):
        self.assertRegex(diff(self.files["both"], self.files["none"]), r"Findings: .*input_wait is gone \(was up to [0-9.]+ ms per step\)")

    def test_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            other = jobsim.write(jobsim.Shape(steps=9, loader_on_main=False), folder, stem="other")[0]
            text = diff(self.files["none"], other)
            answer = json.loads(diff(self.files["none"], other, "--json"))
        self.assertEqual((answer["findings"], answer["findings_text"]), ([], None))
        self.assertNotIn("Findings:", text)

    def test_large(self):
        """Above a million events the advice would take longer than all else: it is compared only when asked for."""
        def trace(folder, name, count, dur):
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write('{"schemaVersion": 1, "traceEvents": [')
                f.writelines(f'{{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{i}","pid":1,"tid":1,"ts":{i * count},"dur":{count - 9}}},\n' for i in range(6))
                f.write(",\n".join([f'{{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":{i},"dur":{dur}}}' for i in range(0, count * 6, 6)]) + "]}")
            return path

        with tempfile.TemporaryDirectory() as folder:
            small, large = trace(folder, "small.json", 1000, 5), trace(folder, "large.json", 999_500, 3)
            answer = json.loads(diff(small, large, "--json"))
            self.assertEqual((answer["findings"], answer["findings_text"]), (None, None))
            self.assertIsInstance(json.loads(diff(small, large, "--findings", "--json"))["findings"], list)
            fewer = trace(folder, "fewer.json", 2000, 3)
            self.assertIsInstance(json.loads(diff(small, fewer, "--json"))["findings"], list)

    def test_not_checked(self):
        """A rule that lacks its data in the new runs does not say that the finding is gone."""
        shape = jobsim.Shape(steps=8, memory=20 << 30, memory_growth=700 << 20)
        with tempfile.TemporaryDirectory() as folder:
            base = jobsim.write(shape, folder, stem="base")[0]
            new = jobsim.write(shape.but(memory=0, memory_growth=0), folder, stem="new")[0]
            found = {f["rule"]: f for f in json.loads(diff(base, new, "--json"))["findings"]}
        self.assertEqual(found["memory_growth"]["state"], "not_checked")
        self.assertIsNone(found["memory_growth"]["base_saving_ns"])


if __name__ == "__main__":
    unittest.main()
