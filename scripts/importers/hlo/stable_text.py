# SPDX-License-Identifier: GPL-2.0-only
"""StableHLO as MLIR prints it (docs/spec.md of github.com/openxla/stablehlo), pretty or generic, read line by line:
regions of reductions are skipped, functions and loops become computations."""

import re

from importing.errors import InputError, text_lines

from .program import (COLLECTIVES, Instruction, Module, Shape, bytes_of_element, convolution_gemm, divides, dot_gemm,
                      not_divided, whole_list)

RESULT = r"(?:(%[\w#:, %]+?)\s*=\s*)?"
OP = re.compile(rf'^{RESULT}"?(stablehlo|mhlo|func|chlo|sdy)\.([\w.]+)"?|^{RESULT}(call|return)\b')
TENSOR = re.compile(r"tensor<((?:\d+x|\?x)*)([^<>,]+(?:<[^<>]*>)?)[^<>]*>")
REFERENCE = re.compile(r"%\w+")
TYPE = re.compile(r"tensor<(?:[^<>]|<[^<>]*>)*>")
TILES = re.compile(r'mhlo\.sharding = "\{devices=\[([\d,]+)\][^"]*"')
AXES = re.compile(r"sdy\.sharding(?:_constraint|) [^\[]*\[([^\]]*)\]")


def says_divided(text):
    """Whether a line says that a tensor is divided; an axis has quotes."""
    return any(map(divides, TILES.finditer(text))) or any('"' in found.group(1) for found in AXES.finditer(text))


def looks_like(start):
    return bool(re.search(r"\b(stablehlo|mhlo)\.", start) or re.search(r"^\s*module\b.*\{", start, re.MULTILINE)
                and "func.func" in start)


class Region:
    """An open brace. `body` collects instructions; None: its content is ignored."""

    def __init__(self, name, body, kind, owner=None):
        self.name, self.body, self.kind, self.owner = name, body, kind, owner


