# SPDX-License-Identifier: GPL-2.0-only
"""XSpace in protobuf (third_party/tsl/tsl/profiler/protobuf/xplane.proto of github.com/openxla/xla). Planes are read event
by event; names, which events refer to by numbers, are in memory, once for each plane."""

import contextlib
import shutil
import struct
import tempfile

from frameworks.wire import DELIMITED, EIGHT_BYTES, FOUR_BYTES, VARINT, Part, WireError, signed
from importing.errors import InputError, unreadable, unzipped

LONGEST = 64 << 20  # bytes of an event; those of XLA have some hundred
PIECE, FEW = 1 << 20, 16  # bytes: of the file in memory, and of the beginning of a field
EVENT = 4 << 3 | DELIMITED  # the first byte of an event in a line, and of a stat in an event


def fields_of(content, origin):
    """(number, value) of a message in memory: a whole number, or bytes. `origin` is its place in the file."""
    at, end = 0, len(content)
    while at < end:
        key, at = varint_at(content, at, end, origin)
        wire = key & 7
        if wire == VARINT:
            value, at = varint_at(content, at, end, origin)
        elif wire == DELIMITED:
            size, at = varint_at(content, at, end, origin)
            value = content[at:at + size]
            at += size
        elif wire in (EIGHT_BYTES, FOUR_BYTES):
            size = 8 if wire == EIGHT_BYTES else 4
            value = int.from_bytes(content[at:at + size], "little")
            at += size
        else:
            raise WireError(origin + at, f"a field of wire type {wire}")
        if at > end:
            raise WireError(origin + at, "a field that is longer than its message")
        yield key >> 3, value


def varint_at(content, at, end, origin):
    value = shift = 0
    while at < end and shift < 70:
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & ((1 << 64) - 1), at
        shift += 7
    raise WireError(origin + at, "a number without an end")


def whole(value, at):
    """The value of an int64."""
    if not isinstance(value, int):
        raise WireError(at, "text where its message has a number")
    return signed(value)


def text_of(value, at):
    if isinstance(value, int):
        raise WireError(at, "a number where its message has text")
    return (value.read() if isinstance(value, Part) else value).decode("utf-8", "replace")


def inner(value, at):
    """The bytes of a message within another one, or its Part."""
    if isinstance(value, int):
        raise WireError(at, "a number where its message has another message")
    return value


def plain_event(content, at, began):
    """As Line.event, for an event of known fields alone; None for others, and for damaged ones."""
    name = offset = took = i = 0
    stats, end = [], len(content)
    try:
        while i < end:
            key, value = content[i], content[i + 1]
            i += 2
            if value >= 128:
                value &= 127
                shift, byte = 7, 128
                while byte >= 128:
                    byte = content[i]
                    value |= (byte & 127) << shift
                    shift += 7
                    i += 1
                if value >= 1 << 63:
                    return None
            if key == EVENT:
                if i + value > end:
                    return None
                stats.append(content[i:i + value])
                i += value
            elif key == 8:
                name = value
            elif key == 16:
                offset = value
            elif key == 24:
                took = value
            else:
                return None
    except IndexError:
        return None
    return at, name, began + offset, took, stats


class Line:
    """A timeline of a plane."""

    def __init__(self, part):
        self.part, self.number, self.name, self.began = part, 0, "", 0
        for field, value in part.fields():
            if field == 1:
                self.number = whole(value, part.at)
            elif field == 2:
                self.name = text_of(value, part.at)
            elif field == 3:
                self.began = whole(value, part.at) * 1000
            elif field == 4 and self.name:
                break  # fields are in the order of their numbers

    def events(self, with_stats=False):
        """(place in the file, number of its name, start and duration in picoseconds, bytes of its stats) of each, or of those
        alone that may have stats: Python's functions, most events of a host, have none."""
        for at, content in self.messages():
            if with_stats and EVENT not in content:
                continue
            yield plain_event(content, at, self.began) or self.event(content, at)

    def messages(self):
        """(place in the file, bytes) of each event. Most are short: a piece of the file has many of them."""
        part, at = self.part, self.part.at
        piece, begin, i = b"", at, 0  # `at` is byte i of the piece, which begins at `begin`
        while at < part.end:
            if len(piece) - i < FEW and begin + len(piece) < part.end:
                part.file.seek(at)
                piece, begin, i = part.file.read(min(PIECE, part.end - at)), at, 0
            if len(piece) - i >= FEW and piece[i] == EVENT:
                size, first = piece[i + 1], i + 2
                if size >= 128 and piece[i + 2] < 128:
                    size, first = size & 127 | piece[i + 2] << 7, i + 3
                if size < 1 << 14 and first + size <= len(piece) and (first == i + 3 or size < 128):
                    yield begin + first, piece[first:first + size]
                    i = first + size
                    at = begin + i
                    continue
            field, value, at = part.field_at(at)
            i = at - begin
            if i >= len(piece):
                piece, begin, i = b"", at, 0
            if field == 4:
                if len(inner(value, part.at)) > LONGEST:
                    raise WireError(value.at, f"an event of {len(value)} bytes")
                yield value.at, value.read()

    def event(self, content, at):
        name = offset = took = 0
        stats = []
        for field, value in fields_of(content, at):
            if field == 4:
                stats.append(inner(value, at))
            elif field in (1, 2, 3, 5):
                value = whole(value, at)
                if field == 1:
                    name = value
                elif field == 2:
                    offset = value
                elif field == 3:
                    took = value
                else:
                    offset = None  # an aggregate of several events, without a time
        return at, name, None if offset is None else self.began + offset, took, stats


