# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import add_errors, add_times, larger_packets, named

SOURCE = ("crazyguitar/aws-gpu-communication-benchmark a77f70d, 4fdb5a4, AWS p5.48xlarge; aws/aws-k8s-tester pull request 585; "
          "aws-ia/terraform-aws-eks-blueprints 0426f2b")  # fmt: skip

MIB = 1 << 20
OF_A_SERVER = 8
PACKETS = 4  # times as large as in the experiment, and as few
# Bytes of all-reduces of 16 H100 on two p5.48xlarge, us, out of place (aws/aws-k8s-tester, pull request 585, comment of 2025-02-19): `ll` of
# collectives/transports/efa.yaml is calibrated on them, as NCCL's own model chooses (README.md).
SMALL = {16: 69.29, 32: 69.08, 64: 69.10, 128: 68.37}
# `turn` of collectives/transports/efa.yaml is calibrated on eks.csv up to here: trees of LL128. Until February 2025 the plugin's tuner chose on two
# servers, too (pull request 778): these, and above 30 MiB NVLink SHARP with trees. Later releases leave two servers to NCCL.
TREES_UP_TO = 16 * MIB
BY_NAME = {"workload.collective_kernel": "h100", "workload.collective_transport": "efa"}
TREES = {"workload.algorithm": "double_binary_tree", "workload.protocol": "ll128", **BY_NAME}
SWITCHES = {"workload.algorithm": "nvls_tree", **BY_NAME}
# Calls whose bytes take most of their time: collective, GPUs, and MiB. Percent.
HELD = [("all_reduce", gpus, 512) for gpus in (16, 32, 64)] + [("all_to_all", gpus, 512) for gpus in (32, 64)]
WITHIN = 15
MEAN_WITHIN = 20  # of all all-reduces


def add_comparisons(case, rows, pairs, time):
    """What is not held to a tolerance: `pairs` of (measured, ours) by collective, GPUs and MiB, `time` of the same."""
    own_model = {"workload.collective": "all_reduce", "workload.ranks": 16}
    add_times(case, f"16 H100, NCCL's own choice, calibrated on: all_reduce of {', '.join(map(str, SMALL))} B", SMALL.values(),
              [case.run(own_model | {"workload.size": f"{size} B"})[0].time / 1e6 for size in SMALL])  # fmt: skip
    with open(case.folder / "eks.csv", encoding="utf-8") as file:
        eks = {int(row["bytes"]): float(row["time_us"]) for row in csv.DictReader(line for line in file if not line.startswith("#"))}
    for what, algorithm, sizes in (("trees of LL128, calibrated on", TREES, [size for size in eks if size <= TREES_UP_TO]),
                                   ("NVLink SHARP and trees, predicted", SWITCHES, [size for size in eks if size > TREES_UP_TO])):  # fmt: skip
        changes = {"workload.collective": "all_reduce", "workload.ranks": 16, "topology.hosts_per_leaf": 2, **algorithm}
        changes |= larger_packets(case.experiment["network"], PACKETS)
        ours = [case.run(changes | {"workload.size": f"{size} B"})[0].time / 1e6 for size in sizes]
        add_times(case, f"16 H100 on EKS, {what}: all_reduce of {', '.join(map(named, sizes))}", [eks[size] for size in sizes], ours)
        add_errors(case, f"16 H100 on EKS, {what}", [(eks[size], us) for size, us in zip(sizes, ours, strict=True)])
    add_times(case, "one change, 16 H100: all_reduce of 32 MiB by NVLink SHARP and trees, as the plugin chose until February 2025",
              [round(pairs["all_reduce", 16, 32][0], 1)], [time("all_reduce", 16, 32, **SWITCHES)])  # fmt: skip
    by_model = {"topology.server.collective_tuner": "none"}
    for gpus in (16, 32, 64):
        sizes = [mib for collective, of, mib in pairs if (collective, of) == ("all_reduce", gpus)]
        add_times(case, f"one change, {gpus} H100: all_reduce of {', '.join(map(str, sizes))} MiB without the plugin's settings and tuner",
                  [round(pairs["all_reduce", gpus, mib][0], 1) for mib in sizes],
                  [time("all_reduce", gpus, mib, **by_model) for mib in sizes])  # fmt: skip
    no_kernel = {"workload.collective_kernel": "none"}
    largest = {int(row["gpus"]): 512 * MIB / float(row["algbw_GBps"]) / 1e3 for row in rows
               if (row["collective"], int(row["mib"])) == ("all_to_all", 512)}  # fmt: skip
    add_times(case, f"one change, all_to_all of 512 MiB on {', '.join(map(str, largest))} H100: thread blocks take no time",
              [round(us, 1) for us in largest.values()], [time("all_to_all", gpus, 512, **no_kernel) for gpus in largest])  # fmt: skip


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))

    def time(collective, gpus, mib, **more):
        changes = {"workload.collective": collective, "workload.ranks": gpus, "workload.size": f"{mib} MiB",
                   "topology.hosts_per_leaf": gpus // OF_A_SERVER}  # fmt: skip
        changes |= more
        return case.run(changes | larger_packets(case.experiment["network"], PACKETS))[0].time / 1e6

    pairs = {}
    for collective in ("all_to_all", "all_reduce"):
        for gpus in (16, 32, 64):
            measured = {int(row["mib"]): int(row["mib"]) * MIB / float(row["algbw_GBps"]) / 1e3 for row in rows
                        if (row["collective"], int(row["gpus"])) == (collective, gpus)}  # fmt: skip
            sizes = ", ".join(f"{mib} MiB" for mib in measured)
            ours = [time(collective, gpus, mib) for mib in measured]
            add_times(case, f"{gpus} H100: {collective} of {sizes}", [round(us, 1) for us in measured.values()], ours)
            pairs |= {(collective, gpus, mib): pair for mib, pair in zip(measured, zip(measured.values(), ours, strict=True), strict=True)}
    for collective, gpus, mib in HELD:
        measured_us, us = pairs[collective, gpus, mib]
        case.within(f"{gpus} H100: {collective} of {mib} MiB", [(measured_us, measured_us * WITHIN / 100, us)], "us", 0)
    errors = [us / measured_us - 1 for (collective, _, _), (measured_us, us) in pairs.items() if collective == "all_reduce"]
    mean = 100 * sum(map(abs, errors)) / len(errors)
    case.add(f"all_reduce: mean error of {len(errors)} times", f"at most {MEAN_WITHIN} %", f"{mean:.1f} %",
             f"{100 * sum(errors) / len(errors):+.1f} % with its sign", mean <= MEAN_WITHIN)  # fmt: skip
    if case.compares:
        add_comparisons(case, rows, pairs, time)
