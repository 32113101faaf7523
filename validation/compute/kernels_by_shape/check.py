# SPDX-License-Identifier: GPL-2.0-only
import csv
import json

import numpy as np
import yaml

from devices import experts

SOURCE = "ai-dynamo/aiconfigurator 095f58a; sitar-lab/NeuSight 6945927; Azure/AI-benchmarking-guide 8fd0c6e"
GPUS = ("A100", "H100", "H200", "B200")
# Additional time in the tables of fp8, fitted together with the GEMM (workloads/devices): us, and the fraction of the bandwidth at which each
# element of the m x k factor is read and written. Bytes per element: 2 for the largest magnitude, 2 and 1 for the cast; scaled in blocks, 2
# and 1, and for each 128 elements a scale of 4.
QUANTISATION = {
    "fp8": {"H100": (9.27, 0.608), "H200": (9.32, 0.488), "B200": (12.9, 0.546)},
    "fp8_block": {"H100": (1.52, 0.553), "H200": (1.38, 0.382), "B200": (4.64, 0.758)},
}
QUANTISING = {"fp8": 5, "fp8_block": 3 + 4 / 128}
BANDWIDTH = {"H100": 3.35e12, "H200": 4.8e12, "B200": 8e12}
# BabelStream's copy, GB/s read and written (Azure/AI-benchmarking-guide, commit 8fd0c6e1, MIT, Azure_Results). The size of its arrays is not
# given; its default is 256 MiB.
COPIES = {"A100": 1610, "H100": 2900, "H200": 4010}
# Additional time of layers of experts, fitted together with their grouped GEMMs: us, and the fraction of the bandwidth of elementwise kernels.
# The A100 has no layer with even routing to fit to: the H100's values are assumed.
LAYERS = {("H100", "bf16"): (15.2, 0.905), ("B200", "bf16"): (23.6, 0.547), ("H100", "fp8_block"): (13.5, 0.65),
          ("B200", "fp8_block"): (26.5, 0.959), ("A100", "bf16"): (15.2, 0.905)}  # fmt: skip
DRAWS = 5  # of loads of a layer with uneven routing, as in the measurement
GEMMS, ATTENTION, MEMORY, EXPERTS = (8, 20), 10, 12, 10  # percent: mean and 95th percentile; mean; mean; mean
FAR = 40  # percent: nearly all such layers take several times as long as similar ones


