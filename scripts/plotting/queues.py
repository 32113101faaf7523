# SPDX-License-Identifier: GPL-2.0-only
"""Queues of the busiest links and utilization over time, from samples."""

import matplotlib.pyplot as plt
import numpy as np

from plotting.links import DOWN, Links
from plotting.results import PALETTE, PlotError, byte_scale, headline, time_scale


def over_time(links, wanted, intervals, values, count):
    """[link of `wanted`][interval]; intervals without a row were idle."""
    table = np.zeros((len(wanted), count))
    position = {link: i for i, link in enumerate(wanted)}
    chosen = np.isin(links, wanted)
    rows = [position[link] for link in links[chosen].tolist()]
    table[rows, intervals[chosen]] = values[chosen]
    return table


def longest_queues(links, queues, count):
    """Links with the longest queue at any sampling time, longest first; without queues below 1 % of the longest."""
    order = np.lexsort((-queues, links))
    unique, first = np.unique(links[order], return_index=True)
    peaks = sorted(zip((-queues[order][first]).tolist(), unique.tolist()))[:count]
    return [link for peak, link in peaks if peak < 0 and peak <= 0.01 * peaks[0][0]]


def thinned(values, reduce, most=400):
    """At most `most` values, each from several neighbouring samples: a curve of more values is unreadable."""
    step = -(-len(values) // most)
    return reduce.reduceat(values, np.arange(0, len(values), step)), step


def mean_thinned(values):
    sums, step = thinned(values, np.add)
    counts, _ = thinned(np.ones(len(values)), np.add)
    return sums / counts, step


def draw_queues(axes, links, samples, ends):
    """Curves of the longest queues. samples: link, interval, queue."""
    link, interval, queue = samples
    longest = longest_queues(link, queue, len(PALETTE))
    table = over_time(link, longest, interval, queue, len(ends))
    factor, unit = byte_scale(table.max(initial=0))
    rows = {int(number): row for row, number in enumerate(links.id)}
    step = 1
    for i, number in enumerate(longest):
        values, step = thinned(table[i], np.maximum)
        row = rows[number]
        axes.plot(thinned(ends, np.maximum)[0], values / factor, color=PALETTE[i], linewidth=1.2, alpha=0.85,
                  label=f"{links.source_name[row]}:{links.port[row]} → {links.target_name[row]}")
    if longest:
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5), title="port → node", title_fontsize=8)
    else:
        axes.text(0.5, 0.5, "no bytes waited at any sampling time", ha="center", transform=axes.transAxes)
    of_what = f", largest of every {step} samples" if step > 1 else ""
    axes.set(ylabel=f"queue at the end of the interval ({unit})", ylim=(0, None))
    axes.set_title(f"longest queues{of_what}", fontsize=10)


def draw_utilization(axes, links, samples, ends):
    """Curves of each link class. samples: link, interval, utilization."""
    link, interval, utilization = samples
    times, step = thinned(ends, np.maximum)
    for (name, way), members in links.panels().items():
        total = np.zeros(len(ends))
        chosen = np.isin(link, links.id[members])
        np.add.at(total, interval[chosen], utilization[chosen])
        color = PALETTE[list(dict.fromkeys(links.link_class)).index(name) % len(PALETTE)]
        axes.plot(times, 100 * mean_thinned(total)[0] / len(members), color=color, linewidth=1.3,
                  linestyle="--" if way == DOWN else "-", label=f"{name or 'links'}{', ' + way if way else ''}")
    largest = np.zeros(len(ends))
    np.maximum.at(largest, interval, utilization)
    axes.plot(times, 100 * thinned(largest, np.maximum)[0], color="black", linewidth=0.8, linestyle=":",
              label="busiest link at the time")
    of_what = f", over {step} samples" if step > 1 else ""
    axes.set_title(f"utilization: mean of each link class{of_what}", fontsize=10)
    axes.set(ylabel="utilization (%)", ylim=(0, 105))
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def plot_queue(results, save):
    if not results.rows("links_series"):
        raise PlotError(f"{results.path}: it has no samples of links: set output.sampling, e.g. "
                        "output: {sampling: 10 us}, and run again")
    links = Links(results)
    link, interval, utilization, queue = results.columns("links_series", "link", "interval", "utilization", "queue")
    length = int(results.file["links_series"].attrs["interval"])
    count = max(int(interval.max()) + 1, -(-results.end // length))
    scale, unit = time_scale(results.end)
    ends = np.minimum((np.arange(count) + 1) * length, results.end) / scale
    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(10, 7), layout="constrained")
    draw_queues(upper, links, (link, interval, queue), ends)
    draw_utilization(lower, links, (link, interval, utilization), ends)
    lower.set(xlabel=f"simulated time ({unit})", xlim=(0, results.end / scale))
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    interval_scale, interval_unit = time_scale(length, 1)
    headline(figure, results,
             f"Queues and utilization over time, sampled every {length / interval_scale:g} {interval_unit}")
    save(figure, "queue")
