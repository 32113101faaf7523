# SPDX-License-Identifier: GPL-2.0-only
"""An all-reduce and an all-to-all on 8 x 4 NPUs, with a system of two dimensions."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import chakra_files as et  # noqa: E402

RANKS, REDUCED, SPREAD = 32, 1 << 20, 1 << 16
SYSTEM = {"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 2,
          "preferred-dataset-splits": 4, "all-reduce-implementation": ["ring", "halvingDoubling"],
          "all-gather-implementation": ["ring", "ring"], "reduce-scatter-implementation": ["ring", "ring"],
          "all-to-all-implementation": ["direct", "ring"], "collective-optimization": "localBWAware",
          "local-mem-bw": 1600, "boost-mode": 0}
NETWORK = "topology: [Switch, Ring]\nnpus_count: [8, 4]\nbandwidth: [400, 50]  # GB/s\nlatency: [936.25, 1000]\n"


def nodes():
    return [et.node(1, et.COMP, duration=3),
            et.node(2, et.COLL, [1], comm_type=et.ALL_REDUCE, comm_size=REDUCED),
            et.node(3, et.COLL, [2], comm_type=et.ALL_TO_ALL, comm_size=SPREAD)]


def sample(folder):
    et.write(folder, [nodes()] * RANKS, "two")
    (folder / "system.json").write_text(json.dumps(SYSTEM, indent=2))
    (folder / "network.yml").write_text(NETWORK)
    return words()


def words(**others):
    given = {"workload": "two", "system": "system.json", "network": "network.yml", **others}
    return [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]


def counts(folder):
    ranks = len(list(folder.glob("two.*.et")))
    return {"ranks": ranks, "operations": {"compute": ranks, "all_reduce": ranks, "all_to_all": ranks},
            "bytes": {"all_reduce": ranks * REDUCED, "all_to_all": ranks * SPREAD}}


def further(folder):
    """Files of the ns-3 backend, and an all-to-all of one's own: half of the ranks send to the other half, which answers."""
    sample(folder)
    half = RANKS // 2
    et.write(folder, [[et.node(1, et.SEND if rank < half else et.RECV, comm_size=100, comm_tag=5,
                               **({"comm_dst": rank + half} if rank < half else {"comm_src": rank - half})),
                       et.node(2, et.COMP, [1], duration=1),
                       et.node(3, et.RECV if rank < half else et.SEND, [2], comm_size=7,
                               **({"comm_src": rank + half} if rank < half else {"comm_dst": rank - half}))]
                      for rank in range(RANKS)], "own")
    (folder / "own.json").write_text(json.dumps({**SYSTEM, "preferred-dataset-splits": 1,
                                                 "all-to-all-implementation-custom": ["own"]}, indent=2))
    links = "".join(f"{host} {RANKS} 400Gbps 0.0005ms 0\n" for host in range(RANKS))
    (folder / "topology.txt").write_text(f"{RANKS + 1} 1 {RANKS}\n{RANKS}\n{links}")
    (folder / "config.txt").write_text(
        "CC_MODE 1\nPACKET_PAYLOAD_SIZE 1000\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\nMIN_RATE 100Mb/s\nBUFFER_SIZE 32\n"
        "KMAX_MAP 1 400000000000 3200\nKMIN_MAP 1 400000000000 800\nPMAX_MAP 1 400000000000 0.2\nEWMA_GAIN 0.004\n"
        "PAUSE_TIME 5\nERROR_RATE_PER_LINK 0.0001\nLINK_DOWN 0 0 0\nHAS_WIN 1\nL2_ACK_INTERVAL 1\nRP_TIMER 900\n")
    (folder / "logical.json").write_text('{"logical-dims": ["8", "4"]}')
    (folder / "memory.json").write_text('{"memory-type": "MEMORY_POOL", "remote-mem-latency": 1, "remote-mem-bw": 50}')
    (folder / "groups.json").write_text('{"1": [0, 1, 2, 3]}')
    return words(system="own.json", network="topology.txt", network_config="config.txt", logical="logical.json",
                 memory="memory.json", groups="groups.json")


def damaged(folder):
    sample(folder)
    system, splits = json.dumps(SYSTEM, indent=2), '"preferred-dataset-splits": '
    for what, text in {"cut": system[:-3], "algorithm": system.replace('"halvingDoubling"', '"halving"'),
                       "dimensions": json.dumps({**SYSTEM, "all-reduce-implementation": ["ring"]}),
                       "splits": system.replace(f"{splits}4", f"{splits}0")}.items():
        (folder / f"{what}.json").write_text(text)
        yield f"system: {what}", words(system=f"{what}.json")
    for what, text in {"kind": NETWORK.replace("Switch", "Star"), "npus": NETWORK.replace("[8, 4]", "[8]"),
                       "ranks": NETWORK.replace("[8, 4]", "[8, 8]"), "rate": NETWORK.replace("50]", "0]"),
                       "yaml": "topology: [Switch\n"}.items():
        (folder / f"{what}.yml").write_text(text)
        yield f"network: {what}", words(network=f"{what}.yml")
    yield "no workload", words(workload="nothing")
    yield "a configuration of another network", words(network_config="network.yml")
