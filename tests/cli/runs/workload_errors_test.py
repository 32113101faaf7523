#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Every way in which a workload and its files can be wrong, and deadlocks: one message that names the line, and what would be
right."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from error_testing import COLLECTIVE, GOOD, TRAFFIC, ErrorTest, with_part
from weft_testing import EXIT_INPUT

TRAINING = """\
  kind: training
  model: model.json
  device: device.yaml
  parallelism: {data: 4}
  micro_batch: 1
  sequence_length: 64
"""

PROGRAM = """\
  kind: program
  ranks: 4
  operations:
    - {rank: 0, id: first, send: 1 kB, to: 1}
    - {rank: 1, id: first, recv: 1 kB, from: 0}
    - {rank: 1, id: second, compute: 1 us, after: first}
"""

MODEL = """\
{
  "model_type": "gpt2",
  "vocab_size": 100,
  "n_positions": 64,
  "n_embd": 16,
  "n_layer": 1,
  "n_head": 4
}
"""

DEVICE = """\
name: small
peak:
  bf16: 1 TFLOP/s
efficiency: 0.5
memory_bandwidth: 1 TB/s
memory: 80 GB
"""


class Workloads(ErrorTest):
    def test_traffic(self):
        self.wrong(("[[0, 1]]", "[[0, 4]]"), "rank 4 is out of range: there are ranks 0 to 3")
        self.wrong(("[[0, 1]]", "[[-1, 1]]"), "rank -1 is out of range")
        self.wrong(("[[0, 1]]", "[[2, 2]]"), "rank 2 sends to itself")
        self.wrong(("[[0, 1]]", "[[0, 1, 2]]"), "a pair is")
        self.wrong(("[[0, 1]]", "[0, 1]"), "a pair is")
        self.wrong(("[[0, 1]]", "[[0, one]]"), "expected a whole number.*'one'")
        self.wrong(("  size:", "  ranks: 5\n  size:"), "5 ranks, but the machine has 4 hosts")
        self.wrong(("  size:", "  ranks: 0\n  size:"), "give at least 1")
        self.wrong(("  size:", "  queue_pairs: 0\n  size:"), "from 1 to")
        self.wrong(("  size:", "  start: 5\n  size:"), "unit")
        self.wrong(("  size:", "  start: {process: poison, interval: 1 us, count: 2}\n  size:"), "did you mean 'poisson'")
        self.wrong(("  size:", "  start: {process: poisson, count: 2}\n  size:"), "neither 'load' nor 'interval'")
        self.wrong(("  size:", "  start: {process: poisson, interval: 0 us, count: 2}\n  size:"), "interval of 0")
        incast = with_part("pattern: pairs\n  pairs: [[0, 1]]", "pattern: incast\n  destination: 0")
        self.wrong(("destination: 0", "destination: 4"), "rank 4 is out of range", incast)
        self.wrong(("destination: 0", "sources: 4"), "from 1 to 3", incast)
        shift = with_part("pattern: pairs\n  pairs: [[0, 1]]", "pattern: permutation\n  shift: 1")
        self.wrong(("shift: 1", "shift: 4"), "sends to itself", shift)

    def test_collective(self):
        collective = with_part(TRAFFIC, COLLECTIVE)
        self.wrong(("  size:", "  ranks: 5\n  size:"), "5 ranks, but the machine has 4 hosts", collective)
        self.wrong(("  size:", "  iterations: 0\n  size:"), "at least 1|from 1 to", collective)
        self.wrong(("  size:", "  channels: 0\n  size:"), "at least 1|from 1 to", collective)
        self.wrong(("  size:", "  chunk_size: 0 B\n  size:"), "chunk of 0 B", collective)
        self.wrong(("  size:", "  root: 1\n  size:"), "no root", collective)
        broadcast = collective.replace("all_reduce", "broadcast")
        self.wrong(("  size:", "  root: 4\n  size:"), "root 4 is out of range", broadcast)

    def test_placement(self):
        where = "  placement: packed\n  size:"
        by_rail = "'by_rail' needs a machine of servers.*the key 'server', such as server: {design: hgx_h100}"
        self.wrong(("  size:", where.replace("packed", "by_rail")), by_rail)
        # Its advice is right.
        path = self.write(GOOD.replace("hosts: 4\n", "hosts: 8\n  server: {design: hgx_h100}\n")
                          .replace("  size:", where.replace("packed", "by_rail")))
        self.run_weft("describe", path)
        for found in ["[0, 1]", "[packed]", "[[0, 1]]"]:
            self.wrong(("  size:", where.replace("packed", found)),
                       "a list is of pieces.*placement: {hosts: .0, 1, ...]}")
        self.wrong(("  size:", where.replace("packed", "pakced")), "'pakced'.*did you mean 'packed'")

    def test_program(self):
        program = with_part(TRAFFIC, PROGRAM)
        self.wrong(("\n    - {rank: 1, id: first, recv: 1 kB, from: 0}", "\n    - {rank: 1, id: first, compute: 1 us}"),
                   "the send from rank 0 to rank 1 with tag 0 has no recv", program, at="- {rank: 0, id: first")
        self.wrong(("recv: 1 kB, from: 0", "recv: 2 kB, from: 0"), "the send \\(line 17\\) has 1 kB, the recv \\(line 18\\)",
                   program, at="- {rank: 0, id: first")
        self.wrong(("recv: 1 kB, from: 0", "recv: 1 kB, from: 0, tag: 3"), "has no", program, at="- {rank: 0, id: first")
        self.wrong(("after: first", "after: fist"), "unknown operation 'fist'.*did you mean 'first'", program)
        self.wrong(("after: first", "after: second"), "not yet defined", program)
        self.wrong(("rank: 1, id: second", "rank: 2, id: second"), "rank 2 has no earlier operation 'first'", program)
        self.wrong(("id: second", "id: first"), "a rank has two operations 'first'", program, at="id: first, compute")
        self.wrong(("to: 1}", "to: 0}"), "rank 0 would send to itself", program)
        self.wrong(("to: 1}", "to: 9}"), "rank 9 is out of range", program)
        self.wrong(("rank: 0, id: first", "rank: 4, id: first"), "rank 4 is out of range", program)
        self.wrong(("compute: 1 us", "compte: 1 us"), "exactly one of compute.*did you mean 'compute'", program)
        self.wrong(("compute: 1 us", "compute: 1"), "unit", program)
        self.wrong(("ranks: 4", "ranks: 5"), "5 ranks, but the machine has 4 hosts", program)
        collective = program.replace("rank: 1, id: second, compute: 1 us", "collective: all_reduce, size: 1 kB")
        self.wrong(("after: first", "communicator: half"), "unknown communicator 'half'", collective)
        self.wrong(("after: first", "algorithm: rign"), "unknown algorithm 'rign'.*did you mean 'ring'", collective)

    def test_program_file(self):
        program = with_part(TRAFFIC, "  kind: program\n  file: trace.yaml\n")
        self.wrong(("file: trace.yaml", "file: trace.yaml"), "there is no file", program)
        trace = self.write("ranks: 4\noperations:\n  - {rank: 0, send: 1 B, to: 1}\n", "trace.yaml")
        self.run_wrong(["run", self.write(program)], EXIT_INPUT, "has no recv", f"{trace}:3")

    def test_deadlock(self):
        """Each waits for the other's message before it sends its own: found when nothing moves any more."""
        text = with_part(TRAFFIC, """\
  kind: program
  ranks: 2
  operations:
    - {rank: 0, id: "from 1", recv: 1 kB, from: 1}
    - {rank: 1, id: "from 0", recv: 1 kB, from: 0}
    - {rank: 0, id: "to 1", send: 1 kB, to: 1, after: "from 1"}
    - {rank: 1, id: "to 0", send: 1 kB, to: 0, after: "from 0"}
""")
        path = self.write(text)
        for ranks, engine in [(None, "weft"), (None, "ns3-default"), (2, "weft"), (4, "weft")]:
            with self.subTest(ranks=ranks, engine=engine):
                done = self.run_wrong(["run", path, "--engine", engine], EXIT_INPUT, "unfinished operations", path, ranks)
                lines = [line.strip() for line in done.err.splitlines()[1:] if line.startswith("  rank")]
                cycle = ["rank 0 waits for rank 1", "rank 1 waits for rank 0"]
                self.assertEqual([line.split(":")[0] for line in lines], ["rank 0", "rank 0", "rank 1", "rank 1", *cycle], done)
                self.assertRegex(lines[0], r"'from 1' \(line 17\), recv of 1 kB from rank 1, tag 0: no such message", done)
                self.assertRegex(lines[1], r"'to 1' \(line 19\), send of 1 kB to rank 1, .*waits for 1 ", done)

    def test_deadlock_around_a_collective(self):
        """Rank 0 enters the collective after a message that rank 1 sends after the collective."""
        path = self.write(with_part(TRAFFIC, """\
  kind: program
  ranks: 2
  operations:
    - {rank: 0, id: go, recv: 1 kB, from: 1}
    - {rank: 1, id: go, compute: 1 us}
    - {id: sum, collective: all_reduce, size: 1 kB, after: go}
    - {rank: 1, id: late, send: 1 kB, to: 0, after: sum}
"""))
        done = self.run_wrong(["run", path], EXIT_INPUT, "unfinished operations", path)
        self.assertRegex(done.err, "rank 1: operation 2 'sum'.*all_reduce", done)
        self.assertRegex(done.err, "rank 0: operation 0 'go'.*recv of 1 kB from rank 1", done)


