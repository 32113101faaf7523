# SPDX-License-Identifier: GPL-2.0-only
import numpy

from oracles.lindley import fifo
from oracles.wire import Network, quantity, serialization

SOURCE = "Lindley 1952"
EXPERIMENT = "validation/queueing/m_d_1/experiment.yaml"
SOURCES = 16
PACKETS = 5000  # per source


def check(case):
    network, topology = Network.of(case.experiment), case.experiment["topology"]
    frame = network.frames(quantity(case.experiment["workload"]["size"]))[0]
    second, first = (serialization(frame, quantity(topology["links"][i]["rate"])) for i in (0, 1))
    delay = quantity(topology["links"][1]["delay"])
    interval = round(SOURCES * second / 0.8)
    run, _ = case.run({"workload.start.interval": f"{interval} ps", "workload.start.count": PACKETS,
                       "output.attribution": "full"})
    messages = run.messages
    issued = messages["issued"].reshape(SOURCES, PACKETS)
    nic = fifo(issued, first)
    arrivals = numpy.sort((nic + delay).reshape(-1))
    waits = fifo(arrivals[None, :], second)[0] - second - arrivals
    case.exact_all("every wait at the switch is queueing",
                   list(zip(numpy.sort(waits), numpy.sort(messages["part_queueing"]), strict=True)))
    case.exact_all("every wait at the host is behind earlier messages",
                   list(zip((nic - first - issued).reshape(-1), messages["part_ahead"], strict=True)))
    rows = run.tables["link_waits"]
    case.exact("all waits at the shared link", int(waits.sum()), int(rows["time"].sum()))
