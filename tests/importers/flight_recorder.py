# SPDX-License-Identifier: GPL-2.0-only
"""Two ranks whose buffers begin at different calls: rank 1 has lost its first one."""

import pickle

from flight_files import Dump, elements

CALLS = (("_reduce_scatter_base", 100, [[4096]], [[2048]]), ("_allgather_base", 160, [[2048]], [[4096]]),
         ("all_reduce", 300, [[1]], [[1]]))


def dump(rank):
    found = Dump(rank, 2)
    for name, at, inputs, outputs in CALLS:
        found.call(name, at, inputs, outputs)
    if rank == 1:
        found.entries = found.entries[1:]
    return found


def sample(folder):
    for rank in range(2):
        dump(rank).write(folder / "dumps")
    return ["dumps"]


def further(folder):
    """JSON."""
    for rank in range(2):
        dump(rank).write(folder / "json", as_json=True)
    return ["json"]


def counts(folder):
    """From the entries that both have; the host computes before each call but the first. What is gathered has the bytes of
    both ranks."""
    kinds = {"_allgather_base": "all_gather", "all_reduce": "all_reduce"}
    operations, sizes = {"compute": 2}, {}
    for entry in dump(0).entries[1:] + dump(1).entries:
        kind = kinds[entry["profiling_name"].removeprefix("nccl:")]
        operations[kind] = operations.get(kind, 0) + 1
        sizes[kind] = sizes.get(kind, 0) + 4 * elements(entry, "output")
    return {"ranks": 2, "operations": operations, "bytes": sizes}


def damaged(folder):
    (folder / "bad").mkdir(exist_ok=True)
    whole = dump(0).whole()
    good = pickle.dumps(whole, protocol=2)
    entry = whole["entries"][0]
    for what, content in {"cut": good[:-200], "type": pickle.dumps({**whole, "entries": [{**entry, "input_dtypes": ["Flout"]}]}, 2),
                          "no time": pickle.dumps({**whole, "entries": [{**entry, "time_created_ns": None}]}, 2),
                          "no entries": pickle.dumps({**whole, "entries": 3}, 2),
                          "program": pickle.dumps({**whole, "entries": [print]}, 2)}.items():
        (folder / "bad" / what.replace(" ", "_")).mkdir(exist_ok=True)
        name = f"bad/{what.replace(' ', '_')}/rank_0"
        (folder / name).write_bytes(content)
        yield what, [name]
