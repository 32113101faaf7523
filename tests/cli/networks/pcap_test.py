#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Wireshark recognises captures of ports (`output.pcap`) as RoCEv2, and they agree with the results file."""

import collections
import itertools
import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import FAT_TREE, NETWORK, STAR, ProgramTest, picoseconds_to_send, table

MTU, HEADER, OVERHEAD, ACK = 4096, 62, 20, 66  # of NETWORK
FCS = 4  # frame check sequence: on the wire, not in a capture
ETHERNET, IPV4, UDP, BTH, AETH, IMMEDIATE, ICRC = 14, 20, 8, 12, 4, 4, 4
FILE_HEADER = 24  # of a capture
RATE, DELAY = 400 * 10**9, 500_000

# Opcodes of the reliable connection (InfiniBand Architecture Specification vol. 1, table 38), and what Wireshark shows.
FIRST, MIDDLE, LAST, ONLY, ONLY_IMMEDIATE, ACKNOWLEDGE = 0, 1, 2, 4, 5, 17
SENDS = {FIRST, MIDDLE, LAST, ONLY}
INFO = {FIRST: "Send First", MIDDLE: "Send Middle", LAST: "Send Last", ONLY: "Send Only",
        ONLY_IMMEDIATE: "Send Only Immediate", ACKNOWLEDGE: "Acknowledge"}

# Wireshark guesses from a payload that is all zeros which protocol it may be.
NO_GUESSES = ["--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct"]

FIELDS = {
    "time": "frame.time_epoch", "length": "frame.len", "captured": "frame.cap_len",
    "protocols": "frame.protocols", "ethertype": "eth.type",
    "mac_source": "eth.src", "mac_destination": "eth.dst", "source": "ip.src", "destination": "ip.dst",
    "ip_length": "ip.len", "ip_checksum": "ip.checksum.status", "port": "udp.dstport", "udp_length": "udp.length",
    "udp_source": "udp.srcport", "opcode": "infiniband.bth.opcode", "psn": "infiniband.bth.psn",
    "queue_pair": "infiniband.bth.destqp", "pad": "infiniband.bth.padcnt", "ack_request": "infiniband.bth.a",
    "aeth": "infiniband.aeth", "syndrome": "infiniband.aeth.syndrome.opcode", "immediate": "infiniband.immdt",
    "malformed": "_ws.malformed", "info": "_ws.col.Info",
}


class Frame:
    """A decoded frame; numbers are numbers, and `time` is in ns."""

    def __init__(self, line):
        for name, text in zip(FIELDS, line.split("\t")):
            setattr(self, name, int(text, 0) if text.isdigit() or text.startswith("0x") else text)
        seconds, fraction = self.time.split(".")
        self.time = int(seconds) * 10**9 + int(fraction.ljust(9, "0"))

    @property
    def payload(self):
        return self.length - ETHERNET - IPV4 - UDP - BTH - ICRC - self.pad if self.opcode in SENDS else 0

    @property
    def flow(self):
        return self.source, self.destination, self.queue_pair


def host_ip(host):
    return f"10.0.{host // 256}.{host % 256}"


