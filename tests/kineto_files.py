# SPDX-License-Identifier: GPL-2.0-only
"""Traces of torch.profiler for tests, as Kineto writes them (libkineto/src/output_json.cpp and CuptiActivity.cpp of
github.com/pytorch/kineto, and saveNcclMeta in torch/csrc/profiler/util.cpp of PyTorch): a rank's events are listed here
by hand, with times in microseconds."""

import gzip
import json
import lzma

COMPUTE, NCCL = 7, 20  # CUDA streams
HOST_THREAD = 1000


class Trace:
    """The events of one rank. `launch` is when the host called the runtime; every accelerator's event has one."""

    def __init__(self, rank=0, world=1, groups=None):
        """`groups` {name: ranks}; '0' is all of them."""
        self.rank, self.world = rank, world
        self.groups = {"0": list(range(world)), **(groups or {})}
        self.events, self.correlation, self.external = [], 0, 0

    def add(self, kind, name, start, duration, pid, tid, **arguments):
        self.events.append({"ph": "X", "cat": kind, "name": name, "pid": pid, "tid": tid, "ts": round(start, 3),
                            "dur": round(duration, 3), "args": arguments})

    def call(self, name, begin, duration=1.0):
        self.correlation += 1
        self.add("cuda_runtime", name, begin, duration, 1, HOST_THREAD, cbid=211, correlation=self.correlation)
        return self.correlation

    def kernel(self, start, duration, launch, name="sgemm", stream=COMPUTE, kind="kernel", **arguments):
        correlation = self.call("cudaLaunchKernel", launch)
        self.add(kind, name, start, duration, 0, stream, stream=stream, device=0, correlation=correlation, **arguments)
        return correlation

    def parameters(self, name, elements, dtype="Float", group="0", out=None, **more):
        return {"Collective name": name, "In msg nelems": elements, "Out msg nelems": elements if out is None else out,
                "Group size": len(self.groups[group]), "dtype": dtype, "Process Group Name": group,
                "Process Group Description": "default_pg", "Process Group Ranks": str(self.groups[group]),
                "Rank": self.rank, **more}

    def collective(self, name, elements, start, duration, launch, stream=NCCL, kernel="AllReduce_Sum_f32_RING_LL",
                   **more):
        """record_param_comms on the host, and the kernel of NCCL, which has its members, too."""
        self.external += 1
        parameters = self.parameters(name, elements, **more)
        self.add("cpu_op", "record_param_comms", launch - 2, 5, 1, HOST_THREAD,
                 **{"External id": self.external, "Record function id": self.external, **parameters})
        return self.kernel(start, duration, launch, f"ncclDevKernel_{kernel}(ncclDevKernelArgsStorage<4096ul>)", stream,
                           **{"External id": self.external, **parameters})

    def wait(self, stream, producer, record, at):
        """A stream waits for what another one had been given before an event was recorded (enable_cuda_sync_events)."""
        correlation = self.call("cudaStreamWaitEvent", at)
        self.add("cuda_sync", "Stream Wait Event", at, 0, 0, stream, stream=stream, device=0, context=1,
                 cuda_sync_kind="Stream Wait Event", correlation=correlation, wait_on_stream=producer,
                 wait_on_cuda_event_record_corr_id=record, wait_on_cuda_event_id=1)

    def record(self, at):
        return self.call("cudaEventRecord", at)

    def text(self):
        named = [{"pg_name": name, "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": len(ranks),
                  "ranks": ranks} for name, ranks in self.groups.items()]
        head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
                "distributedInfo": {"backend": "nccl", "rank": self.rank, "world_size": self.world,
                                    "pg_count": len(named), "pg_config": named, "nccl_version": "2.21.5"},
                "displayTimeUnit": "ms", "baseTimeNanoseconds": 1_700_000_000_000_000_000}
        # One event per line, not in the order of time: the host's first, as Kineto has them.
        events = sorted(self.events, key=lambda event: event["cat"] in ("kernel", "gpu_memcpy", "cuda_sync"))
        lines = ",\n".join(json.dumps(event) for event in events)
        return f'{json.dumps(head)[:-1]},\n"traceEvents": [\n{lines}\n],\n"traceName": "trace.json"\n}}\n'

    def write(self, folder, name=None, packing=None):
        """The path; `packing` is gz, xz or nothing."""
        folder.mkdir(exist_ok=True)
        ending = f".{packing}" if packing else ""
        path = folder / f"{name or f'rank{self.rank}.json'}{ending}"
        content = self.text().encode()
        path.write_bytes({"gz": gzip.compress, "xz": lzma.compress, None: bytes}[packing](content))
        return path


def data_parallel_step(rank, world, buckets=2, waits=True, slow=1.0):
    """A step of data-parallel training: a forward pass, a backward pass whose gradients go out bucket by bucket, and an
    optimizer that waits for all of them. Launches run ahead of the accelerator."""
    trace = Trace(rank, world)
    now, launch = 100.0, 10.0
    for layer in range(buckets):
        trace.kernel(now, 20 * slow, launch, f"forward_{layer}")
        now, launch = now + 20 * slow, launch + 5
    ends, free = [], 0.0
    for layer in reversed(range(buckets)):
        trace.kernel(now, 40 * slow, launch, f"backward_{layer}")
        now, launch = now + 40 * slow, launch + 5
        record = trace.record(launch)
        if waits:
            trace.wait(NCCL, COMPUTE, record, launch + 1)
        start = max(now, free)
        trace.collective("allreduce", 1 << 20, start, 60, launch + 3)
        free = start + 60
        launch += 8
        ends.append((trace.record(launch), free))
        launch += 2
    for record, _ in ends:
        if waits:
            trace.wait(COMPUTE, NCCL, record, launch)
        launch += 2
    trace.kernel(max(now, free), 30, launch, "adam")
    return trace
