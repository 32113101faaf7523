# SPDX-License-Identifier: GPL-2.0-only
"""Traces of other programs where a command expects an experiment: they are imported first, as `weft run TRACE` does."""

import contextlib
import os
import pathlib
import re
import tempfile

from .command import import_for_run
from support.errors import StudyError
from support.input_files import cannot_open

FEW = 1 << 20  # bytes of a file that are searched for keys of an experiment
KEYS = re.compile(rb"(?:^|[\n\r{,])[\"' \t]*(?:topology|workload)[\"' \t]*:")


def may_be_trace(path):
    """A folder, the beginning of names of files, or a file without keys of an experiment, as `weft run` has it
    (src/app/running/trace_experiment.cpp)."""
    path = pathlib.Path(path)
    if path.is_dir():
        return True
    if not path.exists():
        return path.parent.is_dir() and any(one.name.startswith(f"{path.name}.") for one in path.parent.iterdir())
    if not path.is_file() or path.suffix in (".yaml", ".yml"):
        return False
    try:
        with open(path, "rb") as file:
            beginning = file.read(FEW)
    except OSError as error:
        raise StudyError(f"{path}: {cannot_open(path) or error.strerror}") from None
    return bool(beginning) and not KEYS.search(beginning)


@contextlib.contextmanager
def experiment_of(path, tell):
    """The name of the experiment at a path; for a trace, of the one that it is imported as, which exists inside
    `with`."""
    if not may_be_trace(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="weft-plan-") as folder:
        made = os.path.join(folder, "experiment.yaml")
        tell(f"importing {path}")
        # Without a format that takes it, it is an experiment that is wrong, and weft says so.
        recognised = import_for_run(["auto", path, "-o", made, "--quiet"], warns=False) == 0
        try:
            yield made if recognised else path
        except StudyError as error:
            raise StudyError(str(error).replace(made, path)) from None
