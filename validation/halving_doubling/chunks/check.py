# SPDX-License-Identifier: GPL-2.0-only
from halving_doubling.rounds import end_of_ranks, path, rounds_of
from oracles.ring import Tuning
from oracles.wire import Network, quantity, train

SOURCE = "recursion over chunks"
VARIANTS = [
    {},
    {"workload.algorithm": "recursive_doubling", "workload.size": "16 MB"},
    {"topology.hosts": 4, "workload.chunk_size": "64 KiB", "workload.size": "1 MiB"},
    {"topology.hosts": 4, "workload.chunk_size": "64 KiB", "workload.size": "1 MiB", "workload.slices_per_chunk": 1},
    {"topology.hosts": 2, "workload.chunk_size": "10000 B", "workload.size": "300 kB", "workload.credits": 11},
    {"topology.hosts": 2, "workload.chunk_size": "8192 B", "workload.size": "1 MiB", "workload.credits": 1},
    {"workload.collective": "reduce_scatter", "workload.size": "6 MiB", "workload.chunk_size": "128 KiB"},
]


def slices(size, tuning):
    """Bytes of the slices of each chunk: a chunk in equal parts, rounded up to 16 bytes, but not below a limit."""
    chunks = []
    for begin in range(0, size, tuning.chunk):
        chunk = min(tuning.chunk, size - begin)
        part = max(-(-chunk // tuning.slices // 16) * 16, tuning.chunk // tuning.slices // 32)
        chunks.append([min(part, chunk - at) for at in range(0, chunk, part)])
    return chunks


def exchange_time(size, tuning, network, rates, delays):
    """Both partners do the same: chunk c is handed to the NIC when chunk c - ahead has come from the partner."""
    credits = max(tuning.credits_wanted, tuning.slices)
    ahead = credits // tuning.slices
    arrived = []
    handed = 0
    starts, frames = [], []
    for number, chunk in enumerate(slices(size, tuning)):
        if number >= ahead:
            handed = max(handed, arrived[number - ahead])
        chunk_frames = [frame for part in chunk for frame in network.frames(part)]
        starts += [handed] * len(chunk_frames)
        frames += chunk_frames
        arrived.append(train(starts, frames, rates, delays)[-1])  # later packets do not change earlier ones
    return arrived[-1] if arrived else 0


def check(case):
    pairs = []
    for changes in VARIANTS:
        run, experiment = case.run(changes)
        topology, workload, network = experiment["topology"], experiment["workload"], Network.of(experiment)
        tuning = Tuning(workload)
        tuning.credits_wanted = workload.get("credits", 2 * tuning.slices)
        rates, delays = path(experiment, network)
        hosts, size = topology["hosts"], quantity(workload["size"])
        rounds = rounds_of(workload["collective"], workload["algorithm"], hosts, size)
        ends = end_of_ranks(rounds, lambda size: exchange_time(size, tuning, network, rates, delays))
        pairs += zip(ends, run.ranks["finished"], strict=True)
    case.exact_all("end of each rank, n = 2 to 8, 7 tunings", pairs)
