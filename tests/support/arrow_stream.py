"""arrow_stream.py: reads a stream of Arrow's IPC format without a library: integers, floats, booleans and texts, not packed, without
dictionaries. Enough to check what opwatch writes: read(bytes) returns (names, rows as dicts)."""
import struct


def number(data, at, form):
    return struct.unpack_from("<" + form, data, at)[0]


class Table:
    """A table of a FlatBuffer: fields by their slot."""
    def __init__(self, data, at):
        self.data, self.at, self.vtable = data, at, at - number(data, at, "i")

    def place(self, slot):
        inside = 4 + 2 * slot
        offset = number(self.data, self.vtable + inside, "H") if inside < number(self.data, self.vtable, "H") else 0
        return self.at + offset if offset else None

    def value(self, slot, form, usual=0):
        at = self.place(slot)
        return usual if at is None else number(self.data, at, form)

    def ref(self, slot):
        at = self.place(slot)
        return None if at is None else at + number(self.data, at, "I")

    def table(self, slot):
        return Table(self.data, self.ref(slot))

    def text(self, slot):
        at = self.ref(slot)
        return self.data[at + 4:at + 4 + number(self.data, at, "I")].decode()

    def vector(self, slot, size):
        at = self.ref(slot)
        return [] if at is None else [at + 4 + i * size for i in range(number(self.data, at, "I"))]

    def tables(self, slot):
        return [Table(self.data, at + number(self.data, at, "I")) for at in self.vector(slot, 4)]


def column_reader(field):
    kind, detail = field.value(2, "B"), field.table(3)
    if kind == 2:
        form = {(32, True): "i", (64, True): "q", (64, False): "Q"}[detail.value(0, "i"), bool(detail.value(1, "B"))]
        return 2, lambda buffers, n: list(struct.unpack_from(f"<{n}{form}", buffers[1]))
    if kind == 3:
        assert detail.value(0, "h") == 2  # double
        return 2, lambda buffers, n: list(struct.unpack_from(f"<{n}d", buffers[1]))
    if kind == 6:
        return 2, lambda buffers, n: [bool(buffers[1][i // 8] >> i % 8 & 1) for i in range(n)]
    assert kind == 5  # UTF-8

    def texts(buffers, n):
        places = struct.unpack_from(f"<{n + 1}i", buffers[1])
        return [buffers[2][a:b].decode() for a, b in zip(places, places[1:])]
    return 3, texts


def read_batch(batch, body, readers):
    rows = batch.value(0, "q")
    nodes = [struct.unpack_from("<qq", batch.data, at) for at in batch.vector(1, 16)]
    buffers = [struct.unpack_from("<qq", batch.data, at) for at in batch.vector(2, 16)]
    columns = []
    for (count, read), (length, nulls) in zip(readers, nodes):
        mine, buffers = [body[a:a + n] for a, n in buffers[:count]], buffers[count:]
        values = read(mine, length)
        known = [not nulls or bool(mine[0][i // 8] >> i % 8 & 1) for i in range(length)]
        assert length == rows and known.count(False) == nulls
        columns.append([value if good else None for value, good in zip(values, known)])
    assert not buffers
    return list(zip(*columns)) if columns else [()] * rows


def read(data):
    names, readers, rows, at = None, None, [], 0
    while True:
        assert number(data, at, "I") == 0xFFFFFFFF, at
        size = number(data, at + 4, "I")
        at += 8
        if not size:
            assert at == len(data), "bytes after the end of the stream"
            return names, [dict(zip(names, row)) for row in rows]
        meta = data[at:at + size]
        message = Table(meta, number(meta, 0, "I"))
        body = data[at + size:at + size + message.value(3, "q")]
        at += size + len(body)
        if message.value(1, "B") == 1:
            assert names is None
            fields = message.table(2).tables(1)
            names, readers = [field.text(0) for field in fields], [column_reader(field) for field in fields]
        else:
            assert message.value(1, "B") == 3
            rows += read_batch(message.table(2), body, readers)
