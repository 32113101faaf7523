# SPDX-License-Identifier: GPL-2.0-only
"""The best case of many: the ideal network ranks all of them, and packets decide among the best."""

import math

from support import nodes
from support.errors import StudyError, did_you_mean
from support.quantities import readable

from .expressions import Expression
from .outputs import NAMES, Output

# What the ideal network refuses, unless it is empty: {path: nothing}.
NOT_IDEAL = {"network.loss": [], "network.failures": [], "network.ns3_attributes": {}, "network.loggp": {},
             "background": [], "output.pcap": [], "output.queue_depths": "false", "output.rates": {}}
SIMULATED = 5  # cases among which packets decide
# Objectives by name. `cost` is the price of the machine.
OBJECTIVES = {
    "time": "step_time",
    "time_times_cost": "step_time * cost",
    "energy_per_token": "energy_per_token",
    "cost_per_token": "cost_per_token",
    "carbon_per_token": "carbon_per_token",
}


class Search:
    """`search:` of a study: an objective to minimise, and the number of cases among which packets decide."""

    def __init__(self, item, study):
        parts = item.known(["objective", "simulate"])
        if "objective" not in parts:
            raise item.error(f"missing key 'objective'; expected one of {', '.join(OBJECTIVES)}, or an expression")
        text = parts["objective"].text("an objective, or an expression over columns,")
        self.expression = Expression(OBJECTIVES.get(text, text), parts["objective"].where)
        for name in self.expression.names:  # outputs that the study does not list
            if name in NAMES and name not in study.taken:
                study.outputs[name] = Output(name, *NAMES[name])
                study.take(name, "output", item)
        if text.isidentifier() and text not in OBJECTIVES and text not in study.taken:
            near = did_you_mean(text, [*OBJECTIVES, *study.taken])
            raise parts["objective"].error(f"unknown objective '{text}'{near}; known: {', '.join(OBJECTIVES)}, and "
                                           "expressions over columns")
        self.expression.require([*study.taken])
        self.text = text
        output = study.outputs.get(self.expression.text)
        self.unit = output.unit if output else "1"
        self.simulated = parts["simulate"].integer(1, "a number of cases") if "simulate" in parts else SIMULATED


def on_ideal_network(experiment):
    """Settings [(path, data)] with which an experiment runs on the ideal network: without faults and background
    transfers, which it does not have, and without the parameters of another model."""
    return [("network.fidelity", "ideal"),
            *((path, nothing) for path, nothing in NOT_IDEAL.items() if nodes.at_path(experiment, path))]


def ranking(rows, expression):
    """[(value, number)] of the feasible rows with a value, the least first; equal ones in the order of cases."""
    found = []
    for number, row in enumerate(rows):
        value = expression.value(row["values"]) if row["feasible"] else math.nan
        if not isinstance(value, (int, float)):
            raise StudyError(f"{expression.where}: found '{expression.text}', which is no number; expected one")
        if value == value:
            found.append((value, number))
    return sorted(found)


def mean_ranks(values):
    """Ranks from 1; equal values get the mean of their ranks."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks, at = [0.0] * len(values), 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for i in order[at:end]:
            ranks[i] = (at + 1 + end) / 2
        at = end
    return ranks


def order_correlation(a, b):
    """Spearman's, the correlation of ranks (1904). Not-a-number for fewer than two values, or if all values on one side
    are equal."""
    x, y = mean_ranks(a), mean_ranks(b)
    count, mean = len(x), (len(x) + 1) / 2
    if count < 2:
        return math.nan
    spread = math.sqrt(sum((one - mean) ** 2 for one in x) * sum((one - mean) ** 2 for one in y))
    return sum((p - mean) * (q - mean) for p, q in zip(x, y)) / spread if spread else math.nan


class Result:
    """The result of a search: `order` of the ideal network, the cases `decided` by packets, the `best` of them, and the
    `correlation` of both orders among these."""

    def __init__(self, expression, ideal_rows, rows):
        self.order = ranking(ideal_rows, expression)
        self.ideal = {number: value for value, number in self.order}
        decided = ranking(rows, expression)
        self.decided = {number: value for value, number in decided}
        self.best = decided[0][1] if decided else None
        both = [number for number in self.ideal if number in self.decided]
        self.correlation = order_correlation([self.ideal[number] for number in both],
                                             [self.decided[number] for number in both])
        self.place = {number: place for place, (_, number) in enumerate(self.order, 1)}
        self.place_by_packets = {number: place for place, (_, number) in enumerate(decided, 1)}


def told(result, search, name_of):
    """Lines of text: the best case, its rank on the ideal network, and the quality of that order."""
    if result.best is None:
        return "no case has run and holds all constraints"
    lines = [f"the best by {search.text}: case {result.best} ({name_of(result.best)}), "
             f"{readable(float(result.decided[result.best]), search.unit)}; number {result.place[result.best]} of "
             f"{len(result.order)} on the ideal network, decided by packets among {len(result.decided)}"]
    if result.correlation == result.correlation:
        lines.append(f"order correlation of ideal network and packets among these: {result.correlation:.3f}")
    return "\n  ".join(lines)
