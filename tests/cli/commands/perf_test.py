#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""`weft perf` with several algorithms, and beside what nccl-tests has measured. The logs here are written as nccl-tests
writes them (its src/util.cu: writeResultHeader, writeBenchmarkLinePreamble, writeBenchmarkLineBody, getFloatStr)."""

import csv
import itertools
import json
import math
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_ENVIRONMENT, EXIT_INPUT, NETWORK, STAR, ProgramTest, weft

MACHINE = {"topology": {**STAR, "hosts": 8}, "network": NETWORK}
SEVERAL = ["--algorithm", "ring,recursive_doubling"]
SIZES = ["-b", "1K", "-e", "4M", "-f", "4"]


def seven_wide(value):
    """getFloatStr of width 7: as many digits as fit."""
    power = len(str(int(value))) if value >= 1 else 0
    return f"{value:7.2f}" if power < 5 else f"{value:7.1f}" if power < 6 else f"{value:7.0f}"


def text_log(rows, program="all_reduce_perf", ranks=8, time=seven_wide):
    """rows: (bytes, out of place us, in place us)."""
    lines = ["# nccl-tests version 2.17.1 nccl-headers=22703 nccl-library=22703",
             f"# Collective test starting: {program}",
             "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
             "validation: 1 graph: 0 unalign: 0", "#", "# Using devices"]
    lines += [f"#  Rank {rank:2} Group  0 Pid   1234 on      gpu01 device {rank:2} [0000:1b:00] NVIDIA H100"
              for rank in range(ranks)]
    fixed = "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}"
    body = "  {:>7}  {:>6}  {:>6}  {:>6}"
    places = "           out-of-place                       in-place          "
    names = 2 * body.format("time", "algbw", "busbw", "#wrong")
    lines += ["#", fixed.format("", "", "", "", "") + places,
              fixed.format("size", "count", "type", "redop", "root") + names,
              fixed.format("(B)", "(elements)", "", "", "") + 2 * body.format("(us)", "(GB/s)", "(GB/s)", "")]
    for size, *times in rows:
        line = f"{size:12}  {size // 4:12}  {'float':>8}  {'sum':>6}  {-1:6}"
        for us in times:
            line += f"  {time(us):>7}  {size / us / 1e3:6.2f}  {size / us / 1e3 * 1.75:6.2f}  {0:6}"
        lines.append(line)
    lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 12.34 ", "#"]
    return "\n".join(lines) + "\n"


def json_log(rows):
    """As `all_reduce_perf -J FILE` writes it: one line, times with six decimals (jsonDouble)."""
    def body(size, us):
        return {"time": round(us, 6), "alg_bw": size / us / 1e3, "bus_bw": size / us / 1e3 * 1.75, "nwrong": 0.0}
    return json.dumps({
        "version": 2, "start_time": "2025-01-01 00:00:00", "args": ["./build/all_reduce_perf", "-g", "8"], "env": [],
        "nccl_version": 22703, "config": {"nthreads": 1, "ngpus": 8, "devices": [{"rank": rank} for rank in range(8)]},
        "results": [{"size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "    -1",
                     "out_of_place": body(size, out), "in_place": body(size, inside), "actual_iterations": 20,
                     "experiment_name": ""} for size, out, inside in rows],
        "out_of_bounds": {"count": 0, "okay": "true"}})


class PerfTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.path = self.write(MACHINE)

    def perf(self, *words, ranks=None):
        return self.run_weft("perf", "all_reduce", self.path, *words, ranks=ranks).out

    def report(self, *words, ranks=None):
        return json.loads(self.perf(*words, "--json", ranks=ranks))

    def times(self, report, algorithm):
        return {row["size_bytes"]: row["time_us"] for row in report["rows"] if row["asked_for"] == algorithm}


class NoAlgorithm(PerfTest):
    def test_is_one_that_can_do_the_kind(self):
        """The ring where it has the kind (docs/reference/workload_kinds.md)."""
        for kind, algorithm in [("all_reduce", "ring"), ("all_to_all", "nccl_p2p"), ("gather", "nccl_p2p")]:
            report = json.loads(self.run_weft("perf", kind, self.path, "-b", "64K", "-e", "64K", "--json").out)
            self.assertEqual([row["algorithm"] for row in report["rows"]], [algorithm], kind)


class SeveralAlgorithms(PerfTest):
    def test_are_as_each_alone(self):
        """The same times, whether beside others or alone, and the fastest of each size is marked."""
        together = self.report(*SIZES, *SEVERAL)
        for name in ["ring", "recursive_doubling"]:
            alone = self.report(*SIZES, "--set", f"workload.algorithm={name}")
            self.assertEqual(self.times(together, name), self.times(alone, name))
        for size in {row["size_bytes"] for row in together["rows"]}:
            rows = [row for row in together["rows"] if row["size_bytes"] == size]
            least = min(row["time_us"] for row in rows)
            self.assertEqual([row["best"] for row in rows], [row["time_us"] == least for row in rows])

    def test_text_and_files_say_the_same(self):
        report = self.report(*SIZES, *SEVERAL)
        text = self.perf(*SIZES, *SEVERAL, "--csv", "a.csv", "--plot", "a.svg")
        with open(self.folder / "a.csv") as file:
            table = list(csv.DictReader(file))
        for row, one in itertools.zip_longest(table, report["rows"]):
            self.assertEqual((int(row["size_bytes"]), row["asked_for"], row["best"] == "1"),
                             (one["size_bytes"], one["asked_for"], one["best"]))
            self.assertAlmostEqual(float(row["time_us"]), one["time_us"], delta=1e-6)
        lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(len(lines), 7)
        for words in lines:
            ring, doubling = (self.times(report, name)[int(words[0])] for name in ["ring", "recursive_doubling"])
            star = ["", "*"] if doubling < ring else ["*", ""]
            self.assertEqual([words[5], words[7]], [f"{ring:.2f}{star[0]}", f"{doubling:.2f}{star[1]}"])
            self.assertEqual(words[9:], ["recursive_doubling" if star[1] else "ring", "simple", "1"])
        picture = (self.folder / "a.svg").read_text()
        self.assertEqual(picture.count("<polyline"), 2)
        self.assertIn(">recursive_doubling</text>", picture)

    def test_crossover(self):
        """Lines between the two sizes at which the fastest changes cross at the printed size."""
        report = self.report(*SIZES, *SEVERAL)
        ring, doubling = self.times(report, "ring"), self.times(report, "recursive_doubling")
        self.assertEqual(len(report["crossovers"]), 1)
        one = report["crossovers"][0]
        self.assertEqual((one["from"], one["to"]), ("recursive_doubling", "ring"))
        low, high = one["below_bytes"], one["above_bytes"]
        self.assertLess(doubling[low], ring[low])
        self.assertLess(ring[high], doubling[high])
        share = (one["bytes"] - low) / (high - low)
        self.assertTrue(0 < share < 1)
        for first, second in [(ring, doubling)]:
            self.assertAlmostEqual(first[low] + share * (first[high] - first[low]),
                                   second[low] + share * (second[high] - second[low]), delta=1e-6)
        self.assertIn(f"ring from about {one['bytes']:.0f} B on (between {low} B and {high} B)",
                      self.perf(*SIZES, *SEVERAL))

    def test_alpha_beta_line(self):
        """Least squares of relative errors: no line near it has a smaller sum of squares, and the residual is its."""
        report = self.report(*SIZES, *SEVERAL)
        for line in report["alpha_beta"]:
            times = self.times(report, line["algorithm"])

            def residual(latency, bandwidth):
                errors = [(latency + size / bandwidth / 1e3) / us - 1 for size, us in times.items()]
                return 100 * math.sqrt(sum(error**2 for error in errors) / len(errors))

            best = residual(line["latency_us"], line["bandwidth_GBps"])
            self.assertAlmostEqual(best, line["residual_percent"], delta=1e-6)
            self.assertGreater(best, 0)
            for latency, bandwidth in [(1.001, 1), (0.999, 1), (1, 1.001), (1, 0.999)]:
                self.assertGreater(residual(latency * line["latency_us"], bandwidth * line["bandwidth_GBps"]), best)
            self.assertAlmostEqual(line["bus_bandwidth_GBps"], 1.75 * line["bandwidth_GBps"], delta=1e-9)

    def test_on_two_processes(self):
        self.assertEqual(self.report(*SIZES, *SEVERAL), self.report(*SIZES, *SEVERAL, ranks=2))

    def test_of_a_machine_without_ranges(self):
        """Nothing there has a range: the least and the most are the time."""
        for row in self.report(*SIZES, *SEVERAL, "--range")["rows"]:
            self.assertEqual([row["min_us"], row["max_us"]], [row["time_us"]] * 2)

    def test_nvswitches_that_do_not_reduce_are_named(self):
        """Real ones do since Hopper, and NCCL uses them."""
        note = "NVLink SHARP         : not used"
        for design, named in (({"design": "hgx_h100", "nvlink_sharp": False}, True), ("hgx_h100", False), ("dgx_a100", False),
                              ("mi300x", False)):
            machine = self.write({"topology": {"kind": "server", "design": design}, "network": NETWORK}, "server.yaml")
            for algorithm in ("nccl", "ring"):
                with self.subTest(design=design, algorithm=algorithm):
                    text = self.run_weft("perf", "all_reduce", machine, "-b", "1K", "--algorithm", algorithm).out
                    self.assertEqual(note in text, named and algorithm == "nccl")

    def test_wrong_words(self):
        for words, pattern in [(["--algorithm", "ring,rign"], "unknown algorithm 'rign'.*did you mean 'ring'"),
                               (["--algorithm", "ring,ring"], "--algorithm found 'ring' twice"),
                               (["--algorithm", "ring", "--compare", "rign=x"],
                                "found 'rign' before '='.*did you mean 'ring'"),
                               (["-b", "8x"], "^weft: --minbytes: expected a size such as '64 MiB', found '8x'"),
                               (["-f", "2.5"], "^weft: --stepfactor: expected a whole number from 2 to"),
                               (["--in-place"], "--compare FILE")]:
            with self.subTest(words):
                done = weft("perf", "all_reduce", self.path, *words, folder=self.folder)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""))
                self.assertRegex(done.err, pattern)
        done = weft("perf", "all_reduce", self.path, "--csv", "no/a.csv", folder=self.folder)
        self.assertEqual(done.code, EXIT_ENVIRONMENT)


class Range(PerfTest):
    """--range beside the same sizes with each value of kernel_constants."""

    SIZES = ["-b", "4K", "-e", "4M", "-f", "32"]

    def setUp(self):
        super().setUp()
        self.path = self.write({"topology": {"kind": "server", "design": "hgx_h100"}, "network": NETWORK,
                                "workload": {"kind": "collective", "algorithm": "nccl", "ranks": 2}})  # fmt: skip

    def at(self, level):
        rows = self.report(*self.SIZES, "--set", f"workload.kernel_constants={level}")["rows"]
        return [row["time_us"] for row in rows]

    def test_is_that_of_low_and_high(self):
        rows = self.report(*self.SIZES, "--range")["rows"]
        low, mid, high = (self.at(level) for level in ("low", "mid", "high"))
        self.assertEqual([row["time_us"] for row in rows], mid)
        self.assertEqual([(row["min_us"], row["max_us"]) for row in rows], list(zip(low, high, strict=True)))
        for times in zip(low, mid, high, strict=True):
            self.assertLess(times[0], times[1])
            self.assertLess(times[1], times[2])
        text = self.perf(*self.SIZES, "--range", "--csv", "a.csv")
        heads = [line.split() for line in text.splitlines() if line.startswith("#")]
        self.assertIn(["#", "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "min", "max",
                       "algorithm,", "protocol,", "channels"], heads)  # fmt: skip
        lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
        ranges = [[f"{a:.2f}", f"{b:.2f}"] for a, b in zip(low, high, strict=True)]
        self.assertEqual([line[8:10] for line in lines], ranges)
        with open(self.folder / "a.csv") as file:
            for row, least, most in zip(csv.DictReader(file), low, high, strict=True):
                self.assertAlmostEqual(float(row["min_us"]), least, delta=1e-6)
                self.assertAlmostEqual(float(row["max_us"]), most, delta=1e-6)
        several = self.perf(*self.SIZES, "--range", "--algorithm", "nccl,nccl_ring")
        self.assertNotIn("Not alike", several)
        mixed = ["--algorithm", "nccl,ring"]
        self.assertIn("# Not alike            : times of nccl have .* those of ring the network alone".split(".*")[0],
                      self.perf(*self.SIZES, *mixed))
        alike = self.perf(*self.SIZES, *mixed, "--set", "workload.collective_kernel=none")
        self.assertNotIn("Not alike", alike)
        lines = [line.split() for line in several.splitlines() if not line.startswith("#")]
        self.assertEqual([line[7:9] for line in lines], ranges)

    def test_measured_times_in_it(self):
        rows = self.report(*self.SIZES, "--range")["rows"]
        measured = [(rows[0]["size_bytes"], rows[0]["max_us"] - 0.01, 1),
                    (rows[1]["size_bytes"], rows[1]["min_us"] - 0.01, 1)]
        self.write(text_log(measured, ranks=2, time=lambda us: f"{us:.8f}"), "a.log")
        report = self.report("--compare", "a.log", "--range")
        self.assertEqual(report["comparisons"][0]["within_range"], 1)
        self.assertIn("# Within the range     : 1 of 2 measured times", self.perf("--compare", "a.log", "--range"))

    def test_not_with_one_of_them(self):
        words = ["--range", "--set", "workload.kernel_constants=low"]
        done = weft("perf", "all_reduce", self.path, *words, folder=self.folder)
        self.assertEqual((done.code, done.out), (EXIT_INPUT, ""))
        self.assertRegex(done.err, "`workload.kernel_constants`: --range runs low, mid and high")


class Compare(PerfTest):
    def setUp(self):
        super().setUp()
        self.exact = self.times(self.report(*SIZES), "ring")

    def rows(self, factor=1.0, in_place=2.0):
        return [(size, us * factor, us * in_place) for size, us in self.exact.items()]

    def test_the_same_times(self):
        self.write(text_log(self.rows(), time=lambda us: f"{us:.8f}"), "a.log")
        self.write(json_log(self.rows()), "a.json")
        for name in ["a.log", "a.json"]:
            report = self.report("--compare", name)
            self.assertEqual(self.times(report, "ring"), self.exact)  # the log names the sizes
            one = report["comparisons"][0]
            self.assertEqual([row["size_bytes"] for row in one["rows"]], list(self.exact))
            for key in ["mean_absolute_error_percent", "mean_error_percent", "largest_error_percent"]:
                self.assertAlmostEqual(one[key], 0, delta=1e-6)
            self.assertEqual(one["order_of_sizes"], {"pairs": 21, "same": 21})

    def test_a_quarter_slower(self):
        """Measured times are 1.25 times the simulated ones: 20 % too fast, each row. Times have the digits of nccl-tests."""
        self.write(text_log(self.rows(1.25)), "a.log")
        self.write(json_log(self.rows(1.25)), "a.json")
        for name in ["a.log", "a.json"]:
            one = self.report("--compare", name)["comparisons"][0]
            for row in one["rows"]:
                printed = float(seven_wide(1.25 * self.exact[row["size_bytes"]]))
                if name == "a.log":
                    self.assertEqual(row["measured_us"], printed)
                error = row["simulated_us"] / row["measured_us"] - 1
                self.assertAlmostEqual(row["error_percent"], 100 * error, delta=1e-9)
                self.assertAlmostEqual(row["error_percent"], -20, delta=80 * 0.0051 / row["measured_us"])
            self.assertAlmostEqual(one["mean_absolute_error_percent"], 20, delta=0.05)
            self.assertAlmostEqual(one["mean_error_percent"], -20, delta=0.05)
        text = self.perf("--compare", "a.json", "--csv", "a.csv")
        self.assertIn("# Mean absolute error  : 20.00 % of 7 rows\n", text)
        self.assertIn("# Mean error           : -20.00 % (above 0: simulated too slow)\n", text)
        with open(self.folder / "a.csv") as file:
            for row in csv.DictReader(file):
                self.assertEqual(row["log"], "a.json")
                self.assertAlmostEqual(float(row["measured_us"]), 1.25 * float(row["time_us"]), delta=2e-6)
                self.assertAlmostEqual(float(row["error_percent"]), -20, delta=1e-4)

    def test_a_table_of_ones_own(self):
        """A CSV: columns in any order, other columns, commas or semicolons, a type or none."""
        rows = self.rows(1.25, 2)
        for text in ["size,time\n" + "".join(f"{size},{us}\n" for size, us, _ in rows),
                     "name;in_place_us;type;time_us;size_bytes\n" + "\n".join(f"x; {slow}; float; {us}; {size}" for size, us, slow in rows)]:
            self.write(text, "own.csv")
            one = self.report("--compare", "own.csv")["comparisons"][0]
            self.assertEqual([row["size_bytes"] for row in one["rows"]], [size for size, *_ in rows])
            self.assertAlmostEqual(one["mean_error_percent"], -20, delta=1e-6)
        self.assertAlmostEqual(self.report("--compare", "own.csv", "--in-place")["comparisons"][0]["mean_error_percent"], -50,
                               delta=1e-6)
        for text, line, pattern in [
            ("bytes,microseconds\n8,1\n", 1, "the head found is 'bytes,microseconds'; expected the columns 'size'"),
            ("size,time\n8\n", 2, "1 columns found; expected 2"),
            ("size,time\n8,1 ms\n", 2, "the time found is '1 ms'; expected microseconds"),
            ("size,time\n8 kB,1\n", 2, "the size found is '8 kB'; expected a whole number of bytes"),
            ("size,time\n8,\n", 2, "the row has no time"),
            ("size,time\n", 1, "no row of nccl-tests' table"),
        ]:
            with self.subTest(pattern):
                path = self.write(text, "bad.csv")
                done = weft("perf", "all_reduce", self.path, "--compare", path, folder=self.folder)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""))
                self.assertRegex(done.err, f"^weft: {re.escape(str(path))}:{line}: .*{pattern}")

    def test_in_place(self):
        self.write(json_log(self.rows()), "a.json")
        one = self.report("--compare", "a.json", "--in-place")["comparisons"][0]
        self.assertAlmostEqual(one["mean_error_percent"], -50, delta=1e-4)
        # Only in place: the columns of the other are empty.
        rows = self.rows()
        text = text_log([(size, us) for size, us, _ in rows])
        self.write(text, "b.log")
        one = self.report("--compare", "b.log", "--in-place")["comparisons"][0]
        self.assertAlmostEqual(one["mean_error_percent"], 0, delta=0.05)

    def test_largest_error_and_order(self):
        """One time stands out: the error's place and sign, and the pairs of sizes whose order it reverses."""
        rows = self.rows()
        rows[3] = (rows[3][0], rows[3][1] / 100, 1)  # 65536 B
        self.write(text_log(rows, time=lambda us: f"{us:.8f}"), "a.log")
        one = self.report("--compare", "a.log")["comparisons"][0]
        self.assertEqual(one["largest_error_at_bytes"], 65536)
        self.assertAlmostEqual(one["largest_error_percent"], 9900, delta=1e-3)
        self.assertAlmostEqual(one["mean_absolute_error_percent"], 9900 / 7, delta=1e-3)
        bandwidths = [size / us for size, us, _ in rows]
        turned = sum(a > b for a, b in itertools.combinations(bandwidths, 2))
        self.assertGreater(turned, 0)
        self.assertEqual(one["order_of_sizes"], {"pairs": 21, "same": 21 - turned})

    def test_order_of_algorithms(self):
        """Each log is of an algorithm; in the last two sizes the measured order is reversed."""
        report = self.report(*SIZES, *SEVERAL)
        for name in ["ring", "recursive_doubling"]:
            times = list(self.times(report, name).items())
            other = self.times(report, "recursive_doubling" if name == "ring" else "ring")
            times = times[:-2] + [(size, other[size]) for size, _ in times[-2:]]
            self.write(json_log([(size, us, us) for size, us in times]), f"{name}.json")
        words = ["--compare", "ring=ring.json", "--compare", "recursive_doubling=recursive_doubling.json"]
        both = self.report(*SEVERAL, *words)
        self.assertEqual([(one["file"], one["algorithm"]) for one in both["comparisons"]],
                         [("ring.json", "ring"), ("recursive_doubling.json", "recursive_doubling")])
        self.assertEqual(both["order_of_algorithms"], {"pairs": 7, "same": 5})
        self.assertIn("# Order of algorithms  : 5 of 7 pairs", self.perf(*SEVERAL, *words))

    def test_sizes_and_lines_of_others(self):
        """Requested sizes; lines of NCCL_DEBUG and tags of mpirun between the rows; an older head."""
        text = text_log(self.rows())
        other = "10-0-0-1:77:99 [0] NCCL INFO Connected all rings"
        mixed = "".join(f"[1,0]<stdout>:{line}\n{other}\n" for line in text.splitlines())
        self.write(mixed, "a.log")
        one = self.report("--compare", "a.log", "-b", "4K", "-e", "64K")["comparisons"][0]
        self.assertEqual([row["size_bytes"] for row in one["rows"]], [4096, 16384, 65536])
        self.assertEqual(mixed.splitlines()[one["rows"][0]["line"] - 1].split()[0], "[1,0]<stdout>:")
        older = ("#  size  count   type  redop   time  algbw  busbw  error   time  algbw  busbw  error\n"
                 "   1024    256  float    sum  20.00   0.05   0.09  5e-07  10.00   0.10   0.18  5e-07\n")
        self.write(older, "b.log")
        self.assertEqual(self.report("--compare", "b.log")["comparisons"][0]["rows"][0]["measured_us"], 20)

    def test_wrong_files(self):
        good = text_log(self.rows())
        first = next(i for i, line in enumerate(good.splitlines(), 1) if re.match(r" +1024 ", line))
        quick = seven_wide(self.exact[1024])
        for change, line, pattern in [
            (("all_reduce_perf", "alltoall_perf"), 2, "output of alltoall_perf; expected that of all_reduce_perf"),
            (("Rank  7 ", "Rank 15 "), 13, "16 ranks were measured; .* has 8 ranks"),
            ((f"{quick} ", f"{'fast':>7} "), first, "the time found is 'fast'; expected microseconds above 0"),
            ((f"{quick} ", "   0.00 "), first, "the time found is '0.00'"),
            ((f"   float     sum      -1  {quick}", quick), first, r"\d+ columns found; expected 13"),
            (("        1024           256", "      1024.5           256"), first, "the size found is '1024.5'"),
            (("size         count", "siez         count"), first, "stands before nccl-tests' head"),
        ]:
            with self.subTest(change):
                self.assertEqual(good.count(change[0]), 1, good)
                path = self.write(good.replace(*change), "bad.log")
                done = weft("perf", "all_reduce", self.path, "--compare", path, folder=self.folder)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""))
                self.assertRegex(done.err, f"^weft: {re.escape(str(path))}:{line}: .*{pattern}")
        nameless = self.write(re.sub(".*Collective test starting.*\n", "", good), "nameless.log")
        done = weft("perf", "all_gather", self.path, "--compare", nameless, folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT)
        self.assertRegex(done.err, "'sum', but all_gather reduces nothing; expected the output of all_gather_perf")
        pretty = json.dumps(json.loads(json_log(self.rows())), indent=1)
        wrong_time = pretty.replace('"out_of_place": {\n    "time": ', '"out_of_place": {\n    "tmie": ', 1)
        sizes = [i for i, line in enumerate(pretty.splitlines(), 1) if '"size"' in line]
        for text, line, pattern in [
            ("", "1", "no row of nccl-tests' table"),
            (good.split("\n        1024")[0] + "\n", str(first - 1), "no row of nccl-tests' table"),
            (pretty[:200], str(pretty[:200].count("\n") + 1), "not valid JSON"),
            ('{"a": 1}', "1", "no list 'results'"),
            (wrong_time, str(sizes[0]), "result 0 has no 'time' in 'out_of_place'"),
        ]:
            with self.subTest(pattern):
                path = self.write(text, "bad.log")
                done = weft("perf", "all_reduce", self.path, "--compare", path, folder=self.folder)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""))
                self.assertRegex(done.err, f"^weft: {re.escape(str(path))}:{line}: .*{pattern}")
        done = weft("perf", "all_reduce", self.path, "--compare", "none.log", folder=self.folder)
        self.assertRegex(done.err, "^weft: none.log: cannot open this file: No such file")
        self.write(good, "a.log")
        done = weft("perf", "all_reduce", self.path, "--compare", "a.log", "-b", "1G", folder=self.folder)
        self.assertRegex(done.err, "^weft: a.log: none of the 7 rows")


if __name__ == "__main__":
    unittest.main()
