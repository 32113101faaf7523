# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "bandwidth of links; Wang et al. 2024"
SERVERS, GPUS, NVLINK = 8, 8, 450 * 8 * 10**9
NETWORK = {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 8, "spines": 8, "link_rate": "400 Gb/s", "link_delay": "500 ns"}
MACHINES = {
    "rail-only": {},
    "rail-optimised": {"topology": {**NETWORK, "server": {"design": "hgx_h100", "wiring": "rail", "pxn": True}}},
    "full Clos": {"topology": {**NETWORK, "server": {"design": "hgx_h100", "wiring": "packed", "pxn": False}}},
}  # fmt: skip


def check(case):
    hosts, rate = SERVERS * GPUS, 400 * 10**9
    # Dense: each GPU sends inside its server at NVLink's rate, and along its rail at the rate of its NIC.
    dense = {
        "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "hierarchical", "ranks_per_server": GPUS,
                     "size": "16 MiB"}
    }  # fmt: skip
    times = {}
    for name, machine in MACHINES.items():
        run, experiment = case.run({**machine, **dense})
        size, network = quantity(experiment["workload"]["size"]), Network.of(experiment)
        inside = network.wire(2 * size * (GPUS - 1) // GPUS)
        outside = network.wire(2 * (size // GPUS) * (SERVERS - 1) // SERVERS)
        times[name, "dense"] = run.time, serialization(inside, NVLINK) + serialization(outside, rate)
        # Mixture of experts: each GPU has tokens for experts on all others; those of other servers go through its NIC.
        run, experiment = case.run(machine)
        each = network.wire(quantity(experiment["workload"]["size"]))
        times[name, "experts"] = run.time, serialization((hosts - GPUS) * each, rate)
    for pattern, law in (("dense", "all-reduce: 2 (g-1)/g S / B inside + 2 (s-1)/s (S/g) / B of a NIC"),
                         ("experts", "all-to-all: (n - g) m / B of a NIC")):  # fmt: skip
        case.at_least(f"{law}; {', '.join(MACHINES)}", [(times[name, pattern][1], times[name, pattern][0]) for name in MACHINES])
    best = {pattern: times["full Clos", pattern][0] for pattern in ("dense", "experts")}
    relative = {key: time / best[key[1]] - 1 for key, (time, _) in times.items()}
    case.compare(
        "rail-only beside full Clos: dense, experts (all-to-all)", "0 %, +8.2 to +11.2 %",
        ", ".join(f"{100 * relative['rail-only', pattern]:+.1f} %" for pattern in best), "-",
    )
    case.compare(
        "rail-optimised beside full Clos: dense, experts", "-",
        ", ".join(f"{100 * relative['rail-optimised', pattern]:+.1f} %" for pattern in best), "-",
    )
