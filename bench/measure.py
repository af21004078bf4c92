"""Measuring child processes: CPU time of user and system, wall time, peak memory. For the scripts beside it."""
import os
import subprocess
import time
from collections import namedtuple

Usage = namedtuple("Usage", "cpu wall rss status")  # seconds, seconds, bytes, exit status


def once(command, typed=""):
    """Runs the command with `typed` on its standard input and its output thrown away."""
    start = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        child.stdin.write(typed.encode())
        child.stdin.close()
    except BrokenPipeError:
        pass
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return Usage(used.ru_utime + used.ru_stime, time.monotonic() - start, used.ru_maxrss * 1024, child.returncode)


def best(command, typed="", runs=3):
    """The run with the least CPU time: what disturbs a run only ever adds. Fails loudly if the command does."""
    usages = [once(command, typed) for _ in range(runs)]
    for usage in usages:
        if usage.status:
            raise SystemExit(f"{' '.join(map(str, command[:4]))} …: exit status {usage.status}")
    return min(usages)
