# SPDX-License-Identifier: GPL-2.0-only
"""GPUs of one model that differ: how much longer arithmetic takes because a step waits for the slowest GPU of a job."""

import dataclasses
import json
import pathlib
import statistics

import yaml

# Standard deviation from GPU to GPU, and the highest one of a machine. P. Sinha et al., SC'22, arXiv:2208.11035: 8 % between a box
# plot's whiskers in the mean of five systems, and 22 % at most; of a normal distribution these are 5.4 standard deviations apart.
# Why these, and why of arithmetic alone: ../published/training/notes/gpus_that_differ.md.
SPREAD, HIGH_SPREAD = 0.015, 0.041
ASSUMPTION = (f"GPUs differ by a standard deviation of {100 * SPREAD:g} % in the time of arithmetic, and a step waits for the slowest "
              "one: a row has the mean of the largest of its GPUs")  # fmt: skip


def mean_of_largest(count):
    """The mean of the largest of `count` independent standard normal numbers, the integral of z n phi(z) Phi(z)^(n-1)
    (David and Nagaraja, Order Statistics, section 3.1), by the trapezoidal rule."""
    normal, step = statistics.NormalDist(), 1 / 64
    return step * sum(z * count * normal.pdf(z) * normal.cdf(z) ** (count - 1) for z in (i * step for i in range(-512, 513)))


def mean_of_slowest(stages, ranks, spread):
    """The mean of the longest time of the stages of a pipeline. `stages`: (seconds, of it those of arithmetic); each has the
    slowest of `ranks` GPUs. The integral of 1 - the product of Phi^ranks, from a time that all exceed to one that none does."""
    normal, steps = statistics.NormalDist(), 2000
    low, high = max(seconds for seconds, _ in stages), max(seconds + 8 * spread * arithmetic for seconds, arithmetic in stages)
    low -= 8 * spread * max(arithmetic for _, arithmetic in stages)
    if low >= high:
        return high

    def exceeded(time):
        below = 1.0
        for seconds, arithmetic in stages:
            below *= normal.cdf((time - seconds) / (spread * arithmetic)) ** ranks
        return 1 - below

    width = (high - low) / steps
    return low + width * (sum(exceeded(low + i * width) for i in range(1, steps)) + 0.5)


@dataclasses.dataclass(frozen=True)
class Waiting:
    """Which ranks of a job wait for which others. `together`: those of a stage that wait for each other within a micro-batch.
    `passes`: micro-batches of a step times the virtual stages of a rank. `stages`: of each stage of a pipeline the seconds that a
    rank computes, and those of arithmetic among them."""

    gpus: int
    together: int = 1
    passes: float = 1
    stages: tuple = ()

    def factor(self, spread=SPREAD):
        """How many times as long arithmetic takes as on a mean GPU. In a pipeline the stage that takes longest works on `passes`
        one after the other, with a slower GPU or with more work than others; before and after them the other stages each work on
        one, which the step takes in addition."""
        if len(self.stages) < 2:
            return 1 + spread * mean_of_largest(self.gpus)
        slowest = mean_of_slowest(self.stages, self.gpus // len(self.stages), spread)
        longest = 1 + min((slowest - seconds) / arithmetic for seconds, arithmetic in self.stages)
        fill = len(self.stages) - 1
        return (self.passes * longest + fill * (1 + spread * mean_of_largest(self.together))) / (self.passes + fill)


def stages_of(compute):
    """Stages for Waiting. `compute`: (how many times as long arithmetic takes) -> seconds that a rank of each stage computes."""
    slower = 1.05
    return tuple((mean, (slow - mean) / (slower - 1)) for mean, slow in zip(compute(1), compute(slower), strict=True))


def slow_down(device, factor):
    """Divides the rates of arithmetic of a device's map."""
    for precision, peak in device["peak"].items():
        rate, unit = peak.split()
        device["peak"][precision] = f"{float(rate) / factor:.9g} {unit}"


def slower_device(path, factor, folder):
    """The path of a device file whose arithmetic takes `factor` times as long."""
    device = yaml.safe_load(pathlib.Path(path).read_text())
    slow_down(device, factor)
    slower = folder / "slowest-device.yaml"
    slower.write_text(json.dumps(device))  # JSON is YAML
    return str(slower)
