# SPDX-License-Identifier: GPL-2.0-only
"""`weft import nsys`: SQLite files by the documented schema (tests/nsys_files.py), with times set by hand."""

# Time limit: 300 s

import pathlib
import random
import sqlite3
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
import weft_testing
from import_testing import ImportTest
from frameworks import nccl_splits
from nsys_files import COLLECTIVE, INIT, MESSAGE, SPLIT, Report, two_gpus

MIB = 1 << 20
WORLD = 0xCAFE0001


def kernel_of(kind):
    return f"ncclDevKernel_{kind}(ncclDevKernelArgsStorage<4096ul>)"


class Nsys(ImportTest):
    FORMAT = "nsys"

    def write_report(self, report, name="report.sqlite"):
        return report.write(self.folder / name).name

    def test_two_gpus_of_one_report(self):
        """Payloads in binary form and as JSON; the streams' waits are events' (CUDA_EVENT and SYNCHRONIZATION)."""
        for binary in (True, False):
            with self.subTest(binary=binary):
                read = self.imported(self.write_report(two_gpus(binary)))
                self.assertEqual(read["operations"], {"all_reduce": 2, "compute": 6})
                self.assertEqual(read["bytes"], {"all_reduce": 2 * 4 * MIB})
                self.assertEqual(read["overlap"], "network")
                found = self.run_imported()
                rows = weft_testing.table(self.folder / "out.h5", "collectives")
                start, end = rows["start"][0] / 10**6, rows["end"][0] / 10**6
                self.assertEqual((start, found[0, "backward"]), (50, (50, 90)))
                self.assertEqual(found[1, "adam"], (end, end + 10))

    def test_ranks_are_those_of_the_communicator(self):
        """Process 0 is rank 1: only its kernel is longer."""
        report = two_gpus()
        report.kernel(0, 300, 70, 290, "of process 0")
        self.imported(self.write_report(report))
        self.assertIn((1, "of process 0"), self.run_imported())

    def test_one_report_for_each_process(self):
        for process in range(2):
            report = two_gpus()
            report.rows = [(table, row) for table, row in report.rows
                           if any(value in (report.pid(process), report.pid(process) | 7) for value in row)]
            self.write_report(report, f"part{process}.sqlite")
        read = self.imported("part0.sqlite", "part1.sqlite")
        self.assertEqual((read["ranks"], read["operations"]["all_reduce"]), (2, 2))
        self.refused("part0.sqlite", "--ranks", "2", says=["of ranks .* there is no trace"])
        self.assertEqual(self.imported("part0.sqlite", "--ranks", "2", "--fill", "symmetric")["ranks"], 2)

    def test_groups_sizes_and_messages(self):
        """Two calls within a group have one kernel; NCCL says the size of one part of a reduce-scatter; pairs have a
        communicator of their own."""
        report = Report()
        for process in range(4):
            pair, position = 0xBEE0 + process // 2, process % 2
            report.range(process, "ncclCommInitRank", 0, 1, INIT, WORLD, 4, process, process)
            report.range(process, "ncclCommInitRank", 2, 1, INIT, pair, 2, position, process)
            report.range(process, "ncclReduceScatter", 10, 2, COLLECTIVE, WORLD, MIB)
            report.kernel(process, 100, 10, 11, kernel_of("ReduceScatter_Sum_f32_RING_LL"), 20)
            report.range(process, "ncclSend", 20, 1, MESSAGE, pair, 4096, 1 - position)
            report.range(process, "ncclRecv", 22, 1, MESSAGE, pair, 4096, 1 - position)
            report.kernel(process, 120, 10, 25, kernel_of("SendRecv"), 20)
            report.range(process, "ncclAllReduce", 30, 1, COLLECTIVE, pair, 2048)
            report.range(process, "ncclAllReduce", 32, 1, COLLECTIVE, pair, 1024)
            report.kernel(process, 140, 10, 35, kernel_of("AllReduce_Sum_f32_RING_LL"), 20)
            report.kernel(process, 160, 5, 40, "last")
        read = self.imported(self.write_report(report))
        self.assertEqual(read["call_bytes"], {"all_reduce": 4 * 3072, "recv": 4 * 4096, "reduce_scatter": 4 * 4 * MIB,
                                              "send": 4 * 4096})
        self.assertEqual(read["operations"]["all_reduce"], 8)
        self.run_imported()

    def test_kernels_start_in_another_order_than_they_were_launched(self):
        """All-reduces of two communicators on two streams: the second one starts first, because the first one waits for
        a kernel. Each keeps its own bytes."""
        report = Report()
        for process in range(2):
            for comm in (WORLD, WORLD + 1):
                report.range(process, "ncclCommInitRank", 0, 5, INIT, comm, 2, process, process)
            for comm, size, launch, start, stream in ((WORLD, 40 * MIB, 20, 100, 20), (WORLD + 1, 1000, 30, 40, 21)):
                report.range(process, "ncclAllReduce", launch - 2, 5, COLLECTIVE, comm, size)
                report.kernel(process, start, 20, launch, kernel_of("AllReduce_Sum_bf16_RING_LL"), stream)
            report.kernel(process, 160, 5, 36, "behind the second", 21)
        read = self.imported(self.write_report(report), "--overlap", "network", "--host", "none")
        self.assertEqual(read["bytes"], {"all_reduce": 2 * (40 * MIB + 1000)})
        # 40 MiB take more than 800 us at 400 Gb/s.
        self.assertLess(self.run_imported()[0, "behind the second"][0], 100)

    def test_the_generic_kernel(self):
        """NCCL's kernel for what it has no other one (src/device/generate.py) does not say what it does: the range before it
        does."""
        report = Report()
        for process in range(2):
            report.range(process, "ncclCommInitRank", 0, 5, INIT, WORLD, 2, process, process)
            report.range(process, "ncclAllReduce", 18, 5, COLLECTIVE, WORLD, MIB)
            report.kernel(process, 100, 20, 20, "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 20)
        self.assertEqual(self.imported(self.write_report(report))["bytes"], {"all_reduce": 2 * MIB})

    def test_two_communicators_in_one_group(self):
        """ncclGroupEnd launches a kernel for each communicator, in the order of their first calls: two calls of the first
        one are in its kernel. Kernels may start in the other order."""
        for starts in ((100, 200), (200, 100)):
            report = Report()
            for process in range(2):
                for comm in (WORLD, WORLD + 1):
                    report.range(process, "ncclCommInitRank", 0, 5, INIT, comm, 2, process, process)
                for at, (comm, size) in enumerate(((WORLD, 40 * MIB), (WORLD + 1, 1000), (WORLD, MIB))):
                    report.range(process, "ncclAllReduce", 10 + 2 * at, 1, COLLECTIVE, comm, size)
                for at, (start, stream) in enumerate(zip(starts, (20, 21))):
                    report.kernel(process, start, 20, 20 + 2 * at, kernel_of("AllReduce_Sum_bf16_RING_LL"), stream)
                report.kernel(process, 250, 5, 40, "behind the second", 21)
            read = self.imported(self.write_report(report), "--overlap", "network", "--host", "none")
            self.assertEqual(read["bytes"], {"all_reduce": 2 * (41 * MIB + 1000)})
            # 40 MiB take more than 800 us at 400 Gb/s, and 1,000 B no time like that.
            self.assertLess(self.run_imported()[0, "behind the second"][0], 100)

    def test_a_second_communicator_of_all_has_its_own_order(self):
        """Rank 0 is the second one there, and sends to the first one, which is rank 1."""
        report = Report()
        for process in range(2):
            for comm, place in ((WORLD, process), (WORLD + 1, 1 - process)):
                report.range(process, "ncclCommInitRank", 0, 5, INIT, comm, 2, place, process)
            report.range(process, ("ncclSend", "ncclRecv")[process], 10, 1, MESSAGE, WORLD + 1, 4096, process)
            report.kernel(process, 20, 5, 12, kernel_of("SendRecv"), 20)
        read = self.imported(self.write_report(report))
        self.assertEqual(read["operations"], {"recv": 1, "send": 1})
        self.run_imported()
        self.assertEqual(weft_testing.table(self.folder / "out.h5", "messages")["destination"].tolist(), [1])

    def mesh(self, ranks, axes, created=True):
        """Reports of servers of four GPUs each: a step of all axes (name, size), neighbours last, of a job of 16 ranks, as
        PyTorch has communicators: numbers of 64 bits without an order."""
        for server in sorted({rank // 4 for rank in ranks}):
            report = Report()
            for process, rank in enumerate(range(4 * server, 4 * server + 4)):
                stride = 16
                communicators = [(WORLD, 16, rank)]
                for name, size in axes:
                    stride //= size
                    first = rank - rank // stride % size * stride
                    number = random.Random(f"{name} {first}").getrandbits(62)
                    communicators.append((2**62 + number, size, rank // stride % size))
                for at, (number, size, place) in enumerate(communicators):
                    if created:
                        report.range(process, "ncclCommInitRank", at, 1, INIT, number, size, place, process)
                    report.range(process, "ncclAllReduce", 50 + 10 * at, 1, COLLECTIVE, number, MIB + at)
                    report.kernel(process, 100 + 10 * at, 10, 52 + 10 * at, kernel_of("AllReduce_Sum_f32_RING_LL"), 20 + at)
            self.write_report(report, f"server{server}.sqlite")
        return [f"server{server}.sqlite" for server in sorted({rank // 4 for rank in ranks})]

    def test_one_of_four_servers(self):
        """The creation of communicators says how many ranks they have, and the places of the traced ones in which rows and
        columns these are: the run is that of all reports. Two servers tell what one does not."""
        for axes, traced in (((("dp", 4), ("tp", 4)), range(4)), ((("dp", 4), ("tp", 4)), range(8, 12)),
                             ((("dp", 16),), range(4)), ((("dp", 2), ("pp", 2), ("tp", 4)), (0, 4, 8, 12))):
            fingerprints = []
            for ranks in (range(16), traced):
                read = self.imported(*self.mesh(ranks, axes), "--fill", "symmetric")
                self.assertEqual((read["ranks"], read["operations"]["all_reduce"]), (16, 16 * (1 + len(axes))))
                self.run_imported()
                fingerprints.append(self.summary["fingerprint"])
            self.assertEqual(*fingerprints)
        self.refused(*self.mesh(range(4), (("dp", 4), ("tp", 4))), says=[r"of ranks \[4, 5, .* there is no trace"])
        self.refused(*self.mesh(range(4), (("dp", 2), ("pp", 2), ("tp", 4))), "--fill", "symmetric", says=[
            r"server0.sqlite: communicator \d+ has 2 of 16 ranks, and of these \[0\] were traced: several rows and columns"])
        self.refused(*self.mesh(range(4), (("dp", 4), ("tp", 4))), "--ranks", "8", says=["the job has 16 ranks or more"])

    def test_communicators_whose_creation_is_not_recorded(self):
        """A report of one server that begins later: a communicator that one GPU calls has others that are not known. One
        that all call is taken to have all ranks, and the import says so."""
        self.refused(*self.mesh(range(4), (("dp", 4), ("tp", 4)), created=False), "--ranks", "16", "--fill", "symmetric",
                     says=[r"one traced GPU calls communicator \d+, whose creation \(ncclCommInitRank\) is not in the report"])
        read = self.imported(*self.mesh(range(4), (), created=False), "--ranks", "16", "--fill", "symmetric")
        self.assertIn("are taken to have all 16 ranks", str(read["refused"]))

    def split_mesh(self, ranks, color_of, key_of, keeps_id=False, sends=True):
        """Reports of servers of four GPUs of a job of 16, whose communicators come from the second of three
        ncclCommSplit of that of all ranks; each rank may send 4 KiB to the member in front of it. NCCL writes the payload
        before the split itself, and so the id 0."""
        for server in sorted({rank // 4 for rank in ranks}):
            report = Report()
            for process, rank in enumerate(range(4 * server, 4 * server + 4)):
                report.range(process, "ncclCommInitRank", 0, 1, INIT, WORLD, 16, rank, process)
                members = [other for other in range(16) if color_of(other) == color_of(rank)]
                place = sorted(members, key=lambda other: (key_of(other), other)).index(rank)
                # eatHash and digestHash of NCCL: of the parent, of the number of the split, and of the color.
                child = dict(nccl_splits.hashes_of(WORLD, color_of(rank), 1))[2]
                for at, color in ((2, 77), (4, color_of(rank)), (6, 99)):
                    report.range(process, "ncclCommSplit", at, 1, SPLIT, child if keeps_id and color == color_of(rank) else 0,
                                 WORLD, 16, rank, process, color, key_of(rank))
                if sends:
                    report.range(process, "ncclSend", 20, 1, MESSAGE, child, 4096, (place - 1) % len(members))
                    report.range(process, "ncclRecv", 22, 1, MESSAGE, child, 4096, (place + 1) % len(members))
                    report.kernel(process, 120, 10, 25, kernel_of("SendRecv"), 20)
                report.range(process, "ncclAllReduce", 30, 1, COLLECTIVE, child, MIB)
                report.kernel(process, 140, 10, 35, kernel_of("AllReduce_Sum_f32_RING_LL"), 20)
            self.write_report(report, f"server{server}.sqlite")
        return [f"server{server}.sqlite" for server in sorted({rank // 4 for rank in ranks})]

    def sends(self):
        """{(source, destination)} of the messages that the run has sent."""
        rows = weft_testing.table(self.folder / "out.h5", "messages")
        return {(int(source), int(to)) for source, to, collective in
                zip(rows["source"], rows["destination"], rows["collective"]) if collective == -1}

    def test_the_hash_of_a_split(self):
        """An independent transcript of eatHash and digestHash (src/include/bitops.h of NCCL) for one case, step by step in
        64 bits: parent 1, split 1, color 0."""
        def times(a, b):
            return a * b % 2**64
        a = b = 1
        for value, size in ((1, 8), (1, 4), (0, 4)):
            a ^= size
            a = (a + b) % 2**64
            b = b ^ a
            a = times(a ^ a >> 31, 0x9de62bbc8cef3ce3)
            b = times(b ^ b >> 32, 0x485cd6311b599e79)
            a = (a + value) % 2**64
        digest = (times(a ^ a >> 31, 0xbac3bd562846de6b) + b) % 2**64
        digest = times(digest ^ digest >> 32, 0x995a187a14e7b445)
        self.assertEqual(next(nccl_splits.hashes_of(1, 0, 1)), (1, digest))

    def test_split_communicators(self):
        """ncclCommSplit orders the ranks of a color by their keys: with keys that fall, the member in front of a rank is the
        one that has the next higher number."""
        for keeps_id in (False, True):
            for key, step in ((lambda rank: rank, -1), (lambda rank: -rank, 1)):
                with self.subTest(keeps_id=keeps_id, step=step):
                    files = self.split_mesh(range(16), lambda rank: rank // 4, key, keeps_id)
                    self.assertEqual(self.imported(*files)["ranks"], 16)
                    self.run_imported()
                    self.assertEqual(self.sends(), {(rank, rank // 4 * 4 + (rank + step) % 4) for rank in range(16)})

    def test_split_communicators_of_one_server(self):
        """PyTorch's color is a hash of the ranks of the group, which says which ones they are, also those that were not
        traced. Any other color says nothing of them."""
        for group_of in (lambda rank: range(rank // 4 * 4, rank // 4 * 4 + 4), lambda rank: range(rank % 4, 16, 4),
                         lambda rank: range(rank // 8 * 8, rank // 8 * 8 + 8)):
            def color(rank):
                return abs(hash(tuple(group_of(rank)))) % 2**31
            fingerprints = []
            for traced in (range(16), range(4)):
                files = self.split_mesh(traced, color, lambda rank: list(group_of(rank)).index(rank), sends=False)
                read = self.imported(*files, "--fill", "symmetric")
                self.assertEqual((read["ranks"], read["operations"]["all_reduce"]), (16, 16))
                self.run_imported()
                fingerprints.append(self.summary["fingerprint"])
            self.assertEqual(*fingerprints)
        files = self.split_mesh(range(4), lambda rank: rank // 4, lambda rank: rank)
        self.refused(*files, "--fill", "symmetric", says=[
            r"communicator \d+ has the ranks that gave the color 0 to ncclCommSplit; of the 16 ranks of communicator "
            rf"{WORLD}, 4 were traced, and the others' colors are not in the report"])

    def test_creations_without_an_id(self):
        """Communicators created within a group, or without blocking, have the id 0 in their range: one of all four ranks,
        whose positions are those of the ranks, and then a pair. The report has two of the four GPUs."""
        report = Report()
        for process, rank in ((0, 3), (1, 2)):
            for at, (size, place) in enumerate(((4, rank), (2, process))):
                report.range(process, "ncclCommInitRankConfig", 2 * at, 1, INIT, 0, size, place, process)
            report.range(process, "ncclAllReduce", 30, 1, COLLECTIVE, WORLD, MIB)
            report.kernel(process, 140, 10, 35, kernel_of("AllReduce_Sum_f32_RING_LL"), 20)
            report.kernel(process, 160, 10, 40, f"of rank {rank}")
        self.refused(self.write_report(report), says=[r"of ranks \[0, 1\] there is no trace"])
        self.assertEqual(self.imported("report.sqlite", "--fill", "symmetric")["ranks"], 4)
        self.assertLessEqual({(2, "of rank 2"), (3, "of rank 3")}, set(self.run_imported()))

    def test_copies_between_gpus_are_listed(self):
        """CUPTI's kind of copy 10 is between two devices. It has 30 of 100 us, and a copy within the device is not
        listed."""
        report = Report()
        report.kernel(0, 100, 60, 90)
        path = self.folder / self.write_report(report)
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId "
                         "INTEGER, correlationId INTEGER, globalPid INTEGER, copyKind INTEGER)")
        for start, took, kind in ((200, 30, 10), (240, 10, 8)):
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, 0, 7, NULL, ?, ?)",
                             (start * 1000, (start + took) * 1000, report.pid(0), kind))
        database.commit()
        database.close()
        self.assertRegex(self.imported(path.name)["refused"][0]["what"], r"30 % of .*; memcpy PtoP \(1 times, 30 %\)$")

    def test_a_message_to_a_gpu_that_was_not_traced(self):
        report = Report()
        for process in range(2):
            report.range(process, "ncclSend", 20, 1, MESSAGE, WORLD, 4096, 2)
            report.kernel(process, 120, 10, 25, kernel_of("SendRecv"), 20)
        self.refused(self.write_report(report), says=[
            "a send whose other end is member 2 of a process group in which 2 ranks were traced; expected another rank"])

    def test_the_host_waits(self):
        report = Report()
        report.kernel(0, 100, 30, 90, "first")
        report.synchronize(0, 110, 130, 7)
        report.kernel(0, 160, 10, 150, "second")
        self.imported(self.write_report(report))
        self.assertEqual(self.run_imported()[0, "second"], (60, 70))

    def test_the_host_waits_for_a_copy(self):
        """A copy of 5 us to pageable memory, and one that is not asynchronous: the call returns when it is done, and 40 us later
        the next kernel starts, whatever kept the copy: here nothing but a kernel of 30 us. A copy to pinned memory does not
        keep the host, whose way to the second kernel counts from the beginning, 90 us."""
        for call, kind, start in (("cudaMemcpyAsync", 1, 30 + 5 + 40), ("cudaMemcpy", 2, 30 + 5 + 40), ("cudaMemcpyAsync", 2, 90)):
            report = Report()
            report.kernel(0, 100, 30, 90, "first")
            number = report.call(0, call, 92, 60)
            report.kernel(0, 190, 10, 185, "second")
            path = self.folder / self.write_report(report)
            database = sqlite3.connect(path)
            database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId "
                             "INTEGER, correlationId INTEGER, globalPid INTEGER, copyKind INTEGER, dstKind INTEGER)")
            database.execute("CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER, name TEXT, label TEXT)")
            database.execute("INSERT INTO ENUM_CUDA_MEM_KIND VALUES (1, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'), "
                             "(2, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned')")
            # Something that the trace does not have delays the copy by 15 us.
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (145000, 150000, 0, 7, ?, ?, 2, ?)",
                             (number, report.pid(0), kind))
            database.commit()
            database.close()
            self.imported(path.name)
            self.assertAlmostEqual(self.run_imported()[0, "second"][0], start, 6)

    def test_times_since_1970(self):
        """`nsys export --ts-normalize` has them: only the differences of times count."""
        contents = set()
        for moved in (0, 1_712_667_379_482_786_123):
            path = self.folder / self.write_report(two_gpus())
            database = sqlite3.connect(path)
            tables = ["KERNEL", "RUNTIME", "SYNCHRONIZATION"]
            for table in ["NVTX_EVENTS", *(f"CUPTI_ACTIVITY_KIND_{one}" for one in tables)]:
                database.execute(f"UPDATE {table} SET start = start + ?, end = end + ?", (moved, moved))
            database.commit()
            database.close()
            self.imported(path.name)
            contents.add(tuple((self.folder / f"out.2ranks.{rank}.et").read_bytes() for rank in range(2)))
            path.unlink()
        self.assertEqual(len(contents), 1)
        report = two_gpus()
        report.call(0, "cudaEventQuery", 9 * 10**15)
        self.refused(self.write_report(report), says=[
            r"row \d+ of CUPTI_ACTIVITY_KIND_RUNTIME: a time of 9000000000000000000; expected nanoseconds, less than "
            r"53 days from the \d+ of the first kernel"])

    def test_what_is_refused(self):
        report = Report()
        report.kernel(0, 100, 30, 90, kernel_of("AllReduce_Sum_f32_RING_LL"))
        self.refused(self.write_report(report), says=["at 90000 ns communicates, and no NVTX range of NCCL"])
        (self.folder / "text.sqlite").write_text("hello")
        self.refused("text.sqlite", says=["no SQLite file", "nsys export"])
        path = self.folder / self.write_report(two_gpus())
        path.write_bytes(path.read_bytes()[:5000])
        self.refused("report.sqlite", says=["report.sqlite: "])
        database = sqlite3.connect(self.folder / "empty.sqlite")
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.commit()
        database.close()
        self.refused("empty.sqlite", says=["no kernels were recorded"])
        # nsys's default, --cuda-graph-trace=graph, leaves out the kernels of graphs, NCCL's among them.
        database = sqlite3.connect(self.folder / "empty.sqlite")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, "
                         "contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, graphId INTEGER, "
                         "graphExecId INTEGER)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (6000, 8000, 0, 1, 7, 2, 16777216, 1, 1)")
        database.commit()
        database.close()
        self.refused("empty.sqlite", says=["1 launches of CUDA graphs without the kernels", "--cuda-graph-trace=node"])
        report = two_gpus()
        report.rows.append(("CUPTI_ACTIVITY_KIND_KERNEL", (5, 2, 0, 1, 7, 999, report.pid(0), 1, 1, None, 1, 1, 1, 1,
                                                           1, 1)))
        self.refused(self.write_report(report), says=[r"row \d+ of CUPTI_ACTIVITY_KIND_KERNEL: it is from 5 to 2"])


if __name__ == "__main__":
    unittest.main()
