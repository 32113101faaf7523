#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 300 s
"""`weft workload`: its counts are the traffic of a run, its step time is that of a run, its bubbles are those of the
literature, and the verdict on memory is first."""

import decimal
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, STAR, ProgramTest, attributes, table, weft  # noqa: E402

MODEL = {"model_type": "llama", "max_position_embeddings": 4096, "hidden_size": 256, "intermediate_size": 512,
         "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 64,
         "tie_word_embeddings": False}
MIXTURE = {"model_type": "mixtral", "max_position_embeddings": 4096, "hidden_size": 128, "intermediate_size": 256,
           "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 64,
           "num_local_experts": 8, "num_experts_per_tok": 2}
# The cost of a network that takes almost no time.
FREE = {"kind": "star", "hosts": 16, "link_rate": "900 Tb/s", "link_delay": "1 ps"}


class WorkloadTest(ProgramTest):
    def job(self, hosts=8, model=None, network=None, topology=None, ready_made=None, **workload):
        (self.folder / "config.json").write_text(json.dumps(model or MODEL))
        return {"topology": topology or {**STAR, "hosts": hosts}, "network": network or NETWORK,
                "workload": {"kind": "training", "model": "config.json" if ready_made is None else ready_made,
                             "device": "h100-sxm", "micro_batch": 1, "sequence_length": 256, **workload}}

    def report(self, experiment, *words):
        return json.loads(self.run_weft("workload", self.write(experiment), "--json", *words).out)


