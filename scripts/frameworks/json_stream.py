# SPDX-License-Identifier: GPL-2.0-only
"""JSON files read piece by piece: of a list that is as long as the trace, one element is in memory at a time."""

import decimal
import gzip
import json
import lzma
import os
import re
import zlib

from importing.errors import InputError, unreadable

CHUNK = 1 << 20  # characters
# An element is one event or node. Elements of traces are not larger.
LONGEST = 256 << 20
# An error this near to the end of the data read so far may be about data that is not read yet.
NEAR_END = 32
BLANKS = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder(strict=False, parse_float=decimal.Decimal)
DAMAGES = (OSError, EOFError, zlib.error, lzma.LZMAError)


def shown(value):
    """A value for an error, as the file has it: numbers with a point are read as Decimal."""
    return re.sub(r"Decimal\('([^']*)'\)", r"\1", repr(value))


def open_text(path):
    """A file of text; its first bytes show whether it is in gzip or xz."""
    try:
        with open(path, "rb") as file:
            start = file.read(6)
        opener = gzip.open if start[:2] == b"\x1f\x8b" else lzma.open if start == b"\xfd7zXZ\x00" else open
        return opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="")
    except OSError as error:
        raise unreadable(path, error) from None


def beginning(path, most=4096):
    """The first characters of a file of text; empty if it cannot be read."""
    try:
        with open_text(path) as file:
            return file.read(most)
    except (InputError, *DAMAGES):
        return ""


def position(file):
    """Bytes of the file on disk that have been read, of a file of open_text()."""
    return os.lseek(file.fileno(), 0, os.SEEK_CUR)


class JsonStream:
    """Reads a file that is a map with lists in it, or one list. `progress` is told of the bytes that have been read."""

    def __init__(self, path, progress=None):
        self.path, self.progress, self.read_bytes = str(path), progress, 0
        self.file = open_text(path)
        self.text, self.at, self.line, self.counted, self.ended = "", 0, 1, 0, False

    def error(self, what, at=None):
        at = self.at if at is None else at
        return InputError(self.path, self.line + self.text.count("\n", self.counted, at), what)

    def more(self):
        """Reads on. False at the end of the file."""
        if self.ended:
            return False
        self.line += self.text.count("\n", self.counted, self.at)
        try:
            piece = self.file.read(max(CHUNK, len(self.text) - self.at))
        except DAMAGES as error:
            raise InputError(self.path, None, f"it is damaged: {error}") from None
        if self.progress:
            before, self.read_bytes = self.read_bytes, position(self.file)
            self.progress.advance(self.read_bytes - before)
        self.text = self.text[self.at:] + piece
        self.at = self.counted = 0
        self.ended = not piece
        return bool(piece)

    def peek(self):
        """The next non-blank character; empty at the end."""
        while True:
            self.at = BLANKS.match(self.text, self.at).end()
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.more():
                return ""

    def expect(self, characters):
        found = self.peek()
        if not found:
            raise self.error(f"the file ends, expected one of '{characters}'; it has been cut off")
        if found not in characters:
            raise self.error(f"found '{found}'; expected one of '{characters}'")
        self.at += 1
        return found

    def value(self):
        """The next value as a whole, and its line."""
        if not self.peek():
            raise self.error("the file ends, expected a value; it has been cut off")
        while True:
            try:
                found, end = DECODER.raw_decode(self.text, self.at)
                if end < len(self.text) or self.ended:
                    line = self.here()
                    self.at = end
                    return found, line
            except RecursionError:
                raise self.error("lists within lists without end; the file is damaged") from None
            except json.JSONDecodeError as wrong:
                # A string without an end may continue; anything else is an error at this place.
                if self.ended or (wrong.pos < len(self.text) - NEAR_END and not wrong.msg.startswith("Unterminated")):
                    raise self.error(f"no JSON: {wrong.msg}" + (", and there the file ends" if self.ended else ""),
                                     wrong.pos) from None
            except ValueError as wrong:
                raise self.error(f"no JSON: {wrong}") from None
            if len(self.text) - self.at > LONGEST:
                raise self.error(f"a value of more than {LONGEST >> 20} MiB, or one without an end")
            self.more()

    def here(self):
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def elements(self):
        """(value, line) of the list that begins here."""
        self.expect("[")
        if self.peek() == "]":
            self.at += 1
            return
        while True:
            yield self.value()
            if self.expect(",]") == "]":
                return

    def members(self, lists):
        """(key, value, line) of the map that is the file: those of `lists` element by element, others as a whole. If
        the file is a list, its elements, as those of ''."""
        with self.file:
            if self.peek() == "[":
                for value, line in self.elements():
                    yield "", value, line
            else:
                yield from self.of_map(lists)
            if found := self.peek():
                raise self.error(f"found '{found}' after the end of the trace")

    def of_map(self, lists):
        self.expect("{")
        if self.peek() == "}":
            self.at += 1
            return
        while True:
            key, line = self.value()
            if not isinstance(key, str):
                raise InputError(self.path, line, "a key that is no text")
            self.expect(":")
            if key in lists and self.peek() == "[":
                for value, line in self.elements():
                    yield key, value, line
            else:
                yield (key, *self.value())
            if self.expect(",}") == "}":
                return
