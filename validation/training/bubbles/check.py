# SPDX-License-Identifier: GPL-2.0-only
import json

SOURCE = "Narayanan et al. 2021; Qi et al. 2024; DeepSeek-V3 2024"
PEAK, MEMORY = 100e12, 1e18  # FLOP/s and B/s of device.yaml
TRANSFER = 1e-9  # s, upper bound: 2 MiB take 0.17 ns on each of two links, and 2 ps


def passes(config, batch, length):
    """Seconds of forward pass, gradient of inputs, gradient of weights of the whole model: GEMMs alone."""
    h, f, layers = config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"]
    dense = 2 * batch * length * (4 * h * h + 3 * h * f)
    scores = 4 * batch * length * length * h
    return [layers * flops / PEAK for flops in (dense + scores, dense + 2 * scores, dense)]


def bubble(schedule, p, v, whole):
    """Idle time of a rank; F, I, W of the part of the model on one rank, B = I + W."""
    F, I, W = (time / p for time in whole)  # noqa: E741
    if schedule in ("gpipe", "1f1b"):
        return (p - 1) * (F + I + W)
    if schedule == "interleaved":
        return (p - 1) * (F + I + W) / v
    if schedule == "zb_h1":
        return (p - 1) * (F + I - min(F, I, W))
    if schedule == "zbv":  # none within a rank; the step ends for all when the last rank, a forward pass of a chunk later
        return (p - 1) * F / 2
    return (p / 2 - 1) * ((F + I + W) + F - 2 * W)  # DualPipe, F&B = F + I + W where nothing overlaps


GRID = {
    "gpipe": [(2, 1, 1), (4, 1, 4), (8, 1, 24)],
    "1f1b": [(2, 1, 1), (2, 1, 6), (4, 1, 4), (8, 1, 24)],
    "interleaved": [(2, 2, 2), (2, 4, 6), (4, 2, 4), (4, 4, 12), (8, 2, 8), (8, 4, 24)],
    "zb_h1": [(2, 1, 2), (4, 1, 13), (8, 1, 8)],
    "zbv": [(2, 2, 3), (4, 2, 16), (8, 2, 15)],
    "dualpipe": [(2, 1, 12), (4, 1, 8), (8, 1, 16), (8, 1, 40)],
}
FORMULAS = {
    "gpipe": "(p-1)(F+B)", "1f1b": "(p-1)(F+B)", "interleaved": "(p-1)(F+B)/v", "zb_h1": "(p-1)(F+I-W)",
    "zbv": "(p-1)F/2", "dualpipe": "(p/2-1)(F&B+F-2W)",
}  # fmt: skip


def extra(config, p, v, m, batch, length, whole):
    """Upper bound of the seconds that formulas leave out: a head of one class in each micro-batch, transfers, memory
    traffic of the optimizer (28 B per parameter) and of blocks (less than 100 b s h numbers), and I - F where equal times
    are assumed."""
    head = 3 * 2 * batch * length * config["hidden_size"] / PEAK
    tokens, layers = batch * length * config["hidden_size"], config["num_hidden_layers"] / p
    block = 4 * config["hidden_size"] ** 2 + 3 * config["hidden_size"] * config["intermediate_size"]
    memory = layers * (28 * 2 * block + (m + p) * 100 * 2 * tokens) / MEMORY
    forward, inputs, _ = whole
    return m * head + 2 * (p * v + m) * TRANSFER + memory + (inputs - forward) * (length == 1)


def check(case):
    config = json.loads((case.folder / "llama.json").read_text())
    files = {"workload.model": str(case.folder / "llama.json"), "workload.device": str(case.folder / "device.yaml")}
    for schedule, shapes in GRID.items():
        found = []
        # b s = 1024 with s = 1, where F, I and W are equal within 2e-4, and 512; some formulas assume equal times.
        lengths = (1,) if schedule in ("zbv", "dualpipe") else (1, 512)
        for length in lengths:
            batch = 1024 // length
            whole = passes(config, batch, length)
            for p, v, m in shapes:
                run, _ = case.run(files | {
                    "topology.hosts": p, "workload.micro_batches": m, "workload.micro_batch": batch,
                    "workload.sequence_length": length,
                    "workload.parallelism": {"pipeline": p, "virtual_stages": v, "schedule": schedule, "data": 1},
                })  # fmt: skip
                work = m * sum(whole) / p
                step = work + bubble(schedule, p, v, whole)
                more = extra(config, p, v, m, batch, length, whole)
                found.append([100 * value / work for value in (step - work, more, run.time * 1e-12 - work)])
        worst = max(found, key=lambda one: abs(one[2] - one[0]) / one[1])
        name = f"{schedule}: {FORMULAS[schedule]}, in parts of the work ({len(found)} shapes, the worst)"
        case.within(name, [worst], "%", 4)
