#!/usr/bin/python3
"""Faults around opwatch daemon: jobs that are killed at any moment, full disks, limits on all rings together, users without
rights; and that the page of metrics is what OpenMetrics asks for, whatever jobs are called."""
import os
import pathlib
import pwd
import random
import re
import signal
import stat
import subprocess
import sys
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import daemon_test  # pylint: disable=wrong-import-position
from daemon_test import BIN, LIBRARY, PYTHON, environment  # pylint: disable=wrong-import-position

# Reads for ever; how often is in memory that a file keeps, whenever it is killed.
VICTIM = """
import mmap, os, sys
with open(sys.argv[1], 'r+b') as f: done = mmap.mmap(f.fileno(), 8)
f, n = os.open(sys.argv[1], os.O_RDONLY), 0
while True:
    os.pread(f, 8, 0)
    n += 1
    done[:] = n.to_bytes(8, 'little')
"""


class Kill(daemon_test.Case):
    def test_jobs_are_killed_at_any_moment(self):
        """All that was done is there, or counted as dropped, or makes the oldest part of a ring that goes."""
        self.start()
        count = os.path.join(self.dir, "count")
        for n in range(25):
            pathlib.Path(count).write_bytes(bytes(8))
            p = subprocess.Popen([BIN, "record", "--job", f"job{n}", "--socket", self.socket, "--", PYTHON, "-S", "-E", "-c", VICTIM,
                                  count], env=environment())
            self.stack.callback(self.end, p)
            if n % 2:  # while it starts, or while it works
                self.wait(lambda: any(pathlib.Path(count).read_bytes()), "the job does nothing")
            time.sleep(random.uniform(0, 0.05))
            p.send_signal(signal.SIGKILL)
            self.assertEqual(p.wait(), -signal.SIGKILL)
            done = int.from_bytes(pathlib.Path(count).read_bytes(), "little")
            if not done:
                continue
            row = self.wait_state(f"job{n}", "ended")
            kept = sum(r["runs"] for r in self.reads(f"job{n}") if r["name"] == "pread64")
            self.assertLessEqual(kept, done + 1)
            self.assertGreaterEqual(kept + row["drops"], done)
        self.assertIsNone(self.daemon.poll(), self.logged())


class Room(daemon_test.Case):
    def used(self):
        total = 0
        for path in pathlib.Path(self.rings).rglob("*.opw"):
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                pass
        return total

    def test_all_rings_together_stay_below_their_limit(self):
        self.start("--max-size", "3M", "--total-size", "4M")
        most, jobs = 0, []
        for n in range(3):  # one has ended, the others run
            jobs.append(self.job(f"job{n}", batch=400))
            before = most
            self.wait(lambda n=n: self.events(f"job{n}") * 64 > 3 << 20, "the ring does not fill")
            if n == 0:
                self.finish(jobs.pop())
                self.wait_state("job0", "ended")
            for _ in range(20):
                most = max(most, min(self.used() for _ in range(3)))  # files may go while they are added up
                time.sleep(0.05)
            self.assertGreaterEqual(most, before)
        self.assertLessEqual(most, 4 << 20)
        for p in jobs:
            self.finish(p)

    @unittest.skipIf(os.geteuid() != 0, "only root can make a disk")
    def test_a_full_disk(self):
        os.mkdir(self.rings, 0o700)
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", self.rings], capture_output=True, text=True)
        if made.returncode:
            self.skipTest("no disk can be made here: " + made.stderr)
        self.stack.callback(subprocess.run, ["umount", "-l", self.rings], check=True)
        self.start("--max-size", "64M")
        p = self.job("job", batch=400)
        self.wait(lambda: self.events("job") * 64 > 6 << 20 or self.jobs()["job"]["drops"], "the disk does not fill")
        other = self.job("other")  # one that comes when the disk is full
        done = self.finish(p)  # jobs do not notice
        self.finish(other)
        row = self.wait_state("job", "ended")
        self.assertIsNone(self.daemon.poll(), self.logged())
        file = os.path.join(self.dir, "job.opw")
        q = self.ask("record", "--job", "job", "--last", "1h", "-o", file)
        self.assertEqual(q.returncode, 0, q.stderr)
        kept = sum(r["runs"] for r in self.view("work", file) if r["name"] == "open")
        self.assertGreater(kept, 1000)
        self.assertGreaterEqual(kept + row["drops"], done)  # what is missing is counted
        self.assertFalse([row for row in self.view("notes", file) if row["kind"] == "damaged"])


