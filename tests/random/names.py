# SPDX-License-Identifier: GPL-2.0-only
"""The names that an experiment can use, from the program itself: new names are drawn without an edit here.

Registered names come from `weft list`. All else comes from its messages: a key with the value '?' is refused with the
words, or the kind of value, that would be right, and a key that does not exist with those that do."""

import functools
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import SOURCE, served, weft  # noqa: E402

SMALL = {
    "topology": {"kind": "star", "hosts": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
    "network": {"queues": "output"},
    "workload": {"kind": "traffic", "pattern": "permutation", "size": "1 kB"},
}

SERVER = {"gpus": 2, "inside": "nvswitch", "nvlink_rate": "2 Tb/s", "nvlink_delay": "100 ns", "nics": 1,
          "pcie_rate": "500 Gb/s", "pcie_delay": "200 ns"}
TRAINING = {"kind": "training", "model": str(SOURCE / "workloads/models/gpt2.json"), "device": "h100-sxm"}

# Precisions of single things, and what to do about too little memory.
TRAINING_WORDS = ["parameter_precision", "gradient_precision", "moment_precision", "dispatch_precision",
                  "combine_precision", "activation_input_precision", "attention_output_precision", "out_of_memory"]

# Words of a key that are no registered names: the key, and the other keys that it needs to be read.
WORDS = {
    "topology.arrangement": {"topology": {"kind": "dragonfly", "p": 1, "a": 2, "h": 1, "link_rate": "1 Gb/s",
                                          "link_delay": "1 us"}},
    "topology.server.inside": {"topology": {**SMALL["topology"], "server": SERVER}},
    "topology.server.wiring": {"topology": {**SMALL["topology"], "server": SERVER}},
    "topology.server.architecture": {"topology": {**SMALL["topology"], "server": SERVER}},
    "network.fidelity": {},
    "network.queues": {},
    "network.switching": {},
    "network.flow_control": {},
    "network.load_balancing": {},
    "network.recovery": {},
    "network.ecn.mark": {},
    "network.priorities.scheduling": {},
    "network.connections.data": {},
    "workload.collective": {"workload": {"kind": "collective", "size": "1 kB"}},
    "workload.protocol": {"workload": {"kind": "collective", "collective": "all_reduce", "size": "1 kB"}},
    "workload.latencies": {"workload": {"kind": "collective", "collective": "all_reduce", "size": "1 kB"}},
    "workload.pattern": {},
    "workload.start.process": {"workload": {**SMALL["workload"], "start": {"interval": "1 us", "count": 1}}},
    "workload.start.law": {"workload": {**SMALL["workload"], "start": {"process": "on_off", "interval": "1 us", "count": 1,
                                                                     "on": "1 us", "off": "1 us"}}},
    "workload.operation": {"workload": {"kind": "checkpoint", "targets": 1, "ranks": 1, "size": "1 kB"}},
    "workload.attention": {"workload": TRAINING},
    "workload.recompute": {"workload": TRAINING},
    "workload.precision": {"workload": TRAINING},
    **{f"workload.{key}": {"workload": TRAINING} for key in TRAINING_WORDS},
    "workload.parallelism.schedule": {"workload": {**TRAINING, "parallelism": {}}},
    "workload.parallelism.sharding": {"workload": {**TRAINING, "parallelism": {}}},
    "workload.parallelism.context_kind": {"workload": {**TRAINING, "parallelism": {}}},
    "workload.compute_noise.distribution": {"workload": TRAINING},
    "simulation.partition": {},
    "output.messages": {},
    "output.attribution": {},
    "background.0.congestion_control": {"background": [{"kind": "tcp", "from": 0, "to": 1}]},
    "background.0.kind": {"background": [{"from": 0, "to": 1}]},
}


class UnknownValue(Exception):
    """The program gave no message from which one could learn."""


def refusal(key, value, parts):
    """The message with which the program refuses `value` at `key`."""
    with tempfile.TemporaryDirectory(prefix="weft-names-") as folder:
        path = pathlib.Path(folder) / "experiment.yaml"
        path.write_text(json.dumps({**SMALL, **parts}))
        done = served("describe", path, "--set", f"{key}={value}", folder=folder)
        return "" if done.code == 0 else " ".join(done.messages())


@functools.lru_cache(None)
def listing():
    """Titles of `weft list` with their names and one-line summaries."""
    sections = {}
    for line in weft("list").out.splitlines():
        if not line.startswith(" "):
            sections[line.strip()] = names = {}
        elif line.strip():
            name, _, summary = line.strip().partition(" ")
            names[name] = summary.strip()
    return sections


def listed(title):
    """Names and summaries below the titles of `weft list` that begin so."""
    found = {}
    for head, names in listing().items():
        if head.startswith(title):
            found.update(names)
    if not found:
        raise UnknownValue(f"`weft list` has no title '{title}'")
    return found


def topologies():
    return listed("topologies")


def extensions():
    return listed("keys of any topology")


def algorithms():
    return [*listed("collectives"), *listed("selections")]


def workloads():
    return listed("workloads")


def congestion_controls():
    return listed("congestion-controls")


def routings():
    return listed("routing")


def backgrounds():
    return listed("background (")


def background_jobs():
    return listed("jobs with background")


REGISTRIES = {
    "topology": topologies, "extension": extensions, "algorithm": algorithms, "workload": workloads,
    "congestion_control": congestion_controls, "routing": routings, "background": backgrounds,
    "background_job": background_jobs,
}


def split_list(text):
    return [word.strip() for word in text.strip().split(", ") if word.strip()]


@functools.lru_cache(None)
def words(key):
    """The values allowed at a key of WORDS."""
    message = refusal(key, '"?"', WORDS[key])
    found = re.search(r"expected one of: (.*?)(?:; found.*)?$", message) or re.search(r"known here: (.*)$", message)
    if not found:
        raise UnknownValue(f"`{key}`: no words in '{message}'")
    return split_list(found.group(1))


def keys(place, parts=None):
    """The keys of a map that the program reads, given the rest of the experiment."""
    message = refusal(f"{place}.no_such_key" if place else "no_such_key", "1", parts or {})
    found = re.search(r"unknown key 'no_such_key'.*known here: (.*)$", message)
    if not found:
        raise UnknownValue(f"`{place}`: no keys in '{message}'")
    return split_list(found.group(1))


def kind_of(key, parts):
    """('word', [...]), ('time',), ('size',), ('rate',), ('flag',), ('number', least, most), ('count', least, most)."""
    message = refusal(key, '"?"', parts)
    if found := re.search(r"expected one of: (.*)$", message):
        return ("word", tuple(split_list(found.group(1))))
    for what, name in [("a time such as", "time"), ("a size such as", "size"), ("a rate such as", "rate"),
                       ("true or false", "flag")]:
        if f"expected {what}" in message:
            return (name,)
    if found := re.search(r"expected a (whole )?number(?: from (\S+) to (\S+))?(?: of at least (\S+))?, found", message):
        least, most = float(found[2] or found[4] or 0), float(found[3] or 1000)
        return ("count", int(least), int(most)) if found[1] else ("number", least, most)
    raise UnknownValue(f"`{key}`: no kind of value in '{message}'")


@functools.lru_cache(None)
def parameters(control):
    """Parameters of a congestion control and their allowed values."""
    parts = {"network": {"congestion_control": control, control: {}}}
    kinds = {}
    for key in keys(f"network.{control}", parts):
        try:
            kinds[key] = kind_of(f"network.{control}.{key}", parts)
        except UnknownValue:
            continue
    return kinds


def folder_names(folder, ending):
    return sorted(path.stem for path in (SOURCE / folder).glob(f"*{ending}"))
