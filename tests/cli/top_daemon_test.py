#!/usr/bin/python3
"""opwatch top on a terminal with jobs of a daemon: jobs that come and end while it is shown, selecting one, freezing, its last
minute and its flame graph in files, a terminal that changes its size, a daemon that goes and comes again."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import daemon_test  # pylint: disable=wrong-import-position
import top_test  # pylint: disable=wrong-import-position
from daemon_test import BIN, LIBRARY  # pylint: disable=wrong-import-position


class TopOfDaemon(daemon_test.Case):
    def session(self, *args, **kwargs):
        s = top_test.Session("--socket", self.socket, *args, cwd=self.dir, **kwargs)
        self.stack.callback(s.close)
        return s

    def saved(self, ending):
        return [str(p) for p in pathlib.Path(self.dir).glob("opwatch-*" + ending)]

    def test_jobs_come_and_go(self):
        self.start()
        s = self.session()
        s.until_text("No job reports to the daemon")
        jobs = {name: self.job(name, batch=20) for name in ("first", "second")}
        s.until_text("opwatch top  2 jobs")
        s.until(lambda t: any(line.startswith(">") for line in t.lines()), "a job is selected")
        s.key("\x1b[B")
        s.until(lambda t: any(line.startswith(">second") for line in t.lines()), "the second one")
        s.until_text("OPERATION")
        s.until(lambda t: any(line.startswith("open ") for line in t.lines()), "what it does")
        s.key("w")
        s.until_text("written: opwatch-")
        [file] = self.saved(".opw")
        tracks = self.view("tracks", file)
        self.assertEqual({row["pid"] for row in tracks}, {jobs["second"].pid})
        s.key("f")
        s.until_text(".svg, of ")
        [file] = self.saved(".svg")
        self.assertIn("<svg", pathlib.Path(file).read_text()[:4096])
        for columns, rows in ((50, 12), (80, 24)):
            s.set_size(columns, rows)
            s.terminal.resize(columns, rows)
            s.until(lambda t: t.lines()[0].startswith("opwatch top") and any(l.startswith(">second") for l in t.lines()), "it fits")
        s.key(" ")
        s.until_text("FROZEN")
        s.key(" ")
        self.daemon.send_signal(signal.SIGKILL)  # top goes on with what there is, and with the next one
        self.daemon.wait()
        s.until_text("NO DAEMON")
        self.start()
        s.until(lambda t: "NO DAEMON" not in t.lines()[0], "the next one is found")
        for p in jobs.values():
            self.finish(p)
        s.until_text("second  ended")
        s.key("q")
        self.assertEqual(s.end(), "")
        self.assertEqual(s.process.returncode, 0)

    def changes_of_file(self):
        """How often the ring of a job went on in another file."""
        return max([int(p.stem) for p in pathlib.Path(self.rings).glob("*/0*.opw")], default=1) - 1

    def test_stacks_outlive_files(self):
        """Numbers of stacks begin anew in each file of a ring: what is written of the last minute has those of all of them."""
        self.start("--stacks=50", "--max-size", "1M")
        p = self.job("job", batch=100)
        s = self.session()
        s.until_text("opwatch top  1 job")
        s.until(lambda t: any(line.startswith("open ") for line in t.lines()), "what it does")
        s.until(lambda t: self.changes_of_file() >= 6, "the ring goes on")
        seen = set()

        def write():
            """Whether something was written of several files, which have a thousand records each; and that it has stacks."""
            s.key("w")
            s.until(lambda t: set(self.saved(".opw")) - seen, "it is written")
            new = set(self.saved(".opw")) - seen
            seen.update(new)
            found = [file for file in new if sum(row["events"] for row in self.view("tracks", file)) > 5000]
            for file in found:
                self.assertIn("<module>", {row["name"] for row in self.view("functions", file)})
            return found

        self.wait(write, "top does not come along")
        s.key("f")
        s.until_text("of the Python stacks of the last minute")
        [flame] = self.saved(".svg")
        self.assertIn("&lt;module&gt;", pathlib.Path(flame).read_text())
        self.finish(p)
        s.key("q")
        self.assertEqual(s.end(), "")

    def test_without_a_terminal(self):
        self.start()
        p = self.job("job", batch=20)
        self.wait(lambda: self.events("job"), "nothing is recorded")
        q = self.ask("top")
        self.assertEqual(q.returncode, 0, q.stderr)
        self.assertNotIn("\x1b", q.stdout)
        self.assertLessEqual(max(map(len, q.stdout.splitlines())), 80)
        q = subprocess.run([BIN, "top", "--json", "--socket", self.socket, "-o", self.dir + "/top.json"], capture_output=True, text=True)
        self.assertEqual((q.returncode, q.stdout), (0, ""), q.stderr)
        self.assertEqual([job["job"] for job in json.loads(pathlib.Path(self.dir, "top.json").read_text())], ["job"])
        self.finish(p)


if __name__ == "__main__":
    if not os.path.exists(LIBRARY):
        print("the recorder is not built")
        sys.exit(77)
    unittest.main()