class Counts(WorkloadTest):
    def assert_counts_of_a_run(self, experiment):
        report = self.report(experiment)
        _, results = self.simulate(experiment, "--set", "network.fidelity=ideal", "--set", "output.operations=true")
        ranks, operations, calls = table(results, "ranks"), table(results, "operations"), table(results, "collectives")
        steps = report["steps"]
        # Bytes on the wire, as hosts have counted them.
        self.assertEqual(report["bytes_per_step"] * steps, ranks["bytes_sent"].sum())
        messages = table(results, "messages")
        direct = messages["bytes"][messages["collective"] == -1].sum() if "collective" in messages else 0
        self.assertEqual(report["bytes_by_kind"].get("send", 0) * steps, direct)
        of_kind = dict(zip(calls["id"], calls["kind"]))
        for kind in set(calls["kind"]):
            sent = sum(size for size, call in zip(messages["bytes"], messages["collective"])
                       if call >= 0 and of_kind[call] == kind)
            self.assertEqual(report["bytes_by_kind"].get(kind, 0) * steps, sent, kind)
        counted = {kind: one["operations"] * steps for kind, one in report["operations_by_kind"].items()}
        self.assertEqual(sum(counted.values()), len(operations["rank"]))
        self.assertEqual(counted["compute"], (operations["kind"] == 0).sum())
        # The same step, to the picosecond.
        self.assertAlmostEqual(report["ideal_step_seconds"] * steps * 1e12, attributes(results)["simulated_time"],
                               delta=1)
        for one in report["of_ranks"]:
            mine = (operations["rank"] == one["rank"]) & (operations["kind"] == 0)
            span = (operations["end"] - operations["start"])[mine].sum()
            self.assertAlmostEqual(one["compute_seconds"] * steps * 1e12, span, delta=steps)
            parts = (one["busy_seconds"] + one["exposed_communication_seconds"] + one["waiting_seconds"] +
                     one["idle_seconds"])
            self.assertAlmostEqual(parts, report["ideal_step_seconds"], delta=1e-12)
        path = report["critical_path"]
        self.assertAlmostEqual(
            path["compute_seconds"] + sum(path["communication_seconds"].values()) + path["other_seconds"],
            report["ideal_step_seconds"], delta=1e-12)
        return report

    def test_bytes_operations_and_time_are_those_of_a_run(self):
        for workload in [
            {"parallelism": {"data": 8}, "steps": 2},
            {"parallelism": {"tensor": 2, "pipeline": 2, "data": 2, "sequence": True, "sharding": "optimizer"},
             "micro_batches": 4},
            {"parallelism": {"context": 4, "data": 2}, "algorithm": "double_binary_tree"},
            {"parallelism": {"data": 8, "sharding": "parameters"}},
        ]:
            with self.subTest(workload=workload):
                self.assert_counts_of_a_run(self.job(**workload))
        self.assert_counts_of_a_run(
            self.job(model=MIXTURE, parallelism={"expert": 4, "pipeline": 2, "data": 4}, micro_batches=4))

    def test_throughput_of_a_run(self):
        """Tokens and model FLOPs of a step, over its time: 8 ranks with a sequence of 256 tokens each, two steps."""
        experiment = self.job(parallelism={"data": 8}, steps=2)
        report, file = self.report(experiment), self.write(experiment)
        summary = json.loads(self.run_weft("run", file, "--summary", "json", "--quiet").out)
        step = summary["jobs"][0]["step_time_ps"] * 1e-12
        expected = {"sequences_per_second": 8 / step, "tokens_per_second": 8 * 256 / step,
                    "model_flops_per_second_of_a_rank": report["model_flops_per_step"] / 8 / step,
                    "model_flops_causal_per_second_of_a_rank": report["model_flops_per_step_causal"] / 8 / step}
        self.assertEqual(summary["throughput"].keys(), expected.keys())
        for name, value in expected.items():
            self.assertAlmostEqual(summary["throughput"][name] / value, 1, delta=1e-9)
        self.assertRegex(self.run_weft("run", file).out, r"\n  throughput +[\d.]+ [kM]? ?tokens/s; model FLOPs per rank [\d.]+ [GT]FLOP/s, ")
        # Two of the eight copies are simulated, and the throughput is that of all.
        some = json.loads(self.run_weft("run", file, "--summary", "json", "--quiet", "--set", "workload.symmetry={data: 2}").out)
        step = some["jobs"][0]["step_time_ps"] * 1e-12
        self.assertEqual(some["jobs"][0]["ranks"], 2)
        self.assertAlmostEqual(some["throughput"]["tokens_per_second"] * step, 8 * 256, delta=1e-6)
        self.assertAlmostEqual(some["throughput"]["model_flops_per_second_of_a_rank"] * step, report["model_flops_per_step"] / 8,
                               delta=1)
        cut = json.loads(self.run_weft("run", file, "--summary", "json", "--quiet", "--set", "simulation.until=1 us").out)
        self.assertNotIn("throughput", cut)

    def test_other_kinds_of_workload(self):
        experiment = {"topology": STAR, "network": NETWORK,
                      "workload": {"kind": "program", "ranks": 2, "operations": [
                          {"rank": 0, "id": "a", "compute": "10 us"},
                          {"rank": 0, "send": "1 MB", "to": 1, "after": "a"},
                          {"rank": 1, "recv": "1 MB", "from": 0, "id": "b"},
                          {"rank": 1, "compute": "5 us", "after": "b"}]}}
        report = self.report(experiment)
        self.assertEqual(report["bytes_by_kind"], {"send": 1_000_000})
        self.assertIsNone(report["parameters"])
        path = report["critical_path"]
        self.assertAlmostEqual(path["compute_seconds"], 15e-6, delta=1e-15)
        # Rank 1 waits 10 us for rank 0's computation, and then for the message.
        second = self.report(experiment, "--ranks", "1")["of_ranks"]
        self.assertEqual([one["rank"] for one in second], [1])
        self.assertAlmostEqual(second[0]["waiting_seconds"], 10e-6, delta=1e-15)
        self.assertAlmostEqual(second[0]["exposed_communication_seconds"],
                               path["communication_seconds"]["other"], delta=1e-15)


