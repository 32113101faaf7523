# SPDX-License-Identifier: GPL-2.0-only
"""The common part of HLO and StableHLO: computations of instructions, and the work of an instruction on a device."""

import math
import re
from dataclasses import dataclass, field

from frameworks.elements import element_size

# They compute nothing and move nothing.
FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id",
        "opt-barrier", "optimization-barrier", "domain", "return", "token", "add-dependency", "create-token", "reshape",
        "get-dimension-size", "iota"}
COLLECTIVES = {"all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
               "all-to-all": "all_to_all", "collective-permute": "permute", "collective-broadcast": "broadcast"}
# Halves of a permutation, which XLA splits so that it overlaps with the instructions in between: both name all pairs.
HALVES = {"send": "sends", "recv": "receives"}
# They read or write only the changed or returned part of their operands.
PARTS = {"dynamic-slice", "slice", "gather", "dynamic-update-slice", "scatter", "pad", "broadcast", "concatenate"}
# A compiler fuses them into the kernels of their neighbours.
ELEMENTWISE = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "exponential", "log", "tanh", "rsqrt",
               "sqrt", "negate", "abs", "power", "select", "compare", "convert", "broadcast-in-dim", "broadcast",
               "and", "or", "not", "xor", "logistic", "exponential-minus-one", "log-plus-one", "sign", "floor", "ceil",
               "clamp", "is-finite", "erf", "cosine", "sine", "transpose", "reverse", "remainder", "shift-left",
               "shift-right-logical", "shift-right-arithmetic", "bitcast-convert", "real", "imag", "dynamic-reshape",
               "round-nearest-even", "round-nearest-afz", "tan", "cbrt", "pad", "slice", "concatenate", "composite",
               "popcnt", "count-leading-zeros", "rng-bit-generator"}
# Elements of several to a byte, and other names of StableHLO's types.
PACKED = {"f4e2m1fn": 1 / 2, "s4": 1 / 2, "u4": 1 / 2, "i4": 1 / 2, "ui4": 1 / 2, "s2": 1 / 4, "u2": 1 / 4, "i2": 1 / 4,
          "ui2": 1 / 4, "s1": 1 / 8, "u1": 1 / 8, "complex<f32>": 8, "complex<f64>": 16, "token": 0, "opaque": 0}


def divides(sharding):
    """Whether XLA's sharding, the match of a pattern with the numbers of tiles as its group, divides a tensor: of the
    tiles the last may be copies."""
    tiles = whole_list(sharding.group(1))
    return any(tile > 1 for tile in (tiles[:-1] if "last_tile_dim_replicate" in sharding.group(0) else tiles))


def not_divided(devices):
    return (f"a sharded tensor, but the module has not been divided among its {devices} devices: each would compute all "
            "of it, and none would communicate; expected the compiled module, .lower(...).compile().as_text()")


def bytes_of_element(dtype):
    """None for a type that is not known."""
    return PACKED.get(dtype.lower(), element_size(dtype))


@dataclass
class Shape:
    """A tensor, or a tuple of them."""

    dtype: str = ""
    dims: tuple = ()
    parts: tuple = ()

    @property
    def elements(self):
        return math.prod(self.dims)

    @property
    def bytes(self):
        if self.parts:
            return sum(part.bytes for part in self.parts)
        return math.ceil(self.elements * bytes_of_element(self.dtype)) if self.dtype else 0


@dataclass
class Gemm:
    m: int
    n: int
    k: int
    count: int
    dtype: str

    @property
    def flops(self):
        return 2 * self.m * self.n * self.k * self.count


@dataclass
class Instruction:
    name: str
    op: str
    shape: Shape
    operands: list = field(default_factory=list)  # names
    line: int = 0
    label: str = ""
    gemm: Gemm | None = None
    calls: list = field(default_factory=list)  # names of computations
    condition: str = ""
    trips: int | None = None
    groups: list | None = None  # replica groups, [] for all; pairs of a collective-permute
    channel: bool = False
    number: int = 0  # of the channel, of sends and receives
    global_ids: bool = False
    index: int | None = None  # of get-tuple-element and parameter
    value: int | None = None  # of a whole constant
    direction: str = ""  # of compare
    root: bool = False
    taken: list = field(default_factory=list)  # shapes of operands
    carried: list = field(default_factory=list)  # of StableHLO's while: (name within, name outside)
    text: str = ""  # the beginning of an operation that has a region
    unknown: str = ""  # target of an unknown custom call


@dataclass
class Module:
    path: str
    replicas: int = 1
    partitions: int = 1
    computations: dict = field(default_factory=dict)  # name: [Instruction]
    entry: str = ""
    compiled: bool = True  # it contains fusions


def dot_gemm(out, lhs, rhs, contracting, batch):
    """The GEMM from the shapes and the dimensions of the left operand; those of the right one follow from them."""
    k = math.prod(lhs.dims[i] for i in contracting)
    count = math.prod(lhs.dims[i] for i in batch)
    m = math.prod(size for i, size in enumerate(lhs.dims) if i not in contracting and i not in batch)
    n = out.elements // max(1, m * count)
    return Gemm(m, max(1, n), k, count, lhs.dtype)


