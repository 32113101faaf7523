# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import train
from store_and_forward.lines import runs

SOURCE = "Kermani, Kleinrock 1979"


def check(case):
    pairs = []
    for run, network, rates, delays, sizes in runs(case):
        there = [delay + network.latency for delay in delays[:-1]] + delays[-1:]  # the last link ends at a host
        for i, size in enumerate(sizes):
            frames = network.frames(size)
            expected = train([0] * len(frames), frames, rates, there)[-1]
            pairs.append((expected, run.messages["delivered"][i] - run.messages["issued"][i]))
            pairs.append((expected, run.messages["ideal"][i]))
    case.exact_all("delivery time and column `ideal`, 1 to 6 links, 0 B to 2 MB", pairs)
