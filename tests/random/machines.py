# SPDX-License-Identifier: GPL-2.0-only
"""Random machines: the map `topology`, of every family, server design and extension."""

import json
import pathlib
import re
import sys
import tempfile
from dataclasses import dataclass, field

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import names  # noqa: E402
from draw import MS, NS, US  # noqa: E402
from weft_testing import SOURCE, served  # noqa: E402

MAX_HOSTS = 40


@dataclass
class Facts:
    """The facts about a machine that the rest of an experiment needs."""

    hosts: int
    storage: int = 0
    switches: int = 1
    classes: list = field(default_factory=lambda: ["host"])
    units: int = 0
    server: int = 0  # accelerators of a server

    @property
    def computing(self):
        return self.hosts - self.storage


def facts_of(topology, files):
    """From the program's output; None if it refuses the machine."""
    with tempfile.TemporaryDirectory(prefix="weft-machine-") as folder:
        write_files(files, folder)
        path = pathlib.Path(folder) / "experiment.yaml"
        path.write_text(json.dumps({"topology": topology}))
        done = served("topology", path, "--json", "--processes", "1", folder=folder, seconds=600)
    if done.code != 0:
        return None
    about = done.summary()
    server = topology.get("server") if isinstance(topology.get("server"), dict) else {}
    gpus = server.get("gpus", 0)
    return Facts(about["hosts"], about["storage_hosts"], about["switches"],
                 [item["class"] for item in about["links_by_class"]], about["reduction_units"], gpus if isinstance(gpus, int) else 0)


def write_files(files, folder):
    for name, text in files.items():
        path = pathlib.Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def delay(d):
    return d.time(1, 100) if d.chance(0.03) else d.time(50 * NS, 2 * US) if d.chance(0.85) else d.time(10 * NS, 100 * US)


def rate(d):
    return d.rate(10**6, 10**9) if d.chance(0.05) else d.rate(10**10)


def links(d, count=1):
    """link_rate and link_delay: one value, or sometimes one for each of several levels."""
    many = count > 1 and d.chance(0.3)
    keys = {"link_rate": [rate(d) for _ in range(count)] if many else rate(d),
            "link_delay": [delay(d) for _ in range(count)] if many else delay(d)}
    return keys


def host_links(d, result, prefix="host_link"):
    if d.chance(0.25):
        result[f"{prefix}_rate"] = rate(d)
    if d.chance(0.25):
        result[f"{prefix}_delay"] = delay(d)
    return result


def star(d, files):
    return host_links(d, {"hosts": d.count(2, 16), **links(d)})


def line(d, files):
    count = d.count(1, 6)
    result = {"links": count, **links(d, count if isinstance(count, int) and 0 < count < 10 else 1)}
    if d.chance(0.1):
        result["hosts"] = d.count(2, 2)
    return result


def fat_tree(d, files):
    return host_links(d, {"k": d.pick([2, 4, 4, 4]) if d.chance(0.95) else d.count(1, 9), **links(d)})


def dims(d, most=16):
    result = []
    while not result or (d.chance(0.6) and len(result) < 4):
        room = most
        for size in result:
            room //= max(1, size)
        if room < 2:
            break
        result.append(d.between(1 if d.chance(0.1) else 2, min(room, 6)))
    return result


def torus(d, files):
    sizes = dims(d)
    result = {"dims": [d.count(size, size) for size in sizes], **links(d, len(sizes))}
    if d.chance(0.25):
        result["wrap"] = [d.flag() for _ in sizes] if d.chance(0.6) else d.flag()
    if d.chance(0.15) and len(sizes) > 1:
        across = d.between(0, len(sizes) - 1)
        result["twist"] = [{"across": across,
                            "shift": [0 if i == across else d.count(0, size - 1) for i, size in enumerate(sizes)]}]
    if d.chance(0.3):
        result["hosts_per_router"] = d.count(1, 3)
    return host_links(d, result)