def convolution_gemm(out, kernel, labels):
    """`labels` of the kernel's dimensions, `o` for the results' features."""
    features = kernel.dims[labels.index("o")] if "o" in labels else 1
    covered = math.prod(size for size, label in zip(kernel.dims, labels) if label != "o")
    return Gemm(out.elements // max(1, features), features, covered, 1, kernel.dtype)


def whole_list(text):
    return [int(one) for one in re.findall(r"-?\d+", text)]


def iota_groups(groups, dims, order):
    """[2,4]<=[4,2]T(1,0): the numbers 0 to 7 as an array of `dims`, transposed to `order`, cut into `groups`."""
    if order:
        strides = [math.prod(dims[i + 1:]) for i in range(len(dims))]
        numbers = [0]
        for axis in order:
            numbers = [one + strides[axis] * i for one in numbers for i in range(dims[axis])]
    else:
        numbers = list(range(math.prod(dims)))
    size = math.prod(groups[1:])
    return [numbers[i * size:(i + 1) * size] for i in range(groups[0])]


AXES = r"@?mesh(?:\[([^\]]*)\]|<([^>]*)>)(?:,\s*device_ids=\(([\d,\[\]T() ]*?)\))?"
MESH = re.compile(rf"replica_groups={AXES}\s*\{{([^}}]*)\}}")
NAMED_SHARDING = re.compile(rf"{AXES},\s*\[([^\]]*)\]")  # of each dimension its axes: mesh['x'=2], [{'x'}, {}]
IOTA = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")
AXIS = re.compile(r"([^=,]+?)=(\d{1,9})")
PART = re.compile(r"(.+?)(?::\((\d{1,9})\)(\d{1,9}))?")


def mesh_groups(found, most):
    """mesh['x'=2,'y'=4] {'y'}, a match of MESH: the groups of mesh_device_groups(). 'y':(2)2 is a part of an axis: of 2
    blocks of it, 2 each; device_ids=([4,2]T(1,0)) or device_ids=(0,2,1,3) are the devices in the array."""
    axes = [AXIS.fullmatch(one.strip().replace("'", "")) for one in (found[1] or found[2] or "").split(",")]
    parts = [PART.fullmatch(one.strip().replace("'", "")) for one in found[4].split(",")]
    if not all(axes) or not all(parts):
        return None
    sizes = {one[1]: int(one[2]) for one in axes}
    taken = [(one[1], int(one[2] or 1), int(one[3] or sizes.get(one[1], 0))) for one in parts]
    devices, iota = whole_list(found[3] or ""), IOTA.fullmatch(found[3] or "")
    if iota:
        rows, permuted = whole_list(iota[1]), whole_list(iota[2] or "")
        if not 0 < math.prod(rows) <= most or (permuted and sorted(permuted) != list(range(len(rows)))):
            return None
        devices = iota_groups([1, math.prod(rows)], rows, permuted)[0]
    return mesh_device_groups(sizes, taken, devices, most) if len(sizes) == len(axes) else None


def mesh_device_groups(sizes, taken, devices, most):
    """Devices as an array with the axes {name: size}, and a group for each position on the axes that are not among
    `taken`: (name, size of what is before on the axis, its own size). `devices` are those in the array, if they are in
    another order. So do Mesh::ToString, AxisRef::ToString (xla/hlo/ir/mesh_and_axis.cc) and
    MeshAxesReplicaGroupList::flattened_replica_groups (replica_group.cc) of XLA. None if it does not fit together or has
    more than `most` devices."""
    count = math.prod(sizes.values())
    fits = 0 < count <= most and all(size > 0 for size in sizes.values()) and all(
        name in sizes and first > 0 and 0 < first * size <= sizes[name] for name, first, size in taken)
    if not fits:
        return None
    dims, places = [], {}  # places: (axis, size of what is before on it, its own) -> number of the dimension
    for name, whole in sizes.items():
        ends = sorted({1, whole, *(end for one, first, size in taken if one == name for end in (first, first * size))})
        for begin, end in zip(ends, ends[1:] or ends):
            if end % begin:
                return None
            places[name, begin, end // begin] = len(dims)
            dims.append(end // begin)
    grouped = [places.get(one) for one in taken]
    if None in grouped or len(set(grouped)) < len(grouped):
        return None
    order = [*(i for i in range(len(dims)) if i not in grouped), *grouped]
    size = math.prod(dims[i] for i in grouped)
    if devices and sorted(devices) != list(range(count)):
        return None
    return [[devices[one] if devices else one for one in group]
            for group in iota_groups([count // size, size], dims, order)]


def device_groups(one, base, replicas, partitions):
    """The groups of devices (replica x partitions + partition) of a collective, or the pairs of a collective-permute:
    CollectiveOpGroupMode of xla/service/collective_ops_utils.h."""
    crosses_partitions = base in ("collective-permute", "all-to-all", "collective-broadcast")
    if one.channel and one.global_ids:
        return one.groups or [list(range(replicas * partitions))]
    if one.channel and crosses_partitions:
        named = one.groups or ([] if base == "collective-permute" else [list(range(partitions))])
        return [[replica * partitions + number for number in group] for replica in range(replicas) for group in named]
    if one.channel:
        named = one.groups or [list(range(replicas))]
        return [[replica * partitions + part for replica in group for part in range(partitions)] for group in named]
    if replicas == 1 and partitions > 1 and one.groups:
        return one.groups  # StableHLO, and modules without this in their head: numbers are devices
    named = one.groups or ([] if base == "collective-permute" else [list(range(replicas))])
    return [[number * partitions + part for number in group] for part in range(partitions) for group in named]


def divides_by_name(sharding):
    """The same as divides() for a match of NAMED_SHARDING."""
    sizes = dict(re.findall(r"'?(\w+)'?=(\d+)", sharding[1] or sharding[2] or ""))
    return any(int(sizes.get(name, 1)) > 1 for name in re.findall(r"[{,]\s*'?(\w+)'?", sharding[4]))
