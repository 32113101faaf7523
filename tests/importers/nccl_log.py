# SPDX-License-Identifier: GPL-2.0-only
"""Two servers of two GPUs, whose processes have written into one file."""

import re

from nccl_log_files import two_servers


def sample(folder):
    two_servers().write(folder / "job.log")
    return ["job.log"]


def further(folder):
    """A file for each process, without times, and with what mpirun --tag-output writes in front of lines."""
    two_servers(timed=False, prefix="[1,{rank}]<stdout>:").write_each(folder / "logs")
    return ["logs"]


def counts(folder):
    """From the lines of calls. The host waits before two of each rank's three kernels, and the end of that with two
    messages is a computation of no time. What is gathered has the bytes of all ranks."""
    kinds = {"AllGather": "all_gather", "AllReduce": "all_reduce", "Send": "send", "Recv": "recv"}
    operations, sizes = {"host": 4 * 2, "compute": 4}, {}
    calls = re.findall(r"INFO (\w+): opCount .* count (\d+) datatype (\d) .*nranks=(\d)", (folder / "job.log").read_text())
    for name, count, element, ranks in calls:
        kind = kinds[name]
        operations[kind] = operations.get(kind, 0) + 1
        size = int(count) * {"7": 4, "9": 2}[element] * (int(ranks) if kind == "all_gather" else 1)
        sizes[kind] = sizes.get(kind, 0) + size
    return {"ranks": 4, "operations": operations, "bytes": sizes}


def damaged(folder):
    text = two_servers().text()
    for what, (pattern, new) in {"torn": (r"node1:1002:1052 \[0\] NCCL INFO AllReduce", "AllReduce"),
                                 "type": ("datatype 9", "datatype 99"), "size": ("count 256 ", "count 257 "),
                                 "no calls": (r"opCount.*\n", "\n"), "root": ("Send(.*) root 1 ", r"Send\1 root 7 "),
                                 "date": ("-03-01 12:00:00.001150", "-13-01 12:00:00.001150"),
                                 "no time": (r"\[2026[^]]*\] (node1:1003:1053 \[1\] NCCL INFO AllReduce)", r"\1"),
                                 "a rank": (r".*node1:1003.*\n", "")}.items():
        name = f"{what.replace(' ', '_')}.log"
        (folder / name).write_text(re.sub(pattern, new, text, count=0 if what in ("no calls", "a rank") else 1))
        yield what, [name]
