#!/usr/bin/python3
"""opwatch hang on generated jobs (tests/support/hang_scenarios.py): hangs, deadlocks over two groups, mismatches, crashes with a lost dump, jobs
that run and jobs that are slow; and on jobs that leave logs, stacks, messages and mixtures (tests/support/hang_sources.py). At most one in twenty may be wrong, and none that is called certain. Then damage: dumps cut at any byte or with
bytes changed never crash it, and never make a wrong answer certain."""
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import hang_scenarios  # pylint: disable=wrong-import-position
import hang_sources  # pylint: disable=wrong-import-position

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
ROUNDS = int(os.environ.get("OPWATCH_HANGS", "60"))
CUTS = int(os.environ.get("OPWATCH_HANG_CUTS", "40"))


def ask(*paths):
    run = subprocess.run([BIN, "hang", *paths, "--json"], capture_output=True, text=True, check=False, timeout=60)
    return run.returncode, json.loads(run.stdout) if run.returncode == 0 else run.stderr


class Hang(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_scenarios(self):
        wrong = []
        for seed in range(ROUNDS):
            folder = os.path.join(self.folder, str(seed))
            truth = hang_scenarios.make(seed, folder)
            code, answer = ask(folder)
            self.assertEqual(code, 0, (seed, truth, answer))
            for key in ("conclusion", "certain", "ranks", "collective", "group", "sequence", "why"):
                self.assertIn(key, answer)
            if (answer["conclusion"], answer["ranks"]) != (truth["conclusion"], truth["ranks"]):
                wrong.append((seed, truth, answer["sentence"]))
                self.assertFalse(answer["certain"], wrong[-1])
            for key in ("collective", "group", "sequence"):
                if key in truth and answer["conclusion"] == truth["conclusion"]:
                    self.assertEqual(answer[key], truth[key], (seed, truth, answer["sentence"]))
        self.assertLessEqual(len(wrong), ROUNDS // 20, wrong)

    def test_sources(self):
        wrong = []
        for number in range(ROUNDS):
            folder = os.path.join(self.folder, f"sources{number}")
            kind, conclusion, ranks = hang_sources.make(number, folder, os.environ.get("OPWATCH_SEED", "1"))
            code, answer = ask(folder)
            self.assertEqual(code, 0, (number, kind, answer))
            if (answer["conclusion"], answer["ranks"]) != (conclusion, ranks):
                wrong.append((number, kind, conclusion, ranks, answer["sentence"]))
                self.assertFalse(answer["certain"], wrong[-1])
        self.assertLessEqual(len(wrong), ROUNDS // 20, wrong)

    def test_lost_dumps_are_never_excluded(self):
        """A hang whose dumps are not all there: the answer may be right or not, it is not certain, and the lost ranks are named."""
        for seed in range(0, 60, 6):
            folder = os.path.join(self.folder, str(seed))
            hang_scenarios.make(seed, folder)
            names = sorted(os.listdir(folder))
            lost = random.Random(seed).choice(names)
            os.remove(os.path.join(folder, lost))
            code, answer = ask(folder)
            self.assertEqual(code, 0, answer)
            self.assertFalse(answer["certain"], (seed, answer["sentence"]))
            self.assertIn(answer["conclusion"], ("hang", "crash", "cannot_tell"))
            if len(names) > 2:
                self.assertEqual(len(answer["missing_ranks"]), 1)

    def test_damage(self):
        rng = random.Random(1)
        for number in range(CUTS):
            folder = os.path.join(self.folder, str(number))
            truth = hang_scenarios.make(number, folder)
            victim = os.path.join(folder, rng.choice(sorted(os.listdir(folder))))
            with open(victim, "rb") as f:
                content = bytearray(f.read())
            if rng.random() < 0.5:
                del content[rng.randrange(len(content)):]
            else:
                for _ in range(rng.randrange(1, 20)):
                    content[rng.randrange(len(content))] = rng.randrange(256)
            with open(victim, "wb") as f:
                f.write(content)
            code, answer = ask(folder)
            self.assertIn(code, (0, 1), (number, answer))
            if code == 0 and answer["files_torn"] + answer["files_unreadable"]:
                self.assertFalse(answer["certain"], (number, truth, answer["sentence"]))
                self.assertTrue(answer["notes"])


if __name__ == "__main__":
    unittest.main()
