# SPDX-License-Identifier: GPL-2.0-only
"""Flows one by one: a CSV of start, source, destination and bytes, HPCC's flow file, or a matrix of an all-to-all,
whose rows send."""

import re

from importing.errors import InputError, did_you_mean, read_bytes, text_lines, unzipped_bytes, whole_number
from importing.flow_traces import FlowTraces, flow_traces_workload
from importing.imported import Imported, Input, Map

SUMMARY = "a CSV of flows (start, source, destination, bytes), or a matrix of an all-to-all"
NAMES = {"start": "start", "time": "start", "start_time": "start",
         "source": "source", "src": "source", "from": "source",
         "destination": "destination", "dst": "destination", "dest": "destination", "to": "destination",
         "bytes": "bytes", "size": "bytes"}
USUAL = ["start", "source", "destination", "bytes"]
UNITS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
MAX_RANKS = 1 << 17
LONGEST = 106 * 24 * 3600 * 10**12  # picoseconds, the end of simulated time
NUMBER = r"[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?"


def add_arguments(parser):
    parser.add_argument("input", metavar="FILE.csv")
    parser.add_argument("--matrix", action="store_true", help="a matrix of bytes: row i is what rank i sends to each "
                                                              "rank")
    parser.add_argument("--time-unit", choices=UNITS, default="ns", help="of start times without a unit (ns)")
    parser.add_argument("--ranks", type=int, metavar="N", help="ranks (the largest one that is named, and 1)")


def cells(line):
    """The cells of a line, separated by commas, semicolons, tabs or blanks."""
    return [cell for cell in re.split(r"[,;]|\s+", line.strip()) if cell != ""] if "," not in line and ";" not in line \
        else [cell.strip() for cell in re.split(r"[,;]", line)]


def rows(path):
    """(line, cells) without comments and empty lines."""
    for number, line in text_lines(path):
        line = line.split("#")[0].strip()
        if line:
            yield number, cells(line)


def is_hpcc(first, second):
    """HPCC's: a number of flows, then `src dst pg dport bytes start_s`."""
    numbers = all(re.fullmatch(NUMBER, one) for one in second)
    return len(first) == 1 and first[0].isdigit() and len(second) == 6 and numbers


def matches(path):
    try:
        lines = unzipped_bytes(path, 1 << 12).decode("utf-8-sig", "replace").split("\n")
    except InputError:
        return False
    found = [cells(line) for line in (line.split("#")[0].strip() for line in lines) if line][:2]
    if len(found) < 2:
        return False
    first, second = found
    if is_hpcc(first, second):
        return True
    named = [NAMES.get(one.lower()) for one in first]
    if None not in named and {"source", "destination", "bytes"} <= set(named):
        return True
    numbers = all(re.fullmatch(r"[0-9]+", one) for one in first)
    return numbers and len(first) == len(second) >= 2 and (len(first) == 4 or "," in lines[0] or ";" in lines[0])


def time_of(text, path, line, unit):
    """Picoseconds."""
    found = re.fullmatch(rf"({NUMBER})\s*(ps|ns|us|ms|s)?", text)
    if not found:
        raise InputError(path, line, f"start: found '{text}'; expected a time such as 10 us")
    size = UNITS[found.group(2) or unit]
    time = int(found.group(1)) * size if found.group(1).isdigit() else float(found.group(1)) * size
    if time >= LONGEST:
        raise InputError(path, line, f"start: found '{text}'; expected less than 106 days")
    return round(time)


