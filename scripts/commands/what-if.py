# SPDX-License-Identifier: GPL-2.0-only
# weft what-if EXPERIMENT.yaml [-j N]  what would make a run shorter, and by how much (docs/tutorial/results.md)
"""Runs an experiment, and then again with one thing changed at a time: an ideal network, faster links of each class, shorter
latencies, a larger window, another load balancing, routing or congestion control, faster devices, CUDA graphs, other algorithms
of collectives, no slow ranks and links, no failures, no other jobs. Prints by how much each of them makes the job that takes
longest shorter. The runs are the cases of a study, which is kept: a second start uses what has been run.

exit codes: 0 done, 2 the input is wrong, 3 the environment failed, 130 interrupted"""

import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.console import Parser, guarded, natural, number_within  # noqa: E402


def parse():
    parser = Parser(prog="weft what-if", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", metavar="EXPERIMENT.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY.PATH=VALUE", help="as for `weft run`")
    parser.add_argument("--factor", type=number_within(1, 1e6, "a number above 1, such as 2"), default=2,
                        help="how many times as fast or large (2)")
    parser.add_argument("-n", "--processes", type=natural, metavar="P", help="MPI processes of each run (1)")
    parser.add_argument("-j", "--jobs", type=natural, metavar="N",
                        help="runs at a time (the number of cores, divided by P)")
    parser.add_argument("-o", "--output", metavar="STUDY.yaml", help="the study (the experiment's name with .what_if.yaml); "
                        "its runs go to a folder beside it")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    return parser.parse_args()


def what_if_command():
    options = parse()
    from what_if.runs import WhatIf

    jobs = options.jobs or max(1, (os.cpu_count() or 1) // (options.processes or 1))
    found = WhatIf(options.experiment, options.set, options.factor, options.processes, options.output, options.quiet)
    found.run(jobs)
    print(found.as_json() if options.json else found.as_text())
    return 0


if __name__ == "__main__":
    sys.exit(guarded(what_if_command))
