#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Every way in which input or surroundings can be wrong: exit code, one message that names the place, nothing left behind."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import (EXIT_ENVIRONMENT, EXIT_INPUT, SOURCE, WEFT, ProgramTest, attributes,
                          environment, start, stop, weft)

GOOD = """\
topology:
  kind: star
  hosts: 4
  link_rate: 400 Gb/s
  link_delay: 500 ns
network:
  mtu: 4096 B
  header: 62 B
  wire_overhead: 20 B
  ack: 66 B
  switch_latency: 0 ns
  window: 256 KiB
workload:
  kind: traffic
  pattern: pairs
  pairs: [[0, 1]]
  size: 10 kB
simulation:
  seed: 1
output:
  file: out.h5
"""

TRAFFIC = """\
  kind: traffic
  pattern: pairs
  pairs: [[0, 1]]
  size: 10 kB
"""

COLLECTIVE = """\
  kind: collective
  collective: all_reduce
  algorithm: ring
  size: 1 MiB
"""

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

GRAPH = """\
  kind: graph
  hosts: 2
  switches: 1
  link_rate: 400 Gb/s
  link_delay: 500 ns
  links:
    - {from: host0, to: switch0}
    - {from: host1, to: switch0}
"""
STAR = GOOD[GOOD.index("  kind: star") : GOOD.index("network:")]

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

# Texts that a user must never see.
CRASH = re.compile(r"Traceback|terminate called|what\(\):|Abort|abort|core dumped|Segmentation|MPI_|HDF5-DIAG|signal")


def failures_with_rates(count):
    """Entries of `failures`, each with a rate of its own for a microsecond."""
    return ", ".join(f"{{link: all, at: {i} us, until: {i + 1} us, rate: {1000 + i} Mb/s}}" for i in range(count))


class ErrorTest(ProgramTest):
    def assert_fails(self, done, code, pattern, where=None):
        """One message, at `where` ("file:line" or a file), and nothing else; no new files in the folder."""
        self.assertEqual(done.code, code, done)
        self.assertEqual(done.out, "", done)
        messages = done.messages()
        self.assertEqual(len(messages), 1, done)
        self.assertEqual(done.err.splitlines()[0], messages[0], done)
        self.assertIsNone(CRASH.search(done.err), done)
        self.assertNotIn("weft: weft:", done.err)
        if where is not None:
            self.assertTrue(messages[0].startswith(f"weft: {where}: "), f"expected a complaint about {where}\n{done}")
        self.assertRegex(messages[0], pattern, done)

    def run_wrong(self, words, code, pattern, where=None, ranks=None):
        before = sorted(self.folder.rglob("*"))
        done = weft(*words, folder=self.folder, ranks=ranks, seconds=60)
        self.assert_fails(done, code, pattern, where)
        self.assertEqual(sorted(self.folder.rglob("*")), before, f"files were left behind\n{done}")
        return done

    def wrong(self, change, pattern, start=GOOD, name=None, at=None):
        """`change` = (old, new) in a good experiment. The complaint must name the first line of `new`, or that of `at`."""
        old, new = change
        with self.subTest(name or new.strip()):
            self.assertEqual(start.count(old), 1, f"'{old}' in\n{start}")
            text = start.replace(old, new)
            place = text.index(at) if at else start.index(old) + len(new) - len(new.lstrip())
            line = text.count("\n", 0, place) + 1
            path = self.write(text, "wrong.yaml")
            self.run_wrong(["run", path], EXIT_INPUT, pattern, f"{path}:{line}")


def with_part(old, new):
    assert old in GOOD
    return GOOD.replace(old, new)


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


