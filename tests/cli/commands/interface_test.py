#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""The command line that scripts rely on: commands, options, the streams of outputs, and the truth of outputs."""

import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import (WEFT, EXIT_INPUT, EXIT_INTERRUPTED, FAT_TREE, NETWORK, SOURCE, STAR, ProgramTest, attributes, environment,
                          processes_in, quantities, start, stop, table, two_at_a_time, wait_until, weft)

WORKLOADS = SOURCE / "workloads"
LISTS = ["topologies", "collectives", "workloads", "congestion-controls", "routing", "marking", "scheduling",
         "buffer-sharing", "load-balancing", "background"]
# Sections that `weft list` prints for a word beside the one of that name.
BESIDE = {"topologies": ["keys"], "collectives": ["selections"], "background": ["jobs"]}
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def traffic(topology=FAT_TREE, network=None, **parameters):
    workload = {"kind": "traffic", **parameters}
    return {"topology": topology, "network": {**NETWORK, **(network or {})}, "workload": workload}


def hosts(count):
    return {**STAR, "hosts": count}


class Words(ProgramTest):
    def test_help(self):
        ways = [["--help"], ["-h"], ["help"]]
        texts = {self.run_weft(*words).out for words in ways}
        self.assertEqual(len(texts), 1)
        text = texts.pop()
        for word in ["run EXPERIMENT.yaml", "describe EXPERIMENT.yaml", "topology SPEC.yaml", "weft list [" + "|".join(LISTS) + "]",
                     "weft bench", "--set", "-o [ --output ]", "--engine", "weft, or ns3-default", "--seed",
                     "--summary", "table or json", "--quiet", "--json", "--version", "Exit codes: 0 done, 2 ", "130 interrupted"]:
            self.assertIn(word, re.sub(r"\|\n +", "|", text))  # a long list continues in the next line
        self.assertLessEqual(max(map(len, text.splitlines())), 120)

    def test_help_of_one_command(self):
        """Usage and options of that command, and nothing of the others."""
        for words in (["run", "--help"], ["help", "run"], ["run", "file.yaml", "--help"]):
            text = self.run_weft(*words).out
            self.assertIn("weft run EXPERIMENT.yaml", text)
            self.assertIn("--verify", text)
            self.assertNotIn("weft describe", text)
        self.assertIn("--checkpoint arg", self.run_weft("goodput", "--help").out)
        self.assertIn("weft export chakra|goal", self.run_weft("export", "goal", "--help").out)
        self.assertIn("usage: weft compare", self.run_weft("help", "compare").out)
        self.assertEqual(self.run_weft("list", "--help").out.count("weft "), 1)
        self.assertRegex(weft("help", "expolain").err, "did you mean 'explain'")

    def test_programs_that_begin_at_once_share_no_folder(self):
        """Open MPI would give all of them one, in TMPDIR, which a program that ends removes while another one begins."""
        nowhere = self.folder / "file"
        nowhere.touch()
        done = subprocess.run([str(WEFT), "--version"], env=environment({"TMPDIR": str(nowhere)}), text=True, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_version(self):
        done = self.run_weft("--version")
        self.assertEqual(done.err, "")
        lines = dict(re.split(r"  +", line, maxsplit=1) if "  " in line else line.rsplit(" ", 1)
                     for line in done.out.splitlines())
        expected = {
            "weft version": r"\d+\.\d+\.\d+", "git revision": r"[0-9a-f]{12}(-dirty)?|unknown", "ns-3": r"3\.\d+",
            "MPI": r"Open MPI v\d+\.\d+\.\d+", "HDF5": r"1\.\d+\.\d+", "Boost": r"1\.\d+\.\d+",
            "compiler": r"(GCC|Clang) \d+\.\d+\.\d+.*",
        }
        self.assertEqual(list(lines), list(expected))
        for name, pattern in expected.items():
            self.assertRegex(lines[name], f"^({pattern})$", name)
        mpirun = subprocess.run(["mpirun", "--version"], text=True, capture_output=True, check=True).stdout
        self.assertIn(lines["MPI"].split(" v")[1], mpirun.splitlines()[0])
        self.assertEqual(self.run_weft("version").out, done.out)
        # Results name the same program.
        _, results = self.simulate(traffic(STAR, pattern="pairs", pairs=[[0, 1]], size="1 B"))
        manifest = attributes(results, "manifest")
        self.assertEqual(manifest["version"], lines["weft version"])
        self.assertEqual(manifest["git_revision"], lines["git revision"])

    def test_one_rank_prints(self):
        path = self.write(traffic(STAR, pattern="pairs", pairs=[[0, 1]], size="1 B"))
        for words in (["--help"], ["--version"], ["list"], ["describe", path]):
            with self.subTest(words[0]):
                self.assertEqual(self.run_weft(*words, ranks=2).out, self.run_weft(*words).out)

    def test_unknown_words(self):
        for words, pattern in [(["simulate"], "'simulate'.*known here: run, describe, workload, export, topology, list, collective, perf, goodput, bench"),
                               (["lst"], "did you mean 'list'"), (["list", "--all"], "all"),
                               (["--versions"], "versions")]:
            with self.subTest(words[0]):
                done = weft(*words, folder=self.folder)
                self.assertEqual((done.code, done.out), (EXIT_INPUT, ""))
                self.assertRegex(done.err, f"^weft: .*{pattern}.*`weft --help`")
                self.assertEqual(done.err.count("\n"), 1)


class Lists(ProgramTest):
    def sections(self, *words):
        """{first word of a title: {name: summary}} of what `weft list` prints."""
        found, section = {}, None
        for line in self.run_weft("list", *words).out.splitlines():
            if line.startswith("  "):
                name, summary = line.split(maxsplit=1)
                section[name] = summary
            else:
                section = found.setdefault(line.split()[0], {})
        return found

    def test_each(self):
        everything = self.sections()
        self.assertEqual(list(everything), [section for what in LISTS for section in [what, *BESIDE.get(what, [])]])
        for what in LISTS:
            with self.subTest(what):
                sections = [what, *BESIDE.get(what, [])]
                self.assertEqual(self.sections(what), {section: everything[section] for section in sections})
                for section in sections:
                    for summary in everything[section].values():
                        self.assertGreater(len(summary), 10)
        for what, names in [("topologies", {"fat_tree", "star", "line", "graph"}), ("collectives", {"ring"}),
                            ("workloads", {"training", "collective", "traffic", "program"}),
                            ("congestion-controls",
                             {"none", "dcqcn", "dctcp", "timely", "hpcc", "swift", "nscc"}), ("routing", {"fat_tree", "shortest_path"}),
                            ("marking", {"red"}), ("scheduling", {"strict", "deficit_round_robin"}),
                            ("buffer-sharing", {"dynamic_threshold", "static_threshold"}),
                            ("load-balancing", {"ecmp", "spray", "flowlet", "adaptive", "reps"})]:
            self.assertLessEqual(names, set(everything[what]))
        self.assertLessEqual({"nccl", "best", "mpich", "open_mpi"}, set(everything["selections"]))
        self.assertLessEqual({"server", "storage_hosts"}, set(everything["keys"]))

    def test_experiments_know_the_same_names(self):
        everything = self.sections()
        collective = {"topology": STAR, "workload": {"kind": "collective", "collective": "all_reduce", "size": "1 B"}}
        for what, key, start_from in [("background", "background.0.kind", {
                                          **traffic(pattern="permutation", size="1 B"), "background": [{"kind": "tcp"}]}),
                                      ("topologies", "topology.kind", traffic(pattern="permutation", size="1 B")),
                                      ("workloads", "workload.kind", traffic(pattern="permutation", size="1 B")),
                                      ("routing", "network.routing", traffic(pattern="permutation", size="1 B")),
                                      ("marking", "network.ecn.algorithm", traffic(pattern="permutation", size="1 B")),
                                      ("buffer-sharing", "network.buffer.sharing",
                                       traffic(pattern="permutation", size="1 B")),
                                      ("load-balancing", "network.load_balancing",
                                       traffic(pattern="permutation", size="1 B")),
                                      ("collectives", "workload.algorithm", collective)]:
            with self.subTest(what):
                done = weft("describe", self.write(start_from), "--set", f"{key}=zzzzzzzz")
                self.assertEqual(done.code, EXIT_INPUT, done)
                known = re.search(r"(?:known here|expected one of): (.*)", done.err)
                self.assertIsNotNone(known, done)
                self.assertEqual(set(known.group(1).split(", ")), set(everything[what]))
        main = {"kind": "traffic", "pattern": "permutation", "ranks": 2, "size": "1 B"}
        times = {"interval": "1 us", "on": "1 us", "off": "1 us"}
        for name in everything["jobs"]:  # as background jobs: starts of traffic, or kinds of workload
            with self.subTest(name):
                if name in everything["workloads"]:
                    beside = {"kind": name, "model": "gpt2", "device": "a100-sxm", "parallelism": {"data": 2},
                              "micro_batch": 1, "sequence_length": 64}
                else:
                    start_of = {key: value for key, value in times.items() if name == "on_off" or key == "interval"}
                    beside = {"kind": "traffic", "pattern": "incast", "ranks": 2, "size": "1 B",
                              "start": {"process": name, **start_of}}
                jobs = {"kind": "jobs", "jobs": [{"name": "main", "workload": main},
                                                 {"name": "beside", "background": True, "workload": beside}]}
                done = weft("describe", self.write({"topology": STAR, "network": NETWORK, "workload": jobs}))
                self.assertEqual(done.code, 0, done)


class Describe(ProgramTest):
    def check(self, path, *words, run=True):
        """Predictions are right: packet-hops, messages, packets, and wire bytes of every class of links."""
        text = self.run_weft("describe", path, *words).out
        self.assertEqual([line for line in text.splitlines()[1:] if not line.startswith(" ")],
                         ["machine", "workload", "expected"])
        for name in ["topology", "hosts", "switches", "routing", "packets", "ranks", "operations",
                     "compute of the busiest", "memory of a process", "bytes each", "results"]:
            self.assertRegex(text, rf"(?m)^  {name}  +\S")
        if not run:
            return text
        summary, results = self.simulate(path, *words)
        self.assertEqual(quantities(text, "packet-hops"), summary["packet_hops"])
        self.assertEqual(quantities(text, "messages"), summary["messages"])
        links = table(results, "links")
        self.assertEqual(links["packets"].sum(), summary["packet_hops"])
        for name in set(links["link_class"]):
            bytes_of_class = int(links["bytes"][links["link_class"] == name].sum())
            number, unit = re.search(rf"(?m)^  on the wire, {name} +([0-9.e+]+) (\w+)$", text).groups()
            # Four digits are printed.
            self.assertAlmostEqual(float(number) * UNITS[unit], bytes_of_class, delta=6e-4 * bytes_of_class, msg=name)
        return text

    def test_memory_of_an_all_to_all(self):
        """Every rank has a connection to every other: 256 * 255 of them, of which 256 are in the memory of a rank. The run
        takes what was said."""
        experiment = {"topology": {"kind": "fat_tree", "k": 16, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
                      "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "pairwise",
                                   "ranks": 256, "size": "256 KiB"}, "output": {"messages": "none"}}

        def said(path):
            numbers = re.search(r"memory of a process +([0-9.]+) MiB, and ([0-9.]+) MiB shared",
                                self.run_weft("describe", path).out).groups()
            return tuple(float(number) * 2**20 for number in numbers)

        path = self.write(experiment)
        each, shared = said(path)
        _, results = self.simulate(path, start=weft)  # its memory, not that of an earlier run
        with h5py.File(results) as file:
            peak = int(file["manifest/parallel/peak_memory"][0])
        self.assertAlmostEqual(each + shared, peak, delta=0.1 * peak)
        experiment["workload"].update(collective="all_reduce", algorithm="ring")  # one connection of each rank
        self.assertAlmostEqual(shared - said(self.write(experiment))[1], 630 * (256 * 255 - 256), delta=0.01 * shared)

    def test_ready_made_experiments(self):
        for name in ["quickstart", "ring_all_reduce", "permutation", "incast", "ddp_step"]:
            with self.subTest(name):
                smaller = ["--set", "workload.size=1 MiB"] if name in ("ring_all_reduce", "permutation") else []
                self.check(WORKLOADS / f"{name}.yaml", *smaller)

    def test_without_acks(self):
        self.check(self.write(traffic(network={"ack": "none"}, pattern="all_to_all", size="9 kB", queue_pairs=4)))

    def test_collectives(self):
        for kind in ["all_gather", "reduce_scatter", "broadcast"]:
            with self.subTest(kind):
                self.check(self.write({"topology": hosts(5), "network": NETWORK, "workload": {
                    "kind": "collective", "collective": kind, "size": "3333333 B", "channels": 2, "iterations": 2}}))

    def test_text(self):
        text = self.check(self.write(traffic(pattern="permutation", shift=8, size="10 kB")))
        self.assertRegex(text, r"(?m)^  hosts +16\n  switches +20\n  links, host +16 at 400 Gb/s$")
        # Three packets for each of 16 flows to another pod: 6 links, and as many ACKs.
        self.assertEqual(quantities(text, "data packets"), 3 * 16)
        self.assertEqual(quantities(text, "ACKs and credits"), 3 * 16)
        self.assertEqual(quantities(text, "packet-hops"), 2 * 3 * 16 * 6)
        self.assertNotIn("  instead ", text)

    def test_runs_nothing(self):
        """Described within seconds, though it would run for weeks, and no file is left."""
        path = self.write(traffic(pattern="permutation", size="1 TiB"))
        before = sorted(self.folder.iterdir())
        text = self.check(path, run=False)
        self.assertGreater(quantities(text, "packet-hops"), 10**10)
        # 16 messages, one of each host, at a million messages a second.
        self.assertRegex(text, r"(?m)^  instead +--set network.fidelity=ideal: about 0 s, without queues")
        self.assertEqual(sorted(self.folder.iterdir()), before)


class Llama(ProgramTest):
    PATH = WORKLOADS / "llama31_8b_data_parallel.yaml"

    def test_describe(self):
        text = self.run_weft("describe", self.PATH).out
        self.assertEqual(quantities(text, "hosts"), 8**3 // 4)
        self.assertEqual(quantities(text, "switches"), 5 * 8**2 // 4)
        self.assertEqual(quantities(text, "ranks"), 128)
        # config.json of the model: embedding and head; per layer query and output, key and value for 8 of 32 heads,
        # three matrices of the MLP, two norms; the last norm.
        hidden, layers, mlp, vocabulary = 4096, 32, 14336, 128256
        layer = 2 * hidden**2 + 2 * hidden * hidden * 8 // 32 + 3 * hidden * mlp + 2 * hidden
        parameters = 2 * vocabulary * hidden + layers * layer + hidden
        self.assertEqual(quantities(text, "parameters"), parameters)
        self.assertEqual(quantities(text, "gradients"), 2 * parameters)
        # Ring all-reduce: every rank sends 2 (n - 1) / n of its 2 bytes per gradient.
        payload = 127 * 2 * 2 * parameters
        number, unit = re.search(r"payload +([0-9.]+) (TiB|GiB)", text).groups()
        self.assertAlmostEqual(float(number) * UNITS[unit], payload, delta=6e-4 * payload)

    def test_starts(self):
        """It simulates and prints its progress; the user ends it."""
        process = start(["run", self.PATH, "-o", "llama.h5"], folder=self.folder)
        self.addCleanup(stop, process)
        readable, _, _ = select.select([process.stderr], [], [], 60)
        self.assertTrue(readable, "no progress in a minute")
        self.assertRegex(process.stderr.readline(), r"^weft: warning: OUT OF MEMORY: ")  # as recorded in the file
        self.assertRegex(process.stderr.readline(), r"^\d+ %, \d+ s elapsed, .*\d+\.\d+ ms simulated$")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, EXIT_INTERRUPTED)
        self.assertIn("interrupted: incomplete", out)
        self.assertEqual(attributes(self.folder / "llama.h5")["complete"], 0)
        self.assertGreater(table(self.folder / "llama.h5", "links")["data_packets"].sum(), 0)


class Summary(ProgramTest):
    KEYS = ["simulated_time_ps", "wall_seconds", "packet_hops", "packet_hops_per_second", "events", "mpi_ranks",
            "fingerprint", "messages", "bytes_delivered", "packets_dropped", "output"]

    def test_json(self):
        """One object, nothing else, and its values are those of the file."""
        path = self.write(traffic(pattern="permutation", size="123456 B", queue_pairs=2))
        for ranks in [None, 2]:
            with self.subTest(ranks=ranks):
                done = self.run_weft("run", path, "-o", "out.h5", "--summary", "json", ranks=ranks)
                summary, end = json.JSONDecoder().raw_decode(done.out)
                self.assertEqual((done.out[0], done.out[end:]), ("{", "\n"))
                self.assertLessEqual(set(self.KEYS), set(summary))
                file = attributes(self.folder / "out.h5")
                self.assertEqual(summary["simulated_time_ps"], file["simulated_time"])
                self.assertEqual(int(summary["fingerprint"], 16), int(file["fingerprint"], 16))
                self.assertEqual(summary["mpi_ranks"], ranks or 1)
                self.assertEqual((summary["messages"], summary["bytes_delivered"]), (16 * 2, 16 * 123456))
                self.assertEqual(summary["packets_dropped"], 0)
                self.assertEqual(summary["output"], "out.h5")
                links = table(self.folder / "out.h5", "links")
                self.assertEqual(summary["packet_hops"], links["packets"].sum())
                self.assertEqual(links["dropped"].sum(), 0)
                # A hop is an arrival, and each arrival an event.
                self.assertGreaterEqual(summary["events"], summary["packet_hops"])
                self.assertGreater(summary["wall_seconds"], 0)
                self.assertAlmostEqual(summary["packet_hops_per_second"] * summary["wall_seconds"],
                                       summary["packet_hops"], delta=1e-6 * summary["packet_hops"])
                self.assertEqual(summary["collectives"], [])

    def test_bandwidths(self):
        """As nccl-tests define them in doc/PERFORMANCE.md: algbw = bytes / time; busbw = algbw times a factor."""
        factors = {"all_reduce": lambda n: 2 * (n - 1) / n, "all_gather": lambda n: (n - 1) / n,
                   "reduce_scatter": lambda n: (n - 1) / n, "broadcast": lambda n: 1}
        for kind, factor in factors.items():
            for ranks, size in [(2, 10**6), (5, 1234567)]:
                with self.subTest(kind=kind, ranks=ranks):
                    workload = {"kind": "collective", "collective": kind, "ranks": ranks, "size": f"{size} B",
                                "iterations": 2}
                    summary, results = self.simulate({"topology": hosts(6), "network": NETWORK, "workload": workload})
                    self.assertEqual(len(summary["collectives"]), 2)
                    rows = table(results, "collectives")
                    for i, one in enumerate(summary["collectives"]):
                        self.assertEqual([one[key] for key in ("kind", "algorithm", "ranks", "bytes")],
                                         [kind, "ring", ranks, size])
                        self.assertEqual(one["time_ps"], rows["end"][i] - rows["start"][i])
                        self.assertGreater(one["time_ps"], 0)
                        # 1 B/ps = 1000 GB/s
                        algbw = 1000 * size / one["time_ps"]
                        self.assertAlmostEqual(one["algbw_GBps"], algbw, delta=1e-9 * algbw)
                        self.assertAlmostEqual(one["busbw_GBps"], factor(ranks) * algbw, delta=1e-9 * algbw)
                        self.assertAlmostEqual(rows["busbw"][i], one["busbw_GBps"], delta=1e-9 * algbw)
                        # No faster than a port: each rank receives busbw's share of the bytes over it.
                        self.assertLess(one["busbw_GBps"], 50)

    def test_table(self):
        """For people: the same numbers, rounded. It is the default."""
        path = self.write({"topology": STAR, "network": NETWORK, "workload": {
            "kind": "collective", "collective": "all_reduce", "size": "1 MiB"}})
        summary, _ = self.simulate(path)
        default = self.run_weft("run", path, "-o", "out.h5").out
        for text in [default, self.run_weft("run", path, "-o", "out.h5", "--summary", "table").out]:
            self.assertRegex(text, rf"fingerprint +{summary['fingerprint']}\n")
            self.assertRegex(text, r"MPI ranks +1 ")
            self.assertRegex(text, r"results +out.h5\n")
            busbw = re.search(r"all_reduce +ring +4 +1 +1 MiB .* ([0-9.]+) GB/s", text)
            self.assertAlmostEqual(float(busbw.group(1)), summary["collectives"][0]["busbw_GBps"], delta=0.006)


class Options(ProgramTest):
    def test_set(self):
        path = self.write(traffic(pattern="permutation", size="1 kB"))
        summary, results = self.simulate(path, "--set", "workload.size=2 kB", "--set", "topology.k=2",
                                         "--set", "workload.size=3 kB", "--set", "output.operations=true")
        self.assertEqual((summary["messages"], summary["bytes_delivered"]), (2, 2 * 3000))  # the last one counts
        self.assertEqual(len(table(results, "operations")["rank"]), 2)
        pairs = "workload={kind: traffic, pattern: pairs, pairs: [[0, 1]], size: 7 B}"
        summary, _ = self.simulate(path, "--set", pairs, "--set", "workload.pairs.0=[1, 15]")
        self.assertEqual((summary["messages"], summary["bytes_delivered"]), (1, 7))

    def test_seed(self):
        """Seeds choose ECMP's paths: the same messages, other links. The same seed gives the same results."""
        path = self.write({**traffic(pattern="permutation", shift=4, size="100 kB"), "simulation": {"seed": 5}})
        variants = {"file": [], "five": ["--seed", "5"], "set": ["--set", "simulation.seed=5"], "six": ["--seed", "6"],
                    "largest": ["--seed", str(2**63 - 1)]}
        runs = {name: self.simulate(path, *words, output=f"{name}.h5") for name, words in variants.items()}
        for name in ["five", "set"]:
            self.assertEqual(runs[name][0]["fingerprint"], runs["file"][0]["fingerprint"])
            self.assert_same_results(runs[name][1], runs["file"][1], ["/manifest/effective_experiment"])
        self.assertEqual([runs[name][0]["seed"] for name in ["file", "five", "six", "largest"]], [5, 5, 6, 2**63 - 1])
        five, six = table(runs["five"][1], "links"), table(runs["six"][1], "links")
        self.assertEqual(len({runs[name][0]["fingerprint"] for name in ["five", "six", "largest"]}), 3)
        self.assertNotEqual(list(five["payload_bytes"]), list(six["payload_bytes"]))
        self.assertEqual(five["payload_bytes"].sum(), six["payload_bytes"].sum())
        at_hosts = five["link_class"] == "host"
        self.assertEqual(list(five["payload_bytes"][at_hosts]), list(six["payload_bytes"][at_hosts]))

    def test_output(self):
        """-o, else output.file, else the experiment's name; relative to the current folder."""
        (self.folder / "elsewhere").mkdir()
        parts = traffic(STAR, pattern="pairs", pairs=[[0, 1]], size="1 B")
        unnamed = self.write(parts, "elsewhere/unnamed.yaml")
        named = self.write({**parts, "output": {"file": "named.h5"}}, "elsewhere/other.yaml")
        for path, words, expected in [
            (unnamed, [], "unnamed.h5"),
            (named, [], "named.h5"),
            (named, ["-o", "a.h5"], "a.h5"),
            (named, ["--output=b.hdf5"], "b.hdf5"),
            (named, ["-o", self.folder / "c.h5"], "c.h5"),
            (named, ["--set", "output.file=elsewhere/d.h5"], "elsewhere/d.h5"),
        ]:
            with self.subTest(expected):
                self.run_weft("run", path, "--quiet", *words)
                self.assertEqual(attributes(self.folder / expected)["complete"], 1)

    def test_engine(self):
        path = self.write(traffic(pattern="all_to_all", size="9 kB"))
        default, weft_engine, reference = two_at_a_time(
            [lambda words=words, i=i: self.simulate(path, *words, output=f"{i}.h5")
             for i, words in enumerate([[], ["--engine", "weft"], ["--engine", "ns3-default"]])])
        engines = [run[0]["engine"] for run in (default, weft_engine, reference)]
        self.assertEqual(engines, ["weft", "weft", "ns3-default"])
        self.assertEqual(attributes(reference[1], "manifest/run")["engine"], "ns3-default")
        self.assert_same_results(default[1], weft_engine[1])
        self.assert_same_results(default[1], reference[1])
        # They are different programs: epochs are weft's only.
        self.assertEqual(reference[0]["parallel"]["epochs"], 0)
        self.assertGreater(default[0]["parallel"]["epochs"], 0)


class Terminal(ProgramTest):
    """Standard error as a terminal: there the progress line is rewritten in place, from the first second on."""

    LONG = traffic(pattern="permutation", size="1 TiB")

    def begin(self, *words):
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = start(["run", self.write(self.LONG), "-o", "out.h5", *words], folder=self.folder,
                        extra={"TERM": "xterm"}, stderr=theirs)
        os.close(theirs)
        self.addCleanup(stop, process)
        return process, ours

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, EXIT_INTERRUPTED)
        return out

    def test_progress_and_quiet(self):
        began = time.monotonic()
        loud, screen = self.begin()
        readable, _, _ = select.select([screen], [], [], 60)
        self.assertTrue(readable, "no progress in a minute")
        took = time.monotonic() - began
        self.assertRegex(os.read(screen, 1000).decode(), r"^\r\[#*\.+\] 0 %, \d s elapsed, .*ms simulated")
        self.assertIn("fingerprint", self.end(loud))

        quiet, screen = self.begin("--quiet")
        wait_until(lambda: processes_in(self.folder), "the program", quiet)
        readable, _, _ = select.select([screen], [], [], 2 * took)
        self.assertFalse(readable, "--quiet, but there is something on the terminal")
        self.assertEqual(self.end(quiet), "")


class Quiet(ProgramTest):
    def test_nothing_is_printed(self):
        path = self.write(traffic(pattern="permutation", size="1 kB"))
        for ranks in [None, 2]:
            done = self.run_weft("run", path, "--quiet", ranks=ranks)
            self.assertEqual((done.out, done.err), ("", ""))
            done = self.run_weft("run", path, "--quiet", "--summary", "json", ranks=ranks)
            self.assertEqual(done.err, "")
            self.assertTrue(done.summary()["complete"])

    def test_messages_are_printed(self):
        path = self.write(traffic(pattern="permutation", size="1"))
        done = weft("run", path, "--quiet", folder=self.folder)
        self.assertEqual((done.code, done.out, len(done.messages())), (EXIT_INPUT, "", 1))


if __name__ == "__main__":
    unittest.main()
