# SPDX-License-Identifier: GPL-2.0-only
"""The dependence of an outcome on each input: the share of its variance between the input's values."""

import math

MAX_GROUPS = 8  # for drawn numbers: parts of their range


def groups_of(values):
    """[group of each case] and {group: name}: the values themselves, or for many numbers the eighths of their order."""
    kinds = sorted(set(values), key=lambda value: (isinstance(value, str), value))
    if len(kinds) <= MAX_GROUPS or any(isinstance(value, str) for value in kinds):
        return [kinds.index(value) for value in values], kinds
    part = {value: i * MAX_GROUPS // len(kinds) for i, value in enumerate(kinds)}
    names = [[value for value in kinds if part[value] == i] for i in range(MAX_GROUPS)]
    return [part[value] for value in values], [(some[0], some[-1]) for some in names]


def centred(values, within):
    """Each value minus the mean of its group of comparable cases."""
    sums = {}
    for value, group in zip(values, within):
        total, count = sums.get(group, (0.0, 0))
        sums[group] = (total + value, count + 1)
    return [value - sums[group][0] / sums[group][1] for value, group in zip(values, within)]


def share_between(values, groups):
    """The correlation ratio (K. Pearson, 1905): the variance of the means of groups over that of all. In a full grid it
    is the first-order sensitivity index (A. Saltelli et al., Global Sensitivity Analysis, 2008, section 4.3)."""
    mean = sum(values) / len(values)
    whole = sum((value - mean) ** 2 for value in values)
    sums = {}
    for value, group in zip(values, groups):
        total, count = sums.get(group, (0.0, 0))
        sums[group] = (total + value, count + 1)
    between = sum(count * (total / count - mean) ** 2 for total, count in sums.values())
    means = {group: total / count for group, (total, count) in sums.items()}
    return between / whole if whole > 0 else 0.0, means


def sensitivity(inputs, outcome, within):
    """[(name, share, [(value, factor)])] for each input, the largest share first. `inputs` {name: values}, `outcome`
    numbers or None, `within` the group in which a case is compared. If all outcomes are above 0, logarithms are used,
    and the factors are geometric means over the least one; otherwise they are differences of means. An input with another
    value in each case, such as a label, is left out: its share is 100 % whatever the outcomes are."""
    rows = [i for i, value in enumerate(outcome) if value is not None and math.isfinite(value)]
    if len(rows) < 2:
        return []
    positive = all(outcome[i] > 0 for i in rows)
    values = [math.log(outcome[i]) if positive else outcome[i] for i in rows]
    values = centred(values, [within[i] for i in rows])
    found = []
    for name, column in inputs.items():
        groups, names = groups_of([column[i] for i in rows])
        if len(names) in (1, len(rows)):
            continue
        share, means = share_between(values, groups)
        least = min(means.values())
        effect = [(names[group], math.exp(mean - least) if positive else mean - least)
                  for group, mean in sorted(means.items())]
        found.append((name, share, effect))
    return sorted(found, key=lambda row: -row[1])
