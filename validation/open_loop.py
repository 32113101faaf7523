# SPDX-License-Identifier: GPL-2.0-only
"""Open-loop traffic: accepted over offered load of a machine, and times of messages."""

import dataclasses

from oracles.wire import Network, quantity


@dataclasses.dataclass
class Point:
    """One load on one machine."""

    offered: float  # share of the rate of a host's link: wire bytes of data
    accepted: float  # delivered, of the same
    mean: float  # latency, ps, from the issue of a message to its last byte
    p99: float  # ps
    ideal: float  # the same mean on an idle network, ps

    @property
    def saturated(self):
        """If a machine delivers less than 95 % of a load, messages queue at the hosts."""
        return self.accepted < 0.95 * self.offered


def changes_of(load, length, more):
    """Changes of an experiment for a load during `length` ps: the run ends there, even if messages are in flight."""
    return {
        **more,
        "workload.start": {"process": "poisson", "load": load, "stop": f"{length} ps"},
        "simulation.until": f"{length} ps",
    }


def measure(run, experiment, load, length):
    """The load delivered in the second half of the run, and the latencies of messages issued in its third quarter."""
    messages, wire = run.messages, Network.of(experiment).wire(quantity(experiment["workload"]["size"]))
    rate = quantity(experiment["topology"].get("host_link_rate", experiment["topology"]["link_rate"]))
    hosts = len(set(messages["source"]))
    done = messages["delivered"] > 0
    late = done & (messages["delivered"] > length / 2)
    accepted = int(late.sum()) * wire * 8 * 10**12 / (rate * hosts * length / 2)
    inside = done & (messages["issued"] >= length / 2) & (messages["issued"] < length * 0.75)
    latency = messages["delivered"][inside] - messages["issued"][inside]
    if not inside.any():
        return Point(load, accepted, float("inf"), float("inf"), float("nan"))
    latency.sort()
    return Point(load, accepted, latency.mean(), latency[int(0.99 * (len(latency) - 1))], messages["ideal"][inside].mean())
