# SPDX-License-Identifier: GPL-2.0-only
import csv
import math

SOURCE = "Zhang et al. 2024 (LLMCompass)"


def check(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        points = list(csv.DictReader(line for line in file if not line.startswith("#")))
    run, _ = case.run({"workload.operations": [
        {"rank": 0, "compute": {"bytes": f"{4 * int(point['elements'])} B"}} for point in points
    ]})  # fmt: skip
    times = (run.operations["end"] - run.operations["start"]) * 1e-12
    ratios = {}
    for point, time in zip(points, times, strict=True):
        measured = int(point["elements"]) / (float(point["rate"]) * 1e9) - float(point["launch"]) * 1e-6
        ratios.setdefault(point["set"], []).append(math.log(time / measured))
    fit = ratios["fit"]
    spread = math.sqrt(sum(ratio**2 for ratio in fit) / len(fit))
    # One parameter for all kernels: correct on average, by construction, with this error for a single kernel.
    case.within("17 kernels on an A100: mean and root mean square of ln(model / measured)",
                [(0, 0.02, sum(fit) / len(fit)), (0, 0.3, spread)], "", 2)
    # Errors of kernels outside the fit are no larger than those of kernels in the fit.
    case.within("the same of softmax, layer norm, GELU of a GPT-3 layer, not fitted to",
                [(0, spread, ratio) for ratio in ratios["layer"]], "", 2)
