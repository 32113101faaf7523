# SPDX-License-Identifier: GPL-2.0-only
"""Rates, windows and bytes in flight of queue pairs over time, from samples."""

import matplotlib.pyplot as plt
import numpy as np

from plotting.results import PALETTE, PlotError, byte_scale, headline, time_scale


def plot_rates(results, save):
    if not results.rows("rates_series"):
        raise PlotError(f"'{results.path}' has no series of queue pairs: set output.rates, e.g. "
                        "output: {rates: {interval: 10 us}}, and run again")
    host, number, target, interval, time, rate, window, flight, sent = results.columns(
        "rates_series", "host", "number", "destination", "interval", "time", "rate", "window", "in_flight", "sent")
    length = int(results.file["rates_series"].attrs["interval"])
    pairs = sorted(set(zip(host.tolist(), number.tolist())))
    busiest = sorted(pairs, key=lambda pair: -sent[(host == pair[0]) & (number == pair[1])].sum())[:len(PALETTE)]
    scale, unit = time_scale(results.end)
    factor, bytes_unit = byte_scale(max(flight.max(), window.max()))
    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(10, 7), layout="constrained")
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
    upper.set_title("sent; dashed: allowed", fontsize=10)
    upper.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), title="host:pair → host", title_fontsize=8)
    lower.set(xlabel=f"simulated time ({unit})", ylabel=f"bytes ({bytes_unit})", xlim=(0, results.end / scale),
              ylim=(0, None))
    lower.set_title("in flight; dashed: window", fontsize=10)
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    shown = f"{len(pairs)} queue pairs" if len(pairs) <= len(busiest) else f"the busiest {len(busiest)} of {len(pairs)} queue pairs"
    headline(figure, results, f"Rates and windows of {shown}")
    save(figure, "rates")
