"""
real_jobs.py: small training steps of PyTorch on the CPU, each with one thing that can be taken out or made smaller, and the change of
`opwatch what-if` that says the same. `measure` records the job as it is and with the change done to the program, and compares what
opwatch predicts from the first recording with what the second one took.

Used by tools/calibrate, which makes the table in src/replay/calibration.def, and by tests/integration/interventions_test.py.
Steps run on one thread, with a real-time priority where the system permits it, because other work on the machine would be measured, too.
"""
import contextlib
import io
import json
import os
import statistics
import subprocess
import tempfile

STEPS = 14


def jobs(torch):
    """name: (changes in words, step with the thing, step with the change). Sizes are chosen so that each part takes some milliseconds."""
    torch.manual_seed(1)
    x, w = torch.randn(32, 64), torch.randn(64, 64)
    image, kernel = torch.randn(1, 8, 24, 24), torch.randn(8, 8, 3, 3)
    short, long, index = torch.randn(8000), torch.randn(60000), torch.randint(0, 60000, (60000,))
    batch, wide = torch.randn(8, 3, 32, 32), torch.randn(192, 512)
    record = torch.profiler.record_function

    def products(n):
        y = x
        for _ in range(n):
            y = torch.mm(y, w).mul_(0.05)
        return y

    def load(n):
        with record("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
            for _ in range(n):
                (batch - batch.mean()).div_(batch.std()).flip(3).contiguous()

    def python(n):
        with record("augment"):
            total = 0
            for i in range(n):
                total += i * i % 7
        return total

    def words(n):
        with record("tokenize"):
            return " ".join(sorted(str(i * 7919 % 10007) for i in range(n))).split()

    return {
        "no input": (["input=0"], lambda: (load(9), products(24)), lambda: products(24)),
        "no sort": (["op:aten::sort*0"], lambda: (products(24), torch.sort(short)), lambda: products(24)),
        "half the products": (["op:aten::mm*0.5", "op:aten::mul_*0.5"], lambda: (products(40), torch.sort(short)), lambda: (products(20), torch.sort(short))),
        "no exponentials": (["op:aten::exp*0"], lambda: (products(24), [torch.exp(long) for _ in range(12)]), lambda: products(24)),
        "no Python code": (["op:augment*0"], lambda: (python(20000), products(24)), lambda: products(24)),
        "no tokens": (["op:tokenize*0"], lambda: (words(3000), products(24)), lambda: products(24)),
        "no convolutions": (["op:aten::conv2d*0"], lambda: (products(24), [torch.nn.functional.conv2d(image, kernel) for _ in range(6)]), lambda: products(24)),
        "no gather": (["op:aten::index_select*0"], lambda: (products(24), [torch.index_select(long, 0, index) for _ in range(8)]), lambda: products(24)),
        "no softmax": (["op:aten::softmax*0"], lambda: (products(24), [torch.softmax(wide, 1) for _ in range(10)]), lambda: products(24)),
        "no input and no sort": (["input=0", "op:aten::sort*0"], lambda: (load(3), products(24), torch.sort(short)), lambda: products(24)),
    }


def record(torch, step, path):
    """Steps under the profiler, as its documentation shows."""
    with contextlib.redirect_stderr(io.StringIO()):
        schedule = torch.profiler.schedule(wait=1, warmup=1, active=STEPS)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule,
                                    on_trace_ready=lambda p: p.export_chrome_trace(path)) as profile:
            for _ in range(STEPS + 2):
                step()
                profile.step()


def ask(binary, command, path, *words):
    done = subprocess.run([binary, command, path, *words, "--json"], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr}")
    return json.loads(done.stdout)


def measure(torch, binary, name, repeat=1):
    """(recorded step, predicted step with its interval, measured step with the change): medians over repeated recordings, in turns."""
    changes, with_it, without = jobs(torch)[name]
    answers, measured = [], []
    with tempfile.TemporaryDirectory() as folder:
        for k in range(repeat):
            for what, step in (("with", with_it), ("without", without)):
                path = os.path.join(folder, f"{what}{k}.pt.trace.json")
                record(torch, step, path)
                if what == "with":
                    answers.append(ask(binary, "what-if", path, *changes))
                else:
                    measured.append(ask(binary, "path", path)["step_ns"])
    for answer in answers:
        if answer["refused"]:
            raise RuntimeError(f"{name}: refused: {answer['refused']}")
    middle = {key: statistics.median(a[key] for a in answers) for key in ("base_step_ns", "new_step_ns", "new_low_ns", "new_high_ns")}
    return middle["base_step_ns"], middle["new_step_ns"], middle["new_low_ns"], middle["new_high_ns"], statistics.median(measured)


def quiet(torch):
    """One thread, ahead of other programs if that is permitted."""
    torch.set_num_threads(1)
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))
