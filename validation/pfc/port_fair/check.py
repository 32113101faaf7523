# SPDX-License-Identifier: GPL-2.0-only
from oracles.steady import Steady, fairness

SOURCE = "Zhu et al. 2015"
SINCE = 5 * 10**9  # ps
RATE = 40  # Gb/s


def shares(case, last, changes, since):
    """Rates of hosts 1 to 4, in Gb/s; `last`: switch of host 3."""
    links = case.experiment["topology"]["links"][:-1] + [
        {"from": "host3", "to": f"switch{last}", "rate": "40 Gb/s", "delay": "1 us"}
    ]
    steady = Steady(*case.run({"topology.links": links, **changes}), since)
    homes = {"host1": "switch1", "host2": "switch1", "host3": f"switch{last}", "host4": "switch0"}
    return [RATE * steady.load(host, home) for host, home in homes.items()]


def check(case):
    one = shares(case, 1, {}, SINCE)
    case.within("remote flows on one port, then the local flow", row([1 / 6, 1 / 6, 1 / 6, 1 / 2], one), "Gb/s", 2)
    two = shares(case, 2, {}, SINCE)
    case.within("remote flows on two ports (2 + 1), local flow", row([1 / 6, 1 / 6, 1 / 3, 1 / 3], two), "Gb/s", 2)
    fair = []
    for last in (1, 2):
        dcqcn = {
            "network.congestion_control": "dcqcn",
            "network.buffer": {"size": "12 MB"},
            "simulation.until": "200 ms",
        }
        got = shares(case, last, dcqcn, 50 * 10**9)
        fair.append((0.99, round(fairness(got), 4)))
    case.at_least("fairness (Jain) of the four with DCQCN, one port and two", fair, "")


def row(parts, measured):
    return [(RATE * part, 0.005 * RATE * part, value) for part, value in zip(parts, measured, strict=True)]
