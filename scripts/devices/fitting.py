# SPDX-License-Identifier: GPL-2.0-only
"""Constants of a device's `sustained` from measured kernels: a search along one constant after another for the least
mean of |log(ours / measured)|, in which errors above 15 % count more. Held-out shapes are only tested."""

import numpy as np

from devices import experts
from devices.rates import attention_seconds, bytes_per_second, gemm_seconds, memory_seconds

MIN_FLOPS = 1e9  # of GEMMs and attention in the fit: the time of smaller kernels is their launch


class Form:
    """The model of a library: tiles of which it uses the best, or widths at which the tile that a rule selects has its own fraction of
    the peak, and a time for the rows that fill up the last tiles; parts along k; and the points over k of the overhead of a tile (none:
    one overhead for all)."""

    def __init__(self, tiles, max_splits, points=(), columns=()):
        self.tiles, self.max_splits, self.points, self.columns = tiles, max_splits, points, columns
        self.overheads = max(1, len(points))
        self.fractions = len(columns or tiles)
        self.padding = 1 if columns else 0

    def start(self, f):
        """The number of fractions."""
        return of_widths(self.columns, f) if self.columns else [f, f, 0.95 * f, 0.85 * f, 0.6 * f]

    def rates(self, fractions, padding=0):
        """`padding`: time of 128 B, ps."""
        if self.columns:
            filled = {"padding_bandwidth": f"{rounded(128 / padding)} TB/s"} if padding > 0 else {}
            return {"columns": [list(point) for point in zip(self.columns, fractions)], **filled}
        return {"tiles": [[*tile, fraction] for tile, fraction in zip(self.tiles, fractions)]}


def of_widths(columns, f):
    """Initial fractions of the peak."""
    return [f * (0.2 + 0.8 * (width - 16) / 112) for width in columns]


ANY = Form([(256, 256), (256, 128), (128, 128), (128, 64), (64, 64)], 32)
# Scaled in blocks: a tile goes along all of k, 128 at a time (deepseek-ai/DeepGEMM, commit 0b5d353d, jit_kernels/gemm.py). These tiles and
# points have the smallest error on the rows of the fit: 5.9, 5.2 and 4.4 % in the mean (H100, H200, B200). The tiles and the single overhead of
# the other precisions have 6.4, 5.9 and 6.4 %, and those with parts along k 6.9, 6.5 and 7.0 %. On Hopper TensorRT-LLM uses that library's rule
# for the tile (get_best_configs there), which explains GEMMs with one row more than a multiple of 256: another width, which is slower, fills
# the last wave. The form with the smaller error on the rows of the fit is used: 5.4 and 4.7 % on H100 and H200 with the rule; 4.4 % on the B200
# without it. Rows that fill up the last tiles take additional time: on the H200 65 rows of 128 take 442 ns for each 128 along k, 113 rows 249
# ns, 48 rows of 64 174 to 213 ns, in tiles of 32 columns with one wave. Without it, and with a fraction of the peak for GEMMs of up to 64 rows
# instead, H100 and H200 have 5.7 and 5.0 %, at the 95th percentile 21.6 and 19.5 instead of 18.7 and 16.2 %. Also tried, on the same rows: a
# separate curve for widths that do not divide 128 (objective 0.0567 and 0.0483 instead of 0.0576 and 0.0490), a factor for multicast (0.0565,
# 0.0485).
FORMS = {"fp8_block": [Form([(256, 128), (128, 128), (128, 64), (64, 64), (64, 32)], 1, (128, 512, 4096)),
                       Form([], 1, (128, 512, 4096), (16, 64, 112, 120, 128))]}  # fmt: skip
# Attention is fitted to times of serving engines, which also write keys and values into their cache.
ATTENTION_SIZES = (64, 128, 256)
# Bytes per element of the m x k factor that its quantisation moves. One scale for the tensor: it is read for the largest magnitude (2 B),
# then read (2 B) and written (1 B). A scale of fp32 for each 1 x 128: read (2 B) and written (1 B and a 128th of 4 B) at once.
QUANTISING = {"fp8": 2 + 2 + 1, "fp8_block": 2 + 1 + 4 / 128}
MEMORY_POINTS = ("16 MiB", "64 MiB", "256 MiB", "1 GiB", "4 GiB")


def rounded(value):
    """Rounded to three digits, so that the tested value is the value in the file."""
    return float(f"{value:.3g}")


