"""
jobsim.py: simulates training jobs on accelerators and writes what PyTorch's profiler would have recorded.

A discrete-event simulation: each rank has a host thread, an autograd thread, loader processes, a launch queue and
streams of one device; collectives end on all ranks together. A job is described by `Shape`; a fault changes the
description, never the trace. The true saving of a fault is the measured step of the job with it less that of the same
job without it, with the same random numbers: nothing in this file knows how opwatch finds or judges a fault.

Used by the tests of advice, of what-if and of ranks. Times are integer nanoseconds.
"""
import copy
import heapq
import json
import random
import statistics

US = 1000
MS = 1000 * US


class Shape:
    """What a job does. Every duration is of one occurrence, before noise."""

    def __init__(self, **changes):
        self.seed = 0
        self.ranks = 1
        self.steps = 12
        self.warmup = 2  # steps that are longer because things are made on first use
        self.warmup_cost = 60 * MS
        self.layers = 24
        self.noise = 0.02  # sigma of the logarithm of durations
        self.op_host = 18 * US  # an operator on the host, with its launch
        self.python_gap = 6 * US  # between operators
        self.launch = 5 * US
        self.launch_latency = 4 * US
        self.queue = 1000  # launches that may wait before the host does
        self.kernel = 220 * US
        self.kernels_per_layer = 1
        self.kernel_name = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"
        self.pointwise = 0  # small kernels after each layer, a chain on the same tensor
        self.pointwise_kernel = 9 * US
        self.layout = 0  # copies into another layout, per layer
        self.layout_kernel = 40 * US
        self.backward = 2.0  # times the forward kernels
        self.optimizer_kernels = 4
        self.optimizer_kernel = 150 * US
        self.loader_workers = 4
        self.loader_batch = 8 * MS  # of one worker
        self.prefetch = 2  # batches that each worker may have ready
        self.loader_on_main = False  # num_workers=0
        self.loader_take = 60 * US  # to take a batch that is ready
        self.copy_bytes = 8 << 20
        self.copy_rate = 20.0  # bytes per ns
        self.copy_pageable = False
        self.copy_stream = 7  # 7: the compute stream; another: beside it
        self.copy_ahead = False  # the batch of the next step is copied while this one computes
        self.copies_back = 0  # large copies to the host inside the step, blocking
        self.copy_back_bytes = 16 << 20
        self.items = 0  # .item() calls in the forward pass
        self.item_at_end = True  # the loss is read once per step
        self.mallocs = 0  # cudaMalloc and cudaFree per step, each waits for the device
        self.malloc = 900 * US
        self.host_work = 0  # Python code of the step, in one piece, before the forward pass
        self.host_work_name = "augment"
        self.cpu_op = 0  # duration of an operator that runs on the host, in the middle
        self.world_bytes = 0  # bytes of gradients; 0: no communication
        self.buckets = 4
        self.bus_rate = 80.0  # bytes per ns
        self.overlap = True  # buckets go out during the backward pass
        self.slow_rank = None  # (rank, factor of its kernels)
        self.pause_every = 0  # every n-th step the host stops for pause
        self.pause = 0
        self.pause_name = None  # None: nothing is recorded of it
        self.pause_parts = 0  # operators inside of the pause
        self.change_at = None  # (step, factor of kernels from there on)
        self.checks = 0  # layers after which aten::nonzero looks at the output, and the host waits for the answer
        self.check_kernel = 60 * US
        self.memory = 0  # bytes in use at the start of a step; 0: no memory events
        self.memory_growth = 0  # bytes that stay after each step
        self.memory_limit = 80 << 30
        self.micro = 0  # micro-batches: the ranks are stages of a pipeline, all forward, then all backward; 0: no pipeline
        self.stage_bytes = 4 << 20  # of one micro-batch between two stages
        self.small_messages = 0  # all-reduces of a few bytes per step, after the backward pass
        self.small_bytes = 4096  # of each
        self.message_latency = 25 * US  # of any collective, whatever its size
        self.layers_of = {}  # rank: layers, where it has more or fewer than the others
        self.init_calls = 0  # calls that programs make once, in every step: modules, streams
        self.init_call = 500 * US
        self.stages = []  # (name, ns): parts of loading a batch on the main thread, one after the other
        self.product = "aten::linear"
        self.dims = [[64, 1024], [1024, 1024]]  # of the products
        self.scale = []  # (text in the name of a kernel, factor of its duration)
        self.clock = {}  # rank: (offset ns, drift ppm)
        self.hip = False
        self.python_stack = False
        for name, value in changes.items():
            if not hasattr(self, name):
                raise AttributeError(name)
            setattr(self, name, value)

    def but(self, **changes):
        other = copy.deepcopy(self)
        for name, value in changes.items():
            if not hasattr(other, name):
                raise AttributeError(name)
            setattr(other, name, value)
        return other


