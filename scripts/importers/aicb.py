# SPDX-License-Identifier: GPL-2.0-only
"""Workloads of AICB and SimAI: the layers that SimAI reads, which weft reads itself (workloads/importers), and the
CSV that AICB replays on machines (github.com/aliyun/aicb, log_analyzer/log.py)."""

import csv
import json
import re

from importing.chakra_writer import TraceWriter
from importing.errors import InputError, did_you_mean, text_lines, unzipped_bytes, whole_number
from importing.imported import Imported, Input, Map

from .astra_sim.ns3_network import Config, Physical

SUMMARY = "layers of AICB and SimAI (text), or AICB's CSV; SimAI's topology and SimAI.conf"
HEADER = re.compile(rb"\s*(DATA|MODEL|HYBRID_[A-Z_]+|MICRO|DISTRIBUTED_INFERENCE)\b[^\n]*\n\s*[0-9]+\s*\n")
COLUMNS = "comm_type,comm_group,"
RANKS = re.compile(r"rank\s*([0-9]+)")
KINDS = {"all_reduce": "all_reduce", "all_gather": "all_gather", "all_gather_into_tensor": "all_gather",
         "reduce_scatter": "reduce_scatter", "reduce_scatter_tensor": "reduce_scatter", "all_to_all": "all_to_all",
         "broadcast": "broadcast", "reduce": "reduce", "barrier": "barrier"}
MESSAGES = {"isend", "irecv", "send", "recv"}
GROUPS = ("tp_group", "dp_group", "ep_group", "ep_dp_group", "ep_tp_group", "all")


def add_arguments(parser):
    parser.add_argument("input", metavar="FILE", help="a workload .txt, or a .csv")
    parser.add_argument("--ranks", type=int, metavar="N", help="GPUs, if the file does not say (all_gpus)")
    parser.add_argument("--network", metavar="TOPOLOGY", help="SimAI's topology file")
    parser.add_argument("--network-config", metavar="SimAI.conf", help="SimAI's parameters, with --network")


def is_csv(start):
    return any(line.startswith(COLUMNS.encode()) for line in start.split(b"\n")[:2])


def matches(path):
    try:
        start = unzipped_bytes(path, 1 << 16)
    except InputError:
        return False
    return bool(HEADER.match(start)) or is_csv(start)


def read(options):
    imported = Imported([options.input], options.ranks, [f"{options.input}, a workload of AICB."])
    physical = read_network(options, imported)
    if is_csv(unzipped_bytes(options.input, 1 << 16)):
        read_csv(options, imported)
    else:
        read_layers(options, imported, physical)
    if physical and imported.ranks > len(physical.hosts):
        raise InputError(options.network, 1, f"it has {len(physical.hosts)} GPUs, and the workload {imported.ranks} "
                                             "ranks")
    return imported


def read_network(options, imported):
    if not options.network:
        if options.network_config:
            raise InputError(options.network_config, None, "--network-config needs --network")
        return None
    physical = Physical(options.network)
    imported.inputs.append(options.network)
    imported.topology = physical.topology()
    if options.network_config:
        imported.inputs.append(options.network_config)
        imported.network = Config(options.network_config, physical, imported).network()
    return physical


def read_layers(options, imported, physical):
    words = next((line.split() for _, line in text_lines(options.input) if line.strip()), [])
    values = {key.rstrip(":"): value for key, value in zip(words[1:], words[2:])}
    if imported.ranks is None and "all_gpus" in values:
        imported.ranks = whole_number(values["all_gpus"], options.input, 1, "all_gpus", 1, 1 << 22)
    if imported.ranks is None and physical:
        imported.ranks = len(physical.hosts)
    if imported.ranks is None:
        group = values.get("model_parallel_NPU_group", "1")
        imported.ranks = max(2, whole_number(group, options.input, 1, "model_parallel_NPU_group", 1, 1 << 22))
        imported.refuse(f"{options.input}:1", f"the number of GPUs is not in the file: weft takes {imported.ranks}, one "
                                              "group of tensor parallelism; --ranks gives another number")
    imported.line_of_ranks = 1
    imported.workload = Map(kind="astra_sim_text", file=Input(options.input), ranks=imported.ranks)
    imported.workload.put("algorithm", "ring", "SimAI's flows go in rings (MockNcclGroup.cc); nccl lets weft choose as "
                                               "NCCL does.")
    imported.workload.put("all_to_all_algorithm", "linear", "All pairs at once, as there.")


