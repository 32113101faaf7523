# SPDX-License-Identifier: GPL-2.0-only
"""The power of a machine over simulated time, from the operations of its ranks and the samples of its links."""

import h5py
import numpy

from support.errors import StudyError

from .account import STATES, constant_power, switch_power
from .bill import RATE, Links, bill_of
from .usage import PICO, experiment_of, storage_hosts

COMPUTE, HOST = 0, 4  # of /operations/kind


def covered(starts, ends):
    """(starts, ends) of the times in which at least one interval is open."""
    order = numpy.argsort(starts, kind="stable")
    starts, ends = starts[order], numpy.maximum.accumulate(ends[order])
    first = numpy.concatenate(([True], starts[1:] > ends[:-1])) if len(starts) else numpy.zeros(0, bool)
    last = numpy.concatenate((first[1:], [True])) if len(starts) else first
    return starts[first], ends[last]


def covered_of_nodes(nodes, starts, ends, chosen):
    """The same for each node separately, for the chosen rows; joined. Ranks of several jobs may be on one node."""
    found = [covered(starts[rows], ends[rows]) for node in numpy.unique(nodes[chosen])
             for rows in [chosen & (nodes == node)]]
    return tuple(numpy.concatenate([pair[i] for pair in found]) if found else numpy.zeros(0, numpy.int64)
                 for i in range(2))


def open_at_the_end(ranks, nodes, compute, exposed, span, known):
    """Rows [(node, start, end, computes)] for operations that had not ended when the run was cut short, which have no
    rows: what ranks have computed and communicated beyond the known operations (node, start, end, chosen, computes),
    directly before the end of the run. Not for nodes with several ranks, whose times overlap."""
    node, start, end, chosen, computes = known
    rows = []
    for at in numpy.flatnonzero(ranks):
        if numpy.count_nonzero(nodes == nodes[at]) > 1:
            continue
        own = chosen & (node == nodes[at])
        of_compute, of_any = (int(numpy.diff(covered(start[one], end[one]), axis=0).sum())
                              for one in (own & computes, own))
        computing = max(0, int(compute[at]) - of_compute)
        active = computing + max(0, int(exposed[at]) - (of_any - of_compute))
        rows += [(nodes[at], span - time, span, of) for time, of in ((computing, True), (active, False)) if time > 0]
    return rows


def count_at(edges, starts, ends):
    """The number of open intervals from each edge on."""
    return numpy.searchsorted(numpy.sort(starts), edges, "right") - numpy.searchsorted(numpy.sort(ends), edges, "right")


def switch_busy(file, edges, span):
    """(edges, rate of ports of switches that send from each on, in units of RATE): the given edges, and those at which
    the samples change; without samples the mean."""
    links, directions = Links(file), file["links"]
    leaving = directions["from"][:]
    known = leaving < len(links.of_network)
    weight = numpy.where(known & links.of_network[numpy.where(known, leaving, 0)], directions["rate"][:] / RATE, 0.0)
    if "links_series" not in file:
        mean = float((weight * directions["busy"][:]).sum() / span) if span else 0.0
        return edges, numpy.full(len(edges), mean)
    series = file["links_series"]
    length = int(series.attrs["interval"])
    # Intervals in which no link sends have no rows; the last one ends with the run.
    until = numpy.minimum(length * (1 + numpy.arange(-(-span // length))), span)
    row = numpy.searchsorted(directions["id"][:], series["link"][:])
    busy = numpy.bincount(series["interval"][:], series["utilization"][:] * weight[row], minlength=len(until))
    edges = numpy.unique(numpy.concatenate((edges, until[until < span])))
    return edges, busy[numpy.searchsorted(until, edges, "right")]


class PowerSeries:
    """`edges` in ps; from each edge until the next one, or `span`, the power of each part is `watts[part]`."""

    def __init__(self, path, usage, settings, estimate=None):
        values = settings.values(estimate or settings.estimate, usage["device"])
        bill = bill_of(usage["bill"])
        with h5py.File(path, "r") as file:
            if "operations" not in file:
                raise StudyError(f"'{path}' has no operations; expected output.operations: true of its experiment")
            self.span = int(file.attrs["simulated_time"])
            intervals = self.intervals(file, bill)
            edges = numpy.unique(numpy.concatenate((numpy.array([0]), *intervals["compute"], *intervals["any"])))
            edges = edges[edges < self.span] if self.span else edges[:1]
            self.edges, busy = switch_busy(file, edges, self.span)
        compute = count_at(self.edges, *intervals["compute"])
        active = count_at(self.edges, *intervals["any"])
        numbers = {"compute": compute, "communication": active - compute, "idle": bill.accelerators - active}
        self.watts = {state: numbers[state] * values["accelerator_power"] * values[f"{state}_share"]
                      for state in STATES}
        for part, watts in constant_power(bill, values, settings).items():
            self.watts[part] = numpy.full(len(self.edges), watts)
        self.watts["switches"] = switch_power(bill, values, busy)

    def intervals(self, file, bill):
        """Times in which ranks compute, and times in which they do anything, without ranks of storage hosts."""
        hosts = bill.accelerators + bill.storage
        storage = storage_hosts(experiment_of(file).get("topology", {}), hosts, hosts // max(1, bill.servers))
        ranks, nodes = file["ranks/rank"][:], file["ranks/node"][:]
        operations = file["operations"]
        start, end = operations["start"][:], operations["end"][:]
        order = numpy.argsort(ranks)
        node = nodes[order][numpy.searchsorted(ranks, operations["rank"][:], sorter=order)]
        kind = operations["kind"][:]
        chosen = ~numpy.isin(node, storage) & (end > start) & (kind != HOST)
        computes = kind == COMPUTE
        if not file.attrs.get("complete", 1):
            rows = open_at_the_end(~numpy.isin(nodes, storage), nodes, file["ranks/compute"][:], file["ranks/exposed"][:],
                                   self.span, (node, start, end, chosen, computes))
            more = [numpy.array([row[i] for row in rows], dtype) for i, dtype in
                    enumerate((node.dtype, start.dtype, end.dtype, bool))]
            node, start, end, computes = (numpy.concatenate(pair) for pair in zip((node, start, end, computes), more))
            chosen = numpy.concatenate((chosen, numpy.ones(len(rows), bool)))
        compute = chosen & computes
        return {"compute": covered_of_nodes(node, start, end, compute),
                "any": covered_of_nodes(node, start, end, chosen)}

    def total(self):
        return sum(self.watts.values())

    def integral(self):
        """{part: J}."""
        seconds = numpy.diff(numpy.append(self.edges, self.span)) * PICO
        return {part: float((watts * seconds).sum()) for part, watts in self.watts.items()}

    def as_csv(self):
        """A line for each edge: ps, then W of all and of each part."""
        parts = list(self.watts)
        lines = [",".join(["time_ps", "total_W", *(f"{part}_W" for part in parts)])]
        for i, (edge, total) in enumerate(zip(self.edges, self.total())):
            lines.append(",".join([str(edge), f"{total:.9g}", *(f"{self.watts[part][i]:.9g}" for part in parts)]))
        return "\n".join([*lines, ",".join([str(self.span), "", *("" for _ in parts)])]) + "\n"
