# SPDX-License-Identifier: GPL-2.0-only
import random

SOURCE = "symmetry"
HOSTS, SWITCHES, MESSAGES = 6, 3, 60


def sends():
    """(source, destination, bytes, not before [ps]): in both directions between all hosts, often two at a time, at odd
    times."""
    draw = random.Random(1)
    return [(*draw.sample(range(HOSTS), 2), draw.randrange(1, 60000), draw.randrange(40_000_000)) for _ in range(MESSAGES)]


def operations(hosts):
    result = []
    for tag, (source, destination, size, start) in enumerate(sends()):
        common = {"tag": tag, "not_before": f"{start} ps"}
        result.append({"rank": hosts[source], "send": f"{size} B", "to": hosts[destination], **common})
        result.append({"rank": hosts[destination], "recv": f"{size} B", "from": hosts[source], "tag": tag})
    return result


def cables(links, hosts, switches, order):
    names = {f"host{i}": f"host{new}" for i, new in enumerate(hosts)}
    names |= {f"switch{i}": f"switch{new}" for i, new in enumerate(switches)}
    return [{**links[i], "from": names[links[i]["from"]], "to": names[links[i]["to"]]} for i in order]


def outcome(run, hosts, switches):
    """Times by message tag, and bytes and busy time by the old names of a link's ends."""
    old = {f"host{new}": f"host{i}" for i, new in enumerate(hosts)}
    old |= {f"switch{new}": f"switch{i}" for i, new in enumerate(switches)}
    result = {}
    table = run.messages
    for tag, issued, delivered in zip(table["tag"], table["issued"], table["delivered"], strict=True):
        result[int(tag)] = (int(issued), int(delivered))
    columns = ("from_name", "to_name", "bytes", "peak_queue")
    for start, end, *values in zip(*(run.links[column] for column in columns), strict=True):
        result[old[start], old[end]] = tuple(int(value) for value in values)
    return result


def check(case):
    links = case.experiment["topology"]["links"]
    same = list(range(HOSTS)), list(range(SWITCHES))
    workload = {"workload.operations": operations(same[0])}
    first = outcome(case.run(workload)[0], *same)
    if outcome(case.run({**workload, "simulation.seed": 2})[0], *same) != first:
        raise ArithmeticError("there are ties, which the seed decides: the law does not hold for them")
    pairs = []
    for seed in range(4):
        draw = random.Random(seed)
        hosts, switches, order = (draw.sample(range(n), n) for n in (HOSTS, SWITCHES, len(links)))
        changes = {
            "topology.links": cables(links, hosts, switches, order),
            "workload.operations": operations(hosts),
        }
        other = outcome(case.run(changes)[0], hosts, switches)
        if other.keys() != first.keys():
            raise ArithmeticError("other messages or links")
        for key, values in first.items():
            pairs += zip(values, other[key], strict=True)
    case.exact_all("times of 60 messages, bytes and queues of links, 4 relabellings", pairs, "ps or B")
