# SPDX-License-Identifier: GPL-2.0-only
"""NCCL's ring all-reduce as lists of slices, and its time by a recursion over events."""

from oracles.wire import Network, quantity, train

STEPS = 8  # NCCL_STEPS
STEP_BYTES = 4 * 2**20 // STEPS  # NCCL_BUFFSIZE / NCCL_STEPS
ALIGNMENT = 16  # bytes


def divide_up(a, b):
    return -(-a // b)


def align_up(a):
    return divide_up(a, ALIGNMENT) * ALIGNMENT


def unpipelined(experiment):
    """Time of one of the 2 (n-1) steps of a ring over a star, whose messages are whole blocks; and of all of them."""
    topology, network = experiment["topology"], Network.of(experiment)
    rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
    block = align_up(divide_up(quantity(experiment["workload"]["size"]), topology["hosts"]))
    frames = network.frames(block)
    step = train([0] * len(frames), frames, [rate, rate], [delay + network.latency, delay])[-1]
    return step, 2 * (topology["hosts"] - 1) * step


class Tuning:
    """Chunk, slices per chunk and credits of a `collective` workload; NCCL's (4 steps in 2 slices) unless given."""

    def __init__(self, workload):
        self.chunk = quantity(workload["chunk_size"]) if "chunk_size" in workload else STEPS // 2 * STEP_BYTES
        self.slices = workload.get("slices_per_chunk", 2)
        self.credits = max(workload.get("credits", STEPS * self.slices // (STEPS // 2)), self.slices + 1)


def all_reduce(ranks, size, tuning):
    """For each rank its operations in order: (receives, bytes, sends), one per slice.

    runRing of NCCL's src/device/all_reduce.h: a loop takes n chunks; in it, rank r first sends chunk r-1, then passes on
    n-1 chunks while they are reduced (the last of them is complete) and n-2 complete ones, and takes one.
    """
    programs = [[] for _ in range(ranks)]
    begin = 0
    while begin < size:
        chunk = min(tuning.chunk, align_up(divide_up(size - begin, ranks)))
        for rank, program in enumerate(programs):
            for step in range(2 * ranks - 1):
                offset = begin + chunk * ((rank - 1 - step) % ranks)
                left = max(0, min(chunk, size - offset))
                slice_bytes = max(align_up(divide_up(left, tuning.slices)), tuning.chunk // tuning.slices // 32)
                while left > 0:
                    part = min(slice_bytes, left)
                    program.append((step > 0, part, step < 2 * ranks - 2))
                    left -= part
        begin += ranks * chunk
    return programs


def pipelined_times(programs, network, rate, delay):
    """The time at which each rank has finished, on a star without ACKs and credits, by the recursion

    e(r, i) = max(e(r, i-1), arrival of the slice that operation i receives);
    a slice goes to the NIC at e(r, i) and over two links, packet by packet, behind the slices before it.
    """
    ranks = len(programs)
    position = [0] * ranks
    clock = [0] * ranks
    arrived = [[] for _ in range(ranks)]  # at rank r from rank r-1, in order
    received = [0] * ranks
    free = [[0, 0] for _ in range(ranks)]  # NIC of rank r, and the switch port towards rank r+1
    moved = True
    while moved:
        moved = False
        for rank, program in enumerate(programs):
            while position[rank] < len(program):
                receives, size, sends = program[position[rank]]
                if receives:
                    if received[rank] == len(arrived[rank]):
                        break
                    clock[rank] = max(clock[rank], arrived[rank][received[rank]])
                    received[rank] += 1
                if sends:
                    frames = network.frames(size)
                    out = [clock[rank]] * len(frames)
                    for hop, after in enumerate((delay + network.latency, delay)):
                        out[0] = max(out[0], free[rank][hop])
                        out = train(out, frames, [rate], [after])
                        free[rank][hop] = out[-1] - after
                    arrived[(rank + 1) % ranks].append(out[-1])
                position[rank] += 1
                moved = True
    if any(position[rank] < len(program) for rank, program in enumerate(programs)):
        raise ArithmeticError("the recursion does not end")
    return clock
