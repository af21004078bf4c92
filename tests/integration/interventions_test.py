#!/usr/bin/python3
"""Real jobs that are changed and measured again (tests/support/real_jobs.py): what-if predicts the changed step within 10 %, and its interval holds.

By default two jobs are tried, up to three times each, because other work on the machine is measured, too. OPWATCH_INTERVENTIONS=all tries all ten."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "support"))
import real_jobs  # pylint: disable=wrong-import-position

try:
    import torch
except ImportError:
    print("skipped: the Python module torch is not installed")
    sys.exit(77)

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
SAMPLE = ("no sort", "no Python code")


class Interventions(unittest.TestCase):
    def test_predictions(self):
        real_jobs.quiet(torch)
        everything = os.environ.get("OPWATCH_INTERVENTIONS") == "all"
        held = tried = 0
        for name in real_jobs.jobs(torch) if everything else SAMPLE:
            with self.subTest(name):
                for attempt in range(3):
                    base, new, low, high, measured = real_jobs.measure(torch, BIN, name, repeat=3)
                    print(f"{name}: {base / 1e6:.2f} ms, predicted {new / 1e6:.2f} [{low / 1e6:.2f}, {high / 1e6:.2f}], measured {measured / 1e6:.2f}")
                    if abs(new / measured - 1) <= 0.10:
                        break
                self.assertLessEqual(abs(new / measured - 1), 0.10)
                self.assertLess(measured, 0.9 * base, "the change has to be worth a measurement")
                tried += 1
                held += low <= measured <= high
        print(f"the interval holds in {held} of {tried}")
        self.assertGreaterEqual(held, 0.9 * tried - 1)


if __name__ == "__main__":
    unittest.main()
