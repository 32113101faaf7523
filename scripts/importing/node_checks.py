# SPDX-License-Identifier: GPL-2.0-only
"""Checks of the nodes of all ranks, with errors at their places in the input. weft's reader has them, too, and would name
the traces that are written from it. What has to wait for other ranks is in a database on disk."""

import pathlib
import sqlite3
import tempfile
import weakref

from .distinct import Distinct
from .errors import InputError
from .flow_traces import remove

TABLES = """PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE; PRAGMA cache_size=-1024;
CREATE TABLE messages (source INTEGER, destination INTEGER, tag INTEGER, sends INTEGER, size INTEGER, place TEXT);
CREATE TABLE calls (team TEXT, rank INTEGER, what TEXT, place TEXT)"""
MESSAGES_IN_TURN = """CREATE TABLE ends AS SELECT *, row_number() OVER
(PARTITION BY source, destination, tag, sends ORDER BY rowid) AS turn FROM messages ORDER BY rowid"""
CALLS_IN_TURN = """CREATE TABLE turns AS SELECT *, row_number() OVER (PARTITION BY team, rank ORDER BY rowid) AS turn
FROM calls ORDER BY rowid"""
INDEXES = """CREATE INDEX of_ends ON ends (source, destination, tag, turn, sends);
CREATE INDEX of_turns ON turns (team, rank, turn)"""
UNMATCHED = """SELECT a.source, a.destination, a.tag, a.sends, a.size, a.place, a.turn - 1, b.size, b.place FROM ends a
LEFT JOIN ends b ON b.source = a.source AND b.destination = a.destination AND b.tag = a.tag AND b.turn = a.turn AND
b.sends = 1 - a.sends WHERE b.size IS NULL OR (a.sends AND b.size != a.size) ORDER BY a.sends DESC, a.rowid LIMIT 1"""
DIFFERENT = """SELECT a.rank, a.place, a.what, a.turn - 1, b.rank, b.place, b.what FROM turns a JOIN turns b ON
b.team = a.team AND b.turn = a.turn AND b.rank = (SELECT MIN(rank) FROM turns WHERE team = a.team)
WHERE b.what != a.what ORDER BY a.rowid LIMIT 1"""


class NodeChecks:
    """`files`: of each rank. For each rank begin(), then its nodes in the order of the file and end(); agree() when all
    ranks have passed."""

    def __init__(self, files):
        folder = tempfile.mkdtemp(prefix="weft-import-")
        self.files, self.in_order = files, True
        self.database = sqlite3.connect(str(pathlib.Path(folder) / "nodes"), isolation_level=None)
        self.closing = weakref.finalize(self, remove, self.database, folder)
        self.database.executescript(TABLES)
        self.database.execute("BEGIN")

    def begin(self, rank):
        self.rank, self.ids, self.wanted, self.last, self.forward = rank, Distinct(), {}, -1, False

    def error(self, place, text, rank=None):
        return InputError(self.files[self.rank if rank is None else rank], place, text)

    def at(self, rank, place):
        return f"{self.files[rank]}:{place}"

    def node(self, number, place, after):
        """`after`: the numbers of the nodes it waits for."""
        if not self.ids.add(number):
            raise self.error(place, "another node has this id, too; ids of a file are all different")
        self.wanted.pop(number, None)
        for one in after:
            if one == number:
                raise self.error(place, "it depends on itself")
            if one not in self.ids:
                self.wanted.setdefault(one, place)
                self.forward = True
        self.in_order = self.in_order and number > self.last and not self.forward
        self.last = number

    def message(self, source, destination, tag, size, place):
        """A send, or a receive, of this rank."""
        self.database.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)",
                              (source, destination, tag, int(source == self.rank), size, place))

    def call(self, team, what, place):
        """A collective of this rank; `what` it is, as text, is the same on all ranks of its team."""
        self.database.execute("INSERT INTO calls VALUES (?, ?, ?, ?)", (team, self.rank, what, place))

    def end(self, nodes):
        """`nodes`: (number, place, after) of all nodes once more. They are in memory if some stand before one that they
        wait for, which generators do not write."""
        for number, place in self.wanted.items():
            raise self.error(place, f"it needs the data of node {number}, which is not in the file")
        if self.forward:
            self.require_no_cycle({number: (place, set(after)) for number, place, after in nodes})

    def require_no_cycle(self, nodes):
        missing = {number: len(after) for number, (_, after) in nodes.items()}
        dependents = {}
        for number, (_, after) in nodes.items():
            for one in after:
                dependents.setdefault(one, []).append(number)
        free = [number for number, count in missing.items() if count == 0]
        while free:
            number = free.pop()
            del missing[number]
            for one in dependents.get(number, ()):
                missing[one] -= 1
                if missing[one] == 0:
                    free.append(one)
        if missing:
            number, before = self.of_cycle(nodes, missing)
            raise self.error(nodes[number][0], f"it depends on node {before}, and that one, directly or not, on it")

    @staticmethod
    def of_cycle(nodes, left):
        """A node that waits for itself, and the node through which it does. All of `left` wait for others of them."""
        seen, number = set(), min(left)
        while number not in seen:
            seen.add(number)
            number = min(one for one in nodes[number][1] if one in left)
        return number, min(one for one in nodes[number][1] if one in left)

    def agree(self, members):
        """Sends with their receives, and the collectives of each team; `members(team)` are its ranks. Only if nodes are
        in the order of their ids and behind those they wait for: weft's reader puts others in order first."""
        if not self.in_order:
            return
        for statement in (MESSAGES_IN_TURN, CALLS_IN_TURN, *INDEXES.split(";")):
            self.database.execute(statement)
        self.require_matching()
        self.require_equal_calls(members)

    def require_matching(self):
        found = self.database.execute(UNMATCHED).fetchone()
        if not found:
            return
        source, destination, tag, sends, size, place, turn, other, other_place = found
        rank, peer = (source, destination) if sends else (destination, source)
        mine, its = ("send", "recv") if sends else ("recv", "send")
        what = f"message {turn} from rank {source} to rank {destination} with tag {tag}"
        raise self.error(place, f"{what}: the {mine} has no {its}" if other is None else
                         f"{what}: the send has {size} B, and the recv ({self.at(peer, other_place)}) {other} B", rank)

    def require_equal_calls(self, members):
        if found := self.database.execute(DIFFERENT).fetchone():
            rank, place, what, turn, first, first_place, due = found
            raise self.error(place, f"it is collective {turn} of its ranks: {what}. {self.at(first, first_place)} is: "
                             f"{due}. All ranks have the same collectives in the same order", rank)
        counts = {}
        for team, rank, count in self.database.execute("SELECT team, rank, MAX(turn) FROM turns GROUP BY team, rank"):
            counts.setdefault(team, {})[rank] = count
        for team, of_rank in counts.items():
            most = max(of_rank, key=of_rank.get)
            ranks = members(team)
            for rank in ranks:
                if of_rank.get(rank, 0) != of_rank[most]:
                    named = ", ".join([*map(str, ranks[:8]), *(["..."] if len(ranks) > 8 else [])])
                    raise self.error(None, f"it has {of_rank.get(rank, 0)} collectives of the ranks {named}, and "
                                     f"{self.files[most]} has {of_rank[most]}; each takes part in each", rank)
