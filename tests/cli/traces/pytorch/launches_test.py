# SPDX-License-Identifier: GPL-2.0-only
"""`weft import pytorch`: launches that are not one for each kernel: traces of ROCm, which do not number all of them, calls of
NCCL that need several kernels, and graphs of the driver, which are one launch of many."""

# Time limit: 600 s

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from kineto_files import COMPUTE, NCCL, Trace, data_parallel_step
from pytorch_testing import MIB, REDUCE, PytorchTest

RCCL = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
SIDE = 21  # a stream
OF_GRAPH = {"graph id": 3, "graph node id": 12884901891}


class Launches(PytorchTest):
    def rewritten(self, trace, change):
        """Writes a trace whose events have been changed."""
        for event in trace.events:
            change(event)
        self.traces(trace)

    def test_a_run_lasts_as_long_as_the_trace(self):
        """Ten GEMMs on an MI300X, each of two kernels, as evals/unit_tests/gemm/gemm_01_compute_few_tiles_analysis_output/
        gemm_01_compute_few_tiles.json of github.com/AMD-AGI/TraceLens has them: (microseconds of launch, start, duration),
        with "External id" alone. The launches run ahead of the accelerator, which is never idle."""
        first = ((3163, 3177, 1085), (3181, 4267, 1085), (3192, 5357, 1083), (3202, 6445, 1085), (3212, 7535, 1082),
                 (3222, 8622, 1086), (3232, 9713, 1084), (3253, 10801, 1084), (3263, 11890, 1085), (3273, 12979, 1084))
        second = ((3168, 4262, 5), (3184, 5352, 5), (3194, 6440, 5), (3204, 7530, 5), (3214, 8617, 5), (3224, 9708, 5),
                  (3235, 10797, 4), (3255, 11885, 5), (3266, 12975, 4), (3276, 14063, 4))
        trace = Trace()
        for pair in zip(first, second):
            for at, (launch, start, took) in enumerate(pair):
                number = trace.call("hipExtModuleLaunchKernel", 1771536568900000 + launch, 2)
                trace.events[-1]["args"] = {"External id": number, "stream": "0x0", "Kernel": f"Cijk_{at}"}
                trace.add("kernel", f"Cijk_{at}", 1771536568900000 + start, took, 2, 0, **{"External id": number})
        number = trace.call("hipDeviceSynchronize", 1771536568903305, 10787)
        trace.events[-1]["args"] = {"External id": number}
        self.traces(trace)
        read = self.imported("traces")
        self.assertEqual((read["traced_seconds"], read["operations"]), ((14063 + 4 - 3177) / 1e6, {"compute": 20}))
        self.run_imported()
        self.assertEqual(self.summary["simulated_time_ps"], (14063 + 4 - 3177) * 10**6)

    def test_events_of_rocm_without_correlation(self):
        """They have as "External id" the number that accelerator and runtime share, which is no operator's, and their stream
        and device as thread and process: the calls of record_param_comms have the same numbers, by chance, in another order.
        The run is that of the trace with all numbers."""
        runs = []
        for rocm in (False, True):
            for rank in range(2):
                trace = data_parallel_step(rank, 2, waits=False)
                # Bytes of the two buckets differ.
                trace.events = [json.loads(json.dumps(event)) for event in trace.events]
                comms = [event for event in trace.events if "Collective name" in event["args"]]
                for event, elements in zip(comms, (1000, 1000, 9000, 9000)):
                    event["args"]["In msg nelems"] = event["args"]["Out msg nelems"] = elements

                first, last = [one["args"]["correlation"] for one in trace.events if one["name"].startswith("nccl")]

                def change(event):
                    arguments = event["args"]
                    if event["name"] == "record_param_comms":
                        arguments["External id"] = last if arguments["External id"] == 1 else first
                    elif event["cat"] == "kernel":
                        event["args"] = {"External id": arguments["correlation"]}
                    else:
                        event["args"] = {"External id": arguments["correlation"], "stream": "0x0"}

                self.rewritten(trace, change if rocm else lambda event: None)
            read = self.imported("traces")
            self.assertEqual(read["bytes"], {"all_reduce": 2 * 4 * 10000})
            found = self.run_imported()
            runs.append((self.summary["simulated_time_ps"], found[0, "adam"], self.reductions()))
        self.assertEqual(*runs)

    def rccl_step(self, rank, known):
        """Two all-reduces of other bytes; with `known` their kernels have the number of their launch, and no matter what,
        the call of the runtime names the kernel, as ROCm's does."""
        trace = Trace(rank, 2)
        for at, elements in enumerate((1000, 5000)):
            trace.external += 1
            trace.add("cpu_op", "record_param_comms", 20 + 40 * at, 10, 1, 1000,
                      **{"External id": trace.external, **trace.parameters("allreduce", elements)})
            correlation = trace.kernel(100 + 100 * at, 50, 22 + 40 * at, RCCL, NCCL)
            for event in trace.events:
                if event["args"].get("correlation") == correlation and event["cat"] == "cuda_runtime":
                    event["name"], event["args"]["kernel"] = "hipExtLaunchKernel", RCCL
                elif event["args"].get("correlation") == correlation and not known:
                    event["args"]["correlation"] = 0
            trace.kernel(150 + 100 * at, 5, 40 + 40 * at, "gemm")
        return trace

    def test_kernels_of_rccl_without_the_number_of_their_launch(self):
        """ROCm 6.1 writes 0 (github.com/ROCm/roctracer/issues/100): the kernels are in the order of the launches
        that name them."""
        runs = []
        for known in (True, False):
            self.traces(*(self.rccl_step(rank, known) for rank in range(2)))
            read = self.imported("traces")
            self.assertEqual(read["bytes"], {"all_reduce": 2 * 4 * 6000})
            self.run_imported()
            runs.append((self.summary["simulated_time_ps"], self.reductions()))
        self.assertEqual(*runs)
        self.assertIn("in the order of launches (2 times)", " ".join(one["what"] for one in read["ignored"]))

    def test_more_kernels_of_rccl_than_launches(self):
        """Nothing says which kernel belongs to which call, and the message says what can be done."""
        for rank in range(2):
            trace = self.rccl_step(rank, False)
            trace.add("kernel", RCCL, 300, 10, 0, NCCL, stream=NCCL, device=0, correlation=0)
            self.traces(trace)
        self.refused("traces", says=[r"rank0.json:\d+: the kernel 'ncclDevKernel_Generic", "--unknown-calls compute"])

    def test_a_call_of_several_kernels(self):
        """NCCL divides what one kernel has no room for among several, one after another (src/enqueue.cc, ncclLaunchPrepare):
        all of them have the number of the one call, or are launched within it. Its bytes count once, and what follows waits
        for all of it."""
        for linked in (True, False):
            for rank in range(2):
                trace = Trace(rank, 2)
                trace.external += 1
                parameters = trace.parameters("all_to_all", MIB)
                trace.add("cpu_op", "record_param_comms", 20, 30, 1, 1000, **{"External id": 1, **parameters})
                for at in range(3):
                    trace.kernel(100 + 20 * at, 20, 22 + 5 * at, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                                 NCCL, **({"External id": 1, **parameters} if linked else {}))
                trace.kernel(160, 5, 60, "behind", NCCL)
                self.traces(trace)
            read = self.imported("traces")
            self.assertEqual((read["operations"]["all_to_all"], read["bytes"]), (2, {"all_to_all": 2 * 4 * MIB}))
            found = self.run_imported()
            self.assertEqual(found[0, "behind"][0], self.reductions()[0][1])

    def test_several_kernels_of_a_call_that_the_kernels_name(self):
        """Traces of the accelerator alone have no record_param_comms."""
        for rank in range(2):
            trace = Trace(rank, 2)
            for call, (start, elements) in enumerate(((100, 1000), (200, 3000))):
                for at in range(2):
                    trace.kernel(start + 20 * at, 20, start - 50 + at, REDUCE, NCCL,
                                 **{"External id": 7 + call, **trace.parameters("allreduce", elements)})
            self.traces(trace)
        self.assertEqual(self.imported("traces")["bytes"], {"all_reduce": 2 * 4 * 4000})

    def graph(self, trace, launch, kernels):
        """A replay: one launch; `kernels` are (name, start, duration, stream)."""
        correlation = trace.call("cudaGraphLaunch", launch, 4)
        for name, start, duration, stream in kernels:
            trace.add("kernel", name, start, duration, 0, stream, stream=stream, device=0, correlation=correlation, **OF_GRAPH)

    def graph_step(self, rank, slow=1.0):
        """After a GEMM comes a graph with a fork and a join: `left` and `right` after `fork`, `join` after both, `loose` from
        its beginning; and behind it a kernel. Streams have waits (for the all-reduce), but none of the graph."""
        trace = Trace(rank, 2)
        trace.kernel(100, 10, 10, "before")
        self.graph(trace, 16, [("fork", 110, 10, COMPUTE), ("loose", 110, 60, SIDE + 1), ("left", 120, 10, COMPUTE),
                               ("right", 120, 30, SIDE), ("join", 150, 10, COMPUTE)])
        trace.kernel(170, 10, 30, "behind")
        record = trace.record(34)
        trace.wait(NCCL, COMPUTE, record, 36)
        trace.collective("allreduce", 1024, 180, 10, 40)
        for event in trace.events:
            if event["name"] == "before":
                event["dur"] *= slow
        return trace

    def test_a_graph_of_several_streams(self):
        """The order within a graph is that of the trace, also if the run only keeps waits of the program; the host, which
        has launched the graph once, is not late for its kernels."""
        self.traces(*(self.graph_step(rank) for rank in range(2)))
        for overlap in ("network", "traced"):
            read = self.imported("traces", "--overlap", overlap)
            self.assertNotIn("host", read["operations"])
            found = self.run_imported()
            self.assertEqual({name: found[0, name] for name in ("before", "fork", "loose", "left", "right", "join", "behind")},
                             {"before": (0, 10), "fork": (10, 20), "loose": (10, 70), "left": (20, 30), "right": (20, 50),
                              "join": (50, 60), "behind": (70, 80)})
            self.assertEqual(self.reductions()[0][0], 80)

    def test_collectives_of_a_graph(self):
        """Nothing says what they send. With --unknown-calls compute they take their traced time, and `refused` says so."""
        for rank in range(2):
            trace = Trace(rank, 2)
            self.graph(trace, 16, [("gemm", 100, 10, COMPUTE), (REDUCE, 110, 25, NCCL), ("gemm", 135, 10, COMPUTE)])
            trace.collective("allreduce", 1024, 145, 10, 40)
            self.traces(trace)
        self.refused("traces", says=[r"rank0.json:\d+: the kernel 'ncclDevKernel_AllReduce", "CUDA graph",
                                     "--unknown-calls compute"])
        read = self.imported("traces", "--unknown-calls", "compute")
        self.assertEqual(read["operations"], {"all_reduce": 2, "compute": 6})
        self.assertRegex(read["refused"][0]["what"], r"count as compute .*\(2 times, 50.000 us altogether\)")
        self.run_imported()
        self.assertEqual(self.reductions()[0][0], 45)


if __name__ == "__main__":
    unittest.main()
