# SPDX-License-Identifier: GPL-2.0-only
import json

import numpy

from oracles.plan_bytes import ELEMENT, Model, Plan, all_reduce, sent

SOURCE = "Shoeybi et al. 2019, and those listed there"

# The subject of each row of the table: plans, and the model of all of them.
PLANS = {
    "tensor: 8 b s h (t-1)/t per block and micro-batch, embedding, logits, loss": [
        {"tensor": t, "micro_batches": m} for t in (2, 4, 8) for m in (1, 3)],
    "tensor and sequence: the same and 2 b s h (t-1)/t gathered again, sums of norms": [
        {"tensor": t, "sequence": True, "micro_batches": 2} for t in (2, 4, 8)],
    "full recomputation: 4 b s h (t-1)/t more": [
        {"tensor": 4, "sequence": sequence, "recompute": "full", "micro_batches": 2} for sequence in (False, True)],
    "data, ZeRO-1, ZeRO-2: 2 psi (D-1)/D; ZeRO-2 of DeepSpeed: m + 1": [
        *({"data": d, "sharding": s, "micro_batches": 2} for d in (2, 8) for s in ("none", "optimizer", "gradients")),
        {"data": 4, "sharding": "optimizer", "gradient": 4, "micro_batches": 2},
        *({"data": 8, "sharding": s, "shard_group": 4, "micro_batches": 2} for s in ("optimizer", "gradients")),
        {"data": 4, "sharding": "gradients", "reduce_every_micro_batch": True, "micro_batches": 3}],
    "ZeRO-3: 3 psi (D-1)/D per micro-batch; HSDP: 3 psi (g-1)/g and 2 psi/g (r-1)/r": [
        {"data": 4, "sharding": "parameters", "micro_batches": 1},
        {"data": 8, "sharding": "parameters", "micro_batches": 2},
        {"data": 8, "sharding": "parameters", "micro_batches": 2, "reshard_after_forward": False},
        {"data": 8, "sharding": "parameters", "micro_batches": 2, "shard_group": 4},
        {"data": 8, "sharding": "parameters", "micro_batches": 2, "shard_group": 2}],
    "context: ring 6, gather 6 b s/c k d (c-1); Ulysses 2 b s/c (2h + 2kd) (c-1)/c": [
        {"context": c, "context_kind": kind, "tensor": t, "micro_batches": 2}
        for c in (2, 4) for t in (1, 2) for kind in ("ring", "all_gather", "ulysses")],
    "pipeline: b s h (/t with sequence) each way at each boundary, v times as often interleaved": [
        {"pipeline": 4, "schedule": "gpipe", "micro_batches": 4},
        {"pipeline": 4, "micro_batches": 8},
        {"pipeline": 4, "virtual_stages": 2, "schedule": "interleaved", "micro_batches": 8},
        {"pipeline": 4, "virtual_stages": 4, "schedule": "interleaved", "micro_batches": 8},
        {"pipeline": 4, "schedule": "zb_h1", "micro_batches": 8},
        {"pipeline": 4, "schedule": "zbv", "virtual_stages": 2, "micro_batches": 8},
        {"pipeline": 4, "schedule": "dualpipe", "micro_batches": 8},
        {"pipeline": 4, "tensor": 2, "micro_batches": 4},
        {"pipeline": 4, "tensor": 2, "sequence": True, "micro_batches": 4},
        {"pipeline": 2, "tensor": 4, "scatter_gather": True, "micro_batches": 4},
        {"pipeline": 2, "tensor": 2, "data": 2, "sequence": True, "virtual_stages": 2, "schedule": "interleaved",
         "sharding": "optimizer", "micro_batches": 4}],
    "experts: 4 b s K h (e-1)/e per block and micro-batch, and sums over the ranks with the same ones": [
        {"data": 8, "expert": 8, "micro_batches": 2}, {"data": 8, "expert": 4, "micro_batches": 2},
        {"data": 8, "expert": 2, "sharding": "optimizer", "micro_batches": 2},
        {"tensor": 2, "data": 4, "expert": 4, "expert_tensor": 2, "sequence": True, "micro_batches": 2},
        {"tensor": 2, "data": 4, "expert": 8, "expert_tensor": 1, "sequence": True, "micro_batches": 2}],
}  # fmt: skip
OF_JOB = ("micro_batches", "reduce_every_micro_batch", "recompute")


def settings(plan, model, folder, batch, length):
    """The experiment's changes for a plan."""
    parallelism = {key: value for key, value in plan.items() if key not in (*OF_JOB, "gradient")}
    changes = {f"workload.{key}": plan[key] for key in OF_JOB if key in plan}
    if "gradient" in plan:
        changes["workload.gradient_precision"] = "fp32"
    ranks = 1
    for dimension in ("tensor", "context", "data", "pipeline"):
        ranks *= plan.get(dimension, 1)
        parallelism.setdefault(dimension, 1)
    changes |= {"workload.parallelism": parallelism, "topology.hosts": ranks, "workload.micro_batch": batch,
                "workload.sequence_length": length, "workload.model": str(folder / f"{model}.json")}  # fmt: skip
    return changes


def check(case):
    for row, plans in PLANS.items():
        name = "mixtral" if row.startswith("experts") else "llama"
        model = Model.of(json.loads((case.folder / f"{name}.json").read_text()))
        pairs = []
        for values in plans:
            plan = Plan(batch=2, length=256, **values)
            run, experiment = case.run(settings(values, name, case.folder, plan.batch, plan.length))
            ranks = experiment["topology"]["hosts"]
            wire = run.links["payload_bytes"][numpy.isin(run.links["from"], run.ranks["node"])]
            expected = [sent(model, plan, rank * plan.pipeline // ranks) for rank in range(ranks)]
            pairs += zip(expected, run.ranks["bytes_sent"], strict=True)
            pairs += zip(expected, wire, strict=True)
        case.exact_all(row, pairs, "B")
    # If the first and the last stage both have a matrix, it is summed between them, size / t.
    plan = {"tensor": 2, "pipeline": 4, "micro_batches": 4}
    config = json.loads((case.folder / "llama.json").read_text())
    tied = case.scratch / "tied.json"
    tied.write_text(json.dumps(config | {"tie_word_embeddings": True}))
    run, _ = case.run(settings(plan, "llama", case.folder, 2, 256) | {"workload.model": str(tied)})
    model = Model.of(config)
    matrix = all_reduce(model.vocabulary * model.hidden // 2 * ELEMENT, 2)
    pairs = []
    for rank, measured in enumerate(run.ranks["bytes_sent"]):
        stage = rank // 2
        expected = sent(model, Plan(batch=2, length=256, **plan), stage) + (matrix if stage in (0, 3) else 0)
        pairs.append((expected, measured))
    case.exact_all("tied embedding: V h / t between first and last stage", pairs, "B")
    # Once per step: the norm of all gradients, one number of 4 B over all ranks of a model.
    changes = settings(plan, "llama", case.folder, 2, 256)
    without, _ = case.run(changes)
    run, _ = case.run(changes | {"workload.clip_gradients": True})
    more = run.ranks["bytes_sent"].sum() - without.ranks["bytes_sent"].sum()
    case.exact("norm of gradients, all 8 ranks: 2 (n-1) x 4 B", 2 * 7 * 4, more, "B")