class Reader:
    def __init__(self, options):
        self.path, self.unit, self.flows = options.input, options.time_unit, FlowTraces()
        self.line_of_ranks = None  # of the largest rank

    def rank(self, text, line, what):
        return whole_number(text, self.path, line, what, 0, MAX_RANKS - 1)

    def add(self, line, values):
        source = self.rank(values["source"], line, "source")
        destination = self.rank(values["destination"], line, "destination")
        if source == destination:
            raise InputError(self.path, line, f"a flow from {source} to itself; expected two ranks")
        size = whole_number(values["bytes"], self.path, line, "bytes")
        if max(source, destination) >= self.flows.ranks:
            self.line_of_ranks = line
        self.flows.add(time_of(values.get("start", "0"), self.path, line, self.unit), source, destination, size)

    def read(self):
        """Reads the file."""
        lines = rows(self.path)
        number, first = next(lines, (1, None))
        if first is None:
            raise InputError(self.path, 1, "the file is empty; expected flows")
        named = [NAMES.get(one.lower()) for one in first]
        if any(named):
            columns = self.columns(number, first, named)
        elif len(first) == 1:
            return self.hpcc(number, first, lines)
        else:
            columns = USUAL
            lines = rows(self.path)
        for line, values in lines:
            if len(values) != len(columns):
                raise InputError(self.path, line, f"found {len(values)} columns; expected {', '.join(columns)}")
            self.add(line, dict(zip(columns, values)))
        return None

    def columns(self, line, words, named):
        for word, name in zip(words, named):
            if name is None:
                raise InputError(self.path, line, f"unknown column '{word}'{did_you_mean(word, NAMES)}; expected "
                                 "start, source, destination and bytes")
        missing = [name for name in USUAL[1:] if name not in named]
        if missing or len(set(named)) != len(named):
            raise InputError(self.path, line, f"columns {', '.join(words)}; expected start (if not 0), source, "
                             "destination and bytes, each once")
        return named

    def hpcc(self, line, first, lines):
        count = whole_number(first[0], self.path, line, "the number of flows")
        for number, values in lines:
            if len(values) != 6:
                raise InputError(self.path, number, "expected 'src dst pg dport bytes start'")
            flow = {"source": values[0], "destination": values[1], "bytes": values[4], "start": f"{values[5]}s"}
            self.add(number, flow)
        if self.flows.count != count:
            raise InputError(self.path, line, f"found {self.flows.count} flows; the first line says {count}")

    def matrix(self):
        """(ranks, bytes of all) of a matrix, read row by row."""
        ranks, total = sum(1 for _ in rows(self.path)), 0
        for line, values in rows(self.path):
            if len(values) != ranks:
                raise InputError(self.path, line, f"found {len(values)} columns in a matrix of {ranks} rows; expected as "
                                 "many columns as rows")
            total += sum(whole_number(one, self.path, line, "bytes") for one in values)
        if ranks < 2:
            raise InputError(self.path, 1, "expected a matrix of two ranks or more")
        if not 0 < total < 2**63:
            raise InputError(self.path, 1, f"{total} B in all; expected 1 to 2^63 - 1")
        return ranks, total


def is_matrix(options):
    """True if the file has only numbers, and as many columns as rows; four columns are flows unless --matrix is
    given."""
    first = next(rows(options.input), (1, []))[1]
    return options.matrix or (len(first) not in (1, 4) and all(one.isdigit() for one in first))


def read(options):
    reader = Reader(options)
    if is_matrix(options):
        return read_matrix(options, *reader.matrix())
    reader.read()
    if not reader.flows.count:
        raise InputError(options.input, 1, "there is no flow in it")
    ranks = max(2, options.ranks or 0, reader.flows.ranks)
    imported = Imported([options.input], ranks, [f"The {reader.flows.count} flows of {options.input}."])
    imported.line_of_ranks = reader.line_of_ranks if ranks == reader.flows.ranks else None
    imported.workload = flow_traces_workload(imported, reader.flows)
    return imported


def write_plain(file, path):
    for _, line in text_lines(path):
        file.write(f"{line}\n".encode())


def read_matrix(options, ranks, total):
    imported = Imported([options.input], ranks, [f"The all-to-all of {options.input}: row i is what rank i sends."])
    imported.workload = Map(kind="collective", collective="all_to_all", size=f"{total} B", algorithm="nccl_p2p",
                            ranks=ranks)
    sizes = Input(options.input)
    if read_bytes(options.input, 3).startswith((b"\x1f\x8b", b"\xef\xbb\xbf")):  # gzip, or a byte order mark
        sizes = imported.beside("matrix.csv", lambda file: write_plain(file, options.input))
    imported.workload.put("block_sizes", sizes, "Bytes from each rank to each; row i is what rank i sends.")
    return imported
