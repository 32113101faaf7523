# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 600 s
"""The hot path must not become slower unnoticed: instructions per packet-hop stay within 5 % of the best landed value. The
distribution of work among processes must not become worse unnoticed either. The bounds are in bounds.yaml."""

import pathlib
import re
import subprocess
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOUNDS = yaml.safe_load((pathlib.Path(__file__).parent / "bounds.yaml").read_text())
SIZES = ["64 KiB", "256 KiB"]  # smaller than those of scripts/bench, which changes the count by a percent or two


class Instructions(unittest.TestCase):
    def count(self, *words):
        words = [ROOT / "scripts" / "count_instructions", "--sizes", *SIZES, *words]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_packet_hop_takes_no_more_than_it_did(self):
        bound = BOUNDS["instructions_per_packet_hop"]
        text = self.count()
        count = float(re.search(r"([0-9.]+) instructions per packet-hop", text)[1])
        self.assertLess(count, bound["more"] * bound["best"], text)
        self.assertGreater(count, bound["less"] * bound["best"], text)

    def test_nor_does_one_with_queues_and_congestion_control(self):
        bound = BOUNDS["instructions_per_packet_hop"]
        for network, best in BOUNDS["instructions_with_queues"].items():
            with self.subTest(network=network):
                text = self.count("--network", network)
                count = float(re.search(r"([0-9.]+) instructions per packet-hop", text)[1])
                self.assertLess(count, bound["more"] * best, text)
                self.assertGreater(count, bound["less"] * best, text)

    def test_documents_name_the_bound(self):
        text = (ROOT / "docs/concepts/performance.md").read_text()
        self.assertEqual(float(re.search(r"A packet-hop takes ([0-9.]+) instructions", text)[1]),
                         BOUNDS["instructions_per_packet_hop"]["best"])

    def test_two_processes_share_out_the_work(self):
        """In time it is less, because processes wait for each other and slow each other down, which counts do not show."""
        text = self.count("--processes", "2", "--set", "topology.k=16")
        speedup = float(re.search(r"speed-up ([0-9.]+)", text)[1])
        self.assertGreater(speedup, BOUNDS["speed_up_of_two_processes"]["least"], text)
        self.assertLess(speedup, BOUNDS["speed_up_of_two_processes"]["below"], text)


if __name__ == "__main__":
    unittest.main()
