# SPDX-License-Identifier: GPL-2.0-only
"""A training step, or one inference, of a graph on the ranks of data, tensor and pipeline parallelism."""

from frameworks.rank_files import RankFile

from .plan import ADAM_BYTES

COMPUTE, TENSOR, DATA = 0, 1, 2  # streams
FORWARD_TAG, BACKWARD_TAG = 0, 1
# Gradients are sent in buckets as they are produced (torch.nn.parallel.DistributedDataParallel, bucket_cap_mb).
BUCKET = 25 << 20


class Layout:
    """Ranks: those of a tensor-parallel group are neighbours, then come data-parallel replicas, then stages."""

    def __init__(self, data, tensor, pipeline):
        self.data, self.tensor, self.pipeline = data, tensor, pipeline
        self.ranks = data * tensor * pipeline

    def place(self, rank):
        """(stage, replica, part)."""
        return rank // (self.tensor * self.data), rank // self.tensor % self.data, rank % self.tensor

    def rank(self, stage, replica, part):
        return part + self.tensor * (replica + self.data * stage)

    def groups(self, rank):
        stage, replica, part = self.place(rank)
        found = {"tensor": [self.rank(stage, replica, i) for i in range(self.tensor)],
                 "data": [self.rank(stage, i, part) for i in range(self.data)]}
        return {name: ranks for name, ranks in found.items() if len(ranks) > 1}


class StepWriter:
    """`works` of the rank's stage, `into` and `out` bytes at its two cuts, `micro_batches` in the order of 1F1B
    (Narayanan et al., arXiv:2104.04473, section 2.2)."""

    def __init__(self, file, rank, layout, names, works, cuts, micro_batches, device, trains):
        self.rank, self.layout, self.works, self.device, self.trains = rank, layout, works, device, trains
        self.out, self.names = RankFile(file), {name: names.of(name, ranks) for name,
                                                ranks in layout.groups(rank).items()}
        self.stage, self.replica, self.part = layout.place(rank)
        self.into = cuts[self.stage - 1] if self.stage > 0 else 0
        self.outgoing = cuts[self.stage] if self.stage < layout.pipeline - 1 else 0
        self.micro_batches = micro_batches
        self.last, self.pending, self.held = None, set(), {}
        self.reductions, self.bucket = set(), 0

    def write(self):
        for passes, batch in self.order():
            self.forward(batch) if passes == "forward" else self.backward(batch)
        if self.trains:
            self.finish()
        self.out.flush()

    def order(self):
        count = self.micro_batches
        if not self.trains:
            return [("forward", i) for i in range(count)]
        first = min(count, self.layout.pipeline - 1 - self.stage)
        order = [("forward", i) for i in range(first)]
        for i in range(count):
            order += [("forward", first + i)] if first + i < count else []
            order.append(("backward", i))
        return order

    def compute(self, name, took, flops=0):
        after = self.pending | ({self.last} if self.last is not None else set())
        self.last = self.out.compute(name, after, took, COMPUTE, flops=flops)
        self.pending = set()

    def tensor_calls(self, calls, name):
        for kind, size in calls:
            after = self.pending | ({self.last} if self.last is not None else set())
            self.pending = {self.out.collective(f"{kind} of {name}", after, kind, size, self.names["tensor"], TENSOR)}


    def receive(self, stage, size, tag, name):
        if size:
            peer = self.layout.rank(stage, self.replica, self.part)
            self.pending.add(self.out.message(name, set(), False, size, peer, tag))

    def send(self, stage, size, tag, name):
        if size:
            peer = self.layout.rank(stage, self.replica, self.part)
            self.out.message(name, self.pending | ({self.last} if self.last is not None else set()), True, size, peer,
                             tag)

    def forward(self, batch):
        self.receive(self.stage - 1, self.into, FORWARD_TAG, f"activations of micro-batch {batch}")
        for work in self.works:
            self.tensor_calls(work.before, work.label)
            self.compute(work.label, work.forward, work.flops)
            self.tensor_calls(work.behind, work.label)
        self.send(self.stage + 1, self.outgoing, FORWARD_TAG, f"activations of micro-batch {batch}")

    def backward(self, batch):
        self.receive(self.stage + 1, self.outgoing, BACKWARD_TAG, f"gradients of micro-batch {batch}")
        for work in reversed(self.works):
            self.tensor_calls(work.backward_before, f"gradient of {work.label}")
            self.compute(f"gradient of {work.label}", work.backward, 2 * work.flops)
            self.tensor_calls(work.backward_behind, f"gradient of {work.label}")
            if batch == self.micro_batches - 1:
                self.reduce(work.parameter_bytes)
        self.send(self.stage - 1, self.into, BACKWARD_TAG, f"gradients of micro-batch {batch}")

    def reduce(self, size, rest=False):
        self.bucket += size
        if self.layout.data > 1 and (self.bucket >= BUCKET or rest) and self.bucket:
            self.reductions.add(self.out.collective("gradients", {self.last}, "all_reduce", self.bucket,
                                                    self.names["data"], DATA))
            self.bucket = 0

    def finish(self):
        self.reduce(0, rest=True)
        self.pending |= self.reductions
        parameters = sum(work.parameters for work in self.works)
        self.compute("optimizer", self.device.other(parameters * ADAM_BYTES))
