# SPDX-License-Identifier: GPL-2.0-only
"""Two pipeline stages of two tensor-parallel NPUs each, as Multiverse's generator writes them: 2 x 1 x 2 NPUs, collectives
of the first dimension, messages from a stage to the next one. The NPU's own end of a message is the node's number, the
first node has no id."""

import json

FORWARD, BACKWARD, SUMMED, GATHERED, ACTIVATIONS = 12, 20, 40000, 3000, 6000


def attributes(**given):
    found = [{"name": "is_cpu_op", "boolVal": False}]
    for name, value in given.items():
        kind = {"comm_para": "uint32Val", "comm_type": "int64Val"}.get(name, "uint64Val")
        found.append({"name": name, kind: value if kind == "uint32Val" else str(value)})
    return found


def compute(time, after):
    return {"name": "F-0-0_comp_megre", "type": "COMP_NODE", "dataDeps": after, "durationMicros": str(time),
            "attr": attributes(comm_para=4)}


def collective(kind, size, after):
    return {"name": "AG_0_0", "type": "COMM_COLL_NODE", "dataDeps": after, "durationMicros": "1",
            "attr": attributes(comm_para=1, comm_type=kind, comm_size=size) +
            [{"name": "involved_dim", "boolList": {"values": [True, False, False]}}]}


def message(number, sends, peer, after):
    ends = {"comm_src": number, "comm_dst": peer} if sends else {"comm_src": peer, "comm_dst": number}
    return {"name": "pp_send" if sends else "pp_recv", "type": "COMM_SEND_NODE" if sends else "COMM_RECV_NODE",
            "dataDeps": after, "durationMicros": "1", "attr": attributes(comm_para=3, comm_size=ACTIVATIONS, **ends)}


def nodes(rank):
    """Of stage 0: gather, forward, send; receive, backward, sum. Of stage 1 the reverse."""
    peer = (rank + 2) % 4
    first = [collective(2, GATHERED, []), compute(FORWARD, ["0"]), message(2, True, peer, ["1"]),
             message(3, False, peer, []), compute(BACKWARD, ["3", "1"]), collective(0, SUMMED, ["4"])]
    second = [collective(2, GATHERED, []), message(1, False, peer, []), compute(FORWARD, ["0", "1"]),
              compute(BACKWARD, ["2"]), message(4, True, peer, ["3"]), collective(0, SUMMED, ["3"])]
    found = first if rank < 2 else second
    return [{**({"id": str(number)} if number else {}), **{key: value for key, value in one.items() if value != []}}
            for number, one in enumerate(found)]


def text(rank):
    return "[" + ",".join(json.dumps(one, indent=2) for one in nodes(rank)) + "]"


def write(folder, change=lambda rank, content: content):
    folder.mkdir(exist_ok=True)
    for rank in range(4):
        (folder / f"npu.{rank}.json").write_text(change(rank, text(rank)))


def sample(folder):
    write(folder / "input")
    return ["input", "--ring-dims", "2,1,2"]


def counts(folder):
    kinds = {"COMP_NODE": "compute", "COMM_SEND_NODE": "send", "COMM_RECV_NODE": "recv"}
    operations, sizes = {}, {}
    for path in (folder / "input").glob("npu.*.json"):
        for one in json.loads(path.read_text()):
            values = {entry["name"]: entry for entry in one["attr"]}
            kind = kinds.get(one["type"]) or {"0": "all_reduce", "2": "all_gather"}[values["comm_type"]["int64Val"]]
            operations[kind] = operations.get(kind, 0) + 1
            if kind != "compute":  # an all-gather's bytes are those of its result, two shards here
                size = int(values["comm_size"]["uint64Val"]) * (2 if kind == "all_gather" else 1)
                sizes[kind] = sizes.get(kind, 0) + size
    return {"ranks": 4, "operations": operations, "bytes": sizes}


def further(folder):
    """One dimension: collectives of all NPUs, and the file of one of them named."""
    write(folder / "flat", lambda rank, content: content.replace("true", "true"))
    return ["flat/npu.0.json"]


def damaged(folder):
    for what, (old, new) in {"cut": ("}]", "}"), "type": ("COMP_NODE", "COMP"), "number": ('"12"', '"12.5"'),
                             "peer": ('"comm_dst",\n      "uint64Val": "2"', '"comm_dst",\n      "uint64Val": "9"'),
                             "waits for nothing": ('"3"', '"33"'), "kind": ('"int64Val": "0"', '"int64Val": "5"'),
                             "no list": ("[{", "{")}.items():
        write(folder / what, lambda rank, content, old=old, new=new: content.replace(old, new, 1) if rank == 0 else content)
        yield what, [what, "--ring-dims", "2,1,2"]
    write(folder / "gap")
    (folder / "gap" / "npu.1.json").rename(folder / "gap" / "npu.4.json")
    yield "an NPU is missing", ["gap"]
    yield "dimensions", ["peer", "--ring-dims", "2,2,2"]
    yield "nothing", ["nowhere"]
