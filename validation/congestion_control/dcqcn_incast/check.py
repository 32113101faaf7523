# SPDX-License-Identifier: GPL-2.0-only
from oracles.dcqcn import marking_of_share
from oracles.steady import Steady, fairness
from oracles.wire import quantity

SOURCE = "Zhu et al. 2015; 2016"
SINCE = 100 * 10**9  # ps
KMIN, KMAX, PMAX = 5_000, 200_000, 0.01  # SIGCOMM 2015 at 40 Gb/s


def check(case):
    queues, fair, busy = [], [], []
    for flows in (2, 4, 8, 16):
        run, experiment = case.run({"topology.hosts": flows + 1})
        network, rate = experiment["network"], quantity(experiment["topology"]["link_rate"])
        packet = quantity(network["mtu"]) + quantity(network["header"])
        steady = Steady(run, experiment, SINCE)
        load = steady.load("switch0", "host0")
        waiting = steady.queue("switch0", "host0").sum() / steady.samples - load * packet
        marked = marking_of_share(rate / 8 / packet / flows, packet)
        if marked < PMAX:
            expected = KMIN + marked / PMAX * (KMAX - KMIN)
            queues.append((expected / 1000, expected / 10_000, waiting / 1000))
        fair.append((0.99, round(fairness([steady.load(f"host{host}", "switch0") for host in range(1, flows + 1)]), 4)))
        busy.append((0.99, round(load, 4)))
    case.within("mean queue of 2, 4 and 8 flows; balance of cuts and increases", queues, "kB", 1)
    case.at_least("fairness (Jain) of 2, 4, 8 and 16 flows", fair, "")
    case.at_least("load of their port", busy, "")
