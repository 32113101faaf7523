#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 300 s
"""Two fidelities of one program: equal to the picosecond where links carry one flow each, named in every result, and keys
without a meaning without packets are refused or reported to have no effect."""

import pathlib
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, FAT_TREE, NETWORK, STAR, ProgramTest, weft  # noqa: E402

# No ACKs, so that data has the links for itself.
QUIET = {**NETWORK, "ack": "none"}
EIGHT = {"kind": "star", "hosts": 8, "link_rate": "100 Gb/s", "link_delay": "700 ns"}
SERVER = {"kind": "server", "design": "hgx_h100"}


def collective(algorithm, kind, size="1234567 B", **more):
    return {"kind": "collective", "algorithm": algorithm, "collective": kind, "size": size, **more}


# Four stages, micro-batches behind each other.
def pipeline(batches):
    operations = []
    for batch in range(batches):
        for stage in range(4):
            if stage > 0:
                operations.append({"rank": stage, "recv": "3 MB", "from": stage - 1, "tag": batch, "id": f"in{batch}"})
            after = [f"in{batch}"] if stage > 0 else []
            operations.append({"rank": stage, "compute": "90 us", "id": f"f{batch}", "after": after})
            if stage < 3:
                operations.append({"rank": stage, "send": "3 MB", "to": stage + 1, "tag": batch, "after": f"f{batch}"})
    return {"kind": "program", "ranks": 4, "operations": operations}


# On a star each rank sends to one at a time and receives from one, in step with all others.
ALIKE = [
    ("ring", EIGHT, collective("ring", "all_reduce", iterations=2)),
    ("small ring", EIGHT, collective("ring", "all_gather", "100 B")),
    ("ring with kernel times", EIGHT, collective("ring", "reduce_scatter", protocol="ll128", step_latency="1 us",
                                                 reduce_rate="800 Gb/s", launch_latency="4 us")),
    ("neighbours", EIGHT, collective("ring", "send_recv")),
    ("chain", EIGHT, collective("ring", "broadcast")),
    ("halving and doubling", EIGHT, collective("halving_doubling", "all_reduce")),
    ("recursive doubling", EIGHT, collective("recursive_doubling", "all_reduce", chunk_size="1 GiB",
                                             slices_per_chunk=1)),
    ("pairwise", EIGHT, collective("pairwise", "all_to_all")),
    ("swing", EIGHT, collective("swing", "all_reduce")),
    ("bruck", EIGHT, collective("bruck", "all_gather")),
    ("ring on a fat-tree", FAT_TREE, collective("ring", "all_reduce")),
    ("shift", EIGHT, {"kind": "traffic", "pattern": "pairs", "pairs": [[i, (i + 3) % 8] for i in range(8)],
                      "size": "777777 B"}),
    ("ring of NVLink", SERVER, {**collective("ring", "all_reduce"), "channels": 1}),
    ("neighbours of a torus", {"kind": "torus", "dims": [8], "link_rate": "100 Gb/s", "link_delay": "50 ns"},
     collective("ring", "all_reduce")),
    ("pipeline", {**STAR, "link_rate": "100 Gb/s"}, pipeline(3)),
]  # fmt: skip


class TwoFidelities(ProgramTest):
    def tables(self, topology, network, workload, fidelity):
        text = {"topology": topology, "network": {**network, "fidelity": fidelity}, "workload": workload,
                "simulation": {"seed": 1}, "output": {"operations": True}}  # fmt: skip
        summary, path = self.simulate(text, output=f"{fidelity}.h5")
        self.assertEqual(summary["fidelity"], fidelity)
        with h5py.File(path) as file:
            self.assertEqual(file["manifest/model"].attrs["fidelity"], fidelity)
            rows = {table: {name: file[table][name][:] for name in file[table]} for table in
                    ("messages", "collectives", "ranks", "operations", "links")}  # fmt: skip
        order = numpy.argsort(rows["messages"]["id"])
        rows["messages"] = {name: column[order] for name, column in rows["messages"].items()}
        return summary, rows

    def assert_alike(self, name, topology, network, workload, links=True):
        one, packet = self.tables(topology, network, workload, "packet")
        two, ideal = self.tables(topology, network, workload, "ideal")
        self.assertEqual(one["simulated_time_ps"], two["simulated_time_ps"], name)
        self.assertGreater(one["packet_hops"], 0)
        self.assertEqual(two["packet_hops"], 0)
        self.assertGreater(len(packet["messages"]["id"]), 0, name)
        for table in ("messages", "collectives", "ranks", "operations"):
            for column, values in packet[table].items():
                if column == "queueing" or column.startswith(("slow_", "part_")):
                    continue  # waiting that is counted packet by packet; simulate() checks what parts add up to
                self.assertTrue((values == ideal[table][column]).all(), f"{name}: {table}/{column}")
        for column in ("bytes", "payload_bytes", "packets", "data_packets", "busy"):
            if links:
                self.assertEqual(packet["links"][column].tolist(), ideal["links"][column].tolist(), f"{name}: {column}")

    def test_equal_where_each_link_carries_one_flow(self):
        for name, topology, workload in ALIKE:
            with self.subTest(name):
                self.assert_alike(name, topology, QUIET, workload)

    def test_equal_with_acks_that_meet_no_data(self):
        self.assert_alike("pipeline", EIGHT, {**NETWORK, "window": "1 GiB"}, pipeline(1), links=False)
        chain = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1], [2, 3], [4, 5]], "size": "5 MB"}
        self.assert_alike("pairs", EIGHT, {**NETWORK, "window": "1 GiB"}, chain, links=False)

    def test_contention_makes_the_difference(self):
        incast = {"kind": "traffic", "pattern": "incast", "size": "1 MB"}
        over_one_spine = {"kind": "leaf_spine", "leaves": 2, "hosts_per_leaf": 4, "spines": 1,
                          "link_rate": "100 Gb/s", "link_delay": "500 ns"}  # fmt: skip
        shift = {"kind": "traffic", "pattern": "pairs", "pairs": [[i, (i + 4) % 8] for i in range(8)], "size": "1 MB"}
        packet, _ = self.tables(over_one_spine, QUIET, shift, "packet")
        ideal, _ = self.tables(over_one_spine, QUIET, shift, "ideal")
        self.assertGreater(packet["simulated_time_ps"], 3.5 * ideal["simulated_time_ps"])
        # The port of one receiver is an endpoint: it serves no more than its rate in both.
        packet, _ = self.tables(EIGHT, QUIET, incast, "packet")
        ideal, _ = self.tables(EIGHT, QUIET, incast, "ideal")
        self.assertEqual(packet["simulated_time_ps"], ideal["simulated_time_ps"])


