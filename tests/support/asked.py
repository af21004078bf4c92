"""A small trace as PyTorch writes them, whose numbers can be checked by hand: three steps of 1, 1 and 1.5 ms with a copy, two
kernels, their launches, a wait and a Python function each; compilation in the first step and a counter.

    write(path, slower=0)       slower: microseconds that the large kernel takes longer in every step
    write(path, rank=1)         with a message between ranks in every step, half beside the large kernel
"""
import json

STEPS = ((1, 0, 0), (2, 1000, 0), (3, 2000, 400))  # number, begin, how much longer the large kernel takes


def events(slower, rank):
    rows, correlation = [], 0

    def add(ph, name, cat, tid, ts, dur=None, pid=1, **args):
        rows.append({"ph": ph, "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, **({} if dur is None else {"dur": dur}),
                     "args": args})

    def launch(call, at, dur, work, cat, start, took, **args):
        nonlocal correlation
        correlation += 1
        add("X", call, "cuda_runtime", 1, at, dur, correlation=correlation)
        add("X", work, cat, 7, start, took, pid=0, correlation=correlation, device=0, stream=7, **args)

    for number, begin, longer in STEPS:
        longer += slower
        add("X", f"ProfilerStep#{number}", "user_annotation", 1, begin, 1500 if number == 3 else 1000)
        add("X", "train.py(10): step", "python_function", 1, begin + 10, 900 + longer)
        launch("cudaMemcpyAsync", begin + 20, 10, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", begin + 40, 50, bytes=1000000)
        add("X", "aten::mm", "cpu_op", 1, begin + 100, 200)
        launch("cudaLaunchKernel", begin + 150, 20, "gemm", "kernel", begin + 300, 400 + longer)
        launch("cudaLaunchKernel", begin + 180, 5, "tiny", "kernel", begin + 720 + longer, 5)
        add("X", "cudaDeviceSynchronize", "cuda_runtime", 1, begin + 740 + longer, 100)
        if rank is not None:
            add("X", "ncclDevKernel_AllReduce_Sum", "kernel", 9, begin + 600, 200 + longer, pid=0, device=0, stream=9)
        rows.append({"ph": "C", "name": "loss", "pid": 1, "ts": begin, "args": {"value": 4 - number}})
    add("X", "compile_fx", "cpu_op", 2, 500, 50)
    return rows


def write(path, slower=0, rank=None):
    names = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
             {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python"}},
             {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
             {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}},
             {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}}]
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}],
                                "distributedInfo": {"rank": rank or 0, "world_size": 2}, "traceEvents": names + events(slower, rank)}))
