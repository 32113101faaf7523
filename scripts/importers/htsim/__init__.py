# SPDX-License-Identifier: GPL-2.0-only
"""Connection matrices of htsim (sim/datacenter/connection_matrix.cpp of github.com/Broadcom/csg-htsim): flows with
starts, triggers and failures."""

import re

from importing.distinct import Distinct
from importing.errors import InputError, did_you_mean, text_lines, unzipped_bytes, whole_number
from importing.flow_graphs import flow_graph_workload
from importing.flow_traces import FlowTraces, flow_traces_workload
from importing.imported import Imported

from .triggers import Triggers

SUMMARY = "a connection matrix of htsim, with triggers (.cm)"
HEADS = {"Nodes": "nodes", "Connections": "connections", "Triggers": "triggers", "Failures": "failures"}
OF_FLOW = {"start", "trigger", "size", "send_done_trigger", "recv_done_trigger", "prio"}
PAIR = re.compile(r"([0-9]+)->([0-9]+)")


def add_arguments(parser):
    parser.add_argument("input", metavar="FILE.cm")


def matches(path):
    try:
        start = unzipped_bytes(path, 1 << 14)
    except InputError:
        return False
    return bool(re.match(rb"\s*(#[^\n]*\n\s*)*Nodes\s+[0-9]+\s*\n\s*Connections\s+[0-9]+", start))


LONGEST = 106 * 24 * 3600 * 10**12  # picoseconds, the end of simulated time


class Matrix:
    """A file, read line by line into a database on disk: flows by their starts (`traces`), or, if the header has
    triggers, with the triggers that they fire and wait for (`triggers`)."""

    def __init__(self, path):
        self.path, self.counts, self.failures = path, {}, []
        self.triggers = self.traces = self.prioritized = None
        self.ids = Distinct()
        for number, line in text_lines(path):
            words = line.split("#")[0].split()
            if words:
                self.read_line(number, words)
        self.flows = (self.triggers or self.traces).count if self.triggers or self.traces else 0
        found = {"connections": self.flows, "triggers": self.triggers.known if self.triggers else 0,
                 "failures": len(self.failures)}
        for name, number in found.items():
            if number != self.counts.get(name, 0):
                raise InputError(path, self.counts.get(f"line of {name}", 1), f"found {number} {name}; "
                                 f"expected {self.counts.get(name, 0)} by the header")

    def whole(self, line, text, what, least=0, most=2**63 - 1):
        return whole_number(text, self.path, line, what, least, most)

    def read_line(self, line, words):
        if words[0] in HEADS:
            if len(words) != 2:
                raise InputError(self.path, line, f"expected '{words[0]} NUMBER'")
            self.counts[HEADS[words[0]]] = self.whole(line, words[1], words[0], 0, 1 << 22)
            self.counts[f"line of {HEADS[words[0]]}"] = line
        elif found := PAIR.fullmatch(words[0]):
            self.read_flow(line, [int(one) for one in found.groups()], words[1:])
        elif words[0] == "trigger":
            self.read_trigger(line, words[1:])
        elif words[0] == "failure":
            self.read_failure(line, words[1:])
        else:
            raise InputError(self.path, line, f"found '{words[0]}'; expected SRC->DST, trigger, failure or a header")

    def read_flow(self, line, pair, words):
        nodes = self.counts.get("nodes", 0)
        if pair[0] == pair[1] or max(pair) >= nodes:
            raise InputError(self.path, line, f"{pair[0]}->{pair[1]}: expected two different nodes from 0 to "
                                              f"{nodes - 1}")
        flow = {"line": line, "source": pair[0], "destination": pair[1]}
        self.begin()
        name = None
        while words:
            key, words = words[0], words[1:]
            if key == "id" and words:
                name = self.whole(line, words[0], "id")
                words = words[1:]
            elif key in OF_FLOW and words:
                flow[key] = self.whole(line, words[0], key)
                words = words[1:]
            else:
                raise InputError(self.path, line, f"'{key}'{did_you_mean(key, OF_FLOW)}; expected one of id, "
                                                  f"{', '.join(sorted(OF_FLOW))}"
                                 " and a number")
        if "size" not in flow:
            raise InputError(self.path, line, "size: expected bytes of the flow")
        if flow.get("start", 0) >= LONGEST:
            raise InputError(self.path, line, f"start {flow['start']}: expected less than 106 days")
        self.prioritized = self.prioritized or (line if flow.get("prio") else None)
        if self.triggers:
            self.triggers.add_flow(self.triggers.count if name is None else name, flow)
        else:
            self.stream(line, flow, name)

    def begin(self):
        """Creates the store of the flows, at the first flow or trigger."""
        if not self.triggers and not self.traces:
            if self.counts.get("triggers"):
                self.triggers = Triggers(self.path)
            else:
                self.traces = FlowTraces()

    def stream(self, line, flow, name):
        for key in ("trigger", "send_done_trigger", "recv_done_trigger"):
            if key in flow:
                raise InputError(self.path, line, f"{key} {flow[key]}: there is no such trigger by the header")
        if name is not None and not self.ids.add(name):
            raise InputError(self.path, line, f"id {name}: a line above has it, too")
        self.traces.add(flow.get("start", 0), flow["source"], flow["destination"], flow["size"])

    def read_failure(self, line, words):
        """A failure of a link above an aggregation switch; htsim has no others (FatTreeTopology::add_failed_link)."""
        found = dict(zip(words[::2], words[1::2]))
        if len(words) != 6 or set(found) != {"switch_type", "switch_id", "link_id"}:
            raise InputError(self.path, line, "expected 'failure switch_type AGG switch_id NUMBER link_id NUMBER'")
        if found["switch_type"] != "AGG":
            raise InputError(self.path, line, f"switch_type {found['switch_type']}: expected AGG; htsim ends at others")
        self.failures.append((line, self.whole(line, found["switch_id"], "switch_id", 0, 1 << 22),
                              self.whole(line, found["link_id"], "link_id", 0, 1 << 22)))

    def read_trigger(self, line, words):
        found = dict(zip(words[::2], words[1::2])) if len(words) > 1 else {}
        kind = next((one for one in ("oneshot", "multishot", "barrier") if one in words), None)
        if "id" not in found or kind is None:
            raise InputError(self.path, line, "expected 'trigger id NUMBER oneshot|multishot|barrier [count NUMBER]'")
        name = self.whole(line, found["id"], "id")
        at = words.index("count") + 1 if "count" in words else None
        if at is not None and at >= len(words):
            raise InputError(self.path, line, f"trigger {name}: a count is a number")
        count = self.whole(line, words[at], "count", 1) if at else 1
        self.begin()
        if not self.triggers:
            raise InputError(self.path, line, f"trigger {name}: the header, which stands above, has no triggers")
        self.triggers.add_trigger(name, line, kind, count)


