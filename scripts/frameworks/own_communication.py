# SPDX-License-Identifier: GPL-2.0-only
"""Kernels and copies that communicate without NCCL: a trace does not say what they send, or to whom, so that they count as
compute of their traced time. And calls that no kernel of NCCL executes."""

import re

from .communications import is_nccl

# Of the sources of vLLM, SGLang and AITER (csrc/custom_all_reduce.cuh, quickreduce), TensorRT-LLM
# (customAllReduceKernels.cu, allReduceFusionKernels.cu, moeAlltoAllKernels.cu), PyTorch (c10d/symm_mem, intra_node_comm.cu), Transformer Engine
# (userbuffers.cu), DeepEP (csrc/kernels, hybrid_ep), NCCL EP, UCCL, Iris, NVSHMEM, MSCCL++, and the copies that CUPTI and ROCm name between two devices.
PATTERNS = ("cross_device_reduce", "all_?reduce", "all_?gather", "reduce_?scatter", "all_?to_?all", "one_?shot", "two_?shot",
            "multimem", "deep_ep", "nvshmem", "rocshmem", "mscclpp", "userbuffers", "symmetric_memory", "symm_mem",
            "(?:put|wait)_signal_kernel", "EpDispatch|EpCombine", "moe_?a2a", "hybrid_ep", "nccl_?ep", "uccl", "iris_",
            "memcpy (?:p2p|ptop|peer)")
OWN = re.compile("|".join(PATTERNS), re.IGNORECASE)
MOST = 8  # names in a remark


def communicates_by_itself(name):
    return bool(OWN.search(short(name))) and not is_nccl(name)


def short(name):
    """A kernel's name without its type and parameters."""
    return re.sub(r"^void |[<(].*", "", name.replace("(anonymous namespace)::", "")).strip()[:80] or name[:80]


def remarks(timelines):
    """[(file, text)]: at most one, for all traced ranks together."""
    counts, times, whole, first = {}, {}, 0, None
    for timeline in timelines:
        names = {number: short(name) for name, number in timeline.names.items() if communicates_by_itself(name)}
        for number, count, took in timeline.all("SELECT name, COUNT(*), SUM(end - start) FROM ops GROUP BY name"):
            whole += took
            if number in names:
                first = first or timeline.path
                counts[names[number]] = counts.get(names[number], 0) + count
                times[names[number]] = times.get(names[number], 0) + took
    if not counts:
        return []
    listed = sorted(counts, key=lambda name: (-times[name], name))
    parts = [f"{name} ({counts[name]} times, {share(times[name], whole)})" for name in listed[:MOST]]
    more = f", and {len(listed) - MOST} more" if len(listed) > MOST else ""
    return [(first, f"kernels and copies communicate without NCCL, and count as compute with their traced times, which no "
                    f"network changes: {share(sum(times.values()), whole)} of the accelerators' time; {', '.join(parts)}"
                    f"{more}")]


def left_out(timelines, counts):
    """[(file, text)]: at most one, of the kinds of calls that the host has made, and no kernel of NCCL executes; `counts`:
    of the calls that have been written."""
    found, first = {}, None
    for timeline in timelines:
        for kind, count in timeline.all("SELECT json_extract(call, '$.kind'), COUNT(*) FROM calls WHERE used = 0 AND call IS NOT "
                                        "NULL GROUP BY 1") if timeline.has_ops else ():
            if kind not in counts and kind != "unknown":
                first = first or timeline.path
                found[kind] = found.get(kind, 0) + count
    listed = ", ".join(f"{kind} ({count} times)" for kind, count in sorted(found.items()))
    return [(first, f"calls that the host has made, and no kernel of NCCL or RCCL executes, are left out, as those of Gloo, "
                    f"oneCCL or copy engines: {listed}")] if found else []


def share(part, whole):
    return f"{100 * part / whole:.3g} %" if whole else "0 %"
