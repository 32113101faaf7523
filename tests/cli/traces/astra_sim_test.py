# SPDX-License-Identifier: GPL-2.0-only
"""Experiments of ASTRA-sim: a ring of 128 NPUs in its files and in weft's, steps, bytes and times; networks of its ns-3
backend; features without a counterpart."""

# Time limit: 300 s

import json
import math
import pathlib
import sys
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import chakra_files as et  # noqa: E402
import weft_testing  # noqa: E402
from weft_testing import EXIT_INPUT, NETWORK, STAR, picoseconds_to_send, table  # noqa: E402

N, CHUNKS, MESSAGE = 128, 4, 16384
SIZE = N * CHUNKS * MESSAGE
GIB, RATE, LATENCY, DELAY, MEMORY = 2**30, 50, 500, 10, 1600
SYSTEM = {"scheduling-policy": "LIFO", "endpoint-delay": DELAY, "active-chunks-per-dimension": 1,
          "preferred-dataset-splits": CHUNKS, "collective-optimization": "localBWAware", "local-mem-bw": MEMORY,
          **{f"{kind}-implementation": ["ring"]
             for kind in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")}}
CONFIG = """ENABLE_QCN 1
USE_DYNAMIC_PFC_THRESHOLD 1
PACKET_PAYLOAD_SIZE 1000
CC_MODE 1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
RP_TIMER 900
EWMA_GAIN 0.00390625
FAST_RECOVERY_TIMES 1
RATE_AI 50Mb/s
RATE_HAI 100Mb/s
MIN_RATE 100Mb/s
L2_ACK_INTERVAL 1
HAS_WIN 1
VAR_WIN 1
BUFFER_SIZE 32
KMAX_MAP 2 100000000000 1600 400000000000 3200
KMIN_MAP 2 100000000000 400 400000000000 800
PMAX_MAP 2 100000000000 0.2 400000000000 0.2
FCT_OUTPUT_FILE fct.txt
ACK_HIGH_PRIO 1
"""


def physical(hosts, rate="400Gbps"):
    """Hosts 0, 1, ... on one switch, as in the backend's files."""
    links = "".join(f"{host} {hosts} {rate} 0.0005ms 0\n" for host in range(hosts))
    return f"{hosts + 1} 1 {hosts}\n{hosts}\n{links}"


class AstraSim(weft_testing.ProgramTest):
    def prepare(self, ranks, size, system=SYSTEM):
        et.write(self.folder, [[et.node(1, et.COLL, comm_type=et.ALL_REDUCE, comm_size=size)]] * ranks, "reduce")
        self.write(json.dumps(system, indent=1), "system.json")

    def imported(self, network, *more, output="out.yaml"):
        done = self.run_weft("import", "astra-sim", "--workload", "reduce", "--system", "system.json", "--network",
                             network, "-o", output, "--json", *more)
        return json.loads(done.out), yaml.safe_load((self.folder / output).read_text())

    def ring(self):
        self.prepare(N, SIZE)
        self.write(f"topology: [Ring]\nnpus_count: [{N}]\nbandwidth: [{RATE}]\nlatency: [{LATENCY}]\n", "ring.yml")
        return self.imported("ring.yml")

    def test_a_ring_of_128_has_the_same_steps_and_bytes_as_weft_s_own(self):
        _, experiment = self.ring()
        theirs, their_file = self.simulate(self.folder / "out.yaml", output="theirs.h5")
        ours = {"topology": experiment["topology"], "network": experiment["network"],
                "workload": {"kind": "collective", "collective": "all_reduce", "size": f"{SIZE} B", "algorithm": "ring",
                             "channels": 1, "chunk_size": f"{MESSAGE} B", "slices_per_chunk": 1}}
        own, own_file = self.simulate(ours, output="own.h5")
        # Ring.cc of ASTRA-sim: 2 (n - 1) messages of S / (C n) from each NPU for each of C chunks.
        self.assertEqual(theirs["messages"], N * CHUNKS * 2 * (N - 1))
        self.assertEqual(own["messages"], theirs["messages"])
        self.assertEqual(theirs["bytes_delivered"], N * CHUNKS * 2 * (N - 1) * MESSAGE)
        one, other = table(their_file, "links"), table(own_file, "links")
        for column in ("bytes", "packets"):
            self.assertEqual(one[column].tolist(), other[column].tolist(), column)

    def test_its_time_is_the_closed_form(self):
        """docs/tutorial/importing.md, "How far times agree"."""
        self.ring()
        summary, _ = self.simulate(self.folder / "out.yaml", output="theirs.h5")
        link, memory = RATE * GIB / 1e9, MEMORY  # B/ns
        packets = math.ceil(MESSAGE / 4096)
        last = MESSAGE - 4096 * (packets - 1)
        passage = LATENCY + (MESSAGE + 82 * packets) / link + (4096 + 82 + last + 82) / (2 * link)
        due = CHUNKS * (2 * (N - 1) * (DELAY + passage) + (N - 1) * 3 * MESSAGE / memory)
        self.assertAlmostEqual(summary["collectives"][0]["time_ps"] / 1000, due, delta=due * 1e-4)
        theirs = CHUNKS * (2 * (N - 1) * (DELAY + LATENCY + MESSAGE / link) + (N - 1) * 3 * MESSAGE / memory + DELAY)
        self.assertGreater(due, theirs)

    def test_windows_of_direct_algorithms(self):
        """direct4: AllToAll::run sends at most so many messages beyond those that have arrived. An all-gather of 4 ranks with
        one packet each on a star, t for a packet to pass a link, d a link's delay; in each turn all have other receivers. All
        at once: three packets behind each other, 4 t + 2 d. Window 1: three messages one after another, 3 (2 t + 2 d). Window
        2: the third is sent when the first has arrived, 2 (2 t + 2 d)."""
        t, d = picoseconds_to_send(4000 + 82, 400 * 10**9), 500_000
        for name, due in (("direct", 4 * t + 2 * d), ("direct1", 3 * (2 * t + 2 * d)), ("direct2", 2 * (2 * t + 2 * d)),
                          ("direct9", 4 * t + 2 * d)):
            with self.subTest(name):
                summary, _ = self.simulate({
                    "topology": STAR, "network": {**NETWORK, "ack": "none"}, "simulation": {"seed": 1},
                    "workload": {"kind": "collective", "collective": "all_gather", "ranks": 4, "size": "16000 B",
                                 "algorithm": "by_dimension", "dimensions": [4], "dimension_algorithms": [name]}})
                self.assertEqual(summary["simulated_time_ps"], due)
        self.prepare(4, 4096, {**SYSTEM, "all-to-all-implementation": ["direct4"]})
        self.write("topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n", "ring.yml")
        read, _ = self.imported("ring.yml")
        self.assertEqual([one for one in read["refused"] if "direct4" in one["what"]], [])
        self.assertIn("direct4", (self.folder / "out.yaml").read_text())

    def test_what_has_no_counterpart_is_listed_everywhere(self):
        system = {**SYSTEM, "boost-mode": 0, "replay-only": 1, "spam": 2,
                  "model-shared-bus": 1, "L": 10}
        self.prepare(4, 4096, system)
        self.write("topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [500]\n", "ring.yml")
        read, _ = self.imported("ring.yml")
        text = (self.folder / "out.yaml").read_text()
        for key, list_ in {"replay-only": "refused", "model-shared-bus": "refused",
                           "L": "refused",
                           "boost-mode": "ignored", "spam": "ignored", "scheduling-policy": "ignored"}.items():
            self.assertTrue(any(one["what"].startswith(key) for one in read[list_]), key)
            self.assertIn(f": {key}", text)

    # Algorithms of one's own -------------------------------------------------------------------------------------------

    def algorithm(self, members, prefix="own"):
        """Each member sends 30,000 B to the next one, reduces the arrived data for 2 us, and sends 5,000 B back: no
        all-reduce, nor of the collective's size."""
        et.write(self.folder, [[
            et.node(3, et.SEND, comm_size=(30_000, "uint32"), comm_dst=((one + 1) % members, "int32"), comm_tag=0),
            et.node(7, et.RECV, comm_size=30_000, comm_src=(one - 1) % members),
            et.node(8, et.COMP, [7], duration=2),
            et.node(9, et.SEND, [8], comm_size=5_000, comm_dst=(one - 1) % members, comm_tag=1),
            et.node(10, et.RECV, comm_size=5_000, comm_src=(one + 1) % members, comm_tag=(1, "uint64"))]
            for one in range(members)], prefix)

    def custom(self, nodes, system, *more, ranks=4, form=et.protobuf, zipped=False):
        et.write(self.folder, [nodes] * ranks, "work", form=form, ending=".json" if form != et.protobuf else
                 ".et.gz" if zipped else ".et", zipped=zipped)
        self.write(json.dumps({"scheduling-policy": "FIFO", "preferred-dataset-splits": 1, "local-mem-bw": 50,
                               **system},
                              indent=1), "system.json")
        self.write(f"topology: [Switch]\nnpus_count: [{ranks}]\nbandwidth: [50]\nlatency: [500]\n", "net.yml")
        return weft_testing.weft("import", "astra-sim", "--workload", "work", "--system", "system.json", "--network",
                                 "net.yml", "-o", "out.yaml", "--json", *more, folder=self.folder)

    def messages(self, done, **how):
        self.assertEqual(done.code, 0, done)
        summary, file = self.simulate(self.folder / "out.yaml", **how)
        rows = table(file, "messages")
        return summary, sorted(zip(*(rows[key].tolist() for key in ("issued", "source", "destination", "bytes", "delivered"))))

    def test_an_algorithm_of_one_s_own_runs_as_it_is_written(self):
        """Behind a computation of 1 us each of 4 sends once to the next one, and 2 us after the other one's message has come
        back to that; the computation behind the collective waits for all of it. A zipped trace is the same."""
        self.algorithm(4)
        nodes = [et.node(0, et.COMP, duration=1), et.node(1, et.COLL, [0], comm_type=et.ALL_REDUCE, comm_size=1 << 20),
                 et.node(2, et.COMP, [1], duration=1)]
        system = {"all-reduce-implementation-custom": ["own"]}
        summary, rows = self.messages(self.custom(nodes, system))
        there, back = rows[:4], rows[4:]
        self.assertEqual([row[:4] for row in there], [(10**6, one, (one + 1) % 4, 30_000) for one in range(4)])
        came = {destination: delivered for *_, destination, _, delivered in there}
        self.assertEqual([row[:4] for row in back], sorted((came[one] + 2 * 10**6, one, (one - 1) % 4, 5_000) for one in
                                                           range(4)))
        self.assertEqual(summary["simulated_time_ps"], max(row[-1] for row in back) + 10**6)
        # Ranks compute twice, send, receive, add up, send, receive, and have a node without work for the collective.
        self.assertEqual(summary["operations"], 4 * 8)
        for path in self.folder.glob("work.*.et"):
            path.unlink()
        again, _ = self.messages(self.custom(nodes, system, zipped=True), output="zip.h5", ranks=2)
        self.assertEqual(again["fingerprint"], summary["fingerprint"])

    def test_algorithms_of_groups_and_of_nodes_go_one_after_another(self):
        """Members 0 and 1 of the algorithm are ranks 2 and 3, and 0 and 1. Node 1 has an algorithm, and node 2 the same by its
        kind; nothing joins them, but a rank has one communication at a time."""
        self.algorithm(2)
        self.write('{"1": [2, 3], "2": [0, 1]}', "groups.json")
        self.write("# nodes\n1: own\n", "nodes.yaml")
        system = {"all-gather-implementation-custom": ["own"], "per-node-custom-implementation": "nodes.yaml"}

        def nodes(group):
            return [et.node(1, et.COLL, comm_type=et.ALL_TO_ALL, comm_size=8, pg_name=group),
                    et.node(2, et.COLL, comm_type=et.ALL_GATHER, comm_size=8, pg_name=group)]
        done = self.custom(nodes("1"), system, "--groups", "groups.json")
        self.assertIn("work.0.et:node 1: rank 0 is no member of its process group", done.err)
        self.custom([], system)
        et.write(self.folder, [nodes("2"), nodes("2"), nodes("1"), nodes("1")], "work")
        done = weft_testing.weft("import", "astra-sim", "--workload", "work", "--system", "system.json", "--network",
                                 "net.yml", "-o", "out.yaml", "--groups", "groups.json", folder=self.folder)
        _, rows = self.messages(done)
        self.assertEqual({frozenset(row[1:3]) for row in rows}, {frozenset((0, 1)), frozenset((2, 3))})
        self.assertEqual([row[3] for row in rows], [30_000] * 4 + [5_000] * 4 + [30_000] * 4 + [5_000] * 4)
        self.assertEqual({row[0] for row in rows[8:12]}, {max(row[4] for row in rows[4:8])})

    def test_complaints_about_algorithms_of_one_s_own(self):
        self.algorithm(4)
        work = [et.node(1, et.COLL, comm_type=et.ALL_REDUCE, comm_size=8)]
        key = "all-reduce-implementation-custom"
        et.write(self.folder, [[et.node(1, et.COLL, comm_type=et.ALL_REDUCE, comm_size=8)]] * 4, "nested")
        et.write(self.folder, [[et.node(1, et.SEND, comm_size=8, comm_dst=4)]] * 4, "far")
        et.write(self.folder, [[et.node(1, et.SEND, [2], comm_size=8, comm_dst=1)]] * 4, "lost")
        et.write(self.folder, [[et.node(1, et.SEND, comm_dst=1)]] * 4, "sizeless")
        et.write(self.folder, [[et.node(1, et.SEND, comm_size=8, comm_dst=(one + 1) % 4)] for one in range(4)], "unmatched")
        et.write(self.folder, [[et.node(1, et.SEND, comm_size=8, comm_dst=0)]] * 4, "itself")
        self.write("1 own\n", "wrong.yaml")
        for system, part in (({key: ["nothing"]}, f"system.json:5: {key}: there is no file 'nothing.0.et'"),
                             ({key: "own"}, "a list of one prefix"), ({key: ["own", "own"]}, "a list of one prefix"),
                             ({key: ["own"], "preferred-dataset-splits": 4}, "system.json:3: preferred-dataset-splits: 4"),
                             ({key: ["nested"]}, "nested.0.et:node 1: its type is 7"),
                             ({key: ["far"]}, "far.0.et:node 1: comm_dst: found 4; expected 0 to 3"),
                             ({key: ["lost"]}, "lost.0.et:node 1: it waits for node 2, which is not in the file"),
                             ({key: ["sizeless"]}, "sizeless.0.et:node 1: it has no 'comm_size'"),
                             ({key: ["unmatched"]}, "has no recv"),
                             ({key: ["itself"]}, "itself.0.et:node 1: comm_dst: 0 is the member itself"),
                             ({"per-node-custom-implementation": "wrong.yaml"}, "wrong.yaml:1: expected 'NODE: PREFIX'"),
                             ({"per-node-custom-implementation": "none.yaml"}, "there is no file 'none.yaml'")):
            with self.subTest(part=part):
                done = self.custom(work, system)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn(part, done.err)
        for path in self.folder.glob("work.*.et"):
            path.unlink()
        done = self.custom(work, {key: ["own"]}, form=et.json_objects)
        self.assertIn("work.0.json: custom algorithms are put into traces in protobuf", done.err)
        self.write("DATA\n1\nlayer -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 64 1\n", "layers.txt")
        done = weft_testing.weft("import", "astra-sim", "--workload", "layers.txt", "--system", "system.json", "--network",
                                 "net.yml", folder=self.folder)
        self.assertIn("layers.txt is a text", done.err)

    def test_ns3_files_become_keys_of_the_network(self):
        self.prepare(8, 1 << 16)
        self.write(physical(8), "topology.txt")
        self.write(CONFIG, "config.txt")
        read, experiment = self.imported("topology.txt", "--network-config", "config.txt")
        network = experiment["network"]
        # maxBdp of SetupNetwork: twice 1,000 ns, and 1,000 B on each of two links of 400 Gb/s, at that rate.
        self.assertEqual(network["window"], f"{int((2 * 1000 + 2 * 1000 * 8 / 400) * 400 / 8)} B")
        self.assertEqual((network["mtu"], network["header"], network["ack"]), ("1000 B", "48 B", "60 B"))
        self.assertEqual(network["ecn"], {"kmin": "800 kB", "kmax": "3200 kB", "pmax": 0.2})
        self.assertEqual(network["dcqcn"]["increase_period"], "900 us")
        self.assertEqual(network["pfc"]["quanta"], round(5e-6 * 400e9 / 512))
        self.assertTrue(any(one["what"].startswith("VAR_WIN") for one in read["refused"]))
        summary, _ = self.simulate(self.folder / "out.yaml")
        self.assertEqual(summary["messages"], 8 * CHUNKS * 2 * 7)

    def test_wrong_configurations(self):
        self.prepare(8, 4096)
        self.write(physical(8), "topology.txt")
        for text, place in {"CC_MODE x\n": "config.txt:1: CC_MODE",
                            CONFIG.replace("400000000000 800", "200000000000 800"): "KMIN_MAP: no value",
                            CONFIG.replace("RATE_AI 50Mb/s", "RATE_AI 50"): "RATE_AI: found '50'"}.items():
            self.write(text, "config.txt")
            done = weft_testing.weft("import", "astra-sim", "--workload", "reduce", "--system", "system.json",
                                     "--network", "topology.txt", "--network-config", "config.txt",
                                     folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(place, done.err)

    def test_logical_dimensions_groups_and_memory(self):
        self.prepare(8, 4096, {**SYSTEM, "all-reduce-implementation": ["ring", "direct"],
                               **{f"{kind}-implementation": ["ring", "ring"]
                                  for kind in ("all-gather", "reduce-scatter", "all-to-all")}})
        self.write(physical(8), "topology.txt")
        self.write('{"logical-dims": ["4", "2"]}', "logical.json")
        self.write('{"1": [0, 1, 2, 3]}', "groups.json")
        self.write('{"memory-type": "MEMORY_POOL", "remote-mem-latency": 100, "remote-mem-bw": 50}', "memory.json")
        read, experiment = self.imported("topology.txt", "--logical", "logical.json", "--groups", "groups.json",
                                         "--memory", "memory.json")
        workload = experiment["workload"]
        self.assertEqual((workload["dimensions"], workload["memory"]), ([4, 2], {"latency": "100 ns",
                                                                                 "bandwidth": "50 GB/s"}))
        self.assertEqual(workload["dimension_algorithms"]["all_reduce"], ["ring", "direct"])
        self.assertTrue(any("MEMORY_POOL" in one["what"] for one in read["refused"]))


if __name__ == "__main__":
    unittest.main()
