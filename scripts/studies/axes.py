# SPDX-License-Identifier: GPL-2.0-only
"""The varied inputs: the sections `grid`, `list`, `random` and `latin_hypercube` of a study, and the cases they
make."""

import itertools
import math
import random
from dataclasses import dataclass

from support.errors import did_you_mean
from support.nodes import flow
from support.quantities import BASES, parse_number, parse_quantity

SECTIONS = ["topology", "network", "workload", "background", "simulation", "output", "accounting"]
VARIED = ("grid", "list", "plans", "random", "latin_hypercube")
MAX_CASES = 1_000_000


@dataclass(frozen=True)
class Choice:
    """A value of a key: its name in tables, and its settings: ((path, data), ...)."""

    label: str
    settings: tuple


@dataclass
class Range:
    """The range from which numbers are drawn, in base units; `base` is the unit's name, '' for plain numbers."""

    low: float
    high: float
    base: str
    whole: bool
    logarithmic: bool
    step: int

    def text_at(self, share):
        """The value at a share of the range, from 0 to below 1."""
        if self.logarithmic:
            value = math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        if not self.whole:
            return f"{value:.12g}"
        value = min(max(round(value / self.step) * self.step, self.low), self.high)
        return f"{int(value)} {self.base}".strip()


def column_name(key):
    return "".join(c if c.isalnum() or c == "_" else "_" for c in key)


def check_path(key):
    """The key is a path into an experiment."""
    path = key.node.value
    first = path.split(".")[0]
    if first not in SECTIONS or not all(path.split(".")):
        raise key.error(f"found the key '{path}'; expected a path into the experiment, such as workload.size, which "
                        f"begins with one of {', '.join(SECTIONS)}{did_you_mean(first, SECTIONS)}")
    if path == "output.file":
        raise key.error("found 'output.file'; each case has a results file of its own, which the study names")


def settings_of(item):
    """((path, data), ...) of a map of paths."""
    settings = []
    for key, value in item.entries("a map of paths and values, such as {workload.size: 1 MiB}"):
        check_path(key)
        settings.append((key.node.value, value.data()))
    return tuple(settings)


def choices_of(key, item):
    """The values of one key: a list, or alternatives with names."""
    path = key.node.value
    bundle = path.split(".")[0] not in SECTIONS and item.is_map() and any(v.is_map() for _, v in item.entries())
    if not bundle:
        check_path(key)
    if item.is_map():
        choices = []
        for name, value in item.entries():
            if bundle:
                choices.append(Choice(name.node.value, settings_of(value)))
                continue
            if value.is_list() and not path.startswith("background"):
                raise name.error(f"found a list below '{name.node.value}', which would be the name of a value of "
                                 f"'{path}'; expected `{path}.{name.node.value}: [...]`")
            choices.append(Choice(name.node.value, ((path, value.data()),)))
    else:
        values = item.items("a list of values, or a map of named values")
        choices = [Choice(v.node.value if v.is_scalar() else flow(v.data()), ((path, v.data()),)) for v in values]
    if not choices:
        raise item.error(f"found no values of '{path}'; expected one or more")
    labels = [choice.label for choice in choices]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise item.error(f"found the value '{twice}' of '{path}' twice; expected once")
    return choices


def read_number(item):
    """(number, base unit or '', whole)."""
    text = item.text("a number or a quantity")
    quantity = parse_quantity(text)
    if quantity:
        return quantity[0], BASES[quantity[1]], True
    number = parse_number(text)
    if number is None:
        raise item.error(f"found '{text}'; expected a number or a quantity such as '1 MiB'")
    return number, "", isinstance(number, int)


def read_range(item):
    """`{from, to, scale, step}`."""
    parts = item.known(["from", "to", "scale", "step"])
    for name in ("from", "to"):
        if name not in parts:
            raise item.error(f"missing key '{name}'; a range has from and to")
    (low, base, whole), (high, base_to, whole_to) = read_number(parts["from"]), read_number(parts["to"])
    if base != base_to:
        raise parts["to"].error(f"found {parts['to'].found()}, in another unit than 'from'; expected the same")
    if high < low:
        raise parts["to"].error(f"found {parts['to'].found()}, below 'from'; expected as much or more")
    scale = parts["scale"].text() if "scale" in parts else "linear"
    if scale not in ("linear", "log"):
        raise parts["scale"].error(f"found '{scale}'; expected linear or log")
    if scale == "log" and low <= 0:
        raise parts["from"].error(f"found {parts['from'].found()}; expected above 0 with scale: log")
    step = 1
    if "step" in parts:
        step, base_step, whole_step = read_number(parts["step"])
        if base_step != base or not whole_step or step <= 0 or not (whole and whole_to):
            raise parts["step"].error(f"found {parts['step'].found()}; expected a whole number in the unit of the range")
    return Range(low, high, base, whole and whole_to, scale == "log", step)


