# SPDX-License-Identifier: GPL-2.0-only
import csv

SOURCE = "Zhang et al. 2024 (LLMCompass)"
# Additional time of a single GEMM for its launch and the wait for its end: the third parameter of the fit.
LAUNCH = 29e-6


def measured(case):
    with open(case.folder / "measured.csv", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def check(case):
    points = measured(case)
    kernels = [{key: int(point[key]) for key in ("m", "n", "k", "count")} for point in points]
    run, _ = case.run({"workload.operations": [
        {"rank": 0, "compute": {**kernel, "precision": "bf16"}} for kernel in kernels
    ]})  # fmt: skip
    times = (run.operations["end"] - run.operations["start"]) * 1e-12 + LAUNCH
    errors = {}
    for point, time in zip(points, times, strict=True):
        errors.setdefault(point["set"], []).append(100 * (time / (float(point["ms"]) * 1e-3) - 1))
    fit = [abs(error) for error in errors["fit"]]
    # The fit itself: three parameters, twenty points from 2 to 293 TFLOP/s.
    case.within("20 GEMMs on an A100: mean and largest error of the fit",
                [(0, 2, sum(fit) / len(fit)), (0, 4, max(fit))], "%", 1)
    # GEMMs that were not used for the fit.
    case.within("GEMMs of a GPT-3 layer, not fitted to", [(0, 5, error) for error in errors["layer"]], "%", 1)
    # A known error, checked so that the documents stay right: GEMMs with few columns or a short inner side.
    case.within("batched GEMMs of its attention: known fault of the model", [(-45, 5, errors["attention"][0]),
                                                                             (-15, 5, errors["attention"][1])], "%", 1)
