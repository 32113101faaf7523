# SPDX-License-Identifier: GPL-2.0-only
"""The output of `weft account`."""

import json

from support.quantities import readable

from .account import FIGURES, Account
from .bill import LENGTHS
from .settings import ESTIMATES

TITLES = {"machine": ("machine_cost", "machine_network_cost", "machine_embodied", "mean_power"),
          "run": ("run_energy", "run_cost", "run_capital_cost", "run_operating_cost", "run_carbon",
                  "run_embodied_carbon", "run_operational_carbon"),
          "step": ("energy_per_step", "cost_per_step", "carbon_per_step", "tcdp", "cci"),
          "token": ("energy_per_token", "cost_per_token", "carbon_per_token"),
          "training": ("training_time", "training_energy", "training_cost", "training_carbon")}
CUT = "INCOMPLETE: the run was interrupted or cut short; energy, cost and emissions are those until then"
LONGEST = {"copper": "up to 3 m", "active": "up to 30 m", "optical": "up to 100 m", "long": "longer"}


def accounts_of(usage, settings):
    return {estimate: Account(usage, settings, estimate) for estimate in ESTIMATES}


def value_text(value, unit):
    return "–" if value is None else readable(float(value), unit)


def is_complete(usage):
    """False if the run was interrupted or cut short. Records of older studies do not say."""
    return usage.get("complete", True)


def servers_of(bill, settings):
    """Those that costs and energy count, also where the machine does not say."""
    return bill.server_count(settings.numbers.get("accelerators_per_server"))


def bill_rows(bill, settings):
    """[(part, number)]."""
    rows = [("accelerators", bill.accelerators), ("storage hosts", bill.storage),
            ("servers", servers_of(bill, settings)), ("NICs", bill.nics)]
    rows += [(f"switches of {ports} ports", count) for ports, count in sorted(bill.switches.items())]
    rows += [(f"cables {LONGEST[kind]}", bill.cables_by_kind(settings.lengths_of(bill))[kind][0]) for kind, _ in LENGTHS]
    return [(name, count) for name, count in rows if count]


def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  " + "  ".join(text.ljust(width) if i == 0 else text.rjust(width)
                                      for i, (text, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def as_table(usage, settings):
    accounts = accounts_of(usage, settings)
    text = "" if is_complete(usage) else f"\n  {CUT}\n"
    text += "\n" + aligned([(name, f"{count:,}") for name, count in bill_rows(accounts["mid"].bill, settings)])
    for title, names in TITLES.items():
        rows = [(title, *ESTIMATES)]
        for name in names:
            values = [accounts[estimate].figures[name] for estimate in ESTIMATES]
            if any(value is not None for value in values):
                rows.append((f"  {name}", *(value_text(value, FIGURES[name][0]) for value in values)))
        if len(rows) > 1:
            text += "\n\n" + aligned(rows)
    parts = accounts["mid"].energy_parts
    whole = sum(parts.values()) or 1
    text += "\n\n  energy at the plugs, mid: " + ", ".join(
        f"{part} {100 * joules / whole:.3g} %" for part, joules in parts.items() if joules)
    rated = accounts["mid"].values["accelerator_power"]
    text += f"\n  accelerators are {settings.accelerator_of(usage['device'])}, rated at {rated:g} W"
    return text + "\n"


def as_json(usage, settings):
    accounts = accounts_of(usage, settings)
    mid = accounts["mid"]
    bill = {**usage["bill"], "servers": servers_of(mid.bill, settings)}
    return json.dumps({"complete": is_complete(usage), "bill_of_materials": bill,
                       "accelerator": settings.accelerator_of(usage["device"]), "steps": usage["steps"],
                       "tokens_per_step": mid.tokens, "flop_per_step": mid.flop, "training_steps": mid.training_steps,
                       **{estimate: {"figures": one.figures, "energy": one.energy_parts, "capital": one.capital_parts,
                                     "embodied": one.embodied_parts} for estimate, one in accounts.items()}}, indent=2)
