# SPDX-License-Identifier: GPL-2.0-only
"""Waits in a first-in, first-out queue: D. V. Lindley, "The theory of queues with a single server", Proc. Cambridge
Phil. Soc. 48 (1952), doi:10.1017/S0305004100027638."""

import numpy


def fifo(arrivals, service):
    """The time at which the service of each packet ends: D(k) = max(A(k), D(k-1)) + service, row by row."""
    work = numpy.arange(arrivals.shape[1]) * service
    return numpy.maximum.accumulate(arrivals - work, axis=1) + work + service
