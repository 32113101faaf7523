# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "bandwidth of a port"
ACKS = {"network.ack": "66 B"}


def check(case):
    exact, bounds = [], []
    for hosts in (2, 3, 16):
        for size in ("1 B", "4097 B", "1 MB"):
            for changes in ({}, ACKS):
                run, experiment = case.run({"topology.hosts": hosts, "workload.size": size, **changes})
                topology, network = experiment["topology"], Network.of(experiment)
                rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
                frames = network.frames(quantity(size))
                data = (hosts - 1) * sum(serialization(frame, rate) for frame in frames)
                way = serialization(frames[0], rate) + 2 * delay + network.latency
                if changes:
                    acks = (hosts - 1) * len(frames) * serialization(network.control, rate)
                    bounds.append((data + acks, run.time))
                else:
                    exact.append((data + way, run.messages["delivered"].max()))
    case.exact_all("last byte, 2 to 16 hosts, 1 B to 1 MB", exact)
    case.at_least("with ACKs: data and ACKs of a port", bounds)
