# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization, train

SOURCE = "bandwidth of a port"
ACKS = {"network.ack": "66 B"}


def check(case):
    exact, bounds = [], []
    for seed in (1, 2, 3):
        for size in ("100 kB", "20 MB"):
            for changes in ({}, ACKS):
                run, experiment = case.run({"simulation.seed": seed, "workload.size": size, **changes})
                topology, network = experiment["topology"], Network.of(experiment)
                rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
                frames = network.frames(quantity(size))
                if changes:
                    data = sum(serialization(frame, rate) for frame in frames)
                    bounds.append((data + len(frames) * serialization(network.control, rate), run.time))
                else:
                    time = train([0] * len(frames), frames, [rate, rate], [delay + network.latency, delay])[-1]
                    exact += [(time, delivered) for delivered in run.messages["delivered"]]
    case.exact_all("delivery of each message, 32 hosts, 3 permutations", exact)
    case.at_least("with ACKs: data and ACKs of a port", bounds)
