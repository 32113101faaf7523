# SPDX-License-Identifier: GPL-2.0-only
"""A study file, read and checked before anything runs."""

import pathlib

from accounting.settings import Settings
from support import nodes
from support.errors import StudyError, did_you_mean
from support.quantities import column_of

from . import axes, outputs
from .expressions import Expression
from .machines import FIGURES
from .search import Search

KEYS = ["experiment", "set", "grid", "list", "random", "latin_hypercube", "derived", "constraints", "objective",
        "outputs", "equal", "allow_unequal", "processes", "keep_runs", "accounting", "plans", "search"]


class Case:
    """One experiment of a study: its number, {key: Choice}, and the settings that change the base into it."""

    def __init__(self, number, choices, settings):
        self.number, self.choices, self.settings = number, choices, settings
        self.inputs = {}  # {name: value}
        self.same_as = -1  # the first case with the same run
        self.broken = ""  # the constraint that it violates before it runs


def key_in(item, name):
    """The first key of that name in a map or a list, however deep; None if there is none."""
    if item.is_list():
        return next((key for key in (key_in(one, name) for one in item.items()) if key), None)
    if not item.is_map():
        return None
    found = next((key for key, _ in item.entries() if key.node.value == name), None)
    return found or next((key for key in (key_in(value, name) for _, value in item.entries()) if key), None)


