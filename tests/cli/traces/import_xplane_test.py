#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft import xplane`: profiles of JAX and XLA by their protobuf definitions (tests/xplane_files.py), with times set by
hand. Expected times follow from those of the run's own collectives and the traced times of kernels."""

# Time limit: 300 s

import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import weft_testing
from import_testing import ImportTest
from weft_testing import SOURCE
from xplane_files import (Module, Plane, Profile, attribute_pairs, iota, iota_alone, legacy, lists, mesh, nccl, pairs,
                          shape, step, tuple_of, two_gpus)

MIB = 1 << 20
SUM = nccl("AllReduce_Sum_f32_RING_LL")


class Xplane(ImportTest):
    FORMAT = "xplane"

    def profile(self, profile, name="host0.xplane.pb", **options):
        profile.write(self.folder / name, **options)
        return name

    def collective(self):
        rows = weft_testing.table(self.folder / "out.h5", "collectives")
        return sorted((start / 10**6, end / 10**6) for start, end in zip(rows["start"], rows["end"]))

    def assert_times(self, found, expected):
        """Spans, and times alone, in microseconds."""
        for one, other in zip(found, expected, strict=True):
            for time, wanted in zip(*([one, other] if isinstance(one, tuple) else [[one], [other]]), strict=True):
                self.assertAlmostEqual(time, wanted, 6)

    # GPUs -------------------------------------------------------------------------------------------------------------

    def test_two_gpus_of_one_process(self):
        """4 B x 2^20 elements; the sum starts behind the first kernel, beside the second one, and the third waits for both:
        all-reduce-done stands before it in the schedule, and no kernel says so."""
        read = self.imported(self.profile(two_gpus()))
        self.assertEqual((read["ranks"], read["operations"]), (2, {"all_reduce": 2, "compute": 6}))
        self.assertEqual((read["bytes"], read["overlap"]), ({"all_reduce": 2 * 4 * MIB}, "network"))
        found = self.run_imported()
        (start, end), = self.collective()
        self.assert_times((start, found[0, "gemm_fusion_dot_2"]), (50, (50, 90)))
        self.assertGreater(end, 90)
        self.assert_times([found[1, "loop_add_fusion_3"]], [(end, end + 10)])

    def test_several_steps_follow_each_other(self):
        self.imported(self.profile(two_gpus(3)))
        self.run_imported()
        times = self.collective()
        self.assertEqual(len(times), 3)
        for (_, ended), (begun, _) in zip(times, times[1:]):
            self.assertAlmostEqual(begun, ended + 10 + 50)  # the last kernel of a step and the first one of the next

    def test_a_run_of_any_number_of_processes(self):
        """Eight devices in pairs, and a ring of messages."""
        part = shape("f32", MIB)
        module = Module("jit_f", 3, list(range(8))).computation("region", ("x", "parameter", shape("f32"))).computation(
            "main.1", ("p", "parameter", part), ("c.1", "all-reduce", part, ["p"], iota([4, 2], [8]), ["region"]),
            ("ring.1", "collective-permute", part, ["c.1"], pairs(*((at, (at + 1) % 8) for at in range(8)))))
        profile = Profile(devices=8, modules=[module])
        for device in range(8):
            profile.kernel(device, 10, 20, 5, SUM, "c.1", "jit_f")
            profile.kernel(device, 30, 20, 6, nccl("SendRecv"), "ring.1", "jit_f")
            profile.kernel(device, 50, 10 + device, 7, "last")
        self.imported(self.profile(profile))
        found = []
        for ranks in (1, 2, 3, 4, 8):
            times = self.run_imported(ranks=ranks)
            found.append((self.summary["fingerprint"], times))
        self.assertEqual(found, found[:1] * 5)

    def test_gzip_and_folders(self):
        """plugins/profile/DATE, as jax.profiler.start_trace writes it; two profiles in a log are an error."""
        self.imported(self.profile(two_gpus(), "log/plugins/profile/1/h.xplane.pb.gz", zipped=True))
        content = [self.folder / f"out.2ranks.{rank}.et" for rank in range(2)]
        zipped = [path.read_bytes() for path in content]
        read = self.imported("log")
        self.assertEqual((read["ranks"], [path.read_bytes() for path in content]), (2, zipped))
        self.profile(two_gpus(), "log/plugins/profile/2/h.xplane.pb")
        self.refused("log", says=[r"there are 2 profiles in this folder \(plugins/profile/1, plugins/profile/2\)"])
        (self.folder / "none").mkdir()
        self.refused("none", says=["there is no profile of XLA"])

    def test_one_process_for_each_gpu(self):
        """Each process sees both GPUs, and uses one; files are in the order of numbers in their names."""
        for process, name in enumerate(("w9", "w10")):
            profile = Profile(devices=2, modules=[step(2)])
            profile.kernel(process, 100, 50, 20, "forward", "fusion.1", "jit_step")
            profile.kernel(process, 150, 60, 22, SUM, "all-reduce-start.1", "jit_step", 20)
            profile.kernel(process, 210, 10 + process, 24, f"of process {process}", "fusion.3", "jit_step")
            self.profile(profile, f"log/{name}.xplane.pb")
        self.assertEqual(self.imported("log")["ranks"], 2)
        found = self.run_imported()
        self.assertLessEqual({(0, "of process 0"), (1, "of process 1")}, set(found))
        self.refused("log/w9.xplane.pb", says=[r"the job has 2 ranks, and of ranks \[1\] there is no trace"])
        self.assertEqual(self.imported("log/w9.xplane.pb", "--fill", "symmetric")["ranks"], 2)
        self.run_imported()

    def test_a_server_stands_for_the_others(self):
        """Eight GPUs on two servers: sums of rows and columns, and a ring within each row. The profile of the first server alone
        is the same run as both."""
        part = shape("f32", MIB)
        module = Module("jit_f", 3, list(range(8))).computation("region", ("x", "parameter", shape("f32"))).computation(
            "main.1", ("p", "parameter", part),
            ("row.1", "all-reduce", part, ["p"], iota([2, 4], [8]), ["region"]),
            ("column.1", "all-reduce", part, ["row.1"], iota([4, 2], [2, 4], [1, 0]), ["region"]),
            ("ring.1", "collective-permute", part, ["column.1"],
             pairs(*((row + at, row + (at + 1) % 4) for row in (0, 4) for at in range(4)))))
        for server in range(2):
            profile = Profile(devices=4, modules=[module])
            for device in range(4):
                profile.kernel(device, 10, 20, 5, SUM, "row.1", "jit_f")
                profile.kernel(device, 30, 20, 6, SUM, "column.1", "jit_f", 20)
                profile.kernel(device, 50, 20, 7, nccl("SendRecv"), "ring.1", "jit_f")
            self.profile(profile, f"log/host{server}.xplane.pb")
        found = []
        for words in (["log"], ["log/host0.xplane.pb", "--fill", "symmetric"]):
            self.assertEqual(self.imported(*words)["ranks"], 8)
            times = self.run_imported()
            found.append((self.summary["fingerprint"], times))
        self.assertEqual(found[0], found[1])

    def mesh_module(self, groups, op="all-reduce", made=None, size=MIB):
        part = shape("bf16", size)
        return Module("jit_f", 3, list(range(8))).computation("region", ("x", "parameter", shape("f32"))).computation(
            "main.1", ("p", "parameter", part), ("c.1", op, made or part, ["p"], groups))

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

    def test_kernels_of_cuda_graphs(self):
        """A graph as a whole counts as compute, which `refused` lists; NCCL's kernels without an instruction are an
        error."""
        profile = two_gpus()
        profile.kernel(0, 300, 20, 50, "CudaGraphExec:7")
        read = self.imported(self.profile(profile))
        self.assertRegex(read["refused"][0]["what"], r"^CUDA graphs that were recorded as a whole .* \(1 times, 20.000 us")
        profile.kernel(0, 400, 20, 60, SUM)
        name = self.profile(profile)
        self.refused(name, says=["no instruction of XLA is with it", "xla_gpu_enable_command_buffer", "--unknown-calls compute"])
        read = self.imported(name, "--unknown-calls", "compute")
        self.assertEqual(read["operations"]["all_reduce"], 2)
        self.assertIn(r"count as compute with their traced times, which no network changes (1 times, 20.000 us altogether)",
                      " ".join(one["what"] for one in read["refused"]))
        self.run_imported()

    def test_nodes_of_a_cuda_graph(self):
        """Traced node by node, kernels of a graph have one correlation id, and keep their order and waits."""
        profile = Profile(devices=2, modules=[step(2)])
        for device in range(2):
            one = profile.kernel(device, 100, 50, 20, "first", "fusion.1", "jit_step")
            profile.kernel(device, 150, 60, 0, SUM, "all-reduce-start.1", "jit_step", 20, correlation=one)
            profile.kernel(device, 150, 40, 0, "second", "fusion.2", "jit_step", correlation=one)
            profile.kernel(device, 210, 10, 0, "third", "fusion.3", "jit_step", correlation=one)
        self.imported(self.profile(profile))
        found = self.run_imported()
        (start, end), = self.collective()
        self.assert_times((start, found[0, "second"], found[0, "third"]), (50, (50, 90), (end, end + 10)))

    def test_kernels_without_launches(self):
        """They wait in the order in which they began."""
        profile = Profile(devices=2, modules=[step(2)])
        for device in range(2):
            for start, duration, name, op, stream in ((100, 50, "first", "fusion.1", 7), (150, 60, SUM, "all-reduce-start.1", 20),
                                                      (150, 40, "second", "fusion.2", 7), (210, 10, "third", "fusion.3", 7)):
                profile.kernel(device, start, duration, 0, name, op, "jit_step", stream, correlation=-1)
        self.imported(self.profile(profile))
        found = self.run_imported()
        (start, end), = self.collective()
        self.assert_times((start, found[0, "second"], found[0, "third"]), (50, (50, 90), (end, end + 10)))

    def test_late_launches(self):
        """The host launches the third kernel 300 us after the first one began; nothing else keeps it waiting."""
        profile = Profile(modules=[step(1)])
        profile.kernel(0, 100, 50, 20, "first", "fusion.1", "jit_step")
        profile.kernel(0, 400, 10, 395, "late", "fusion.2", "jit_step")
        name = self.profile(profile)
        self.imported(name)
        self.assertEqual(self.run_imported()[0, "late"], (300, 310))
        self.imported(name, "--host", "none")
        self.assertEqual(self.run_imported()[0, "late"], (50, 60))

    def test_one_step_of_several(self):
        """Steps 4, 5 and 6 as StepTraceAnnotation marks them, each of which the host launches 180 us before the GPUs are done
        with the one before: a kernel of 50 + step us, and a sum. Another thread has a mark of step 5, too, within it."""
        profile = Profile(devices=2, modules=[step(2)])
        for at in range(3):
            begin = 200 * at
            profile.host.event((1, "python"), "train", begin, 150, step_num=4 + at, _r=1)
            profile.host.event((2, "worker"), "run", begin + 10, 20, step_num=4 + at)
            profile.host.event((1, "python"), "$train.py:1 other", begin, 10)
            for device in range(2):
                profile.kernel(device, begin + 190, 50 + at, begin + 20, "first", "fusion.1", "jit_step")
                profile.kernel(device, begin + 240 + at, 60, begin + 160, SUM, "all-reduce-start.1", "jit_step", 20)
        name = self.profile(profile)
        for at in range(3):
            read = self.imported(name, "--step", str(4 + at))
            self.assertEqual(read["operations"], {"all_reduce": 2, "compute": 2})
            self.assertAlmostEqual(read["compute_seconds"], 2 * (50 + at) * 1e-6, delta=1e-12)
            self.assertAlmostEqual(self.run_imported()[1, "first"][1], 50 + at, 6)
        self.refused(name, "--step", "7", says=[r"there is no step 7; steps on the host \(jax.profiler.StepTraceAnnotation\): 4, "
                                                r"5, 6"])

    def test_what_is_no_work(self):
        """Allocations, derived lines, counters, and copies between GPUs, which are listed."""
        profile = two_gpus()
        profile.kernel(0, 10, 0, 1, "MemoryAlloc", memalloc_details="kind:device num_bytes:8")
        profile.devices[0].event((9, "XLA Modules"), "jit_step(5)", 100, 120)
        profile.devices[0].event((10, "_counters_"), "power_mw", 100, 0)
        profile.kernel(0, 300, 30, 60, "MemcpyP2P", stream=30, memcpy_details="kind_src:device size:8")
        read = self.imported(self.profile(profile))
        self.assertEqual(read["operations"], {"all_reduce": 2, "compute": 7, "host": 1})
        self.assertRegex(read["refused"][0]["what"], r"memcpy PtoP \(1 times, ")

    def test_what_the_profiler_says(self):
        profile = two_gpus()
        profile.warnings.append("Detected GPU events dropped on host0: 12 events dropped because of a limit")
        read = self.imported(self.profile(profile))
        self.assertRegex(read["refused"][0]["what"], "the profiler says: Detected GPU events dropped on host0")

    # TPUs -------------------------------------------------------------------------------------------------------------

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

    # Errors -----------------------------------------------------------------------------------------------------------

    @staticmethod
    def lasts(duration, start=400):
        profile = two_gpus()
        profile.kernel(0, start, duration, 60, "odd")
        return profile

    def test_damage(self):
        content = two_gpus().coded()
        for what, bad, says in (
                ("cut", content[:-40], r"cut.xplane.pb: byte \d+: .*; the file is damaged, or no profile of XLA"),
                ("no device", Profile(devices=0).coded(), "there is no plane of a GPU or TPU with operations"),
                ("negative", self.lasts(-50).coded(), r"byte \d+: an event of -50000000 ps; expected 0 or more"),
                ("far", self.lasts(1, 10**13).coded(), r"byte \d+: a time of \d+ ps; expected less than 53 days from")):
            with self.subTest(what):
                (self.folder / f"{what.split()[0]}.xplane.pb").write_bytes(bad)
                self.refused(f"{what.split()[0]}.xplane.pb", says=[says])
        module = self.mesh_module(iota([4, 3], [8]))
        profile = Profile(devices=1, modules=[module])
        profile.kernel(0, 10, 5, 1, SUM, "c.1", "jit_f")
        self.refused(self.profile(profile), says=[r"byte \d+: groups of devices that do not fit together"])
        module = self.mesh_module(lists([[0, 9]]))
        profile = Profile(devices=8, modules=[module])
        profile.kernel(0, 10, 5, 1, SUM, "c.1", "jit_f")
        self.refused(self.profile(profile), says=[r"'c.1' names a device that is none of the 8 of the module 'jit_f'"])

    def test_rows_that_are_known_when_it_runs(self):
        module = self.mesh_module(iota([1, 8], [8]), "ragged-all-to-all")
        profile = Profile(devices=8, modules=[module])
        for device in range(8):
            profile.kernel(device, 10, 5, 1, nccl("SendRecv"), "c.1", "jit_f")
        name = self.profile(profile)
        self.refused(name, says=["the number of rows for each receiver is known only when it runs; --ragged even"])
        self.assertEqual(self.imported(name, "--ragged", "even")["bytes"], {"all_to_all": 8 * 2 * MIB})

    def test_ranks_with_different_calls(self):
        profile = two_gpus()
        profile.kernel(0, 300, 5, 50, SUM, "all-reduce-start.1", "jit_step", 20)
        self.refused(self.profile(profile), says=["rank 1 makes 1 call in the group .0, 1., and rank 0 .* 2"])

    def test_the_trace_of_perfetto_is_none_of_pytorch(self):
        """JAX writes one beside the profile, of which nothing says what it communicates."""
        self.profile(two_gpus(), "log/h.xplane.pb")
        (self.folder / "log" / "h.trace.json").write_text('{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},\n'
                                                          '"traceEvents":[{"ph":"X","ts":1,"dur":2,"name":"a"}]}')
        done = weft_testing.weft("import", "auto", "log", "-o", "out.yaml", "--json", folder=self.folder)
        self.assertEqual(done.code, 0, done)
        self.assertIn('"format": "xplane"', done.out)
        done = weft_testing.weft("import", "pytorch", "log", "-o", "out.yaml", folder=self.folder)
        self.assertEqual(done.code, weft_testing.EXIT_INPUT, done)
        self.assertRegex(done.err, r"^weft: log/h.trace.json: XLA's profiler has written this trace for viewers")

    def test_memory_does_not_grow_with_the_trace(self):
        """Four times the events: at most 8 MiB more."""
        peaks = []
        for steps in (1500, 6000):
            two_gpus(steps).write(self.folder / f"{steps}.xplane.pb")
            program = ("import sys; sys.path.insert(0, sys.argv[1]); from importing.command import import_command; "
                       "import_command(['xplane', sys.argv[2], '-o', sys.argv[3], '--for-run']); "
                       "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))")
            done = subprocess.run([sys.executable, "-c", program, str(SOURCE / "scripts"),
                                   str(self.folder / f"{steps}.xplane.pb"), str(self.folder / "big.yaml")],
                                  capture_output=True, text=True, check=True)
            peaks.append(int(done.stdout.split()[-1]))
        self.assertLess(peaks[1], peaks[0] + 8192, peaks)


if __name__ == "__main__":
    unittest.main()
