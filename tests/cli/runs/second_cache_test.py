#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""WEFT_SECOND_CACHE: prefetching an epoch's memory changes no result; a value that is no number is refused."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_ENVIRONMENT, ProgramTest, weft

MODELS = {
    "no queues": {},
    "DCQCN": {"flow_control": "pfc", "buffer": {"size": "1 MiB"}, "congestion_control": "dcqcn"},
    "HPCC": {"flow_control": "pfc", "buffer": {"size": "1 MiB"}, "congestion_control": "hpcc"},
}


def incast(**network):
    return {
        "topology": {"kind": "fat_tree", "k": 4, "link_rate": "100 Gb/s", "link_delay": "500 ns"},
        "network": {"mtu": "4096 B", "window": "64 KiB", **network},
        "workload": {"kind": "traffic", "pattern": "incast", "size": "128 KiB"},
        "simulation": {"seed": 1},
    }


class SecondCache(ProgramTest):
    def fingerprint(self, path, cache, ranks):
        done = self.run_weft("run", path, "-o", "out.h5", "--summary", "json", "--quiet", ranks=ranks,
                             extra={"WEFT_SECOND_CACHE": str(cache)})  # fmt: skip
        return done.summary()["fingerprint"]

    def test_results_are_the_same(self):
        for name, network in MODELS.items():
            path = self.write(incast(**network))
            found = {self.fingerprint(path, cache, ranks) for cache, ranks in ((0, None), (1 << 40, None), (0, 2), (1 << 40, 2))}
            self.assertEqual(len(found), 1, name)

    def test_bytes_are_a_number(self):
        path = self.write(incast())
        for value in ("8k", "", "-1"):
            done = weft("run", path, "-o", "out.h5", folder=self.folder, extra={"WEFT_SECOND_CACHE": value})
            self.assertEqual(done.code, EXIT_ENVIRONMENT, done)
            self.assertIn(f"WEFT_SECOND_CACHE: found '{value}'; expected a number of bytes", done.err)
            self.assertFalse((self.folder / "out.h5").exists())


if __name__ == "__main__":
    unittest.main()
