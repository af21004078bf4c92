"""Waiting for what is to happen instead of for a time that is hoped to be enough: a busy machine may take long, and a test
that fails there says nothing. PATIENCE is for what never happens: below the limit of ctest, so that the test can say what."""
import os
import time

PATIENCE = 300


def until(condition, what, patience=PATIENCE, pause=0.01):
    """What the condition gives once it holds; an error that says `what` when it never does. It is looked at every `pause` seconds."""
    end = time.monotonic() + patience
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(what() if callable(what) else what)
        time.sleep(pause)


def catches(pid, number):
    """Whether that process has a handler for the signal by now; before, the signal would just end it."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf8") as f:
            caught = next(line for line in f if line.startswith("SigCgt:"))
    except (OSError, StopIteration):
        return False
    return bool(int(caught.split()[1], 16) >> (number - 1) & 1)


def run_first():
    """For preexec_fn: runs before other programs of the machine, where that is allowed, so that a program's times are its own."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        pass
