# SPDX-License-Identifier: GPL-2.0-only
"""GPUs of one model that differ: how much longer arithmetic takes because a step waits for the slowest GPU of a job."""

import dataclasses
import json
import pathlib
import statistics

import yaml

# Standard deviation from GPU to GPU, and the highest one of a machine. P. Sinha et al., SC'22, arXiv:2208.11035: 8 % between a box
# plot's whiskers in the mean of five systems, and 22 % at most; of a normal distribution these are 5.4 standard deviations apart.
# Why these, and why of arithmetic alone: ../published/training/README.md, "GPUs that differ".
SPREAD, HIGH_SPREAD = 0.015, 0.041
ASSUMPTION = (f"GPUs differ by a standard deviation of {100 * SPREAD:g} % in the time of arithmetic, and a step waits for the slowest "
              "one: a row has the mean of the largest of its GPUs")  # fmt: skip


def mean_of_largest(count):
    """The mean of the largest of `count` independent standard normal numbers, the integral of z n phi(z) Phi(z)^(n-1)
    (David and Nagaraja, Order Statistics, section 3.1), by the trapezoidal rule."""
    normal, step = statistics.NormalDist(), 1 / 64
    return step * sum(z * count * normal.pdf(z) * normal.cdf(z) ** (count - 1) for z in (i * step for i in range(-512, 513)))


@dataclasses.dataclass(frozen=True)
class Waiting:
    """Which ranks of a job wait for which others. `together`: those of a stage that wait for each other within a micro-batch.
    `passes`: micro-batches of a step times the virtual stages of a rank."""

    gpus: int
    together: int = 1
    stages: int = 1
    passes: float = 1

    def factor(self, spread=SPREAD):
        """How many times as long arithmetic takes as on a mean GPU. The stage with the slowest GPU works on `passes` one after the
        other; before and after them the others each work on one, which the step takes in addition."""
        slowest, others = (1 + spread * mean_of_largest(count) for count in (self.gpus, self.together))
        return (self.passes * slowest + (self.stages - 1) * others) / (self.passes + self.stages - 1)


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
