# SPDX-License-Identifier: GPL-2.0-only
"""Slowdown of messages against an idle network."""

import matplotlib.pyplot as plt
import numpy as np

from plotting.results import COMPUTE, PlotError, headline, time_scale

CLASSES = 10  # of sizes


def plot_messages(results, save):
    if not results.rows("messages"):
        raise PlotError(f"{results.path}: it has no messages")
    issued, delivered, ideal, sizes = results.columns("messages", "issued", "delivered", "ideal", "bytes")
    timed = ideal > 0
    if not timed.any():
        raise PlotError(f"{results.path}: it has no message with an ideal time above 0")
    slowdown, delivered, sizes = (delivered[timed] - issued[timed]) / ideal[timed], delivered[timed], sizes[timed]
    sized = sizes.min() < sizes.max()
    figure, (left, right, *third) = plt.subplots(1, 3 if sized else 2, figsize=(15 if sized else 11, 4.6), layout="constrained")
    ordered = np.sort(slowdown)
    left.plot(ordered, np.arange(1, len(ordered) + 1) / len(ordered) * 100, color=COMPUTE, drawstyle="steps-post")
    for share, style in ((50, "-"), (99, "--"), (100, ":")):
        value = ordered[min(-(-len(ordered) * share // 100), len(ordered)) - 1]
        left.axvline(value, color="black", linewidth=0.8, linestyle=style,
                     label=f"{'largest' if share == 100 else 'median' if share == 50 else f'{share} %'}: {value:.3g}")
    left.set(xlabel="slowdown = (delivered - issued) / ideal (1)", ylabel="messages with at most this slowdown (%)",
             ylim=(0, 101))
    left.legend(fontsize=8, loc="lower right")
    left.grid(alpha=0.3)
    scale, unit = time_scale(results.end)
    wide = ordered[-1] > 10 * ordered[0]
    if len(slowdown) <= 5000:
        right.plot(delivered / scale, slowdown, ".", markersize=3, alpha=0.5, color=COMPUTE)
    else:
        image = right.hexbin(delivered / scale, slowdown, gridsize=(60, 30), bins="log", cmap="viridis", mincnt=1,
                             yscale="log" if wide else "linear", linewidths=0.2)
        figure.colorbar(image, ax=right, label="messages (1)")
    right.set(xlabel=f"delivered at simulated time ({unit})", ylabel="slowdown (1)", xlim=(0, results.end / scale))
    right.grid(alpha=0.3)
    for axes in third:
        plot_by_size(axes, sizes, slowdown, wide)
    if wide:
        left.set_xscale("log")
        right.set_yscale("log")
    headline(figure, results, f"Slowdown of {len(slowdown)} messages against an idle network")
    save(figure, "messages")


def plot_by_size(axes, sizes, slowdown, wide):
    """Percentiles of classes of about as many messages each, as papers on congestion control draw them: `weft slowdown`
    prints them."""
    order = np.argsort(sizes, kind="stable")
    sizes, slowdown = sizes[order], slowdown[order]
    edges = np.unique(sizes[[max(0, -(-len(sizes) * (i + 1) // CLASSES) - 1) for i in range(CLASSES)]])
    place = np.searchsorted(edges, sizes)
    for share, style in ((50, "-"), (95, "-."), (99, "--")):
        values = [np.percentile(slowdown[place == i], share, method="inverted_cdf") for i in range(len(edges))]
        axes.plot(edges, values, style, color="black", linewidth=1, marker=".", label="median" if share == 50 else f"{share} %")
    axes.set(xlabel="largest size of a class of messages (B)", ylabel="slowdown (1)", xscale="log")
    if wide:
        axes.set_yscale("log")
    axes.legend(fontsize=8)
    axes.grid(alpha=0.3)