def badness(ours, measured):
    error = np.abs(np.log(ours / measured))
    return float(np.mean(error + 0.6 * np.maximum(error - 0.15, 0)))


def search(start, low, high, cost, rounds=60):
    """The constants with the least cost, found by steps along single constants, which shrink where they gain
    nothing."""
    best, least = list(start), cost(start)
    steps = [0.1 * (b - a) for a, b in zip(low, high)]
    for _ in range(rounds):
        for i, step in enumerate(steps):
            for sign in (1, -1):
                trial = list(best)
                trial[i] = float(np.clip(trial[i] + sign * step, low[i], high[i]))
                found = cost(trial)
                if found < least - 1e-7:
                    best, least = trial, found
                    steps[i] *= 1.3
                    break
            else:
                steps[i] *= 0.6
    return best, least


def best_of(starts, low, high, cost):
    return min((search(start, low, high, cost) for start in starts), key=lambda found: found[1])[0]


def errors(ours, measured):
    """Mean, 95th percentile and mean with its sign of ours / measured - 1, in percent."""
    error = 100 * (ours / measured - 1)
    return {"shapes": len(error), "mean": float(np.mean(np.abs(error))),
            "p95": float(np.percentile(np.abs(error), 95)), "signed": float(np.mean(error))}  # fmt: skip


def text_of(found):
    return (f"{found['shapes']} other shapes: mean error {found['mean']:.1f} %, 95th percentile {found['p95']:.0f} %, "
            f"{found['signed']:+.1f} % with its sign")


# GEMMs ---------------------------------------------------------------------------------------------------------------


def rates_of_gemms(values, units, form):
    last = form.fractions + form.overheads
    fractions = [rounded(fraction) for fraction in values[: form.fractions]]
    overheads = [rounded(overhead) for overhead in values[form.fractions : last]]
    bandwidth, even, sharpness, slowing, split = values[last : last + 5]
    padding = values[last + 5] if form.padding else 0
    parts = {"max_splits": form.max_splits, "split_time": f"{rounded(split)} us"} if form.max_splits > 1 else {}
    return {
        "units": units, "even_share": rounded(even),
        "inner_overhead": [list(point) for point in zip(form.points, overheads)] if form.points else overheads[0], **parts,
        "bandwidth_fraction": rounded(bandwidth), "sharpness": rounded(sharpness), "slowing": rounded(slowing),
        **form.rates(fractions, padding),
    }  # fmt: skip


def fit_gemms(device, table, precision, units, launch=None):
    """Without `launch` the shortest time of the table is the launch: a kernel with nothing to do. With it the table's times
    contain a quantisation of the m x k factor; its launches and its fraction of the bandwidth are fitted, and are not part of a
    GEMM."""
    quantised = launch is not None
    table = table.where(table["precision"] == precision)
    launch = launch if quantised else rounded(float(np.min(table["seconds"])) * 1e6) * 1e-6
    table = table.where(2 * table["m"] * table["n"] * table["k"] * table["count"] >= MIN_FLOPS)
    if len(table) < 30:
        raise ValueError(f"{len(table)} GEMMs of 1 GFLOP and more in {precision}; expected at least 30")
    given, unseen = table.halves()
    results = [fit_form(device, form, precision, units, launch, quantised, given, unseen) for form in FORMS.get(precision, [ANY])]
    return min(results, key=lambda result: result.pop("badness"))


def fit_form(device, form, precision, units, launch, quantised, given, unseen):
    fractions = form.fractions
    low = [0.05] * fractions + [0] * form.overheads + [0.3, 0, 1, 0, 0] + [0] * form.padding + ([0, 0.05] if quantised else [])
    high = [1] * fractions + [2000 if form.points else 600] * form.overheads + [1, 1, 20, 0.3, 20] + [300] * form.padding + ([20, 1] if quantised else [])

    def seconds(values, of):
        rates = rates_of_gemms(values, units, form)
        time = gemm_seconds(device, rates, precision, of["m"], of["n"], of["k"], of["count"], launch)
        if quantised:
            time = time + quantising(device, rounded(values[-2]), rounded(values[-1]), QUANTISING[precision] * of["m"] * of["k"])
        return time

    starts = [[*form.start(f), *[over] * form.overheads, 0.8, even, 4, 0.05, 1, *[18] * form.padding, *([8, 0.6] if quantised else [])]
              for f, over, even in ((0.8, 100, 0.5), (0.72, 50, 0.8), (0.75, 200, 0.9))]  # fmt: skip
    values = best_of(starts, low, high, lambda v: badness(seconds(v, given), given["seconds"]))
    result = {"rates": rates_of_gemms(values, units, form), "fitted": len(given), "precision": precision,
              "launch": rounded(launch * 1e6), "unseen": errors(seconds(values, unseen), unseen["seconds"]),
              "badness": badness(seconds(values, given), given["seconds"])}  # fmt: skip
    if quantised:
        result["quantisation"] = (rounded(values[-2]), rounded(values[-1]))
    return result


