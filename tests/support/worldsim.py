"""
worldsim.py: a second simulation of training jobs, written without a look at the first (jobsim.py) or at the rules.

Coroutines on a virtual clock: one per host thread, loader worker and stream; a collective is a barrier of ranks. It knows how a PyTorch
job runs, and writes what Kineto would have recorded. A fault is a parameter of the job; the truth is the same job, with the same noise,
without it. CASES and DECOYS list the faults with the rules that may name them, and jobs without one. Times are nanoseconds.
"""
import heapq
import json
import math
import os
import random
import zlib
from collections import deque

US, MS = 1000, 1000000


class Flag:
    def __init__(self):
        self.done, self.waiters = False, []


class Sim:
    def __init__(self):
        self.t, self.heap, self.n = 0, [], 0

    def push(self, t, gen):
        self.n += 1
        heapq.heappush(self.heap, (t, self.n, gen))

    def fire(self, flag):
        if not flag.done:
            flag.done = True
            for gen in flag.waiters:
                self.push(self.t, gen)
            flag.waiters = []

    def step(self, gen):
        while True:
            try:
                want = next(gen)
            except StopIteration:
                return
            if isinstance(want, Flag):
                if want.done:
                    continue
                want.waiters.append(gen)
                return
            if want > 0:
                self.push(self.t + int(want), gen)
                return

    def run(self):
        while self.heap:
            self.t, _, gen = heapq.heappop(self.heap)
            self.step(gen)


class Barrier:
    """A collective: the transfer starts when all have come."""
    def __init__(self, sim, n):
        self.sim, self.left, self.all = sim, n, Flag()

    def come(self):
        self.left -= 1
        if self.left == 0:
            self.sim.fire(self.all)
        return self.all


class Item:
    def __init__(self, name, dur, cat='kernel', args=None, corr=0, waits=(), join=None, shown=True):
        self.name, self.dur, self.cat, self.args, self.corr = name, int(dur), cat, args or {}, corr
        self.waits, self.join, self.shown = list(waits), join, shown
        self.done, self.ready, self.tag = Flag(), 0, None


class Stream:
    DEPTH = 1000

    def __init__(self, rank, tid):
        self.rank, self.sim, self.tid = rank, rank.sim, tid
        self.queue, self.wake, self.room = deque(), Flag(), Flag()
        self.last = None
        self.sim.push(0, self.run())

    def run(self):
        while True:
            while not self.queue:
                self.wake = Flag()
                yield self.wake
            it = self.queue[0]
            if it.ready > self.sim.t:
                yield it.ready - self.sim.t
            for f in it.waits:
                yield f
            start = self.sim.t
            if it.join:
                yield it.join.come()
            yield it.dur
            if it.shown:
                self.rank.device_event(self, it, start, self.sim.t)
            self.queue.popleft()
            self.sim.fire(it.done)
            self.sim.fire(self.room)
            if it.shown:
                yield self.rank.job.kernel_gap

    def submit(self, it):
        it.ready = self.sim.t + self.rank.job.latency
        self.queue.append(it)
        self.last = it
        self.sim.fire(self.wake)


class Rank:
    def __init__(self, job, sim, number):
        self.job, self.sim, self.number = job, sim, number
        self.events, self.corr, self.ext = [], 1000, 0
        self.offset = job.clock0 + job.draw('clock', number) % (50 * MS) if job.ranks > 1 and job.p.get('clocks') else job.clock0
        self.device_ends, self.markers = [], []
        self.compute, self.comm, self.copy = Stream(self, 7), Stream(self, 20), Stream(self, 24)
        self.memory, self.streams_used = 2 << 30, set()

    def device_event(self, stream, it, start, end):
        self.streams_used.add(stream.tid)
        args = {'stream': stream.tid, 'device': self.number, 'correlation': it.corr, 'External id': it.args.pop('ext', 0), 'context': 1}
        args.update(it.args)
        self.emit(it.name, it.cat, start, end, 0, stream.tid, args, device=True)
        if not self.job.p.get('no_links') and it.corr:
            self.events.append({'ph': 'f', 'id': it.corr, 'pid': self.number, 'tid': stream.tid, 'ts': self.us(start), 'cat': 'ac2g',
                    'name': 'ac2g', 'bp': 'e'})
        if it.tag is not None:
            while len(self.device_ends) <= it.tag:
                self.device_ends.append(0)
            self.device_ends[it.tag] = max(self.device_ends[it.tag], end)

    def us(self, t):
        return round((t + self.offset) / 1000, 3)

    def emit(self, name, cat, start, end, pid, tid, args=None, device=False):
        e = {'ph': 'X', 'cat': cat, 'name': name, 'pid': self.number if device else 4000 + self.number, 'tid': tid
                if device else 4000 + self.number + tid,
             'ts': self.us(start), 'dur': round((end - start) / 1000, 3), 'args': args or {}}
        if self.job.p.get('no_links'):
            e['args'].pop('correlation', None)
            e['args'].pop('External id', None)
        self.events.append(e)


