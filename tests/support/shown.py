"""What a program shows on a terminal of a given width."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios


def shown(words, columns, rows=200):
    """The text of a program that ends by itself, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, "TERM": "xterm", "OPWATCH_PAGER": "cat"}) as child:
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the program has closed its side
                break
            if not part:
                break
            text += part
        child.wait()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode()).replace("\r", "")
