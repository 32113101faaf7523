# SPDX-License-Identifier: GPL-2.0-only
from oracles.steady import Steady

SOURCE = "Zhu et al. 2015"
RATE = 40  # Gb/s
ALLOWED = 0.0275  # bytes at 100 Gb/s in a round trip of 2.2 us, divided by the threshold of 1 MB


def loads(case, remote, changes, since):
    """Gb/s of host 1 and of the victim, with a number of senders in the other rack."""
    pairs = case.experiment["workload"]["pairs"] + [[7 + i, 0] for i in range(remote)]
    steady = Steady(*case.run({"workload.pairs": pairs, **changes}), since)
    return [RATE * steady.load(host, "switch1") for host in ("host1", "host5")]


def check(case):
    sharing = []
    for remote in (0, 1, 2):
        # The port of switch1 into switch3 shares the bottleneck with that of switch4, if the latter has data to send.
        of_port = RATE / (1 if remote == 0 else 2)
        sharing += [(of_port / 4, ALLOWED * of_port / 4, load) for load in loads(case, remote, {}, 5 * 10**9)]
    case.within("PFC: a sender, victim; 0, 1, 2 remote senders", sharing, "Gb/s", 2)
    dcqcn = {"network.congestion_control": "dcqcn", "network.buffer": {"size": "12 MB"}, "simulation.until": "100 ms"}
    victims = [(RATE, 0.005 * RATE, loads(case, remote, dcqcn, 50 * 10**9)[1]) for remote in (0, 2)]
    case.within("DCQCN: victim; 0, 2 remote senders", victims, "Gb/s", 2)
