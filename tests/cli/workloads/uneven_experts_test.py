#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Tokens to experts in two legs, with uneven routing: the bytes from each rank to each other one, and on each link, follow
from the matrix of a job that sends straight; and a hierarchical all-to-all whose blocks differ."""

import collections
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, SOURCE, ProgramTest, table, weft

SERVERS, GPUS = 4, 4
RANKS = SERVERS * GPUS
MACHINE = {"kind": "star", "hosts": RANKS, "link_rate": "400 Gb/s", "link_delay": "500 ns",
           "server": {"gpus": GPUS, "inside": "nvswitch", "nvlink_rate": "450 GB/s", "nvlink_delay": "100 ns",
                      "nics": GPUS, "pcie_rate": "64 GB/s", "pcie_delay": "200 ns"}}
HIDDEN, TOKENS, EXPERTS_PER_TOKEN = 64, 128, 4
MODEL = {
    "model_type": "mixtral", "max_position_embeddings": 1024, "hidden_size": HIDDEN, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 256,
    "num_local_experts": 32, "num_experts_per_tok": EXPERTS_PER_TOKEN,
}  # fmt: skip
SERVERS_PER_TOKEN = 2
BYTES = 2 * HIDDEN  # of a copy of a token, in bf16


def server(rank):
    return rank // GPUS


def place(rank):
    return rank % GPUS


def shared_out(whole, weights):
    """In proportion, by largest remainder, lower numbers first."""
    exact = [whole * weight / sum(weights) for weight in weights]
    parts = [int(value) for value in exact]
    order = sorted(range(len(weights)), key=lambda i: (parts[i] - exact[i], i))
    for i in order[: whole - sum(parts)]:
        parts[i] += 1
    return parts


class UnevenExperts(ProgramTest):
    def run_job(self, output, **parallelism):
        model = self.write(json.dumps(MODEL), "model.json")
        workload = {
            "kind": "training", "model": str(model), "device": str(SOURCE / "workloads" / "devices" / "h100-sxm.yaml"),
            "parallelism": {"expert": RANKS, **parallelism}, "micro_batch": 1, "sequence_length": TOKENS,
            "routing": {"spread": 0.4, "seed": 11},
        }  # fmt: skip
        _, results = self.simulate({"topology": MACHINE, "network": NETWORK, "workload": workload}, output=output)
        return results

    def sent(self, results):
        """{label of an all-to-all: {(source, destination): bytes}}, and the sum of all other messages."""
        calls, messages = table(results, "collectives"), table(results, "messages")
        labels = {int(call): label for call, kind, label in zip(calls["id"], calls["kind"], calls["label"])
                  if kind == "all_to_all"}
        exchanges, others = collections.defaultdict(collections.Counter), collections.Counter()
        for call, source, destination, size in zip(messages["collective"].tolist(), messages["source"].tolist(),
                                                   messages["destination"].tolist(), messages["bytes"].tolist()):
            (exchanges[labels[call]] if call in labels else others)[source, destination] += size
        return exchanges, others

    def closed_form(self, straight):
        """The bytes of the legs, from the bytes sent straight to experts. All senders' rows are alike, so that what a rank has
        for itself, which no message carries, is what another one has for it."""
        copies = [straight[1 if to == 0 else 0, to] for to in range(RANKS)]
        self.assertEqual(sum(copies), TOKENS * EXPERTS_PER_TOKEN * BYTES)
        for (_, to), size in straight.items():
            self.assertEqual(size, copies[to])
        of_server = [sum(copies[s * GPUS : (s + 1) * GPUS]) // BYTES for s in range(SERVERS)]
        tokens = shared_out(TOKENS * SERVERS_PER_TOKEN, of_server)
        self.assertLessEqual(max(tokens), TOKENS)  # the draw fills no server
        legs = collections.Counter()
        for source in range(RANKS):
            for to in range(RANKS):
                if source == to:
                    continue
                if place(source) == place(to):
                    legs[source, to] = tokens[server(to)] * BYTES
                elif server(source) == server(to):
                    legs[source, to] = SERVERS * copies[to]
        return legs

    def assert_links(self, results, sent):
        """Payload of the links of each GPU, in both directions: NVLink inside servers, PCIe to its NIC for all else."""
        links = table(results, "links")
        rows = list(zip(links["link_class"], links["from_name"], links["to_name"], links["payload_bytes"].tolist()))
        crossbar = {f"server{server(rank)}/gpu{rank % GPUS}/port": rank for rank in range(SERVERS * GPUS)}
        due = collections.Counter()
        for (source, to), size in sent.items():
            kind = "nvlink" if server(source) == server(to) else "pcie"
            due[kind, "out", source] += size
            due[kind, "in", to] += size
        found = collections.Counter()
        for kind, name, to, size in rows:
            if kind in ("nvlink", "pcie"):
                found[(kind, "out", crossbar[name]) if name in crossbar else (kind, "in", crossbar[to])] += size
        self.assertEqual(+found, +due)

    def test_legs_carry_what_the_matrix_says(self):
        straight, _ = self.sent(self.run_job("straight.h5"))
        results = self.run_job("legs.h5", expert_server=GPUS, servers_per_token=SERVERS_PER_TOKEN)
        legs, others = self.sent(results)
        self.assertEqual(set(legs), set(straight))
        self.assertEqual(len(legs), 2 * 4)  # blocks; dispatch and combine, forward and backward
        everything = others
        for label, found in legs.items():
            back = ("combine" in label) != ("gradient" in label)  # from experts to the tokens' ranks
            turned = (lambda pair: (pair[1], pair[0])) if back else (lambda pair: pair)
            out = {turned(pair): size for pair, size in straight[label].items()}
            due = {turned(pair): size for pair, size in self.closed_form(out).items() if size > 0}
            self.assertEqual(found, due, label)
            everything = everything + collections.Counter(due)
        self.assert_links(results, everything)

    def test_hierarchical_all_to_all_of_blocks_that_differ(self):
        """Each block is sent once inside the sender's server, to the GPU in the receiver's place, and once between servers."""
        blocks = [[(37 * i * i + 11 * j * j * (j % 3) + i * j) % 900 for j in range(RANKS)] for i in range(RANKS)]
        workload = {"kind": "collective", "collective": "all_to_all", "algorithm": "hierarchical",
                    "ranks_per_server": GPUS, "size": f"{sum(map(sum, blocks))} B",
                    "block_sizes": [[f"{size} B" for size in row] for row in blocks]}
        experiment = {"topology": MACHINE, "network": NETWORK, "workload": workload}
        one, results = self.simulate(experiment)
        due = collections.Counter()
        for i in range(RANKS):
            for j in range(RANKS):
                relay = server(i) * GPUS + place(j)
                due[i, relay] += blocks[i][j] if i != relay else 0
                due[relay, j] += blocks[i][j] if relay != j else 0
        messages = table(results, "messages")
        found = collections.Counter()
        for source, to, size in zip(messages["source"].tolist(), messages["destination"].tolist(), messages["bytes"].tolist()):
            found[source, to] += size
        self.assertEqual(+found, +due)
        self.assert_links(results, due)
        for ranks in (2, 3, 4, 8):
            self.assertEqual(self.simulate(experiment, ranks=ranks, output="n.h5")[0]["fingerprint"], one["fingerprint"])

    def test_bandwidth_is_that_of_the_input_of_a_rank(self):
        """An all-to-all of equal blocks has the same size S of nccl-tests, the input of one rank, and the same algbw S / t and busbw
        S / t (n - 1) / n (doc/PERFORMANCE.md), whether or not a table says that its blocks are equal. `size` of a table is the
        sum of all."""
        block = 4096
        workload = {"kind": "collective", "collective": "all_to_all", "algorithm": "nccl_p2p", "size": f"{RANKS * block} B"}
        tabled = {**workload, "size": f"{RANKS**2 * block} B", "block_sizes": [[f"{block} B"] * RANKS] * RANKS}
        found = []
        for name, work in (("even.h5", workload), ("table.h5", tabled)):
            summary, results = self.simulate({"topology": MACHINE, "network": NETWORK, "workload": work}, output=name)
            calls = table(results, "collectives")
            self.assertEqual(int(calls["bytes"][0]), RANKS * block)
            self.assertAlmostEqual(calls["busbw"][0], RANKS * block / calls["time"][0] * 1e3 * (RANKS - 1) / RANKS)
            for row in summary["collective_groups"]:
                self.assertEqual(row["bytes"], RANKS * block)
                self.assertAlmostEqual(row["mean_busbw_GBps"], calls["busbw"][0])
            found.append((summary["fingerprint"], calls["algbw"][0], calls["busbw"][0]))
        self.assertEqual(*found)

    def test_experts_of_a_token_must_have_room(self):
        model = self.write(json.dumps({**MODEL, "num_local_experts": 16}), "model.json")
        workload = {"kind": "training", "model": str(model), "device": "h100-sxm", "sequence_length": TOKENS,
                    "parallelism": {"expert": 16, "expert_server": 2, "servers_per_token": 1}}
        path = self.write({"topology": MACHINE, "network": NETWORK, "workload": workload})
        done = weft("run", path, folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("servers_per_token 1 have 2 each; use at least 2", done.err)


if __name__ == "__main__":
    unittest.main()
