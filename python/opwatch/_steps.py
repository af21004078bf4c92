"""Recording: a training loop writes its own steps and phases into an opwatch file while it runs.

    with opwatch.steps("run.opw") as s:
        for batch in s.track(loader):
            loss = model(batch)
            s.mark("forward")
            loss.backward()
            s.mark("backward")

`opwatch run.opw` then shows where the time went, also while the loop runs, and after it was killed.
"""
from . import _opwatch
from ._result import _NO_PICKLE


class _Phase:
    """One with block as a slice of time."""

    __slots__ = ("_recorder", "_name", "_start")

    def __init__(self, recorder, name):
        self._recorder, self._name, self._start = recorder, name, None

    def __enter__(self):
        self._start = self._recorder.now()
        return self

    def __exit__(self, *exception):
        if not self._recorder.closed:
            self._recorder.slice(self._name, self._start, self._recorder.now())


class StepRecorder:
    """What opwatch.steps() gives.

    A mark, slice or value is in the file when the call returns: it is not lost when the process is killed, but it
    may be when the machine fails, since only close() flushes. Any thread may call. In a child process after a fork
    (a data-loading worker) the calls do nothing, and the file stays the parent's.
    """

    def __init__(self, native, path):
        self._native = native
        self.path = path
        self.mark = native.mark  # no frame of Python in between
        self.value = native.value

    def track(self, batches, name="data"):
        """Gives what `batches` gives; each is a step, and waiting for it the slice `name` of it.

        A step lasts until the next batch is asked for.
        """
        native = self._native
        batches = iter(batches)
        try:
            while True:
                start = native.now()
                native.step(None, start)
                try:
                    batch = next(batches)
                except StopIteration:
                    native.end_step(True)  # waited for nothing: no step
                    return
                native.slice(name, start, native.now())
                yield batch
        finally:
            if not native.closed:
                native.end_step(False)

    def step(self, number=None):
        """A step begins, and the one before ends; gives its number. For loops that track() does not fit."""
        return self._native.step(number)

    def end_step(self):
        """The step ends, and no other begins yet."""
        self._native.end_step(False)

    def mark(self, name):  # replaced by the extension's own, per object
        """What this thread did since its last mark, or since the step began, was `name`."""
        raise NotImplementedError

    def value(self, name, number):  # likewise
        """A number that changes with time: a loss, a learning rate."""
        raise NotImplementedError

    def phase(self, name):
        """with s.phase("forward"): …  A slice of time; may be nested."""
        return _Phase(self._native, name)

    def name_thread(self, name):
        """What the thread that calls is named in the profile."""
        self._native.name_thread(name)

    @property
    def active(self):
        """False when it is closed, and in a child process."""
        return self._native.active

    @property
    def closed(self):
        return self._native.closed

    def close(self):
        """Ends the step and the file. Raises if something could not be written."""
        if not self._native.closed:
            self._native.end_step(False)
            self._native.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __reduce__(self):
        raise TypeError(_NO_PICKLE % ("recording", "its path"))

    def __repr__(self):
        state = "closed" if self.closed else "recording" if self.active else "of the parent process"
        return "<opwatch.StepRecorder %s, %s>" % (self.path, state)


def steps(path, first_step=0):
    """Records steps and phases of the program itself into an opwatch file; see StepRecorder.

    A file of that name is replaced.
    """
    return StepRecorder(_opwatch.Recorder.open(path, first_step), path)