class Bubbles(WorkloadTest):
    def test_bubbles_are_those_of_the_literature(self):
        """Narayanan et al., arXiv:2104.04473, 2.2: (p-1)(F+B)/v idle of a step of that + m(F+B). The model's parts are not all
        alike: embedding, head and optimizer take a part of the step that is not in the formula; it is read from the report
        itself."""
        for schedule, stages, more in [("gpipe", 1, {}), ("1f1b", 1, {}), ("interleaved", 2, {"virtual_stages": 2})]:
            with self.subTest(schedule=schedule):
                p, m = 4, 8
                experiment = self.job(
                    topology=FREE, network={**NETWORK, "ack": "none"},
                    parallelism={"pipeline": p, "data": 1, "schedule": schedule, **more}, micro_batches=m,
                    clip_gradients=False)
                report = self.report(experiment, "--ranks", *map(str, range(p)))
                closed = (p - 1) / stages / ((p - 1) / stages + m)
                self.assertAlmostEqual(report["bubble_closed_form"], closed, delta=1e-9)
                # Mean over ranks of 1 - compute / step; without communication nothing else is there.
                step = report["ideal_step_seconds"]
                busy = [one["compute_seconds"] / step for one in report["of_ranks"]]
                self.assertAlmostEqual(report["bubble_fraction"] + report["exposed_communication_fraction"],
                                       1 - sum(busy) / p, delta=1e-9)
                self.assertLess(report["exposed_communication_fraction"], 1e-3)
                # The slowest stage sets the pace: the step is at least that of p + m - 1 such stages.
                pace = max(one["compute_seconds"] for one in report["of_ranks"])
                least = min(one["compute_seconds"] for one in report["of_ranks"])
                self.assertLessEqual(1 - sum(busy) / p, 1 - least / (pace * (1 + (p - 1) / stages / m)) + 1e-3)
                self.assertGreaterEqual(step, max(one["compute_seconds"] for one in report["of_ranks"]))


