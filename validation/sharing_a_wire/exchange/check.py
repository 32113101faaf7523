# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "by hand, see the case"


def check(case):
    pairs = []
    for packets in (2, 3, 4, 50):
        for delay in ("7 ns", "100 ns", "334 ns"):
            size = packets * quantity(case.experiment["network"]["mtu"])
            run, experiment = case.run({"workload.size": f"{size} B", "topology.link_delay": delay})
            network, rate, d = Network.of(experiment), quantity(experiment["topology"]["link_rate"]), quantity(delay)
            s, a = serialization(network.frames(size)[0], rate), serialization(network.control, rate)
            if not a < d < s:
                raise ArithmeticError("the derivation holds for a/C < d < s/C")
            delivered = packets * s + (packets - 2) * a + d
            pairs += [(delivered, time) for time in run.messages["delivered"]]
            pairs.append((delivered + a + d, run.time))
    case.exact_all("delivery and last ACK, 2 to 50 packets each way", pairs)
