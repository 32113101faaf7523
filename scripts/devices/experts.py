# SPDX-License-Identifier: GPL-2.0-only
"""A layer of experts as TensorRT-LLM 1.3 runs it on one GPU: the kernels between its grouped GEMMs.

In a table, `tokens` are routed to `topk` each of all `experts`. The GPU has experts / ep of them, with inner width inter /
tp."""

import numpy as np

COLUMNS = ("tokens", "hidden", "inter", "topk", "experts", "tp", "ep")
PRECISIONS = ("bf16", "fp8_block")
COPIES = {"bf16": 3, "fp8_block": 5}  # kernels of copying_bytes()
SCALED = 1 + 4 / 128  # bytes of an element in fp8 with a scale of fp32 for each 128
# The same with scales that are powers of two, of one byte (UE8M0), as DeepGEMM has them on Blackwell.
SCALED_BY_POWERS = 1 + 1 / 128


def extent(row):
    """Tokens per expert, experts on this GPU, inner width on this GPU."""
    return row["tokens"] * row["topk"] // row["experts"], row["experts"] // row["ep"], row["inter"] // row["tp"]


def copies_of(row):
    """Copies of tokens for the experts of this GPU, if experts of other GPUs have as many."""
    return row["tokens"] * row["topk"] // row["ep"]


def flops(row):
    return 6 * copies_of(row) * extent(row)[2] * row["hidden"]


def gemms(row):
    """(m, n, k, count) of gates and up projections, and of down projections."""
    each, count, inner = extent(row)
    return [(each, 2 * inner, row["hidden"], count), (each, row["hidden"], inner, count)]


def masked(name):
    """Whether TensorRT-LLM runs experts in fp8_block through DeepGEMM's masked layout on a device of this name: from Blackwell on (collect_moe.py:
    sm_version >= 100 has the backend deepgemm, others cutlass)."""
    return "B200" in name


def copying_bytes(row, precision="bf16", in_masks=False):
    """Bytes of each kernel that reads or writes all copies of tokens. In 16 bits: tokens are read and their copies written; gates and up
    projections are read and activations written; results of the down projection are read and their sums written. In fp8_block both factors are also
    cast: before each GEMM (cutlass: cpp/tensorrt_llm/kernels/cutlass_kernels/fp8_blockscale_gemm/fp8_blockscale_gemm.cu, moeGemm, commit 0b349035:
    weights are in fp8 already, activations in bf16). With masks the first cast puts copies in rows of their expert's own
    (masked_index_copy_group_quant_fp8), the activation writes fp8 (silu_and_mul_masked_post_quant_fwd), and results are put back in one order
    before they are summed up (triton_masked_index_gather; tensorrt_llm/_torch/modules/fused_moe/fused_moe_deepgemm.py)."""
    hidden, inner = copies_of(row) * row["hidden"], copies_of(row) * extent(row)[2]
    spread, activation, sums = 2 * 2 * hidden, 2 * 3 * inner, 2 * (hidden + row["tokens"] * row["hidden"])
    if precision == "bf16":
        return [spread, activation, sums]
    if in_masks:
        return [spread, (2 + SCALED_BY_POWERS) * hidden, (2 * 2 + SCALED_BY_POWERS) * inner, 2 * 2 * hidden, sums]
    return [spread, (2 + SCALED) * hidden, activation, (2 + SCALED) * inner, sums]


def choosing_bytes(row, precision="bf16", in_masks=False):
    """Bytes of each kernel before copies are put in order. The measured operator gets the router's scores in bf16
    (collect_moe.py, RenormalizeMoeRoutingMethod), so that it does not contain the router's GEMM."""
    tokens, chosen, experts, count = row["tokens"], row["topk"], row["experts"], row["experts"] // row["ep"]
    pairs = tokens * chosen
    # tensorrt_llm/_torch/modules/fused_moe/routing.py: scores read, experts and weights of 4 B written; or, for more than 128 experts or 8 of
    # them for a token, PyTorch: topk gathers values of 2 and places of 8 B, and sorts them; places to 4 B; values to fp32; softmax.
    if experts <= 128 and chosen <= 8:
        sizes = [2 * tokens * experts + 8 * pairs]
    else:
        sizes = [2 * tokens * experts + 10 * pairs, 20 * pairs, 12 * pairs, 6 * pairs, 8 * pairs]
    # cpp/tensorrt_llm/kernels/cutlass_kernels/moe_gemm/moe_kernels.cu: fusedBuildExpertMapsSortFirstToken up to 256 tokens: experts read, rows of
    # both orders written. Otherwise three kernels: the first reads experts and writes rows by expert, the second sums up counts, the third reads
    # rows and writes both orders and the experts.
    if tokens <= 256 and chosen in (1, 2, 4, 6, 8) and count < 511:
        sizes += [12 * pairs]
    else:
        sizes += [8 * pairs, 16 * count, 16 * pairs]
    if precision == "bf16":
        return [*sizes, 100 * count]  # computeStridesTmaWarpSpecialized: pointers, strides and sizes of both GEMMs of each expert
    if in_masks:  # fused_moe_deepgemm.py, preprocess_after_permute: offsets read, counts and each copy's expert written
        return [*sizes, 12 * count + 8 * pairs * count // experts]
    return sizes


def rows_of(table):
    """The rows of a table as whole numbers."""
    return [{name: int(table[name][i]) for name in COLUMNS} for i in range(len(table))]


def usable(row, least):
    """True for a row with equal whole numbers of tokens per expert, and `least` FLOPs or more."""
    return row["tokens"] * row["topk"] % row["experts"] == 0 and flops(row) >= least


def columns_of(rows):
    """m, n, k and count of both GEMMs as arrays."""
    both = np.array([gemms(row) for row in rows], float)
    return [tuple(both[:, i, j] for j in range(4)) for i in range(2)]
