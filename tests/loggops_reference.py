# SPDX-License-Identifier: GPL-2.0-only
"""A second implementation of the LogGOPS model, as simple as possible: one queue of all ranks' operations, in which an
operation that finds its processor or NIC busy is queued again for the time when these are free. The rules are those of
github.com/spcl/LogGOPSim (T. Hoefler, T. Schneider, A. Lumsdaine, doi:10.1145/1851476.1851564), for one cpu and one NIC of
each rank. Input: the result of goal_files.parse() for a schedule. All times in nanoseconds."""

import heapq

from goal_files import CALC, RECV, SEND

ARRIVAL = 4


def finished(ranks, L=2500, o=1500, g=1000, G=6, O=0, S=65535):
    """When the processor of each rank is free for good."""
    processor, sender, receiver = ([0] * len(ranks) for _ in range(3))
    missing = [[sum(1 for a, _, _ in waits if a == i) for i in range(len(nodes))] for nodes, waits in ranks]
    queue, came, posted, early = [], 0, {}, {}

    def ready(rank, nodes):
        """In the queue, when the processor and for a send the NIC are free: sends, recvs, calcs."""
        nonlocal came
        for i in sorted(nodes, key=lambda i: ranks[rank][0][i][0]):
            kind = ranks[rank][0][i][0]
            heapq.heappush(queue, (max(processor[rank], sender[rank] if kind == SEND else 0), came, kind, rank, i))
            came += 1

    def done(rank, node, at_start):
        """Those that wait for nothing else any more."""
        free = []
        for a, b, start in ranks[rank][1]:
            if b == node and start == at_start:
                missing[rank][a] -= 1
                if missing[rank][a] == 0:
                    free.append(a)
        return free

    for rank in range(len(ranks)):
        ready(rank, [i for i, count in enumerate(missing[rank]) if count == 0])
    while queue:
        time, turn, kind, rank, what = heapq.heappop(queue)
        freed = {}
        if kind == ARRIVAL:
            source, node = what
            _, _, size, tag, _, _ = ranks[source][0][node]
            free = max(processor[rank], receiver[rank])
            if free > time:
                heapq.heappush(queue, (free, turn, kind, rank, what))
                continue
            size = max(size, 1)
            processor[rank] = time + o + (size - 1) * max(O, G)
            receiver[rank] = time + g + (size - 1) * G
            if posted.get((rank, source, tag)):
                freed[rank] = done(rank, posted[rank, source, tag].pop(0), False)
                if size > S:
                    processor[source], sender[source] = max(processor[source], time), max(sender[source], time)
                    freed.setdefault(source, []).extend(done(source, node, False))
            else:
                early.setdefault((rank, source, tag), []).append(node)
        else:
            _, peer, size, tag, _, _ = ranks[rank][0][what]
            free = {CALC: processor[rank], SEND: max(processor[rank], sender[rank]), RECV: 0}[kind]
            if free > time:
                heapq.heappush(queue, (free, turn, kind, rank, what))
                continue
            freed[rank] = done(rank, what, True)
            if kind == CALC:
                processor[rank] = time + size
                freed[rank] += done(rank, what, False)
            elif kind == SEND:
                size = max(size, 1)
                processor[rank] = time + o + (size - 1) * O
                sender[rank] = time + g + (size - 1) * G
                heapq.heappush(queue, (time + o + L, came, ARRIVAL, peer, (rank, what)))
                came += 1
                if size <= S:
                    freed[rank] += done(rank, what, False)
            elif early.get((rank, peer, tag)):
                node = early[rank, peer, tag].pop(0)
                freed[rank] += done(rank, what, False)
                if max(size, 1) > S:
                    processor[peer], sender[peer] = max(processor[peer], time), max(sender[peer], time)
                    freed.setdefault(peer, []).extend(done(peer, node, False))
            else:
                posted.setdefault((rank, peer, tag), []).append(what)
        for owner in sorted(freed):
            ready(owner, freed[owner])
    assert not any(posted.values()) and not any(early.values()), "messages are left over"
    return processor
