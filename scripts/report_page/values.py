# SPDX-License-Identifier: GPL-2.0-only
"""Readable numbers, arrays for the page, and sums over bins."""

import base64

import numpy as np

SPACE = "\N{NO-BREAK SPACE}"  # a number and its unit stay on one line
TIMES = ((10**12, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns"), (1, "ps"))
SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
CODES = {"float64": "f8", "float32": "f4", "uint32": "u4", "int32": "i4", "uint16": "u2", "uint8": "u1"}


def scaled(value, scales):
    factor, unit = next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])
    return f"{value / factor:.4g}{SPACE}{unit}"


def time_text(picoseconds):
    return scaled(float(picoseconds), TIMES)


def bytes_text(size):
    return scaled(float(size), SIZES)


def rate_text(bits_per_second):
    return scaled(float(bits_per_second), ((10**12, "Tb/s"), (10**9, "Gb/s"), (10**6, "Mb/s"), (1, "b/s")))


PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def prefixed(value, unit):
    if unit == "g" and abs(value) >= 1e6:
        return f"{value / 1e6:,.4g}{SPACE}t"
    return scaled(value, [(factor, prefix + unit) for factor, prefix in PREFIXES]) if value else f"0{SPACE}{unit}"


def dollars(value):
    return f"{value:,.0f}{SPACE}$" if abs(value) >= 1000 else f"{value:.4g}{SPACE}$"


TEXTS = {"ps": time_text, "B": bytes_text, "bit/s": rate_text, "$": dollars, "s": lambda value: time_text(value * 1e12),
         **{unit: lambda value, unit=unit: prefixed(value, unit) for unit in ("J", "W", "g")}}


def value_text(value, unit):
    """A readable value of a column."""
    if value is None or isinstance(value, str):
        return value or "–"
    if unit in TEXTS:
        return TEXTS[unit](value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def percent(share):
    return f"{100 * share:.0f}{SPACE}%" if share >= 0.0995 else f"{100 * share:.2g}{SPACE}%"


def ratio(part, whole):
    return float(part) / float(whole) if whole else 0.0


def packed(values, kind):
    """An array for the page: numbers in little-endian order as base64. Picoseconds go as float64, which is exact below
    2^53 ps, two and a half hours."""
    data = np.ascontiguousarray(values, dtype=np.dtype(kind).newbyteorder("<"))
    return {"type": CODES[kind], "data": base64.b64encode(data.tobytes()).decode()}


def plain(value):
    """A value of an attribute or a cell as JSON can hold it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def maximum_at(table, keys, values):
    """table[key] = the largest of its value and all values of that key."""
    if len(keys) == 0:
        return
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    firsts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
    found = keys[firsts]
    table[found] = np.maximum(table[found], np.maximum.reduceat(values, firsts))


def covered_until(times, starts, ends):
    """For each time t, the sum over all intervals of their durations until t."""
    total = np.zeros(len(times))
    for points, sign in ((np.sort(starts), 1), (np.sort(ends), -1)):
        sums = np.concatenate(([0.0], np.cumsum(points, dtype=np.float64)))
        count = np.searchsorted(points, times, side="right")
        total += sign * (count * times - sums[count])
    return total


def classes_of(names, most=9):
    """(class of each name, names of classes): the most frequent ones in order of appearance, and `other` for the
    rest."""
    unique, first, inverse, counts = np.unique(names, return_index=True, return_inverse=True, return_counts=True)
    kept = np.argsort(-counts, kind="stable")[:most if len(unique) <= most else most - 1]
    kept = kept[np.argsort(first[kept], kind="stable")]
    number = np.full(len(unique), len(kept), dtype=np.int64)
    number[kept] = np.arange(len(kept))
    titles = [str(unique[i]) for i in kept] + (["other"] if len(kept) < len(unique) else [])
    return number[inverse], titles