def quantising(device, launches, fraction, moved):
    return launches * 1e-6 + moved / (device.bandwidth * fraction)


# Attention -----------------------------------------------------------------------------------------------------------


def cached_bytes(table):
    """Queries and results once; keys and values read, and written into the cache, in 16 bits."""
    tokens = table["batch"] * table["seq"] * table["head_dim"]
    return 2 * tokens * (2 * table["heads"] + 4 * table["kv_heads"])


def attention_of(values, units, sizes, rows):
    fractions, (launch, overhead, bandwidth, sharpness, even, alone, slowing) = values[:3], values[3:]
    return {
        "units": units, "launch": f"{rounded(launch)} us", "rows": rows,
        "peak_fraction": [[size, rounded(f)] for size, f in zip(ATTENTION_SIZES, fractions) if size in sizes],
        "key_overhead": round(overhead), "bandwidth_fraction": rounded(bandwidth), "sharpness": rounded(sharpness),
        "even_share": rounded(even), "alone": rounded(alone), "slowing": rounded(slowing),
    }  # fmt: skip


def attention_flops(table):
    return 2 * table["batch"] * table["seq"] ** 2 * table["heads"] * table["head_dim"]


def fit_attention(device, table, units):
    table = table.where(attention_flops(table) >= MIN_FLOPS)
    sizes = set(np.unique(table["head_dim"]).astype(int))
    given, unseen = table.halves()

    def seconds(values, of, rows):
        return attention_seconds(device, attention_of(values, units, sizes, rows), of["seq"], of["seq"], of["head_dim"],
                                 of["batch"] * of["heads"], cached_bytes(of))  # fmt: skip

    def cost(rows):
        return lambda values: badness(seconds(values, given, rows), given["seconds"])

    low = [0.1] * 3 + [0, 0, 0.05, 1, 0, 1, 0]
    high = [1] * 3 + [30, 2000, 1, 12, 1, 4, 0.3]
    starts = [[0.5, 0.6, 0.7, 10, over, 0.5, 1.1, even, 1.3, 0.02] for over, even in ((20, 0.5), (100, 0.1))]
    # Tiles with the queries of one warp group, or of two.
    found = {rows: best_of(starts, low, high, cost(rows)) for rows in (128, 256)}
    rows = min(found, key=lambda one: cost(one)(found[one]))
    return {"rates": attention_of(found[rows], units, sizes, rows), "fitted": len(given),
            "unseen": errors(seconds(found[rows], unseen, rows), unseen["seconds"])}  # fmt: skip


# Memory --------------------------------------------------------------------------------------------------------------


def fit_memory(device, table, launch, bandwidth=None):
    """{traffic: curve}. `bandwidth`: that of the measured device, if this is another one of the same kind: fractions
    are relative to it."""
    if bandwidth:
        device = type("Measured", (), {"bandwidth": bytes_per_second(bandwidth)})
    result = {}
    for traffic in ("elementwise", "norm", "softmax"):
        rows = table.where((table["op"] == traffic) & ((traffic == "elementwise") | (table["cols"] >= 1024)))
        if len(rows) == 0:
            continue
        given, unseen = rows.halves()

        def seconds(values, of):
            points = [[size, rounded(value)] for size, value in zip(MEMORY_POINTS, values)]
            return memory_seconds(device, points, of["bytes"], launch)

        values = best_of([[0.6] * 5], [0.15] * 5, [1] * 5, lambda v: badness(seconds(v, given), given["seconds"]))
        result[traffic] = {"curve": [[size, rounded(value)] for size, value in zip(MEMORY_POINTS, values)],
                           "fitted": len(given), "unseen": errors(seconds(values, unseen), unseen["seconds"])}  # fmt: skip
    return result


# Experts -------------------------------------------------------------------------------------------------------------

