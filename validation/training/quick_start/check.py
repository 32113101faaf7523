# SPDX-License-Identifier: GPL-2.0-only
import json

import numpy
import yaml

from oracles.gpt2 import Device, Gpt2, compute_time

SOURCE = "Williams et al. 2009; Narayanan et al. 2021"
EXPERIMENT = "workloads/quickstart.yaml"
ELEMENT = 2  # bytes of a gradient in bf16


def check(case):
    files = case.root / "workloads"
    workload = case.experiment["workload"]
    model_file = files / "models" / f"{workload['model']}.json"
    device_file = files / "devices" / f"{workload['device']}.yaml"
    run, _ = case.run({"workload.model": str(model_file), "workload.device": str(device_file)})
    ranks, operations = run.ranks, run.operations
    model = Gpt2.of(json.loads(model_file.read_text()))
    device = Device.of(yaml.safe_load(device_file.read_text()), workload["precision"])
    n = len(ranks["rank"])

    compute = compute_time(model, device, workload["micro_batch"], workload["sequence_length"], ELEMENT)
    case.exact_all("compute time of each rank: roofline", [(compute, measured) for measured in ranks["compute"]])

    gradients = model.parameters() * ELEMENT
    if 2 * (n - 1) * gradients % n:
        raise ArithmeticError("the gradients do not divide")
    share = 2 * (n - 1) * gradients // n
    wire = run.links["payload_bytes"][numpy.isin(run.links["from"], ranks["node"])]
    sent = [(share, measured) for measured in (*ranks["bytes_sent"], *wire)]
    case.exact_all("bytes of each rank: 2 (n-1)/n x gradients", sent, "B")

    ends = numpy.zeros(n, dtype=int)
    numpy.maximum.at(ends, operations["rank"], operations["end"])
    step = list(zip(ends, ranks["compute"] + ranks["exposed"], strict=True))
    case.exact_all("step time = compute + exposed", step)

    exposed = []
    for rank in range(n):
        mine = (operations["rank"] == rank) & (operations["kind"] == 0)
        start, end = (numpy.sort(operations[column][mine]) for column in ("start", "end"))
        # The optimizer is the last computation; there is no gap until the end of the backward pass.
        exposed.append((start[-1] - end[-2], ranks["exposed"][rank]))
        exposed.append((0, (start[1:-1] - end[:-2]).sum()))
    case.exact_all("exposed: from the end of the backward pass to the optimizer", exposed)
