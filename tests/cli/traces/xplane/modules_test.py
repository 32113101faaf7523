#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft import xplane` of modules of HLO: groups and sizes of collectives, permutations, loops, numbers of devices."""

# Time limit: 300 s

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from xplane_files import (Module, Plane, Profile, attribute_pairs, iota, iota_alone, legacy, lists, mesh,
                          nccl, pairs, shape, tuple_of, two_gpus)
from xplane_testing import MIB, SUM, XplaneTest


class Modules(XplaneTest):
    def test_groups_in_all_their_forms(self):
        """Of eight devices the pairs of neighbours, or those at distance 4: [4,2]<=[8], [4,2]<=[2,4]T(1,0), lists, and axes
        of a mesh of two by four."""
        rows, columns = [[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]]
        for name, groups, expected in (
                ("iota", iota([4, 2], [8]), rows), ("transposed", iota([4, 2], [2, 4], [1, 0]), columns),
                ("newer", iota_alone([4, 2], [2, 4], [1, 0]), columns), ("lists", lists(columns), columns),
                ("legacy", legacy(rows), rows), ("mesh", mesh({"x": 2, "y": 4}, [0]), columns),
                ("part of an axis", mesh({"x": 2, "y": 4}, [(1, 2, 2)]), rows),
                ("mesh in another order", mesh({"x": 4, "y": 2}, [1], [0, 4, 1, 5, 2, 6, 3, 7]), columns)):
            with self.subTest(name):
                profile = Profile(devices=8, modules=[self.mesh_module(groups)])
                for device in range(8):
                    profile.kernel(device, 10, 20, 5, SUM, "c.1", "jit_f", 20)
                self.imported(self.profile(profile))
                self.run_imported()
                found = {tuple(map(int, name[6:].split(","))) for name in self.groups_file()}
                self.assertEqual(found, set(map(tuple, expected)))

    def groups_file(self):
        return json.loads((self.folder / "out.groups.json").read_text())

    def test_sizes_of_collectives(self):
        """Bytes are those of the operands: of an all-gather the part of a device, of a reduce-scatter the whole; two operands
        count together."""
        part, whole = shape("bf16", 1024), shape("bf16", 8192)
        module = Module("jit_f", 3, list(range(8))).computation("region", ("x", "parameter", shape("f32"))).computation(
            "main.1", ("p", "parameter", part), ("w", "parameter", whole),
            ("g.1", "all-gather", whole, ["p"], iota([1, 8], [8])),
            ("s.1", "reduce-scatter", part, ["w"], iota([1, 8], [8])),
            ("a.1", "all-to-all", whole, ["w"], iota([1, 8], [8])),
            ("r.1", "all-reduce", tuple_of(part, whole), ["p", "w"], iota([1, 8], [8])),
            ("b.1", "collective-broadcast", whole, ["w"], iota([1, 8], [8])))
        profile = Profile(devices=8, modules=[module])
        for device in range(8):
            for at, (op, kind) in enumerate((("g.1", "AllGather_RING_LL"), ("s.1", "ReduceScatter_Sum_bf16_RING_LL"),
                                             ("a.1", "SendRecv"), ("r.1", "AllReduce_Sum_bf16_RING_LL"),
                                             ("b.1", "Broadcast_RING_LL"))):
                profile.kernel(device, 10 + 10 * at, 5, 1 + at, nccl(kind), op, "jit_f")
        read = self.imported(self.profile(profile))
        self.assertEqual(read["call_bytes"], {"all_gather": 8 * 2048, "all_reduce": 8 * (2048 + 16384), "all_to_all": 8 * 16384,
                                              "broadcast": 8 * 16384, "reduce_scatter": 8 * 16384})
        self.run_imported()

    def test_permutations_are_messages(self):
        """A ring within each half, and a pipeline whose ends have one message each; on a device without a pair there is no
        kernel."""
        part = shape("f32", 1000)
        module = Module("jit_f", 3, list(range(8))).computation(
            "main.1", ("p", "parameter", part),
            ("ring.1", "collective-permute", part, ["p"], pairs((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 7), (7, 4))),
            ("pipe.1", "collective-permute", part, ["p"], pairs((0, 1), (1, 2))))
        profile = Profile(devices=8, modules=[module])
        for device in range(8):
            profile.kernel(device, 10, 5, 1, nccl("SendRecv"), "ring.1", "jit_f")
            if device < 3:
                profile.kernel(device, 20, 5, 2, nccl("SendRecv"), "pipe.1", "jit_f")
        read = self.imported(self.profile(profile))
        self.assertEqual(read["call_bytes"], {"recv": 10 * 4000, "send": 10 * 4000})
        self.run_imported()
        self.assertEqual(self.summary["bytes_delivered"], 10 * 4000)

    def test_halves_of_a_permutation(self):
        """send and recv, with all pairs in an attribute."""
        part, context = shape("f32", 1000), shape("u32")
        carried = tuple_of(part, context, shape("token"))
        ends = attribute_pairs((0, 1), (1, 0))
        module = Module("jit_f", 3, [0, 1]).computation(
            "main.1", ("p", "parameter", part), ("t", "after-all", shape("token")),
            ("send.1", "send", carried, ["p", "t"], ends), ("recv.1", "recv", carried, ["t"], ends),
            ("send-done.1", "send-done", shape("token"), ["send.1"]),
            ("recv-done.1", "recv-done", carried, ["recv.1"]), ("fusion.1", "fusion", part, ["recv-done.1"]))
        profile = Profile(devices=2, modules=[module])
        for device in range(2):
            profile.kernel(device, 10, 5, 1, nccl("SendRecv"), "send.1", "jit_f", 20)
            profile.kernel(device, 10, 5, 2, nccl("SendRecv"), "recv.1", "jit_f", 21)
            profile.kernel(device, 15, 7, 3, "behind", "fusion.1", "jit_f")
        read = self.imported(self.profile(profile))
        self.assertEqual(read["call_bytes"], {"recv": 2 * 4000, "send": 2 * 4000})
        found = self.run_imported()
        ended = max(found[0, "recv.1"][1], found[0, "send.1"][1])
        self.assertGreater(ended, 0)
        self.assert_times([found[0, "behind"]], [(ended, ended + 7)])

    def test_wrapped_starts(self):
        """A reduce-scatter within async-start, whose kernel has the name of the start, or of what is in it."""
        part, whole = shape("f32", MIB), shape("f32", 2 * MIB)
        for named in ("reduce-scatter-start.1", "inner.1"):
            module = Module("jit_f", 3, [0, 1]).computation("region", ("x", "parameter", shape("f32"))).computation(
                "wrapped", ("q", "parameter", whole), ("inner.1", "reduce-scatter", part, ["q"], iota([1, 2], [2]))).computation(
                "main.1", ("p", "parameter", whole),
                ("reduce-scatter-start.1", "async-start", tuple_of(whole, part), ["p"], b"", ["wrapped"]),
                ("fusion.1", "fusion", whole, ["p"]),
                ("update.1", "async-update", tuple_of(whole, part), ["reduce-scatter-start.1"]),
                ("reduce-scatter-done.1", "async-done", part, ["update.1"]),
                ("fusion.2", "fusion", part, ["reduce-scatter-done.1"]))
            profile = Profile(devices=2, modules=[module])
            for device in range(2):
                profile.kernel(device, 10, 9, 1, nccl("ReduceScatter_Sum_f32_RING_LL"), named, "jit_f", 20)
                profile.kernel(device, 10, 3, 2, "beside", "fusion.1", "jit_f")
                profile.kernel(device, 19, 3, 3, "behind", "fusion.2", "jit_f")
            read = self.imported(self.profile(profile))
            self.assertEqual(read["bytes"], {"reduce_scatter": 2 * 8 * MIB})
            found = self.run_imported()
            (_, end), = self.collective()
            self.assert_times((found[0, "beside"], found[0, "behind"]), ((0, 3), (end, end + 3)))

    def test_rounds_of_a_loop(self):
        """The loop's sum is waited for at the end of its body, behind which there is no kernel: the first kernel of the next
        round waits, and so does what is behind the loop."""
        part = shape("f32", MIB)
        module = Module("jit_f", 3, [0, 1]).computation("region", ("x", "parameter", shape("f32"))).computation(
            "body", ("t", "parameter", part), ("fusion.1", "fusion", part, ["t"]),
            ("all-reduce-start.1", "all-reduce-start", part, ["fusion.1"], iota([1, 2], [2]), ["region"]),
            ("fusion.2", "fusion", part, ["t"]),
            ("all-reduce-done.1", "all-reduce-done", part, ["all-reduce-start.1"])).computation(
            "main.1", ("p", "parameter", part), ("while.1", "while", part, ["p"], b"", ["body"]),
            ("fusion.3", "fusion", part, ["while.1"]))
        profile = Profile(devices=2, modules=[module])
        for device in range(2):
            for at in range(2):
                now, launch = 100 * at, 10 * at
                profile.kernel(device, now + 100, 20, launch + 1, f"first {at}", "fusion.1", "jit_f")
                profile.kernel(device, now + 120, 60, launch + 2, SUM, "all-reduce-start.1", "jit_f", 20)
                profile.kernel(device, now + 120, 30, launch + 3, f"second {at}", "fusion.2", "jit_f")
            profile.kernel(device, 300, 5, 30, "behind the loop", "fusion.3", "jit_f")
        self.imported(self.profile(profile))
        found = self.run_imported()
        (start, first), (again, second) = self.collective()
        self.assert_times((start, found[0, "second 0"], found[0, "first 1"]), (20, (20, 50), (first, first + 20)))
        self.assert_times((again, found[0, "behind the loop"]), (first + 20, (second, second + 5)))

    def test_devices_in_another_order(self):
        """The module runs partition 0 on device 3, and so on: partitions 0 and 1 are ranks 3 and 2."""
        module = self.mesh_module(lists([[0, 1], [2, 3]]))
        module.assigned = [[3, 2, 1, 0]]
        profile = Profile(devices=4, modules=[module])
        for device in range(4):
            profile.kernel(device, 10, 20, 5, SUM, "c.1", "jit_f", 20)
        self.imported(self.profile(profile))
        self.assertEqual(sorted(self.groups_file().values()), [[1, 0], [3, 2]])
        # Replicas, not partitions: a device is replica x 1.
        module.assigned = [[0], [1], [2], [3]]
        profile.metadata = Plane("/host:metadata")
        self.imported(self.profile(profile))
        self.assertEqual(sorted(self.groups_file().values()), [[0, 1], [2, 3]])

    def test_numbers_of_devices(self):
        """TPUs of one host need not have numbers that follow each other: given with --device-ids."""
        module = self.mesh_module(lists([[0, 1], [2, 3]]))
        module.assigned = [[0, 4, 1, 5]]
        profile = Profile(devices=4, modules=[module])
        for device in range(4):
            profile.kernel(device, 10, 20, 5, SUM, "c.1", "jit_f", 20)
        name = self.profile(profile)
        self.refused(name, says=["its modules are of devices 0, 1, 4, 5, and the profiles have 4 devices; --device-ids"])
        self.assertEqual(self.imported(name, "--device-ids", "0,1,4,5")["ranks"], 4)
        self.assertEqual(sorted(self.groups_file().values()), [[0, 2], [1, 3]])
        self.refused(name, "--device-ids", "0,1", says=["--device-ids has 2 different numbers"])
        self.refused(name, "--device-ids", "0,1,4,9", says=["does not communicate on device 9"])

    def test_modules_as_text(self):
        """Without HLO protos, --hlo gives the module; without it the error says what to do."""
        profile = two_gpus()
        profile.protos = False
        name = self.profile(profile)
        self.refused(name, says=[r"host0.xplane.pb:byte \d+: the kernel 'ncclDevKernel_AllReduce.*' communicates for the "
                                 "instruction 'all-reduce-start.1', whose module is not in the file", "--hlo"])
        (self.folder / "m.txt").write_text("""HloModule jit_step, is_scheduled=true, replica_count=1, num_partitions=2

%region (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}

ENTRY %main.9 (p: f32[1048576]) -> f32[1048576] {
  %p = f32[1048576]{0} parameter(0)
  %fusion.1 = f32[1048576]{0} negate(%p)
  %all-reduce-start.1 = f32[1048576]{0} all-reduce-start(%fusion.1), channel_id=1, replica_groups=[1,2]<=[2], use_global_device_ids=true, to_apply=%region
  %fusion.2 = f32[1048576]{0} negate(%p)
  %all-reduce-done.1 = f32[1048576]{0} all-reduce-done(%all-reduce-start.1)
  ROOT %fusion.3 = f32[1048576]{0} add(%fusion.2, %all-reduce-done.1)
}
""")
        read = self.imported(name, "--hlo", "m.txt")
        self.assertEqual(read["bytes"], {"all_reduce": 2 * 4 * MIB})
        found = self.run_imported()
        (_, end), = self.collective()
        self.assert_times([found[0, "loop_add_fusion_3"]], [(end, end + 10)])

    def test_a_module_that_is_not_in_the_file(self):
        """Its kernels compute; they come behind the collectives of the module before it, which keeps its waits."""
        profile = two_gpus()
        for device in range(2):
            profile.kernel(device, 220, 5, 60, "of another module", "fusion.9", "jit_other")
        self.assertEqual(self.imported(self.profile(profile))["overlap"], "network")
        found = self.run_imported()
        (_, end), = self.collective()
        self.assert_times([found[0, "loop_add_fusion_3"], found[0, "of another module"]],
                          [(end, end + 10), (end + 10, end + 15)])

    def test_two_modules_with_the_same_names(self):
        """XLA numbers instructions in each module: a collective of the second one begins before a kernel has waited for that of
        the first one, and the next kernel waits for both."""
        part = shape("f32", MIB)
        modules = []
        for at, name in enumerate(("jit_f", "jit_g")):
            modules.append(Module(name, 3 + at, [0, 1]).computation("region", ("x", "parameter", shape("f32"))).computation(
                "main.1", ("p", "parameter", part),
                ("start.1", "all-reduce-start", part, ["p"], iota([1, 2], [2]), ["region"]),
                ("done.1", "all-reduce-done", part, ["start.1"]), ("fusion.1", "fusion", part, ["done.1"])))
        profile = Profile(devices=2, modules=modules)
        for device in range(2):
            profile.kernel(device, 10, 20, 1, SUM, "start.1", "jit_f", 20)
            profile.kernel(device, 10, 20, 2, SUM, "start.1", "jit_g", 21)
            profile.kernel(device, 30, 5, 3, "last", "fusion.1", "jit_g")
        self.imported(self.profile(profile))
        found = self.run_imported()
        times = self.collective()
        self.assertEqual(len(times), 2)
        end = max(end for _, end in times)
        self.assert_times([found[0, "last"]], [(end, end + 5)])


if __name__ == "__main__":
    unittest.main()
