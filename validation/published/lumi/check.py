# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import larger_packets, named
from oracles.wire import quantity

SOURCE = "Lumi-supercomputer/lumi-reframe-tests c158fc7, 5bad545, LUMI; RCCL's rings: ROCm/rccl; four nodes: its issue 1490"

LARGEST = 512 << 20  # bytes: the rate of larger calls is the same
NICS, RATE = 4, 25  # of a node; GB/s
WITHIN = 5  # percent of the bounds
# Rings inside a node (ROCm/rccl, src/graph/rome_models.cc, rome_model_62): four of equal bytes, of which two pass links of 50
# GB/s, one in each direction; 36 of 50 GB/s are data (src/graph/topo.h, MI200_XGMI_WIDTH).
RINGS, SLOWEST = 4, 36
SIZE = 64 << 20
# On switches of 16 NICs, eight nodes are on two switches, and rings cross between them. By minimal routes one link carries all
# four NICs of a node in each direction.
ACROSS = 64


def check(case):
    network = case.experiment["network"]

    def busbw(changes):
        return case.run(changes | larger_packets(network))[0].summary["collectives"][0]["busbw_GBps"]

    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for row in rows:
        size, expected = int(row["bytes"]), float(row["busbw_GBps"])
        found = busbw({"workload.collective": row["collective"], "workload.ranks": int(row["gpus"]),
                       "workload.size": f"{min(size, LARGEST)} B"})  # fmt: skip
        case.compare(f"{row['gpus']} dies, {row['program']}: bus bandwidth of {row['collective']} of {named(size)}",
                     f"{expected:g} GB/s" + (f", -{row['below_percent']} % passes" if row["below_percent"] else ""), f"{found:.1f} GB/s",
                     f"{100 * (found / expected - 1):+.1f} %")  # fmt: skip

    def add_bound(name, most, changes):
        found = busbw({"workload.ranks": 8, "workload.size": f"{SIZE} B"} | changes)
        case.add(name, f"at most {most:.1f} GB/s, at least {100 - WITHIN} % of it", f"{found:.1f} GB/s",
                 f"{100 * (found / most - 1):+.1f} %", (1 - WITHIN / 100) * most <= found <= most)  # fmt: skip

    add_bound("8 dies of one node: four rings at the rate of the slowest link", RINGS * SLOWEST, {})
    mtu, extra = quantity(network["mtu"]), quantity(network["header"]) + quantity(network["wire_overhead"])
    nic = RATE * mtu / (mtu + extra)
    across = {"workload.ranks": ACROSS, "workload.protocol": "simple", "workload.algorithm": "ring"}
    add_bound(f"{ACROSS} dies, rings between two switches: all NICs of a node, less framing", NICS * nic, across)
    add_bound(f"{ACROSS} dies, minimal routes: the one link between two switches, less framing", nic,
              across | {"topology.server.network_routing": "dragonfly_minimal"})  # fmt: skip