def rows_of(case, name):
    with open(case.folder / name, encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def seconds(case, device, kernels):
    """Times in weft inside a long step."""
    run, _ = case.run({"workload.device": device, "workload.operations": [{"rank": 0, "compute": one} for one in kernels]})
    return (run.operations["end"] - run.operations["start"]) * 1e-12


def errors(ours, rows):
    return 100 * (ours / (np.array([float(row["time_us"]) for row in rows]) * 1e-6) - 1)


def ready_made(case, gpu):
    return str(case.root / f"workloads/devices/{gpu.lower()}-sxm.yaml")


def check(case):
    gemms, attention = rows_of(case, "gemms.csv"), rows_of(case, "attention.csv")
    for gpu in GPUS:
        for precision in ("bf16", "fp8", "fp8_block"):
            rows = [row for row in gemms if (row["gpu"], row["precision"]) == (gpu, precision)]
            if rows:
                check_gemms(case, gpu, precision, rows)
    for gpu in GPUS:
        check_attention(case, gpu, [row for row in attention if row["gpu"] == gpu])
    layers = rows_of(case, "experts.csv")
    for gpu, precision in LAYERS:
        rows = [row for row in layers if (row["gpu"], row["precision"]) == (gpu, precision)]
        if rows:
            check_experts(case, gpu, precision, rows)
    uneven = rows_of(case, "experts_uneven.csv")
    for gpu, precision in LAYERS:
        check_uneven(case, gpu, precision, [row for row in uneven if (row["gpu"], row["precision"]) == (gpu, precision)])
    check_memory(case)
    check_copies(case)


def check_gemms(case, gpu, precision, rows):
    shapes = [{key: int(row[key]) for key in "mnk"} for row in rows]
    ours = seconds(case, ready_made(case, gpu), [
        {**shape, "precision": precision, "bytes": bytes_of(shape, precision)} for shape in shapes])  # fmt: skip
    if precision in QUANTISATION:
        time, fraction = QUANTISATION[precision][gpu]
        moved = QUANTISING[precision] * np.array([shape["m"] * shape["k"] for shape in shapes])
        ours = ours + time * 1e-6 + moved / (BANDWIDTH[gpu] * fraction)
    found = errors(ours, rows)
    mean, high = np.mean(np.abs(found)), np.percentile(np.abs(found), 95)
    case.add(f"{gpu}, {precision}: {len(rows)} GEMMs not fitted to, from 1 GFLOP up: mean error, 95th percentile",
             f"at most {GEMMS[0]} %, {GEMMS[1]} %", f"{mean:.1f} %, {high:.1f} %",
             f"{np.mean(found):+.1f} % with its sign", mean <= GEMMS[0] and high <= GEMMS[1])  # fmt: skip
    if precision == "fp8_block":
        odd = np.array([shape["m"] % 2 == 1 for shape in shapes])
        parts = [np.percentile(np.abs(found[chosen]), 95) for chosen in (odd, ~odd)]
        case.compare(f"{gpu}, {precision}: {odd.sum()} of these GEMMs with odd m: 95th percentile", "no limit", f"{parts[0]:.1f} %",
                     f"{parts[1]:.1f} % of the others")  # fmt: skip


def bytes_of(shape, precision):
    """Bytes of a GEMM whose results have 16 bits."""
    m, n, k = shape["m"], shape["n"], shape["k"]
    return f"{(1 if precision in QUANTISATION else 2) * (m * k + k * n) + 2 * m * n} B"


def check_attention(case, gpu, rows):
    kernels = []
    for row in rows:
        batch, seq, heads, kv_heads, size = (int(row[key]) for key in ("batch", "seq", "heads", "kv_heads", "head_dim"))
        # Queries, results, keys and values; keys and values are also written into the cache.
        moved = 2 * batch * seq * size * (2 * heads + 4 * kv_heads)
        kernels.append({"bytes": f"{moved} B", "precision": "bf16", "attention": {
            "queries": seq, "keys": seq, "head_size": size, "heads": batch * heads, "causal": True}})  # fmt: skip
    found = errors(seconds(case, ready_made(case, gpu), kernels), rows)
    mean = np.mean(np.abs(found))
    case.add(f"{gpu}: {len(rows)} times of causal attention not fitted to: mean error",
             f"at most {ATTENTION} %", f"{mean:.1f} %", f"{np.mean(found):+.1f} % with its sign",
             mean <= ATTENTION)  # fmt: skip


def kernels_of_experts(row, precision, loads=None):
    """Both grouped GEMMs of one GPU, with equal tokens for all experts or with `loads`; copies, casts and the activation; and the kernels of
    TensorRT-LLM that choose experts, in 16 bits."""
    kind = (precision, experts.masked(row["gpu"]))
    gemms = []
    for m, n, k, count in experts.gemms(row):
        rows = {"m": m, "count": count} if loads is None else {"m": loads}
        moved = {"bytes": f"{m * count * (k + 2 * n) + count * k * n} B"} if loads is None and precision == "fp8_block" else {}
        if loads is not None and precision == "fp8_block":
            moved = {"bytes": f"{sum(loads) * (k + 2 * n) + sum(one > 0 for one in loads) * k * n} B"}
        gemms.append({**rows, "n": n, "k": k, "grouped": True, "precision": precision, **moved})
    others = [*experts.copying_bytes(row, *kind), *experts.choosing_bytes(row, *kind)]
    return gemms, [{"bytes": f"{size:.0f} B", "traffic": "elementwise", "precision": "bf16"} for size in others]


def seconds_of_layers(case, gpu, precision, layers):
    """Grouped GEMMs with the other measured kernels: one time per layer for all launches, and a fraction of the bandwidth of other kernels
    for those that read or write all copies (LAYERS)."""
    time, fraction = LAYERS[gpu, precision]
    ours = seconds(case, ready_made(case, gpu), [kernel for gemms, others in layers for kernel in (*gemms, *others)])
    device = yaml.safe_load((case.root / f"workloads/devices/{gpu.lower()}-sxm.yaml").read_text())
    launch = float(device["sustained"]["launch"].split()[0]) * 1e-6
    copies = experts.COPIES[precision]
    sums, first = [], 0
    for gemms, others in layers:
        end = first + len(gemms) + len(others)
        memory = ours[first + len(gemms) : end] - launch
        sums.append(sum(ours[first : first + len(gemms)]) + sum(memory[:copies]) / fraction + sum(memory[copies:]) + time * 1e-6)
        first = end
    return np.array(sums)


def shapes_of(rows):
    return [{"gpu": row["gpu"], **{name: int(row[name]) for name in experts.COLUMNS}} for row in rows]


def check_experts(case, gpu, precision, rows):
    shapes = shapes_of(rows)
    found = errors(seconds_of_layers(case, gpu, precision, [kernels_of_experts(shape, precision) for shape in shapes]), rows)
    name = f"{gpu}, {precision}: {len(rows)} layers of experts with grouped GEMMs not fitted to"
    mean = np.mean(np.abs(found))
    case.add(f"{name}: mean error", f"at most {EXPERTS} %", f"{mean:.1f} %", spread_of(found), mean <= EXPERTS)
    arithmetic = np.array([experts.flops(shape) for shape in shapes])
    classes = [arithmetic < 1e10, (arithmetic >= 1e10) & (arithmetic < 1e11), arithmetic >= 1e11]
    near = np.abs(found) < FAR
    case.compare(f"{name}: below 10 GFLOP, to 100, above: mean error", "no limit",
                 f"{', '.join(f'{np.mean(np.abs(found[one])):.1f}' for one in classes)} %",
                 f"{', '.join(f'{np.mean(found[one]):+.1f}' for one in classes)} % with its sign")  # fmt: skip
    case.compare(f"{name}: those that are less than {FAR} % off: mean error", "no limit", f"{np.mean(np.abs(found[near])):.1f} %",
                 f"{np.mean(found[near]):+.1f} % with its sign; {(~near).sum()} others")  # fmt: skip


def spread_of(found):
    return (f"{np.mean(found):+.1f} % with its sign; median {np.median(np.abs(found)):.1f} %, 95th percentile "
            f"{np.percentile(np.abs(found), 95):.1f} %")  # fmt: skip


def power_law(tokens, chosen, count, exponent, generator):
    """Tokens of each of `count` experts as the source draws them (collector/helper.py, power_law_logits_v3): shares of a power law clipped to 1 to
    0.8 of the tokens (0.01 to 2 if there are no more copies than experts), rounded to whole tokens. An expert has each token at most once. Missing
    and surplus tokens are added to the experts with the fewest, or taken from those with the most."""
    least, most = (1, 0.8 * tokens) if tokens * chosen > count else (0.01, 2)
    power = 1 - exponent
    drawn = (least**power + (most**power - least**power) * generator.random(count)) ** (1 / power)
    loads = np.minimum(np.rint(drawn / drawn.sum() * tokens * chosen), tokens).astype(int)
    while loads.sum() < tokens * chosen:
        loads[np.argmin(loads)] += 1
    while loads.sum() > tokens * chosen:
        loads[np.argmax(loads)] -= 1
    return loads.tolist()


def check_uneven(case, gpu, precision, rows):
    """Rates are those of layers with even routing: only the tokens per expert differ."""
    generator = np.random.default_rng(1)
    layers, mean_layers = [], []
    for row, shape in zip(rows, shapes_of(rows)):
        for _ in range(DRAWS):
            loads = power_law(shape["tokens"], shape["topk"], shape["experts"], float(row["exponent"]), generator)
            layers.append(kernels_of_experts(shape, precision, loads))
        each, more = divmod(experts.copies_of(shape), shape["experts"])
        mean_layers.append(kernels_of_experts(shape, precision, [each + 1] * more + [each] * (shape["experts"] - more)))
    found = errors(seconds_of_layers(case, gpu, precision, layers).reshape(-1, DRAWS).mean(axis=1), rows)
    even = errors(seconds_of_layers(case, gpu, precision, mean_layers), rows)
    name = f"{gpu}, {precision}: {len(rows)} layers of experts with uneven routing"
    case.compare(f"{name}: mean error", "no limit", f"{np.mean(np.abs(found)):.1f} %", spread_of(found))
    case.compare(f"{name}: the same as if routing were even", "no limit", f"{np.mean(np.abs(even)):.1f} %", spread_of(even))


def check_memory(case):
    """Curves are fractions of a peak, here the peak of the measured card."""
    device = yaml.safe_load((case.root / "workloads/devices/a100-sxm.yaml").read_text())
    device["memory_bandwidth"] = "1555 GB/s"
    path = case.scratch / "a100-40gb.yaml"
    path.write_text(json.dumps(device))  # JSON is YAML
    kinds = {"softmax": "softmax", "ln": "norm"}
    rows = rows_of(case, "memory.csv")
    for traffic in ("elementwise", "norm", "softmax"):
        chosen = [row for row in rows if kinds.get(row["op"], "elementwise") == traffic]
        found = errors(seconds(case, str(path), [
            {"bytes": f"{row['bytes']} B", "traffic": traffic, "precision": "fp32"} for row in chosen]), chosen)  # fmt: skip
        mean = np.mean(np.abs(found))
        case.add(f"A100: {len(chosen)} memory kernels not fitted to, {traffic}: mean error", f"at most {MEMORY} %",
                 f"{mean:.1f} %", f"{np.mean(found):+.1f} % with its sign", mean <= MEMORY)  # fmt: skip


def check_copies(case):
    """The curves of the H100 and the H200 are those of an A100: rates of copies show how well they apply."""
    found = {}
    for size in (512, 4096):
        kernel = {"bytes": f"{size} MiB", "traffic": "elementwise", "precision": "bf16"}
        found[size] = [size * 2**20 / seconds(case, ready_made(case, gpu), [kernel])[0] * 1e-9 for gpu in COPIES]
    for size, rates in found.items():
        case.compare(f"{', '.join(COPIES)}: copies, of {size} MiB here", f"{', '.join(map(str, COPIES.values()))} GB/s",
                     f"{', '.join(f'{rate:.0f}' for rate in rates)} GB/s",
                     f"{', '.join(f'{100 * (rate / known - 1):+.0f}' for rate, known in zip(rates, COPIES.values()))} %")  # fmt: skip
