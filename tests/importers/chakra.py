# SPDX-License-Identifier: GPL-2.0-only
"""Two ranks: 5 us of computing, an all-reduce, and a message from rank 0 to rank 1."""

import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import chakra_files as et  # noqa: E402

SIZE = 40000


def nodes(rank):
    message = et.node(3, et.SEND, [2], comm_size=77, comm_dst=1) if rank == 0 else \
        et.node(3, et.RECV, [2], comm_size=77, comm_src=0)
    return [et.node(1, et.COMP, duration=5), et.node(2, et.COLL, [1], comm_type=et.ALL_REDUCE, comm_size=SIZE), message]


def sample(folder):
    (folder / "traces").mkdir(exist_ok=True)
    et.write(folder / "traces", [nodes(0), nodes(1)], "step")
    return ["traces"]


def counts(folder):
    kinds = [one["type"] for rank in range(2) for one in nodes(rank)]
    return {"ranks": len(list((folder / "traces").glob("step.*.et"))),
            "operations": {"compute": kinds.count(et.COMP), "all_reduce": kinds.count(et.COLL),
                           "send": kinds.count(et.SEND), "recv": kinds.count(et.RECV)},
            "bytes": {"all_reduce": 2 * SIZE, "send": 77, "recv": 77}}


def damaged(folder):
    whole, short = et.protobuf(nodes(1)), et.node(3, et.RECV, [2], comm_size=78, comm_src=0)
    for what, content in {"cut": whole[:-3], "other": b"num_ranks 2\n", "empty": b"",
                          "size": et.protobuf([*nodes(1)[:2], short])}.items():
        (folder / what).mkdir()
        et.write(folder / what, [nodes(0), nodes(1)], "step")
        (folder / what / "step.1.et").write_bytes(content)
        yield what, [what]
    shutil.copytree(folder / "traces" if (folder / "traces").exists() else folder / "cut", folder / "gap")
    (folder / "gap" / "step.1.et").rename(folder / "gap" / "step.2.et")
    yield "a rank is missing", ["gap"]
    yield "no such trace", ["nothing"]
