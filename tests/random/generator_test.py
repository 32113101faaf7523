#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The generator of random experiments: the same seed gives the same one, most are accepted, and each name that the
program knows, and each key of its maps, is drawn."""
# Time limit: 900 s

import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import experiments  # noqa: E402
import machines  # noqa: E402
import names  # noqa: E402
import networks  # noqa: E402
import workloads  # noqa: E402
from draw import Draw  # noqa: E402
from maps import MAPS, STAR  # noqa: E402

SEEDS = 8000
# Keys of maps.py that are left out on purpose: other tests have them, or they are other ways to say the same.
# Held by tests of their own, on several processes: cli/traces/transform, cli/networks/loggp,
# parallel/collectives_identity (by_dimension), cli/workloads/collective_transport and cli/networks/nccl_channels.
DIMENSIONS = {"dimension_algorithms", "each_dimension_whole", "splits"}
OF_NCCL = {"nccl_version", "collective_transport", "kernel_constants"}
NOT_DRAWN = {
    "network": {"ns3_attributes", "go_back_0", "loggp"},
    "network.buffer": {"sharing"},  # `threshold` chooses the other one
    "network.ecn": {"algorithm"},  # conformance/queue_disciplines tests all of them
    "workload:collective": {"transform", *DIMENSIONS, *OF_NCCL},
    "workload:traffic": {"transform"},
    "workload:checkpoint": {"transform"},
    "output": {"file"},
    "workload:training": {"operators", "rates", "transform", *DIMENSIONS, *OF_NCCL},
    "topology.server": {"nccl_topology", "nccl_graphs", "rings", "collective_transport", "collective_tuner", "gpudirect",
                        "host_read", "nics_behind_cpu", "cpu"},
    "topology:file": {"format", "server"},
    "topology:server": {"server"},
    "workload:program": {"file", "device", "operators", "ranks_per_server", "ranks_per_leaf",
                         "protocol", "algorithm", "kernel_device", "latencies", "dimensions", "launch_latency",
                         "step_latency", "reduce_rate", "copy_rate", "collective_kernel", "transform", *DIMENSIONS,
                         *OF_NCCL},
    "workload:jobs": {"placement", "transform"},
}


def every_map(value, path=()):
    """(path, map) of all maps within a value; numbers of lists are 0."""
    if isinstance(value, dict):
        yield ".".join(path), value
        for key, child in value.items():
            yield from every_map(child, (*path, str(key)))
    if isinstance(value, list):
        for child in value:
            yield from every_map(child, (*path, "0"))


class Generated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Many experiments without asking the program about each: any machine has eight hosts, any routing suits."""
        facts = machines.Facts(8, 0, 3, ["host", "switch"], 0, 2)
        original, experiments.routing_suits = experiments.routing_suits, lambda *_: True
        machine_file, machines.MAKERS["file"] = machines.MAKERS["file"], lambda d, files: {"path": "m.yaml"}
        try:
            generator = experiments.Generator(lambda topology, files: facts, lambda experiment: ("", 0))
            cls.experiments = [generator.experiment(seed) for seed in range(SEEDS)]
        finally:
            experiments.routing_suits, machines.MAKERS["file"] = original, machine_file
        # Collected once: every test below uses all of these maps.
        cls.maps = [found for made in cls.experiments if not made.absurd for found in every_map(made.parts)]

    def drawn(self, key):
        """All values of a key of this name, at any place."""
        found = set()
        for _, inner in self.maps:
            value = inner.get(key)
            found.update([value] if isinstance(value, str) else [])
        return found

    def test_registered_names_are_drawn(self):
        kinds = self.drawn("kind")
        for what, drawn in [
            ("topology", kinds), ("workload", kinds), ("background", kinds), ("routing", self.drawn("routing")),
            ("congestion_control", self.drawn("congestion_control")),
            ("algorithm", self.drawn("algorithm") | self.drawn("exchange_algorithm")),
            ("background_job", self.drawn("process") | {"training"} & kinds),
            ("extension", {key for path, inner in self.maps if path == "topology" for key in inner}),
        ]:
            with self.subTest(what):
                self.assertEqual(set(names.REGISTRIES[what]()) - drawn, set(), "registered, but never drawn")

    def test_words_are_drawn(self):
        for place in names.WORDS:
            with self.subTest(place):
                drawn = self.drawn(place.split(".")[-1])
                self.assertEqual(set(names.words(place)) - drawn, set(), "known to the program, but never drawn")

    def test_keys_are_drawn(self):
        for place, parts in MAPS.items():
            with self.subTest(place):
                part, _, kind = place.partition(":")
                known = set(names.keys(part, parts))
                drawn = {key for path, inner in self.maps if path == part and (not kind or inner.get("kind") == kind)
                         for key in inner}
                self.assertEqual(known - drawn - NOT_DRAWN.get(place, set()), set(),
                                 "read by the program, but never drawn: teach the generator, or name it in NOT_DRAWN")

    def test_same_seed_same_experiment(self):
        generator = experiments.Generator(describe=lambda experiment: ("", 0))
        for seed in range(5):
            first, second = (generator.experiment(seed) for _ in range(2))
            self.assertEqual((first.parts, first.files), (second.parts, second.files))

    def test_some_values_make_no_sense(self):
        share = sum(made.absurd > 0 for made in self.experiments) / SEEDS
        self.assertGreater(share, 0.1)
        self.assertLess(share, 0.4)


