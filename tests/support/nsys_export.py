"""Writes SQLite databases as Nsight Systems exports them, of any size: for the fuzzer's seeds, tests and measurements.

    nsys_export.py FILE [--launches N] [--page-size BYTES] [--old]

A program with two processes, two devices and some threads launches N kernels from steps that are marked with NVTX. The
tables and columns are those of schema 3; --old gives those of schema 2, in which ranges have their text themselves, MPI
is a domain of NVTX, and much is missing. tests/fuzz/seeds/nsys was written by this with --launches 6 --page-size 512.
"""
import argparse
import os
import sqlite3

EPOCH = 1_700_000_000_000_000_000
MACHINE = 1 << 48
DEVICE_COLUMNS = "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, correlationId INTEGER, " \
    "globalPid INTEGER"
SCHEMA = f"""
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE ProcessStreams (globalPid INTEGER NOT NULL, filenameId INTEGER NOT NULL, contentId INTEGER NOT NULL);
CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT, nameEnum INTEGER, value TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER NOT NULL, name TEXT, totalMemory INTEGER, memoryBandwidth INTEGER,
    clockRate INTEGER, smCount INTEGER, cuDevice INTEGER);
CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({DEVICE_COLUMNS}, demangledName INTEGER, shortName INTEGER, mangledName INTEGER,
    launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
    blockX INTEGER, blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER,
    localMemoryPerThread INTEGER, localMemoryTotal INTEGER, gridId INTEGER, sharedMemoryExecuted INTEGER,
    graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY ({DEVICE_COLUMNS}, bytes INTEGER, copyKind INTEGER, deprecatedSrcId INTEGER,
    srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER,
    dstContextId INTEGER, migrationCause INTEGER, graphNodeId INTEGER, virtualAddress INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET ({DEVICE_COLUMNS}, value INTEGER, bytes INTEGER, graphNodeId INTEGER,
    memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION ({DEVICE_COLUMNS}, syncType INTEGER, eventId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER, returnValue INTEGER, callchainId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, color INTEGER,
    text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
    int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
    jsonText TEXT);
CREATE TABLE OSRT_API (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, nameId INTEGER,
    returnValue INTEGER, nestingLevel INTEGER, callchainId INTEGER);
"""
NEW = f"""
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE ({DEVICE_COLUMNS}, graphId INTEGER, graphExecId INTEGER);
CREATE TABLE CUDNN_EVENTS (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, nameId INTEGER);
CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER);
CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, textId INTEGER, commHandle INTEGER,
    rootRank INTEGER, size INTEGER, recvSize INTEGER);
CREATE TABLE PROFILER_OVERHEAD (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER, returnValue INTEGER);
CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER, isSchedIn INTEGER, globalTid INTEGER);
CREATE TABLE COMPOSITE_EVENTS (id INTEGER, start INTEGER, cpu INTEGER, threadState INTEGER, globalTid INTEGER,
    cpuCycles INTEGER);
CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, kernelMode INTEGER, thumbCode INTEGER,
    unresolved INTEGER, specialEntry INTEGER, originalIP INTEGER, unwindMethod INTEGER, stackDepth INTEGER);
CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, unresolved INTEGER, originalIP INTEGER,
    stackDepth INTEGER);
CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId INTEGER, contextId INTEGER,
    address INTEGER, pc INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER, name TEXT,
    correlationId INTEGER);
CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, sourceId INTEGER, typeName TEXT, metricId INTEGER, metricName TEXT);
CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value INTEGER);
"""


class Export:
    def __init__(self, path, old=False, page_size=4096):
        if os.path.exists(path):
            os.unlink(path)
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute(f"PRAGMA page_size={page_size}")
        self.db.execute("PRAGMA journal_mode=OFF")
        self.db.execute("PRAGMA synchronous=OFF")
        self.db.executescript(SCHEMA + ("" if old else NEW))
        self.db.execute("BEGIN")
        self.strings = {}
        self.old = old
        self.pending = {}

    def string(self, text):
        if text not in self.strings:
            self.strings[text] = len(self.strings)
            self.add("StringIds", (self.strings[text], text))
        return self.strings[text]

    def add(self, table, row):
        rows = self.pending.setdefault(table, [])
        rows.append(row)
        if len(rows) >= 20000:
            self.flush(table)

    def flush(self, table):
        rows = self.pending.get(table)
        if rows:
            marks = ",".join("?" * len(rows[0]))
            self.db.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            rows.clear()

    def close(self):
        for table in self.pending:
            self.flush(table)
        self.db.execute("COMMIT")
        self.db.close()


