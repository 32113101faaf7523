# SPDX-License-Identifier: GPL-2.0-only
"""GOAL schedules of LogGOPSim and ATLAHS, text or binary. weft reads them itself (workloads/importers): here they get a
machine."""

import re
import struct

from importing.errors import InputError, unzipped_bytes
from importing.imported import Imported, Input, Map

SUMMARY = "a GOAL schedule (LogGOPSim, ATLAHS)"
FEW = 1 << 16  # bytes that contain the number of ranks
MAGIC = 4223  # of the binary form, little endian, 64 bits (Schedgen's and LogGOPSim's Goal.hpp)
COMMENT = rb"(?:\s|//[^\n]*\n|/\*.*?\*/)*"


def add_arguments(parser):
    parser.add_argument("input", metavar="FILE.goal")


def ranks_of(path):
    """(number of ranks, its line in text), from the first bytes; None if the file is no GOAL."""
    start = unzipped_bytes(path, FEW)
    if len(start) >= 12 and struct.unpack_from("<Q", start)[0] == MAGIC:
        return struct.unpack_from("<I", start, 8)[0], None
    found = re.match(COMMENT + rb"num_ranks\s+(\d{1,18})", start, re.DOTALL)
    return (int(found.group(1)), start.count(b"\n", 0, found.start(1)) + 1) if found else None


def matches(path):
    try:
        return ranks_of(path) is not None
    except InputError:
        return False


def read(options):
    found = ranks_of(options.input)
    if found is None:
        raise InputError(options.input, 1, "expected 'num_ranks N' or the magic number of binary GOAL at its beginning")
    imported = Imported([options.input], found[0], [f"The GOAL schedule {options.input}."])
    imported.line_of_ranks = found[1]
    imported.workload = Map(kind="goal", file=Input(options.input))
    return imported
