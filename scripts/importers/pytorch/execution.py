# SPDX-License-Identifier: GPL-2.0-only
"""PyTorch's execution traces (torch/csrc/profiler/standalone/execution_trace_observer.cpp): operators with their
tensors, without times. The time of an operator of the accelerator is that of a device, if one is given."""

import json
import sqlite3

from frameworks.communications import (MAX_RANKS, PARAMETERS_NODE, Communication, communication, kind_of, numbers,
                                       unnamed_group)
from frameworks.json_stream import JsonStream, shown
from frameworks.timeline import Timeline
from importing.errors import InputError

from . import kernels

GROUPS_NODE = "process_group:init"
LONGEST = 1 << 50  # picoseconds of an operator: 18 minutes


def looks_like(start):
    return '"schema"' in start and '"nodes"' in start and '"ctrl_deps"' in start


def is_too_old(start):
    """Of PyTorch 1.13, and others that write schema 1.0.1: nodes have a `parent`, and process groups are addresses in memory,
    which differ from rank to rank."""
    return '"schema"' in start and '"nodes"' in start and '"parent"' in start and '"ctrl_deps"' not in start


def whole(value):
    """A whole number in the allowed range, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def messages_of(sequence):
    """Of (number, whether it is of messages); None if it is the number alone."""
    return bool(sequence[1]) if isinstance(sequence, list) and len(sequence) > 1 else None


class Execution:
    """Puts the nodes of a file into a timeline."""

    def __init__(self, path, notes, device=None, progress=None):
        self.path, self.notes, self.device, self.progress = str(path), notes, device, progress
        self.timeline = Timeline(path)
        self.nodes = self.timeline.database
        self.nodes.execute("CREATE TABLE nodes (id INTEGER PRIMARY KEY, parent INTEGER, name INTEGER, record INTEGER,"
                           " took INTEGER, kernel INTEGER, call TEXT, wait TEXT)")
        self.rows = []

    def error(self, node, what):
        return InputError(self.path, None, f"node {node}: {what}")

    def read(self):
        schema = None
        for key, value, line in JsonStream(self.path, self.progress).members({"nodes"}):
            if key == "schema":
                schema = str(value)
            elif key == "nodes":
                self.node(value, line)
        if schema is None:
            raise InputError(self.path, None, "an execution trace has a 'schema', and this file has none")
        self.put()
        self.order()
        self.timeline.finish()
        return self.timeline

    def put(self):
        for row in self.rows:
            try:
                self.nodes.execute("INSERT INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            except sqlite3.IntegrityError:
                raise self.error(row[0], "another node has this id, too") from None
        self.rows = []

    def node(self, node, line):
        if not isinstance(node, dict):
            raise InputError(self.path, line, "a node that is no map")
        number = node.get("id")
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 63:
            raise InputError(self.path, line, f"a node whose 'id' is {shown(number)}; expected a whole number")
        name, parent = str(node.get("name", "")), node.get("ctrl_deps", node.get("parent"))
        inputs = self.side(node, "inputs", number)
        attributes = {one.get("name"): one.get("value") for one in node.get("attrs") or [] if isinstance(one, dict)}
        record = attributes.get("rf_id")
        call = wait = None
        took, is_kernel = 0, 0
        if GROUPS_NODE in name:
            self.groups(inputs, number)
        elif name == PARAMETERS_NODE:
            call, wait = self.call(number, inputs, self.side(node, "outputs", number))
        else:
            took, is_kernel = self.kernel(number, name, node, inputs)
        self.rows.append((number, whole(parent), self.timeline.name(name), whole(record), min(took, LONGEST), is_kernel,
                          call.text() if call else None, wait))
        if len(self.rows) >= 5000:
            self.put()

    def side(self, node, key, number):
        """The values of `inputs` or `outputs`; older schemas have them directly."""
        found = node.get(key)
        values = found.get("values", []) if isinstance(found, dict) else found
        if isinstance(values, str):
            try:
                values = json.loads(values)
            except json.JSONDecodeError:
                values = []
        if values is not None and not isinstance(values, list):
            raise self.error(number, f"'{key}' is {type(values).__name__}; expected a list")
        return values or []

    def groups(self, inputs, number):
        text = inputs[0] if inputs else "[]"
        try:
            listed = json.loads(text) if isinstance(text, str) else text
            for group in listed:
                ranks = numbers(group.get("ranks")) or []
                size = group.get("group_size", group.get("pg_size"))
                if not ranks and isinstance(size, int):
                    self.timeline.world = size
                self.timeline.groups[str(group["pg_name"])] = ranks
        except (ValueError, AttributeError, KeyError, TypeError):
            raise self.error(number, "its process groups are no list of maps with 'pg_name' and 'ranks'") from None

    def call(self, number, inputs, outputs):
        """(communication, None), or (None, [group, number, whether it is of a message] as text) of a wait. The values are those of RECORD_PARAM_COMMS:
        tensors, sequence, (group, description), rank or root, name, splits, first rank, stride, size."""
        at = next((i for i, value in enumerate(inputs) if isinstance(value, str) and i >= 2), None)
        if at is None:
            raise self.error(number, f"{PARAMETERS_NODE} without the name of a collective")
        name, sequence = inputs[at], None
        if at >= 3:
            sequence = inputs[at - 3][0] if isinstance(inputs[at - 3], list) and inputs[at - 3] else inputs[at - 3]
            sequence = sequence if isinstance(sequence, int) else None
        if "wait" in name:
            pair = inputs[at - 2]
            group = pair[0] if isinstance(pair, list) and pair else ""
            return None, None if sequence is None else json.dumps([str(group), sequence, messages_of(inputs[at - 3])])
        if kind_of(name) is None:
            return None, None
        pair = inputs[at - 2]
        group = str((pair[0] if pair else "") if isinstance(pair, list) else pair)
        tail = inputs[at + 1:]
        splits = [one if isinstance(one, list) else [] for one in tail[:2]] + [[], []]
        start, stride, size = [one if isinstance(one, int) else None for one in [*tail[2:5], None, None, None][:3]]
        regular = start is not None and start >= 0 and (stride or 0) > 0 and 0 < (size or 0) <= MAX_RANKS
        ranks = [start + stride * i for i in range(size)] if regular else None
        if not group:
            group = unnamed_group(ranks, size, self.timeline.groups) if (size or 0) > 0 else "0"
        if (size or 0) > 0:
            self.timeline.sizes[group] = size
        if ranks and not self.timeline.groups.get(group):
            self.timeline.groups[group] = ranks
        members = size or len(self.timeline.groups.get(group) or []) or 1
        root = inputs[at - 1] if isinstance(inputs[at - 1], int) else 0
        try:
            found = communication(name, kernels.bytes_of(inputs[:max(0, at - 3)]), kernels.bytes_of(outputs), members,
                                  group, root, splits[0], splits[1])
        except ValueError as wrong:
            raise self.error(number, f"{name}: {wrong}") from None
        found.sequence = sequence
        if kind_of(name) in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"):
            found.root = 0
        return found, None

    def kernel(self, number, name, node, inputs):
        """(picoseconds, whether it runs on the accelerator)."""
        shapes = node.get("inputs", {}).get("shapes") if isinstance(node.get("inputs"),
                                                                    dict) else node.get("input_shapes")
        types = node.get("inputs", {}).get("types") if isinstance(node.get("inputs"), dict) else node.get("input_types")
        try:
            return kernels.time_of(name, inputs, self.side(node, "outputs", number), shapes or [], types or [],
                                   self.device)
        except (TypeError, IndexError, ValueError) as wrong:
            raise self.error(number, f"'{name}': its tensors are not understood: {wrong}") from None

    def order(self):
        """Operators that call no other one, by id, which is the order in which they began. If the accelerator has none:
        those of the host."""
        self.nodes.execute("CREATE INDEX nodes_parent ON nodes (parent)")
        on_device = self.timeline.one("SELECT EXISTS(SELECT 1 FROM nodes WHERE kernel = 1)")
        place = self.operation if on_device else self.host_operation
        self.now, self.calls, self.wanted = 0, {}, 1 if on_device else 2
        for row in self.nodes.cursor().execute(
                "SELECT id, name, record, took, call, wait FROM nodes WHERE call IS NOT NULL OR wait IS NOT NULL OR "
            "(kernel = ? AND NOT EXISTS (SELECT 1 FROM nodes AS child WHERE child.parent = nodes.id AND child.kernel = "
            "?)) ORDER BY id", (self.wanted, self.wanted)):
            place(*row)
        if self.device is None or not on_device:
            self.notes.add("operators take no time: the trace has none" + (
                "; --device h100 gives them those of a device" if on_device
                else ", and no operators of an accelerator"),
                self.path)

    def operation(self, number, name, record, took, call, wait):
        timeline = self.timeline
        if call is not None:
            found = Communication.of_text(call)
            stream = timeline.stream("communication", found.group)
            # Each group numbers its collectives, and its messages; before PyTorch 2.4 a wait has the number alone.
            for key in ((found.group, found.sequence, found.kind in ("send", "recv")), (found.group, found.sequence), found.sequence):
                self.calls[key] = (stream, number)
            if record is not None:
                timeline.add("recorded", record, call)
            timeline.add("ops", self.now, self.now, stream, number, timeline.name(found.kind), None, call, None)
        elif wait is not None:
            group, sequence, messages = json.loads(wait)
            key = sequence if not group else (group, sequence) if messages is None else (group, sequence, messages)
            if key in self.calls:
                stream, corr = self.calls[key]
                timeline.add("waits", number, timeline.stream("compute", 0), stream, corr + 1)
        else:
            timeline.add("ops", self.now, self.now + took, timeline.stream("compute", 0), number, name, None, None,
                         None)
            self.now += took

    def host_operation(self, number, name, record, took, call, wait):
        if wait is None:
            self.timeline.add("hosts", number, number, 0, name, call, None)
            if record is not None and call is not None:
                self.timeline.add("recorded", record, call)
