# SPDX-License-Identifier: GPL-2.0-only
"""A layer of experts as TensorRT-LLM 1.3 runs it on one GPU: what stands between its grouped GEMMs.

A table has `tokens` routed over all `experts`, `topk` for each, of which the GPU has experts / ep, of inner width inter / tp."""

import numpy as np

COLUMNS = ("tokens", "hidden", "inter", "topk", "experts", "tp", "ep")
COPIES = 3  # kernels that go through all copies of tokens: in order of experts; activation; sums


def extent(row):
    """Tokens of an expert, experts here, inner width here."""
    return row["tokens"] * row["topk"] // row["experts"], row["experts"] // row["ep"], row["inter"] // row["tp"]


def flops(row):
    each, count, inner = extent(row)
    return 6 * each * count * inner * row["hidden"]


def gemms(row):
    """(m, n, k, count) of gates and up projections, and of down projections."""
    each, count, inner = extent(row)
    return [(each, 2 * inner, row["hidden"], count), (each, row["hidden"], inner, count)]


def copying_bytes(row):
    """In 16 bits: tokens read and their copies written; gates and up projections read and activations written; results of the down projection
    read and their sums written."""
    each, count, inner = extent(row)
    copies = each * count
    return [2 * 2 * copies * row["hidden"], 2 * 3 * copies * inner, 2 * (copies + row["tokens"]) * row["hidden"]]


def choosing_bytes(row):
    """Of each kernel before copies are put in order. The measured operator gets the router's scores in bf16
    (collect_moe.py, RenormalizeMoeRoutingMethod): its GEMM is no part of it."""
    tokens, chosen, experts, count = row["tokens"], row["topk"], row["experts"], row["experts"] // row["ep"]
    pairs = tokens * chosen
    # tensorrt_llm/_torch/modules/fused_moe/routing.py: scores read, experts and weights of 4 B written; or, for more than 128 experts or 8 of
    # them for a token, PyTorch: topk gathers values of 2 and places of 8 B, and sorts them; places to 4 B; values to fp32; softmax.
    if experts <= 128 and chosen <= 8:
        sizes = [2 * tokens * experts + 8 * pairs]
    else:
        sizes = [2 * tokens * experts + 10 * pairs, 20 * pairs, 12 * pairs, 6 * pairs, 8 * pairs]
    # cpp/tensorrt_llm/kernels/cutlass_kernels/moe_gemm/moe_kernels.cu: fusedBuildExpertMapsSortFirstToken up to 256 tokens, experts read and rows
    # of both orders written; else three kernels, of which the first reads experts and writes rows by expert, the second sums up
    # counts, the third reads rows and writes both orders and the experts.
    if tokens <= 256 and chosen in (1, 2, 4, 6, 8) and count < 511:
        sizes += [12 * pairs]
    else:
        sizes += [8 * pairs, 16 * count, 16 * pairs]
    return [*sizes, 100 * count]  # computeStridesTmaWarpSpecialized: pointers, strides and sizes of both GEMMs of each expert


def rows_of(table):
    """Its rows as whole numbers."""
    return [{name: int(table[name][i]) for name in COLUMNS} for i in range(len(table))]


def usable(row, least):
    """As many whole tokens for each expert, and arithmetic that counts."""
    return row["tokens"] * row["topk"] % row["experts"] == 0 and flops(row) >= least


def columns_of(rows):
    """m, n, k and count of both GEMMs, as arrays."""
    both = np.array([gemms(row) for row in rows], float)
    return [tuple(both[:, i, j] for j in range(4)) for i in range(2)]
