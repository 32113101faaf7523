# SPDX-License-Identifier: GPL-2.0-only
from oracles.ring import unpipelined

SOURCE = "Patarasuk, Yuan 2009"
SIZES = ("4096000 B", "48 B", "768 kB")
VARIANTS = [(n, size, rate) for n in (2, 3, 8, 16) for size in SIZES for rate in ("100 Gb/s", "400 Gb/s")]


def check(case):
    run, experiment = case.run()
    step, total = unpipelined(experiment)
    case.exact("all-reduce, n = 4, 4,096,000 B, 100 Gb/s", total, run.collectives["time"][0])
    pairs = [(step, run.messages["delivered"][0])]
    for hosts, size, rate in VARIANTS:
        run, experiment = case.run({"topology.hosts": hosts, "workload.size": size, "topology.link_rate": rate})
        pairs.append((unpipelined(experiment)[1], run.collectives["time"][0]))
    case.exact_all("its first step; n = 2 to 16, 48 B to 4 MB, 100 and 400 Gb/s", pairs)
