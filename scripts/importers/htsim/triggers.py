# SPDX-License-Identifier: GPL-2.0-only
"""Triggers of htsim's connection matrices (sim/trigger.cpp of github.com/Broadcom/csg-htsim): the flows that each flow
waits for, from the database of the flows."""

from importing.errors import InputError
from importing.flow_graphs import FlowGraph

TABLES = """CREATE TABLE triggers (id INTEGER PRIMARY KEY, line INTEGER, kind TEXT, count INTEGER);
CREATE TABLE targets (trigger INTEGER, flow INTEGER, line INTEGER);
CREATE TABLE sources (trigger INTEGER, flow INTEGER, done INTEGER, line INTEGER)"""
INDEXES = """CREATE INDEX of_targets ON targets (trigger); CREATE INDEX of_sources ON sources (trigger)"""
NO_SUCH = """SELECT line, 'trigger', trigger FROM targets WHERE trigger NOT IN (SELECT id FROM triggers)
UNION ALL SELECT line, CASE done WHEN 1 THEN 'send_done_trigger' ELSE 'recv_done_trigger' END, trigger FROM sources
WHERE trigger NOT IN (SELECT id FROM triggers) ORDER BY 1 LIMIT 1"""
ALL_FOR_ALL = """INSERT INTO waits SELECT t.flow, s.flow, s.done FROM targets t JOIN sources s ON s.trigger = t.trigger
WHERE t.trigger = ? ORDER BY t.rowid, s.rowid"""
ONE_FOR_ONE = """INSERT INTO waits SELECT t.flow, s.flow, s.done FROM
(SELECT flow, row_number() OVER (ORDER BY rowid) AS turn FROM targets WHERE trigger = ?) t JOIN
(SELECT flow, done, row_number() OVER (ORDER BY rowid) AS turn FROM sources WHERE trigger = ?) s ON s.turn = t.turn
ORDER BY t.turn"""
SENT, RECEIVED = 1, 0


class Triggers:
    """The flows of a matrix with triggers."""

    def __init__(self, path):
        self.path, self.flows, self.known = path, FlowGraph(), 0
        for statement in TABLES.split(";"):
            self.flows.run(statement)

    @property
    def count(self):
        return self.flows.count

    def add_flow(self, name, flow):
        """`flow`: line, source, destination, size, and if the file has it start, trigger, send_ and
        recv_done_trigger."""
        number = self.flows.add(flow["line"], name, flow.get("start", 0), flow["source"], flow["destination"],
                                flow["size"])
        if number is None:
            other = self.flows.one("SELECT line FROM flows WHERE name = ?", name)
            raise InputError(self.path, flow["line"], f"id {name}: line {other} has it, too")
        if "trigger" in flow:
            self.flows.run("INSERT INTO targets VALUES (?, ?, ?)", (flow["trigger"], number, flow["line"]))
        for key, done in (("send_done_trigger", SENT), ("recv_done_trigger", RECEIVED)):
            if key in flow:
                self.flows.run("INSERT INTO sources VALUES (?, ?, ?, ?)", (flow[key], number, done, flow["line"]))

    def add_trigger(self, name, line, kind, count):
        row = (name, line, kind, count)
        self.known += self.flows.run("INSERT OR IGNORE INTO triggers VALUES (?, ?, ?, ?)", row).rowcount
        if self.flows.one("SELECT line FROM triggers WHERE id = ?", name) != line:
            raise InputError(self.path, line, f"trigger {name}: each once")

    def graph(self, imported):
        """The flows with the flows that they wait for. Raises InputError; records in `imported` the differences from
        htsim."""
        for statement in INDEXES.split(";"):
            self.flows.run(statement)
        missing = self.flows.run(NO_SUCH).fetchone()
        if missing:
            raise InputError(self.path, missing[0], f"{missing[1]} {missing[2]}: there is no such trigger")
        for trigger in self.flows.database.cursor().execute("SELECT id, line, kind, count FROM triggers ORDER BY line"):
            self.resolve(imported, *trigger)
        remarks = {"sent": "send_done_trigger: weft starts the flow when its node has received all data, not when the "
                           "sender knows that (this and all such flows)",
                   "far": "the trigger comes from another node: weft sends an empty message over the network (this and "
                          "all such flows)"}

        def cycle(line, name):
            return InputError(self.path, line, f"flow {name} waits for itself, by its triggers")
        self.flows.finish(lambda line, what: imported.refuse(f"{self.path}:{line}", remarks[what]), cycle)
        return self.flows

    def resolve(self, imported, trigger, line, kind, count):
        sources = self.flows.one("SELECT COUNT(*) FROM sources WHERE trigger = ?", trigger)
        targets = self.flows.one("SELECT COUNT(*) FROM targets WHERE trigger = ?", trigger)
        if not targets:
            return
        if not sources:
            raise InputError(self.path, line, "nothing sets this trigger off, but flows wait for it")
        if kind == "multishot":
            if sources < targets:
                raise InputError(self.path, line, f"{targets} flows wait, and it is set off {sources} times")
            if targets > 1:
                imported.refuse(f"{self.path}:{line}", "multishot: weft counts the flows that trigger it in the "
                                                       "order of the file")
            self.flows.run(ONE_FOR_ONE, (trigger, trigger))
            return
        if kind == "barrier" and sources != count:
            raise InputError(self.path, line, f"count {count}, but {sources} flows trigger it; expected the same number, "
                             "because the order of flows is not known before a run")
        if kind == "oneshot" and sources != 1:
            raise InputError(self.path, line, f"a oneshot trigger of {sources} flows; expected one, because the order "
                             "of flows is not known before a run")
        self.flows.run(ALL_FOR_ALL, (trigger,))
