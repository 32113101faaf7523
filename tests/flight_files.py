# SPDX-License-Identifier: GPL-2.0-only
"""Dumps of PyTorch's flight recorder for tests, with the keys of torch/csrc/distributed/c10d/FlightRecorderDetail.hpp
(version 2.10): pickle of protocol 2, as torch::jit's pickler writes it, or JSON with keys in alphabetical order."""

import json
import math
import pickle


class Dump:
    """Calls of one rank; times in microseconds. `groups` {name: ranks}; '0' is all of them."""

    def __init__(self, rank, world, groups=None, first=0):
        self.rank, self.groups, self.record = rank, {"0": list(range(world)), **(groups or {})}, first
        self.entries, self.sequences = [], {}

    def call(self, name, at, inputs, outputs=None, group="0", dtype="Float", messages=False, took=None, same_kernel=False,
             sequence=None):
        """`inputs`: shapes. A call of the same kernel as the one before has its number."""
        key = group, messages
        number = self.sequences.get(key, 0) + (0 if same_kernel else 1) if sequence is None else sequence
        self.sequences[key] = number
        outputs = inputs if outputs is None else outputs
        entry = {"record_id": self.record, "pg_id": 0, "process_group": (group, "undefined"), "thread_name": "pt_main_thread",
                 "thread_id": "140", "collective_seq_id": self.sequences.get((group, False), 0),
                 "p2p_seq_id": self.sequences.get((group, True), 0), "op_id": self.record + 1,
                 "profiling_name": f"nccl:{name}", "time_created_ns": 1_700_000_000_000_000_000 + round(at * 1000),
                 "input_sizes": inputs, "input_dtypes": [dtype] * len(inputs), "output_sizes": outputs,
                 "output_dtypes": [dtype] * len(outputs), "state": "completed", "time_discovered_started_ns": None,
                 "time_discovered_completed_ns": None, "retired": True, "timeout_ms": 600000, "is_p2p": messages}
        if took is not None:
            entry["duration_ms"] = took / 1000
        self.entries.append(entry)
        self.record += 1

    def whole(self):
        config = {name: {"name": name, "desc": "undefined", "ranks": f"[{', '.join(map(str, ranks))}]"}
                  for name, ranks in self.groups.items()}
        return {"version": "2.10", "pg_config": config, "comm_lib_version": "2.27.5", "pg_status": {}, "entries": self.entries}

    def write(self, folder, name=None, as_json=False):
        folder.mkdir(exist_ok=True)
        path = folder / (name or f"nccl_trace_rank_{self.rank}")
        whole = self.whole()
        path.write_bytes(json.dumps(whole, sort_keys=True).encode() if as_json else pickle.dumps(whole, protocol=2))
        return path


def elements(entry, side):
    return sum(map(math.prod, entry[f"{side}_sizes"]))
