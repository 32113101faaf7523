# SPDX-License-Identifier: GPL-2.0-only
"""The files of ASTRA-sim's ns-3 backend, and of SimAI and HPCC's simulator, from which it comes: physical topologies,
and `KEY value` configurations (ReadConf, SetupNetwork in astra-sim/network_frontend/ns3/common.h; defaults from
there)."""

import collections
import re

from importing.errors import InputError, real_number, text_lines, whole_number
from importing.imported import Input, Map

MAX_NODES = 1 << 22
MAX_PAIRS_FROM = 64  # hosts from which round trips are searched; in small machines all hosts

# A frame in that simulator: PPP header class of 14 B, IPv4 20, UDP 8, sequence number and group 6 (src/internet/model/
# seq-ts-header.cc), and for HPCC telemetry of 42 B (int-header.h). An ACK is filled up to 60 B (rdma-hw.cc).
HEADER, TELEMETRY, ACK = 48, 42, 60
CONTROL = {1: "dcqcn", 3: "hpcc", 7: "timely", 8: "dctcp"}
FILES = {"TOPOLOGY_FILE", "FLOW_FILE", "TRACE_FILE", "TRACE_OUTPUT_FILE", "FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE",
         "QLEN_MON_FILE", "BW_MON_FILE", "RATE_MON_FILE", "CNP_MON_FILE", "ENABLE_TRACE", "QLEN_MON_START",
         "QLEN_MON_END", "MON_START", "MON_END", "QP_MON_INTERVAL", "QLEN_MON_INTERVAL", "BW_MON_INTERVAL",
         "SIMULATOR_STOP_TIME", "DATA_RATE", "LINK_DELAY"}
MAPS = {"KMAX_MAP", "KMIN_MAP", "PMAX_MAP"}
OF_CONTROL = {  # keys that only one congestion control reads
    "dcqcn": {"ALPHA_RESUME_INTERVAL", "RP_TIMER", "EWMA_GAIN", "FAST_RECOVERY_TIMES", "RATE_AI", "RATE_HAI",
              "MIN_RATE", "RATE_DECREASE_INTERVAL", "CLAMP_TARGET_RATE", "VAR_WIN", "RATE_BOUND"},
    "hpcc": {"U_TARGET", "MI_THRESH", "MIN_RATE", "RATE_AI", "INT_MULTI", "MULTI_RATE", "SAMPLE_FEEDBACK", "FAST_REACT",
             "VAR_WIN", "RATE_BOUND"},
    "timely": {"RATE_AI", "RATE_HAI", "MIN_RATE"},
    "dctcp": {"EWMA_GAIN", "DCTCP_RATE_AI", "MIN_RATE", "VAR_WIN"},
    "none": {"VAR_WIN"},
}
ALL_OF_CONTROL = set().union(*OF_CONTROL.values()) | {"PINT_LOG_BASE", "PINT_PROB"}
GENERAL = {"ENABLE_QCN", "USE_DYNAMIC_PFC_THRESHOLD", "PAUSE_TIME", "PACKET_PAYLOAD_SIZE", "L2_CHUNK_SIZE",
           "L2_ACK_INTERVAL", "L2_BACK_TO_ZERO", "CC_MODE", "HAS_WIN", "GLOBAL_T", "ACK_HIGH_PRIO",
           "NIC_TOTAL_PAUSE_TIME", "ERROR_RATE_PER_LINK", "LINK_DOWN", "BUFFER_SIZE", "HEADROOM_FACTOR"}
# Options that weft lacks, if their value differs from this one.
LACKING = {"CLAMP_TARGET_RATE": ("0", "the target rate falls with each cut"),
           "VAR_WIN": ("0", "the window shrinks with the rate"),
           "RATE_BOUND": ("1", "senders are not paced"), "INT_MULTI": ("1", "telemetry has larger units"),
           "MULTI_RATE": ("0", "each hop has its own rate"), "SAMPLE_FEEDBACK": ("0", "only samples of the feedback count"),
           "FAST_REACT": ("1", "senders react once per round trip"), "NIC_TOTAL_PAUSE_TIME": ("0", "NICs pause")}
RATES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
TIMES = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "": 1e9}


def rate_of(text, path, line, what="rate"):
    """bit/s of ns-3's text, such as 400Gbps or 50Mb/s."""
    found = re.fullmatch(r"([0-9.]+)([kKMGT]?)(bps|b/s)", text)
    if not found:
        raise InputError(path, line, f"{what}: found '{text}'; expected a rate such as 400Gbps")
    return round(real_number(found.group(1), path, line, what) * RATES[found.group(2)])


