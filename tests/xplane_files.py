# SPDX-License-Identifier: GPL-2.0-only
"""Profiles of XLA for tests, in protobuf's wire format with the field numbers of third_party/tsl/tsl/profiler/protobuf/
xplane.proto, xla/service/hlo.proto and xla/xla_data.proto (github.com/openxla/xla). GPUs' planes have what
xla/backends/profiler/gpu/cupti_collector.cc writes: a line for each stream, calls of the driver on the host's threads, and
the instruction of each kernel as the stats hlo_op, hlo_module and program_id. TPUs' planes have the line "XLA Ops", in
which the name of an event is the text of its instruction."""

import gzip

from chakra_files import delimited, varint

TYPES = {"pred": 1, "s32": 4, "u32": 8, "f16": 10, "f32": 11, "bf16": 16, "token": 17}
TUPLE = 13
NS = 1000  # picoseconds


def number(field, value):
    return varint(field << 3) + varint(value & ((1 << 64) - 1))


def text(field, value):
    return delimited(field, value.encode())


def packed(field, values):
    return delimited(field, b"".join(map(varint, values)))


def shape(kind, *dims):
    """ShapeProto."""
    return number(2, TYPES[kind]) + packed(3, dims)


def tuple_of(*shapes):
    return number(2, TUPLE) + b"".join(delimited(4, one) for one in shapes)


def lists(groups):
    """CollectiveDeviceListProto with its groups one by one."""
    return delimited(87, b"".join(delimited(1, packed(1, group)) for group in groups))


def iota(groups, dims, order=()):
    """IotaReplicaGroupListProto, in its CollectiveDeviceListProto."""
    coded = number(1, groups[0]) + number(2, groups[1]) + packed(3, dims) + packed(4, order)
    return delimited(87, delimited(2, coded))


def iota_alone(groups, dims, order=()):
    """The same as newer modules have it."""
    return delimited(92, number(1, groups[0]) + number(2, groups[1]) + packed(3, dims) + packed(4, order))


def legacy(groups):
    return b"".join(delimited(49, packed(1, group)) for group in groups)


def mesh(axes, taken, devices=()):
    """MeshAxesReplicaGroupListProto: axes {name: size}; taken: numbers of axes, or (axis, pre-size, size)."""
    named = b"".join(delimited(1, text(1, name) + number(2, size)) for name, size in axes.items())
    refs = b""
    for one in taken:
        refs += delimited(2, number(1, one) if isinstance(one, int) else
                          number(1, one[0]) + delimited(2, number(1, one[1]) + number(2, one[2])))
    return delimited(93, delimited(1, named + (packed(2, devices) if devices else b"")) + refs)


def pairs(*ends):
    return b"".join(delimited(52, number(1, source) + number(2, target)) for source, target in ends)


def attribute_pairs(*ends):
    """The frontend attribute of a send or recv that XLA makes of a collective-permute."""
    listed = ",".join(f"{{{source},{target}}}" for source, target in ends)
    return delimited(68, delimited(1, text(1, "_xla_send_recv_source_target_pairs") + text(2, f"{{{listed}}}")))


class Module:
    """`assigned`: the device of each partition (one replica), or of each replica and partition."""

    def __init__(self, name, program, assigned=None):
        self.name, self.program = name, program
        self.assigned = [assigned] if assigned and isinstance(assigned[0], int) else assigned
        self.computations, self.ids, self.scheduled = [], {}, True

    def computation(self, name, *instructions):
        """Each (name, opcode, shape, operands, further bytes, names of computations), the last ones as they are needed."""
        self.computations.append((name, instructions))
        return self

    def instruction(self, name, op, made, operands=(), more=b"", calls=(), channel=1):
        found = text(1, name) + text(2, op) + delimited(3, made) + number(35, self.ids[name])
        if operands:
            found += packed(36, [self.ids[one] for one in operands])
        if calls:
            found += packed(38, [self.ids[one] for one in calls])
        if more:
            found += number(26, channel) + number(71, 1) + more
        return found

    def proto(self):
        """HloProto. Instructions stand in the file in an order of their own; the schedule has that of execution."""
        for name, instructions in self.computations:
            for one in (name, *(instruction[0] for instruction in instructions)):
                self.ids.setdefault(one, len(self.ids) + 1)
        module = text(1, self.name) + text(2, self.computations[-1][0])
        schedule = b""
        for name, instructions in self.computations:
            body = text(1, name)
            for one in reversed(instructions):
                body += delimited(2, self.instruction(*one))
            module += delimited(3, body + number(5, self.ids[name]))
            schedule += delimited(1, number(1, self.ids[name]) +
                                  delimited(2, packed(1, [self.ids[one[0]] for one in instructions])))
        module += number(5, self.program)
        if self.scheduled:
            module += delimited(7, schedule)
        if self.assigned:
            columns = [[row[at] for row in self.assigned] for at in range(len(self.assigned[0]))]
            module += delimited(15, number(1, len(self.assigned)) + number(2, len(columns)) +
                                b"".join(delimited(3, packed(1, column)) for column in columns))
        return delimited(1, module)


