# SPDX-License-Identifier: GPL-2.0-only
"""The columns of results files, from a run of microseconds that has all tables: misspelt ones are found before a
study's runs."""

import json
import os
import tempfile

import h5py

from support.errors import EnvironmentFailure, did_you_mean

from .calibration import call
from .identity import digest_of
from .records import write_whole

EVERYTHING = """topology: {kind: fat_tree, k: 4, link_rate: 400 Gb/s, link_delay: 500 ns}
network: {queues: output}
workload: {kind: collective, collective: all_reduce, algorithm: ring, ranks: 16, size: 64 KiB}
background: [{kind: tcp, from: 0, to: 15, size: 20 kB}]
output: {sampling: 1 us, operations: true, attribution: full, queue_depths: true, rates: {interval: 2 us}}
"""


def check(outputs, program, folder):
    """StudyError, with its place, for the reduction of a column that no results file has, or that holds texts."""
    wanted = [output for output in outputs.values() if output.reduction]
    known = known_columns(program, folder) if wanted else {}
    for output in wanted:
        table, _, column = output.reduction[1].rpartition("/")
        if table not in known:
            raise output.item.error(f"results files have no table '{table}'{did_you_mean(table, known)}; known here: "
                                    f"{', '.join(known)}")
        if column not in known[table]:
            raise output.item.error(f"the table '{table}' has no column '{column}' of numbers"
                                    f"{did_you_mean(column, known[table])}; known here: {', '.join(known[table])}")


def known_columns(program, folder):
    """{table: [columns of numbers]}, kept in the folder of runs."""
    path = folder / f"columns-{digest_of([program.version, program.revision, EVERYTHING])[:20]}.json"
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = columns_of_a_run(program)
        write_whole(path, json.dumps(found))
        return found


def columns_of_a_run(program):
    with tempfile.TemporaryDirectory(prefix="weft-columns-") as scratch:
        experiment, results = (os.path.join(scratch, name) for name in ("columns.yaml", "columns.h5"))
        with open(experiment, "w", encoding="utf-8") as file:
            file.write(EVERYTHING)
        call(program, ["run", experiment, "-o", results, "--quiet"])
        try:
            with h5py.File(results, "r") as file:
                return columns_of(file)
        except OSError as error:
            raise EnvironmentFailure(f"cannot read '{results}': {error}") from None


def columns_of(file):
    found = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and item.ndim == 1 and item.dtype.kind in "iuf":
            table, _, column = name.rpartition("/")
            found.setdefault(table, []).append(column)

    file.visititems(visit)
    return found
