# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity, serialization

SOURCE = "Graham et al. 2016 (SHARP); NCCL src/device/all_reduce.h (NVLS)"

SERVER = {"kind": "server", "design": "hgx_h100", "switch_reduction": {"at": ["nvswitch"]}}
SERVERS = {
    "kind": "star", "hosts": 16, "link_rate": "400 Gb/s", "link_delay": "1 us", "server": {"design": "hgx_h100"},
    "switch_reduction": {},
}  # fmt: skip
LEAVES = {
    "kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, "link_rate": "400 Gb/s", "link_delay": "1 us",
    "switch_reduction": {},
}  # fmt: skip


def closed_form(experiment, ranks, size):
    """All hosts send in step; their frames cross the unit's link, which is as fast as all of them, in turn, and back.

    A frame is on the unit's link for 1/n of its time on a host's link, so that n of them take the time of one.
    """
    network = Network.of(experiment)
    rate, delay = quantity(experiment["topology"]["link_rate"]), quantity(experiment["topology"]["link_delay"])
    unit_delay = quantity(experiment["topology"]["switch_reduction"]["delay"])
    frames = network.frames(size)

    def on_unit(frame):
        return ranks * serialization(frame, ranks * rate)

    def through(first, second, delays):
        """Frame by frame over two links; the second waits for the first."""
        here = there = 0
        for frame in frames:
            here += first(frame)
            there = max(there, here + delays[0]) + second(frame)
        return there + delays[1]

    def on_host(frame):
        return serialization(frame, rate)

    up = through(on_host, on_unit, (delay + network.latency, unit_delay))
    # On the path down the last of n frames of a turn is behind all others.
    down = through(on_unit, on_host, (unit_delay + network.latency, delay))
    return up + down


def bytes_of(run, link_class, half):
    """Wire bytes of all links of a class in one direction (0: the direction in which they were built)."""
    links = run.links
    chosen = (links["link_class"] == link_class) & (links["id"] % 2 == half)
    return int(links["bytes"][chosen].sum())


def check(case):
    pairs = []
    for ranks in (2, 4, 8):
        for size in (64, 30_000, 4096 * 100, 1_000_000):
            run, experiment = case.run({"topology.hosts": ranks, "workload.ranks": ranks, "workload.size": f"{size} B"})
            pairs.append((closed_form(experiment, ranks, size), run.time))
    case.exact_all("collnet on one switch: 2, 4, 8 ranks, four sizes", pairs)

    # Frames are full: chunks are multiples of the MTU, so that wire bytes are in proportion.
    size = 8 << 20
    frame = 4096 + 82

    def wire(payload):
        return payload // 4096 * frame

    pairs = []
    for kind, up, down in (
        ("all_reduce", size + size // 8, size // 8 + size), ("all_gather", size // 8, size), ("reduce_scatter", size, size // 8),
    ):  # fmt: skip
        workload = {"kind": "collective", "collective": kind, "algorithm": "nvls", "ranks": 8, "size": f"{size} B"}
        run, _ = case.run({"topology": SERVER, "workload": workload})
        pairs += [(8 * wire(up), bytes_of(run, "nvlink", 0)), (8 * wire(down), bytes_of(run, "nvlink", 1))]
        pairs += [(8 * wire(down), bytes_of(run, "reduction", 0)), (8 * wire(up), bytes_of(run, "reduction", 1))]
    case.exact_all("nvls, 8 GPUs: bytes up and down NVLink, out of and into the switch's unit", pairs, "B")

    workload = {"kind": "collective", "collective": "all_reduce", "ranks": 16, "size": f"{size} B", "ranks_per_server": 8}
    run, _ = case.run({"topology": SERVERS, "workload": workload | {"algorithm": "nvls_tree", "channels": 2}})
    # Two servers: in each tree one is the root; each head sends its sum in one direction, and receives the result in
    # the other.
    pairs = [(16 * wire(size + size // 8), bytes_of(run, "nvlink", 0)), (16 * wire(size // 8), bytes_of(run, "nic", 0))]
    run, _ = case.run({"topology": SERVERS, "workload": workload | {"algorithm": "collnet"}})
    pairs += [(16 * wire(2 * 7 * size // 8), bytes_of(run, "nvlink", 0)), (16 * wire(size // 8), bytes_of(run, "nic", 0))]
    case.exact_all("nvls_tree and collnet, 2 servers of 8: bytes up NVLink and NIC", pairs, "B")

    workload = {"kind": "collective", "collective": "all_reduce", "ranks": 16, "algorithm": "collnet", "ranks_per_leaf": 4}
    run, _ = case.run({"topology": LEAVES, "workload": workload | {"size": f"{size} B"}})
    pairs = [(16 * wire(size), bytes_of(run, "host", 0)), (16 * wire(size), bytes_of(run, "host", 1))]
    pairs += [(4 * wire(size), bytes_of(run, "leaf-spine", 0)), (4 * wire(size), bytes_of(run, "leaf-spine", 1))]
    case.exact_all("collnet, 4 leaves of 4: bytes of hosts, and of leaves to and from the root", pairs, "B")
