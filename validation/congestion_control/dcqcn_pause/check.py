# SPDX-License-Identifier: GPL-2.0-only
from oracles.steady import Steady

SOURCE = "Zhu et al. 2015"
BEFORE, PAUSE = 400 * 10**6, 100 * 10**9  # ps


def check(case):
    run, experiment = case.run()
    first = (run.links_series["time"] > BEFORE) & (run.links_series["time"] <= BEFORE + 10**7)
    hosts = [list(run.links["from_name"]).index(f"host{host}") for host in (1, 2)]
    series, ids = run.links_series, run.links["id"]
    before = [series["utilization"][first & (series["link"] == ids[host])].sum() for host in hosts]
    case.at_least("1 - load of each sender before the pause", [(0.3, round(1 - float(load), 3)) for load in before], "")
    steady = Steady(run, experiment, PAUSE)
    case.within("load of each sender after it", [(1, 0.01, steady.load(f"host{host}", "switch0")) for host in (1, 2)])
