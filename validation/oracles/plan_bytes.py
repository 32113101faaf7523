# SPDX-License-Identifier: GPL-2.0-only
"""Bytes that each rank of a training step sends, by the published formulas. This module does not use weft's expansion of a
step."""

import dataclasses
from fractions import Fraction

ELEMENT = 2  # bytes of bf16


@dataclasses.dataclass(frozen=True)
class Model:
    """A Llama, or with experts a Mixtral: untied embeddings, no biases."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    vocabulary: int
    experts: int = 0
    top_k: int = 0

    @classmethod
    def of(cls, config):
        heads = config["num_attention_heads"]
        return cls(
            config["hidden_size"], config["num_hidden_layers"], heads, config["num_key_value_heads"],
            config["hidden_size"] // heads, config["intermediate_size"], config["vocab_size"],
            config.get("num_local_experts", 0), config.get("num_experts_per_tok", 0),
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Plan:
    """Names as in the experiment; `stages` lists the model chunks (p stages apart) of each pipeline rank."""

    batch: int
    length: int
    micro_batches: int
    tensor: int = 1
    context: int = 1
    data: int = 1
    pipeline: int = 1
    expert: int = 1
    expert_tensor: int = 1
    virtual_stages: int = 1
    sequence: bool = False
    scatter_gather: bool = False
    context_kind: str = "ring"
    schedule: str = "1f1b"
    sharding: str = "none"
    shard_group: int = 0
    reshard_after_forward: bool = True
    reduce_every_micro_batch: bool = False
    recompute: str = "none"
    gradient: int = ELEMENT

    def stages(self):
        return self.pipeline * (2 if self.schedule == "zbv" else self.virtual_stages)

    def stages_of(self, rank):
        """[(stage, micro-batches that pass it on this rank)]: interleaved p apart, in a V and back, or two copies."""
        p, m = self.pipeline, self.micro_batches
        if self.schedule == "zbv":
            return [(rank, m), (2 * p - 1 - rank, m)]
        if self.schedule == "dualpipe":
            return [(rank, m // 2), (p - 1 - rank, m // 2)]
        return [(chunk * p + rank, m) for chunk in range(self.virtual_stages)]


def all_reduce(size, ranks):
    return Fraction(2 * size * (ranks - 1), ranks)


def one_way(size, ranks):
    """All-gather, reduce-scatter, all-to-all of a buffer of this size."""
    return Fraction(size * (ranks - 1), ranks)


def held(model, plan, stage):
    """(dense, expert) parameters of a stage that one rank holds before sharding; those of norms and routers, which every rank holds
    in full."""
    h, t, stages = model.hidden, plan.tensor, plan.stages()
    layers = model.layers // stages
    attention = h * (2 * model.heads + 2 * model.kv_heads) * model.head_size
    mlp = 3 * h * model.inner
    dense, experts, norms = 0, 0, 2 * h
    dense = Fraction(attention, t) + norms
    if model.experts:
        dense += h * model.experts  # the router, in full on each rank; with sequence parallelism it gets a part of the tokens
        norms += h * model.experts
        experts = Fraction(mlp * model.experts, plan.expert * plan.expert_tensor)
    else:
        dense += Fraction(mlp, t)
    dense, experts, norms = layers * dense, layers * experts, layers * norms
    if stage == 0:
        dense += Fraction(model.vocabulary * h, t)
    if stage == stages - 1:
        dense += Fraction(model.vocabulary * h, t) + h
        norms += h
    return dense, experts, norms


def tensor_bytes(model, plan, stage):
    """Per micro-batch: Shoeybi et al., arXiv:1909.08053; with sequence parallelism Korthikanti et al., arXiv:2205.05198,
    4.2."""
    t, tokens = plan.tensor, plan.batch * plan.length // plan.context
    activation = tokens * model.hidden * ELEMENT
    layers = model.layers // plan.stages()
    # A block: two sums per pass, 8 b s h (t-1)/t, with and without sequence parallelism; with it, two inputs are
    # gathered again. With experts the MLP's sums are those of the experts.
    if model.experts:
        sums, again = 1, 1
    else:
        sums, again = 2, 2
    total = layers * 2 * sums * all_reduce(activation, t)
    if plan.recompute == "full":
        total += layers * sums * all_reduce(activation, t)
    if plan.sequence:
        total += layers * again * one_way(activation, t)
    if stage == 0:
        total += all_reduce(activation, t)
    if stage == plan.stages() - 1:
        total += all_reduce(activation, t) + (one_way(activation, t) if plan.sequence else 0)
        total += 3 * all_reduce(tokens * 4, t)  # maximum, target, sum of exponentials
    return total


def context_bytes(model, plan):
    """Per block and micro-batch: Liu et al., arXiv:2310.01889; Llama 3, arXiv:2407.21783, 3.3.2, with keys and values
    gathered again (Transformer Engine, AttnFuncWithCPAndKVAllGather); Jacobs et al., arXiv:2309.14509."""
    c, tokens = plan.context, plan.batch * plan.length // plan.context
    kv = Fraction(2 * tokens * model.kv_heads * model.head_size * ELEMENT, plan.tensor)
    forward = (c - 1) * kv
    if plan.context_kind == "ring":
        return forward + 2 * forward
    if plan.context_kind == "all_gather":  # gathered in both passes, and gradients scattered
        return 3 * forward
    queries = Fraction(2 * tokens * model.heads * model.head_size * ELEMENT, plan.tensor)
    return 2 * one_way(queries + kv, c)


def expert_bytes(model, plan):
    """Per block and micro-batch: dispatch and combine, forward and backward (Lepikhin et al., arXiv:2006.16668), even
    routing."""
    if not model.experts:
        return 0
    tokens = Fraction(plan.batch * plan.length, plan.context * (plan.tensor if plan.sequence else 1))
    copies = tokens * model.top_k * model.hidden * ELEMENT
    total = 4 * one_way(copies, plan.expert)
    # The ranks of an expert gather the tokens of all of them and sum the results, forward and backward.
    return total + 4 * one_way(copies * plan.expert_tensor, plan.expert_tensor)


def data_bytes(plan, parameters, ranks, group=0):
    """Per step: Rajbhandari et al., arXiv:1910.02054, 7: 2 psi, with stage 3 3 psi (for each micro-batch here)."""
    gradients, weights = parameters * plan.gradient, parameters * ELEMENT
    m = plan.micro_batches
    if plan.sharding == "none":
        return all_reduce(gradients, ranks)
    if plan.sharding in ("optimizer", "gradients"):
        times = m if plan.sharding == "gradients" and plan.reduce_every_micro_batch else 1
        group = group or ranks
        sums = one_way(gradients, group) + all_reduce(Fraction(gradients, group), ranks // group)
        return times * sums + one_way(weights, group)
    group = group or ranks
    gathers = 2 if plan.reshard_after_forward else 1
    total = m * (gathers * one_way(weights, group) + one_way(gradients, group))
    return total + all_reduce(Fraction(gradients, group), ranks // group)


def pipeline_bytes(model, plan, rank):
    """Activations to the next stage, gradients to the previous one, unless that stage is on the same rank."""
    size = Fraction(plan.batch * plan.length * model.hidden * ELEMENT, plan.context)
    if plan.sequence:
        size /= plan.tensor
    elif plan.scatter_gather:  # a part; the parts of the neighbours are gathered
        size = size / plan.tensor + one_way(size, plan.tensor)
    here = plan.stages_of(rank)
    total = 0
    for stage, micro_batches in here:
        for other in (stage + 1, stage - 1):
            # ZBV turns around on the last rank.
            turn = plan.schedule == "zbv" and any(other == mine for mine, _ in here)
            if 0 <= other < plan.stages() and not turn:
                total += micro_batches * size
    return total


def sent(model, plan, rank):
    """Bytes that a rank of this pipeline rank sends in a step, without the norm of the gradients."""
    total, norms, dense, experts = pipeline_bytes(model, plan, rank), 0, 0, 0
    for stage, micro_batches in plan.stages_of(rank):
        layers = model.layers // plan.stages()
        total += micro_batches * (
            tensor_bytes(model, plan, stage) + layers * (context_bytes(model, plan) + expert_bytes(model, plan))
        )
        more = held(model, plan, stage)
        dense, experts, norms = dense + more[0], experts + more[1], norms + more[2]
    ranks = plan.data * plan.context
    total += data_bytes(plan, dense, ranks, plan.shard_group)
    total += data_bytes(plan, experts, ranks * plan.tensor // (plan.expert * plan.expert_tensor))
    if plan.sequence:
        total += all_reduce(norms * plan.gradient, plan.tensor)
    if plan.schedule == "dualpipe":  # both copies of a stage
        total += all_reduce((dense + experts) * plan.gradient, 2)
    if total != int(total):
        raise ArithmeticError(f"{plan}: {total} is not a whole number; choose sizes that divide")
    return int(total)
