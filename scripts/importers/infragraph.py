# SPDX-License-Identifier: GPL-2.0-only
"""InfraGraph (github.com/Keysight/infragraph): devices with components and links, instances of them, and connections,
as a machine. Its experiment has an all-reduce as a first workload."""

import re

from importing.errors import InputError, did_you_mean, read_bytes, read_text, real_number
from importing.imported import Imported, Map

SUMMARY = "machines of InfraGraph: an infrastructure, and the files of its devices"
END = re.compile(r"(.+?)\.([0-9]+)\.(.+?)\.([0-9]+)\.(.+)\.(.+?)\.([0-9]+)\.(.+?)\.([0-9]+)")
RATES = {"gigabytes_per_second": 8 * 10**9, "gigabits_per_second": 10**9, "megabits_per_second": 10**6}
TIMES = {"ms": 10**6, "us": 10**3, "ns": 1}
ACCELERATORS = {"xpu", "npu"}  # types of components
INSIDE_NS, OUTSIDE_NS = 100, 500


def add_arguments(parser):
    parser.add_argument("input", nargs="+", metavar="FILE.yaml", help="the infrastructure and its devices, in any "
                                                                      "order")


def matches(path):
    try:
        return bool(re.match(rb"\s*(#[^\n]*\n\s*)*infrastructure\s*:", read_bytes(path, 1 << 14)))
    except InputError:
        return False


def entries(path, found, key, *due):
    """The maps of a list, each with these texts."""
    values = found.get(key) or []
    if not isinstance(values, list):
        raise InputError(path, None, f"{key}: expected a list")
    for one in values:
        if not isinstance(one, dict) or not all(isinstance(one.get(name), str) for name in due):
            raise InputError(path, None, f"{key}: each entry is a map with {' and '.join(due)}, which are texts")
    return values


def is_newer(document):
    """Whether it is of the format that has edges between `ep1` and `ep2` (models/edge.yaml)."""
    inner = document.get("infrastructure", document) if isinstance(document, dict) else None
    devices = inner.get("devices") if isinstance(inner, dict) else None
    maps = [inner, *(devices if isinstance(devices, list) else [])]
    return any(isinstance(one, dict) and "edges" in one for one in maps)


def types_of(device):
    """{component: type} of a device."""
    return {one["name"]: one["type"] for one in device.get("components") or []}


def has_accelerators(device):
    return not ACCELERATORS.isdisjoint(types_of(device).values())


def check_connections(path, device):
    types, links = types_of(device), {one["name"] for one in device.get("links") or []}
    for text in texts(path, device):
        words = text.split(".")
        if len(words) != 5 or words[0] not in types or words[3] not in types or words[2] not in links:
            raise InputError(path, None, f"connection '{text}' in '{device['name']}': "
                                         "expected COMPONENT.N.LINK.COMPONENT.N")


def texts(path, found):
    values = found.get("connections") or []
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise InputError(path, None, "connections: expected a list of texts")
    return values


class Infrastructure:
    """All files together."""

    def __init__(self, paths):
        import yaml  # noqa: PLC0415

        self.devices, self.links, self.instances, self.connections = {}, {}, {}, []
        self.paths, self.place = paths, paths[0]
        for path in paths:
            try:
                document = yaml.safe_load(read_text(path))
            except yaml.YAMLError as error:
                mark = getattr(error, "problem_mark", None)
                raise InputError(path, mark.line + 1 if mark else None, "it is not YAML") from None
            if is_newer(document):
                raise InputError(path, None, "it is of InfraGraph's newer format, with 'edges' from ep1 to ep2, which "
                                             "is not read; expected a map 'infrastructure' with 'connections'")
            found = document.get("infrastructure") if isinstance(document, dict) else None
            if not isinstance(found, dict):
                raise InputError(path, 1, "expected a map 'infrastructure'")
            self.add(path, found)
        if not self.instances:
            raise InputError(self.place, 1, "no 'instances' in it; expected a file with the infrastructure")

    def add(self, path, found):
        for device in entries(path, found, "devices", "name"):
            entries(path, device, "components", "name", "type")
            entries(path, device, "links", "name")
            check_connections(path, device)
            self.devices[device["name"]] = (path, device)
        for link in entries(path, found, "links", "name"):
            self.links[link["name"]] = link
        if "instances" in found:
            self.place = path
        for instance in entries(path, found, "instances", "name", "device"):
            self.instances[instance["name"]] = instance["device"]
        self.connections += [(path, text) for text in texts(path, found)]

    def device(self, instance, place):
        name = self.instances.get(instance)
        if name is None:
            raise InputError(place, None, f"unknown instance '{instance}'{did_you_mean(instance, self.instances)}")
        if name not in self.devices:
            raise InputError(place, None, f"instance '{instance}' is a '{name}', which no file defines; give its "
                                          "file, too")
        return self.devices[name][1]


def rate_of(link, path):
    """bit/s, or None."""
    band = link.get("bandwidth")
    if not band:
        return None
    choice = band.get("choice") if isinstance(band, dict) else None
    value = real_number(band.get(choice), path, None, f"bandwidth of '{link['name']}'") if choice in RATES else 0
    if not 1 <= value * RATES.get(choice, 0) <= 1e18:
        raise InputError(path, None, f"link '{link['name']}': bandwidth '{choice}'; expected one of "
                         f"{', '.join(RATES)} with a number")
    return round(value * RATES[choice])


