#!/usr/bin/python3
"""Recording from Python: steps, phases, threads, forks, and what is left when the process is killed."""
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import opwatch


class Recording(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "run.opw")

    def counts(self):
        """{name: runs} of everything, in all steps."""
        profile = opwatch.open(self.path)
        steps = max(len(profile.step_numbers), 1)
        result = profile.op(select=["occurrence", "micros"])
        return {row.name: row.run_count * steps for row in result}

    def test_the_loop_of_the_documentation(self):
        with opwatch.steps(self.path) as s:
            for batch in s.track(self.slow_batches(4)):
                time.sleep(0.002)
                s.mark("forward")
                with s.phase("optimizer"):
                    time.sleep(0.001)
                s.value("loss", 1.0 / (batch + 1))
        profile = opwatch.open(self.path)
        steps = profile.steps()
        self.assertEqual(steps["step"], [0, 1, 2, 3])
        for row in steps:
            self.assertGreaterEqual(row.input_ns, 5_000_000)
            self.assertGreaterEqual(row.compute_ns, 3_000_000)
            self.assertLessEqual(row.input_ns + row.compute_ns, row.duration_ns)
        self.assertFalse(profile.damaged)
        self.assertEqual(self.counts(), {"data": 4, "forward": 4, "optimizer": 4, "step": 4})

    @staticmethod
    def slow_batches(count):
        for i in range(count):
            time.sleep(0.005)
            yield i

    def test_every_view_answers(self):
        with opwatch.steps(self.path) as s:
            for _ in s.track(range(5)):
                s.mark("forward")
        profile = opwatch.open(self.path)
        for name, _, _ in opwatch.views():
            if name != "code":  # a recording knows no lines
                profile.view(name)
        profile.advise()
        self.assertTrue(profile.timeline())

    def test_leaving_the_loop_early(self):
        with opwatch.steps(self.path, first_step=10) as s:
            for i in s.track(range(100)):
                s.mark("forward")
                if i == 2:
                    break
            with self.assertRaises(ZeroDivisionError):
                for _ in s.track(range(100), name="more"):
                    1 / 0
        self.assertEqual(opwatch.open(self.path).step_numbers, [10, 11, 12, 13])

    def test_steps_by_hand(self):
        with opwatch.steps(self.path) as s:
            self.assertEqual(s.step(), 0)
            self.assertEqual(s.step(7), 7)
            self.assertEqual(s.step(), 8)
            s.mark("forward")
            s.end_step()
        self.assertEqual(opwatch.open(self.path).step_numbers, [0, 7, 8])

    def test_wrong_types_and_closed(self):
        with self.assertRaises(opwatch.NotFound):
            opwatch.steps("/no/such/folder/x.opw")
        with self.assertRaises(opwatch.UsageError):
            opwatch.steps("/dev/null")
        with self.assertRaises(TypeError):
            opwatch.steps(None)
        s = opwatch.steps(self.path)
        for call in (lambda: s.mark(3), lambda: s.mark(None), lambda: s.value("x", "y"), lambda: s.step("1"),
                     lambda: s.value(b"x", 1)):
            with self.assertRaises(TypeError):
                call()
        with self.assertRaises(OverflowError):
            s.step(2**70)
        with self.assertRaises(UnicodeEncodeError):
            s.mark("\ud800")
        with self.assertRaisesRegex(TypeError, "path"):
            pickle.dumps(s)
        s.mark("forward")
        s.close()
        s.close()
        self.assertFalse(s.active)
        self.assertIn("closed", repr(s))
        for call in (lambda: s.mark("x"), s.step, lambda: s.value("x", 1), s.end_step):
            with self.assertRaisesRegex(ValueError, "closed"):
                call()

    def test_threads(self):
        with opwatch.steps(self.path) as s:
            def work(number):
                s.name_thread("worker %d" % number)
                for _ in range(5000):
                    s.mark("work")
            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(self.counts()["work"], 20000)
        names = {str(value) for row in opwatch.open(self.path).tracks() for value in row}
        self.assertLessEqual({"worker %d" % i for i in range(4)}, names)

    def test_fork(self):
        with opwatch.steps(self.path) as s:
            s.mark("parent")
            child = os.fork()
            if not child:
                s.mark("child")
                silent = not s.active
                s.close()
                os._exit(0 if silent else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertTrue(s.active)
            s.mark("parent")
        self.assertEqual(self.counts(), {"parent": 2})

    def test_nothing_is_lost_when_killed(self):
        code = ("import opwatch, sys\n"
                "s = opwatch.steps(%r)\n"
                "for i in s.track(range(10**9)):\n"
                "    s.mark('forward')\n"
                "    sys.stdout.write('x'); sys.stdout.flush()\n" % self.path)
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        told = len(process.stdout.read(300))
        process.send_signal(signal.SIGKILL)
        told += len(process.stdout.read())
        process.wait()
        process.stdout.close()
        profile = opwatch.open(self.path)
        self.assertFalse(profile.damaged)
        self.assertIn("not closed", str(profile.loss()["text"]))
        self.assertIn(round(sum(row.run_count for row in profile.op(select="occurrence") if row.name == "forward")
                            * len(profile.step_numbers)), range(told - 1, told + 2))

    def test_read_while_it_is_written(self):
        with opwatch.steps(self.path) as s:
            for i in s.track(range(5)):
                s.mark("forward")
                self.assertEqual(opwatch.open(self.path).step_numbers, list(range(i + 1)))

    def test_interpreter_ends_without_closing(self):
        code = "import opwatch\ns = opwatch.steps(%r)\nfor _ in s.track([1, 2]): s.mark('forward')\n" % self.path
        done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(opwatch.open(self.path).step_numbers, [0, 1])


if __name__ == "__main__":
    unittest.main()
