"""profile_proto.py: reads TensorFlow's ProfileProto and RunMetadata by the numbers of its fields, for tests that compute answers by themselves.
It shares nothing with the program."""


def fields(data):
    """(number, value) of every field: integers, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            value = varint()
            yield tag >> 3, value - (1 << 64) if value >> 63 else value
        elif tag & 7 == 2:
            size = varint()
            yield tag >> 3, data[at:at + size]
            at += size
        else:
            size = 8 if tag & 7 == 1 else 4
            yield tag >> 3, data[at:at + size]
            at += size


def numbers(data, number):
    """A repeated integer, packed or not."""
    for field, value in fields(data):
        if field != number:
            continue
        if isinstance(value, int):
            yield value
        else:
            yield from (v for _, v in fields(b"".join(b"\x08" + one for one in split_varints(value))))


def split_varints(data):
    start = 0
    for i, byte in enumerate(data):
        if byte < 0x80:
            yield data[start:i + 1]
            start = i + 1


def entries(data, number):
    """Keys and values of a map."""
    for field, value in fields(data):
        if field == number:
            pair = dict(fields(value))
            yield pair.get(1, 0), pair.get(2, b"")


def times(data, number):
    """(start, duration) of a map of ExecTime."""
    for device, value in entries(data, number):
        for field, tuple_ in fields(value):
            if field == 1:
                start, duration = numbers(tuple_, 1)
                yield device.decode(), start, duration


def nodes(path):
    """name, type, device, and per step: runs, times on accelerators and CPUs, memory, allocations."""
    with open(path, "rb") as file:
        data = file.read()
    for _, node in entries(data, 1):
        plain = dict(fields(node))
        steps = {}
        for step, execution in entries(node, 12):
            steps[step] = {
                "runs": dict(fields(execution)).get(1, 0),
                "accelerator": list(times(execution, 4)),
                "cpu": list(times(execution, 5)),
                "memory": [dict((k, v) for k, v in fields(m) if isinstance(v, int)) for f, m in fields(execution) if f == 7],
                "allocations": [(d.get(1, 0), d.get(2, 0)) for d in (dict(fields(a)) for f, a in fields(execution) if f == 11)],
            }
        yield {"name": plain.get(1, b"").decode(), "type": plain.get(9, b"").decode(), "device": plain.get(6, b"").decode(),
               "steps": steps}


def outputs(path):
    """(node, slot, allocated bytes) of every output in a RunMetadata."""
    with open(path, "rb") as file:
        data = file.read()
    for stats in (v for f, v in fields(data) if f == 1):
        for device in (v for f, v in fields(stats) if f == 1):
            for node in (v for f, v in fields(device) if f == 2):
                name = dict(fields(node)).get(1, b"").decode()
                for output in (dict(fields(v)) for f, v in fields(node) if f == 7):
                    described = dict(fields(dict(fields(output.get(3, b""))).get(4, b"")))
                    yield name, output.get(1, 0), described.get(2, 0)
