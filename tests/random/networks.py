# SPDX-License-Identifier: GPL-2.0-only
"""Random networks: the map `network`, and the transfers of `background`."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import names  # noqa: E402
from draw import MS, NS, RATE_UNITS, SIZE_UNITS, TIME_UNITS, US  # noqa: E402


def frames(d, network):
    if d.chance(0.5):
        network["mtu"] = d.size(256, 9000) if d.chance(0.85) else d.size(1, 65535)
    if d.chance(0.2):
        network["server_mtu"] = d.size(256, 65535) if d.chance(0.85) else d.size(1, 65535)
    if d.chance(0.25):
        network["header"] = d.size(1, 200)
    if d.chance(0.25):
        network["wire_overhead"] = d.size(0, 64)
    if d.chance(0.25):
        network["ack"] = d.size(1, 200)
    if d.chance(0.3):
        network["switch_latency"] = d.time(0, US)
    if d.chance(0.4):
        network["window"] = d.size(1000, 10**6) if d.chance(0.9) else d.size(1, 10**9)


def switches(d, network):
    if d.chance(0.25):
        network["queues"] = d.word(names.words("network.queues"))
    if d.chance(0.2):
        network["switching"] = d.word(names.words("network.switching"))
    if d.chance(0.3):
        buffer(d, network)
    if "buffer" in network and d.chance(0.3):
        network["trimming"] = d.flag()
    if d.chance(0.25):
        ecn(d, network)
    if d.chance(0.12):
        priorities(d, network)


def buffer(d, network):
    # Often small enough that packets are dropped, rarely so small that hardly one fits.
    keys = {"size": d.size(20_000 if d.chance(0.15) else 100_000, 2_000_000)}
    if d.chance(0.3):
        keys["alpha"] = d.number(0.05, 8)
        if d.chance(0.3):
            keys["alpha_rate"] = d.rate(10**10)
    elif d.chance(0.2):
        keys["threshold"] = d.size(10_000, 200_000)
    if d.chance(0.3):
        keys["queue"] = d.size(10_000, 500_000)
    if d.chance(0.15):
        keys["reserve"] = d.size(0, 20_000)
    if "queue" in keys and d.chance(0.3):
        del keys["size"]
        keys.pop("reserve", None)
    network["buffer"] = keys


def ecn(d, network):
    keys = {}
    if d.chance(0.7):
        least = d.between(1000, 200_000)
        most = d.between(least, 3 * least)
        keys = {"kmin": d.size(least, least), "kmax": d.size(most, most)}
        if d.chance(0.6):
            keys["pmax"] = d.number(0, 1)
    if d.chance(0.4):
        keys["mark"] = d.word(names.words("network.ecn.mark"))
    network["ecn"] = keys


def priorities(d, network):
    keys = {}
    if d.chance(0.3):
        low, middle, high = sorted(d.random.sample(range(8), 3))
        keys = dict(zip(("data", "other") if d.chance(0.5) else ("other", "data"), (low, middle)), control=high)
    if d.chance(0.7):
        keys["scheduling"] = d.word(names.words("network.priorities.scheduling"))
    if keys.get("scheduling") == "deficit_round_robin":
        if d.chance(0.5):
            keys["data_weight"] = d.count(1, 10)
        if d.chance(0.5):
            keys["other_weight"] = d.count(1, 10)
    network["priorities"] = keys


def flow_control(d, network, facts):
    kind = d.word(names.words("network.flow_control"))
    network["flow_control"] = kind
    if d.chance(0.15):
        network["link_classes"] = {name: {"flow_control": d.word(names.words("network.flow_control"))}
                                   for name in d.some(facts.classes)}
    if kind == "pfc":
        # The memory of a threshold and a headroom of each port must exist, or the program refuses it.
        network["buffer"] = {**network.get("buffer", {}), "size": d.size(400_000, 16_000_000)}
        keys = {}
        if d.chance(0.2):
            keys["headroom"] = d.size(10_000, 200_000)
        if d.chance(0.2):
            keys["quanta"] = d.count(1000, 65535)
        if d.chance(0.2):
            keys["response"] = d.time(0, US)
        if d.chance(0.2):
            keys["xon"] = d.size(0, 50_000)
        if d.chance(0.2):
            keys["watchdog"] = d.time(10 * US, 10 * MS)
        if keys:
            network["pfc"] = keys
    elif kind == "credit":
        if d.chance(0.9) and "link_classes" not in network:
            network.pop("buffer", None)
            network.pop("trimming", None)
        if d.chance(0.3):
            network["credit"] = {"buffer": d.size(10_000, 300_000)}


def connections(d, network):
    if d.chance(0.2):
        network["connections"] = {"queue_pairs": d.count(1, 5), "data": d.word(names.words("network.connections.data"))}
    if d.chance(0.3):
        network["load_balancing"] = d.word(names.words("network.load_balancing"))
    balancing = network.get("load_balancing")
    if balancing == "flowlet" and d.chance(0.7):
        network["flowlet"] = {"gap": d.time(100 * NS, 50 * US)}
    if balancing == "reps" and d.chance(0.7):
        network["reps"] = {"buffer": d.count(1, 64), "freezing": d.time(1 * US, 500 * US)}
    spread = balancing in ("spray", "adaptive", "reps")
    if network.get("trimming") is True and d.chance(0.95):
        network["recovery"] = "selective_repeat"  # trimming accepts no other
    elif d.chance(0.3):
        network["recovery"] = "selective_repeat" if spread and d.chance(0.9) else d.word(names.words("network.recovery"))
    kind = network.get("recovery", "selective_repeat" if spread else "go_back_n")
    if d.chance(0.25) and isinstance(kind, str) and kind:
        keys = {"timeout": d.time(200 * US, 2 * MS)}
        if d.chance(0.3):
            keys["timeout_low"] = d.time(50 * US, 200 * US)
        if kind == "selective_repeat" and d.chance(0.4):
            keys["reordering"] = d.count(1, 2000)
        network[kind] = keys
    if d.chance(0.2):
        network["ack_interval"] = d.count(1, 32)


def congestion_control(d, network):
    control = d.word(names.congestion_controls())
    network["congestion_control"] = control
    if not isinstance(control, str) or control not in names.congestion_controls() or d.chance(0.6):
        return
    kinds = names.parameters(control) if control != "none" else {}
    if kinds:
        keys = sorted(d.some(kinds, 3))
        network[control] = {key: parameter(d, kinds[key]) for key in keys}


def parameter(d, kind):
    if kind[0] == "word":
        return d.word(kind[1])
    if kind[0] == "flag":
        return d.flag()
    if kind[0] == "count":
        return d.count(kind[1], kind[2])
    if kind[0] == "number":
        return d.number(kind[1], kind[2])
    if kind[0] == "time":
        return d.time(US, 500 * US)
    if kind[0] == "size":
        return d.size(1000, 1_000_000)
    return d.rate(10**6, 10**10)


def some_links(d, facts):
    if d.chance(0.4):
        return {"link": "all"}
    if d.chance(0.5):
        return {"class": d.pick(facts.classes)}
    if facts.switches and d.chance(0.5):
        return {"switch": f"switch{d.random.randrange(facts.switches)}"}
    # Which nodes are joined is not known here: a host's link to some switch is refused if there is none.
    return {"link": [f"host{d.random.randrange(max(1, facts.hosts))}", "switch0"]}


def loss(d, network, facts):
    network["loss"] = []
    for _ in range(d.between(1, 2)):
        item = some_links(d, facts)
        if d.chance(0.8):
            item["probability"] = d.number(1e-5, 0.02) if d.chance(0.95) else d.number(0.02, 0.2)
        else:
            item["bit_error_rate"] = d.number(1e-10, 1e-6)
        network["loss"].append(item)


def failures(d, network, facts):
    network["failures"] = []
    for _ in range(d.between(1, 3)):
        item = some_links(d, facts)
        at = d.between(0, 200 * US)
        item["at"] = d.time(at, at)
        if d.chance(0.9):
            item["until"] = d.time(at + 1, at + 500 * US)
        if d.chance(0.3):
            item["rate"] = d.rate(10**8, 10**10)
        network["failures"].append(item)
    if d.chance(0.7):
        network["reconvergence"] = d.time(0, 100 * US)
    elif d.chance(0.7):  # below the default of `reconvergence`
        network["local_repair"] = d.time(0, 100 * US)
    if d.chance(0.3):
        network["resilient_hashing"] = d.chance(0.8)


def routing(d, network, facts, suits):
    """A routing that suits the machine; `suits` is called for a few."""
    candidates = list(names.routings())
    d.random.shuffle(candidates)
    for name in candidates[:4]:
        if suits(name) or d.chance(0.03):
            network["routing"] = name
            break
    if str(network.get("routing", "")).endswith("_g") and d.chance(0.5):
        network["queue_reports"] = {"interval": d.time(200 * NS, 20 * US), "delay": d.time(0, 2 * US)}


def network(d, facts, suits):
    result = {}
    if d.chance(0.1):
        result["fidelity"] = d.word(names.words("network.fidelity"))
    frames(d, result)
    if d.chance(0.35):
        routing(d, result, facts, suits)
    if d.chance(0.08) and result.get("fidelity") != "ideal":
        result["ack"] = "none"  # the fastest model alone
        return result
    if d.chance(0.2):
        return result
    switches(d, result)
    connections(d, result)
    if d.chance(0.35):
        flow_control(d, result, facts)
    if d.chance(0.35):
        congestion_control(d, result)
    if result.get("fidelity") == "ideal" and d.chance(0.97):
        return result
    if d.chance(0.2):
        loss(d, result, facts)
    if d.chance(0.15):
        failures(d, result, facts)
    return result


def every_text(value):
    """All texts within maps and lists."""
    if isinstance(value, str):
        yield value
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from every_text(child)


def quantities(value, units):
    """All quantities of these units within a value, in the smallest of them."""
    for text in every_text(value):
        number, _, unit = text.partition(" ")
        try:
            if unit in units:
                yield float(number) * units[unit]
        except ValueError:
            continue


# Keys with which ports have queues, and connections timers.
BUFFERED = ("loss", "failures", "recovery", "buffer", "congestion_control", "queues", "load_balancing", "flow_control",
            "ecn", "ack_interval", "switching", "priorities", "trimming", "go_back_n", "selective_repeat", "go_back_0")


def settle_timers(network, topology, background=False):
    """Timers longer than round trips: repeating packets before their ACK can arrive may never end."""
    if network.get("ack") == "none" or network.get("fidelity") == "ideal":
        return
    slowest = min([rate for rate in quantities([topology, network.get("failures")], RATE_UNITS) if rate > 0], default=10**10)
    longest = max(quantities(topology, TIME_UNITS), default=0)
    window = max([size for size in quantities(network.get("window"), SIZE_UNITS)], default=262_144)
    round_trip = int(14 * longest + 2 * (min(window, 10**6) + 65_535) * 8e12 / slowest)
    buffered = (background or any(key in network for key in BUFFERED)
                or re.search("lanes|ugal|progressive|adaptive", str(network.get("routing"))))
    spread = network.get("load_balancing") in ("spray", "adaptive", "reps")
    kind = network.get("recovery", "selective_repeat" if spread else "go_back_n")
    if not isinstance(kind, str) or not kind:
        return
    keys = network.get(kind, {})
    given = min(quantities({key: keys.get(key) for key in ("timeout", "timeout_low")}, TIME_UNITS), default=100 * US)
    if buffered and given < round_trip:
        network[kind] = {**keys, "timeout": f"{2 * round_trip} ps"}
        network[kind].pop("timeout_low", None)


def settle_background(transfers, network):
    """Without an end a transfer of a more urgent class leaves nothing to the others, which then never end."""
    if "priorities" in network or any("priority" in transfer for transfer in transfers):
        for transfer in transfers:
            transfer.setdefault("size", "100 kB")


def tcp(d, facts, index):
    a, b = d.random.sample(range(max(2, facts.hosts)), 2)
    item = {"kind": "tcp", "from": d.count(a, a), "to": d.count(b, b)}
    if d.chance(0.85):
        item["size"] = d.size(1, 300_000)
    if d.chance(0.4):
        item["start"] = d.time(0, 100 * US)
    if d.chance(0.3):
        item["connections"] = d.count(1, 3)
    if d.chance(0.2):
        item["priority"] = d.pick([0, 3])
    if d.chance(0.4):
        item["congestion_control"] = d.word(names.words("background.0.congestion_control"))
    if d.chance(0.2) and item.get("congestion_control") != "dctcp":
        item["ecn"] = d.flag()
    if d.chance(0.2):
        item["segment"] = d.size(64 if "size" in item else 700, 1400)
    if d.chance(0.2):
        item["buffer"] = d.size(10_000, 4_000_000)
    if d.chance(0.5):
        item["min_rto"] = d.time(MS, 20 * MS)
    if d.chance(0.5):
        item["ack_delay"] = d.time(10 * US, MS)
    if d.chance(0.3):
        item["name"] = f"transfer{index}"
    return item


BACKGROUNDS = {"tcp": tcp}


def background(d, facts):
    result = []
    for index in range(d.between(1, 2)):
        kind = d.pick(names.backgrounds())
        make = BACKGROUNDS.get(kind)
        result.append(make(d, facts, index) if make else {"kind": kind})
    return result
