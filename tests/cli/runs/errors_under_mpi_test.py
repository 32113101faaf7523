#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""An error is reported once, and all ranks end: errors that every rank finds, and those of one rank alone."""

import functools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from error_testing import GOOD, TRAFFIC, ErrorTest, with_part
from weft_testing import EXIT_ENVIRONMENT, EXIT_INPUT, attributes, two_at_a_time, weft


class UnderMpi(ErrorTest):
    """The same on four ranks: one message, no hang, mpirun ends with the program's exit code."""

    def test_the_same_part_is_named(self):
        """If many switches have an error, the first one is named, whichever process has it."""
        machine = GOOD.replace("kind: star", "kind: fat_tree").replace("hosts: 4", "k: 4")
        path = self.write(machine)
        words = ["run", path, "--set", "network.buffer={size: 20 kB, alpha: 0.1}", "--set", "simulation.partition=random"]
        texts = {weft(*words, ranks=ranks, folder=self.folder).err.strip() for ranks in (1, 2, 4)}
        self.assertEqual(len(texts), 1, texts)
        self.assertIn("no frame of", texts.pop())

    def test_the_same_path_is_named(self):
        """Of 15 paths of 2, 4 and 6 links to host 0, on which all begin at once, that of host 1 is refused first: 2 links
        of 500 ns, a frame of 4178 B and an ACK of 86 B at 400 Gb/s on each, there and back: 2.17 us."""
        path = self.write("topology: {kind: fat_tree, k: 4, link_rate: 400 Gb/s, link_delay: 500 ns}\n"
                          "network: {queues: output, mtu: 4096 B, header: 62 B, wire_overhead: 20 B, ack: 66 B,\n"
                          "  go_back_n: {timeout: 1 us}}\n"
                          "workload: {kind: traffic, pattern: incast, destination: 0, sources: 15, size: 1 MiB}\n",
                          "short.yaml")
        trip = 2 * (500 + 500 + (4178 + 86) * 8 / 400) / 1000
        for ranks, engine in [(1, "ns3-default"), (1, "weft"), (2, "weft"), (3, "weft"), (4, "weft"), (8, "weft")]:
            with self.subTest(ranks=ranks, engine=engine):
                done = weft("run", path, "--engine", engine, folder=self.folder, ranks=ranks, seconds=60)
                self.assert_fails(done, EXIT_INPUT, f"a timeout of 1 us, but an idle path takes {trip:g}\\d* us", f"{path}:3")

    def test_four_ranks(self):
        """A case or more of each way in which a failure becomes known: on all ranks, on rank 0, on another only."""
        good = self.write(GOOD)
        wrong = self.write(GOOD.replace("link_rate", "link_rat"), "wrong.yaml")
        broken = self.write(GOOD.replace("hosts: 4", "hosts: [4"), "broken.yaml")
        star = self.write(GOOD.replace("500 ns", "0 ns"), "star.yaml")
        far = self.write(GOOD.replace("[[0, 1]]", "[[0, 4]]"), "far.yaml")
        program = self.write(with_part(TRAFFIC, "  kind: program\n  file: trace.yaml\n"), "program.yaml")
        trace = self.write("ranks: 4\noperations:\n  - {rank: 0, send: 1 B, to: 1}\n", "trace.yaml")
        attribute = "network.ns3_attributes={/Names/host9/DeviceList/0/DataRate: 1 Gb/s}"
        cases = [
            (["rnu", good], EXIT_INPUT, "did you mean 'run'", None),
            (["run", good, "--seed", "x"], EXIT_INPUT, "--seed", None),
            (["run", good, "--set", "topology.hots=4"], EXIT_INPUT, "did you mean 'hosts'", "--set topology.hots=4"),
            (["run", good.with_name("no.yaml")], EXIT_INPUT, "No such file", good.with_name("no.yaml")),
            (["run", broken], EXIT_INPUT, "not valid YAML", f"{broken}:4"),
            (["run", wrong], EXIT_INPUT, "did you mean 'link_rate'", f"{wrong}:4"),
            (["describe", wrong], EXIT_INPUT, "did you mean 'link_rate'", f"{wrong}:4"),
            (["run", star], EXIT_INPUT, "zero delay", f"{star}:5"),
            (["run", far], EXIT_INPUT, "rank 4 is out of range", f"{far}:16"),
            (["run", program], EXIT_INPUT, "has no recv", f"{trace}:3"),
            (["run", good, "--set", attribute], EXIT_INPUT, "nothing has the ns-3 config path", None),
            (["run", good, "-o", self.folder / "no" / "x.h5"], EXIT_ENVIRONMENT, "cannot write", None),
            (["run", good, "--set", "output.pcap=[host9:0]"], EXIT_INPUT, "there is no host9", None),
        ]
        folders = [self.folder / str(i) for i in range(len(cases))]
        for folder in folders:
            folder.mkdir()
        runs = two_at_a_time([functools.partial(weft, *case[0], folder=folder, ranks=4, seconds=60)
                              for case, folder in zip(cases, folders)])
        for (words, code, pattern, where), folder, done in zip(cases, folders, runs):
            with self.subTest(" ".join(map(str, words))):
                self.assert_fails(done, code, pattern, where)
                self.assertEqual(list(folder.iterdir()), [], f"files were left behind\n{done}")

    def test_switches_of_several_ranks(self):
        """Each rank builds its own switches, none of which has enough memory for flow control: one of them is named."""
        path = self.write("topology: {kind: leaf_spine, leaves: 4, hosts_per_leaf: 2, spines: 2, link_rate: 100 Gb/s, "
                          "link_delay: 10 us}\n"
                          "network: {flow_control: pfc, buffer: {size: 400 kB}}\n"
                          "workload: {kind: traffic, pattern: permutation, size: 1 kB}\n", "lossless.yaml")
        for ranks in (1, 2, 3, 4, 8):
            with self.subTest(ranks=ranks):
                folder = self.folder / str(ranks)
                folder.mkdir()
                done = weft("run", path, folder=folder, ranks=ranks, seconds=60)
                self.assert_fails(done, EXIT_INPUT, "of headroom .* do not fit", f"{path}:2")
                self.assertEqual(list(folder.iterdir()), [], f"files were left behind\n{done}")

    def test_output_of_one_rank(self):
        """Whichever rank owns the port: its capture cannot be begun, or its disk is full at the end."""
        path = self.write(GOOD.replace("[[0, 1]]", "[[0, 1], [1, 2], [2, 3], [3, 0]]"))
        hosts, reasons = range(4), {"/": "Is a directory", "/dev/full": "No space left on device"}

        def run(host, target):
            folder = self.folder / f"{host}{target.replace('/', '-')}"
            folder.mkdir()
            (folder / f"out.host{host}-0.pcap").symlink_to(target)
            return folder, weft("run", path, "--set", f"output.pcap=[host{host}:0]", folder=folder, ranks=4, seconds=60)

        cases = [(host, target) for host in hosts for target in reasons]
        runs = two_at_a_time(functools.partial(run, *case) for case in cases)
        for (host, target), (folder, done) in zip(cases, runs):
            with self.subTest(host=host, target=target):
                self.assert_fails(done, EXIT_ENVIRONMENT, f"cannot write 'out.host{host}-0.pcap': {reasons[target]}")
                # A capture that is lost does not cost the results.
                if target == "/dev/full":
                    self.assertEqual(attributes(folder / "out.h5")["complete"], 1)
                else:
                    self.assertFalse(list(folder.glob("*.h5*")))

    def test_reference_engine_takes_one_rank(self):
        good = self.write(GOOD)
        self.run_wrong(["run", good, "--engine", "ns3-default"], EXIT_INPUT, "one MPI rank, found 2", ranks=2)
        self.run_weft("run", good, "--engine", "ns3-default", "--quiet", ranks=1)


if __name__ == "__main__":
    unittest.main()
