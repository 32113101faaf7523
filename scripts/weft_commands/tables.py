# SPDX-License-Identifier: GPL-2.0-only
"""Tables of a result file as CSV (RFC 4180, lines end with LF)."""

import csv
import io
import sys

from weft_commands.program import CommandError, make_folder, new_file

ROWS_PER_BLOCK = 1 << 15


def parse_rows(text):
    """START:END as a slice; either may be absent."""
    first, colon, last = text.partition(":")
    for word in (first, last):
        if not colon or (word and not (word.isascii() and word.isdigit())):
            raise CommandError(f"--rows is '{text}'; START:END was expected, such as 0:1000 or 500:")
    return slice(int(first) if first else None, int(last) if last else None)


def chosen_tables(run, names):
    """Without names, all tables except facts of the particular run, such as its wall time."""
    if names is None:
        return [table for table in run.tables if not table.startswith("manifest/")]
    for name in names:
        run.columns(name)  # raises an error if there is no such table
    return list(dict.fromkeys(names))


def chosen_columns(run, tables, names):
    """{table: its columns}. A table that has none of the chosen ones is left out."""
    if names is None:
        return {table: run.columns(table) for table in tables}
    for name in names:
        if not any(run.has(table, name) for table in tables):
            every = sorted({column for table in tables for column in run.columns(table)})
            raise run.error(f"none of the tables ({', '.join(tables)}) has a column '{name}'; "
                            f"there are {', '.join(every)}")
    wanted = list(dict.fromkeys(names))
    found = {table: [name for name in wanted if run.has(table, name)] for table in tables}
    return {table: columns for table, columns in found.items() if columns}


def heading(run, table, columns):
    units = run.units(table)
    return [f"{name} ({units[name]})" if units[name] not in ("", "1", "id", "text") else name for name in columns]


def write_table(run, table, columns, rows, file):
    """`file` takes bytes."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heading(run, table, columns))
    for block in run.blocks(table, columns, ROWS_PER_BLOCK, rows):
        writer.writerows(zip(*(block[name].tolist() for name in columns)))
    text.flush()
    text.detach()


def write_tables(run, folder, tables, columns, rows):
    """A file for each table in the folder; "-" is standard output, for one table. Returns {path: rows}."""
    chosen = chosen_columns(run, chosen_tables(run, tables), columns)
    if folder == "-":
        if len(chosen) != 1:
            raise CommandError(f"`--csv -` is for one table, and there are {len(chosen)}: choose one with --tables")
        (table, names), = chosen.items()
        write_table(run, table, names, rows, sys.stdout.buffer)
        return {}
    make_folder(folder)
    written = {}
    for table, names in chosen.items():
        path = f"{folder}/{table.replace('/', '_')}.csv"
        with new_file(path, [run.path]) as file:
            write_table(run, table, names, rows, file)
        written[path] = len(range(*rows.indices(run.rows(table))))
    return written
