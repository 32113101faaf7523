# SPDX-License-Identifier: GPL-2.0-only
"""SQLite exports of Nsight Systems for tests: tables, columns and types as NVIDIA's "Exporter SQLite schema" documents
them (docs.nvidia.com/nsight-systems, 2025.6), rows in any order. Payloads of NVTX ranges are those of NCCL
(src/include/nvtx_payload_schemas.h of github.com/NVIDIA/nccl)."""

import json
import random
import sqlite3
import struct

SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
  shortName INTEGER NOT NULL, mangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER,
  blockZ INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, syncType INTEGER NOT NULL,
  eventId INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
  correlationId INTEGER, globalPid INTEGER, eventId INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER,
  color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER,
  int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER,
  jsonText TEXT, binaryData BLOB);
CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER, schemaId INTEGER, idx INTEGER, flags INTEGER, type INTEGER,
  name TEXT, description TEXT, arrayOrUnionDetail INTEGER, offset INTEGER);
"""
PUSH_POP = 59
UINT64, SIZE, INT = 18, 22, 5
COLLECTIVE, MESSAGE, INIT, SPLIT = 100, 200, 300, 400  # schemas
FIELDS = {COLLECTIVE: [("NCCL communicator ID", UINT64, 0, "Q"), ("Message size [bytes]", SIZE, 8, "Q")],
          MESSAGE: [("NCCL communicator ID", UINT64, 0, "Q"), ("Message size [bytes]", SIZE, 8, "Q"),
                    ("Peer rank", INT, 16, "i4x")],
          INIT: [("NCCL communicator ID", UINT64, 0, "Q"), ("No. of ranks", INT, 8, "i"), ("Rank", INT, 12, "i"),
                 ("CUDA device", INT, 16, "i4x")],
          SPLIT: [("NCCL communicator ID", UINT64, 0, "Q"), ("Parent NCCL communicator ID", UINT64, 8, "Q"),
                  ("No. of ranks", INT, 16, "i"), ("Rank", INT, 20, "i"), ("CUDA device", INT, 24, "i"),
                  ("Color", INT, 28, "i"), ("Key", INT, 32, "i4x")]}


class Report:
    """Processes with one GPU each, numbered from 0; times in microseconds."""

    def __init__(self, binary=True):
        self.binary, self.strings, self.rows, self.correlations = binary, {}, [], {}

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings) + 1)

    def pid(self, process):
        return (0x100 + process) << 24

    def correlation(self, process):
        self.correlations[process] = self.correlations.get(process, 0) + 1
        return self.correlations[process]

    def call(self, process, name, begin, duration=1):
        number = self.correlation(process)
        self.rows.append(("CUPTI_ACTIVITY_KIND_RUNTIME", (begin * 1000, (begin + duration) * 1000, 1,
                                                          self.pid(process) | 7, number, self.string(f"{name}_v7000"),
                                                          0, None)))
        return number

    def kernel(self, process, start, duration, launch, name="sgemm", stream=7):
        number = self.call(process, "cudaLaunchKernel", launch)
        label = self.string(name)
        self.rows.append(("CUPTI_ACTIVITY_KIND_KERNEL",
                          (start * 1000, (start + duration) * 1000, process, 1, stream, number, self.pid(process),
                           label, label, None, 1, 1, 1, 128, 1, 1)))

    def record(self, process, at, stream, event):
        self.rows.append(("CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                          (process, 1, stream, self.call(process, "cudaEventRecord", at), self.pid(process), event)))

    def wait(self, process, at, stream, event):
        number = self.call(process, "cudaStreamWaitEvent", at)
        self.rows.append(("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                          (at * 1000, at * 1000, process, 1, stream, number, self.pid(process), 2, event)))

    def synchronize(self, process, begin, end, stream):
        number = self.call(process, "cudaStreamSynchronize", begin, end - begin)
        self.rows.append(("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                          (begin * 1000, end * 1000, process, 1, stream, number, self.pid(process), 3, 0)))

    def range(self, process, name, begin, duration, schema, *values):
        fields = FIELDS[schema]
        text = binary = None
        if self.binary:
            payload = struct.pack("<" + "".join(code for *_, code in fields), *values)
            binary = struct.pack("<IIIIQQ", 1, 0, schema, 0, len(payload), 32 + len(payload)) + payload
        else:
            text = json.dumps({field: value for (field, *_), value in zip(fields, values)})
        self.rows.append(("NVTX_EVENTS", (begin * 1000, (begin + duration) * 1000, PUSH_POP, None, None, None, None,
                                          self.pid(process) | 7, None, self.string(name), 1, None, None, None, None,
                                          None, None, None, text, binary)))

    def write(self, path):
        path.unlink(missing_ok=True)
        database = sqlite3.connect(path)
        database.executescript(SCHEMA)
        random.Random(1).shuffle(self.rows)
        for table, values in self.rows:
            database.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(values))})", values)
        database.executemany("INSERT INTO StringIds VALUES (?, ?)",
                             [(number, text) for text, number in self.strings.items()])
        for schema, fields in FIELDS.items():
            for index, (name, kind, offset, _) in enumerate(fields):
                database.execute("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, ?, ?, NULL, ?, ?, NULL, NULL, ?)",
                                 (schema, index, kind, name, offset or None))
        database.commit()
        database.close()
        return path


def two_gpus(binary=True):
    """Each GPU computes 50 us, reduces 4 MiB with the other one while it computes 40 us more, and then, when both are
    done, 10 us. The order of processes is not that of ranks."""
    report = Report(binary)
    world = 0xCAFE0001
    for process in range(2):
        report.range(process, "ncclCommInitRank", 0, 5, INIT, world, 2, 1 - process, process)
        report.kernel(process, 100, 50, 20, "forward")
        report.record(process, 22, 7, 11)
        report.wait(process, 24, 20, 11)
        report.range(process, "ncclAllReduce", 26, 6, COLLECTIVE, world, 4 << 20)
        report.kernel(process, 150, 60, 28,
                      "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 20)
        report.kernel(process, 150, 40, 36, "backward")
        report.record(process, 40, 20, 12)
        report.wait(process, 42, 7, 12)
        report.kernel(process, 210, 10, 44, "adam")
    return report
