# SPDX-License-Identifier: GPL-2.0-only
"""Logs of NCCL for tests, by its formats: ncclDebugLog of src/debug.cc, ncclCommInitRankFunc of src/init.cc and
ncclEnqueueCheck of src/enqueue.cc (github.com/NVIDIA/nccl, 2.27)."""

import zlib

TYPES = {"int8": 0, "float16": 6, "float32": 7, "bfloat16": 9}


class Job:
    """Ranks 0 to world - 1, each a process with one GPU, `on_server` of them on each server. Lines are in the order of
    calls of these functions; times are in microseconds after noon, and there are none without `timed`."""

    def __init__(self, world, on_server=2, timed=True, prefix="", old=False):
        self.world, self.on_server, self.timed, self.prefix, self.old = world, on_server, timed, prefix, old
        self.lines, self.counts, self.standing = [], {}, False
        self.members = {}  # communicator: ranks

    def place(self, rank):
        """(server, process, device)"""
        return f"node{rank // self.on_server}", 1000 + rank, rank % self.on_server

    def line(self, rank, text, at=0):
        host, process, device = self.place(rank)
        stamp = f"[2026-03-01 12:{at // 60_000_000 % 60:02}:{at // 1_000_000 % 60:02}.{at % 1_000_000:06}] " if self.timed else ""
        self.lines.append((rank, f"{self.prefix.format(rank=rank)}{stamp}{host}:{process}:{process + 50} [{device}] NCCL INFO {text}"))

    def pointer(self, rank, name):
        return f"0x{0x7f0000001000 + 0x10000 * rank + 0x100 * list(self.members).index(name):x}"

    def create(self, name, ranks=None, parent=None, color=None, at=0):
        """ncclCommInitRank, or with a `parent` ncclCommSplit."""
        ranks = list(range(self.world)) if ranks is None else ranks
        self.members[name] = ranks
        for place, rank in enumerate(ranks):
            device = rank % self.on_server
            text = (f"comm {self.pointer(rank, name)} rank {place} nranks {len(ranks)} cudaDev {device} nvmlDev {device} "
                    f"busId {0x1a000 + 0x1000 * device:x} ")
            if self.old:
                self.line(rank, f"{text}- Init COMPLETE", at)
                continue
            for when in ("START", "COMPLETE"):
                if parent is None:
                    made = f"ncclCommInitRankConfig {text}commId 0x{hash_of(name):x} - Init {when}"
                else:
                    made = (f"ncclCommSplit {text}parent {self.pointer(rank, parent)} splitCount 1 color {color} key {place}"
                            f"{' ' if when == 'COMPLETE' else ''}- Init {when}")
                self.line(rank, made, at)

    def call(self, rank, what, name, count, at=0, root=0, dtype="float32", stream="0x55d0", launched=True):
        """`launched`: a later call is in another kernel."""
        op = self.counts.setdefault((rank, name), 0)
        self.counts[rank, name] += launched and not self.standing
        self.line(rank, f"{what}: opCount {op:x} sendbuff 0x7f2000000000 recvbuff {'(nil)' if what == 'Send' else '0x7f2000400000'} "
                  f"count {count} datatype {TYPES[dtype]} op 0 root {root} comm {self.pointer(rank, name)} "
                  f"[nranks={len(self.members[name])}] stream {stream}", at)

    def all_call(self, what, name, count, at=0, **more):
        for rank in self.members[name]:
            self.call(rank, what, name, count, at, **more)

    def exchange(self, rank, name, count, to, source, at=0, **more):
        """A send and a receive in one group; ranks in the communicator."""
        self.call(rank, "Send", name, count, at, root=to, launched=False, **more)
        self.call(rank, "Recv", name, count, at + 2, root=source, **more)

    def text(self, rank=None):
        return "".join(f"{text}\n" for of, text in self.lines if rank in (None, of))

    def write(self, path):
        """The output of the job."""
        path.write_text("NCCL version 2.27.3+cuda12.9\n" + self.text())

    def write_each(self, folder):
        """NCCL_DEBUG_FILE=nccl.%h.%p"""
        folder.mkdir(exist_ok=True)
        for rank in range(self.world):
            host, process, _ = self.place(rank)
            (folder / f"nccl.{host}.{process}").write_text(self.text(rank))


def hash_of(name):
    return 1 << 60 | zlib.crc32(name.encode())


def two_servers(**more):
    """Two servers of two GPUs. Pairs on different servers are communicators of their own. A step of each rank: parameters of
    4 KiB are gathered from all; 100 us later activations go around the ring of all; 50 us later gradients of 2 KiB are summed
    by the pairs."""
    job = Job(4, **more)
    job.create("world")
    for pair in range(2):
        job.create(f"pair{pair}", [pair, 2 + pair], parent="world", color=pair)
    for rank in range(4):
        job.call(rank, "AllGather", "world", 256, at=1000)
        job.exchange(rank, "world", 1024, (rank + 1) % 4, (rank - 1) % 4, at=1100)
        job.call(rank, "AllReduce", f"pair{rank % 2}", 1024, at=1150, dtype="bfloat16", stream="0x55d8")
    return job
