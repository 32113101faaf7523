# SPDX-License-Identifier: GPL-2.0-only
"""Errors in an input, with their place."""

import contextlib
import gzip
import io
import os
import zlib

from support.errors import EnvironmentFailure, StudyError, did_you_mean  # noqa: F401
from support.input_files import cannot_open, hint_for_missing


class InputError(StudyError):
    """Ends the command with exit code 2. `place` is a number of a line, the id of a node, or nothing."""

    def __init__(self, path, place, text):
        # Names in damaged files may have line ends; an error message is one line.
        super().__init__((f"{path}:{place}: {text}" if place else f"{path}: {text}").replace("\n", " "))


def read_bytes(path, most=None):
    """The first bytes of a file, or all of them. Raises InputError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read() if most is None else file.read(most)
    except OSError as error:
        raise unreadable(path, error) from None


def unreadable(path, error):
    """The InputError for an OSError of a file."""
    return InputError(path, None, cannot_open(path) or f"it cannot be read: {error.strerror or error}")


def expect_input(path):
    """InputError unless there is a file or a folder of this name."""
    if not os.path.exists(path):
        raise InputError(path, None, no_such(path))


def no_such(path):
    return f"there is no such file or folder{hint_for_missing(path)}"


@contextlib.contextmanager
def unzipped(path):
    """A file of bytes; its first ones show whether it is in gzip. InputError if it cannot be read or is damaged."""
    try:
        with open(path, "rb") as raw:
            zipped = raw.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(raw) if zipped else raw as file:
                yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(path, None, f"it is damaged gzip: {error}") from None
    except OSError as error:
        raise unreadable(path, error) from None


def unzipped_bytes(path, most=-1):
    """The first bytes of a file, which may be in gzip, or all of them. Raises InputError if it cannot be read."""
    with unzipped(path) as file:
        return file.read(most)


def read_text(path):
    """A text file as a whole, also in gzip, without a byte order mark."""
    try:
        return unzipped_bytes(path).decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(path, None, f"byte {error.start} is not UTF-8; expected a text file") from None


def text_lines(path):
    """(number, line without its end) of a text file, also in gzip, one by one: the file is never in memory as a whole. A
    byte order mark, as of Excel, is no part of the first one."""
    try:
        with unzipped(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline=None) as text:
            for number, line in enumerate(text, 1):
                yield number, line.rstrip("\n")
    except UnicodeDecodeError:
        raise InputError(path, None, "it is not UTF-8; expected a text file") from None


def whole_number(text, path, place, what, least=0, most=2**63 - 1):
    """An integer written in decimal, within bounds; `what` names it in the error."""
    try:
        value = int(str(text), 10)
    except ValueError:
        raise InputError(path, place, f"{what}: found '{text}'; expected a whole number") from None
    if not least <= value <= most:
        raise InputError(path, place, f"{what}: found {value}; expected {least} to {most}")
    return value


def real_number(text, path, place, what, least=0.0):
    """A finite number, `least` or larger."""
    try:
        value = float(text)
    except (TypeError, ValueError):
        value = float("nan")
    if not least <= value < float("inf"):
        raise InputError(path, place, f"{what}: found '{text}'; expected a number of {least:g} or more")
    return value
