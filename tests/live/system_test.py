#!/usr/bin/python3
"""opwatch record --system: all processes of the host, without loading anything into them: C, static, Go, Node and Java programs show their
functions, locks show where threads wait for them, and who may not sample is informed."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["OPWATCH_SRC"], "tests"))
from support import patience  # noqa: E402

BIN = os.environ["OPWATCH_BIN"]
PROGRAM = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long sum;
__attribute__((noinline)) void hold_the_lock(void)
{
	pthread_mutex_lock(&lock);
	usleep(20000);
	pthread_mutex_unlock(&lock);
	usleep(100);
}
__attribute__((noinline)) void wait_for_the_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	usleep(100);
}
__attribute__((noinline)) void compute_here(void)
{
	for (long i = 0; i < 1000000; i++)
		sum += i;
}
static void *hold(void *arg) { for (;;) hold_the_lock(); return arg; }
static void *compute(void *arg) { for (;;) compute_here(); return arg; }
int main(void)
{
	pthread_t a, b;
	pthread_create(&a, 0, hold, 0);
	pthread_create(&b, 0, compute, 0);
	for (;;)
		wait_for_the_lock();
}
"""
GO = """package main
//go:noinline
func spinInGo(n int) float64 { s := 0.0; for i := 0; i < n; i++ { s += float64(i) * 1.5; s *= 0.999 }; return s }
func main() { t := 0.0; for { t += spinInGo(1000000) } }
"""
NODE = "function spinInNode() { let s = 0; for (let i = 0; i < 1e6; i++) s += Math.sqrt(i); return s; }\nwhile (true) spinInNode();\n"
JAVA = """public class Hot {
  static double spinInJava(int n) { double s = 0; for (int i = 0; i < n; i++) s += i * 0.5; return s; }
  public static void main(String[] a) { double t = 0; while (true) t += spinInJava(100000); }
}
"""


def permitted():
    p = subprocess.run([BIN, "record", "--system", "--for", "10ms", "-o", "-"], capture_output=True)
    return b"forbids" not in p.stderr and b"software clock" not in p.stderr


