# SPDX-License-Identifier: GPL-2.0-only
# weft plan EXPERIMENT.yaml            wall time and memory of a run on 1 to 1,024 processes (docs/tutorial/studies.md)
"""Estimates the time and memory of a run, from the counts of `weft describe` and from the first seconds of the run
itself on this machine. After the run, --check RUN.h5 shows how good the estimate was."""

import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.console import Parser, guarded, natural, number_within  # noqa: E402
from support.output_files import output_path  # noqa: E402

USUAL = [1 << i for i in range(11)]


def numbers(text):
    return sorted({natural(part) for part in text.split(",")})


def parse():
    parser = Parser(prog="weft plan", description=__doc__)
    parser.add_argument("experiment", metavar="EXPERIMENT.yaml", help="or a trace that weft import reads")
    parser.add_argument("--set", action="append", default=[], metavar="KEY.PATH=VALUE", help="as for run")
    parser.add_argument("--processes", type=numbers, default=USUAL, metavar="1,2,4,...",
                        help="numbers of MPI processes (1 to 1024)")
    parser.add_argument("--seconds", type=number_within(0, 3600, "a number above 0, of 3600 at most"), default=8.0,
                        help="of the calibration (8)")
    parser.add_argument("--cores", type=natural, default=os.cpu_count() or 1,
                        help="of a node; more processes take several nodes (those of this machine)")
    parser.add_argument("--check", metavar="RUN.h5", help="compare with a run that has ended")
    parser.add_argument("--plan", metavar="PLAN.json", help="with --check: the plan that was made before; none is made")
    parser.add_argument("-o", "--output", metavar="PLAN.json", help="write the plan, for a later --check")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no messages about progress")
    options = parser.parse_args()
    if options.plan and not options.check:
        parser.error("--plan is for --check")
    if options.plan and options.output:
        parser.error("-o is for a plan that is made; --plan reads one")
    return options


def tell(options):
    return lambda text: None if options.quiet else print(f"weft plan: {text}", file=sys.stderr, flush=True)


def make(options, run):
    from importing import trace_experiments
    from studies import plan, records

    if run and not trace_experiments.may_be_trace(options.experiment):
        plan.require_same_experiment(run, options.check, options.experiment, options.set)
    if options.plan:
        return plan.load_plan(options.plan)
    processes = options.processes if run is None else sorted({*options.processes, run["processes"]})
    with trace_experiments.experiment_of(options.experiment, tell(options)) as experiment:
        made = plan.Plan(experiment, options.set, processes, options.seconds, options.cores, tell(options))
    data = made.as_data()
    if options.output:
        records.write_whole(output_path(options.output), json.dumps(data, indent=2) + "\n")
    return data


def plan_command():
    options = parse()
    from studies import plan

    if options.output:
        output_path(options.output, [options.experiment, options.check, options.plan])  # reports errors before the work
    run = plan.read_run(options.check) if options.check else None
    data = make(options, run)
    pairs = plan.check(data, run) if run else []
    if options.json:
        checked = {name: {"planned": predicted, "run": actual, "factor": ratio}
                   for name, predicted, actual, ratio in pairs}
        print(json.dumps({**data, **({"check": checked} if run else {})}, indent=2))
    else:
        print(plan.check_text(pairs, run) if run else plan.plan_text(options.experiment, data))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(plan_command))
