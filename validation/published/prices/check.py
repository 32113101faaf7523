# SPDX-License-Identifier: GPL-2.0-only
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
from accounting.account import Account
from accounting.bill import Bill
from accounting.settings import defaults, settings_of
from accounting.usage import usage_of

SOURCE = "price list of 2024, see the case; Faiz et al. 2024 (LLMCarbon)"
DAY = 86400.0
# Parts of 1,024 GPUs: price in $.
PRICES = {"servers with GPUs and NICs": 39_680_000, "switches": 1_728_000, "cables": 2_621_440, "place": 6_400_000}
# Parts of XLM's machine (table 5): kg of CO2 per part, number, t of CO2 for 20.4 days of 5 years.
EMBODIED = {"V100": (9.78, 512, "0.056"), "CPU": (1.47, 64, "0.0011"), "SSD": (768, 64, "0.55"),
            "DRAM": (102.4, 64, "0.073")}


def nothing_but(**figures):
    zero = {name: "0" for name in defaults().figures if name.endswith(("_price", "_power", "_embodied"))}
    return settings_of({**zero, "availability": "1", **{name: str(value) for name, value in figures.items()}}, "here")


def account(devices, seconds, settings):
    """Usage of devices that compute all the time."""
    bill = Bill(devices, 0, 0, 0)
    return Account({"bill": bill.as_data(), "device": None, "span": seconds, "steps": 1, "tokens_per_step": None,
                    "flop_per_step": None, "compute": devices * seconds, "communication": 0.0, "switch_busy": 0.0},
                   settings).figures


def check(case):
    case.run()
    settings = settings_of({"switch_port_price": str(36_000 / 64 / 4), "optical_cable_price": str(1280 / 4),
                            "facility_price": "50000"}, "here")
    parts = Account(usage_of(case.scratch / "results.h5"), settings).capital_parts
    found = [parts["accelerators"] + parts["servers"] + parts["nics"], parts["switches"], parts["cables"],
             parts["facility"]]
    case.exact_all(f"1,024 GPUs: {', '.join(PRICES)}, all", [
        *zip(PRICES.values(), found), (50_429_440, sum(parts.values()))], "$")
    # XLM (table 4): 0.55 10^9 parameters, 7 10^12 tokens, 512 V100 of 125 TFLOP/s at 21.2 %, 342 W, PUE 1.1, 413 g/kWh.
    days = 6 * 0.55e9 * 7e12 / (512 * 125e12 * 0.212) / DAY
    emitted = account(512, days * DAY, nothing_but(accelerator_power=342, compute_share=1, pue=1.1, grid_intensity=413))
    error = 100 * (emitted["run_carbon"] / 39e6 - 1)
    case.within("XLM's emissions against those told, table 4", [(-3.54, 0.005, error)], "%")
    triples = []
    for each, number, printed in EMBODIED.values():
        figures = account(number, 20.4 * DAY, nothing_but(accelerator_embodied=each, lifetime=5))
        half = 0.5 * 10.0 ** (2 - len(printed))  # half of the last printed digit
        triples.append((float(printed), half, figures["run_embodied_carbon"] / 1e6))
    case.within(f"embodied in {', '.join(EMBODIED)}, table 5", triples, "t", 5)
