# SPDX-License-Identifier: GPL-2.0-only
"""Flows as weft's programs (docs/reference/program_format.md): a send and a receive each, one item to a line."""

from .imported import Map


class Flow:
    """`start` in picoseconds; `after`: identifiers of operations of the source; `tag` tells apart flows of a pair."""

    def __init__(self, name, source, destination, size, start=0, after=()):
        self.name, self.source, self.destination, self.size = name, source, destination, size
        self.start, self.after = start, list(after)

    def lines(self, tag):
        extra = f", not_before: {self.start} ps" if self.start else ""
        if self.after:
            extra += f", after: [{', '.join(self.after)}]"
        yield (f"  - {{rank: {self.source}, id: s{self.name}, send: {self.size} B, to: {self.destination}, tag: {tag}"
               f"{extra}}}\n")
        yield (f"  - {{rank: {self.destination}, id: r{self.name}, recv: {self.size} B, from: {self.source}, "
               f"tag: {tag}}}\n")


def write_flows(file, ranks, flows):
    """A program of flows, each with a tag of its own: receivers wait for all of them from the beginning."""
    file.write(f"ranks: {ranks}\noperations:\n".encode())
    for tag, flow in enumerate(flows):
        for line in flow.lines(tag):
            file.write(line.encode())


def flow_workload(imported, ranks, flows):
    """The workload of flows in a file beside the experiment."""
    workload = Map(kind="program")
    workload.put("file", imported.beside("flows.yaml", lambda file: write_flows(file, ranks, flows)),
                 "Each flow is a send and a receive (docs/reference/program_format.md).")
    return workload
