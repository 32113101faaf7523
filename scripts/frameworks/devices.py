# SPDX-License-Identifier: GPL-2.0-only
"""Times of kernels on a device of workloads/devices, by the formulas of docs/reference/compute_times.md, as for kernels of the
kind `program`."""

import math
import pathlib
import re

import yaml
from importing.errors import InputError, StudyError, did_you_mean, read_text

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "devices"
UNITS = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
TIMES = {"s": 1e12, "ms": 1e9, "us": 1e6, "ns": 1e3, "ps": 1.0}
# The precision that a device uses instead of one that it lacks.
OTHERWISE = {"fp16": ["bf16"], "bf16": ["fp16"], "fp8": ["bf16"], "tf32": ["fp32"], "fp32": ["tf32"]}


def find(name):
    """The file of a device: a path, a name, or the beginning of exactly one name, such as h100."""
    if pathlib.Path(name).is_file():
        return pathlib.Path(name)
    known = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    found = [one for one in known if one == name] or [one for one in known if one.startswith(name)]
    if len(found) != 1:
        what = f"it may be {' or '.join(found)}" if found else f"no such device{did_you_mean(name, known)}"
        raise StudyError(f"--device {name}: {what}; known: {', '.join(known)}, or a file")
    return FOLDER / f"{found[0]}.yaml"


def quantity(text, unit, path, key):
    found = re.fullmatch(rf"([0-9.eE+-]+) ?([kKMGTP]?){unit}", str(text).strip())
    if not found:
        raise InputError(path, None, f"{key}: found '{text}'; expected a number with a unit such as T{unit}")
    return float(found.group(1)) * UNITS[found.group(2)]


def picoseconds(text, path):
    found = re.fullmatch(r"([0-9.eE+-]+) ?(s|ms|us|ns|ps)", str(text).strip())
    if not found:
        raise InputError(path, None, f"launch: found '{text}'; expected a time such as 3 us")
    return float(found.group(1)) * TIMES[found.group(2)]


class Device:
    """The device of the YAML file at `path`."""

    def __init__(self, name):
        path = find(name)
        try:
            data = yaml.safe_load(read_text(path))
            self.name = data["name"]
            self.peak = {key: quantity(value, "FLOP/s", path, key) for key, value in data["peak"].items()}
            self.bandwidth = quantity(data["memory_bandwidth"], "B/s", path, "memory_bandwidth")
            gemms = data.get("gemms") or {"peak_fraction": data.get("efficiency", 1)}
            self.gemm_fraction = float(gemms.get("peak_fraction", 1))
            self.gemm_bandwidth = self.bandwidth * float(gemms.get("bandwidth_fraction", 1))
            self.units, self.tile = gemms.get("units"), gemms.get("tile")
            other = data.get("memory_kernels") or {}
            self.other_bandwidth = self.bandwidth * float(other.get("bandwidth_fraction", 1))
            self.launch = picoseconds(data["launch"], path) if "launch" in data else 0.0
        except (KeyError, TypeError, AttributeError, ValueError, yaml.YAMLError) as wrong:
            raise InputError(path, None, f"it is no device file: {type(wrong).__name__} {wrong}") from None

    def peak_of(self, precision):
        for name in [precision, *OTHERWISE.get(precision, [])]:
            if name in self.peak:
                return self.peak[name]
        raise StudyError(f"{self.name} has no peak for {precision}; it has {', '.join(self.peak)}")

    def gemm(self, m, n, k, count, size, precision):
        """Picoseconds of `count` GEMMs of m x k by k x n that read and write `size` bytes of memory."""
        flops = 2 * m * n * k * count
        if self.units and self.tile:
            tile_m, tile_n = self.tile
            waves = math.ceil(math.ceil(m / tile_m) * math.ceil(n / tile_n) * count / self.units)
            flops = max(flops, waves * 2 * tile_m * tile_n * k * self.units)
        seconds = max(flops / (self.peak_of(precision) * self.gemm_fraction), size / self.gemm_bandwidth)
        return round(self.launch + seconds * 1e12)

    def other(self, size):
        """Picoseconds of a kernel that reads and writes `size` bytes of memory."""
        return round(self.launch + size / self.other_bandwidth * 1e12)


def precision_of(name):
    """Precision of GEMMs of a type of elements: float32 as by default in the libraries."""
    name = str(name).lower().replace(" ", "").removeprefix("c10::")
    if name.startswith(("f8", "float8")) or name in ("s8", "u8", "i8", "int8", "uint8", "char", "signedchar"):
        return "fp8"
    if name in ("bf16", "bfloat16"):
        return "bf16"
    if name in ("f16", "half", "float16"):
        return "fp16"
    return "fp32"
