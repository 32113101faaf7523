# SPDX-License-Identifier: GPL-2.0-only
"""Which cases are the best: no other case is as good in every objective and better in one."""


def front(rows, objective):
    """True for each row on the front. Rows that are not feasible, or have no number, are not."""
    points = []
    for row in rows:
        values = [row["values"].get(name, float("nan")) for name, _ in objective]
        numbers = all(isinstance(value, (int, float)) and value == value for value in values)
        points.append(tuple(value if least else -value for value, (_, least) in zip(values, objective))
                      if objective and row["feasible"] and numbers else None)
    # Only a point that is smaller in the order of tuples can be better, so that one pass in that order is enough.
    best = []
    for point in sorted({point for point in points if point is not None}):
        if not any(all(a <= b for a, b in zip(other, point)) for other in best):
            best.append(point)
    best = set(best)
    return [point is not None and point in best for point in points]
