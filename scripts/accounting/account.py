# SPDX-License-Identifier: GPL-2.0-only
"""Cost, energy and emissions of a run: formulas over its usage and the figures of an estimate."""

import math

from .bill import LENGTHS, bill_of

YEAR = 365 * 24 * 3600.0  # s
KWH = 3.6e6  # J
EXA = 1e18
STATES = ("compute", "communication", "idle")
NETWORK = ("nics", "switches", "cables")
TOTALS = ("cost", "energy", "carbon")


def capital(bill, values, settings):
    """{part: price}: purchase price of the machine, in $."""
    cables = bill.cables_by_kind(settings.lengths_of(bill))
    servers = bill.server_count(settings.numbers.get("accelerators_per_server"))
    return {"accelerators": bill.accelerators * values["accelerator_price"],
            "servers": servers * values["server_price"], "storage": bill.storage * values["storage_price"],
            "nics": bill.nics * values["nic_price"], "switches": bill.switch_rate() * values["switch_port_price"],
            "cables": sum(cables[kind][1] * values[f"{kind}_cable_price"] for kind, _ in LENGTHS),
            "facility": servers * values["facility_price"]}


def embodied(bill, values, settings):
    """{part: kg of CO2} of making the machine."""
    cables = bill.cables_by_kind(settings.lengths_of(bill))
    servers = bill.server_count(settings.numbers.get("accelerators_per_server"))
    return {"accelerators": bill.accelerators * values["accelerator_embodied"],
            "servers": servers * values["server_embodied"], "storage": bill.storage * values["storage_embodied"],
            "nics": bill.nics * values["nic_embodied"], "switches": bill.switch_rate() * values["switch_port_embodied"],
            "cables": sum(cables[kind][1] * values[f"{kind}_cable_embodied"] for kind, _ in LENGTHS)}


def constant_power(bill, values, settings):
    """{part: W} of parts with constant power."""
    cables = bill.cables_by_kind(settings.lengths_of(bill))
    servers = bill.server_count(settings.numbers.get("accelerators_per_server"))
    return {"servers": servers * values["server_power"], "storage": bill.storage * values["storage_power"],
            "nics": bill.nics * values["nic_power"],
            "optics": 2 * sum(cables[kind][1] * values[f"{kind}_end_power"] for kind, _ in LENGTHS)}


def switch_power(bill, values, busy):
    """Power of switches outside servers in W; `busy`: the rate of ports that send, in units of RATE."""
    idle = values["switch_idle_share"]
    return values["switch_port_power"] * (bill.switch_rate() * idle + busy * (1 - idle))


def max_power(bill, values, settings):
    """{part: W} with all accelerators computing and all ports sending."""
    return {"accelerators": bill.accelerators * values["accelerator_power"] * values["compute_share"],
            **constant_power(bill, values, settings), "switches": switch_power(bill, values, bill.switch_rate())}


def machine_figures(bill, settings, device=None):
    """{figure: value} of a machine that has not run yet."""
    values = settings.values(settings.estimate, device)
    price, power = capital(bill, values, settings), max_power(bill, values, settings)
    return {"cost": sum(price.values()), "network_cost": sum(price[part] for part in NETWORK),
            "power": sum(power.values()), "network_power": sum(power[part] for part in ("nics", "switches", "optics")),
            "embodied": 1000 * sum(embodied(bill, values, settings).values())}


def energy(usage, values, settings):
    """{part: J} of the whole run, at the machine's plugs."""
    bill, span = bill_of(usage["bill"]), usage["span"]
    idle = bill.accelerators * span - usage["compute"] - usage["communication"]
    seconds = {"compute": usage["compute"], "communication": usage["communication"], "idle": idle}
    found = {state: seconds[state] * values["accelerator_power"] * values[f"{state}_share"] for state in STATES}
    found.update({part: watts * span for part, watts in constant_power(bill, values, settings).items()})
    found["switches"] = switch_power(bill, values, usage["switch_busy"] / span) * span if span else 0.0
    return found


def annuity(interest, years):
    """The share of a price to be paid each year: the capital recovery factor."""
    return interest / -math.expm1(-years * math.log1p(interest)) if interest > 0 else 1 / years


