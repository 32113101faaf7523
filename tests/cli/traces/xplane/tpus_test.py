#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft import xplane` of TPUs: lines of asynchronous operations, loops, fusions."""

# Time limit: 300 s

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from xplane_files import Module, Plane, Profile, iota, shape, step
from xplane_testing import MIB, XplaneTest


class Tpus(XplaneTest):
    def tpu(self, *operations, devices=2, module=None, protos=True):
        """The same operations on all devices: (start, duration, name, further words)."""
        module = module or step(devices)
        profile = Profile("TPU", devices, [module], protos)
        for device in range(devices):
            for start, duration, name, *more in operations:
                profile.op(device, start, duration, name, module.name if protos else None, *more)
        return self.profile(profile)

    STARTED = "f32[1048576]{0:T(1024)} all-reduce-start(f32[1048576]{0:T(1024)} %fusion.1), channel_id=1, " \
              "replica_groups=[1,2]<=[2], use_global_device_ids=true, to_apply=%region"
    DONE = "f32[1048576]{0:T(1024)} all-reduce-done(f32[1048576]{0:T(1024)} %all-reduce-start.1)"

    def test_a_start_and_its_done(self):
        """The start takes 1 us of the core; the time of the done is waiting, which the simulated network determines. By the
        module, and by the texts of the instructions alone."""
        for protos in (True, False):
            with self.subTest(protos=protos):
                read = self.imported(self.tpu(
                    (100, 50, "fusion.1"), (150, 1, "all-reduce-start.1", "XLA Ops", self.STARTED), (151, 40, "fusion.2"),
                    (191, 19, "all-reduce-done.1", "XLA Ops", self.DONE), (210, 10, "fusion.3"), protos=protos))
                self.assertEqual(read["bytes"], {"all_reduce": 2 * 4 * MIB})
                found = self.run_imported()
                (start, end), = self.collective()
                self.assert_times((start, found[0, "fusion.2"], found[0, "fusion.3"]), (51, (51, 91), (end, end + 10)))

    def test_one_step_of_a_tpu(self):
        """TPUs have a line for steps, each of which ends where the next one begins."""
        profile = Profile("TPU", 2, [step(2)])
        for device in range(2):
            for at in range(2):
                begin = 100 + 400 * at
                profile.devices[device].event((5, "Steps"), f"{at + 8}", begin, 300, group_id=at)
                profile.op(device, begin, 50 + at, "fusion.1", "jit_step")
                profile.op(device, begin + 60, 1, "all-reduce-start.1", "jit_step", "XLA Ops", self.STARTED)
                profile.op(device, begin + 70, 40, "all-reduce-done.1", "jit_step", "XLA Ops", self.DONE)
        name = self.profile(profile)
        for at in range(2):
            read = self.imported(name, "--step", str(8 + at))
            self.assertEqual(read["bytes"], {"all_reduce": 2 * 4 * MIB})
            self.assertAlmostEqual(self.run_imported()[0, "fusion.1"][1], 50 + at, 6)
        self.refused(name, "--step", "1", says=[r"there is no step 1; steps on the line 'Steps' of /device:TPU:0: 8, 9"])

    def test_only_the_line_of_asynchronous_operations_has_it(self):
        self.imported(self.tpu(
            (100, 50, "fusion.1"), (150, 60, "all-reduce-start.1", "Async XLA Ops", self.STARTED), (150, 40, "fusion.2"),
            (210, 10, "fusion.3")))
        found = self.run_imported()
        (start, end), = self.collective()
        self.assert_times((start, found[0, "fusion.2"], found[0, "fusion.3"]), (50, (50, 90), (end, end + 10)))

    def test_both_lines_have_it(self):
        """The span in the line of asynchronous operations is the same operation."""
        read = self.imported(self.tpu(
            (100, 50, "fusion.1"), (150, 1, "all-reduce-start.1", "XLA Ops", self.STARTED),
            (150, 60, "all-reduce-start.1", "Async XLA Ops", self.STARTED), (151, 40, "fusion.2"),
            (191, 19, "all-reduce-done.1", "XLA Ops", self.DONE), (210, 10, "fusion.3")))
        self.assertEqual(read["operations"], {"all_reduce": 2, "compute": 8})

    def test_events_within_a_loop(self):
        """The event of a while contains those of its rounds, and is no work of its own."""
        part = shape("f32", MIB)
        module = Module("jit_f", 3, [0, 1]).computation("region", ("x", "parameter", shape("f32"))).computation(
            "body", ("t", "parameter", part), ("fusion.1", "fusion", part, ["t"]),
            ("all-reduce.1", "all-reduce", part, ["fusion.1"], iota([1, 2], [2]), ["region"])).computation(
            "main.1", ("p", "parameter", part), ("while.1", "while", part, ["p"], b"", ["body"]),
            ("fusion.3", "fusion", part, ["while.1"]))
        read = self.imported(self.tpu(
            (100, 200, "while.1"), (100, 20, "fusion.1"), (120, 80, "all-reduce.1"), (200, 20, "fusion.1"),
            (220, 80, "all-reduce.1"), (300, 5, "fusion.3"), module=module))
        self.assertEqual(read["operations"], {"all_reduce": 4, "compute": 6})
        found = self.run_imported()
        (start, first), (again, second) = self.collective()
        self.assert_times((start, again, found[0, "fusion.3"]), (20, first + 20, (second, second + 5)))

    def test_collectives_within_fusions(self):
        """all-reduce-scatter of a TPU: a fusion whose computation has the collective. One with a matrix product is listed."""
        part, whole = shape("f32", 1024), shape("f32", 2048)
        for product in (False, True):
            inner = [("q", "parameter", whole), ("rs.1", "reduce-scatter", part, ["q"], iota([1, 2], [2]))]
            module = Module("jit_f", 3, [0, 1]).computation("region", ("x", "parameter", shape("f32"))).computation(
                "fused", *inner, *([("d.1", "dot", part, ["q", "q"])] if product else [])).computation(
                "main.1", ("p", "parameter", whole), ("all-reduce-scatter.1", "fusion", part, ["p"], b"", ["fused"]))
            read = self.imported(self.tpu((10, 5, "all-reduce-scatter.1"), module=module))
            self.assertEqual(read["bytes"], {"reduce_scatter": 2 * 8192})
            self.assertEqual([one["what"][:47] for one in read["refused"]],
                             ["fusions of a collective with matrix products coun"[:47]] if product else [])

    def test_what_a_tpu_does_not_say(self):
        """A collective that no module explains is an error; one that its module does not explain is listed; SparseCores are
        left out."""
        profile = Profile("TPU", 1, [step(1)])
        profile.op(0, 10, 5, "async-collective-start.1", "jit_step")
        sparse = Plane("/device:TPU:0 SparseCore 0")
        sparse.event((1, "Sparse Core Ops"), "gather", 10, 5)
        profile.planes.append(sparse)
        read = self.imported(self.profile(profile))
        self.assertRegex(read["refused"][0]["what"], "of which the module does not say what they send count as compute")
        self.assertRegex(read["ignored"][0]["what"], "planes of SparseCores are left out")
        profile = Profile("TPU", 1)
        profile.devices[0].event((1, "XLA Ops"), "all-reduce.1", 10, 5)
        self.refused(self.profile(profile), says=[r"byte \d+: 'all-reduce.1' communicates, and neither its module nor its text"])


if __name__ == "__main__":
    unittest.main()
