# SPDX-License-Identifier: GPL-2.0-only
import numpy

from oracles.lindley import fifo
from oracles.wire import Network, quantity, serialization

SECONDS = 25
SOURCE = "Pollaczek, Khinchine"
SOURCES = 16
PACKETS = {0.5: 20000, 0.8: 40000, 0.9: 80000}  # per source
BATCHES = 40
SKIPPED = 0.02  # of the time, while the queue is still shorter than usual


def lindley(issued, first, second, delay):
    """Wait at the switch of every packet, by Lindley's recursion; `issued` has one ascending row per source."""
    out = fifo(issued, first)
    arrivals = numpy.sort((out + delay).reshape(-1))
    return fifo(arrivals[None, :], second)[0] - second - arrivals


def batch_means(issued, waits):
    """Mean of the waits and its standard error from the means of batches of equal duration, while all sources send."""
    begin, end = SKIPPED * issued.max(), issued.max(axis=1).min()
    batch = numpy.floor((issued.reshape(-1) - begin) / (end - begin) * BATCHES).astype(int)
    inside = (batch >= 0) & (batch < BATCHES)
    count = numpy.bincount(batch[inside], minlength=BATCHES)
    means = numpy.bincount(batch[inside], waits.reshape(-1)[inside], BATCHES) / count
    return waits.reshape(-1)[inside].mean(), means.std(ddof=1) / BATCHES**0.5


def check(case):
    paths, rows = [], []
    for load, packets in PACKETS.items():
        network, topology = Network.of(case.experiment), case.experiment["topology"]
        frame = network.frames(quantity(case.experiment["workload"]["size"]))[0]
        second, first = (serialization(frame, quantity(topology["links"][i]["rate"])) for i in (0, 1))
        interval = round(SOURCES * second / load)
        run, _ = case.run({"workload.start.interval": f"{interval} ps", "workload.start.count": packets})
        issued = run.messages["issued"].reshape(SOURCES, packets)
        waits = (run.messages["delivered"] - run.messages["issued"] - run.messages["ideal"]).reshape(SOURCES, packets)
        nic = fifo(issued, first) - first - issued
        expected = lindley(issued, first, second, quantity(topology["links"][1]["delay"]))
        paths.append((expected.sum(), (waits - nic).sum()))
        paths += zip(numpy.sort(expected), numpy.sort((waits - nic).reshape(-1)), strict=True)
        rho = SOURCES * second / interval
        mean, error = batch_means(issued, waits / second)
        rows.append((rho / (2 * (1 - rho)), 3 * error, mean))
    case.within("mean wait at loads 0.5, 0.8, 0.9, in packet times", rows)
    case.exact_all("every wait by Lindley's recursion", paths)
