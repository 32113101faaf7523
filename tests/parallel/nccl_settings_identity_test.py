#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 300 s
"""NCCL's buffers and chunks, as a server's plugin sets them and as keys do: the same results on 1, 2, 3, 4 and 8 MPI processes."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import NETWORK, ProgramTest  # noqa: E402

KEYS = {"buffer_size": "64 KiB", "p2p_chunk_size": "16 KiB"}


def experiment(tuner, **keys):
    """Four servers of AWS: an all-to-all, rings with Simple, PAT of one GPU of each server, and what the tuner chooses."""
    tunings = {"sends": {"algorithm": "nccl_p2p", **keys}, "rings": {"algorithm": "ring", "channels": 2, **keys},
               "pat": {"algorithm": "pat", **keys}, "own": {"algorithm": "nccl", **keys}}  # fmt: skip
    operations = [
        {"collective": "all_to_all", "size": "1280 KiB", "tuning": "sends"},
        {"collective": "all_reduce", "size": "6 MiB", "tuning": "rings"},
        {"collective": "all_gather", "size": "4 MiB", "tuning": "pat", "communicator": "one_of_each"},
        {"collective": "all_reduce", "size": "2 MiB", "tuning": "own"},
    ]
    return {
        "topology": {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 4, "spines": 2, "link_rate": "400 Gb/s", "link_delay": "100 ns",
                     "server": {"design": "aws_p5", "wiring": "rail", "collective_tuner": tuner}},
        "network": NETWORK,
        "workload": {"kind": "program", "ranks": 32, "communicators": {"one_of_each": [0, 8, 16, 24]}, "tunings": tunings,
                     "operations": operations},
        "simulation": {"seed": 1},
    }  # fmt: skip


class SettingsIdentity(ProgramTest):
    def test_same_for_all_numbers_of_processes(self):
        path = self.write(experiment("ofi_p5", **KEYS))
        summary, one = self.simulate(path, output="one.h5")
        self.assertTrue(summary["complete"])
        for processes in (2, 3, 4, 8):
            with self.subTest(processes=processes):
                other, results = self.simulate(path, output=f"{processes}.h5", ranks=processes)
                self.assert_same_results(one, results, context=f"{processes} processes")
                self.assertEqual(other["fingerprint"], summary["fingerprint"])

    def test_settings_have_an_effect(self):
        # The plugin's buffers and chunks are larger than NCCL's own, and those of the keys smaller: fewer messages, and more.
        messages = {}
        for name, tuner, keys in (("plugin", "ofi_p5", {}), ("nccl", "none", {}), ("keys", "ofi_p5", KEYS)):
            summary, results = self.simulate(self.write(experiment(tuner, **keys), f"{name}.yaml"), output=f"{name}.h5")
            messages[name] = summary["messages"]
        self.assertLess(messages["plugin"], messages["nccl"])
        self.assertLess(messages["nccl"], messages["keys"])

    def test_small_messages(self):
        # 512 KiB to each of 8 GPUs: LL up to NCCL 2.28, Simple since then.
        fingerprints = {}
        for version in ("2.28", "2.30"):
            text = {"topology": {"kind": "server", "design": "hgx_h100"}, "network": NETWORK, "simulation": {"seed": 1},
                    "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "nccl", "nccl_version": version,
                                 "ranks": 8, "size": "4 MiB"}}  # fmt: skip
            path = self.write(text, f"{version}.yaml")
            summary, one = self.simulate(path, output=f"{version}.h5")
            fingerprints[version] = summary["fingerprint"]
            for processes in (2, 3, 4, 8) if version == "2.28" else ():
                with self.subTest(processes=processes):
                    other, results = self.simulate(path, output=f"small_{processes}.h5", ranks=processes)
                    self.assert_same_results(one, results, context=f"{processes} processes")
                    self.assertEqual(other["fingerprint"], summary["fingerprint"])
        self.assertNotEqual(fingerprints["2.28"], fingerprints["2.30"])

    def test_lines_that_go_on(self):
        # 1 MiB on each of two trees of four servers of eight: 14 chunks of 71,040 B, 592 lines of LL128, and a shorter one. NCCL's block
        # moves 38,400 B in a trip, which go on inside a server: two messages for each chunk, 7 up and 7 down each of four chains. Between
        # servers a message is a chunk: 3 up and 3 down. Without a kernel a rank passes on whole chunks.
        chunks = 15
        expected = {"h100": 2 * (4 * 14 * 2 * chunks + 6 * chunks), "none": 2 * (4 * 14 * chunks + 6 * chunks)}
        for kernel, messages in expected.items():
            text = experiment("none")
            text["workload"] = {"kind": "collective", "collective": "all_reduce", "algorithm": "double_binary_tree", "protocol": "ll128",
                                "channels": 2, "ranks": 32, "size": "2 MiB", "collective_kernel": kernel}  # fmt: skip
            path = self.write(text, f"{kernel}.yaml")
            summary, one = self.simulate(path, output=f"{kernel}.h5")
            self.assertEqual(summary["messages"], messages, kernel)
            for processes in (2, 3, 4, 8) if kernel == "h100" else ():
                with self.subTest(processes=processes):
                    other, results = self.simulate(path, output=f"lines_{processes}.h5", ranks=processes)
                    self.assert_same_results(one, results, context=f"{processes} processes")
                    self.assertEqual(other["fingerprint"], summary["fingerprint"])


if __name__ == "__main__":
    unittest.main()
