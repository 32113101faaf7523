# SPDX-License-Identifier: GPL-2.0-only
# weft account RUN.h5 [--set K=V]      what a run costs, in money, energy and emissions (docs/reference/accounting.md)
"""Counts the parts of a simulated machine and computes cost, energy and emissions of the run, of a step, a
token and a whole training, each with a low, a middle and a high estimate.

exit codes: 0 done, 2 the input is wrong, 3 the environment failed, 130 interrupted"""

import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.console import Parser, guarded  # noqa: E402
from support.output_files import output_path  # noqa: E402


def parse():
    parser = Parser(prog="weft account", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", metavar="RUN.h5", help="a results file of `weft run`")
    parser.add_argument("--accounting", metavar="FILE.yaml", help="figures from there (an `accounting:` map, or a file "
                        "that has one) instead of those of the run's experiment")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of `accounting:`, such "
                        "as grid_intensity=FR or training_tokens=1e12")
    parser.add_argument("--series", metavar="FILE.csv", help="power over time; the run needs output.operations: true")
    parser.add_argument("--json", action="store_true", help="one JSON object with all estimates")
    return parser.parse_args()


def map_of_file(path):
    """The `accounting:` map of a file, or the whole file, as data. Errors in it name their line."""
    from accounting.settings import Settings
    from support import nodes

    item = nodes.load(path)[1]
    named = [value for key, value in item.entries() if key.node.value == "accounting"] if item.is_map() else []
    item = named[0] if named else item
    if not item.is_null():
        Settings(item)
    return item.data()


def section(options):
    """The `accounting:` map as data, and its file."""
    import h5py
    from accounting.usage import experiment_of
    from support import nodes
    from accounting.settings import settings_of
    from support.errors import StudyError

    place = options.accounting or options.run
    if options.accounting:
        data = map_of_file(place)
    else:
        with h5py.File(place, "r") as file:
            data = experiment_of(file).get("accounting")
    for setting in options.set:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise StudyError(f"--set found '{setting}'; expected KEY=VALUE, such as grid_intensity=FR")
        given = nodes.parse(value, f"--set {setting}").data()
        settings_of({key: given}, f"--set {setting}")  # reports errors with the option
        data = {**(data or {}), key: given}
    return data, place


def expect_tokens(used, settings, place):
    """StudyError if the length of a training is given in tokens, and nothing says how many a step has."""
    from support.errors import StudyError

    given = settings.numbers
    if "training_tokens" not in given or "training_steps" in given:
        return
    if not given.get("tokens_per_step", used["tokens_per_step"]):
        raise StudyError(f"{place}: `accounting.training_tokens`: found without the tokens of a step, which only a training "
                         "job that runs alone says; expected tokens_per_step above 0, or training_steps")


def account_command():
    options = parse()
    from accounting import text, usage
    from accounting.series import PowerSeries
    from accounting.settings import settings_of
    from studies.records import write_whole

    used = usage.usage_of(options.run)
    data, place = section(options)
    settings = settings_of(data, place)
    expect_tokens(used, settings, place)
    if options.series:
        target = output_path(options.series, [options.run, options.accounting])
        write_whole(target, PowerSeries(options.run, used, settings).as_csv())
    print(text.as_json(used, settings) if options.json else text.as_table(used, settings))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(account_command))
