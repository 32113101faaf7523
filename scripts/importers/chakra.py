# SPDX-License-Identifier: GPL-2.0-only
"""Execution traces of MLCommons Chakra, one file for each rank. weft reads them itself (workloads/chakra): this module
adds a machine, and counts ranks."""

import pathlib
import re

from importing.errors import InputError, unzipped_bytes
from support.input_files import hint_for_missing
from importing.imported import Imported, Input, Map

SUMMARY = "execution traces of MLCommons Chakra, a file for each rank (docs/reference/traces.md)"
ENDINGS = (".et", ".et.gz", ".json", ".json.gz")  # as weft's reader tries them
FEW = 1 << 16
ENOUGH = 16  # files of a folder that are looked at to recognise it


def add_arguments(parser):
    parser.add_argument("input", metavar="FOLDER|PREFIX|FILE.0.et", help="PREFIX.0.et, PREFIX.1.et, ...: a folder with "
                        "one such trace, its prefix, a name with {rank}, or the file of one rank")
    parser.add_argument("--issue", choices=["astra_sim", "streams"], default="astra_sim",
                        help="which operations a rank has under way at a time (astra_sim)")
    parser.add_argument("--groups", metavar="G.json", help="ASTRA-sim's file of communicator groups")


def endings_of(folder, stem):
    """The endings of the existing files STEM.NUMBER.ENDING, and for each the count of consecutive numbers from 0."""
    numbers = {}
    for path in folder.iterdir():
        found = re.fullmatch(re.escape(stem) + r"\.([0-9]+)(\.et|\.et\.gz|\.json|\.json\.gz)", path.name)
        if found:
            numbers.setdefault(found.group(2), set()).add(int(found.group(1)))
    return numbers


def stems_in(folder):
    """Prefixes of traces in a folder: names before `.0.et`."""
    first = re.compile(r"(.+)\.0(\.et|\.et\.gz|\.json|\.json\.gz)")
    return sorted({found.group(1) for path in folder.iterdir() if (found := first.fullmatch(path.name))
                   and (found.group(2).startswith(".et") or is_trace(path))})


def beginning(path):
    """The first bytes, also of a file in gzip; empty if they cannot be read."""
    try:
        return unzipped_bytes(path, FEW)
    except InputError:
        return b""


def is_trace(path):
    """Recognises a file by its first bytes: GlobalMetadata after its length, or JSON with nodes or a version."""
    start = beginning(path)
    text = start.lstrip()
    if text[:1] in (b"{", b"["):
        if re.search(rb'"(nodes|traceEvents)"', text):  # PyTorch's, which Chakra's converter takes
            return False
        return bool(re.search(rb'"(workload_graph|version|schema)"', text) and
                    re.search(rb'"(workload_graph|ctrlDeps|ctrl_deps|dataDeps|data_deps|NodeType|type)"', text))
    # Field 1 (version) or 2 (attr) of the first message, which fills its length: et_def.proto.
    return len(start) > 2 and 0 < start[0] < 128 and (start[1] == 0x0A or start[1] == 0x12)


def locate(path):
    """(stem as a path, its ending, ranks) of an argument. Raises InputError."""
    text, path = str(path), pathlib.Path(path)
    if "{rank}" in path.name:
        path = path.with_name(path.name.split(".{rank}")[0])
    elif path.is_dir():
        stems = stems_in(path)
        if len(stems) != 1:
            named = ", ".join(stems[:4]) or "no file NAME.0.et"
            raise InputError(text, None, f"found {len(stems)} traces in the folder ({named}); expected a folder "
                             "with one, or its prefix")
        path = path / stems[0]
    elif path.is_file() and (found := re.fullmatch(r"(.+)\.[0-9]+(\.et|\.json)(\.gz)?", path.name)):
        path = path.with_name(found.group(1))
    folder = path.parent
    numbers = endings_of(folder, path.name) if folder.is_dir() else {}
    for ending in ENDINGS:
        if 0 in numbers.get(ending, ()):
            return path, ending, contiguous(path, ending, numbers[ending])
    raise InputError(text, None, f"there is no file '{path}.0.et' (or .et.gz, .json, .json.gz){hint_for_missing(path)}")


def contiguous(path, ending, numbers):
    missing = next((rank for rank in range(len(numbers)) if rank not in numbers), None)
    if missing is not None:
        raise InputError(f"{path}.{missing}{ending}", None,
                         f"it is missing: there are files of {len(numbers)} ranks, up to {max(numbers)}")
    return len(numbers)


def numbered(path):
    """The files of an argument that are named as one rank's trace is, of any rank: some may be missing or damaged, which
    is for read() to say."""
    path = pathlib.Path(path)
    named = re.fullmatch(r"(.+)\.([0-9]+|\{rank\})(\.et|\.json)?(\.gz)?", path.name)
    folder, stem = (path, None) if path.is_dir() else (path.parent, named.group(1) if named else path.name)
    found = ((re.fullmatch(r"(.+)\.[0-9]+(\.et|\.json)(\.gz)?", one.name), one)
             for one in (folder.iterdir() if folder.is_dir() else ()))
    return sorted(one for name, one in found if name and stem in (None, name.group(1)))


def matches(path):
    """Whether some file has the content of a trace, or the ending .et without being JSON of another format."""
    try:
        return any(is_trace(one) or (".et" in one.suffixes and beginning(one).lstrip()[:1] not in (b"{", b"["))
                   for one in numbered(path)[:ENOUGH])
    except (InputError, OSError):
        return False


def read(options):
    stem, ending, ranks = locate(options.input)
    if not is_trace(f"{stem}.0{ending}"):
        raise InputError(f"{stem}.0{ending}", None, "it is no Chakra trace: neither messages of et_def.proto after "
                         "their lengths nor JSON of nodes")
    files = [f"{stem}.{rank}{ending}" for rank in range(ranks)]
    imported = Imported(files, ranks, [f"The Chakra traces {stem}.0{ending} to {stem}.{ranks - 1}{ending}."])
    workload = Map(kind="chakra", file=Input(stem), ranks=ranks)
    workload.put("issue", options.issue, "Which operations of a rank may be under way at a time: astra_sim or streams "
                                         "(docs/reference/traces.md).")
    if options.groups:
        imported.inputs.append(options.groups)
        workload["groups"] = Input(options.groups)
    imported.workload = workload
    imported.ignore("nodes", "start_time_micros, shapes and types of tensors, comm_priority, op_schema: weft finds the "
                             "times itself")
    return imported
