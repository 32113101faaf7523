#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Chakra execution traces of a few nodes: every form of the file, and end times that are derived here."""

import functools
import json
import pathlib
import subprocess
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import chakra_files as et
from chakra_files import BATCH, CHECKPOINT, COLL, COMP, MEM_LOAD, METADATA, RECV, SEND, STORAGE, node
from weft_testing import (EXIT_INPUT, NETWORK, STAR, WEFT, ProgramTest, environment, picoseconds_to_send, table,
                          two_at_a_time, weft)

US = 10**6  # picoseconds
RATE, DELAY = 400 * 10**9, 500_000
HEADERS = 62 + 20


def message_time(size):
    """A message of one packet through a switch that stores and forwards: 2 (s / C + d)."""
    return 2 * (picoseconds_to_send(size + HEADERS, RATE) + DELAY)


# Rank 0 computes 10 us and sends; rank 1 receives and computes 5 us.
PAIR = [
    [node(0, COMP, duration=10, is_cpu_op=False),
     node(1, SEND, [0], comm_size=4096, comm_src=(0, "int32"), comm_dst=(1, "int32"), comm_tag=(7, "uint32"))],
    [node(0, RECV, comm_size=4096, comm_src=(0, "uint32"), comm_dst=(1, "uint32"), comm_tag=(7, "int32")),
     node(1, COMP, [0], duration=5)],
]
PAIR_ENDS = 10 * US + message_time(4096) + 5 * US


