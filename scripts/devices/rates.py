# SPDX-License-Identifier: GPL-2.0-only
"""Times of kernels in a long step by a device file's `sustained`, for many shapes at once;
workloads/compute/kernel_time.cpp computes one. The formulas are in docs/reference/compute_times.md."""

import re

import numpy as np

MIN_INNER = 64  # the shortest part along k
KEY_BLOCK = 64
BINARY = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
SECONDS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
FLOPS = {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}
ELEMENT = {"bf16": 2, "fp16": 2, "fp8": 1, "fp8_block": 1, "fp32": 4, "tf32": 4}
GEMMS = {"fp8": "fp8_gemms", "fp8_block": "fp8_block_gemms"}  # keys of `sustained`; all others have `gemms`
GROUPED = {"bf16": "grouped_gemms", "fp8_block": "grouped_fp8_block_gemms"}  # of experts
OLDER = {"products": "gemms", "fp8_products": "fp8_gemms", "fp8_block_products": "fp8_block_gemms", "grouped_products": "grouped_gemms"}


def quantity(text, units):
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(\S+)\s*", str(text))
    if not match or match[2] not in units:
        raise ValueError(f"found '{text}'; expected a number with one of {', '.join(units)}")
    return float(match[1]) * units[match[2]]


def bytes_per_second(text):
    """"2039 GB/s" or "400 Gb/s"."""
    units = {f"{name}/s": factor for name, factor in BINARY.items()}
    units |= {f"{prefix}b/s": factor / 8 for prefix, factor in (("G", 1e9), ("T", 1e12), ("M", 1e6))}
    return quantity(text, units)


class Device:
    """A device file as read by PyYAML."""

    def __init__(self, data):
        self.data = data
        if "matmul" in data:
            raise ValueError("unknown key 'matmul' (did you mean 'gemms'?)")
        self.name = data["name"]
        self.peak = {name: quantity(text, FLOPS) for name, text in data["peak"].items()}
        self.bandwidth = bytes_per_second(data["memory_bandwidth"])
        self.sustained = data.get("sustained")
        for key in self.sustained or ():
            if key in OLDER:
                raise ValueError(f"unknown key '{key}' in 'sustained' (did you mean '{OLDER[key]}'?)")
            if key.endswith("gemms") and "most_splits" in self.sustained[key]:
                raise ValueError(f"unknown key 'most_splits' in 'sustained.{key}' (did you mean 'max_splits'?)")
        self.single = False  # True: the device is idle before each kernel, as in benchmarks

    def gemms(self, precision):
        return self.sustained.get(GEMMS.get(precision, "gemms"), self.sustained["gemms"])

    @property
    def clock(self):
        return 1 if self.single else (self.sustained or {}).get("clock", 1)

    @property
    def launch(self):
        return quantity(self.sustained.get("launch", "0 s"), SECONDS)


def curve(points, size):
    """Linear interpolation over the logarithm of the size; the outermost values beyond the points."""
    sizes = np.log([quantity(x, BINARY) if isinstance(x, str) else x for x, _ in points])
    return np.interp(np.log(size), sizes, [y for _, y in points])


def full_tiles(work, tiles):
    waves = tiles / work["units"]
    even = work.get("even_share", 0)
    return ((1 - even) * np.ceil(waves) + even * np.maximum(waves, 1)) * work["units"]


def together(work, arithmetic, traffic):
    sharpness = work.get("sharpness", 0)
    most = np.maximum(arithmetic, traffic)
    if not sharpness:
        return most
    return most * (1 + (np.minimum(arithmetic, traffic) / most) ** sharpness) ** (1 / sharpness)


def slowed(device, work, seconds):
    if device.clock < 1:  # the clock is already lower
        return seconds
    return seconds * (1 + seconds / 10e-3) ** work.get("slowing", 0)


def chosen_tiles(rates, m, n, count):
    """(rows, columns, fraction of the peak) of the tile that a library selects by a rule: 64 rows if the GEMM has no more, otherwise 128.
    Widths are 16 to 128 in steps of 8; the rule selects the fewest waves, then the fullest last wave, then the narrowest tile."""
    units = rates["units"]
    rows = np.where(m <= 64, 64, 128)
    best = None
    for width in range(16, 129, 8):
        tiles = np.ceil(m / rows) * np.ceil(n / width) * count
        waves = np.ceil(tiles / units)
        key = (waves, waves * units - tiles)  # units that are idle in the last wave
        if best is None:
            best, columns = key, np.full(np.shape(tiles), width)
            continue
        better = (key[0] < best[0]) | ((key[0] == best[0]) & (key[1] < best[1]))
        best = tuple(np.where(better, new, old) for new, old in zip(key, best))
        columns = np.where(better, width, columns)
    return rows, columns, curve(rates["columns"], columns) * np.where(m <= 64, rates.get("few_rows", 1), 1)


