# SPDX-License-Identifier: GPL-2.0-only
import csv

from measured_times import add_errors, larger_packets

SOURCE = "deepseek-ai/DeepEP dd758ca, uccl-project/uccl da914a2"

GPUS = 8  # of a server
TOKEN = {"dispatch": 7168 + 7168 // 128 * 4, "combine": 7168 * 2}  # B: fp8 with a scale for each 128, bf16
TOP = 8  # experts per token
# Time of a kernel in addition to that of its bytes: only from the dispatch of 128 tokens over 8 GPUs of one server.
LAUNCH_US = {"H800": 36, "MI300X": 44, "H200": 36}
SERVERS = {
    "H800": {"design": "hgx_h100", "nvlink_rate": "200 GB/s"},
    "H200": {"design": "hgx_h200"},
    "MI300X": {"design": "mi300x"},
}


def hit(parts):
    """The mean number of parts that a token's experts are in, drawn at random, if all experts are in `parts` equal
    parts."""
    return parts * (1 - (1 - 1 / parts) ** TOP)


def measured_us(row):
    """The measured time in us. If the source gives only bytes over time, it follows from the bytes of a token for each
    server (in one server: GPU) that gets it."""
    if row["time_us"]:
        return float(row["time_us"])
    ep = int(row["ep"])
    copies = hit(ep // GPUS) if ep > GPUS else hit(GPUS)
    return int(row["tokens"]) * copies * TOKEN[row["operation"]] / float(row["gbps"]) / 1e3


def low_latency(row):
    """Each token is sent separately to the GPU of each of its experts."""
    size = int(row["tokens"]) * TOP * TOKEN[row["operation"]]
    return {"kind": "collective", "collective": "all_to_all", "algorithm": "linear", "ranks": int(row["ep"]),
            "size": f"{size} B", "launch_latency": f"{LAUNCH_US[row['gpu']]} us"}  # fmt: skip


def normal(row, own=1.0):
    """Each token goes once to each server, over the NIC, and from there to its experts' GPUs, over NVLink, in small parts,
    so that both run at the same time. `own`: the factor by which the bytes inside a server are larger with the GPU's own
    tokens."""
    ep = int(row["ep"])
    servers = ep // GPUS
    tokens = int(row["tokens"]) * TOKEN[row["operation"]]
    inside = int(own * tokens * hit(ep)) // GPUS * GPUS  # a GPU's part of the bytes of all GPUs for those of a server
    operations = [{"collective": "all_to_all", "size": f"{inside} B", "communicator": f"server{s}", "stream": "tensor"}
                  for s in range(servers)]  # fmt: skip
    communicators = {f"server{s}": list(range(GPUS * s, GPUS * (s + 1))) for s in range(servers)}
    if servers > 1:
        between = int(tokens * hit(servers))
        for gpu in range(GPUS):
            communicators[f"rail{gpu}"] = list(range(gpu, ep, GPUS))
            operations.append({"collective": "all_to_all", "size": f"{between} B", "communicator": f"rail{gpu}",
                               "stream": "expert"})  # fmt: skip
    return {"kind": "program", "ranks": ep, "communicators": communicators, "operations": operations, "algorithm": "linear"}


def time_of(case, row, workload):
    changes = {"workload": workload, "topology.server": {"wiring": "rail", **SERVERS[row["gpu"]]}}
    changes |= larger_packets(case.experiment["network"]) if row["kernel"] == "normal" else {}
    return case.run(changes)[0].time / 1e6


def add_own_tokens(case, row, measured):
    """One change, where the links inside the server matter: a GPU's own tokens take as long as those of another GPU."""
    ours = time_of(case, row, normal(row, GPUS / (GPUS - 1)))
    case.compare(
        f"one change, {row['library']} on {row['gpu']}: {row['operation']} over {row['ep']} GPUs, "
        "own tokens over the links, too",
        f"{measured:.4g} us", f"{ours:.4g} us", f"{100 * (ours / measured - 1):+.0f} %",
    )  # fmt: skip


def add_left_of_a_message(case, row, measured, ours):
    """The remaining difference of a time, for each message of a GPU to another server."""
    servers = int(row["ep"]) // GPUS
    messages = int(row["tokens"]) * TOP * (servers - 1) // servers
    case.compare(
        f"what is left of {row['library']} on {row['gpu']}, low_latency: {row['operation']} over {row['ep']} GPUs",
        "0 us for each message", f"{(measured - ours) / messages:.3f} us", f"of {messages} messages to other servers",
    )  # fmt: skip


def check(case):
    pairs = {}
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for row in rows:
        if int(row["ep"]) == 24:
            continue  # three servers, between two and four
        workload = low_latency(row) if row["kernel"] == "low_latency" else normal(row)
        measured, ours = measured_us(row), time_of(case, row, workload)
        calibrated = row["kernel"] == "low_latency" and row["ep"] == "8" and row["operation"] == "dispatch"
        case.compare(
            f"{row['library']} on {row['gpu']}, {row['kernel']}: {row['operation']} of {row['tokens']} tokens over "
            f"{row['ep']} GPUs{', calibrated on' if calibrated else ''}",
            f"{measured:.4g} us", f"{ours:.4g} us", f"{100 * (ours / measured - 1):+.0f} %",
        )  # fmt: skip
        if row["kernel"] == "normal" and int(row["ep"]) <= 16:
            add_own_tokens(case, row, measured)
        if row["kernel"] == "low_latency" and row["library"] == "UCCL-EP" and int(row["ep"]) > GPUS:
            add_left_of_a_message(case, row, measured, ours)
        if not calibrated:
            pairs.setdefault((row["library"], row["gpu"], row["kernel"]), []).append((measured, ours))
    for (library, gpu, kernel), found in pairs.items():
        add_errors(case, f"{library} on {gpu}, {kernel}, predicted", found)
