#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Every way in which words, experiments as texts, or surroundings can be wrong: exit code, one message that names the place,
nothing left behind."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from error_testing import COLLECTIVE, GOOD, TRAFFIC, ErrorTest, with_part
from weft_testing import EXIT_ENVIRONMENT, EXIT_INPUT, SOURCE, WEFT, attributes, environment, start, stop


class CommandLine(ErrorTest):
    def test_words(self):
        good = str(self.write(GOOD))
        cases = [
            ([], "no command"),
            (["rnu", good], "'rnu'.*did you mean 'run'.*known here: run, describe, workload, export, topology, list, collective, perf, goodput, bench"),
            ([good], "is a file and no command; say `weft run .*experiment.yaml`"),
            (["config.json"], "is a file and no command; say `weft workload config.json`"),
            (["run"], "needs an experiment"),
            (["describe"], "needs an experiment"),
            (["run", good, good], "unexpected word"),
            (["run", good, "--ouput", "x.h5"], "ouput"),
            (["run", good, "-x"], "-x"),
            (["run", good, "--quite"], "'--quite'.*did you mean '--quiet'"),
            (["run", good, "-n", "4"], "mpirun -n P weft run"),
            (["run", good, "--set", "workload.size=8", "MiB"], "'MiB'.*in quotes: --set workload.size='8 MiB'"),
            (["topology", "leaf_spine"], "'leaf_spine' is a kind of machine and no file.*kind: leaf_spine"),
            (["run", good, "--quie"], "quie"),  # no guessing of abbreviations
            (["run", good, "-o"], "output|-o"),
            (["run", good, "--quiet=3"], "quiet"),
            (["run", good, "--seed", "1", "--seed", "2"], "seed"),
            (["run", good, "--engine", "ns3"], "'ns3'.*weft, ns3-default"),
            (["run", good, "--engine", "wefft"], "did you mean 'weft'"),
            (["run", good, "--summary", "xml"], "'xml'.*table, json"),
            (["run", good, "--seed", "x"], "--seed.*'x'.*whole number"),
            (["run", good, "--seed", "-1"], "seed"),
            (["run", good, "--seed", "1.5"], "--seed.*'1.5'"),
            (["run", good, "--seed", "99999999999999999999"], "seed"),
            (["run", good, "--set", "topology.k"], "--set found 'topology.k'; expected KEY.PATH=VALUE"),
            (["run", good, "--set", "=4"], "--set found '=4'"),
            (["describe", good, "--quiet"], "quiet"),
            (["list", "collective"], "'collective'.*did you mean 'collectives'"),
            (["list", "routing", "topologies"], "unexpected word"),
            (["bench", "now"], "unexpected word"),
        ]
        for words, pattern in cases:
            with self.subTest(" ".join(words)):
                self.run_wrong(words, EXIT_INPUT, pattern)

    def test_more_processes_than_slots(self):
        """mpirun refuses before weft starts: docs/tutorial/cluster.md gives the remedy, and the remedy works."""
        page = " ".join((SOURCE / "docs/tutorial/cluster.md").read_text().split())
        for words in ["There are not enough slots available", "`mpirun --oversubscribe -n 16 weft run"]:
            self.assertIn(words, page)
        free = {name: value for name, value in environment().items()
                if "oversubscribe" not in name and name != "OMPI_MCA_orte_execute_quiet"}
        for options, starts in [([], False), (["--oversubscribe"], True)]:
            words = ["mpirun", "--host", "localhost:1", *options, "-n", "2", str(WEFT), "--version"]
            done = subprocess.run(words, env=free, cwd=self.folder, text=True, capture_output=True, timeout=120)
            self.assertEqual(done.returncode == 0, starts, done)
            self.assertEqual("There are not enough slots available" in done.stderr, not starts, done)

    def test_set(self):
        good = self.write(GOOD)
        cases = [
            ("topology.hosts.more=3", "`topology.hosts` is the single value '4'"),
            ("topology..k=3", "not a path"),
            (".k=3", "not a path"),
            ("workload.pairs.7=[1, 2]", "'7' is not a place in the list `workload.pairs`"),
            ("workload.pairs.x=[1, 2]", "'x' is not a place"),
            ("topology.hosts=[", "not valid YAML"),
            ("topology.hosts=many", "`topology.hosts`: expected a whole number.*'many'"),
            ("topology.hots=4", "unknown key 'hots' in 'topology'.*did you mean 'hosts'"),
            ("network.mtu=4096", "`network.mtu`.*unit"),
            ("simulatoin.seed=4", "unknown key 'simulatoin'.*did you mean 'simulation'"),
        ]
        for setting, pattern in cases:
            with self.subTest(setting):
                self.run_wrong(["run", good, "--set", setting], EXIT_INPUT, pattern, f"--set {setting}")

    def test_experiment_file(self):
        good = self.write(GOOD)
        missing = good.with_name("experimant.yaml")
        self.run_wrong(["run", missing], EXIT_INPUT, "No such file.*did you mean 'experiment.yaml'", missing)
        self.run_wrong(["describe", missing], EXIT_INPUT, "No such file", missing)
        self.run_wrong(["run", self.folder], EXIT_INPUT, "folder", self.folder)
        for name in ("quickstart", "quickstart.yaml"):
            ready = self.folder / name
            self.run_wrong(["describe", ready], EXIT_INPUT, "No such file.*ready-made one is '.*workloads/quickstart.yaml'", ready)
        bare = good.with_suffix("")
        self.run_wrong(["run", bare], EXIT_INPUT, "did you mean '.*experiment.yaml'", bare)
        results = self.folder / "results.h5"
        self.run_weft("run", good, "-o", results, "--quiet")
        self.run_wrong(["run", results], EXIT_INPUT, "HDF5 file, such as `weft run` writes.*expected YAML", results)
        empty = self.write("", "empty.yaml")
        self.run_wrong(["run", empty], EXIT_INPUT, "empty", empty)
        comment = self.write("# nothing\n", "comment.yaml")
        self.run_wrong(["run", comment], EXIT_INPUT, "empty", comment)
        for text in ["just words\n", "- a\n- list\n"]:
            with self.subTest(text):
                path = self.write(text, "no_map.yaml")
                self.run_wrong(["run", path], EXIT_INPUT, "expected a map", f"{path}:1")


