# SPDX-License-Identifier: GPL-2.0-only
"""The activity of each rank over time."""

import matplotlib.pyplot as plt
import numpy as np

from plotting.results import COLLECTIVE, COMPUTE, HOST, RECEIVE, SEND, PlotError, headline, time_scale


def merged(starts, ends):
    """Overlapping intervals joined: [(start, length)] in ascending order; intervals that only touch are not joined."""
    if len(starts) == 0:
        return np.empty((0, 2))
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    begins = np.concatenate(([True], starts[1:] >= reach[:-1]))
    last = np.concatenate((np.flatnonzero(begins)[1:] - 1, [len(starts) - 1]))
    return np.column_stack((starts[begins], reach[last] - starts[begins]))


def shown_ranks(ranks, most=48):
    """All ranks, or evenly spaced ones if there are too many for a picture."""
    ranks = np.unique(ranks)
    return ranks if len(ranks) <= most else ranks[np.linspace(0, len(ranks) - 1, most).round().astype(int)]


def draw_lane(axes, bars, scale, bottom, height, color):
    edge = "white" if len(bars) <= 60 else "none"
    axes.broken_barh([tuple(bar) for bar in bars / scale], (bottom, height), facecolor=color, edgecolor=edge,
                     linewidth=0.4)


def operation_lanes(results):
    """(ranks, [(name, colour, lane, owner, start, end)]): lane 0 is above lane 1."""
    rank, start, end, kind = results.columns("operations", "rank", "start", "end", "kind")
    lanes = []
    for number, (name, color) in enumerate((("compute", COMPUTE), ("collective", COLLECTIVE), ("send", SEND),
                                            ("receive", RECEIVE), ("host", HOST))):
        of_kind = kind == number
        if of_kind.any():
            lanes.append((name, color, min(number, 1), rank[of_kind], start[of_kind], end[of_kind]))
    return rank, lanes


def message_lanes(results):
    source, target, start, end = results.columns("messages", "source", "destination", "issued", "delivered")
    return np.concatenate((source, target)), [("messages on their way from the rank", SEND, 0, source, start, end),
                                              ("messages on their way to the rank", RECEIVE, 1, target, start, end)]


def draw_collectives(axes, results, scale):
    """All collectives on one line above the ranks, from -1.2 to -0.2. Returns the position where the picture begins."""
    if not results.rows("collectives"):
        return 0.0
    start, time = results.columns("collectives", "start", "time")
    done = time >= 0
    draw_lane(axes, merged(start[done], start[done] + time[done]), scale, -1.1, 0.8, COLLECTIVE)
    axes.plot([], [], color=COLLECTIVE, linewidth=6, label="collective")
    return -1.2


def plot_timeline(results, save):
    from_operations = results.rows("operations") > 0
    if not from_operations and not results.rows("messages"):
        raise PlotError(f"{results.path}: it has neither operations nor messages to draw a timeline from")
    everyone, lanes = operation_lanes(results) if from_operations else message_lanes(results)
    ranks = shown_ranks(everyone)
    scale, unit = time_scale(results.end)
    figure, axes = plt.subplots(figsize=(11, min(0.24 * len(ranks), 11) + 2.2), layout="constrained")
    both = len({lane for _, _, lane, *_ in lanes}) > 1
    height = 0.42 if both else 0.8
    for name, color, lane, owner, start, end in lanes:
        for line, rank in enumerate(ranks):
            mine = owner == rank
            bottom = line + (0.5 if both and lane == 1 else 0.08)
            draw_lane(axes, merged(start[mine], end[mine]), scale, bottom, height, color)
        axes.plot([], [], color=color, linewidth=6, label=name)
    top, ticks, labels = 0.0, [line + 0.5 for line in range(len(ranks))], [str(rank) for rank in ranks]
    if not from_operations:
        top = draw_collectives(axes, results, scale)
        if top < 0:
            ticks, labels = [-0.7, *ticks], ["all", *labels]
    axes.set_yticks(ticks, labels, fontsize=7)
    shown = "" if len(ranks) == len(np.unique(everyone)) else f" ({len(ranks)} of {len(np.unique(everyone))})"
    axes.set(xlabel=f"simulated time ({unit})", ylabel=f"rank{shown}", xlim=(0, results.end / scale),
             ylim=(len(ranks), top))
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=8, ncols=4, loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False)
    headline(figure, results, "What each rank did" if from_operations else
             "Messages of each rank (set output.operations: true for compute and communication)")
    save(figure, "timeline")
