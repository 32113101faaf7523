# SPDX-License-Identifier: GPL-2.0-only
"""Result files of weft in Python: tables as numpy arrays with their units, in blocks if they are too large for memory.

    import weft_results

    with weft_results.open("out/quickstart.h5") as run:
        links = run.table("links", ["from_name", "to_name", "utilization"])
        print(run.units("links")["utilization"], links["utilization"].max())
        print(run.percentiles("messages", "slowdown", [50, 99, 100]))

Opening reads no table, so that a run of any size opens at once. Needs numpy and h5py; pandas for `as_frame=True`, and
PyYAML for `run.experiment`. What the columns mean stands in docs/reference/hdf5_schema.md, and in `run.descriptions(TABLE)`."""

from weft_results.errors import ResultsError
from weft_results.run import Run

__all__ = ["ResultsError", "Run", "open"]


def open(path):
    """The result file `path` as a Run. ResultsError if it is none, or damaged, or of a newer format."""
    return Run(path)
