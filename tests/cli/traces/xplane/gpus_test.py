#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft import xplane` of GPUs: processes, servers and steps; kernels, launches and CUDA graphs."""

# Time limit: 300 s

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from xplane_files import Module, Profile, iota, nccl, pairs, shape, step, two_gpus
from xplane_testing import MIB, SUM, XplaneTest


class Gpus(XplaneTest):
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


if __name__ == "__main__":
    unittest.main()
