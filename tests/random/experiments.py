# SPDX-License-Identifier: GPL-2.0-only
"""A whole experiment from a seed. The same seed gives the same experiment, as long as the program knows the same names."""

import json
import pathlib
import re
import sys
import tempfile
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import machines  # noqa: E402
import names  # noqa: E402
import networks  # noqa: E402
import workloads  # noqa: E402
from draw import MS, NS, RATE_UNITS, SIZE_UNITS, TIME_UNITS, US, Draw  # noqa: E402
from weft_testing import served  # noqa: E402

ABSURD_CASES, ABSURD_VALUES = 0.3, 0.03  # experiments with values that make no sense, and how many of their values
MAX_HOPS = 400_000  # of packets, about: a fraction of a second
MAX_TRIES = 12


@dataclass
class Experiment:
    seed: int
    parts: dict
    files: dict = field(default_factory=dict)
    absurd: int = 0  # values that make no sense
    refused: str = ""  # the error of `weft describe`, if there is one

    def write(self, folder):
        machines.write_files({**self.files, "experiment.yaml": text_of(self.parts)}, folder)
        return pathlib.Path(folder) / "experiment.yaml"


def text_of(parts):
    """JSON is YAML, and says exactly what is meant; one part per line, so that messages name a place."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in parts.items())
    return "{\n" + lines + "\n}\n"


def output(d, facts):
    result = {}
    if d.chance(0.2):
        result["messages"] = d.word(names.words("output.messages"))
        if result["messages"] == "sampled" and d.chance(0.7):
            result["message_sample"] = d.count(1, 20)
    if d.chance(0.35):
        result["sampling"] = d.time(500 * NS, 50 * US)
    if d.chance(0.2):
        result["rates"] = {"interval": d.time(500 * NS, 50 * US)}
        if d.chance(0.4):
            result["rates"]["ranks"] = [0]
        if d.chance(0.2):
            result["rates"]["to"] = [1]
    if d.chance(0.2):
        result["queue_depths"] = d.flag()
    if d.chance(0.15):
        result["queue_pairs"] = d.flag()
    if d.chance(0.4):
        result["operations"] = d.flag()
    if d.chance(0.05):
        result["rows_in_memory"] = d.count(1, 1000)
    if d.chance(0.08):
        result["pcap"] = [f"host{d.random.randrange(max(1, facts.hosts))}:0"]
    if d.chance(0.6):
        result["attribution"] = d.word(names.words("output.attribution"))
    return result


def settle_intervals(output, topology):
    """Intervals of series no shorter than 1 kB takes on the slowest link, so that files stay small."""
    slowest = min([rate for rate in networks.quantities(topology, RATE_UNITS) if rate > 0], default=10**10)
    least = int(8e15 / slowest)
    for place, key in [(output, "sampling"), (output.get("rates", {}), "interval")]:
        if key in place and next(networks.quantities(place[key], TIME_UNITS), least) < least:
            place[key] = f"{least} ps"


def simulation(d):
    result = {"seed": d.count(0, 10**6)}
    if d.chance(0.08):
        result["until"] = d.time(500 * NS, 200 * US)
    if d.chance(0.1):
        result["partition"] = d.word(names.words("simulation.partition"))
    return result


def accounting(d):
    """Figures by names that are known, and one that is a word or a list; a run does not depend on them."""
    figures = ["pue", "lifetime", "switch_port_price", "accelerator_power", "idle_share", "electricity_price"]
    result = {name: d.number(1 if name == "lifetime" else 0, 100) for name in d.some(figures)}
    if d.chance(0.5):
        result["grid_intensity"] = d.pick([d.word(["FR", "US"]), [d.number(0, 900) for _ in range(24)]])
    if d.chance(0.5):
        result["estimate"] = d.word(["low", "mid", "high"])
    return result


class Generator:
    """`facts_of(topology, files)` and `describe(experiment)` ask the program; tests put others in their place."""

    def __init__(self, facts_of=machines.facts_of, describe=None):
        self.facts_of = facts_of
        self.describe = describe or describe_with_program

    def attempt(self, d):
        files = {}
        topology = machines.machine(d, files)
        facts = self.facts_of(topology, files)
        if facts is None or facts.computing < 1:
            if not d.absurd_values:
                return None
            facts = machines.Facts(4)  # it will be refused, and the refusal is tested
        suits = lambda name: self.facts_of({**topology}, files) is not None and routing_suits(topology, files, name)  # noqa: E731
        parts = {"topology": topology, "network": networks.network(d, facts, suits),
                 "workload": workloads.workload(d, files, facts), "simulation": simulation(d), "output": output(d, facts)}
        if d.chance(0.08):
            parts["background"] = networks.background(d, facts)
        if not d.absurd_values:
            networks.settle_background(parts.get("background", []), parts["network"])
            networks.settle_timers(parts["network"], topology, "background" in parts)
            settle_intervals(parts["output"], topology)
        # A message that restarts from its beginning after each loss need not end (Guo et al. 2016, section 4.1).
        if (lasts_for_ever(parts["network"]) or parts["network"].get("recovery") == "go_back_0"
                or (not d.absurd_values and overloads(parts["workload"], topology))):
            parts["simulation"].setdefault("until", d.time(100 * US, 2 * MS))
        if d.absurd_values and d.chance(0.1):
            place = parts[d.pick(parts)]
            if isinstance(place, dict):
                place[d.pick(["no_such_key", "kind", "seed", "\u00fc"])] = d.word(["x"])
        if d.chance(0.05):
            parts["accounting"] = accounting(d)
        return parts, files

    def experiment(self, seed):
        """The first try that the program accepts, or with absurd values the first of all."""
        last = None
        for number in range(MAX_TRIES):
            d = Draw(f"{seed}/{number}")
            d.absurd = ABSURD_VALUES if d.chance(ABSURD_CASES) else 0
            made = self.attempt(d)
            if made is None:
                continue
            last = Experiment(seed, *made, absurd=d.absurd_values)
            last.refused, hops = self.describe(last)
            if last.refused and d.absurd_values and d.chance(0.3):
                return last
            if not last.refused and hops <= MAX_HOPS:
                return last
            if last.refused and d.chance(0.03):
                return last  # some go on to be refused by all numbers of processes alike
        return last or Experiment(seed, {"topology": {}})


def overloads(workload, topology):
    """A job in the background asks for more than half of the slowest link without an end: queues before it grow with
    time, and so do the steps of whatever waits in them."""
    slowest = min([rate for rate in networks.quantities(topology, RATE_UNITS) if rate > 0], default=10**10)
    headers, framing = 200, 3  # bytes of a message's headers and answers; framed links carry up to so many times the bytes
    for job in workload.get("jobs", []) if isinstance(workload.get("jobs"), list) else []:
        work = job.get("workload", {}) if isinstance(job, dict) and job.get("background") else {}
        start = work.get("start")
        if not isinstance(start, dict) or "count" in start or "stop" in start:
            continue
        size = max(networks.quantities([work.get("size"), job.get("set", [])], SIZE_UNITS), default=0)
        receivers = max(1, ranks_of(work, job) - 1) if work.get("pattern") == "all_to_all" else 1
        interval = min(networks.quantities(start.get("interval"), TIME_UNITS), default=0)
        if interval > 0 and receivers * (size + headers) * framing * 8e12 / interval > slowest / 2:
            return True
    return False


def ranks_of(work, job):
    return max([ranks for ranks in (work.get("ranks"), job.get("ranks")) if isinstance(ranks, int)], default=16)


def lasts_for_ever(network):
    """A failure without an end: packets for the failed part are sent again and again."""
    failures = network.get("failures", [])
    return any("until" not in failure and "rate" not in failure for failure in failures)


def routing_suits(topology, files, name):
    with tempfile.TemporaryDirectory(prefix="weft-routing-") as folder:
        machines.write_files(files, folder)
        path = pathlib.Path(folder) / "experiment.yaml"
        path.write_text(json.dumps({"topology": topology}))
        return served("topology", path, "--routing", name, "--processes", "1", folder=folder, seconds=600).code == 0


def describe_with_program(experiment):
    """The error of `weft describe` for the experiment, if there is one, and the packet-hops that it expects."""
    with tempfile.TemporaryDirectory(prefix="weft-describe-") as folder:
        path = experiment.write(folder)
        try:
            done = served("describe", path, folder=folder, seconds=600)
        except AssertionError:
            return "takes too long to describe", 0
    if done.code != 0:
        return " ".join(done.messages()) or f"exit code {done.code}", 0
    found = re.search(r"^ *packet-hops +([0-9,]+)", done.out, re.MULTILINE)
    messages = re.search(r"^ *messages +([0-9,]+)", done.out, re.MULTILINE)
    number = lambda match: int(match.group(1).replace(",", "")) if match else 0  # noqa: E731
    return "", max(number(found), 4 * number(messages))
