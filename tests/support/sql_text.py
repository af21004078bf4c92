"""sql_text.py: asking opwatch in SQL from tests; skips (status 77) when there is no DuckDB."""
import json
import os
import subprocess
import sys

BIN = os.environ.get("OPWATCH_BIN", "build/release/opwatch")


def run(*words, status=0, stdin=""):
    done = subprocess.run([BIN, "sql", *map(str, words)], text=True, capture_output=True, input=stdin)
    assert done.returncode == status, f"{words}: status {done.returncode}: {done.stderr}"
    return done


def rows(*words):
    """The rows of a query as dictionaries."""
    text = run("--json", *words).stdout
    return json.loads(text)["rows"] if text else []


def why_not(sample):
    """Why there is no SQL here, or nothing."""
    done = subprocess.run([BIN, "sql", sample, "SELECT 1"], text=True, capture_output=True)
    return done.stderr.strip() if "SQL needs DuckDB" in done.stderr or "built without SQL" in done.stderr else ""


def need_duckdb(sample):
    reason = why_not(sample)
    if reason:
        print("skipped:", reason)
        sys.exit(77)
