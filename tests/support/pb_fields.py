"""Fields of a protocol buffer, without its definition: for tests that read other programs' answers."""
import struct


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) pairs: int for varints, float for 64 bits, bytes."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            value, at = data[at:at + 4], at + 4
        yield tag >> 3, value


def message(data):
    """The last value of each field."""
    return dict(fields(data))
