#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`scripts/validate --published`: rows with errors, means, order, drawings; and the meaning of a varied constant."""

import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import types
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import weft_testing  # noqa: E402
from weft_testing import ProgramTest  # noqa: E402

sys.path.insert(0, str(weft_testing.SOURCE / "validation"))
from oracles.gpu_spread import HIGH_SPREAD, SPREAD, Waiting, mean_of_largest, mean_of_slowest, stages_of  # noqa: E402
from oracles.published_steps import NARAYANAN, predict, rows_of  # noqa: E402
from oracles.published_report import BEGIN, END, PAGE, Interval, case_of, cells_of, moved_by, page_with  # noqa: E402
from oracles.sensitivity import CONSTANTS, Varied, sensitivity  # noqa: E402
from oracles.training_sets import (  # noqa: E402
    FOLDER, apart_of_data, batch_of, deepspeed_stages, device_of, experiment, read, ring_latency, rows_of_plans, seconds_of,
    sets, shape_of, simulated_micro_batches, step, summary, table_of, waiting_of)  # fmt: skip


def validate(*words):
    return subprocess.run([weft_testing.SOURCE / "scripts" / "validate", *map(str, words)], env=weft_testing.environment(
        {"WEFT": str(weft_testing.WEFT)}), capture_output=True, text=True, timeout=280, check=False)  # fmt: skip


