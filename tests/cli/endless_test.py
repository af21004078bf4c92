#!/usr/bin/env python3
"""Input without an end: devices are refused, streams of no known format are given up before they fill the memory or
the disk, and a copy on disk leaves room for others."""
import os
import resource
import shutil
import subprocess
import tempfile
import unittest
import zlib

BIN = os.environ["OPWATCH_BIN"]
MEMORY_KB = 200 << 10
# The sanitizers' shadow memory counts, too.
SANITIZED = b"__asan_init" in open(BIN, "rb").read() or b"__tsan_init" in open(BIN, "rb").read()


def run(*args, stdin=subprocess.DEVNULL, **kwargs):
    return subprocess.run([BIN, *args], stdin=stdin, capture_output=True, text=True, timeout=120, **kwargs)


def fed(piece, command, head=b"", **kwargs):
    """Runs the command with `head` and then `piece` again and again on its standard input, until it ends."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs) as p:
        written = 0
        try:
            p.stdin.write(head)
            while True:
                written += p.stdin.write(piece)
        except BrokenPipeError:
            p.stdin = None  # what is left in its buffer has nowhere to go
        out, err = p.communicate(timeout=120)
        return p.returncode, out.decode(), err.decode(), written


class Endless(unittest.TestCase):
    def test_devices(self):
        for path in ("/dev/zero", "/dev/urandom", "/dev/full"):
            if not os.path.exists(path):
                continue
            for command in ((path,), ("op", path), ("info", "--estimate", path), ("merge", path)):
                p = run(*command)
                self.assertEqual((p.returncode, p.stdout), (1, ""), command)
                self.assertIn(f"{path} is a device, not a profile", p.stderr)

    def test_a_device_as_standard_input(self):
        for path in ("/dev/zero", "/dev/stdin", "/dev/fd/0"):
            with open("/dev/zero", "rb") as zero:
                p = run("-" if path == "/dev/zero" else path, stdin=zero)
            self.assertEqual(p.returncode, 1)
            self.assertIn("unknown format", p.stderr)

    def test_streams_of_no_format(self):
        for command in (("-",), ("steps", "-"), ("info", "--estimate", "-"), ("merge", "-")):
            for line in (b"y\n", b"\0", b"\n", bytes(range(256))):
                status, out, err, written = fed(line * (65536 // len(line)), [BIN, *command])
                self.assertEqual((status, out), (1, ""), (command, line))
                self.assertRegex(err, "standard input: (unknown format|not a Chrome trace)")
                self.assertLess(written, 100 << 20)
        if not SANITIZED:
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, MEMORY_KB)

    def test_unpacked_content_of_no_format(self):
        """A few kilobytes that unpack to a gigabyte: given up after what fits in memory."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "zeros.gz")
            packer = zlib.compressobj(9, zlib.DEFLATED, 31)
            with open(path, "wb") as f:
                for _ in range(1024):
                    f.write(packer.compress(bytes(1 << 20)))
                f.write(packer.flush())
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock
            for command in ((path,), ("merge", path)):
                p = run(*command)
                self.assertEqual(p.returncode, 1)
                self.assertRegex(p.stderr, f"{path}: (unknown format|not a Chrome trace)")
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_oublock - before, 1000)  # of 512 bytes

    def test_less_memory(self):
        """A limit sends the stream to disk earlier, instead of failing it."""
        event = b'{"name": "op", "ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1},\n'
        text = b"[" + event * (16 << 20 >> 6)
        p = subprocess.run([BIN, "info", "--estimate", "-", "--memory-limit", "24M"], input=text, capture_output=True,
                           timeout=120)
        self.assertEqual(p.returncode, 0, p.stderr)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "mounting a small disk needs root")
    def test_room_is_left_on_the_disk(self):
        script = 'mount -t tmpfs -o size=200m none "$1" || exit 77; shift; exec "$@"'
        if subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "/mnt", "true"], capture_output=True).returncode:
            self.skipTest("no mount namespaces here")
        event = b'{"name": "op", "ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1},\n' * 1000
        for command in (("op", "-"), ("merge", "-", "-o", "/dev/null")):
            status, _, err, written = fed(event, ["unshare", "-m", "sh", "-c", script, "sh", "/mnt", BIN, *command],
                                          head=b"[", env={**os.environ, "TMPDIR": "/mnt"})
            self.assertEqual(status, 1, err)
            self.assertRegex(err, r"standard input: after 1\d\d MB the temporary copy would fill /mnt; set TMPDIR to")
            self.assertLess(written, 210 << 20)


if __name__ == "__main__":
    unittest.main()
