# SPDX-License-Identifier: GPL-2.0-only
"""Random workloads `program`: operations of ranks that depend on each other."""

from draw import US
from kinds.parts import BLOCKS, collective_options, noise, ranks_of, spread

STREAMS = ["compute", "communication", "parameters", "tensor", "context", "expert", "storage", "none"]


class Program:
    """Operations in an order in which all can be executed, so that dependencies upwards never wait for each other."""

    def __init__(self, d, ranks):
        self.d, self.ranks = d, ranks
        self.ids = {rank: [] for rank in range(ranks)}
        self.operations = []
        self.communicators = {}
        self.calls = 0 if d.chance(0.1) else None  # all collectives have the number of their call, or none does
        if ranks > 1 and d.chance(0.5):
            for number in range(d.between(1, 2)):
                self.communicators[f"group{number}"] = d.random.sample(range(ranks), d.between(1, ranks))

    def common(self, operation, ranks):
        d = self.d
        known = set(self.ids[ranks[0]]).intersection(*(self.ids[rank] for rank in ranks)) if ranks else set()
        if known and d.chance(0.6):
            operation["after"] = d.some(sorted(known), 2)
        if d.chance(0.7):
            operation["id"] = f"o{len(self.operations)}"
            for rank in ranks:
                self.ids[rank].append(operation["id"])
        if d.chance(0.1):
            operation["not_before"] = d.time(0, 50 * US)
        if d.chance(0.1):
            operation["label"] = "a label"
        self.operations.append(operation)

    def compute(self):
        d = self.d
        ranks = sorted(d.some(range(self.ranks)))
        operation = {"rank": "all" if len(ranks) == self.ranks else ranks, "compute": d.time(0, 20 * US)}
        if d.chance(0.2):
            operation["stream"] = d.word(STREAMS)
        self.common(operation, ranks)

    def collective(self):
        d = self.d
        name = d.pick([*self.communicators, "all"])
        members = self.communicators.get(name, list(range(self.ranks)))
        kind = d.pick(["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "barrier"])
        operation = {"collective": kind, "size": d.size(1, 200_000)}
        if kind in BLOCKS and d.chance(0.15):
            del operation["size"]
            rows = [[d.size(1, 20_000) for _ in members] for _ in (members if kind == "all_to_all" else [0])]
            operation["blocks"] = rows if kind == "all_to_all" else rows[0]
        if self.calls is not None:
            operation["call"] = d.count(self.calls, self.calls)
            self.calls += 1
        elif d.chance(0.1):
            operation["tuning"] = d.word(["own"])
        if name != "all":
            operation["communicator"] = name
        if kind == "broadcast" and d.chance(0.5):
            operation["root"] = d.count(0, len(members) - 1)
        if d.chance(0.3) or kind in ("all_to_all", "barrier"):
            suit = {"all_to_all": ["pairwise", "linear", "nccl_p2p"], "barrier": ["linear", "binomial", "bruck"]}
            operation["algorithm"] = d.word(suit.get(kind, ["ring", "nccl", "best"]))
        self.common(operation, members)

    def message(self):
        d = self.d
        a, b = d.random.sample(range(self.ranks), 2)
        size = d.size(0, 100_000)
        tag = {"tag": d.count(0, 3)} if d.chance(0.3) else {}
        queue_pair = {"queue_pair": d.count(0, 3)} if d.chance(0.2) else {}
        self.common({"rank": a, "send": size, "to": b, **tag, **queue_pair}, [a])
        self.common({"rank": b, "recv": size, "from": a, **tag}, [b])


def program(d, files, facts):
    ranks = ranks_of(d, facts.computing)
    made = Program(d, ranks)
    for _ in range(d.between(1, 15)):
        d.pick([made.compute, made.collective, *([made.message] * 2 if ranks > 1 else [])])()
    result = {"kind": "program", "ranks": d.count(ranks, ranks), "operations": made.operations}
    if made.communicators:
        result["communicators"] = made.communicators
    if "tuning" in str(made.operations):
        result["tunings"] = {"own": collective_options(d, files, 2, facts)}
    if d.chance(0.2):
        result["read_ahead"] = d.count(1, 8)
    if d.chance(0.2):
        result["compute_noise"] = noise(d, ranks)
    if d.chance(0.1):
        result["compute_slowdown_while_communicating"] = d.number(1, 2)
    for key, value in collective_options(d, files, ranks, facts).items():
        if key in ("buffer_size", "channels", "chunk_size", "p2p_chunk_size", "slices_per_chunk", "credits") and d.chance(0.3):
            result[key] = value
    spread(d, result)
    return result
