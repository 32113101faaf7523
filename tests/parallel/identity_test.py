#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Results do not depend on the number of MPI ranks, on the partition, or on the engine: all data sets, bit by bit.

WEFT_TEST_SEED=N in the environment has the random experiments drawn from other seeds.
"""
# Time limit: 900 s

import functools
import os
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import FAT_TREE, NETWORK, SOURCE, ProgramTest, table, two_at_a_time

WORKLOADS = SOURCE / "workloads"
PARTITIONS = ["metis", "pods", "random"]
# Numbers of MPI ranks. Eight take long on a small machine, so that only some tests have them.
FEW, MANY = (2, 3, 4), (2, 3, 4, 8)

# Of the experiment as it was run, only the partition may differ.
IGNORE = ["/manifest/effective_experiment"]

# Small enough for many runs, with several buckets of gradients all the same.
MODEL = """{"model_type": "gpt2", "vocab_size": 2000, "n_positions": 128, "n_embd": 256, "n_layer": 2, "n_head": 4}"""

PROGRAM = {
    "kind": "program",
    "ranks": 6,
    "communicators": {"odd": [5, 1, 3]},
    "operations": [
        {"rank": "all", "id": "start", "compute": "3 us"},
        {"rank": 0, "send": "100 kB", "to": 5, "tag": 1, "after": "start"},
        {"rank": 0, "send": "1 B", "to": 5, "tag": 1, "after": "start"},
        {"rank": 0, "send": "20 kB", "to": 5, "tag": 2, "queue_pair": 1},
        {"rank": 5, "id": "late", "recv": "20 kB", "from": 0, "tag": 2},
        {"rank": 5, "recv": "100 kB", "from": 0, "tag": 1, "after": "late"},
        {"rank": 5, "id": "got", "recv": "1 B", "from": 0, "tag": 1, "after": "late"},
        {"rank": [1, 2, 3], "id": "to 4", "send": "64 kB", "to": 4, "stream": "communication"},
        {"rank": 4, "recv": "64 kB", "from": 1, "stream": "communication"},
        {"rank": 4, "recv": "64 kB", "from": 3, "stream": "communication"},
        {"rank": 4, "recv": "64 kB", "from": 2, "stream": "communication"},
        {"id": "sum", "collective": "all_reduce", "size": "300 kB", "communicator": "odd"},
        {"collective": "all_gather", "size": "6001 B", "after": "start"},
        {"rank": 2, "compute": "1 us", "not_before": "40 us"},
    ],
}

GRAPH = {
    "kind": "graph",
    "hosts": 7,
    "switches": 4,
    "links": [
        {"from": "host0", "to": "switch0", "rate": "400 Gb/s", "delay": "500 ns"},
        {"from": "host1", "to": "switch0", "rate": "100 Gb/s", "delay": "77 ns"},
        {"from": "host2", "to": "switch1", "rate": "25 Gb/s", "delay": "1 us"},
        {"from": "host3", "to": "switch1", "rate": "200 Gb/s", "delay": "123456 ps"},
        {"from": "host4", "to": "switch2", "rate": "40 Gb/s", "delay": "500 ns"},
        {"from": "host5", "to": "switch3", "rate": "400 Gb/s", "delay": "500 ns"},
        {"from": "host6", "to": "switch3", "rate": "33333333333 b/s", "delay": "60 ns"},
        {"from": "switch0", "to": "switch1", "rate": "100 Gb/s", "delay": "500 ns"},
        {"from": "switch0", "to": "switch2", "rate": "200 Gb/s", "delay": "2 us"},
        {"from": "switch1", "to": "switch3", "rate": "200 Gb/s", "delay": "300 ns"},
        {"from": "switch2", "to": "switch3", "rate": "100 Gb/s", "delay": "300 ns"},
        {"from": "switch2", "to": "switch3", "rate": "100 Gb/s", "delay": "300 ns"},
        {"from": "switch0", "to": "switch3", "rate": "7 Gb/s", "delay": "9 us"},
    ],
}

OBSERVED = {"sampling": "3 us", "operations": True}


def traffic(**parameters):
    return {
        "topology": FAT_TREE,
        "network": NETWORK,
        "workload": {"kind": "traffic", **parameters},
        "simulation": {"seed": 11},
        "output": OBSERVED,
    }


def settings(*pairs):
    words = []
    for pair in [*pairs, "output.sampling=3 us", "output.operations=true"]:
        words += ["--set", pair]
    return words


class IdentityTest(ProgramTest):
    def assert_identical(self, expected, found, context):
        """`expected` and `found` are (summary, results file) of two runs."""
        for key in ["fingerprint", "simulated_time_ps", "packet_hops", "messages", "bytes_delivered", "collectives",
                    "complete", "packets_dropped"]:
            self.assertEqual(expected[0][key], found[0][key], f"{context}: {key}")
        self.assert_same_results(expected[1], found[1], IGNORE, context)

    def check(self, path, words, variants):
        """One run on one rank, and the same on every (ranks, partition) of `variants` and under ns-3's own engine."""
        one, reference, *others = two_at_a_time(
            [functools.partial(self.simulate, path, *words, output="one.h5"),
             functools.partial(self.simulate, path, *words, "--engine", "ns3-default", output="reference.h5")]
            + [functools.partial(self.simulate, path, *words, "--set", f"simulation.partition={partition}",
                                 output=f"{ranks}.{partition}.h5", ranks=ranks) for ranks, partition in variants])
        self.assertTrue(one[0]["complete"])
        self.assertGreater(one[0]["messages"], 0)
        for name in ["messages", "links", "ranks", "links_series", "operations"]:
            self.assertGreater(len(next(iter(table(one[1], name).values()))), 0, f"{name} is empty")
        self.assert_identical(one, reference, "ns3-default")
        for (ranks, partition), many in zip(variants, others):
            with self.subTest(ranks=ranks, partition=partition):
                self.assertEqual(many[0]["mpi_ranks"], ranks)
                self.assert_identical(one, many, f"{ranks} ranks, partition {partition}")

    @staticmethod
    def some(first, counts=FEW):
        """Every number of ranks, with one partition each; `first` chooses which, so that tests differ."""
        return [(ranks, PARTITIONS[(first + i) % len(PARTITIONS)]) for i, ranks in enumerate(counts)]

    @staticmethod
    def all():
        return [(ranks, partition) for ranks in FEW for partition in PARTITIONS] + [(8, "metis"), (8, "pods")]


