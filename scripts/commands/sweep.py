# SPDX-License-Identifier: GPL-2.0-only
# weft sweep STUDY.yaml [-j N]         a study of many experiments: their runs, one table (docs/tutorial/studies.md)
"""Runs the cases of a study, as many side by side as there are cores, and writes one HDF5 file with a row for each.
Cases that have been run before are not run again.

exit codes: 0 done, 2 the study is wrong, 3 a case failed or is missing, or the environment failed, 130 interrupted"""

import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.console import Parser, guarded, natural, warn  # noqa: E402


def parse():
    parser = Parser(prog="weft sweep", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", metavar="STUDY.yaml")
    parser.add_argument("-j", "--jobs", type=natural, metavar="N",
                        help="cases at a time (the number of cores, divided by the study's `processes`)")
    parser.add_argument("-o", "--output", metavar="STUDY.h5", help="table (the study's name with .h5); runs go to "
                        "STUDY.runs beside it")
    once = parser.add_mutually_exclusive_group()
    once.add_argument("--list", action="store_true", help="print the cases and their status; run nothing")
    once.add_argument("--case", type=int, metavar="K", help="run that case alone, and write no table")
    once.add_argument("--collect", action="store_true", help="run nothing; write the table of what has been run")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="use what has been run before (the default)")
    again.add_argument("--fresh", action="store_true", help="run all cases again")
    parser.add_argument("--summary", choices=["table", "json"], default="table", help="what to print at the end")
    parser.add_argument("--quiet", action="store_true", help="no progress, no table at the end; failures are told")
    return parser.parse_args()


def sweep_command():
    options = parse()
    from studies import sweep, summary, table

    study = sweep.Sweep(options.study, options.output, options.quiet)
    jobs = options.jobs or max(1, (os.cpu_count() or 1) // max(1, study.study.processes))
    if options.case is not None:
        sweep.require_case(study.study, options.case)
    study.prepare(jobs)
    if options.list:
        print(summary.listing(study))
        return 0
    if not options.collect:
        study.run(jobs, None if options.case is None else {options.case}, options.fresh)
    if options.case is not None:
        return 3 if study.row_of(options.case)["status"] in ("failed", "missing") else 0
    if not options.collect:
        study.expect_some_accepted()
    rows = study.rows()
    for text in study.empty_outputs(rows):
        warn(f"no run has numbers for the output '{text}'")
    table.write_table(study, rows)
    if options.summary == "json":
        print(summary.as_json(study, rows))
    elif not options.quiet:
        print(summary.as_table(study, rows))
    return 3 if any(row["status"] in ("failed", "missing") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(guarded(sweep_command))
