# SPDX-License-Identifier: GPL-2.0-only
"""Shows what differs in the inputs of runs, what changed in their outcome, and which links, collectives and operators
account for the change. All other runs are compared with the first one. Times of operators need output.operations.

Exit code 0: done, whether or not the runs differ; 2: a file or an argument is wrong; 3: a file cannot be written."""

import argparse
import contextlib
import json
import os
import sys

import weft_results
from weft_commands.compare_facts import Facts
from weft_commands.compare_page import page_of
from weft_commands.compare_text import text_of
from weft_commands.comparison import Comparison, short_names
from weft_commands.program import Parser, new_file, number_of_rows


def parse(words):
    parser = Parser(prog="weft compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", metavar="A.h5", help="the run with which all others are compared")
    parser.add_argument("others", metavar="B.h5", nargs="+", help="the others")
    parser.add_argument("--top", metavar="N", type=number_of_rows, default=10, help="rows of each table (10)")
    parser.add_argument("--json", action="store_true", help="everything as one JSON object; times in ps")
    parser.add_argument("--page", metavar="FILE.html", help="also write a page, which needs no network")
    return parser.parse_args(words)


def inputs(options):
    return [options.first, *options.others]


def folders(options):
    return [os.path.dirname(os.path.realpath(options.page))] if options.page else []


def facts_of_file(facts, name):
    run = facts.run
    return {"name": name, "path": run.path, "complete": run.complete, "ranks": facts.ranks,
            "simulated_time": run.simulated_time, "fingerprint": run.attributes.get("fingerprint")}


def compare(runs):
    """The whole comparison as data for JSON."""
    names = short_names([run.path for run in runs])
    facts = [Facts(run) for run in runs]
    return {"runs": [facts_of_file(one, name) for one, name in zip(facts, names)],
            "comparisons": [Comparison(facts[0], one, (names[0], name)).result()
                            for one, name in zip(facts[1:], names[1:])]}


def run(options):
    with contextlib.ExitStack() as stack:
        result = compare([stack.enter_context(weft_results.open(path)) for path in inputs(options)])
    if options.page:
        with new_file(options.page, inputs(options)) as file:
            file.write(page_of(result).encode("utf-8", "replace"))
    sys.stdout.write(json.dumps(result, indent=1) + "\n" if options.json else text_of(result, options.top))
