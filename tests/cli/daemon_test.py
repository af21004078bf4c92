#!/usr/bin/python3
"""opwatch daemon and jobs: several jobs at once, each by itself; daemons and jobs that are killed; limits; other users; strangers."""
import contextlib
import http.client
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests/support"))
from patience import until  # pylint: disable=wrong-import-position

BIN = os.environ["OPWATCH_BIN"]
PYTHON = "/usr/bin/python3"
LIBRARY = os.path.join(os.environ["OPWATCH_BUILD"], "libopwatch-recorder.so")
# Reads a file of its own name again and again, so many times a second at most, until its standard input is closed; then a
# fixed number of times more, and says how often in all.
JOB = """
import os, select, sys, time
path, batch = sys.argv[1], int(sys.argv[2])
open(path, 'w').close()
done, flushed = 0, os.memfd_create('flushed')
def read():
    global done
    for i in range(batch):
        with open(path, 'rb') as f: f.read()
        os.fsync(flushed); os.fsync(flushed)  # always recorded, while frequent reads are counted
    done += batch
read()
print('ready', flush=True)
while not select.select([0], [], [], 0.02)[0]: read()
read()
print(done, flush=True)
"""
SECRET = "nobody-shall-find-this"


def environment(**more):
    drop = ("LD_PRELOAD", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "SLURM_PROCID", "OPWATCH_JOB",
            "OPWATCH_RECORDER_SOCKET", "OPWATCH_RECORDER_VERSION", "OPENCL_LAYERS")
    return {**{k: v for k, v in os.environ.items() if k not in drop}, "SECRET": SECRET, **more}