class Chakra(ProgramTest):
    def experiment(self, prefix="trace", **more):
        return {"topology": STAR, "network": NETWORK, "workload": {"kind": "chakra", "file": prefix, **more},
                "simulation": {"seed": 1}, "output": {"operations": True}}

    def finished(self, **more):
        """When the ranks have done their last operations."""
        summary, results = self.simulate(self.experiment(**more))
        self.assertTrue(summary["complete"])
        return table(results, "ranks")["finished"].tolist()

    def operations(self, rank, **more):
        """Node -> (start, end), in microseconds."""
        _, results = self.simulate(self.experiment(**more))
        rows = table(results, "operations")
        return {int(number): (start / US, end / US)
                for owner, number, start, end in zip(rows["rank"], rows["operation"], rows["start"], rows["end"])
                if owner == rank}

    def complaint(self, *parts, **more):
        done = weft("run", self.write(self.experiment(**more)), "-o", "out.h5", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        for part in parts:
            self.assertIn(part, done.err)

    # What the nodes do -----------------------------------------------------------------------------------------------

    def test_a_message_between_two_computations(self):
        et.write(self.folder, PAIR)
        self.assertEqual(self.finished()[1], PAIR_ENDS)
        self.assertEqual(self.finished(issue="streams")[1], PAIR_ENDS)

    def test_every_form_of_the_file(self):
        forms = {"zip": dict(zipped=True), "unpacked": dict(form=functools.partial(et.protobuf, packed=False)),
                 "new": dict(form=functools.partial(et.protobuf, version="1.0.2-chakra.0.0.4")),
                 "objects": dict(form=et.json_objects), "jzip": dict(form=et.json_objects, zipped=True),
                 "feeder": dict(form=et.feeder_json, ending=".json")}
        for name, form in forms.items():
            with self.subTest(form=name):
                et.write(self.folder, PAIR, name, **form)
                self.assertEqual(self.finished(prefix=name)[1], PAIR_ENDS)
        self.assertEqual(self.finished(prefix="zip.{rank}.et")[1], PAIR_ENDS)

    def test_published_files(self):
        """all_gather_4npus_1MB of github.com/astra-sim/astra-sim (518bd51, MIT License, (c) 2024 Georgia Institute of
        Technology and others), examples/workload/microbenchmarks: our messages are the same to the byte, and it is an
        all-gather of 4 times 1 MiB."""
        published = bytes.fromhex("070a05302e302e344a08011214616c6c5f6761746865725f346e7075735f314d42180752"
                                  "0e0a0969735f6370755f6f70d80100520d0a09636f6d6d5f747970654802520f0a09636f"
                                  "6d6d5f73697a6548808040")
        nodes = [node(1, COLL, name="all_gather_4npus_1MB", is_cpu_op=False, comm_type=et.ALL_GATHER, comm_size=2**20)]
        self.assertEqual(et.protobuf(nodes), published)
        for rank in range(4):
            (self.folder / f"trace.{rank}.et").write_bytes(published)
        traced, _ = self.simulate(self.experiment())
        alone, _ = self.simulate({"topology": STAR, "network": NETWORK, "workload": {
            "kind": "collective", "collective": "all_gather", "size": "4 MiB"}})
        for key in ("fingerprint", "simulated_time_ps", "bytes_delivered"):
            self.assertEqual(traced[key], alone[key])

    def test_any_width_of_numbers(self):
        for width in ("int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32",
                      "sfixed64", "float", "double"):
            with self.subTest(width=width):
                pair = [[dict(one, attributes={key: (value, "bool" if key == "is_cpu_op" else width)
                                               for key, (value, _) in one["attributes"].items()}) for one in nodes]
                        for nodes in PAIR]
                et.write(self.folder, pair)
                self.assertEqual(self.finished()[1], PAIR_ENDS)

    def test_storage_batches_and_checkpoints(self):
        """Types 8 to 10 of et_def.proto (6dc63e1) take their durations; pages and blocks are within a system call."""
        nodes = [node(0, STORAGE, duration=10, level=1), node(1, STORAGE, [0], duration=7, level=2),
                 node(2, STORAGE, [1], duration=6, level=3), node(3, BATCH, [2], duration=3),
                 node(4, CHECKPOINT, [3], duration=4), node(5, STORAGE, [4], duration=2, num_ops=10**9)]
        for form in (et.protobuf, et.json_objects):
            for issue in ("astra_sim", "streams"):
                with self.subTest(form=form.__name__, issue=issue):
                    et.write(self.folder, [nodes], form=form)
                    self.assertEqual(self.finished(issue=issue), [(10 + 3 + 4 + 2) * US])
        et.write(self.folder, [[node(0, 8, duration=1)]])
        content = (self.folder / "trace.0.et").read_bytes()
        (self.folder / "trace.0.et").write_bytes(content.replace(b"\x18\x08", b"\x18\x0b"))
        self.complaint("trace.0.et: node 0 'node 0': found type 11; 0 to 10 are known")

    def test_a_collective_is_the_same_as_in_an_experiment(self):
        """1 us of compute, then each kind; sizes are the contributions of a rank (et_def.proto's comm_size)."""
        kinds = {et.ALL_REDUCE: ("all_reduce", 1), et.ALL_GATHER: ("all_gather", 4), et.REDUCE_SCATTER:
                 ("reduce_scatter", 1), et.BROADCAST: ("broadcast", 1), et.ALL_TO_ALL: ("all_to_all", 1)}
        for number, (kind, factor) in kinds.items():
            with self.subTest(kind=kind):
                algorithm = "pairwise" if kind == "all_to_all" else "ring"
                et.write(self.folder, [[node(0, COMP, duration=1), node(1, COLL, [0], comm_type=number, comm_size=400_000)]
                                       for _ in range(4)])
                alone, _ = self.simulate({"topology": STAR, "network": NETWORK, "workload": {
                    "kind": "collective", "collective": kind, "algorithm": algorithm, "ranks": 4,
                    "size": f"{factor * 400_000} B"}})
                traced, _ = self.simulate(self.experiment(algorithms={"all_to_all": "pairwise"}))
                self.assertEqual(traced["simulated_time_ps"], alone["simulated_time_ps"] + US)
                self.assertEqual(traced["bytes_delivered"], alone["bytes_delivered"])

    def test_one_at_a_time_whatever_is_ready(self):
        """ASTRA-sim: one operation on the processor, the accelerator and the network each, the smallest id that is
        ready; with streams, in the order of the file."""
        nodes = [node(0, COMP, duration=10, is_cpu_op=True), node(1, COMP, [0], duration=1, stream=7),
                 node(2, COMP, duration=2, stream=7), node(3, COMP, duration=4, stream=20),
                 node(4, COMP, duration=3, is_cpu_op=True, tid=1)]
        et.write(self.folder, [nodes])
        self.assertEqual(self.operations(0), {0: (0, 10), 1: (10, 11), 2: (0, 2), 3: (2, 6), 4: (10, 13)})
        self.assertEqual(self.operations(0, issue="streams"),
                         {0: (0, 10), 1: (10, 11), 2: (11, 13), 3: (0, 4), 4: (0, 3)})

    def test_ids_in_any_order(self):
        """Nodes precede those that they depend on; ids do not follow the order of execution."""
        nodes = [node(9, COMP, [5, 7], duration=1), node(7, COMP, [5], duration=2), node(5, COMP, [30], duration=4),
                 node(30, COMP, duration=8), node(2**60, COMP, [9], duration=16)]
        et.write(self.folder, [nodes])
        summary, results = self.simulate(self.experiment())
        self.assertEqual(summary["simulated_time_ps"], 31 * US)
        labels = dict(zip(table(results, "operations")["label"], table(results, "operations")["start"] // US))
        starts = {name.split(" (")[0]: start for name, start in labels.items()}
        self.assertEqual(starts, {"node 30": 0, "node 5": 8, "node 7": 12, "node 9": 14, f"node {2**60}": 15})

    def test_process_groups_of_metadata_and_of_a_file(self):
        """Two groups of two at the same time: as long as one."""
        groups = '[\'[{"pg_name": "0", "ranks": []}, {"pg_name": "%d", "ranks": [%s]}]\']'
        ranks = [[node(0, METADATA, values=groups % (1 + rank // 2, "0, 1" if rank < 2 else "2, 3")),
                  node(1, COLL, comm_type=et.ALL_REDUCE, comm_size=400_000, pg_name=str(1 + rank // 2))]
                 for rank in range(4)]
        et.write(self.folder, ranks)
        pair, _ = self.simulate({"topology": STAR, "network": NETWORK, "workload": {
            "kind": "collective", "collective": "all_reduce", "ranks": 2, "size": "400 kB"}})
        summary, _ = self.simulate(self.experiment())
        self.assertEqual(summary["simulated_time_ps"], pair["simulated_time_ps"])
        self.assertEqual(summary["bytes_delivered"], 2 * pair["bytes_delivered"])
        et.write(self.folder, [nodes[1:] for nodes in ranks], "bare")
        self.complaint("bare.0.et: node 1 'node 1': its process group '1' is not known", prefix="bare")
        self.write('{"1": [0, 1], "2": [2, 3]}', "groups.json")
        other, _ = self.simulate(self.experiment(prefix="bare", groups="groups.json"))
        self.assertEqual(other["simulated_time_ps"], pair["simulated_time_ps"])
        # As Chakra's pg_extractor (src/pg_extractor/pg_extractor.py) writes them.
        listed = [{"communicatorId": number, "type": "", "nodes": [
            {"globalRank": rank, "rank": place, "commList": ["All_Reduce"]} for place, rank in enumerate(ranks)],
                   "collImpl": []} for number, ranks in ((1, [0, 1]), (2, [2, 3]))]
        self.write(json.dumps({"communicators": listed}, indent=4), "groups.json")
        same, _ = self.simulate(self.experiment(prefix="bare", groups="groups.json"))
        self.assertEqual(same["fingerprint"], other["fingerprint"])

    def test_the_file_of_the_last_rank_is_missing(self):
        """PyTorch lists no ranks of a group that has all, and their number (_World.pg_config_info, distributed_c10d.py)."""
        groups = '[\'[{"pg_name": "0", "ranks": [], "group_size": %d, "group_count": 1}]\']'
        for size in (3, 4):
            et.write(self.folder, [[node(0, METADATA, values=groups % size),
                                    node(1, COLL, comm_type=et.ALL_REDUCE, comm_size=400_000, pg_name="0")]
                                   for _ in range(3)])
            if size == 3:
                self.simulate(self.experiment())
        self.complaint("trace.0.et: node 0 'node 0': its process group '0' has all ranks of the job, 4 ('group_size'), "
                       "and the trace has files of 3; expected a file for each rank")

    def test_peers_that_the_converter_has_left_out(self):
        """In a group of two there is only one other rank. In larger ones a rank has a peer if no other rank is left for all
        its messages of a tag and size: of a pipeline of three ranks, rank 1, which does not send to itself, has its
        messages from rank 0, and so rank 2 has rank 1's. The results are those of the same trace with its peers. A ring is
        not certain, nor is a pipeline of four: rank 0 might send to rank 2, rank 2 to rank 1, and rank 1 to rank 3."""
        bare = [[dict(one, attributes={"comm_size": (4096, None)}) if one["type"] != COMP else one for one in nodes]
                for nodes in PAIR]
        et.write(self.folder, bare)
        self.assertEqual(self.finished()[1], PAIR_ENDS)
        et.write(self.folder, [*bare, [node(0, COMP)]], "three")
        self.assertEqual(self.finished(prefix="three")[1], PAIR_ENDS)

        def pipeline(peers, ranks=3):
            """Two micro-batches of 4096 B through all ranks, and from the last to the first 100 B with tag 1."""
            nodes = []
            for rank in range(ranks):
                mine = []
                for batch in range(2):
                    if rank > 0:
                        mine.append(node(3 * batch, RECV, comm_size=4096, **({"comm_src": rank - 1} if peers else {})))
                    mine.append(node(3 * batch + 1, COMP, [3 * batch] if rank > 0 else [], duration=2))
                    if rank < ranks - 1:
                        mine.append(node(3 * batch + 2, SEND, [3 * batch + 1], comm_size=4096,
                                         **({"comm_dst": rank + 1} if peers else {})))
                if rank in (0, ranks - 1):
                    other = {"comm_src": ranks - 1} if rank == 0 else {"comm_dst": 0}
                    mine.append(node(9, RECV if rank == 0 else SEND, [4], comm_size=100, comm_tag=1, **(other if peers else {})))
                nodes.append(mine)
            return nodes
        for name, peers in (("named", True), ("certain", False)):
            et.write(self.folder, pipeline(peers), name)
        named, _ = self.simulate(self.experiment(prefix="named"))
        certain = self.write(self.experiment(prefix="certain"))
        for ranks in (None, 3):
            summary, _ = self.simulate(certain, output=f"{ranks}.h5", ranks=ranks)
            self.assertEqual(summary["fingerprint"], named["fingerprint"])
        ring = [[node(1, SEND, comm_size=4096), node(2, RECV, comm_size=4096)] for _ in range(3)]
        et.write(self.folder, ring, "ring")
        et.write(self.folder, pipeline(False, 4), "four")
        self.complaint("four.0.et: node 2 'node 2': it has no 'comm_dst', and who the other one is is not certain",
                       prefix="four")
        self.complaint("ring.0.et: node 1 'node 1': it has no 'comm_dst', and who the other one is is not certain",
                       prefix="ring")
        et.write(self.folder, [[node(1, SEND, comm_size=4096)], [node(1, RECV, comm_size=4096), node(2, RECV, comm_size=4096)],
                               [node(1, SEND, comm_size=4096)]], "two")
        self.complaint("two.0.et: node 1 'node 1': it has no 'comm_dst', and who the other one is is not certain",
                       prefix="two")

    def test_what_has_no_work_or_little(self):
        """Collectives without attributes are their time, as in traces of PyTorch; empty ones and empty compute end."""
        nodes = [node(0, COLL, duration=3, is_cpu_op=True), node(1, COLL, [0], duration=2), node(2, COMP, [1]),
                 node(3, COLL, [2], comm_type=et.ALL_REDUCE, comm_size=0), node(4, COMP, [3], duration=1)]
        et.write(self.folder, [nodes, nodes])
        self.assertEqual(self.finished(), [6 * US, 6 * US])

    def test_memory_nodes_and_rooflines(self):
        """A latency of 1 us and 50,000 B at 400 Gb/s; 1e9 operations at 1 TFLOP/s, which 1e6 B at 1.6 TB/s do not hold
        up."""
        et.write(self.folder, [[node(0, MEM_LOAD, tensor_size=50_000), node(1, COMP, [0], num_ops=10**9,
                                                                              tensor_size=10**6)]])
        self.complaint("trace.0.et: node 0 'node 0': a memory node without a duration")
        memory = {"latency": "1 us", "bandwidth": "400 Gb/s"}
        self.complaint("trace.0.et: node 1 'node 1': it has 1000000000 operations", memory=memory)
        self.write("name: slow\npeak: {bf16: 1 TFLOP/s}\nefficiency: 1\nmemory_bandwidth: 12.8 Tb/s\nmemory: 80 GB\n",
                   "device.yaml")
        self.assertEqual(self.finished(memory=memory, device="device.yaml"), [2 * US + 1000 * US])

    def test_names(self):
        """Labels are the nodes' names in UTF-8. Bytes that are none, and control characters, become one ? each; a name
        of more than 120 bytes ends before the character that passes them."""
        names = {"Vorwärts ✓ 前向 😀": "Vorwärts ✓ 前向 😀", "tab\t\x7f\x85": "tab????", "é" * 70: "é" * 60 + "...",
                 "x" + "é" * 70: "x" + "é" * 59 + "...", "y" * 120: "y" * 120}
        bad = {b"\xc3(": "?(", b"\xed\xa0\x80": "???", b"\xc0\xaf": "??", b"\xf0\x9f\x98": "???", b"\xf5\x80\x80\x80": "????"}
        nodes = [node(i, COMP, duration=1, name=name) for i, name in enumerate([*names, *("#" * len(b) for b in bad)])]
        content = et.protobuf(nodes)
        at = len(content)
        for name in reversed(bad):  # the last names that consist of #
            at = content.rindex(b"#" * len(name), 0, at)
            content = content[:at] + name + content[at + len(name):]
        (self.folder / "trace.0.et").write_bytes(content)
        _, results = self.simulate(self.experiment())
        found = [str(label) for label in table(results, "operations")["label"]]
        self.assertEqual(sorted(found), sorted([*names.values(), *bad.values()]))

    def test_many_messages_with_one_tag_keep_their_order(self):
        """Sizes tell them apart, and sends overtake each other by their dependencies."""
        sizes = [5000, 100, 70_000, 1, 4096, 33]
        sends = [node(1 + i, SEND, [0] if i == 0 else [], comm_size=size, comm_dst=1) for i, size in enumerate(sizes)]
        recvs = [node(i, RECV, comm_size=size, comm_src=0) for i, size in enumerate(sizes)]
        et.write(self.folder, [[node(0, COMP, duration=50), *sends], recvs])
        for issue in ("astra_sim", "streams"):
            self.assertTrue(self.simulate(self.experiment(issue=issue))[0]["complete"])

    def peak_of(self, **workload):
        """Bytes of a run of a trace that is there. A shell starts it: the memory of this process would count for its
        children."""
        path = self.write({**self.experiment(**workload), "topology": {**STAR, "hosts": 16}, "output": {"messages": "none"}})
        done = subprocess.run(["sh", "-c", '"$0" run "$1" -o out.h5 --summary json --quiet; exit $?', WEFT, path],
                              cwd=self.folder, env=environment(), capture_output=True, text=True)
        with h5py.File(self.folder / "out.h5") as file:
            return json.loads(done.stdout)["operations"], int(file["manifest/parallel/peak_memory"][:].sum())

    def test_a_node_that_waits_takes_little_memory(self):
        """Each of 16 ranks holds 4096 nodes with names as kernels have them, or 64: 64,512 more in all. A node takes its place
        in a table with two links (144 B) and what it says (32 B), and its turn on its stream; its name, which all ranks have,
        is there once. It was 600 B and more."""
        count = 4500
        for rank in range(16):
            with open(self.folder / f"trace.{rank}.et", "wb") as file:
                file.write(et.protobuf([]))
                for i in range(count):
                    message = et.coded(node(i, COMP, [i - 1] if i else [], duration=1, name=f"cutlass::Kernel2<{i % 7:060}>"))
                    file.write(et.varint(len(message)) + message)
        (few, least), (many, most) = (self.peak_of(issue="streams", read_ahead=ahead) for ahead in (64, 4096))
        self.assertEqual((few, many), (16 * count, 16 * count))
        self.assertLess(most - least, 16 * (4096 - 64) * 280)

    def test_memory_does_not_follow_the_length_of_a_trace(self):
        """Twenty times the nodes, ids with gaps."""
        peaks = []
        for count in (5_000, 100_000):
            for rank in (0, 1):
                with open(self.folder / f"trace.{rank}.et", "wb") as file:
                    file.write(et.protobuf([]))
                    for i in range(count):
                        kind = (SEND if rank == 0 else RECV) if i % 50 == 49 else COMP
                        message = et.coded(node(2 * i, kind, [2 * i - 2] if i else [], duration=1, comm_size=100,
                                                comm_dst=1, comm_src=0))
                        file.write(et.varint(len(message)) + message)
            operations, peak = self.peak_of()
            self.assertEqual(operations, 2 * count)
            peaks.append(peak)
        self.assertLess(peaks[1], peaks[0] + 2 * 2**20, peaks)

    def test_the_same_on_any_number_of_processes(self):
        """A ring of messages around a collective, and a group of two."""
        ranks = []
        for rank in range(4):
            pair = [rank // 2 * 2, rank // 2 * 2 + 1]
            ranks.append([
                node(0, METADATA, values=f'[{{"pg_name": "{rank // 2 + 5}", "ranks": {pair}}}]'),
                node(1, COMP, duration=3 + rank), node(2, SEND, [1], comm_size=30_000 + rank, comm_dst=(rank + 1) % 4),
                node(3, RECV, comm_size=30_000 + (rank - 1) % 4, comm_src=(rank - 1) % 4),
                node(4, COLL, [3], comm_type=et.ALL_GATHER, comm_size=50_000, pg_name=str(rank // 2 + 5)),
                node(5, COLL, [2, 4], comm_type=et.ALL_REDUCE, comm_size=200_000), node(6, COMP, [5], duration=2)])
        et.write(self.folder, ranks)
        path = self.write(self.experiment())
        one, *others = two_at_a_time([functools.partial(self.simulate, path, output=f"{n}.h5", ranks=n)
                                      for n in (None, 2, 3, 4, 8)])
        self.assertTrue(one[0]["complete"])
        for summary, results in others:
            self.assertEqual(summary["fingerprint"], one[0]["fingerprint"])
            self.assert_same_results(one[1], results)

    def export(self, workload, issue="streams", **more):
        """Runs an experiment, and its exported form again: both summaries and results."""
        experiment = {**self.experiment(), "workload": workload}
        one = self.simulate(experiment, output="one.h5")
        self.run_weft("workload", self.write(experiment), "--export", "chakra:again", "--no-run", "--quiet")
        path = self.write(self.experiment("again", issue=issue, **more), "again.yaml")
        return one, [self.simulate(path, output=f"again{n}.h5", ranks=n) for n in (None, 2, 3)]

    def test_what_is_written_is_read_again(self):
        """Compute of any length, streams, messages, collectives of all ranks: the same to the last bit."""
        one, others = self.export({"kind": "program", "ranks": 4, "operations": [
            {"rank": "all", "id": "a", "compute": "1234567 ps"},
            {"rank": "all", "id": "b", "compute": "3 us", "stream": "none", "label": "beside"},
            {"id": "c", "collective": "all_reduce", "size": "400 kB", "after": "a"},
            {"id": "d", "collective": "all_gather", "size": "4 kB", "after": ["b"]},
            {"rank": 0, "id": "s", "send": "90 kB", "to": 3, "tag": 9, "after": "a"},
            {"rank": 3, "id": "r", "recv": "90 kB", "from": 0, "tag": 9},
            {"rank": 3, "compute": "2 us", "after": ["r", "d"], "stream": "host"}]})
        for summary, results in others:
            for key in ("fingerprint", "simulated_time_ps", "messages", "bytes_delivered"):
                self.assertEqual(summary[key], one[0][key], key)
            for column in ("start", "end"):
                self.assertEqual(table(results, "operations")[column].tolist(),
                                 table(one[1], "operations")[column].tolist())

    def test_groups_are_written_too(self):
        one, others = self.export({"kind": "program", "ranks": 4, "communicators": {"a": [0, 2], "b": [3, 1]},
                                   "operations": [
            {"rank": "all", "id": "x", "compute": "1 us"},
            {"id": "y", "collective": "broadcast", "root": 1, "size": "70 kB", "communicator": "b", "after": "x"},
            {"id": "z", "collective": "reduce_scatter", "size": "70 kB", "communicator": "a", "after": "x"},
            {"id": "w", "collective": "all_reduce", "size": "70 kB", "after": ["x"]}]})
        for summary, results in others:
            self.assertEqual(summary["simulated_time_ps"], one[0]["simulated_time_ps"])
            self.assertEqual(summary["bytes_delivered"], one[0]["bytes_delivered"])
            self.assertEqual(table(results, "ranks")["finished"].tolist(), table(one[1], "ranks")["finished"].tolist())

    def test_what_a_trace_cannot_say_is_not_written(self):
        for workload, text in (
                ({"kind": "traffic", "pattern": "permutation", "size": "1 kB"}, "one-sided messages, as `kind: traffic` sends them"),
                ({"kind": "collective", "collective": "send_recv", "size": "1 kB"}, "a send_recv, which Chakra does not have"),
                ({"kind": "collective", "collective": "all_gather", "size": "1001 B"}, "a gathering of 1001 B over 4 ranks")):
            done = weft("workload", self.write({**self.experiment(), "workload": workload}), "--export", "chakra:x",
                        "--no-run", folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(text, done.err)
        done = weft("workload", "experiment.yaml", "--export", "onnx:x", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("--export found 'onnx:x'; expected chakra:PREFIX", done.err)

    # What is wrong ---------------------------------------------------------------------------------------------------

    def test_complaints_name_the_node(self):
        cases = {
            "data of node 9, which is not in the file": [[node(1, COMP, [9])]],
            "trace.0.et: node 1 'node 1': it depends on node 2": [[node(1, COMP, [2]), node(2, COMP, [1])]],
            "trace.0.et: node 3 'node 3': another node has this id": [[node(3, COMP), node(3, COMP)]],
            "trace.0.et: node 1 'node 1': 'comm_dst' is 0, the rank itself": [[node(1, SEND, comm_size=1, comm_dst=0)],
                                                                              []],
            "trace.0.et: node 1 'node 1': 'comm_dst' is 5; the trace has ranks 0 to 0":
                [[node(1, SEND, comm_size=1, comm_dst=5)]],
            "the send from rank 0 to rank 1 with tag 0 has no recv: there are 1 sends and 0 recvs":
                [[node(1, SEND, comm_size=1, comm_dst=1)], [node(0, COMP)]],
            "trace.1.et: node 4 'node 4': the recv from rank 0 to rank 1 with tag 0 has no send":
                [[node(0, COMP)], [node(4, RECV, comm_size=1, comm_src=0)]],
            "trace.0.et: node 1 'node 1': message 0 from rank 0 to rank 1 with tag 0: the send has 2 B":
                [[node(1, SEND, comm_size=2, comm_dst=1)], [node(4, RECV, comm_size=1, comm_src=0)]],
            "trace.1.et: node 7 'node 7': it is collective 0 of its process group on this rank: all_reduce of 8 B":
                [[node(1, COLL, comm_type=0, comm_size=4)], [node(7, COLL, comm_type=0, comm_size=8)]],
            "trace.1.et: rank 1 has 0 collectives of process group '0', and other members have 1":
                [[node(1, COLL, comm_type=0, comm_size=4)], [node(7, COMP)]],
            "trace.0.et: node 1 'node 1': 'comm_type' is 12": [[node(1, COLL, comm_type=12, comm_size=4)]],
            "trace.0.et: node 1 'node 1': 'comm_size' is no whole number from 0 on":
                [[node(1, COLL, comm_type=0, comm_size=-4)]],
            "trace.0.et: node 1 'node 1': found a duration of": [[node(1, COMP, duration=2**63)]],
        }
        for text, ranks in cases.items():
            with self.subTest(text=text):
                et.write(self.folder, ranks)
                self.complaint(text)
                for path in self.folder.glob("trace.*"):
                    path.unlink()

    def test_broken_files(self):
        et.write(self.folder, PAIR)
        whole = (self.folder / "trace.0.et").read_bytes()
        for content, text in ((b"", "the file is empty"), (whole[:-3], "the last message should have"),
                              (b"\x1f\x8b" + whole, "gzip"), (et.protobuf(PAIR[0], "0.0.1"), "schema '0.0.1'"),
                              (b'{"version": "0.0.4"}\n{"id": 1, "name": }', "trace.0.et:2: no JSON"),
                              (b'{"id": 1', "cut off"), (b"nonsense " * 19, "damaged, or no Chakra trace")):
            with self.subTest(text=text):
                (self.folder / "trace.0.et").write_bytes(content)
                self.complaint("trace.0.et", text)
        (self.folder / "trace.0.et").unlink()
        self.complaint("there is a file", "trace.1.et' and no", "trace.0.et'; ranks are 0, 1, ... without gaps")
        self.complaint("there is no file", "none.0.et'", prefix="none")

    def test_control_dependencies(self):
        """Those on callers that are not in the file count as done; cycles of them are refused, or left out."""
        et.write(self.folder, [[node(1, COMP, duration=2, control=[99]), node(2, COMP, duration=1, control=[1], is_cpu_op=True)]])
        self.assertEqual(self.operations(0), {1: (0, 2), 2: (2, 3)})
        self.assertEqual(self.operations(0, dependencies="data"), {1: (0, 2), 2: (0, 1)})
        described = self.run_weft("describe", self.write(self.experiment())).out
        self.assertRegex(described, "callers that are not in the files +1")
        et.write(self.folder, [[node(1, COMP, duration=2, control=[2]), node(2, COMP, [1], duration=1)]])
        self.complaint("trace.0.et: node 1 'node 1': it depends on node 2", "`dependencies: data`")
        self.assertEqual(self.operations(0, dependencies="data"), {1: (0, 2), 2: (2, 3)})
        # PyTorch's own schema, before Chakra's converter had versions: only data counts, as in its feeder.
        et.write(self.folder, [[node(1, COMP, duration=2, control=[1]), node(2, COMP, [1], duration=1)]],
                 form=functools.partial(et.protobuf, version="1.0.1"))
        self.assertEqual(self.operations(0), {1: (0, 2), 2: (2, 3)})


if __name__ == "__main__":
    unittest.main()
