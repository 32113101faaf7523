#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results with buffers, flow control, congestion control, spraying, loss and failures do not depend on the number of
MPI ranks, on the partition, or on the engine; and each mechanism has really been at work."""
# Time limit: 900 s

import functools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import FAT_TREE, NETWORK, ProgramTest, registered, table, two_at_a_time

IGNORE = ["/manifest/effective_experiment"]
TABLES = ["messages", "links", "link_classes", "queue_pairs", "receivers", "ranks", "links_series", "queue_depths", "rates_series"]

# Ten hosts of all pods send to one: more than any buffer here takes.
INCAST = {"kind": "traffic", "pattern": "pairs", "size": "150 kB",
          "pairs": [[source, 0] for source in range(4, 14)] + [[1, 14], [14, 2]]}
SHUFFLE = {"kind": "traffic", "pattern": "permutation", "size": "200 kB"}
ALL_REDUCE = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 16, "size": "400 kB",
              "iterations": 1}
LOSSLESS = {"flow_control": "pfc", "buffer": {"size": "700 kB"}}

# Name: (network, workload, what of the summary's congestion must not be 0).
CASES = {
    "queues": ({"queues": "output"}, INCAST, []),
    "pfc": (LOSSLESS, INCAST, ["pause_frames"]),
    "credits": ({"flow_control": "credit"}, INCAST, []),
    "drops": ({"buffer": {"size": "100 kB", "alpha": 1}}, INCAST, ["packets_dropped", "packets_repeated"]),
    "selective_repeat": ({"buffer": {"size": "100 kB", "alpha": 1}, "recovery": "selective_repeat"}, INCAST,
                         ["packets_dropped", "packets_repeated"]),
    "trimming": ({"buffer": {"queue": "40 kB"}, "trimming": True, "recovery": "selective_repeat"}, INCAST,
                 ["packets_trimmed", "packets_repeated"]),
    "cut_through": ({"switching": "cut_through", "switch_latency": "300 ns"}, SHUFFLE, []),
    "red": ({"ecn": {"kmin": "20 kB", "kmax": "80 kB", "pmax": 0.3}, "ack_interval": 4}, INCAST, ["packets_marked"]),
    "dcqcn": ({**LOSSLESS, "congestion_control": "dcqcn", "ecn": {"kmin": "30 kB", "kmax": "120 kB", "pmax": 0.2}},
              INCAST, ["packets_marked", "congestion_notifications"]),
    "dctcp": ({"congestion_control": "dctcp", "buffer": {"size": "2 MB"}, "ecn": {"kmin": "60 kB", "kmax": "60 kB"}},
              INCAST, ["packets_marked"]),
    "timely": ({**LOSSLESS, "congestion_control": "timely"}, INCAST, []),
    "hpcc": ({**LOSSLESS, "congestion_control": "hpcc"}, INCAST, []),
    # Rates that a process knows of come from its own links and from packets of others.
    "hpcc_rates": ({"congestion_control": "hpcc", "load_balancing": "spray",
                    "failures": [{"at": "2 us", "until": "9 us", "link": "all", "rate": "100 Gb/s"},
                                 {"at": "4 us", "until": "20 us", "class": "host", "rate": "50 Gb/s"}]}, SHUFFLE,
                   ["packets_out_of_order"]),
    "swift": ({"congestion_control": "swift"}, INCAST, []),
    "nscc": ({"congestion_control": "nscc", "load_balancing": "spray"}, INCAST, []),
    "ndp": ({"congestion_control": "ndp", "load_balancing": "spray", "buffer": {"queue": "40 kB"}, "trimming": True,
             "recovery": "selective_repeat"}, INCAST, ["packets_trimmed"]),
    "codel": ({"congestion_control": "dctcp", "ecn": {"algorithm": "codel"}}, INCAST, ["packets_marked"]),
    "alpha_rate": ({"flow_control": "pfc", "buffer": {"size": "700 kB", "alpha_rate": "100 Gb/s"}}, INCAST, ["pause_frames"]),
    "static_threshold": ({"buffer": {"size": "1 MB", "threshold": "60 kB"}}, INCAST, ["packets_dropped"]),
    "round_robin": ({"queues": "output", "priorities": {"scheduling": "weighted_round_robin", "data_weight": 3}}, INCAST, []),
    "spray": ({"load_balancing": "spray"}, SHUFFLE, ["packets_out_of_order"]),
    "adaptive": ({"load_balancing": "adaptive", **LOSSLESS}, SHUFFLE, ["packets_out_of_order"]),
    "flowlet": ({"load_balancing": "flowlet", "flowlet": {"gap": "2 us"}}, SHUFFLE, []),
    "reps": ({"load_balancing": "reps", "ecn": {"kmin": "30 kB", "kmax": "30 kB"}}, SHUFFLE, ["packets_marked"]),
    "freezing": ({"load_balancing": "reps", "reps": {"buffer": 4, "freezing": "20 us"}, "ecn": {"kmin": "30 kB", "kmax": "30 kB"},
                  "loss": [{"link": "all", "probability": 0.003}], "selective_repeat": {"timeout": "40 us", "reordering": 32}},
                 SHUFFLE, ["packets_lost", "packets_repeated"]),
    "loss": ({"loss": [{"link": "all", "probability": 0.003}, {"class": "host", "bit_error_rate": 1e-8}]}, SHUFFLE,
             ["packets_lost", "packets_repeated"]),
    "go_back_0": ({"loss": [{"link": "all", "probability": 0.001}], "recovery": "go_back_0"}, SHUFFLE,
                  ["packets_lost", "packets_repeated"]),
    "failures": ({"failures": [{"at": "3 us", "link": ["switch0", "switch8"]},
                               {"at": "4 us", "until": "60 us", "switch": "switch12"},
                               {"at": "2 us", "until": "30 us", "link": "all", "rate": "100 Gb/s"}],
                  "reconvergence": "20 us"}, SHUFFLE, ["packets_lost", "packets_repeated"]),
    "resilient": ({"failures": [{"at": "3 us", "link": ["switch0", "switch8"]}, {"at": "4 us", "until": "60 us", "switch": "switch12"}],
                   "reconvergence": "20 us", "resilient_hashing": True}, SHUFFLE, ["packets_lost", "packets_repeated"]),
    "repaired": ({"failures": [{"at": "3 us", "link": ["switch0", "switch8"]}, {"at": "4 us", "until": "60 us", "switch": "switch12"}],
                  "reconvergence": "40 us", "local_repair": "100 ns"}, SHUFFLE, ["packets_lost", "packets_repeated"]),
    "split": ({**LOSSLESS, "connections": {"queue_pairs": 4, "data": "split"}, "congestion_control": "dcqcn"}, INCAST,
              ["pause_frames"]),
    "in_turn": ({"connections": {"queue_pairs": 3}, "loss": [{"link": "all", "probability": 0.002}]}, ALL_REDUCE,
                ["packets_lost", "packets_repeated"]),
    "link_classes": ({**LOSSLESS, "link_classes": {"host": {"flow_control": "credit"}}}, INCAST, ["pause_frames"]),
    "weighted": ({"priorities": {"scheduling": "deficit_round_robin", "data_weight": 3}, **LOSSLESS}, INCAST,
                 ["pause_frames"]),
}
# Where it is not that of all others.
TOPOLOGIES = {"alpha_rate": {**FAT_TREE, "host_link_rate": "100 Gb/s"}}


class CongestionIdentity(ProgramTest):
    def experiment(self, network, workload, topology=FAT_TREE):
        return {"topology": topology, "network": {**NETWORK, **network}, "workload": workload,
                "simulation": {"seed": 7}, "output": {"sampling": "3 us", "queue_depths": network != {},
                           **({"rates": {"interval": "2 us", "ranks": [5, 1, 13, 9, 14]}} if network else {})}}

    def check(self, first, name):
        network, workload, at_work = CASES[name]
        path = self.write(self.experiment(network, workload, TOPOLOGIES.get(name, FAT_TREE)), f"{name}.yaml")
        partitions = ["metis", "pods", "random"]
        variants = [(2, partitions[first % 3]), (3, partitions[(first + 1) % 3]),
                    (4 if first % 2 else 8, partitions[(first + 2) % 3])]
        one, reference, *others = two_at_a_time(
            [functools.partial(self.simulate, path, output=f"{name}.one.h5"),
             functools.partial(self.simulate, path, "--engine", "ns3-default", output=f"{name}.reference.h5")]
            + [functools.partial(self.simulate, path, "--set", f"simulation.partition={partition}",
                                 output=f"{name}.{ranks}.h5", ranks=ranks) for ranks, partition in variants])
        self.assertTrue(one[0]["complete"])
        counts = {**one[0]["congestion"], "packets_dropped": one[0]["packets_dropped"]}
        for count in at_work:
            self.assertGreater(counts[count], 0, count)
        for other in TABLES:
            self.assertGreater(len(next(iter(table(one[1], other).values()))), 0, f"{other} is empty")
        for found, context in zip([reference, *others], ["ns3-default", *variants]):
            self.assertEqual(one[0]["fingerprint"], found[0]["fingerprint"], context)
            self.assertEqual(one[0]["congestion"], found[0]["congestion"], context)
            self.assertEqual(one[0]["simulated_time_ps"], found[0]["simulated_time_ps"], context)
            self.assert_same_results(one[1], found[1], IGNORE, str(context))

    def test_queues_without_limits_change_nothing(self):
        """One queue per port, no limit: the same packets at the same times as where departures are known on arrival."""
        fifo = {"queues": "output", "priorities": {"scheduling": "fifo"}}
        for workload in [INCAST, SHUFFLE]:
            committed = self.simulate(self.write(self.experiment({}, workload), "a.yaml"), output="a.h5")
            queued = self.simulate(self.write(self.experiment(fifo, workload), "b.yaml"), output="b.h5")
            self.assertEqual(committed[0]["fingerprint"], queued[0]["fingerprint"])
            for name in ["messages", "links", "ranks"]:
                for column, values in table(committed[1], name).items():
                    self.assertEqual(list(values), list(table(queued[1], name)[column]), f"{name}/{column}")

    def test_no_discipline_is_left_out(self):
        """All entries of each registry; those without a case are the defaults."""
        networks = [network for network, _, _ in CASES.values()]

        def tried(key, usual):
            return {network.get(key, usual) for network in networks}

        self.assertEqual(tried("congestion_control", "none"), registered("congestion-controls"))
        self.assertEqual(tried("load_balancing", "ecmp"), registered("load-balancing"))
        self.assertEqual({network.get("ecn", {}).get("algorithm", "red") for network in networks}, registered("marking"))
        self.assertEqual({network.get("priorities", {}).get("scheduling", "strict") for network in networks},
                         registered("scheduling"))
        self.assertEqual({"static_threshold" if "threshold" in network.get("buffer", {}) else "dynamic_threshold"
                          for network in networks}, registered("buffer-sharing"))

    def test_alpha_by_rate_pauses_other_links(self):
        """Ports of switches may hold four times as much as those of hosts, so that other links are stopped."""
        network, workload, _ = CASES["alpha_rate"]
        plain = {**network, "buffer": {"size": network["buffer"]["size"]}}
        found = [self.simulate(self.write(self.experiment(one, workload, TOPOLOGIES["alpha_rate"]), f"{name}.yaml"),
                               output=f"{name}.h5")[0] for name, one in (("by_rate", network), ("plain", plain))]
        self.assertLess(found[0]["congestion"]["pause_frames"], found[1]["congestion"]["pause_frames"])

    def test_local_repair_saves_packets(self):
        """The case compares nothing if switches have no other port in time: with it fewer packets are lost than without."""
        network, workload, _ = CASES["repaired"]
        unrepaired = {key: value for key, value in network.items() if key != "local_repair"}
        lost = [self.simulate(self.write(self.experiment(keys, workload), "repaired.yaml"))[0]["congestion"]["packets_lost"]
                for keys in (network, unrepaired)]  # fmt: skip
        self.assertLess(lost[0], lost[1])

    def test_packets_are_conserved(self):
        """For each link: a sent packet has arrived or was lost, and all packets missed by destinations were sent again."""
        for name in ["drops", "loss", "failures"]:
            network, workload, _ = CASES[name]
            summary, results = self.simulate(self.write(self.experiment(network, workload), f"{name}.yaml"))
            classes = table(results, "link_classes")
            links = table(results, "links")
            self.assertEqual(classes["packets"].sum(), links["packets"].sum())
            self.assertEqual(links["lost"].sum(), summary["congestion"]["packets_lost"])
            self.assertEqual(links["dropped"].sum(), summary["packets_dropped"])
            senders, receivers = table(results, "queue_pairs"), table(results, "receivers")
            self.assertEqual(senders["packets"].sum(), receivers["packets"].sum())
            from_hosts = [name.startswith("host") for name in links["from_name"].astype(str)]
            self.assertEqual(links["data_packets"][from_hosts].sum(),
                             senders["packets"].sum() + senders["repeated"].sum())


def make_test(first, name):
    return lambda self: self.check(first, name)


for number, case in enumerate(CASES):
    setattr(CongestionIdentity, f"test_{case}", make_test(number, case))

if __name__ == "__main__":
    unittest.main()
