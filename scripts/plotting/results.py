# SPDX-License-Identifier: GPL-2.0-only
"""Shared code of all pictures: the result file, scales of axes, colours."""

import pathlib

import h5py

from support.errors import StudyError
from weft_results.container import open_run

PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#000000"]
COMPUTE, COLLECTIVE, SEND, RECEIVE, HOST = "#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d"


class PlotError(StudyError):
    """An error in the file or the request, in one line."""


class Results:
    """A result file, read on demand."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.file = open_run(path)
        self.end = int(self.file.attrs["simulated_time"])
        self.subtitle = self.path.name + ("" if self.file.attrs["complete"] else ", interrupted run")

    def rows(self, table):
        return int(self.file[table].attrs["rows"]) if table in self.file else 0

    def columns(self, table, *names):
        """The named columns as arrays; texts as str."""
        if table not in self.file:
            raise PlotError(f"{self.path}: it has no table /{table}")
        data = []
        for name in names:
            if name not in self.file[table]:
                raise PlotError(f"{self.path}: it has no column /{table}/{name}")
            column = self.file[table][name]
            data.append(column.asstr()[:] if h5py.check_string_dtype(column.dtype) else column[:])
        return data if len(data) > 1 else data[0]


def time_scale(longest, least=2):
    """(divisor, unit) that makes picoseconds readable: `longest` is at least `least` units."""
    for factor, unit in ((10**12, "s"), (10**9, "ms"), (10**6, "µs"), (10**3, "ns")):
        if longest >= least * factor:
            return factor, unit
    return 1, "ps"


def byte_scale(largest):
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if largest >= 2 * factor:
            return factor, unit
    return 1, "B"


def percent_limit(largest):
    """Upper end of a scale of percent."""
    return next((limit for limit in (1, 2, 5, 10, 20, 50) if 100 * largest <= limit), 100)


def headline(figure, results, text):
    figure.suptitle(f"{text}\n{results.subtitle}", fontsize=12)
