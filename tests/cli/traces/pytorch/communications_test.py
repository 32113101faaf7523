# SPDX-License-Identifier: GPL-2.0-only
"""`weft import pytorch`: collectives and messages, by the parameters that traces have of them (record_param_comms), beside the
kernels that carry them."""

# Time limit: 600 s

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from kineto_files import NCCL, Trace
from pytorch_testing import MIB, REDUCE, PytorchTest


class Communications(PytorchTest):
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

    def test_exchanges_of_tokens_by_other_kernels(self):
        """Of NCCL EP, whose names begin as NCCL's, TensorRT-LLM, DeepEP's hybrid kernels, UCCL and Iris: each a fifth."""
        names = ("nccl_ep::dispatch_kernel", "tensorrt_llm::kernels::moe_alltoall::moeA2ADispatchKernel", "hybrid_ep::combine_kernel",
                 "uccl::internode::combine", "iris_stage_kernel")
        trace = Trace(0, 1)
        for at, name in enumerate(names):
            trace.kernel(100 + 10 * at, 10, 10 + at, f"void {name}<8>(int*)")
        self.traces(trace)
        said, = self.imported("traces")["refused"]
        for name in names:
            self.assertIn(f"{name} (1 times, 20 %)", said["what"])

    def test_calls_that_no_kernel_executes(self):
        """Of Gloo, oneCCL, or copy engines: the trace has the call of the host, and no kernel of NCCL. They are listed; calls of
        a kind that NCCL executes elsewhere are not, since a profile may end between a call and its kernel."""
        for rank in range(2):
            trace = Trace(rank, 2)
            trace.kernel(100, 50, 10, "gemm")
            trace.collective("allreduce", MIB, 150, 60, 14)
            for external, name, out in ((8, "_allgather_base", 2 * MIB), (9, "allreduce", MIB)):
                trace.add("cpu_op", "record_param_comms", 20 + external, 1, 1, 1000,
                          **{"External id": external, "Record function id": external, **trace.parameters(name, MIB, out=out)})
            trace.kernel(210, 10, 40, "adam")
            self.traces(trace)
        read = self.imported("traces")
        self.assertEqual(read["operations"], {"all_reduce": 2, "compute": 4})
        self.assertEqual([one["what"] for one in read["refused"]], [
            "calls that the host has made, and no kernel of NCCL or RCCL executes, are left out, as those of Gloo, oneCCL or copy "
            "engines: all_gather (2 times)"])

    def test_elements_of_four_bits(self):
        """Two in a byte, which is an element of PyTorch (c10/core/ScalarType.h)."""
        for rank in range(2):
            trace = Trace(rank, 2)
            trace.collective("allreduce", 1000, 150, 60, 14, dtype="Float4_e2m1fn_x2")
            self.traces(trace)
        self.assertEqual(self.imported("traces")["bytes"], {"all_reduce": 2 * 1000})

    def test_groups_without_names(self):
        """Before PyTorch 2.3 calls have no name of their group, and its first rank and stride, or its size alone. Rows, columns
        and all ranks of two by two were taken to be one group."""
        for known in (True, False):
            for rank in range(4):
                trace = Trace(rank, 4, {"1": [rank // 2 * 2, rank // 2 * 2 + 1], "2": [rank % 2, rank % 2 + 2]})
                for at, group in enumerate("120"):
                    trace.collective("allreduce", 1000 * (at + 1), 150 + 30 * at, 20, 30 + 30 * at, group=group)
                for event in trace.events:
                    arguments = event["args"]
                    if "Process Group Name" in arguments:
                        ranks = json.loads(arguments.pop("Process Group Ranks"))
                        for key in ("Process Group Name", "Process Group Description", "Rank"):
                            del arguments[key]
                        if known:
                            arguments.update({"Global rank start": ranks[0], "Global rank stride": ranks[1] - ranks[0]})
                path = trace.write(self.folder / "traces")
                head, _, rest = path.read_text().partition('"distributedInfo"')
                path.write_text(head + '"displayTimeUnit"' + rest.partition('"displayTimeUnit"')[2])
            if known:
                self.assertEqual(self.imported("traces")["bytes"], {"all_reduce": 4 * 6 * 4000})
                groups = json.loads((self.folder / "out.groups.json").read_text())
                self.assertEqual(sorted(groups.values()), [[0, 1], [0, 2], [1, 3], [2, 3]])
                self.run_imported()
            else:
                self.refused("traces", says=["process group '2 ranks' is not known"])

    def test_numbers_of_calls_that_repeat(self):
        """Two calls have one External id, as of two threads: each kernel is one of them, and not both the first."""
        for rank in range(2):
            trace = Trace(rank, 2)
            for at, elements in enumerate((1000, 2000)):
                trace.add("cpu_op", "record_param_comms", 20 + 10 * at, 5, 1, 1000,
                          **{"External id": 1, "Record function id": at, **trace.parameters("allreduce", elements)})
                trace.kernel(100 + 50 * at, 20, 22 + 10 * at, REDUCE, NCCL, **{"External id": 1})
            self.traces(trace)
        self.assertEqual(self.imported("traces")["bytes"], {"all_reduce": 2 * 4 * 3000})

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

    def test_what_nccl_kernels_do_has_to_be_said(self):
        trace = Trace(0, 1)
        trace.kernel(100, 20, 90, REDUCE, NCCL)
        self.traces(trace)
        self.refused("traces", says=[r"rank0.json:\d+: the kernel 'ncclDevKernel_AllReduce", "record_param_comms"])


if __name__ == "__main__":
    unittest.main()