# One launch for all groups: no parts along k, tiles of all experts in waves over all units, one fraction of the peak for all tiles. The time of
# a tile to begin and end is a curve over k; one time for all k is worse on the rows of the fit: the objective is 0.134 and 0.093 instead of
# 0.133 and 0.089 (H100, B200), with a fraction of the peak of 1.
GROUPED_TILES = ((256, 128), (128, 128), (128, 64))
GROUPED_POINTS = (256, 4096)
# In fp8_block DeepGEMM's rule for the tile has a smaller objective on the rows of the fit than the best of these tiles: 0.076 and 0.079 instead of 0.085
# and 0.089 (H100, B200), or 0.116 and 0.081 with tiles of 128 x 128 alone.
GROUPED_COLUMNS = (16, 64, 112, 120, 128)
MAX_COUNTED = 0.4  # of |log(ours / measured)|: some layers take several times as long as others with more work in them


def grouped_of(values, units, precision):
    """`values`: fractions of the peak, overheads at both points, even share, fraction of the bandwidth, sharpness, and the additional times of a layer
    (2)."""
    *fractions, short, long, even, bandwidth, sharpness, _, _ = (rounded(value) for value in values)
    shape = ({"tiles": [[*tile, *fractions] for tile in GROUPED_TILES]} if precision == "bf16" else
             {"columns": [list(point) for point in zip(GROUPED_COLUMNS, fractions)], "few_rows": fractions[-1]})  # fmt: skip
    return {"units": units, "even_share": even, "inner_overhead": [list(point) for point in zip(GROUPED_POINTS, (short, long))],
            "bandwidth_fraction": bandwidth, "sharpness": sharpness, **shape}  # fmt: skip


def fit_experts(device, table, units, precision):
    """Times of the table also contain the choice of experts, copies and the activation, which are no part of a GEMM: bytes at the bandwidth
    of elementwise kernels, copies at a fraction of it, and one time for all launches of a layer. The fraction and this time are also
    fitted."""
    table = table.where(table["precision"] == precision)
    rows = experts.rows_of(table)
    chosen = np.array([experts.usable(row, MIN_FLOPS) for row in rows])
    if chosen.sum() < 30:
        raise ValueError(f"{chosen.sum()} layers of experts in {precision} of 1 GFLOP and more with whole tokens for each; expected at least 30")
    given, unseen = table.where(chosen).halves()
    elementwise = device.sustained["memory_kernels"]["elementwise"]
    kind = (precision, experts.masked(device.name))

    def known(of):
        ours = experts.rows_of(of)
        choosing = [sum(memory_seconds(device, elementwise, size, 0) for size in experts.choosing_bytes(row, *kind)) for row in ours]
        copying = [sum(memory_seconds(device, elementwise, size, 0) for size in experts.copying_bytes(row, *kind)) for row in ours]
        return np.array(choosing), np.array(copying), experts.columns_of(ours)

    def seconds(values, parts):
        choosing, copying, shapes = parts
        rates = grouped_of(values, units, precision)
        gemms = sum(gemm_seconds(device, rates, precision, *shape) for shape in shapes)
        return gemms + choosing + copying / rounded(values[-1]) + rounded(values[-2]) * 1e-6

    def cost(ours, measured):
        error = np.minimum(np.abs(np.log(ours / measured)), MAX_COUNTED)
        return float(np.mean(error + 0.6 * np.maximum(error - 0.15, 0)))

    fractions = {"bf16": lambda f: [f], "fp8_block": lambda f: [*of_widths(GROUPED_COLUMNS, f), 0.9]}[precision]
    low = [0.1] * len(fractions(1)) + [0, 0, 0, 0.3, 1, 0, 0.2]
    high = [1] * len(fractions(1)) + [3000, 3000, 1, 1, 20, 60, 1.3]
    starts = [[*fractions(f), over, 200, even, 0.9, 4, 15, 0.9] for f, over, even in ((0.8, 100, 0.5), (0.9, 400, 0.05), (0.75, 400, 0.8))]
    parts = known(given)
    values = best_of(starts, low, high, lambda v: cost(seconds(v, parts), given["seconds"]))
    return {"rates": grouped_of(values, units, precision), "fitted": len(given), "layer": (rounded(values[-2]), rounded(values[-1])),
            "unseen": errors(seconds(values, known(unseen)), unseen["seconds"])}  # fmt: skip
