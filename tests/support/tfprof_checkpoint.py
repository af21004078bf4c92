"""Checkpoints: tensor bundles (V2), some of their tensors in slices, and V1, for tests that write files without the program's help.

Nothing is compressed; a bundle has one shard, a table one block.
"""
import struct

from pb_write import fixed32, num, packed, some, sub, varint
from tfprof_store import TENSORS, raw

FORMS = {"float": "<f", "double": "<d", "int32": "<i", "int64": "<q", "bool": "<?", "uint8": "<B", "int16": "<h", "int8": "<b",
         "complex64": "<2f", "qint8": "<b", "quint8": "<B", "qint32": "<i", "bfloat16": "<H", "qint16": "<h", "quint16": "<H",
         "uint16": "<H", "complex128": "<2d", "half": "<e", "uint32": "<I", "uint64": "<Q"}
IN_V1 = {"float": 5, "double": 6, "int32": 7, "string": 8, "int64": 10, "int16": 7, "int8": 7, "uint8": 7}     # field of a TensorProto


def shape_message(shape):
    if shape is None:
        return num(3, 1)
    return b"".join(sub(2, some(1, dim)) for dim in shape)


def crc_table():
    table = []
    for i in range(256):
        for _ in range(8):
            i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
        table.append(i)
    return table


CRC = crc_table()


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc = CRC[(crc ^ byte) & 0xff] ^ crc >> 8
    crc ^= 0xffffffff
    return (((crc >> 15 | crc << 17) & 0xffffffff) + 0xa282ead8) & 0xffffffff


def tensor_bytes(kind, values):
    """The data and what its sum covers."""
    if kind != "string":
        data = b"".join(struct.pack(FORMS[kind], *(v if isinstance(v, tuple) else (v,))) for v in values)
        return data, data
    sizes = b"".join(struct.pack("<I", len(v)) for v in values)
    check = struct.pack("<I", masked_crc(sizes))
    text = b"".join(values)
    return b"".join(varint(len(v)) for v in values) + check + text, sizes + check + text


def block(entries):
    """One restart point per entry: keys are whole."""
    body, restarts = b"", []
    for key, value in entries:
        restarts.append(len(body))
        body += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    restarts = restarts or [0]
    return body + b"".join(struct.pack("<I", r) for r in restarts) + struct.pack("<I", len(restarts))


# ---- keys of slices ----

def ordered_number(n):
    size = (n.bit_length() + 7) // 8
    return bytes([size]) + n.to_bytes(size, "big")


def ordered_string(text):
    return text.replace(b"\xff", b"\xff\0").replace(b"\0", b"\0\xff") + b"\0\1"      # UTF-8 has neither


def ordered_signed(v):
    """Small ones only: starts and lengths of the slices here."""
    return bytes([0x80 ^ v & 0xff]) if -64 <= v < 64 else struct.pack(">H", (v & 0xffff) ^ 0xc000)


def slice_key(name, extents):
    key = ordered_number(0) + ordered_string(name.encode()) + ordered_number(len(extents))
    return key + b"".join(ordered_signed(start) + ordered_signed(length) for start, length in extents)


def slice_message(extents):
    return b"".join(sub(1, some(1, start) + (num(2, length) if length >= 0 else b"")) for start, length in extents)


def slices_of(dims, values, rng):
    """The tensor cut along its first dimension: [(extents, values)]; the others are whole."""
    row, cut = len(values) // dims[0], rng.randint(1, dims[0] - 1)
    rest = [(0, -1)] * (len(dims) - 1)
    return [([(0, cut)] + rest, values[:cut * row]), ([(cut, dims[0] - cut)] + rest, values[cut * row:])]


# ---- the files ----

def write_table(path, entries):
    """[(key, value)] in order of the keys."""
    table, handles = b"", []
    for content in (block(entries), block([])):
        handles.append(varint(len(table)) + varint(len(content)))
        table += content + b"\0" + struct.pack("<I", masked_crc(content + b"\0"))
    index = block([(entries[-1][0] + b"\xff", handles[0])])
    footer = handles[1] + varint(len(table)) + varint(len(index))
    table += index + b"\0" + struct.pack("<I", masked_crc(index + b"\0"))
    with open(path, "wb") as f:
        f.write(table + footer.ljust(40, b"\0") + bytes.fromhex("57fb808b247547db"))


def write_checkpoint(prefix, tensors, rng):
    data, entries = b"", {b"": num(1, 1) + sub(3, num(1, 1))}

    def add(key, kind, dims, values):
        nonlocal data
        content, summed = tensor_bytes(kind, values)
        entries[key] = (num(1, TENSORS[kind]) + sub(2, shape_message(dims)) + some(4, len(data)) + some(5, len(content)) +
                        fixed32(6, masked_crc(summed)))
        data += content

    for name, (kind, dims, values) in tensors.items():
        if kind == "string" or not dims or dims[0] < 2 or not values or rng.random() < 0.5:
            add(name.encode(), kind, dims, values)
            continue
        parts = slices_of(dims, values, rng)
        entries[name.encode()] = num(1, TENSORS[kind]) + sub(2, shape_message(dims)) + b"".join(sub(7, slice_message(e)) for e, _ in parts)
        for extents, part in parts:
            add(slice_key(name, extents), kind, [extents[0][1]] + dims[1:], part)
    with open(prefix + ".data-00000-of-00001", "wb") as f:
        f.write(data)
    write_table(prefix + ".index", sorted(entries.items()))


def v1_values(kind, values):
    if kind == "string":
        return b"".join(sub(8, v) for v in values)
    if kind in ("float", "double"):
        return sub(IN_V1[kind], b"".join(struct.pack(FORMS[kind], v) for v in values))
    return packed(IN_V1[kind], values)


def write_v1(path, tensors):
    """Of the types that V1 has."""
    meta, entries = b"", {}
    for name in sorted(tensors, key=raw):
        kind, dims, values = tensors[name]
        whole = [(0, -1)] * len(dims)
        meta += sub(1, sub(1, name) + sub(2, shape_message(dims)) + num(3, TENSORS[kind]) + sub(4, slice_message(whole)))
        tensor = num(1, TENSORS[kind]) + sub(2, shape_message(dims)) + v1_values(kind, values)
        entries[slice_key(name, whole)] = sub(2, sub(1, name) + sub(2, slice_message(whole)) + sub(3, tensor))
    entries[b""] = sub(1, meta + sub(2, num(1, 1)))
    write_table(path, sorted(entries.items()))