def mesh(d, files):
    result = torus(d, files)
    return {key: value for key, value in result.items() if key not in ("wrap", "twist")}


def hyperx(d, files):
    sizes = dims(d, 12)
    result = {"dims": sizes, **links(d, len(sizes))}
    if d.chance(0.4):
        result["hosts_per_switch"] = d.count(1, 3)
    if d.chance(0.3):
        result["parallel"] = [d.count(1, 3) for _ in sizes] if d.chance(0.5) else d.count(1, 3)
    return host_links(d, result)


def hypercube(d, files):
    result = {"dimensions": d.count(1, 4), **links(d)}
    if d.chance(0.3):
        result["hosts_per_switch"] = d.count(1, 2)
    return host_links(d, result)


def fully_connected(d, files):
    result = {"switches": d.count(2, 6), **links(d)}
    if d.chance(0.5):
        result["hosts_per_switch"] = d.count(1, 4)
    if d.chance(0.3):
        result["parallel"] = d.count(1, 3)
    return host_links(d, result)


def groups(d, result):
    if d.chance(0.3):
        result["arrangement"] = d.word(names.words("topology.arrangement"))
    if d.chance(0.3):
        result["g"] = d.count(1, 4)
    if d.chance(0.15):
        result["links_between_groups"] = d.count(1, 2)
    for part in ("local_link", "global_link"):
        host_links(d, result, part)
    return host_links(d, result)


def dragonfly(d, files):
    return groups(d, {"p": d.count(1, 2), "a": d.count(1, 4), "h": d.count(1, 2 if d.chance(0.5) else 1), **links(d)})


def dragonfly_plus(d, files):
    return groups(d, {"p": d.count(1, 2), "leaves": d.count(1, 3), "spines": d.count(1, 3), "h": d.count(1, 1), **links(d)})


def xgft(d, files):
    levels = d.between(1, 3)
    result = {"m": [d.count(2, 3) for _ in range(levels)], "w": [1] + [d.count(1, 3) for _ in range(levels - 1)],
              **links(d, levels)}
    if d.chance(0.4):
        result["p"] = [1] + [d.count(1, 2) for _ in range(levels - 1)]
    return result


def leaf_spine(d, files):
    result = {"leaves": d.count(1, 5), "hosts_per_leaf": d.count(1, 6), "spines": d.count(1, 4), **links(d)}
    if d.chance(0.3):
        result["parallel"] = d.count(1, 3)
    return host_links(d, result)


def slim_fly(d, files):
    result = {"q": d.pick([3, 3, 4, 5]) if d.chance(0.9) else d.count(2, 9), **links(d)}
    if d.chance(0.6):
        result["p"] = d.count(1, 2)
    return host_links(d, result)


def graph(d, files):
    """A tree of switches with further links, and hosts anywhere."""
    hosts, switches = d.between(2, 12), d.between(1, 8)
    edges = [(f"switch{d.between(0, i - 1)}", f"switch{i}") for i in range(1, switches)]
    for _ in range(d.between(0, 5)):
        a, b = d.between(0, switches - 1), d.between(0, switches - 1)
        if a != b:
            edges.append((f"switch{a}", f"switch{b}"))
    edges += [(f"host{i}", f"switch{d.random.randrange(switches)}") for i in range(hosts)]
    d.random.shuffle(edges)
    if hosts == 2 and d.chance(0.3):
        edges = [("host0", "host1")]
        switches = 0
    result = {"hosts": hosts, "switches": switches, "links": []}
    if d.chance(0.5):
        result.update(link_rate=rate(d), link_delay=delay(d))
    for a, b in edges:
        a, b = (a, b) if d.chance(0.5) else (b, a)
        edge = {"from": a, "to": b}
        if "link_rate" not in result or d.chance(0.3):
            edge.update(rate=rate(d), delay=delay(d))
        result["links"].append(edge)
    return result


