# SPDX-License-Identifier: GPL-2.0-only
"""Reads result files and files of sweeps, column by column or in blocks of rows, so that memory stays bounded."""

import pathlib

import h5py
import numpy as np

BLOCK = 1 << 19
SLICE = 1 << 13
FORMAT_VERSION = 1


class ReportError(Exception):
    """An error in one line, with its exit code."""

    def __init__(self, message, code=2):
        super().__init__(message)
        self.code = code


class ResultFile:
    """A file of weft. Missing tables and columns are no error until they are read."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.name = self.path.name
        self.file = self.open()
        self.attributes = self.guarded(lambda: dict(self.file.attrs))
        self.lengths = {}

    def open(self):
        try:
            return h5py.File(self.path, "r")
        except OSError as error:
            if not self.path.exists():
                reason = "no such file"
            elif not h5py.is_hdf5(self.path):
                reason = "not an HDF5 file, or one that is cut short; right is a result file of `weft run`"
            else:
                reason = f"not a readable HDF5 file ({error})"
            raise ReportError(f"cannot read '{self.path}': {reason}") from None

    def guarded(self, read):
        try:
            return read()
        except (OSError, RuntimeError, ValueError, KeyError, UnicodeDecodeError) as error:
            raise ReportError(f"'{self.path}' is damaged: {error}") from None

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
                raise ReportError(f"'{self.path}' is damaged: columns of /{table} differ in length: {lengths}")
            self.lengths[table] = next(iter(lengths.values()), 0)
        return self.lengths[table]

    def unit(self, table, column):
        return str(self.attribute(f"{table}/{column}", "unit", ""))

    def column(self, table, name, rows=slice(None)):
        if not self.has(table, name):
            raise ReportError(f"'{self.path}' has no column /{table}/{name}: is it a result file of this version?")
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
        super().__init__(path)
        if self.attributes.get("format") != "weft-results":
            raise ReportError(f"'{path}' is neither a result file of weft (attribute 'format' = 'weft-results') nor a "
                              "sweep (table /cases)")
        version = int(self.attributes.get("format_version", FORMAT_VERSION))
        if version > FORMAT_VERSION:
            raise ReportError(f"'{path}' has format_version {version}; this report reads up to {FORMAT_VERSION}")
        for name in ("complete", "simulated_time"):
            if name not in self.attributes:
                raise ReportError(f"'{path}' is damaged: attribute '{name}' is missing")
        self.end = int(self.attributes["simulated_time"])
        self.complete = bool(self.attributes["complete"])


def is_sweep(path):
    """True if the file has the cases of a sweep. Files that cannot be read are no sweeps; RunFile reports the error."""
    try:
        with h5py.File(path, "r") as file:
            return "cases" in file and file.attrs.get("format") != "weft-results"
    except OSError:
        return False


def open_report_file(path):
    return ResultFile(path) if is_sweep(path) else RunFile(path)