class Timers(unittest.TestCase):
    def test_they_are_longer_than_round_trips(self):
        slow = {"kind": "star", "hosts": 2, "link_rate": "1 Mb/s", "link_delay": "500 ns"}
        network = {"loss": [], "go_back_n": {"timeout_low": "20 us", "timeout": "1 ms"}}
        networks.settle_timers(network, slow)
        self.assertEqual(list(network["go_back_n"]), ["timeout"])
        self.assertGreater(float(network["go_back_n"]["timeout"].split()[0]), 262_144 * 8e6)
        beside_tcp = {}
        networks.settle_timers(beside_tcp, slow, background=True)
        self.assertEqual(list(beside_tcp), ["go_back_n"])
        fast = {"loss": [], "go_back_n": {"timeout": "1 ms"}}
        networks.settle_timers(fast, STAR)
        self.assertEqual(fast, {"loss": [], "go_back_n": {"timeout": "1 ms"}})
        self.assertEqual(sorted(networks.quantities({"a": ["3 us", {"b": "2 ns"}], "c": "5 B"}, {"us": 1000, "ns": 1})),
                         [2, 3000])


class Endless(unittest.TestCase):
    def test_no_endless_transfer_is_more_urgent_than_others(self):
        for transfers, network in [([{"priority": 3}, {"size": "1 B"}], {}), ([{}, {}], {"priorities": {"data": 4}})]:
            networks.settle_background(transfers, network)
            self.assertTrue(all("size" in transfer for transfer in transfers))
        alone = [{}]
        networks.settle_background(alone, {})
        self.assertEqual(alone, [{}])


    def test_a_job_that_asks_for_more_than_a_link_carries_is_told_from_one_that_does_not(self):
        slow = {"kind": "star", "hosts": 9, "link_rate": "1 Gb/s", "link_delay": "500 ns"}

        def jobs(interval, background=True, **more):
            start = {"process": "periodic", "interval": interval, **more}
            return {"jobs": [{"workload": {"kind": "program"}},
                             {"workload": {"pattern": "all_to_all", "size": "1 B", "ranks": 9, "start": start},
                              "background": background}]}

        # Eight messages of 1 B with 200 B of headers in 5 us are 2.6 Gb/s, in 500 us a hundredth of that.
        self.assertTrue(experiments.overloads(jobs("5 us"), slow))
        self.assertFalse(experiments.overloads(jobs("500 us"), slow))
        self.assertFalse(experiments.overloads(jobs("5 us", count=3), slow))
        self.assertFalse(experiments.overloads(jobs("5 us", background=False), slow))
        self.assertFalse(experiments.overloads(jobs("5 us"), {**slow, "link_rate": "100 Gb/s"}))
        self.assertFalse(experiments.overloads({"kind": "program"}, slow))


class Accepted(unittest.TestCase):
    """The drawn experiments are sensible: the program accepts most of them."""

    def test_each_machine_can_be_had(self):
        for kind in names.topologies():
            with self.subTest(kind):
                for number in range(30):
                    files = {}
                    topology = machines.machine(Draw(f"{kind}/{number}"), files, kind)
                    if machines.facts_of(topology, files):
                        break
                else:
                    self.fail("none of 30 machines of this family was accepted")

    def test_each_workload_can_be_had(self):
        facts = machines.Facts(8)
        for kind in names.workloads():
            with self.subTest(kind):
                messages = []
                for number in range(30):
                    files = {}
                    work = workloads.MAKERS[kind](Draw(f"{kind}/{number}"), files, facts)
                    made = experiments.Experiment(0, {"topology": STAR, "workload": work}, files)
                    messages.append(experiments.describe_with_program(made)[0])
                    if not messages[-1]:
                        break
                else:
                    self.fail("\n".join(messages))

    def test_each_congestion_control_has_parameters(self):
        for name in set(names.congestion_controls()) - {"none"}:
            self.assertGreater(len(names.parameters(name)), 1, name)

    def test_most_experiments_are_accepted(self):
        generator = experiments.Generator()
        refused = [made.refused for made in map(generator.experiment, range(40)) if made.refused and not made.absurd]
        self.assertLess(len(refused), 10, "\n".join(refused))


class Names(unittest.TestCase):
    def test_new_machine_by_its_summary(self):
        """A family that the generator does not know: its keys are those of its summary."""
        made = machines.by_summary(Draw(1), "rings: {dims: [4, 4], link_rate, link_delay, [parallel, host_link_rate]}")
        self.assertEqual(set(made), {"dims", "link_rate", "link_delay", "parallel", "host_link_rate"})
        self.assertRegex(made["link_rate"], "b/s|B/s")

    def test_words_of_a_key(self):
        self.assertIn("go_back_n", names.words("network.recovery"))
        self.assertEqual(names.kind_of("network.ack_interval", {}), ("count", 1, 1024))
        self.assertEqual(names.kind_of("network.window", {}), ("size",))
        with self.assertRaises(names.UnknownValue):
            names.keys("workload", {"workload": {"kind": "no_such_kind"}})

    def test_texts_are_yaml(self):
        text = experiments.text_of({"topology": {"kind": "star"}, "output": {}})
        self.assertEqual(json.loads(text), {"topology": {"kind": "star"}, "output": {}})
        self.assertEqual(len(re.findall("\n", text)), 4)


if __name__ == "__main__":
    unittest.main()