class Tree:
    """The switches of a .topo file of three tiers (docs/reference/topologies.md)."""

    def __init__(self, path):
        self.path, self.tiers, self.head = path, [], {}
        for line, text in text_lines(path):
            words = text.split("#")[0].split()
            if len(words) == 2 and words[0].lower() == "tier":
                self.tiers.append({})
            elif len(words) == 2:
                into = self.tiers[-1] if self.tiers else self.head
                into[words[0].lower()] = whole_number(words[1], path, line, words[0], 0, 1 << 40)

    def names(self, place, switch, link):
        """The two switches of a link above an aggregation switch. Numbers are htsim's. weft counts the switches tier by
        tier; with n aggregation switches in a pod, the links of one go to every n-th core."""
        try:
            nodes, pod, down = self.head["nodes"], self.head["podsize"], self.tiers[0]["radix_down"]
            up, above = self.tiers[0]["radix_up"], self.tiers[1]["radix_up"]
            tors, in_pod = nodes // down, up // self.tiers[1].get("bundle", 1)
            aggregations = nodes // pod * in_pod
        except (KeyError, IndexError, ZeroDivisionError):
            raise InputError(self.path, None, "expected three tiers with their radix, for a link that fails") from None
        bundle = self.tiers[2].get("bundle", 1) if len(self.tiers) > 2 else 0
        if bundle != 1:
            return None
        if switch >= aggregations or link >= above:
            raise InputError(*place, f"switch_id {switch}, link_id {link}: {self.path} has {aggregations} aggregation "
                                     f"switches with {above} links each")
        core = link * in_pod + switch % in_pod
        return [f"switch{tors + switch}", f"switch{tors + aggregations + core}"]


def add_failures(options, matrix, imported):
    """Links that htsim takes away before it begins."""
    tree = Tree(options.topology) if options.topology and str(options.topology).endswith(".topo") else None
    down = []
    for line, switch, link in matrix.failures:
        ends = tree.names((options.input, line), switch, link) if tree else None
        if ends is None:
            imported.refuse(f"{options.input}:{line}", f"failure of link {link} of AGG {switch}: weft leaves it out, because " + (
                "the link is one of a bundle, whose links have one name in weft" if tree else
                "only htsim's topology says which link that is (--topology FILE.topo)"))
        else:
            down.append({"at": "0 ns", "link": ends})
    if down:
        imported.network.put("failures", down, "Links that htsim takes away before it begins.")
        imported.network["reconvergence"] = "0 ns"


def read(options):
    matrix = Matrix(options.input)
    if matrix.counts.get("nodes", 0) < 2 or not matrix.flows:
        raise InputError(options.input, 1, "expected 'Nodes' of two or more, and a connection")
    imported = Imported([options.input], matrix.counts["nodes"], [f"The connection matrix {options.input} of htsim."])
    imported.line_of_ranks = matrix.counts["line of nodes"]
    add_failures(options, matrix, imported)
    if matrix.prioritized:
        imported.refuse(f"{options.input}:{matrix.prioritized}", "prio: in weft all flows have the same priority")
    if matrix.traces:
        imported.workload = flow_traces_workload(imported, matrix.traces)
    else:
        imported.workload = flow_graph_workload(imported, matrix.triggers.graph(imported))
    return imported
