# SPDX-License-Identifier: GPL-2.0-only
"""`weft import pytorch`: how files are read: clocks, values that cannot be, damage, memory; traces of the host alone, and
execution traces."""

# Time limit: 600 s

import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import unittest
from decimal import Decimal

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
import hlo_files
import nsys_files
import onnx_files
import xplane_files
from kineto_files import Trace, data_parallel_step
from pytorch_testing import MIB, PytorchTest
from weft_testing import SOURCE, weft


class Reading(PytorchTest):
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

    def test_traces_of_a_pytorch_that_is_too_old_or_without_kineto(self):
        """Shapes of what PyTorch 1.13 of Debian writes: export_chrome_trace() without Kineto, and ExecutionGraphObserver. Given to
        `weft run` as well."""
        folder = self.folder / "traces"
        folder.mkdir()
        path = folder / "rank0.json"
        for text, says in (
                ('[{"name": "c10d::allreduce_", "ph": "X", "ts": 170, "dur": 104, "tid": 1, "pid": "CPU functions", "args": {}}]',
                 "a PyTorch without Kineto has written this trace, .*; expected one of a PyTorch for which"),
                ('{"schema": "1.0.1", "pid": 1, "nodes": [{"name": "aten::mm", "id": 4, "rf_id": 2, "parent": 3, "fw_parent": 0, '
                 '"inputs": [], "input_shapes": [], "input_types": []}]}',
                 "an execution trace of schema 1.0.1, whose process groups have no names; expected one whose nodes have 'ctrl_deps'")):
            with self.subTest(says):
                path.write_text(text)
                self.refused("traces", says=[f"^weft: traces/rank0.json: {says}"])
                for what in (folder, path):
                    done = weft("run", what, "-o", self.folder / "out.h5", "--quiet")
                    self.assertEqual(done.code, 2, done)
                    self.assertRegex(done.err, f"^weft: {path}: {says}")
                self.assertFalse((self.folder / "out.h5").exists())

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

    def test_waits_of_several_groups(self):
        """Each group numbers its calls, and messages apart from collectives: since PyTorch 2.4 a wait says (number, whether it is
        of a message) and its group. It is for the first of three calls with the number 9."""
        for rank in range(2):
            tensor = [1, 2, 0, 1 << 20, 4, f"cuda:{rank}"]
            small = [5, 6, 0, 1, 4, f"cuda:{rank}"]
            self.execution(rank, [
                ("aten::relu", [tensor], 1, [3, 4, 0, 1 << 20, 4, f"cuda:{rank}"]),
                ("record_param_comms", [[tensor], [9, False], ["1", "dp"], rank, "allreduce", [], [], 0, 1, 2], 2),
                ("record_param_comms", [[small], [9, False], ["2", "tp"], rank, "allreduce", [], [], 0, 1, 2], 3),
                ("record_param_comms", [[small], [9, True], ["1", "dp"], 1 - rank, "send" if rank else "recv", [], [], 0, 1, 2], 4),
                ("record_param_comms", [[9, False], ["1", "dp"], rank, "wait", [], [], -1, -1, 2], 5),
                ("aten::add", [tensor, tensor], 6, [7, 8, 0, 1 << 20, 4, f"cuda:{rank}"])])
        self.imported("traces", "--device", "h100")
        found = self.run_imported()
        # 4 MiB of the first one take 80 us and more.
        end = max(end for _, end in self.reductions())
        self.assertGreater(end, 80)
        self.assertAlmostEqual(found[0, "aten::add"][1], end + 12 * MIB / 3.35e12 * 1e6, 3)

    def test_groups_without_names_in_execution_traces(self):
        """Before PyTorch 2.3 the name is empty, and the first rank and the stride say which ranks a group has."""
        for rank in range(4):
            tensor = [1, 2, 0, 1000, 4, f"cuda:{rank}"]
            self.execution(rank, [
                ("record_param_comms", [[tensor], 9 + at, ["", ""], rank, "allreduce", [], [], start, stride, size], 1 + at)
                for at, (start, stride, size) in enumerate(((rank // 2 * 2, 1, 2), (rank % 2, 2, 2), (0, 1, 4)))])
        self.assertEqual(self.imported("traces")["bytes"], {"all_reduce": 4 * 3 * 4000})
        groups = json.loads((self.folder / "out.groups.json").read_text())
        self.assertEqual(sorted(groups.values()), [[0, 1], [0, 2], [1, 3], [2, 3]])
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
        self.assertEqual((folder / "two_gpus.xplane.pb").read_bytes(), xplane_files.two_gpus().coded())
        nsys_files.two_gpus().write(self.folder / "report.sqlite")
        first, second = (sqlite3.connect(path) for path in (folder / "two_gpus.sqlite", self.folder / "report.sqlite"))
        self.assertEqual(list(first.iterdump()), list(second.iterdump()))
        first.close()
        second.close()

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
                ("no time", text.replace('"ts": 100.0, ', ""), r"rank0.json:\d+: an event without 'ts'"),
                ("begin", text.replace('"ph": "X", "cat": "kernel"', '"ph": "B", "cat": "kernel"'), r"'ph' is 'B'"),
                ("stream", text.replace('"stream": 7', '"stream": [7]'), r"rank0.json:\d+: 'stream' is \[7\]"),
                ("device", text.replace('"device": 0', '"device": {"id": 0}'), r"rank0.json:\d+: 'device' is {'id': 0}"),
                ("world", text.replace('"world_size": 1', '"world_size": -1'),
                 r"rank0.json:1: distributedInfo: 'world_size' is -1; expected 1 to "),
                ("groups", text.replace('"pg_config": [', '"pg_config": [5, '), r"distributedInfo: 'pg_config' is \[5"),
                ("members", text.replace('"Group size": 1', '"Group size": 3'), "has 1 ranks, and 'Group size' is 3"),
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

    def test_names_with_halves_of_characters(self):
        """JSON allows them, and files of text do not."""
        (self.folder / "traces").mkdir()
        (self.folder / "traces" / "rank0.json").write_text(data_parallel_step(0, 1).text().replace("forward_0", "a\\ud800b"))
        self.imported("traces")
        self.assertEqual(self.run_imported()[0, "a?b"], (0, 20))

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
