# SPDX-License-Identifier: GPL-2.0-only
"""Common code of the tests of `weft import xplane`: profiles by their protobuf definitions (tests/xplane_files.py), with times set by
hand. Expected times follow from those of the run's own collectives and the traced times of kernels."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from import_testing import ImportTest
from weft_testing import table
from xplane_files import Module, nccl, shape

MIB = 1 << 20
SUM = nccl("AllReduce_Sum_f32_RING_LL")


class XplaneTest(ImportTest):
    FORMAT = "xplane"

    def profile(self, profile, name="host0.xplane.pb", **options):
        profile.write(self.folder / name, **options)
        return name

    def collective(self):
        rows = table(self.folder / "out.h5", "collectives")
        return sorted((start / 10**6, end / 10**6) for start, end in zip(rows["start"], rows["end"]))

    def assert_times(self, found, expected):
        """Spans, and times alone, in microseconds."""
        for one, other in zip(found, expected, strict=True):
            for time, wanted in zip(*([one, other] if isinstance(one, tuple) else [[one], [other]]), strict=True):
                self.assertAlmostEqual(time, wanted, 6)

    def mesh_module(self, groups, op="all-reduce", made=None, size=MIB):
        part = shape("bf16", size)
        return Module("jit_f", 3, list(range(8))).computation("region", ("x", "parameter", shape("f32"))).computation(
            "main.1", ("p", "parameter", part), ("c.1", op, made or part, ["p"], groups))
