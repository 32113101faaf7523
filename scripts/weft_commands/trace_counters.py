# SPDX-License-Identifier: GPL-2.0-only
"""Samples of links as counters. The file has a row for each link and interval in which it was busy or had a queue."""

import numpy as np

COLUMNS = ["link", "interval", "time", "utilization", "queue"]


def busiest(run, count):
    """{link: name} of the links that transmitted longest, the busiest first."""
    links = run.table("links", ["id", "busy", "from_name", "to_name"])
    order = np.lexsort((links["id"], -links["busy"]))[:count]
    return {int(links["id"][i]): f"{links['from_name'][i]} -> {links['to_name'][i]} (link {links['id'][i]})"
            for i in order if links["busy"][i] > 0}


class Counters:
    """The two counters of one link. A counter keeps its value until its next event: an interval that the file leaves
    out because nothing happened is a zero at its beginning."""

    def __init__(self, trace, process, name, interval, end):
        self.trace, self.process, self.interval, self.end = trace, process, interval, end
        self.utilization, self.queue, self.next = f"{name}: utilization (%)", f"{name}: queue (B)", 0
        self.trace.counter(process, self.queue, 0, 0)

    def take(self, number, time, utilization, queue):
        if number > self.next:
            self.pause()
        self.trace.counter(self.process, self.utilization, number * self.interval, f"{100 * utilization:.6g}")
        self.trace.counter(self.process, self.queue, time, queue)
        self.next = number + 1

    def pause(self):
        """From `next` on, the counters are zero."""
        self.trace.counter(self.process, self.utilization, min(self.next * self.interval, self.end), 0)
        if self.next * self.interval < self.end:
            self.trace.counter(self.process, self.queue, min((self.next + 1) * self.interval, self.end), 0)


def write_counters(run, trace, count, process):
    interval = run.attributes_of("links_series").get("interval", 0)
    if not (count > 0 and interval > 0 and run.has("links_series", *COLUMNS)):
        return
    names = busiest(run, count)
    wanted = np.array(sorted(names))
    trace.name_process(process, f"links: the {len(names)} busiest", process)
    counters = {link: Counters(trace, process, name, interval, run.simulated_time) for link, name in names.items()}
    for block in run.blocks("links_series", COLUMNS):
        chosen = np.isin(block["link"], wanted)
        for link, *sample in zip(*(block[name][chosen].tolist() for name in COLUMNS)):
            counters[link].take(*sample)
    for link in names:
        counters[link].pause()