class Machine(ErrorTest):
    def test_links(self):
        self.wrong(("500 ns", "0 ns"), "zero delay")
        self.wrong(("400 Gb/s", "0 Gb/s"), "above 0")
        self.wrong(("400 Gb/s", "-400 Gb/s"), "-400 Gb/s")

    def test_network(self):
        self.wrong(("mtu: 4096 B", "mtu: 0 B"), "mtu.*found 0 B.*1 B to 65535 B")
        self.wrong(("mtu: 4096 B", "mtu: 64 KiB"), "mtu.*64 KiB.*65535 B")
        self.wrong(("header: 62 B", "header: 0 B"), "header")
        self.wrong(("ack: 66 B", "ack: non"), "ack")
        self.wrong(("ack: 66 B", "ack: 0 B"), "ack.*0 B")
        self.wrong(("window: 256 KiB", "window: 0 B"), "window.*0 B")
        self.wrong(("switch_latency: 0 ns", "switch_latency: 0"), "switch_latency.*unit")

    def bad_network(self, keys, pattern, at, start=GOOD):
        """`keys`: lines for `network:`; the error is expected at the line of `at`."""
        lines = "".join(f"  {line}\n" for line in keys)
        self.wrong(("  window: 256 KiB\n", "  window: 256 KiB\n" + lines), pattern, start, name="; ".join(keys), at=at)

    def test_buffers(self):
        pfc = ["flow_control: pfc", "buffer: {size: 10 MB}"]
        for keys, pattern, at in [
            (["buffer: {size: 1 kB}"], "found 1 kB; expected a packet memory of 4158 B to", "buffer"),
            (["buffer: {size: 10 MB, alpha: 0}"], "alpha.*'0'", "buffer"),
            (["buffer: {size: 10 MB, alpha: 1, threshold: 1 MB}"], "beside alpha", "buffer"),
            (["buffer: {size: 10 MB, reserve: 1 MB}"], "4 ports: .*12 MB of reserves do not fit.*10 MB", "buffer"),
            (["buffer: {size: 10 MB, queue: 100 B}"], "found 100 B; expected an output queue of 4158 B", "buffer"),
            (["buffer: {sizes: 10 MB}"], "unknown key 'sizes'.*did you mean 'size'", "buffer"),
            (["flow_control: pfcc"], "'pfcc'.*did you mean 'pfc'", "flow_control"),
            (["flow_control: pfc"], "pfc is found without buffer.size", "flow_control"),
            (["flow_control: pfc", "buffer: {size: 100 kB}"], "of headroom.*do not fit into a packet memory of 100 kB",
             "buffer"),
            (pfc + ["pfc: {headroom: 20 MB}"], "80 MB of headroom.*do not fit.*10 MB", "buffer"),
            (pfc + ["pfc: {headroom: 0 B}"], "found 0 B; expected a headroom of 1 B", "pfc: {"),
            (pfc + ["pfc: {quanta: 70000}"], "from 1 to 65535.*'70000'", "pfc: {"),
            # Two packets of 4178 B are 131 times 512 bits.
            (pfc + ["pfc: {quanta: 130}"], "found 130; expected at least 131.*two packets of 4178 B", "pfc: {"),
            (pfc + ["pfc: {watchdog: 0 us}"], "found 0; expected a time above 0", "pfc: {"),
            (["pfc: {quanta: 200}"], "found without flow_control: pfc", "pfc"),
            (["credit: {buffer: 100 kB}"], "found without flow_control: credit", "credit"),
            (["flow_control: credit", "credit: {buffer: 100 B}"], "an input buffer of 4158 B", "credit: {"),
            (["flow_control: credit", "credit: {buffer: 2 GiB}"], "found 2 GiB; expected an input buffer of 4158 B to 1 GiB",
             "credit: {"),
            (["flow_control: credit", "buffer: {size: 10 MB}"], "credit, whose buffers are those of each link",
             "buffer: {size"),
            (["trimming: true"], "without a limit of the queues", "trimming"),
            (["trimming: yess"], "expected true or false", "trimming"),
            (["switching: cut"], "'cut'.*cut_through", "switching"),
        ]:
            self.bad_network(keys, pattern, at)

    def test_priorities_and_marks(self):
        for keys, pattern, at in [
            (["priorities: {data: 8}"], "from 0 to 7.*'8'", "priorities"),
            (["priorities: {data: 6}"], "data 6, control 6 and other 0; expected three different", "priorities"),
            (["priorities: {control: 2}"], "control 2 below another", "priorities"),
            (["priorities: {storage: 2}"], "unknown key 'storage'", "priorities"),
            (["priorities: {data_weight: 2}"], "found with strict scheduling", "priorities"),
            (["priorities: {scheduling: deficit_round_robin, data_weight: 0}"], "from 1 to 1000.*'0'", "priorities"),
            (["priorities: {scheduling: round_robin}"], "'round_robin'.*deficit_round_robin, strict, weighted_round_robin, fifo", "priorities"),
            (["ecn: {kmin: 100 kB}"], "kmin is there and kmax is not", "ecn"),
            (["ecn: {kmax: 100 kB}"], "found without kmin", "ecn"),
            (["ecn:", "  kmin: 100 kB", "  kmax: 99 kB"], "found 99 kB, below kmin; expected at least 100 kB", "kmax"),
            (["ecn: {kmin: 1 kB, kmax: 2 kB, pmax: 1.5}"], "pmax.*1.5", "ecn"),
            (["ecn: {mark: leaving}"], "'leaving'.*departure, arrival", "ecn"),
        ]:
            self.bad_network(keys, pattern, at)

    def test_connections(self):
        for keys, pattern, at in [
            (["recovery: go_back"], "'go_back'.*go_back_n, selective_repeat, go_back_0", "recovery"),
            (["load_balancing: spray", "recovery: go_back_n"], "expected selective_repeat", "recovery"),
            (["selective_repeat: {timeout: 1 ms}"], "found with recovery: go_back_n", "selective_repeat"),
            (["go_back_n: {timeout: 0 us}"], "found 0; expected a time above 0", "go_back_n"),
            (["go_back_n: {timeout: 10 us, timeout_low: 20 us}"], "found 20 us; expected above 0 and at most timeout", "go_back_n"),
            (["go_back_n: {reordering: 3}"], "unknown key 'reordering'", "go_back_n"),
            (["recovery: selective_repeat", "selective_repeat: {reordering: 0}"], "from 1 to 32767.*'0'",
             "selective_repeat: {"),
            (["ack_interval: 0"], "from 1 to 1024.*'0'", "ack_interval"),
            (["load_balancing: sprayed"], "'sprayed'.*did you mean 'spray'", "load_balancing"),
            (["flowlet: {gap: 5 us}"], "found without load_balancing: flowlet", "flowlet"),
            (["load_balancing: flowlet", "flowlet: {gap: 0 us}"], "found 0; expected a time above 0", "flowlet: {"),
            (["congestion_control: dcqn"], "'dcqn'.*did you mean 'dcqcn'", "congestion_control"),
            (["dctcp: {gain: 0.5}"], "found with congestion_control: none", "dctcp"),
            (["loss: [{link: [host0, host1], probability: 0.1}]"], "no link between host0 and host1", "loss"),
            (["loss: [{link: all, probability: 2}]"], "probability.*'2'", "loss"),
            (["failures: [{link: all, at: 3 us, until: 2 us}]"], "not after its beginning 3 us", "failures"),
            (["reconvergence: 3 us"], "found without failures", "reconvergence"),
            (["queues: committed", "congestion_control: dcqcn", "ecn: {}"],
             "found committed with ecn, congestion_control, which need queues by class; expected output", "queues"),
            (["queues: committed", "loss: [{link: all, probability: 0.1}]"], "found committed with loss", "queues"),
            ([f"failures: [{failures_with_rates(256)}]", "congestion_control: hpcc"], "at most 256 rates .* on links with 257",
             "congestion_control"),
        ]:
            self.bad_network(keys, pattern, at)
        for key in ["queues: output", "load_balancing: spray", "ack_interval: 2", "loss: [{link: all, probability: 0.1}]"]:
            self.wrong(("ack: 66 B", f"ack: none\n  {key}"), "found none beside keys that need reliable connections")

        torus = with_part("kind: star\n  hosts: 4", "kind: torus\n  dims: [4, 4]")
        for balancing in ("adaptive", "flowlet"):
            self.bad_network([f"load_balancing: {balancing}", "routing: minimal_adaptive"],
                             f"found {balancing}, by which switches choose ports, with routing 'minimal_adaptive'",
                             "load_balancing", torus)

    def test_fat_tree(self):
        tree = with_part("kind: star\n  hosts: 4", "kind: fat_tree\n  k: 4")
        self.wrong(("k: 4", "k: 5"), "even; found 5; use 4 or 6", tree)
        self.wrong(("k: 4", "k: 0"), "from 2 to", tree)
        self.wrong(("k: 4", "k: 1000"), "from 2 to", tree)
        self.wrong(("k: 4", "k: 4\n  hosts: 16"), "unknown key 'hosts'", tree, at="hosts: 16")

    def test_graph(self):
        graph = with_part(STAR, GRAPH)
        self.wrong(("{from: host1, to: switch0}", "{from: host1, to: switch1}"), "unknown node 'switch1'", graph)
        self.wrong(("{from: host1, to: switch0}", "{from: host1}"), "missing key 'to'", graph)
        self.wrong(("{from: host1, to: switch0}", "{from: host1, to: host1}"), "linked to itself", graph)
        self.wrong(("{from: host1, to: switch0}", "{from: host0, to: switch0}"), "host0 has a link already", graph)
        self.wrong(("\n    - {from: host1, to: switch0}", ""), "host1 has no link", graph, at="hosts: 2", name="unlinked")
        self.wrong(("{from: host1, to: switch0}", "{from: host1, to: switch0, delay: 0 ns}"), "zero delay", graph)
        self.wrong(("{from: host1, to: switch0}", "{from: host1, to: switch0, rate: 0 b/s}"), "above 0", graph)
        self.wrong(("switches: 1", "switches: 2"), "not connected", graph, at="topology:")
        self.wrong(("links:\n", "links:\n    - host0\n"), "expected a map", graph, at="- host0")

    def test_line(self):
        line = with_part("kind: star\n  hosts: 4", "kind: line\n  links: 2")
        self.wrong(("500 ns", "[500 ns]"), "1 values for 2 links", line)
        self.wrong(("500 ns", "[500 ns, 0 ns]"), "zero delay", line)
        self.wrong(("400 Gb/s", "[400 Gb/s, 0 Gb/s]"), "above 0", line)


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
