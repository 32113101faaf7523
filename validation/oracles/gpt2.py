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
        """The logits reuse the token embedding."""
        return (self.V + self.positions) * self.h + self.L * self.block_parameters() + 2 * self.h


@dataclasses.dataclass
class Device:
    peak: Fraction  # operations per second
    gemms: Fraction  # fraction of the peak that GEMMs reach
    fused: Fraction  # the same of attention as one kernel
    bandwidth: Fraction  # bytes per second

    @staticmethod
    def of(description, precision):
        for key in ("launch", "tiles"):
            if key in description or key in description.get("gemms", {}):
                raise ArithmeticError(f"this oracle knows devices without `{key}` only")
        number, unit = description["peak"][precision].split()
        peak = Fraction(number) * {"GFLOP/s": 10**9, "TFLOP/s": 10**12, "PFLOP/s": 10**15}[unit]
        number, unit = description["memory_bandwidth"].split()
        bandwidth = Fraction(number) * {"GB/s": 10**9, "TB/s": 10**12}[unit]
        gemms = description["gemms"]["peak_fraction"]
        fused = description.get("fused_kernels", {}).get("peak_fraction", gemms)
        return Device(peak, Fraction(str(gemms)), Fraction(str(fused)), bandwidth)

    def time(self, operations, traffic, fraction):
        """The roofline of one kernel, in whole picoseconds."""
        exact = max(Fraction(operations) / (self.peak * fraction), Fraction(traffic) / self.bandwidth) * PICOSECONDS
        return int(exact + Fraction(1, 2))

    def gemm(self, m, n, k):
        """m x k times k x n in 2-byte precision."""
        return self.time(2 * m * n * k, 2 * (m * k + k * n + m * n), self.gemms)

    def memory(self, elements):
        return self.time(0, 2 * elements, 1)


def linear(device, rows, columns, inner):
    """(forward, backward) of a linear layer: backward one GEMM each for the gradients of its input and its weights."""
    backward = device.gemm(rows, inner, columns) + device.gemm(inner, columns, rows)
    return device.gemm(rows, columns, inner), backward


def attention(device, model, b, s):
    """One kernel over queries, keys, values and the result, 4 b s h elements. The causal mask keeps half of the scores:
    2 GEMMs of b s^2 h / 2 forward; backward 5, and twice the traffic (Dao et al., arXiv:2205.14135, algorithm 4)."""
    half = b * s * s * model.h  # 2 operations for each of b s^2 h / 2
    elements = 4 * b * s * model.h
    return device.time(2 * half, 2 * elements, device.fused), device.time(5 * half, 4 * elements, device.fused)


def passes(model, device, b, s):
    """(forward, backward) time of embedding, block and head: b sequences of s tokens."""
    h, T = model.h, b * s

    def total(gemms, forward_elements, backward_elements):
        return (
            sum(forward for forward, _ in gemms) + sum(device.memory(n) for n in forward_elements),
            sum(backward for _, backward in gemms) + sum(device.memory(n) for n in backward_elements),
        )

    block = [
        linear(device, T, 3 * h, h),
        attention(device, model, b, s),
        linear(device, T, h, h),
        linear(device, T, 4 * h, h),
        linear(device, T, h, 4 * h),
    ]
    # Forward: norm (in, out), residual sum (two in, one out), norm, activation (4h in, 4h out), residual sum. In the
    # backward pass the norms read their input again and add to the gradient; the activation reads the gradient and its
    # input.
    return {
        "embedding": total([], [3 * h * T], [3 * h * T] * 2),
        "block": total(block, [2 * h * T, 3 * h * T, 2 * h * T, 8 * h * T, 3 * h * T],
                       [16 * h * T, 4 * h * T, 3 * h * T, 4 * h * T]),
        "head": total([linear(device, T, model.V, h)], [2 * h * T, 2 * model.V * T], [2 * model.V * T, 4 * h * T]),
    }


def compute_time(model, device, b, s, gradient_bytes):
    """Forward and backward passes, and Adam: gradient, 32-bit weight and two moments in; these three and the weight out."""
    of_part = passes(model, device, b, s)
    step = sum(count * sum(of_part[part]) for part, count in (("embedding", 1), ("block", model.L), ("head", 1)))
    return step + device.time(0, model.parameters() * (gradient_bytes + 12 + 12 + 2), 1)
