#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Forward passes beside backward passes (schedule combined_1f1b): the time of a pair by hand, where exchanges are short and
where they are long, and what the schedule refuses."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, ProgramTest, weft  # noqa: E402

FLOPS, TOKENS, HIDDEN, HEADS, INNER, VOCABULARY, EXPERTS, CHOSEN, LAYERS = 1e14, 512, 256, 4, 1024, 256, 4, 2, 2
MODEL = {
    "model_type": "mixtral", "max_position_embeddings": 4096, "hidden_size": HIDDEN, "intermediate_size": INNER,
    "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": HEADS, "vocab_size": VOCABULARY,
    "num_local_experts": EXPERTS, "num_experts_per_tok": CHOSEN, "tie_word_embeddings": False,
}  # fmt: skip
# GEMMs take FLOPs over the peak, all other kernels no time.
DEVICE = {"name": "GEMMs only", "peak": {"bf16": "100 TFLOP/s"}, "efficiency": 1, "memory_bandwidth": "1000000 TB/s", "memory": "80 GB"}


def gemm(rows, columns, inner):
    return 2 * rows * columns * inner / FLOPS


QKV, OUTPUT = gemm(TOKENS, 3 * HIDDEN, HIDDEN), gemm(TOKENS, HIDDEN, HIDDEN)
SCORES = 2 * gemm(TOKENS, TOKENS, HIDDEN)  # of all heads: scores, and their products with values
ROUTER = gemm(TOKENS, EXPERTS, HIDDEN)
EXPERT = 3 * gemm(TOKENS * CHOSEN, INNER, HIDDEN)  # gate, up and down; as many copies come as leave
HEAD = gemm(TOKENS, VOCABULARY, HIDDEN)
# Pieces between exchanges. A backward pass has each GEMM for inputs, and again for weights.
ATTENTION = QKV + SCORES + OUTPUT + ROUTER
ATTENTION_BACK = QKV + 2 * SCORES + OUTPUT + 2 * ROUTER
ATTENTION_WEIGHTS = QKV + OUTPUT
EXCHANGED, PACKET = TOKENS * CHOSEN * HIDDEN * 2 // 2, 4096  # bytes: half of the copies go to the other rank


def exchange_at(rate):
    """Seconds, at Gb/s: the last packet goes over two links one after the other. Each has a header of a byte."""
    return (EXCHANGED // PACKET + 1) * (PACKET + 1) * 8 / (rate * 1e9)


def pair(exchange):
    """Seconds by which a further micro-batch makes the step longer: those of a forward and a backward pass together.

    Of each block (model_chunk_schedule_plan.py of Megatron-LM): the backward pass exchanges gradients of results (X1') beside the
    other's attention, the experts' gradients of inputs follow, the forward pass sends its copies (X1) beside the gradients of weights,
    gradients go back (X2') beside the other's experts, and results (X2) beside attention's backward pass.

    Short exchanges are hidden by each of these, and the computation remains. Long ones hide it: four of each block are one after the
    other, because each piece is computed in the time of one exchange. The head's passes are beside none: the forward pass waits for
    the last X2, and the first X1' for the backward pass."""
    compute = LAYERS * (ATTENTION + 3 * EXPERT + ATTENTION_BACK + ATTENTION_WEIGHTS) + 3 * HEAD
    if exchange < min(ATTENTION, ATTENTION_WEIGHTS):
        return compute
    assert exchange > 2 * EXPERT + ATTENTION_BACK + ATTENTION_WEIGHTS
    return LAYERS * 4 * exchange + 3 * HEAD


class CombinedPasses(ProgramTest):
    def job(self, rate, micro_batches, parallelism=None, **more):
        for name, content in (("model.json", MODEL), ("device.yaml", DEVICE)):
            (self.folder / name).write_text(json.dumps(content))
        return self.write({
            "topology": {"kind": "star", "hosts": 2, "link_rate": f"{rate} Gb/s", "link_delay": "1 ps"},
            "network": {"fidelity": "ideal", "header": "1 B", "wire_overhead": "0 B", "mtu": f"{PACKET} B"},
            "workload": {"kind": "training", "model": "model.json", "device": "device.yaml", "attention": "unfused",
                         "micro_batches": micro_batches, "sequence_length": TOKENS, "clip_gradients": False,
                         "parallelism": parallelism or {"expert": 2, "schedule": "combined_1f1b"}, **more},
        })  # fmt: skip

    def seconds(self, *words, **more):
        return self.simulate(self.job(*words, **more))[0]["simulated_time_ps"] * 1e-12

    def test_a_pair_takes_the_longer_of_exchanges_and_computation(self):
        for rate in (1600, 20):
            by_hand = pair(exchange_at(rate))
            steps = [self.seconds(rate, count) for count in (1, 2, 3, 6)]
            self.assertAlmostEqual((steps[1] - steps[0]) / by_hand, 1, delta=1e-5)
            self.assertAlmostEqual((steps[2] - steps[1]) / by_hand, 1, delta=1e-5)
            self.assertAlmostEqual((steps[3] - steps[2]) / (3 * by_hand), 1, delta=1e-5)

    def test_shorter_than_one_pass_after_the_other(self):
        """By what is hidden: of each pair all exchanges, but the one that goes beside gradients of weights in either case."""
        rate, exchange = 1600, exchange_at(1600)
        alone = [self.seconds(rate, count, parallelism={"expert": 2}) for count in (2, 3)]
        self.assertAlmostEqual((alone[1] - alone[0] - pair(exchange)) / (LAYERS * 3 * exchange), 1, delta=1e-4)

    def test_what_it_refuses(self):
        for parallelism, more, words in (
            ({"data": 2, "schedule": "combined_1f1b"}, {}, "hides exchanges with experts, but expert is 1"),
            ({"expert": 2, "schedule": "combined_1f1b"}, {"recompute": "full"}, "no second forward pass"),
            ({"expert": 2, "schedule": "combined_1f1b"}, {"recompute": "selective", "recompute_modules": ["moe"]},
             "no second forward pass"),
        ):  # fmt: skip
            refused = weft("describe", self.job(100, 2, parallelism, **more), folder=self.folder)
            self.assertEqual(refused.code, EXIT_INPUT)
            self.assertIn(words, refused.err)


if __name__ == "__main__":
    unittest.main()