class Plane:
    """`names` of events {number: text}, `stat_names` {number: text}, `texts` {number: Part of the whole name}."""

    def __init__(self, part):
        self.part, self.name, self.lines = part, "", []
        self.names, self.texts, self.metadata_stats, self.stat_names = {}, {}, {}, {}
        for field, value in part.fields():
            if field == 2:
                self.name = text_of(value, part.at)
                break

    def read(self):
        """Reads names; lines() can then be called."""
        for field, value in self.part.fields():
            if field == 3:
                self.lines.append(inner(value, self.part.at))
            elif field == 4:
                self.event_name(inner(value, self.part.at))
            elif field == 5:
                self.stat_name(inner(value, self.part.at))
        return self

    def entry(self, part):
        """(key, value) of an entry of a map."""
        key, found = 0, None
        for field, value in part.fields():
            if field == 1:
                key = whole(value, part.at)
            elif field == 2:
                found = inner(value, part.at)
        return key, found

    def event_name(self, part):
        number, metadata = self.entry(part)
        name, shown, stats = None, "", []
        for field, value in metadata.fields() if metadata else ():
            if field == 2:
                name = inner(value, metadata.at)
            elif field == 4:
                shown = text_of(value, metadata.at)
            elif field == 5 and len(inner(value, metadata.at)) < 1 << 16:
                stats.append(value.read())
        if name is None:
            return
        # Those of TPUs are the text of an instruction: `%fusion.1 = f32[8] fusion(...)`.
        text = Part(name.file, name.at, min(name.end, name.at + (1 << 12))).text()
        short, divided, _ = text.partition(" = ")
        self.names[number] = shown or (short.lstrip("%") if divided else text)
        if divided:
            self.texts[number] = name
        if stats:
            self.metadata_stats[number] = stats

    def stat_name(self, part):
        number, metadata = self.entry(part)
        for field, value in metadata.fields() if metadata else ():
            if field == 2:
                self.stat_names[number] = text_of(value, metadata.at)

    def stats(self, contents, at, wanted):
        """{name: value} of those whose names are in `wanted`: texts and whole numbers."""
        found = {}
        for content in contents:
            number, value = 0, None
            for field, one in fields_of(content, at):
                if field == 1:
                    number = whole(one, at)
                elif field in (3, 4):
                    value = whole(one, at)
                elif field == 5:
                    value = text_of(one, at)
                elif field == 7:
                    value = self.stat_names.get(one, "") if isinstance(one, int) else None
            name = self.stat_names.get(number)
            if name in wanted and value is not None:
                found[name] = value
        return found

    def all_lines(self):
        return [Line(part) for part in self.lines]


class Space:
    """One file: the profile of a process with all its devices."""

    def __init__(self, path):
        self.path = str(path)
        self.stack = contextlib.ExitStack()
        self.file = self.opened()
        self.planes, self.remarks = [], []

    def opened(self):
        try:
            file = self.stack.enter_context(open(self.path, "rb"))
            if file.peek(2)[:2] != b"\x1f\x8b":
                return file
            # Planes are read in another order than the file has them.
            whole_file = self.stack.enter_context(tempfile.TemporaryFile())
            with unzipped(self.path) as zipped:
                shutil.copyfileobj(zipped, whole_file)
            return whole_file
        except OSError as error:
            raise unreadable(self.path, error) from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def read(self):
        """Finds the planes. What the profiler itself says went wrong are `remarks`."""
        end = self.file.seek(0, 2)
        for field, value in Part(self.file, 0, end).fields(parts=(1, 2, 3, 4)):
            if field == 1:
                self.planes.append(Plane(value))
            elif field in (2, 3):
                self.remarks.append(value.text())
        return self

    def looks_like_one(self):
        """Whether the first plane has a name as XLA's have."""
        try:
            end = self.file.seek(0, 2)
            for field, value in Part(self.file, 0, end).fields(parts=(1,)):
                return field == 1 and Plane(value).name.startswith(("/host:", "/device:", "Task Environment",
                                                                    "/virtualdevice:", "#Chip"))
        except (WireError, OSError, struct.error):
            pass
        return False

    @contextlib.contextmanager
    def guarded(self):
        """Errors in the bytes become errors about the file."""
        try:
            yield
        except WireError as wrong:
            raise InputError(self.path, None, f"byte {wrong.at}: {wrong}; the file is damaged, or no profile of XLA") from None
        except OSError as error:
            raise unreadable(self.path, error) from None
