#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 1200 s
"""The verdict on the page of `weft report`: it names the intended bottleneck, and advises what helps, as another run shows."""

import json
import pathlib
import re
import sys
import unittest

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from report_testing import IDLE, INCAST, TRAINING, PageTest, write_numbers
from weft_testing import NETWORK, STAR, table, weft

# Two jobs whose ring and exchange have one link between two switches in common.
SHARED = {
    "topology": {"kind": "graph", "hosts": 4, "switches": 2, "links": [
        *({"from": f"host{host}", "to": f"switch{host // 2}", "rate": "100 Gb/s", "delay": "500 ns"}
          for host in range(4)),
        {"from": "switch0", "to": "switch1", "rate": "25 Gb/s", "delay": "500 ns"}]},
    "network": NETWORK,
    "workload": {"kind": "jobs", "jobs": [
        {"name": name, "placement": {"first": first, "stride": 2}, "workload": {
            "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 2, "size": "1 MB"}}
        for first, name in enumerate(("a", "b"))]},
}

# Llama 3.2 1B; its head is tied.
LLAMA_1B = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
            "max_position_embeddings": 8192, "tie_word_embeddings": True}  # fmt: skip


class Verdicts(PageTest):
    def test_no_congestion_on_an_idle_network(self):
        _, file = self.simulate(IDLE)
        self.show(file)
        self.assertEqual(self.verdict()["congested"], "0")
        self.assertIn("No congestion was found", self.text(".verdict"))
        self.assertLessEqual(len(self.data(".verdict p", "x")), 3)

    def test_the_constructed_bottleneck_is_named_first(self):
        for attribution in ("summary", "none"):
            with self.subTest(attribution=attribution):
                _, file = self.simulate(INCAST, "--set", f"output.attribution={attribution}")
                self.show(file)
                self.assertEqual(self.verdict(), {"verdict": "queueing", "congested": "1", "link": "switch0 → host0"})
                links = table(file, "links")
                worst = self.data("[data-delay-link]", "delayLink")[0]
                row = links["id"].tolist().index(int(worst))
                self.assertEqual((links["from_name"][row], links["to_name"][row]), ("switch0", "host0"))
                self.assertIn("Congestion was found: switch0 → host0", self.text(".verdict"))

    def test_of_pauses_the_link_is_named_where_they_begin(self):
        """Ranks 1 to 3 send to rank 0, whose link has a tenth of the rate. Switch 1 fills and stops the link between the
        switches, at which most messages wait; it is busy for 3 % of the run."""
        links = [{"from": f"host{host}", "to": f"switch{host in (0, 5):d}", "rate": "10 Gb/s" if host == 0 else "100 Gb/s"}
                 for host in range(6)] + [{"from": "switch0", "to": "switch1", "rate": "400 Gb/s"}]
        _, file = self.simulate({
            "topology": {"kind": "graph", "hosts": 6, "switches": 2, "link_delay": "500 ns", "links": links},
            "network": {"flow_control": "pfc", "buffer": {"size": "1 MB"}, "window": "16 MB"},
            "workload": {"kind": "traffic", "pattern": "pairs", "size": "4 MB", "pairs": [[1, 0], [2, 0], [3, 0], [4, 5]]}})
        self.show(file)
        self.assertEqual(self.verdict(), {"verdict": "pause", "congested": "1", "link": "switch1 → host0"})
        self.assertIn("Congestion was found: switch1 → host0 (host) had links stopped for", self.text(".verdict"))

    def test_of_losses_the_link_is_named_at_which_they_were(self):
        _, file = self.simulate({
            "topology": STAR, "workload": {"kind": "collective", "collective": "all_reduce", "ranks": 4, "size": "4 MiB"},
            "network": {"loss": [{"link": ["host1", "switch0"], "probability": 0.05}]}})
        self.show(file)
        links = table(file, "links")
        worst = int(links["lost"].argmax())
        name = f"{links['from_name'][worst]} → {links['to_name'][worst]}"
        self.assertEqual(self.verdict()["link"], name)
        self.assertIn(f"{name} (host) lost {links['lost'][worst]} packets", self.text(".verdict"))
        self.assertIn("a link without errors", self.text(".verdict"))
        self.assertEqual(self.number("[data-fact=dropped]"), links["lost"].sum())

    def test_a_link_that_is_slower_than_those_before_it(self):
        """In a ring only one rank sends to another, here over a link of a tenth of the rate, which is busy all the time."""
        links = [{"from": f"host{host}", "to": "switch0", "rate": "10 Gb/s" if host == 3 else "100 Gb/s"} for host in range(8)]
        _, file = self.simulate({
            "topology": {"kind": "graph", "hosts": 8, "switches": 1, "link_delay": "500 ns", "links": links},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "8 MiB"}})
        self.show(file)
        self.assertEqual(self.verdict()["link"], "switch0 → host3")
        self.assertNotIn("Many send", self.text(".verdict"))
        self.assertIn("A busy link bounds the run", self.text(".verdict"))
        self.assertIn("That link has 10 Gb/s, and others of its class have 100 Gb/s: only less data to host3, or a faster link",
                      self.text(".verdict"))

    def test_latencies_bound_small_messages(self):
        """Of 14 steps of two links with 2 us each nearly all is latency: no slot is missing, and links are idle."""
        star = {"kind": "star", "hosts": 8, "link_rate": "400 Gb/s", "link_delay": "2 us"}
        _, file = self.simulate({"topology": star, "workload": {
            "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "1 KiB"}})
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "transfer")
        self.assertIn("latencies count", self.text(".verdict"))

    def test_latencies_bound_messages_of_busier_links(self):
        """A ring all-reduce of 1 MB on 4 ranks sends 250 kB in each step, in two slices (NCCL's): 2.5 us for 125 kB at 400 Gb/s, and two
        links of 10 us. 20 / 22.5 = 89 % are latency, though links are busy for more than a tenth of the time."""
        star = {"kind": "star", "hosts": 4, "link_rate": "400 Gb/s", "link_delay": "10 us"}
        _, file = self.simulate({"topology": star, "network": {**NETWORK, "window": "1 MiB"}, "workload": {
            "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "1 MB"}})
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "transfer")
        self.assertGreater(table(file, "links")["utilization"].max(), 0.1)
        self.assertIn("latencies are 89 % of the time of messages", self.text(".verdict"))

    def test_an_incast_that_only_its_link_bounds(self):
        """8 senders of 1 MiB fill the link of the receiver, so that an ideal network takes as long: only the first packet's way
        is left beside it, which is less than 1 % of the time."""
        _, file = self.simulate({
            "topology": {"kind": "star", "hosts": 9, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "512 KiB"}},
            "workload": {"kind": "traffic", "pattern": "incast", "destination": 0, "sources": 8, "size": "1 MiB"}})
        links = table(file, "links")
        self.assertGreater(links["busy"].max(), 0.99 * table(file, "jobs")["time"][0])
        self.show(file)
        self.assertIn("A busy link bounds the run", self.text(".verdict"))
        self.assertIn("Only less data to host0, or a faster link, would help", self.text(".verdict"))
        self.assertNotIn("network.buffer", self.text(".verdict"))
        self.assertNotIn("load_balancing", self.text(".verdict"))

    def test_a_link_that_is_busy_with_packets_that_had_arrived(self):
        """Losses have go-back-N send again what a receiver has thrown away, and timers what is still in a queue of 1.2 ms: the link of
        the receiver is busy all the time. 64 messages of 1 MiB have to pass it, and without losses nothing else does."""
        experiment = {"topology": {"kind": "star", "hosts": 65, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
                      "network": {**NETWORK, "buffer": {"size": "16 MiB"}},
                      "workload": {"kind": "traffic", "pattern": "incast", "destination": 0, "sources": 64, "size": "1 MiB"},
                      "output": {"attribution": "full", "operations": True}}  # fmt: skip
        summary, file = self.simulate(experiment)
        time, links = float(table(file, "jobs")["time"][0]), table(file, "links")
        least = 64 * 256 * (4096 + 62 + 20) * 8 * 2.5  # ps
        self.assertGreater(links["busy"].max(), 0.95 * time)
        self.show(file)
        said = re.search(r"delays the run, which takes [0-9.]+ ms, by at most ([0-9.]+) (µs|ms),", self.text(".verdict"))
        self.assertIsNotNone(said, self.text(".verdict"))
        self.assertAlmostEqual(float(said[1]) * {"µs": 1e6, "ms": 1e9}[said[2]], time - least, delta=0.01 * time)
        lossless, _ = self.simulate(experiment, "--set", "network.flow_control=pfc")
        self.assertAlmostEqual(summary["simulated_time_ps"] - lossless["simulated_time_ps"], time - least, delta=0.01 * time)

    def test_what_congestion_control_can_save(self):
        """With DCQCN the link of the receiver is idle for a part of the time: without that part, the run takes what 8 messages
        take there."""
        _, file = self.simulate({
            "topology": {"kind": "star", "hosts": 9, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "congestion_control": "dcqcn"},
            "workload": {"kind": "traffic", "pattern": "incast", "destination": 0, "sources": 8, "size": "1 MiB"}})
        time = table(file, "jobs")["time"][0]
        idle = time - 8 * 256 * (4096 + 62 + 20) * 8 * 10  # 256 packets of each, 10 ps for a bit
        self.assertGreater(idle, 0.1 * time)
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "pacing")
        said = re.search(r"by at most ([0-9.]+) (µs|ms)", self.text(".verdict"))
        self.assertAlmostEqual(float(said[1]) * {"µs": 1e6, "ms": 1e9}[said[2]] / idle, 1, delta=0.01)

    def test_a_slow_rank_for_which_nobody_waits(self):
        """Rank 3 computes 60 us longer beside an all-reduce of 4 ranks that takes 2 x 3/4 of 8 MiB at 100 Gb/s, 1 ms: it is told,
        and not that others wait."""
        operations = [{"rank": rank, "compute": "160 us" if rank == 3 else "100 us"} for rank in range(4)]
        operations.append({"collective": "all_reduce", "algorithm": "ring", "size": "8 MiB", "stream": "communication"})
        _, file = self.simulate({"topology": STAR, "network": NETWORK, "workload": {
            "kind": "program", "ranks": 4, "operations": operations}})
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "transfer")
        self.assertIn("rank 3 computes 60 µs longer than the median.", self.text(".verdict"))

    def test_larger_buffers_are_not_advised_where_a_link_is_full(self):
        """A ring that crosses one spine 16 times fills the leaves' links, so that twice the buffers save nothing."""
        order = [host for pair in zip(range(8), range(8, 16)) for host in pair]
        experiment = {"topology": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 8, "link_rate": "100 Gb/s",
                                   "link_delay": "500 ns"},
                      "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "512 KiB"}},
                      "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "8 MiB",
                                   "placement": {"hosts": order}}}  # fmt: skip
        saved = self.saved(experiment, buffer={"size": "1 MiB"})
        self.assertLess(saved, 0.03)
        self.assertEqual(self.verdict()["verdict"], "pause")
        self.assertNotIn("network.buffer", self.text(".verdict"))
        self.assertIn("more or faster links there", self.text(".verdict"))

    def test_a_routing_that_looks_at_queues_is_advised(self):
        """Each group of a dragonfly sends to the next one over one link. Another load balancing has no other path; another
        routing has, as a run shows."""
        experiment = {"topology": {"kind": "dragonfly", "a": 4, "h": 2, "p": 2, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
                      "network": {**NETWORK, "flow_control": "credit"},
                      "workload": {"kind": "traffic", "pattern": "pairs", "size": "256 KiB",
                                   "pairs": [[host, (host + 8) % 72] for host in range(72)]}}  # fmt: skip
        summary, file = self.simulate(experiment)
        self.show(file)
        self.assertIn("network.routing: dragonfly_ugal", self.text(".verdict"))
        self.assertNotIn("load_balancing", self.text(".verdict"))
        experiment["network"]["routing"] = "dragonfly_ugal"
        helped, _ = self.simulate(experiment)
        self.assertLess(helped["simulated_time_ps"], summary["simulated_time_ps"] / 2)

    def test_messages_of_an_even_all_to_all_that_wait_behind_each_other(self):
        """Four leaves of four hosts, with two links to spines: 16 x 15 messages of 1 MiB, all handed over at once, take the link
        of a host 15 x 256 packets of 4,178 B and as many ACKs of 86 B, and each of the two links 4 x 12 / 2 times as much as one
        message. Nearly all of them wait behind others of their sender, also on an ideal network, so that this is no delay: congestion
        delays by what is left beside the link of a host, 1 - 15 / 24, and links that all are as busy leave nothing to other paths."""
        topology = {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, "link_rate": "400 Gb/s", "link_delay": "500 ns"}
        experiment = {"topology": topology, "network": {**NETWORK, "mtu": "4096 B", "ack": "66 B", "load_balancing": "spray"},
                      "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "linear", "size": "16 MiB"}}
        summary, file = self.simulate(experiment)
        packets = 15 * (1 << 20) // 4096
        least = packets * (4096 + 82 + 86) * 8 / 400e9 * 1e12
        self.show(file)
        text = self.text(".verdict")
        said = re.search(r"by at most ([0-9.]+) µs, ([0-9.]+) %, because what has to pass (\S+ → host\d+|host\d+ → \S+) keeps it busy", text)
        time = float(table(file, "jobs")["time"][0])
        self.assertIsNotNone(said, text)
        self.assertAlmostEqual(float(said[2]) / 100, 1 - 15 / 24, delta=0.02)
        self.assertAlmostEqual(float(said[1]) * 1e6, time - least, delta=0.01 * time)
        ideal, _ = self.simulate(experiment, "--set", "network.fidelity=ideal", "--set", "network.load_balancing=ecmp")
        saved = summary["simulated_time_ps"] - ideal["simulated_time_ps"]
        self.assertAlmostEqual(float(said[1]) * 1e6, saved, delta=0.03 * time)
        self.assertNotIn("load_balancing", text)

    def test_slots_and_latencies_of_a_long_ring(self):
        """A ring over two leaves with long links between them, in chunks of 16 KiB: NCCL's four slices of 8 KiB are less than what
        is under way to the next rank and back. Only ranks at these links wait for slots; all others wait for these ranks."""
        experiment = {"topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 16, "spines": 16, "link_rate": "400 Gb/s",
                                   "host_link_rate": "400 Gb/s", "host_link_delay": "100 ns", "link_delay": "1 us"},
                      "network": {**NETWORK, "mtu": "4096 B", "ack": "66 B"},
                      "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "512 KiB"},
                      "output": {"attribution": "full", "operations": True}}  # fmt: skip
        summary, file = self.simulate(experiment)
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "transfer")
        said = re.search(r"against waiting for free slots at receivers, ([0-9.]+) % of the critical path", self.text(".verdict"))
        self.assertIsNotNone(said, self.text(".verdict"))
        more, _ = self.simulate(experiment, "--set", "workload.credits=16")
        saved = 100 * (1 - more["simulated_time_ps"] / summary["simulated_time_ps"])
        self.assertGreater(saved, 10)
        self.assertGreater(float(said[1]), saved)
        self.assertIn("fewer steps of the algorithm, shorter ways", self.text(".verdict"))

    def test_the_critical_path_says_how_much_congestion_delays(self):
        """Data-parallel ranks on random hosts wait for each other, and few of them for the link that two share: means over ranks
        say less than what an ideal network saves, and the path about as much."""
        experiment = {"topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 1, "link_rate": "100 Gb/s",
                                   "link_delay": "500 ns"}, "network": NETWORK,
                      "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "8 MiB",
                                   "placement": {"kind": "random", "seed": 3}},
                      "output": {"attribution": "full", "operations": True}}  # fmt: skip
        summary, file = self.simulate(experiment)
        self.show(file)
        said = re.search(r"of its critical path ([0-9.]+) %", self.text(".verdict"))
        ideal, _ = self.simulate(experiment, "--set", "network.fidelity=ideal")
        saved = 100 * (1 - ideal["simulated_time_ps"] / summary["simulated_time_ps"])
        self.assertAlmostEqual(float(said[1]), saved, delta=10)

    def test_a_shared_link_shows_both_jobs(self):
        _, file = self.simulate(SHARED)
        self.show(file)
        self.assertIn(self.verdict()["link"], ("switch0 → switch1", "switch1 → switch0"))
        line = self.text("[data-name=delays] tbody tr")
        self.assertRegex(line, r"\ba \d+ %")
        self.assertRegex(line, r"\bb \d+ %")

    def test_who_stood_in_front(self):
        """A table /link_waits, synthetic: the columns' names and units define their meaning."""
        _, file = self.simulate(SHARED)
        with h5py.File(file, "a") as results:
            links = results["links"]
            names = list(zip(links["from_name"].asstr()[:], links["to_name"].asstr()[:]))
            link = int(links["id"][names.index(("switch0", "switch1"))])
            if "link_waits" in results:
                del results["link_waits"]
            waits = results.create_group("link_waits")
            write_numbers(waits, "link", [link, link, link], "id")
            write_numbers(waits, "job", [0, 1, 0], "id")
            write_numbers(waits, "ahead", [1, 0, -1], "id")
            write_numbers(waits, "waits", [6, 3, 1])
            write_numbers(waits, "time", [60_000_000, 30_000_000, 10_000_000], "ps")
            write_numbers(waits, "first", [1_000_000, 2_000_000, 3_000_000], "ps")
            write_numbers(waits, "last", [4_000_000, 5_000_000, 6_000_000], "ps")
        self.show(file)
        self.assertEqual(self.number("[data-delay-link]"), 100_000_000)
        line = self.text("[data-name=delays] tbody tr")
        self.assertRegex(line, r"a 70 %\s+b 30 %\s+b 60 %\s+a 30 %\s+no job or several 10 %")

    def test_the_critical_path(self):
        """A rank computes 1 ms before an all-reduce that the others begin at once: nearly all of the path is compute."""
        workload = {"kind": "program", "ranks": 4, "operations": [
            {"rank": 2, "id": "slow", "compute": "1 ms"},
            {"collective": "all_reduce", "size": "4 KiB", "id": "grads", "stream": "compute"}]}
        _, file = self.simulate({"topology": STAR, "workload": workload,
                                 "output": {"attribution": "full", "operations": True}})
        self.show(file)
        self.assertEqual(self.number("[data-name=critical]", "steps"), 2)
        self.assertRegex(self.text("[data-name=critical] tbody"), r"^compute\s+1(\.0+)? ms\s+9\d(\.\d)? %")

    def test_a_straggler_is_named(self):
        """Synthetic: one rank computes for half of the run, and the others wait for it."""
        _, file = self.simulate(IDLE)
        with h5py.File(file, "a") as results:
            end = int(results.attrs["simulated_time"])
            for place in ("jobs", "ranks"):
                for name in [name for name in results[place] if name.startswith("part_")]:
                    results[place][name][:] = 0
            ranks = results["ranks"]
            ranks["compute"][:] = [end // 10, end // 10, end // 2, end // 10]
            ranks["part_compute"][:] = ranks["compute"][:]
            ranks["part_peers"][:] = end - ranks["compute"][:]
            results["jobs/part_compute"][:] = ranks["compute"][:].sum()
            results["jobs/part_peers"][:] = ranks["part_peers"][:].sum()
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "straggler")
        self.assertIn("rank 2 computes", self.text(".verdict"))

    def steps(self, ranks, compute, slow=None, rounds=10):
        """Rounds of compute and an all-reduce of 4 KiB; one rank may compute longer."""
        operations = [operation for number in range(rounds) for operation in (
            {"rank": "all", "id": f"work {number}", "compute": compute, **({"after": f"sum {number - 1}"} if number else {})},
            {"id": f"sum {number}", "collective": "all_reduce", "size": "4 KiB", "algorithm": "ring", "after": f"work {number}"})]
        workload = {"kind": "program", "ranks": ranks, "operations": operations}
        if slow:
            workload["compute_noise"] = {"slow_ranks": [slow]}
        return {"topology": {**STAR, "hosts": ranks}, "network": NETWORK, "workload": workload}

    def test_a_straggler_is_named_where_compute_is_most(self):
        """Eight ranks compute 10 x 1 ms, and one of them 1.3 times as long: the others wait for 3 of some 13 ms. No network makes the
        run shorter than the 13 ms of that rank."""
        _, file = self.simulate(self.steps(8, "1 ms", {"ranks": [3], "factor": 1.3}))
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "straggler")
        self.assertIn("rank 3 computes 3 ms longer", self.text(".verdict"))
        self.assertIn("by at most 3 ms", self.text(".verdict"))
        time = table(file, "jobs")["time"][0] / 10**9
        self.assertLess(time, 13.5)
        _, file = self.simulate(self.steps(8, "1 ms"), output="even.h5")
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "compute")
        left = table(file, "jobs")["time"][0] / 10**6 - 10_000
        self.assertIn(f"a better network would save at most {left:.4g} µs", self.text(".verdict"))

    def test_a_bubble_is_not_blamed_on_the_last_stage(self):
        """1F1B of 4 stages and 4 micro-batches: ranks wait for 3/7 of the step even if all stages are equal (Narayanan et al., SC
        2021: (p - 1)/(m + p - 1)). The last stage has the head, and computes longer by less than a third of these waits."""
        _, file = self.simulate({
            "topology": STAR, "network": {**NETWORK, "window": "1 MiB"},
            "workload": {"kind": "training", "model": "llama-3.1-8b", "device": "h100-sxm", "parallelism": {"pipeline": 4},
                         "micro_batch": 1, "micro_batches": 4, "sequence_length": 2048, "algorithm": "ring", "steps": 1}})
        jobs = table(file, "jobs")
        self.assertGreater(jobs["part_peers"][0] / (jobs["time"][0] * jobs["ranks"][0]), 3 / 7)
        self.show(file)
        self.assertNotEqual(self.verdict()["verdict"], "straggler")
        self.assertIn("rank 3 computes", self.text(".verdict"))
        self.assertIn("more micro-batches", self.text(".verdict"))

    def test_a_link_that_the_experiment_slows_down(self):
        """In a ring one rank sends to another. A link with a quarter of its rate is busy for 4 times as long: 3 b / R longer."""
        slow = [{"at": "0 us", "link": ["host3", "switch0"], "rate": "25 Gb/s"}]
        _, file = self.simulate({
            "topology": {**STAR, "hosts": 8, "link_rate": "100 Gb/s"}, "network": {**NETWORK, "failures": slow},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "8 MiB"}})
        self.show(file)
        self.assertEqual(self.verdict()["link"], "switch0 → host3")
        self.assertNotIn("Many send", self.text(".verdict"))
        links = table(file, "links")
        size = links["bytes"][(links["from_name"] == "switch0") & (links["to_name"] == "host3")][0]
        self.assertIn(f"switch0 → host3 (host) sent at 25 Gb/s instead of 100 Gb/s, for {3 * size * 8 / 100e9 * 1e3:.4g} ms longer",
                      self.text(".verdict"))
        self.assertIn("repairing it helps first", self.text(".verdict"))
        self.assertEqual(self.verdict()["verdict"], "slowed")
        self.assertIn("A link that is slower than it should be bounds the run", self.text(".verdict"))

    def test_an_incast_that_is_paced_is_blamed_on_the_busiest_link(self):
        """15 hosts send to one: its link carries all bytes, and each link before it less. HPCC keeps its queue short."""
        _, file = self.simulate({
            "topology": {"kind": "fat_tree", "k": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "2 MiB"}, "congestion_control": "hpcc"},
            "workload": {"kind": "traffic", "pattern": "incast", "destination": 0, "sources": 15, "size": "1 MiB"}})
        self.show(file)
        self.assertEqual(self.verdict(), {"verdict": "pacing", "congested": "1", "link": "pod0/edge0 → host0"})
        self.assertNotIn("load_balancing", self.text(".verdict"))

    def test_flows_that_share_a_link_by_chance_are_paced(self):
        """A ring on random hosts: ECMP sends several of its flows over one link between switches, where DCQCN marks them.
        Other paths help then, as a run shows; at the link of a destination, as in the incast above, they do not."""
        experiment = {
            "topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 2, "link_rate": "400 Gb/s",
                         "link_delay": "500 ns"},
            "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "32 MiB"}, "congestion_control": "dcqcn"},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "32 MiB",
                         "placement": "random"}}
        summary, file = self.simulate(experiment)
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "pacing")
        self.assertIn("load_balancing", self.text(".verdict"))
        experiment["network"]["load_balancing"] = "adaptive"
        helped, _ = self.simulate(experiment)
        self.assertLess(helped["simulated_time_ps"], summary["simulated_time_ps"])

    def test_a_paced_incast_beside_a_job_with_busier_links(self):
        """Seven hosts send to one, paced by DCQCN, which leaves its link idle now and then; a ring elsewhere keeps its links
        busy. The longer job is the incast, and its link is named, not one that only the ring uses."""
        jobs = [{"name": "incast", "workload": {"kind": "traffic", "pattern": "incast", "ranks": 8, "destination": 0,
                                                "sources": 7, "size": "2 MiB"}},
                {"name": "ring", "placement": {"first": 8}, "workload": {
                    "kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 8, "size": "8 MiB"}}]
        _, file = self.simulate({
            "topology": {"kind": "fat_tree", "k": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "flow_control": "pfc", "buffer": {"size": "16 MiB"}, "congestion_control": "dcqcn"},
            "workload": {"kind": "jobs", "jobs": jobs}})
        links = table(file, "links")
        behind_switches = np.char.startswith(links["to_name"].astype(str), "host")
        busiest = np.where(behind_switches, links["utilization"], 0).argmax()
        self.assertNotEqual(str(links["to_name"][busiest]), "host0")
        self.show(file)
        self.assertEqual(self.verdict(), {"verdict": "pacing", "congested": "1", "link": "pod0/edge0 → host0"})
        self.assertNotIn("of job ring was delayed most", self.text(".verdict"))

    def test_queues_beside_the_handling_of_slices(self):
        """Collectives of 32 GPUs by NCCL's channels. Behind one spine for 16 GPUs an ideal network saves most of the time, so
        congestion bounds the run; a small all-reduce on full bisection is as long on an ideal network."""
        def runs(collective, size, spines):
            experiment = {
                "topology": {"kind": "leaf_spine", "leaves": 2, "spines": spines, "hosts_per_leaf": 16, "link_rate": "400 Gb/s",
                             "link_delay": "100 ns", "server": {"design": "hgx_h100"}},
                "network": NETWORK, "workload": {"kind": "collective", "collective": collective, "size": size,
                                                 "algorithm": "nccl"}, "output": {"messages": "none"}}  # fmt: skip
            file = self.simulate(experiment)[1]
            ideal = self.simulate({**experiment, "network": {**NETWORK, "fidelity": "ideal"}}, output="ideal.h5")[1]
            self.show(file)
            return 1 - float(table(ideal, "jobs")["time"][0]) / float(table(file, "jobs")["time"][0])

        for collective in ("all_reduce", "all_gather", "all_to_all"):
            with self.subTest(collective):
                self.assertGreater(runs(collective, "16 MiB", 1), 0.6)
                self.assertEqual(self.verdict()["verdict"], "queueing")
        self.assertLess(runs("all_reduce", "1 MiB", 16), 0.03)
        self.assertEqual(self.verdict()["verdict"], "local")

    def saved(self, experiment, **network):
        """Runs an experiment, shows its report, and returns the share of its time that another network saves."""
        file = self.simulate(experiment)[1]
        other = self.simulate({**experiment, "network": {**experiment["network"], **network}}, output="other.h5")[1]
        self.show(file)
        return 1 - float(table(other, "jobs")["time"][0]) / float(table(file, "jobs")["time"][0])

    def test_a_link_that_two_of_a_ring_share(self):
        """A ring whose order crosses one spine twice in each direction: hosts' links could be busy all the time, and are so for half
        of it, because two neighbours share a link. So an ideal network saves half, though few ranks see a queue."""
        experiment = {
            "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 8, "link_rate": "100 Gb/s",
                         "link_delay": "500 ns"},
            "network": {**NETWORK, "window": "256 KiB"},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "64 MiB", "ranks": 16,
                         "placement": {"hosts": [0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15]}}}  # fmt: skip
        self.assertAlmostEqual(self.saved(experiment, fidelity="ideal"), 0.5, delta=0.05)
        self.assertEqual(self.verdict()["verdict"], "queueing")
        self.assertIn("A busy link bounds the run", self.text(".verdict"))

    def test_a_window_that_one_hop_of_a_ring_fills(self):
        """Two hops of a ring have a round trip of 4 x 5 us and more, in which they send 256 KiB, 5.4 us at their rate: they wait for
        three quarters of the time, and all others for them. Half of the ranks do not even have a switch between them."""
        experiment = {
            "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "link_rate": "400 Gb/s",
                         "link_delay": "5 us", "host_link_delay": "100 ns"},
            "network": {**NETWORK, "window": "256 KiB"},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "64 MiB"}}
        saved = self.saved(experiment, window="4 MiB")
        self.assertGreater(saved, 0.5)
        self.assertEqual(self.verdict()["verdict"], "window")
        self.assertIn("A larger window", self.text(".verdict"))

    def test_links_of_a_torus_behind_faster_links_of_hosts(self):
        """Eight routers in a ring, whose hosts have the rate of both its links. The messages of a host to the seven others take
        1 + 2 + 3 + 4 + 3 + 2 + 1 = 16 links, so that each direction of a link carries eight messages while a host sends seven at
        twice the rate: an ideal network saves 1 - 3.5/8. Acknowledgements are late because packets queue there; a window four
        times as large only makes queues longer."""
        experiment = {
            "topology": {"kind": "torus", "dims": [8], "link_rate": "100 Gb/s", "link_delay": "500 ns"},
            "network": {**NETWORK, "window": "256 KiB"}, "output": {"operations": True, "attribution": "full"},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "direct", "size": "32 MiB"}}  # fmt: skip
        self.assertLess(self.saved(experiment, window="1 MiB"), 0.05)
        self.assertGreater(self.saved(experiment, fidelity="ideal"), 0.5)
        self.assertEqual(self.verdict()["verdict"], "queueing")

    def test_storage_that_is_busy_all_the_time(self):
        """Four ranks write 4 MiB each to two targets with devices of 10 Gb/s, which take 8 MiB / 10 Gb/s = 6.7 ms; links take a tenth."""
        file = self.simulate({
            "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "link_rate": "100 Gb/s",
                         "link_delay": "500 ns", "storage_hosts": 2}, "network": NETWORK,
            "workload": {"kind": "checkpoint", "ranks": 4, "size": "4 MiB", "device_rate": "10 Gb/s"}})[1]
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "compute")
        self.assertIn("rank 4 computes, or serves storage", self.text(".verdict"))

    def test_a_failed_link_is_named(self):
        file = self.simulate({
            "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4, "link_rate": "100 Gb/s",
                         "link_delay": "500 ns"},
            "network": {**NETWORK, "failures": [{"at": "1 us", "link": ["leaf0", "spine0"]}], "reconvergence": "10 us"},
            "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "nccl_p2p", "size": "1 MiB"}})[1]
        self.show(file)
        self.assertIn("leaf0 – spine0 was down from 1 us on", self.text(".verdict"))

    def test_packets_that_overtake_are_not_lost(self):
        """Every packet takes its own path, and none is lost: nothing is sent again."""
        summary, file = self.simulate({
            "topology": {"kind": "leaf_spine", "leaves": 4, "hosts_per_leaf": 4, "spines": 4, "link_rate": "100 Gb/s",
                         "link_delay": "500 ns"},
            "network": {"window": "1 MiB", "load_balancing": "spray"}, "simulation": {"seed": 5},
            "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "4 MiB",
                         "placement": "random"}})
        self.assertEqual(summary["congestion"]["packets_repeated"], 0)
        self.assertGreater(table(file, "jobs")["part_reordering"][0], 0)
        self.show(file)
        self.assertNotIn("retransmission 1", self.text(".verdict"))
        self.assertIn("that others overtook", self.text(".verdict"))
        self.assertNotIn("lossless", self.text(".verdict"))

    def test_compute_bounds_a_step_with_little_communication(self):
        _, file = self.simulate(TRAINING, "--set", "topology.link_rate=1600 Gb/s")
        self.show(file)
        self.assertEqual(self.verdict()["verdict"], "compute")

    def test_launches_bound_a_step_of_short_kernels(self):
        """Llama 1B eager on B200s: launches of some 700 kernels take longer than these, if sequences are short. CUDA graphs save
        a third of a step then. With sequences twice as long they save a sixth, because the optimizer's long kernels follow, and with
        sixteen longer ones nothing. The device computes for more than half of all these steps."""
        def saved(sequence, batch):
            (self.folder / "config.json").write_text(json.dumps(LLAMA_1B))
            workload = {"kind": "training", "model": "config.json", "device": "b200-sxm", "framework": "pytorch_eager",
                        "parallelism": {"data": 8}, "micro_batch": batch, "sequence_length": sequence}  # fmt: skip
            experiment = {"topology": {"kind": "star", "hosts": 8, "link_rate": "3600 Gb/s", "link_delay": "500 ns"},
                          "network": {**NETWORK, "window": "1 MiB"}, "workload": workload, "output": {"operations": True, "attribution": "full"}}
            file = self.simulate(experiment)[1]
            graphs = self.simulate({**experiment, "workload": {**workload, "cuda_graphs": True}}, output="graphs.h5")[1]
            self.show(file)
            self.assertGreater(table(file, "jobs")["compute"][0], 0.5 * table(file, "jobs")["time"][0])
            return 1 - float(table(graphs, "jobs")["time"][0]) / float(table(file, "jobs")["time"][0])

        self.assertGreater(saved(1024, 1), 1 / 3)
        self.assertEqual(self.verdict()["verdict"], "host")
        self.assertIn("CUDA graphs", self.text(".verdict"))
        path = json.loads(self.run_weft("explain", self.folder / "out.h5", "--json").out)["critical_path"]
        self.assertGreater(path["sums"]["host"], 0.6 * path["time"])
        self.assertGreater(saved(2048, 1), 1 / 6)
        self.assertEqual(self.verdict()["verdict"], "compute")
        self.assertIn("of waiting for the host CUDA graphs", self.text(".verdict"))
        self.assertLess(saved(4096, 16), 0.02)
        self.assertEqual(self.verdict()["verdict"], "compute")
        self.assertNotIn("CUDA graphs", self.text(".verdict"))

    def test_an_incomplete_run_is_marked(self):
        path = self.write({**INCAST, "simulation": {"until": "100 us"}})
        done = weft("run", path, "-o", "out.h5", folder=self.folder)
        with h5py.File(self.folder / "out.h5") as results:
            self.assertEqual(results.attrs["complete"], 0, done)
        self.show(self.folder / "out.h5")
        self.assertIn("INCOMPLETE", self.text("[data-incomplete]"))


if __name__ == "__main__":
    unittest.main()
