# SPDX-License-Identifier: GPL-2.0-only
"""The identity of a run: the resolved experiment, independent of the order of keys and the units of quantities, the
files that it names, and the program."""

import atexit
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from support import nodes
from support.errors import EnvironmentFailure, StudyError

MAX_TEXT = 1 << 20  # bytes of a file that is searched for names of further files


class Program:
    """The weft that runs experiments."""

    def __init__(self):
        named = os.environ.get("WEFT_PROGRAM")
        self.path = named or str(pathlib.Path(__file__).resolve().parents[2] / "build" / "weft")
        try:
            done = subprocess.run([self.path, "--version"], capture_output=True, text=True, check=True,
                                  stdin=subprocess.DEVNULL, env=environment())
        except (OSError, subprocess.CalledProcessError) as error:
            raise EnvironmentFailure(f"cannot start '{self.path}': {error}") from None
        lines = dict(line.rsplit(None, 1) for line in done.stdout.splitlines() if len(line.split()) > 1)
        self.version, self.revision = lines.get("weft version", "unknown"), lines.get("git revision", "unknown")
        # A revision that does not identify the build is not enough.
        if self.revision == "unknown" or self.revision.endswith("-dirty"):
            self.revision += " " + digest_of_file(self.path)[:12]


def printed_object(text, command):
    """The JSON object that a command of weft has printed, also after lines of text."""
    start = re.search(r"^\{", text, re.MULTILINE)
    try:
        return json.loads(text[start.start():] if start else text)
    except ValueError:
        found = (text.strip().splitlines() or ["nothing"])[0][:80]
        raise EnvironmentFailure(f"`weft {command}` printed '{found}'; expected one JSON object; is it of another "
                                 "version?") from None


# The environment of a program started by mpirun or Slurm would make its children parts of it.
FOREIGN = ("OMPI_COMM_WORLD_", "OMPI_UNIVERSE", "OMPI_MCA_orte_", "OMPI_MCA_ess", "PMIX_", "PMI_")
KEPT = ("OMPI_MCA_orte_execute_quiet",)


def environment(scratch=None):
    """The environment of a child. Programs that run side by side need separate folders, because each removes its folder
    at its end."""
    scratch = scratch or own_scratch()
    values = {name: value for name, value in os.environ.items() if name in KEPT or not name.startswith(FOREIGN)}
    values["OMPI_MCA_orte_tmpdir_base"] = str(scratch)
    return values


@functools.cache
def own_scratch():
    """The environment of children that run one after another."""
    folder = tempfile.mkdtemp(prefix="weft-study-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def digest_of_file(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def digest_of(data):
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def texts_in(data):
    """All texts that may name files."""
    if isinstance(data, dict):
        data = data.values()
    if isinstance(data, str):
        if 0 < len(data) < 1000 and "\n" not in data and "\0" not in data:
            yield data
    elif data is not None:
        for item in data:
            yield from texts_in(item)


class Files:
    """Digests of the files that experiments name, each read once."""

    def __init__(self):
        self.digests = {}

    def named_in(self, data, folder, seen=()):
        """{path: digest} of all files that the texts of `data` name, and those that these name. A text that is the
        beginning of several names (traces of ranks) means all of them."""
        found = {}
        for text in texts_in(data):
            path = pathlib.Path(folder) / text
            try:
                paths = [path] if path.is_file() else []
                if not paths and "/" in text:
                    paths = [p for p in sorted(path.parent.glob(glob_text(path.name) + "*")) if p.is_file()]
            except (OSError, ValueError):
                continue
            for one in paths:
                key = str(one.resolve())
                if key in seen or key in found:
                    continue
                found[os.path.relpath(key, folder)] = self.digest(key)
                found.update(self.named_in(self.content(one), one.parent, (*seen, *found, key)))
        return found

    def digest(self, key):
        if key not in self.digests:
            self.digests[key] = digest_of_file(key)
        return self.digests[key]

    @staticmethod
    def content(path):
        if path.suffix not in (".yaml", ".yml", ".json") or path.stat().st_size > MAX_TEXT:
            return None
        try:
            return nodes.load(path)[1].data()
        except StudyError:
            return None


def glob_text(name):
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


class Identity:
    """Digests of the cases of a study under a program."""

    def __init__(self, study, program):
        self.study, self.program, self.files = study, program, Files()

    def accounting(self, case):
        """The `accounting:` map of a case as data, or None."""
        data = self.study.base
        for path, value in case.settings:
            if path.split(".")[0] == "accounting":
                try:
                    data = nodes.with_value(data, path, value)
                except KeyError:
                    raise StudyError(f"{self.study.path}: '{path}' goes through a value that is no map") from None
        return data.get("accounting")

    def resolved(self, case):
        """The experiment of a case as data. Settings that --set would refuse are kept as settings: weft reports the
        error."""
        data = self.study.base
        for path, value in case.settings:
            try:
                data = nodes.with_value(data, path, value)
            except KeyError:
                return {"base": self.study.base, "settings": case.settings}
        # Costs and emissions are calculated from a run, which is the same with other prices.
        data = {key: value for key, value in data.items() if key != "accounting"}
        if isinstance(data.get("output"), dict):
            data = {**data, "output": {key: value for key, value in data["output"].items() if key != "file"}}
            data = data if data["output"] else {key: value for key, value in data.items() if key != "output"}
        return data

    def of(self, data):
        named = self.files.named_in(data, self.study.folder)
        return digest_of([nodes.plain(data), sorted(named.items()), self.program.version, self.program.revision])

    def of_case(self, case):
        return self.of(self.resolved(case))[:20]

    def of_machine(self, case):
        data = self.resolved(case)
        return self.of({"topology": data.get("topology", data)})[:20]
