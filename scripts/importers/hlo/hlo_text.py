# SPDX-License-Identifier: GPL-2.0-only
"""HLO as XLA prints it (xla/hlo/parser, and HloInstruction::ToString of github.com/openxla/xla)."""

import re

from frameworks.communications import MAX_RANKS
from importing.errors import InputError, text_lines

from .program import (COLLECTIVES, HALVES, MESH, NAMED_SHARDING, Instruction, Module, Shape, bytes_of_element,
                      convolution_gemm, divides, divides_by_name, dot_gemm, iota_groups, mesh_groups, not_divided,
                      whole_list)

HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+)(?: \(.*)? (?:-> .*)?\{\s*$|^(ENTRY )?%?([\w.\-]+) \{\s*$")
START = re.compile(r"^\s*(ROOT )?%?([\w.\-]+) = ")
TENSOR = re.compile(r"([a-z]\w*)\[([\d,<=? ]*)\](?:\{[^{}]*\})?")
OP = re.compile(r" ?([\w\-]+)\(")
OPERAND = re.compile(r"%?([\w.\-]+)\s*$")
SHARDING = re.compile(r"\bsharding=\{\{?devices=\[([\d,]+)\][^}]*\}")
CLOSERS = {"(": ")", "{": "}", "[": "]"}


def looks_like(start):
    return start.lstrip().startswith("HloModule")


def balanced(text, at, path, line):
    """The end of the text that begins with a bracket at `at`; strings may contain any brackets."""
    depth, quoted = 0, False
    for i in range(at, len(text)):
        character = text[i]
        if character == '"' and text[i - 1] != "\\":
            quoted = not quoted
        elif not quoted and character in "({[":
            depth += 1
        elif not quoted and character in ")}]":
            depth -= 1
            if depth == 0:
                return i + 1
    raise InputError(path, line, f"'{text[at]}' without its '{CLOSERS[text[at]]}'; an instruction stands on one line")


def split(text):
    """Splits at commas outside of brackets and strings."""
    parts, depth, quoted, begin = [], 0, False, 0
    for i, character in enumerate(text):
        if character == '"' and (i == 0 or text[i - 1] != "\\"):
            quoted = not quoted
        elif quoted:
            continue
        elif character in "({[":
            depth += 1
        elif character in ")}]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [*parts, text[begin:].strip()] if text.strip() else []


def read_shape(text, at, path, line):
    """(shape, its end)."""
    if text[at:at + 1] == "(":
        end = balanced(text, at, path, line)
        inner = re.sub(r"/\*.*?\*/", "", text[at + 1:end - 1])
        return Shape(parts=tuple(read_shape(one, 0, path, line)[0] for one in split(inner))), end
    found = TENSOR.match(text, at)
    if not found:
        raise InputError(path, line, f"found '{text[at:at + 20]}'; expected a shape such as f32[8,128]")
    if "<=" in found.group(2) or "?" in found.group(2):
        raise InputError(path, line, f"the shape {found.group(0)} is not fixed; compile with fixed shapes")
    if bytes_of_element(found.group(1)) is None:
        raise InputError(path, line, f"the element type '{found.group(1)}' has no known size; expected one such as bf16")
    end = found.end()
    if text[end:end + 1] == "{":  # a layout with tiles: {1,0:T(8,128)(2,1)}
        end = balanced(text, end, path, line)
    return Shape(found.group(1), tuple(whole_list(found.group(2)))), end


class HloReader:
    def __init__(self, path):
        self.module, self.path, self.name = Module(str(path)), str(path), ""
        self.shapes = {}
        self.scheduled = False  # compiled, to the end
        self.sharded = None  # line of a divided tensor

    def error(self, line, what):
        return InputError(self.path, line, what)

    def read(self):
        name, begun = None, 0
        for line, text in text_lines(self.path):
            stripped = text.strip()
            if not stripped or stripped.startswith(("//", "FileNames", "FunctionNames", "FileLocations",
                                                    "StackFrames")):
                continue
            if stripped.startswith("HloModule"):
                self.header(stripped)
            elif name is None:
                if (found := HEADER.match(stripped)):
                    name, begun = found.group(2) or found.group(4), line
                    self.module.computations[name], self.shapes = [], {}
                    if found.group(1) or found.group(3):
                        self.module.entry = name
                elif not re.match(r"^[\d\"{]", stripped):
                    raise self.error(line, f"found '{stripped[:60]}'; expected the head of a computation")
            elif re.match(r"^\}", stripped):
                name = None
            else:
                self.module.computations[name].append(self.instruction(text, line))
        if name is not None:
            raise self.error(begun, f"the computation '{name}' has no end; the file has been cut off")
        if not self.module.computations:
            raise self.error(None, "it has no computation")
        self.module.entry = self.module.entry or list(self.module.computations)[-1]
        self.require_parts()
        return self.module

    def require_parts(self):
        """XLA divides what is sharded among the devices when it compiles; its SPMD partitioner names what is divided."""
        divided = self.scheduled or self.module.entry.endswith("_spmd")
        bodies = [one for body in self.module.computations.values() for one in body]
        if self.sharded and self.module.partitions > 1 and not divided and not any(one.op in COLLECTIVES
                                                                                   for one in bodies):
            raise self.error(self.sharded, not_divided(self.module.partitions))

    def header(self, text):
        self.scheduled = "is_scheduled=true" in text
        self.name = re.match(r"HloModule\s+([^\s,]*)", text + " ,").group(1) if text.startswith("HloModule ") else ""
        for key, field in (("replica_count", "replicas"), ("num_partitions", "partitions")):
            if (found := re.search(rf"{key}=(\d+)", text)):
                setattr(self.module, field, max(1, int(found.group(1))))

    def instruction(self, text, line):
        found = START.match(text)
        if not found:
            raise self.error(line, f"found '{text.strip()[:60]}'; expected an instruction such as 'x = f32[8] add(a, b)'")
        shape, at = read_shape(text, found.end(), self.path, line)
        op = OP.match(text, at)
        if not op:
            raise self.error(line, f"found '{text[at:at + 30].strip()}' after the shape; expected an operation")
        end = balanced(text, op.end() - 1, self.path, line)
        inner, rest = text[op.end():end - 1], text[end:]
        one = Instruction(found.group(2), op.group(1), shape, line=line, root=bool(found.group(1)))
        if one.op == "constant":
            if (number := re.fullmatch(r"\s*(-?\d+)\s*", inner)):
                one.value = int(number.group(1))
        elif one.op == "parameter":
            one.index = int(inner) if inner.strip().isdigit() else None
        else:
            one.operands = self.operands(inner, line)
            one.taken = [self.shapes.get(name, Shape()) for name in one.operands]
        self.attributes(one, rest)
        if any(map(divides, SHARDING.finditer(rest))) or "sharding=" in rest and any(
                map(divides_by_name, NAMED_SHARDING.finditer(rest))):
            self.sharded = self.sharded or line
        self.shapes[one.name] = shape
        return one

    def operands(self, inner, line):
        names = []
        for part in split(re.sub(r"/\*.*?\*/", "", inner)):
            found = OPERAND.search(part)
            if not found:
                raise self.error(line, f"found '{part[:40]}'; expected an operand's name")
            names.append(found.group(1))
            if part.strip() != found.group(0).strip() and names[-1] not in self.shapes:
                self.shapes[names[-1]] = read_shape(part, 0, self.path, line)[0]
        return names

    def operand(self, one, at):
        if at >= len(one.operands) or one.operands[at] not in self.shapes:
            raise self.error(one.line, f"'{one.name}': its operand {at} is not defined above it")
        return self.shapes[one.operands[at]]

    def attributes(self, one, rest):
        found = re.search(r'op_name="((?:[^"\\]|\\.)*)"', rest)
        one.label = found.group(1).replace('\\"', '"') if found else ""
        if (number := re.search(r"\bindex=(\d+)", rest)) and one.op == "get-tuple-element":
            one.index = int(number.group(1))
        if one.op == "compare":
            one.direction = (re.search(r"direction=(\w+)", rest) or [None, ""])[1]
        for key in ("calls", "to_apply", "body", "called_computations", "branch_computations", "true_computation",
                    "false_computation"):
            if key == "to_apply" and one.op != "call":
                continue  # of reductions
            if (named := re.search(rf"\b{key}=(\{{[^}}]*\}}|%?[\w.\-]+)", rest)):
                one.calls += re.findall(r"[\w.\-]+", named.group(1))
        if (named := re.search(r"\bcondition=%?([\w.\-]+)", rest)):
            one.condition = named.group(1)
        if (trips := re.search(r'known_trip_count[\\"]*\s*[:=]\s*\{\s*[\\"]*n[\\"]*\s*[:=]\s*[\\"]*(\d+)', rest)):
            one.trips = int(trips.group(1))
        self.gemm(one, rest)
        self.communication(one, rest)

    def gemm(self, one, rest):
        try:
            if one.op == "dot":
                one.gemm = dot_gemm(one.shape, self.operand(one, 0), self.operand(one, 1),
                                          self.dims(rest, "lhs_contracting_dims"), self.dims(rest, "lhs_batch_dims"))
            elif one.op == "scaled-dot":  # lhs, rhs, and their scales
                one.gemm = dot_gemm(one.shape, self.operand(one, 0), self.operand(one, 1),
                                          self.dims(rest, "lhs_contracting_dims"), self.dims(rest, "lhs_batch_dims"))
            elif one.op == "ragged-dot":  # groups of rows, each with a matrix of its own, or groups of what is summed
                contracting = self.dims(rest, "lhs_contracting_dims")
                one.gemm = dot_gemm(one.shape, self.operand(one, 0), self.operand(one, 1), contracting,
                                          self.dims(rest, "lhs_batch_dims"))
                if set(self.dims(rest, "lhs_ragged_dims")) <= set(contracting):
                    one.gemm.n //= max(1, one.shape.dims[0])
            elif one.op == "convolution":
                labels = re.search(r"dim_labels=\w+_(\w+)->", rest)
                if not labels:
                    raise self.error(one.line, f"the convolution '{one.name}' has no dim_labels")
                one.gemm = convolution_gemm(one.shape, self.operand(one, 1), labels.group(1))
            elif one.op == "custom-call":
                self.custom_call(one, rest)
        except (IndexError, ValueError):
            raise self.error(one.line, f"'{one.name}': its dimensions do not fit its operands") from None

    def custom_call(self, one, rest):
        target = (re.search(r'custom_call_target="([^"]*)"', rest) or [None, ""])[1]
        if "gemm" in target or "matmul" in target:
            names = [re.search(rf'{key}[\\"]*:\[([^\]]*)\]', rest)
                     for key in ("lhs_contracting_dimensions", "lhs_batch_dimensions")]
            if names[0]:
                made = one.shape.parts[0] if one.shape.parts else one.shape
                one.gemm = dot_gemm(made, self.operand(one, 0), self.operand(one, 1),
                                          whole_list(names[0].group(1)),
                                          whole_list(names[1].group(1)) if names[1] else [])
                return
        one.unknown = target or "?"

    @staticmethod
    def dims(rest, key):
        found = re.search(rf"{key}=\{{([^}}]*)\}}", rest)
        return whole_list(found.group(1)) if found else []

    def communication(self, one, rest):
        if one.op in HALVES:
            self.half(one, rest)
            return
        if one.op.removesuffix("-start") not in COLLECTIVES and one.op != "ragged-all-to-all":
            return
        one.channel = "channel_id=" in rest
        one.global_ids = "use_global_device_ids=true" in rest
        if one.op.startswith("collective-permute"):
            found = re.search(r"source_target_pairs=\{((?:\{\d+,\s*\d+\},?\s*)*)\}", rest)
            if not found:
                raise self.error(one.line, f"'{one.name}': expected source_target_pairs={{{{0,1}},..}}")
            one.groups = [whole_list(pair) for pair in re.findall(r"\{[^}]*\}", found.group(1))]
            return
        iota = re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", rest)
        listed = re.search(r"replica_groups=\{((?:\{[\d,\s]*\},?\s*)*)\}", rest)
        if iota:
            groups, dims = whole_list(iota.group(1)), whole_list(iota.group(2))
            order = whole_list(iota.group(3) or "")
            fits = self.product_of(groups) == self.product_of(dims) <= MAX_RANKS
            if not fits or (order and sorted(order) != list(range(len(dims)))):
                raise self.error(one.line, f"'{one.name}': {iota.group(0)} does not fit together")
            one.groups = iota_groups(groups, dims, order)
        elif listed:
            one.groups = [group for group in map(whole_list, re.findall(r"\{[^}]*\}", listed.group(1))) if group]
        elif mesh := MESH.search(rest):
            one.groups = mesh_groups(mesh, MAX_RANKS)
            if one.groups is None:
                raise self.error(one.line, f"'{one.name}': {mesh[0][:200]} does not fit together")
        elif "replica_groups=" in rest:
            raise self.error(one.line, f"'{one.name}': its replica_groups are none of {{{{0,1}},..}}, [2,4]<=[8] and "
                             "mesh['x'=2,'y'=4] {'y'}")
        else:
            one.groups = []

    def half(self, one, rest):
        """A send or recv names its other end in an attribute: collective_permute_decomposer.cc of
        xla/service."""
        if "is_host_transfer=true" in rest:
            return
        number = re.search(r"channel_id=(\d{1,9})\b", rest)
        pairs = re.search(r'_xla_send_recv_source_target_pairs=\s*"?\{((?:\{\d+,\s*\d+\},?\s*)*)\}', rest)
        if pairs:
            one.channel, one.number = number is not None, int(number.group(1)) if number else 0
            one.groups = [whole_list(pair) for pair in re.findall(r"\{[^}]*\}", pairs.group(1))]

    @staticmethod
    def product_of(numbers):
        result = 1
        for one in numbers:
            result *= one
        return result
