# SPDX-License-Identifier: GPL-2.0-only
"""Shares of hosts and the queue of a port in the later part of a run, from the samples of its links."""

import numpy

from oracles.wire import quantity


class Steady:
    """The samples in /links_series after `since` ps."""

    def __init__(self, run, experiment, since):
        self.links, self.series = run.links, run.links_series
        self.late = self.series["time"] > since
        interval = quantity(experiment["output"]["sampling"])
        self.samples = (quantity(experiment["simulation"]["until"]) - since) // interval  # idle links have no row

    def link(self, start, end):
        names = list(zip(self.links["from_name"], self.links["to_name"], strict=True))
        return self.late & (self.series["link"] == self.links["id"][names.index((start, end))])

    def load(self, start, end):
        """Share of the time in which the link carries bits."""
        return self.series["utilization"][self.link(start, end)].sum() / self.samples

    def queue(self, start, end):
        """Samples of the bytes that are not yet transmitted."""
        return self.series["queue"][self.link(start, end)]


def fairness(shares):
    """Jain's index: 1 for equal shares, 1/n if one has all (R. Jain, D.-M. Chiu, W. Hawe, DEC-TR-301, 1984)."""
    shares = numpy.array(shares)
    return shares.sum() ** 2 / (len(shares) * (shares**2).sum())
