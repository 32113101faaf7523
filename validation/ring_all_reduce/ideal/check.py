# SPDX-License-Identifier: GPL-2.0-only
from oracles.ring import unpipelined

SOURCE = "Patarasuk, Yuan 2009"
VARIANTS = [(2, "1 GB"), (16, "48 B"), (64, "100 MB"), (256, "3 GB"), (777, "1 GB")]


def check(case):
    run, experiment = case.run()
    case.exact("ideal network: all-reduce of 1 GiB, n = 1,024", unpipelined(experiment)[1], run.collectives["time"][0])
    pairs = []
    for hosts, size in VARIANTS:
        run, experiment = case.run({"topology.hosts": hosts, "workload.size": size})
        pairs.append((unpipelined(experiment)[1], run.collectives["time"][0]))
    case.exact_all("ideal network: n = 2 to 777, 48 B to 3 GB", pairs)
