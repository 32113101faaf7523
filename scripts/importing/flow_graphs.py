# SPDX-License-Identifier: GPL-2.0-only
"""Flows that wait for others, as a Chakra trace for each rank. They are in a database on disk, and a rank's trace is in
an order in which a run needs only the flows that are in progress or start next."""

import pathlib
import sqlite3
import tempfile
import weakref

from .chakra_writer import RECEIVE, SEND, TraceWriter
from .flow_traces import remove
from .imported import Map

# edges: `flow` waits until `before` has been sent (done = 1) or received (0), where its source is.
# waits: the same at any node. time, level: earliest start of the flow; number of flows before it on the longest path.
# chain: see lay_chains().
TABLES = """PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE; PRAGMA cache_size=-1024;
CREATE TABLE flows (number INTEGER PRIMARY KEY, name INTEGER UNIQUE, line INTEGER, start INTEGER, source INTEGER,
                    destination INTEGER, size INTEGER, missing INTEGER DEFAULT 0, time INTEGER, level INTEGER DEFAULT 0,
                    chain INTEGER DEFAULT 0, ends INTEGER DEFAULT 0, continued INTEGER DEFAULT 0);
CREATE TABLE waits (flow INTEGER, before INTEGER, done INTEGER);
CREATE TABLE edges (flow INTEGER, before INTEGER, done INTEGER)"""

# Flows that the source has sent, or received.
NEAR = """INSERT INTO edges SELECT w.flow, w.before, w.done = 1 AND e.source = f.source
FROM waits w JOIN flows f ON f.number = w.flow JOIN flows e ON e.number = w.before
WHERE e.destination = f.source OR (w.done = 1 AND e.source = f.source) ORDER BY w.rowid"""
FAR = """CREATE TABLE far AS SELECT w.flow AS flow, w.before AS before, w.done AS done,
CASE w.done WHEN 1 THEN e.source ELSE e.destination END AS at, f.source AS target, f.line AS line
FROM waits w JOIN flows f ON f.number = w.flow JOIN flows e ON e.number = w.before
WHERE NOT (e.destination = f.source OR (w.done = 1 AND e.source = f.source)) ORDER BY w.rowid"""
SENT_THERE = """SELECT MIN(f.line) FROM waits w JOIN flows f ON f.number = w.flow JOIN flows e ON e.number = w.before
WHERE w.done = 1 AND e.destination = f.source AND e.source != f.source"""
ENDS = """CREATE TABLE ends AS SELECT rank, flow, sends,
row_number() OVER (PARTITION BY rank ORDER BY time, level, flow) AS id FROM
(SELECT source AS rank, number AS flow, 1 AS sends, time, level FROM flows UNION ALL
 SELECT destination, number, 0, time, level FROM flows)"""
OF_RANK = """SELECT number, sends, source, destination, size, start, chain, level FROM ends JOIN flows ON number = flow
WHERE rank = ? ORDER BY id"""
BEFORE = """SELECT e.id FROM edges JOIN ends e ON e.flow = edges.before AND e.sends = edges.done
WHERE edges.flow = ? ORDER BY e.id"""