@unittest.skipUnless(permitted(), "the kernel does not let this user sample all processors")
class System(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name, text=None):
        path = os.path.join(self.dir, name)
        if text is not None:
            with open(path, "w") as f:
                f.write(text)
        return path

    def start(self, *argv, **kwargs):
        p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kwargs)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def compile(self, name, *flags):
        out = self.path(name)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-pthread", *flags, self.path("p.c", PROGRAM), "-o", out], check=True)
        return out

    def record(self, seconds):
        file = self.path("x.opw")
        p = subprocess.run([BIN, "record", "--system", "--for", seconds, "-o", file], capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stderr, r"s of \d+ processors?: \d+ samples of running threads, \d+ waits, \d+ processes")
        self.seconds = float(re.search(r"([\d.]+) s of", p.stderr).group(1))
        return file

    def functions(self, file, metric="cpu-clock"):
        p = subprocess.run([BIN, "functions", "--json", "--metric", metric, file], capture_output=True, check=True)
        return {(row["name"], os.path.basename(row["module"])): row for row in json.loads(p.stdout)["rows"]}

    def cpu(self, pid):
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def start_go(self):
        env = {**os.environ, "GOCACHE": self.path("cache"), "GOFLAGS": "-mod=mod", "HOME": self.dir}
        subprocess.run(["go", "build", "-o", self.path("hot"), self.path("hot.go", GO)], check=True, env=env)
        return self.start(self.path("hot"))

    def start_java(self):
        subprocess.run(["javac", "-d", self.dir, self.path("Hot.java", JAVA)], check=True)
        return self.start("java", "-XX:+PreserveFramePointer", "-cp", self.dir, "Hot")

    def test_functions_locks_and_counters(self):
        """Time on processors is what the kernel counts for the process; waiting for the lock fills the time of the main thread."""
        names, wanted = ["dynamic"], []
        self.compile("dynamic")
        try:
            self.compile("static", "-static")
            names.append("static")
        except subprocess.CalledProcessError:
            pass
        if shutil.which("go"):
            self.start_go()
            wanted.append("main.spinInGo")
        java = self.start_java() if shutil.which("javac") and shutil.which("jcmd") else None
        node = self.start("node", "--perf-basic-prof", self.path("hot.js", NODE), cwd=self.dir) if shutil.which("node") else None
        for p in filter(None, (java, node)):
            self.addCleanup(lambda p=p: os.path.exists("/tmp/perf-%d.map" % p.pid) and os.unlink("/tmp/perf-%d.map" % p.pid))
        reader = self.start("/usr/bin/python3", "-c", "while True: open('/bin/sh', 'rb').read()")
        started = [self.start(self.path(name)) for name in names]
        time.sleep(2)
        if java:
            subprocess.run(["jcmd", str(java.pid), "Compiler.perfmap"], check=True, capture_output=True)
            wanted.append("spinInJava")
        if node:
            wanted.append("spinInNode")
        before, begun = [self.cpu(p.pid) for p in started], time.monotonic()
        file = self.record("3s")
        part = min(1, self.seconds / (time.monotonic() - begun))  # starting and writing take time, too
        used = [part * (self.cpu(p.pid) - b) for p, b in zip(started, before)]
        running, waiting = self.functions(file), self.functions(file, "offcpu-time")
        for name, cpu in zip(names, used):
            self.assertAlmostEqual(running["compute_here", name]["self"] / 1e9, cpu, delta=0.15 + 0.3 * cpu)
            self.assertGreater(waiting["wait_for_the_lock", name]["total"] / 1e9, 0.4 * self.seconds)
            self.assertLess(waiting["wait_for_the_lock", name]["total"] / 1e9, 1.1 * self.seconds)
        for name in wanted:
            self.assertTrue(any(name in function for function, _ in running), (name, sorted(running)[:80]))
        rows = json.loads(subprocess.run([BIN, "tracks", "--json", file], capture_output=True, check=True).stdout)["rows"]
        self.assertIn(started[0].pid, {row["pid"] for row in rows})
        self.counters(file, reader.pid)

    def counters(self, file, pid):
        answer = subprocess.run([BIN, "sql", "--json", file, "select c.name, max(c.value) as most from counter c join track t on t.id = c.track_id "
                                 "where t.pid = %d group by c.name" % pid], capture_output=True, text=True)
        if "SQL" in answer.stderr:
            return
        most = {row["name"]: row["most"] for row in json.loads(answer.stdout)["rows"]}
        self.assertGreater(most["memory"], 1 << 20)
        self.assertGreater(most["read"], 1e5)
        self.assertIn("run queue", most)

    def test_the_daemon_keeps_samples(self):
        daemon = self.start(BIN, "daemon", "--socket", self.path("socket"), "--dir", self.path("rings"), "--no-kineto", "--system-hz", "49")
        self.start("/usr/bin/python3", "-c", "while True: pass")
        patience.until(lambda: os.path.exists(self.path("socket")), "the daemon does not listen")
        time.sleep(2)
        daemon.terminate()
        self.assertEqual(daemon.wait(60), 0)
        files = sorted(os.listdir(self.path("rings/system")))
        self.assertTrue(files)
        self.assertEqual(os.stat(self.path("rings/system/" + files[-1])).st_mode & 0o777, 0o600)
        self.assertIn("_PyEval_EvalFrameDefault", {name for name, _ in self.functions(self.path("rings/system/" + files[-1]))})

    def test_wrong_use(self):
        for args, words in ((("--system", "--job", "x"), "--system records all processes"), (("--for", "1s", "--", "true"), "are for --system"),
                            (("--system", "--", "true"), "--system records all processes")):
            p = subprocess.run([BIN, "record", *args], capture_output=True, text=True, cwd=self.dir)
            self.assertEqual(p.returncode, 2)
            self.assertIn(words, p.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be someone else")
    def test_without_permission(self):
        with open("/proc/sys/kernel/perf_event_paranoid") as f:
            if int(f.read()) <= 0:
                self.skipTest("everybody may sample here")
        os.chmod(self.dir, 0o777)
        p = subprocess.run(["setpriv", "--reuid", "65534", "--clear-groups", BIN, "record", "--system", "--for", "1s", "-o", self.path("n.opw")],
                           capture_output=True, text=True)
        if "setpriv" in p.stderr or "Permission denied" in p.stderr and "kernel" not in p.stderr:
            self.skipTest("another user cannot run opwatch from here")
        self.assertEqual(p.returncode, 1, p.stderr)
        self.assertRegex(p.stderr, r"the kernel forbids sampling all processors \(kernel.perf_event_paranoid is -?\d\): run opwatch as root")
        self.assertFalse(os.path.exists(self.path("n.opw")))


if __name__ == "__main__":
    unittest.main()
