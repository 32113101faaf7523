# SPDX-License-Identifier: GPL-2.0-only
"""Random workloads that are read from files of other programs: GOAL, layers of ASTRA-sim 1.0, and Chakra."""

import json

from kinds.parts import ranks_of

# CollectiveCommType of schema/protobuf/et_def.proto (github.com/mlcommons/chakra).
CHAKRA_KINDS = {"ALL_REDUCE": 0, "ALL_GATHER": 2, "ALL_TO_ALL": 6, "REDUCE_SCATTER": 7}


def goal(d, files, facts):
    """Messages in rings and between pairs, with computation in between."""
    ranks = ranks_of(d, facts.computing)
    lines = {rank: [] for rank in range(ranks)}
    waits = {rank: [] for rank in range(ranks)}

    def add(rank, text):
        number = len(lines[rank]) + 1
        lines[rank].append(f"l{number}: {text}")
        if number > 1 and d.chance(0.6):
            waits[rank].append(f"l{number} requires l{d.between(1, number - 1)}")

    for _ in range(d.between(1, 6)):
        size, tag = d.between(0, 100_000), d.between(0, 9)
        if ranks == 1 or d.chance(0.3):
            add(d.between(0, ranks - 1), f"calc {d.between(0, 50_000)}")
            continue
        shift = d.between(1, ranks - 1)
        for rank in range(ranks):
            add(rank, f"send {size}b to {(rank + shift) % ranks} tag {tag}")
        for rank in range(ranks):
            add(rank, f"recv {size}b from {(rank - shift) % ranks} tag {tag}")
    text = f"num_ranks {ranks}\n"
    for rank in range(ranks):
        text += f"rank {rank} {{\n" + "".join(f"{line}\n" for line in lines[rank] + waits[rank]) + "}\n"
    files["ring.goal"] = text
    return {"kind": "goal", "file": "ring.goal"}


def layer_table(d, files, facts):
    """Layers of ASTRA-sim 1.0: a data-parallel pass, or one with two ranks of a model."""
    ranks = ranks_of(d, facts.computing)
    model = 2 if ranks % 2 == 0 and d.chance(0.5) else 1
    policy = "DATA" if model == 1 else "HYBRID_TRANSFORMER"
    head = policy if model == 1 else f"{policy} model_parallel_NPU_group: {model}"
    layers = []
    for number in range(d.between(1, 4)):
        columns = [f"layer{number}", "-1"]
        for kind in ["NONE" if model == 1 else d.pick(["NONE", "ALLREDUCE", "ALLGATHER"])] * 2 + ["ALLREDUCE"]:
            columns += [str(d.between(0, 50_000)), kind, str(d.between(1, 300) * 1024 if kind != "NONE" else 0)]
        layers.append("\t".join([*columns, str(d.between(0, 1000))]))
    files["layers.txt"] = "\n".join([head, str(len(layers)), *layers]) + "\n"
    result = {"kind": "astra_sim_text", "file": "layers.txt", "ranks": ranks}
    if d.chance(0.4):
        result["passes"] = d.count(1, 2)
    return result


def chakra(d, files, facts):
    """JSON nodes: the same collectives on all ranks, and computations before them."""
    ranks = ranks_of(d, facts.computing)
    calls = [(d.pick(["ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER", "ALL_TO_ALL"]), d.between(1, 100) * 1024)
             for _ in range(d.between(1, 4))]
    for rank in range(ranks):
        nodes = []
        for kind, size in calls:
            nodes.append({"id": str(len(nodes) + 1), "name": f"work{len(nodes)}", "type": "COMP_NODE",
                          "durationMicros": str(d.between(0, 20)), "dataDeps": [str(len(nodes))] if nodes else []})
            nodes.append({"id": str(len(nodes) + 1), "name": kind.lower(), "type": "COMM_COLL_NODE",
                          "dataDeps": [str(len(nodes))],
                          "attr": [{"name": "comm_type", "int64Val": str(CHAKRA_KINDS[kind])},
                                   {"name": "comm_size", "int64Val": str(size)}, {"name": "is_cpu_op", "boolVal": False}]})
        files[f"trace.{rank}.json"] = json.dumps(nodes)
    result = {"kind": "chakra", "file": "trace.{rank}.json"}
    if d.chance(0.5):
        result["issue"] = d.pick(["astra_sim", "streams"])
    return result