class Host:
    """A thread of a rank; methods are coroutines."""
    def __init__(self, rank, tid):
        self.rank, self.sim, self.job, self.tid = rank, rank.sim, rank.job, tid
        self.stack = []

    def span(self, name, cat, body, args=None):
        start = self.sim.t
        yield from body
        self.rank.emit(name, cat, start, self.sim.t, 0, self.tid, args)

    def python(self, name, body):
        if self.job.p.get('python'):
            yield from self.span(name, 'python_function', body, {'Python id': 1})
        else:
            yield from body

    def work(self, ns):
        yield int(ns)

    def cost(self, ns):
        return int(ns * self.job.p.get('host_scale', 1) * (self.job.p.get('slow_host', 1)
                if self.rank.number == self.job.p.get('slow_rank') else 1))

    def call(self, name, ns, corr=None):
        """A call of the runtime."""
        if corr is None:
            self.rank.corr += 1
            corr = self.rank.corr
        yield from self.span(name, 'cuda_runtime', self.work(ns), {'correlation': corr, 'External id': self.rank.ext, 'cbid': 211})

    def launch(self, stream, it, call='cudaLaunchKernel', ns=None):
        self.rank.corr += 1
        it.corr = self.rank.corr
        it.args['ext'] = self.rank.ext
        start = self.sim.t
        while len(stream.queue) >= Stream.DEPTH:
            stream.room = Flag()
            yield stream.room
        yield ns if ns is not None else self.cost(self.job.launch_ns)
        stream.submit(it)
        self.rank.emit(call, 'cuda_runtime', start, self.sim.t, 0, self.tid, {'correlation': it.corr, 'External id': self.rank.ext,
                'cbid': 211})
        if not self.job.p.get('no_links'):
            self.rank.events.append({'ph': 's', 'id': it.corr, 'pid': 4000 + self.rank.number,
                    'tid': 4000 + self.rank.number + self.tid, 'ts': self.rank.us(start), 'cat': 'ac2g', 'name': 'ac2g'})

    def sync(self, streams, call='cudaStreamSynchronize', corr=None):
        start = self.sim.t
        yield 2 * US
        for s in streams:
            if s.last:
                yield s.last.done
        yield 3 * US
        self.rank.corr += 1
        self.rank.emit(call, 'cuda_runtime', start, self.sim.t, 0, self.tid, {'correlation': self.rank.corr,
                'External id': self.rank.ext, 'cbid': 131})
        if self.job.p.get('cuda_sync'):
            self.rank.emit('Stream Sync' if len(streams) == 1 else 'Context Sync', 'cuda_sync', start, self.sim.t, 0, streams[0].tid
                    if len(streams) == 1 else 0, {'correlation': self.rank.corr, 'stream': streams[0].tid if len(streams) == 1 else -1,
                    'device': self.rank.number, 'External id': 0}, device=True)

    def order(self, first, then):
        """`then` waits for what is in `first` now."""
        mark = Item('', 0, shown=False)
        wait = Item('', 0, shown=False, waits=[mark.done])
        yield from self.call('cudaEventRecord', 1 * US)
        first.submit(mark)
        yield from self.call('cudaStreamWaitEvent', 1 * US)
        then.submit(wait)

    def op(self, name, items, pre=None, stream=None, args=None, cat='cpu_op'):
        job = self.job
        self.rank.ext += 1
        full = {'External id': self.rank.ext, 'Sequence number': self.rank.ext, 'Fwd thread id': 0}
        full.update(args or {})

        def body():
            base = self.cost(pre if pre is not None else job.op_ns)
            yield int(base * 0.7)
            for it in items:
                yield from self.launch(stream or self.rank.compute, it)
            yield base - int(base * 0.7)
        yield from self.span(name, cat, body(), full)
        yield self.cost(job.python_ns)


KERNELS = {
    'conv': ('aten::conv2d', 'sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x64x16', 'ConvolutionBackward0'),
    'linear': ('aten::linear', 'ampere_sgemm_128x64_tn', 'AddmmBackward0'),
    'norm': ('aten::native_layer_norm',
            'void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*)',
            'NativeLayerNormBackward0'),
    'relu': ('aten::relu',
            'void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::launch_clamp_scalar(at::TensorIteratorBase&)>(int)', 'ReluBackward0'),
}


