# SPDX-License-Identifier: GPL-2.0-only
"""Two ranks of data-parallel training, and an all-to-all of different sizes behind it."""

import json

from kineto_files import data_parallel_step

ROWS = [[1, 3], [2, 2]]  # from each rank to each, in 1,024 elements


def trace(rank):
    step = data_parallel_step(rank, 2)
    out = [ROWS[i][rank] for i in range(2)]
    step.collective("all_to_allv", 1024 * sum(ROWS[rank]), 400, 30, 300, kernel="SendRecv", out=1024 * sum(out),
                    **{"In split size": str(ROWS[rank]), "Out split size": str(out)})
    return step


def sample(folder):
    for rank in range(2):
        trace(rank).write(folder / "traces", packing=["gz", "xz"][rank])
    return ["traces"]


def further(folder):
    """Execution traces of both ranks."""
    (folder / "execution").mkdir(exist_ok=True)
    for rank in range(2):
        tensor = [1, 2, 0, 4096, 4, f"cuda:{rank}"]
        operators = ((2, "aten::relu", [tensor], [[3, 4, *tensor[2:]]]),
                     (3, "record_param_comms", [[tensor], 1, ["0", "default_pg"], rank, "allreduce", [], [], 0, 1, 2],
                      []))
        nodes = [{"id": number, "name": name, "ctrl_deps": 1, "inputs": {"values": inputs, "shapes": [], "types": []},
                  "outputs": {"values": outputs, "shapes": [], "types": []}, "attrs": []}
                 for number, name, inputs, outputs in operators]
        text = json.dumps({"schema": "1.0.2-chakra.0.0.4", "nodes": nodes}, indent=1)
        (folder / "execution" / f"host_{rank}.json").write_text(text)
    return ["execution", "--device", "h100"]


def counts(folder):
    """From the events themselves: a kernel is an operation, but the uneven all-to-all is a send and a receive, too."""
    kinds, sizes = {"compute": 0, "all_reduce": 0, "send": 0, "recv": 0}, {"all_reduce": 0, "send": 0, "recv": 0}
    for rank in range(2):
        events = json.loads(trace(rank).text())["traceEvents"]
        for event in (one for one in events if one["cat"] == "kernel"):
            name, elements = event["args"].get("Collective name"), event["args"].get("In msg nelems")
            if name == "allreduce":
                kinds["all_reduce"] += 1
                sizes["all_reduce"] += 4 * elements
                continue
            kinds["compute"] += 1  # a kernel, or the end of the all-to-all
            if name:
                row, column = json.loads(event["args"]["In split size"]), json.loads(event["args"]["Out split size"])
                sizes["send"] += 4 * 1024 * row[1 - rank]
                sizes["recv"] += 4 * 1024 * column[1 - rank]
                kinds["send"] += 1
                kinds["recv"] += 1
    return {"ranks": 2, "operations": kinds, "bytes": sizes}


def damaged(folder):
    text = trace(0).text()
    (folder / "bad").mkdir(exist_ok=True)
    for what, content in {"cut": text[:1500], "no time": text.replace('"ts": 10', '"ts": "ten', 1),
                          "no trace": "{}", "rank": text.replace('"rank": 0', '"rank": "none"', 1)}.items():
        name = f"bad/{what.replace(' ', '_')}.json"
        (folder / name).write_text(content)
        yield what, [name]
