#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""/messages names the three links for which a message waited longest, and for how long: a case by hand.

A message of one packet crosses four switches, each of whose ports toward the next it finds busy: a
burst of known length is leaving it since a known time. The waits follow from that one after the other.
"""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import ProgramTest, table

MTU, HEADER = 4096, 62
DELAY = 1_000_000  # ps
SLOW, FAST = 100 * 10**9, 400 * 10**9  # bit/s
BURSTS = [10, 20, 40, 52]  # packets that leave each of the four ports from the first one's arrival on
ISSUED = 1_000_000  # ps, when the bursts have left their hosts' fast links or are about to have


def serialization(rate):
    return -(-(MTU + HEADER) * 8 * 10**12 // rate)


def waits():
    """For each of the four ports: until when its burst keeps it, less when the packet arrives there."""
    arrival = ISSUED + serialization(FAST) + DELAY
    result = []
    for packets in BURSTS:
        busy_until = serialization(FAST) + DELAY + packets * serialization(SLOW)
        assert packets * serialization(FAST) + DELAY < arrival < busy_until, "the whole burst is there, and not yet gone"
        result.append(busy_until - arrival)
        arrival = busy_until + serialization(SLOW) + DELAY
    return result


# Hosts 0 to 3 send the bursts to 4 to 7: host i is at switch i, host 4 + i behind the next one. Host 8 at switch 0 sends to
# host 7, whose link is the fourth busy one.
LINKS = (
    [{"from": f"host{i}", "to": f"switch{i}", "rate": "400 Gb/s"} for i in range(4)]
    + [{"from": f"host{4 + i}", "to": f"switch{i + 1}", "rate": "400 Gb/s"} for i in range(3)]
    + [{"from": "host7", "to": "switch3", "rate": "100 Gb/s"}, {"from": "host8", "to": "switch0", "rate": "400 Gb/s"}]
    + [{"from": f"switch{i}", "to": f"switch{i + 1}", "rate": "100 Gb/s"} for i in range(3)]
)
BUSY = [("switch0", "switch1"), ("switch1", "switch2"), ("switch2", "switch3"), ("switch3", "host7")]
EXPERIMENT = {
    "topology": {"kind": "graph", "hosts": 9, "switches": 4, "link_delay": f"{DELAY} ps", "links": LINKS},
    "network": {"mtu": f"{MTU} B", "header": f"{HEADER} B", "wire_overhead": "0 B", "ack": "66 B", "window": "1 GiB"},
    "workload": {"kind": "program", "ranks": 9, "operations": [
        *({"rank": i, "send": f"{packets * MTU} B", "to": 4 + i} for i, packets in enumerate(BURSTS)),
        *({"rank": 4 + i, "recv": f"{packets * MTU} B", "from": i} for i, packets in enumerate(BURSTS)),
        {"rank": 8, "id": "later", "compute": f"{ISSUED} ps"},
        {"rank": 8, "send": f"{MTU} B", "to": 7, "after": "later"},
        {"rank": 7, "recv": f"{MTU} B", "from": 8, "stream": "communication"},
    ]},
}


class SlowLinks(ProgramTest):
    def test_waits_by_hand(self):
        path = self.write(EXPERIMENT)
        expected = sorted(zip(waits(), BUSY), reverse=True)
        self.assertEqual(len({wait for wait, _ in expected}), 4)
        variants = {"departures known on arrival": [], "queues": ["--set", "network.queues=output"],
                    "reference": ["--engine", "ns3-default"]}
        for name, words in variants.items():
            for ranks in [None] if name == "reference" else [None, 3]:
                with self.subTest(name, ranks=ranks):
                    _, results = self.simulate(path, *words, ranks=ranks)
                    links, messages = table(results, "links"), table(results, "messages")
                    ends = dict(zip(links["id"], zip(links["from_name"], links["to_name"])))
                    (row,) = [i for i, source in enumerate(messages["source"]) if source == 8]
                    self.assertEqual(messages["queueing"][row], sum(waits()))
                    self.assertEqual(messages["delivered"][row] - messages["issued"][row] - messages["ideal"][row],
                                     sum(waits()))
                    found = [(messages[f"slow_wait_{i}"][row], ends[messages[f"slow_link_{i}"][row]]) for i in (1, 2, 3)]
                    self.assertEqual(found, expected[:3])

    def test_nothing_waits(self):
        path = self.write({**EXPERIMENT, "workload": {"kind": "traffic", "pattern": "pairs", "pairs": [[8, 7]], "size": "1 B"}})
        _, results = self.simulate(path)
        messages = table(results, "messages")
        self.assertEqual([messages[f"slow_link_{i}"][0] for i in (1, 2, 3)], [-1] * 3)
        self.assertEqual([messages[f"slow_wait_{i}"][0] for i in (1, 2, 3)], [0] * 3)


if __name__ == "__main__":
    unittest.main()
