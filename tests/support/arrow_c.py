"""arrow_c.py: reads Arrow's C stream interface through ctypes, as a consumer does: take the stream out of its capsule, read the schema and
every batch, release all of it. rows(thing) returns (names, rows as tuples); thing has __arrow_c_stream__."""
import ctypes
import struct


class Schema(ctypes.Structure):
    pass


Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.c_void_p),
                   ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("private_data", ctypes.c_void_p)]


class Array(ctypes.Structure):
    pass


Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                  ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                  ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.c_void_p),
                  ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("private_data", ctypes.c_void_p)]


class Stream(ctypes.Structure):
    _fields_ = [("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
                ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)),
                ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)),
                ("release", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("private_data", ctypes.c_void_p)]


def pointer(capsule, name):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


def values(array, form):
    """The values of a column; unknown ones are None."""
    count, first, buffers = array.length, array.offset, array.buffers

    def known(i):
        i += first
        return not buffers[0] or ctypes.string_at(buffers[0] + i // 8, 1)[0] >> i % 8 & 1

    def fixed(code, size):
        data = ctypes.string_at(buffers[1] + first * size, count * size) if count else b""
        return struct.unpack("<%d%s" % (count, code), data)
    if form in ("l", "g"):
        found = fixed("q" if form == "l" else "d", 8)
    elif form == "b":
        found = [bool(ctypes.string_at(buffers[1] + (first + i) // 8, 1)[0] >> (first + i) % 8 & 1) for i in range(count)]
    else:
        size = {"u": 4, "U": 8}[form]
        places = struct.unpack("<%d%s" % (count + 1, "i" if size == 4 else "q"),
                               ctypes.string_at(buffers[1] + first * size, (count + 1) * size)) if count else (0,)
        found = [ctypes.string_at(buffers[2] + a, b - a).decode() if b > a else "" for a, b in zip(places, places[1:])]
    return [value if known(i) else None for i, value in enumerate(found)]


def rows(thing):
    capsule = thing.__arrow_c_stream__()
    stream = Stream.from_address(pointer(capsule, b"arrow_array_stream"))
    address, schema, found = ctypes.addressof(stream), Schema(), []
    assert stream.get_schema(address, ctypes.addressof(schema)) == 0, stream.get_last_error(address)
    assert schema.format == b"+s"
    fields = [schema.children[i].contents for i in range(schema.n_children)]
    names, forms = [field.name.decode() for field in fields], [field.format.decode() for field in fields]
    while True:
        batch = Array()
        assert stream.get_next(address, ctypes.addressof(batch)) == 0, stream.get_last_error(address)
        if not batch.release:
            break
        columns = [values(batch.children[i].contents, forms[i]) for i in range(batch.n_children)]
        found += list(zip(*columns)) if columns else []
        batch.release(ctypes.addressof(batch))
    schema.release(ctypes.addressof(schema))
    stream.release(address)
    return names, found
