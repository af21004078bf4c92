#!/usr/bin/python3
"""opwatch.toml and the options of advise: muted rules, limits, and messages for what is mistyped. The job is simulated: it waits for input."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import jobsim  # pylint: disable=wrong-import-position

BIN = os.path.abspath(os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch")))


class Settings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        job = jobsim.Shape(loader_on_main=True, loader_batch=4 * jobsim.MS, steps=8, layers=12)
        cls.trace, = jobsim.write(job, cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_it(self, *words, toml=None):
        with tempfile.TemporaryDirectory() as folder:
            if toml is not None:
                with open(os.path.join(folder, "opwatch.toml"), "w", encoding="utf-8") as f:
                    f.write(toml)
            return subprocess.run([BIN, *words], capture_output=True, text=True, cwd=folder, timeout=60, check=False)

    def rules(self, *words, toml=None):
        done = self.run_it("advise", self.trace, "--json", *words, toml=toml)
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        return answer, [row["rule"] for row in answer["rows"] if row["checked"] and row["severity"] in ("medium", "high")]

    def test_mute(self):
        answer, rules = self.rules()
        self.assertIn("input_wait", rules)
        self.assertEqual(answer["muted"], [])
        answer, rules = self.rules(toml='[advise]\nmute = ["input_wait"]\n')
        self.assertNotIn("input_wait", [row["rule"] for row in answer["rows"]])
        self.assertEqual(answer["muted"], ["input_wait"])
        self.assertEqual(self.rules("--mute", "input_wait")[0]["muted"], ["input_wait"])
        overview = self.run_it(self.trace, toml='[advise]\nmute = ["input_wait"]\n')
        self.assertNotIn("input_wait", overview.stdout)

    def test_everywhere(self):
        """The verdict, SQL and the shell give the same advice as advise."""
        muted = '[advise]\nmute = ["input_wait", "synchronization"]\n'
        query = "SELECT rule FROM finding WHERE severity IN ('medium', 'high')"
        for words in (["verdict", self.trace], ["sql", self.trace, query]):
            with self.subTest(words[0]):
                self.assertRegex(self.run_it(*words).stdout, "input_wait|synchronization")
                done = self.run_it(*words, toml=muted)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotRegex(done.stdout, "input_wait|synchronization")
        for words in (["verdict", self.trace], ["sql", self.trace, query], ["shell", self.trace]):
            with self.subTest(words[0]):
                done = self.run_it(*words, toml="[advise]\nmut = []")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("did you mean 'mute'?", done.stderr)
        self.assertEqual(self.run_it("op", self.trace, toml="[advise]\nmut = []").returncode, 0, "a table of ops has no advice")

    def test_limits(self):
        answer, _ = self.rules()
        saving = next(row["saving_high_ns"] for row in answer["rows"] if row["rule"] == "input_wait")
        part = saving / answer["step_ns"]
        self.assertIn("input_wait", self.rules("--least", f"{part * 0.9:.4f}")[1])
        self.assertNotIn("input_wait", self.rules("--least", f"{part * 1.1:.4f}")[1])
        self.assertNotIn("input_wait", self.rules(toml=f"[advise]\nmedium = {part * 1.1:.4f}\nhigh = 0.99\n")[1])

    def test_mistakes(self):
        for toml, text in (("[advise]\nmut = []", "did you mean 'mute'?"), ('[advise]\nmute = ["input_wat"]', "did you mean 'input_wait'?"),
                           ("[advice]\n", "did you mean 'advise'?"), ("[advise]\nmedium = 0.5", "must ascend")):
            for command in ((), ("advise",)):
                done = self.run_it(*command, self.trace, toml=toml)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(text, done.stderr)
        self.assertIn("did you mean 'roof'?", self.run_it("advise", self.trace, "--mute", "rof").stderr)
        self.assertEqual(self.run_it("advise", self.trace, "--settings", "none.toml").returncode, 1)


if __name__ == "__main__":
    unittest.main()