def padding_seconds(rates, size, m, n, k, count, tile_m, tile_n):
    """Loads of the rows that fill up the last tiles; two neighbours along n share them by multicast."""
    if "padding_bandwidth" not in rates:
        return 0
    loads = (np.ceil(m / tile_m) * tile_m - m) * np.ceil(n / tile_n) * count
    shared = (m >= 1024) & (count == 1) & (n % (2 * tile_n) == 0)
    return size * k * loads / np.where(shared, 2, 1) / bytes_per_second(rates["padding_bandwidth"])


def speed_of_rows(rates, size, n, k):
    """Rates of the loop along k of GEMMs whose rows of k and n elements of 16 bits are aligned to few bytes."""
    lengths = np.gcd(np.asarray(n, np.int64), np.asarray(k, np.int64))
    aligned = (lengths & -lengths) * size
    speed = np.ones(np.shape(aligned))
    for most, rate in reversed(rates.get("alignment", []) if size == 2 else []):
        speed = np.where(aligned <= quantity(most, BINARY), rate, speed)
    return speed


def gemm_seconds(device, rates, precision, m, n, k, count=1, launch=None):
    """Times of `count` GEMMs of m x k by k x n; results have at least 16 bits."""
    peak = device.peak[precision]
    size = ELEMENT[precision]
    traffic = (size * (m * k + k * n) + max(size, 2) * m * n) * count
    best = np.full(np.shape(m), np.inf)
    if "columns" in rates:
        shapes = [chosen_tiles(rates, m, n, count)]
    else:
        shapes = [shape for a, b, f in rates["tiles"] for shape in {(a, b, f), (b, a, f)}]
    overhead = rates.get("inner_overhead", 0)
    speed = speed_of_rows(rates, size, n, k)
    for tile_m, tile_n, fraction in shapes:
        tiles = np.ceil(m / tile_m) * np.ceil(n / tile_n) * count
        splits = 1
        while splits <= rates.get("max_splits", 1):
            inner = k / splits
            inner = inner / speed + (overhead if np.isscalar(overhead) else curve(overhead, inner))
            arithmetic = 2 * full_tiles(rates, tiles * splits) * tile_m * tile_n * inner / (peak * device.clock * fraction)
            arithmetic = arithmetic + padding_seconds(rates, size, m, n, k, count, tile_m, tile_n)
            moved = traffic + (8 * splits * m * n * count if splits > 1 else 0)
            seconds = together(rates, arithmetic, moved / (device.bandwidth * rates.get("bandwidth_fraction", 1)))
            if splits > 1:
                seconds = seconds + quantity(rates.get("split_time", "0 s"), SECONDS)
                seconds = np.where(k // splits >= MIN_INNER, seconds, np.inf)
            best = np.minimum(best, seconds)
            splits *= 2
    return slowed(device, rates, best) + (device.launch if launch is None else launch)


def attention_seconds(device, rates, queries, keys, head_size, heads, moved, causal=True, backward=False):
    """Times of fused attention with `heads` heads of all sequences together, which reads and writes `moved` bytes."""
    rows = rates.get("rows", 128)
    whole = np.ceil(keys / KEY_BLOCK) * KEY_BLOCK
    seen = np.minimum(whole, (keys + rows + KEY_BLOCK) / 2) if causal else whole
    tiles = np.ceil(queries / rows) * heads
    rate = device.peak["bf16"] * device.clock * curve(rates["peak_fraction"], head_size)
    if backward:
        relative = rates.get("backward", 1)
        rate = rate * (relative if np.isscalar(relative) else curve(relative, keys * (0.5 if causal else 1)))
    score = (10 if backward else 4) * head_size / rate
    overhead = rates.get("key_overhead", 0)
    busy = np.where(tiles > rates["units"], full_tiles(rates, tiles), tiles)
    shared = busy * rows * (seen + overhead) * score
    longest = rows * (whole + overhead) * score * rates["units"] / rates.get("alone", 1)
    traffic = moved / (device.bandwidth * rates.get("bandwidth_fraction", 1))
    return slowed(device, rates, together(rates, np.maximum(shared, longest), traffic)) + quantity(
        rates.get("launch", "0 s"), SECONDS)


def memory_seconds(device, points, moved, launch=None):
    return moved / (device.bandwidth * curve(points, moved)) + (device.launch if launch is None else launch)