class StableReader:
    def __init__(self, path):
        self.path, self.module = str(path), Module(str(path), compiled=False)
        self.shapes, self.regions, self.loop, self.pending = {}, [], None, None
        self.sharded, self.parts = None, False  # line of a divided tensor; whether shapes of a device's part are there

    def error(self, line, what):
        return InputError(self.path, line, what)

    def read(self):
        line = 0
        for line, text in text_lines(self.path):
            stripped = text.strip()
            if stripped and not stripped.startswith(("//", "#")):
                self.sharded = self.sharded or (line if says_divided(stripped) else None)
                self.line(stripped, line)
        if self.regions:
            raise self.error(line, "the file ends within a region; it has been cut off")
        if not self.module.computations:
            raise self.error(None, "it has no function")
        self.require_parts()
        self.module.entry = "main" if "main" in self.module.computations else list(self.module.computations)[0]
        return self.module

    def require_parts(self):
        """XLA divides what is sharded among the devices only when it compiles."""
        collectives = any(one.op in COLLECTIVES for body in self.module.computations.values() for one in body)
        if self.sharded and self.module.partitions > 1 and not self.parts and not collectives:
            raise self.error(self.sharded, not_divided(self.module.partitions))

    def line(self, text, line):
        if text.startswith("module"):
            for key, field in (("num_replicas", "replicas"), ("num_partitions", "partitions")):
                if (found := re.search(rf"mhlo\.{key} = (\d+)", text)):
                    setattr(self.module, field, max(1, int(found.group(1))))
            self.regions.append(Region("module", None, "module"))
        elif text.startswith("func.func"):
            self.function(text, line)
        elif re.match(r"^cond\b.*\{$", text) and self.loop:
            self.open_loop(self.loop.condition, "cond")
        elif re.match(r"^\}?\s*do\b.*\{$", text) and self.loop:
            if text.startswith("}"):
                self.close(line)
            self.open_loop(self.loop.calls[0], "do")
        elif text.startswith("}"):
            self.closing(text, line)
        elif text.startswith("^"):
            self.arguments(text, line)
        else:
            self.operation(text, line)

    def function(self, text, line):
        found = re.search(r"@([\w.$\-]+)", text)
        if not found:
            raise self.error(line, "a function without a name")
        self.shapes = {}
        self.arguments(text, line)
        body = self.module.computations[found.group(1)] = []
        if text.endswith("{"):
            self.regions.append(Region(found.group(1), body, "function"))

    def arguments(self, text, line):
        for name, kind in re.findall(rf"(%\w+): ({TYPE.pattern})", text):
            self.shapes[name] = self.tensor(kind, line)

    def open_loop(self, name, kind):
        body = self.module.computations[name] = []
        self.regions.append(Region(name, body, kind, self.loop))

    def close(self, line):
        if not self.regions:
            raise self.error(line, "a '}' too many")
        return self.regions.pop()

    def closing(self, text, line):
        region = self.close(line)
        if region.kind == "cond" and "do {" not in text:
            return
        if region.kind == "cond":
            self.open_loop(region.owner.calls[0], "do")
        elif region.kind == "do":
            self.loop = next((one.owner for one in reversed(self.regions) if one.kind in ("cond", "do")), None)
        elif region.kind == "manual":
            self.results(region.owner, text, line)
        elif region.kind == "operation":
            if re.match(r"^\}\s*,\s*\{", text):  # another region of the same operation
                self.regions.append(region)
            else:
                self.finish(region.owner, text, line)

    @property
    def body(self):
        return self.regions[-1].body if self.regions else None

    def tensor(self, text, line=None):
        found = TENSOR.search(text)
        if not found:
            return Shape()
        if "?" in found.group(1):
            raise self.error(line, f"the shape {found.group(0)} is not fixed; export with fixed shapes")
        kind = found.group(2).strip()
        if bytes_of_element(kind) is None:
            raise self.error(line, f"the element type '{kind}' has no known size; expected one such as bf16")
        return Shape(kind, tuple(int(one) for one in found.group(1).split("x") if one))

    def operation(self, text, line):
        if not self.regions:
            raise self.error(line, f"found '{text[:60]}' outside of a function")
        found = OP.match(text)
        if not found:
            if self.body is None or re.match(r"^[\w%\"(\[{<#!]", text):
                if text.count("{") > text.count("}"):
                    self.regions.append(Region("?", None, "other"))
                return
            raise self.error(line, f"found '{text[:60]}'; expected an operation")
        result = found.group(1) or found.group(4)
        name = (found.group(3) or found.group(5)).replace("_", "-")
        one = Instruction((result or f"%{line}").split(":")[0].strip(), name, Shape(), line=line)
        one.operands = REFERENCE.findall(text[found.end():].split(" : ")[0])
        if name == "manual-computation" and text.endswith("{"):  # shard_map: its body has the shapes of one device
            self.parts = True
            self.arguments(text.partition("manual_axes=")[2], line)
            self.regions.append(Region(one.name, self.body, "manual", one))
            return None
        if name == "while":
            return self.loop_of(one, text, line)
        if name == "case" or name == "if":
            raise self.error(line, f"a {name}: which branch is taken is not known; export without it")
        if re.search(r"\(\{\s*$", text):  # a region follows
            one.text = text
            self.regions.append(Region(one.name, None, "operation", one))
            return None
        return self.finish(one, text, line)

    def loop_of(self, one, text, line):
        number = len(self.module.computations)
        one.condition, one.calls = f"cond of line {line} ({number})", [f"body of line {line} ({number})"]
        pairs = one.carried = re.findall(r"(%\w+) = (%\w+)", text)
        kinds = TYPE.findall(text)
        for (argument, _), kind in zip(pairs, kinds):
            self.shapes[argument] = self.tensor(kind, line)
        for i, kind in enumerate(kinds):
            self.shapes[f"{one.name}#{i}"] = self.shapes.setdefault(one.name, self.tensor(kind, line))
        if self.body is not None:
            self.body.append(one)
        self.loop = one

    def results(self, one, text, line):
        """Sets the shape of the results, and returns those of the operands. The types are at the end of the last
        line."""
        types = text.rsplit(" : ", 1)[-1] if " : " in text else ""
        into, _, out = types.partition("->")
        shapes = [self.tensor(kind, line) for kind in TYPE.findall(out or into)]
        one.shape = shapes[0] if len(shapes) == 1 else Shape(parts=tuple(shapes))
        self.shapes[one.name] = one.shape
        return [self.tensor(kind, line) for kind in TYPE.findall(into)] if out else []

    def finish(self, one, text, line):
        if self.body is None:
            return
        whole = f"{one.text} {text}"
        given = self.results(one, text, line)
        one.taken = given or [self.shapes.get(name, Shape()) for name in one.operands]
        if one.op == "constant" and (number := re.search(r"dense<(-?\d+)>", whole)):
            one.value = int(number.group(1))
        if one.op == "compare":
            one.direction = (re.search(r"\b(LT|LE|GT|GE|NE|EQ)\b", whole) or [None, ""])[1]
        if one.op == "call" and (named := re.search(r"@([\w.$\-]+)", whole)):
            one.calls = [named.group(1)]
        try:
            self.details(one, whole)
        except (IndexError, ValueError):
            raise self.error(line, f"'{one.op}': its dimensions do not fit its operands") from None
        self.body.append(one)

    def details(self, one, text):
        if one.op in ("dot-general", "dot"):
            contracting = re.search(r"(?:contracting_dims = |lhs_contracting_dimensions = )\[([\d, ]*)\]", text)
            batch = re.search(r"(?:batching_dims = |lhs_batching_dimensions = )\[([\d, ]*)\]", text)
            one.gemm = dot_gemm(one.shape, one.taken[0], one.taken[1],
                                      whole_list(contracting.group(1)) if contracting else [len(one.taken[0].dims) - 1],
                                      whole_list(batch.group(1)) if batch else [])
        elif one.op == "convolution":
            labels = re.search(r"\]x\[([^\]]*)\]", text)
            if not labels:
                raise self.error(one.line, "a convolution without its dim_numbers [..]x[..]->[..]")
            one.gemm = convolution_gemm(one.shape, one.taken[1],
                                              [part.strip() for part in labels.group(1).split(",")])
        elif one.op == "custom-call":
            named = re.search(r"@([\w.$\-]+)", text) or re.search(r'call_target_name = "([^"]*)"', text)
            one.unknown = named.group(1) if named else "?"
            self.parts |= one.unknown == "SPMDFullToShardShape"  # shard_map before Shardy
        elif one.op in COLLECTIVES:
            self.communication(one, text)

    def communication(self, one, text):
        one.channel = "channel_handle" in text or "channel_id" in text
        one.global_ids = "use_global_device_ids" in text
        key = "source_target_pairs" if one.op == "collective-permute" else "replica_groups"
        found = re.search(rf"{key} = dense<(.*?)> : tensor<(\d+)x(\d+)x", text)
        if not found:
            if key == "replica_groups" and re.search(r"replica_groups = dense<.*?> : tensor<0x", text):
                one.groups = []
                return
            raise self.error(one.line, f"'{one.op}': expected {key} = dense<[[0, 1]]> : tensor<1x2xi64>")
        numbers, rows, columns = whole_list(found.group(1)), int(found.group(2)), int(found.group(3))
        if len(numbers) == 1:
            numbers *= rows * columns
        if len(numbers) != rows * columns:
            raise self.error(one.line, f"'{one.op}': {len(numbers)} numbers in {key} of {rows} x {columns}")
        rows_of = [numbers[i * columns:(i + 1) * columns] for i in range(rows)]
        one.groups = rows_of if key == "source_target_pairs" else [[n for n in row if n >= 0] for row in rows_of]
