# SPDX-License-Identifier: GPL-2.0-only
"""Protobuf's wire format (protobuf.dev/programming-guides/encoding): numbers, and messages read field by field from a
file, so that unneeded data is skipped without reading."""

import struct

VARINT, EIGHT_BYTES, DELIMITED, FOUR_BYTES = 0, 1, 2, 5


def varint(value):
    """The bytes of a number; a negative one as of 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def delimited(number, content):
    return varint(number << 3 | DELIMITED) + varint(len(content)) + content


class WireError(Exception):
    """An error in the bytes; `at` is its place."""

    def __init__(self, at, text):
        super().__init__(text)
        self.at = at


class Part:
    """Bytes from `at` to `end` of a file that are one message, text or list."""

    def __init__(self, file, at, end):
        self.file, self.at, self.end = file, at, end

    def __len__(self):
        return self.end - self.at

    def read(self):
        self.file.seek(self.at)
        content = self.file.read(self.end - self.at)
        if len(content) < self.end - self.at:
            raise WireError(self.at, "the file ends within a message")
        return content

    def text(self):
        return self.read().decode("utf-8", "replace")

    def fields(self, parts=(), numbers=()):
        """(number, value): a whole number, or a Part. Fields in `parts` and `numbers` must be of this kind."""
        at = self.at
        while at < self.end:
            number, value, at = self.field_at(at)
            if number in (numbers if isinstance(value, Part) else parts):
                raise WireError(at, f"field {number} has another type than its message gives it")
            yield number, value

    def field_at(self, at):
        """(number, value, place of the next one)."""
        key, at = self.number_at(at)
        wire = key & 7
        if wire == VARINT:
            value, at = self.number_at(at)
        elif wire in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if wire == EIGHT_BYTES else 4
            value = int.from_bytes(Part(self.file, at, at + size).read(), "little")
            at += size
        elif wire == DELIMITED:
            size, at = self.number_at(at)
            value = Part(self.file, at, at + size)
            at += size
        else:
            raise WireError(at, f"a field of wire type {wire}")
        if at > self.end:
            raise WireError(at, "a field that is longer than its message")
        return key >> 3, value, at

    def number_at(self, at):
        self.file.seek(at)
        value = shift = 0
        for byte in self.file.read(min(10, max(0, self.end - at))):
            value |= (byte & 127) << shift
            shift += 7
            at += 1
            if byte < 128:
                return value & ((1 << 64) - 1), at
        raise WireError(at, "a number without an end")

    def packed(self):
        """The numbers of a packed list of varints."""
        at, found = self.at, []
        while at < self.end:
            value, at = self.number_at(at)
            found.append(value)
        return found


def signed(value):
    """The signed value of an int64's varint."""
    return value - (1 << 64) if value >> 63 else value


def real(value):
    """The value of the four bytes of a float."""
    return struct.unpack("<f", value.to_bytes(4, "little"))[0]
