# SPDX-License-Identifier: GPL-2.0-only
"""Sums, extremes and percentiles of tables of any size, block by block."""

from fractions import Fraction

import numpy as np

LOW = 0xFFFFFFFF
BINS = 1 << 16
MAX_GATHERED = 1 << 20  # values that are sorted in memory


def names(columns):
    return [columns] if isinstance(columns, str) else list(columns)


def numeric(run, table, columns):
    """`columns` as a list, each of them of numbers."""
    columns = names(columns)
    for name, data in run.chosen(table, columns).items():
        if data.dtype.kind not in "biuf":
            raise run.error(f"column '{name}' of its table '{table}' is text, and numbers were expected")
    return columns


def whole(values):
    """Integers as those of 64 bits, so that shifts and sums have room."""
    if values.dtype.kind in "bu":
        return values.astype(np.uint64)
    return values.astype(np.int64) if values.dtype.kind == "i" else values


def low_half(values):
    return values & values.dtype.type(LOW)


def group_sums(values, starts):
    """Sums of the runs of `values` that begin at `starts`."""
    if values.dtype.kind == "f":
        return [float(value) for value in np.add.reduceat(values, starts)]
    high = np.add.reduceat(values >> values.dtype.type(32), starts)
    low = np.add.reduceat(low_half(values), starts)
    return [(int(upper) << 32) + int(lower) for upper, lower in zip(high, low)]


def sums(run, table, columns, by):
    columns = numeric(run, table, columns)
    if by is None:
        return total_sums(run, table, columns)
    totals = {}
    for block in run.blocks(table, [*columns, by]):
        order = np.argsort(block[by], kind="stable")
        keys, starts = np.unique(block[by][order], return_index=True)
        parts = {column: group_sums(whole(block[column])[order], starts) for column in columns}
        for i, key in enumerate(keys.tolist()):
            mine = totals.setdefault(key, dict.fromkeys(columns, 0))
            for column in columns:
                mine[column] += parts[column][i]
    return dict(sorted(totals.items()))


def total_sums(run, table, columns):
    totals = dict.fromkeys(columns, 0)
    for block in run.blocks(table, columns):
        for column in columns:
            totals[column] += group_sums(whole(block[column]), [0])[0]
    return totals


def extremes(run, table, columns):
    columns = numeric(run, table, columns)
    found = {}
    for block in run.blocks(table, columns):
        for column in columns:
            low, high = block[column].min().item(), block[column].max().item()
            least, most = found.get(column, (low, high))
            found[column] = min(least, low), max(most, high)
    if len(found) < len(columns):
        raise run.error(f"its table '{table}' has no rows")
    return found


# Percentiles. Each value becomes an unsigned integer of 64 bits, its key, in the same order. Keys are counted in bins
# of equal width between the smallest and the largest. The bins that contain a requested one are counted again, with
# narrower bins, until the remaining keys are few enough to be sorted. One pass over the table serves all requested
# percentiles, and needs memory for the bins, the sorted keys, and one block.

SIGN = np.uint64(1 << 63)


def to_keys(values):
    if values.dtype.kind == "f":
        bits = values[~np.isnan(values)].astype(np.float64).view(np.uint64)
        return np.where(bits & SIGN, ~bits, bits | SIGN)
    if values.dtype.kind == "i":
        return values.astype(np.int64).view(np.uint64) ^ SIGN
    return values.astype(np.uint64)


def from_key(key, kind):
    """The value with this key, as int or float."""
    key = np.array([key], dtype=np.uint64)
    if kind == "f":
        return float(np.where(key & SIGN, key ^ SIGN, ~key).view(np.float64)[0])
    return int((key ^ SIGN).view(np.int64)[0]) if kind == "i" else int(key[0])


class Keys:
    """All keys of the column, repeatedly in blocks."""

    def __init__(self, run, table, columns, value):
        self.run, self.table, self.columns, self.kind = run, table, columns, "i"
        self.value = value or (lambda block: block[columns[0]])

    def __iter__(self):
        for block in self.run.blocks(self.table, self.columns):
            values = np.asarray(self.value(block))
            self.kind = values.dtype.kind
            keys = to_keys(values)
            if len(keys):
                yield keys

    def whole_range(self):
        """The range of all keys, None if there is none."""
        extent = [(int(keys.min()), int(keys.max()), len(keys)) for keys in self]
        if not extent:
            return None
        lows, highs, counts = zip(*extent)
        return Range(min(lows), max(highs), sum(counts), 0)


class Range:
    """The `count` keys from `low` to `high`; the first of them is key number `first` in the order of all keys."""

    def __init__(self, low, high, count, first):
        self.low, self.high, self.count, self.first = low, high, count, first
        self.sorted_at_once = count <= MAX_GATHERED
        self.width = (high - low) // BINS + 1
        self.counts = None if self.sorted_at_once else np.zeros(BINS, dtype=np.int64)
        self.gathered = []

    def take(self, keys):
        inside = keys[(keys >= np.uint64(self.low)) & (keys <= np.uint64(self.high))]
        if self.sorted_at_once:
            self.gathered.append(inside)
        else:
            bins = (inside - np.uint64(self.low)) // np.uint64(self.width)
            self.counts += np.bincount(bins.astype(np.int64), minlength=BINS)

    def split(self, places):
        """({place: key} of those that are known now, {(low, high, count, first) of a narrower range: places})."""
        if self.sorted_at_once:
            ordered = np.sort(np.concatenate(self.gathered))
            return {place: int(ordered[place - self.first]) for place in places}, {}
        ends, found, narrower = np.cumsum(self.counts), {}, {}
        for place in places:
            number = int(np.searchsorted(ends, place - self.first, side="right"))
            low = self.low + number * self.width
            if self.width == 1:
                found[place] = low
                continue
            count = int(self.counts[number])
            key = low, min(low + self.width - 1, self.high), count, self.first + int(ends[number]) - count
            narrower.setdefault(key, []).append(place)
        return found, narrower


def select(keys, whole_range, places):
    """{place: key} of the places, counted from 0 in ascending order of keys."""
    ranges, found = [(whole_range, places)], {}
    while ranges:
        for block in keys:
            for one, _ in ranges:
                one.take(block)
        following = []
        for one, wanted in ranges:
            known, narrower = one.split(wanted)
            found |= known
            following += [(Range(*bounds), inner) for bounds, inner in narrower.items()]
        ranges = following
    return found


def place_of(share, count):
    """The row, counted from 0 in ascending order, that `share` percent of `count` rows do not exceed. Shares such as
    99.9 are decimal fractions and not the binary ones next to them."""
    exact = Fraction(str(share)) * count / 100
    return min(max(-(-exact.numerator // exact.denominator), 1), count) - 1


def percentiles(run, table, columns, shares, value):
    shares = list(shares)
    for share in shares:
        if not 0 <= share <= 100:
            raise ValueError(f"a percentile is from 0 to 100, and not {share}")
    keys = Keys(run, table, numeric(run, table, columns) if value is None else names(columns), value)
    whole_range = keys.whole_range()
    if whole_range is None:
        return []
    places = [place_of(share, whole_range.count) for share in shares]
    found = select(keys, whole_range, sorted(set(places)))
    return [from_key(found[place], keys.kind) for place in places]