class Yaml(ErrorTest):
    def test_syntax(self):
        self.wrong(("  hosts: 4", "  hosts: [4"), "not valid YAML: end of sequence", at="link_rate")
        self.wrong(("  hosts: 4", "\thosts: 4"), "not valid YAML.*tab")
        self.wrong(("  hosts: 4", "  hosts: 4\n  hosts: 5"), "'hosts' is here twice in 'topology'.*line 3", at="hosts: 5")
        self.wrong(("simulation:", "network: {}\nsimulation:"), "'network' is here twice.*line 6", at="network: {}")
        self.wrong(("  hosts: 4", "  hosts: *four"), "not valid YAML|alias")
        self.wrong(("  seed: 1", "  seed: 1\n---\na: 1"), "second YAML document", at="---")

    def test_indentation(self):
        self.wrong(("  hosts: 4", "   hosts: 4"), "not valid YAML.*indented by 3 spaces, the one before it by 2",
                   at="hosts: 4")
        self.wrong(("  hosts: 4", " hosts: 4"), "not valid YAML.*indented by 1 space, the one before it by 2",
                   at="hosts: 4")
        # The first key says how far the others are indented: the second one is found.
        self.wrong(("  mtu:", " mtu:"), "not valid YAML.*indented by 2 spaces, the one before it by 1", at="header")
        self.wrong(("network:", "  network:"),
                   "'network' in 'topology' .it is a key of the whole file.*indented too far", at="network:")
        self.wrong(("  size: 10 kB", "size: 10 kB"), "unknown key 'size' .is this line not indented far enough",
                   at="size:")
        # It is taken for a word that goes on in the next line, or, at the end of the file, for a key.
        self.wrong(("  size: 10 kB", "  size:10 kB"), "not valid YAML.*expected a space after the colon in the line before",
                   at="simulation:")
        self.wrong(("  size: 10 kB", "  size:10 kB"), "missing key 'size', found 'size:10 kB'; expected a space",
                   GOOD[: GOOD.index("simulation:")], at="size:")

    def test_unknown_keys(self):
        self.wrong(("topology:", "topologie:"), "unknown key 'topologie'.*did you mean 'topology'.*known here")
        self.wrong(("network:", "netwrok:"), "unknown key 'netwrok'.*did you mean 'network'")
        self.wrong(("link_rate", "link_rat"), "link_rat'.*did you mean 'link_rate'")
        self.wrong(("  hosts: 4", "  hosts: 4\n  link_rates: 1"), "unknown key 'link_rates' in 'topology'.*'link_rate'",
                   at="link_rates")
        self.wrong(("window", "windw"), "unknown key 'windw' in 'network'.*did you mean 'window'")
        self.wrong(("  size:", "  queue_pair: 4\n  size:"), "unknown key 'queue_pair' in 'workload'.*'queue_pairs'")
        self.wrong(("  size:", "  sizes:"), "'sizes'.*did you mean 'size'")
        self.wrong(("seed", "sed"), "unknown key 'sed' in 'simulation'.*did you mean 'seed'")
        self.wrong(("  file:", "  fil:"), "unknown key 'fil' in 'output'.*did you mean 'file'")
        self.wrong(("  seed: 1", "  seed: 1\n  zzzzzzzz: 1"), "unknown key 'zzzzzzzz'.*known here: partition, seed",
                   at="zzzzzzzz")

    def test_missing_keys(self):
        for part in ["topology", "workload"]:
            text = re.sub(rf"^{part}:\n(  .*\n)+", "", GOOD, flags=re.MULTILINE)
            path = self.write(text, "wrong.yaml")
            self.run_wrong(["run", path], EXIT_INPUT, f"missing key '{part}'", f"{path}:1")
        self.wrong(("  kind: star\n", ""), "missing key 'kind'", at="topology:")
        self.wrong(("  hosts: 4\n", ""), "missing key 'hosts'", at="topology:")
        self.wrong(("  link_rate: 400 Gb/s\n", ""), "missing key 'link_rate'", at="topology:")
        self.wrong(("  kind: traffic\n", ""), "missing key 'kind'", at="workload:")
        self.wrong(("  size: 10 kB\n", ""), "missing key 'size'", at="workload:")

    def test_units(self):
        self.wrong(("400 Gb/s", "400"), "link_rate.*'400'.*unit.*Gb/s")
        self.wrong(("500 ns", "500"), "link_delay.*'500'.*unit.*ns")
        self.wrong(("4096 B", "4096"), "mtu.*'4096'.*unit")
        self.wrong(("10 kB", "10"), "size.*'10'.*unit.*B")
        self.wrong(("400 Gb/s", "400 Gbs"), "400 Gbs.*Gb/s")
        self.wrong(("400 Gb/s", "400 ns"), "400 ns")
        self.wrong(("500 ns", "500 nanoseconds"), "500 nanoseconds")
        self.wrong(("4096 B", "4096 b"), "4096 b")
        self.wrong(("10 kB", "0.5 B"), "0.5 B")
        self.wrong(("500 ns", "-500 ns"), "-500 ns")
        self.wrong(("10 kB", "99999999 TiB"), "99999999 TiB")
        self.wrong(("10 kB", ""), "expected a size.*found nothing", at="size:", name="no size")

    def test_types(self):
        self.wrong(("hosts: 4", "hosts: four"), "`topology.hosts`: expected a whole number.*'four'")
        self.wrong(("hosts: 4", "hosts: 4.5"), "expected a whole number.*'4.5'")
        self.wrong(("hosts: 4", "hosts: 0"), "expected a whole number from 1 to.*'0'")
        self.wrong(("hosts: 4", "hosts: -1"), "expected a whole number.*'-1'")
        self.wrong(("hosts: 4", "hosts: [4]"), "expected a whole number.*a list")
        self.wrong(("hosts: 4", "hosts: {a: 4}"), "expected a whole number.*a map")
        self.wrong(("400 Gb/s", "[400 Gb/s]"), "expected a rate.*a list")
        self.wrong(("seed: 1", "seed: one"), "`simulation.seed`.*'one'")
        self.wrong(("seed: 1", "seed: -1"), "`simulation.seed`.*'-1'")
        self.wrong(("file: out.h5", "operations: maybe"), "expected true or false.*'maybe'")
        self.wrong(("file: out.h5", "file: [out.h5]"), "expected a text.*a list")
        self.wrong(("file: out.h5", "sampling: 10"), "`output.sampling`.*unit")
        self.wrong(("file: out.h5", "sampling: 0 ns"), "above 0")
        self.wrong(("file: out.h5", "queue_depths: true"), "`output.queue_depths`.*network.queues: output")
        self.wrong(("\n  file: out.h5", " out.h5"), "expected a map", at="output:", name="output")
        self.wrong(("\n  seed: 1", " 3"), "expected a map", at="simulation:", name="simulation")

    def test_kinds(self):
        self.wrong(("kind: star", "kind: stare"), "'stare'.*did you mean 'star'.*fat_tree.*graph.*line")
        self.wrong(("kind: traffic", "kind: trafic"), "'trafic'.*did you mean 'traffic'.*collective, goal, jobs, program")
        self.wrong(("pattern: pairs", "pattern: pair"), "'pair'.*did you mean 'pairs'.*permutation, incast")
        self.wrong(("  window:", "  routing: shortest\n  window:"), "`network.routing`.*'shortest'.*shortest_path")
        self.wrong(("  window:", "  routing: fat_tree\n  window:"), "'fat_tree' does not suit this machine")
        # Opposite routers of a ring of 16 are 8 links apart: a lane for each, of which there are 8 - 2.
        ring = GOOD.replace("kind: star", "kind: torus").replace("hosts: 4", "dims: [16]")
        self.wrong(("  window:", "  routing: shortest_path_lanes\n  window:"),
                   "'shortest_path_lanes' needs 8 virtual lanes on this machine; there are 6", ring)
        server = "{gpus: 1, inside: none, nics: 1, pcie_rate: 1 Gb/s, pcie_delay: 1 us, network_routing: shortest}"
        self.wrong(("link_delay: 500 ns", f"link_delay: 500 ns\n  server: {server}"),
                   "unknown network_routing 'shortest'.*shortest_path", at="topology:")
        self.wrong(("  seed: 1", "  partition: meits"), "'meits'.*did you mean 'metis'.*auto, groups, pods, metis, random")
        collective = with_part(TRAFFIC, COLLECTIVE)
        self.wrong(("algorithm: ring", "algorithm: rings"), "unknown algorithm 'rings'.*did you mean 'ring'", collective)
        self.wrong(("algorithm: ring", "algorithm: tree"),
                   "unknown algorithm 'tree' .did you mean 'double_binary_tree' or 'nvls_tree'", collective)
        self.wrong(("collective: all_reduce", "collective: allreduce"), "'allreduce'.*did you mean 'all_reduce'", collective)
        self.wrong(("collective: all_reduce", "collective: all_to_all"), "'ring' cannot do 'all_to_all'", collective)