def pad(row, width):
    return (*row, *(None,) * (width - len(row)))


def describe(x, processes):
    x.add("TARGET_INFO_SESSION_START_TIME", (EPOCH, "2023-11-14T22:13:20", "2023-11-14T22:13:20"))
    x.add("EXPORT_META_DATA", ("EXPORT_PRODUCT_VERSION", "2022.1.3.3" if x.old else "2023.2.3.1001"))
    x.add("EXPORT_META_DATA", ("EXPORT_SCHEMA_VERSION", "2.9.1" if x.old else "3.1.7"))
    for name, value in (("CpuCores", "8"), ("Hostname", "private"), ("EnvVars", "TOKEN=private")):
        x.add("TARGET_INFO_SYSTEM_ENV", (MACHINE, "", name, 0, value))
    for i in range(2):
        x.add("TARGET_INFO_GPU", (MACHINE, i, "NVIDIA A100-SXM4-40GB", 42297524224, 1555200000000, 1410000000, 108, i))
    for pid in processes:
        x.add("PROCESSES", (MACHINE | pid << 24, pid, f"./train{pid}"))
    x.add("PROCESSES", (MACHINE | 1 << 24, 1, "systemd"))
    x.add("ProcessStreams", (MACHINE | processes[0] << 24, x.string("stdout"), x.string("what the program printed")))


class Process:
    """One process: a thread that launches, and one that waits."""

    def __init__(self, x, pid, device):
        self.x, self.device = x, device
        self.pid = MACHINE | pid << 24
        self.main, self.other = self.pid | pid, self.pid | pid + 1
        self.now, self.number = 1_000_000 + device * 777, 100
        self.kernels = [x.string(f"void kernel_{i}<float, {i}>(float const*, float*, int)") for i in range(40)]
        self.short = [x.string(f"kernel_{i}") for i in range(40)]
        self.launch, self.copy = x.string("cudaLaunchKernel_v7000"), x.string("cudaMemcpyAsync_v3020")
        self.sync, self.poll = x.string("cudaStreamSynchronize_v3020"), x.string("poll")
        self.words = {}
        x.add("ThreadNames", (x.string("main"), 20, self.main))
        if x.old:
            x.add("NVTX_EVENTS", pad((0, None, 75, None, None, None, "MPI", self.main, None, None, 1), 19))
            x.add("NVTX_EVENTS", pad((0, None, 39, None, None, None, f"MPI Rank {device}", self.main), 19))
        else:
            x.add("MPI_RANKS", (self.main, device))

    def call(self, name, dur, kind=0):
        self.number += 1
        start = self.now
        self.x.add("CUPTI_ACTIVITY_KIND_RUNTIME", (start, start + dur, kind, self.main, self.number, name, 0, None))
        self.now += dur + 400
        return start, self.number

    def range(self, start, text, domain=0):
        text_id = None if self.x.old else self.x.string(text)
        self.x.add("NVTX_EVENTS", pad((start, self.now, 59, None, None, None, text if self.x.old else None, self.main, None,
                                       text_id, domain), 19))

    def kernel(self, i):
        start, number = self.call(self.launch, 4000 + i % 7 * 100)
        k = i % 40
        self.x.add("CUPTI_ACTIVITY_KIND_KERNEL",
                   (start + 3000, start + 3000 + 2500 + i % 11 * 90, self.device, 1, 7 + i % 3, number, self.pid,
                    self.kernels[k], self.short[k], self.short[k], 1, 0, 32, 108, 1, 1, 256, 1, 1, 0, 1024, 0, 0, i, 16384,
                    None, 0))

    def copies(self, i):
        start, number = self.call(self.copy, 6000)
        self.x.add("CUPTI_ACTIVITY_KIND_MEMCPY", pad((start + 4000, start + 9000, self.device, 1, 7, number, self.pid,
                                                      1 << 20, 1 + i % 2, None, i % 2 * 2, 2 - i % 2 * 2), 19))
        self.x.add("CUPTI_ACTIVITY_KIND_MEMSET", (start + 9500, start + 9900, self.device, 1, 7, number, self.pid, 0, 4096,
                                                  None, 2))

    def wait(self):
        start, number = self.call(self.sync, 9000)
        self.x.add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", (start + 100, start + 8900, self.device, 1, 7, number, self.pid, 3,
                                                           4294967295))
        self.x.add("OSRT_API", (start, start + 8000, 27, self.other, self.poll, 0, 0, None))

    def step(self, number, launches):
        begin = self.now
        self.copies(number)
        self.range(begin, "load")
        for i in range(launches):
            self.kernel(number * launches + i)
        self.wait()
        sent = self.now
        self.now += 5000
        if self.x.old:
            self.range(sent, "MPI_Allreduce", 1)
        else:
            self.x.add("MPI_COLLECTIVES_EVENTS", (sent, self.now, self.main, self.x.string("MPI_Allreduce"), 1, 0, 4096, 0))
        self.range(begin, f"step {number}")
        self.now += 1000


