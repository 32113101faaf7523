# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import train
from store_and_forward.lines import runs

SOURCE = "Kermani, Kleinrock 1979"


def check(case):
    completion = []
    for run, network, rates, delays, sizes in runs(case):
        there = [delay + network.latency for delay in delays[:-1]] + delays[-1:]
        back = [delay + network.latency for delay in delays[:0:-1]] + delays[:1]
        mine = run.operations["rank"] == 0
        took = (run.operations["end"] - run.operations["start"])[mine]
        for size, measured in zip(sizes, took, strict=True):
            frames = network.frames(size)
            arrivals = train([0] * len(frames), frames, rates, there)
            acks = train(arrivals, [network.control] * len(frames), rates[::-1], back)
            completion.append((acks[-1], measured))
    case.exact_all("time until the last ACK is back, 1 to 6 links, 0 B to 2 MB", completion)
