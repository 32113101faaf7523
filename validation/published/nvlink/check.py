# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import LARGE, larger_packets, named

SOURCE = "ai-dynamo/aiconfigurator 095f58a, nccl_perf (nccl-tests)"

VERSIONS = {"A100": "2.27", "H100": "2.30", "H200": "2.30", "B200": "2.27"}  # measured with 2.27.3, 2.29.2, 2.29.2, 2.27.5
SERVERS = {"A100": "dgx_a100", "H100": "hgx_h100", "H200": "hgx_h200", "B200": "hgx_b200"}
CLASSES = (("up to 128 KiB", 0, 128 << 10, 25), ("256 KiB to 16 MiB", 256 << 10, 16 << 20, 15), ("above", 16 << 20, 1 << 40, 10))


def known_by(collective, gpus, size):
    """Whether collectives/kernels/*.yaml was calibrated on a row: on 2 GPUs, and on all-reduces of 4 (LL128) and of 8
    (NVLS) where no other row shows the constant. All other rows are predicted."""
    if collective == "all_to_all":
        return "all-to-all, calibrated on" if gpus == 2 else "all-to-all, predicted"
    low_latency = gpus == 4 and 2 << 20 <= size <= 8 << 20
    switched = gpus == 8 and size >= 64 << 20
    if gpus == 2 or (collective == "all_reduce" and (low_latency or switched)):
        return "calibrated on"
    return "predicted"


def read_measured(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [(r["gpu"], r["collective"], int(r["gpus"]), int(r["bytes"]), float(r["time_us"])) for r in rows]


def check(case):
    measured = read_measured(case)
    errors = {}  # (GPU, calibrated or predicted, size class) -> signed errors in percent
    for gpu, design in SERVERS.items():
        for collective in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            for gpus in (2, 4, 8):
                row = {size: us for g, c, n, size, us in measured if (g, c, n) == (gpu, collective, gpus)}
                ours = {}
                for size in row:
                    changes = {"topology.design": design, "workload.collective": collective, "workload.ranks": gpus,
                               "workload.size": f"{size} B", "workload.nccl_version": VERSIONS[gpu]}  # fmt: skip
                    changes |= larger_packets(case.experiment["network"]) if size >= LARGE else {}
                    ours[size] = case.run(changes)[0].time / 1e6
                    error = 100 * (ours[size] / row[size] - 1)
                    for name, least, most, _ in CLASSES:
                        if least <= size <= most:
                            known = known_by(collective, gpus, size)
                            errors.setdefault((gpu, known, name), []).append(error)
                            break
                case.compare(
                    f"{gpus} {gpu}: {collective} of {', '.join(map(named, row))}",
                    ", ".join(f"{us:g}" for us in row.values()) + " us",
                    ", ".join(f"{us:.4g}" for us in ours.values()) + " us",
                    ", ".join(f"{100 * (ours[size] / row[size] - 1):+.0f}" for size in row) + " %",
                )
    for (gpu, known, name), found in errors.items():
        mean = sum(map(abs, found)) / len(found)
        limit = next(limit for other, _, _, limit in CLASSES if other == name)
        case.add(
            f"{gpu}, {name}: mean error of {len(found)} times, {known}",
            f"at most {limit} %",
            f"{mean:.1f} %, largest {max(found, key=abs):+.0f} %",
            f"{sum(found) / len(found):+.1f} % with its sign",
            mean <= limit,
        )
