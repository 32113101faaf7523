# SPDX-License-Identifier: GPL-2.0-only
"""`weft import FORMAT INPUT...`: reads the input, writes the experiment, and prints a summary."""

import json
import os
import pathlib

from support import console
from support.console import Parser
from weft_commands.quantities import time_text

from . import registry
from .errors import StudyError, did_you_mean, no_such, unzipped_bytes
from .machines import default_network, default_topology, topology_of_file
from .writing import Place, write

AUTO = "auto"
MOST_WARNINGS = 8
EXIT_UNRECOGNISED = 4  # for --for-run, which `weft run TRACE` adds: the file is then treated as an experiment


class Unrecognised(StudyError):
    """The input has no known format."""


def overview():
    width = max(map(len, registry.formats()))
    return "\n".join(["formats (weft import FORMAT --help says more):",
                      *(f"  {name:<{width}}  {registry.load(name).SUMMARY}" for name in registry.formats()),
                      f"  {AUTO:<{width}}  whichever of these the input is, by its content"])


def format_parser(name, module):
    parser = Parser(prog=f"weft import {name}", description=module.SUMMARY)
    module.add_arguments(parser)
    parser.add_argument("-o", "--output", metavar="EXPERIMENT.yaml",
                        help="experiment to write (default: the input's name with .yaml, in this folder, "
                        "where it must not exist); further files go beside it")
    parser.add_argument("--topology", metavar="SPEC.yaml", help="machine: a topology map, an experiment, or a machine "
                        "of another program (docs/reference/topologies.md), instead of that of the input")
    parser.add_argument("--json", action="store_true", help="print what was read as one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    return parser


def unrecognised(path):
    """The error about an input of no format. InputError if it is a file that cannot be read, such as damaged gzip."""
    if os.path.isfile(path):
        unzipped_bytes(path, 1 << 16)
    hint = "no format takes it for its own; `weft import` lists them"
    return Unrecognised(f"{path}: {hint if os.path.exists(path) else no_such(path)}")


def choose(words):
    """(format, its words) of `FORMAT WORDS...` or `auto PATH WORDS...`."""
    name, rest = words[0], words[1:]
    if name == AUTO:
        if not rest:
            raise StudyError("`weft import auto` needs an input")
        found = registry.recognise(rest[0])
        if not found:
            raise unrecognised(rest[0])
        return found, rest
    if name not in registry.formats():
        raise StudyError(f"'{name}' is not a format{did_you_mean(name, registry.formats())}; `weft import` lists them")
    return name, rest


def default_output(imported):
    """The name of the first input, without the ending of its format, in this folder. StudyError if there is such a file:
    it may be an experiment that has been edited since it was imported."""
    name = pathlib.Path(imported.inputs[0].rstrip("/")).name
    output = f"{name.split('.')[0] or 'imported'}.yaml"
    if os.path.lexists(output):
        raise StudyError(f"'{output}' exists; name the output with -o {output} to replace it")
    return output


def complete(imported, options):
    """A machine and packets for an input that does not have them."""
    if options.topology:
        imported.topology = topology_of_file(options.topology)
    elif imported.topology is None:
        if imported.ranks is None:
            raise StudyError(f"{imported.inputs[0]}: it does not say how many ranks there are; expected --topology")
        imported.topology = default_topology(imported)
    for key, value in default_network().items():
        imported.network.setdefault(key, value)


def facts_of_weft(counted):
    """The same as `Imported.counts`, from the output of `weft workload --json`."""
    kinds = counted["operations_by_kind"]
    return {"ranks": counted["ranks"],
            "operations": {kind: one["operations"] for kind, one in kinds.items()},
            "bytes": {kind: one["size_bytes"] for kind, one in kinds.items() if one["size_bytes"]},
            "sent_bytes": {kind: one["bytes"] for kind, one in kinds.items() if one["bytes"]},
            "compute_seconds": sum(one["compute_seconds"] for one in kinds.values())}


def as_data(name, imported, place, counts):
    notes = {key: [{"place": at, "what": what} for at, what in getattr(imported, key)]
             for key in ("ignored", "refused")}
    return {"format": name, "inputs": imported.inputs, "experiment": str(place.output),
            "files": [str(place.file(suffix)) for suffix in imported.files], **counts, **(imported.counts or {}), **notes}


def as_text(data):
    def numbers(values, unit=""):
        return ", ".join(f"{kind} {value:,}{unit}" for kind, value in values.items()) or "none"

    lines = [f"{data['experiment']}: {data['format']} of {data['ranks']:,} rank{'' if data['ranks'] == 1 else 's'}",
             f"  operations  {numbers(data['operations'])}", f"  bytes       {numbers(data['bytes'], ' B')}"]
    lines += [f"  compute     {time_text(data['compute_seconds'] * 1e12)} of all ranks"] if data.get("compute_seconds") else []
    lines += [f"  beside it   {path}" for path in data["files"]]
    lines += [f"  ignored     {one['place']}: {one['what']}" for one in data["ignored"]]
    lines += [f"  refused     {one['place']}: {one['what']}" for one in data["refused"]]
    return "\n".join(lines)


def warn(refused):
    """What the run leaves out: a trace that is run directly has no experiment that lists it."""
    for place, what in refused[:MOST_WARNINGS]:
        console.warn(f"{place}: {what}")
    if len(refused) > MOST_WARNINGS:
        console.warn(f"and {len(refused) - MOST_WARNINGS} more, which `weft import` lists")


def import_for_run(words, warns=True):
    """The same, without a message for a file that is no trace."""
    try:
        return import_words([word for word in words if word != "--for-run"], for_run=True, warns=warns)
    except Unrecognised:
        return EXIT_UNRECOGNISED


def import_command(words):
    """The exit code of `weft import WORDS...`."""
    if "--for-run" in words:
        return import_for_run(words)
    return import_words(words, for_run=False)


def import_words(words, for_run, warns=False):
    """`for_run`: weft is about to read the experiment, and so need not do it here. `warns`: of what it leaves out."""
    if not words or words[0] in ("-h", "--help"):
        parser = Parser(prog="weft import", usage="weft import FORMAT INPUT... [-o EXPERIMENT.yaml] [--json]",
                        description="Experiments from the files of other programs (docs/tutorial/importing.md).")
        print(f"{parser.format_usage()}\n{parser.description}\n\n{overview()}")
        return 0 if words else 2
    name, rest = choose(words)
    module = registry.load(name)
    options = format_parser(name, module).parse_args(rest)
    imported = module.read(options)
    complete(imported, options)
    place = Place(options.output or os.path.join(".", default_output(imported)), for_run)
    if warns:
        warn(imported.refused)
    counted = write(imported, place, [options.topology])
    if counted and (options.json or not options.quiet):
        data = as_data(name, imported, place, facts_of_weft(counted))
        print(json.dumps(data, indent=2) if options.json else as_text(data))
    return 0
