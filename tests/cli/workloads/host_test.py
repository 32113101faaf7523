#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The host's stream: the later of host and device determines a step, and the critical path names it."""

import json
import pathlib
import re
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, SOURCE, STAR, ProgramTest, table, weft  # noqa: E402

# Llama 3.2 1B; its head is tied.
LLAMA_1B = {"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128256,
            "max_position_embeddings": 8192, "tie_word_embeddings": True}  # fmt: skip


class Host(ProgramTest):
    def job(self, **workload):
        (self.folder / "config.json").write_text(json.dumps(LLAMA_1B))
        hosts = workload.get("parallelism", {"data": 1})["data"]
        return self.write({"topology": {**STAR, "hosts": hosts}, "network": {**NETWORK, "fidelity": "ideal"}, "workload": {
            "kind": "training", "model": "config.json", "device": "b200-sxm", "framework": "pytorch_eager",
            "parallelism": {"data": 1}, "micro_batch": 1, "sequence_length": 512, "recompute": "full", **workload}})  # fmt: skip

    def step(self, **workload):
        """(seconds, of which the host is on the critical path, kernels of a step)"""
        path = self.job(**workload)
        found = json.loads(self.run_weft("workload", path, "--json").out)
        return found["ideal_step_seconds"], found["critical_path"].get("host_seconds", 0.0)

    def test_short_kernels_wait_for_the_host(self):
        """Llama 1B with s = 512 on a B200 (ml-engineering, training/performance): eager the host sets the time of forward
        and backward. 48.8 ms were measured, from which its time for a kernel comes; so it must come out again. With
        CUDA graphs 8.1 ms were: the device's time, which is not fitted. The optimizer's kernels, some 16 ms here, are
        no part of either."""
        # Hugging Face's checkpointing was reentrant by default (transformers, modeling_utils.py), which runs a block as a whole.
        framework = (SOURCE / "workloads/frameworks/pytorch_eager.yaml").read_text()
        whole = framework.replace("recomputes_what_is_needed: true", "recomputes_what_is_needed: false")
        self.assertNotEqual(whole, framework)
        (self.folder / "whole.yaml").write_text(whole)
        eager, host = self.step(framework="whole.yaml")
        graphs, none = self.step(framework="whole.yaml", cuda_graphs=True)
        self.assertAlmostEqual(host, 48.8e-3, delta=1e-3)
        self.assertGreater(host, 0.7 * eager)
        self.assertEqual(none, 0)
        self.assertGreater(eager, 2 * graphs)

    def test_long_kernels_do_not(self):
        """The same model with sixteen sequences of 4096 tokens: kernels take longer than their launches."""
        long = {"micro_batch": 16, "sequence_length": 4096}
        eager, host = self.step(**long)
        graphs, _ = self.step(**long, cuda_graphs=True)
        self.assertLess(host, 0.01 * eager)
        self.assertAlmostEqual(eager / graphs, 1, delta=0.01)

    def test_the_device_is_idle_while_it_waits(self):
        """The critical path is launches and, at the end, the optimizer. Each launch is an operation of kind 4."""
        summary, results = self.simulate(self.job(), "--set", "output.operations=true")
        ranks, operations = table(results, "ranks"), table(results, "operations")
        launches = operations["kind"] == 4
        self.assertEqual(set(operations["stream"][launches]), {"host"})
        self.assertEqual(ranks["host"][0], (operations["end"] - operations["start"])[launches].sum())
        self.assertGreater(ranks["part_host"][0], summary["simulated_time_ps"] / 2)
        self.assertEqual(ranks["compute"][0] + ranks["part_host"][0] + ranks["part_idle"][0], summary["simulated_time_ps"])

    def test_the_host_of_dense_blocks(self):
        """Steps of Megatron-LM's functional tests on eight H100s: GPT, 12 blocks of 512, 4 sequences of 1,024 in a micro-batch, 32 in a
        batch, so that n tensor ranks have n micro-batches (NVIDIA/Megatron-LM, tests/functional_tests/test_cases/gpt,
        golden_values_dev_dgx_h100.json, commits 3c13e613 and 08165aba, medians of `iteration-time`). Two tensor ranks take 115.4 ms:
        24 blocks of 4.8 ms at most, a quarter for each pass of attention and of the MLP. With these, one and four
        tensor ranks take 12 and 48 of them. What a step has once is in them, so that four must come out too long."""
        measured, blocks = {1: 56.5e-3, 2: 115.4e-3, 4: 200e-3}, {1: 12, 2: 24, 4: 48}
        host = measured[2] / blocks[2] / 4
        framework = (SOURCE / "workloads/frameworks/megatron_core.yaml").read_text()
        there = f"host: {{kernel: 7 us, collective: 20 us, attention: {host * 1e6:.0f} us, mlp: {host * 1e6:.0f} us}}"
        self.assertIn("host: {kernel: 7 us, collective: 20 us}", framework)
        (self.folder / "python.yaml").write_text(framework.replace("host: {kernel: 7 us, collective: 20 us}", there))
        gpt = {"model_type": "gpt2", "vocab_size": 50304, "n_positions": 1024, "n_embd": 512, "n_layer": 12, "n_head": 8}
        (self.folder / "gpt.json").write_text(json.dumps(gpt))
        for tensor, seconds in measured.items():
            path = self.write({"topology": {"kind": "server", "design": "hgx_h100"}, "network": {"fidelity": "ideal"}, "workload": {
                "kind": "training", "model": "gpt.json", "device": "h100-sxm", "framework": "python.yaml", "micro_batch": 4,
                "parallelism": {"tensor": tensor, "data": 8 // tensor, "sharding": "optimizer"}, "micro_batches": tensor,
                "sequence_length": 1024}})  # fmt: skip
            found = json.loads(self.run_weft("workload", path, "--json").out)
            with self.subTest(tensor=tensor):
                self.assertGreater(found["critical_path"]["host_seconds"], 0.99 * blocks[tensor] * 4 * host)
                self.assertLess(abs(found["ideal_step_seconds"] / seconds - 1), 0.25)
                launches = json.loads(self.run_weft("workload", path, "--json", "--set", "workload.framework=megatron_core").out)
                self.assertLess(launches["ideal_step_seconds"], 0.25 * seconds)

    def test_a_host_that_may_bound_the_step_is_told(self):
        """A block of GPT-2 takes an H100 a millisecond, of Llama 3.1 70B on eight ranks more than the host was ever seen to take."""
        job = {"topology": {"kind": "server", "design": "hgx_h100"}, "network": {"fidelity": "ideal"}, "workload": {
            "kind": "training", "model": "gpt2", "device": "h100-sxm", "framework": "megatron_core", "parallelism": {"data": 8}}}
        told = r"\n  host +launches alone are counted. Both passes of a block take the device ([0-9.]+) ms, and the host 2.2 to 5.1 ms .* up to ([0-9.]+) times"
        found = re.search(told, self.run_weft("describe", self.write(job)).out)
        self.assertAlmostEqual(float(found[1]) * float(found[2]), 5.1, delta=0.3)
        large = {"model": "llama-3.1-70b", "parallelism": {"tensor": 8}, "sequence_length": 8192}
        mine = (SOURCE / "workloads/frameworks/megatron_core.yaml").read_text()
        plain = "host: {kernel: 7 us, collective: 20 us}"
        (self.folder / "mine.yaml").write_text(mine.replace(plain, plain[:-1] + ", attention: 1 ms, mlp: 1 ms}"))
        for change in (large, {"framework": "mine.yaml"}, {"cuda_graphs": True}, {"framework": "megatron_2022"}):
            out = self.run_weft("describe", self.write({**job, "workload": {**job["workload"], **change}})).out
            self.assertNotIn("launches alone", out, change)
        (self.folder / "mine.yaml").write_text(mine.replace("max: 5.1 ms", "max: 1 ms"))
        done = weft("describe", self.write({**job, "workload": {**job["workload"], "framework": "mine.yaml"}}), folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT)
        self.assertRegex(done.err, r"mine.yaml:\d+: .*max.*no less than `min`")

    def test_each_expert_is_a_launch(self):
        """Transformer Engine calls cuBLAS for each expert (te_grouped_gemm): a block of Mixtral 8x7B has two GEMMs of experts
        forward (w1 and w3 in one, and w2) and four backward. A catalogue without `expert_streams` has one grouped kernel for all
        eight experts."""
        each = (SOURCE / "workloads/frameworks/megatron_core.yaml").read_text()
        grouped = each.replace("\nexpert_streams: 4\n", "\n")
        self.assertNotEqual(each, grouped)
        (self.folder / "grouped.yaml").write_text(grouped)
        hosts = []
        for framework in ("megatron_core", "grouped.yaml"):
            path = self.job(model="mixtral-8x7b", framework=framework, recompute="none", sequence_length=128)
            _, results = self.simulate(path, "--set", "topology.hosts=1")
            hosts.append(int(table(results, "ranks")["host"][0]))
        blocks, gemms, more, launch = 32, 2 + 4, 8 - 1, 7_000_000
        self.assertEqual(hosts[0] - hosts[1], blocks * gemms * more * launch)

    def test_graphs_launch_parts_of_blocks(self):
        """Transformer Engine's graphs of attention, or of a router with the norm before it and what counts tokens (cuda_graph_scope of
        Megatron-LM). A block of Mixtral 8x7B in bf16 has, by megatron_core.yaml, in attention forward a norm, two GEMMs, rotary positions,
        fused attention and a residual, and backward four GEMMs, fused attention, three gradients of small kernels, a concatenation and a
        sum of gradients, less the residual's, which is none: 6 and 9. Around the router it has a norm, a GEMM and four kernels forward,
        two GEMMs, seven kernels, the norm's gradient and a sum backward: 6 and 11. A graph is one launch."""
        def host(**more):
            path = self.job(model="mixtral-8x7b", framework="megatron_core", recompute="none", sequence_length=128,
                            fused_router=True, **more)  # fmt: skip
            _, results = self.simulate(path, "--set", "topology.hosts=1")
            return int(table(results, "ranks")["host"][0])

        blocks, launch, eager = 32, 7_000_000, host()
        attention, router = 6 + 9 - 2, 6 + 11 - 2
        self.assertEqual(eager - host(cuda_graphs=["attention"]), blocks * launch * attention)
        self.assertEqual(eager - host(cuda_graphs=["router"]), blocks * launch * router)
        self.assertEqual(eager - host(cuda_graphs=["attention", "router"]), blocks * launch * (attention + router))
        self.assertEqual(host(cuda_graphs=[]), eager)
        refused = weft("describe", self.job(framework="megatron_core", cuda_graphs=["experts"]), folder=self.folder)
        self.assertEqual(refused.code, 2)
        self.assertIn("unknown value 'experts'; expected one of: attention, router", refused.err)

    def test_times_of_parts_of_blocks(self):
        """`attention`, `router` and `expert` of a catalogue's host replace the launches of these parts, in each of two passes through 32
        blocks of Mixtral 8x7B: 15 kernels of attention and 17 around the router (see above), and those of eight experts. A graph
        launches its part without them."""
        catalogue = (SOURCE / "workloads/frameworks/megatron_core.yaml").read_text()
        plain = "host: {kernel: 7 us, collective: 20 us}"
        self.assertIn(plain, catalogue)

        def host(said="", **more):
            (self.folder / "said.yaml").write_text(catalogue.replace(plain, f"{plain[:-1]}{said}}}"))
            path = self.job(model="mixtral-8x7b", framework="said.yaml", recompute="none", sequence_length=128, fused_router=True, **more)
            _, results = self.simulate(path, "--set", "topology.hosts=1")
            return table(results, "ranks")["host"][0] * 1e-6  # us

        passes, eager = 2 * 32, host()
        self.assertAlmostEqual(host(", attention: 1 ms") - eager, passes * 1000 - 32 * 15 * 7, delta=1)
        self.assertAlmostEqual(host(", router: 1 ms") - eager, passes * 1000 - 32 * 17 * 7, delta=1)
        self.assertAlmostEqual(host(", expert: 300 us") - host(", expert: 200 us"), passes * 8 * 100, delta=1)
        graphs = ["attention", "router"]
        self.assertAlmostEqual(host(", attention: 1 ms, router: 1 ms", cuda_graphs=graphs), host(cuda_graphs=graphs), delta=1e-3)

    def test_the_device_begins_with_the_first_kernel(self):
        """An embedding has two kernels in eager PyTorch or more. It begins when the first one is launched, not when all are; launches do
        not become fewer."""
        _, results = self.simulate(self.job(), "--set", "output.operations=true")
        operations = table(results, "operations")
        launches = operations["kind"] == 4
        first = operations["start"][~launches].min()
        catalogue = (SOURCE / "workloads/frameworks/pytorch_eager.yaml").read_text()
        launch = float(catalogue.split("host: {kernel: ")[1].split(" us")[0])
        self.assertEqual(first, round(launch * 1e6))

    def test_the_host_waits_for_numbers_of_tokens(self):
        """Mixtral 8x7B, an expert on each of eight ranks. Behind each of 32 routers every rank gathers 8 numbers of 8 B of 8 ranks, and
        launches the exchange when they have come. With padding to the capacity all is known before
        (token_dispatcher.py, drop_and_pad)."""
        def operations(**more):
            path = self.job(model="mixtral-8x7b", framework="megatron_core", recompute="none", sequence_length=128, **more)
            _, results = self.simulate(path, "--set", "output.operations=true")
            found, calls = table(results, "operations"), table(results, "collectives")
            return {name: found[name][found["rank"] == 0] for name in found} | {"calls": calls}

        eight = {"parallelism": {"data": 8, "expert": 8}}
        found = operations(**eight)
        labels = found["label"].astype(str)
        numbers, sent = (np.flatnonzero(np.char.endswith(labels, what)) for what in (" numbers of tokens", " dispatch"))
        self.assertEqual((len(numbers), len(sent)), (32, 32))
        sizes = dict(zip(found["calls"]["id"], found["calls"]["bytes"], strict=True))
        self.assertEqual({sizes[call] for call in found["collective"][numbers]}, {8 * 8 * 8})
        for told, left in zip(found["end"][numbers], found["start"][sent], strict=True):
            self.assertGreaterEqual(left - told, 20_000_000)  # the launch of a collective
        padded = operations(**eight, capacity_factor=1, pad_to_capacity=True)["label"].astype(str)
        self.assertFalse(np.char.endswith(padded, " numbers of tokens").any())

    def test_same_results_on_any_number_of_processes(self):
        path = self.job(parallelism={"data": 4}, sequence_length=128, cuda_graphs=False)
        self.simulate(path, "--set", "output.operations=true", output="1.h5")
        for ranks in (2, 3, 4, 8):
            self.simulate(path, "--set", "output.operations=true", output=f"{ranks}.h5", ranks=ranks)
            self.assert_same_results(self.folder / "1.h5", self.folder / f"{ranks}.h5")


if __name__ == "__main__":
    unittest.main()
