# SPDX-License-Identifier: GPL-2.0-only
"""Two layers of a transformer on 8 GPUs, 4 of a model."""

HEADER = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 vpp: 2 ga: 1 all_gpus: 8 " \
         "checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n"
LAYERS = ["attention\t-1\t752000\tALLREDUCE\t65536\t752000\tNONE\t0\t752000\tALLREDUCE\t8192\t100",
          "mlp\t-1\t750000 ALLGATHER 131072\t750000\tREDUCESCATTER\t131072\t750000\tNONE\t0\t100"]
KINDS = {"ALLREDUCE": "all_reduce", "ALLGATHER": "all_gather", "REDUCESCATTER": "reduce_scatter"}


def text():
    return HEADER + f"{len(LAYERS)}\n" + "\n".join(LAYERS) + "\n"


def sample(folder):
    (folder / "layers.txt").write_text(text())
    return ["layers.txt"]


def counts(folder):
    lines = (folder / "layers.txt").read_text().split("\n")
    ranks, operations, sizes = int(lines[0].split("all_gpus:")[1].split()[0]), {"compute": 0}, {}
    for layer in (line.split() for line in lines[2:] if line):
        # An update comes behind the communication of each column (Layer::call of SimAI's astra-sim).
        communications = sum(layer[column] != "NONE" for column in (3, 6, 9))
        operations["compute"] += 3 * ranks + ranks * communications * (int(layer[11]) > 0)
        for column in (3, 6, 9):
            if layer[column] != "NONE":
                kind = KINDS[layer[column]]
                operations[kind] = operations.get(kind, 0) + ranks
                sizes[kind] = sizes.get(kind, 0) + ranks * int(layer[column + 1])
    return {"ranks": ranks, "operations": operations, "bytes": sizes}


def further(folder):
    """AICB's CSV."""
    (folder / "rows.csv").write_text(
        "[ pp_stage0: [rank0, rank1] ]\n"
        "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"
        "CommType.all_reduce,CommGroup.dp_group,2,4096,init,None,None,,None,None,None,1\n"
        "CommType.computation,None,None,\"((4, 1), (1, 4))\",forward,None,None,,0.25,None,None,1\n"
        "CommType.isend,CommGroup.pp_group,2,8,forward,8,None,,None,None,None,1\n")
    return ["rows.csv"]


def damaged(folder):
    for what, (old, new) in {"layers": ("\n2\n", "\n3\n"), "policy": ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID"),
                             "communication": ("ALLGATHER", "ALLGATER"),
                             "number": ("131072\t750000\tR", "x\t750000\tR"),
                             "pipeline": ("pp: 1", "pp: 2")}.items():
        (folder / f"{what}.txt").write_text(text().replace(old, new, 1))
        yield what, [f"{what}.txt"]
    (folder / "columns.csv").write_text("comm_type,comm_group,msg_size\nCommType.all_reduce,CommGroup.dp_group,8\n")
    yield "columns", ["columns.csv"]
