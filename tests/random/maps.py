# SPDX-License-Identifier: GPL-2.0-only
"""Maps of an experiment, and the other keys that the program needs to read all of their keys. After a colon: the kind of the
map, where several share a place."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import names  # noqa: E402

LINKS = {"link_rate": "100 Gb/s", "link_delay": "500 ns"}
STAR = {"kind": "star", "hosts": 8, **LINKS}
ALL_REDUCE = {"kind": "collective", "collective": "all_reduce", "size": "1 kB"}
TRAFFIC = names.SMALL["workload"]
TRAINING = names.TRAINING
ON_OFF = {"process": "on_off", "interval": "1 us", "count": 1, "on": "1 us", "off": "1 us"}
DRAGONFLY = {"kind": "dragonfly", "p": 1, "a": 2, "h": 1, **LINKS}
TO_TARGETS = {"every": 1, "targets": 1}
MACHINES = {
    **{kind: {**LINKS, **parts} for kind, parts in {
        "star": {"hosts": 2}, "line": {"links": 2}, "fat_tree": {"k": 2}, "torus": {"dims": [2]}, "mesh": {"dims": [2]},
        "hyperx": {"dims": [2]}, "hypercube": {"dimensions": 1}, "fully_connected": {"switches": 2},
        "dragonfly": DRAGONFLY, "dragonfly_plus": {"p": 1, "leaves": 1, "spines": 1, "h": 1}, "xgft": {"m": [2], "w": [1]},
        "leaf_spine": {"leaves": 1, "hosts_per_leaf": 2, "spines": 1}, "slim_fly": {"q": 3}}.items()},
    "graph": {**LINKS, "hosts": 2, "switches": 0, "links": [{"from": "host0", "to": "host1"}]},
    "rails": {"rails": 2, "rail": STAR, "server": names.SERVER}, "file": {"path": "dgx1"},
    "server": {"design": names.SERVER},
}

MAPS = {
    "": {},
    "network": {},
    "network.buffer": {"network": {"buffer": {"size": "1 MB"}}},
    "network.ecn": {"network": {"ecn": {}}},
    "network.priorities": {"network": {"priorities": {"scheduling": "deficit_round_robin"}}},
    "network.pfc": {"network": {"flow_control": "pfc", "buffer": {"size": "9 MB"}, "pfc": {}}},
    "network.credit": {"network": {"flow_control": "credit", "credit": {}}},
    "network.connections": {"network": {"connections": {}}},
    "network.go_back_n": {"network": {"go_back_n": {}}},
    "network.selective_repeat": {"network": {"recovery": "selective_repeat", "selective_repeat": {}}},
    "network.failures.0": {"network": {"failures": [{"at": "1 us", "link": "all"}]}},
    "simulation": {},
    "output": {},
    "output.rates": {"output": {"rates": {"interval": "1 us"}}},
    "background.0": {"background": [{"kind": "tcp", "from": 0, "to": 1}]},
    "workload:collective": {"workload": ALL_REDUCE},
    "workload:traffic": {},
    "workload:checkpoint": {"workload": {"kind": "checkpoint", "targets": 1, "ranks": 1, "size": "1 kB"}},
    "workload:program": {"workload": {"kind": "program", "ranks": 2, "operations": []}},
    "workload:jobs": {"workload": {"kind": "jobs", "jobs": [{"workload": ALL_REDUCE}]}},
    "workload:training": {"workload": TRAINING},
    "workload.parallelism": {"workload": {**TRAINING, "parallelism": {}}},
    "workload.routing": {"workload": {**TRAINING, "routing": {}}},
    "workload.checkpoint": {"workload": {**TRAINING, "checkpoint": TO_TARGETS}},
    "workload.failures": {"workload": {**TRAINING, "checkpoint": TO_TARGETS, "failures": {"mean_time": "1 s"}}},
    "workload.data_loading": {"workload": {**TRAINING, "data_loading": {"bytes_per_sample": "1 kB", "targets": 1}}},
    "workload.compute_noise": {"workload": {**TRAINING, "compute_noise": {"jitter": "1 %"}}},
    "workload.compute_noise.slow_ranks.0": {"workload": {**TRAINING, "compute_noise": {
        "slow_ranks": [{"ranks": [0], "factor": 2}]}}},
    "workload.compute_noise.stragglers": {"workload": {**TRAINING, "compute_noise": {
        "stragglers": {"interval": "1 us", "probability": 0.5, "factor": 2}}}},
    "workload.start": {"workload": {**TRAFFIC, "start": ON_OFF}},
    "workload.placement": {"workload": {**TRAFFIC, "placement": {"kind": "random"}}},
    "workload.jobs.0": {"workload": {"kind": "jobs", "jobs": [{"workload": ALL_REDUCE}]}},
    "workload.operations.0": {"workload": {"kind": "program", "ranks": 2, "operations": [
        {"collective": "all_reduce", "size": "1 kB"}, {"rank": 0, "compute": "1 us"}]}},
    "network.loss.0": {"network": {"loss": [{"link": "all", "probability": 0.1}]}},
    "network.flowlet": {"network": {"load_balancing": "flowlet", "flowlet": {}}},
    "network.reps": {"network": {"load_balancing": "reps", "reps": {}}},
    "network.queue_reports": {"topology": DRAGONFLY, "network": {"routing": "dragonfly_ugal_g", "queue_reports": {}}},
    "topology.server": {"topology": {**STAR, "server": names.SERVER}},
    "topology.switch_reduction": {"topology": {**STAR, "switch_reduction": {}}},
    "workload.collectives": {"workload": {**TRAINING, "collectives": {}}},
    "topology.server.nvlink_framing": {"topology": {**STAR, "server": {**names.SERVER, "nvlink_framing": {
        "payload": "1 B", "overhead": "1 B"}}}},
    **{f"topology:{kind}": {"topology": {"kind": kind, **parts}} for kind, parts in MACHINES.items()},
}