class Job:
    def __init__(self, seed, **p):
        self.seed, self.p = seed, p
        r = random.Random(seed)
        self.steps = p.get('steps', r.choice([10, 12, 14]))
        self.ranks = p.get('ranks', 1)
        self.layers = []
        scale = p.get('kernel_ns', r.uniform(60, 260) * US)
        for i in range(p.get('layers', r.randint(7, 14))):
            kind = r.choice(['conv', 'linear', 'linear', 'norm', 'relu'])
            small = {'norm': 0.12, 'relu': 0.06}.get(kind, 1)
            if small < 1 and self.layers and self.layers[-1][0] in ('norm', 'relu'):
                kind, small = 'linear', 1
            self.layers.append((kind, small * scale * r.lognormvariate(0, 0.4), r.uniform(1.6, 2.2)))
        self.op_ns = p.get('op_ns', r.uniform(6, 14) * US)
        self.launch_ns = p.get('launch_ns', r.uniform(4, 7) * US)
        self.python_ns = p.get('python_ns', r.uniform(1, 6) * US)
        self.latency = int(r.uniform(3, 7) * US)
        self.kernel_gap = int(r.uniform(0.6, 1.6) * US)
        self.noise = p.get('noise', r.choice([0.005, 0.02, 0.04]))
        self.clock0 = 1_700_000_000_000_000_000 % (10 ** 15)
        self.load_ns = p.get('load_ns', r.uniform(0.2, 0.6) * self.device_guess())
        self.copy_ns = p.get('copy_ns', 0.015 * self.device_guess() * r.uniform(0.5, 1.2))
        self.comm_ns = p.get('comm_ns', 0.25 * self.device_guess())
        self.barriers = {}

    def device_guess(self):
        return sum(d * (1 + b) for _, d, b in self.layers)

    def draw(self, *key):
        return zlib.crc32(repr((self.seed,) + key).encode())

    def vary(self, ns, *key):
        u = random.Random(self.draw(*key)).gauss(0, 1)
        return max(int(ns * math.exp(self.noise * u)), 200)

    def join(self, sim, key, n=None):
        if key not in self.barriers:
            self.barriers[key] = Barrier(sim, n or self.ranks)
        return self.barriers[key]

    def on(self, name, step=None):
        return bool(self.p.get(name))

    # ---- one rank ----
    def loader(self, rank, ready, free):
        for s in range(self.steps + 4):
            while free[0] <= 0:
                free[1] = Flag()
                yield free[1]
            free[0] -= 1
            yield self.vary(self.load_ns, 'load', s)
            ready[s] = ready.get(s) or Flag()
            rank.sim.fire(ready[s])

    def next_batch(self, h, s, ready, free):
        def body():
            yield 15 * US
            if self.p.get('loader') == 'main':
                yield from self.load_here(h, s)
            else:
                ready[s] = ready.get(s) or Flag()
                yield ready[s]
                free[0] += 1
                h.sim.fire(free[1])
            yield 10 * US
        name = 'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__' if self.p.get('loader') == 'main' else 'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__'
        yield from h.python('torch/utils/data/dataloader.py(628): __next__', h.span(name, 'user_annotation', body(), {'External id': 0}))

    def load_here(self, h, s):
        left = self.vary(self.load_ns, 'load', s)
        stage = int(left * self.p.get('stage_part', 0.25))
        for k in range(4):
            yield from h.python('dataset.py(31): __getitem__', self.decode(h, stage // 4))
            yield from h.op('aten::div', [], pre=(left - stage) // 8 - self.python_ns)
            yield from h.op('aten::sub', [], pre=(left - stage) // 8 - self.python_ns)

    def decode(self, h, ns):
        yield from h.python('PIL/ImageFile.py(166): load', h.work(ns))

    def k(self, name, ns, *key, **kw):
        args = {'grid': [64, 1, 1], 'block': [256, 1, 1], 'registers per thread': 32, 'shared memory': 0, 'est. achieved occupancy %': 60}
        return Item(name, self.vary(ns, *key), args=args, **kw)

    def all_reduce(self, h, s, key, ns, stream=None, elements=4_000_000):
        stream = stream or h.rank.comm
        it = Item('ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)', self.vary(ns, 'comm', s, key),
                  args={'Collective name': 'allreduce', 'In msg nelems': elements, 'Out msg nelems': elements, 'Group size': self.ranks,
                          'dtype': 'Float', 'Process Group Name': '0',
                        'Process Group Ranks': str(list(range(self.ranks)))},
                  join=self.join(h.sim, (s, key)) if self.ranks > 1 else None)
        yield from h.order(h.rank.compute, stream)
        h.rank.ext += 1

        def inner():
            yield 4 * US
            yield from h.launch(stream, it, call='cudaLaunchKernelExC')
            yield 2 * US
        yield from h.span('record_param_comms', 'cpu_op', h.span('nccl:all_reduce', 'user_annotation', inner()),
                          {'External id': h.rank.ext, 'Collective name': 'allreduce', 'In msg nelems': elements,
                                  'Out msg nelems': elements, 'Group size': self.ranks, 'dtype': 'Float', 'Process Group Name': '0'})
        return it

    def slow(self, rank):
        f = self.p.get('slow_device', 1) if rank.number == self.p.get('slow_rank') else 1
        return f

    def tiny(self, h, s, i, where):
        """A chain of elementwise operators on a few values."""
        for n in range(self.p.get('tiny', 0)):
            yield from h.op(['aten::mul', 'aten::add', 'aten::sub', 'aten::rsqrt'][n % 4],
                            [self.k('void at::native::vectorized_elementwise_kernel<4, at::native::%sFunctor<float>, std::array<char*, 3ul> >(int)' % ['Mul', 'Add', 'Sub', 'Rsqrt'][n % 4], 2 * US, where, s, i, n)])

    def forward(self, h, s):
        rank = h.rank
        change = self.p.get('change', 1) if s >= self.steps * 0.55 else 1
        for i, (kind, ns, _) in enumerate(self.layers):
            op, kernel, _ = KERNELS[kind]
            if self.p.get('layout') and kind == 'conv':
                yield from h.op('aten::contiguous',
                        [self.k('void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(cudnn::engines_precompiled::nchw2nhwc_params_t<float>)', self.p['layout'], 'layout', s, i)])
            body = [self.k(kernel, ns * self.slow(rank) * change, 'f', s, i)]
            yield from h.python('nn.Module: %s_%d' % (kind.capitalize(), i), h.op(op, body, args={'Input Dims': [[32, 256], [256, 256]]}))
            yield from self.tiny(h, s, i, 'tf')
            if self.p.get('sync_layers') and i % 2 == 1:
                yield from self.item(h, s, ('mid', i))
            if self.p.get('cpu_op') and i == 3:
                yield from h.op('aten::unique_dim', [], pre=self.p['cpu_op'])

    def item(self, h, s, key):
        rank = h.rank
        rank.ext += 1

        def inner():
            yield 3 * US
            it = Item('Memcpy DtoH (Device -> Pageable)', 1500, cat='gpu_memcpy', args={'bytes': 4, 'memory bandwidth (GB/s)': 0.003})
            if self.p.get('tagged', True):
                it.tag = s
            yield from h.launch(rank.compute, it, call='cudaMemcpyAsync')
            yield from h.sync([rank.compute])
            yield 1 * US
        yield from h.span('aten::item', 'cpu_op', h.span('aten::_local_scalar_dense', 'cpu_op', inner(), {'External id': rank.ext}),
                {'External id': rank.ext})

    def backward(self, h, s):
        rank = h.rank
        change = self.p.get('change', 1) if s >= self.steps * 0.55 else 1
        n, bucket = len(self.layers), 0
        late = []
        for i in range(n - 1, -1, -1):
            kind, ns, factor = self.layers[i]
            name = KERNELS[kind][2]

            def body(i=i, kind=kind, ns=ns, factor=factor, name=name):
                yield 3 * US
                for j in range(2):
                    yield from h.op('aten::mm' if kind == 'linear' else 'aten::convolution_backward'
                            if kind == 'conv' else 'aten::' + name[:-1].lower(),
                                    [self.k(KERNELS[kind][1].replace('fprop', 'dgrad').replace('_tn', '_nt'),
                                            ns * factor / 2 * self.slow(rank) * change, 'b', s, i, j)])
                yield from self.tiny(h, s, i, 'tb')
            yield from h.span('autograd::engine::evaluate_function: ' + name, 'cpu_op', h.span(name, 'cpu_op', body(),
                    {'External id': rank.ext}), {'External id': rank.ext})
            if self.ranks > 1 and self.p.get('ddp', True) and (i % 3 == 0):
                part = self.comm_ns / math.ceil(n / 3)
                if i == 0 and not self.p.get('late_comm'):
                    part *= 0.15
                parts = self.p.get('messages', 1)
                for q in range(parts):
                    job = (bucket, q), max(part / parts, 0) + (self.p.get('message_ns', 0))
                    if self.p.get('late_comm'):
                        late.append(job)
                    else:
                        yield from self.all_reduce(h, s, job[0], job[1], elements=20_000_000 if parts == 1 else 6000)
                bucket += 1
        for key, ns in late:
            yield from self.all_reduce(h, s, key, ns)
        if self.ranks > 1 and self.p.get('ddp', True):
            yield from h.order(rank.comm, rank.compute)

    def optimizer(self, h, s):
        def body():
            yield 20 * US
            for n in range(3):
                it = self.k('void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<2>>(at::native::(anonymous namespace)::TensorListMetadata<2>)', 0.02 * self.device_guess(), 'o', s, n)
                it.tag = s
                yield from h.op('aten::_foreach_add_', [it])
        yield from h.python('torch/optim/sgd.py(70): step', h.span('Optimizer.step#SGD.step', 'user_annotation', body()))

    def to_device(self, h, s):
        rank = h.rank
        pageable = self.p.get('pageable')
        target = rank.copy if self.p.get('copy_stream') else rank.compute
        it = Item('Memcpy HtoD (%s -> Device)' % ('Pageable' if pageable else 'Pinned'), self.vary(self.copy_ns, 'copy', s),
                cat='gpu_memcpy', args={'bytes': int(self.copy_ns * 12), 'memory bandwidth (GB/s)': 12.0})

        def inner():
            yield 6 * US
            yield from h.launch(target, it, call='cudaMemcpyAsync')
            if pageable:
                yield from h.sync([target])
        rank.ext += 1
        yield from h.span('aten::to', 'cpu_op', h.span('aten::_to_copy', 'cpu_op', h.span('aten::copy_', 'cpu_op', inner(),
                {'External id': rank.ext}), {'External id': rank.ext}), {'External id': rank.ext})
        if self.p.get('copy_stream'):
            yield from h.order(rank.copy, rank.compute)

    def allocate(self, h, s):
        rank = h.rank
        for n in range(self.p.get('mallocs', 0)):
            yield from h.call('cudaMalloc', self.vary(self.p['malloc_ns'], 'malloc', s, n))
            if self.p.get('free_sync'):
                yield from h.sync([rank.compute], call='cudaFree')

    def some_steps(self, h, s):
        p = self.p
        if p.get('save_every') and s % p['save_every'] == p['save_every'] - 1:
            def save():
                yield from h.sync([h.rank.compute], call='cudaStreamSynchronize')
                yield self.vary(p['save_ns'], 'save', s)
            if p.get('python'):
                yield from h.python('torch/serialization.py(944): save', save())
            else:
                yield from h.span('save_checkpoint', 'user_annotation', save())
        if p.get('compile_steps') and s in p['compile_steps']:
            yield from h.span('_compile.compile_inner (dynamo_timed)', 'cpu_op',
                    h.span('compile_fx.<locals>.fw_compiler_base (dynamo_timed)', 'cpu_op', h.work(p['compile_ns'])))
        if p.get('gc_ns'):
            yield from h.span('<built-in function collect>', 'python_function', h.work(self.vary(p['gc_ns'], 'gc', s)))
        if p.get('outlier_steps') and s in p['outlier_steps']:
            yield from h.op('aten::nonzero', [self.k('void at::native::index_elementwise_kernel<128, 4>(long)', p['outlier_ns'],
                    'outlier', s)])
        if p.get('pause_steps') and s in p['pause_steps']:
            yield p['pause_ns']

    def host_code(self, h, s):
        ns = self.p.get('host_ns')
        if ns:
            def accuracy():
                yield 2 * US
                yield from h.python('train.py(92): topk_on_host', h.work(self.vary(ns, 'host', s)))
            yield from h.python('train.py(88): accuracy', accuracy())

    def main(self, rank, ready, free):
        h, b = Host(rank, 0), Host(rank, 1)
        yield 500 * US
        for s in range(self.steps):
            start = rank.sim.t
            rank.marker = s
            if s < self.p.get('warm_steps', 0):
                for n in range(6):
                    yield from h.call('cudaMalloc', 900 * US)
                yield from h.span('cudaModuleLoadData' if not self.p.get('warm_compile') else '_compile.compile_inner (dynamo_timed)',
                        'cuda_runtime' if not self.p.get('warm_compile') else 'cpu_op', h.work(self.device_guess() * 4),
                        {'correlation': 1})
            if not self.p.get('no_loader'):
                yield from self.next_batch(h, s, ready, free)
            yield from self.to_device(h, s)
            yield from h.python('train.py(60): forward', self.forward(h, s))
            if self.p.get('host_mid'):
                yield from self.host_code(h, s)
            yield from self.allocate(h, s)
            done = Flag()

            def thread():
                yield from self.backward(b, s)
                rank.sim.fire(done)
            rank.sim.push(rank.sim.t + 8 * US, thread())

            def wait():
                yield done
                yield 10 * US
            yield from h.python('torch/autograd/__init__.py(165): backward',
                    h.python('<built-in method run_backward of torch._C._EngineBase object at 0x7f>', wait()))
            yield from self.optimizer(h, s)
            if not self.p.get('host_mid'):
                pass
            every = {'step': 1, 'fifth': 5, 'end': 10 ** 9}[self.p.get('sync', 'step')]
            if s % every == every - 1:
                yield from self.item(h, s, 'loss')
            if self.p.get('extra_sync'):
                yield from h.sync([rank.compute, rank.comm, rank.copy], call='cudaDeviceSynchronize')
            if not self.p.get('host_mid'):
                yield from self.host_code(h, s)
            yield from self.some_steps(h, s)
            self.memory_event(rank, s)
            if not self.p.get('no_steps'):
                rank.emit('ProfilerStep#%d' % (s + 20), 'user_annotation', start, rank.sim.t, 0, 0, {'External id': 0})
                rank.markers.append((start, rank.sim.t))
            yield 12 * US
        yield from h.sync([rank.compute, rank.comm, rank.copy], call='cudaDeviceSynchronize')

    def memory_event(self, rank, s):
        if not self.p.get('memory'):
            return
        for n in range(6):
            grow = self.p.get('leak', 0)
            size = (300 << 20) * (1 if n % 2 == 0 else -1)
            rank.memory += size
            rank.events.append({'ph': 'i', 's': 't', 'cat': 'cpu_instant_event', 'name': '[memory]', 'pid': 4000 + rank.number,
                    'tid': 4000 + rank.number, 'ts': rank.us(rank.sim.t - (6 - n) * 1000),
                                'args': {'Total Reserved': rank.memory + (1 << 30), 'Total Allocated': rank.memory, 'Bytes': size,
                                        'Addr': 140000 + n // 2, 'Device Id': rank.number, 'Device Type': 1}})
        if self.p.get('leak'):
            rank.memory += self.p['leak']
            rank.events.append({'ph': 'i', 's': 't', 'cat': 'cpu_instant_event', 'name': '[memory]', 'pid': 4000 + rank.number,
                    'tid': 4000 + rank.number, 'ts': rank.us(rank.sim.t),
                                'args': {'Total Reserved': rank.memory + (1 << 30), 'Total Allocated': rank.memory,
                                        'Bytes': self.p['leak'], 'Addr': 200000 + s, 'Device Id': rank.number, 'Device Type': 1}})

    # ---- a pipeline over ranks: each has a stage; GPipe ----
    def stage(self, rank):
        h = Host(rank, 0)
        n, me, last = self.p['micro'], rank.number, self.ranks - 1
        fwd, bwd = self.device_guess() / n * 0.35, self.device_guess() / n * 0.65
        yield 500 * US

        def message(s, src, dst, m, way):
            it = Item('ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)', self.vary(0.01 * fwd + 6 * US, 'msg', s, src, m, way),
                      args={'Collective name': 'send' if me == src else 'recv', 'In msg nelems': 1 << 20, 'Out msg nelems': 1 << 20,
                              'Group size': 2, 'dtype': 'Float', 'Process Group Name': 'pp',
                              'Process Group Ranks': str(list(range(self.ranks)))},
                      join=self.join(rank.sim, ('p2p', s, src, dst, m, way), 2))
            name = 'nccl:send %d->%d' % (src, dst) if me == src else 'nccl:recv %d<-%d' % (dst, src)
            st = rank.comm if way == 'f' else rank.copy
            if me == src:
                yield from h.order(rank.compute, st)

            def inner():
                yield 3 * US
                yield from h.launch(st, it, call='cudaLaunchKernelExC')
            yield from h.span('record_param_comms', 'cpu_op', h.span(name, 'user_annotation', inner()),
                    {'Collective name': it.args['Collective name'], 'dtype': 'Float', 'In msg nelems': 1 << 20})
            if me == dst:
                yield from h.order(st, rank.compute)
        for s in range(self.steps):
            start = rank.sim.t
            for m in range(n):
                if me:
                    yield from message(s, me - 1, me, m, 'f')
                for j in range(3):
                    yield from h.op('aten::linear', [self.k('ampere_sgemm_128x64_tn', fwd / 3, 'pf', s, m, j, me)])
                if me < last:
                    yield from message(s, me, me + 1, m, 'f')
            for m in range(n):
                if me < last:
                    yield from message(s, me + 1, me, m, 'b')
                for j in range(3):
                    yield from h.op('aten::mm', [self.k('ampere_sgemm_128x64_nt', bwd / 3, 'pb', s, m, j, me)])
                if me:
                    yield from message(s, me, me - 1, m, 'b')
            yield from self.optimizer(h, s)
            yield from self.item(h, s, 'loss')
            rank.emit('ProfilerStep#%d' % (s + 20), 'user_annotation', start, rank.sim.t, 0, 0, {'External id': 0})
            yield 12 * US

    def simulate(self):
        sim = Sim()
        self.barriers = {}
        self.world = [Rank(self, sim, n) for n in range(self.ranks)]
        for rank in self.world:
            if self.p.get('micro'):
                sim.push(0, self.stage(rank))
                continue
            ready, free = {}, [self.p.get('prefetch', 2), Flag()]
            if self.p.get('loader') != 'main' and not self.p.get('no_loader'):
                sim.push(0, self.loader(rank, ready, free))
            sim.push(0, self.main(rank, ready, free))
        sim.run()
        return self

    def skip(self):
        return 1 if self.p.get('mean_all') else max(3, self.p.get('warm_steps', 0) + 2)

    def step_ns(self):
        ends = self.world[0].device_ends
        a = self.skip() - 1
        if self.p.get('sync') == 'fifth':
            a = 4
            return (ends[(len(ends) // 5) * 5 - 1] - ends[a]) / ((len(ends) // 5) * 5 - 1 - a)
        return (ends[-1] - ends[a]) / (len(ends) - 1 - a)

    def write(self, folder):
        paths = []
        for rank in self.world:
            pid = 4000 + rank.number
            meta = [{'ph': 'M', 'name': 'process_name', 'pid': pid, 'tid': 0, 'ts': 0, 'args': {'name': 'python'}},
                    {'ph': 'M', 'name': 'process_labels', 'pid': pid, 'tid': 0, 'ts': 0, 'args': {'labels': 'CPU'}},
                    {'ph': 'M', 'name': 'process_name', 'pid': rank.number, 'tid': 0, 'ts': 0, 'args': {'name': 'python'}},
                    {'ph': 'M', 'name': 'process_labels', 'pid': rank.number, 'tid': 0, 'ts': 0,
                            'args': {'labels': 'GPU %d' % rank.number}}]
            meta += [{'ph': 'M', 'name': 'thread_name', 'pid': rank.number, 'tid': t, 'ts': 0, 'args': {'name': 'stream %d ' % t}}
                    for t in sorted(rank.streams_used)]
            meta += [{'ph': 'M', 'name': 'thread_name', 'pid': pid, 'tid': pid + t, 'ts': 0,
                    'args': {'name': 'thread %d (%s)' % (pid + t, n)}} for t, n in ((0, 'python'), (1, 'pt_autograd_0'))]
            doc = {'schemaVersion': 1, 'deviceProperties': [{'id': n, 'name': 'NVIDIA A100-SXM4-80GB', 'totalGlobalMem': 85_000_000_000,
                    'computeMajor': 8, 'computeMinor': 0, 'numSms': 108} for n in range(max(self.ranks, 1))],
                   'cuda_runtime_version': 12010, 'record_shapes': 1, 'with_stack': 1 if self.p.get('python') else 0, 'profile_memory': 1 if self.p.get('memory') else 0,
                   'traceEvents': meta + rank.events, 'traceName': 'x', 'displayTimeUnit': 'ms', 'baseTimeNanoseconds': 0}
            if self.ranks > 1:
                doc['distributedInfo'] = {'backend': 'nccl', 'rank': rank.number, 'world_size': self.ranks, 'pg_count': 1,
                        'nccl_version': '2.18.5'}
            path = os.path.join(folder, 'rank%d.pt.trace.json' % rank.number)
            with open(path, 'w') as f:
                json.dump(doc, f)
            paths.append(path)
        return paths


# ---- faults: rules that may name them, parameters with the fault, what they are without it (None: the fault's own are left out) ----

def fault(rules, bad, good=None, basis="median", **kept):
    return {"rules": set(rules.split()), "bad": bad, "good": good or {}, "basis": basis, "kept": kept}


def cases(rng, busy):
    """busy: time of the device per step."""
    some = rng.uniform
    small = {"kernel_ns": 40 * US, "op_ns": 14 * US, "sync": "fifth", "steps": 20}
    behind = {"sync": "end", "op_ns": busy / 30, "copy_ns": busy * some(0.05, 0.1)}
    return {
        "loader": fault("input_wait slow_input_stage", {"load_ns": busy * some(1.2, 1.8)}, {"load_ns": busy * 0.3}),
        "loader_main": fault("input_wait slow_input_stage", {"loader": "main", "load_ns": busy * some(0.15, 0.8)}, {"load_ns": busy * 0.1}),
        "decoding": fault("input_wait slow_input_stage", {"loader": "main", "stage_part": 0.8, "load_ns": busy * some(0.2, 0.8)},
                          {"load_ns": busy * 0.1}, python=True),
        "tiny_kernels": fault("launch_bound fusible", {"tiny": rng.randint(8, 20)}),
        "slow_host": fault("launch_bound host_code", {"host_scale": 4}, {"host_scale": 0.2}, kernel_ns=40 * US),
        "host_code": fault("host_code", {"host_ns": busy * some(0.12, 0.5)}, python=rng.random() < 0.5),
        "host_code_inside": fault("host_code", {"host_ns": busy * some(0.9, 1.2), "host_mid": True}, python=rng.random() < 0.5),
        "reads": fault("synchronization", {"sync_layers": True}, **small),
        "pageable": fault("blocking_copy transfer synchronization", {"pageable": True}, **behind),
        "copies": fault("transfer blocking_copy", {"copy_ns": busy * some(0.1, 0.4)}, {"copy_ns": 0}),
        "late_reduce": fault("exposed_communication", {"comm_ns": busy * some(0.15, 0.4)}, {"comm_ns": 0}, ranks=2, late_comm=True),
        "no_overlap": fault("exposed_communication", {"late_comm": True}, ranks=2, comm_ns=busy * some(0.15, 0.4)),
        "mallocs": fault("allocation", {"mallocs": 3, "malloc_ns": busy * some(0.03, 0.1), "free_sync": True}),
        "layout": fault("layout_copies", {"layout": busy * some(0.04, 0.08)}),
        "slow_device": fault("imbalance collective_wait", {"slow_rank": rng.randint(0, 3), "slow_device": some(1.15, 1.6)}, ranks=4,
                             clocks=rng.random() < 0.5),
        "slow_rank_host": fault("imbalance collective_wait", {"slow_rank": 1, "slow_host": 20}, ranks=3, op_ns=14 * US),
        "messages": fault("small_messages exposed_communication", {"messages": 30, "message_ns": busy * 0.012}, ranks=2, comm_ns=busy * 0.1),
        "outliers": fault("outlier_steps", {"outlier_steps": [7, 15, 20], "outlier_ns": busy * some(1, 2)}, basis="mean", steps=24),
        "change": fault("step_change", {"change": some(1.25, 1.6)}, basis="mean", steps=24),
        "compilation": fault("recompilation", {"compile_steps": [8, 14], "compile_ns": int(busy * some(2, 4))}, basis="mean", steps=20),
        "checkpoints": fault("checkpoint_or_logging", {"save_every": 5, "save_ns": int(busy * some(0.5, 2))}, basis="mean", steps=20,
                             python=rng.random() < 0.5),
        "collector": fault("storage_or_gc", {"gc_ns": int(busy * some(0.12, 0.4))}, basis="mean"),
        "operator_on_host": fault("op_on_cpu host_code", {"cpu_op": busy * some(1.2, 1.6)}),
    }


CASES = tuple(cases(random.Random(0), MS))

# ---- jobs without a fault ----

DECOYS = {
    "plain": lambda busy: {},
    "with_python": lambda busy: {"python": True},
    "runs_ahead": lambda busy: {"sync": "end"},
    "waits_every_fifth": lambda busy: {"sync": "fifth", "steps": 15},
    "even_ranks": lambda busy: {"ranks": 4, "noise": 0.02, "clocks": True},
    "hidden_input": lambda busy: {"load_ns": busy * 0.85},
    "hidden_communication": lambda busy: {"ranks": 2, "comm_ns": busy * 0.3},
    "hidden_copy": lambda busy: {"copy_stream": True, "copy_ns": busy * 0.5, "sync": "end", "prefetch": 4},
    "hidden_host_code": lambda busy: {"host_ns": busy * 0.3, "host_mid": True, "sync": "end"},
    "hidden_allocation": lambda busy: {"mallocs": 2, "malloc_ns": busy * 0.1, "sync": "end"},
    "warm_up": lambda busy: {"warm_steps": 2, "steps": 14},
    "warm_up_compiles": lambda busy: {"warm_steps": 2, "steps": 14, "warm_compile": True},
    "sync_at_end": lambda busy: {"extra_sync": True},
    "memory_used_again": lambda busy: {"memory": True, "steps": 16},
    "hidden_collector": lambda busy: {"gc_ns": int(busy * 0.2), "sync": "end"},
}


def make_case(name, seed):
    """(job, rules that may name the fault, true saving per step)"""
    rng = random.Random(f"{name}/{seed}")
    case = cases(rng, Job(seed).device_guess())[name]
    bad = {**case["kept"], **case["bad"], "mean_all": case["basis"] == "mean"}
    good = {**case["kept"], **case["good"], "mean_all": case["basis"] == "mean"}
    job = Job(seed, **bad).simulate()
    return job, case["rules"], job.step_ns() - Job(seed, **good).simulate().step_ns()


def make_decoy(name, seed):
    return Job(seed, **DECOYS[name](Job(seed).device_guess())).simulate()