class Output(ErrorTest):
    def test_unwritable(self):
        good = self.write(GOOD)
        missing = self.folder / "no" / "such.h5"
        self.run_wrong(["run", good, "-o", missing], EXIT_ENVIRONMENT, f"cannot write '{missing}'.*No such file.*create it")
        folder = self.folder / "folder.h5"
        folder.mkdir()
        self.run_wrong(["run", good, "-o", folder], EXIT_ENVIRONMENT, f"cannot write '{folder}'.*not a regular file")
        self.run_wrong(["run", good, "-o", f"{folder}/"], EXIT_ENVIRONMENT, "no file name")
        self.run_wrong(["run", good, "-o", good / "x.h5"], EXIT_ENVIRONMENT, "Not a directory|not a directory")
        self.run_wrong(["run", good, "-o", "/dev/full"], EXIT_ENVIRONMENT, "'/dev/full'.*not a regular file")
        self.run_wrong(["run", good, "--set", "output.file=no/such.h5"], EXIT_ENVIRONMENT, "no/such.h5")

    def test_a_trace_is_kept(self):
        """Any file that is no HDF5, also one that the experiment names."""
        good = self.write(GOOD)
        trace = self.folder / "trace.goal"
        trace.write_text("num_ranks 2\n")
        self.run_wrong(["run", good, "-o", trace], EXIT_ENVIRONMENT, f"cannot write '{trace}'.*no HDF5 file")
        self.assertEqual(trace.read_text(), "num_ranks 2\n")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_read_only(self):
        good = self.write(GOOD)
        (self.folder / "old.h5").touch(mode=0o444)
        self.run_wrong(["run", good, "-o", "old.h5"], EXIT_ENVIRONMENT, "cannot write 'old.h5'.*Permission denied")
        locked = self.folder / "locked"
        locked.mkdir(mode=0o555)
        self.run_wrong(["run", good, "-o", "locked/out.h5"], EXIT_ENVIRONMENT, "locked.*Permission denied")

    def test_read_only_file_system(self):
        """/proc takes no files from any user."""
        good = self.write(GOOD)
        self.run_wrong(["run", good, "-o", "/proc/weft.h5"], EXIT_ENVIRONMENT, "cannot write '/proc/weft.h5'")

    def test_old_results_survive_a_failure(self):
        old = self.write("old", "out.h5")
        path = self.write(GOOD.replace("[[0, 1]]", "[[0, 0]]"))
        self.run_wrong(["run", path], EXIT_INPUT, "sends to itself")
        self.assertEqual(old.read_text(), "old")

    def test_standard_output(self):
        """A full disk under a redirected standard output: no success, though the results are there."""
        good = self.write(GOOD)
        for words in [["--help"], ["--version"], ["list"], ["describe", good], ["run", good], ["run", good, "--summary=json"]]:
            with self.subTest(words[0]), open("/dev/full", "w") as full:
                process = start(words, folder=self.folder, stdout=full)
                self.addCleanup(stop, process)
                _, err = process.communicate(timeout=60)
                self.assertEqual((process.returncode, err), (EXIT_ENVIRONMENT, "weft: cannot write to standard output\n"))
        self.assertEqual(attributes(self.folder / "out.h5")["complete"], 1)

    def test_pcap(self):
        for port, pattern in [
            ("host4:0", "there is no host4; this machine has host0..host3 and switch0"),
            ("switch1:0", "there is no switch1; this machine has host0..host3 and switch0"),
            ("host0:1", "host0 has no port 1"),
            ("switch0:4", "switch0 has no port 4; its ports are 0 to 3"),
            ("host0", "a port such as host3:0"),
            ("hots0:0", "there is no hots0; this machine has host0..host3 and switch0"),
            ("host0:x", "a port such as host3:0"),
            ("host:0", "there is no host; this machine has host0..host3 and switch0"),
        ]:
            self.wrong(("file: out.h5", f"pcap: ['{port}']"), pattern)
        self.wrong(("file: out.h5", "pcap: host0:0"), "expected a list")
        path = self.write(GOOD.replace("file: out.h5", "file: no/out.h5\n  pcap: [host0:0]"))
        self.run_wrong(["run", path], EXIT_ENVIRONMENT, "no/out.h5")


if __name__ == "__main__":
    unittest.main()