class Sampled:
    """`random` or `latin_hypercube`: cases with a value for each key."""

    def __init__(self, name, item):
        parts = item.known(["cases", "seed", "keys"])
        for due in ("cases", "keys"):
            if due not in parts:
                raise item.error(f"missing key '{due}'; `{name}` has cases, seed and keys")
        self.even = name == "latin_hypercube"
        self.cases = parts["cases"].integer(1, "a number of cases")
        self.draw = random.Random(parts["seed"].integer(0, "a seed") if "seed" in parts else 1).random
        self.keys = {}
        for key, value in parts["keys"].entries("a map of keys and what is drawn for them"):
            ranged = value.is_map() and any(name.node.value in ("from", "to") for name, _ in value.entries())
            if ranged:
                check_path(key)
            self.keys[key.node.value] = (key, read_range(value) if ranged else choices_of(key, value))

    def shares(self):
        """One number from 0 to below 1 for each case; for a Latin hypercube, one in each of as many equal parts."""
        if not self.even:
            return [self.draw() for _ in range(self.cases)]
        parts = list(range(self.cases))
        for i in range(self.cases - 1, 0, -1):  # Fisher and Yates
            j = int(self.draw() * (i + 1))
            parts[i], parts[j] = parts[j], parts[i]
        return [(part + self.draw()) / self.cases for part in parts]

    def rows(self):
        columns = []
        for path, (_, values) in self.keys.items():
            shares = self.shares()
            if isinstance(values, Range):
                texts = [values.text_at(share) for share in shares]
                columns.append([Choice(text, ((path, text),)) for text in texts])
            else:
                columns.append([values[int(share * len(values))] for share in shares])
        return [dict(zip(self.keys, row)) for row in zip(*columns)]


def is_label(key, value):
    """In a list, a word for a column that sets nothing, such as `name: wide`."""
    return key.node.value.isidentifier() and key.node.value not in SECTIONS and value.is_scalar()


def read_list(item):
    """[{key: Choice}] of a list of maps, and {key: Item} of its columns. If cases have labels, whole maps and keys that
    some cases leave out need no column."""
    rows, keys, hidden = [], {}, set()
    for entry in item.items("a list of maps of paths and values"):
        row = {}
        for key, value in entry.entries("a map of paths and values"):
            name = key.node.value
            keys.setdefault(name, key)
            if is_label(key, value):
                row[name] = Choice(value.text("a name"), ())
                continue
            check_path(key)
            if not value.is_scalar():
                hidden.add(name)
            data = value.data()
            row[name] = Choice(value.node.value if value.is_scalar() else flow(data), ((name, data),))
        rows.append(row)
    if not rows:
        raise item.error("found an empty list; expected one case or more")
    hidden |= {name for name in keys if any(name not in row for row in rows)}
    labelled = any(not choice.settings for row in rows for choice in row.values())
    return rows, {name: key for name, key in keys.items() if not (labelled and name in hidden)}


DIMENSIONS = ("tensor", "context", "pipeline", "expert")


def read_plans(item):
    """[{key: Choice}] of all plans of parallelism for a number of ranks: each combination of the given tensor, context
    and pipeline ranks whose product divides it, with the rest data-parallel; expert ranks divide context and data."""
    parts = item.known(["ranks", *DIMENSIONS])
    if "ranks" not in parts:
        raise item.error("missing key 'ranks'; expected a number of ranks in `plans`")
    ranks = parts["ranks"].integer(1, "a number of ranks")
    given = {name: [entry.integer(1, "a number of ranks") for entry in parts[name].items("a list of numbers of ranks")]
             for name in DIMENSIONS if name in parts}
    rows = []
    for numbers in itertools.product(*given.values()):
        plan = dict(zip(given, numbers))
        model = plan.get("tensor", 1) * plan.get("context", 1) * plan.get("pipeline", 1)
        if ranks % model or (plan.get("context", 1) * ranks // model) % plan.get("expert", 1):
            continue
        plan["data"] = ranks // model
        paths = {f"workload.parallelism.{name}": str(number) for name, number in plan.items()}
        rows.append({path: Choice(number, ((path, number),)) for path, number in paths.items()})
    if not rows:
        raise item.error(f"found no plan: no combination divides {ranks} ranks")
    return rows


class Axes:
    """All sections of a study. A case is a choice from each of them: `keys` {key: Item}, `cases` [{key: Choice}]."""

    def __init__(self, parts):
        self.keys, products = {}, []
        for name in [name for name in parts if name in VARIED]:
            if name == "plans":
                products.append(read_plans(parts[name]))
                for key in products[-1][0]:
                    self.add(key, parts[name])
            elif name == "grid":
                for key, value in parts[name].entries("a map of keys and their values"):
                    self.add(key.node.value, key)
                    products.append([{key.node.value: choice} for choice in choices_of(key, value)])
            elif name == "list":
                rows, keys = read_list(parts[name])
                for path, key in keys.items():
                    self.add(path, key)
                products.append(rows)
            else:
                sampled = Sampled(name, parts[name])
                for path, (key, _) in sampled.keys.items():
                    self.add(path, key)
                products.append(sampled.rows())
            if math.prod(len(rows) for rows in products) > MAX_CASES:
                raise parts[name].error(f"found more than {MAX_CASES:,} cases; expected fewer")
        self.cases = [{}]
        for rows in products:
            self.cases = [{**case, **row} for case in self.cases for row in rows]

    def add(self, path, key):
        for other, place in self.keys.items():
            if column_name(other) == column_name(path):
                raise key.error(f"found the key '{path}', which varies in line {place.node.start_mark.line + 1} "
                                "already; expected once")
        self.keys[path] = key


def settings_of_case(case):
    """All settings of a case, in the order of its keys. Without a value (null) a setting keeps the existing value."""
    return [(path, data) for choice in case.values() for path, data in choice.settings if data is not None]
