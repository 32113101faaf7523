#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What times were spent on, in cases with an answer by hand (docs/reference/hdf5_schema.md)."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, ProgramTest, picoseconds_to_send, table, weft

RATE = 100 * 10**9  # bit/s
DELAY = 500_000  # ps
MTU, HEADER = 4096, 82  # bytes; header with preamble and gap
FULL = picoseconds_to_send(MTU + HEADER, RATE)
ACK = picoseconds_to_send(66 + 20, RATE)
MESSAGE = ["transfer", "queueing", "nic", "ahead", "window", "pacing", "paused", "retransmission", "reordering"]


def star(hosts, rate="100 Gb/s"):
    return {"kind": "star", "hosts": hosts, "link_rate": rate, "link_delay": "500 ns"}


def program(ranks, *operations, **more):
    return {"kind": "program", "ranks": ranks, "operations": list(operations), **more}


def send(source, destination, size, **more):
    return [{"rank": source, "send": size, "to": destination, **more},
            {"rank": destination, "recv": size, "from": source, **({"tag": more["tag"]} if "tag" in more else {})}]


class Attribution(ProgramTest):
    def parts(self, workload, topology=None, network=None, **output):
        """Rows of messages, and the file: {part: ps} without the parts that are 0."""
        experiment = {"topology": topology or star(4), "network": {**NETWORK, "window": "1 GiB", **(network or {})},
                      "workload": workload, "output": {"attribution": "full", **output}}
        path = self.simulate(experiment)[1]
        return self.rows(path, "messages"), path

    def rows(self, path, name):
        columns = table(path, name)
        parts = [column for column in columns if column.startswith("part_")]
        count = len(next(iter(columns.values())))
        return [{part[5:]: int(columns[part][row]) for part in parts if columns[part][row]} for row in range(count)]

    def test_alone_on_an_idle_network_a_message_is_nothing_but_transfer(self):
        for size in (1, 4096, 100_000):
            messages, path = self.parts(program(2, *send(0, 1, f"{size} B")))
            self.assertEqual(messages, [{"transfer": int(table(path, "messages")["ideal"][0])}])

    def test_behind_its_own_packets_at_a_slower_link_it_is_transfer_too(self):
        slow = {"kind": "graph", "hosts": 2, "switches": 1,
                "links": [{"from": "host0", "to": "switch0", "rate": "400 Gb/s", "delay": "500 ns"},
                          {"from": "switch0", "to": "host1", "rate": "100 Gb/s", "delay": "500 ns"}]}
        messages, path = self.parts(program(2, *send(0, 1, "100000 B")), slow)
        self.assertEqual(messages, [{"transfer": int(table(path, "messages")["ideal"][0])}])

    def test_earlier_messages_of_the_queue_pair(self):
        """The second message of two leaves behind the first one."""
        first, second = send(0, 1, f"{10 * MTU} B"), send(0, 1, f"{MTU} B", tag=1)
        messages, path = self.parts(program(2, *first, *second))
        ideal = table(path, "messages")["ideal"]
        self.assertEqual(messages, [{"transfer": int(ideal[0])}, {"ahead": 10 * FULL, "transfer": int(ideal[1])}])

    def test_other_queue_pairs_of_the_nic(self):
        """Two messages of one packet to two hosts: the second one waits until the first has left."""
        messages, path = self.parts(program(3, *send(0, 1, f"{MTU} B"), *send(0, 2, f"{MTU} B")))
        ideal = table(path, "messages")["ideal"]
        self.assertEqual(messages, [{"transfer": int(ideal[0])}, {"nic": FULL, "transfer": int(ideal[1])}])

    def test_queueing_behind_others(self):
        """Two hosts send a packet each to a third one at the same time: one waits for the other at its link."""
        messages, path = self.parts(program(3, *send(0, 2, f"{MTU} B"), *send(1, 2, f"{MTU} B")))
        ideal = int(table(path, "messages")["ideal"][0])
        self.assertEqual(messages, [{"transfer": ideal}, {"transfer": ideal, "queueing": FULL}])

    def test_a_window_that_congestion_control_sets(self):
        """Eight senders to one: their congestion control makes windows smaller, as it would make a rate, while a window that the
        experiment gives is one of acknowledgements."""
        incast = {"kind": "traffic", "pattern": "incast", "size": "2 MB"}
        for control, window, held, other in (("swift", "1 GiB", "pacing", "window"), ("dctcp", "1 GiB", "pacing", "window"),
                                             ("swift", f"{MTU} B", "window", "pacing"), ("dctcp", f"{MTU} B", "window", "pacing")):
            with self.subTest(control=control, window=window):
                messages, _ = self.parts(incast, star(9), {"congestion_control": control, "window": window})
                self.assertEqual(len(messages), 8)
                for parts in messages:
                    self.assertGreater(parts[held], parts["transfer"])
                    self.assertNotIn(other, parts)

    def test_the_window(self):
        """With a window of one packet, the second packet leaves when the ACK of the first one is there: after two links
        there and two back. It has been sent until FULL."""
        for more in ({}, {"queues": "output"}):
            messages, path = self.parts(program(2, *send(0, 1, f"{2 * MTU} B")), network={"window": f"{MTU} B", **more})
            ideal = int(table(path, "messages")["ideal"][0])
            round_trip = 2 * (FULL + DELAY) + 2 * (ACK + DELAY)
            self.assertEqual(messages, [{"transfer": ideal, "window": round_trip - FULL}])

    def test_a_straggler(self):
        """A rank that is 1 ms late: the others wait for it, and the collective for its last rank."""
        late = 10**9
        workload = program(4, {"rank": 2, "id": "slow", "compute": "1 ms"},
                           {"collective": "all_reduce", "size": "64 KiB", "id": "grads", "stream": "compute"})
        path = self.parts(workload)[1]
        calls = table(path, "collectives")
        self.assertEqual(int(calls["last_start"][0]), late)
        self.assertGreaterEqual(self.rows(path, "collectives")[0]["peers"], late - 20_000_000)
        ranks = self.rows(path, "ranks")
        self.assertEqual(ranks[2]["compute"], late)
        self.assertLess(ranks[2].get("peers", 0), late // 10)
        # Also the rank that sends to it: its slots are free again before it gets what it waits for.
        for rank in (0, 1, 3):
            self.assertGreaterEqual(ranks[rank]["peers"], late - 20_000_000, f"rank {rank}")

    def test_slots_that_no_one_waits_for(self):
        """A ring of eight ranks with slices of 16 B: in each of 14 steps a rank waits for the slice of its neighbour, which
        takes as long as on an idle network, behind an ACK and a credit that the NIC of the neighbour sends. Slots become free
        meanwhile; there are more than slices in flight, so that no rank waits for one."""
        ring = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 8, "size": "128 B"}
        messages, path = self.parts(ring, star(8))
        self.assertEqual({part for message in messages for part in message} - {"transfer", "nic"}, set())
        call, ideal = self.rows(path, "collectives")[0], int(table(path, "messages")["ideal"][0])
        self.assertEqual(call["transfer"], 14 * ideal)
        self.assertEqual(set(call) - {"transfer", "nic"}, set())
        self.assertLessEqual(call.get("nic", 0), 14 * 2 * ACK)
        for row in self.rows(path, "ranks"):
            self.assertEqual(set(row) - {"transfer", "nic", "idle"}, set())

    def test_a_slot_that_a_rank_waits_for(self):
        """Four slices of a packet with one slot: each but the first waits until the credit of the one before has crossed two
        links back, behind an ACK. The sender spends FULL on each slice, and waits for the slot until the next one."""
        workload = {"kind": "collective", "collective": "broadcast", "algorithm": "chain", "ranks": 2, "size": f"{4 * MTU} B",
                    "chunk_size": f"{MTU} B", "slices_per_chunk": 1, "credits": 1}
        messages, path = self.parts(workload)
        self.assertEqual(len(messages), 4)
        ideal = int(table(path, "messages")["ideal"][0])
        sender = self.rows(path, "ranks")[0]
        self.assertEqual(ideal, 2 * (FULL + DELAY))
        self.assertEqual(sender["credits"], 3 * (ideal + ACK + 2 * (ACK + DELAY) - FULL))

    def test_slots_at_a_receiver_that_has_not_begun(self):
        """A chain of four ranks with two slots of 16 packets, whose third rank begins 1 ms late. Before that the first rank
        can send four slices, two of which the second has passed on; after that it waits for the third: for a peer, as the
        second rank does, whose slots are at the late one. What the second waits for is told to the first."""
        late = 10**9
        tuning = {"collective": "broadcast", "algorithm": "chain", "size": f"{256 * MTU} B", "chunk_size": f"{16 * MTU} B",
                  "slices_per_chunk": 1, "credits": 2}
        rest = {key: value for key, value in tuning.items() if key in ("algorithm", "chunk_size", "slices_per_chunk", "credits")}
        workload = program(4, {"rank": 2, "id": "slow", "compute": "1 ms"},
                           {"collective": "broadcast", "size": tuning["size"], "id": "weights", "stream": "compute"}, **rest)
        sent_before = 4 * 16 * FULL + 4 * 2 * (FULL + DELAY)
        for network in ({}, {"queues": "output"}, {"fidelity": "ideal"}):
            ranks = self.rows(self.parts(workload, network=network)[1], "ranks")
            for rank in (0, 1, 3):
                self.assertGreaterEqual(ranks[rank]["peers"], late - sent_before, f"rank {rank}")
                self.assertLessEqual(ranks[rank]["peers"], late + sent_before, f"rank {rank}")
                # 16 slices, each of which waits for a slot for no longer than a slice and its credit take.
                self.assertLessEqual(ranks[rank].get("credits", 0), 16 * (16 * FULL + 4 * (FULL + DELAY)), f"rank {rank}")

    def test_links_that_are_slower_than_they_should_be(self):
        """100 packets over two links, of which one has a quarter of its rate: each packet takes 3 FULL longer there, whether
        that is the host's link or one behind it. The rest is what an idle network takes."""
        for link in ("host0", "host1"):
            failures = [{"at": "0 us", "link": [link, "switch0"], "rate": "25 Gb/s"}]
            messages, path = self.parts(program(2, *send(0, 1, f"{100 * MTU} B")), network={"failures": failures})
            ideal = int(table(path, "messages")["ideal"][0])
            self.assertEqual(messages, [{"transfer": ideal, "slowed": 100 * 3 * FULL}], link)
            links = table(path, "links")
            data = {str(name): int(time) for name, time, count in
                    zip(links["from_name"], links["slowed"], links["data_packets"]) if count}
            self.assertEqual(data, {"host0": 100 * 3 * FULL, "switch0": 0} if link == "host0" else
                             {"host0": 0, "switch0": 100 * 3 * FULL})
            rank = self.rows(path, "ranks")[1]
            self.assertEqual(rank["slowed"], 100 * 3 * FULL)

    def test_pauses(self):
        """Four hosts send to one, PFC stops them at their NIC or in the switch: the messages show it."""
        incast = [operation for source in (0, 1, 2, 3) for operation in send(source, 4, "1 MiB")]
        network = {"queues": "output", "flow_control": "pfc", "buffer": {"size": "300 kB"}}
        messages, _ = self.parts(program(5, *incast), star(5), network)
        self.assertGreater(sum(message.get("paused", 0) for message in messages), 0)
        self.assertEqual(sum(message.get("retransmission", 0) for message in messages), 0)

    def test_losses(self):
        """On a link that loses one packet in fifty, retransmission costs time, and no other cause does."""
        network = {"queues": "output", "loss": [{"link": "all", "probability": 0.02}]}
        for recovery in ("go_back_n", "selective_repeat", "go_back_0"):
            messages, _ = self.parts(program(2, *send(0, 1, "1 MB")), network={**network, "recovery": recovery})
            self.assertGreater(messages[0]["retransmission"], 0, recovery)
            self.assertEqual(set(messages[0]) - {"transfer", "retransmission", "reordering", "window", "queueing"}, set())

    def test_congestion_control_is_pacing(self):
        incast = [operation for source in (0, 1, 2, 3) for operation in send(source, 4, "8 MiB")]
        network = {"queues": "output", "congestion_control": "dcqcn", "buffer": {"size": "32 MiB"},
                   "ecn": {"kmin": "100 kB", "kmax": "400 kB", "pmax": 0.2}}
        messages, _ = self.parts(program(5, *incast), star(5), network)
        self.assertGreater(sum(message.get("pacing", 0) for message in messages), 0)

    def two_jobs(self, network=None):
        """Job a sends ten packets over the only link between two switches; job b, at the same time, one."""
        line = {"kind": "graph", "hosts": 4, "switches": 2, "links": [
            {"from": ends[0], "to": ends[1], "rate": "100 Gb/s", "delay": "500 ns"}
            for ends in (("host0", "switch0"), ("host1", "switch0"), ("switch0", "switch1"), ("switch1", "host2"),
                         ("switch1", "host3"))]}
        jobs = [{"name": "a", "placement": {"hosts": [0, 2]}, "workload": program(2, *send(0, 1, f"{10 * MTU} B"))},
                {"name": "b", "placement": {"hosts": [1, 3]}, "workload": program(2, *send(0, 1, f"{MTU} B"))}]
        path = self.parts({"kind": "jobs", "jobs": jobs}, line, network)[1]
        waits = table(path, "link_waits")
        names = table(path, "links")
        return [(str(names["from_name"][link]), int(job), int(ahead), int(time))
                for link, job, ahead, time in zip(waits["link"], waits["job"], waits["ahead"], waits["time"])]

    def test_channels_side_by_side(self):
        """An all-to-all of four servers of eight H100 by NCCL's channels, where 16 GPUs share one or four uplinks. Queues
        are all that an ideal network does not have, so the part of the time that it saves was spent on them; on idle lanes
        while others handle slices, too. A twentieth is for peers, which waited for queues themselves."""
        for spines in (1, 4):
            with self.subTest(spines=spines):
                experiment = {"topology": {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 16, "spines": spines,
                                           "link_rate": "400 Gb/s", "link_delay": "100 ns", "server": {"design": "hgx_h100"}},
                              "network": NETWORK, "output": {"messages": "none"},
                              "workload": {"kind": "collective", "collective": "all_to_all", "size": "16 MiB",
                                           "algorithm": "nccl"}}  # fmt: skip
                path = self.simulate(experiment)[1]
                [job] = self.rows(path, "jobs")
                time = int(table(path, "jobs")["time"][0])
                ideal = self.simulate({**experiment, "network": {**NETWORK, "fidelity": "ideal"}}, output="ideal.h5")[1]
                self.assertEqual(sum(job.values()), 32 * time)
                self.assertAlmostEqual(job["queueing"] / (32 * time), 1 - int(table(ideal, "jobs")["time"][0]) / time,
                                       delta=0.05)

    def test_two_jobs_at_one_link(self):
        """The first packets of both arrive together: one of the two jobs waits for one packet of the other. Job a's last
        packet, which represents it, waits for a packet of b, or for as long behind its own that waited for it."""
        for network in ({}, {"queues": "output"}):
            rows = self.two_jobs(network)
            self.assertEqual({name for name, *_ in rows}, {"switch0"}, rows)
            of_b = [row for row in rows if row[1] == 1]
            of_a = [row for row in rows if row[1] == 0]
            self.assertEqual(sum(row[3] for row in of_a), FULL, rows)
            self.assertIn(of_b, ([], [("switch0", 1, 0, FULL)]), rows)

    def test_levels(self):
        workload = program(2, {"collective": "all_reduce", "size": "64 KiB", "id": "grads"})
        for level, there in (("none", []), ("summary", ["collectives", "jobs", "ranks"]),
                             ("full", ["collectives", "jobs", "messages", "ranks"])):
            path = self.parts(workload, attribution=level)[1]
            having = [name for name in ("collectives", "jobs", "messages", "ranks") if "part_transfer" in table(path, name)]
            self.assertEqual(having, there, level)

    def test_an_unknown_level_is_refused(self):
        experiment = {"topology": star(2), "network": NETWORK, "workload": program(2), "output": {"attribution": "some"}}
        done = weft("run", self.write(experiment), folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("none, summary, full", done.err)

    def test_the_same_on_any_number_of_processes(self):
        workload = {"kind": "collective", "collective": "all_to_all", "algorithm": "pairwise", "ranks": 16,
                    "size": "1 MiB", "iterations": 2}
        fat_tree = {"kind": "fat_tree", "k": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns"}
        for network in ({}, {"queues": "output", "loss": [{"link": "all", "probability": 0.001}]}):
            experiment = {"topology": fat_tree, "network": {**NETWORK, **network}, "workload": workload,
                          "output": {"attribution": "full", "operations": True}}
            alone = self.simulate(experiment, output="alone.h5")[1]
            for ranks in (2, 3, 4, 8):
                several = self.simulate(experiment, output="several.h5", ranks=ranks)[1]
                self.assert_same_results(alone, several, context=f"{ranks} processes, {network}")


if __name__ == "__main__":
    unittest.main()