class Case(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.dir = tempfile.mkdtemp()
        self.stack.callback(shutil.rmtree, self.dir, ignore_errors=True)
        self.socket = os.path.join(self.dir, "socket")
        self.rings = os.path.join(self.dir, "rings")
        self.log = os.path.join(self.dir, "log")
        self.daemon = None

    # ---- the daemon ----

    def start(self, *options):
        log = self.stack.enter_context(open(self.log, "ab"))
        size = os.path.getsize(self.log)
        self.daemon = subprocess.Popen([BIN, "daemon", "--socket", self.socket, "--dir", self.rings, "--no-kineto", *options],
                                       stderr=log, stdin=subprocess.DEVNULL, env=environment())
        self.stack.callback(self.end, self.daemon)
        self.wait(lambda: b"serving at" in pathlib.Path(self.log).read_bytes()[size:] or self.daemon.poll() is not None,
                  "the daemon does not start")
        self.assertIsNone(self.daemon.poll(), self.logged())

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.wait()

    def logged(self):
        return pathlib.Path(self.log).read_text()

    def metrics_port(self):
        """It is told after the place of the socket, which is what start waits for."""
        return self.wait(lambda: re.search(r"http://127\.0\.0\.1:(\d+)/metrics\n", self.logged()), "no metrics")[1]

    def wait(self, condition, what):
        return until(condition, lambda: f"{what}; {self.logged()}", pause=0.02)

    def ask(self, *words, **kwargs):
        return subprocess.run([BIN, *words, "--socket", self.socket], capture_output=True, text=True, timeout=600,
                              env=kwargs.pop("env", environment()), **kwargs)

    def jobs(self):
        p = self.ask("jobs", "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        return {row["job"]: row for row in json.loads(p.stdout)["rows"]}

    def running(self, processes):
        """The jobs that run, once they have so many processes."""
        rows = {name: row for name, row in self.jobs().items() if row["state"] == "running"}
        return rows if sum(len(row["pids"].split(",")) for row in rows.values()) == processes else None

    def events(self, name):
        return self.jobs().get(name, {}).get("events", 0)

    # ---- jobs ----

    def job(self, name, batch=50, env=None, command=(), **kwargs):
        """A job that reads its own file; it has done so at least once when this returns."""
        command = command or [BIN, "record", "--job", name, "--socket", self.socket, "--"]
        path = os.path.join(self.dir, name + ".data")
        p = subprocess.Popen([*command, PYTHON, "-c", JOB, path, str(batch)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=env or environment(), text=True, **kwargs)
        self.stack.callback(self.forget, p)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def forget(self, process):
        self.end(process)
        process.stdin.close()
        process.stdout.close()

    def finish(self, process):
        """How often it has read in all."""
        process.stdin.close()
        done = int(process.stdout.readline())
        self.assertEqual(process.wait(), 0)
        return done

    def wait_state(self, name, state):
        return self.wait(lambda: self.jobs().get(name, {}).get("state") == state and self.jobs()[name],
                         f"job {name} is not {state}: {self.jobs()}")

    def reads(self, name, *options):
        """Reads of the job's own file, and of whom, in what its ring holds."""
        file = os.path.join(self.dir, name + ".opw")
        p = self.ask("record", "--job", name, "--last", "1h", "-o", file, *options)
        self.assertEqual(p.returncode, 0, p.stderr)
        return self.view("work", file)

    def view(self, view, file):
        p = subprocess.run([BIN, view, "--json", file], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)["rows"]

    def recorded(self, name):
        return sum(row["runs"] for row in self.reads(name) if row["name"] == "read")


class Daemon(Case):
    def test_four_jobs_at_once(self):
        self.start()
        names = ["one", "two", "three", "four"]
        jobs = {name: self.job(name, batch=10 * (i + 1)) for i, name in enumerate(names)}
        rows = self.jobs()
        self.assertEqual(sorted(rows), sorted(names))
        for name, p in jobs.items():
            self.assertEqual(rows[name]["pids"], str(p.pid))
            self.assertEqual((rows[name]["state"], rows[name]["ranks"], rows[name]["framework"]), ("running", 1, "Python"))
        done = {name: self.finish(p) for name, p in jobs.items()}
        for name in names:
            self.assertEqual(self.wait_state(name, "ended")["drops"], 0)
            found = {row["name"]: row["runs"] for row in self.reads(name)}
            # Each open is one; beside its own file a job opens those of its interpreter.
            self.assertGreaterEqual(found["open"], done[name])
            self.assertLess(found["open"], done[name] + 1500)
            tracks = self.view("tracks", os.path.join(self.dir, name + ".opw"))
            self.assertEqual({row["pid"] for row in tracks}, {jobs[name].pid})

    def test_top_shows_the_jobs(self):
        self.start("--max-size", "1M")  # the ring goes on in other files now and then
        first = self.job("first", batch=200)
        seen = self.wait(lambda: self.top("--json").get("first"), "the job is not shown")
        self.assertEqual((seen["state"], seen["recordings"]), ("runs", 1))
        second = self.job("second")
        self.wait(lambda: {n for n, j in self.top("--json").items() if j["ops"]} == {"first", "second"}, "not both")
        self.assertEqual(set(self.top("--json", "--job", "second")), {"second"})
        self.assertIn("first", self.ask("top", "--once").stdout)
        self.assertEqual(self.ask("top", "--once", "--job", "none").returncode, 1)
        for p in (first, second):
            self.finish(p)
        for name in ("first", "second"):
            self.wait_state(name, "ended")
        self.assertEqual(self.top("--json", "--job", "first")["first"]["state"], "ended")

    def top(self, *options):
        p = self.ask("top", *options)
        self.assertEqual(p.returncode, 0, p.stderr)
        return {job["job"]: job for job in json.loads(p.stdout)}

    def test_ranks_and_children_are_one_job(self):
        self.start()
        env = json.loads(self.preload())
        ranks = [self.job(f"rank{i}", env=environment(**env, RANK=str(i), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1",
                                                      MASTER_PORT="29999"), command=["env"]) for i in range(2)]
        slurm = [self.job(f"slurm{i}", env=environment(**env, SLURM_JOB_ID="77", SLURM_PROCID=str(i)), command=["env"])
                 for i in range(3)]
        family = self.job("family", command=["env", *(f"{k}={v}" for k, v in env.items()), "sh", "-c", '"$@"; exit $?', "sh"])
        rows = self.wait(lambda: self.running(7), "not seven processes")
        self.assertEqual(len(rows), 3)
        by_identity = {row["identity"]: row for row in rows.values()}
        self.assertEqual(by_identity["master 127.0.0.1:29999"]["ranks"], 2)
        self.assertEqual(set(by_identity["master 127.0.0.1:29999"]["pids"].split(",")), {str(p.pid) for p in ranks})
        self.assertEqual((rows["slurm-77"]["ranks"], len(rows["slurm-77"]["pids"].split(","))), (3, 3))
        tree = by_identity[f"process {family.pid}"]
        self.assertEqual(len(tree["pids"].split(",")), 2)  # the shell, and what it runs
        for p in ranks + slurm + [family]:
            self.finish(p)

    def preload(self):
        """What jobs --env tells."""
        p = self.ask("jobs", "--env", env=environment())
        self.assertEqual(p.returncode, 0, p.stderr)
        script = p.stdout + f"exec {PYTHON} -c 'import json, os; print(json.dumps(dict(os.environ)))'"
        env = json.loads(subprocess.run(["sh", "-c", script], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"},
                                        check=True).stdout)
        return json.dumps({k: v for k, v in env.items() if k.startswith(("LD_", "OPWATCH_", "OPENCL_", "CUDA_", "NCCL_"))})

    def test_a_job_is_found_by_the_name_that_it_was_given(self):
        self.start()
        name = "resnet/lr=0.1 " + "ü" * 80  # longer than names are kept, and no name of a folder
        p = self.job("file", command=[BIN, "record", "--job", name, "--socket", self.socket, "--"])
        self.wait(lambda: any(row["events"] for row in self.jobs().values()), "nothing is recorded")
        shown = self.ask("tracks", "--job", name, "--last", "60s", "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertTrue(json.loads(shown.stdout)["rows"])
        self.finish(p)

    def test_two_variables_are_enough(self):
        self.start()
        p = self.job("two", env=environment(LD_PRELOAD=LIBRARY, OPWATCH_RECORDER_SOCKET=self.socket), command=["env"])
        self.wait(lambda: len(self.jobs()) == 1, "the job does not come")
        self.finish(p)

    def test_a_job_that_was_there_before_the_daemon(self):
        p = self.job("early", env=environment(LD_PRELOAD=LIBRARY, OPWATCH_RECORDER_SOCKET=self.socket, OPWATCH_JOB="early"),
                     command=["env"])
        q = self.job("soon", stderr=subprocess.PIPE)
        self.start()
        self.wait_state("early", "running")
        self.wait_state("soon", "running")
        self.assertIn("recording starts when one is started", q.stderr.readline())
        q.stderr.close()
        self.finish(p)
        self.finish(q)

    def test_the_past_is_cut_out(self):
        self.start()
        p = self.job("job")
        self.wait(lambda: self.events("job") > 2000, "nothing is recorded")
        whole = os.path.join(self.dir, "whole.opw")
        self.assertEqual(self.ask("record", "--job", "job", "--last", "1h", "-o", whole).returncode, 0)
        part = os.path.join(self.dir, "part.opw")
        self.assertEqual(self.ask("record", "--job", "job", "--last", "20ms", "-o", part).returncode, 0)
        all_of_it, some = (sum(row["events"] for row in self.view("tracks", f)) for f in (whole, part))
        self.assertGreater(all_of_it, some)
        self.assertGreater(some, 0)
        self.assertEqual(stat.S_IMODE(os.stat(whole).st_mode), 0o600)
        shown = self.ask("tracks", "--job", "job", "--json")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertGreaterEqual(sum(row["events"] for row in json.loads(shown.stdout)["rows"]), all_of_it)
        merged = self.ask("info", "--job", "job", "--last", "10s", whole, "--json")  # and beside files
        self.assertEqual(len(json.loads(merged.stdout)["sources"]), 2, merged.stderr)
        followed = os.path.join(self.dir, "followed.opw")
        q = self.ask("attach", "--job", "job", "-o", followed, "--for", "200ms")
        self.assertEqual(q.returncode, 0, q.stderr)
        self.assertGreater(sum(row["events"] for row in self.view("tracks", followed)), 0)
        self.finish(p)
        self.assertEqual(self.ask("record", "--job", "none", "--last", "1s", "-o", part).returncode, 1)
        self.assertEqual(self.ask("record", "--last", "1s", "-o", part).returncode, 2)

    def test_stacks_of_a_job(self):
        """Now, while somebody follows the job, or always."""
        self.start()
        job = self.job("a")
        p = self.ask("stacks", "--job", "a", "--csv")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(f"{job.pid},", p.stdout)
        self.assertIn("<module>", p.stdout)
        self.assertRegex(self.ask("stacks", "--job", "b").stderr, "^opwatch: .*job")
        self.assertEqual(self.ask("stacks", str(job.pid), "--job", "a").returncode, 2)
        file = os.path.join(self.dir, "x.opw")

        def follow(*options):
            p = self.ask("attach", "--job", "a", "--for", "1s", "-o", file, *options)
            self.assertEqual(p.returncode, 0, p.stderr)
            return p.stderr

        self.assertNotIn("stacks", follow())
        self.wait(lambda: " stacks of 1 process" in follow("--stacks"), "there are no stacks")
        self.assertIn("<module>", json.dumps(self.view("functions", file)))
        self.assertEqual(self.finish(job) > 0, True)

    def test_stacks_of_all_jobs(self):
        self.start("--stacks=50", "--max-size", "1M")
        job = self.job("a", batch=400)
        file = os.path.join(self.dir, "x.opw")

        def last():
            p = self.ask("record", "--job", "a", "--last", "1h", "-o", file)
            self.assertEqual(p.returncode, 0, p.stderr)
            return " stacks of 1 process" in p.stderr

        self.wait(last, "there are no stacks")
        # files come and go; stacks of all of them are named alike
        self.wait(lambda: len(list(pathlib.Path(self.rings).glob("*/*.opw"))) > 8, "the ring does not fill")
        self.assertTrue(last())
        # it may take a while until one is taken while it reads
        self.wait(lambda: last() and "read" in {row["name"] for row in self.view("functions", file)}, "nobody is seen reading")
        self.assertEqual(self.finish(job) > 0, True)

    def test_saved_minutes_are_within_the_total(self):
        """What attention saved, of whatever job, may take a quarter of it; the oldest go. Nothing else does."""
        os.mkdir(self.rings, 0o700)
        names = [f"job-1-slow-12000{i}.opw" for i in range(6)] + ["other-77-stall-120009.opw"]
        for i, name in enumerate([*names, "mine.opw", "job-1-slow.opw"]):
            path = pathlib.Path(self.rings, name)
            path.write_bytes(bytes(100000))
            os.utime(path, (1000 + i, 1000 + i))
        self.start("--max-size", "1M", "--total-size", "1M")
        p = self.job("job")
        self.wait(lambda: {q.name for q in pathlib.Path(self.rings).glob("*.opw")} == {*names[5:], "mine.opw", "job-1-slow.opw"},
                  "the oldest do not go")
        self.wait(lambda: "opwatch: removed the 5 oldest saved incidents: saved incidents may take 0.3 MB in all, a quarter of "
                          "--total-size" in self.logged(), "it is not told")
        self.wait(lambda: self.jobs()["job"]["saved_bytes"] == 100000, "jobs does not tell")
        self.finish(p)

    def test_a_view_names_the_job(self):
        """Not the file that its last minute is in meanwhile."""
        self.start()
        p = self.job("my job")
        self.wait(lambda: self.events("my job"), "nothing is recorded")
        room = os.path.join(self.dir, "room")
        os.mkdir(room)
        for words in ([], ["steps"], ["info"], ["op"], ["tracks"], ["advise"], ["notes"], ["events", "--json"]):
            q = self.ask(*words, "--job", "my job", env=environment(TMPDIR=room))
            self.assertEqual(q.returncode, 0, q.stderr)
            self.assertNotIn(room, q.stdout + q.stderr, words)
            if words in ([], ["info"]):
                self.assertIn("my job", q.stdout, words)
        self.finish(p)

    def test_a_signal_leaves_nothing_behind(self):
        """A view of a job writes a file of its own meanwhile; record --last one that is not whole yet."""
        self.start()
        p = self.job("job")
        self.wait(lambda: self.events("job"), "nothing is recorded")
        room = os.path.join(self.dir, "room")
        os.mkdir(room)
        self.daemon.send_signal(signal.SIGSTOP)  # so that it takes long
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            q = subprocess.Popen([BIN, "steps", "--job", "job", "--socket", self.socket], env=environment(TMPDIR=room),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.stack.callback(self.end, q)
            self.wait(lambda: os.listdir(room), "it does not begin")
            # The handler is there a moment later than the folder.
            self.wait(lambda q=q, n=number: self.caught(q.pid) & 1 << n - 1, "it does not mind the signal")
            q.send_signal(number)
            self.assertEqual(q.wait(), -number)
            self.assertEqual(os.listdir(room), [])
        self.daemon.send_signal(signal.SIGCONT)
        self.assertEqual(self.ask("steps", "--job", "job", env=environment(TMPDIR=room)).returncode, 0)
        self.assertEqual(os.listdir(room), [])
        self.finish(p)

    @staticmethod
    def caught(pid):
        """Signals that a process has handlers for."""
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
        return int([line.split()[1] for line in lines if line.startswith("SigCgt:")][0], 16)

    def test_the_program_is_as_without(self):
        self.start()
        p = self.ask("record", "--job", "x", "--socket", self.socket, "--", "sh", "-c", "echo out; echo $OPWATCH_JOB; exit 7")
        # --socket behind -- would be the program's: it is given twice
        self.assertEqual((p.returncode, p.stdout.split("\n")[:2]), (7, ["out", "x"]))
        p = subprocess.run([BIN, "record", "--job", "x", "--socket", self.socket, "--", "no-such-program"], capture_output=True,
                           text=True, env=environment(PATH="/usr/bin:/bin"))
        self.assertEqual(p.returncode, 127, p.stderr)

    def test_attach_and_detach(self):
        self.start()
        script = JOB.replace("print('ready'", "os.write(1, b'ready\\n'); (lambda *a, **k: None)('ready'")
        path = os.path.join(self.dir, "data")
        p = subprocess.Popen([PYTHON, "-c", script, path, "20"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                             env=environment(), start_new_session=True)
        self.stack.callback(self.forget, p)
        self.assertEqual(p.stdout.readline(), "ready\n")
        q = self.ask("attach", str(p.pid), "--job", "joined")
        if "not allowed to trace" in q.stderr or "not permitted" in q.stderr:
            self.skipTest(q.stderr)
        self.assertEqual(q.returncode, 0, q.stderr)
        self.wait(lambda: self.events("joined") > 100, "nothing is recorded")
        q = self.ask("attach", "--detach", "--job", "joined")
        self.assertEqual(q.returncode, 0, q.stderr)
        self.wait_state("joined", "ended")
        self.finish(p)


class Faults(Case):
    def test_the_daemon_is_killed_and_started_anew(self):
        self.start()
        jobs = {name: self.job(name, batch=5) for name in ("one", "two")}
        folders = {name: row["ring"] for name, row in self.jobs().items()}
        for _ in range(3):
            before = {name: self.wait(lambda n=name: self.events(n), "nothing is recorded") for name in jobs}
            self.daemon.send_signal(signal.SIGKILL)
            self.daemon.wait()
            self.start()
            for name in jobs:
                self.wait(lambda n=name: self.jobs()[n]["state"] == "running" and self.events(n) > before[n],
                          "the job is not taken up again")
        self.assertEqual({name: row["ring"] for name, row in self.jobs().items()}, folders)
        done = {name: self.finish(p) for name, p in jobs.items()}
        for name in jobs:
            row = self.wait_state(name, "ended")
            self.assertEqual(row["drops"], 0)
            found = {row["name"]: row["runs"] for row in self.reads(name)}
            self.assertGreaterEqual(found["open"], done[name])  # nothing is lost …
            self.assertLess(found["open"], done[name] + 1500)  # … and nothing is there twice
            tracks = self.view("tracks", os.path.join(self.dir, name + ".opw"))
            self.assertEqual([row["pid"] for row in tracks], [jobs[name].pid])  # the thread is known as before

    def test_a_daemon_that_ends_leaves_jobs_alone(self):
        self.start()
        p = self.job("job", batch=5)
        self.wait(lambda: self.events("job"), "nothing is recorded")
        self.daemon.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait(), 0)
        self.assertFalse(os.path.exists(self.socket))
        self.start()
        self.assertIn(self.jobs()["job"]["state"], ("awaited", "running"))
        self.wait_state("job", "running")
        self.finish(p)

    def test_a_job_is_killed(self):
        self.start()
        for n in range(10):
            p = self.job(f"job{n}", batch=100)
            p.send_signal(signal.SIGKILL)
            p.wait()
            self.wait_state(f"job{n}", "ended")
            self.assertGreaterEqual({row["name"]: row["runs"] for row in self.reads(f"job{n}")}["open"], 100)

    def test_a_second_daemon(self):
        self.start()
        for options in (["--socket", self.socket, "--dir", self.dir + "/other"], ["--socket", self.dir + "/other.s", "--dir", self.rings]):
            p = subprocess.run([BIN, "daemon", "--no-kineto", *options], capture_output=True, text=True)
            self.assertEqual(p.returncode, 1)
            self.assertIn(f"another daemon (process {self.daemon.pid}) already uses", p.stderr)

    def test_the_ring_stays_below_its_limit(self):
        self.start("--max-size", "2M")
        p = self.job("job", batch=500)
        folder = self.jobs()["job"]["ring"]
        most = 0
        for _ in range(100):
            self.wait(lambda: self.events("job") > most, "nothing is recorded")
            most = self.events("job")
            sizes = [f.stat().st_size for f in pathlib.Path(folder).glob("*.opw") if f.exists()]
            self.assertLessEqual(sum(sizes), 2 << 20)
            if most * 64 > 6 << 20:
                break
        else:
            self.wait(lambda: self.events("job") * 64 > 6 << 20, "the ring does not go round")
        self.assertGreater(int(sorted(os.listdir(folder))[0][:6]), 1)  # the first files have gone
        done = self.finish(p)
        self.wait_state("job", "ended")
        rows = self.view("tracks", self.cut("job"))
        self.assertEqual([row["pid"] for row in rows], [p.pid])  # what is left still says whose it is
        self.assertGreater(rows[0]["events"], 1000)
        self.assertGreater(done, 0)
        self.assertLessEqual(sum(f.stat().st_size for f in pathlib.Path(folder).glob("*.opw")), 2 << 20)

    def cut(self, name):
        file = os.path.join(self.dir, name + ".opw")
        p = self.ask("record", "--job", name, "--last", "1h", "-o", file)
        self.assertEqual(p.returncode, 0, p.stderr)
        return file

    def test_each_file_of_the_ring_opens_by_itself(self):
        self.start("--max-size", "2M")
        p = self.job("job", batch=500)
        self.wait(lambda: self.events("job") * 64 > 3 << 20, "the ring does not fill")
        self.finish(p)
        row = self.wait_state("job", "ended")
        files = sorted(pathlib.Path(row["ring"]).glob("*.opw"))
        self.assertGreater(len(files), 3)
        for file in files[:-1]:
            tracks = self.view("tracks", str(file))
            self.assertEqual([(t["pid"], t["tid"]) for t in tracks], [(p.pid, p.pid)])
            self.assertIn("open", {w["name"] for w in self.view("work", str(file))})

    def test_strangers(self):
        self.start()
        silent, rude = (socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in "ab")
        with silent, rude:
            for s in (silent, rude):
                s.connect(self.socket)
            rude.send(b"GET / HTTP/1.0")
            p = self.job("job")
            self.assertEqual(list(self.jobs()), ["job"])
            self.assertEqual(rude.recv(10), b"")
            self.finish(p)
        for kind, words in (("no daemon listens at", [self.dir + "/nothing"]), ("not the socket of an opwatch", [self.stranger()])):
            q = subprocess.run([BIN, "jobs", "--socket", *words], capture_output=True, text=True)
            self.assertEqual(q.returncode, 1)
            self.assertIn(kind, q.stderr)

    def stranger(self):
        """A socket of another kind."""
        s = self.stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        s.bind(self.dir + "/stream")
        s.listen()
        return self.dir + "/stream"

    def test_another_version(self):
        self.start()
        env = environment(LD_PRELOAD=LIBRARY, OPWATCH_RECORDER_SOCKET=self.socket, OPWATCH_RECORDER_VERSION="999")
        self.finish(self.job("other", env=env, command=["env"]))
        self.wait(lambda: "has protocol version" in self.logged(), "nothing is told")
        self.assertEqual(self.jobs(), {})

    def test_nothing_of_the_environment_is_stored(self):
        self.start()
        p = self.job("job")
        self.wait(lambda: self.events("job"), "nothing is recorded")
        for path in pathlib.Path(self.rings).rglob("*"):
            mode = stat.S_IMODE(path.stat().st_mode)
            self.assertEqual(mode & 0o066, 0, path)
            if path.is_file():
                self.assertEqual(mode, 0o600, path)
                self.assertNotIn(SECRET.encode(), path.read_bytes())
        self.assertEqual(stat.S_IMODE(os.stat(self.socket).st_mode), 0o600)
        self.finish(p)

    def test_damaged_rings_do_not_keep_it_from_starting(self):
        self.start()
        self.finish(self.job("job"))
        row = self.wait_state("job", "ended")
        self.daemon.kill()
        self.daemon.wait()
        for name, text in (("5.x", b""), ("6.y", b"id=6\nname=y\nkey=process 1\nuid=%d\n" % os.geteuid()), ("7.z", b"\0\xff" * 3000)):
            os.mkdir(os.path.join(self.rings, name))
            pathlib.Path(self.rings, name, "about").write_bytes(text)
            pathlib.Path(self.rings, name, "000001.opw").write_bytes(b"nonsense")
        with open(os.path.join(row["ring"], "000001.opw"), "r+b") as f:
            f.truncate(os.path.getsize(f.name) // 2)
        self.start()
        self.assertEqual(set(self.jobs()), {"job", "y"})
        p = self.job("next")
        self.assertGreater(self.jobs()["next"]["id"], 7)
        self.finish(p)


class Users(Case):
    def test_folders_of_others_are_not_used(self):
        os.mkdir(self.rings)
        os.chmod(self.rings, 0o777)
        p = subprocess.run([BIN, "daemon", "--socket", self.socket, "--dir", self.rings, "--no-kineto"], capture_output=True, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertIn("other users may write there", p.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, to run as another user")
    def test_other_users(self):
        nobody = pwd.getpwnam("nobody")
        os.chmod(self.dir, 0o777)
        as_nobody = ["setpriv", "--reuid", str(nobody.pw_uid), "--regid", str(nobody.pw_gid), "--clear-groups"]
        try:  # without the capabilities that setpriv has until it runs the program
            subprocess.run([BIN, "--version"], user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], check=True,
                           capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("nobody may not run the program")
        self.start()
        p = subprocess.run([*as_nobody, BIN, "jobs", "--socket", self.socket], capture_output=True, text=True)
        self.assertEqual(p.returncode, 1)
        self.assertIn("belongs to another user", p.stderr)
        self.daemon.terminate()
        self.daemon.wait()
        self.start("--all-users")
        roots = self.job("roots")
        theirs = self.job("theirs", command=[*as_nobody, BIN, "record", "--job", "theirs", "--socket", self.socket, "--"])
        self.wait(lambda: len(self.jobs()) == 2, "not two jobs")
        self.assertEqual({r["job"]: r["user"] for r in self.jobs().values()}, {"roots": "root", "theirs": "nobody"})
        p = subprocess.run([*as_nobody, BIN, "jobs", "--csv", "--socket", self.socket], capture_output=True, text=True)
        self.assertEqual([line.split(",")[0] for line in p.stdout.splitlines()], ["job", "theirs"])
        out = os.path.join(self.dir, "out.opw")
        p = subprocess.run([*as_nobody, BIN, "record", "--last", "10s", "--job", "theirs", "--socket", self.socket, "-o", out],
                           capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        p = subprocess.run([*as_nobody, BIN, "record", "--last", "10s", "--job", "roots", "--socket", self.socket, "-o", out],
                           capture_output=True, text=True)
        self.assertIn("no job is called", p.stderr)

        def shown():
            p = subprocess.run([*as_nobody, BIN, "top", "--json", "--socket", self.socket], capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stderr)
            return [job["job"] for job in json.loads(p.stdout) if job["ops"]]

        self.assertEqual(self.wait(shown, "top shows nothing of it"), ["theirs"])
        for job in (roots, theirs):
            self.finish(job)


class Anomalies(Case):
    """What the daemon found, from the files in its folder; tests/integration/anomaly_test.py has a job that becomes slow."""

    def put(self, name, text="", owner=None, age=0):
        path = os.path.join(self.rings, name)
        pathlib.Path(path).write_text(text)
        os.utime(path, (1700000000 - age, 1700000000 - age))
        if owner is not None:
            os.chown(path, owner, owner)

    def test_the_list(self):
        self.start()
        self.assertIn("--on-slowdown", self.ask("jobs", "--anomalies").stderr)
        self.put("a job-7-slow-120304.opw", "12345", age=10)
        self.put("a job-7-slow-120304.why.txt", "steps take 50 % longer\nand again\n", age=40)
        self.put("x-y-8-stall-000000.why.txt", "no step for 30 s\n", age=20)  # its minute is not over
        self.put("old-9-slow-120000.opw", "1", age=90)  # of a version that kept no reason
        self.put("a job-7-slow-120304.hang.json", "{}")
        self.put("else-7-fast-120304.opw", "1")
        os.symlink("/etc/passwd", os.path.join(self.rings, "evil-7-slow-120309.why.txt"))
        rows = json.loads(self.ask("jobs", "--anomalies", "--json").stdout)["rows"]
        self.assertEqual([(r["job"], r["id"], r["kind"], r["saved"], r["bytes"], r["why"]) for r in rows],
                         [("x-y", 8, "stall", False, None, "no step for 30 s"),
                          ("a job", 7, "slow", True, 5, "steps take 50 % longer\nand again"),
                          ("old", 9, "slow", True, 1, None)])
        self.assertEqual(rows[1]["file"], os.path.join(self.rings, "a job-7-slow-120304.opw"))
        self.assertEqual(rows[1]["time_ns"], (1700000000 - 40) * 10**9)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("setpriv"), "needs root, to run as another user")
    def test_other_users(self):
        nobody = pwd.getpwnam("nobody")
        os.chmod(self.dir, 0o777)
        as_nobody = ["setpriv", "--reuid", str(nobody.pw_uid), "--regid", str(nobody.pw_gid), "--clear-groups"]
        try:
            subprocess.run([BIN, "--version"], user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("nobody may not run the program")
        self.start("--all-users")
        self.put("roots-1-slow-120304.why.txt", "secret")
        self.put("theirs-2-slow-120304.why.txt", "known", owner=nobody.pw_uid)
        p = subprocess.run([*as_nobody, BIN, "jobs", "--anomalies", "--json", "--socket", self.socket], capture_output=True, text=True)
        self.assertEqual([r["job"] for r in json.loads(p.stdout)["rows"]], ["theirs"], p.stderr)
        self.assertNotIn("secret", p.stdout)
        self.assertEqual(len(json.loads(self.ask("jobs", "--anomalies", "--json").stdout)["rows"]), 2)


class Metrics(Case):
    def test_the_page(self):
        self.start("--metrics", "0")
        port = self.metrics_port()
        p = self.job("a job")
        self.wait(lambda: self.events("a job"), "nothing is recorded")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
            self.assertIn("application/openmetrics-text", page.headers["Content-Type"])
            text = page.read().decode()
        self.assertTrue(text.endswith("# EOF\n"))
        self.assertIn('opwatch_job_processes{job="a job"} 1\n', text)
        self.assertRegex(text, r'opwatch_job_records_total\{job="a job"\} [1-9]')
        self.assertIn("opwatch_host_cpu_seconds_total", text)
        with self.assertRaises(urllib.error.HTTPError) as problem:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/else", timeout=60)
        self.assertEqual(problem.exception.code, 404)
        problem.exception.close()
        for line, status in ((b"", b"414"), (b"GET /metrics HTTP/1.1\r\nX: ", b"431")):  # too much before the end of the headers
            with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as s:
                s.sendall(line + b"x" * 9000)
                self.assertIn(status, s.recv(100))
        for method, status in (("HEAD", 200), ("POST", 405), ("DELETE", 405)):
            c = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            c.request(method, "/metrics")
            reply = c.getresponse()
            self.assertEqual((method, reply.status), (method, status))
            self.assertEqual(bool(reply.read()), method != "HEAD")
            c.close()
        self.finish(p)


if __name__ == "__main__":
    unittest.main()
