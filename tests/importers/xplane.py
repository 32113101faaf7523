# SPDX-License-Identifier: GPL-2.0-only
"""Two GPUs of one process, and four TPUs of two processes."""

from xplane_files import Module, Profile, iota, shape, two_gpus

BYTES = 4 << 20


def sample(folder):
    two_gpus().write(folder / "host0.xplane.pb")
    return ["host0.xplane.pb"]


def further(folder):
    """The order of processes is that of numbers in their names."""
    part, whole = shape("bf16", 1 << 20), shape("bf16", 4 << 20)
    module = Module("jit_step", 8, range(4)).computation(
        "main.2", ("p", "parameter", part), ("all-gather.1", "all-gather", whole, ["p"], iota([1, 4], [4])),
        ("fusion.1", "fusion", whole, ["all-gather.1"]))
    module.assigned = [[0, 1, 2, 3]]
    for host in (2, 10):
        profile = Profile("TPU", 2, [module])
        for device in range(2):
            profile.op(device, 10, 30, "all-gather.1", "jit_step")
            profile.op(device, 40, 20, "fusion.1", "jit_step")
        profile.write(folder / "tpu" / "plugins" / "profile" / "2026_11_29" / f"host{host}.xplane.pb")
    return ["tpu"]


def counts(folder):
    """By the names of kernels in the bytes: one of NCCL and three others for each GPU."""
    content = (folder / "host0.xplane.pb").read_bytes()
    gpus = content.count(b"ncclDevKernel_AllReduce")
    others = sum(content.count(name) for name in (b"loop_add_fusion_1", b"gemm_fusion_dot_2", b"loop_add_fusion_3"))
    return {"ranks": gpus, "operations": {"all_reduce": gpus, "compute": others}, "bytes": {"all_reduce": gpus * BYTES}}


def damaged(folder):
    content = two_gpus().coded()
    for what, bad in {"cut": content[:len(content) // 2], "text": b"no profile\n", "empty": b"",
                      "garbled": content[:200] + b"\xff" * (len(content) - 200)}.items():
        (folder / f"{what}.xplane.pb").write_bytes(bad)
        yield what, [f"{what}.xplane.pb"]
