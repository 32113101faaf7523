# SPDX-License-Identifier: GPL-2.0-only
"""`weft import pytorch`: what follows what, on the accelerator's streams and on the host, and the times of both. Traces are
written by Kineto's rules with times set by hand (tests/kineto_files.py); what has to come out is derived from the events."""

# Time limit: 600 s

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from kineto_files import COMPUTE, NCCL, Trace, data_parallel_step
from pytorch_testing import MIB, PytorchTest
from weft_testing import table


class Order(PytorchTest):
    def test_a_step_of_data_parallel_training(self):
        """The buckets' all-reduces start behind the kernels whose gradients they have, one after another, and the
        optimizer behind both: whatever the network takes for them."""
        for packing in (None, "gz", "xz"):
            with self.subTest(packing=packing):
                self.traces(*(data_parallel_step(rank, 2) for rank in range(2)), packing=packing)
                read = self.imported("traces")
                self.assertEqual(read["operations"], {"all_reduce": 4, "compute": 10})
                self.assertEqual(read["bytes"], {"all_reduce": 4 * 4 * MIB})
                self.assertEqual(read["ranks"], 2)
                found = self.run_imported()
                for path in (self.folder / "traces").iterdir():
                    path.unlink()
        self.assertEqual(self.executed, 14)
        for rank in range(2):
            self.assertEqual(found[rank, "forward_0"], (0, 20))
            self.assertEqual(found[rank, "backward_0"], (80, 120))
            first, second = self.reductions()
            self.assertEqual((first[0], second[0]), (80, first[1]))  # on one stream
            self.assertEqual(found[rank, "adam"], (second[1], second[1] + 30))

    def overlapping(self, wait):
        """A kernel runs beside an all-reduce of 4 MiB that took 30 us in the trace, and another one behind both; with
        `wait` the trace says that it waits."""
        for rank in range(2):
            trace = Trace(rank, 2)
            trace.kernel(100, 10, 10, "first")
            record = trace.record(12)
            trace.wait(NCCL, COMPUTE, record, 13)
            trace.collective("allreduce", MIB, 110, 30, 16)
            trace.kernel(110, 50, 20, "beside")
            record = trace.record(24)
            if wait:
                trace.wait(COMPUTE, NCCL, record, 26)
            trace.kernel(160, 5, 30, "behind")
            self.traces(trace)

    def test_overlap_as_the_network_decides(self):
        """400 Gb/s take more than 83 us for 4 MiB: longer than the kernel beside it. Without a wait nobody waits."""
        self.overlapping(wait=False)
        self.imported("traces")
        self.assertEqual(self.run_imported()[0, "behind"], (60, 65))
        self.overlapping(wait=True)
        self.imported("traces")
        found = self.run_imported()
        (start, end), = self.reductions()
        self.assertEqual(start, 10)
        self.assertGreater(end, 93)
        self.assertAlmostEqual(found[0, "behind"][0], end, 6)

    def test_overlap_as_traced(self):
        """The all-reduce had ended before the last kernel began: it does here, too."""
        self.overlapping(wait=False)
        self.assertEqual(self.imported("traces", "--overlap", "traced")["experiment"], "out.yaml")
        found = self.run_imported()
        (_, end), = self.reductions()
        self.assertEqual(found[0, "behind"], (end, end + 5))

    def test_a_wait_that_is_not_recorded_shows(self):
        """Without recorded waits and with --overlap network: a stream that was idle until a communication ended
        waited."""
        for rank in range(2):
            trace = Trace(rank, 2)
            trace.kernel(100, 10, 10, "first")
            trace.collective("allreduce", MIB, 110, 90, 16)
            trace.kernel(200, 5, 20, "behind")
            self.traces(trace)
        self.imported("traces", "--overlap", "network")
        found = self.run_imported()
        (start, end), = self.reductions()
        self.assertEqual((start, found[1, "behind"]), (10, (end, end + 5)))

    def test_groups_of_the_same_ranks(self):
        """Data parallelism and experts of all ranks, and of two of them: their collectives are on two streams and begin
        in another order on rank 1, because the calls of each group alone have an order. All begin 10 us after the
        first kernel began, and sends of both groups find the receives of their own group."""
        for ranks in ([0, 1], [0, 1, 2]):
            world = len(ranks)
            for rank in ranks:
                trace = Trace(rank, world, {"dp": [0, 1], "ep": [0, 1]})
                trace.kernel(100, 10, 10, "first")
                later = (115, 112) if rank == 1 else (112, 115)
                if rank < 2:
                    trace.collective("_reduce_scatter_base", 2 * MIB, later[0], 30, 16, 20, "ReduceScatter_Sum_bf16",
                                     out=MIB, dtype="BFloat16", group="dp")
                    trace.collective("alltoall_base", MIB, later[1], 30, 20, 24, "SendRecv", dtype="BFloat16",
                                     group="ep")
                    kind, end = ("send", "Dst Rank") if rank == 0 else ("recv", "Src Rank")
                    for at, group in enumerate(("dp", "ep") if rank == 0 else ("ep", "dp")):
                        trace.collective(kind, 100 if group == "dp" else 200, 160 + 10 * at, 5, 30 + 5 * at, 28 + at,
                                         "SendRecv", group=group, **{end: 1 - rank})
                self.traces(trace)
            read = self.imported("traces", "--overlap", "network")
            self.assertEqual(read["bytes"], {"reduce_scatter": 2 * 4 * MIB, "all_to_all": 2 * 2 * MIB, "send": 1200,
                                             "recv": 1200})
            self.run_imported()
            self.assertEqual([start for start, _ in self.reductions()], [10, 10])

    def test_the_host_is_late(self):
        """The second kernel is launched 40 us after the first one had ended; the host's way to it counts from the
        beginning, so that a longer first kernel hides it."""
        trace = Trace(0, 1)
        trace.kernel(100, 10, 95, "first")
        trace.kernel(156, 10, 150, "second")
        self.traces(trace)
        read = self.imported("traces")
        self.assertEqual(read["operations"], {"compute": 2, "host": 1})
        found = self.run_imported()
        self.assertEqual((found[0, "launch second"], found[0, "second"]), ((0, 56), (56, 66)))
        # The device computes for 20 us, and is idle for 46 us while the host is on its way.
        ranks = table(self.folder / "out.h5", "ranks")
        self.assertEqual([ranks[name][0] / 1e6 for name in ("compute", "host", "part_host", "part_idle")], [20, 56, 46, 0])
        self.imported("traces", "--host", "none")
        self.assertEqual(self.run_imported()[0, "second"], (10, 20))

    def test_the_host_is_late_on_other_accelerators(self):
        """Kineto names calls of the runtime by the accelerator: xpu_runtime, mlu_runtime, privateuse1_driver."""
        for kind in ("xpu_runtime", "xpu_driver", "mlu_runtime", "privateuse1_driver"):
            trace = Trace()
            trace.kernel(100, 20, 10, "first")
            trace.kernel(400, 10, 395, "late")
            path = trace.write(self.folder / "traces")
            path.write_text(path.read_text().replace("cuda_runtime", kind))
            self.imported("traces", "--overlap", "network")
            self.assertEqual(self.run_imported()[0, "late"], (300, 310), kind)

    def test_the_host_waits_for_the_accelerator(self):
        """cudaStreamSynchronize returns when the all-reduce is done; 20 us later comes the next launch: whatever the
        network takes, the kernel starts 25 us behind its end."""
        for rank in range(2):
            trace = Trace(rank, 2)
            trace.kernel(100, 10, 90, "first")
            trace.collective("allreduce", MIB, 110, 50, 96)
            trace.call("cudaStreamSynchronize", 110, 50)
            trace.kernel(185, 10, 180, "second")
            self.traces(trace)
        self.imported("traces")
        found = self.run_imported()
        (_, end), = self.reductions()
        self.assertAlmostEqual(found[0, "second"][0], end + 25, 6)

    def test_the_host_waits_for_one_stream(self):
        """cuda_sync says for which: not for the all-reduce, though that had ended, too. The kernel comes 15 us behind
        the end of the long one on the stream."""
        for rank in range(2):
            trace = Trace(rank, 2)
            trace.kernel(100, 10, 90, "first")
            trace.collective("allreduce", MIB, 110, 10, 96)
            trace.kernel(110, 20, 98, "long")
            trace.wait(NCCL, COMPUTE, 1, 99)
            correlation = trace.call("cudaStreamSynchronize", 112, 20)
            trace.add("cuda_sync", "Stream Sync", 112, 20, 0, COMPUTE, stream=COMPUTE, device=0, context=1,
                      cuda_sync_kind="Stream Sync", correlation=correlation)
            trace.kernel(145, 10, 140, "second")
            self.traces(trace)
        self.assertEqual(self.imported("traces")["overlap"], "network")
        self.assertEqual(self.run_imported()[0, "second"], (45, 55))

    def test_the_host_waits_for_a_copy(self):
        """Reading a number, as loss.item(), copies it to pageable memory, and on AMD's accelerators with hipMemcpyWithStream:
        the call returns when the copy is done, 165 us, which waits for the all-reduce; 20 us after the copy starts the next
        kernel, whether the network takes less than the traced 50 us, or more. A copy to pinned memory does not keep the host:
        the kernel is launched at its time, 180 us, if the copy is done by then."""
        for call, copy, waits in (("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", True),
                                  ("hipMemcpyWithStream", "Memcpy DtoH (Device -> Host)", True),
                                  ("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)", False)):
            for elements in (256, 8 * MIB):
                for rank in range(2):
                    trace = Trace(rank, 2)
                    trace.kernel(100, 10, 90, "first")
                    trace.collective("allreduce", elements, 110, 50, 96)
                    trace.wait(COMPUTE, NCCL, trace.record(110), 111)
                    number = trace.call(call, 112, 58 if waits else 2)
                    trace.add("gpu_memcpy", copy, 160, 5, 0, COMPUTE, stream=COMPUTE, device=0, correlation=number)
                    trace.kernel(185, 10, 180, "second")
                    self.traces(trace)
                self.imported("traces")
                found = self.run_imported()
                (_, end), = self.reductions()
                self.assertAlmostEqual(found[0, copy][0], end, 6)
                self.assertAlmostEqual(found[0, "second"][0], end + 25 if waits else max(end + 5, 85), 6)

    def test_fingerprint_on_several_processes(self):
        self.traces(*(data_parallel_step(rank, 4, slow=1 + rank / 10) for rank in range(4)))
        self.imported("traces")
        self.run_imported()
        alone = self.summary["fingerprint"]
        for ranks in (2, 3, 4, 8):
            self.run_imported(ranks=ranks)
            self.assertEqual(self.summary["fingerprint"], alone)


if __name__ == "__main__":
    unittest.main()
