#!/usr/bin/python3
"""bench/ranks_on.py OPWATCH [RANKS STEPS COLLECTIVES]: what `opwatch ranks --on` costs: rows and bytes on the server, seconds of the comparison.

A small simulated job is pushed; the rows of its ranks are then repeated on the server (INSERT SELECT) with other numbers, ranks, steps and times, until there are
RANKS × STEPS × COLLECTIVES collectives. Bytes are those of the parts on disk after merging. The comparison reads at most one million collectives, so that
its time here does not grow beyond; what the server adds up does. docs/ranks.md has the result."""
import json
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
sys.path.insert(0, os.path.join(ROOT, "tests"))
from support import clickhouse, jobsim  # noqa: E402

BIN = sys.argv[1]
RANKS, STEPS, CALLS = (int(x) for x in (sys.argv[2:5] or ("250", "200", "20")))
ENV = {**os.environ, "OPWATCH_CLICKHOUSE_PASSWORD": clickhouse.PASSWORD}
STEP_NS = 20_000_000


def repeat(server, table, source, replaced, numbers):
    """Rows of one rank, step or call of the small job, with `replaced` columns, once for each of `numbers`."""
    columns = [line.split("\t")[0] for line in server.ask(f"DESCRIBE TABLE big.opwatch_{table}").splitlines()]
    replaced = {**replaced, "run": "'large'"}
    values = ", ".join(replaced.get(c, f"`{c}`") for c in columns)
    server.ask(f"INSERT INTO big.opwatch_{table} SELECT {values} FROM (SELECT * FROM big.opwatch_{table} WHERE {source} LIMIT 1) "
               f"CROSS JOIN (SELECT number AS n FROM system.numbers LIMIT {numbers})", timeout=3600, max_execution_time=3600)


def main():
    with tempfile.TemporaryDirectory() as folder, clickhouse.Cluster(1) as (server,):
        job = jobsim.simulate(jobsim.Shape(seed=1, ranks=2, steps=6, layers=3, buckets=1, overlap=False, world_bytes=4 << 20))
        paths = []
        for rank in job:
            paths.append(f"{folder}/{rank.rank}.json")
            with open(paths[-1], "w", encoding="utf-8") as file:
                json.dump(jobsim.trace(rank), file)
        server.ask("CREATE DATABASE big")
        subprocess.run([BIN, "push", *paths, "--to", server.url("big"), "--name", "small", "--table", "job_rank,job_step,job_collective,job_op"],
                       check=True, env=ENV, stdout=subprocess.DEVNULL)
        begin = time.monotonic()
        repeat(server, "job_rank", "number = 0", {"number": "toInt64(1000 + n)", "rank": "toInt64(1000 + n)", "world_size": f"toInt64({RANKS})",
                                                    "fingerprint": "toInt64(n)"}, RANKS)
        at = f"1700000000000000000 + toInt64(intDiv(n, {RANKS})) * {STEP_NS}"
        jitter = "toInt64(cityHash64(n) % 200000)"
        repeat(server, "job_step", "number = 0 AND used_as = 'steady'", {
            "number": f"toInt64(1000 + n % {RANKS})", "rank": f"toInt64(1000 + n % {RANKS})", "step": f"toInt64(intDiv(n, {RANKS}))", "start": at,
            "dur": f"toInt64({STEP_NS})", "compute_share": f"toInt64(15000000 + {jitter})"}, RANKS * STEPS)
        call = f"intDiv(n, {RANKS})"
        begin_call = f"1700000000000000000 + toInt64({call}) * {STEP_NS // CALLS}"
        repeat(server, "job_collective", "number = 0", {
            "number": f"toInt64(1000 + n % {RANKS})", "rank": f"toInt64(1000 + n % {RANKS})", "step": f"toInt64(intDiv({call}, {CALLS}))", "seq": f"toInt64({call})",
            "ts": f"{begin_call} + {jitter}", "dur": f"toInt64(400000) - {jitter}", "ready_ts": f"{begin_call} + {jitter}", "group_size": f"toInt64({RANKS})",
            "pair_key": f"toInt64({call})"}, RANKS * STEPS * CALLS)
        inserted = time.monotonic() - begin
        for table in ("job_rank", "job_step", "job_collective"):
            server.ask(f"OPTIMIZE TABLE big.opwatch_{table} FINAL", timeout=3600)
        print(f"{RANKS} ranks × {STEPS} steps × {CALLS} collectives, inserted in {inserted:.1f} s")
        for line in server.ask("SELECT table, sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'big' AND table LIKE 'opwatch_job%' "
                               "GROUP BY table ORDER BY table").splitlines():
            table, rows, size = line.split("\t")
            print(f"{table}: {rows} rows, {size} bytes, {int(size) / int(rows):.1f} bytes per row")
        for name, text in (("count", "SELECT count() FROM big.job_collective WHERE 1"),
                           ("steps", "SELECT count() FROM (SELECT step, count() AS n, sum(used_as = 'steady') AS s FROM big.job_step GROUP BY step)"),
                           ("waits by rank", "SELECT count(), sum(w) FROM (SELECT m.1 AS r, sum(last - m.2) AS w FROM (SELECT max(ts) AS last, groupArray((rank, ts)) AS ms "
                            "FROM big.job_collective GROUP BY pair_key) ARRAY JOIN ms AS m GROUP BY r)")):
            begin = time.monotonic()
            try:
                answer = server.ask(text, timeout=3600).strip()
            except clickhouse.Refused as refused:
                answer = str(refused)[:200]
            print(f"server, {name}: {time.monotonic() - begin:.2f} s ({answer})")
        begin = time.monotonic()
        done = subprocess.run(["/usr/bin/time", "-f", "%M kB", BIN, "ranks", "--on", server.url("big"), "large", "--json"], env=ENV, capture_output=True, text=True, check=False)
        print(f"ranks --on: {time.monotonic() - begin:.1f} s, {done.stderr.strip()[-200:]}")
        if not done.returncode:
            found = json.loads(done.stdout)
            print({k: found[k] for k in ("clock", "blame", "steps_on_server", "steps_added_on_server", "collectives_paired")}, len(found["rows"]))


main()
