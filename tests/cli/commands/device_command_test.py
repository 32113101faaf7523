#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft device`: curves, drawings, constants from measurements; its formulas are those of the program."""

import json
import math
import pathlib
import statistics
import sys
import unittest

import h5py
import numpy as np
import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import weft_testing  # noqa: E402
from weft_testing import EXIT_INPUT, NETWORK, STAR, ProgramTest, weft  # noqa: E402

sys.path.insert(0, str(weft_testing.SOURCE / "scripts"))
from devices import showing  # noqa: E402
from devices.rates import Device, attention_seconds, gemm_seconds, memory_seconds  # noqa: E402

DEVICES = weft_testing.SOURCE / "workloads" / "devices"


def device(name):
    return Device(yaml.safe_load((DEVICES / f"{name}.yaml").read_text()))


class DeviceCommand(ProgramTest):
    def seconds(self, name, kernels, rates="sustained"):
        """As the program has them."""
        experiment = {"topology": {**STAR, "hosts": 1}, "network": NETWORK, "output": {"operations": True},
                      "workload": {"kind": "program", "ranks": 1, "device": name, "rates": rates,
                                   "operations": [{"rank": 0, "compute": kernel} for kernel in kernels]}}  # fmt: skip
        _, path = self.simulate(experiment)
        with h5py.File(path) as results:
            return (results["operations"]["end"][:] - results["operations"]["start"][:]) * 1e-12

    def test_formulas_are_those_of_the_program(self):
        shapes = [(8192, 8192, 8192), (17, 4096, 51200), (4097, 128, 1024), (256, 65536, 32), (3329, 2560, 16384)]
        for name, precision in (("a100-sxm", "bf16"), ("h100-sxm", "fp8"), ("b200-sxm", "fp8"), ("b200-sxm", "bf16"),
                                ("h100-sxm", "fp8_block"), ("b200-sxm", "fp8_block")):  # fmt: skip
            one = device(name)
            m, n, k = (np.array(column, dtype=float) for column in zip(*shapes))
            size = 1 if precision in ("fp8", "fp8_block") else 2
            ours = gemm_seconds(one, one.gemms(precision), precision, m, n, k)
            kernels = [{"m": a, "n": b, "k": c, "precision": precision, "bytes": f"{size * (a * c + c * b) + 2 * a * b} B"}
                       for a, b, c in shapes]  # fmt: skip
            np.testing.assert_allclose(self.seconds(name, kernels), ours, rtol=1e-9, atol=1e-12)
            one.single = True
            ours = gemm_seconds(one, one.gemms(precision), precision, m, n, k)
            np.testing.assert_allclose(self.seconds(name, kernels, "single"), ours, rtol=1e-9, atol=1e-12)
        for name in ("a100-sxm", "h100-sxm", "b200-sxm"):
            one = device(name)
            for rates in one.sustained["attention"]:
                for backward in (False, True):
                    asked = [(2048, 128, 64), (100, 64, 3), (65536, 128, 1)]
                    ours = [attention_seconds(one, rates, np.array(float(s)), np.array(float(s)), d, np.array(float(heads)),
                                              1e8, True, backward) for s, d, heads in asked]  # fmt: skip
                    kernels = [{"bytes": "100 MB", "precision": "bf16", "attention": {
                        "queries": s, "keys": s, "head_size": d, "heads": heads, "causal": True, "backward": backward,
                        "library": rates["library"]}} for s, d, heads in asked]  # fmt: skip
                    np.testing.assert_allclose(self.seconds(name, kernels), ours, rtol=1e-9, atol=1e-12)
            for traffic, points in one.sustained["memory_kernels"].items():
                sizes = [10**6, 10**8, 3 * 10**10]
                kernels = [{"bytes": f"{size} B", "traffic": traffic} for size in sizes]
                ours = memory_seconds(one, points, np.array(sizes, dtype=float))
                np.testing.assert_allclose(self.seconds(name, kernels), ours, rtol=1e-9, atol=1e-12)

    def test_prints_and_draws(self):
        drawing = self.folder / "curves.svg"
        text = self.run_weft("device", "h100-sxm", "--draw", drawing).out
        for word in ("NVIDIA H100 SXM5 80 GB", "8192 x 8192 x 8192", "flash_3, head size 128, forward", "elementwise"):
            self.assertIn(word, text)
        self.assertIn("<svg", drawing.read_text())
        panels = showing.panels_of(showing.curves(device("h100-sxm")))
        self.assertEqual([(title, len(lines)) for title, _, _, lines, _ in panels], [
            ("GEMMs", 4), ("causal attention forward, head size 128", 6), ("causal attention backward, head size 128", 6),
            ("kernels that wait for memory", 3)])  # fmt: skip
        found = json.loads(self.run_weft("device", "h100-sxm", "--json").out)
        for m, n, k, rate in found["gemms"]["bf16"]:
            self.assertTrue(0 < rate < 989.4, (m, n, k))
        rates = [rate for _, rate in found["attention"]["flash_3, head size 128, forward"]]
        self.assertEqual(rates, sorted(rates), "longer sequences are more efficient")

    def test_says_where_the_numbers_hold(self):
        """Each ready-made device names its measurements and assumptions; those without curves have no tables."""
        for path in sorted(DEVICES.glob("*.yaml")):
            text = self.run_weft("device", path.stem).out
            lines = yaml.safe_load(path.read_text())["validity"]
            self.assertGreaterEqual(len(lines), 1, path)
            for line in lines:
                self.assertIn(line, text)
            self.assertEqual("GEMMs inside a step" in text, device(path.stem).sustained is not None)

    def test_devices_without_curves_say_what_all_kernels_have(self):
        """83 of 125 TFLOP/s, the V100's best published GEMM, and nothing of other kernels."""
        text = self.run_weft("device", "v100-sxm").out
        self.assertIn("GEMMs          66.4 % of the peak", text)
        self.assertIn("attention      66.4 % of the peak", text)
        self.assertIn("other kernels  100 % of the memory's bandwidth", text)

    def test_the_mi300x_has_the_rates_of_its_sources(self):
        """FlashAttention-2, forward and backward, head size 128, 16,384 keys, batches of 1, 2, 4 and 8, TFLOP/s
        (ROCm/flash-attention, issue 142), of a peak of 1307.4. GEMMs in fp8 after 10,000 of the same shape, TFLOP/s
        (Azure/AI-benchmarking-guide, ND_MI300X_v5_results.md): shapes that were fitted to within 9 %, and two that were not, within
        8 %. 2 x 2048^3 FLOPs in 40 us with the host's time are 428 TFLOP/s, and a GEMM by itself is faster. In bf16 one of 4096
        (548 TFLOP/s, PyTorch 2.8) within 5 %."""
        mi300x = device("mi300x")
        attention, aiter = mi300x.sustained["attention"]
        forward, backward = (353 + 356 + 340 + 310) / 4, (194 + 202 + 205 + 207) / 4
        self.assertAlmostEqual(attention["peak_fraction"][0][1], forward / 1307.4, delta=0.001)
        self.assertAlmostEqual(attention["backward"], backward / forward, delta=0.001)

        def rate(m, n, k, precision):
            return 2e-12 * m * n * k / gemm_seconds(mi300x, mi300x.gemms(precision), precision, m, n, k)

        fitted = {(4096, 4096, 4096): 955.17, (8192, 8192, 8192): 1159.23, (16384, 16384, 16384): 1015.1, (802816, 192, 768): 605.34}
        held_out = {(6144, 12288, 12288): 1159.54, (32768, 32768, 32768): 1029.14}
        for shapes, most in ((fitted, 0.09), (held_out, 0.08)):
            for shape, measured in shapes.items():
                self.assertAlmostEqual(rate(*shape, "fp8") / measured, 1, delta=most, msg=shape)
        self.assertGreater(rate(2048, 2048, 2048, "fp8"), 427.74)

        def flops_of_attention(keys, batch, heads, backward):  # TFLOP/s of a causal mask, whose masked half is not counted
            seconds = attention_seconds(mi300x, aiter, np.array(float(keys)), np.array(float(keys)), 128, np.array(float(batch * heads)),
                                        np.array(0.0), True, backward)  # fmt: skip
            return (5 if backward else 2) * batch * heads * keys**2 * 128 * 1e-12 / seconds

        # ROCm/aiter, op_tests/cpp/mha/README.md, batches of 4 and 8: the mean of what was fitted, and each of what was not.
        fitted = {(4096, 32): ((486.73, 513.1), (416.54, 409.05)), (8192, 32): ((547.09, 537.36), (422.835, 441.4))}
        held_out = {(4096, 64): ((513.79, 509.255), (391.235, 402.18)), (8192, 64): ((540.515, 550.67), (434.645, 432.715))}
        for backward in (False, True):
            ratios = [flops_of_attention(keys, batch, heads, backward) / measured
                      for (keys, heads), of in fitted.items() for batch, measured in zip((4, 8), of[backward])]  # fmt: skip
            self.assertAlmostEqual(sum(ratios) / len(ratios), 1, delta=0.01)
            for (keys, heads), of in held_out.items():
                for batch, measured in zip((4, 8), of[backward]):
                    self.assertAlmostEqual(flops_of_attention(keys, batch, heads, backward) / measured, 1, delta=0.08)
        self.assertAlmostEqual(rate(4096, 4096, 4096, "bf16") / 548.09, 1, delta=0.05)

    def test_pytorchs_attention_is_slower_than_the_package_it_comes_from(self):
        """Forward, head size 128, no mask, 16,384 tokens in sequences of 4096, 8192 and 16,384, in ms, on one GPU: PyTorch's
        kernel and that of flash-attention 2 (pytorch/benchmark, pull request 2443). A100 and B200 have no separate values."""
        pytorch, package = (1.65574, 3.27904, 6.55098), (1.55882, 3.08669, 6.14246)
        ratio = math.prod(other / one for one, other in zip(pytorch, package)) ** (1 / 3)
        for name in ("h100-sxm", "h200-sxm", "gh200"):
            libraries = {one["library"]: one for one in device(name).sustained["attention"]}
            ours, theirs = libraries["flash_2_pytorch"], libraries["flash_2"]
            for (size, slower), (same, faster) in zip(ours["peak_fraction"], theirs["peak_fraction"]):
                self.assertEqual(size, same)
                self.assertAlmostEqual(slower / faster, ratio, delta=0.002)
            for key in set(ours) - {"library", "peak_fraction"}:
                self.assertEqual(ours[key], theirs[key])

    def test_devices_of_one_chip_differ_where_their_data_sheets_do(self):
        """The GH200's GPU is an H100 with HBM3 of 4 TB/s; a GB200 has a 72nd of 360 and 720 PFLOP/s with sparsity, of
        576 TB/s."""
        h100, gh200, b200, gb200 = (device(name) for name in ("h100-sxm", "gh200", "b200-sxm", "gb200"))
        self.assertEqual(gh200.peak, h100.peak)
        self.assertEqual(gh200.bandwidth, 4e12)
        self.assertEqual((gb200.peak["bf16"], gb200.peak["fp8"]), (360e15 / 72 / 2, 720e15 / 72 / 2))
        self.assertEqual(gb200.bandwidth, 576e12 / 72)
        for one, other in ((gh200, h100), (gb200, b200)):
            for key in ("gemms", "fp8_gemms", "fp8_block_gemms", "attention", "memory_kernels"):
                self.assertEqual(one.sustained[key], other.sustained[key])
        self.assertEqual(gh200.clock, h100.clock)

    def rates_of_single_gemms(self, name, precision, shapes):
        """FLOP/s of a GEMM of each shape whose clock has not fallen yet."""
        one = device(name)
        one.single = True
        m, n, k = (np.array(column, dtype=float) for column in zip(*shapes))
        return 2 * m * n * k / gemm_seconds(one, one.gemms(precision) | {"slowing": 0}, precision, m, n, k)

    def test_clocks_of_long_steps_are_those_of_gemms_after_10000_others(self):
        """TFLOP/s in fp8 (Azure/AI-benchmarking-guide, commits 8fd0c6e1 and 2a370be6, Azure_Results, of an H100 and a GB200; an earlier
        table of the GB200, egmsft/AI-benchmarking-guide, commit 0682f76f), over those of single kernels; geometric mean."""
        shapes = [(4096, 4096, 4096), (8192, 8192, 8192), (16384, 16384, 16384), (32768, 32768, 32768), (6144, 12288, 12288)]
        for name, tables in (("h100-sxm", [(1216.9, 1290.1, 1377.3, 1382.2, 1351.4)]),
                             ("gb200", [(2834.6, 2876.6, 2906.9, 2825.6, 2895.6), (2694.7, 2781.5, 2819.5, 2755.3, 2798.7)])):  # fmt: skip
            single = self.rates_of_single_gemms(name, "fp8", shapes)
            ratios = [rate * 1e12 / alone for measured in tables for rate, alone in zip(measured, single)]
            self.assertAlmostEqual(device(name).clock, math.prod(ratios) ** (1 / len(ratios)), delta=0.0006)

    def test_clock_of_the_b200_is_that_of_seven_at_the_limit_of_power(self):
        """TFLOP/s in bf16 of seven at once (b200-sxm.yaml)."""
        measured = statistics.mean((1316.8, 1312.9, 1321.0, 1308.4, 1267.8, 1313.2, 1330.8)) * 1e12
        single = self.rates_of_single_gemms("b200-sxm", "bf16", [(8192, 8192, 8192)])
        self.assertAlmostEqual(device("b200-sxm").clock, measured / single[0], delta=0.0006)

    def test_complaints(self):
        for words, expected in (
            (["nowhere-sxm"], "known here: .*h100-sxm"),
            (["tpu-v4", "--json"], "no 'sustained'"),
            (["fit", "missing.csv", "--device", "h100-sxm", "-o", "x.yaml"], "missing.csv: cannot open this file: No such file"),
            (["fit", self.table("a,b\n1,2\n", "first"), "--device", "h100-sxm", "-o", "x.yaml"], "found the columns a, b; expected"),
            (["fit", self.table("precision,m,n,k,time_us\nbf16,1,2,x,3\n", "table"), "--device", "h100-sxm", "-o", "x.yaml"],
             r"table.csv:2: 'k' is 'x'; expected a positive number"),
            (["fit", self.table("precision,m,n,k,time_us\nbf16,1024,1024,1024,3\n", "third"), "--device", "h100-sxm", "-o", "x.yaml"],
             "expected at least 30"),
        ):  # fmt: skip
            done = weft("device", *words)
            self.assertEqual(done.code, EXIT_INPUT, done.err)
            self.assertRegex(done.err, expected)

    def test_no_input_is_replaced(self):
        table = self.table("precision,m,n,k,time_us\nbf16,1024,1024,1024,3\n", "table")
        self.assert_kept(table, "is an input", "device", "fit", table, "--device", "h100-sxm", "-o", table)

    def test_older_keys_are_named_with_what_they_are_now(self):
        text = (DEVICES / "h100-sxm.yaml").read_text()
        for older, now in (("products", "gemms"), ("fp8_products", "fp8_gemms"), ("grouped_products", "grouped_gemms")):
            path = self.folder / "older.yaml"
            path.write_text(text.replace(f"  {now}:", f"  {older}:"))
            expected = rf"unknown key '{older}' in '[a-z.]*sustained' \(did you mean '{now}'\?\)"
            done = weft("device", path)
            self.assertEqual(done.code, EXIT_INPUT, done.err)
            self.assertRegex(done.err, expected)
            experiment = self.write({
                "topology": {**STAR, "hosts": 1}, "network": NETWORK,
                "workload": {"kind": "program", "ranks": 1, "device": str(path),
                             "operations": [{"rank": 0, "compute": {"m": 512, "n": 512, "k": 4096}}]}})  # fmt: skip
            done = weft("describe", experiment)
            self.assertEqual(done.code, EXIT_INPUT, done.err)
            self.assertRegex(done.err, rf"older\.yaml:\d+: {expected}")

    def table(self, text, name="gemms"):
        path = self.folder / f"{name}.csv"
        path.write_text(text)
        return path

    def test_fit_finds_the_device_that_made_the_measurements(self):
        """Times by the A100's own constants: the errors on shapes held out are those of the search alone."""
        one = device("a100-sxm")
        one.single = True
        sides = (512, 1024, 2048, 4096, 8192)
        shapes = [(m, n, k) for m in sides for n in sides for k in sides if 2 * m * n * k >= 1e9] + [(1, 32, 32)]
        m, n, k = (np.array(column, dtype=float) for column in zip(*shapes))
        times = gemm_seconds(one, one.gemms("bf16"), "bf16", m, n, k) * 1e6
        rows = "\n".join(f"bf16,{a},{b},{c},{t}" for (a, b, c), t in zip(shapes, times))
        output = self.folder / "mine.yaml"
        done = self.run_weft("device", "fit", self.table(f"precision,m,n,k,time_us\n{rows}\n"), "--device", "a100-sxm",
                             "--units", 108, "-o", output)  # fmt: skip
        self.assertRegex(done.out, r"bf16 GEMMs: fitted to \d+ shapes; on \d+ other shapes: mean error [0-2]\.\d %")
        self.assertIn("Made by `weft device fit`", output.read_text())
        # The program reads it.
        self.assertEqual(len(self.seconds(str(output), [{"m": 512, "n": 512, "k": 4096}])), 1)


if __name__ == "__main__":
    unittest.main()
