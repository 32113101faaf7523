# SPDX-License-Identifier: GPL-2.0-only
import pathlib

import numpy as np

SOURCE = "Li et al. 2019"
HOSTS_PER_RACK, RACKS_PER_POD = 16, 4
PAYLOAD = 1000
# The shorter form, for which two pods are enough.
PODS, LENGTH = 2, 1.5  # ms

# As run.py of the authors' simulator sets them for hosts of 100 Gb/s. Packets and ACKs of HPCC have 42 B of telemetry. The window
# of the others is the bandwidth-delay product of 13 us; the authors' shrinks with the rate. ACKs share the class of data where
# run.py sets ACK_HIGH_PRIO to 0.
DCQCN = {"preset": "connectx", "gain": 1 / 256, "increase_bytes": "1 TiB", "additive_increase": "20 Mb/s",
         "hyper_increase": "200 Mb/s", "min_rate": "1 Gb/s", "cnp_interval": "1 us"}  # fmt: skip
WINDOW = {"window": "162500 B"}
ACKS_AS_DATA = {"priorities": {"scheduling": "fifo"}}
ALGORITHMS = {
    "HPCC": {"congestion_control": "hpcc", "header": "90 B", "ack": "86 B", **ACKS_AS_DATA,
             "hpcc": {"base_rtt": "13 us", "max_stage": 0, "additive_increase": "80 B"}},
    "DCTCP": {"congestion_control": "dctcp", **ACKS_AS_DATA},
    "Swift": {"congestion_control": "swift"},
    "DCQCN": {"congestion_control": "dcqcn", "dcqcn": DCQCN},
    "DCQCN+w": {"congestion_control": "dcqcn", "dcqcn": DCQCN, **WINDOW, **ACKS_AS_DATA},
    "TIMELY": {"congestion_control": "timely"},
    "TIMELY+w": {"congestion_control": "timely", **WINDOW},
}  # fmt: skip


def points(root, name):
    """[(bytes, share of the flows)] of a file of workloads/flow_sizes."""
    lines = (pathlib.Path(root) / f"workloads/flow_sizes/{name}.txt").read_text().splitlines()
    return [tuple(float(word) for word in line.split()) for line in lines if not line.startswith("#")]


def wire_per_byte(root, name, header):
    """Bytes on the wire for each byte of payload: the integral of ceil(x / PAYLOAD) over the distribution."""
    def packets_up_to(x):
        whole = x // PAYLOAD
        return PAYLOAD * whole * (whole + 1) / 2 + (x - whole * PAYLOAD) * (whole + 1)

    mean = packets = 0.0
    known = points(root, name)
    for (low, below), (high, above) in zip(known, known[1:]):
        share = (above - below) / 100
        mean += share * (low + high) / 2
        packets += share * (packets_up_to(high) - packets_up_to(low)) / (high - low)
    return (mean + packets * header) / mean


def changes_of(root, name, sizes, load, pods, length, incast):
    """The load counts payload, as the paper's does. Incasts: 60 hosts send 500 kB to one, 2 % of the capacity."""
    network = {f"network.{key}": value for key, value in ALGORITHMS[name].items()}
    header = int(network.get("network.header", "48 B").split()[0])
    stop = f"{length} ms"

    def traffic(ratio, **more):
        return {"kind": "traffic", "reuse_queue_pairs": False, **more,
                "start": {"process": "poisson", "load": ratio, "stop": stop}}

    workload = traffic(load * wire_per_byte(root, sizes, header), pattern="uniform", sizes=sizes)
    if incast:
        burst = traffic(0.02 * (PAYLOAD + header) / PAYLOAD, pattern="incast", destination="random", sources=60, size="500 kB")
        workload = {"kind": "jobs", "jobs": [{"name": job, "share": True, "placement": {"first": 0}, "workload": one}
                                             for job, one in (("flows", workload), ("incasts", burst))]}
    return {**network, "topology.m": [HOSTS_PER_RACK, RACKS_PER_POD, pods], "workload": workload,
            "simulation.until": f"{2 * length} ms"}


def slowdowns(run, pods, length):
    """Sizes and slowdowns of the flows that began in the middle eight tenths. The authors count up to the last ACK, which takes
    the delay of the links on its way back, and divide by the same on an idle network."""
    messages, hosts = run.messages, HOSTS_PER_RACK * RACKS_PER_POD * pods
    issued = messages["issued"] / 1e9
    chosen = (messages["source"] < hosts) & (issued > 0.1 * length) & (issued < 0.9 * length)
    source, destination = messages["source"][chosen], messages["destination"][chosen]
    rack, pod = HOSTS_PER_RACK, HOSTS_PER_RACK * RACKS_PER_POD
    links = np.where(source // rack == destination // rack, 2, np.where(source // pod == destination // pod, 4, 6))
    back = links * 1e6  # ps
    duration = messages["delivered"][chosen] - messages["issued"][chosen]
    return messages["bytes"][chosen], np.maximum((duration + back) / (messages["ideal"][chosen] + back), 1)


def measure(case, name, sizes="hadoop", load=0.5, pods=PODS, length=LENGTH, incast=False):
    run, _ = case.run(changes_of(case.root, name, sizes, load, pods, length, incast))
    return slowdowns(run, pods, length)


def check_incasts(case):
    """Figure 11a: all hosts, and eight milliseconds, in which some twenty incasts begin."""
    sizes, slowdown = measure(case, "DCQCN", load=0.3, pods=5, length=8, incast=True)
    shortest = slowdown[np.argsort(sizes, kind="stable")[: len(sizes) // 10]]
    case.compare("slowdown of the shortest tenth beside incasts, load 30 %, 95th percentile, DCQCN, 320 hosts",
                 "60 to 70; with the authors' code about 120", f"{round(float(np.percentile(shortest, 95)), 1)}", "")
    case.within("the same, median: most are not stopped", [(1, 0.05, float(np.median(shortest)))], digits=2)


def check(case):
    short, median = {}, {}
    for name in ("HPCC", "DCQCN", "DCQCN+w", "TIMELY", "TIMELY+w"):
        sizes, slowdown = measure(case, name)
        short[name] = round(float(np.percentile(slowdown[sizes <= PAYLOAD], 95)), 2)
        median[name] = float(np.median(slowdown[sizes <= PAYLOAD]))
    case.compare("slowdown of flows up to 1 kB, 95th percentile, DCQCN on 320 hosts (here 128)",
                 "about 5; with the authors' code above 8", f"{short['DCQCN']}", "")
    case.at_least("the same of DCQCN and TIMELY, times that with a window",
                  [(1, round(short[name] / short[f"{name}+w"], 2)) for name in ("DCQCN", "TIMELY")], "")
    case.at_least("the same of DCQCN and TIMELY with a window, times that of HPCC",
                  [(1, round(short[f"{name}+w"] / short["HPCC"], 2)) for name in ("DCQCN", "TIMELY")], "")
    case.within("slowdown of flows up to 1 kB, median: most meet no queue (HPCC, DCQCN, TIMELY)",
                [(1, 0.05, median[name]) for name in ("HPCC", "DCQCN", "TIMELY")], digits=2)
    check_incasts(case)
