#!/usr/bin/python3
"""opwatch baseline: runs are kept whole, also when several processes add at once; new runs are compared with the last comparable ones; the commands of
docs/ci.md end as it says."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
sys.path.insert(0, str(ROOT / "tests/support"))
import jobsim  # noqa: E402
from jobsim import US, Shape  # noqa: E402


class Baseline(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.seed = 0

    def trace(self, name, kernel=220, device=None):
        self.seed += 1
        document = jobsim.trace(jobsim.simulate(Shape(layers=5, steps=6, kernel=kernel * US, seed=self.seed))[0])
        if device:
            document["deviceProperties"][0]["name"] = device
        pathlib.Path(self.folder, name).write_text(json.dumps(document), encoding="utf-8")
        return name

    def run_it(self, *words, code=0, **env):
        done = subprocess.run([BIN, "baseline", *words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=120,
                              env={**os.environ, **env})
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def rows(self):
        return json.loads(self.run_it("list", "runs", "--json").stdout)["rows"]

    def test_nightly_job(self):
        """The same file name every night: each is a run of its own."""
        self.assertIn("0 runs", self.run_it("check", "runs", self.trace("trace.json"), "--fail-if", "step_time > 3%", code=6).stderr)
        for night in range(4):
            self.run_it("add", "runs", self.trace("trace.json"), GITHUB_SHA=f"commit{night}")
        self.assertEqual([(r["run"], r["commit"], r["file"]) for r in self.rows()],
                         [(n + 1, f"commit{n}", "trace.json") for n in range(4)])
        self.assertEqual({r["configuration"]["producer"] for r in self.rows()}, {"PyTorch Kineto (2024–)"})
        same = [self.trace(f"trace{i}.json") for i in range(4)]
        self.run_it("check", "runs", *same, "--fail-if", "step_time > 3%")
        slow = [self.trace(f"trace{i}.json", kernel=260) for i in range(4)]
        answer = json.loads(self.run_it("check", "runs", *slow, "--fail-if", "step_time > 3%", "--json", code=5).stdout)
        self.assertEqual((answer["conclusion"], answer["runs_base"], answer["runs_new"]), ("slower", 4, 4))
        # One run cannot show it.
        self.run_it("check", "runs", slow[0], "--fail-if", "step_time > 3%", code=6)

    def test_last_comparable(self):
        """Runs on another device are passed over; the last N of the others count."""
        for device, kernel in (("A100", 900), ("A100", 220), ("H100", 100), ("A100", 221)):
            self.run_it("add", "runs", self.trace("t.json", kernel, device))
        answer = json.loads(self.run_it("check", "runs", self.trace("new.json", 220, "A100"), "--last", "2", "--json").stdout)
        self.assertEqual(answer["runs_base"], 2)
        self.assertLess(abs(answer["delta_ns"]), 0.05 * answer["base_step_ns"])
        self.run_it("check", "runs", self.trace("new.json", 220, "MI300"), "--fail-if", "step_time > 3%", code=4)

    def test_many_at_once(self):
        """Eight processes add: eight runs with numbers of their own, each whole."""
        names = [self.trace(f"t{i}.json") for i in range(8)]
        jobs = [subprocess.Popen([BIN, "baseline", "add", "runs", name], cwd=self.folder, stdout=subprocess.DEVNULL) for name in names]
        self.assertEqual([job.wait(120) for job in jobs], [0] * 8)
        rows = self.rows()
        self.assertEqual([r["run"] for r in rows], list(range(1, 9)))
        self.assertEqual(sorted(r["file"] for r in rows), names)
        for r in rows:
            subprocess.run([BIN, "steps", f"{self.folder}/runs/{r['run']:06}.opw", "--json"], check=True, stdout=subprocess.DEVNULL)

    def test_older_facts(self):
        """Runs without a configuration, or with a damaged one: it is unknown, and the list is still JSON."""
        for text in ("", "configuration {\n", 'configuration {"a": 1}\n', 'configuration {"a": "b"}x\n', 'configuration {"a": "\\"}\n'):
            self.run_it("add", "runs", self.trace("a.json"))
            number = len(self.rows())
            path = pathlib.Path(self.folder, f"runs/{number:06}.run")
            facts = path.read_text(encoding="utf-8")
            path.write_text(facts[:facts.index("configuration")] + text, encoding="utf-8")
        self.assertEqual([(r["file"], r["configuration"]) for r in self.rows()], [("a.json", None)] * 5)

    def test_unfinished_run(self):
        """A profile without its facts was never finished: it is not a run, and its number is used again."""
        self.run_it("add", "runs", self.trace("a.json"))
        shutil.copy(f"{self.folder}/runs/000001.opw", f"{self.folder}/runs/000002.opw")
        self.assertEqual(len(self.rows()), 1)
        self.run_it("add", "runs", self.trace("b.json"))
        self.assertEqual([r["file"] for r in self.rows()], ["a.json", "b.json"])

    def test_wrong_use(self):
        pathlib.Path(self.folder, "bad.json").write_text("{", encoding="utf-8")
        for words, code in ((["forget", "runs"], 2), ([], 2), (["add", "runs"], 2), (["check", "runs"], 2), (["list"], 2),
                            (["add", "runs", "none.json"], 1), (["add", "runs", "bad.json"], 1), (["add", "bad.json", "bad.json"], 1)):
            self.assertIn("opwatch:", self.run_it(*words, code=code).stderr)
        self.assertEqual(self.rows(), [])

    def test_page(self):
        """The shell commands of both examples, with runs that are as fast and with slower ones."""
        page = (ROOT / "docs/ci.md").read_text(encoding="utf-8")
        commands = re.findall(r"^(?:- run:|  -) (opwatch .*)$", page, re.M)
        self.assertEqual(len(commands), 4)
        env = {**os.environ, "PATH": f"{os.path.dirname(os.path.abspath(BIN))}:{os.environ['PATH']}"}
        for first in (0, 2):
            shutil.rmtree(f"{self.folder}/runs", ignore_errors=True)
            for kernel, expected in ((220, 0), (220, 0), (270, 1)):
                for i in range(4):
                    self.trace(f"trace{i}.json", kernel)
                check = subprocess.run(["sh", "-c", commands[first]], cwd=self.folder, env=env, check=False, capture_output=True)
                self.assertEqual(check.returncode, expected, check.stderr)
                if expected == 0:
                    subprocess.run(["sh", "-c", commands[first + 1]], cwd=self.folder, env=env, check=True, stdout=subprocess.DEVNULL)
            self.assertEqual(len(self.rows()), 8)


if __name__ == "__main__":
    unittest.main()
