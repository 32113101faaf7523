# SPDX-License-Identifier: GPL-2.0-only
from oracles.steady import Steady, fairness
from oracles.wire import quantity, serialization

SOURCE = "Li et al. 2019"
SINCE = 10 * 10**9  # ps
TARGET = 0.95


def check(case):
    predicted, inflight, fair, queues = [], [], [], []
    for increase in (5, 25, 150, 300):
        run, experiment = case.run({"network.hpcc.additive_increase": f"{increase} B"})
        topology, network = experiment["topology"], experiment["network"]
        rate, flows = quantity(topology["link_rate"]), topology["hosts"] - 1
        packet = quantity(network["mtu"]) + quantity(network["header"])
        frames = packet, quantity(network["ack"])
        round_trip = 2 * sum(serialization(frame, rate) for frame in frames) + 4 * quantity(topology["link_delay"])
        product = rate * round_trip / 8e12
        steady = Steady(run, experiment, SINCE)
        load = steady.load("switch0", "host0")
        waiting = steady.queue("switch0", "host0").sum() / steady.samples - load * packet
        predicted.append(TARGET + flows * increase / product)
        inflight.append(load + waiting / product)
        fair.append(fairness([steady.load(f"host{host}", "switch0") for host in range(1, flows + 1)]))
        queues.append(waiting)
    case.within(
        "bytes in flight / (C T), W_AI 150 and 300 B",
        [(law, 0.01, measured) for law, measured in zip(predicted[2:], inflight[2:], strict=True)],
    )
    bounds = [(round(measured, 3), round(law, 3)) for law, measured in zip(predicted[:2], inflight[:2], strict=True)]
    case.at_least("the law of the same against bytes in flight, 5 and 25 B", bounds, "")
    case.at_least("fairness (Jain) with 150 and 300 B", [(0.999, round(value, 5)) for value in fair[2:]], "")
    case.at_least("unfairness with 5 B, times that with 150 B", [(100, round((1 - fair[0]) / (1 - fair[2])))], "")
    case.at_least("queue with 300 B, times that with 150 B", [(2, round(queues[3] / queues[2], 2))], "")