class FlowGraph:
    """Flows are added in the order of their file, then `waits`, then finish()."""

    def __init__(self):
        folder = tempfile.mkdtemp(prefix="weft-import-")
        self.database = sqlite3.connect(str(pathlib.Path(folder) / "flows"), isolation_level=None)
        self.end = weakref.finalize(self, remove, self.database, folder)
        self.run, self.count = self.database.execute, 0
        self.database.executescript(TABLES)
        self.run("BEGIN")

    def add(self, line, name, start, source, destination, size):
        """The number of the flow; None if another one has the name. `start` in picoseconds."""
        added = self.run("INSERT OR IGNORE INTO flows (number, name, line, start, source, destination, size, time) "
                         "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                         (self.count, name, line, start, source, destination, size, start)).rowcount
        self.count += added
        return self.count - 1 if added else None

    def one(self, query, *values):
        """The first row's only value, None without one."""
        found = self.run(query, values).fetchone()
        return found[0] if found else None

    def finish(self, remark, cycle):
        """`remark(line, what)` takes the differences from the file, once for each kind, with the first line;
        `cycle(line, name)` returns the error for a flow that waits for itself."""
        if line := self.one(SENT_THERE):
            remark(line, "sent")
        self.run(NEAR)
        self.send_for_triggers(remark)
        self.run("CREATE INDEX by_flow ON edges (flow)")
        self.run("CREATE INDEX by_before ON edges (before)")
        self.run("UPDATE flows SET missing = (SELECT COUNT(*) FROM edges WHERE edges.flow = number)")
        if self.go_through() < self.count:
            raise cycle(*self.one_of_a_cycle())
        self.run(ENDS)
        self.run("CREATE INDEX by_rank ON ends (rank, id)")
        self.run("CREATE INDEX by_end ON ends (flow, sends)")
        self.run("COMMIT")

    def send_for_triggers(self, remark):
        """An empty message for each wait for an event at another node."""
        self.run(FAR)
        if line := self.one("SELECT MIN(line) FROM far"):
            remark(line, "far")
        self.run("INSERT INTO flows (number, start, source, destination, size, time) "
                 "SELECT ? + rowid, 0, at, target, 0, 0 FROM far", (self.count - 1,))
        self.run("INSERT INTO edges SELECT ? + rowid, before, done FROM far", (self.count - 1,))
        self.run("INSERT INTO edges SELECT flow, ? + rowid, 0 FROM far", (self.count - 1,))
        self.count += self.one("SELECT COUNT(*) FROM far")

    def go_through(self):
        """Each flow after those that it waits for; keeps only those that become ready. Returns their number."""
        passed, chains = 0, 0
        self.run("CREATE TABLE roots AS SELECT number FROM flows WHERE missing = 0 ORDER BY number")
        for root in self.database.cursor().execute("SELECT number FROM roots ORDER BY number"):
            free = [root[0]]
            while free:
                flow = free.pop()
                passed += 1
                chains = self.lay_chain(flow, chains)
                free += self.release(flow)
        return passed

    def lay_chain(self, flow, chains):
        """Its chain: that of a flow it waits for, if no other flow has continued that chain. Flows of a chain, and flows
        that wait for nothing (chain 0), are sent in the order of the trace, and so may have one tag. Returns the number
        of chains."""
        before = self.run("SELECT number, chain, continued FROM edges JOIN flows ON number = before WHERE flow = ? "
                          "ORDER BY edges.rowid", (flow,)).fetchall()
        if not before:
            return chains
        found = next(((number, chain) for number, chain, continued in before if chain and not continued), None)
        if found:
            self.run("UPDATE flows SET continued = 1 WHERE number = ?", found[:1])
        else:
            chains += 1
        self.run("UPDATE flows SET chain = ? WHERE number = ?", (found[1] if found else chains, flow))
        return chains

    def release(self, flow):
        """Flows that now wait only for this one."""
        free = []
        self.run("UPDATE flows SET ends = 1 WHERE number = ?", (flow,))
        time, level = self.run("SELECT time, level FROM flows WHERE number = ?", (flow,)).fetchone()
        for (after,) in self.run("SELECT flow FROM edges WHERE before = ? ORDER BY rowid", (flow,)).fetchall():
            self.run("UPDATE flows SET missing = missing - 1, time = MAX(time, ?), level = MAX(level, ?) "
                     "WHERE number = ?", (time, level + 1, after))
            if not self.one("SELECT missing FROM flows WHERE number = ?", after):
                free.append(after)
        return free

    def one_of_a_cycle(self):
        """(line, name) of a flow that waits for itself (R. W. Floyd's two runners)."""
        def step(flow):
            return self.one("SELECT MIN(before) FROM edges JOIN flows ON number = before WHERE flow = ? AND ends = 0",
                            flow)
        slow = fast = self.one("SELECT MIN(number) FROM flows WHERE ends = 0")
        while True:
            slow, fast = step(slow), step(step(fast))
            if slow == fast:
                break
        while self.one("SELECT line FROM flows WHERE number = ?", slow) is None:  # an empty message
            slow = step(slow)
        return self.run("SELECT line, name FROM flows WHERE number = ?", (slow,)).fetchone()

    def write(self, file, rank):
        writer = TraceWriter(file)
        for row in self.database.cursor().execute(OF_RANK, (rank,)):
            flow, sends, source, destination, size, start, chain, level = row
            after = [one for one, in self.run(BEFORE, (flow,))] if sends and level else ()
            attributes = {"is_cpu_op": False, "comm_size": size, "comm_tag": chain}
            attributes["comm_dst" if sends else "comm_src"] = destination if sends else source
            if sends and start:
                attributes["not_before_ps"] = start
            writer.node("send" if sends else "recv", SEND if sends else RECEIVE, after, None, attributes)


def flow_graph_workload(imported, graph):
    """The workload of flows, in files beside the experiment; `imported.ranks` says how many."""
    suffix = f"{imported.ranks}ranks"
    for rank in range(imported.ranks):
        imported.beside(f"{suffix}.{rank}.et", lambda file, rank=rank: graph.write(file, rank))
    workload = Map(kind="chakra")
    workload.put("file", imported.prefix(suffix), "Each flow is a send and a receive, in a trace for each rank "
                                                  "(docs/reference/traces.md).")
    workload.update(ranks=imported.ranks, issue="streams")
    workload.put("read_ahead", 4096, "Flows of a node that are under way or wait for others; those behind them start "
                                     "when it has fewer.")
    return workload
