# SPDX-License-Identifier: GPL-2.0-only
"""Reads result files and files of sweeps, column by column or in blocks of rows, so that memory stays bounded."""

import pathlib

import h5py
import numpy as np

from support.errors import StudyError
from weft_results.container import OF_A_RUN, check_format, open_container, open_run

BLOCK = 1 << 19
SLICE = 1 << 13


class ReportError(StudyError):
    """An error in one line."""


class ResultFile:
    """A file of weft. Missing tables and columns are no error until they are read."""

    def __init__(self, path, file):
        self.path = pathlib.Path(path)
        self.name = self.path.name
        self.file = file
        self.attributes = self.guarded(lambda: dict(self.file.attrs))
        self.lengths = {}

    def guarded(self, read):
        try:
            return read()
        except (OSError, RuntimeError, ValueError, KeyError, UnicodeDecodeError) as error:
            raise ReportError(f"{self.path}: it is damaged: {error}") from None

    def has(self, table, *columns):
        return table in self.file and all(column in self.file[table] for column in columns)

    def attribute(self, place, name, default=None):
        if place not in self.file:
            return default
        value = self.guarded(lambda: self.file[place].attrs.get(name, default))
        return value.item() if isinstance(value, np.generic) else value

    def names(self, table):
        """Columns of a table, in the order of their names."""
        if table not in self.file:
            return []
        return self.guarded(lambda: [name for name, data in self.file[table].items() if isinstance(data, h5py.Dataset)
                                     and len(data.shape) == 1])

    def rows(self, table):
        if table not in self.lengths:
            lengths = {name: self.file[table][name].shape[0] for name in self.names(table)}
            if len(set(lengths.values())) > 1:
                raise ReportError(f"{self.path}: it is damaged: columns of /{table} differ in length: {lengths}")
            self.lengths[table] = next(iter(lengths.values()), 0)
        return self.lengths[table]

    def unit(self, table, column):
        return str(self.attribute(f"{table}/{column}", "unit", ""))

    def column(self, table, name, rows=slice(None)):
        if not self.has(table, name):
            raise ReportError(f"{self.path}: it has no column /{table}/{name}: is it a result file of this version?")
        data = self.file[table][name]
        texts = h5py.check_string_dtype(data.dtype) is not None
        return self.guarded(lambda: data.asstr()[rows] if texts else data[rows])

    def columns(self, table, *names):
        self.rows(table)
        return [self.column(table, name) for name in names]

    def text(self, place):
        if place not in self.file:
            return ""
        return self.guarded(lambda: str(self.file[place].asstr()[()]))

    def blocks(self, table, names, most=None):
        """Dictionaries of columns, block by block. With more than `most` rows, only evenly spaced slices from the first
        to the last row, about `most` rows in all."""
        rows = self.rows(table)
        if most is None or rows <= most:
            for first in range(0, rows, BLOCK):
                yield {name: self.column(table, name, slice(first, first + BLOCK)) for name in names}
            return
        firsts = np.linspace(0, rows - SLICE, most // SLICE).astype(np.int64)
        per_block = BLOCK // SLICE
        for group in range(0, len(firsts), per_block):
            some = firsts[group:group + per_block].tolist()
            yield {name: np.concatenate([self.column(table, name, slice(first, first + SLICE)) for first in some])
                   for name in names}


class RunFile(ResultFile):
    """Results of one run."""

    def __init__(self, path):
        super().__init__(path, open_run(path))
        self.end = int(self.attributes["simulated_time"])
        self.complete = bool(self.attributes["complete"])


def open_report_file(path):
    """The results of a run, or the table of a study."""
    file = open_container(path)
    found = ResultFile(path, file)
    check_format(path, found.attributes)
    if found.attributes["format"] != OF_A_RUN:
        return found
    file.close()
    return RunFile(path)
