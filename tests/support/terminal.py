"""A program on a pseudo-terminal, driven as a person would."""
import codecs
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

from patience import PATIENCE

BIN = os.environ["OPWATCH_BIN"]


class Terminal:
    """A program on a pseudo-terminal of 24 lines and 80 columns."""

    def __init__(self, args, home, name=None, **env):
        self.home = home
        pid, self.fd = pty.fork()
        if pid == 0:
            full = {"HOME": home, "TERM": "xterm", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"],
                    "OPWATCH_PAGER": "cat", "ASAN_OPTIONS": "detect_leaks=0", **env}
            try:
                os.execve(BIN, [name or BIN] + args, full)
            finally:
                os._exit(127)   # a child that could not start must not go on as a copy of the test
        self.pid = pid
        self.resize(24, 80)
        self.text = ""
        self.decoder = codecs.getincrementaldecoder("utf8")("replace")  # a letter may come in two reads

    def resize(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read_until(self, pattern, seconds=PATIENCE):
        """Everything printed up to and including the pattern."""
        end = time.monotonic() + seconds
        while True:
            found = re.search(pattern, self.text)
            if found:
                seen, self.text = self.text[:found.end()], self.text[found.end():]
                return seen
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise AssertionError("no %r in %r" % (pattern, self.text))
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                raise AssertionError("ended before %r: %r" % (pattern, self.text))
            self.text += self.decoder.decode(data)

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait(self, seconds=PATIENCE):
        """Reads to the end; a program that does not end is killed, which is a failure."""
        try:
            while select.select([self.fd], [], [], seconds)[0] and os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        for _ in range(seconds * 10):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.1)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)
        raise AssertionError("it did not end")