def weft_rate(bits):
    """A rate as a quantity of weft."""
    for unit, size in (("Tb/s", 10**12), ("Gb/s", 10**9), ("Mb/s", 10**6), ("kb/s", 10**3)):
        if bits >= size:
            return f"{bits / size:.12g} {unit}"
    return f"{bits} b/s"


def delay_of(text, path, line):
    """Nanoseconds of ns-3's text, such as 0.0005ms."""
    found = re.fullmatch(r"([0-9.eE+-]+)(ns|us|ms|s|)", text)
    if not found:
        raise InputError(path, line, f"delay: found '{text}'; expected a time such as 0.0005ms")
    return real_number(found.group(1), path, line, "delay") * TIMES[found.group(2)]


class Physical:
    """A physical topology: hosts, and links as (rate, delay in ns) by node."""

    def __init__(self, path):
        self.path, self.links = path, collections.defaultdict(list)
        lines = ((number, line.split("#")[0].split()) for number, line in text_lines(path))
        lines = ((number, words) for number, words in lines if words)
        number, words = next(lines, (1, []))
        self.simai = len(words) == 6
        if len(words) not in (3, 6):
            raise InputError(path, number, "expected 'nodes switches links' in the first line, or SimAI's 'nodes "
                             "gpus_per_server nvswitches switches links gpu_type'")
        counts = words[:5] if self.simai else words
        values = [whole_number(word, path, number, "the first line", 0, MAX_NODES) for word in counts]
        self.nodes, count = values[0], values[-1]
        switches = values[2] + values[3] if self.simai else values[1]
        self.gpus_per_server = values[1] if self.simai else 1
        listed = []
        while len(listed) < switches:
            number, words = next(lines, (number, None))
            if words is None:
                raise InputError(path, number, f"the file ends; expected the numbers of {switches} switches")
            listed += [whole_number(word, path, number, "a switch", 0, self.nodes - 1) for word in words]
        self.switches, self.inside = set(listed), set(listed[:values[2]] if self.simai else [])
        for _ in range(count):
            number, words = next(lines, (number, None))
            if words is None or len(words) != 5:
                raise InputError(path, number, "expected a link 'node node rate delay loss'")
            a, b = (whole_number(word, path, number, "node", 0, self.nodes - 1) for word in words[:2])
            link = (rate_of(words[2], path, number), delay_of(words[3], path, number))
            self.links[a].append((b, *link))
            self.links[b].append((a, *link))
        self.hosts = [node for node in range(self.nodes) if node not in self.switches]
        if not self.hosts:
            raise InputError(path, 1, "there is no host")

    def rates(self):
        """Rates of the links of the network; those of NVSwitches are inside servers."""
        return sorted({rate for node, links in self.links.items() for other, rate, _ in links
                       if not {node, other} & self.inside})

    def host_rate(self):
        """The largest rate of a host's links to the network."""
        return max((rate for other, rate, _ in self.links[self.hosts[0]] if other not in self.inside), default=0)

    def largest_window(self, payload):
        """maxBdp of SetupNetwork: the largest of twice the delay and a packet's time on each link of a shortest path,
        at the rate of the slowest."""
        largest = 0
        for start in self.hosts[:MAX_PAIRS_FROM]:
            known, queue = {start: (0.0, 0.0, float("inf"))}, collections.deque([start])
            while queue:
                node = queue.popleft()
                if node != start and node not in self.switches:
                    continue
                delay, sending, slowest = known[node]
                for other, rate, one in self.links[node]:
                    if other not in known:
                        known[other] = (delay + one, sending + payload * 8e9 / rate, min(slowest, rate))
                        queue.append(other)
            for node in self.hosts:
                if node != start and node in known:
                    delay, sending, slowest = known[node]
                    largest = max(largest, int((2 * delay + sending) * slowest / 8e9))
        return largest

    def topology(self):
        machine = Map(kind="file", path=Input(self.path), format="simai" if self.simai else "ns3")
        machine.about = f"{self.path}: {len(self.hosts)} hosts and {len(self.switches)} switches, read where it is."
        return machine


