# SPDX-License-Identifier: GPL-2.0-only
from oracles.ring import align_up, divide_up
from oracles.wire import Network, quantity, train

SOURCE = "Patarasuk, Yuan 2009"
VARIANTS = [(2, "1 GB"), (16, "48 B"), (64, "100 MB"), (256, "3 GB"), (777, "1 GB")]


def all_reduce(experiment):
    topology, network = experiment["topology"], Network.of(experiment)
    rate, delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
    chunk = align_up(divide_up(quantity(experiment["workload"]["size"]), topology["hosts"]))
    frames = network.frames(chunk)
    step = train([0] * len(frames), frames, [rate, rate], [delay + network.latency, delay])[-1]
    return 2 * (topology["hosts"] - 1) * step


def check(case):
    run, experiment = case.run()
    case.exact("ideal network: all-reduce of 1 GiB, n = 1,024", all_reduce(experiment), run.collectives["time"][0])
    pairs = []
    for hosts, size in VARIANTS:
        run, experiment = case.run({"topology.hosts": hosts, "workload.size": size})
        pairs.append((all_reduce(experiment), run.collectives["time"][0]))
    case.exact_all("ideal network: n = 2 to 777, 48 B to 3 GB", pairs)