class Table:
    """AICB's CSV: the operations of each rank of one pipeline stage, in order."""

    def __init__(self, path, imported, ranks):
        self.path, self.imported, self.ranks = path, imported, ranks
        self.sizes, self.skipped, self.numbers = {}, {}, {}
        self.columns, self.first = self.head()

    def head(self):
        lines = text_lines(self.path)
        number, line = next(lines)
        if not line.startswith(COLUMNS):
            found = [int(one) for one in RANKS.findall(line)]
            if self.ranks is None:
                self.ranks = len(found) or None
            number, line = next(lines, (number, ""))
        columns = line.split(",")
        for due in ("comm_type", "comm_group", "msg_size", "_elapsed_time"):
            if due not in columns:
                raise InputError(self.path, number, f"expected a line of columns with {due}")
        return columns, number + 1

    def rows(self):
        """(line, row as a dictionary), one by one."""
        for number, line in text_lines(self.path):
            if number < self.first or not line.strip():
                continue
            try:
                row = next(csv.reader([line]))
            except csv.Error as error:
                raise InputError(self.path, number, f"it is not CSV: {error}") from None
            if len(row) != len(self.columns):
                raise InputError(self.path, number, f"found {len(row)} columns; expected {len(self.columns)}")
            yield number, dict(zip(self.columns, row))

    def look(self):
        """Sizes of groups, and omitted parts."""
        for number, row in self.rows():
            kind, group = self.kind(number, row), row["comm_group"].removeprefix("CommGroup.")
            if kind in KINDS.values() and group in GROUPS and row.get("comm_group_size", "None") != "None":
                size = whole_number(row["comm_group_size"], self.path, number, "comm_group_size", 1, 1 << 22)
                if self.sizes.setdefault(group, size) != size:
                    raise InputError(self.path, number, f"{group} of {size} ranks; above, it had {self.sizes[group]}")
        if self.ranks is None:
            self.ranks = max(2, self.sizes.get("tp_group", 1) * self.sizes.get("dp_group", 1), *self.sizes.values(), 1)
        for group, size in self.sizes.items():
            if self.ranks % size:
                raise InputError(self.path, None, f"{group} has {size} ranks, and there are {self.ranks}")

    def kind(self, number, row):
        name = row["comm_type"].removeprefix("CommType.")
        if name in KINDS:
            return KINDS[name]
        if name not in MESSAGES | {"computation", "epoch_end"}:
            raise InputError(self.path, number, f"comm_type: unknown '{name}'{did_you_mean(name, KINDS)}")
        return name

    def members(self, group, rank):
        """The ranks of a rank's group; nothing for all ranks."""
        size, tensor, expert = self.sizes.get(group, 1), self.sizes.get("tp_group", 1), self.sizes.get("ep_group", 1)
        if group == "all" or size in (1, self.ranks):
            return ()
        stride = {"dp_group": tensor, "ep_group": tensor, "ep_dp_group": tensor * expert}.get(group, 1)
        first = rank // (stride * size) * stride * size + rank % stride
        return tuple(first + i * stride for i in range(size))

    def number_groups(self):
        """A number for each group, as in ASTRA-sim's file of groups."""
        found = sorted({self.members(group, rank) for group in self.sizes for rank in range(self.ranks)} - {()})
        self.numbers = {members: str(number) for number, members in enumerate(found, 1)}

    def size_of(self, number, row, kind, group):
        """Bytes of the input of a rank."""
        size = whole_number(row["msg_size"], self.path, number, "msg_size")
        members = self.sizes.get(group, self.ranks)
        return -(-size // members) if kind == "all_gather" else size

    def duration(self, number, row):
        """Picoseconds; 0 if it has not been measured. Elapsed times are milliseconds."""
        text = row["_elapsed_time"]
        try:
            return 0 if text in ("None", "") else max(0, round(float(text) * 10**9))
        except (ValueError, OverflowError):
            raise InputError(self.path, number, f"_elapsed_time: found '{text}'; expected milliseconds") from None

    def skip(self, number, what):
        self.skipped.setdefault(what, [number, 0])[1] += 1

    def write(self, file, rank):
        writer = TraceWriter(file)
        names = {group: self.numbers.get(self.members(group, rank), "") for group in GROUPS}
        for number, row in self.rows():
            kind, group = self.kind(number, row), row["comm_group"].removeprefix("CommGroup.")
            if kind == "computation" and (time := self.duration(number, row)):
                writer.compute(time, row.get("stage") or "computation")
            elif kind in KINDS.values() and group in GROUPS and self.sizes.get(group, self.ranks) > 1:
                size = self.size_of(number, row, kind, group)
                if size or kind == "barrier":
                    writer.collective(kind, size, row.get("stage") or kind, names[group], stream=0)

    def list_skipped(self):
        for number, row in self.rows():
            kind, group = self.kind(number, row), row["comm_group"].removeprefix("CommGroup.")
            if kind == "computation" and not self.duration(number, row):
                self.skip(number, "computation without _elapsed_time: it takes no time")
            elif kind in MESSAGES or (kind in KINDS.values() and group not in GROUPS):
                self.skip(number, f"{kind} of {group}: the other pipeline stages are not in the file")
        for what, (number, count) in sorted(self.skipped.items()):
            self.imported.refuse(f"{self.path}:{number}", f"{what} ({count} lines)")


def read_csv(options, imported):
    table = Table(options.input, imported, options.ranks)
    table.look()
    table.number_groups()
    table.list_skipped()
    imported.ranks = table.ranks
    for rank in range(table.ranks):
        imported.beside(f"trace.{rank}.et", lambda file, rank=rank: table.write(file, rank))
    imported.workload = Map(kind="chakra", file=imported.prefix("trace"), ranks=table.ranks, issue="streams")
    imported.workload.comments["file"] = "The lines of each rank, as Chakra traces."
    if table.numbers:
        groups = json.dumps({number: members for members, number in table.numbers.items()}) + "\n"
        imported.workload["groups"] = imported.beside("groups.json", lambda file: file.write(groups.encode()))
