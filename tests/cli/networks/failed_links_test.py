#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Routing while links are down and after they have come back: by hand, and the same on any number of processes."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from every_machine import CASES, LINKS
from weft_testing import NETWORK, ProgramTest, table, two_at_a_time

# Eight leaves, one for the NICs of each number, so that rails meet only in spines.
RAILS = {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 4, "spines": 4, **LINKS}
SERVERS, GPUS, SIZE = 4, 8, 64_000
INSIDE = SERVERS * GPUS * (GPUS - 1)  # pairs of the same server
ACROSS = SERVERS * GPUS * (SERVERS - 1) * (GPUS - 1)  # pairs of other servers and other numbers


class FailedLinks(ProgramTest):
    def run_servers(self, failures, ranks=None, **server):
        """An all-to-all from 10 us on. Gives the bytes of messages by class of links."""
        _, results = self.simulate({
            "topology": {**RAILS, "server": {"design": "hgx_h100", "wiring": "rail", **server}},
            "network": {**NETWORK, "queues": "output", "failures": failures, "reconvergence": "1 us"},
            "workload": {"kind": "traffic", "pattern": "all_to_all", "size": f"{SIZE} B", "start": "10 us"},
        }, ranks=ranks)  # fmt: skip
        links = table(results, "links")
        self.assertEqual(links["lost"].sum() + links["dropped"].sum(), 0)
        return {name: int(links["payload_bytes"][links["link_class"] == name].sum()) for name in ("nvlink", "leaf-spine")}

    def test_servers_keep_their_nics(self):
        """With PXN a message changes its number over NVLink, in the server that sends it (NCCL, graph/paths.cc); without, it
        does in a spine. A link of the network that fails does not change that. Both ways of a message inside a server take
        two links, GPU to NVSwitch to GPU; over a spine they are two links, too."""
        down = [{"at": "1 us", "link": ["leaf0", "spine0"]}, {"at": "1 us", "link": ["leaf5", "spine2"]}]
        over = [{**failure, "until": "2 us"} for failure in down]
        for failures in (down, over):
            self.assertEqual(self.run_servers(failures, pxn=True),
                             {"nvlink": 2 * (INSIDE + ACROSS) * SIZE, "leaf-spine": 0})  # fmt: skip
            self.assertEqual(self.run_servers(failures, pxn=False),
                             {"nvlink": 2 * INSIDE * SIZE, "leaf-spine": 2 * ACROSS * SIZE})  # fmt: skip

    def test_a_nic_without_its_cable(self):
        """Messages of this GPU, 21 to and 21 from other numbers and 3 and 3 of its own, go over other NICs of its server, as
        before; those of others keep theirs: none of the others' 21 x 31 x 2 crosses a spine."""
        cut = [{"at": "1 us", "link": ["server0/nic0", "leaf0"]}]
        found = self.run_servers(cut, pxn=True)
        others = ACROSS - 2 * (SERVERS - 1) * (GPUS - 1)
        self.assertGreaterEqual(found["nvlink"], 2 * (INSIDE + others) * SIZE)
        self.assertLessEqual(found["leaf-spine"], 2 * 2 * (SERVERS - 1) * GPUS * SIZE)

    def test_a_nic_with_two_ports_keeps_to_the_one_that_works(self):
        """Of servers with two ports to each NIC, on two leaves: no message needs another NIC."""
        server = {"gpus": 2, "inside": "nvswitch", "nvlink_rate": "450 GB/s", "nvlink_delay": "200 ns", "nics": 2,
                  "ports_per_nic": 2, "pcie_rate": "64 GB/s", "pcie_delay": "200 ns", "wiring": "rail"}  # fmt: skip
        for ranks in (None, 2):
            _, results = self.simulate({
                "topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, **LINKS, "server": server},
                "network": {**NETWORK, "queues": "output", "reconvergence": "1 us",
                            "failures": [{"at": "1 us", "link": ["server0/nic0", "leaf0"]}]},
                "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "64 kB", "start": "10 us"},
            }, ranks=ranks)  # fmt: skip
            links = table(results, "links")
            self.assertEqual(links["lost"].sum() + links["dropped"].sum(), 0)

            def sent(start, end, links=links):
                chosen = (links["from_name"] == start) & (links["to_name"] == end)
                return int(links["payload_bytes"][chosen].sum())

            # GPU 0 sends to the 6 GPUs of three other servers.
            self.assertEqual((sent("server0/nic0", "leaf0"), sent("server0/nic0", "leaf1")), (0, 6 * 64_000))
            self.assertEqual((sent("leaf0", "server0/nic0"), sent("leaf1", "server0/nic0")), (0, 6 * 64_000))
            self.assertEqual(sent("server0/nic1", "leaf2") + sent("server0/nic1", "leaf3"), 6 * 64_000)

    def test_a_switch_that_is_missing_from_the_start(self):
        """With `reconvergence: 0 s` routing knows before the first packet: nothing is sent to spine0, and ECMP divides the
        flows among seven ports, as on a machine of seven spines."""
        def run(spines, **network):
            summary, results = self.simulate({
                "topology": {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 8, "spines": spines, **LINKS},
                "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "64 MiB"}, **network},
                "workload": {"kind": "traffic", "pattern": "permutation", "shift": 8, "size": "256 KiB"}})  # fmt: skip
            links = table(results, "links")
            at_spine0 = (links["from_name"] == "spine0") | (links["to_name"] == "spine0")
            return (summary["simulated_time_ps"], links["packets"][at_spine0].sum(),
                    links["lost"].sum() + table(results, "queue_pairs")["timeouts"].sum())  # fmt: skip

        missing = run(8, failures=[{"at": "0 s", "switch": "spine0"}], reconvergence="0 s")
        self.assertEqual(missing, (run(7)[0], 0, 0))

    def test_a_failure_that_is_over_changes_nothing(self):
        """Messages that are sent after all links work again take the ways of the experiment's own routing."""
        def check(number, topology, routing):
            def run(failures, name):
                _, results = self.simulate(self.write({
                    "topology": topology,
                    "network": {**NETWORK, "queues": "output", **({"routing": routing} if routing else {}), **failures},
                    "workload": {"kind": "traffic", "pattern": "permutation", "shift": 3, "size": "40 kB",
                                 "start": "20 us"},
                }, name=f"{name}{number}.yaml"), output=f"{name}{number}.h5")  # fmt: skip
                return table(results, "messages")["delivered"].tolist()

            failures = [{"at": "1 us", "until": "2 us", "link": "all"}]
            self.assertEqual(run({"failures": failures, "reconvergence": "1 us"}, "over"), run({}, "whole"),
                             f"{topology['kind']}, {routing}")  # fmt: skip

        two_at_a_time([lambda i=i, case=case: check(i, *case) for i, case in enumerate(CASES)])

    def test_links_that_come_and_go(self):
        """Packets that are on their way when routing changes arrive, in whichever virtual lane they are; and on two processes at
        the same times."""
        failures = [{"at": f"{at} us", "until": f"{at + 1} us", "switch": f"switch{at % 4}"} for at in range(1, 40, 2)]

        def check(number, topology, routing):
            def run(ranks):
                summary, results = self.simulate(self.write({
                    "topology": topology,
                    "network": {**NETWORK, "queues": "output", "routing": routing, "failures": failures,
                                "reconvergence": "500 ns", "recovery": "selective_repeat"},
                    "workload": {"kind": "traffic", "pattern": "all_to_all", "size": "40 kB"},
                }, name=f"{ranks}flaps{number}.yaml"), output=f"{ranks}flaps{number}.h5", ranks=ranks)  # fmt: skip
                self.assertTrue(summary["complete"])
                return summary["fingerprint"]

            self.assertEqual(run(None), run(2), f"{topology['kind']}, {routing}")

        lanes = [(topology, routing) for topology, routing in CASES if routing and topology["kind"] != "rails"]
        two_at_a_time([lambda i=i, case=case: check(i, *case) for i, case in enumerate(lanes)])


if __name__ == "__main__":
    unittest.main()
