# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "work conservation"


def check(case):
    late = []
    for sources in (2, 8, 16, 32):
        run, experiment = case.run({"topology.hosts": sources + 1})
        topology, network = experiment["topology"], Network.of(experiment)
        rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
        frames = network.frames(quantity(experiment["workload"]["size"]))
        ideal = serialization(frames[0], rate) + 2 * delay + sources * sum(serialization(frame, rate) for frame in frames)
        late.append((1.015, 0.015, run.messages["delivered"].max() / ideal))
    case.within("last byte / ideal drain time, 2, 8, 16, 32 senders", late)
