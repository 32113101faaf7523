# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity
from rails.machine import bytes_of_classes, rails_alone

SOURCE = "NCCL graph/paths.cc (PXN); Wang et al. 2024"

SERVERS, GPUS = 8, 8


def check(case):
    hosts = SERVERS * GPUS
    inside = hosts * (GPUS - 1)  # pairs of GPUs of one server
    same_rail = hosts * (SERVERS - 1)
    other_rail = hosts * (SERVERS - 1) * (GPUS - 1)
    outside = same_rail + other_rail
    pairs = {
        # Over the network: from NIC to leaf, to a spine and back to a leaf if the rails differ, to the NIC.
        False: {"nvlink": 2 * inside, "pcie": 2 * outside, "nic": 2 * outside, "leaf-spine": 2 * other_rail},
        # Over NVLink to the GPU of the destination's rail first.
        True: {"nvlink": 2 * inside + 2 * other_rail, "pcie": 2 * outside, "nic": 2 * outside, "leaf-spine": 0},
    }
    all_to_all, along = [], []
    for pxn in (False, True):
        run, experiment = case.run({"topology.server.pxn": pxn})
        message = Network.of(experiment).wire(quantity(experiment["workload"]["size"]))
        found = bytes_of_classes(run)
        all_to_all += [(count * message, found[name]) for name, count in pairs[pxn].items()]
        run, experiment = case.run({"topology.server.pxn": pxn, "workload.pattern": "permutation", "workload.shift": GPUS})
        found = bytes_of_classes(run)
        along += [(count * hosts * message, found[name])
                  for name, count in {"nvlink": 0, "pcie": 2, "nic": 2, "leaf-spine": 0}.items()]
    case.exact_all("all-to-all: bytes of each class of links, without and with PXN", all_to_all, "B")
    case.exact_all("each GPU to its like on the next server: nothing leaves the rail", along, "B")

    run, experiment = case.run({"topology": rails_alone(pxn=True)})
    message = Network.of(experiment).wire(quantity(experiment["workload"]["size"]))
    found = bytes_of_classes(run)
    only = [(count * message, found[name]) for name, count in pairs[True].items() if count > 0]
    case.exact_all("rails that are not joined: bytes of each class, as with PXN", only, "B")