def rare_tables(x, p):
    """A few rows of what only some recordings have."""
    main = p.main
    x.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", (p.now, p.now + 5000, 0, 1, 7, 9000, p.pid, 3, 4))
    x.add("CUDNN_EVENTS", (p.now, p.now + 50, 63, main, x.string("cudnnCreate")))
    x.add("PROFILER_OVERHEAD", (500, 900, main, x.string("CUPTI buffer flush"), 0))
    x.add("CUPTI_ACTIVITY_KIND_RUNTIME", (p.now, p.now + 20, 67, main, p.number, x.string("cudaStreamSynchronize"), 0, 1))
    x.add("NVTX_EVENTS", pad((400, None, 34, None, None, None, "begin", main), 19))
    x.add("NVTX_EVENTS", pad((450, 999999, 60, 7, None, None, "anywhere", main), 19))
    x.add("NVTX_EVENTS", pad((460, None, 59, None, None, None, "open", main), 19))
    for i, text in enumerate(("{'traceMarker': ['train.py:12', 'model.py:7'], 'funcStack': '/<module>/forward'}",
                              "{'mod': 'torch', 'op': 'mm', 'args': [{'shape': (2, 3)}]}", "aten::mm, seq = 3, sizes = [[2, 3]]")):
        x.add("NVTX_EVENTS", pad((900 + i, 990 - i, 59, None, None, None, text, main), 19))
    for depth, symbol in enumerate(("leaf", "caller", "main")):
        x.add("CUDA_CALLCHAINS", (1, x.string(symbol), x.string("libx.so"), None, 4096, depth))
        x.add("SAMPLING_CALLCHAINS", pad((1, x.string(symbol), x.string("libx.so"), None, None, None, None, 4096, 7, depth), 10))
    for i in range(4):
        x.add("SCHED_EVENTS", (1000 + i * 100, 2, 1 - i % 2, main))
        x.add("COMPOSITE_EVENTS", (1, 1000 + i * 100, 2, 1, main, 1))
    for i in range(2):
        x.add("CUDA_GPU_MEMORY_USAGE_EVENTS", (1000 + i, p.pid, 0, 1, 65536, 0, 1 << 20, 2, i, None, 0))
    x.add("TARGET_INFO_GPU_METRICS", (1 << 40, 0, "A100", 5, "SM Active [Throughput %]"))
    x.add("GPU_METRICS", (2000, 1 << 40, 5, 63))


def write(path, launches=1000, page_size=4096, old=False):
    x = Export(path, old, page_size)
    processes = [Process(x, 5000 + 100 * i, i) for i in range(2)]
    describe(x, [5000, 5100])
    per_step = max(1, min(500, launches // 6))
    for number in range(launches // per_step // 2 or 1):
        for p in processes:
            p.step(number, per_step)
    if not old:
        rare_tables(x, processes[0])
    x.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--launches", type=int, default=1000)
    parser.add_argument("--page-size", type=int, default=4096)
    parser.add_argument("--old", action="store_true")
    args = parser.parse_args()
    write(args.file, args.launches, args.page_size, args.old)


if __name__ == "__main__":
    main()
