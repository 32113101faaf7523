# SPDX-License-Identifier: GPL-2.0-only
"""`accounting:` of an experiment or a study: figures with three estimates, and their replacements."""

import functools
import pathlib

from support import nodes
from support.errors import StudyError, did_you_mean
from support.quantities import parse_number

ESTIMATES = ("low", "mid", "high")
NUMBERS = ("training_tokens", "training_steps", "tokens_per_step", "flop_per_step")
KEYS = ("estimate", "accelerator", "start_hour", "cable_lengths", "accelerators_per_server", *NUMBERS)
ABOVE_ZERO = ("lifetime", "availability")  # prices and emissions are divided by them
LEAST = {"pue": 1.0}  # energy of the building by that of the machine in it
USUAL_ACCELERATOR = "h100-sxm"
HOURS = 24


class Defaults:
    """The file of figures: {name: {estimate: value}}, units, and figures by accelerator and region."""

    def __init__(self, path):
        data = nodes.load(path)[1].data()
        self.figures = {name: {estimate: float(row[estimate]) for estimate in ESTIMATES}
                        for name, row in data["figures"].items()}
        self.units = {name: row["unit"] for name, row in data["figures"].items()}
        self.descriptions = {name: row["of"] for name, row in data["figures"].items()}
        self.sources = {name: row["source"] for name, row in data["figures"].items()}
        self.accelerators = {name: {key: float(value) for key, value in row.items() if key != "source"}
                             for name, row in data["accelerators"].items()}
        self.regions = {name: float(value) for name, value in data["regions"].items()}


WORKLOADS = pathlib.Path(__file__).resolve().parents[2] / "workloads"


@functools.cache
def defaults():
    return Defaults(WORKLOADS / "accounting" / "figures.yaml")


@functools.cache
def titles_of_devices():
    """{title, as runs print it: name} of the devices that have figures."""
    return {nodes.load(WORKLOADS / "devices" / f"{name}.yaml")[1].data()["name"]: name for name in defaults().accelerators}


def number(item, least=0.0, most=1e30):
    value = parse_number(item.node.value) if item.is_scalar() else None
    if value is None or not least <= value <= most:
        raise item.error(f"found {item.found()}; expected a number of {least:g} or more" if most == 1e30 else
                         f"found {item.found()}; expected a number of {least:g} to {most:g}")
    return float(value)


def one_of(item, known, what):
    text = item.text(what)
    if text not in known:
        raise item.error(f"unknown {what} '{text}'{did_you_mean(text, known)}; known here: {', '.join(known)}")
    return text


def figure(item, name):
    value = number(item, LEAST.get(name, 0.0))
    if value == 0 and name in ABOVE_ZERO:
        raise item.error(f"{name}: found {item.found()}; expected a number above 0")
    return value


def read_figure(item, name):
    """{estimate: value} from one number for all estimates, or from a map."""
    if not item.is_map():
        return dict.fromkeys(ESTIMATES, figure(item, name))
    parts = item.known(ESTIMATES)
    for estimate in ESTIMATES:
        if estimate not in parts:
            raise item.error(f"missing key '{estimate}'; expected a number, or low, mid and high")
    return {estimate: figure(parts[estimate], name) for estimate in ESTIMATES}


class Settings:
    """An `accounting:` map. `estimate`: the one of the three that studies use; values(estimate) {figure: value}."""

    def __init__(self, item=None):
        known = defaults()
        parts = item.known([*KEYS, *known.figures]) if item else {}
        self.estimate = one_of(parts["estimate"], ESTIMATES, "estimate") if "estimate" in parts else "mid"
        self.accelerator = None
        if "accelerator" in parts:
            self.accelerator = one_of(parts["accelerator"], known.accelerators, "accelerator")
        self.numbers = {name: number(parts[name]) for name in NUMBERS if name in parts}
        if "accelerators_per_server" in parts:
            self.numbers["accelerators_per_server"] = parts["accelerators_per_server"].integer(1, "a whole number")
        self.start_hour = number(parts["start_hour"], 0, HOURS) if "start_hour" in parts else 0.0
        lengths = parts["cable_lengths"].entries("a map of classes of links and metres") if "cable_lengths" in parts else []
        self.lengths = {key.node.value: number(value) for key, value in lengths}
        self.length_keys = [key for key, _ in lengths]
        self.hourly = None
        self.given = {name: read_figure(part, name) for name, part in parts.items()
                      if name in known.figures and name != "grid_intensity"}
        if "grid_intensity" in parts:
            self.read_intensity(parts["grid_intensity"])

    def read_intensity(self, item):
        """A figure, a region's name, or one number for each hour of a day."""
        if item.is_list():
            hours = [number(entry) for entry in item.items()]
            if len(hours) != HOURS:
                raise item.error(f"found {len(hours)} numbers; expected one for each of the {HOURS} hours of a day")
            self.hourly = hours
        elif item.is_scalar() and item.node.value[:1].isalpha():
            region = one_of(item, defaults().regions, "region")
            self.given["grid_intensity"] = dict.fromkeys(ESTIMATES, defaults().regions[region])
        else:
            self.given["grid_intensity"] = read_figure(item, "grid_intensity")

    def lengths_of(self, bill):
        """{class of links: metres}. Each class must be one of the machine's."""
        known = bill.link_classes()
        for key in self.length_keys:
            if key.node.value not in known:
                raise key.error(f"no link of the machine is of class '{key.node.value}'; expected one of {', '.join(known)}")
        return self.lengths

    def accelerator_of(self, device=None):
        """The name of the accelerator whose figures count."""
        return self.accelerator or device or USUAL_ACCELERATOR

    def values(self, estimate, device=None):
        """{figure: value} for machines of that device, unless the settings name another one."""
        known = defaults()
        values = {name: row[estimate] for name, row in known.figures.items()}
        values.update(known.accelerators.get(self.accelerator_of(device), {}))
        values.update({name: row[estimate] for name, row in self.given.items()})
        return values

    def intensity(self, values, seconds):
        """Mean g of CO2 per kWh over `seconds` from `start_hour` on."""
        if self.hourly is None:
            return values["grid_intensity"]
        return mean_of_hours(self.hourly, self.start_hour, seconds / 3600)


def mean_of_hours(hourly, start, hours):
    """Mean of a step function of the hour of the day over an interval."""
    if start + hours <= int(start) + 1:  # also where the difference below is too short for its digits
        return hourly[int(start) % HOURS]

    def until(hour):
        whole, part = divmod(hour, 1)
        days, rest = divmod(int(whole), HOURS)
        return days * sum(hourly) + sum(hourly[:rest]) + part * hourly[rest]

    return (until(start + hours) - until(start)) / hours


def settings_of(data, place):
    """From data of an `accounting:` map, None for all defaults. Errors begin with `place`."""
    if data is None:
        return Settings()
    try:
        return Settings(nodes.parse(nodes.flow(data), "accounting"))
    except StudyError as error:
        raise StudyError(f"{place}: `accounting`: {str(error).removeprefix('accounting:1: ')}") from None
