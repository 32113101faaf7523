# SPDX-License-Identifier: GPL-2.0-only
"""The machines on which algorithms are compared, and the settings of each algorithm there."""

WHOLE = {"chunk_size": "1 TiB", "slices_per_chunk": 1}  # each exchange of a round is one message

MACHINES = {
    # A switch of full-rate ports: algorithms differ in rounds and bytes only.
    "switch": {
        "title": "16 hosts on one switch, 400 Gb/s",
        "topology": {"kind": "star", "hosts": 16, "link_rate": "400 Gb/s", "link_delay": "1 us"},
        "ranks": 16,
        "algorithms": {"ring": {}, "double_binary_tree": {"channels": 2}, "halving_doubling": WHOLE, "recursive_doubling": WHOLE},
    },
    # Four leaves of four hosts with one link up each, which all traffic that leaves a leaf shares.
    "leaves": {
        "title": "4 leaves of 4 hosts, oversubscribed 4 to 1",
        "topology": {
            "kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 1,
            "link_rate": "400 Gb/s", "link_delay": "1 us",
        },
        "ranks": 16,
        "algorithms": {"ring": WHOLE, "halving_doubling": WHOLE, "double_binary_tree": {"channels": 2}},
    },
    "torus": {
        "title": "a torus of 16 in a ring, one channel",
        "topology": {"kind": "torus", "dims": [16], "link_rate": "400 Gb/s", "link_delay": "1 us"},
        "ranks": 16,
        "algorithms": {
            "swing": WHOLE | {"dimensions": [16]},
            "bucket": WHOLE | {"dimensions": [16]},
            "halving_doubling": WHOLE,
        },
    },
    "servers": {
        "title": "4 servers of 8 GPUs, NVLink inside, a NIC per GPU",
        "topology": {
            "kind": "star", "hosts": 32, "link_rate": "400 Gb/s", "link_delay": "1 us", "server": {"design": "hgx_h100"},
        },
        "ranks": 32,
        "algorithms": {
            "ring": WHOLE,
            "hierarchical": WHOLE | {"ranks_per_server": 8},
            "double_binary_tree": {"channels": 2, "ranks_per_server": 8},
        },
    },
    "nvswitch": {
        "title": "8 GPUs on NVSwitches that reduce",
        "topology": {"kind": "server", "design": "hgx_h100", "switch_reduction": {"at": ["nvswitch"]}},
        "ranks": 8,
        "algorithms": {"nvls": {}, "ring": {}},
    },
    # The same, but data that a GPU sends queues in front of its own port instead of behind it.
    "nvswitch_even": {
        "topology": {
            "kind": "server", "design": {
                "gpus": 8, "inside": "nvswitch", "nvlink_rate": "450 GB/s", "nvlink_delay": "100 ns", "gpu_rate": "450 GB/s",
            },
            "switch_reduction": {"at": ["nvswitch"]},
        },
        "ranks": 8,
        "algorithms": {"nvls": {}},
    },
}  # fmt: skip


def changes(machine, algorithm, size):
    """Changes of experiment.yaml for an algorithm and a size on a machine."""
    one = MACHINES[machine]
    return {
        "topology": one["topology"],
        "workload": {
            "kind": "collective", "collective": "all_reduce", "algorithm": algorithm, "ranks": one["ranks"],
            "size": f"{size} B", **one["algorithms"][algorithm],
        },
    }  # fmt: skip
