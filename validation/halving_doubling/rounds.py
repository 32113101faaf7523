# SPDX-License-Identifier: GPL-2.0-only
"""Exchanges of partners in each round of recursive doubling and of halving and doubling, and their times."""

from oracles.wire import quantity, serialization, train


def block_sizes(size, blocks, alignment):
    """Equal blocks, rounded up to `alignment`, and a shorter tail."""
    block = -(-size // blocks // alignment) * alignment
    return [max(0, min(block, size - i * block)) for i in range(blocks)]


def doubling(ranks, sizes):
    """all_gather: [round][rank] -> (partner, bytes): everything that the rank has by then, `sizes` being the blocks."""
    held = [{rank} for rank in range(ranks)]
    rounds = []
    for level in range(ranks.bit_length() - 1):
        partners = [rank ^ 1 << level for rank in range(ranks)]
        rounds.append([(partners[r], sum(sizes[b] for b in held[r])) for r in range(ranks)])
        held = [held[r] | held[partners[r]] for r in range(ranks)]
    assert all(len(blocks) == ranks for blocks in held)
    return rounds


def halving(ranks, sizes, distances):
    """reduce_scatter: the rank with the bit of the distance sends the lower half of the blocks that both still have, else
    the upper.

    Returns the rounds, and the final block of each rank.
    """
    held = [list(range(ranks)) for _ in range(ranks)]
    rounds = []
    for distance in distances:
        kept = [h[len(h) // 2 :] if r & distance else h[: len(h) // 2] for r, h in enumerate(held)]
        rounds.append([(r ^ distance, sum(sizes[b] for b in held[r] if b not in kept[r])) for r in range(ranks)])
        held = kept
    return rounds, [blocks[0] for blocks in held]


def rounds_of(collective, algorithm, ranks, size):
    """[round][rank] -> (partner, bytes sent), for a power of two of ranks."""
    distances = [1 << level for level in range(ranks.bit_length() - 1)]
    blocks = block_sizes(size, ranks, 1)
    if collective == "all_gather":
        return doubling(ranks, blocks)
    if collective == "reduce_scatter":
        rounds, ends = halving(ranks, blocks, distances[::-1])
        assert ends == list(range(ranks))
        return rounds
    if algorithm == "recursive_doubling":
        return [[(r ^ distance, size) for r in range(ranks)] for distance in distances]
    scatter, ends = halving(ranks, block_sizes(size, ranks, 16), distances)
    assert sorted(ends) == list(range(ranks))
    # In reverse order, each rank returns the half that it received from its partner, now complete.
    gather = [[(partner, scatter_round[partner][1]) for partner, _ in scatter_round] for scatter_round in scatter[::-1]]
    return scatter + gather


def path(experiment, network):
    topology = experiment["topology"]
    rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
    return [rate, rate], [delay + network.latency, delay]


def message_time(size, network, rates, delays):
    """Store-and-forward time of one message over 2 links."""
    frames = network.frames(size)
    return train([0] * len(frames), frames, rates, delays)[-1]


def nic_time(size, network, rate):
    """Time for which the NIC is busy with a message; zero bytes are no message."""
    return sum(serialization(frame, rate) for frame in network.frames(size)) if size else 0


def end_of_ranks(rounds, exchange_time, nic_time=lambda size: 0):
    """A rank starts a round when it has all data of the previous round:

    e(r, k) = max(e(r, k-1), s(p, k) + time of p's bytes), p sending them from s(p, k) = max(e(p, k-1), NIC of p free) on.
    """
    clock, free = [0] * len(rounds[0]), [0] * len(rounds[0])
    for exchange in rounds:
        start = [max(times) for times in zip(clock, free, strict=True)]
        free = [start[r] + nic_time(size) for r, (_, size) in enumerate(exchange)]
        clock = [
            max(clock[r], start[p] + exchange_time(exchange[p][1])) if exchange[p][1] else clock[r]
            for r, (p, _) in enumerate(exchange)
        ]
    return clock
