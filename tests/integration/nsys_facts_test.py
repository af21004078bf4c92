#!/usr/bin/python3
"""SQLite exports of Nsight Systems, of real programs: `opwatch info --json` must tell what FACTS.json does.

OPWATCH_CORPUS is the folder with the exports and FACTS.json; without it the test is skipped. Compared are, for every file
of the kind nsys-sqlite: tables (rows of each), tables_nonempty, sqlite3_cli_master_rows (which we call schema_rows), gpus,
NVTX_EVENTS (rows, with_end, by_eventType, columns), CUPTI_ACTIVITY_KIND_KERNEL and CUPTI_ACTIVITY_KIND_RUNTIME (rows,
min_start, max_end, total_ns, top5). Not compared: integrity_check, which we do not run. Also: that no text of the
environment and of what the program printed comes out anywhere, that nothing is written beside the file, that a packed
file gives the same, that reports of nsys-stats are what the tables give, and that what is no export is refused by name.
"""
import csv
import gzip
import io
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import unittest

KIND = "nsys-sqlite"
SAME = ("tables", "tables_nonempty", "gpus", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME")
RENAMED = {"sqlite3_cli_master_rows": "schema_rows"}

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")
CORPUS = os.environ.get("OPWATCH_CORPUS")


def run(*args):
    return subprocess.run([BIN, *map(str, args)], capture_output=True, text=True)


def info(path):
    p = run("info", "--json", path)
    if p.returncode:
        raise AssertionError(f"{path}: {p.returncode}: {p.stderr}")
    return json.loads(p.stdout)


def files():
    facts = json.loads(pathlib.Path(CORPUS, "FACTS.json").read_text())
    return {path: want for path, want in sorted(facts.items()) if path.split("/")[0] == KIND}


def one(doc):
    return doc["sources"][0] if "sources" in doc else doc


class NsysFacts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def test_facts(self):
        self.assertTrue(files())
        for path, want in files().items():
            with self.subTest(path):
                got = one(info(pathlib.Path(CORPUS, path)))
                for name in SAME:
                    if name in want:
                        self.assertEqual(got.get(name), want[name], name)
                for theirs, ours in RENAMED.items():
                    self.assertEqual(got.get(ours), want[theirs], theirs)

    def test_packed(self):
        path = pathlib.Path(CORPUS, sorted(files())[0])
        packed = self.folder / "packed.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        whole, other = one(info(path)), one(info(packed))
        for name in SAME:
            self.assertEqual(whole.get(name), other.get(name), name)

    def test_nothing_is_written(self):
        for path in files():
            copy = self.folder / "here" / "export.sqlite"
            copy.parent.mkdir()
            shutil.copyfile(pathlib.Path(CORPUS, path), copy)
            before = copy.read_bytes(), copy.stat().st_mtime_ns
            info(copy)
            self.assertEqual([p.name for p in copy.parent.iterdir()], [copy.name])
            self.assertEqual((copy.read_bytes(), copy.stat().st_mtime_ns), before)
            shutil.rmtree(copy.parent)

    def test_private_text_stays_inside(self):
        """Every text that only private tables have is looked for in all that is printed."""
        path = self.folder / "private.sqlite"
        shutil.copyfile(pathlib.Path(CORPUS, sorted(files())[-1]), path)
        path.chmod(0o644)
        db = sqlite3.connect(path)
        db.execute("UPDATE TARGET_INFO_SYSTEM_ENV SET value='secret-env-' || rowid WHERE name NOT IN ('CpuCores',"
                   "'CpuDescription','CpuArchitecture','OsDescription','NvDriverVersion','CudaDriverVersion')")
        db.execute("INSERT INTO StringIds VALUES (99999990, 'secret-printed')")
        db.execute("UPDATE ProcessStreams SET filenameId=99999990, contentId=99999990")
        db.execute("CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT)")
        db.execute("INSERT INTO META_DATA_CAPTURE VALUES ('X:ENVIRONMENT_VARIABLE', 'TOKEN=secret-token')")
        db.execute("UPDATE EXPORT_META_DATA SET value='secret-user' WHERE name LIKE '%USER%' OR name LIKE '%HOST%' "
                   "OR name LIKE '%PATH%'")
        db.execute("UPDATE PROCESSES SET name='secret-process' WHERE pid=1")
        db.commit()
        db.close()
        saved = self.folder / "saved.opw"
        for args in (("info", "--json", path), (path,), ("tracks", path), ("op", path), ("notes", path),
                     ("convert", path, "--out", saved)):
            p = run(*args)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertNotIn("secret", p.stdout + p.stderr)
        self.assertNotIn(b"secret", saved.read_bytes())

    def test_launches_and_steps(self):
        """Every kernel of the corpus has its launch; ranges that repeat are steps."""
        corpus = pathlib.Path(CORPUS, KIND)
        p = run("sql", corpus / "rodinia-gaussian-report5.sqlite", "--csv",
                "SELECT count(*) FROM link WHERE kind='launch'")
        if p.returncode == 0:  # without DuckDB there is no SQL
            self.assertEqual(p.stdout.split()[-1], str(8190 + 6))
        p = run("steps", corpus / "centerformer-baseline.sqlite", "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(len({row["step"] for row in json.loads(p.stdout)["rows"]}), 304)

    def report(self, name, path):
        p = run("nsys-stats", name, "--csv", path)
        self.assertEqual(p.returncode, 0, p.stderr)
        return list(csv.reader(io.StringIO(p.stdout)))

    def test_reports(self):
        """Sums of nsys-stats against the same in Python, of the tables themselves."""
        queries = {
            "cuda_gpu_kern_sum": "SELECT s.value, end - start FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds s ON s.id = demangledName",
            "cuda_api_sum": "SELECT CASE WHEN substr(s.value, -6, 2) = '_v' THEN substr(s.value, 1, length(s.value) - 6) ELSE "
                            "s.value END, end - start FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds s ON s.id = nameId WHERE eventClass < 2",
            "osrt_sum": "SELECT s.value, end - start FROM OSRT_API JOIN StringIds s ON s.id = nameId WHERE eventClass = 27",
        }
        for path in files():
            db = sqlite3.connect(f"file:{pathlib.Path(CORPUS, path)}?mode=ro&immutable=1", uri=True)
            for name, query in queries.items():
                times = {}
                try:
                    for text, dur in db.execute(query):
                        times.setdefault(text, []).append(dur)
                except sqlite3.OperationalError:
                    continue  # no such table
                total = sum(sum(t) for t in times.values())
                want = [["%.1f" % (100 * sum(t) / total), str(sum(t)), str(len(t)), "%.1f" % statistics.fmean(t),
                         "%.1f" % statistics.median(t), str(min(t)), str(max(t)),
                         "%.1f" % (statistics.stdev(t) if len(t) > 1 else 0), text]
                        for text, t in sorted(times.items(), key=lambda item: (-sum(item[1]), item[0].encode()))]
                with self.subTest(path=path, report=name):
                    self.assertEqual(self.report(name, pathlib.Path(CORPUS, path))[1:], want)
            db.close()

    def refused(self, name, content, *words):
        path = self.folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            db = sqlite3.connect(path)
            db.executescript(content)
            db.commit()
            db.close()
        p = run("info", path)
        self.assertEqual(p.returncode, 1, name)
        for word in words:
            self.assertIn(word, p.stderr)

    def test_others_are_refused_by_name(self):
        self.refused("r.nsys-rep", b"NVIDIA Tegra Profiler Report 2024@1@1@0-0v0.\n\x0bLocal",
                     "nsys export --type sqlite", "r.nsys-rep")
        self.refused("dlprof.sqlite", "CREATE TABLE read_only_kernels (a); CREATE TABLE x (b);", "DLProf")
        self.refused("rocpd.db", "CREATE TABLE rocpd_kernelapi (a);", "ROCm")
        self.refused("other.db", "CREATE TABLE bookmarks (a);", "bookmarks")
        self.refused("view.db", "CREATE TABLE bookmarks (a); CREATE VIEW NVTX_EVENTS AS SELECT 1 AS start;", "bookmarks")


if __name__ == "__main__":
    if not CORPUS:
        print("OPWATCH_CORPUS is not set: skipped")
        sys.exit(77)
    unittest.main()