class Plane:
    def __init__(self, name):
        self.name, self.lines, self.names, self.metadata, self.stats = name, {}, {}, {}, {}

    def stat(self, name):
        return self.stats.setdefault(name, len(self.stats) + 1)

    def coded_stat(self, name, value):
        """A text is the name of another stat (ref_value), as XLA writes those that repeat."""
        found = number(1, self.stat(name))
        if isinstance(value, str):
            return found + number(7, self.stat(value))
        return found + (delimited(6, value) if isinstance(value, bytes) else number(4, value))

    def named(self, name, shown=None, key=None, **stats):
        if name not in self.names:
            self.names[name] = key if key is not None else 100 + len(self.names)
            self.metadata[name] = (text(4, shown) if shown else b"") + b"".join(
                delimited(5, self.coded_stat(one, value)) for one, value in stats.items())
        return self.names[name]

    def event(self, line, name, start, duration, **stats):
        """Times in microseconds; `line` is (number, name)."""
        coded = number(1, self.named(name)) + number(2, round(start * 1_000_000)) + number(3, round(duration * 1_000_000))
        coded += b"".join(delimited(4, self.coded_stat(one, value)) for one, value in stats.items())
        self.lines.setdefault(line, []).append(coded)

    def coded(self, began=0):
        found = number(1, 7) + text(2, self.name)
        for (at, name), events in self.lines.items():
            found += delimited(3, number(1, at) + text(2, name) + number(3, began) +
                               b"".join(delimited(4, one) for one in events) + number(10, at))
        for name, key in self.names.items():
            found += delimited(4, number(1, key) + delimited(2, number(1, key) + text(2, name) + self.metadata[name]))
        for name, key in self.stats.items():
            found += delimited(5, number(1, key) + delimited(2, number(1, key) + text(2, name)))
        return found


class Profile:
    """One process: its devices, and the modules that they execute."""

    def __init__(self, kind="GPU", devices=1, modules=(), protos=True):
        self.kind, self.modules, self.correlation = kind, {module.name: module for module in modules}, 0
        self.host, self.metadata = Plane("/host:CPU"), Plane("/host:metadata")
        self.devices = [Plane(f"/device:{kind}:{at}") for at in range(devices)]
        self.warnings, self.protos, self.began = [], protos, 1_700_000_000_000_000_000
        self.planes = []

    def kernel(self, device, start, duration, launch, name, op=None, module=None, stream=7, correlation=None, **stats):
        """`launch` is when the host called the driver."""
        if correlation is None:
            self.correlation += 1
            correlation = self.correlation
            self.host.event((1000 + device, f"Host Threads/{1000 + device}"), "cuLaunchKernel", launch, 1,
                            device_id=device, correlation_id=correlation)
        if correlation >= 0:
            stats["correlation_id"] = correlation
        if op:
            stats.update(hlo_op=op, hlo_module=module, program_id=self.modules[module].program
                         if module in self.modules else 99)
        self.devices[device].event((stream, f"Stream #{stream}(Kernel)"), name, start, duration, kernel_details="regs:32",
                                   **stats)
        return correlation

    def op(self, device, start, duration, name, module, line="XLA Ops", instruction=None):
        """Of a TPU. `instruction` is the text behind the name."""
        plane = self.devices[device]
        full = f"%{name} = {instruction or 'f32[8]{0:T(256)} fusion(f32[8]{0:T(256)} %p), kind=kLoop, calls=%fused'}"
        plane.named(full, name, hlo_category="fusion", **({"program_id": self.modules[module].program} if module else {}))
        plane.event((1 if line == "XLA Ops" else 2, line), full, start, duration)

    def coded(self):
        metadata = self.metadata
        for module in self.modules.values() if self.protos else ():
            metadata.named(f"{module.name}({module.program})", key=module.program, **{"Hlo Proto": module.proto()})
        found = delimited(1, self.host.coded(self.began)) + delimited(1, metadata.coded())
        for plane in [*self.devices, *self.planes]:
            found += delimited(1, plane.coded(self.began))
        return found + b"".join(text(3, one) for one in self.warnings) + text(4, "host0")

    def write(self, path, zipped=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(self.coded()) if zipped else self.coded())
        return path


def nccl(kind):
    return f"ncclDevKernel_{kind}(ncclDevKernelArgsStorage<4096ul>)"


def step(devices):
    """The gradient of a layer is summed by all devices while that of the next one is computed; the optimizer waits."""
    whole = shape("f32", 1 << 20)
    return Module("jit_step", 5, list(range(devices))).computation("region", ("x", "parameter", shape("f32"))).computation(
        "main.9",
        ("p", "parameter", whole),
        ("fusion.1", "fusion", whole, ["p"]),
        ("all-reduce-start.1", "all-reduce-start", whole, ["fusion.1"], iota([1, devices], [devices]), ["region"]),
        ("fusion.2", "fusion", whole, ["p"]),
        ("all-reduce-done.1", "all-reduce-done", whole, ["all-reduce-start.1"]),
        ("fusion.3", "fusion", whole, ["fusion.2", "all-reduce-done.1"]))


def two_gpus(steps=1):
    """Each GPU computes 50 us, sums 4 MiB with the other one while it computes 40 us more, and then, when both are done, 10
    us. Launches run ahead of the GPUs."""
    profile = Profile(devices=2, modules=[step(2)])
    for device in range(2):
        for at in range(steps):
            launch, start = 10 * at, 200 * at
            profile.kernel(device, start + 100, 50, launch + 20, "loop_add_fusion_1", "fusion.1", "jit_step")
            profile.kernel(device, start + 150, 60, launch + 22, nccl("AllReduce_Sum_f32_RING_LL"), "all-reduce-start.1",
                           "jit_step", 20)
            profile.kernel(device, start + 150, 40, launch + 24, "gemm_fusion_dot_2", "fusion.2", "jit_step")
            profile.kernel(device, start + 210, 10, launch + 26, "loop_add_fusion_3", "fusion.3", "jit_step")
    return profile
