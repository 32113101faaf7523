# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity

SOURCE = "Little 1961"


def check(case):
    products = []
    for size in ("4096 B", "1000 B"):
        for hosts in (8, 3):
            run, experiment = case.run({"workload.size": size, "topology.hosts": hosts})
            frame = Network.of(experiment).frames(quantity(size))[0]
            waits = run.messages["delivered"] - run.messages["issued"] - run.messages["ideal"]
            port = list(run.links["to_name"]).index("host0")
            # L = lambda W, with both sides times the duration T: lambda T is the number of packets.
            products.append((frame * int(waits.sum()), round(run.links["mean_queue"][port] * run.time)))
    case.exact_all("mean queue x T = arrivals x mean wait", products, "B ps")
