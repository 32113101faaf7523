#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""GEMMs beside the calls of tensor ranks, as userbuffers of Transformer Engine cut them up: times by hand."""

import json
import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import NETWORK, STAR, ProgramTest, table, weft  # noqa: E402

TENSOR, LAYER, TOKENS, HIDDEN, INNER, ELEMENT = 4, 1, 512, 256, 1024, 2
COMPUTE, COLLECTIVE, SEND, RECV = range(4)  # kinds of operations
# Only arithmetic takes time, and nothing slows it down.
DEVICE = {"name": "d", "peak": {"bf16": "1 TFLOP/s"}, "efficiency": 1, "memory_bandwidth": "1000 TB/s", "memory": "80 GB"}
NONE = {f"{gemm}_{way}": "none" for gemm, ways in {"qkv": "fprop dgrad wgrad", "proj": "fprop dgrad",
                                                   "fc1": "fprop dgrad wgrad", "fc2": "fprop dgrad"}.items()
        for way in ways.split()}  # fmt: skip
GEMM = 2 * TOKENS * HIDDEN * (INNER // TENSOR) * 1e12 // 1e12  # ps at 1 TFLOP/s, of fc1 and of fc2
SLOW, FAST = "20 Gb/s", "400 Gb/s"  # a part's message takes longer, or less long, than its GEMM


class TensorOverlap(ProgramTest):
    def setUp(self):
        super().setUp()
        (self.folder / "device.yaml").write_text(json.dumps(DEVICE))
        (self.folder / "model.json").write_text(json.dumps({
            "model_type": "gpt2", "vocab_size": 1024, "n_positions": TOKENS, "n_embd": HIDDEN, "n_layer": 2, "n_head": 8,
            "n_inner": INNER}))  # fmt: skip

    def job(self, overlap, rate=FAST, **workload):
        tensor = {} if overlap is None else {"tensor_overlap": overlap}
        return self.write({"topology": {**STAR, "hosts": TENSOR, "link_rate": rate}, "network": {**NETWORK, "fidelity": "ideal"},
                           "workload": {"kind": "training", "model": "model.json", "device": "device.yaml",
                                        "parallelism": {"tensor": TENSOR, "sequence": True}, **tensor, **workload}})  # fmt: skip

    def pieces(self, what, overlap, rate):
        """(start, end) of the operations of one kind each, of one rank, by kind; all in ps."""
        _, results = self.simulate(self.job({**NONE, **overlap}, rate), "--set", "output.operations=true")
        operations = table(results, "operations")
        labels = operations["label"].astype(str)
        here = (operations["rank"] == 2) & (labels == f"micro-batch 0 forward block {LAYER} {what}")
        self.assertTrue(here.any(), sorted(set(labels)))
        kinds = {kind: np.flatnonzero(here & (operations["kind"] == kind)) for kind in (COMPUTE, COLLECTIVE, SEND, RECV)}
        return {kind: [(int(operations["start"][i]), int(operations["end"][i])) for i in rows] for kind, rows in kinds.items()}

    def assert_lasts(self, begin, end, expected):
        self.assertAlmostEqual((end - begin) / expected, 1, delta=1e-6)

    def gemms(self, found, parts):
        """Start, end and the time of each, which is that part of the whole GEMM's."""
        computed = found[COMPUTE]
        self.assertEqual(len(computed), parts)
        for begin, end in computed:
            self.assertEqual(end - begin, GEMM // parts)
        return computed[0][0], computed[-1][1], GEMM // parts

    def message(self, size, rate):
        """The time until a message is there: its packets over one link, the last one over another one, and both delays."""
        frame = 4096 + 62 + 20
        bits = 8 * frame * (size // 4096 + 1)
        return round(bits / float(rate.split()[0]) * 1e3) + 2 * 500_000  # ps

    def first_message(self, found, size, rate):
        expected = self.message(size, rate)
        self.assertEqual(found[RECV][0][1] - found[SEND][0][0], expected)
        return expected

    def test_gather(self):
        """The first part is here; each further one comes a message later, and is computed when it and the one before are done."""
        for rate in (SLOW, FAST):
            found = self.pieces("MLP up", {"fc1_fprop": "ring_exchange"}, rate)
            begin, end, gemm = self.gemms(found, TENSOR)
            self.assertEqual(len(found[SEND]), TENSOR - 1)
            message = self.first_message(found, TOKENS * HIDDEN * ELEMENT // TENSOR, rate)
            self.assertEqual(message > gemm, rate == SLOW)
            self.assert_lasts(begin, end, max(TENSOR * gemm, (TENSOR - 1) * message + gemm))

    def test_gather_in_pairs(self):
        """Neighbours exchange first, and nothing is computed meanwhile; then half as many parts, twice as large, go round."""
        for rate in (SLOW, FAST):
            found = self.pieces("MLP up", {"fc1_fprop": {"aggregate": True}}, rate)
            begin, end, gemm = self.gemms(found, TENSOR // 2)
            first = self.first_message(found, TOKENS * HIDDEN * ELEMENT // TENSOR, rate)
            self.assertEqual(begin - found[SEND][0][0], first)
            second = found[RECV][1][1] - found[SEND][1][0]
            parts = TENSOR // 2
            self.assert_lasts(begin, end, max(parts * gemm, (parts - 1) * second + gemm))

    def test_sum_in_parts(self):
        """A pipeline of two stages, GEMMs and calls: the first of each, and then the slower ones."""
        for parts in (4, 8):
            for rate in (SLOW, FAST):
                found = self.pieces("MLP down", {"fc2_fprop": {"method": "pipeline", "num_splits": parts}}, rate)
                begin, _, gemm = self.gemms(found, parts)
                calls = found[COLLECTIVE]
                self.assertEqual(len(calls), parts)
                alone = calls[0][1] - calls[0][0]
                self.assertEqual(alone > gemm, rate == SLOW)
                self.assert_lasts(begin, calls[-1][1], gemm + alone + (parts - 1) * max(gemm, alone))

    def test_sum_by_messages(self):
        """Each part but the last is sent when it is computed; the last one is the rank's own. Then all are read, and the sum written."""
        for rate in (SLOW, FAST):
            found = self.pieces("MLP down", {"fc2_fprop": "ring_exchange"}, rate)
            begin, end, gemm = self.gemms(found, TENSOR)
            sends = found[SEND]
            self.assertEqual(len(sends), TENSOR - 1)
            self.assertEqual(end - begin, TENSOR * gemm)
            for i, (sent, _) in enumerate(sends):
                self.assertEqual(sent, begin + (i + 1) * gemm)
            sums = self.pieces("MLP sum", {"fc2_fprop": "ring_exchange"}, rate)[COMPUTE]
            bytes_of_sum = (TENSOR + 1) * TOKENS * HIDDEN * ELEMENT // TENSOR
            self.assertEqual(sums[0][1] - sums[0][0], round(bytes_of_sum / 1000))  # at 1000 TB/s
            message = self.message(TOKENS * HIDDEN * ELEMENT // TENSOR, rate)
            here = max(last for _, last in found[RECV])
            self.assertGreaterEqual(sums[0][0], max(end, here))
            if rate == SLOW:  # the link is busy from the first message to the last
                fixed = 2 * 500_000 + round(8 * 4178 / float(rate.split()[0]) * 1e3)
                self.assert_lasts(begin, here, gemm + (TENSOR - 1) * (message - fixed) + fixed)
            else:
                self.assert_lasts(begin, here, (TENSOR - 1) * gemm + message)

    def test_bytes_are_the_same(self):
        """Every rank sends (t - 1) / t of each tensor, whatever the method."""

        def sent(overlap):
            done = json.loads(self.run_weft("workload", self.job(overlap), "--json").out)
            return sum(done["bytes_by_communicator"].get(group, 0) for group in ("tensor", "tensor overlap"))

        plain = sent(None)
        self.assertGreater(plain, 0)
        for overlap in (NONE, {}, {"fc2_fprop": "ring_exchange", "qkv_fprop": {"aggregate": True}}):
            self.assertEqual(sent(overlap), plain)
        half = sent({"fc2_fprop": {"fp8_buf": True}, "proj_fprop": {"method": "ring_exchange", "fp8_buf": True}})
        sums = 2 * 2 * (TENSOR - 1) * TOKENS * HIDDEN * ELEMENT  # of two blocks, two of them, all ranks
        self.assertEqual(half, plain - sums // 2)

    def test_exposed(self):
        """Without overlap calls are exposed, with it the first and the last parts of them."""

        def exposed(overlap):
            done = json.loads(self.run_weft("workload", self.job(overlap), "--json").out)
            return done["exposed_communication_fraction"] * done["ideal_step_seconds"], done["ideal_step_seconds"]

        (none, long), (some, short) = exposed(NONE), exposed({})
        self.assertLess(some, none)
        self.assertLess(short, long)
        self.assertEqual(exposed(None), exposed(NONE))

    def test_mistakes(self):
        for change, text in [
            ({"parallelism": {"tensor": TENSOR}}, "without `sequence: true`"),
            ({"tensor_overlap": {"fc1_fprop": "bulk"}}, "ring_exchange"),
            ({"tensor_overlap": {"fc2_fprop": {"method": "pipeline", "num_splits": 7}}}, "7 parts do not divide the hidden size 256; use 4 or 8"),
            ({"tensor_overlap": {"fc1_fprop": {"num_splits": 2}}}, "num_splits"),
            ({"model": "deepseek-v3", "device": "h100-sxm"}, "`qkv_fprop: none`"),
            ({"tensor_overlap": {"fc3_fprop": "none"}}, "fc3_fprop"),
            ({"tensor_overlap": {"fc1_fprop": {"aggregate": True}}, "parallelism": {"tensor": 1, "data": TENSOR}}, ""),
        ]:
            done = weft("run", self.job({}, **change), folder=self.folder)
            self.assertEqual(done.code, 2 if text else 0, done.err)
            self.assertIn(text, done.err)
            if text:
                self.assertRegex(done.err, r"\.yaml:\d+")

    def test_same_results_on_any_number_of_processes(self):
        path = self.job({"fc2_fprop": "ring_exchange", "fc1_fprop": {"aggregate": True}}, framework="megatron_core", device="h100-sxm")
        self.simulate(path, "--set", "output.operations=true", output="1.h5")
        for ranks in (2, 3, 4, 8):
            self.simulate(path, "--set", "output.operations=true", output=f"{ranks}.h5", ranks=ranks)
            self.assert_same_results(self.folder / "1.h5", self.folder / f"{ranks}.h5")


if __name__ == "__main__":
    unittest.main()
