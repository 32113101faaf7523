# SPDX-License-Identifier: GPL-2.0-only
import numpy

from oracles.wire import Network, quantity, serialization

SOURCE = "conservation of bytes"
REDUCTION = {
    "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "3000001 B", "channels": 2}
}


def check(case):
    nodes, wires, totals = [], [], []
    for changes in ({}, REDUCTION):
        run, experiment = case.run(changes)
        links, messages, network = run.links, run.messages, Network.of(experiment)
        count = max(links["from"].max(), links["to"].max()) + 1
        for column in ("payload_bytes", "packets", "data_packets"):
            leave = numpy.bincount(links["from"], links[column], count)
            enter = numpy.bincount(links["to"], links[column], count)
            switches = [int(node) for node in set(links["from"]) - set(run.ranks["node"])]
            nodes += zip(enter[switches], leave[switches], strict=True)
            if column == "payload_bytes":
                sent = numpy.bincount(messages["source"], messages["bytes"])
                received = numpy.bincount(messages["destination"], messages["bytes"])
                nodes += zip(sent, leave[run.ranks["node"]], strict=True)
                nodes += zip(received, enter[run.ranks["node"]], strict=True)
        control = links["packets"] - links["data_packets"]
        wire = links["payload_bytes"] + links["data_packets"] * network.overhead + control * network.control
        wires += zip(wire, links["bytes"], strict=True)
        per_byte = serialization(1, quantity(experiment["topology"]["link_rate"]))
        wires += zip(wire * per_byte, links["busy"], strict=True)
        totals.append((messages["bytes"].sum(), run.summary["bytes_delivered"]))
        hosts, size = len(run.ranks["rank"]), quantity(experiment["workload"]["size"])
        factor = 2 if experiment["workload"]["kind"] == "collective" else hosts
        totals.append((factor * (hosts - 1) * size, messages["bytes"].sum()))
    case.exact_all("in = out of each switch; = messages of each host", nodes, "B or packets")
    case.exact_all("wire bytes and busy time of each link, from its packets", wires, "B or ps")
    case.exact_all("bytes delivered in all", totals, "B")