def own_server(d):
    """A server written out."""
    gpus = d.between(1, 4)
    inside = d.word(names.words("topology.server.inside"))
    result = {"gpus": d.count(gpus, gpus), "inside": inside}
    if inside != "none" or d.chance(0.1):
        result.update(nvlink_rate=rate(d), nvlink_delay=delay(d))
    if inside == "links" and gpus > 1:
        result["links"] = [[i, (i + 1) % gpus, rate(d)] for i in range(gpus if gpus > 2 else 1)]
        result.pop("nvlink_rate", None)
    if inside == "nvswitch" and d.chance(0.4):
        result["nvswitches"] = d.count(1, 3)
    if inside == "nvswitch" and d.chance(0.4):
        result["nvlink_sharp"] = d.flag()
    nics = d.between(0 if inside != "none" and d.chance(0.2) else 1, gpus)
    if nics or d.chance(0.3):
        result.update(nics=nics, pcie_rate=rate(d), pcie_delay=delay(d))
    if nics and d.chance(0.2):
        result["nic_of_gpu"] = [i % nics for i in range(gpus)]
    if nics and d.chance(0.2):
        result["ports_per_nic"] = d.count(1, 2)
    if d.chance(0.2):
        result["gpu_rate"] = rate(d)
    if d.chance(0.2):
        result["gpu_delay"] = delay(d)
    return result


def server_keys(d):
    result = own_server(d)
    if d.chance(0.25):
        result = {"design": d.pick(names.folder_names("topologies/servers", ".yaml"))}
    if d.chance(0.3):
        result["wiring"] = d.word(names.words("topology.server.wiring"))
    if d.chance(0.3):
        result["pxn"] = d.flag()
    if d.chance(0.15):
        result["architecture"] = d.word(names.words("topology.server.architecture"))
    if d.chance(0.1):
        result["collective_kernel"] = d.word(names.folder_names("collectives/kernels", ".yaml"))
    if d.chance(0.15):
        result["network_routing"] = d.word(["shortest_path"] if d.chance(0.6) else names.routings())
    for inside in ("nvlink", "pcie"):
        if d.chance(0.15):
            result[f"{inside}_framing"] = {"payload": d.size(1, 4096), "overhead": d.size(0, 64),
                                           "answer": d.size(0, 64)}
    return result


def one_server(d, files):
    if d.chance(0.5):
        return {"design": own_server(d)}
    return {"design": d.pick(names.folder_names("topologies/servers", ".yaml"))}


def rails(d, files):
    design = server_keys(d)
    nics = design.get("nics", 8)
    each = d.pick([nics, d.between(1, 4)]) if isinstance(nics, int) and nics > 0 else 2
    kind = d.pick(["star", "leaf_spine", "torus"])
    rail = {"kind": kind, **MAKERS[kind](d, files)}
    return {"rails": d.count(each, each), "rail": rail, "server": {"wiring": "rail", **design}}


def machine_file(d, files):
    """A ready-made machine, one in a file of another program, or what `weft topology --export` has written."""
    choice = d.random.random()
    if choice < 0.4:
        return {"path": d.pick(names.folder_names("topologies/specs", ".yaml"))}
    if choice < 0.7:
        kept = sorted((SOURCE / "tests/fuzz/corpus/machine_file").iterdir())
        path = d.pick(kept)
        files[path.name] = path.read_text()
        return {"path": path.name}
    kind = d.pick([kind for kind in MAKERS if kind not in ("file", "server")])
    topology = {"kind": kind, **MAKERS[kind](d, files)}
    ending = d.pick(["graphml", "yaml"])
    with tempfile.TemporaryDirectory(prefix="weft-machine-") as folder:
        path = pathlib.Path(folder) / "machine.yaml"
        path.write_text(json.dumps({"topology": topology}))
        done = served("topology", path, "--export", ending, "--quiet", folder=folder, seconds=600)
    files[f"machine.{ending}"] = done.out or "topology: {}"
    return {"path": f"machine.{ending}", **({"format": ending} if d.chance(0.5) else {})}


