# SPDX-License-Identifier: GPL-2.0-only
import numpy

SOURCE = "conservation of packets"
LOSS = {"network.loss": [{"link": "all", "probability": 0.001}]}
FAILURES = {
    "network.failures": [
        {"at": "60 us", "until": "200 us", "link": ["switch0", "switch8"]},
        {"at": "100 us", "switch": "switch16"},
        {"at": "80 us", "until": "150 us", "link": ["host3", "switch1"], "rate": "25 Gb/s"},
    ],
    "network.reconvergence": "50 us",
}
SMALL = {"network.buffer": {"size": "600 kB", "alpha": 1}}
MECHANISMS = {
    "go-back-N, drops": SMALL,
    "selective repeat, drops and loss": {**SMALL, **LOSS, "network.recovery": "selective_repeat"},
    "trimming": {"network.buffer": {"queue": "50 kB"}, "network.trimming": True, "network.recovery": "selective_repeat"},
    "PFC, loss": {**LOSS, "network.flow_control": "pfc", "network.buffer": {"size": "1 MB"},
                  "network.go_back_n": {"timeout": "320 us"}},
    "credits, cut-through": {"network.flow_control": "credit", "network.switching": "cut_through"},
    "spray, failures": {**FAILURES, "network.load_balancing": "spray"},
    "adaptive, failures, loss, drops": {**FAILURES, **LOSS, **SMALL, "network.load_balancing": "adaptive"},
}  # fmt: skip


def balance(run):
    """(in, out) packets of each switch, and (new + repeated, sent) data packets of each host."""
    links = run.links
    nodes = int(max(links["from"].max(), links["to"].max())) + 1
    arrived = numpy.bincount(links["to"], links["packets"] - links["lost"], nodes)
    left = numpy.bincount(links["from"], links["packets"] + links["dropped"], nodes)
    hosts = [i for i, name in zip(links["from"], links["from_name"], strict=True) if name.startswith("host")]
    pairs = run.queue_pairs
    due = numpy.bincount(pairs["host"], pairs["packets"] + pairs["repeated"], nodes)
    sent = numpy.bincount(links["from"], links["data_packets"], nodes)
    switches = sorted(set(range(nodes)) - set(hosts))
    return [(arrived[i], left[i]) for i in switches], [(due[i], sent[i]) for i in hosts]


def check(case):
    through, sent, delivered, classes, seen = [], [], [], [], []
    for name, changes in MECHANISMS.items():
        run, _ = case.run(changes)
        if not run.summary["complete"]:
            raise ValueError(f"{name}: the run is incomplete")
        of_switches, of_hosts = balance(run)
        through += of_switches
        sent += of_hosts
        delivered.append((run.queue_pairs["packets"].sum(), run.receivers["packets"].sum()))
        delivered.append((50 * len(run.messages["bytes"]), run.queue_pairs["packets"].sum()))
        dropped = numpy.bincount(run.link_classes["link"], run.link_classes["dropped"], len(run.links["id"]))
        classes += zip(dropped, run.links["dropped"], strict=True)
        seen.append((int(run.links["dropped"].sum()), int(run.links["lost"].sum())))
    case.exact_all("in - lost = out + dropped of each switch, 7 mixtures of mechanisms", through, "packets")
    case.exact_all("data of each host: new and repeated packets", sent, "packets")
    case.exact_all("new packets: sent, received, in messages", delivered, "packets")
    case.exact_all("dropped on each link: sum over its classes", classes, "packets")
    case.at_least("dropped, and lost, in all", [(1000, sum(counts)) for counts in zip(*seen, strict=True)], "packets")
