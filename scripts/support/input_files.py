# SPDX-License-Identifier: GPL-2.0-only
"""Files that a command reads: what it says of one that cannot be opened, in the words of src/support/documents/missing_file.cpp."""

import difflib
import os
import pathlib

from .errors import StudyError
from .output_files import HDF5

WORKLOADS = pathlib.Path(__file__).resolve().parents[2] / "workloads"
READY_MADE = [WORKLOADS, WORKLOADS / "large", WORKLOADS / "studies"]  # experiments and studies
OF_EXPERIMENT, OF_RESULTS = ".yaml", ".h5"


def cannot_open(path):
    """Why a file cannot be opened, and which one may be meant; None for one that can be."""
    if os.path.isdir(path):
        return "cannot open this file: it is a folder"
    try:
        with open(path, "rb"):
            return None
    except FileNotFoundError as error:
        return f"cannot open this file: {error.strerror}{hint_for_missing(path)}"
    except OSError as error:
        return f"cannot open this file: {error.strerror}"


def expect_file(path):
    """StudyError unless the file can be opened."""
    text = cannot_open(path)
    if text:
        raise StudyError(f"{path}: {text}")


def hint_for_missing(path, ending=OF_EXPERIMENT):
    """For a file that is not there: the file with its ending, a ready-made experiment, a folder that is not there either, or
    the file of a similar name. For results (`ending`) also a run that has not ended, or the command that writes them."""
    path = pathlib.Path(path)
    if path.exists():
        return ""
    if os.path.exists(f"{path}.partial"):
        return f"; there is '{path}.partial', of a run that has not ended or was killed"
    for one in (ending, OF_EXPERIMENT, OF_RESULTS):
        if os.path.isfile(f"{path}{one}"):
            return f" (did you mean '{path}{one}'?)"
    if ending == OF_RESULTS:
        command = command_that_writes(path)
        if command:
            return f"; `{command}` writes it"
    else:
        ready = ready_made(path.name)
        if ready:
            return f" (a ready-made one is '{ready}')"
    folder = path.parent
    if not folder.is_dir():
        return f", nor a folder '{folder}'{nearest_in(folder.parent, folder.name)}"
    return nearest_in(folder, path.name)


def command_that_writes(results):
    """The command for results that are named after an experiment or a study; None without one."""
    beside = results.with_suffix(OF_EXPERIMENT)
    source = beside if beside.is_file() else ready_made(beside.name)
    if results.suffix != OF_RESULTS or source is None:
        return None
    text = pathlib.Path(source).read_text(encoding="utf-8", errors="replace")
    study = any(line.startswith("experiment:") for line in text.splitlines())
    return f"weft {'sweep' if study else 'run'} {source} -o {results}"


def ready_made(name):
    """The path of an experiment or a study of that name in `workloads`, as seen from this folder; None without one."""
    for folder in READY_MADE:
        for ending in ("", ".yaml"):
            found = folder / f"{name}{ending}"
            if found.is_file() and found.suffix == ".yaml":
                near = os.path.relpath(found)
                return str(found) if near.startswith("..") else near
    return None


def nearest_in(folder, name):
    """" (did you mean 'a.yaml'?)" for the file or folder of the nearest name; that two names end alike does not make them
    near."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ""
    end = pathlib.Path(name).suffix
    by_stem = {}
    for one in sorted(names, key=lambda one: pathlib.Path(one).suffix != end):
        by_stem.setdefault(pathlib.Path(one).stem, one)
    near = difflib.get_close_matches(pathlib.Path(name).stem, by_stem, 1)
    return f" (did you mean '{by_stem[near[0]]}'?)" if near else ""


def read_text(path):
    """The text of a file in UTF-8. StudyError, which begins with the path, if it cannot be read or is none."""
    try:
        data = pathlib.Path(path).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise StudyError(f"{path}: {cannot_open(path) or error.strerror}") from None
    except UnicodeDecodeError as error:
        if data.startswith(HDF5):
            raise StudyError(f"{path}: this is an HDF5 file, such as `weft run` writes for its results; expected YAML") from None
        raise StudyError(f"{path}: byte {error.start} is not UTF-8; expected a text file") from None