MAKERS = {
    "star": star, "line": line, "fat_tree": fat_tree, "torus": torus, "mesh": mesh, "hyperx": hyperx,
    "hypercube": hypercube, "fully_connected": fully_connected, "dragonfly": dragonfly,
    "dragonfly_plus": dragonfly_plus, "xgft": xgft, "leaf_spine": leaf_spine, "slim_fly": slim_fly, "graph": graph,
    "server": one_server, "rails": rails, "file": machine_file,
}


def by_summary(d, summary):
    """A family without a function here: from the keys that its summary in `weft list` names."""
    found = re.search(r"\{(.*)\}", summary)
    result = {}
    for word in re.sub(r"[\[\]]|: *\[[^\]]*\]", "", found.group(1) if found else "").split(","):
        key = word.strip().split(":")[0]
        if key.endswith("_rate"):
            result[key] = rate(d)
        elif key.endswith("_delay"):
            result[key] = delay(d)
        elif key.isidentifier():
            result[key] = d.count(1, 4)
    return result


def storage_hosts(d, hosts):
    return d.pick([d.count(1, 3), d.some(range(min(hosts, 6)), 3), {"every": d.count(2, 5)}, {"servers": d.count(1, 2)}])


def switch_reduction(d, hosts):
    result = {}
    if d.chance(0.5):
        result["at"] = d.some(["nvswitch", "leaf", "top"])
    if d.chance(0.3):
        result["rate"] = rate(d)
    if d.chance(0.3):
        result["delay"] = delay(d)
    return result


def paths(d, hosts):
    """One path of a star, which other machines refuse mostly."""
    a, b = d.random.sample(range(max(2, hosts)), 2)
    return [[f"host{a}", "switch0", f"host{b}"]]


def what_if(d, hosts):
    return [{**({"links": d.pick(["all", "host", "switch"])} if d.chance(0.7) else {}),
             d.pick(["rate", "delay"]): d.pick([0.5, 2, 3.7])} for _ in range(1 + d.chance(0.3))]


EXTENSIONS = {
    "what_if": (0.1, what_if),
    "storage_hosts": (0.12, storage_hosts),
    "switch_reduction": (0.12, switch_reduction),
    "paths": (0.02, paths),
    "server": (0.25, lambda d, hosts: server_keys(d)),
}


def machine(d, files, kind=None):
    """A topology map. Some are refused by the program."""
    known = names.topologies()
    kind = kind or d.pick(known)
    make = MAKERS.get(kind)
    topology = {"kind": kind, **(make(d, files) if make else by_summary(d, known[kind]))}
    for name in names.extensions():
        probability, value = EXTENSIONS.get(name, (0.05, lambda d, hosts: {}))
        if kind in ("file", "server") and name == "server":
            continue
        if kind == "star" and name == "paths":
            probability = 0.15
        if name not in topology and d.chance(probability):
            hosts = topology.get("hosts", 4)
            topology[name] = value(d, hosts if isinstance(hosts, int) else 4)
    if "server" in topology:
        fill_servers(d, topology)
    return topology


def fill_servers(d, topology):
    """The network of servers needs as many endpoints as their NICs have ports; so that most fit, wide stars."""
    server = topology["server"]
    nics = server.get("nics", 8) if isinstance(server, dict) else 1
    if topology["kind"] == "star" and isinstance(nics, int) and nics > 0:
        ports = server.get("ports_per_nic", 1)
        topology["hosts"] = nics * (ports if isinstance(ports, int) else 1) * d.between(1, 4)
    if topology["kind"] == "leaf_spine" and isinstance(nics, int) and nics > 0 and d.chance(0.7):
        topology["hosts_per_leaf"] = nics
