# SPDX-License-Identifier: GPL-2.0-only
"""Experiments and the files beside them are written into a separate folder, checked by weft, and then moved into place:
all of them or none."""

import contextlib
import copy
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from studies.identity import environment
from support.output_files import output_path

from .errors import EnvironmentFailure, StudyError
from .experiment_text import experiment_text
from .imported import Beside


class Place:
    """The destination of the experiment X.yaml and its files X.SUFFIX. `passing`: it is removed after a run, whose errors
    name the input's files so that they can be opened."""

    def __init__(self, output, passing=False):
        self.output, self.passing = pathlib.Path(output), passing

    def file(self, suffix):
        return self.output.with_name(f"{self.output.stem}.{suffix}")

    def name(self, value):
        """The name of a file in the experiment: relative to its folder, unless that is far away."""
        if isinstance(value, Beside):
            return self.file(value.suffix).name
        if self.passing:
            return str(value.path.absolute())
        path = value.path.resolve()
        near = os.path.relpath(path, self.output.parent.resolve())
        return near if near.count("..") <= 2 else str(path)


class Draft:
    """Names of files in the experiment while it is in another folder, and their final names."""

    def __init__(self, place, folder):
        self.place, self.folder, self.known = place, folder, {}

    def name(self, value):
        if isinstance(value, Beside):
            return self.place.file(value.suffix).name
        self.known[str(value.path.resolve())] = str(value.path)
        return str(value.path.resolve())

    def in_words_of_the_user(self, text):
        text = text.replace(f"{self.folder}{os.sep}", f"{self.place.output.parent}{os.sep}".removeprefix("./"))
        for ours, theirs in self.known.items():
            text = text.replace(ours, theirs)
        return text


@contextlib.contextmanager
def draft_folder(place):
    """The separate folder, beside the output, so that files can be renamed into their places."""
    folder = place.output.parent
    try:
        draft = pathlib.Path(tempfile.mkdtemp(prefix=".weft-import-", dir=folder))
    except OSError as error:
        raise EnvironmentFailure(f"cannot write into '{folder}': {error.strerror}") from None
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def weft_program():
    """The program of this command; in the source tree, that of its build folder."""
    return os.environ.get("WEFT_PROGRAM") or str(pathlib.Path(__file__).resolve().parents[2] / "build" / "weft")


def count(experiment, draft):
    """Counts of `weft workload` for an experiment, which has the only reader of workloads. Its errors are passed on,
    also those that cite bytes of the input that are no text."""
    try:
        done = subprocess.run([weft_program(), "workload", str(experiment), "--json", "--no-run"], env=environment(),
                              capture_output=True, text=True, errors="surrogateescape", check=False,
                              stdin=subprocess.DEVNULL)
    except OSError as error:
        raise EnvironmentFailure(f"cannot start '{weft_program()}': {error.strerror}") from None
    if done.returncode == 0:
        return json.loads(done.stdout)
    shown = done.stderr.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = draft.in_words_of_the_user(shown.strip()).removeprefix("weft: ")
    text = text or f"weft ended with {done.returncode}"
    raise (StudyError if done.returncode == 2 else EnvironmentFailure)(text)


def without_faults(imported):
    """The experiment for `weft workload`, with a network on which nothing is lost."""
    whole = copy.copy(imported)
    whole.network = {key: value for key, value in imported.network.items() if key not in ("loss", "failures", "reconvergence",
                                                                                             "local_repair", "resilient_hashing")}
    return whole


def write_text(path, text):
    """Names of files that are not UTF-8 stay as they are."""
    path.write_text(text, encoding="utf-8", errors="surrogateescape")


def write(imported, place, others=()):
    """Writes the experiment. Returns weft's counts of it, with which it checks the experiment; nothing if it is about to
    be run. `others`: further inputs."""
    files = [*map(place.file, imported.files), place.output]
    targets = {path: output_path(path, [*imported.inputs, *others]) for path in files}
    with draft_folder(place) as folder:
        try:
            for suffix, produce in imported.files.items():
                with open(folder / place.file(suffix).name, "wb") as file:
                    produce(file)
            draft, experiment = Draft(place, folder), folder / place.output.name
            write_text(experiment, experiment_text(without_faults(imported), draft.name))
            counted = count(experiment, draft) if not place.passing else None
            write_text(experiment, experiment_text(imported, place.name))
            for path, target in targets.items():
                shutil.move(folder / path.name, target)  # the target of a link may be on another file system
        except OSError as error:
            raise EnvironmentFailure(f"cannot write '{place.output}': {error.strerror}") from None
    return counted
