# SPDX-License-Identifier: GPL-2.0-only
"""`weft propose`: machines of a number of hosts, one of each family, counted by `weft topology`."""

import json

from accounting.settings import Settings
from support.nodes import flow
from support.quantities import readable

from .families import FAMILIES, with_rates
from .identity import Program
from .machines import figures_of
from .processes import Processes

FARTHEST = 4  # the nearest machines of a family are searched down to this part and up to this multiple


def texts(data):
    """Numbers as texts in the form of YAML."""
    if isinstance(data, dict):
        return {key: texts(value) for key, value in data.items()}
    return [texts(item) for item in data] if isinstance(data, list) else str(data)


def near(family, hosts, ports, step):
    """[(number, parameters)] of the first number below or above for which the family has machines."""
    number = hosts + step
    while hosts / FARTHEST <= number <= hosts * FARTHEST and number >= 2:
        best = family.best(number, ports)
        if best:
            return [(number, parameters) for parameters in best]
        number += step
    return []


class Proposals:
    """One machine of each family that has any with this number of hosts; `others` are the nearest ones of the other
    families."""

    def __init__(self, hosts, ports, rate, delay, jobs):
        self.hosts, self.rate, self.delay = hosts, rate, delay
        self.program = Program()
        self.found, self.others = {}, {}
        wanted = {}  # {(family name, which): [(number, parameters)], the best first}
        for family in FAMILIES:
            exact = [(hosts, parameters) for parameters in family.best(hosts, ports)]
            if exact:
                wanted[family.name, "exact"] = exact
            else:
                wanted[family.name, "below"] = near(family, hosts, ports, -1)
                wanted[family.name, "above"] = near(family, hosts, ports, 1)
        counted = self.count(wanted, jobs)
        for family in FAMILIES:
            if (family.name, "exact") in counted:
                self.found[family.name] = counted[family.name, "exact"]
            else:
                self.others[family.name] = [counted[family.name, which] for which in ("below", "above")
                                            if (family.name, which) in counted]

    def count(self, wanted, jobs):
        """{key: (topology, figures)} of the first machine of each list that weft accepts and that has the right number
        of hosts."""
        counted, left = {}, {key: list(options) for key, options in wanted.items() if options}
        with Processes(jobs) as processes:
            waiting = list(left)
            while waiting or processes.running:
                while waiting and processes.has_room():
                    key = waiting.pop(0)
                    number, parameters = left[key].pop(0)
                    topology = texts(with_rates(parameters, self.rate, self.delay))
                    path = processes.scratch / f"{key[0]}.{key[1]}.{len(left[key])}.yaml"
                    path.write_text(flow(topology) + "\n")
                    processes.start((key, number, topology),
                                    [self.program.path, "topology", str(path), "--json", "--processes", "1"])
                for (key, number, topology), ended in processes.wait(60):
                    figures = figures_of(json.loads(ended.out), Settings()) if ended.code == 0 else None
                    if figures and figures["hosts"] == number:
                        counted[key] = (topology, figures)
                    elif left[key]:
                        waiting.append(key)
        return counted

    def as_yaml(self):
        what = {family.name: family.what for family in FAMILIES}
        lines = [f"# {self.hosts} hosts at {self.rate}, one machine of each family; below `grid:` of a study:",
                 "topology:"]
        for name, (topology, figures) in self.found.items():
            lines.append(f"  # {what[name]}: {told(figures)}")
            lines.append(f"  {name}: {flow(topology)}")
        if not self.found:
            lines.append("  {}")
        if self.others:
            lines.append(f"# Without {self.hosts} hosts; the nearest:")
        for name, nearest in self.others.items():
            for topology, figures in nearest:
                lines.append(f"#   {name}, {figures['hosts']} hosts: {flow(topology)}")
            if not nearest:
                lines.append(f"#   {name}: none of {self.hosts // FARTHEST} to {self.hosts * FARTHEST} hosts with such "
                             "switches")
        return "\n".join(lines)

    def as_json(self):
        def one(pair):
            return {"topology": pair[0], "figures": pair[1]}

        return json.dumps({"hosts": self.hosts, "machines": {name: one(pair) for name, pair in self.found.items()},
                           "nearest": {name: [one(pair) for pair in pairs] for name, pairs in self.others.items()}},
                          indent=2)


def told(figures):
    return (f"{figures['switches']} switches, {figures['network_ports']} ports of the network's, diameter "
            f"{figures['diameter']}, {readable(figures['injection_rate'], 'bit/s')} per host, bisection "
            f"{readable(figures['bisection'], 'bit/s')}, network {readable(figures['network_cost'], '$')} and "
            f"{readable(figures['network_power'], 'W')}")
