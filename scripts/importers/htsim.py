# SPDX-License-Identifier: GPL-2.0-only
"""Connection matrices of htsim (sim/datacenter/connection_matrix.cpp of github.com/Broadcom/csg-htsim): flows with
starts, triggers and failures."""

import re

from importing.errors import InputError, did_you_mean, read_bytes, text_lines, whole_number
from importing.imported import Imported
from importing.programs import Flow, flow_workload

SUMMARY = "a connection matrix of htsim, with triggers (.cm)"
HEADS = {"Nodes": "nodes", "Connections": "connections", "Triggers": "triggers", "Failures": "failures"}
OF_FLOW = {"start", "trigger", "size", "send_done_trigger", "recv_done_trigger", "prio"}
PAIR = re.compile(r"([0-9]+)->([0-9]+)")


def add_arguments(parser):
    parser.add_argument("input", metavar="FILE.cm")


def matches(path):
    try:
        start = read_bytes(path, 1 << 14)
    except InputError:
        return False
    return bool(re.match(rb"\s*(#[^\n]*\n\s*)*Nodes\s+[0-9]+\s*\n\s*Connections\s+[0-9]+", start))


class Matrix:
    """A file, read line by line."""

    def __init__(self, path):
        self.path, self.counts = path, {}
        self.flows, self.triggers, self.failures = {}, {}, []
        for number, line in text_lines(path):
            words = line.split("#")[0].split()
            if words:
                self.read_line(number, words)
        for name, found in (("connections", self.flows), ("triggers", self.triggers), ("failures", self.failures)):
            if len(found) != self.counts.get(name, 0):
                raise InputError(path, self.counts.get(f"line of {name}", 1), f"found {len(found)} {name}; "
                                 f"{self.counts.get(name, 0)} are due by the header")

    def whole(self, line, text, what, least=0, most=2**63 - 1):
        return whole_number(text, self.path, line, what, least, most)

    def read_line(self, line, words):
        if words[0] in HEADS:
            if len(words) != 2:
                raise InputError(self.path, line, f"'{words[0]} NUMBER' is due")
            self.counts[HEADS[words[0]]] = self.whole(line, words[1], words[0], 0, 1 << 22)
            self.counts[f"line of {HEADS[words[0]]}"] = line
        elif found := PAIR.fullmatch(words[0]):
            self.read_flow(line, [int(one) for one in found.groups()], words[1:])
        elif words[0] == "trigger":
            self.read_trigger(line, words[1:])
        elif words[0] == "failure":
            self.failures.append((line, " ".join(words)))
        else:
            raise InputError(self.path, line, f"found '{words[0]}'; SRC->DST, trigger, failure or a header is due")

    def read_flow(self, line, pair, words):
        nodes = self.counts.get("nodes", 0)
        if pair[0] == pair[1] or max(pair) >= nodes:
            raise InputError(self.path, line, f"{pair[0]}->{pair[1]}: two different nodes from 0 to {nodes - 1} are "
                                              "due")
        flow = {"line": line, "source": pair[0], "destination": pair[1]}
        name = len(self.flows)
        while words:
            key, words = words[0], words[1:]
            if key == "id" and words:
                name = self.whole(line, words[0], "id")
                words = words[1:]
            elif key in OF_FLOW and words:
                flow[key] = self.whole(line, words[0], key)
                words = words[1:]
            else:
                raise InputError(self.path, line, f"'{key}'{did_you_mean(key, OF_FLOW)}: one of id, "
                                                  f"{', '.join(sorted(OF_FLOW))}"
                                 " and a number are due")
        if "size" not in flow:
            raise InputError(self.path, line, "size: bytes of the flow are due")
        if name in self.flows:
            raise InputError(self.path, line, f"id {name}: line {self.flows[name]['line']} has it, too")
        self.flows[name] = flow

    def read_trigger(self, line, words):
        found = dict(zip(words[::2], words[1::2])) if len(words) > 1 else {}
        kind = next((one for one in ("oneshot", "multishot", "barrier") if one in words), None)
        if "id" not in found or kind is None:
            raise InputError(self.path, line, "'trigger id NUMBER oneshot|multishot|barrier [count NUMBER]' is due")
        name = self.whole(line, found["id"], "id")
        at = words.index("count") + 1 if "count" in words else None
        if name in self.triggers or (at is not None and at >= len(words)):
            raise InputError(self.path, line, f"trigger {name}: each once, and a count is a number")
        count = self.whole(line, words[at], "count", 1) if at else 1
        self.triggers[name] = {"line": line, "kind": kind, "count": count, "sources": [], "targets": []}

    def join(self):
        """Which flows set off which triggers, and start at them."""
        for name, flow in self.flows.items():
            for key, done in (("send_done_trigger", "s"), ("recv_done_trigger", "r")):
                if key in flow:
                    self.trigger_of(flow, key)["sources"].append((name, done))
            if "trigger" in flow:
                self.trigger_of(flow, "trigger")["targets"].append(name)

    def trigger_of(self, flow, key):
        if flow[key] not in self.triggers:
            raise InputError(self.path, flow["line"], f"{key} {flow[key]}: there is no such trigger")
        return self.triggers[flow[key]]


