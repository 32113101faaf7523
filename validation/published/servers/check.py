# SPDX-License-Identifier: GPL-2.0-only
from measured_times import larger_packets
from oracles.wire import quantity

SOURCE = "NCCL's bound: NIC rate less framing (nccl-tests, doc/PERFORMANCE.md; NVIDIA/nccl-tests issue 130)"

GPUS = 8
#           name    design      NIC         servers
FABRICS = (("A100", "dgx_a100", "200 Gb/s", (2, 4)), ("H100", "hgx_h100", "400 Gb/s", (2, 4, 16)))
# Sizes of all-reduces and all-to-alls, by servers: so large that bytes take most of the time. A ring of 128 needs the
# larger one.
SIZES = {2: (256 << 20, 256 << 20), 4: (256 << 20, 128 << 20), 16: (1 << 30, 128 << 20)}
WITHIN = 15  # percent of the bound
BALANCE = 1.02
# Two servers of H100, NCCL_ALGO=RING: bytes, us (github.com/wutz/k8s-in-action d5fce86).
MEASURED, WITHIN_OF_MEASURED = (512 << 20, 2622.9), 5  # percent


def bound(experiment, collective, servers, rate):
    """Bus bandwidth in GB/s: all NICs of a server, less framing; of an all-to-all only what leaves the server counts."""
    network = experiment["network"]
    mtu, extra = quantity(network["mtu"]), quantity(network["header"]) + quantity(network["wire_overhead"])
    nic = float(rate.split()[0]) / 8 * mtu / (mtu + extra)
    if collective == "all_reduce":
        return GPUS * nic
    return nic * (GPUS * servers - 1) / ((servers - 1) * GPUS)


def check(case):
    for name, design, rate, counts in FABRICS:
        for servers in counts:
            for collective, size in zip(("all_reduce", "all_to_all"), SIZES[servers], strict=True):
                changes = {"topology.link_rate": rate, "topology.hosts_per_leaf": servers, "topology.server.design": design,
                           "workload.collective": collective, "workload.ranks": GPUS * servers,
                           "workload.size": f"{size} B",
                           "workload.algorithm": "nccl_ring" if collective == "all_reduce" else "nccl"}  # fmt: skip
                run, experiment = case.run(changes | larger_packets(case.experiment["network"]))
                most = bound(case.experiment, collective, servers, rate)
                found = run.summary["collectives"][0]["busbw_GBps"]
                case.add(
                    f"{servers} x 8 {name}: bus bandwidth of {collective} of {size >> 20} MiB",
                    f"at most {most:.1f} GB/s, at least {100 - WITHIN} % of it",
                    f"{found:.1f} GB/s",
                    f"{100 * (found / most - 1):+.1f} %",
                    (1 - WITHIN / 100) * most <= found <= most,
                )
                links = run.links
                bytes_of_nics = links["payload_bytes"][links["link_class"].astype(str) == "nic"]
                most_to_least = bytes_of_nics.max() / max(1, bytes_of_nics.min())
                case.add(
                    f"{servers} x 8 {name}: payload of the NICs' {len(bytes_of_nics)} directions in {collective}",
                    f"most / least at most {BALANCE}",
                    f"{most_to_least:.4f}",
                    "",
                    most_to_least <= BALANCE,
                )
    size, us = MEASURED
    name, design, rate, _ = FABRICS[1]
    changes = {"topology.link_rate": rate, "topology.hosts_per_leaf": 2, "topology.server.design": design, "workload.ranks": 2 * GPUS,
               "workload.size": f"{size} B", "workload.algorithm": "nccl_ring"}  # fmt: skip
    found = case.run(changes | larger_packets(case.experiment["network"]))[0].time / 1e6
    case.within(f"2 x 8 {name}: all_reduce of {size >> 20} MiB, measured", [(us, WITHIN_OF_MEASURED / 100 * us, found)], "us")
