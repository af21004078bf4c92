#!/usr/bin/python3
"""Ctrl-C while a large trace is being loaded, merged or saved ends that, with KeyboardInterrupt and nothing left."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CODE = """
import opwatch, os, signal, sys, threading
started = threading.Event()
def tell(file, done, total):
    if not started.is_set():
        started.set()
        os.kill(os.getpid(), signal.SIGINT)
try:
    %s
except KeyboardInterrupt:
    p = None
    print("interrupted")
else:
    print("went on")
"""


class Interrupt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.trace = os.path.join(folder.name, "t.json")
        line = '{"ph":"X","pid":1,"tid":%d,"ts":%d,"dur":2,"name":"op%d","args":{"text":"' + "x" * 200 + '"}},\n'
        with open(cls.trace, "w", encoding="ascii") as file:
            file.write('{"traceEvents":[\n')
            for i in range(200000):
                file.write(line % (i % 4, i * 3, i % 100))
            file.write("{}]}\n")

    def expect(self, what):
        start = time.monotonic()
        done = subprocess.run([sys.executable, "-c", CODE % what], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=120)
        self.assertEqual((done.stdout.strip(), done.returncode), ("interrupted", 0), done.stderr)
        return time.monotonic() - start

    def test_open(self):
        self.expect("p = opwatch.open(%r, progress=tell)" % self.trace)

    def test_merge(self):
        out = os.path.join(self.folder, "out.json")
        self.expect("opwatch.merge(%r, out=%r, progress=tell)" % (self.trace, out))
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith("out.json")], [])


if __name__ == "__main__":
    unittest.main()
