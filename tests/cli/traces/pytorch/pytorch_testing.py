# SPDX-License-Identifier: GPL-2.0-only
"""Common code of the tests of `weft import pytorch`: traces in a folder, and the collectives of a run."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from import_testing import ImportTest
from weft_testing import table

MIB = 1 << 20
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


class PytorchTest(ImportTest):
    FORMAT = "pytorch"

    def traces(self, *traces, **options):
        for trace in traces:
            trace.write(self.folder / "traces", **options)

    def reductions(self):
        rows = table(self.folder / "out.h5", "collectives")
        return sorted((start / 10**6, end / 10**6) for start, end in zip(rows["start"], rows["end"]))

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