class Nobody(daemon_test.Case):
    @unittest.skipIf(os.geteuid() != 0, "the other tests are this one then")
    def test_a_user_without_rights(self):
        """Who is not root has a daemon, jobs, and all that is made of them; each file is that user's alone."""
        nobody = pwd.getpwnam("nobody")
        who = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(self.dir, nobody.pw_uid, nobody.pw_gid)
        try:
            subprocess.run([BIN, "--version"], check=True, capture_output=True, **who)
            subprocess.run(["cat", LIBRARY], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("nobody may not run the program")
        env = environment(XDG_RUNTIME_DIR=self.dir, HOME=self.dir, TMPDIR=self.dir)
        env.pop("OPWATCH_SOCKET", None)
        log = self.stack.enter_context(open(self.log, "ab"))
        self.daemon = subprocess.Popen([BIN, "daemon", "--dir", self.rings, "--no-kineto"], stderr=log, env=env, **who)
        self.stack.callback(self.end, self.daemon)
        self.wait(lambda: "serving at" in self.logged() or self.daemon.poll() is not None, "the daemon does not start")
        self.socket = os.path.join(self.dir, "opwatch", "socket")
        self.assertIn(f"serving at {self.socket}", self.logged())
        p = self.job("mine", env=env, command=[BIN, "record", "--job", "mine", "--"], **who)
        self.wait(lambda: self.events("mine") > 100, "nothing is recorded")  # root may ask

        def ask(*words):
            q = subprocess.run([BIN, *words], capture_output=True, text=True, env=env, cwd=self.dir, **who)
            self.assertEqual(q.returncode, 0, f"{words}: {q.stderr}")
            return q.stdout

        self.assertIn("mine", ask("jobs"))
        self.assertIn("mine", ask("top", "--once"))
        self.assertIn("open", ask("work", "--job", "mine"))
        ask("record", "--last", "10s", "--job", "mine", "-o", "mine.opw")
        self.finish(p)
        self.daemon.terminate()
        self.assertEqual(self.daemon.wait(), 0)
        for path in [*pathlib.Path(self.rings).rglob("*"), pathlib.Path(self.dir, "mine.opw")]:
            info = path.stat()
            self.assertEqual(info.st_uid, nobody.pw_uid, path)
            self.assertEqual(stat.S_IMODE(info.st_mode), 0o700 if path.is_dir() else 0o600, path)


NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
SAMPLE = re.compile(rf'({NAME})(?:\{{((?:{NAME}="(?:[^"\\\n]|\\["\\n])*")(?:,{NAME}="(?:[^"\\\n]|\\["\\n])*")*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)')


class Metrics(daemon_test.Case):
    def families(self, text):
        """The page by the rules of OpenMetrics 1.0: family by family, each told before its series, no series twice, one end."""
        self.assertTrue(text.endswith("\n# EOF\n"))
        found, current, series = {}, None, set()
        for line in text[:-len("# EOF\n")].splitlines():
            told = re.fullmatch(rf"# (TYPE|HELP|UNIT) ({NAME}) (.+)", line)
            if told:
                if told[2] != current:
                    self.assertEqual(told[1], "TYPE", line)
                    self.assertNotIn(told[2], found, "a family that is not in one piece")
                    current = told[2]
                    found[current] = {"samples": []}
                self.assertNotIn(told[1], found[current], line)
                self.assertFalse(found[current]["samples"], line)
                found[current][told[1]] = told[3]
                continue
            sample = SAMPLE.fullmatch(line)
            self.assertTrue(sample, line)
            kind = found[current]["TYPE"]
            self.assertIn(kind, ("counter", "gauge"))
            self.assertEqual(sample[1], current + ("_total" if kind == "counter" else ""))
            self.assertNotIn(sample[1] + str(sample[2]), series, "a series twice")
            series.add(sample[1] + str(sample[2]))
            if kind == "counter":
                self.assertGreaterEqual(float(sample[3]), 0)
            found[current]["samples"].append((sample[2] or "", float(sample[3])))
        self.assertTrue(all(f["samples"] and f["HELP"] for f in found.values()))
        return found

    def test_the_page_is_valid(self):
        self.start("--metrics", "0")
        port = self.metrics_port()

        try:  # what Prometheus itself reads it with
            from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
        except ImportError:
            parse = None

        def page():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=300) as answer:
                self.assertTrue(answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0"))
                text = answer.read().decode()
            if parse:
                self.assertGreater(sum(len(family.samples) for family in parse(text)), 5)
            return self.families(text)

        page()  # without any job
        names = ["plain", 'a "b" \\c', "zwei Wörter"]
        jobs = [self.job(name) for name in names]
        self.wait(lambda: all(self.events(name) for name in names), "nothing is recorded")
        found = page()
        labels = " ".join(label for label, value in found["opwatch_job_records"]["samples"])
        for name in names:
            self.assertIn('job="' + name.replace("\\", "\\\\").replace('"', '\\"') + '"', labels)
        before = dict(found["opwatch_job_records"]["samples"])
        self.wait(lambda: all(value > before[label] for label, value in page()["opwatch_job_records"]["samples"]), "counters stand still")
        for p in jobs:
            self.finish(p)


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