class Memory(WorkloadTest):
    big = {"ready_made": "llama-3.1-8b", "parallelism": {"data": 8}}

    def test_the_verdict_comes_first(self):
        experiment = self.job(**self.big)
        done = self.run_weft("workload", self.write(experiment), "--no-run")
        self.assertTrue(done.out.startswith("memory: OUT OF MEMORY: "), done)
        report = self.report(experiment, "--no-run")
        self.assertTrue(report["out_of_memory"])
        self.assertIsNone(report["ideal_step_seconds"])
        memory = report["memory_per_rank_bytes"]
        self.assertEqual(memory["sum"], sum(size for name, size in memory.items() if name != "sum"))
        # 2 bytes of parameters and gradients and 12 of Adam's state: Rajbhandari et al., arXiv:1910.02054, 3.1.
        self.assertEqual(memory["parameters"], 2 * report["parameters"])
        self.assertEqual(memory["optimizer"], 12 * report["parameters"])
        self.assertEqual(memory, report["of_ranks"][0]["memory_bytes"])

    def test_refused_on_demand(self):
        experiment = self.job(**self.big, out_of_memory="refuse")
        for command in ["run", "workload", "describe"]:
            done = weft(command, self.write(experiment), folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn("`workload.out_of_memory`: OUT OF MEMORY: the fullest rank needs", done.err)
        fits = self.job(parallelism={"data": 8}, out_of_memory="refuse")
        self.assertFalse(self.report(fits)["out_of_memory"])

    def test_a_run_warns(self):
        experiment = self.job(hosts=1, **{**self.big, "parallelism": {"data": 1}})
        done = weft("run", self.write(experiment), "--set", "simulation.until=1 us", folder=self.folder)
        self.assertEqual(done.code, 0, done)
        self.assertEqual([line[:30] for line in done.messages()], ["weft: warning: OUT OF MEMORY: "])


class Timeline(WorkloadTest):
    def test_events_are_the_operations_of_a_run(self):
        experiment = self.job(parallelism={"tensor": 2, "pipeline": 2, "data": 2}, micro_batches=4)
        self.report(experiment, "--timeline", "all.json")
        _, results = self.simulate(experiment, "--set", "network.fidelity=ideal", "--set", "output.operations=true")
        operations = table(results, "operations")
        trace = json.loads((self.folder / "all.json").read_text(), parse_float=decimal.Decimal)
        events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        names = {(event["pid"], event["tid"]): event["args"]["name"]
                 for event in trace["traceEvents"] if event["ph"] == "M" and event["name"] == "thread_name"}
        self.assertEqual({event["pid"] for event in trace["traceEvents"] if event["name"] == "process_name"},
                         set(range(8)))
        found = {(event["pid"], event["args"]["operation"]):
                 (int(event["ts"] * 10**6), int((event["ts"] + event["dur"]) * 10**6), event["name"]) for event in events}
        due = {(rank, number): (start, end, label) for rank, number, start, end, label in
               zip(*(operations[column] for column in ("rank", "operation", "start", "end", "label")))}
        self.assertEqual(found, due)
        # Nothing overlaps within a thread, and every thread has a name.
        threads = {}
        for event in events:
            threads.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        self.assertEqual(set(threads), set(names))
        self.assertLessEqual({"compute", "tensor", "communication", "messages 0"}, set(names.values()))
        for spans in threads.values():
            spans.sort()
            self.assertTrue(all(before[1] <= after[0] for before, after in zip(spans, spans[1:])))
        # Of some ranks only.
        self.report(experiment, "--timeline", "some.json", "--ranks", "5", "2")
        some = json.loads((self.folder / "some.json").read_text())["traceEvents"]
        self.assertEqual({event["pid"] for event in some}, {2, 5})


class Dump(WorkloadTest):
    def assert_same_when_read_back(self, experiment, *words):
        path = self.write(experiment)
        self.run_weft("workload", path, "--dump", "dump.yaml", "--no-run", "--quiet")
        first, a = self.simulate(path, *words, output="a.h5")
        second, b = self.simulate(self.folder / "dump.yaml", *words, output="b.h5")
        self.assertEqual(first["fingerprint"], second["fingerprint"])
        for name in ("messages", "collectives", "ranks", "links"):
            one, other = table(a, name), table(b, name)
            self.assertEqual(set(one), set(other))
            for column in one:
                self.assertTrue((one[column] == other[column]).all(), f"{name}/{column}")
        return (self.folder / "dump.yaml").read_text()

    def test_plans_of_parallelism(self):
        packets = {"micro_batches": 4, "sequence_length": 64}
        for workload in [
            {"parallelism": {"data": 8}, "steps": 2, "algorithm": "double_binary_tree"},
            {"parallelism": {"tensor": 2, "pipeline": 2, "data": 2, "sequence": True, "sharding": "optimizer"}},
            {"parallelism": {"pipeline": 4, "data": 2, "schedule": "interleaved", "virtual_stages": 2},
             "placement": "random"},
            {"parallelism": {"context": 4, "data": 2}, "channels": 2, "collectives": {"data": {"chunk_size": "64 KiB"}}},
            {"parallelism": {"data": 8, "sharding": "parameters"}, "steps": 2},
        ]:
            with self.subTest(workload=workload):
                self.assert_same_when_read_back(self.job(**{**packets, **workload}))
        self.assert_same_when_read_back(
            self.job(parallelism={"tensor": 4, "data": 2}), "--set", "network.fidelity=ideal")

    def test_collectives_on_servers(self):
        """With the times of NCCL's kernels on two servers of eight H100, and of its messages between them."""
        servers = {"kind": "leaf_spine", "leaves": 8, "spines": 1, "hosts_per_leaf": 2, "link_rate": "400 Gb/s", "link_delay": "500 ns",
                   "server": {"design": "hgx_h100", "wiring": "rail"}}  # fmt: skip
        for workload in [
            {"parallelism": {"tensor": 8, "data": 2, "sequence": True}},
            {"parallelism": {"tensor": 2, "data": 8}, "nccl_version": "2.18", "kernel_constants": "high", "micro_batch": 4},
            {"parallelism": {"data": 16}, "algorithm": "ring", "launch_latency": "3 us", "step_latency": "1 us"},
        ]:
            with self.subTest(workload=workload):
                text = self.assert_same_when_read_back(self.job(topology=servers, **workload), "--set", "network.fidelity=ideal")
                self.assertEqual("collective_kernel" in text, "algorithm" not in workload)

    def test_uneven_routing(self):
        text = self.assert_same_when_read_back(
            self.job(model=MIXTURE, parallelism={"expert": 4, "pipeline": 2, "data": 4}, micro_batches=2,
                     sequence_length=64, routing={"spread": 1.0}))
        self.assertIn("blocks: [", text)

    def test_ranks_that_do_the_same_share_lines(self):
        self.run_weft("workload", self.write(self.job(parallelism={"data": 8})), "--dump", "dump.yaml", "--no-run",
                      "--quiet")
        report = self.report(self.job(parallelism={"data": 8}), "--no-run")
        lines = [line for line in (self.folder / "dump.yaml").read_text().splitlines() if line.startswith("    {")]
        self.assertEqual(len(lines), report["of_ranks"][0]["operations"])

    def test_what_cannot_be_written(self):
        traffic = {"topology": STAR, "network": NETWORK,
                   "workload": {"kind": "traffic", "pattern": "incast", "size": "1 MiB", "destination": 0, "sources": 3}}
        noisy = self.job(parallelism={"data": 8}, compute_noise={"jitter": 0.1})
        for experiment in [traffic, noisy]:
            done = weft("workload", self.write(experiment), "--dump", "dump.yaml", folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)


class Configurations(WorkloadTest):
    def test_a_model_by_itself(self):
        (self.folder / "config.json").write_text(json.dumps(MODEL))
        report = json.loads(self.run_weft("workload", "config.json", "--json", "--set", "topology.hosts=4", "--set",
                                          "workload.parallelism={tensor: 2}", "--set",
                                          "workload.sequence_length=256").out)
        same = self.report({"topology": {**STAR, "hosts": 4}, "network": NETWORK,
                            "workload": {"kind": "training", "model": "config.json", "device": "h100-sxm",
                                         "parallelism": {"tensor": 2}, "sequence_length": 256}})
        del report["experiment"], same["experiment"]
        self.assertEqual(report, same)

    def test_megatrons_arguments(self):
        (self.folder / "train.sh").write_text(
            "torchrun pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 8 --seq-length 128 "
            "--max-position-embeddings 128 --micro-batch-size 1 --global-batch-size 8 --bf16 --vocab-size 512 "
            "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2\n")
        report = json.loads(self.run_weft("workload", "train.sh", "--json").out)
        self.assertEqual(report["ranks"], 4)
        self.assertLessEqual({"tensor", "pipeline"}, set(report["bytes_by_communicator"]))


    def test_deepspeed_and_the_trainer_by_themselves(self):
        (self.folder / "ds.json").write_text(json.dumps({"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True},
                                                         "zero_optimization": {"stage": 1}}))
        (self.folder / "args.yaml").write_text("per_device_train_batch_size: 2\nbf16: true\ndeepspeed: ds.json\n")
        for name in ("ds.json", "args.yaml"):
            done = weft("workload", name, "--json", folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn("describes no model; also give `model`", done.err)
        (self.folder / "config.json").write_text(json.dumps({**MODEL, "colour": "green", "hidden_act": "silu"}))
        for name in ("ds.json", "args.yaml"):
            report = json.loads(self.run_weft("workload", name, "--json", "--set", "workload.sequence_length=128").out)
            self.assertEqual(report["ranks"], 8)
            self.assertIn("reduce_scatter", report["bytes_by_kind"])
        # Unknown fields are named, once.
        text = self.run_weft("workload", "ds.json", "--no-run", "--set", "workload.sequence_length=128").out
        self.assertEqual(text.count("colour"), 1)
        self.assertNotIn("hidden_act", text)


class Descriptions(WorkloadTest):
    def counts(self, line):
        """`93000: all_reduce 2400 compute 88200 ...`: {"": all, kind: count}."""
        total, kinds = line.strip().replace(",", "").split(":")
        words = kinds.split()
        found = dict(zip(words[::2], map(int, words[1::2])))
        self.assertEqual(sum(found.values()), int(total))
        return {"": int(total), **found}

    def test_some_of_each_kind_stand_for_many(self):
        def lines(ranks):
            job = self.job(hosts=ranks, parallelism={"data": ranks // 2, "pipeline": 2}, bucket_size="1 GiB",
                           first_bucket_size="1 GiB")
            done = self.run_weft("describe", self.write(job))
            return {name.strip(): value for name, value in (line.split("  ", 1) for line in
                    (text.strip() for text in done.out.splitlines()) if "  " in line)}

        few, many = lines(4), lines(1200)
        self.assertNotIn("counted", few)
        self.assertIn("on 256 of the ranks", many["counted"])
        self.assertEqual(self.counts(many["operations"]), {kind: 300 * count for kind, count in
                                                           self.counts(few["operations"]).items()})
        self.assertEqual(many["compute of the busiest"], few["compute of the busiest"])


class Errors(WorkloadTest):
    def test_mistakes(self):
        path = self.write(self.job(parallelism={"data": 8}))
        for words, message in [(["--ranks", "8"], "--ranks found 8; ranks 0 to 7 are there"),
                               (["--ranks", "x"], "--ranks"), ([path], "unexpected word")]:
            done = weft("workload", path, *words, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(message, done.err)
        done = weft("workload", path, folder=self.folder, ranks=2)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("runs on one MPI rank, found 2", done.err)


if __name__ == "__main__":
    unittest.main()
