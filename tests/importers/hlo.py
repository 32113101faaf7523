# SPDX-License-Identifier: GPL-2.0-only
"""The module of tests/hlo_files.py: a loop of three rounds on four devices."""

import re

from hlo_files import STABLE, STEP

ROUNDS, DEVICES = 3, 4


def sample(folder):
    (folder / "step.hlo").write_text(STEP)
    return ["step.hlo"]


def further(folder):
    (folder / "step.mlir").write_text(STABLE)
    return ["step.mlir"]


def counts(folder):
    """Lines of the text by what they name; those of the loop's body three times."""
    text = (folder / "step.hlo").read_text()
    body, entry = text[text.index("%body"):text.index("%cond")], text[text.index("ENTRY"):]
    kernels = len(re.findall(r" (?:fusion|add)\(", body)) * ROUNDS
    pairs = len(re.findall(r"\{\d,\d\}", re.search(r"source_target_pairs=(\S+)", entry).group(1)))
    reduced = 2 * 1024 * 4096 * len(re.findall("all-reduce-start", body)) * ROUNDS * DEVICES
    return {"ranks": DEVICES,
            "operations": {"compute": kernels * DEVICES, "all_reduce": ROUNDS * DEVICES, "all_gather": DEVICES,
                           "send": pairs, "recv": pairs},
            "bytes": {"all_reduce": reduced, "all_gather": DEVICES * 4 * 2 * 1024 * 1024,
                      "send": pairs * 2 * 1024 * 1024, "recv": pairs * 2 * 1024 * 1024}}


def damaged(folder):
    for what, text in {"cut": STEP[:1500], "shape": STEP.replace("bf16[1024,4096]{1,0} fusion", "fusion", 1),
                       "group": STEP.replace("{{0,1,2,3}}", "{{0,1,2,7}}")}.items():
        (folder / f"{what}.hlo").write_text(text)
        yield what, [f"{what}.hlo"]
