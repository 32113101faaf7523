# SPDX-License-Identifier: GPL-2.0-only
"""A result file: its tables and its information about the run."""

import os
from functools import cached_property

import h5py
import numpy as np

from weft_results import experiments, reductions
from weft_results.container import check_format, expect_run, first_line, open_container
from weft_results.errors import ResultsError

ROWS_PER_BLOCK = 1 << 18
ALL = slice(None)

# The order of docs/reference/hdf5_schema.md; HDF5 sorts columns by name. Parts that are not known here come last.
PARTS = ["compute", "launch", "handling", "sending", "transfer", "slowed", "queueing", "nic", "ahead", "window",
         "pacing", "paused", "retransmission", "reordering", "credits", "peers", "host", "idle"]  # fmt: skip

# Exceptions of h5py for damage inside a file, depending on its place.
DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, UnicodeDecodeError, MemoryError, OverflowError)


class Run:
    """One result file. Tables are read on demand; `with` closes the file.

    Attributes of the object: `path`, and `file`, which is the h5py.File, for what has no method here."""

    def __init__(self, path):
        self.path = os.fspath(path)
        self.file = open_container(self.path)
        try:
            check_format(self.path, self.attributes)
        except ResultsError:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        state = "" if self.complete else ", incomplete: it was interrupted or cut short by simulation.until"
        return f"<weft_results.Run '{self.path}'{state}>"

    def close(self):
        self.file.close()

    def error(self, text):
        return ResultsError(self.path, text)

    def damaged(self, place, error):
        return self.error(f"it is damaged: {place} cannot be read ({first_line(error)})")

    def expect_run(self):
        """ResultsError if the file is the table of a study."""
        expect_run(self.path, self.attributes)

    # Information about the run.

    @cached_property
    def attributes(self):
        """Of the whole file: `format`, `simulated_time` (ps), `fingerprint`, ... as str, int or float."""
        return self.attributes_of("/")

    def attributes_of(self, place):
        """The attributes of a group or data set, such as "manifest/model"; {} if there is no such thing."""
        try:
            if place != "/" and place not in self.file:
                return {}
            return {name: plain(value) for name, value in self.file[place].attrs.items()}
        except DAMAGE as error:
            raise self.damaged(f"the attributes of /{place.strip('/')}", error) from None

    @property
    def complete(self):
        """False if the run was interrupted or cut short by `simulation.until`: tables hold what had happened."""
        return bool(self.attributes.get("complete", 1))

    @property
    def simulated_time(self):
        """In ps; None in a file that is not of one run."""
        return self.attributes.get("simulated_time")

    @cached_property
    def experiment_text(self):
        """The experiment as it was run, after `--set`, as YAML; "" if the file has none."""
        return self.text("manifest/run/effective_experiment") or self.text("manifest/experiment_text")

    @cached_property
    def experiment(self):
        """The experiment as it was run, after `--set`, as dictionaries, lists, numbers and str. Needs PyYAML."""
        return experiments.parse(self.path, self.experiment_text)

    @cached_property
    def message_sample(self):
        """One message in so many has a row of /messages: 1, also where the file does not say it, or `output.message_sample`."""
        try:
            experiment = self.experiment
        except ResultsError:
            return 1
        output = (experiment.get("output") or {}) if isinstance(experiment, dict) else {}
        return int(output.get("message_sample", 1000)) if output.get("messages") == "sampled" else 1

    def text(self, place):
        """A single text of the file, "" if it is absent."""
        try:
            if place not in self.file:
                return ""
            value = self.file[place][()]
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        except DAMAGE as error:
            raise self.damaged(f"/{place}", error) from None

    # Tables.

    @cached_property
    def tables(self):
        """Names of all tables, such as "links" and "manifest/parallel"."""
        found = []

        def visit(name, item):
            if isinstance(item, h5py.Group) and "rows" in item.attrs:
                found.append(name)

        try:
            self.file.visititems(visit)
        except DAMAGE as error:
            raise self.damaged("the list of tables", error) from None
        return sorted(found)

    def __contains__(self, table):
        return table in self.tables

    def rows(self, table):
        """Number of rows; 0 if there is no such table."""
        if table not in self.tables:
            return 0
        rows = self.attributes_of(table)["rows"]
        if not isinstance(rows, int) or rows < 0:
            raise self.error(f"it is damaged: /{table}@rows is {rows!r}")
        return rows

    def columns(self, table):
        """Names of the columns of a table."""
        return list(self.datasets(table))

    def has(self, table, *columns):
        """Whether there is the table, with all of the columns."""
        return table in self.tables and all(column in self.datasets(table) for column in columns)

    def units(self, table):
        """{column: unit}: ps, B, bit/s, GB/s, s, 1, id or text."""
        return self.attribute_of_columns(table, "unit")

    def descriptions(self, table):
        """{column: what it is}."""
        return self.attribute_of_columns(table, "description")

    def attribute_of_columns(self, table, attribute):
        return {name: self.attributes_of(f"{table}/{name}").get(attribute, "") for name in self.datasets(table)}

    def parts(self, table):
        """Names of the columns whose sum is the time of a row, in the order in which they are documented and drawn; []
        in a file without them."""
        found = [name for name in self.columns(table) if name.startswith("part_")] if table in self.tables else []
        order = {f"part_{name}": place for place, name in enumerate(PARTS)}
        return sorted(found, key=lambda name: (order.get(name, len(PARTS)), name))

    def datasets(self, table):
        """{column: h5py.Dataset}, each of them of the right length."""
        known = self.__dict__.setdefault("known_datasets", {})
        if table not in known:
            if table not in self.tables:
                raise self.error(f"it has no table '{table}'; it has {', '.join(self.tables) or 'none'}")
            known[table] = self.checked_datasets(table)
        return known[table]

    def checked_datasets(self, table):
        rows, found = self.rows(table), {}
        try:
            for name, item in self.file[table].items():
                if isinstance(item, h5py.Dataset):
                    self.check_dataset(item, rows)
                    found[name] = item
        except DAMAGE as error:
            raise self.damaged(f"table /{table}", error) from None
        return found

    def check_dataset(self, item, rows):
        if item.shape != (rows,):
            raise self.error(f"it is damaged: {item.name} has the shape {item.shape} in a table of {rows} rows")
        stored = item.chunks is None and item.external is None
        if stored and rows and item.id.get_storage_size() < rows * item.dtype.itemsize:
            raise self.error(f"it is damaged: {item.name} has less data than rows")

    def chosen(self, table, columns):
        """The data sets of `columns`: a list of names, or None for all."""
        known = self.datasets(table)
        wanted = list(known) if columns is None else [columns] if isinstance(columns, str) else list(columns)
        for name in wanted:
            if name not in known:
                raise self.error(f"its table '{table}' has no column '{name}'; it has {', '.join(known)}")
        return {name: known[name] for name in wanted}

    def table(self, table, columns=None, rows=ALL, as_frame=False):
        """{column: numpy array}, texts as str; a pandas.DataFrame with `as_frame`. `rows` is a slice. A table of 10^8
        rows does not fit into memory: see blocks(), percentiles() and sums()."""
        data = {name: self.read(item, rows) for name, item in self.chosen(table, columns).items()}
        return frame(self.path, data) if as_frame else data

    def column(self, table, column, rows=ALL):
        """One column as a numpy array."""
        return self.table(table, [column], rows)[column]

    def read(self, item, rows):
        try:
            values = item[rows]
        except DAMAGE as error:
            raise self.damaged(item.name, error) from None
        return np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else texts(values)

    def blocks(self, table, columns=None, rows_per_block=ROWS_PER_BLOCK, rows=ALL):
        """The table in blocks of at most so many rows, one {column: array} after the other, in the order of rows."""
        if rows_per_block < 1:
            raise ValueError("rows_per_block must be at least 1")
        chosen = self.chosen(table, columns)
        first, last, step = rows.indices(self.rows(table))
        if step != 1:
            raise ValueError("blocks are of neighbouring rows: the step of `rows` must be 1")
        for start in range(first, last, rows_per_block):
            part = slice(start, min(start + rows_per_block, last))
            yield {name: self.read(item, part) for name, item in chosen.items()}

    # Reductions in bounded memory.

    def sums(self, table, columns, by=None):
        """{column: sum}, or with `by`, a column of names or numbers, {its value: {column: sum}}. Sums of integers are
        exact Python integers, however large."""
        return reductions.sums(self, table, columns, by)

    def extremes(self, table, columns):
        """{column: (smallest, largest)}; ResultsError if the table has no rows."""
        return reductions.extremes(self, table, columns)

    def percentiles(self, table, columns, shares, value=None):
        """The exact percentiles of a column, as a list in the order of `shares` (0 to 100): the smallest of its values
        that so many percent of the rows do not exceed. With `value`, a function from a block of `columns` to an array,
        those of what it returns. Not-a-numbers do not count. [] if nothing counts."""
        return reductions.percentiles(self, table, columns, shares, value)


def plain(value):
    """An attribute as str, int, float or numpy array."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) and value.dtype.kind in "iufb" else value


def texts(values):
    """Texts of variable length come as bytes in an array of objects."""
    if values.dtype.kind != "O":
        return values
    return np.array([value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in values])


def frame(path, data):
    try:
        import pandas  # noqa: PLC0415
    except ImportError:
        raise ResultsError(path, "as_frame needs pandas; on Debian, it is in python3-pandas") from None
    return pandas.DataFrame(data)