class Study:
    """The content of a study file. `cases` in their order; columns: the keys of `inputs`, `outputs` and `derived`."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.text, root = nodes.load(path)
        if root.is_map() and "topology" in root.data() and "experiment" not in root.data():
            raise root.error("found an experiment, which `weft run` runs; expected a study, with `experiment: FILE.yaml`")
        parts = root.known(KEYS)
        if "experiment" not in parts:
            raise root.error("missing key 'experiment'; expected the file of an experiment, or its map, in a study")
        self.parts = parts
        self.read_experiment(parts["experiment"])
        common = axes.settings_of(parts["set"]) if "set" in parts else ()
        if "accounting" in parts:
            Settings(parts["accounting"])  # reports errors
            common += tuple((f"accounting.{key}", data) for key, data in parts["accounting"].data().items())
        self.axes = axes.Axes(parts)
        self.cases = [Case(number, choices, [*common, *axes.settings_of_case(choices)])
                      for number, choices in enumerate(self.axes.cases)]
        self.read_inputs(dict(common))
        self.outputs = outputs.read_outputs(parts.get("outputs"))
        self.taken = {}
        for kind, names in (("input", self.inputs), ("figure of machines", FIGURES), ("output", self.outputs)):
            for name in names:
                self.take(name, kind, parts.get("outputs", root) if kind == "output" else root)
        self.derived = self.read_derived(parts.get("derived"))
        self.search = Search(parts["search"], self) if "search" in parts else None
        self.constraints = self.read_constraints(parts.get("constraints"))
        self.objective = self.read_objective(parts.get("objective"))
        self.equal = self.read_equal(parts.get("equal"))
        self.allow_unequal = "allow_unequal" in parts and parts["allow_unequal"].boolean()
        self.processes = parts["processes"].integer(1, "a number of MPI processes") if "processes" in parts else 0
        self.keep_runs = "keep_runs" not in parts or parts["keep_runs"].boolean()

    def place_of(self, path):
        """The key by which the study sets a path, or the section `plans`, which has no keys for its paths."""
        parts = self.parts
        found = (key_in(parts[name], path) for name in ("set", *axes.VARIED) if name in parts)
        return next((key for key in found if key), parts.get("plans", parts["experiment"]))

    def read_experiment(self, item):
        """The base: a file, or a map in the study. Relative names in it are relative to `folder`."""
        self.folder = self.path.parent
        self.inline = item.is_map()
        if self.inline:
            self.base_path, self.base = None, item.data()
            check_accounting(item)
            return
        name = item.text("the name of an experiment's file, or its map,")
        self.base_path = self.folder / name
        self.base_text, root = nodes.load(self.base_path, item.where)
        if not root.is_map():
            raise root.error(f"found {root.found()}; expected the map of an experiment")
        self.base = root.data()
        check_accounting(root)
        self.folder = self.base_path.parent

    def read_inputs(self, common):
        """Columns of the varied inputs. If a case of a list leaves a key out, it has the value of the base."""
        self.inputs = {}  # {name: (key, values, unit)}
        for key in self.axes.keys:
            base = common.get(key, nodes.at_path(self.base, key))
            usual = base if isinstance(base, str) else ""
            values, unit = column_of([case.choices[key].label if key in case.choices else usual for case in self.cases])
            name = axes.column_name(key)
            self.inputs[name] = (key, values, unit)
            for case, value in zip(self.cases, values):
                case.inputs[name] = value

    def take(self, name, kind, item):
        if name in self.taken:
            raise item.error(f"found '{name}' both as {self.taken[name]} and as {kind}; expected one of them")
        self.taken[name] = kind

    def read_derived(self, item):
        derived = {}
        for key, value in item.entries("a map of names and expressions") if item else []:
            name = key.node.value
            if not name.isidentifier():
                raise key.error(f"found '{name}'; expected a name of letters, digits and _")
            expression = Expression(value.text("an expression"), value.where)
            expression.require([*self.taken])
            self.take(name, "derived column", key)
            derived[name] = expression
        return derived

    def unit_of_derived(self, name):
        """A derived column that only gives another column a name has that column's unit; of all others "1"."""
        column = self.derived[name].column
        if column in self.derived:
            return self.unit_of_derived(column)
        if column in FIGURES:
            return FIGURES[column][0]
        if column in self.inputs:
            return self.inputs[column][2]
        return self.outputs[column].unit if column in self.outputs else "1"

    def read_constraints(self, item):
        constraints = []
        for entry in item.items("a list of expressions") if item else []:
            expression = Expression(entry.text("an expression"), entry.where)
            if not expression.is_condition():
                raise entry.error(f"found '{expression.text}', which is not true or false; expected a comparison, "
                                  "such as 'job_time < 5 * ms'")
            expression.require([*self.taken])
            constraints.append(expression)
        return constraints

    def read_objective(self, item):
        """[(name, least is best)]; cases that differ in the inputs `within` are not compared."""
        objective, self.within = [], []
        for part, value in (item.known(["minimize", "maximize", "within"]).items() if item else []):
            known = self.taken if part != "within" else {**self.inputs, **{key: 0 for key in self.axes.keys}}
            for entry in value.items() if value.is_list() else [value]:
                name = entry.text("the name of a column")
                if name not in known:
                    raise entry.error(f"unknown name '{name}'{did_you_mean(name, known)}; known here: "
                                      f"{', '.join(known)}")
                if part == "within":
                    self.within.append(axes.column_name(name))
                else:
                    objective.append((name, part == "minimize"))
        if item and not objective:
            raise item.error("found no objective; expected `minimize` or `maximize` with names of columns")
        return objective

    def read_equal(self, item):
        """{figure of machines: allowed difference, as a share}."""
        if item is None:
            return {}
        equal = {}
        if item.is_map():
            pairs = [(key, value) for key, value in item.entries()]
        else:
            pairs = [(entry, None) for entry in item.items("a list of figures of machines")]
        for key, value in pairs:
            name = key.text("the name of a figure of machines")
            if name not in FIGURES:
                raise key.error(f"unknown figure '{name}'{did_you_mean(name, FIGURES)}; known here: "
                                f"{', '.join(FIGURES)}")
            equal[name] = read_share(value) if value else 0
        return equal

    def needs_machines(self):
        """True if the machines' figures are columns, and are held equal."""
        expressions = [*self.derived.values(), *self.constraints]
        if self.search:
            expressions.append(self.search.expression)
        named = {name for expression in expressions for name in expression.names} | {name for name, _ in self.objective}
        return bool(self.equal) or bool(named & set(FIGURES))

    def before_run(self, expression):
        """True if an expression is known before its case has run."""
        return all(name not in self.outputs and (name not in self.derived or self.before_run(self.derived[name]))
                   for name in expression.names)


def check_accounting(experiment):
    """Reports errors in `accounting:` of the base, with their line."""
    for key, value in experiment.entries():
        if key.node.value == "accounting":
            Settings(value)


def read_share(item):
    """`exact`, or a part such as `5 %`."""
    text = item.text("`exact`, or a share such as '5 %',")
    if text == "exact":
        return 0
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = -1
    if not text.endswith("%") or not 0 <= share <= 1:
        raise item.error(f"found '{text}'; expected exact, or a share such as '5 %'")
    return share