def delay_of(link, path, usual):
    """Nanoseconds; `usual` for a link without a latency."""
    found = link.get("latency")
    if found is None:
        return usual
    choice = found.get("choice") if isinstance(found, dict) else None
    if choice not in TIMES:
        raise InputError(path, None, f"link '{link['name']}': latency {found}; expected a choice of "
                         f"{', '.join(TIMES)}, and its number")
    value = real_number(found.get(choice), path, None, f"latency of '{link['name']}'") * TIMES[choice]
    if not 0.001 <= value <= 1e9:
        raise InputError(path, None, f"link '{link['name']}': latency {value:g} ns; expected 0.001 ns to 1 s")
    return value


class Machine:
    """Nodes of a graph: accelerators are hosts, each on its own switch; other components of a server are switches; a
    device without accelerators is one switch."""

    def __init__(self, infrastructure):
        self.all, self.hosts, self.switches, self.edges = infrastructure, {}, {}, []
        self.made = set()
        for path, text in infrastructure.connections:
            self.connect(path, text)
        if len(self.hosts) < 2:
            raise InputError(infrastructure.place, 1, f"found {len(self.hosts)} components of type xpu or npu; "
                                                      "expected two or more")

    def connect(self, path, text):
        found = END.fullmatch(text)
        if not found:
            raise InputError(path, None, f"connection '{text}'; expected "
                                         "INSTANCE.N.COMPONENT.N.LINK.INSTANCE.N.COMPONENT.N")
        a, ai, ac, acn, link, b, bi, bc, bcn = found.groups()
        if link not in self.all.links:
            raise InputError(path, None, f"connection '{text}': unknown link "
                                         f"'{link}'{did_you_mean(link, self.all.links)}")
        ends = [self.node(path, one, number, part, of) for one, number, part, of in ((a, ai, ac, acn), (b, bi, bc,
        bcn))]
        self.edge(path, *ends, self.all.links[link], OUTSIDE_NS)

    def edge(self, path, a, b, link, usual):
        rate = rate_of(link, path)
        if rate is None:
            raise InputError(path, None, f"link '{link['name']}' has no bandwidth")
        self.edges.append((a, b, rate, delay_of(link, path, usual)))

    def node(self, path, instance, number, part, of):
        device = self.all.device(instance, path)
        name = f"{instance}.{number}"
        if name not in self.made:
            self.made.add(name)
            self.build(device, name)
        types = types_of(device)
        if part not in types:
            raise InputError(path, None, f"device '{device['name']}' has no component "
                                         f"'{part}'{did_you_mean(part, types)}")
        return self.switch(f"{name}.{part}.{of}" if has_accelerators(device) else name)

    def switch(self, name):
        return self.switches.setdefault(name, len(self.switches))

    def build(self, device, name):
        """The inside of a device with accelerators."""
        path = self.all.devices[device["name"]][0]
        if not has_accelerators(device):
            return
        types, links = types_of(device), {one["name"]: one for one in device.get("links") or []}
        for text in device.get("connections") or []:
            words = text.split(".")
            ends = []
            for part, number in ((words[0], words[1]), (words[3], words[4])):
                ends.append(self.switch(f"{name}.{part}.{number}"))
                if types[part] in ACCELERATORS:
                    self.hosts.setdefault(f"{name}.{part}.{number}", ends[-1])
            self.edge(path, *ends, links[words[2]], INSIDE_NS)

    def write(self, file):
        rates = {}
        for a, b, rate, _ in self.edges:
            for end in (a, b):
                rates[end] = rates.get(end, 0) + rate
        file.write("# From InfraGraph, link by link. Hosts are accelerators, each on a switch of its own.\nkind: "
                   "graph\n"
                   f"hosts: {len(self.hosts)}\nswitches: {len(self.switches)}\nlinks:\n".encode())
        for number, (name, switch) in enumerate(self.hosts.items()):
            file.write(f"  - {{from: host{number}, to: switch{switch}, rate: {rates[switch]} b/s, delay: 1 ns}}  "
                       f"# {name}\n".encode())
        names = list(self.switches)
        for a, b, rate, delay in self.edges:
            file.write(f"  - {{from: switch{a}, to: switch{b}, rate: {rate} b/s, delay: {delay:g} ns}}  "
                       f"# {names[a]}, {names[b]}\n".encode())


def read(options):
    machine = Machine(Infrastructure(options.input))
    imported = Imported(options.input, len(machine.hosts), [f"The machine of {', '.join(options.input)}."])
    imported.topology = Map(kind="file", path=imported.beside("topology.yaml", machine.write), format="yaml")
    imported.topology.about = (f"{len(machine.hosts)} accelerators. Links without a latency have {INSIDE_NS} ns inside "
                               f"servers and {OUTSIDE_NS} ns outside.")
    imported.workload = Map(kind="collective", collective="all_reduce", size="1 MiB")
    imported.workload.about = "InfraGraph has no workload: this is one to begin with."
    return imported
