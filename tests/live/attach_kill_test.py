#!/usr/bin/python3
"""A job comes to no harm when `opwatch attach` or its guardian, the process that traces the job, is killed while it joins, at
whatever moment.

The target's threads compute, sleep, poll and wait, and check their results themselves; it says at its end whether
anything was wrong. OPWATCH_KILLS=1000 asks for more kills than the suite's.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests"))
from support import patience  # noqa: E402

BIN, SRC = os.environ["OPWATCH_BIN"], os.environ["OPWATCH_SRC"]
KILLS = int(os.environ.get("OPWATCH_KILLS", "60"))
PER_TARGET = 30
# A process without the right to raise its priority traces from another process, which is boosted as a session of its own.
GUARDED = ["setpriv", "--bounding-set=-sys_nice"] if os.geteuid() == 0 else []


class AttachKillTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        cls.target = os.path.join(cls.dir, "target")
        subprocess.run(["cc", "-O2", "-std=gnu17", "-pthread", f"{SRC}/tests/support/attach_target.c", "-lm", "-o", cls.target],
                       check=True)

    def start(self):
        target = subprocess.Popen([self.target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(target.stdout.readline(), "ready\n")
        return target

    def finish(self, target, what):
        try:
            out, err = target.communicate("end\n", timeout=60)
        except BrokenPipeError:
            out, err = target.communicate()
        self.assertEqual((target.returncode, err), (0, ""), what)
        self.assertTrue(out.startswith("ok"), out)

    def attach(self, target, number, prefix=()):
        return subprocess.Popen([*prefix, BIN, "attach", "-o", os.path.join(self.dir, f"{number}.opw"), str(target.pid)],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @staticmethod
    def guardian_of(attach):
        """The child in which attach traces the job; None: not started yet, or ended."""
        try:
            children = pathlib.Path(f"/proc/{attach.pid}/task/{attach.pid}/children").read_text(encoding="utf8").split()
        except OSError:
            return None
        return int(children[0]) if children else None

    def wait_a_while(self, attach, which, seconds, chance):
        """A guardian lives for milliseconds: its kills begin when it is there."""
        if which == "attach":
            time.sleep(seconds)
            return
        end = time.monotonic() + 10
        while not self.guardian_of(attach) and attach.poll() is None and time.monotonic() < end:
            pass
        time.sleep(chance.choice((0, 0.0002, 0.001, 0.003)) * chance.random())

    def kill(self, attach, which):
        """Kills attach, its guardian, or both, the guardian first. Returns whether there was a guardian."""
        guardian = self.guardian_of(attach) if which != "attach" else None
        if guardian:
            try:
                os.kill(guardian, signal.SIGKILL)
            except ProcessLookupError:
                guardian = None
        if which == "guardian":
            time.sleep(0.02)  # what attach does without it
        attach.kill()
        attach.wait()
        return guardian is not None

    def joining_takes(self):
        """Seconds from the start of attach until the job is joined: what moments to kill at."""
        target = self.start()
        begin = time.monotonic()
        attach = subprocess.Popen([BIN, "attach", "-o", os.path.join(self.dir, "whole.opw"), str(target.pid)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        maps = f"/proc/{target.pid}/maps"
        while "libopwatch-recorder" not in pathlib.Path(maps).read_text(encoding="utf8") and attach.poll() is None and time.monotonic() - begin < 20:
            pass
        took = time.monotonic() - begin
        attach.terminate()  # not SIGINT, which is ignored in jobs of a shell that run in the background
        attach.wait(30)
        self.finish(target, "not killed")
        return took

    def test_kills_at_random_moments(self):
        chance = random.Random(int(os.environ.get("OPWATCH_KILL_SEED", "7")))
        took = min(self.joining_takes(), 1.0)
        target, guardians = None, 0
        for number in range(KILLS):
            if target is None:
                target = self.start()
            which = ("attach", "guardian", "both")[number % 3]
            attach = self.attach(target, number, GUARDED if which != "attach" else ())
            self.wait_a_while(attach, which, chance.uniform(took * 0.3, took * 1.5), chance)
            guardians += self.kill(attach, which)
            target.send_signal(signal.SIGUSR1)
            if target.poll() is not None or number % PER_TARGET == PER_TARGET - 1 or number == KILLS - 1:
                self.finish(target, f"kill {number} of {which}")
                target = None
        print(f"{KILLS} kills, {guardians} of them of a guardian", file=sys.stderr)
        self.assertGreater(guardians, KILLS // 6)

    def test_a_killed_attach_does_not_keep_others_out(self):
        target = self.start()
        first = self.attach(target, "first")
        path = os.path.join(self.dir, "first.opw")
        patience.until(lambda: os.path.exists(path) or first.poll() is not None, "the recording does not begin")
        time.sleep(0.3)
        first.kill()
        first.wait()
        for number in range(3):
            second = os.path.join(self.dir, f"second{number}.opw")
            p = subprocess.run([BIN, "attach", "-o", second, "--for", "500ms", str(target.pid)], capture_output=True, text=True,
                               timeout=60)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertRegex(p.stderr, r"second\d.opw: [1-9]\d* records of 1 process")
        self.finish(target, "killed, attached again")


if __name__ == "__main__":
    if not os.path.exists("/proc/self/maps"):
        sys.exit(77)
    unittest.main()
