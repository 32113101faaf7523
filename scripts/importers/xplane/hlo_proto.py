# SPDX-License-Identifier: GPL-2.0-only
"""HloProto (xla/service/hlo.proto and xla/xla_data.proto of github.com/openxla/xla), which profiles have for each compiled
module: instructions with shapes and groups of devices, their schedule, and the devices that execute the module."""

from frameworks.communications import MAX_RANKS
from frameworks.wire import WireError
from importers.hlo.program import (COLLECTIVES, HALVES, Instruction, Module, Shape, iota_groups, mesh_device_groups,
                                   whole_list)

from .space import inner, text_of, whole

# PrimitiveType.
TYPES = {1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
         12: "f64", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4",
         22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3",
         29: "f8e3m4", 30: "s1", 31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu"}
DEEPEST = 32  # tuples within tuples
PAIRS = "_xla_send_recv_source_target_pairs"  # collective_permute_decomposer.cc of XLA
LARGEST = 1 << 20  # bytes of an instruction that may communicate; larger ones are constants


def numbers(value, at):
    """Of a list of int64, packed or one of its elements."""
    return [value] if isinstance(value, int) else value.packed()


def shape_of(part, depth=0):
    if depth > DEEPEST:
        raise WireError(part.at, "tuples within tuples without end")
    kind, dims, parts = 0, [], []
    for field, value in part.fields():
        if field == 2:
            kind = whole(value, part.at)
        elif field == 3:
            dims += numbers(value, part.at)
        elif field == 4:
            parts.append(shape_of(inner(value, part.at), depth + 1))
    if any(size >> 63 for size in dims):
        raise WireError(part.at, "a dimension without a size")
    return Shape(parts=tuple(parts)) if parts else Shape(TYPES.get(kind, ""), tuple(dims))


def replica_group(part):
    found = []
    for field, value in part.fields():
        if field == 1:
            found += numbers(value, part.at)
    return found


def iota_list(part):
    """IotaReplicaGroupListProto."""
    count = size = 0
    dims, order = [], []
    for field, value in part.fields():
        if field == 1:
            count = whole(value, part.at)
        elif field == 2:
            size = whole(value, part.at)
        elif field == 3:
            dims += numbers(value, part.at)
        elif field == 4:
            order += numbers(value, part.at)
    total = 1
    for one in dims:
        total *= one
    if not 0 < count * size == total <= MAX_RANKS or order and sorted(order) != list(range(len(dims))):
        raise WireError(part.at, "groups of devices that do not fit together")
    return iota_groups([count, size], dims, order)


def device_list(part):
    """CollectiveDeviceListProto."""
    found = []
    for field, value in part.fields():
        if field == 1:
            found.append(replica_group(inner(value, part.at)))
        elif field == 2:
            return iota_list(inner(value, part.at))
    return found


def mesh_list(part):
    """MeshAxesReplicaGroupListProto: a mesh, and the axes over which a group goes."""
    sizes, devices, axes = [], [], []
    for field, value in part.fields():
        if field == 1:
            for of_mesh, one in inner(value, part.at).fields():
                if of_mesh == 1:
                    sizes.append(next((whole(size, part.at) for key, size in inner(one, part.at).fields() if key == 2), 0))
                elif of_mesh == 2:
                    devices += numbers(one, part.at)
        elif field == 2:
            axes.append(axis(inner(value, part.at)))
    groups = None
    if all(0 <= at < len(sizes) for at, _, _ in axes):
        named = {str(at): size for at, size in enumerate(sizes)}
        taken = [(str(at), before or 1, size or sizes[at]) for at, before, size in axes]
        groups = mesh_device_groups(named, taken, devices, MAX_RANKS)
    if groups is None:
        raise WireError(part.at, "a mesh of devices that does not fit together")
    return groups


def axis(part):
    """(number of the axis, size of what is before on it, its own size): AxisRefProto; 0 for the whole axis."""
    at = before = size = 0
    for field, value in part.fields():
        if field == 1:
            at = whole(value, part.at)
        elif field == 2:
            for of_part, one in inner(value, part.at).fields():
                if of_part == 1:
                    before = whole(one, part.at)
                elif of_part == 2:
                    size = whole(one, part.at)
    return at, before, size


class Reader:
    """One HloModuleProto."""

    def __init__(self, path, part):
        self.module, self.part = Module(str(path)), part
        self.name, self.sequences = "", {}  # of the schedule: {computation's id: ids of instructions}
        self.devices = None  # [[device of each partition] of each replica]
        self.ids = {}  # of computations: name

    def read(self):
        parts = []
        for field, value in self.part.fields():
            if field == 1:
                self.name = text_of(value, self.part.at)
            elif field == 2:
                self.module.entry = text_of(value, self.part.at)
            elif field == 3:
                parts.append(inner(value, self.part.at))
            elif field == 7:
                self.schedule(inner(value, self.part.at))
            elif field == 15:
                self.devices = device_assignment(inner(value, self.part.at))
        computations = [self.computation(part) for part in parts]
        for name, body in computations:
            for one in body.values():
                one.calls = [self.ids[number] for number in one.calls if number in self.ids]
        number_of = {name: number for number, name in self.ids.items()}
        for name, body in computations:
            order = self.sequences.get(number_of.get(name), body)
            self.module.computations[name] = [body[number] for number in order if number in body]
        return self

    def schedule(self, part):
        for _, entry in part.fields():
            key, found = 0, []
            for field, value in inner(entry, part.at).fields():
                if field == 1:
                    key = whole(value, part.at)
                elif field == 2:
                    for of_sequence, one in inner(value, part.at).fields():
                        if of_sequence == 1:
                            found += numbers(one, part.at)
            self.sequences[key] = found

    def computation(self, part):
        """(name, {id: instruction})."""
        name, number, body = "", 0, {}
        for field, value in part.fields():
            if field == 1:
                name = text_of(value, part.at)
            elif field == 2:
                key, one = self.instruction(inner(value, part.at))
                body[key] = one
            elif field == 5:
                number = whole(value, part.at)
        self.ids[number] = name
        for one in body.values():
            one.operands = [body[key].name for key in one.operands if key in body]
            one.taken = [body[key].shape for key in one.taken if key in body]
        return name, body

    def instruction(self, part):
        """(id, instruction); operands and called computations are ids."""
        one, number = Instruction("", "", Shape(), line=part.at), 0
        groups = pairs = None
        operands, called, channel = [], [], 0
        for field, value in part.fields():
            if field == 1:
                one.name = text_of(value, part.at)
            elif field == 2:
                one.op = text_of(value, part.at)
            elif field == 3:
                one.shape = shape_of(inner(value, part.at))
            elif field == 26:
                channel = whole(value, part.at)
            elif field == 35:
                number = whole(value, part.at)
            elif field == 36:
                operands += numbers(value, part.at)
            elif field == 38:
                called += numbers(value, part.at)
            elif field == 47:
                one.unknown = "host" if value else ""
            elif field == 49:
                groups = [*(groups or []), replica_group(inner(value, part.at))]
            elif field == 52:
                pairs = [*(pairs or []), self.pair(inner(value, part.at))]
            elif field == 68:
                pairs = self.attribute_pairs(inner(value, part.at)) or pairs
            elif field == 71:
                one.global_ids = bool(value)
            elif field in (87, 92, 93):
                read = {87: device_list, 92: iota_list, 93: mesh_list}[field]
                groups = read(inner(value, part.at)) or groups
        one.operands, one.taken, one.calls = operands, operands, called
        one.channel, one.number = channel > 0, channel
        base = one.op.removesuffix("-start")
        if base == "collective-permute":
            one.groups = pairs or []
        elif one.op in HALVES:
            one.groups = pairs
        elif base in COLLECTIVES or base == "ragged-all-to-all":
            one.groups = [group for group in groups or [] if group]
        return number, one

    @staticmethod
    def pair(part):
        ends = [0, 0]
        for field, value in part.fields():
            if field in (1, 2):
                ends[field - 1] = whole(value, part.at)
        return ends

    def attribute_pairs(self, part):
        """Of FrontendAttributes the pairs of a send or recv."""
        for _, entry in part.fields():
            key, text = "", ""
            for field, value in inner(entry, part.at).fields():
                if field == 1:
                    key = text_of(value, part.at)
                elif field == 2 and len(inner(value, part.at)) < LARGEST:
                    text = text_of(value, part.at)
            if key == PAIRS:
                found = whole_list(text)
                return [found[i:i + 2] for i in range(0, len(found) - 1, 2)]
        return None


def device_assignment(part):
    """[[device of each partition] of each replica]."""
    replicas = partitions = 0
    columns = []
    for field, value in part.fields():
        if field == 1:
            replicas = whole(value, part.at)
        elif field == 2:
            partitions = whole(value, part.at)
        elif field == 3:
            columns.append(replica_group(inner(value, part.at)))
    if len(columns) != partitions or any(len(column) != replicas for column in columns):
        raise WireError(part.at, "a device assignment whose numbers do not agree")
    if replicas * partitions > MAX_RANKS:
        raise WireError(part.at, f"a device assignment of {replicas * partitions} devices; expected at most {MAX_RANKS}")
    return [[column[replica] for column in columns] for replica in range(replicas)]


def module_part(part):
    """The HloModuleProto of an HloProto."""
    return next((inner(value, part.at) for field, value in part.fields() if field == 1), None)


def devices_of(part):
    """The device assignment alone, without reading the rest."""
    module = module_part(part)
    for field, value in module.fields() if module else ():
        if field == 15:
            return device_assignment(inner(value, module.at))
    return None
