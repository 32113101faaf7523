# SPDX-License-Identifier: GPL-2.0-only
"""`weft import pytorch`: traces written by Kineto's rules with times set by hand (tests/kineto_files.py), and execution
traces. What has to come out is derived here from the events."""

# Time limit: 600 s

import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import unittest
from decimal import Decimal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import hlo_files
import nsys_files
import onnx_files
import weft_testing
from import_testing import ImportTest
from kineto_files import COMPUTE, NCCL, Trace, data_parallel_step
from weft_testing import SOURCE, table

MIB = 1 << 20
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class Pytorch(ImportTest):
    FORMAT = "pytorch"

    def traces(self, *traces, **options):
        for trace in traces:
            trace.write(self.folder / "traces", **options)

    # Order and time

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

    def reductions(self):
        rows = weft_testing.table(self.folder / "out.h5", "collectives")
        return sorted((start / 10**6, end / 10**6) for start, end in zip(rows["start"], rows["end"]))

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

    def test_fingerprint_on_several_processes(self):
        self.traces(*(data_parallel_step(rank, 4, slow=1 + rank / 10) for rank in range(4)))
        self.imported("traces")
        self.run_imported()
        alone = self.summary["fingerprint"]
        for ranks in (2, 3, 4, 8):
            self.run_imported(ranks=ranks)
            self.assertEqual(self.summary["fingerprint"], alone)

    # Communications

    def test_kinds_and_groups(self):
        """Bytes that each rank contributes, by the elements of the input; the groups' ranks are in the events."""
        groups = {"1": [[0, 1], [2, 3]], "2": [[0, 2], [1, 3]]}
        for rank in range(4):
            own = {name: next(one for one in lists if rank in one) for name, lists in groups.items()}
            trace = Trace(rank, 4, own)
            now = 100
            for name, group, more in (("allreduce", "0", {}), ("_allgather_base", "1", {"out": 2048}),
                                      ("_reduce_scatter_base", "2", {"out": 512}), ("broadcast", "1", {}),
                                      ("all_to_all", "2", {}), ("allreduce_coalesced", "1", {"dtype": "BFloat16"}),
                                      ("barrier", "0", {})):
                kernel = {"_allgather_base": "AllGather_RING_LL", "all_to_all": "SendRecv",
                          "broadcast": "Broadcast_RING_LL",
                          "_reduce_scatter_base": "ReduceScatter_Sum_f32_RING_LL"}.get(name,
                                                                                       "AllReduce_Sum_f32_RING_LL")
                trace.collective(name, 1024, now, 10, now - 50, group=group, kernel=kernel,
                                 **({"Rank": 0} if name == "broadcast" else {}), **more)
                now += 20
            self.traces(trace)
        read = self.imported("traces")
        self.assertEqual(read["operations"], {"all_reduce": 8, "all_gather": 4, "reduce_scatter": 4, "broadcast": 4,
                                              "all_to_all": 4, "barrier": 4})
        self.assertEqual(read["call_bytes"], {"all_reduce": 4 * (4096 + 2048), "all_gather": 4 * 4096,
                                              "all_to_all": 4 * 4096, "reduce_scatter": 4 * 4096,
                                              "broadcast": 4 * 4096, "barrier": 0})
        self.run_imported()

    def test_uneven_all_to_all(self):
        """Rows to each rank become bytes to each rank; each kernel on the stream waits for all of them."""
        rows = [[1, 5, 2], [0, 2, 4], [3, 3, 0]]
        for rank in range(3):
            trace = Trace(rank, 3)
            out = [rows[i][rank] for i in range(3)]
            trace.collective("all_to_allv", 1024 * sum(rows[rank]), 100, 50, 90, kernel="SendRecv", out=1024 * sum(out),
                             **{"In split size": str(rows[rank]), "Out split size": str(out)})
            trace.collective("allreduce", 1024, 150, 10, 96)
            self.traces(trace)
        read = self.imported("traces")
        due = sorted(4096 * rows[i][j] for i in range(3) for j in range(3) if i != j and rows[i][j])
        self.assertEqual(read["operations"]["send"], len(due))
        self.assertEqual(read["sent_bytes"]["send"], sum(due))
        self.assertEqual(read["call_bytes"]["all_to_all"], 4096 * sum(map(sum, rows)))
        found = self.run_imported()
        done = [max(end for (owner, label),
                    (_, end) in found.items() if owner == rank and (" to " in label or " from " in label))
                for rank in range(3)]
        self.assertEqual(self.reductions()[0][0], min(done))

    def test_sends_and_receives_in_one_kernel(self):
        """batch_isend_irecv: record_param_comms of each, and one kernel for all."""
        for rank in range(2):
            trace = Trace(rank, 2)
            for name, key in (("send", "Dst Rank"), ("recv", "Src Rank")):
                trace.external += 1
                parameters = trace.parameters(name, 2048, **{key: 1 - rank, "Rank": 1 - rank})
                trace.add("cpu_op", "record_param_comms", 50, 1, 1, 1000,
                          **{"External id": trace.external, **parameters})
            trace.kernel(100, 20, 60, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", NCCL)
            trace.kernel(100, 20, 64, "beside")
            self.traces(trace)
        read = self.imported("traces")
        self.assertEqual((read["operations"]["send"], read["operations"]["recv"], read["sent_bytes"]["send"]),
                         (2, 2, 2 * 8192))
        self.run_imported()

    def test_groups_start_in_another_order_than_they_were_launched(self):
        """Two groups of messages on two streams: the one that is launched second starts first, and keeps its own calls:
        what follows it does not wait for the other group's. RCCL's kernel, and NCCL's generic one, do not say what they do;
        some profilers number the threads of the host differently in launches and calls."""
        for kernel, thread in (("SendRecv", 1000), ("Generic_1", 1000), ("Generic_4", 1000), ("SendRecv", 7)):
            for rank in range(2):
                trace = Trace(rank, 2, {"a": [0, 1], "b": [0, 1]})
                for group, elements, launch, start, stream in (("a", 10 * MIB, 10, 100, 20), ("b", 30, 20, 50, 21)):
                    for at, (name, key) in enumerate((("send", "Dst Rank"), ("recv", "Src Rank"))):
                        trace.external += 1
                        parameters = trace.parameters(name, elements, group=group, **{key: 1 - rank})
                        trace.add("cpu_op", "record_param_comms", launch - 3 + at, 0.5, 1, thread,
                                  **{"External id": trace.external, **parameters})
                    trace.kernel(start, 20, launch, f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)", stream)
                trace.kernel(160, 5, 40, "behind b", 21)
                self.traces(trace)
            read = self.imported("traces", "--overlap", "network", "--host", "none")
            self.assertEqual((read["operations"]["send"], read["operations"]["recv"], read["sent_bytes"]["send"]),
                             (4, 4, 2 * 4 * (10 * MIB + 30)))
            # 40 MiB take more than 800 us at 400 Gb/s, and 120 B no time like that.
            self.assertLess(self.run_imported()[0, "behind b"][0], 100)

    def test_the_other_end_of_a_message_that_is_not_said(self):
        """Traces without ranks of messages: in a group of two it is the other member, and in a larger one an error."""
        def sends(size):
            for rank in range(2):
                trace = Trace(rank, size)
                trace.external += 1
                parameters = trace.parameters("recv" if rank else "send", 2048)
                del parameters["Rank"]
                trace.add("cpu_op", "record_param_comms", 50, 1, 1, 1000,
                          **{"External id": trace.external, **parameters})
                trace.kernel(100, 20, 60, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", NCCL)
                self.traces(trace)
            for rank in range(2, size):
                trace = Trace(rank, size)
                trace.kernel(100, 20, 60, "gemm")
                self.traces(trace)
        sends(2)
        read = self.imported("traces")
        self.assertEqual((read["operations"]["send"], read["operations"]["recv"], read["sent_bytes"]["send"]),
                         (1, 1, 8192))
        self.run_imported()
        sends(3)
        self.refused("traces", says=[r"rank0.json:\d+: 'ncclDevKernel_SendRecv.*': a send whose other end is not said"])

    def test_collectives_in_one_kernel(self):
        """A coalescing manager: record_param_comms of each, and one of "coalesced" that launches their kernel."""
        for rank in range(2):
            trace = Trace(rank, 2)
            for at, elements in enumerate((1000, 3000)):
                trace.external += 1
                trace.add("cpu_op", "record_param_comms", 50 + at, 0.5, 1, 1000,
                          **{"External id": trace.external, **trace.parameters("_allgather_base", elements,
                                                                               out=2 * elements)})
            trace.collective("coalesced", 0, 100, 20, 60, kernel="AllGather_RING_LL")
            trace.collective("_allgather_base", 500, 120, 20, 66, out=1000, kernel="AllGather_RING_LL")
            self.traces(trace)
        read = self.imported("traces")
        self.assertEqual((read["operations"]["all_gather"], read["call_bytes"]), (6, {"all_gather": 2 * 4 * 4500}))
        self.run_imported()

    def test_an_execution_trace_beside_says_what_kineto_does_not(self):
        """Traces before PyTorch 2.2 have record_param_comms without members; rf_id is their Record function id."""
        for rank in range(2):
            trace = Trace(rank, 2)
            trace.external = 41
            trace.add("cpu_op", "record_param_comms", 88, 5, 1, 1000, **{"External id": 41, "Record function id": 77})
            trace.kernel(100, 20, 90, REDUCE, NCCL, **{"External id": 41})
            self.traces(trace)
            self.execution(rank,
                           [("record_param_comms", [[[1, 2, 0, 3000, 4, f"cuda:{rank}"]], 5, ["0", "default_pg"], rank,
                                                         "allreduce", [], [], 0, 1, 2], 77)])
        self.assertEqual(self.imported("traces")["bytes"], {"all_reduce": 2 * 12000})

    def test_splits_that_kineto_cuts_short(self):
        """saveNcclMeta writes the first 30 splits and "...": an execution trace beside has them. Rank r of 32 sends
        r + 1 rows of 100 floats to each rank, so that 31 x (1 + ... + 32) x 400 B are sent."""
        world = 32
        for rank in range(world):
            out = [i + 1 for i in range(world)]
            trace = Trace(rank, world)
            trace.external = 40
            cut = ", ".join
            splits = {"In split size": f"[{cut([str(rank + 1)] * 30)}, ...]",
                      "Out split size": f"[{cut(map(str, out[:30]))}, ...]"}
            trace.collective("all_to_allv", 100 * (rank + 1) * world, 100, 50, 90, kernel="SendRecv",
                             out=100 * sum(out), **splits)
            self.traces(trace)
        self.refused("traces", says=[r"rank0.json:\d+: 'ncclDevKernel_SendRecv", "cut short", "execution traces"])
        for rank in range(world):
            tensors = [[[1, 2, 0, 100 * (rank + 1) * world, 4, f"cuda:{rank}"]]]
            self.execution(rank, [("record_param_comms", [*tensors, 5, ["0", "default_pg"], rank, "all_to_allv",
                                                          [rank + 1] * world, [i + 1 for i in range(world)], 0, 1,
                                                          world], 41, [[1, 2, 0, 100 * sum(out), 4, f"cuda:{rank}"]])])
        read = self.imported("traces")
        self.assertEqual((read["operations"]["send"], read["sent_bytes"]["send"]),
                         (world * 31, 31 * 400 * sum(range(1, 33))))

    # Ranks

    def test_one_step_of_several(self):
        """Kernels run up to 450 us after their launch, those of the last launches of a step when the next one has begun:
        step 5 + s has a kernel of 100 + s us and an all-reduce of 1,000 (s + 1) floats, in both of two ranks."""
        for rank in range(2):
            trace = Trace(rank, 2)
            for step in range(3):
                begin = 1000 * step
                trace.add("user_annotation", f"ProfilerStep#{5 + step}", begin, 1000, 1, 1000)
                trace.kernel(begin + 500, 100 + step, begin + 50)
                trace.collective("allreduce", 1000 * (step + 1), begin + 1050, 100, begin + 600)
            self.traces(trace)
        for step in range(3):
            read = self.imported("traces", "--step", str(5 + step))
            self.assertEqual(read["operations"], {"all_reduce": 2, "compute": 2})
            self.assertEqual(read["bytes"], {"all_reduce": 2 * 4 * 1000 * (step + 1)})
            self.assertAlmostEqual(read["compute_seconds"], 2 * (100 + step) * 1e-6, delta=1e-12)
        self.assertEqual(self.imported("traces")["operations"], {"all_reduce": 6, "compute": 6})
        self.refused("traces", "--step", "8", says=[r"rank0\.json: there is no ProfilerStep#8; steps of the trace: 5, 6, 7"])

    def test_ranks_that_were_not_traced(self):
        self.traces(data_parallel_step(1, 4))
        self.refused("traces", says=[r"of ranks \[0, 2, 3\] there is no trace", "--fill symmetric"])
        read = self.imported("traces", "--fill", "symmetric")
        self.assertEqual((read["ranks"], read["traced_ranks"], read["operations"]["all_reduce"]), (4, [1], 8))
        self.run_imported()
        self.assertEqual(self.executed, 4 * 7)

    def test_a_damaged_file_among_others(self):
        """It is not taken for a rank that was not traced. A file of another kind is left out, and listed."""
        self.traces(*(data_parallel_step(rank, 4) for rank in range(4)), packing="gz")
        path = self.folder / "traces" / "rank2.json.gz"
        whole = path.read_bytes()
        for content, says in ((whole[:len(whole) // 2], "damaged"), (whole[:20], "damaged"), (b"", "empty")):
            path.write_bytes(content)
            self.refused("traces", "--fill", "symmetric", says=[rf"traces/rank2.json.gz: it is {says}"])
        path.write_bytes(whole)
        (self.folder / "traces" / "settings.json").write_text('{"batch": 8}')
        read = self.imported("traces")
        self.assertEqual(read["traced_ranks"], [0, 1, 2, 3])
        self.assertIn("settings.json", str(read["ignored"]))

    def pipeline(self, rank):
        """Of 8 ranks with 2 of tensor, 2 of data and 2 of pipeline parallelism, in this order: the first stage computes 100
        us and sends, the second one receives and computes 50 us; both reduce among tensor and data ranks."""
        trace = Trace(rank, 8, {"tp": [rank // 2 * 2, rank // 2 * 2 + 1],
                                "dp": [rank // 4 * 4 + rank % 2, rank // 4 * 4 + rank % 2 + 2],
                                "pp": [rank % 4, rank % 4 + 4]})
        stage, other = rank // 4, (rank + 4) % 8
        message = [("send", {"Dst Rank": other}) if stage == 0 else ("recv", {"Src Rank": other})]
        trace.kernel(100, 100 - 50 * stage, 10, f"stage {stage}")
        trace.collective("allreduce", 1000, 210, 10, 20, 21, group="tp")
        for name, end in message:
            trace.collective(name, 3000, 230, 10, 30, 22, "SendRecv", group="pp", **end)
        trace.collective("allreduce", 2000 + stage, 250, 10, 40, 23, group="dp")
        return trace

    def test_a_rank_of_each_stage(self):
        """Ranks 0 and 5 stand for all: ranks 1 to 3 do what 0 does, 4, 6 and 7 what 5 does, and each sends to the rank
        in its own pipeline. The run is that of eight traces, to the last picosecond."""
        fingerprints = []
        for traced in (range(8), (0, 5)):
            self.traces(*(self.pipeline(rank) for rank in traced))
            read = self.imported("traces", "--fill", "symmetric")
            self.assertEqual(read["operations"], {"compute": 8, "all_reduce": 16, "send": 4, "recv": 4})
            self.assertEqual(read["sent_bytes"]["send"], 4 * 12000)
            found = self.run_imported()
            self.assertEqual([f"stage {rank // 4}" for rank in range(8)],
                             [label for rank in range(8) for owner, label in sorted(found) if owner == rank and
                              label.startswith("stage")])
            fingerprints.append(self.summary["fingerprint"])
            for path in (self.folder / "traces").iterdir():
                path.unlink()
        self.assertEqual(*fingerprints)
        self.traces(self.pipeline(0))
        self.refused("traces", "--fill", "symmetric", says=["rank0.json: --fill symmetric: no traced rank is in the place "
                                                            "of rank 4 in the process group 'pp'", "each stage"])

    def test_symmetric_groups_are_rows_and_columns(self):
        """Of rank 5 of 8: pairs of neighbours, and every second one of four."""
        trace = Trace(5, 8, {"tp": [4, 5], "dp": [1, 3, 5, 7]})
        trace.collective("allreduce", 1024, 100, 10, 90, group="tp")
        trace.collective("allreduce", 2048, 120, 10, 92, group="dp")
        self.traces(trace)
        self.imported("traces", "--fill", "symmetric")
        self.run_imported()
        rows = weft_testing.table(self.folder / "out.h5", "collectives")
        self.assertEqual(sorted(map(int, rows["bytes"])), [4096] * 4 + [8192] * 2)
        trace.groups["odd"] = [0, 5, 6]
        self.traces(trace)
        self.imported("traces", "--fill", "symmetric")  # no operation uses it
        trace.collective("allreduce", 1024, 140, 10, 94, group="odd")
        self.traces(trace)
        self.refused("traces", "--fill", "symmetric", says=["process group 'odd'", "no row or column"])

    def step_of_a_mesh(self, rank, axes, naming):
        """A step of a rank of a job whose axes are (name, size), that of the neighbours last, as DeviceMesh makes its
        groups: numbered over all rows of all axes ('numbers'), or of one name each. Ranks of data parallelism have the
        same shards of gradients and weights, those of a pipeline pass on messages; a norm is summed among all ranks of a
        model (Megatron's group of tensor and pipeline ranks), gradients of embeddings between the first and the last
        stage, and a loss among all."""
        world, strides, groups = 1, {}, {}
        for name, size in reversed(axes):
            strides[name] = world
            world *= size
        number = 0
        for name, size in axes:
            rows = sorted({rank - rank // strides[name] % size * strides[name] for rank in range(world)})
            for first in rows:
                number += 1
                members = [first + strides[name] * i for i in range(size)]
                if rank in members:
                    groups[name] = (str(number) if naming == "numbers" else name, members)
        if {"pp", "tp"} <= groups.keys():
            first = groups["pp"][1].index(rank)
            model = [other for other in range(world) if all(other // strides[name] % size == rank // strides[name] % size
                                                            for name, size in axes if name not in ("pp", "tp"))]
            groups["mp"] = (str(number + 1 + model[0]) if naming == "numbers" else "mp", model)
            ends = [groups["pp"][1][0], groups["pp"][1][-1]]
            if rank in ends:
                groups["embedding"] = (str(1000 + ends[0]) if naming == "numbers" else "embedding", ends)
        trace = Trace(rank, world, dict(groups.values()))
        trace.kernel(100, 20, 10, "forward")
        now, launch = 120, 20

        def collective(axis, name, elements, kernel, stream, **more):
            nonlocal now, launch
            trace.collective(name, elements, now, 10, launch, stream, kernel, group=groups[axis][0] if axis else "0", **more)
            now, launch = now + 10, launch + 6

        if "tp" in groups:
            collective("tp", "allreduce", 4096, "AllReduce_Sum_f32_RING_LL", 21)
        if "ep" in groups:
            collective("ep", "alltoall_base", 65536, "SendRecv", 23)
        if "pp" in groups:
            stages = groups["pp"][1]
            at = stages.index(rank)
            if at:
                collective("pp", "recv", 3000, "SendRecv", 22, **{"Src Rank": stages[at - 1]})
            trace.kernel(now, 40 + at, launch, "stage")
            now, launch = now + 40 + at, launch + 6
            if at + 1 < len(stages):
                collective("pp", "send", 3000, "SendRecv", 22, **{"Dst Rank": stages[at + 1]})
        if "embedding" in groups:
            collective("embedding", "allreduce", 5000, "AllReduce_Sum_f32_RING_LL", 24)
        replicas = len(groups["dp"][1])
        collective("dp", "_reduce_scatter_base", MIB, "ReduceScatter_Sum_f32_RING_LL", 20, out=MIB // replicas)
        collective("dp", "_allgather_base", MIB // replicas, "AllGather_RING_LL", 20, out=MIB)
        if "mp" in groups:
            collective("mp", "allreduce", 1, "AllReduce_Sum_f32_RING_LL", 25)
        collective(None, "allreduce", 1, "AllReduce_Sum_f32_RING_LL", 20)
        trace.kernel(now, 30, launch, "adam")
        return trace

    def test_one_server_of_eight_was_traced(self):
        """The groups are those of 64 ranks: the run is that of 64 traces, to the last picosecond. Of a pipeline over
        servers one server of each stage was traced."""
        server = range(8)
        for axes, traced in (((("dp", 64),), server), ((("dp", 8), ("tp", 8)), server), ((("dp", 16), ("tp", 4)), server),
                             ((("dp", 4), ("tp", 16)), server), ((("dp", 4), ("ep", 2), ("tp", 8)), server),
                             ((("dp", 8), ("pp", 4), ("tp", 2)), server),
                             ((("pp", 4), ("dp", 2), ("tp", 8)), [*range(8), *range(16, 24), *range(32, 40),
                                                                  *range(48, 56)])):
            fingerprints = []
            for ranks, naming in ((range(64), "numbers"), (traced, "numbers"), (traced, "names")):
                with self.subTest(axes=axes, traced=len(ranks), naming=naming):
                    self.traces(*(self.step_of_a_mesh(rank, axes, naming) for rank in ranks))
                    read = self.imported("traces", "--fill", "symmetric")
                    self.assertEqual((read["ranks"], read["traced_ranks"]), (64, list(ranks)))
                    self.run_imported()
                    fingerprints.append(self.summary["fingerprint"])
                    for path in (self.folder / "traces").iterdir():
                        path.unlink()
            self.assertEqual(fingerprints, [fingerprints[0]] * 3, axes)

    def test_a_server_stands_for_the_others(self):
        """Of 4 ranks two were traced, of which the second one computes longer: the third does what the first does, and
        the fourth what the second does."""
        self.traces(*(data_parallel_step(rank, 4, slow=1 + rank) for rank in range(2)))
        self.imported("traces", "--fill", "symmetric")
        found = self.run_imported()
        self.assertEqual([found[rank, "forward_0"] for rank in range(4)], [(0, 20), (0, 40)] * 2)

    def test_ranks_that_the_job_does_not_have(self):
        """Its groups would not grow: eight ranks would be two jobs of four."""
        self.traces(data_parallel_step(0, 4))
        self.refused("traces", "--fill", "symmetric", "--ranks", "8", says=[
            "rank0.json: it is of a job of 4 ranks, whose groups and bytes it has; expected --ranks 4, or no --ranks"])
        self.imported("traces", "--fill", "symmetric", "--ranks", "4")

    def test_sizes_of_groups_say_how_many_ranks_there_are(self):
        """Without distributedInfo, and with lists of ranks that saveNcclMeta has cut short."""
        trace = Trace(0, 64, {"7": list(range(64))})
        trace.collective("allreduce", 1024, 100, 10, 90, group="7")
        text = re.sub(r'"distributedInfo": .*?"2.21.5"}, ', "", trace.text())
        self.assertNotIn("distributedInfo", text)
        (self.folder / "traces").mkdir()
        (self.folder / "traces" / "rank0.json").write_text(
            re.sub(r'"Process Group Ranks": "[^"]*"', '"Process Group Ranks": "[0, 1, 2, ...]"', text))
        read = self.imported("traces", "--fill", "symmetric")
        self.assertEqual((read["ranks"], read["operations"]), (64, {"all_reduce": 64}))

    def test_kernels_that_communicate_by_themselves(self):
        """They count as compute, and the import says so, with their names and their share of the time of all kernels: 30,
        10 and 5 us of 100 us; NCCL's and others are not listed."""
        trace = Trace(0, 1)
        trace.kernel(100, 15, 10, "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, int)")
        trace.kernel(115, 15, 12, "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, int)")
        trace.kernel(130, 10, 14, "void deep_ep::internode::dispatch<false, 8, false>(int4*, float*)")
        trace.kernel(140, 35, 16, "void gemm<all_reduce>(int)")
        trace.kernel(175, 5, 18, "Memcpy PtoP (Device -> Device)", kind="gpu_memcpy")
        trace.collective("allreduce", 1024, 180, 20, 20)
        self.traces(trace)
        said, = self.imported("traces")["refused"]
        self.assertEqual(said["what"], "kernels and copies communicate without NCCL, and count as compute with their traced "
                         "times, which no network changes: 45 % of the accelerators' time; vllm::cross_device_reduce_1stage "
                         "(2 times, 30 %), deep_ep::internode::dispatch (1 times, 10 %), Memcpy PtoP (1 times, 5 %)")
        self.assertIn("cross_device_reduce_1stage", (self.folder / "out.yaml").read_text())

    def test_rccl_calls_some_kernels_msccl(self):
        """They are its all-reduces, and no compute."""
        for rank in range(2):
            trace = Trace(rank, 2)
            trace.external += 1
            parameters = trace.parameters("allreduce", 1024)
            trace.add("cpu_op", "record_param_comms", 88, 5, 1, 1000, **{"External id": 1, **parameters})
            trace.kernel(100, 20, 90, "mscclKernel_Sum_half_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)", NCCL,
                         **{"External id": 1})
            self.traces(trace)
        self.assertEqual(self.imported("traces")["operations"], {"all_reduce": 2})

    def test_ranks_that_do_not_do_the_same(self):
        one, two = data_parallel_step(0, 2), data_parallel_step(1, 2)
        two.collective("allreduce", 77, 600, 10, 550)
        self.traces(one, two)
        self.refused("traces", says=[r"^weft: traces/rank0.json: rank 0 makes 2 calls in the group \[0, 1\], and "
                                     r"rank 1 \(traces/rank1.json\) 3: "])
        self.traces(data_parallel_step(0, 2, buckets=1), data_parallel_step(1, 2))
        self.refused("traces", says=[r"^weft: traces/rank0.json: rank 0 makes 1 call in the group \[0, 1\], and "])
        three = data_parallel_step(1, 2)
        for event in three.events:
            if event["args"].get("In msg nelems"):
                event["args"]["In msg nelems"] += 1
        self.traces(one, three)
        self.refused("traces", says=[r"traces/rank1.json:\d+: call 0 of the group \[0, 1\] is all_reduce of 4194308 B",
                                     "4194304 B on rank 0"])
        ranks = [data_parallel_step(rank, 3) for rank in range(3)]
        for trace, size in zip(ranks[1:], (77, 78)):
            trace.collective("allreduce", size, 600, 10, 550)
        self.traces(*ranks)
        self.refused("traces", says=["call 2 of .* is all_reduce of 312 B on rank 2, and all_reduce of 308 B on rank 1 "])

    def test_names_of_files(self):
        for name in ("rank7.json", "worker_7.pt.trace.json"):
            trace = data_parallel_step(0, 2)
            text = trace.text().replace('"rank": 0, ', "", 1)
            (self.folder / "traces").mkdir(exist_ok=True)
            (self.folder / "traces" / name).write_text(text)
            self.refused(f"traces/{name}", says=["is of rank 7, and the job has ranks 0 to 1|there is no trace"])

    # The host alone

    def test_the_clock_of_a_trace_is_of_its_own(self):
        """Times since 1970, as older versions write them, or since years, change nothing."""
        def moved(by):
            lines = []
            for line in data_parallel_step(0, 1).text().split("\n"):
                found = re.search(r'"ts": ([0-9.]+)', line)
                lines.append(line.replace(found.group(), f'"ts": {by + Decimal(found.group(1))}') if found else line)
            return "\n".join(lines)

        (self.folder / "traces").mkdir()
        contents = set()
        for by in (Decimal(0), Decimal("5215175130088.848"), Decimal(1712667379482786), Decimal("-130.000001")):
            (self.folder / "traces" / "rank0.json").write_text(moved(by))
            self.imported("traces")
            contents.add((self.folder / "out.1ranks.0.et").read_bytes())
        self.assertEqual(len(contents), 1)

    def test_a_byte_order_mark(self):
        path = data_parallel_step(0, 1).write(self.folder / "traces")
        path.write_text(f"\ufeff{path.read_text()}", encoding="utf-8")
        self.assertEqual(self.imported("traces")["operations"], {"all_reduce": 2, "compute": 5})

    def test_traces_without_operations(self):
        folder = self.folder / "traces"
        folder.mkdir()
        (folder / "rank0.json").write_text('{"traceEvents":[]}')
        self.refused("traces", says=["^weft: traces/rank0.json: no rank has an operation; expected kernels, operators"])
        # One of two ranks may be idle.
        for rank in range(2):
            trace = Trace(rank, 2)
            if rank:
                trace.kernel(100, 10, 90)
            self.traces(trace)
        self.assertEqual(self.imported("traces")["operations"], {"compute": 1})
        (folder / "rank1.json").unlink()
        (folder / "rank0.json").write_text('{"schema": "1.1.1", "nodes": [\n{"id": 1, "name": "x", "ctrl_deps": 0}]}')
        self.refused("traces", says=["^weft: traces/rank0.json: no rank has an operation"])

    def test_sizes_that_cannot_be(self):
        """They have the line of their event."""
        rows = {"In split size": f"[{1 << 62}, 1]", "Out split size": f"[{1 << 62}, 1]"}
        for name, elements, more, says in (
                ("allreduce", -4, {}, "'In msg nelems' is -4; expected 0 or more"),
                ("allreduce", 1.5, {}, "'In msg nelems' is 1.5; expected a whole number"),
                ("allreduce", 1 << 62, {}, rf"'nccl.*': all_reduce of {1 << 64} bytes; expected 0 to 2\^63 - 1"),
                ("all_to_allv", 1024, {"In split size": "[512.5, 511.5]", "Out split size": "[512, 512]"},
                 r"all_to_allv: found .*512.5.*; expected whole numbers"),
                ("all_to_allv", 1024, {"In split size": "[512, 512]", "Out split size": [512, 512.5]},
                 r"all_to_allv: found .*512.5.*; expected whole numbers"),
                ("all_to_allv", 1 << 62, rows, r"'nccl.*': \d+ bytes to or from one rank; expected 0 to 2\^63 - 1")):
            with self.subTest(says):
                trace = Trace(0, 2)
                trace.collective(name, elements, 100, 10, 90, **more)
                self.traces(trace, data_parallel_step(1, 2))
                self.refused("traces", says=[rf"^weft: traces/rank0.json:\d+: {says}"])

    def test_times_far_from_each_other(self):
        trace = data_parallel_step(0, 1)
        path = trace.write(self.folder / "traces")
        text = path.read_text()
        for old, new, says in (
                ('"ts": 100.0', '"ts": 1712667379482786.5',
                 r"rank0.json:\d+: 'ts' is 1712667379482786.5; expected microseconds, less than 53 days "
                 "from the 10 of the first event"),
                ('"ts": 100.0', '"ts": 1e99', r"rank0.json:\d+: 'ts' is 1E\+99; expected microseconds\n"),
                ('"ts": 100.0', '"ts": "NaN"', r"rank0.json:\d+: 'ts' is 'NaN'; expected microseconds\n"),
                ('"dur": 20.0', '"dur": 1712667379482786.5',
                 r"rank0.json:\d+: 'dur' is 1712667379482786.5; expected 0 or more"),
                ('"correlation": 1}', '"correlation": 1.5e30}', "'correlation' is 1.5E[+]30; expected a whole number")):
            with self.subTest(new):
                self.assertIn(old, text)
                path.write_text(text.replace(old, new, 1))
                self.refused("traces", says=[says])

    def test_operators_of_the_host_alone(self):
        """They finish, with gloo's all-reduce between them."""
        for rank in range(2):
            trace = Trace(rank, 2)
            trace.add("cpu_op", "aten::mm", 100, 30, 1, 1000)
            trace.add("cpu_op", "aten::resize_", 105, 5, 1, 1000)  # within the other one
            trace.add("cpu_op", "record_param_comms", 140, 25, 1, 1000, **trace.parameters("allreduce", 1024))
            trace.add("cpu_op", "aten::add", 170, 10, 1, 1000)
            self.traces(trace)
        self.imported("traces")
        found = self.run_imported()
        (start, end), = self.reductions()
        self.assertEqual((found[0, "aten::mm"], start), ((0, 30), 40))
        self.assertEqual(found[0, "aten::add"], (end + 5, end + 15))

    def execution(self, rank, operators):
        """An execution trace of (name, inputs, rf_id)."""
        nodes = [{"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1,
                  "inputs": {"values": [], "shapes": [], "types": []}, "outputs": {"values": [], "shapes": [],
                                                                                   "types": []},
                  "attrs": [{"name": "rf_id", "type": "uint64", "value": 0}]}]
        for at, (name, inputs, record, *outputs) in enumerate(operators):
            shapes = [[] for _ in inputs]
            nodes.append({"id": 10 + at, "name": name, "ctrl_deps": 2,
                          "inputs": {"values": inputs, "shapes": shapes, "types": ["Tensor(float)" for _ in inputs]},
                          "outputs": {"values": outputs, "shapes": [], "types": []},
                          "attrs": [{"name": "rf_id", "type": "uint64", "value": record}]})
        folder = self.folder / "traces"
        folder.mkdir(exist_ok=True)
        text = json.dumps({"schema": "1.0.2-chakra.0.0.4", "pid": 1, "time": "2026-01-01 00:00:00", "start_ts": 1,
                           "nodes": nodes, "finish_ts": 2}, indent=1)
        (folder / f"host_{rank}.json").write_text(text)

    def test_execution_traces_alone(self):
        """Leaves that run on the accelerator, in the order of their ids; a wait keeps what follows behind its
        collective."""
        for rank in range(2):
            device = f"cuda:{rank}"
            tensor = [[1, 2, 0, 1 << 20, 4, device], [3, 4, 0, 1 << 20, 4, device], [5, 6, 0, 1 << 20, 4, device]]
            self.execution(rank, [
                ("aten::relu", [tensor[0]], 1, tensor[1]),
                ("aten::view", [tensor[1]], 2, [7, 4, 0, 1 << 20, 4, device]),
                ("record_param_comms", [[tensor[1]], 9, ["0", "default_pg"], rank, "allreduce", [], [], 0, 1, 2], 3),
                ("record_param_comms", [9, ["", ""], rank, "wait", [], [], -1, -1, 1], 4),
                ("aten::add", [tensor[1], tensor[0]], 5, tensor[2])])
        read = self.imported("traces", "--device", "h100")
        self.assertEqual(read["operations"], {"all_reduce": 2, "compute": 4})
        self.assertEqual(read["bytes"], {"all_reduce": 2 * 4 * MIB})
        found = self.run_imported()
        (start, end), = self.reductions()
        # 8 and 12 MiB at the 3.35 TB/s of the H100's data sheet.
        self.assertAlmostEqual(start, 8 * MIB / 3.35e12 * 1e6, 3)
        self.assertAlmostEqual(found[0, "aten::add"][1], end + 12 * MIB / 3.35e12 * 1e6, 3)
        self.imported("traces")
        self.run_imported()

    def test_execution_traces_of_the_host_alone(self):
        self.execution(0, [("aten::add", [[1, 2, 0, 8, 4, "cpu"]], 1, [3, 4, 0, 8, 4, "cpu"])])
        self.imported("traces")
        self.run_imported()

    def test_ready_made_inputs(self):
        """The files of workloads/traces are the output of the tests' generators."""
        folder = SOURCE / "workloads" / "traces"
        for rank in range(2):
            self.assertEqual((folder / "pytorch" / f"rank{rank}.json").read_text(), data_parallel_step(rank, 2).text())
        self.assertEqual((folder / "step.hlo").read_text(), hlo_files.STEP)
        self.assertEqual((folder / "attention.onnx").read_bytes(), onnx_files.attention(16, 32))
        nsys_files.two_gpus().write(self.folder / "report.sqlite")
        first, second = (sqlite3.connect(path) for path in (folder / "two_gpus.sqlite", self.folder / "report.sqlite"))
        self.assertEqual(list(first.iterdump()), list(second.iterdump()))
        first.close()
        second.close()

    # Damage

    def test_damage(self):
        text = data_parallel_step(0, 1).text()
        lines = text.split("\n")
        (self.folder / "traces").mkdir()
        path = self.folder / "traces" / "rank0.json"
        for what, content, says in (
                ("cut", text[:900], r"rank0.json:\d+: .*(ends|cut off)"),
                ("no JSON", "\n".join([*lines[:4], "{oops}", *lines[5:]]), r"rank0.json:5: no JSON"),
                ("time", text.replace('"ts": 10,', '"ts": "soon",', 1).replace('"ts": 10.0,', '"ts": "soon",', 1),
                 r"rank0.json:\d+: 'ts' is 'soon'"),
                ("negative", text.replace('"dur": 20.0', '"dur": -20.0', 1), r"rank0.json:\d+: 'dur' is -20"),
                ("tail", text + "{", "after the end"),
                ("ranks", text.replace('"ranks": [0]', '"ranks": [null]'),
                 r"rank0.json:\d+: ranks of a process group: found \[None\]; expected whole numbers"),
                ("type", text.replace('"dtype": "Float"', '"dtype": "Flout"'), r"'dtype' is 'Flout'"),
                ("size", text.replace(f'"In msg nelems": {MIB}', f'"In msg nelems": {1 << 62}'), r"2\^63")):
            with self.subTest(what):
                self.assertNotEqual(content, text)
                path.write_text(content)
                self.refused("traces", says=[says])
        path.write_text('{"schema": "1.1", "nodes": [\n{"id": 1, "name": "a", "ctrl_deps": 0},\n{"id": 1, "name": '
                        '"b"}]}')
        self.refused("traces", says=["node 1: another node has this id"])
        self.execution(0, [("record_param_comms", [[[1, 2, 0, 8, 4, "cuda:0"]], 9, ["0", "default_pg"], 0, "all_to_allv",
                                                   [4, None], [4, 4], 0, 1, 2], 3, [[3, 4, 0, 8, 4, "cuda:0"]])])
        path.unlink()
        self.refused("traces", says=[r"node 10: all_to_allv: found \[4, None\]; expected whole numbers"])

    def test_what_nccl_kernels_do_has_to_be_said(self):
        trace = Trace(0, 1)
        trace.kernel(100, 20, 90, REDUCE, NCCL)
        self.traces(trace)
        self.refused("traces", says=[r"rank0.json:\d+: the kernel 'ncclDevKernel_AllReduce", "record_param_comms"])

    def test_memory_does_not_grow_with_the_trace(self):
        """Four times the events: at most 8 MiB more. (Of 12,000 to 192,000 kernels the peak rose from 29 to 36 MB.)"""
        peaks = []
        for steps in (15000, 60000):
            path = self.folder / f"rank0_{steps}.json"
            lines = ['{"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": [']
            for at in range(steps):
                lines.append(json.dumps({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1,
                                         "tid": 1, "ts": at * 10, "dur": 2, "args": {"correlation": at}}) + ",")
            for at in reversed(range(steps)):
                lines.append(json.dumps({"ph": "X", "cat": "kernel", "name": f"kernel_{at % 50}", "pid": 0, "tid": 7,
                                         "ts": at * 10 + 50, "dur": 10,
                                         "args": {"stream": 7, "device": 0, "correlation": at}})
                             + ("," if at else ""))
            path.write_text("\n".join([*lines, "]}"]))
            program = ("import sys; sys.path.insert(0, sys.argv[1]); from importing.command import import_command; "
                       "import_command(['pytorch', sys.argv[2], '-o', sys.argv[3], '--for-run']); "
                       "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))")
            done = subprocess.run([sys.executable, "-c", program, str(SOURCE / "scripts"), str(path),
                                   str(self.folder / "big.yaml")], capture_output=True, text=True, check=True)
            peaks.append(int(done.stdout.split()[-1]))
        self.assertLess(peaks[1], peaks[0] + 8192, peaks)


if __name__ == "__main__":
    unittest.main()
