"""The same protocol buffer written differently: every reader must take both for the same message.

Fields come in another order (those of one number keep theirs), singular ones twice with the last to win, singular messages in two
parts that merge, repeated numbers packed or not, zeros and unknown fields are written. What a field is, a schema says: a dict from
its number to a kind, or to (kind, schema of the message).
"""
from pb_write import num, sub, varint

ONE, WHOLE, MANY, TEXT, TEXTS, NUMBERS = "a message", "a message in one piece", "messages", "a number or text", "texts", "numbers"
UNKNOWN = [(77, 0, 5), (78, 2, b"x"), (99, 1, b"12345678"), (1000, 5, b"1234"), (77, 3, None)]


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """[(number, wire type, value)]"""
    at, out = 0, []
    while at < len(data):
        tag, at = read_varint(data, at)
        if tag & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size, at = read_varint(data, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
            value, at = data[at:at + size], at + size
        out.append((tag >> 3, tag & 7, value))
    return out


def written(number, wire, value):
    if wire == 0:
        return num(number, value)
    if wire == 2:
        return sub(number, value)
    if wire == 3:       # a group with a number in it
        return varint(number << 3 | 3) + num(1, 1) + varint(number << 3 | 4)
    return varint(number << 3 | wire) + value


class Scrambler:
    def __init__(self, rng):
        self.rng = rng

    def pieces(self, number, wire, value, kind, schema):
        """One field as one or several."""
        rng = self.rng
        if kind == ONE:
            inner = fields(value)
            if rng.random() < 0.3:
                cut = rng.randint(0, len(inner))
                return [sub(number, self.message(b"".join(written(*f) for f in part), schema)) for part in (inner[:cut], inner[cut:])]
            return [sub(number, self.message(value, schema))]
        if kind in (MANY, WHOLE):
            return [sub(number, self.message(value, schema))]
        if kind == NUMBERS:
            values = [value] if wire == 0 else []
            at = 0
            while wire == 2 and at < len(value):
                one, at = read_varint(value, at)
                values.append(one)
            return self.numbers(number, values)
        if kind == TEXT and rng.random() < 0.1:
            junk = written(number, wire, 12345 if wire == 0 else b"junk" if wire == 2 else value)
            return [junk, written(number, wire, value)]
        return [written(number, wire, value)]

    def numbers(self, number, values):
        out = []
        while values:
            size = self.rng.randint(1, len(values))
            part, values = values[:size], values[size:]
            out += [sub(number, b"".join(varint(v) for v in part))] if self.rng.random() < 0.5 else [num(number, v) for v in part]
        return out

    def message(self, data, schema):
        rng, lists = self.rng, {}
        for number, wire, value in fields(data):
            kind = schema.get(number, TEXT)
            kind, inner = kind if isinstance(kind, tuple) else (kind, None)
            lists.setdefault(number, []).extend(self.pieces(number, wire, value, kind, inner))
        if rng.random() < 0.05:
            unknown = rng.choice(UNKNOWN)
            lists.setdefault(unknown[0], []).append(written(*unknown))
        order = [number for number, parts in lists.items() for _ in parts]
        if rng.random() < 0.3:
            rng.shuffle(order)
        return b"".join(lists[number].pop(0) for number in order)
