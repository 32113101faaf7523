# SPDX-License-Identifier: GPL-2.0-only
"""The formats: files and folders of scripts/importers. A module there has

SUMMARY                 what the format is, in one line
add_arguments(parser)   inputs and options, for argparse
matches(path)           whether a file, folder or prefix is of the format: by its content, from its first bytes
read(options)           an `Imported` of importing/imported.py; raises importing.errors.InputError

and nothing else names it. tests/importers/NAME.py holds it to that (tests/cli/traces/import_conformance_test.py)."""

import importlib
import pathlib

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "importers"


def formats():
    """Their names, in alphabetical order: `astra-sim` for the module astra_sim."""
    found = [path.stem for path in FOLDER.iterdir()
             if (path.suffix == ".py" or (path / "__init__.py").is_file()) and not path.name.startswith("_")]
    return sorted(name.replace("_", "-") for name in found)


def load(name):
    """The module of a format."""
    return importlib.import_module(f"importers.{name.replace('-', '_')}")


def recognise(path):
    """The name of the first format that recognises a path; None if there is none."""
    return next((name for name in formats() if load(name).matches(path)), None)
