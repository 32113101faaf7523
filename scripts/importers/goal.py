# SPDX-License-Identifier: GPL-2.0-only
"""GOAL schedules of LogGOPSim and ATLAHS, text or binary. weft reads them itself (workloads/importers): here they get a
machine."""

import gzip
import re
import struct

from importing.errors import InputError, read_bytes
from importing.imported import Imported, Input, Map

SUMMARY = "a GOAL schedule (LogGOPSim, ATLAHS)"
FEW = 1 << 16  # bytes that contain the number of ranks
MAGIC = 4223  # of the binary form, little endian, 64 bits (Schedgen's and LogGOPSim's Goal.hpp)
COMMENT = rb"(?:\s|//[^\n]*\n|/\*.*?\*/)*"


def add_arguments(parser):
    parser.add_argument("input", metavar="FILE.goal")


def beginning(path):
    """The first bytes, also of a file in gzip."""
    start = read_bytes(path, FEW)
    if start[:2] != b"\x1f\x8b":
        return start
    try:
        with gzip.open(path) as file:
            return file.read(FEW)
    except (OSError, EOFError) as error:
        raise InputError(path, None, f"it is damaged gzip: {error}") from None


def ranks_of(start):
    """The number of ranks; None if the file is no GOAL."""
    if len(start) >= 12 and struct.unpack_from("<Q", start)[0] == MAGIC:
        return struct.unpack_from("<I", start, 8)[0]
    found = re.match(COMMENT + rb"num_ranks\s+(\d+)", start, re.DOTALL)
    return int(found.group(1)) if found else None


def matches(path):
    try:
        return ranks_of(beginning(path)) is not None
    except InputError:
        return False


def read(options):
    ranks = ranks_of(beginning(options.input))
    if ranks is None:
        raise InputError(options.input, 1, "expected 'num_ranks N' or the magic number of binary GOAL at its beginning")
    imported = Imported([options.input], ranks, [f"The GOAL schedule {options.input}."])
    imported.workload = Map(kind="goal", file=Input(options.input))
    return imported
