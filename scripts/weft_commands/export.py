# SPDX-License-Identifier: GPL-2.0-only
"""Writes the content of a result file of `weft run` for other programs.

--trace  ranks, collectives and links over time, as a trace for https://ui.perfetto.dev or chrome://tracing: ranks need
         output.operations, counters of links need output.sampling. Compressed if the name ends with .gz
--csv    a file for each table, with units in its first line

The same result file gives the same bytes at any time. An experiment instead of its results becomes a trace for other
simulators: `weft export chakra --help`. Exit code 0: done; 2: a file or an argument is wrong; 3: a file cannot
be written."""

import argparse
import os
import sys

import weft_results
from support.console import warn
from support.quantities import counted
from weft_commands import tables, trace
from weft_commands.program import CommandError, Parser, new_file


def names(text):
    found = [name.strip() for name in text.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of names such as links,jobs")
    return found


def count(text):
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of links")
    return int(text)


def parse(words):
    parser = Parser(prog="weft export", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="RUN.h5")
    parser.add_argument("--trace", metavar="FILE.json.gz", help="`-` is standard output")
    parser.add_argument("--links", metavar="N", type=count, default=16, help="counters of the N busiest links (16)")
    parser.add_argument("--csv", metavar="DIR", help="made if absent; `-` with one table is standard output")
    parser.add_argument("--tables", metavar="NAMES", type=names, help="of --csv, such as links,jobs (all)")
    parser.add_argument("--columns", metavar="NAMES", type=names, help="of --csv: those that a table has (all)")
    parser.add_argument("--rows", metavar="START:END", default=":", help="of --csv, of each table, from 0 (all)")
    options = parser.parse_args(words)
    if not (options.trace or options.csv):
        parser.error("say what to write: --trace FILE.json.gz, --csv DIR, or both")
    return options


def inputs(options):
    return [options.file]


def folders(options):
    """The folders in which files are written."""
    of_trace = [os.path.dirname(os.path.realpath(options.trace))] if options.trace else []
    return of_trace + ([options.csv] if options.csv else [])


def export_trace(run, path, links):
    if path == "-":
        trace.write_trace(run, sys.stdout.buffer, links)
        return
    with new_file(path, [run.path]) as file:
        packer = trace.Packer(file) if path.endswith(".gz") else None
        events = trace.write_trace(run, packer or file, links)
        if packer:
            packer.close()
    print(f"{path}: {events} events")


def advise(run):
    """Missing parts of the trace, and the way to get them."""
    for table, what, key in (("operations", "ranks", "output.operations: true"),
                             ("links_series", "links", "output.sampling: 10 us")):
        if table not in run:
            warn(f"the trace has no tracks of {what}: set {key} in the experiment for them")


def run(options):
    rows = tables.parse_rows(options.rows)
    if options.trace == "-" and options.csv == "-":
        raise CommandError("only one of --trace and --csv can go to standard output")
    with weft_results.open(options.file) as results:
        if options.trace:
            results.expect_run()
        if not results.complete:
            warn(f"{options.file}: the run did not reach its end; the tables hold what had happened until then")
        if options.csv:
            written = tables.write_tables(results, options.csv, options.tables, options.columns, rows)
            for path, count_of_rows in written.items():
                print(f"{path}: {counted(count_of_rows, 'row')}")
        if options.trace:
            export_trace(results, options.trace, options.links)
            advise(results)