class Experiments(IdentityTest):
    def test_training(self):
        model = self.write(MODEL, "model.json")
        self.check(WORKLOADS / "quickstart.yaml",
                   settings(f"workload.model={model}", "workload.bucket_size=1 MiB", "workload.sequence_length=128"),
                   self.some(0, MANY))

    def test_quickstart(self):
        """As shipped, once."""
        one, four = two_at_a_time([functools.partial(self.simulate, WORKLOADS / "quickstart.yaml", output=f"{ranks}.h5",
                                                     ranks=ranks) for ranks in (None, 4)])
        self.assertEqual(one[0]["fingerprint"], four[0]["fingerprint"])
        self.assert_same_results(one[1], four[1])

    def test_ring_all_reduce(self):
        self.check(WORKLOADS / "ring_all_reduce.yaml", settings("workload.size=1 MiB", "workload.iterations=2"), self.some(1))

    def test_permutation(self):
        for first, queue_pairs in enumerate([1, 4]):
            with self.subTest(queue_pairs=queue_pairs):
                self.check(WORKLOADS / "permutation.yaml",
                           settings("topology.k=4", "workload.size=100 kB", f"workload.queue_pairs={queue_pairs}"),
                           self.some(first))

    def test_incast_of_ties(self):
        """All sources start at 0 with equal sizes; those of one pod are at equal distances: every arrival is a tie."""
        self.check(WORKLOADS / "incast.yaml", settings("workload.size=20 kB"), self.all())

    def test_all_to_all_of_ties(self):
        self.check(self.write(traffic(pattern="all_to_all", size="8 KiB")), [], self.all())

    def test_program(self):
        experiment = traffic()
        experiment["workload"] = PROGRAM
        self.check(self.write(experiment), [], self.some(2))

    def test_program_with_noise(self):
        """Jitter, a slow rank, stragglers by time, and compute that is slower beside collectives."""
        experiment = traffic()
        noise = {
            "jitter": "10 %",
            "spread": "5 %",
            "slow_ranks": [{"ranks": [4], "factor": 1.5}],
            "stragglers": {"probability": 0.5, "factor": 3, "interval": "7 us"},
        }
        operations = [{"rank": "all", "id": f"beside {i}", "compute": f"{5 + i} us"} for i in range(8)]
        experiment["workload"] = {
            **PROGRAM,
            "compute_noise": noise,
            "compute_slowdown_while_communicating": 1.3,
            "operations": PROGRAM["operations"] + operations,
        }
        self.check(self.write(experiment), [], self.some(0, MANY))

    def test_trace_file(self):
        self.check(WORKLOADS / "ddp_step.yaml", settings(), self.some(0)[:2])

    def test_poisson(self):
        experiment = traffic(pattern="permutation", size="9 kB", start={"process": "poisson", "load": 0.7, "count": 20})
        self.check(self.write(experiment), [], self.some(1))

    def test_drawn_sizes_and_random_incasts(self):
        start = {"process": "poisson", "load": 0.5, "stop": "200 us"}
        flows = {"kind": "traffic", "pattern": "uniform", "sizes": "storage", "reuse_queue_pairs": False, "start": start}
        bursts = {"kind": "traffic", "pattern": "incast", "destination": "random", "sources": 5, "size": "20 kB", "start": start}
        experiment = traffic()
        experiment["workload"] = {"kind": "jobs", "jobs": [
            {"share": True, "placement": {"first": 0}, "workload": workload} for workload in (flows, bursts)]}
        self.check(self.write(experiment), [], self.some(0))

    def test_graph(self):
        experiment = traffic(pattern="all_to_all", size="15 kB", queue_pairs=3)
        experiment["topology"] = GRAPH
        self.check(self.write(experiment), [], self.some(2, MANY))

    def test_without_acks_and_with_switch_latency(self):
        experiment = traffic(pattern="all_to_all", size="8 KiB")
        experiment["network"] = {**NETWORK, "ack": "none", "switch_latency": "250 ns", "mtu": "1000 B"}
        self.check(self.write(experiment), [], self.some(0))

    def test_differences_are_found(self):
        """The comparison can fail: another seed is another permutation."""
        path = self.write(traffic(pattern="permutation", size="9 kB"))
        one = self.simulate(path, output="one.h5")
        other = self.simulate(path, "--seed", "12", output="other.h5")
        self.assertNotEqual(one[0]["fingerprint"], other[0]["fingerprint"])
        with self.assertRaisesRegex(AssertionError, "/jobs/end: row "):
            self.assert_same_results(one[1], other[1], IGNORE)


