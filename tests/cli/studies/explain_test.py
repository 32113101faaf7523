#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""`weft explain`: the critical path is a chain without a gap that adds up to the time of the run, and known answers:
a straggler, a bottleneck, a link that two jobs share."""

import itertools
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, SOURCE, ProgramTest, table, weft  # noqa: E402

sys.path.insert(0, str(SOURCE / "scripts"))
import weft_results  # noqa: E402
from weft_results import critical_path, slack  # noqa: E402

OUTPUT = {"attribution": "full", "operations": True}
STAR = {"kind": "star", "hosts": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns"}
FAT_TREE = {"kind": "fat_tree", "k": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns"}


def collective(**more):
    return {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 16, "size": "1 MiB",
            "iterations": 2, "gap": "10 us", **more}


def program(*operations, ranks=4):
    return {"kind": "program", "ranks": ranks, "operations": list(operations)}


class Explain(ProgramTest):
    def run_it(self, workload, topology=None, network=None, output=None, name="out.h5", ranks=None):
        experiment = {"topology": topology or STAR, "network": {**NETWORK, **(network or {})}, "workload": workload,
                      "output": {**OUTPUT, **(output or {})}}
        return self.simulate(experiment, output=name, ranks=ranks)[1]

    def steps(self, path):
        with weft_results.open(path) as run:
            return critical_path.critical_path(run)

    def explained(self, path):
        return json.loads(self.run_weft("explain", path, "--json").out)

    def assert_chain(self, path):
        """From 0 to the end of the last operation, each step where the one before ended; messages by their parts."""
        steps = self.steps(path)
        self.assertEqual(steps[0].start, 0)
        self.assertEqual(steps[-1].end, int(table(path, "operations")["end"].max()))
        for before, after in zip(steps, steps[1:]):
            self.assertEqual(before.end, after.start)
        self.assertEqual(sum(critical_path.sums(steps).values()), steps[-1].end)
        for step in steps:
            self.assertGreater(step.time, 0)
        return steps

    def test_windows_of_congestion_control(self):
        """With congestion control it is not known what messages would wait for acknowledgements on an idle network: they wait here, at
        leaves over which four hosts of each send to the other's, and count as they are in the file."""
        tree = {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 4, "link_rate": "100 Gb/s", "link_delay": "5 us"}
        path = self.run_it(collective(ranks=8, size="8 MiB"), tree, {"congestion_control": "dcqcn", "window": "64 KiB"})
        self.assertGreater(table(path, "messages")["part_window"].max(), 0)
        self.assertGreater(self.explained(path)["critical_path"]["sums"]["window"], 0)

    def test_sampled_messages_are_told_as_such(self):
        """An exchange over one link between two switches: of the messages that waited there one in ten has a row."""
        tree = {"kind": "leaf_spine", "leaves": 2, "spines": 1, "hosts_per_leaf": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns"}
        for sample, words in ((10, {"messages": "sampled", "message_sample": 10}), (1, {})):
            path = self.run_it(collective(ranks=8, algorithm="recursive_doubling", size="4 MiB"), tree, output=words)
            self.assertEqual(self.explained(path)["message_sample"], sample)
            self.assertEqual(" of one message in 10\n" in self.run_weft("explain", path).out, sample == 10)
            with weft_results.open(path) as run:
                self.assertEqual(run.message_sample, sample)

    def test_waits_for_late_acknowledgements(self):
        """A window of 256 KiB takes 21.4 us at 100 Gb/s, and a round trip over two links of 500 ns less than 4. So a message alone
        does not wait, and of two to one host each waits for packets of the other: half of the time is queueing. With a
        window of a packet a message alone waits for acknowledgements, and nothing queues."""
        pairs = {"kind": "program", "ranks": 4, "operations": [
            {"rank": 0, "send": "8 MiB", "to": 2}, {"rank": 2, "recv": "8 MiB", "from": 0},
            {"rank": 1, "send": "8 MiB", "to": 3}, {"rank": 3, "recv": "8 MiB", "from": 1}]}
        shared = json.loads(json.dumps(pairs).replace('"to": 3', '"to": 2').replace('"rank": 3', '"rank": 2'))
        network = {"window": "256 KiB"}
        found = critical_path.sums(self.steps(self.run_it(shared, network=network)))
        self.assertNotIn("window", found)
        self.assertAlmostEqual(found["queueing"] / sum(found.values()), 0.5, delta=0.02)
        found = critical_path.sums(self.steps(self.run_it(pairs, network={"window": "4 KiB"}, name="alone.h5")))
        self.assertGreater(found["window"] / sum(found.values()), 0.5)
        self.assertNotIn("queueing", found)

    def test_waits_for_slots(self):
        """A slot at a receiver is free when this one sends on what it holds. So the path goes on to what the receiver waited for,
        here a link of a quarter of the rate, or a link that a ring crosses twice, and no longer than a credit is on its way
        on an idle network is said to be a wait for slots: 4 links of 500 ns, a packet at each of 3 switches, and its frame."""
        leaves = {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 2, "link_rate": "100 Gb/s", "link_delay": "500 ns"}
        slow = {**leaves, "what_if": [{"link": ["leaf0", "host2"], "rate": 0.25}]}
        ring = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 8, "size": "8 MiB"}
        packet, ack = (4096 + 62 + 20) * 80, (66 + 20) * 80  # ps at 100 Gb/s
        way = 4 * 500_000 + 3 * packet + ack
        for topology, workload in ((slow, {**ring, "channels": 2}),
                                   ({**leaves, "spines": 1}, {**ring, "placement": {"hosts": [0, 4, 5, 1, 2, 6, 7, 3]}})):
            with self.subTest(workload):
                steps = self.assert_chain(self.run_it(workload, topology, {"window": "1 MiB"}))
                credits = [step for step in steps if step.kind == "credits"]
                self.assertGreater(sum(step.time for step in credits), 0.05 * steps[-1].end)  # how much there is to explain
                for step in credits:
                    self.assertLessEqual(critical_path.sums([step]).get("credits", 0), way)

    def test_the_path_is_a_chain(self):
        workloads = [collective(), collective(collective="all_to_all", algorithm="pairwise"),
                     collective(algorithm="double_binary_tree", step_latency="1 us", launch_latency="3 us"),
                     collective(algorithm="recursive_doubling", size="4 KiB")]
        networks = [{}, {"queues": "output", "loss": [{"link": "all", "probability": 0.001}]}, {"fidelity": "ideal"}]
        for workload in workloads:
            for network in networks:
                with self.subTest(workload=workload, network=network):
                    self.assert_chain(self.run_it(workload, FAT_TREE, network))

    def test_without_acknowledgements_the_next_message_waits_until_one_has_left(self):
        chain = self.run_it(program({"rank": 0, "id": "first", "send": "1 MiB", "to": 1},
                                    {"rank": 0, "id": "second", "send": "1 KiB", "to": 2, "after": ["first"]},
                                    {"rank": 1, "recv": "1 MiB", "from": 0},
                                    {"rank": 2, "id": "got", "recv": "1 KiB", "from": 0},
                                    {"rank": 2, "compute": "1 ms", "after": ["got"]}), network={"ack": "none"})
        self.assertEqual([step.kind for step in self.assert_chain(chain)], ["sending", "message", "compute"])

    def test_of_a_training_step(self):
        path = self.folder / "step.h5"
        self.run_weft("run", SOURCE / "workloads" / "quickstart.yaml", "-o", path, "--quiet", "--set",
                      "output.attribution=full", "--set", "output.operations=true")
        steps = self.assert_chain(path)
        compute = int(table(path, "ranks")["compute"].max())
        self.assertLessEqual(sum(step.time for step in steps if step.kind == "compute"), compute)

    def test_it_is_the_same_for_any_number_of_processes(self):
        for network in ({}, {"fidelity": "ideal"}):
            alone = self.steps(self.run_it(collective(), FAT_TREE, network))
            for ranks in (2, 3, 4, 8):
                self.assertEqual(alone, self.steps(self.run_it(collective(), FAT_TREE, network, ranks=ranks)))

    def test_a_straggler(self):
        """Rank 2 computes 1 ms before an all-reduce that all others begin at once: the path is its compute operation,
        and then the all-reduce."""
        path = self.run_it(program({"rank": 2, "id": "slow", "compute": "1 ms"},
                                   {"collective": "all_reduce", "algorithm": "ring", "size": "64 KiB", "id": "grads",
                                    "stream": "compute"}))
        steps = self.assert_chain(path)
        self.assertEqual((steps[0].kind, steps[0].rank, steps[0].label, steps[0].time), ("compute", 2, "slow", 10**9))
        self.assertEqual({step.kind for step in steps[1:]} - {"message", "handling", "credits", "launch"}, set())
        result = self.explained(path)
        self.assertEqual(result["critical_path"]["operations"][0]["label"], "slow")

    def test_a_background_job_is_not_on_the_path(self):
        """A job computes 300 us. Another one, in the background, sends until the run ends, which is when weft finds that the
        first has ended, 1 ps before 400 us. The path is the compute operation, and the messages have no slack to show."""
        noise = {"kind": "traffic", "ranks": 2, "pattern": "pairs", "pairs": [[0, 1]], "size": "64 KiB",
                 "start": {"process": "periodic", "interval": "10 us"}}
        jobs = [{"name": "work", "placement": {"hosts": [0]},
                 "workload": program({"rank": 0, "id": "work", "compute": "300 us"}, ranks=1)},
                {"name": "noise", "background": True, "placement": {"hosts": [1, 2]}, "workload": noise}]
        path = self.run_it({"kind": "jobs", "jobs": jobs})
        self.assertGreater(int(table(path, "operations")["end"].max()), 300 * 10**6)
        result = self.explained(path)
        self.assertEqual([(one["label"], one["start"], one["end"]) for one in result["critical_path"]["operations"]],
                         [("work", 0, 300 * 10**6)])
        self.assertEqual(result["slack"], {"ranks": [{"rank": 0, "slack": 0, "label": "work"}], "communication": []})

    def slacks(self, path):
        """{label: ps} of the operations of a run."""
        with weft_results.open(path) as run:
            return dict(zip(run.column("operations", "label").tolist(), slack.slack(run).tolist()))

    def waiting_program(self, longer=0):
        """Rank 0 computes 1 ms and sends to rank 1, which has computed 0.3 ms and waits; rank 2 computes 0.2 ms, and its
        message waits at rank 1; rank 3 computes beside all that. `longer`: ps that rank 1 computes more."""
        return program(
            {"rank": 0, "id": "long", "compute": "1 ms"},
            {"rank": 0, "id": "late", "send": "1 MiB", "to": 1, "after": ["long"]},
            {"rank": 1, "id": "short", "compute": f"{300_000_000 + longer} ps"},
            {"rank": 1, "id": "got", "recv": "1 MiB", "from": 0, "after": ["short"]},
            {"rank": 2, "id": "other", "compute": "200 us"},
            {"rank": 2, "id": "early", "send": "1 KiB", "to": 1, "after": ["other"]},
            {"rank": 1, "id": "found", "recv": "1 KiB", "from": 2, "after": ["got"]},
            {"rank": 1, "id": "last", "compute": "50 us", "after": ["found"]},
            {"rank": 3, "id": "alone", "compute": "100 us"})

    def test_slack_by_hand(self):
        """The operations that must not move: rank 0's compute, its message, and rank 1's next operations. Rank 1 would have
        waited for the message until its delivery; the message of rank 2 until rank 1 asks for it, which is when it has the
        other."""
        path = self.run_it(self.waiting_program())
        found, end = self.slacks(path), int(table(path, "operations")["end"].max())
        messages = table(path, "messages")
        delivered = {int(source): int(time) for source, time in zip(messages["source"], messages["delivered"])}
        self.assertEqual(end, delivered[0] + 50 * 10**6)
        self.assertEqual({name for name, time in found.items() if time == 0}, {"long", "late", "got", "found", "last"})
        self.assertEqual(found["short"], delivered[0] - 300 * 10**6)
        self.assertEqual(found["other"], delivered[0] - delivered[2])
        self.assertEqual(found["early"], delivered[0] - delivered[2])
        self.assertEqual(found["alone"], end - 100 * 10**6)

    def test_slack_is_how_much_longer_an_operation_can_take(self):
        """Another run, in which rank 1 computes longer by its slack, ends at the same time; by 1 ns more, 1 ns later."""
        paths = [self.run_it(self.waiting_program())]
        free = self.slacks(paths[0])["short"]
        paths += [self.run_it(self.waiting_program(free + more), name=f"{more}.h5") for more in (0, 1000)]
        ends = [int(table(path, "operations")["end"].max()) for path in paths]
        self.assertEqual(ends, [ends[0], ends[0], ends[0] + 1000])

    def test_slack_of_ranks_that_wait_for_a_straggler(self):
        """Rank r computes (r + 1) x 100 us and takes part in an all-reduce: it could have started as late as rank 3."""
        path = self.run_it(program(*({"rank": rank, "id": "work", "compute": f"{100 * (rank + 1)} us"}
                                     for rank in range(4)),
                                   {"collective": "all_reduce", "algorithm": "ring", "size": "64 KiB", "id": "grads",
                                    "after": "work"}))
        result = self.explained(path)["slack"]
        self.assertEqual([(rank["rank"], rank["slack"]) for rank in result["ranks"]],
                         [(rank, (3 - rank) * 100 * 10**6) for rank in (3, 2, 1, 0)])
        self.assertEqual([(one["name"], one["calls"], one["critical"]) for one in result["communication"]],
                         [("grads", 1, 1)])
        self.assertIn("rank 2 (work)", self.run_weft("explain", path).out)

    def test_slack_of_communication_beside_compute(self):
        """An all-reduce beside 5 ms of compute: it could have taken as long as these."""
        path = self.run_it(program({"rank": "all", "id": "step", "compute": "5 ms"},
                                   {"collective": "all_reduce", "algorithm": "ring", "size": "64 KiB", "id": "grads",
                                    "stream": "communication"}))
        call = table(path, "collectives")
        result = self.explained(path)["slack"]
        self.assertEqual([one["min"] for one in result["communication"]], [5 * 10**9 - int(call["end"][0])])
        self.assertEqual([rank["slack"] for rank in result["ranks"]], [0] * 4)

    def test_slack_is_the_same_for_any_number_of_processes(self):
        for network in ({}, {"fidelity": "ideal"}):
            alone = self.run_it(collective(), FAT_TREE, network)
            expected = self.explained(alone)["slack"]
            for ranks in (2, 3, 4, 8):
                self.assertEqual(self.explained(self.run_it(collective(), FAT_TREE, network, ranks=ranks))["slack"], expected)

    def test_a_bottleneck_is_named_first(self):
        """Three hosts behind one switch send to hosts behind another over a single link of a quarter of their rate."""
        links = [{"from": f"host{i}", "to": f"switch{i // 3}", "rate": "400 Gb/s"} for i in range(6)]
        links.append({"from": "switch0", "to": "switch1", "rate": "100 Gb/s"})
        machine = {"kind": "graph", "hosts": 6, "switches": 2, "link_delay": "500 ns", "links": links}
        operations = []
        for source in range(3):
            operations += [{"rank": source, "send": "1 MiB", "to": source + 3},
                           {"rank": source + 3, "recv": "1 MiB", "from": source}]
        path = self.run_it(program(*operations, ranks=6), machine, {"window": "4 MiB"})
        first = self.explained(path)["links"][0]
        self.assertEqual((first["from"], first["to"]), ("switch0", "switch1"))
        text = self.run_weft("explain", path).out
        self.assertIn("links that delayed messages most", text)

    def test_jobs_at_a_shared_link(self):
        path = self.folder / "jobs.h5"
        self.run_weft("run", SOURCE / "workloads" / "two_jobs_sharing_a_spine.yaml", "-o", path, "--quiet")
        waits, links = table(path, "link_waits"), self.explained(path)["links"]
        self.assertEqual(sum(link["time"] for link in links), int(waits["time"].sum()))
        for link in links:
            rows = waits["link"] == link["link"]
            self.assertEqual(sum(link["ahead"].values()), int(waits["time"][rows].sum()))
        self.assertTrue(any({"job a", "job b"} <= set(link["ahead"]) for link in links))
        text = self.run_weft("explain", path).out
        self.assertIn("the critical path needs rows of all messages with causes", text)

    def test_a_paused_victim_names_the_incast(self):
        """Ranks 1 to 3 send to rank 0, whose link has a tenth of the rate; rank 4 sends to rank 5 through the same two
        switches. Switch 1 fills and stops the link between the switches, then switch 0 fills and stops all that send."""
        links = [{"from": f"host{host}", "to": f"switch{host in (0, 5):d}", "rate": "10 Gb/s" if host == 0 else "100 Gb/s"}
                 for host in range(6)] + [{"from": "switch0", "to": "switch1", "rate": "100 Gb/s"}]
        machine = {"kind": "graph", "hosts": 6, "switches": 2, "link_delay": "500 ns", "links": links}
        operations = []
        for source, destination in [(1, 0), (2, 0), (3, 0), (4, 5)]:
            operations += [{"rank": source, "send": "4 MB", "to": destination},
                           {"rank": destination, "recv": "4 MB", "from": source}]
        # Pause frames, and credits: of these the inputs of switches are what fills.
        networks = [{"flow_control": "pfc", "buffer": {"size": "1 MB"}, "window": "16 MB"},
                    {"flow_control": "credit", "window": "16 MB"}]
        for network, ranks in itertools.product(networks, (None, 3)):
            path = self.run_it(program(*operations, ranks=6), machine, network, ranks=ranks, name=f"{ranks}.h5")
            trees = self.explained(path)["pauses"]
            self.assertEqual([(tree["from"], tree["to"]) for tree in trees], [("switch1", "host0")])
            stopped = {(link["from"], link["to"]) for link in trees[0]["links"]}
            self.assertEqual(stopped, {("switch0", "switch1"), *((f"host{host}", "switch0") for host in (1, 2, 3, 4))})
            self.assertEqual([(pair["source"], pair["bytes"]) for pair in trees[0]["senders"]],
                             [(source, 4_000_000) for source in (1, 2, 3)])
            self.assertEqual([(pair["source"], pair["destination"]) for pair in trees[0]["victims"]], [(4, 5)])
            text = self.run_weft("explain", path).out
            self.assertIn("held up on their way elsewhere: 4 -> 5", text)

    def test_links_that_lost_packets(self):
        """One link of four loses packets in both directions: /links counts them, and no other link is named."""
        path = self.run_it(collective(ranks=4), network={"loss": [{"link": ["host1", "switch0"], "probability": 0.05}]})
        links = table(path, "links")
        counts = {(str(source), str(target)): int(lost) for source, target, lost in
                  zip(links["from_name"], links["to_name"], links["lost"]) if lost}
        self.assertEqual(set(counts), {("host1", "switch0"), ("switch0", "host1")})
        losses = self.explained(path)["losses"]
        self.assertEqual({(one["from"], one["to"]): one["lost"] for one in losses}, counts)
        self.assertEqual([one["lost"] for one in losses], sorted(counts.values(), reverse=True))
        self.assertIn(f"{losses[0]['from']} -> {losses[0]['to']}: {losses[0]['lost']} were sent and did not arrive, 0 found no",
                      self.run_weft("explain", path).out)
        self.assertEqual(self.explained(self.run_it(collective(ranks=4), name="whole.h5"))["losses"], [])

    def test_links_that_sent_below_their_rate(self):
        """Four ranks send 2 x 3/4 of 1 MiB each in a ring; the link of one has a quarter of its rate all the time: b bytes take
        b / (R/4), 3 b / R longer."""
        slow = {"failures": [{"at": "0 us", "link": ["host1", "switch0"], "rate": "25 Gb/s"}]}
        path = self.run_it(collective(ranks=4), network=slow)
        links = table(path, "links")
        sent = {(str(source), str(target)): int(size) for source, target, size in
                zip(links["from_name"], links["to_name"], links["bytes"]) if "host1" in (source, target)}
        slowed = self.explained(path)["slowed"]
        self.assertEqual({(one["from"], one["to"]) for one in slowed}, set(sent))
        for one in slowed:
            due = 3 * sent[one["from"], one["to"]] * 8 * 10**12 / (100 * 10**9)
            self.assertAlmostEqual(one["longer"] / due, 1, places=4)
            self.assertAlmostEqual(one["average"] / 25e9, 1, places=4)
        text = self.run_weft("explain", path).out
        self.assertIn("switch0 -> host1 at 25 Gb/s instead of 100 Gb/s, for", text)
        self.assertEqual(self.explained(self.run_it(collective(ranks=4), name="whole.h5"))["slowed"], [])

    def test_an_nvlink_that_sent_below_its_rate(self):
        """NVLinks are busy with flits that `bytes` does not count; how much longer they were busy does not follow from it."""
        server = {"kind": "star", "hosts": 8, "link_rate": "400 Gb/s", "link_delay": "500 ns", "server": {"design": "hgx_h100"}}
        slow = {"failures": [{"at": "0 us", "link": ["server0/gpu3/port", "server0/nvswitch0"], "rate": "36 Gb/s"}]}
        path = self.run_it({"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "1 MiB"}, server,
                           network=slow)
        links = table(path, "links")
        slowed = self.explained(path)["slowed"]
        self.assertEqual({(one["from"], one["to"]) for one in slowed},
                         {("server0/gpu3/port", "server0/nvswitch0"), ("server0/nvswitch0", "server0/gpu3/port")})
        busy = {(str(source), str(target)): int(time) for source, target, time in
                zip(links["from_name"], links["to_name"], links["busy"])}
        for one in slowed:
            # A hundredth of its rate all the time: 99 % of what it was busy.
            self.assertAlmostEqual(one["average"] / 36e9, 1, places=4)
            self.assertAlmostEqual(one["longer"] / busy[one["from"], one["to"]], 0.99, places=4)

    def test_without_pauses_nobody_is_to_blame(self):
        self.assertEqual(self.explained(self.run_it(collective(), FAT_TREE))["pauses"], [])

    def test_an_idle_network_delays_nobody(self):
        path = self.run_it(program({"rank": 0, "send": "1 MiB", "to": 1}, {"rank": 1, "recv": "1 MiB", "from": 0}))
        self.assertEqual(self.explained(path)["links"], [])
        self.assertIn("no message waited for others", self.run_weft("explain", path).out)

    def test_a_run_without_time(self):
        self.simulate({"topology": STAR, "network": NETWORK, "workload": {
            "kind": "collective", "collective": "all_reduce", "size": "0 B"}})
        said = self.run_weft("explain", "out.h5").out
        self.assertIn("it took no time", said)
        self.assertNotIn("output.attribution is none", said)

    def test_what_is_no_result_file_is_refused(self):
        (self.folder / "text.h5").write_text("nothing")
        done = weft("explain", "text.h5", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertNotIn("Traceback", done.err)


if __name__ == "__main__":
    unittest.main()
