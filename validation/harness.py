# SPDX-License-Identifier: GPL-2.0-only
"""The interface for check.py of a case: its experiment, runs of it, and rows to fill."""

import copy
import dataclasses
import json
import pathlib
import subprocess
import sys

import h5py
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
from support import open_mpi  # noqa: E402
from support.server import Server  # noqa: E402


@dataclasses.dataclass
class Row:
    """One line of the table."""

    case: str
    source: str
    quantity: str
    expected: str
    measured: str
    error: str
    passed: bool
    compared: bool = False

    def cells(self):
        return [self.case, self.source, self.quantity, self.expected, self.measured, self.error, self.verdict()]

    def verdict(self):
        if self.compared:
            return "compared"
        return "pass" if self.passed else "FAIL"


class Run:
    """Summary and result tables of one run."""

    def __init__(self, summary, path):
        self.summary = summary
        self.tables = {}
        with h5py.File(path, "r") as file:
            for name in set(file) - {"manifest"}:
                self.tables[name] = {
                    column: data.asstr()[:] if h5py.check_string_dtype(data.dtype) else data[:]
                    for column, data in file[name].items()
                }
        if "messages" in self.tables:  # in the file by time, here by id
            order = self.tables["messages"]["id"].argsort()
            self.tables["messages"] = {name: data[order] for name, data in self.tables["messages"].items()}

    def __getattr__(self, name):
        try:
            return self.tables[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def time(self):
        return self.summary["simulated_time_ps"]


class Case:
    """One folder with README.md, check.py and experiment.yaml, unless check.py names another experiment. In `with`, because
    its program for all runs has to end."""

    def __init__(self, folder, root, weft, scratch, module, compares=True):
        self.folder = folder
        self.name = folder.relative_to(root).as_posix()
        self.weft = weft
        self.scratch = pathlib.Path(scratch)
        self.root = root.parent
        experiment = self.root / module.EXPERIMENT if hasattr(module, "EXPERIMENT") else folder / "experiment.yaml"
        self.experiment = yaml.safe_load(experiment.read_text())
        self.source = module.SOURCE
        self.mpi_ranks = getattr(module, "MPI_RANKS", 1)
        # False where only what is held to a tolerance is wanted (scripts/validate --held): check.py leaves out long runs
        # of which nothing but compared rows comes.
        self.compares = compares
        self.rows = []
        self.servers = []  # none before the first run, then one; copies of the case, with other experiments, share it

    def run(self, changes=None):
        """Runs experiment.yaml with changes such as {"topology.links": 3}; returns the Run, and the experiment as
        run."""
        config, experiment = self.written(changes)
        output = self.scratch / "results.h5"
        out = self.output_of(["run", config, "-o", output, "--summary", "json", "--quiet"])
        return Run(json.loads(out), output), experiment

    def compute_of_kinds(self, changes=None):
        """Seconds of computation in a step of a rank of each kind, those of a training job being its pipeline ranks; nothing is run."""
        config, _ = self.written(changes)
        counted = json.loads(self.output_of(["workload", config, "--no-run", "--json"]))
        return [of_rank["compute_seconds"] for of_rank in counted["of_ranks"]]

    def written(self, changes):
        """The path of experiment.yaml with changes, and its content."""
        experiment = copy.deepcopy(self.experiment)
        for path, value in (changes or {}).items():
            *parents, last = path.split(".")
            place = experiment
            for key in parents:
                place = place[key]
            place[last] = value
        config = self.scratch / "experiment.yaml"
        config.write_text(json.dumps(experiment))  # JSON is YAML
        return config, experiment

    def output_of(self, words):
        if not self.servers:
            self.servers.append(Server(self.start, self.mpi_ranks))
        code, out, err = self.servers[0].run(words, self.scratch)
        if code != 0:
            raise RuntimeError(f"weft {' '.join(map(str, words))}: exit code {code}\n{err}")
        return out

    def start(self, words):
        """One program for all runs of the case."""
        launcher = ["mpirun", "-n", self.mpi_ranks, "--oversubscribe"] if self.mpi_ranks > 1 else []
        # Programs without a daemon would share a folder for temporary files, and remove it while others use it.
        # A program alone needs no daemon: half of a second saved per run.
        settings = open_mpi.environment(self.scratch, OMPI_MCA_ess_singleton_isolated="1")
        return subprocess.Popen([str(word) for word in [*launcher, self.weft, *words]], env=settings, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.close()
            server.process.wait()

    # Rows. Integers must be equal; numbers with a tolerance explain it.

    def exact(self, quantity, expected, measured, unit="ps"):
        """Whole numbers that must be equal."""
        self.exact_all(quantity, [(expected, measured)], unit)

    def exact_all(self, quantity, pairs, unit="ps"):
        """Many (expected, measured) pairs that must be equal; shows the worst pair, or the largest if all are equal."""
        pairs = [(int(expected), int(measured)) for expected, measured in pairs]
        if not pairs:
            raise ValueError(f"{self.name}: {quantity}: nothing to compare")
        expected, measured = max(pairs, key=lambda pair: (abs(pair[1] - pair[0]), pair[0]))
        if len(pairs) > 1:
            quantity += f" ({len(pairs):,} values)"
        cells = (f"{value:,} {unit}" for value in (expected, measured, measured - expected))
        self.add(quantity, *cells, expected == measured)

    def within(self, quantity, triples, unit="", digits=3):
        """Numbers side by side in one row: (expected, tolerance, measured) each."""
        unit = f" {unit}" if unit else ""
        cells = []
        for expected, tolerance, measured in triples:
            error = round(float(measured - expected), digits) + 0.0  # no -0.000
            allowed = f"{expected:.{digits}f} ± {tolerance:.{digits}f}"
            cells.append((allowed, f"{measured:.{digits}f}", f"{error:+.{digits}f}"))
        good = all(bool(abs(measured - expected) <= tolerance) for expected, tolerance, measured in triples)
        self.add(quantity, *(", ".join(column) + unit for column in zip(*cells, strict=True)), good)

    def at_least(self, quantity, pairs, unit="ps"):
        """(bound, measured) pairs of which none may be below its bound; shows the one nearest to it."""
        bound, measured = min(pairs, key=lambda pair: pair[1] / pair[0])
        if len(pairs) > 1:
            quantity += f" ({len(pairs):,} values)"
        excess = f"{100 * (measured / bound - 1):+.2f} %"
        cells = (f"{value:,} {unit}".rstrip() for value in (bound, measured))
        self.add(quantity, "≥ " + next(cells), next(cells), excess, bool(measured >= bound))

    def compare(self, quantity, published, measured, error):
        """Published values or full simulations of others as texts, beside ours: reported, not checked."""
        self.rows.append(Row(self.name, self.source, quantity, published, measured, error, True, compared=True))

    def add(self, quantity, expected, measured, error, passed):
        self.rows.append(Row(self.name, self.source, quantity, expected, measured, error, passed))
