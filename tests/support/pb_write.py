"""Writes protocol buffers by the numbers of their fields, for tests that make files without the program's help."""


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out + bytearray([value]))


def num(field, value):
    return varint(field << 3) + varint(value)


def some(field, value):
    """Only when it is not zero, as writers do it."""
    return num(field, value) if value else b""


def sub(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def packed(field, values):
    return sub(field, b"".join(varint(v) for v in values)) if values else b""


def fixed32(field, value):
    return varint(field << 3 | 5) + value.to_bytes(4, "little")
