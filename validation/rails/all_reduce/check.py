# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity
from rails.machine import bytes_of_classes, rails_alone

SOURCE = "counting; Cho et al. 2019"
SERVERS, GPUS = 8, 8


def expected(experiment, pods):
    """Wire bytes on the links of each class."""
    size, network = quantity(experiment["workload"]["size"]), Network.of(experiment)
    inside = 2 * size * (GPUS - 1) // GPUS  # bytes that a GPU sends over NVLink: reduce-scatter and all-gather
    outside = 2 * (size // GPUS) * (SERVERS - 1) // SERVERS  # and along its rail, in a ring of the servers
    assert inside % network.mtu == 0 and outside % network.mtu == 0
    on_wire = lambda payload: payload // network.mtu * (network.mtu + network.overhead)  # noqa: E731
    hosts = SERVERS * GPUS
    # For each border between pods that the ring crosses, one of its 8 members sends to the other pod.
    crossing = pods if pods > 1 else 0
    return {
        "nvlink": 2 * hosts * on_wire(inside),  # to an NVSwitch and from it
        "pcie": 2 * hosts * on_wire(outside),
        "nic": 2 * hosts * on_wire(outside),
        "leaf-spine": 2 * GPUS * crossing * on_wire(outside),
    }


def check(case):
    pairs = []
    for name, topology, pods in (
        ("two pods", {}, 2),
        ("one pod", {"topology.leaves": 8, "topology.hosts_per_leaf": 8}, 1),
        ("rails alone", {"topology": rails_alone(pxn=False)}, 1),
    ):
        run, experiment = case.run(topology)
        found = bytes_of_classes(run)
        classes = expected(experiment, pods)
        if name == "rails alone":
            assert "leaf-spine" not in found
            del classes["leaf-spine"]
        pairs += [(count, found[link_class]) for link_class, count in classes.items()]
    case.exact_all("bytes of each class: two pods, one pod, rails that are not joined", pairs, "B")
