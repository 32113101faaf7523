# SPDX-License-Identifier: GPL-2.0-only
"""Two GPUs of one report."""

import sqlite3

from nsys_files import two_gpus


def sample(folder):
    two_gpus().write(folder / "report.sqlite")
    return ["report.sqlite"]


def counts(folder):
    """By SQL: a kernel is an operation; those of NCCL have the bytes of the NVTX range before their launch."""
    database = sqlite3.connect(folder / "report.sqlite")
    nccl, = database.execute("SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName "
                             "WHERE value LIKE 'nccl%'").fetchone()
    kernels, = database.execute("SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
    payloads = [row for row, in database.execute("SELECT binaryData FROM NVTX_EVENTS JOIN StringIds ON id = textId "
                                                 "WHERE value = 'ncclAllReduce'")]
    database.close()
    return {"ranks": 2, "operations": {"all_reduce": nccl, "compute": kernels - nccl},
            "bytes": {"all_reduce": sum(int.from_bytes(row[40:48], "little") for row in payloads)}}


def damaged(folder):
    content = (folder / "report.sqlite").read_bytes() if (folder / "report.sqlite").exists() else b""
    if not content:
        sample(folder)
        content = (folder / "report.sqlite").read_bytes()
    for what, bad in {"cut": content[:len(content) // 2], "text": b"no database\n",
                      "garbled": content[:4096] + b"\xff" *
                      (len(content) - 4096)}.items():
        (folder / f"{what}.sqlite").write_bytes(bad)
        yield what, [f"{what}.sqlite"]