class PcapTest(ProgramTest):
    @classmethod
    def setUpClass(cls):
        if shutil.which("tshark") is None:
            raise AssertionError("there is no tshark, which decodes the captures; `scripts/setup --test` installs it")

    def decode(self, path):
        if path.stat().st_size == FILE_HEADER:
            return []
        fields = [word for field in FIELDS.values() for word in ("-e", field)]
        line = ["tshark", "-n", "-r", str(path), *NO_GUESSES, "-o", "ip.check_checksum:TRUE", "-T", "fields", *fields]
        done = subprocess.run(line, text=True, capture_output=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [Frame(line) for line in done.stdout.splitlines()]

    def write_captures(self, workload, ports, *words, topology=STAR, network=None, ranks=None):
        experiment = {"topology": topology, "network": {**NETWORK, **(network or {})}, "workload": workload,
                      "output": {"pcap": ports}}
        return self.simulate(experiment, *words, ranks=ranks)[1]

    def capture(self, workload, ports, topology=STAR, network=None):
        """Runs and gives {port: frames} and the results file. Each frame and each count is checked."""
        results = self.write_captures(workload, ports, topology=topology, network=network)
        links = table(results, "links")
        found = {}
        for port in ports:
            frames = found[port] = self.decode(self.folder / f"out.{port.replace(':', '-')}.pcap")
            for frame in frames:
                self.check_frame(frame)
            self.assertEqual([frame.time for frame in frames], sorted(frame.time for frame in frames))
            node, number = port.split(":")
            (row,) = ((links["from"] == self.number(node, topology)) & (links["from_port"] == int(number))).nonzero()[0]
            data = [frame for frame in frames if frame.opcode in SENDS]
            self.assertEqual(len(frames), links["packets"][row])
            self.assertEqual(len(data), links["data_packets"][row])
            self.assertEqual(sum(frame.payload for frame in data), links["payload_bytes"][row])
            # The wire carries the captured bytes without the padding, and the check sequence, preamble and gap besides.
            self.assertEqual(sum(frame.length - frame.pad + FCS + OVERHEAD for frame in frames), links["bytes"][row])
            # Two in one nanosecond would be more than the rate allows.
            self.assertEqual(len({frame.time for frame in frames}), len(frames))
        return found, results

    @staticmethod
    def number(node, topology):
        """Of host3 or switch7, as in /links/from: switches are numbered after the hosts."""
        hosts = topology["hosts"] if "hosts" in topology else topology["k"]**3 // 4
        return int(node[4:]) if node.startswith("host") else hosts + int(node.removeprefix("switch"))

    def check_frame(self, frame):
        self.assertEqual(frame.malformed, "")
        self.assertEqual(frame.captured, frame.length)
        self.assertRegex(frame.protocols, "^eth:ethertype:ip:udp:infiniband")
        self.assertEqual((frame.ethertype, frame.port), (0x0800, 4791))
        self.assertEqual(frame.ip_checksum, 1)  # good
        self.assertEqual(frame.ip_length, frame.length - ETHERNET)
        self.assertEqual(frame.udp_length, frame.ip_length - IPV4)
        self.assertGreaterEqual(frame.udp_source, 0xC000)
        for mac, ip in [(frame.mac_source, frame.source), (frame.mac_destination, frame.destination)]:
            self.assertEqual([int(part, 16) for part in mac.split(":")][3:], [int(part) for part in ip.split(".")][1:])
        self.assertIn(frame.opcode, INFO)
        self.assertRegex(frame.info, f"^RC {INFO[frame.opcode]} QP=0x{frame.queue_pair:06x} *$")
        self.assertGreaterEqual(frame.queue_pair, 2)  # 0 and 1 are management's
        if frame.opcode in SENDS:
            self.assertLessEqual(frame.payload, MTU)
            self.assertEqual((frame.payload + frame.pad) % 4, 0)
            self.assertLess(frame.pad, 4)
            self.assertTrue(frame.ack_request)
        else:
            extension = AETH if frame.opcode == ACKNOWLEDGE else IMMEDIATE
            self.assertEqual(frame.length, ETHERNET + IPV4 + UDP + BTH + extension + ICRC)
            self.assertEqual(frame.length + FCS, ACK)
        if frame.opcode == ACKNOWLEDGE:
            self.assertEqual(frame.syndrome, 0)  # positive

    def messages_of(self, frames):
        """Payloads of the messages of each flow, in order: [first, middles, last] or [only], numbered without a gap."""
        found = collections.defaultdict(list)
        expected = collections.Counter()
        unfinished = {}
        for frame in frames:
            if frame.opcode not in SENDS:
                continue
            self.assertEqual(frame.psn, expected[frame.flow], frame.flow)
            expected[frame.flow] += 1
            begins, ends = frame.opcode in (FIRST, ONLY), frame.opcode in (LAST, ONLY)
            self.assertEqual(begins, frame.flow not in unfinished)
            message = unfinished.setdefault(frame.flow, [])
            message.append(frame.payload)
            if ends:
                found[frame.flow].append(unfinished.pop(frame.flow))
        self.assertEqual(unfinished, {})
        return found


class Times(PcapTest):
    def test_by_hand(self):
        """Three packets over a switch: each leaves it when its last bit is in, or when the one before has left."""
        rest = 100
        size = 2 * MTU + rest
        workload = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "size": f"{size} B"}
        captures, results = self.capture(workload, ["host0:0", "switch0:1", "host1:0", "switch0:0", "host2:0"])
        full, last, ack = (picoseconds_to_send(n + OVERHEAD, RATE) for n in (MTU + HEADER, rest + HEADER, ACK))
        self.assertEqual((full, last, ack), (83_560, 3_640, 1_720))
        expected = {
            "host0:0": [0, full, 2 * full],
            # The third is in before the second has left.
            "switch0:1": [DELAY + full, DELAY + 2 * full, DELAY + 3 * full],
            "host1:0": [2 * DELAY + 2 * full, 2 * DELAY + 3 * full, 2 * DELAY + 3 * full + last],
            "switch0:0": [3 * DELAY + 2 * full + ack, 3 * DELAY + 3 * full + ack, 3 * DELAY + 3 * full + last + ack],
            "host2:0": [],
        }
        for port, times in expected.items():
            with self.subTest(port):
                self.assertEqual([frame.time for frame in captures[port]], [time // 1000 for time in times])
        self.assertEqual([frame.opcode for frame in captures["switch0:1"]], [FIRST, MIDDLE, LAST])
        self.assertEqual([frame.length for frame in captures["switch0:1"]],
                         [n + HEADER - FCS for n in (MTU, MTU, rest)])
        self.assertEqual([frame.opcode for frame in captures["switch0:0"]], [ACKNOWLEDGE] * 3)
        self.assertEqual([frame.psn for frame in captures["switch0:0"]], [0, 1, 2])
        for frame in captures["host0:0"]:
            self.assertEqual((frame.source, frame.destination), (host_ip(0), host_ip(1)))
            self.assertEqual((frame.mac_source, frame.mac_destination), ("02:00:00:00:00:00", "02:00:00:00:00:01"))
        for frame in captures["host1:0"]:
            self.assertEqual((frame.source, frame.destination), (host_ip(1), host_ip(0)))
        # Arrival of the last packet, as in the results.
        self.assertEqual(table(results, "messages")["delivered"][0], 2 * DELAY + 3 * full + last)

    def test_later_than_a_second(self):
        """Seconds and nanoseconds."""
        workload = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "size": "1 B",
                    "start": ["0 s", "3000000001 ns"]}
        captures, _ = self.capture(workload, ["host0:0"])
        self.assertEqual([frame.time for frame in captures["host0:0"]], [0, 3_000_000_001])


class Numbers(PcapTest):
    def test_queue_pairs(self):
        """Two messages on each of three queue pairs to each of two hosts: numbers run on from message to message."""
        sizes = {1: 30_001, 2: 30_001}
        workload = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, peer] for peer in sizes], "queue_pairs": 3,
                    "size": "30001 B", "start": ["0 ns", "200 ns"]}
        captures, _ = self.capture(workload, ["host0:0", "host1:0", "host2:0"])
        messages = self.messages_of(captures["host0:0"])
        # Each share is cut into packets of the MTU and a rest; the first queue pair has the byte that is left.
        shares = [[[MTU, MTU, size - 2 * MTU]] * 2 for size in (10_001, 10_000, 10_000)]
        for peer in sizes:
            flows = sorted(flow for flow in messages if flow[1] == host_ip(peer))
            self.assertEqual([messages[flow] for flow in flows], shares)
        self.assertEqual(len(messages), 6)
        self.assertEqual(len({queue_pair for _, _, queue_pair in messages}), 6)
        # Every packet is acknowledged, in order, by its number and queue pair.
        for peer in sizes:
            acks = collections.defaultdict(list)
            for frame in captures[f"host{peer}:0"]:
                self.assertEqual(frame.opcode, ACKNOWLEDGE)
                acks[frame.queue_pair].append(frame.psn)
            self.assertEqual(dict(acks), {flow[2]: list(range(6)) for flow in messages if flow[1] == host_ip(peer)})

    def test_sizes(self):
        """Every residue of four bytes, and nothing at all."""
        operations = []
        sizes = [0, 1, 2, 3, 4, 5, MTU - 1, MTU, MTU + 1, 3 * MTU]
        for size in sizes:
            operations += [{"rank": 0, "send": f"{size} B", "to": 1}, {"rank": 1, "recv": f"{size} B", "from": 0}]
        captures, _ = self.capture({"kind": "program", "ranks": 2, "operations": operations}, ["host0:0"])
        (messages,) = self.messages_of(captures["host0:0"]).values()
        self.assertEqual([sum(message) for message in messages], sizes)
        self.assertEqual([len(message) for message in messages], [max(1, -(-size // MTU)) for size in sizes])

    def test_without_acks(self):
        workload = {"kind": "traffic", "pattern": "all_to_all", "size": "9 kB"}
        captures, _ = self.capture(workload, ["host0:0", "switch0:0"], network={"ack": "none"})
        for port, end in [("host0:0", 0), ("switch0:0", 1)]:
            messages = self.messages_of(captures[port])
            self.assertEqual({flow[end] for flow in messages}, {host_ip(0)})
            self.assertEqual([sum(message) for flow in messages.values() for message in flow], [9000] * 3)

    def test_collective(self):
        """A ring all-reduce: data to the next rank; to the previous one an ACK for each of its packets, and for each of
        its messages a credit, which travels as a SEND with immediate data and no payload."""
        size, count = 4 * 10**6, 4
        workload = {"kind": "collective", "collective": "all_reduce", "size": f"{size} B"}
        captures, results = self.capture(workload, ["host1:0", "host2:0"])
        sent = self.messages_of(captures["host1:0"])
        self.assertEqual([flow[:2] for flow in sent], [(host_ip(1), host_ip(2))])
        (messages,) = sent.values()
        self.assertEqual(sum(map(sum, messages)), 2 * (count - 1) * size // count)
        rows = table(results, "messages")
        self.assertEqual([sum(message) for message in messages], list(rows["bytes"][rows["source"] == 1]))
        answers = collections.Counter(frame.opcode for frame in captures["host2:0"] if frame.destination == host_ip(1))
        self.assertEqual(answers, {ACKNOWLEDGE: sum(map(len, messages)), ONLY_IMMEDIATE: len(messages)})


class Machine(PcapTest):
    WORKLOAD = {"kind": "traffic", "pattern": "permutation", "size": "50 kB", "queue_pairs": 2}

    def test_every_hop(self):
        """Port after port to a host in another pod: the same frames in the same order, later."""
        workload = {"kind": "traffic", "pattern": "pairs", "pairs": [[3, 12]], "size": "20 kB"}
        ports = ["host3:0", *(f"switch{switch}:{port}" for switch, port in itertools.product(range(20), range(4)))]
        captures, _ = self.capture(workload, ports, topology=FAT_TREE)
        way = sorted((frames[0].time, port) for port, frames in captures.items()
                     if frames and frames[0].opcode != ACKNOWLEDGE)
        self.assertEqual(len(way), 6)
        full = picoseconds_to_send(MTU + HEADER + OVERHEAD, RATE)
        self.assertEqual([time for time, _ in way], [hop * (full + DELAY) // 1000 for hop in range(6)])
        for _, port in way:
            self.assertEqual([frame.psn for frame in captures[port]], list(range(5)))
            self.assertEqual({frame.destination for frame in captures[port]}, {host_ip(12)})

    def test_ranks_and_engines(self):
        """The same files, byte by byte."""
        ports = ["host3:0", "host15:0", "switch0:0", "switch19:3"]
        names = [f"out.{port.replace(':', '-')}.pcap" for port in ports]
        self.capture(self.WORKLOAD, ports, topology=FAT_TREE)
        expected = [(self.folder / name).read_bytes() for name in names]
        for words, ranks in [(["--engine", "ns3-default"], None), ([], 2), ([], 4)]:
            with self.subTest(words=words, ranks=ranks):
                for name in names:
                    (self.folder / name).unlink()
                self.write_captures(self.WORKLOAD, ports, *words, topology=FAT_TREE, ranks=ranks)
                self.assertEqual([(self.folder / name).read_bytes() for name in names], expected)


if __name__ == "__main__":
    unittest.main()
