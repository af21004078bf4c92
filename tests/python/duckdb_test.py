#!/usr/bin/python3
"""Results through Arrow's stream into DuckDB's arrow scan, asked there, and compared with the rows themselves.

Needs libduckdb.so: in OPWATCH_DUCKDB, beside the build, or where the linker looks; skipped without.
"""
import ctypes
import os
import pathlib
import sys
import unittest

import opwatch

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", ".")).resolve()
SAMPLE = ROOT / "samples/resnet.profile"
TRACE = ROOT / "tests/fuzz/seeds/trace/kineto.json"


def find_duckdb():
    build = os.environ.get("OPWATCH_BUILD", str(ROOT / "build/release"))
    for path in (os.environ.get("OPWATCH_DUCKDB"), os.path.join(build, "libduckdb.so"), "libduckdb.so"):
        if path:
            try:
                return ctypes.CDLL(path)
            except OSError:
                pass
    return None


class DuckDB:
    """As much of DuckDB's C interface as is needed here."""

    def __init__(self, library):
        self.library = library
        self.database, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
        library.duckdb_arrow_scan.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        library.duckdb_value_varchar.restype = ctypes.c_void_p
        library.duckdb_value_varchar.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]
        library.duckdb_row_count.restype = library.duckdb_column_count.restype = ctypes.c_uint64
        library.duckdb_result_error.restype = ctypes.c_char_p
        library.duckdb_free.argtypes = [ctypes.c_void_p]
        assert library.duckdb_open(None, ctypes.byref(self.database)) == 0
        assert library.duckdb_connect(self.database, ctypes.byref(self.connection)) == 0

    def close(self):
        self.library.duckdb_disconnect(ctypes.byref(self.connection))
        self.library.duckdb_close(ctypes.byref(self.database))

    def scan(self, name, result):
        capsule = result.__arrow_c_stream__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        state = self.library.duckdb_arrow_scan(self.connection, name.encode(), get(capsule, b"arrow_array_stream"))
        assert state == 0, "arrow scan"
        return capsule  # the view reads it later

    def rows(self, sql):
        result = ctypes.create_string_buffer(256)
        try:
            if self.library.duckdb_query(self.connection, sql.encode(), result):
                raise AssertionError(self.library.duckdb_result_error(result))
            columns = self.library.duckdb_column_count(result)
            return [tuple(self.text(result, c, r) for c in range(columns))
                    for r in range(self.library.duckdb_row_count(result))]
        finally:
            self.library.duckdb_destroy_result(result)

    def text(self, result, column, row):
        pointer = self.library.duckdb_value_varchar(result, column, row)
        if not pointer:
            return None
        value = ctypes.string_at(pointer).decode()
        self.library.duckdb_free(pointer)
        return value


def as_text(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class ArrowScan(unittest.TestCase):
    def setUp(self):
        self.duckdb = DuckDB(LIBRARY)
        self.addCleanup(self.duckdb.close)

    def test_every_view(self):
        for path in (SAMPLE, TRACE):
            profile = opwatch.open(path)
            results = [profile.advise()] + [profile.view(name) for name, _, _ in opwatch.views()
                                            if name != "code" or profile.has_code]
            for number, result in enumerate(results):
                if not result.columns or not len(result):
                    continue
                with self.subTest(path=path.name, view=result.view):
                    table = "t%d_%s" % (number, path.stem)
                    kept = self.duckdb.scan(table, result)
                    got = self.duckdb.rows("SELECT * FROM %s" % table)
                    del kept
                    self.assertEqual(len(got), len(result))
                    for theirs, ours in zip(got, result):
                        for column, a, b in zip(result.schema, theirs, ours):
                            if column.type == "real" and b is not None:
                                self.assertAlmostEqual(float(a), b, delta=abs(b) * 1e-9)
                            else:
                                self.assertEqual(a, as_text(b), column.name)

    def test_asking(self):
        result = opwatch.open(SAMPLE).op()
        kept = self.duckdb.scan("ops", result)
        self.assertEqual(self.duckdb.rows("SELECT sum(micros), count(*), max(name) FROM ops"),
                         [(str(sum(result["micros"])), str(len(result)), max(result["name"]))])
        del kept, result  # DuckDB has given back what it took


LIBRARY = find_duckdb()

if __name__ == "__main__":
    if not LIBRARY:
        print("libduckdb.so was not found")
        sys.exit(77)
    unittest.main()
