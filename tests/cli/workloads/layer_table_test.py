#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Text workloads of ASTRA-sim 1.0 and SimAI: end times derived from those of single collectives, groups, complaints."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, STAR, ProgramTest, table, weft

NS = 1000  # picoseconds
TRANSFORMER = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 4 ga: 1 all_gpus: 4 " \
              "checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0"


class LayerTable(ProgramTest):
    def experiment(self, text, hosts=4, **more):
        self.write(text, "layers.txt")
        return {"topology": {**STAR, "hosts": hosts}, "network": NETWORK,
                "workload": {"kind": "astra_sim_text", "file": "layers.txt", **more}}

    def time(self, text, **more):
        """When the last rank has done its last operation."""
        summary, _ = self.simulate(self.experiment(text, **more))
        self.assertTrue(summary["complete"])
        return summary["jobs"][0]["end_ps"]

    def alone(self, collective, ranks, size, algorithm="ring"):
        summary, _ = self.simulate({"topology": STAR, "network": NETWORK, "workload": {
            "kind": "collective", "collective": collective, "algorithm": algorithm, "ranks": ranks, "size": f"{size} B"}})
        return summary["jobs"][0]["end_ps"]

    def complaint(self, text, *parts, **more):
        done = weft("run", self.write(self.experiment(text, **more)), "-o", "out.h5", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        for part in parts:
            self.assertIn(part, done.err)

    def test_data_parallel_layers(self):
        """Forward 1 + 1 us; then weights first: 2 us of the last layer, whose all-reduce is hidden behind its input
        gradient of 3 us and the first layer's 4 us; the first layer's all-reduce and update of 50 ns are not."""
        text = ("DATA\n2\nfirst -1 1000 NONE 0 9000 ALLREDUCE 7 4000 ALLREDUCE 4096 50\n"
                "second\t-1\t1000  NONE 0\t3000 NONE 0 2000 ALLREDUCE 8192 50\n")
        step = 11_000 * NS + self.alone("all_reduce", 4, 4096) + 50 * NS
        self.assertEqual(self.time(text), step)
        self.assertEqual(self.time(text, passes=3), 3 * step)
        # As Chakra's converter takes the times: microseconds.
        self.assertEqual(self.time(text, time_unit="1 us"),
                         11_000_000 * NS + self.alone("all_reduce", 4, 4096) + 50_000 * NS)

    def test_a_transformer_of_simai(self):
        """Model groups 0-1 and 2-3, data groups 0-2 and 1-3. Forward 1 us and an all-gather of 8192 B in all that blocks;
        input gradient 2 us and an all-reduce that blocks; weights 3 us and a reduce-scatter. The update of 100 ns follows
        each of the three (Layer::call of ASTRA-sim 1.0 and SimAI). A message of less than 4096 B of the forward pass is
        raised."""
        text = TRANSFORMER + ("\n1\nmlp -1 1000 ALLGATHER 8192 2000 ALLREDUCE 6000 3000 REDUCESCATTER 40000 100\n")
        blocked = self.alone("all_gather", 2, 8192) + self.alone("all_reduce", 2, 6000)
        step = 6000 * NS + blocked + self.alone("reduce_scatter", 2, 40000) + 3 * 100 * NS
        self.assertEqual(self.time(text), step)
        self.assertEqual(self.time(text.replace("8192", "100")),
                         step + self.alone("all_gather", 2, 4096) - self.alone("all_gather", 2, 8192))
        # In ASTRA-sim's own an all-gather's bytes are those that a rank brings in.
        self.assertEqual(self.time(text, dialect="astra_sim"),
                         step + self.alone("all_gather", 2, 2 * 8192) - self.alone("all_gather", 2, 8192))

    def test_micro_benchmarks_run_line_by_line(self):
        text = "MICRO\n2\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4096 1\nb -1 1 NONE 0 1 NONE 0 9000 ALLTOALL 65536 1\n"
        self.assertEqual(self.time(text), self.alone("all_reduce", 4, 4096) +
                         self.alone("all_to_all", 4, 65536, "nccl_p2p") + 9003 * NS)

    def test_groups(self):
        """8 ranks, 2 of a model, 2 of experts: as SimAI's MockNccl makes its groups."""
        text = TRANSFORMER.replace("ep: 1", "ep: 2").replace("all_gpus: 4", "all_gpus: 8") + (
            "\n1\nmoe -1 1 ALLGATHER 8192 1 ALLTOALL_EP 8192 1 ALLREDUCE 8192 1\n")
        text_of_experts = text.replace("ALLREDUCE", "ALLREDUCE_DP_EP")
        groups = {"model": [[0, 1], [2, 3], [4, 5], [6, 7]], "data": [[0, 2, 4, 6], [1, 3, 5, 7]],
                  "expert": [[0, 2], [1, 3], [4, 6], [5, 7]], "both": [[0, 4], [1, 5], [2, 6], [3, 7]]}
        for source, wanted in ((text, ["model", "expert", "data"]), (text_of_experts, ["model", "expert", "both"])):
            self.run_weft("workload", self.write(self.experiment(source, hosts=8)), "--dump", "dump.yaml")
            dump = (self.folder / "dump.yaml").read_text()
            found = [list(map(int, members.split(", "))) for members in re.findall(r"\w+: \[([\d, ]+)\],\n", dump)]
            for name in wanted:
                for group in groups[name]:
                    self.assertIn(group, found)

    def test_inference_has_no_backward_pass(self):
        text = "DISTRIBUTED_INFERENCE mode: 1 ep: 1 pp: 1 all_gpus: 4 model_parallel_NPU_group: 4 vpp: 1 ga: 1 pp_comm 0\n" \
               "1\nmlp -1 1000 ALLREDUCE 8192 9 ALLREDUCE 9 9 ALLREDUCE 9 9\n"
        self.assertEqual(self.time(text), 1009 * NS + self.alone("all_reduce", 4, 8192))

    def test_gradients_of_inputs_are_hidden_behind_those_of_weights(self):
        """Workload::iterate_model_parallel and iterate_hybrid_parallel_*: the input gradient's communication and update run
        beside the weight gradient's computation, the layer in front waits for both, and the first layer has none."""
        text = ("POLICY\n2\nfirst -1 1000 NONE 0 2000 ALLREDUCE 65536 3000 NONE 0 50\n"
                "second -1 1000 NONE 0 2000 ALLREDUCE 8192 {} NONE 0 50\n")
        gradient = self.alone("all_reduce", 4, 8192) + 50 * NS
        for policy in ("MODEL", "HYBRID_MODEL_DATA", "HYBRID_DATA_MODEL"):
            for weights in (0, 10_000_000):
                with self.subTest(policy=policy, weights=weights):
                    self.assertEqual(
                        self.time(text.replace("POLICY", policy).format(weights), model_ranks=4, passes=2),
                        2 * (2000 * NS + 2000 * NS + max(weights * NS, gradient) + 2000 * NS + 3000 * NS))

    def test_groups_of_hybrid_policies(self):
        """The network's first dimension, of neighbours, is that of the data for HYBRID_MODEL_DATA, and that of the model for
        HYBRID_DATA_MODEL (Workload::decode_involved_dimensions, and Chakra's text converter). SimAI's groups of a model
        are neighbours (MockNccl)."""
        neighbours, apart = [[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 2, 4, 6], [1, 3, 5, 7]]
        neighbouring_data, models_apart = [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]]
        row = "\n1\nonly -1 1 ALLREDUCE 8192 1 NONE 0 1 ALLREDUCE 4096 1\n"
        for policy, wanted, more in (("HYBRID_DATA_MODEL", neighbours + apart, {}),
                                     ("HYBRID_MODEL_DATA", models_apart + neighbouring_data, {}),
                                     ("HYBRID_MODEL_DATA", neighbours + apart, {"dialect": "simai"})):
            with self.subTest(policy=policy, **more):
                self.run_weft("workload", self.write(self.experiment(policy + row, hosts=8, model_ranks=2, **more)),
                              "--dump", "dump.yaml")
                dump = (self.folder / "dump.yaml").read_text()
                found = [list(map(int, members.split(", ")))
                         for members in re.findall(r"\w+: \[([\d, ]+)\],\n", dump)]
                self.assertEqual(sorted(found), sorted(wanted))

    def test_layers_with_policies_of_their_own(self):
        """HYBRID_CUSTOMIZED, on 8 ranks of which 4 share a model: the 13th column says which groups a layer has, in the
        order of the hybrid policies (Workload::iterate_hybrid_parallel_customized). Communications that follow from no
        group are left out."""
        row = "{} -1 1000 ALLREDUCE 8192 2000 ALLREDUCE 16384 {} ALLREDUCE 4096 50 {}\n"
        text = "HYBRID_CUSTOMIZED\n4\n" + "".join(row.format(policy, 1_000_000, policy) for policy in (
            "DATA", "MODEL", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA"))
        self.write(self.experiment(text, hosts=8, model_ranks=4))
        summary, results = self.simulate(self.experiment(text, hosts=8, model_ranks=4))
        calls = table(results, "collectives")
        found = {}
        for name, ranks, size in zip(calls["label"], calls["ranks"], calls["bytes"]):
            label = name.decode() if isinstance(name, bytes) else name
            found.setdefault(label, []).append((int(ranks), int(size)))
        everyone, models, data = [(8, 8192)], [(4, 8192)] * 2, [(2, 4096)] * 4
        self.assertEqual(found, {
            "DATA weight gradient": [(8, 4096)], "MODEL forward": everyone, "MODEL input gradient": [(8, 16384)],
            "HYBRID_DATA_MODEL forward": models, "HYBRID_DATA_MODEL input gradient": [(4, 16384)] * 2,
            "HYBRID_DATA_MODEL weight gradient": data, "HYBRID_MODEL_DATA forward": models,
            "HYBRID_MODEL_DATA input gradient": [(4, 16384)] * 2, "HYBRID_MODEL_DATA weight gradient": data})
        alone = self.alone("all_reduce", 4, 8192)
        only = "HYBRID_CUSTOMIZED\n1\n" + row.format("a", 1_000_000, "MODEL")
        self.assertEqual(self.time(only), 1000 * NS + alone + 50 * NS + 2000 * NS + 1_000_000 * NS)

    def test_layers_that_are_computed_again(self):
        """In front of layer 3, which recomputes, layers 1 and 2 run forward once more, from checkpoint 1 on, with their
        communication."""
        text = TRANSFORMER.replace("checkpoints: 0 checkpoint_initiates: 0", "checkpoints: 1 1 checkpoint_initiates: 1 3")
        text += "\n4\n" + "".join(f"layer{i} -1 {1000 << i} {'ALLREDUCE 8192' if i == 2 else 'NONE 0'} 20000 NONE 0 "
                                  "30000 NONE 0 40\n" for i in range(4))
        again = 2000 * NS + 4000 * NS + self.alone("all_reduce", 2, 8192) + 40 * NS
        self.assertEqual(self.time(text), 1000 * NS + again + 8000 * NS + again + 4 * 50_000 * NS)

    def test_recommendation_models(self):
        """Workload::iterate_hybrid_parallel_DLRM, layer 1 the last of the bottom: the exchange of layer 0 runs beside the
        bottom, whose end waits for it; in the backward pass weights come first, and the exchange of layer 0's gradients
        starts behind the input gradient of layer 2. HYBRID_DLRM waits for it at the end of the pass, and
        HYBRID_DLRM_ENHANCED does not: there it is hidden behind the next pass."""
        text = ("3\nembeddings -1 1000000 ALLTOALL 1048576 500 ALLTOALL 1048576 300 NONE 0 50\n"
                "bottom -1 2000 ALLREDUCE 4096 700 ALLREDUCE 4096 400 NONE 0 50\n"
                "top -1 3000 NONE 0 900 NONE 0 600 NONE 0 50\n")
        exchange = self.alone("all_to_all", 4, 1048576, "nccl_p2p") + 50 * NS
        self.assertGreater(exchange, 2000 * NS)
        forward = 1_000_000 * NS + exchange + 3000 * NS
        exposed, hidden = 1500 * NS + exchange, 1500 * NS + 1400 * NS
        for head, both in (("HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 1", 2 * forward + 2 * exposed),
                           ("HYBRID_DLRM 1", 2 * forward + 2 * exposed),
                           ("HYBRID_DLRM_ENHANCED 1", 2 * forward + hidden + exposed)):
            with self.subTest(head=head):
                self.assertEqual(self.time(f"{head}\n{text}", passes=2), both)

    def test_complaints(self):
        row = "a -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4096 1\n"
        for text, *parts in (
                ("DATA\n2\n" + row, "layers.txt:4: the file ends; expected layer 2 of 2"),
                ("DATA\n1\n" + row + row, "layers.txt:4: more lines than the 1 layers that line 2 says"),
                ("DATAA\n1\n" + row, "layers.txt:1: unknown policy 'DATAA' (did you mean 'DATA'?)"),
                ("HYBRID_CUSTOMIZED\n1\n" + row, "layers.txt:3: 12 columns; a layer has 13", "and the layer's policy"),
                ("HYBRID_CUSTOMIZED\n1\n" + row.replace("\n", " DATTA\n"),
                 "layers.txt:3: the layer's policy is 'DATTA' (did you mean 'DATA'?)"),
                ("HYBRID_CUSTOMIZED\n1\n" + row.replace("\n", " HYBRID_DATA_MODEL\n"), "give `model_ranks`"),
                ("HYBRID_DLRM\n1\n" + row, "layers.txt:1: the policy HYBRID_DLRM needs the last of the bottom layers"),
                ("HYBRID_DLRM 1\n1\n" + row, "layers.txt:1: the last of the bottom layers is 1; expected one of the "
                                             "layers 0 to 0"),
                ("DATA checkpoints: 1 0\n1\n" + row, "layers.txt:1: 'checkpoints' is 1 with the policy DATA"),
                (TRANSFORMER.replace("pp: 1", "pp: 2") + "\n1\n" + row, "layers.txt:1: 'pp' is 2"),
                (TRANSFORMER.replace("checkpoints: 0", "checkpoints: 1 7") + "\n1\n" + row,
                 "layers.txt:1: 'checkpoints' names layer 7; expected one of the layers 0 to 0"),
                (TRANSFORMER.replace("checkpoints: 0", "checkpoints: 2 0") + "\n1\n" + row,
                 "layers.txt:1: layer 2 of 2 of 'checkpoints' is 'checkpoint_initiates:'"),
                (TRANSFORMER.replace("initiates: 0", "initiates: 1 0") + "\n1\n" + row,
                 "layers.txt:1: layer 0 of 'checkpoint_initiates' has no checkpoint"),
                ("DATA\n1\n" + row.replace("ALLREDUCE", "ALLREDUCT"), "layers.txt:3: unknown communication 'ALLREDUCT'"),
                ("DATA\n1\n" + row.replace("4096", "many"), "layers.txt:3: column 11, bytes, is 'many'"),
                ("DATA\n1\na -1 1\n", "layers.txt:3: 3 columns; a layer has 12"),
                ("DATA\n1\n" + row.replace("-1 1", "-1 -1"), "layers.txt:3: column 3, a compute time,"),
                ("HYBRID_TRANSFORMER\n1\n" + row, "give `model_ranks`"),
                (TRANSFORMER.replace("group: 2", "group: 3") + "\n1\n" + row, "4 ranks do not fall into groups of 3")):
            with self.subTest(parts=parts):
                self.complaint(text, *parts)


if __name__ == "__main__":
    unittest.main()