class Published(ProgramTest):
    def test_blocks_on_deepspeeds_stages(self):
        """BLOOM's diary: 78 blocks on 12 stages are 7 and one on the last; with both embeddings as blocks, 70 + 2 are 6 each."""
        self.assertEqual(deepspeed_stages(78, 12, False), [7] * 11 + [1])
        self.assertEqual(deepspeed_stages(70, 12, True), [5] + [6] * 10 + [5])
        self.assertEqual(deepspeed_stages(72, 8, False), [9] * 8)

    def test_rows_as_lists_have_the_keys_of_their_columns_and_options(self):
        rows = table_of("bigscience_2022")[1]
        self.assertEqual(len({row.name for row in rows}), len(rows))
        plans = rows_of_plans(read("bigscience_2022"))
        for plan, row in zip(plans, rows, strict=True):
            self.assertEqual(plan["data"] * plan["tensor"] * plan["pipeline"], row.gpus)
            self.assertEqual(sum(deepspeed_stages(shape_of({}, plan)[0], plan["pipeline"], plan.get("embeddings_as_blocks", False))),
                             int(plan["shape"].split("x")[0]))  # fmt: skip
        self.assertEqual({plan["precision"] for plan in plans if plan["options"] == "bf16"}, {"bf16"})

    def test_data_ranks_in_and_between_servers(self):
        """How far a data-parallel rank is from the next one follows from the order of the dimensions: a rack of 64 has one copy
        of 4 x 2 x 8 ranks if stages stand before data-parallel ranks, and eight neighbours of 4 x 2 otherwise."""
        plan = {"tensor": 4, "context": 2, "pipeline": 8}
        self.assertEqual(apart_of_data(plan), 8)
        self.assertEqual(apart_of_data({**plan, "order": "tp-cp-ep-pp-dp"}), 64)
        self.assertEqual(apart_of_data({**plan, "order": "tp-cp-dp-ep-pp"}), 8)
        self.assertEqual(apart_of_data({}), 1)

    def test_rows_means_and_drawing(self):
        drawing = self.folder / "published.svg"
        done = validate("--published", "torchtitan", "--short", "--draw", drawing)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = re.findall(r"^  (.*?) +([\d.]+) s +([\d.]+) s +([+-][\d.]+) %$", done.stdout, flags=re.MULTILINE)
        self.assertEqual(len(rows), 3, done.stdout)
        errors = []
        for _, published, predicted, error in rows:
            self.assertAlmostEqual(float(error), 100 * (float(predicted) / float(published) - 1), delta=0.11)
            errors.append(abs(float(error)))
        mean = float(re.search(r"3 of 3 rows: mean absolute error ([\d.]+) %", done.stdout)[1])
        self.assertAlmostEqual(mean, sum(errors) / 3, delta=0.11)
        self.assertIn("assumed: GPUs differ by a standard deviation of 1.5 %", done.stdout)
        self.assertIn("<svg", drawing.read_text())

    def test_wrong_words(self):
        self.assertEqual(validate("--draw", "x.svg").returncode, 2)
        done = validate("--published", "nowhere")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "known: .*torchtitan")
        done = validate("--published", "--sensitivity", "nowhere")
        self.assertRegex(done.stderr, "known: .*torchtitan")
        for words in (["torchtitan"], ["--short"]):
            done = validate("--published", "--sensitivity", "--update-docs", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("all rows of all sets", done.stderr)

    def test_times_of_rows(self):
        """2 sequences of 8192 tokens on each of 8 GPUs at 6667 tokens/s and GPU; 8 x 4096 x 5 x 6 tokens of a batch of 240."""
        row = {"gpus": 8, "micro_batch": 2, "sequence": 8192, "tokens": 6667}
        self.assertAlmostEqual(seconds_of(row), 2 * 8192 / 6667)
        self.assertEqual(batch_of({"gpus": 8, "micro_batch": 5, "micro_batches": 6}), 240)
        self.assertEqual(batch_of({"gpus": 256, "tensor": 8, "micro_batch": 16}), 512)
        self.assertEqual(len(table_of("narayanan_2021")[1]), 10)
        self.assertEqual(len(table_of("korthikanti_2022")[1]), 8)
        # 50 % of 100 TFLOP/s, or 50 TFLOP/s. h = 1000, 2 layers, k/a = 1/4, s = 2000; of 4 experts with 300 and a shared one of 800 a
        # token has 2 x 300 + 800; 1000 words are padded to 1024 for 2 tensor ranks.
        model = {"hidden_size": 1000, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000,
                 "intermediate_size": 9999, "num_experts_per_tok": 2, "moe_intermediate_size": 300,
                 "shared_expert_intermediate_size": 800}  # fmt: skip
        flops = 12 * 2 * 1e6 * (1 + 0.25 + 2 + 1.5 * 1.4 + 1024 / 4000)
        row = {"gpus": 8, "tensor": 2, "micro_batch": 1, "batch": 16, "sequence": 2000, "model": "mine"}
        facts = {"peak": 1e14, "configurations": {"mine": model}}
        self.assertAlmostEqual(seconds_of({**row, "mfu": 50}, facts), 16 * 2000 / 8 * flops / 5e13)
        self.assertAlmostEqual(seconds_of({**row, "teraflops": 50}, facts), 16 * 2000 / 8 * flops / 5e13)
        # A source that gives seconds: as they are. 6144 sequences over 192 copies of 8 x 8 GPUs are 32 micro-batches.
        self.assertEqual(seconds_of({"seconds": 14.72}), 14.72)
        self.assertEqual([one.micro_batches for one in rows_of("jiang_2024") if one.gpus == 12288], [32])
        # Errors of +10, -20 and 0 %; the first two rows are predicted the wrong way round.
        mean, worst, order = summary([(1.0, 1.1), (1.25, 1.0), (4.0, 4.0)])
        self.assertAlmostEqual(mean, 10)
        self.assertAlmostEqual(worst, -20)
        self.assertAlmostEqual(order, 200 / 3)
        # 1.00 and 1.25 s to within 0.13 s each may be equal: two pairs are left, both right.
        self.assertAlmostEqual(summary([(1.0, 1.1), (1.25, 1.0), (4.0, 4.0)], [0.13, 0.13, 0.13])[2], 100)
        # Whole TFLOP/s: 137 may be 136.5 to 137.5, a time by 0.36 % more or less.
        self.assertAlmostEqual(NARAYANAN[0].rounding / NARAYANAN[0].seconds, 0.5 / 137)

    def test_rings_among_many_ranks_take_what_was_measured_for_each_step(self):
        """MareNostrum 5: an all-reduce of 128 MiB has 2 (n - 1) steps, and takes longer than its bytes at the rate of 512 MiB on 16
        GPUs. Sums and gathers of a job have n - 1 steps."""
        lines = (FOLDER.parent / "marenostrum" / "measured.csv").read_text().splitlines()
        times = {(int(gpus), int(size)): float(us) for gpus, size, us in (line.split(",") for line in lines if line[0].isdigit())}
        rate = 2 * 15 / 16 * 2**29 / times[16, 2**29]
        each = [(times[n, 2**27] - 2 * (n - 1) / n * 2**27 / rate) / (2 * (n - 1)) for n in (64, 128, 256)]
        facts = read("mlperf_gpt3")
        self.assertAlmostEqual(facts["ring_step"], statistics.fmean(each), delta=0.05)
        self.assertAlmostEqual(ring_latency(facts, 11), 10 * 7.6)
        self.assertEqual(ring_latency({}, 336), 0)
        row = next(row for row in rows_of_plans(facts) if row["name"] == "3.1 on 10752")
        with case_of(weft_testing.WEFT, self.folder) as case:
            collectives = experiment(case, facts, row, 8, 1)["workload"]["collectives"]
        for kind in ("shard", "data"):  # 335 steps, and the time of a call
            self.assertAlmostEqual(float(collectives[kind]["launch_latency"].split()[0]), 63 + 335 * 7.6, delta=0.1)
        self.assertEqual(collectives["tensor"]["launch_latency"], "33 us")

    def test_clock_of_less_power_is_between_two_that_were_measured(self):
        """FlashAttention-3 forward, head size 64, no mask, 2048 to 8192 keys, TFLOP/s: an H100 PCIe of 114 multiprocessors and 350 W
        (Dao-AILab/flash-attention, issue 1777), and an H100 SXM5 of 132 and 700 W (arXiv:2407.08608, figure 5)."""
        pcie, sxm = (298, 310, 323), (460, 476, 496)
        ratio = math.prod(one / other for one, other in zip(pcie, sxm)) ** (1 / 3) * 132 / 114
        exponent = math.log(ratio) / math.log(350 / 700)
        self.assertAlmostEqual(exponent, 0.41, delta=0.005)
        device = table_of("torchtitan")[0]["device"]
        self.assertAlmostEqual(device["clock"], (500 / 700) ** exponent, delta=0.0005)

    def test_long_pipelines_are_continued_from_short_ones(self):
        """530B has 35 stages of 3 blocks and 8 x 35 micro-batches; a job whose step takes 5 + 7 p + 11 g + 13 g p is known from
        4 and 8 stages with 2 and 3 times as many micro-batches."""
        seen = []

        def run(changes):
            stages = changes["workload.parallelism"]["pipeline"]
            groups = changes["workload.micro_batches"] // stages
            blocks = json.loads(pathlib.Path(changes["workload.model"]).read_text())["n_layer"]
            self.assertEqual((blocks, changes["workload.micro_batches"] % stages), (3 * stages, 0))
            seen.append((stages, groups))
            return types.SimpleNamespace(time=(5 + 7 * stages + 11 * groups + 13 * groups * stages) * 1e12), None

        case = types.SimpleNamespace(run=run, scratch=self.folder, root=weft_testing.SOURCE, 
                                     compute_of_kinds=lambda changes, found=iter([[2] * 35, [2.1] * 35]): next(found))
        row = next(one for one in NARAYANAN if one.name == "530B")
        self.assertAlmostEqual(predict(case, row, most=28), 5 + 7 * 35 + 11 * 8 + 13 * 8 * 35)
        self.assertEqual(sorted(seen), [(4, 2), (4, 3), (8, 2), (8, 3)])

    def test_all_experiments_of_a_row_run_in_one_program_which_ends(self):
        """step() runs copies of the case with other experiments. Their program has a folder, which is removed with it."""
        facts = read("together_b200")
        row = next(plan for plan in rows_of_plans(facts) if plan["name"] == "Nemotron-4 15B fp8 on 64")
        with case_of(weft_testing.WEFT, self.folder) as case:
            step(case, facts, row)
            step(case, facts, row)
            server, = case.servers
            self.assertEqual(server.runs, 2)
            self.assertTrue(server.folder.is_dir())
        self.assertFalse(server.folder.exists())
        self.assertIsNotNone(server.process.poll())

    def test_parameters_gathered_beside_the_forward_pass(self):
        """One step is as long as each of several: parameters are gathered at its start. Behind the step it is longer."""
        facts = read("together_b200")
        row = next(plan for plan in rows_of_plans(facts) if plan["name"] == "Nemotron-4 15B fp8 on 64")
        with case_of(weft_testing.WEFT, self.folder) as case:
            case.experiment = experiment(case, facts, row, simulated_micro_batches(row), waiting_of(case, facts, row).factor())
            self.assertTrue(case.experiment["workload"]["overlap_parameters"])
            one, two, three = (case.run({"workload.steps": steps})[0].time * 1e-12 for steps in (1, 2, 3))
            behind = case.run({"workload.overlap_parameters": False})[0].time * 1e-12
            found = step(case, facts, row)
        self.assertEqual(found, one)
        for steps, seconds in ((2, two), (3, three)):
            self.assertAlmostEqual(seconds, steps * one, delta=1e-3 * seconds)
        self.assertLess(1.01 * one, behind)

    def test_one_constant_at_a_time_is_varied(self):
        device = weft_testing.SOURCE / "workloads" / "devices" / "a100-sxm.yaml"
        framework = weft_testing.SOURCE / "workloads" / "frameworks" / "megatron_2021.yaml"
        experiment = {"topology": {"link_rate": "200 Gb/s", "server": {"nvlink_rate": "270 GB/s"}},
                      "workload": {"device": str(device), "framework": str(framework)}}  # fmt: skip
        seen = []
        case = type("Case", (), {"run": lambda one: seen.append(json.loads(json.dumps(one.experiment)))})()
        case.experiment, case.scratch = experiment, self.folder
        Varied(case, "NVLink's rate", True, Waiting(8)).run()
        self.assertEqual(seen[-1]["topology"]["server"]["nvlink_rate"], "291.6 GB/s")
        Varied(case, "host", False, Waiting(8)).run()
        host = yaml.safe_load(pathlib.Path(seen[-1]["workload"]["framework"]).read_text())["host"]
        self.assertEqual((host["kernel"], host["collective"]), ("14 us", "40 us"))
        Varied(case, "GEMMs' rate", False, Waiting(8)).run()
        tiles = [yaml.safe_load(pathlib.Path(path).read_text())["sustained"]["gemms"]["tiles"]
                 for path in (device, seen[-1]["workload"]["device"])]  # fmt: skip
        for before, after in zip(*tiles):
            self.assertAlmostEqual(after[2], 0.94 * before[2])
        # 422 GB/s for 2 B of each byte that arrives, 633 for 3 B; a clock of 0.97 that is 0.945 of it.
        for constant, key, expected in (("collectives' bandwidth", "collective_bandwidth", "633 GB/s"), ("clock", "clock", 0.97 * 0.945)):
            Varied(case, constant, False, Waiting(8)).run()
            self.assertEqual(yaml.safe_load(pathlib.Path(seen[-1]["workload"]["device"]).read_text())["sustained"][key], expected)
        self.assertEqual(experiment["topology"]["server"]["nvlink_rate"], "270 GB/s", "the case is left as it was")

    def test_constants_of_hopper_and_of_calls_are_varied(self):
        """On an H100 a GEMM for a gradient has 0.945 of the rate, at the ends 1 / 1.2 and 1 / 1.016; collectives take 24 units, at the ends
        32 and 16; GEMMs are persistent, at the fast end not. Calls take 33 us at no bytes, 1.38 times that at the slow end."""
        seen = []
        case = type("Case", (), {"run": lambda one: seen.append(json.loads(json.dumps(one.experiment)))})()
        device = str(weft_testing.SOURCE / "workloads" / "devices" / "h100-sxm.yaml")
        case.experiment = {"topology": {}, "workload": {"device": device, "collectives": {"tensor": {"launch_latency": "33 us"}, "stage": {}}}}
        case.scratch = self.folder

        def sustained(constant, high):
            Varied(case, constant, high, Waiting(8)).run()
            return yaml.safe_load(pathlib.Path(seen[-1]["workload"]["device"]).read_text())["sustained"]

        for high, ratio, units in ((False, 1.2, 32), (True, 1.016, 16)):
            self.assertAlmostEqual(sustained("split accumulation", high)["split_accumulation"], 1 / ratio)
            self.assertEqual(sustained("collectives' units", high)["collective_units"], units)
            found = sustained("persistent GEMMs", high)
            kinds = [kind for kind in ("gemms", "fp8_gemms", "fp8_block_gemms") if kind in found]
            self.assertEqual([found[kind]["persistent"] for kind in kinds], [not high] * 3)
        before = yaml.safe_load(pathlib.Path(device).read_text())["sustained"]["grouped_gemms"]["tiles"]
        for one, other in zip(before, sustained("GEMMs' rate", False)["grouped_gemms"]["tiles"]):
            self.assertAlmostEqual(other[2], 0.94 * one[2])
        Varied(case, "calls' latency", False, Waiting(8)).run()
        self.assertEqual(seen[-1]["workload"]["collectives"], {"tensor": {"launch_latency": "45.54 us"}, "stage": {}})

    def test_a_row_waits_for_the_slowest_of_its_gpus(self):
        """The largest of 2 and 3 standard normal numbers is 1 / sqrt(pi) and 3 / (2 sqrt(pi)) in the mean, of 4 (6 / pi)
        arctan(sqrt(2)) / sqrt(pi) (David and Nagaraja, Order Statistics, section 3.2)."""
        root = math.pi**0.5
        for count, mean in ((1, 0), (2, 1 / root), (3, 1.5 / root), (4, 6 / math.pi * math.atan(2**0.5) / root)):
            self.assertAlmostEqual(mean_of_largest(count), mean, places=9)
        self.assertAlmostEqual(Waiting(4).factor(), 1 + 0.015 * mean_of_largest(4))
        self.assertEqual(Waiting(4).factor(0), 1)

    def test_a_pipeline_waits_for_the_stage_that_takes_longest(self):
        """Two stages of 8 and 4 s, half of it arithmetic: the second one is never the longer one. With equal stages it is the slowest of
        all GPUs. Of 4 GPUs in one and 2 in the other of two times the work the integral is the heavier one's."""
        self.assertAlmostEqual(mean_of_slowest([(8, 4), (4, 2)], 4, 0.1), 8 + 0.4 * mean_of_largest(4), places=6)
        self.assertAlmostEqual(mean_of_slowest([(8, 4)] * 3, 4, 0.1), 8 + 0.4 * mean_of_largest(12), places=6)
        self.assertEqual(mean_of_slowest([(8, 4), (9, 4)], 4, 0), 9)
        # Times of two GPUs, uniform in nothing but normal: the mean of the larger of N(9, 1) and N(8, 1) is 9 Phi(a) + 8 Phi(-a) + b phi(a)
        # with b^2 = 2 and a = 1 / b (Clark, Operations Research 9, 1961, formula 2).
        normal, b = statistics.NormalDist(), 2**0.5
        clark = 9 * normal.cdf(1 / b) + 8 * normal.cdf(-1 / b) + b * normal.pdf(1 / b)
        self.assertAlmostEqual(mean_of_slowest([(9, 10), (8, 10)], 1, 0.1), clark, places=6)
        # 5 passes on the longer of two stages, of whose 4 s 2 are arithmetic, and one on the other, whose two ranks are mean ones.
        heavy = (5 * (1 + 0.1 * mean_of_largest(4)) + 1 + 0.1 * mean_of_largest(2)) / 6
        self.assertAlmostEqual(Waiting(8, together=2, passes=5, stages=((4, 2), (2, 1))).factor(0.1), heavy, places=6)
        self.assertEqual(Waiting(8, together=2, passes=5, stages=((4, 2), (2, 1))).factor(0), 1)
        # A stage that computes 3 s, and 3.1 with arithmetic 1.05 times as long, has 2 s of it.
        ((seconds, arithmetic),) = stages_of(lambda factor: [1 + 2 * factor])
        self.assertEqual(seconds, 3)
        self.assertAlmostEqual(arithmetic, 2)

    def test_stages_of_rows_are_counted(self):
        """175B: 8 stages of 8 tensor ranks, 64 micro-batches, each of which passes 3 virtual stages of a rank; the last one has the head.
        128 sequences on 2 copies of 4 stages of 8 ranks, and experts of 16."""
        asked = []

        def compute(case, changes=None):
            path = (changes or {}).get("workload.device") or case.experiment["workload"]["device"]
            asked.append(float(yaml.safe_load(pathlib.Path(path).read_text())["peak"]["fp16"].split()[0]))
            return [1 + 312 / asked[-1], 2 + 312 / asked[-1]]

        case = type("Case", (), {"compute_of_kinds": compute, "scratch": self.folder, "root": weft_testing.SOURCE})()
        row = next(row for row in table_of("korthikanti_2022")[1] if row.name.startswith("175B"))
        waiting = row.waiting(case)
        self.assertEqual((waiting.gpus, waiting.together, waiting.passes), (64, 8, 192))
        for found, expected in zip(waiting.stages, ((2, 1), (3, 1)), strict=True):
            self.assertAlmostEqual(found[0], expected[0])
            self.assertAlmostEqual(found[1], expected[1])
        self.assertAlmostEqual(asked[0] / asked[1], 1.05, places=7)
        row = {"gpus": 8, "tensor": 8, "micro_batch": 1, "batch": 128}
        self.assertEqual(waiting_of(case, {}, row), Waiting(8, 8, 128))
        self.assertEqual(waiting_of(case, {}, {**row, "gpus": 64, "expert": 16}), Waiting(64, 16, 16))

    def test_devices_of_rows_have_the_arithmetic_of_the_slowest_gpu(self):
        """The rates of arithmetic are divided by the factor, with those of the set's own clock; all else stays."""
        case = types.SimpleNamespace(scratch=self.folder, root=weft_testing.SOURCE)
        before = yaml.safe_load((weft_testing.SOURCE / "workloads" / "devices" / "h100-sxm.yaml").read_text())
        row = {"gpus": 8, "micro_batch": 1, "batch": 8}
        for said, clock in (("h100-sxm", 1), ({"base": "h100-sxm", "clock": 0.871}, 0.871)):
            device = yaml.safe_load(pathlib.Path(device_of(case, {"device": said}, row, 1.02)).read_text())
            for precision, peak in before["peak"].items():
                self.assertAlmostEqual(float(device["peak"][precision].split()[0]) * 1.02 / clock / float(peak.split()[0]), 1, places=7)
            self.assertEqual({**device, "peak": 0}, {**before, "peak": 0})

    def test_ends_of_the_spread_are_none_and_the_highest(self):
        """The device of a row has the factor of 1.5 % already; at the ends that of 4.1 % and of 0 takes its place."""
        seen = []
        case = type("Case", (), {"run": lambda one: seen.append(one.experiment["workload"])})()
        device = weft_testing.SOURCE / "workloads" / "devices" / "a100-sxm.yaml"
        case.experiment, case.scratch = {"topology": {}, "workload": {"device": str(device)}}, self.folder
        peak = float(yaml.safe_load(device.read_text())["peak"]["fp16"].split()[0])
        waiting = Waiting(384, together=2, passes=8, stages=((4, 3), (4, 3), (5, 4)))
        for high, spread in ((False, HIGH_SPREAD), (True, 0)):
            Varied(case, "spread of GPUs", high, waiting).run()
            varied = yaml.safe_load(pathlib.Path(seen[-1]["device"]).read_text())["peak"]["fp16"]
            self.assertAlmostEqual(peak / float(varied.split()[0]), waiting.factor(spread) / waiting.factor(SPREAD), places=7)
            self.assertNotIn("compute_noise", seen[-1])

    def test_constants_that_move_a_row_most_come_first(self):
        changes = {"host": (0.02, -0.05), "launches": (0.5, -0.2), "clock": (2.0, -3.14)}
        self.assertEqual(moved_by(changes), "clock +2.0 -3.1, launches +0.5 -0.2")

    def test_interval_is_the_root_of_the_sum_of_squares(self):
        """Each of n constants moves the time by 3 % up and 1 % down."""
        row = types.SimpleNamespace(waiting=lambda case: Waiting(8), run=lambda case: 10.0 * (1 if case is None else 0.99 if case._high else 1.03))
        middle, changes, fast, slow = sensitivity(row, None)
        self.assertEqual((middle, len(changes)), (10, len(CONSTANTS)))
        root = len(CONSTANTS) ** 0.5
        self.assertAlmostEqual(fast, 10 * (1 - 0.01 * root))
        self.assertAlmostEqual(slow, 10 * (1 + 0.03 * root))

    def test_measured_times_inside_their_intervals_are_counted(self):
        """Of four rows predicted at 10 s, -10 to +20 %, the first was measured faster than that, the last slower; errors are
        10/8 - 1, 0, 10/11 - 1 and 10/13 - 1."""
        found = [Interval(published, 10.0, 9.0, 12.0, {}) for published in (8.0, 10.0, 11.0, 13.0)]
        self.assertEqual([one.inside for one in found], [False, True, True, False])
        mean = 100 * (0.25 + 0 + 1 / 11 + 3 / 13) / 4
        self.assertEqual(cells_of("mine", found),
                         ["mine", "4", f"{mean:.1f} %", "+25.0 %", "0 %", "-10.0 to +20.0 %", "2 of 4", "1", "1"])
        # In a set whose constants are not varied only errors and order are known.
        fixed = [Interval(published, 10.0, 10.0, 10.0, None) for published in (8.0, 10.0, 11.0, 13.0)]
        self.assertEqual(cells_of("mine", fixed), ["mine", "4", f"{mean:.1f} %", "+25.0 %", "0 %", *"----"])
        # A plan that weft refuses is no row.
        self.assertEqual(cells_of("mine", [*found, "refused"]), cells_of("mine", found))

    def test_table_of_intervals_is_written_between_its_comments(self):
        text = page_with(f"before\n{BEGIN}\nold\n{END}\nafter\n", [["mine", *"12345678"]])
        self.assertTrue(text.startswith(f"before\n{BEGIN}\n\n| set |"), text)
        self.assertIn("\n| mine | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |\n", text)
        self.assertTrue(text.endswith(f"\n\n{END}\nafter\n"), text)
        self.assertNotIn("old", text)
        self.assertRaises(SystemExit, page_with, "no comments", [])

    def test_page_has_each_set_with_all_of_its_rows(self):
        table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
        rows = {cells[1].strip(): int(cells[2]) for cells in (line.split("|") for line in table.splitlines()[4:] if line)}
        self.assertEqual(rows, {read(name)["name"]: len(table_of(name)[1]) for name in sets()})


if __name__ == "__main__":
    unittest.main()