class Training(ErrorTest):
    def setUp(self):
        super().setUp()
        self.model = self.write(MODEL, "model.json")
        self.device = self.write(DEVICE, "device.yaml")
        self.text = with_part(TRAFFIC, TRAINING)

    def test_good(self):
        self.run_weft("run", self.write(self.text), "--quiet")

    def test_experiment(self):
        self.wrong(("model: model.json", "model: modle"), "there is no file '.*modle', and no 'modle.json' in '.*models'", self.text)
        self.wrong(("device: device.yaml", "device: none.yaml"), "there is no file", self.text)
        self.wrong(("  model: model.json\n", ""), "missing key 'model'", self.text, at="workload:")
        self.wrong(("{data: 4}", "{data: 5}"), "5 ranks, but the machine has 4 accelerators", self.text)
        self.wrong(("{data: 4}", "{tensor: 3}"), "tensor 3.*do not divide the machine.s accelerators of 4", self.text)
        self.wrong(("{data: 4}", "{dta: 4}"), "'dta'.*did you mean 'data'", self.text)
        for order in ["", "tp", "tp-cp-ep-dp-pp-tp", "tp-cp-ep-dp-dp", "tp-cp-ep-dp-xx"]:
            self.wrong(("{data: 4}", f"{{data: 4, order: '{order}'}}"),
                       f"tp, cp, ep, dp and pp once each.*found '{order}'", self.text)
        self.wrong(("sequence_length: 64", "sequence_length: 65"), "65 tokens, but the model has 64", self.text)
        self.wrong(("micro_batch: 1", "micro_batch: 1\n  precision: fp8"), "'small' has no peak for 'fp8'", self.text,
                   at="precision")
        self.wrong(("micro_batch: 1", "micro_batch: 1\n  bucket_size: 0 B"), "0 B", self.text, at="bucket_size")

    def test_names_of_others(self):
        """Words of other programs and of papers, and their names in weft."""
        self.wrong(("{data: 4}", "{tp: 2}"), "unknown key 'tp' in 'workload.parallelism' .did you mean 'tensor'",
                   self.text)
        self.wrong(("{data: 4}", "{tensor_parallel: 2}"), "did you mean 'tensor'", self.text)
        self.wrong(("parallelism: {data: 4}", "tp: 2"),
                   "unknown key 'tp' in 'workload' .did you mean 'parallelism: {tensor: ...}'", self.text)
        self.wrong(("parallelism: {data: 4}", "pipeline: 2"), "did you mean 'parallelism: {pipeline: ...}'", self.text)
        for found, meant in [("llama3-8b", "llama-3.1-8b"), ("Llama-3-70B", "llama-3.1-70b"),
                             ("llama2_7b", "llama-2-7b"), ("mixtral", "mixtral-8x7b")]:
            self.wrong(("model: model.json", f"model: {found}"), f"no '{found}.json' in .*did you mean '{meant}'",
                       self.text)
        self.wrong(("device: device.yaml", "device: h100"), "did you mean 'h100-sxm'", self.text)

    def test_megatron(self):
        megatron = self.text.replace("  model: model.json\n", "")
        megatron = megatron.replace("  micro_batch: 1\n  sequence_length: 64\n", "")
        megatron = megatron.replace("parallelism: {data: 4}", "megatron: run.sh")
        path = self.write(megatron.replace("run.sh", "nope.sh"))
        self.run_wrong(["run", path], EXIT_INPUT, "there is no file '.*/nope.sh'$", f"{path}:16")
        words = ["--num-layers 1", "--hidden-size 16", "--num-attention-heads 4", "--seq-length 64", "--vocab-size 100",
                 "--max-position-embeddings 64", "--micro-batch-size 1", "--bf16 --global-batch-size 4",
                 "--vocab-file x.json", "--tensor-model-parallel-size 2"]
        good = "python pretrain_gpt.py " + " \\\n  ".join(words) + "\n"
        script = self.write(good, "run.sh")
        experiment = self.write(megatron)
        self.run_weft("describe", experiment)  # the vocabulary's file is an option of Megatron-LM, and near to its size
        for old, new, line in [("tensor-model-parallel-size", "tensor-model-parallel-siz", 10),
                               ("num-layers", "num_layer", 1), ("global-batch-size", "globl-batch-size", 8)]:
            script.write_text(good.replace(f"--{old}", f"--{new}"))
            name = new.replace("_", "-")
            self.run_wrong(["run", experiment], EXIT_INPUT,
                           f"--{name}: there is no such option .did you mean '--{old}'", f"{script}:{line}")

    def test_names_in_the_standard_folders(self):
        models = self.folder / "models"
        models.mkdir()
        self.model.rename(models / "small.json")
        self.wrong(("model: model.json", "model: smal"), "did you mean 'small'.*known here: .*small", self.text)

    def wrong_file(self, path, change, pattern, line):
        old, new = change
        with self.subTest(new):
            good = path.read_text()
            self.assertEqual(good.count(old), 1, old)
            path.write_text(good.replace(old, new))
            where = f"{path}:{line}" if line else path
            self.run_wrong(["run", self.write(self.text)], EXIT_INPUT, pattern, where)
            path.write_text(good)

    def test_model(self):
        for change, pattern, line in [
            (('"n_embd": 16,', '"n_embd": 16'), "not valid JSON", 6),
            (('"n_head": 4\n}', '"n_head": 4\n'), "not valid JSON", 9),
            (('"gpt2"', '"gpt22"'), "unknown model type 'gpt22'.*did you mean 'gpt2'.*gpt2, llama", 2),
            (('  "model_type": "gpt2",\n', ""), "`model_type`: this field is missing", None),
            (('"n_layer": 1', '"n_layers": 1'), "`n_layer`: this field is missing.*did you mean 'n_layers'", None),
            (('"n_layer": 1', '"n_layer": -1'), "whole number.*found -1", 6),
            (('"n_layer": 1', '"n_layer": "1"'), 'whole number.*found "1"', 6),
            (('"n_head": 4', '"n_head": 3'), "3 heads do not divide n_embd 16", 7),
        ]:
            self.wrong_file(self.model, change, pattern, line)
        self.model.write_text("[1]")
        self.run_wrong(["run", self.write(self.text)], EXIT_INPUT, "JSON object", f"{self.model}:1")

    def test_device(self):
        for change, pattern, line in [
            (("efficiency", "eficiency"), "'eficiency'.*did you mean 'efficiency'", 4),
            (("1 TFLOP/s", "1"), "'1' is no arithmetic rate", 3),
            (("0.5", "1.5"), "efficiency.*1.5", 4),
            (("1 TB/s", "1 TB"), "memory_bandwidth.*'1 TB'", 5),
            (("bf16", "bf61"), "'bf61'", 3),
        ]:
            self.wrong_file(self.device, change, pattern, line)


if __name__ == "__main__":
    unittest.main()
