# SPDX-License-Identifier: GPL-2.0-only
import json
import math
import subprocess

SOURCE = "Daly 2006"
STEPS, EVERY = 10_000, 5
DETECTION, RESTART = 300_000_000, 200_000_000  # ps


def finished(run):
    """The time at which the first rank has finished its last operation; ACKs are in flight after it."""
    return int(run.ranks["finished"][0])


def check(case):
    def time(**keys):
        keys["model"] = str(case.folder / "model.json")
        return finished(case.run({f"workload.{key}": value for key, value in keys.items()})[0])

    def alone(operation):
        """The same write or read without a job around it."""
        return finished(case.run({"workload": {"kind": "checkpoint", "operation": operation, "ranks": 1, "targets": 1,
                                               "size": "4 KiB"}})[0])

    # Ten steps with one checkpoint that training waits for, with two, and with a failure that reads one.
    one, two = time(checkpoint={"every": 10, "targets": 1, "size": "4 KiB"}), time()
    write = two - one
    step = (two - 2 * write) // 10
    failure = {"step_time": f"{step} ps", "detection": f"{DETECTION} ps", "restart": f"{RESTART} ps"}
    stopped = time(failures={"times": [f"{7 * step + step // 2} ps"], **failure})
    recovery = stopped - two - 2 * step - step // 2  # two steps and a half are lost
    case.exact("a checkpoint", alone("write"), write)
    case.exact("one failure: lost work, detection, restart, reading of the checkpoint",
               recovery, DETECTION + RESTART + alone("read"))

    # Relative to the whole run: while the first checkpoint is being written there is none to read.
    when = EVERY * step + write // 2
    whole = {"detection": f"{DETECTION} ps", "restart": f"{RESTART} ps"}
    writing = time(failures={"times": [f"{when} ps"], **whole})
    case.exact("a failure while a checkpoint is written", two + when + DETECTION + RESTART, writing)

    mean = 50 * step
    drawn = time(steps=STEPS, failures={"mean_time": f"{mean} ps", "seed": 11, **whole})
    segments, t = STEPS // EVERY, EVERY * step + write
    q = math.exp(-t / mean)
    failures = 1 / q - 1
    lost = mean - t * q / (1 - q)
    lost_variance = mean**2 - (t / (1 - q)) ** 2 * q
    again = mean * math.expm1(recovery / mean)  # including restarts that fail
    again_variance = mean**2 * (math.exp(2 * recovery / mean) - 1) - 2 * recovery * mean * math.exp(recovery / mean)
    expected = segments * mean * math.exp(recovery / mean) * math.expm1(t / mean)
    deviation = math.sqrt(segments * (failures * (lost_variance + again_variance) + failures / q * (lost + again) ** 2))
    case.within(f"{STEPS:,} steps, failures drawn: time", [(expected / 1e9, 3 * deviation / 1e9, drawn / 1e9)], "ms", 2)

    ms = lambda ps: f"{ps / 1e9:.9f}ms"  # noqa: E731
    words = [case.weft, "goodput", "--mtbf", ms(mean), "--checkpoint", ms(write), "--restart", ms(recovery),
             "--interval", ms(EVERY * step), "--json"]
    goodput = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)["expected"]["goodput"]
    case.within("useful share of the time, beside `weft goodput`",
                [(100 * goodput, 100 * goodput * 3 * deviation / expected, 100 * STEPS * step / drawn)], "%", 2)
