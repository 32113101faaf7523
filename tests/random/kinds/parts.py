# SPDX-License-Identifier: GPL-2.0-only
"""Random parts that workloads of several kinds have: options of collectives, devices, storage, and noise."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import names  # noqa: E402
from draw import US  # noqa: E402
from weft_testing import SOURCE  # noqa: E402

BLOCKS = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")


def ranks_of(d, hosts):
    """Mostly all of the first 16 hosts, sometimes an odd number of them."""
    most = min(hosts, 16)
    return most if d.chance(0.4) else d.between(min(2, most), most)


def collective_options(d, files, ranks, facts):
    """The keys that all collectives of a workload may have."""
    result = {}
    if d.chance(0.75):
        result["algorithm"] = d.word(names.algorithms())
    if d.chance(0.02):
        kept = sorted((SOURCE / "tests/fuzz/corpus/schedule_text").glob("*.schedule"))
        path = d.pick(kept)
        files[path.name] = path.read_text()
        result["algorithm"] = path.name
    if d.chance(0.3):
        result["channels"] = d.count(1, 4)
    if d.chance(0.3):
        result["chunk_size"] = d.size(512, 300_000)
    if d.chance(0.1):
        result["buffer_size"] = d.size(4096, 2_000_000)
    if d.chance(0.1):
        result["p2p_chunk_size"] = d.size(512, 300_000)
    if d.chance(0.2):
        result["slices_per_chunk"] = d.count(1, 4)
    if d.chance(0.2):
        result["credits"] = d.count(1, 8)
    if d.chance(0.2):
        result["protocol"] = d.word(names.words("workload.protocol"))
    divisors = [n for n in range(1, ranks + 1) if ranks % n == 0]
    if d.chance(0.25):
        result["ranks_per_server"] = d.pick(divisors) if d.chance(0.8) else d.count(1, ranks)
    if d.chance(0.1):
        result["ranks_per_leaf"] = d.pick(divisors)
    if d.chance(0.1):
        result["kernel_device"] = d.pick(names.folder_names("workloads/devices", ".yaml"))
        device(d, files, result, "kernel_device")
    if d.chance(0.1):
        result["latencies"] = d.word(names.words("workload.latencies"))
    if d.chance(0.1):
        result["collective_kernel"] = d.word([*names.folder_names("collectives/kernels", ".yaml"), "none"])
    if d.chance(0.2):
        first = d.pick(divisors)
        result["dimensions"] = [first, ranks // first]
    if d.chance(0.15):
        result["launch_latency"] = d.time(0, 5 * US)
    if d.chance(0.15):
        result["step_latency"] = d.time(0, 2 * US)
    if d.chance(0.1):
        result["reduce_rate"] = d.rate(10**10, 10**12)
    if d.chance(0.1):
        result["copy_rate"] = d.rate(10**10, 10**12)
    return result


def device(d, files, result, key):
    """The device file beside the experiment, so that it can be carried elsewhere."""
    name = result[key]
    files[f"{name}.yaml"] = (SOURCE / "workloads/devices" / f"{name}.yaml").read_text()
    result[key] = f"{name}.yaml"


def stored(d):
    """How targets store."""
    result = {}
    if d.chance(0.3):
        result["piece"] = d.size(1000, 300_000)
    if d.chance(0.3):
        result["device_rate"] = d.rate(10**9, 10**11)
    if d.chance(0.3):
        result["device_latency"] = d.time(0, 20 * US)
    return result


def noise(d, ranks):
    result = {}
    if d.chance(0.7):
        result["jitter"] = d.pick(["2 %", "0.1", "30 %"])
    if d.chance(0.4):
        result["distribution"] = d.word(names.words("workload.compute_noise.distribution"))
    if d.chance(0.4):
        result["slow_ranks"] = [{"ranks": [d.count(0, max(0, ranks - 1))], "factor": d.number(0.5, 3)}]
    if d.chance(0.4):
        result["stragglers"] = {"probability": d.number(0, 1), "factor": d.number(1, 5), "interval": d.time(US, 100 * US)}
    return result


def spread(d, result):
    """Of `compute_noise`, if there is any."""
    if "compute_noise" in result and d.chance(0.4):
        result["compute_noise"]["spread"] = d.pick(["1.5 %", "0.04", "20 %"])
