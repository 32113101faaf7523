# SPDX-License-Identifier: GPL-2.0-only
"""Tables of measured kernels: four layouts, distinguished by their columns.

  gemms      precision, m, n, k, time_us            C[m, n] = A[m, k] B[k, n]; `count` of them in one kernel
  attention  batch, seq, heads, kv_heads, head_dim, time_us    causal, forward; `gpu` if the table has several
  memory     op, rows, cols, bytes, time_us         softmax and ln along cols, all other elementwise; `gpu` the same
  experts    tokens, hidden, inter, topk, experts, tp, ep, time_us    a layer of experts of one GPU (devices/experts.py); `gpu`,
             `precision` (bf16) and `load` if there are several: bf16, fp8_block and `balanced` count

Lines that begin with # are left out. A shape is held out, on all devices alike, if the SHA-1 of its text is divisible
by three; nothing is fitted to those.
"""

import csv
import hashlib

import numpy as np

from devices.experts import COLUMNS as EXPERTS
from devices.experts import PRECISIONS as OF_EXPERTS

PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "bf16": "bf16", "fp16": "fp16", "fp8": "fp8"}
TRAFFIC = {"softmax": "softmax", "ln": "norm", "norm": "norm"}
LAYOUTS = {
    "gemms": ["precision", "m", "n", "k", "time_us"],
    "attention": ["batch", "seq", "heads", "kv_heads", "head_dim", "time_us"],
    "memory": ["op", "rows", "cols", "bytes", "time_us"],
    "experts": [*EXPERTS, "time_us"],
}


class TableError(ValueError):
    """A table that cannot be read: where, what was found, what would be right."""


def held_out(*shape):
    """Whether kernels of this shape are for tests only."""
    return int(hashlib.sha1(",".join(map(str, shape)).encode()).hexdigest(), 16) % 3 == 0


class Table:
    """Columns as arrays. `columns` has what the layout has, seconds, and `held_out`."""

    def __init__(self, layout, columns):
        self.layout = layout
        self.columns = columns

    def __getitem__(self, name):
        return self.columns[name]

    def __len__(self):
        return len(self.columns["seconds"])

    def where(self, chosen):
        return Table(self.layout, {name: column[chosen] for name, column in self.columns.items()})

    def halves(self):
        """The rows to fit to, and those to test on."""
        return self.where(~self["held_out"]), self.where(self["held_out"])


def layout_of(path, header):
    for layout, names in LAYOUTS.items():
        if set(names) <= set(header):
            return layout
    due = "; or ".join(f"{', '.join(names)} ({layout})" for layout, names in LAYOUTS.items())
    raise TableError(f"{path}: found the columns {', '.join(header)}; expected {due}")


def number(path, row, line, name):
    try:
        value = float(row[name])
        if value > 0:
            return value
    except (TypeError, ValueError):
        pass
    raise TableError(f"{path}:{line}: '{name}' is '{row[name]}'; expected a positive number")


def read(path, gpu=None):
    """One table. `gpu`: of a table of several devices, only the rows of this one."""
    with open(path, encoding="utf-8") as file:
        lines = [(i, line) for i, line in enumerate(file, 1) if line.strip() and not line.startswith("#")]
    rows = csv.DictReader(line for _, line in lines)
    layout = layout_of(path, rows.fieldnames or [])
    numbers = [name for name in LAYOUTS[layout] if name not in ("op", "precision", "time_us")]
    found = []
    for (line, _), row in zip(lines[1:], rows):
        if (gpu is None or row.get("gpu", gpu) == gpu) and (layout != "experts" or is_even(row)):
            found.append(fields(path, line, row, layout, numbers))
    if not found:
        raise TableError(f"{path}: no rows" + (f" of '{gpu}'" if gpu else ""))
    return Table(layout, {name: np.array([one[name] for one in found]) for name in found[0]})


def precision_of(row):
    name = row.get("precision", "bf16")
    return PRECISIONS.get(name, name)


def is_even(row):
    return precision_of(row) in OF_EXPERTS and row.get("load", "balanced") == "balanced"


def fields(path, line, row, layout, numbers):
    one = {name: number(path, row, line, name) for name in numbers}
    one["seconds"] = number(path, row, line, "time_us") * 1e-6
    one["held_out"] = held_out(*(int(one[name]) for name in numbers if name != "bytes"))
    if layout == "gemms":
        one["precision"] = precision_of(row)
        one["count"] = float(row.get("count") or 1)
    if layout == "experts":
        one["precision"] = precision_of(row)
    if layout == "memory":
        one["op"] = TRAFFIC.get(row["op"], "elementwise")
        one["held_out"] = held_out(row["op"], int(one["rows"]), int(one["cols"]))
    return one
