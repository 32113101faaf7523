# SPDX-License-Identifier: GPL-2.0-only
"""Links and queue pairs over time, in bins that a screen can show."""

import numpy as np

from report_page.messages import BINS
from report_page.values import maximum_at, packed

MAX_BINS = 480
HEAT_ROWS = 32
CURVES = 8


class LinkSeries:
    """Mean utilisation and longest queue of each link and bin of time. Intervals without a row were idle."""

    def __init__(self, run, links):
        self.end = max(run.end, 1)
        self.there = links.count > 0 and run.has("links_series", "link", "interval", "utilization", "queue") \
            and run.rows("links_series") > 0
        if not self.there:
            return
        self.interval = int(run.attribute("links_series", "interval", 0)) or self.end
        count = max(-(-self.end // self.interval), 1)
        self.step = -(-count // MAX_BINS)
        self.bins = -(-count // self.step)
        self.used = np.zeros((links.count, self.bins), dtype=np.float32)
        self.queue = np.zeros((links.count, self.bins), dtype=np.float64)
        for block in run.blocks("links_series", ["link", "interval", "utilization", "queue"]):
            self.add(links.rows_of(block["link"]), block)
        samples = np.full(self.bins, self.step, dtype=np.float32)
        samples[-1] = count - self.step * (self.bins - 1)
        self.used /= samples
        self.times = np.minimum((np.arange(self.bins) + 1) * self.step * self.interval, self.end)

    def add(self, rows, block):
        there = (rows >= 0) & (block["interval"] // self.step < self.bins)
        keys = rows[there] * self.bins + (block["interval"][there] // self.step).astype(np.int64)
        low = keys.min(initial=0)
        sums = np.bincount(keys - low, weights=block["utilization"][there])
        self.used.reshape(-1)[low:low + len(sums)] += sums
        maximum_at(self.queue.reshape(-1), keys, block["queue"][there])


def top_rows(score, most):
    order = np.argsort(-score, kind="stable")[:most]
    return order[score[order] > 0]


def matrices(links, series, messages):
    """{name: (unit, picoseconds of a bin, links x bins)} of the sampled measures."""
    found = {}
    if series.there:
        width = series.step * series.interval
        found["utilisation"] = ("1", width, series.used)
        found["queue"] = ("B", width, series.queue)
    if messages.seen and messages.waits_over_time.any():
        found["delay"] = ("ps", messages.end / BINS, messages.waits_over_time * messages.scale)
    return found


def heat(links, series, messages):
    """For each measure the links with the largest values, and each class of links, over time."""
    measures = []
    for name, (unit, width, values) in matrices(links, series, messages).items():
        score = values.sum(axis=1) if name != "queue" else values.max(axis=1)
        rows = top_rows(score, HEAT_ROWS)
        titles, groups = np.unique(links.link_class, return_inverse=True)
        means = [values[groups == i].mean(axis=0) for i in range(len(titles))]
        tops = [values[groups == i].max(axis=0) for i in range(len(titles))]
        measures.append({
            "name": name, "unit": unit, "width": width, "bins": values.shape[1],
            "links": [links.name(row) for row in rows], "ids": links.id[rows].tolist(),
            "values": packed(values[rows], "float32"), "classes": titles.tolist(),
            "means": packed(means, "float32"), "largest": packed(tops, "float32"),
        })
    return measures


def queues(links, series):
    """Curves: queues of the links with the longest ones, utilisation by class of links."""
    if not series.there:
        return None
    rows = top_rows(series.queue.max(axis=1), CURVES)
    titles, groups = np.unique(links.link_class, return_inverse=True)
    used = [series.used[groups == i].mean(axis=0) for i in range(len(titles))]
    used.append(series.used.max(axis=0))
    return {
        "interval": series.interval * series.step, "times": packed(series.times, "float64"),
        "queues": [{"name": links.name(row), "values": packed(series.queue[row], "float64")} for row in rows],
        "used": [{"name": name, "values": packed(values, "float64")}
                 for name, values in zip([*(f"mean of {title or 'links'}" for title in titles), "busiest link"], used)],
    }


def busiest_pairs(run):
    sums = {}
    for block in run.blocks("rates_series", ["host", "number", "sent"]):
        keys = block["host"].astype(np.int64) << 32 | block["number"]
        unique, inverse = np.unique(keys, return_inverse=True)
        for key, sent in zip(unique.tolist(), np.bincount(inverse, weights=block["sent"]).tolist()):
            sums[key] = sums.get(key, 0) + sent
    return sorted(sorted(sums), key=lambda key: -sums[key])[:CURVES], len(sums)


def rates(run):
    """Rates and bytes in flight of the queue pairs that have sent most."""
    names = ["host", "number", "interval", "time", "sent", "rate", "in_flight"]
    if not run.has("rates_series", *names) or run.rows("rates_series") == 0:
        return None
    interval = int(run.attribute("rates_series", "interval", 0)) or run.end
    pairs, count = busiest_pairs(run)
    bins = -(-run.end // interval)
    step = max(-(-bins // MAX_BINS), 1)
    shape = (len(pairs), -(-bins // step))
    sent, allowed, flight = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for block in run.blocks("rates_series", names):
        keys = block["host"].astype(np.int64) << 32 | block["number"]
        for row, pair in enumerate(pairs):
            mine = keys == pair
            place = np.minimum(block["interval"][mine] // step, shape[1] - 1).astype(np.int64)
            sent[row] += np.bincount(place, weights=block["sent"][mine], minlength=shape[1])
            maximum_at(allowed[row], place, block["rate"][mine])
            maximum_at(flight[row], place, block["in_flight"][mine])
    ends = np.minimum((np.arange(shape[1]) + 1) * step * interval, run.end)
    lasted = np.maximum(np.diff(np.concatenate(([0], ends))), 1)
    title = [f"host {pair >> 32}, pair {pair & 0xffffffff}" for pair in pairs]
    return {"pairs": count, "interval": step * interval, "times": packed(ends, "float64"),
            "rates": [{"name": name, "values": packed(row * 8e12 / lasted, "float64")}
                      for name, row in zip(title, sent)],
            "allowed": [{"name": name, "values": packed(row, "float64")} for name, row in zip(title, allowed)],
            "flight": [{"name": name, "values": packed(row, "float64")} for name, row in zip(title, flight)]}


def depths(run, links):
    """The fullest queues by class, if the run has kept percentiles."""
    names = ["link", "lane", "mean", "p50", "p90", "p99", "p999", "peak"]
    if not run.has("queue_depths", *names):
        return []
    values = run.columns("queue_depths", *names)
    order = np.argsort(-values[names.index("p99")], kind="stable")[:20]
    places = links.rows_of(values[0])
    return [[links.name(places[i]), *(float(column[i]) for column in values[1:])] for i in order if places[i] >= 0]


def when(waits):
    """(begin, end) of the interval with the middle nine tenths of the waiting, as shares of the run."""
    total = waits.sum()
    if total <= 0:
        return 0.0, 1.0
    sums = np.cumsum(waits) / total
    first, last = np.searchsorted(sums, 0.05), np.searchsorted(sums, 0.95)
    return first / len(waits), min(last + 1, len(waits)) / len(waits)