class Config:
    """A configuration as keys of `network`."""

    def __init__(self, path, physical, imported):
        self.path, self.physical, self.imported = path, physical, imported
        self.keys, self.lines = {}, {}
        for number, line in text_lines(path):
            words = line.split("#")[0].split()
            if words:
                self.keys[words[0]], self.lines[words[0]] = words[1:], number

    def place(self, key):
        return f"{self.path}:{self.lines[key]}"

    def word(self, key, usual):
        words = self.keys.get(key)
        if words is None:
            return usual
        if not words:
            raise InputError(self.path, self.lines[key], f"{key}: expected a value")
        return words[0]

    def number(self, key, usual, least=0.0):
        return real_number(self.word(key, usual), self.path, self.lines.get(key), key, least)

    def whole(self, key, usual, least=0):
        return whole_number(self.word(key, usual), self.path, self.lines.get(key), key, least)

    def rate(self, key, usual):
        return weft_rate(rate_of(self.word(key, usual), self.path, self.lines.get(key), key))

    def of_rate(self, key, rate):
        """The entry of KMAX_MAP and the like for a rate."""
        words = self.keys.get(key, [])
        if words and len(words) != 1 + 2 * whole_number(words[0], self.path, self.lines[key], key, 0, 1000):
            raise InputError(self.path, self.lines[key], f"{key}: found {len(words)} words; expected a number of "
                             "entries and for each a rate and a value")
        values = {whole_number(words[i], self.path, self.lines[key], key): words[i + 1]
                  for i in range(1, len(words), 2)}
        if rate not in values:
            raise InputError(self.path, self.lines.get(key), f"{key}: no value for links of {weft_rate(rate)}, as the "
                             "machine has; over there this ends the run, too")
        return real_number(values[rate], self.path, self.lines[key], key), values

    def network(self):
        payload = self.whole("PACKET_PAYLOAD_SIZE", 1000, 1)
        mode = self.whole("CC_MODE", 1)
        control = CONTROL.get(mode, "none")
        if mode == 10:
            self.imported.refuse(self.place("CC_MODE"), "CC_MODE 10 (HPCC-PINT): weft runs without congestion control")
        network = Map()
        network.put("mtu", f"{payload} B", f"{self.path}: PACKET_PAYLOAD_SIZE")
        network.put("header", f"{HEADER + (TELEMETRY if control == 'hpcc' else 0)} B",
                    "Frames of that simulator, which has neither preamble nor gap.")
        network.update(wire_overhead="0 B", ack=f"{ACK} B")
        self.add_window(network, payload)
        self.add_flow_control(network)
        self.add_control(network, control)
        self.add_recovery(network, payload)
        self.list_others(control)
        return network

    def add_window(self, network, payload):
        if not self.whole("HAS_WIN", 1):
            network.put("window", "1 GiB", "HAS_WIN 0: nothing but congestion control limits a flow")
            return
        network.put("window", f"{max(payload, self.physical.largest_window(payload))} B",
                    "HAS_WIN: the largest bandwidth-delay product of two hosts (maxBdp)")
        if self.keys.get("GLOBAL_T") and not self.whole("GLOBAL_T", 1):
            self.imported.refuse(self.place("GLOBAL_T"), "GLOBAL_T 0: each pair has its own window there; weft uses "
                                                         "the largest for all")

    def add_flow_control(self, network):
        network.put("flow_control", "pfc", "Always there; an ingress queue may have 1/8 of what is free, a port "
                                           "faster than the hosts' more over there.")
        network["buffer"] = Map(size=f"{self.whole('BUFFER_SIZE', 16, 1)} MiB", alpha=0.125)
        if not self.whole("USE_DYNAMIC_PFC_THRESHOLD", 1):
            self.imported.refuse(self.place("USE_DYNAMIC_PFC_THRESHOLD"), "USE_DYNAMIC_PFC_THRESHOLD 0: weft uses "
                                                                          "dynamic thresholds (buffer.threshold gives "
                                                                          "a static one)")
        quanta = round(self.number("PAUSE_TIME", 5) * 1e-6 * self.physical.host_rate() / 512)
        if 0 < quanta <= 65535:
            network["pfc"] = Map().put("quanta", quanta, "PAUSE_TIME, at the rate of the hosts")

    def add_control(self, network, control):
        if control in ("dcqcn", "dctcp") and not self.whole("ENABLE_QCN", 1):
            self.imported.refuse(self.place("ENABLE_QCN"), "ENABLE_QCN 0: no packet is marked, so weft runs without "
                                                           "congestion control")
            control = "none"
        if control == "none":
            return
        network.put("congestion_control", control, f"CC_MODE {self.word('CC_MODE', 1)}")
        if control in ("dcqcn", "dctcp"):
            network["ecn"] = self.marking()
        if control == "dcqcn":
            network["dcqcn"] = Map(
                preset="connectx", gain=self.number("EWMA_GAIN", 1 / 16),
                alpha_period=f"{max(1.0, self.number('ALPHA_RESUME_INTERVAL', 55)):g} us",
                increase_period=f"{max(1.0, self.number('RP_TIMER', 300)):g} us",
                cut_period=f"{self.number('RATE_DECREASE_INTERVAL', 4):g} us",
                fast_recovery=self.whole("FAST_RECOVERY_TIMES", 5, 1),
                additive_increase=self.rate("RATE_AI", "50Mb/s"), hyper_increase=self.rate("RATE_HAI", "100Mb/s"),
                min_rate=self.rate("MIN_RATE", "100Mb/s"), increase_bytes="1 TiB", cnp_interval="1 us")
            network["dcqcn"].comments["increase_bytes"] = "There is no byte counter over there."
        if control == "hpcc":
            network["hpcc"] = Map(target_utilisation=self.number("U_TARGET", 0.95),
                                  max_stage=self.whole("MI_THRESH", 5), min_rate=self.rate("MIN_RATE", "100Mb/s"))
        if control == "timely":
            network["timely"] = Map(additive_increase=self.rate("RATE_AI", "50Mb/s"),
                                    min_rate=self.rate("MIN_RATE", "100Mb/s"))
        if control == "dctcp":
            network["dctcp"] = Map(gain=self.number("EWMA_GAIN", 1 / 16))
        for key in sorted({"hpcc": {"RATE_AI"}, "timely": {"RATE_HAI"}, "dctcp": {"DCTCP_RATE_AI", "MIN_RATE"}}
                          .get(control, set()) & self.keys.keys()):
            self.imported.refuse(self.place(key), f"{key}: {control} in weft has its own (docs/reference/congestion_control.md)")

    def marking(self):
        rate = self.physical.host_rate()
        kmin, kmax, pmax = (self.of_rate(key, rate)[0] for key in ("KMIN_MAP", "KMAX_MAP", "PMAX_MAP"))
        for other in self.physical.rates():
            found = tuple(self.of_rate(key, other)[0] for key in ("KMIN_MAP", "KMAX_MAP", "PMAX_MAP"))
            if found != (kmin, kmax, pmax):
                self.imported.refuse(self.place("KMIN_MAP"), f"marking of links of {weft_rate(other)}: in weft all mark "
                                                             f"as those of {weft_rate(rate)}")
        return Map(kmin=f"{kmin:g} kB", kmax=f"{kmax:g} kB", pmax=pmax)

    def add_recovery(self, network, payload):
        interval = self.whole("L2_ACK_INTERVAL", 1)
        if interval > payload:
            network.put("ack_interval", -(-interval // payload), "L2_ACK_INTERVAL, in packets")
        if self.whole("L2_BACK_TO_ZERO", 0):
            network.put("recovery", "go_back_0", "L2_BACK_TO_ZERO")
        if loss := self.number("ERROR_RATE_PER_LINK", 0):
            network.put("loss", [{"link": "all", "probability": loss}], "ERROR_RATE_PER_LINK")
        down = self.keys.get("LINK_DOWN", ["0"])
        if down and self.whole("LINK_DOWN", 0):
            what = f"LINK_DOWN {' '.join(down)}: weft leaves it out; in that simulator it happens 2 s later, after all collectives"
            self.imported.refuse(self.place("LINK_DOWN"), f"{what}; network.failures takes links down")
        if not self.whole("ACK_HIGH_PRIO", 0):
            place = self.place("ACK_HIGH_PRIO") if "ACK_HIGH_PRIO" in self.keys else self.path
            self.imported.refuse(place, "ACK_HIGH_PRIO 0: in that simulator ACKs wait behind data; in weft they go first")

    def list_others(self, control):
        for key in self.keys:
            usual, what = LACKING.get(key, (None, ""))
            if key in FILES:
                self.imported.ignore(self.place(key), f"{key}: it concerns reports of that simulator")
            elif key in ALL_OF_CONTROL - OF_CONTROL[control]:
                self.imported.ignore(self.place(key), f"{key}: {control if control != 'none' else 'this CC_MODE'} "
                                                      "does not use it")
            elif usual is not None and self.word(key, usual) != usual:
                self.imported.refuse(self.place(key), f"{key} {self.word(key, usual)}: weft lacks this option, with which {what}")
            elif key == "HEADROOM_FACTOR" or key == "L2_CHUNK_SIZE":
                self.imported.ignore(self.place(key), f"{key}: weft computes the headroom that a link needs" if key[0] == "H" else
                                     f"{key}: that simulator uses it only with L2_BACK_TO_ZERO")
            elif key not in GENERAL | MAPS | ALL_OF_CONTROL:
                self.imported.ignore(self.place(key), f"{key}: ASTRA-sim has no such key")
