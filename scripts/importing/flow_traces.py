# SPDX-License-Identifier: GPL-2.0-only
"""Flows that start at given times, as a Chakra trace for each rank. A database on disk sorts them by start: memory does
not grow with their number, neither here nor in a run, which reads only up to its clock."""

import pathlib
import shutil
import sqlite3
import tempfile
import weakref

from .chakra_writer import RECEIVE, SEND, TraceWriter
from .imported import Map

AT_A_TIME = 5000
TABLE = """PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE; PRAGMA cache_size=-1024;
CREATE TABLE ends (rank INTEGER, start INTEGER, number INTEGER, sends INTEGER, peer INTEGER, size INTEGER)"""
IN_ORDER = "SELECT start, sends, peer, size FROM ends WHERE rank = ? ORDER BY start, number"


def remove(database, folder):
    database.close()
    shutil.rmtree(folder, ignore_errors=True)


class FlowTraces:
    """Takes flows in any order. Flows of two ranks are matched by their starts, then by the order in which they were
    added, on both sides."""

    def __init__(self):
        folder = tempfile.mkdtemp(prefix="weft-import-")
        self.database = sqlite3.connect(str(pathlib.Path(folder) / "flows"), isolation_level=None)
        self.end = weakref.finalize(self, remove, self.database, folder)
        self.database.executescript(TABLE)
        self.database.execute("BEGIN")
        self.rows, self.count, self.ranks = [], 0, 0

    def add(self, start, source, destination, size):
        """`start` in picoseconds."""
        self.rows.append((source, start, self.count, 1, destination, size))
        self.rows.append((destination, start, self.count, 0, source, size))
        self.count += 1
        self.ranks = max(self.ranks, source + 1, destination + 1)
        if len(self.rows) >= AT_A_TIME:
            self.flush()

    def flush(self):
        self.database.executemany("INSERT INTO ends VALUES (?, ?, ?, ?, ?, ?)", self.rows)
        self.rows.clear()

    def finish(self):
        self.flush()
        self.database.execute("COMMIT")
        self.database.execute("CREATE INDEX in_order ON ends (rank, start, number)")

    def write(self, file, rank):
        writer = TraceWriter(file)
        for start, sends, peer, size in self.database.cursor().execute(IN_ORDER, (rank,)):
            end = {"comm_dst": peer} if sends else {"comm_src": peer}
            time = {"not_before_ps": start} if start else {}
            writer.node("send" if sends else "recv", SEND if sends else RECEIVE, (), None,
                        {"is_cpu_op": False, "comm_size": size, **end, **time})


def flow_traces_workload(imported, flows):
    """The workload of flows, in files beside the experiment; `imported.ranks` says how many."""
    flows.finish()
    suffix = f"{imported.ranks}ranks"
    for rank in range(imported.ranks):
        imported.beside(f"{suffix}.{rank}.et", lambda file, rank=rank: flows.write(file, rank))
    workload = Map(kind="chakra")
    workload.put("file", imported.prefix(suffix), "Each flow is a send and a receive, in a trace for each rank "
                                                  "(docs/reference/traces.md).")
    workload.update(ranks=imported.ranks, issue="times")
    return workload
