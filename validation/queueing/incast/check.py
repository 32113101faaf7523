# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "work conservation"
ACKS = {"network.ack": "66 B"}


def check(case):
    last, peak = [], []
    for sources in (1, 2, 32):
        for size in ("1 B", "4097 B", "1 MB"):
            for changes in ({}, ACKS):
                run, experiment = case.run({"topology.hosts": sources + 1, "workload.size": size, **changes})
                topology, network = experiment["topology"], Network.of(experiment)
                rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
                frames = network.frames(quantity(size))
                first = serialization(frames[0], rate) + delay + network.latency
                busy = sources * sum(serialization(frame, rate) for frame in frames)
                last.append((first + busy + delay, run.messages["delivered"].max()))
                if not changes:
                    port = list(run.links["to_name"]).index("host0")
                    peak.append((sources * sum(frames) - sum(frames[1:]), run.links["peak_queue"][port]))
    case.exact_all("last byte, 1 to 32 senders, 1 B to 1 MB, with and without ACKs", last)
    case.exact_all("longest queue of the same", peak, "B")
