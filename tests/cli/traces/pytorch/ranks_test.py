# SPDX-License-Identifier: GPL-2.0-only
"""`weft import pytorch`: which ranks and steps traces are of, and ranks that stand for others (--fill symmetric)."""

# Time limit: 600 s

import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from kineto_files import Trace, data_parallel_step
from pytorch_testing import MIB, PytorchTest
from weft_testing import table


class Ranks(PytorchTest):
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
        path.write_bytes(whole[:1] + whole)
        self.refused("traces", says=[r"of ranks \[2\] there is no trace.*\(neither a trace of torch.profiler nor an execution trace: "
                                     r"rank2.json.gz, settings.json\)"])

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
        rows = table(self.folder / "out.h5", "collectives")
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

    def test_traces_of_two_jobs(self):
        self.traces(data_parallel_step(0, 2), data_parallel_step(1, 4))
        for words in ((), ("--fill", "symmetric")):
            self.refused("traces", *words, says=[r"rank1.json: it is of a job of 4 ranks, and traces/rank0.json of one of 2"])

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

    def cut_trace(self, form):
        """Of rank 0 of 256, without distributedInfo: a group of every fourth rank, whose list is written by `form`."""
        trace = Trace(0, 256, {"5": list(range(0, 256, 4))})
        trace.collective("allreduce", 1000, 150, 20, 30, group="5")
        head, _, rest = trace.text().partition('"distributedInfo"')
        text = head + '"displayTimeUnit"' + rest.partition('"displayTimeUnit"')[2]
        listed = ", ".join(map(str, range(0, 256, 4)))
        self.assertIn(listed, text)
        (self.folder / "traces").mkdir(exist_ok=True)
        (self.folder / "traces" / "rank0.json").write_text(text.replace(f"[{listed}]", form))

    def test_lists_of_ranks_that_have_been_cut_short(self):
        """29 ranks and the last one, as saveNcclMeta writes them, are at one distance; of 30 alone the rest is not known. The
        group of 64 was taken to be all 256 ranks."""
        words = ["traces", "--fill", "symmetric", "--ranks", "256"]
        first = [str(4 * at) for at in range(30)]
        self.cut_trace(f"[{', '.join(first[:29])}, ..., 252]")
        self.assertEqual(self.imported(*words)["operations"], {"all_reduce": 256})
        groups = json.loads((self.folder / "out.groups.json").read_text())
        self.assertEqual(sorted(groups.values()), [list(range(at, 256, 4)) for at in range(4)])
        for form in (f"[{', '.join(first)}, ...]", f"[{', '.join(first[:29])}, ..., 255]"):
            self.cut_trace(form)
            self.refused(*words, says=["process group '5' is not known: .*cuts lists of more than 30 short"])
        # All ranks of a job of 64.
        self.assertEqual(self.imported("traces", "--fill", "symmetric")["operations"], {"all_reduce": 64})

    def test_groups_of_traces_on_demand(self):
        """Kineto writes distributedInfo behind the events then, from the calls: the ranks are a text, which may have been cut
        short (addOnDemandDistMetadata)."""
        first = ", ".join(str(4 * at) for at in range(29))
        trace = Trace(0, 256, {"5": [4 * at for at in range(64)]})
        trace.collective("allreduce", 1024, 100, 10, 90, group="5", **{"Process Group Ranks": ""})
        path = trace.write(self.folder / "traces")
        whole = json.loads(path.read_text())
        whole["distributedInfo"] = {"backend": "nccl", "rank": 0, "world_size": 256, "pg_count": 1, "pg_config": [
            {"pg_name": "5", "pg_desc": "fsdp", "backend_config": "cuda:nccl", "pg_size": 64, "ranks": f"[{first}, ..., 252]"}],
            "nccl_version": "unknown"}
        whole["distributedInfo"] = whole.pop("distributedInfo")
        path.write_text(json.dumps(whole, indent=1))
        self.assertEqual(self.imported("traces", "--fill", "symmetric")["operations"], {"all_reduce": 256})
        groups = json.loads((self.folder / "out.groups.json").read_text())
        self.assertEqual(sorted(groups.values()), [list(range(at, 256, 4)) for at in range(4)])

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


if __name__ == "__main__":
    unittest.main()