class Words(ProgramTest):
    def experiment(self, network=None, **more):
        return {"topology": STAR, "network": {"fidelity": "ideal", **(network or {})},
                "workload": collective("ring", "all_reduce"), **more}  # fmt: skip

    def refused(self, text, *words):
        done = weft("run", self.write(text), "-o", "out.h5", *words, folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertEqual(len(done.messages()), 1, done)
        self.assertRegex(done.messages()[0], r"experiment\.yaml:\d+: ")
        return done.messages()[0]

    def test_results_name_their_fidelity(self):
        for fidelity in ("packet", "ideal"):
            path = self.write(self.experiment({"fidelity": fidelity}))
            self.assertRegex(self.run_weft("run", path, "-o", "out.h5").out, rf"fidelity +{fidelity}")
            self.assertRegex(self.run_weft("describe", path).out, rf"fidelity +{fidelity}")

    def test_faults_are_refused(self):
        for key, value in (("loss", [{"link": "all", "probability": 0.01}]),
                           ("failures", [{"at": "1 ms", "link": ["host0", "switch0"]}]),
                           ("ns3_attributes", {"/Names/host0/DeviceList/0/DataRate": "1Gbps"})):  # fmt: skip
            self.assertIn(f"`network.{key}`: found with fidelity: ideal", self.refused(self.experiment({key: value})))

    def test_no_faults_and_no_transfers_are_accepted(self):
        """As a study turns them off."""
        alone, _ = self.simulate(self.experiment())
        none = {**self.experiment({"loss": [], "failures": [], "reconvergence": "1 us", "ns3_attributes": {}}),
                "background": []}
        self.assertEqual(self.simulate(none)[0]["fingerprint"], alone["fingerprint"])

    def test_what_needs_packets_is_refused(self):
        text = self.experiment(output={"pcap": ["host0:0"]})
        self.assertIn("`output.pcap`: found with fidelity: ideal", self.refused(text))
        self.assertIn("--verify", self.refused(self.experiment(), "--verify"))
        self.assertIn("--engine ns3-default", self.refused(self.experiment(), "--engine", "ns3-default"))

    def test_misspelt(self):
        self.assertIn("did you mean 'ideal'", self.refused(self.experiment({"fidelity": "idael"})))

    def test_what_has_no_effect_is_said_and_has_none(self):
        plain, _ = self.simulate(self.experiment())
        more = {"window": "8 KiB", "congestion_control": "dcqcn", "buffer": {"size": "1 MiB"}, "flow_control": "pfc"}
        text = self.experiment(more, output={"sampling": "1 us"})
        said = self.run_weft("describe", self.write(text)).out
        self.assertRegex(said, r"without effect in it +window, buffer, flow_control, congestion_control, output.sampling")
        summary, path = self.simulate(text)
        self.assertEqual(summary["fingerprint"], plain["fingerprint"])
        with h5py.File(path) as file:
            for table in ("links_series", "queue_pairs", "receivers", "link_classes"):
                self.assertNotIn(table, file)

    def test_perf_names_it(self):
        path = self.write({"topology": STAR, "network": {"fidelity": "ideal"}})
        words = ["perf", "all_reduce", path, "-b", "1M", "-e", "1M"]
        self.assertIn("fidelity ideal", self.run_weft(*words).out)


if __name__ == "__main__":
    unittest.main()
