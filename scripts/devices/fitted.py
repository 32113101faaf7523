# SPDX-License-Identifier: GPL-2.0-only
"""A device file from tables of measured kernels."""

import copy
import json

from devices import fitting
from devices.fitting import QUANTISING
from devices.rates import GEMMS, GROUPED
from devices.tables import LAYOUTS

PEAKS = ("bf16", "fp16", "fp8", "fp8_block")


def fitted(device, data, tables, units, names, measured_bandwidth=None):
    """The text of the file with its errors on held-out shapes, which are also printed."""
    device.single = True
    kinds = {layout: [one for one in tables if one.layout == layout] for layout in LAYOUTS}
    sustained = copy.deepcopy(data.get("sustained") or {})
    remarks = []

    def tell(what, result):
        line = f"{what}: fitted to {result['fitted']} shapes; on {fitting.text_of(result['unseen'])}"
        remarks.append(line)
        print(line)

    if not kinds["gemms"] and "gemms" not in sustained:
        raise ValueError("no table of GEMMs, and the device has no 'sustained' to take them from; expected one")
    for table in kinds["gemms"]:
        fit_gemms(device, sustained, table, units, tell)
    launch = float(str(sustained.get("launch", "0 us")).split()[0]) * 1e-6
    for table in kinds["attention"]:
        result = fitting.fit_attention(device, table, units)
        sustained["attention"] = [{"library": "measured", **result["rates"]}]
        tell("attention, forward", result)
    for table in kinds["memory"]:
        curves = sustained.setdefault("memory_kernels", {})
        for traffic, result in fitting.fit_memory(device, table, launch, measured_bandwidth).items():
            curves[traffic] = result["curve"]
            tell(f"memory kernels, {traffic}", result)
    for table in kinds["experts"]:
        device.sustained = sustained
        for precision in GROUPED:
            if precision not in table["precision"]:
                continue
            result = fitting.fit_experts(device, table, units, precision)
            sustained[GROUPED[precision]] = result["rates"]
            tell(f"layers of experts, {precision}", result)
            remarks.append(f"besides, for each layer: {result['layer'][0]} us, and copies at {result['layer'][1]} of the bandwidth of others")
    return text_of({**data, "sustained": sustained}, names, remarks)


def fit_gemms(device, sustained, table, units, tell):
    found = [precision for precision in PEAKS if precision in set(table["precision"]) and precision in device.peak]
    if not found:
        raise ValueError(f"GEMMs in {', '.join(sorted(set(table['precision'])))}; expected bf16, fp16, fp8 or fp8_block, with a "
                         "peak in the device's file")
    for precision in found:
        launch = float(str(sustained["launch"]).split()[0]) * 1e-6 if precision in QUANTISING and "launch" in sustained else None
        result = fitting.fit_gemms(device, table, precision, units, launch)
        key = GEMMS.get(precision, "gemms")
        known = {name: value for name, value in sustained.get(key, {}).items() if name == "alignment"}  # tables have no such shapes
        sustained[key] = {**known, **result["rates"]}
        if launch is None:
            sustained["launch"] = f"{result['launch']} us"
        tell(f"{precision} GEMMs", result)


def text_of(data, names, remarks):
    lines = ["# SPDX-License-Identifier: GPL-2.0-only", f"# Made by `weft device fit` from {', '.join(names)}."]
    lines += [f"# {line}" for line in remarks]
    for key, value in data.items():
        if key == "sustained":
            lines += [*sustained_lines(value)]
        else:
            lines.append(f"{key}: {json.dumps(value)}")
    return "\n".join(lines) + "\n"


def sustained_lines(sustained):
    """The map in house style: one key per line."""
    lines = ["sustained:"]
    for key, value in sustained.items():
        if key == "attention":
            lines.append("  attention:")
            for one in value:
                lines += block(one, "    - ", "      ")
        elif isinstance(value, dict):
            lines += [f"  {key}:", *block(value, "    ", "    ")]
        else:
            lines.append(f"  {key}: {value}")
    return lines


def block(value, first, further):
    return [f"{first if i == 0 else further}{key}: {flow(item)}" for i, (key, item) in enumerate(value.items())]


def flow(item):
    """Lists on one line, with unchanged quantities."""
    if isinstance(item, list):
        return "[" + ", ".join(flow(one) for one in item) + "]"
    return str(item)
