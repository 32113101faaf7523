# SPDX-License-Identifier: GPL-2.0-only
from halving_doubling.rounds import message_time, path
from oracles.wire import Network

SOURCE = "Thakur et al. 2005; De Sensi et al. 2024; Jeaugey 2025"


def rounds_of(algorithm, kind, ranks, size):
    """Bytes of each round of the longest chain."""
    block = size // ranks
    powers = [1 << level for level in range(ranks.bit_length() - 1)]
    halves = [size // (2 * power) for power in powers]
    inner, outer = ranks // 2, 2
    grid = 2 * (inner - 1) * [size // inner] + 2 * (outer - 1) * [size // ranks]
    return {
        ("bruck", "all_gather"): [block * power for power in powers],
        ("bruck", "all_to_all"): [size // 2 for _ in powers],
        ("pairwise", "all_to_all"): (ranks - 1) * [block],
        ("pat", "all_gather"): [block * power for power in powers],
        ("pat", "reduce_scatter"): [block * power for power in powers],
        ("swing", "all_reduce"): 2 * halves,
        ("bucket", "all_reduce"): grid,
        ("hierarchical", "all_reduce"): grid,
    }[algorithm, kind]


def check(case):
    for algorithm, kinds in (
        ("bruck", ["all_gather", "all_to_all"]),
        ("pairwise", ["all_to_all"]),
        ("pat", ["all_gather", "reduce_scatter"]),
        ("swing", ["all_reduce"]),
        ("bucket", ["all_reduce"]),
        ("hierarchical", ["all_reduce"]),
    ):
        pairs = []
        for kind in kinds:
            for ranks in (4, 8, 16):
                for size in (256 * ranks, 30_000 * ranks, 512_000 * ranks // 4):
                    changes = {
                        "workload.algorithm": algorithm,
                        "workload.collective": kind,
                        "workload.ranks": ranks,
                        "workload.size": f"{size} B",
                        "workload.dimensions": [ranks // 2, 2] if algorithm == "bucket" else [],
                        "workload.ranks_per_server": ranks // 2,
                    }
                    run, experiment = case.run(changes)
                    network = Network.of(experiment)
                    rates, delays = path(experiment, network)
                    rounds = rounds_of(algorithm, kind, ranks, size)
                    pairs.append((sum(message_time(size, network, rates, delays) for size in rounds), run.time))
        case.exact_all(f"{algorithm}: {' and '.join(kinds)} of 4, 8, 16 ranks", pairs)
