"""DuckDB through ctypes, for tests that read what opwatch wrote: the library is the one beside the binary.

    db = duckdb_lib.open_library()       None when there is no library
    rows = db.query("SELECT 1, 'a'")     lists of texts, None for NULL
"""
import ctypes
import os
import pathlib


class Result(ctypes.Structure):
    _fields_ = [("columns", ctypes.c_uint64), ("rows", ctypes.c_uint64), ("changed", ctypes.c_uint64),
                ("deprecated", ctypes.c_void_p), ("error", ctypes.c_char_p), ("internal", ctypes.c_void_p)]


class Database:
    def __init__(self, path):
        self.lib = ctypes.CDLL(str(path))
        for name in ("duckdb_value_varchar", "duckdb_result_error", "duckdb_column_name"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.lib.duckdb_row_count.restype = self.lib.duckdb_column_count.restype = ctypes.c_uint64
        self.db, self.connection = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.lib.duckdb_open(None, ctypes.byref(self.db)) == 0
        assert self.lib.duckdb_connect(self.db, ctypes.byref(self.connection)) == 0

    def query(self, text):
        result = Result()
        failed = self.lib.duckdb_query(self.connection, text.encode(), ctypes.byref(result))
        if failed:
            message = ctypes.string_at(self.lib.duckdb_result_error(ctypes.byref(result))).decode()
            self.lib.duckdb_destroy_result(ctypes.byref(result))
            raise RuntimeError(message)
        rows = self.lib.duckdb_row_count(ctypes.byref(result))
        columns = self.lib.duckdb_column_count(ctypes.byref(result))
        found = []
        for row in range(rows):
            cells = []
            for column in range(columns):
                value = self.lib.duckdb_value_varchar(ctypes.byref(result), ctypes.c_uint64(column), ctypes.c_uint64(row))
                cells.append(None if not value else ctypes.string_at(value).decode())
                self.lib.duckdb_free(ctypes.c_void_p(value))
            found.append(cells)
        self.lib.duckdb_destroy_result(ctypes.byref(result))
        return found


def open_library():
    beside = pathlib.Path(os.environ.get("OPWATCH_BIN", "build/release/opwatch")).parent / "libduckdb.so"
    return Database(beside) if beside.exists() else None
