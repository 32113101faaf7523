# SPDX-License-Identifier: GPL-2.0-only
"""The curves of a device: rates of GEMMs, attention and memory kernels over their size."""

import json

import numpy as np

from devices.rates import attention_seconds, gemm_seconds, memory_seconds

SIDES = 2.0 ** np.arange(8, 15)  # of square GEMMs
THIN = (64, 128, 256, 512, 1024, 4096)  # inner sides of GEMMs of 8192 x 8192
LENGTHS = 2.0 ** np.arange(9, 16)
HEADS, TOKENS = 16, 2.0**15  # of attention
SIZES = 2.0 ** np.arange(20, 34)


def precisions(device):
    return [name for name in ("bf16", "fp16", "fp8", "fp8_block") if name in device.peak]


def gemm_rates(device, precision):
    """[(m, n, k, TFLOP/s)]"""
    shapes = [(s, s, s) for s in SIDES] + [(8192.0, 8192.0, float(k)) for k in THIN]
    m, n, k = (np.array(column) for column in zip(*shapes))
    seconds = gemm_seconds(device, device.gemms(precision), precision, m, n, k)
    return [(*shape, 2 * np.prod(shape) / time * 1e-12) for shape, time in zip(shapes, seconds)]


def attention_rates(device, rates, head_size, backward):
    """[(sequence, TFLOP/s)] of causal attention of 32,768 tokens, 16 heads: FLOPs of the half that the mask keeps."""
    heads = HEADS * TOKENS / LENGTHS
    moved = 8 * TOKENS * HEADS * head_size * (2 if backward else 1)
    seconds = attention_seconds(device, rates, LENGTHS, LENGTHS, head_size, heads, moved, True, backward)
    flops = (5 if backward else 2) * LENGTHS**2 * head_size * heads
    return list(zip(LENGTHS, flops / seconds * 1e-12))


def memory_rates(device, points):
    """[(bytes, GB/s)]"""
    return list(zip(SIZES, SIZES / memory_seconds(device, points, SIZES) * 1e-9))


def curves(device):
    sustained = device.sustained
    found = {"device": device.name, "gemms": {}, "attention": {}, "memory": {}}
    for precision in precisions(device):
        found["gemms"][precision] = gemm_rates(device, precision)
    for rates in sustained.get("attention", []):
        for size, _ in rates["peak_fraction"]:
            for backward in (False, True):
                name = f"{rates['library']}, head size {size}, {'backward' if backward else 'forward'}"
                found["attention"][name] = attention_rates(device, rates, size, backward)
    for traffic, points in sustained.get("memory_kernels", {}).items():
        found["memory"][traffic] = memory_rates(device, points)
    return found


def as_json(device):
    return json.dumps(curves(device), indent=1)


def binary(size):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.4g} {unit}"
        size /= 1024
    return ""


def head(device):
    """Name, peaks and memory, and the range of validity."""
    data = device.data
    lines = [device.name, f"  peak           {', '.join(f'{rate} {name}' for name, rate in data['peak'].items())}",
             f"  memory         {data['memory']}, {data['memory_bandwidth']}"]  # fmt: skip
    for number, line in enumerate(data.get("validity", [])):
        lines.append(f"  {'' if number else 'valid for':<14} {line}")
    if "efficiency" in data and device.sustained is not None:
        lines.append(f"  without shape  {100 * data['efficiency']:.3g} % of the peak")
    return lines


def without_curves(data):
    """Rates of all kernels of a kind without a curve, which jobs with a framework also use on such a device."""
    gemms = data.get("gemms", {}).get("peak_fraction", data.get("efficiency", 1))
    memory = data.get("memory_kernels", {}).get("bandwidth_fraction", 1)
    return [f"  GEMMs          {100 * gemms:.3g} % of the peak, whatever the shape",
            f"  attention      {100 * data.get('fused_kernels', {}).get('peak_fraction', gemms):.3g} % of the peak, forward and backward",
            f"  other kernels  {100 * memory:.3g} % of the memory's bandwidth"]  # fmt: skip


def as_text(device):
    if device.sustained is None:
        return "\n".join([*head(device), *without_curves(device.data)])
    found = curves(device)
    lines = [*head(device), f"  launch         {device.sustained.get('launch', '0 s')}"]
    names = list(found["gemms"])
    lines += ["GEMMs inside a step, TFLOP/s", f"  {'m x n x k':<24}" + "".join(f"{name:>10}" for name in names)]
    for rows in zip(*found["gemms"].values()):
        lines.append(f"  {' x '.join(f'{side:.0f}' for side in rows[0][:3]):<24}"
                     + "".join(f"{row[3]:>10.1f}" for row in rows))
    if found["attention"]:
        lines += ["causal attention, 32,768 tokens, 16 heads, TFLOP/s",
                  f"  {'sequence':<36}" + "".join(f"{length:>8.0f}" for length in LENGTHS)]
        for name, rates in found["attention"].items():
            lines.append(f"  {name:<36}" + "".join(f"{rate:>8.1f}" for _, rate in rates))
    if found["memory"]:
        lines += ["memory kernels, GB/s", f"  {'bytes':<16}" + "".join(f"{name:>14}" for name in found["memory"])]
        for rows in zip(*found["memory"].values()):
            lines.append(f"  {binary(rows[0][0]):<16}" + "".join(f"{rate:>14.0f}" for _, rate in rows))
    return "\n".join(lines)


def panels_of(found):
    """(title, label of the x axis, unit, {name: [(x, y)]}, whether x are bytes) of each picture: of attention those with the head size that most
    libraries have, the largest of these, forward and backward apart; curves that are the same have one line."""
    squares = {name: [(row[0], row[3]) for row in rows[: len(SIDES)]] for name, rows in found["gemms"].items()}
    panels = [("GEMMs", "side of a square GEMM", "TFLOP/s", squares, False)]
    parts = {tuple(name.rsplit(", ", 2)): rates for name, rates in found["attention"].items()}
    if parts:
        sizes = [size for _, size, _ in parts]
        size = max(sizes, key=lambda one: (sizes.count(one), int(one.split()[-1])))
        for direction in ("forward", "backward"):
            chosen = {library: rates for (library, of, way), rates in parts.items() if (of, way) == (size, direction)}
            panels.append((f"causal attention {direction}, {size}", "sequence length", "TFLOP/s", chosen, False))
    if found["memory"]:
        panels.append(("kernels that wait for memory", "bytes", "GB/s", found["memory"], True))
    return panels


def draw(device, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = panels_of(curves(device))
    figure, axes = plt.subplots(1, len(panels), figsize=(4.8 * len(panels), 4.2), layout="constrained", squeeze=False)
    for axis, (title, x_label, unit, rates, in_bytes) in zip(axes[0], panels):
        lines = {}
        for name, points in rates.items():
            lines.setdefault(tuple(points), []).append(name)
        for points, names in lines.items():
            axis.plot(*zip(*points), marker=".", label=", ".join(names))
        axis.set(xscale="log", xlabel=x_label, ylabel=unit, ylim=(0, None), title=title)
        at = [x for x, _ in next(iter(lines))][:: 4 if in_bytes else 1]
        axis.set_xticks(at, [binary(x) if in_bytes else f"{x:,.0f}" for x in at])
        axis.set_xticks([], minor=True)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.suptitle(device.name)
    figure.savefig(path)
    plt.close(figure)
