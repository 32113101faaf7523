# SPDX-License-Identifier: GPL-2.0-only
from math import ceil

from oracles.wire import Network, quantity

SOURCE = "IEEE 802.1Q; Zhu et al. 2015"
PAUSE = 84  # wire bytes of a pause frame: 64 B, preamble and gap
CASES = ((999, 0), (1584, 500))  # delay of links and response to a pause, ns: rounding up adds little
SIZES = (21480, 14336, 31672)  # of messages; their last packets shift frames against each other


def bound(experiment, delay, response):
    """Full frames that an ingress queue may get after it has reached its threshold."""
    network, rate = Network.of(experiment), quantity(experiment["topology"]["link_rate"])
    largest = network.mtu + network.overhead
    wire = largest + PAUSE + (2 * delay + response) * rate / 8e9
    return ceil(wire / largest) + 1


def drops(case, headroom, delay, response, size):
    count = 400_000 // size
    run, _ = case.run({
        "network.pfc": {"headroom": headroom, "response": f"{response} ns"},
        "topology.link_delay": f"{delay} ns",
        "workload.size": f"{size} B",
        "workload.start": ["0 ns"] * count,
    })  # fmt: skip
    if not run.link_classes["pauses_sent"].sum():
        raise ValueError("nobody was stopped")
    return int(run.links["dropped"].sum())


def check(case):
    network = case.experiment["network"]
    frame = quantity(network["mtu"]) + quantity(network["header"])
    automatic, enough, below, half = [], [], [], []
    for delay, response in CASES:
        frames = bound(case.experiment, delay, response)
        all_sizes = [
            [
                drops(case, headroom, delay, response, size)
                for headroom in ("auto", f"{frames * frame} B", f"{(frames - 1) * frame} B", f"{frames // 2 * frame} B")
            ]
            for size in SIZES
        ]
        sums = [sum(column) for column in zip(*all_sizes, strict=True)]
        for numbers, value in zip((automatic, enough, below, half), sums, strict=True):
            numbers.append(value)
    case.exact_all("drops with automatic headroom", [(0, value) for value in automatic], "packets")
    case.exact_all("drops with the headroom of the formula", [(0, value) for value in enough], "packets")
    case.at_least("drops with one frame less", [(1, value) for value in below], "packets")
    case.at_least("drops with half of it", [(100, value) for value in half], "packets")