def random_experiment(draw):
    """A connected machine of a few nodes and some traffic on it, all of it odd."""
    hosts, switches = draw.randint(2, 8), draw.randint(1, 6)
    rates = ["400 Gb/s", "100 Gb/s", "25 Gb/s", "10 Gb/s", "12345678901 b/s"]
    delays = ["500 ns", "500 ns", "1 us", "100 ns", "123457 ps", "5 us", "20 ns"]

    def link(a, b):
        return {"from": a, "to": b, "rate": draw.choice(rates), "delay": draw.choice(delays)}

    links = [link(f"switch{i}", f"switch{draw.randrange(i)}") for i in range(1, switches)]
    links += [link(f"host{i}", f"switch{draw.randrange(switches)}") for i in range(hosts)]
    for _ in range(draw.randint(0, 6) if switches > 1 else 0):
        links.append(link(*(f"switch{i}" for i in draw.sample(range(switches), 2))))
    draw.shuffle(links)
    if draw.random() < 0.3:  # one rate and one delay: ties
        for one in links:
            one.update(rate="100 Gb/s", delay="500 ns")
    start = draw.choice([
        "0 ns",
        ["0 ns", "1 us", "1 us", "7 us"],
        {"process": "poisson", "interval": "2 us", "count": draw.randint(1, 6)},
        {"process": "periodic", "load": 0.9, "count": draw.randint(1, 6)},
    ])
    return {
        "topology": {"kind": "graph", "hosts": hosts, "switches": switches, "links": links},
        "network": {
            "mtu": f"{draw.choice([64, 1000, 1500, 4096, 9000])} B",
            "header": "62 B",
            "wire_overhead": draw.choice(["0 B", "20 B"]),
            "ack": draw.choice(["66 B", "64 B", "none"]),
            "switch_latency": draw.choice(["0 ns", "0 ns", "300 ns"]),
            "window": draw.choice(["1 B", "10 kB", "256 KiB"]),
        },
        "workload": {
            "kind": "traffic",
            "pattern": "pairs",
            "pairs": [draw.sample(range(hosts), 2) for _ in range(draw.randint(1, 12))],
            "size": f"{draw.choice([0, 1, 999, 4096, draw.randint(1, 20000)])} B",
            "queue_pairs": draw.choice([1, 1, 2, 5]),
            "start": start,
        },
        "simulation": {"seed": draw.randint(0, 2**63)},
        "output": {"sampling": "777 ns", "operations": True},
    }


class RandomExperiments(IdentityTest):
    def test_random_experiments(self):
        first = int(os.environ.get("WEFT_TEST_SEED", "1"))
        for seed in range(first, first + 20):
            experiment = random_experiment(random.Random(seed))
            with self.subTest(f"WEFT_TEST_SEED={seed}: the first of the experiments drawn from this seed"):
                self.check(self.write(experiment, f"random{seed}.yaml"), [], [(2 + seed % 4, "random")])


if __name__ == "__main__":
    unittest.main()