class Rank:
    """One process and its device. `run` is a generator that stops at collectives."""

    def __init__(self, shape, rank):
        self.shape, self.rank = shape, rank
        self.events = []
        self.now = 1000 * MS
        self.streams = {}  # stream: when it is free
        self.waiting = []  # starts of launched work that has not begun, a heap
        self.correlation = 1000 * (rank + 1)
        self.external = 1
        self.tid = 100
        self.ready = []  # when batches are ready, in order
        workers = max(1, shape.loader_workers)
        self.worker_free = [self.now + i * shape.loader_batch // workers for i in range(workers)]
        self.taken = self.now
        self.step_starts = []
        self.step = 0
        self.random = {}
        self.collective = 0

    # ---- noise: the same for the same occurrence, whatever else the job does ----

    def noisy(self, duration, what):
        if not duration:
            return 0
        key = (self.step, what)
        self.random[key] = self.random.get(key, 0) + 1
        rng = random.Random(f"{self.shape.seed}/{self.rank}/{self.step}/{what}/{self.random[key]}")
        return max(1, int(duration * rng.lognormvariate(0, self.shape.noise)))

    # ---- what is recorded ----

    def record(self, cat, name, start, dur, tid=None, **args):
        self.events.append({"cat": cat, "name": name, "start": start, "dur": dur,
                            "tid": self.tid if tid is None else tid, "args": args})

    def op(self, name, host, dims=None):
        """An operator on the host: returns its event, of which the end is set by close()."""
        self.external += 1
        args = {"External id": self.external}
        if dims:
            args["Input Dims"] = dims
        e = {"cat": "cpu_op", "name": name, "start": self.now, "dur": 0, "tid": self.tid, "args": args}
        self.events.append(e)
        self.now += self.noisy(host, name)
        return e

    def close(self, e, rest=2 * US):
        self.now += rest
        e["dur"] = self.now - e["start"]

    def api(self, name):
        return name.replace("cuda", "hip") if self.shape.hip else name

    def call(self, name, duration, **args):
        self.correlation += 1
        e = {"cat": "cuda_runtime", "name": self.api(name), "start": self.now, "dur": duration, "tid": self.tid,
             "args": {"correlation": self.correlation, "External id": self.external, **args}}
        self.events.append(e)
        self.now += duration
        return e

    def device(self, cat, name, dur, stream, after=0, **args):
        """Work that the last call started."""
        start = max(self.now + self.shape.launch_latency, self.streams.get(stream, 0), after)
        self.streams[stream] = start + dur
        self.events.append({"cat": cat, "name": name, "start": start, "dur": dur, "stream": stream,
                            "args": {"device": self.rank % 8, "context": 1, "stream": stream,
                                     "correlation": self.correlation, "External id": self.external, **args}})
        heapq.heappush(self.waiting, start)
        return start, start + dur

    def queue_room(self):
        """The host waits inside of the launch when too many launches wait."""
        while self.waiting and self.waiting[0] <= self.now:
            heapq.heappop(self.waiting)
        if len(self.waiting) >= self.shape.queue:
            over = len(self.waiting) - self.shape.queue
            for _ in range(over):
                heapq.heappop(self.waiting)
            return max(0, heapq.heappop(self.waiting) - self.now)
        return 0

    def kernel(self, name, dur, stream=7, after=0, **args):
        wait = self.queue_room()
        self.call("cudaLaunchKernel", self.noisy(self.shape.launch, "launch") + wait)
        dur = self.noisy(dur * self.speed(), name)
        for text, factor in self.shape.scale:
            if text in name:
                dur = max(1, int(dur * factor))
        return self.device("kernel", name, dur, stream, after, grid=[640, 1, 1], block=[256, 1, 1], **args)

    def speed(self):
        factor = 1.0
        if self.shape.slow_rank and self.shape.slow_rank[0] == self.rank:
            factor *= self.shape.slow_rank[1]
        if self.shape.change_at and self.step >= self.shape.change_at[0]:
            factor *= self.shape.change_at[1]
        return factor

    def sync(self, name="cudaStreamSynchronize", stream=None):
        if stream is None:
            busy = max(self.streams.values(), default=0)
        else:
            busy = self.streams.get(stream, 0)
        self.call(name, max(0, busy - self.now) + 2 * US)

    # ---- parts of a step ----

    def load_batch(self):
        s = self.shape
        start = self.now
        if s.loader_on_main:
            name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
            for stage, duration in s.stages:
                begin = self.now
                self.now += self.noisy(duration, stage)
                self.record("user_annotation", stage, begin, self.now - begin)
            self.now += self.noisy(s.loader_batch, "loader")
        else:
            name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
            # A worker begins the next batch when one of its places is free.
            while len(self.ready) < s.prefetch * s.loader_workers:
                w = min(range(len(self.worker_free)), key=lambda i: self.worker_free[i])
                self.worker_free[w] = max(self.worker_free[w], self.taken)
                self.worker_free[w] += self.noisy(s.loader_batch, "loader")
                heapq.heappush(self.ready, self.worker_free[w])
            self.now = max(self.now, heapq.heappop(self.ready)) + s.loader_take
            self.taken = self.now
        self.record("user_annotation", name, start, self.now - start)

    def copy_in(self):
        s = self.shape
        if not s.copy_bytes:
            return 0
        to = self.op("aten::to", 3 * US)
        cp = self.op("aten::copy_", 4 * US)
        duration = int(s.copy_bytes / s.copy_rate)
        kind = "Pageable" if s.copy_pageable else "Pinned"
        call = self.call("cudaMemcpyAsync", 6 * US)
        _, end = self.device("gpu_memcpy", f"Memcpy HtoD ({kind} -> Device)", duration, s.copy_stream,
                             bytes=s.copy_bytes)
        if s.copy_pageable:
            call["dur"] = max(call["dur"], end - call["start"])
            self.now = call["start"] + call["dur"]
            self.sync("cudaStreamSynchronize", s.copy_stream)
        self.close(cp)
        self.close(to)
        return end

    def item(self):
        e = self.op("aten::item", 2 * US)
        d = self.op("aten::_local_scalar_dense", 3 * US)
        self.call("cudaMemcpyAsync", 6 * US)
        self.device("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 1500, 7, bytes=4)
        self.sync("cudaStreamSynchronize", 7)
        self.close(d)
        self.close(e)

    def check(self):
        e = self.op("aten::nonzero", 4 * US)
        self.kernel("void at_cuda_detail::cub::DeviceSelectSweepKernel(int)", self.shape.check_kernel)
        self.call("cudaMemcpyAsync", 6 * US)
        self.device("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 1500, 7, bytes=4)
        self.sync("cudaStreamSynchronize", 7)
        self.close(e)

    def memory_event(self, nbytes, total):
        self.events.append({"cat": "cpu_instant_event", "name": "[memory]", "start": self.now, "dur": 0, "tid": self.tid,
                            "args": {"Total Allocated": total, "Total Reserved": min(self.shape.memory_limit, int(total * 1.05)),
                                     "Bytes": nbytes, "Addr": 0x7f0000000000 + 512 * len(self.events), "Device Id": self.rank % 8,
                                     "Device Type": 1}})

    def malloc(self):
        e = self.op("aten::empty", 2 * US)
        # Both wait for the device; cudaFree does before it frees.
        busy = max(self.streams.values(), default=0)
        self.call("cudaFree", max(0, busy - self.now) + self.noisy(self.shape.malloc, "free"))
        self.call("cudaMalloc", self.noisy(self.shape.malloc, "malloc"))
        self.close(e)

    def layers(self):
        return self.shape.layers_of.get(self.rank, self.shape.layers)

    def layer(self, i, after):
        s = self.shape
        self.now += self.noisy(s.python_gap, "gap")
        e = self.op(s.product, s.op_host, s.dims)
        for _ in range(s.kernels_per_layer):
            self.kernel(s.kernel_name, s.kernel / s.kernels_per_layer, after=after)
        self.close(e)
        for k in range(s.layout):
            e = self.op("aten::contiguous", 4 * US)
            c = self.op("aten::copy_", 4 * US)
            self.kernel("void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda>(int)", s.layout_kernel)
            self.close(c)
            self.close(e)
        for k in range(s.pointwise):
            e = self.op(("aten::mul", "aten::add", "aten::gelu", "aten::dropout")[k % 4], s.op_host * 0.5)
            self.kernel("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
                        s.pointwise_kernel)
            self.close(e)

    def communicate(self, key, ranks, nbytes, name, stream, op, kind):
        """Generator: some ranks meet in a message; its kernel is on a stream of its own."""
        s = self.shape
        e = self.op(op, 12 * US)
        ready = self.streams.get(7, 0)
        self.call("cudaLaunchKernel", self.noisy(s.launch, "launch"))
        start = max(self.now + s.launch_latency, ready, self.streams.get(stream, 0))
        transfer = self.noisy(nbytes / s.bus_rate, "bus") + (s.message_latency if key[0] != "bucket" else 0)
        end = yield (key, ranks, start, transfer)
        self.streams[stream] = end
        self.events.append({"cat": "kernel", "name": f"ncclDevKernel_{name}(ncclDevKernelArgsStorage<4096ul>)",
                            "start": start, "dur": end - start, "stream": stream,
                            "args": {"device": self.rank % 8, "context": 1, "stream": stream,
                                     "correlation": self.correlation, "External id": self.external,
                                     "Collective name": kind, "dtype": "Half", "Group size": ranks,
                                     "In msg nelems": int(nbytes) // 2,
                                     "Process Group Name": "0", "Seq": self.collective}})
        self.close(e)

    def reduce_bucket(self):
        """Generator: all ranks take part in one all-reduce on stream 20."""
        s = self.shape
        self.collective += 1
        yield from self.communicate(("bucket", self.collective), s.ranks, s.world_bytes / s.buckets, "AllReduce_Sum_f16_RING_LL", 20,
                                    "c10d::allreduce_", "allreduce")

    def reduce_small(self):
        """Generator: the messages depend on each other, as norms and counters do that are read by the next."""
        s = self.shape
        for _ in range(s.small_messages):
            self.collective += 1
            yield from self.communicate(("small", self.collective), s.ranks, s.small_bytes, "AllReduce_Sum_f16_RING_LL", 20,
                                        "c10d::allreduce_", "allreduce")

    # ---- stages of a pipeline ----

    def micro_batch(self, number, forward):
        """Generator: receives, computes its layers, sends."""
        s = self.shape
        before, after = (self.rank - 1, self.rank + 1) if forward else (self.rank + 1, self.rank - 1)
        arrived = 0
        if 0 <= before < s.ranks:
            pair = (min(before, self.rank), max(before, self.rank))
            yield from self.communicate(("pair", self.step, number, forward, pair), 2, s.stage_bytes, "SendRecv", 21, "c10d::recv_", "recv")
            arrived = self.streams[21]
        for _ in range(self.layers()):
            e = self.op("aten::mm" if forward else "AddmmBackward0", s.op_host, s.dims)
            self.kernel(s.kernel_name, s.kernel * (1 if forward else s.backward), after=arrived)
            self.close(e)
        if 0 <= after < s.ranks:
            pair = (min(after, self.rank), max(after, self.rank))
            yield from self.communicate(("pair", self.step, number, forward, pair), 2, s.stage_bytes, "SendRecv", 22, "c10d::send", "send")

    def pipeline(self):
        for forward in (True, False):
            for number in range(self.shape.micro):
                yield from self.micro_batch(number, forward)

    def backward(self):
        s = self.shape
        main, self.tid = self.tid, 101
        self.now += 15 * US
        per_bucket = max(1, self.layers() // s.buckets)
        for i in range(self.layers()):
            e = self.op("autograd::engine::evaluate_function: AddmmBackward0", 6 * US)
            o = self.op("AddmmBackward0", s.op_host)
            self.kernel(s.kernel_name.replace("_tn", "_nt"), s.kernel * s.backward)
            self.close(o)
            self.close(e)
            if s.world_bytes and s.overlap and (i + 1) % per_bucket == 0 and (i + 1) // per_bucket <= s.buckets:
                yield from self.reduce_bucket()
        if s.world_bytes and not s.overlap:
            for _ in range(s.buckets):
                yield from self.reduce_bucket()
        if s.small_messages:
            yield from self.reduce_small()
        self.tid = main
        self.now += 10 * US

    def optimizer(self):
        s = self.shape
        start = self.now
        for k in range(s.optimizer_kernels):
            e = self.op("aten::_foreach_add_", s.op_host)
            self.kernel("void at::native::multi_tensor_apply_kernel<TensorListMetadata<1>>(int)", s.optimizer_kernel,
                        after=self.streams.get(20, 0))
            self.close(e)
        self.record("user_annotation", "Optimizer.step#SGD.step", start, self.now - start)

    def one_step(self, number):
        s = self.shape
        self.step = number
        start = self.now
        self.step_starts.append(start)
        if s.copy_ahead and number:
            arrived = self.arrived
        else:
            self.load_batch()
            arrived = self.copy_in()
        if number < s.warmup:
            e = self.op("aten::cudnn_init", 2 * US)
            for _ in range(6):
                self.call("cudaMalloc", s.warmup_cost // 12)
            self.call("cudaModuleLoadData", s.warmup_cost // 2)
            self.close(e)
        if s.pause_every and number and number % s.pause_every == 0:
            begin = self.now
            self.now += self.noisy(s.pause, "pause")
            for k in range(s.pause_parts):
                part = (self.now - begin) // s.pause_parts
                self.record("cpu_op", "aten::copy_", begin + k * part, part - 1)
            if s.pause_name:
                self.record("user_annotation", s.pause_name, begin, self.now - begin)
        if s.host_work:
            begin = self.now
            self.now += self.noisy(s.host_work, "host")
            if s.python_stack:
                self.record("python_function", f"train.py(40): {s.host_work_name}", begin, self.now - begin)
        for _ in range(s.init_calls):
            self.call("cudaModuleLoadData", self.noisy(s.init_call, "init"))
        if s.micro:
            yield from self.pipeline()
        else:
            self.forward(arrived if s.copy_stream != 7 else 0)
        if s.copy_ahead:
            self.load_batch()
            self.arrived = self.copy_in()
        if s.memory:
            self.use_memory()
        if not s.micro:
            yield from self.backward()
        self.optimizer()
        if s.item_at_end:
            self.item()
        self.now += 20 * US
        self.record("user_annotation", f"ProfilerStep#{number}", start, self.now - start)

    def forward(self, waits):
        s = self.shape
        places = {(k + 1) * s.layers // (s.items + 1) for k in range(s.items)}
        places_m = {(k + 1) * s.layers // (s.mallocs + 1) for k in range(s.mallocs)}
        for i in range(self.layers()):
            self.layer(i, waits)
            if i in places:
                self.item()
            if i in places_m:
                self.malloc()
            if i < s.checks:
                self.check()
            if s.cpu_op and i == s.layers // 2:
                self.sync("cudaStreamSynchronize", 7)
                e = self.op("aten::unique", 1)
                self.now += self.noisy(s.cpu_op, "cpu op")
                self.close(e)
        for _ in range(s.copies_back):
            e = self.op("aten::copy_", 4 * US)
            call = self.call("cudaMemcpyAsync", 6 * US)
            _, end = self.device("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)",
                                 int(s.copy_back_bytes / s.copy_rate), 7, bytes=s.copy_back_bytes)
            call["dur"] = max(call["dur"], end - call["start"])
            self.now = call["start"] + call["dur"]
            self.close(e)

    def use_memory(self):
        s = self.shape
        total = s.memory + s.memory_growth * self.step
        for k in range(4):
            self.memory_event(64 << 20, total + (k + 1) * (64 << 20))
        for k in range(4):
            self.memory_event(-(64 << 20), total + (3 - k) * (64 << 20))
        if s.memory_growth:
            self.memory_event(s.memory_growth, total + s.memory_growth)

    def run(self):
        for number in range(self.shape.steps):
            yield from self.one_step(number)
        self.step_starts.append(self.now)
        self.call("cudaDeviceSynchronize", max(0, max(self.streams.values(), default=0) - self.now) + 2 * US)


def simulate(shape):
    """All ranks, run side by side; a message ends for all who take part when the last has come and the data has moved."""
    ranks = [Rank(shape, r) for r in range(shape.ranks)]
    programs = [r.run() for r in ranks]
    meetings = {}  # key: [(rank, start, transfer)]
    ready = [(i, None) for i in range(len(programs))]
    while ready:
        i, end = ready.pop()
        try:
            key, size, start, transfer = programs[i].send(end)
        except StopIteration:
            continue
        here = meetings.setdefault(key, [])
        here.append((i, start, transfer))
        if len(here) == size:
            end = max(m[1] for m in here) + max(m[2] for m in here)
            ready += [(m[0], end) for m in meetings.pop(key)]
    assert not meetings, "ranks part ways"
    return ranks


def simulate_each(shapes):
    """As simulate, with a shape per rank; all ranks take part in every message."""
    ranks = [Rank(s, r) for r, s in enumerate(shapes)]
    programs = [r.run() for r in ranks]
    waiting = [next(p, None) for p in programs]
    while any(w is not None for w in waiting):
        end = max(w[2] for w in waiting) + max(w[3] for w in waiting)
        for i, p in enumerate(programs):
            try:
                waiting[i] = p.send(end)
            except StopIteration:
                waiting[i] = None
    return ranks


def step_times(ranks):
    """Durations of the steady steps, from the start of a step to that of the next, of the slowest rank each."""
    shape = ranks[0].shape
    out = []
    for k in range(shape.warmup, shape.steps - 1):
        out.append(max(r.step_starts[k + 1] - r.step_starts[k] for r in ranks))
    return out


def median_step(ranks):
    return statistics.median(step_times(ranks))


def mean_step(ranks):
    return statistics.mean(step_times(ranks))


def saving(bad, good, basis="median"):
    """What a step gets shorter when the fault is gone."""
    of = median_step if basis == "median" else mean_step
    return of(simulate(bad)) - of(simulate(good))


# ---- writing ----

class Missing:
    """What the profiler did not record."""

    def __init__(self, correlation=False, runtime=False, device=False, steps=False, fractions=False):
        self.correlation, self.runtime, self.device, self.steps = correlation, runtime, device, steps
        self.fractions = fractions  # of microseconds, as before 2023


def trace(rank, missing=None):
    """The trace of one rank, as PyTorch's profiler writes it."""
    missing = missing or Missing()
    shape = rank.shape
    offset, drift = shape.clock.get(rank.rank, (0, 0.0))
    pid = 4000 + rank.rank

    def at(ns):
        ns = round(ns + offset + ns * drift / 1e6)
        return ns // US if missing.fractions else round(ns / US, 3)

    out = [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": at(0), "args": {"name": "python3"}},
           {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": at(0), "args": {"labels": "CPU"}},
           {"ph": "M", "name": "process_labels", "pid": rank.rank % 8, "tid": 0, "ts": at(0),
            "args": {"labels": f"GPU {rank.rank % 8}"}}]
    calls = {e["args"]["correlation"]: e for e in rank.events if e["cat"] == "cuda_runtime"}
    for e in rank.events:
        on_device = "stream" in e
        if e["cat"] == "cpu_instant_event":
            out.append({"ph": "i", "cat": e["cat"], "name": e["name"], "s": "t", "ts": at(e["start"]), "pid": pid, "tid": pid + e["tid"],
                        "args": e["args"]})
            continue
        if on_device and missing.device or e["cat"] == "cuda_runtime" and missing.runtime:
            continue
        if missing.steps and e["name"].startswith("ProfilerStep#"):
            continue
        args = dict(e["args"])
        if missing.correlation:
            args.pop("correlation", None)
        row = {"ph": "X", "cat": e["cat"], "name": e["name"], "ts": at(e["start"]), "dur": e["dur"] // US if missing.fractions else round(e["dur"] / US, 3),
               "pid": rank.rank % 8 if on_device else pid, "tid": e["stream"] if on_device else pid + e["tid"],
               "args": args}
        out.append(row)
        if on_device and not missing.correlation and not missing.runtime:
            call = calls[e["args"]["correlation"]]
            number = e["args"]["correlation"]
            out.append({"ph": "s", "id": number, "pid": pid, "tid": pid + call["tid"], "ts": at(call["start"]),
                        "cat": "ac2g", "name": "ac2g"})
            out.append({"ph": "f", "id": number, "pid": row["pid"], "tid": row["tid"], "ts": row["ts"],
                        "cat": "ac2g", "name": "ac2g", "bp": "e"})
    document = {"schemaVersion": 1,
                "deviceProperties": [{"id": rank.rank % 8, "name": "NVIDIA A100-SXM4-80GB",
                                      "totalGlobalMem": 85024112640, "computeMajor": 8, "computeMinor": 0,
                                      "numSms": 108}],
                "with_flops": 0, "baseTimeNanoseconds": 1700000000 * 1000 * MS, "traceEvents": out}
    if shape.ranks > 1:
        document["distributedInfo"] = {"backend": "nccl", "rank": rank.rank, "world_size": shape.ranks,
                                       "pg_count": 1, "pg_config": [{"pg_name": "0", "pg_desc": "default_pg",
                                                                     "backend_config": "cuda:nccl",
                                                                     "ranks": list(range(shape.ranks))}]}
    return document


def write(shape, folder, stem="job", missing=None):
    """One file per rank; returns their paths."""
    paths = []
    for rank in simulate(shape):
        path = f"{folder}/{stem}_rank{rank.rank}.pt.trace.json" if shape.ranks > 1 else f"{folder}/{stem}.pt.trace.json"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(trace(rank, missing), f)
        paths.append(path)
    return paths


# ---- jobs with a fault of known size, and jobs without ----

def healthy(rng):
    """A job in which nothing can be saved by more than a percent or two: the device is the limit."""
    layers, kernel = rng.randrange(12, 40), rng.randrange(150, 500) * US
    return Shape(seed=rng.randrange(1 << 30), layers=layers, noise=rng.choice([0.005, 0.02, 0.05]),
                 copy_bytes=int(0.01 * 3 * layers * kernel * 20), kernel=kernel, kernels_per_layer=1, steps=rng.randrange(8, 16),
                 hip=rng.random() < 0.2, queue=rng.choice([64, 1000]), optimizer_kernels=rng.randrange(2, 8))


def device_time(shape):
    return shape.layers * shape.kernel * (1 + shape.backward) + shape.optimizer_kernels * shape.optimizer_kernel


KINDS = ("input_main", "input_workers", "items", "copies_back", "mallocs", "host_work", "cpu_op", "launch", "communication", "pause",
         "pageable", "layout", "pointwise", "slow_rank", "collector", "compilation", "checks", "change", "pipeline", "small_messages",
         "uneven_work", "init_calls", "input_stage", "precision", "roof")


def faults(rng, kind=None):
    """name of the rule, job with the fault, the same job without it, basis."""
    base = healthy(rng)
    busy = device_time(base)
    size = rng.uniform(0.08, 0.5)
    kind = kind or rng.choice(KINDS)
    if kind in KINDS[KINDS.index("pipeline"):]:
        return later_faults(rng, kind, base, busy, size)
    if kind == "input_main":
        good = base.but(loader_on_main=False)
        return "input_wait", base.but(loader_on_main=True, loader_batch=int(busy * size)), good, "median"
    if kind == "input_workers":
        return ("input_wait",
                base.but(loader_workers=2, prefetch=1, loader_batch=int(2 * busy * (1.5 + 3 * size)), warmup_cost=5 * MS,
                                       steps=16),
                base.but(loader_workers=2, prefetch=1, loader_batch=int(busy), warmup_cost=5 * MS, steps=16), "median")
    if kind == "items":
        # Each read drains the device; the host then has to fill it again.
        slow = base.but(op_host=rng.randrange(60, 120) * US, python_gap=rng.randrange(20, 60) * US,
                        kernel=rng.randrange(150, 260) * US)
        return "synchronization", slow.but(items=slow.layers - 1), slow, "median"
    if kind == "copies_back":
        n = rng.randrange(1, 4)
        return ("transfer", base.but(copies_back=n, copy_back_bytes=int(busy * size / n * base.copy_rate)), base,
                "median")
    if kind == "mallocs":
        n = rng.randrange(3, 10)
        return "allocation", base.but(mallocs=n, malloc=int(busy * size / n / 2)), base, "median"
    if kind == "host_work":
        return ("host_code", base.but(host_work=int(busy * size), python_stack=rng.random() < 0.7), base, "median")
    if kind == "cpu_op":
        return "op_on_cpu", base.but(cpu_op=int(busy * size)), base, "median"
    if kind == "launch":
        tiny = base.but(kernels_per_layer=rng.randrange(16, 30), kernel=rng.randrange(40, 70) * US, backward=1.0)
        return "launch_bound", tiny, tiny.but(kernels_per_layer=1), "median"
    if kind == "communication":
        job = base.but(ranks=2, world_bytes=int(busy * size * base.bus_rate), overlap=False)
        return "exposed_communication", job, job.but(world_bytes=0), "median"
    if kind == "pause":
        every = rng.randrange(4, 6)
        job = base.but(pause_every=every, pause=int(busy * size * every),
                       pause_name=rng.choice(["save_checkpoint", "log_metrics", None]))
        return ("checkpoint_or_logging" if job.pause_name else "outlier_steps"), job, base, "mean"
    if kind == "slow_rank":
        ranks = rng.randrange(2, 5)
        job = base.but(ranks=ranks, world_bytes=int(busy * rng.uniform(0.02, 0.3) * base.bus_rate), overlap=rng.random() < 0.5,
                       clock={r: (rng.randrange(-3 * MS, 3 * MS), rng.uniform(-15, 15)) for r in range(ranks)})
        return "collective_wait", job.but(slow_rank=(rng.randrange(ranks), 1 + size)), job, "median"
    if kind in ("collector", "compilation"):
        every = rng.randrange(4, 6)
        name = {"collector": ["gc.collect", "Python GC"], "compilation": ["backend_compile", "torch/_dynamo/convert_frame.py(412): __call__"]}[kind]
        job = base.but(pause_every=every, pause=int(busy * size * every), pause_name=rng.choice(name), pause_parts=rng.randrange(0, 4))
        return ("storage_or_gc" if kind == "collector" else "recompilation"), job, base, "mean"
    if kind == "checks":
        return ("suspicious_op", base.but(checks=base.layers, check_kernel=int(busy * size / base.layers)), base, "median")
    if kind == "change":
        job = base.but(steps=16, change_at=(rng.randrange(7, 11), 1 + size))
        return "step_change", job, job.but(change_at=None), "mean"
    if kind == "pageable":
        job = base.but(copy_pageable=True, copy_bytes=int(busy * size * base.copy_rate))
        return "blocking_copy", job, job.but(copy_pageable=False, copy_stream=21, copy_ahead=True), "median"
    if kind == "layout":
        n = rng.randrange(1, 3)
        job = base.but(layout=n, layout_kernel=int(busy * size / n / base.layers))
        return "layout_copies", job, base, "median"
    job = base.but(pointwise=rng.randrange(4, 8), pointwise_kernel=int(busy * size / 6 / base.layers))
    return "fusible", job, base.but(pointwise=1, pointwise_kernel=job.pointwise_kernel), "median"


def later_faults(rng, kind, base, busy, size):
    if kind == "pipeline":
        # Without the fault there are eight times as many micro-batches, each an eighth as long: the stages hardly wait.
        stages, micro = rng.randrange(2, 5), rng.randrange(3, 7)
        job = base.but(ranks=stages, layers=rng.randrange(4, 8), micro=micro, kernel=rng.randrange(400, 900) * US, stage_bytes=1 << 20,
                       clock={r: (rng.randrange(-3 * MS, 3 * MS), rng.uniform(-15, 15)) for r in range(stages)})
        return ("pipeline_bubble", job, job.but(micro=8 * micro, kernel=job.kernel // 8, stage_bytes=job.stage_bytes // 8, op_host=4 * US,
                                                launch=2 * US), "median")
    if kind == "small_messages":
        count = rng.randrange(20, 60)
        job = base.but(ranks=rng.randrange(2, 4), world_bytes=int(busy * 0.03 * base.bus_rate), buckets=2, small_messages=count,
                       message_latency=int(busy * size / count))
        return "small_messages", job, job.but(small_messages=1, small_bytes=count * job.small_bytes), "median"
    if kind == "uneven_work":
        ranks = rng.randrange(2, 5)
        even = base.but(ranks=ranks, layers=rng.randrange(3, 7) * 4, world_bytes=int(busy * rng.uniform(0.02, 0.2) * base.bus_rate),
                        overlap=rng.random() < 0.5)
        more = max(ranks - 1, int(even.layers * size) // (ranks - 1) * (ranks - 1))
        heavy = rng.randrange(ranks)
        layers_of = {r: even.layers - more // (ranks - 1) for r in range(ranks)}
        layers_of[heavy] = even.layers + more
        return "imbalance", even.but(layers_of=layers_of), even, "median"
    if kind == "init_calls":
        count = rng.randrange(1, 5)
        return "initialization", base.but(init_calls=count, init_call=int(busy * size / count)), base, "median"
    if kind == "input_stage":
        stages = [("read", busy * 0.02), ("decode_jpeg", busy * size), ("augment", busy * 0.03)]
        job = base.but(loader_on_main=True, loader_batch=int(busy * 0.01), stages=stages)
        return "slow_input_stage", job, job.but(stages=[stages[0], stages[2]]), "median"
    if kind == "precision":
        factor = rng.uniform(2.5, 6)
        job = base.but(kernel_name="ampere_sgemm_128x64_tn", kernel=int(base.kernel * factor))
        return "precision", job, base, "median"
    # The products reach a tenth or less of what the device can do; without the fault most of it.
    rate = 312e12
    n, k, m = 4096, rng.choice([2048, 4096]), rng.choice([2048, 4096])
    least = 2 * n * k * m / rate * 1e9
    good = base.but(product="aten::mm", dims=[[n, k], [k, m]], kernel=int(least / rng.uniform(0.5, 0.8)), backward=0.01, hip=False)
    return "roof", good.but(kernel=int(least / rng.uniform(0.04, 0.12))), good, "median"


DECOYS = {
    "plain": lambda s: s,
    "loader hidden behind the device": lambda s: s.but(loader_workers=4, loader_batch=int(2.5 * device_time(s))),
    "communication hidden": lambda s: s.but(ranks=2, overlap=True, buckets=8, world_bytes=int(
        0.12 * device_time(s) * s.bus_rate)),
    "copies ahead, on a stream of their own": lambda s: s.but(copy_stream=21, copy_ahead=True, copy_bytes=int(
        0.2 * device_time(s) * s.copy_rate)),
    "long warm-up": lambda s: s.but(warmup_cost=int(8 * device_time(s))),
    "reads the loss once at the end": lambda s: s.but(item_at_end=True),
    "many launches, all hidden": lambda s: s.but(kernels_per_layer=6, kernel=6 * s.kernel, warmup_cost=5 * MS),
    "host code hidden behind the device": lambda s: s.but(item_at_end=False, queue=64, python_gap=20 * US),
    "one pause at the last step": lambda s: s.but(pause_every=s.steps - 1, pause=2 * device_time(s)),
    "noisy but even": lambda s: s.but(noise=0.08),
    "ranks whose clocks differ": lambda s: s.but(ranks=3, overlap=True, buckets=6, world_bytes=int(0.08 * device_time(s) * s.bus_rate),
                                                 clock={1: (2 * MS, 11.0), 2: (-3 * MS, -17.0)}),
    "memory that is used again": lambda s: s.but(memory=20 << 30),
    "stages of equal length, many micro-batches": lambda s: s.but(ranks=2, layers=4, micro=64, kernel=120 * US, op_host=6 * US, stage_bytes=1 << 16,
                                                                  message_latency=5 * US),
    "a few small messages": lambda s: s.but(ranks=2, overlap=True, buckets=8, world_bytes=int(0.05 * device_time(s) * s.bus_rate),
                                            small_messages=3, message_latency=10 * US),
    "memory that is almost full but does not grow": lambda s: s.but(memory=60 << 30),
    "a short garbage collection": lambda s: s.but(pause_every=4, pause=int(0.02 * device_time(s)), pause_name="gc.collect"),
}