class Account:
    """Cost, energy and emissions of one run with the figures of one estimate. Figures of a step are those of the job
    that takes longest, with the whole machine."""

    def __init__(self, usage, settings, estimate=None):
        self.usage, self.settings = usage, settings
        values = self.values = settings.values(estimate or settings.estimate, usage["device"])
        self.bill = bill_of(usage["bill"])
        self.energy_parts = energy(usage, values, settings)
        self.capital_parts = capital(self.bill, values, settings)
        self.embodied_parts = embodied(self.bill, values, settings)
        self.count_steps()
        self.run = self.of_run()
        self.figures = self.of_machine() | self.run | self.of_step() | self.of_training()

    def count_steps(self):
        given, usage = self.settings.numbers, self.usage
        self.steps = usage["steps"]
        self.tokens = given.get("tokens_per_step", usage["tokens_per_step"])
        self.flop = given.get("flop_per_step", usage["flop_per_step"])
        self.training_steps = given.get("training_steps")
        # With `symmetry` the machine and its steps are a part of the job, and the training is of all of it.
        self.copies = usage.get("copies", 1)
        if self.training_steps is None and self.tokens and "training_tokens" in given:
            self.training_steps = given["training_tokens"] / (self.tokens * self.copies)
        self.step_time = self.per_step(usage["span"])

    def per_step(self, value):
        """Of a step, if the run has done all of them."""
        return value / self.steps if self.steps else None

    def of_machine(self):
        return {"machine_cost": sum(self.capital_parts.values()),
                "machine_network_cost": sum(self.capital_parts[part] for part in NETWORK),
                "machine_embodied": 1000 * sum(self.embodied_parts.values())}

    def of_run(self):
        values, span = self.values, self.usage["span"]
        training = self.step_time * self.training_steps if self.training_steps and self.steps else span
        self.intensity = self.settings.intensity(values, training)
        it = sum(self.energy_parts.values())
        kwh = it * values["pue"] / KWH
        price, year = sum(self.capital_parts.values()), YEAR * values["availability"]
        capital_cost = price * annuity(values["interest"], values["lifetime"]) * span / year
        operating = kwh * values["electricity_price"] + price * values["maintenance"] * span / year
        made = 1000 * sum(self.embodied_parts.values()) * span / (year * values["lifetime"])
        used = kwh * self.intensity
        return {"mean_power": it / span if span else None, "run_energy_of_machine": it,
                "run_energy": it * values["pue"], "run_capital_cost": capital_cost, "run_operating_cost": operating,
                "run_cost": capital_cost + operating, "run_embodied_carbon": made, "run_operational_carbon": used,
                "run_carbon": made + used}

    def of_step(self):
        run = self.run
        found = {f"{name}_per_step": self.per_step(run[f"run_{name}"]) for name in TOTALS}
        known = self.steps and self.tokens
        found.update({f"{name}_per_token": found[f"{name}_per_step"] / self.tokens if known else None for name in TOTALS})
        found["tcdp"] = found["carbon_per_step"] * self.step_time if self.steps else None
        found["cci"] = found["carbon_per_step"] / (self.flop / EXA) if self.steps and self.flop else None
        return found

    def of_training(self):
        steps = self.training_steps if self.steps else None
        return {"training_time": self.step_time * steps if steps else None,
                **{f"training_{name}": self.per_step(self.run[f"run_{name}"]) * steps * self.copies if steps else None
                   for name in TOTALS}}


# {figure: (unit, description)}
FIGURES = {
    "machine_cost": ("$", "the machine's price"),
    "machine_network_cost": ("$", "of NICs, switches and cables"),
    "machine_embodied": ("g", "CO2 of making the machine"),
    "mean_power": ("W", "of the machine, over the run"),
    "run_energy_of_machine": ("J", "of the run, at the machine's plugs"),
    "run_energy": ("J", "of the run, with cooling"),
    "run_capital_cost": ("$", "the run's share of the machine's price"),
    "run_operating_cost": ("$", "electricity and maintenance for the run"),
    "run_cost": ("$", "of the run"),
    "run_embodied_carbon": ("g", "the run's share of CO2 of making the machine"),
    "run_operational_carbon": ("g", "CO2 of the run's electricity"),
    "run_carbon": ("g", "CO2 of the run"),
    "cost_per_step": ("$", "of a step"),
    "energy_per_step": ("J", "of a step, with cooling"),
    "carbon_per_step": ("g", "CO2 of a step"),
    "cost_per_token": ("$", "of a token"),
    "energy_per_token": ("J", "of a token, with cooling"),
    "carbon_per_token": ("g", "CO2 of a token"),
    "tcdp": ("g s", "CO2 of a step times its duration"),
    "cci": ("g/EFLOP", "CO2 of 10^18 floating-point operations"),
    "training_time": ("s", "of the whole training"),
    "training_cost": ("$", "of the whole training"),
    "training_energy": ("J", "of the whole training, with cooling"),
    "training_carbon": ("g", "CO2 of the whole training"),
}
