# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "Kung, Morris 1995"
CREDIT = 8  # wire bytes of a credit update


def check(case):
    network, rate = Network.of(case.experiment), quantity(case.experiment["topology"]["link_rate"])
    frame = network.mtu + quantity(case.experiment["network"]["header"])
    packet, update = serialization(network.mtu + network.overhead, rate), serialization(CREDIT, rate)
    exact, shares = [], []
    for delay in (0.5, 1, 5):  # us
        one_way = int(delay * 10**6)
        for buffer in (1, 2, 3, 5, 8, 20, 40):
            run, _ = case.run({"network.credit.buffer": f"{buffer * frame} B", "topology.link_delay": f"{delay} us"})
            packets, delivered = int(run.messages["packets"][0]), int(run.messages["delivered"][0])
            start, known = [0], []  # per frame; and the time at which the sender knows that it has left the buffer
            for j in range(packets):
                if j:
                    start.append(max(start[-1] + packet, known[j - buffer] if j >= buffer else 0))
                known.append(start[-1] + packet + one_way + network.latency + update + one_way)
            exact.append((start[-1] + network.latency + 2 * (packet + one_way), delivered))
            if delay == 1:
                law = min(1, buffer * packet / (packet + update + 2 * one_way + network.latency))
                shares.append((law, (buffer + 1) / packets, packets * packet / delivered))
    case.exact_all("delivery, buffers of 1 to 40 frames, links of 0.5 to 5 us", exact)
    case.within("throughput / C, 1, 2, 3, 5, 8, 20, 40 frames; min(1, buffer / (C x round trip))", shares)