class Causes:
    """What each flow waits for, as operations of its source."""

    def __init__(self, matrix, imported):
        self.matrix, self.imported, self.far = matrix, imported, 0
        self.waits = {name: [] for name in matrix.flows}  # flow: [(flow before it, "s" or "r")]
        for trigger in matrix.triggers.values():
            self.resolve(trigger)

    def resolve(self, trigger):
        sources, targets, line = trigger["sources"], trigger["targets"], trigger["line"]
        path = self.matrix.path
        if targets and not sources:
            raise InputError(path, line, "nothing sets this trigger off, but flows wait for it")
        if trigger["kind"] == "barrier":
            if targets and len(sources) != trigger["count"]:
                raise InputError(path, line, f"count {trigger['count']}, but {len(sources)} flows set it off; as "
                                 "many are due, for who comes first is not known before a run")
            for target in targets:
                self.waits[target] += sources
        elif trigger["kind"] == "oneshot":
            if targets and len(sources) != 1:
                raise InputError(path, line, f"a oneshot trigger that {len(sources)} flows set off; one is due, for "
                                 "who comes first is not known before a run")
            for target in targets:
                self.waits[target] += sources
        else:
            if len(sources) < len(targets):
                raise InputError(path, line, f"{len(targets)} flows wait, and it is set off {len(sources)} times")
            if len(targets) > 1:
                self.imported.refuse(f"{path}:{line}", "multishot: the flows that set it off count in the order of "
                                                       "the file")
            for source, target in zip(sources, targets):
                self.waits[target].append(source)

    def order(self):
        """Flows so that those come first for which others wait."""
        state, ordered = {}, []
        for first in self.matrix.flows:
            stack = [(first, iter(self.waits[first]))] if first not in state else []
            state.setdefault(first, "open")
            while stack:
                name, rest = stack[-1]
                for before, _ in rest:
                    if state.get(before) == "open":
                        raise InputError(self.matrix.path, self.matrix.flows[before]["line"],
                                         f"flow {before} waits for itself, by its triggers")
                    if before not in state:
                        state[before] = "open"
                        stack.append((before, iter(self.waits[before])))
                        break
                else:
                    stack.pop()
                    if state[name] == "open":
                        state[name] = "done"
                        ordered.append(name)
        return ordered

    def flows(self):
        """Flows of a program, and the empty messages that carry triggers to other nodes."""
        made = []
        for name in self.order():
            flow, after = self.matrix.flows[name], []
            for before, done in self.waits[name]:
                after.append(self.cause(made, flow, before, done))
            made.append(Flow(name, flow["source"], flow["destination"], flow["size"], flow.get("start", 0), after))
        return made

    def cause(self, made, flow, before, done):
        earlier = self.matrix.flows[before]
        at = earlier["source"] if done == "s" else earlier["destination"]
        if at == flow["source"]:
            return f"{done}{before}"
        place = f"{self.matrix.path}:{flow['line']}"
        if done == "s" and earlier["destination"] == flow["source"]:
            if self.far == 0:
                self.imported.refuse(place, "send_done_trigger: a node that has received all starts then, not when the "
                                            "sender knows it (this and all such flows)")
            self.far = 1
            return f"r{before}"
        name = f"t{len(made)}_{before}"
        self.imported.refuse(place, f"the trigger comes from node {at}: an empty message over the network")
        made.append(Flow(name, at, flow["source"], 0, 0, [f"{done}{before}"]))
        return f"r{name}"


def read(options):
    matrix = Matrix(options.input)
    if matrix.counts.get("nodes", 0) < 2 or not matrix.flows:
        raise InputError(options.input, 1, "'Nodes' of two or more, and a connection, are due")
    imported = Imported([options.input], matrix.counts["nodes"], [f"The connection matrix {options.input} of htsim."])
    matrix.join()
    flows = Causes(matrix, imported).flows()
    for line, text in matrix.failures:
        imported.refuse(f"{options.input}:{line}", f"{text}: network.failures takes links down (docs/network.md), "
                                                   "once it is known what that link is called here")
    for flow in matrix.flows.values():
        if flow.get("prio"):
            imported.refuse(f"{options.input}:{flow['line']}", "prio: all flows are of one class")
    imported.workload = flow_workload(imported, imported.ranks, flows)
    return imported
