# SPDX-License-Identifier: GPL-2.0-only
"""Rates, windows and bytes in flight of queue pairs, and how equally they share, over time, from samples."""

import matplotlib.pyplot as plt
import numpy as np

from plotting.results import PALETTE, PlotError, byte_scale, headline, time_scale
from weft_results.fairness import jain_over_time


def plot_rates(results, save):
    if not results.rows("rates_series"):
        raise PlotError(f"{results.path}: it has no series of queue pairs: set output.rates, e.g. "
                        "output: {rates: {interval: 10 us}}, and run again")
    host, number, target, interval, time, rate, window, flight, sent = results.columns(
        "rates_series", "host", "number", "destination", "interval", "time", "rate", "window", "in_flight", "sent")
    length = int(results.file["rates_series"].attrs["interval"])
    pairs = sorted(set(zip(host.tolist(), number.tolist())))
    busiest = sorted(pairs, key=lambda pair: -sent[(host == pair[0]) & (number == pair[1])].sum())[:len(PALETTE)]
    scale, unit = time_scale(results.end)
    factor, bytes_unit = byte_scale(max(flight.max(), window.max()))
    figure, (upper, lower, shares) = plt.subplots(3, 1, sharex=True, figsize=(10, 8.5), layout="constrained",
                                                  height_ratios=(3, 3, 1.5))
    paced, limited = rate.any(), (window >= 0).any()
    for color, pair in zip(PALETTE, sorted(busiest)):
        mine = (host == pair[0]) & (number == pair[1])
        times, lasted = time[mine] / scale, time[mine] - interval[mine].astype(np.int64) * length
        label = f"{pair[0]}:{pair[1]} → {target[mine][0]}"
        upper.plot(times, sent[mine] * 8e3 / np.maximum(lasted, 1), color=color, linewidth=1.2, label=label)
        if rate[mine].any():
            upper.plot(times, rate[mine] / 1e9, color=color, linewidth=0.8, linestyle="--")
        lower.plot(times, flight[mine] / factor, color=color, linewidth=1.2)
        if (window[mine] >= 0).any():
            lower.plot(times, np.where(window[mine] < 0, np.nan, window[mine] / factor), color=color, linewidth=0.8,
                       linestyle="--")
    upper.set(ylabel="rate (Gb/s)", ylim=(0, None))
    upper.set_title("sent; dashed: allowed" if paced else "sent", fontsize=10)
    upper.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), title="host:pair → host", title_fontsize=8)
    lower.set(ylabel=f"bytes ({bytes_unit})", ylim=(0, None))
    lower.set_title("in flight; dashed: window" if limited else "in flight", fontsize=10)
    ends, index = jain_over_time(host.astype(np.int64) << 32 | number, interval, sent)
    shares.plot(np.minimum((ends + 1) * length, results.end) / scale, index, color="black", linewidth=1.2)
    shares.set(xlabel=f"simulated time ({unit})", ylabel="index (1)", xlim=(0, results.end / scale), ylim=(0, 1.05))
    shares.set_title("Jain's index of queue pairs with something to send; 1: all sent the same", fontsize=10)
    for axes in (upper, lower, shares):
        axes.grid(alpha=0.3)
    shown = f"{len(pairs)} queue pairs" if len(pairs) <= len(busiest) else f"the busiest {len(busiest)} of {len(pairs)} queue pairs"
    headline(figure, results, f"Rates and windows of {shown}")
    save(figure, "rates")
