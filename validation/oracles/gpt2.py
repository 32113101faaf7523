# SPDX-License-Identifier: GPL-2.0-only
"""GPT-2's training step on paper: parameters, operations, memory traffic, and the roofline."""

import dataclasses
from fractions import Fraction


PICOSECONDS = 10**12


@dataclasses.dataclass
class Gpt2:
    h: int  # hidden size
    L: int  # blocks
    V: int  # vocabulary
    positions: int

    @staticmethod
    def of(config):
        return Gpt2(config["n_embd"], config["n_layer"], config["vocab_size"], config["n_positions"])

    def block_parameters(self):
        """12 h^2 of the six matrices; 9 h of their biases (3h + h + 4h + h); 4 h of two layer norms."""
        return 12 * self.h**2 + 13 * self.h

    def parameters(self):
        """The logits use the token embedding again."""
        return (self.V + self.positions) * self.h + self.L * self.block_parameters() + 2 * self.h


@dataclasses.dataclass
class Device:
    flops: Fraction  # per second, that large matrix products reach
    bandwidth: int  # bytes per second

    @staticmethod
    def of(description, precision):
        number, unit = description["peak"][precision].split()
        peak = Fraction(number) * {"GFLOP/s": 10**9, "TFLOP/s": 10**12, "PFLOP/s": 10**15}[unit]
        number, unit = description["memory_bandwidth"].split()
        bandwidth = Fraction(number) * {"GB/s": 10**9, "TB/s": 10**12}[unit]
        return Device(peak * Fraction(str(description["efficiency"])), int(bandwidth))

    def time(self, operations, traffic):
        """The roofline, in whole picoseconds."""
        exact = max(Fraction(operations) / self.flops, Fraction(traffic, self.bandwidth)) * PICOSECONDS
        return int(exact + Fraction(1, 2))


def passes(model, device, b, s):
    """(forward, backward) time of embedding, block and head, in 2-byte precision: b sequences of s tokens."""
    h, tokens, element = model.h, b * s, 2
    weights = model.block_parameters()
    # Inputs and results of what is one kernel each, per token: two norms (h, h), the projections (h, 3h), attention
    # (3h, h), output (h, h), up (h, 4h), activation (4h, 4h), down (4h, h), two residual sums (2h, h).
    per_token = 2 * 2 * h + 4 * h + 4 * h + 2 * h + 5 * h + 8 * h + 5 * h + 2 * 3 * h
    costs = {
        "embedding": (0, 3 * h * tokens * element),
        "block": (24 * b * s * h**2 + 4 * b * s**2 * h, (per_token * tokens + weights) * element),
        "head": (2 * tokens * h * model.V, ((3 * h + 2 * model.V) * tokens + model.V * h) * element),
    }
    return {
        part: (device.time(work, traffic), device.time(2 * work, 2 * traffic)) for part, (work, traffic) in costs.items()
    }


def compute_time(model, device, b, s, gradient_bytes):
    """Forward and backward passes, and Adam: gradient, 32-bit weight and two moments in; these three and the weight out."""
    of_part = passes(model, device, b, s)
    step = sum(count * sum(of_part[part]) for part, count in (("embedding", 1), ("block", model.L), ("head", 1)))
    return step + device.time(0, model.parameters() * (gradient_bytes + 12 + 12 + 2))


