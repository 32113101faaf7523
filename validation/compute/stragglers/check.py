# SPDX-License-Identifier: GPL-2.0-only
import math

SOURCE = "Harter 1961"
RANKS, STEPS, SEEDS = 8, 400, 20
COMPUTE_US = 1000
# Mean of the largest of eight standard normal numbers (Harter 1961, table 1), and its variance (Teichroew 1956).
LARGEST, VARIANCE = 1.42360, 0.3729
JITTER = SPREAD = 0.05


def run(case, noise, steps=STEPS, seed=1):
    operations = []
    for step in range(steps):
        before = {"after": f"meet {step - 1}"} if step else {}
        operations.append({"rank": "all", "id": f"step {step}", "compute": f"{COMPUTE_US} us", **before})
        operations.append({"id": f"meet {step}", "collective": "all_reduce", "size": "8 B", "after": f"step {step}"})
    changes = {"workload.operations": operations, "simulation.seed": seed}
    if noise:
        changes["workload.compute_noise"] = noise
    return case.run(changes)[0]


def check(case):
    quiet = run(case, None).time
    meeting = quiet / STEPS - COMPUTE_US * 1e6  # time of a step besides compute; ps

    def stretch(noise):
        """Additional compute time of the slowest rank of a step, on average, compared with a run without noise."""
        return (run(case, noise).time / STEPS - meeting) / (COMPUTE_US * 1e6) - 1

    # Every step waits for the slowest of its ranks: the mean of the largest of n draws, with the standard error of the
    # mean over all steps. Three of these.
    error = 3 * JITTER * math.sqrt(VARIANCE / STEPS)
    case.within("jitter of 5 %, 8 ranks: steps are longer by 1.4236 x 5 %",
                [(100 * JITTER * LARGEST, 100 * error, 100 * stretch({"jitter": JITTER, "distribution": "normal"}))],
                "%", 2)
    # A rank keeps its factor for the whole run: all steps of a run are alike, and only the seed varies.
    factors = [(run(case, {"spread": SPREAD, "distribution": "normal"}, 1, seed).time - meeting) / (COMPUTE_US * 1e6) - 1
               for seed in range(1, SEEDS + 1)]  # fmt: skip
    error = 3 * SPREAD * math.sqrt(VARIANCE / SEEDS)
    case.within(f"spread of 5 % between 8 ranks, {SEEDS} seeds: steps are longer by 1.4236 x 5 %",
                [(100 * SPREAD * LARGEST, 100 * error, 100 * sum(factors) / SEEDS)], "%", 2)
    whole = run(case, {"spread": SPREAD, "distribution": "normal"}).time / STEPS
    case.within("the same with seed 1, mean of all steps: as the first one",
                [(100 * factors[0], 0.01, 100 * ((whole - meeting) / (COMPUTE_US * 1e6) - 1))], "%", 2)
    case.within("one of 8 ranks slower by 20 %: so are all steps",
                [(20, 0.01, 100 * stretch({"slow_ranks": [{"ranks": [3], "factor": 1.2}]}))], "%", 2)
    # In an interval shorter than a step each rank is a straggler with p: a step is twice as long with 1 - (1 - p)^n.
    p = 0.05
    slow = 1 - (1 - p) ** RANKS
    error = 3 * math.sqrt(slow * (1 - slow) / STEPS)
    noise = {"stragglers": {"probability": p, "factor": 2, "interval": f"{COMPUTE_US // 10} us"}}
    case.within("stragglers of factor 2 with p = 5 %: 1 - (1 - p)^8 of steps twice as long",
                [(100 * slow, 100 * error, 100 * stretch(noise))], "%", 2)
