# SPDX-License-Identifier: GPL-2.0-only
"""HLO and StableHLO text: the program of each device, with times of a device file."""

from frameworks.communications import MAX_RANKS
from frameworks.devices import Device, precision_of
from frameworks.json_stream import beginning
from frameworks.rank_files import GroupNames, RankFile, chakra_workload
from frameworks.timeline import Notes
from importing.errors import InputError, StudyError, read_bytes
from importing.imported import Imported
from support.console import natural

from . import hlo_text, stable_text
from .program import COLLECTIVES, ELEMENTWISE, FREE, HALVES, PARTS, device_groups
from .trips import trips_of

SUMMARY = "HLO or StableHLO as text (XLA, JAX), with the times of a device"
COMPUTE, COMMUNICATION = 0, 1  # streams
PERMUTE_TAG = 0
DEEPEST = 200
MAX_OPERATIONS = 10**6  # of a device: more may be intended, or the counter of a loop may be damaged


def add_arguments(parser):
    parser.add_argument("input", metavar="FILE", help="HLO after optimizations (--xla_dump_to), or StableHLO")
    parser.add_argument("--device", metavar="NAME", default="h100", help="whose times operations take (h100; "
                        "workloads/devices)")
    parser.add_argument("--precision", metavar="NAME", help="of all GEMMs (that of their operands)")
    parser.add_argument("--trip-count", metavar="N", type=natural, help="of while loops that do not show it")
    parser.add_argument("--max-operations", metavar="N", type=natural, default=MAX_OPERATIONS,
                        help=f"of a device, loops written out ({MAX_OPERATIONS})")
    parser.add_argument("--ragged", choices=["even"], help="rows that ragged-all-to-alls send, which are known when "
                        "the module runs: an equal share of the operand to each device")
    parser.add_argument("--ranks", metavar="N", type=natural, help="devices, if the module does not say it")


def reader_of(path):
    start = beginning(path, 1 << 16)
    if hlo_text.looks_like(start):
        return hlo_text.HloReader
    return stable_text.StableReader if stable_text.looks_like(start) else None


def matches(path):
    return reader_of(path) is not None


def read(options):
    reader = reader_of(options.input)
    if reader is None:
        read_bytes(options.input, 1)  # a missing file has a separate message
        raise InputError(options.input, 1, "it begins with neither 'HloModule' nor an MLIR module of StableHLO; a "
                                           "protobuf of HLO becomes text by XLA's hlo-opt or by as_text() of JAX's "
                         "lowered and compiled functions")
    plan = Plan(reader(options.input).read(), options)
    imported = Imported([options.input], plan.ranks, [
        f"{options.input}: {plan.module.replicas} replicas of {plan.module.partitions} partitions, on "
        f"{plan.device.name}.", f"Each device: {plan.flops / 1e12:.6g} TFLOP in GEMMs."])
    chakra_workload(imported, plan.ranks, plan.names, plan.write)
    for place, text in plan.notes.lines():
        imported.ignore(place, text)
    return imported


class Plan:
    """The program of each device: for each computation a list of steps

    ("compute", label, picoseconds, flops)   ("call", computation, times)
    ("start", name, label, kind, bytes, groups)   ("wait", name)"""

    def __init__(self, module, options):
        self.module, self.options, self.device, self.notes = module, options, Device(options.device), Notes()
        self.steps, self.divisions, self.open, self.pairs = {}, {}, [], set()
        self.ranks = module.replicas * module.partitions
        if self.ranks == 1:
            self.ranks = options.ranks or self.most_named()
            self.module.replicas, self.module.partitions = 1, self.ranks
        elif self.ranks > MAX_RANKS:
            raise self.error(None, f"it is for {self.ranks} devices; expected at most {MAX_RANKS}")
        elif options.ranks not in (None, self.ranks):
            raise StudyError(f"{module.path}: it is for {self.ranks} devices, and --ranks is {options.ranks}")
        self.flops = self.of_computation(module.entry)[1]
        self.names = GroupNames(self.ranks)
        self.groups = [{} for _ in range(self.ranks)]  # {division: name of the rank's group}
        for division, number in self.divisions.items():
            for group in division[1:] if number not in self.pairs else ():
                name = self.names.of(f"g{number}", group) if len(group) > 1 else None
                for rank in group if name is not None else ():
                    self.groups[rank][number] = name

    def error(self, line, what):
        return InputError(self.module.path, line, what)

    def most_named(self):
        named = (number for body in self.module.computations.values() for one in body for group in one.groups or ()
                 for number in group)
        return 1 + min(MAX_RANKS - 1, max(named, default=0))

    def of_computation(self, name, line=None):
        """(steps, FLOPs, number of executed steps) of one computation."""
        if name not in self.module.computations:
            raise self.error(line, f"there is no computation '{name}'")
        if name in self.steps:
            return self.steps[name]
        if name in self.open:
            raise self.error(line, f"the computation '{name}' calls itself")
        self.open.append(name)
        steps, flops, body = [], 0, self.module.computations[name]
        for one in body:
            flops += self.instruction(one, steps, body)
        self.open.pop()
        count = sum(self.steps[step[1]][2] * step[2] if step[0] == "call" else 1 for step in steps)
        if count > self.options.max_operations:
            raise self.error(line, f"'{name}' comes to {count} operations of each device; expected "
                             f"at most {self.options.max_operations} (--max-operations N)")
        self.steps[name] = (steps, flops, count)
        return self.steps[name]

    def instruction(self, one, steps, body):
        """Appends the steps of an instruction; returns its FLOPs."""
        op = one.op
        base = op.removesuffix("-start").removesuffix("-done").removesuffix("-update")
        if op in FREE or op.endswith("-update") or (not self.module.compiled and op in ELEMENTWISE):
            return 0
        if op.endswith("-done"):
            steps.append(("wait", one.operands[0] if one.operands else ""))
            return 0
        if base in COLLECTIVES:
            return self.collective(one, one, base, steps, op.endswith("-start"))
        if op == "async-start" or (op.endswith("-start") and one.calls):
            return self.asynchronous(one, steps)
        if op in HALVES and one.groups is not None:
            return self.half(one, steps)
        if base in ("send", "recv", "infeed", "outfeed"):
            raise self.error(one.line, f"'{one.name}' is a {op}: its other end is not in the text, and it "
                                       "is not read")
        if base == "ragged-all-to-all":
            return self.ragged(one, steps, op.endswith("-start"))
        if op == "while":
            return self.loop(one, steps, body)
        if op == "call":
            return self.call(one, steps, one.calls[0] if one.calls else "?", 1)
        if op == "conditional":
            return self.conditional(one, steps)
        return self.kernel(one, steps)

    def call(self, one, steps, name, times):
        flops = self.of_computation(name, one.line)[1]
        if times:
            steps.append(("call", name, times))
        return flops * times

    def loop(self, one, steps, body):
        for name in [*one.calls, one.condition]:
            self.of_computation(name, one.line)
        trips = trips_of(self.module, one, body)
        if trips is None:
            trips = self.options.trip_count
            if trips is None:
                raise self.error(one.line, f"the loop '{one.name}': nothing says how often it runs (known_trip_count, "
                                           f"or a counter from a constant to a constant); give --trip-count N")
        return self.call(one, steps, one.calls[0] if one.calls else "?", trips)

    def conditional(self, one, steps):
        if not one.calls:
            raise self.error(one.line, f"the conditional '{one.name}' names no computations")
        best = max(one.calls, key=lambda name: self.of_computation(name, one.line)[1])
        self.notes.add("of conditionals the branch with the most FLOPs is taken", f"{self.module.path}:{one.line}")
        return self.call(one, steps, best, 1)

    def asynchronous(self, one, steps):
        """async-start of a computation with one collective, or of kernels, whose time is at this place."""
        flops = 0
        for name in one.calls:
            for inner in self.module.computations.get(name, []):
                base = inner.op.removesuffix("-start")
                if base in COLLECTIVES:
                    self.collective(one, inner, base, steps, True)
                else:
                    flops += self.instruction(inner, steps, self.module.computations[name])
        return flops

    def collective(self, one, inner, base, steps, starts):
        size = sum(shape.bytes for shape in inner.taken)
        division = self.division(inner, base)
        steps.append(("start", one.name, one.label or one.name, COLLECTIVES[base], size, division))
        if not starts:
            steps.append(("wait", one.name))
        return 0

    def half(self, one, steps):
        """Bytes of a send's first operand, or of a recv's first result."""
        shape = (one.taken[:1] or [one.shape])[0] if one.op == "send" else (one.shape.parts or (one.shape,))[0]
        division = self.division(one, "collective-permute")
        steps.append(("start", one.name, one.label or one.name, HALVES[one.op], shape.bytes, (division, one.number)))
        return 0

    def ragged(self, one, steps, starts):
        """The numbers of rows between ranks are in its operands, and therefore not in the text."""
        if self.options.ragged is None:
            raise self.error(one.line, f"'{one.name}': the number of rows for each receiver is known only when it runs; "
                                       "--ragged even takes equal shares of its operand")
        self.notes.add("rows of ragged-all-to-alls are taken as equal shares (--ragged even)",
                       f"{self.module.path}:{one.line}")
        division = self.division(one, "all-to-all")
        steps.append(("start", one.name, one.label or one.name, "all_to_all", one.taken[0].bytes if one.taken else 0,
                      division))
        if not starts:
            steps.append(("wait", one.name))
        return 0

    def division(self, one, base):
        """The groups of ranks, as a number of self.divisions."""
        groups = device_groups(one, base, self.module.replicas, self.module.partitions)
        self.check(one, groups, base)
        number = self.divisions.setdefault((base == "collective-permute", *map(tuple, groups)), len(self.divisions))
        if base == "collective-permute":
            self.pairs.add(number)
        return number

    def check(self, one, groups, base):
        for group in groups:
            if any(not 0 <= rank < self.ranks for rank in group):
                raise self.error(one.line, f"'{one.name}': the group {group} has a device that is none of 0 to "
                                 f"{self.ranks - 1}")
        ends = [list(pair) for pair in zip(*groups)] if base == "collective-permute" else [[r for g in groups
                                                                                            for r in g]]
        for numbers in ends:
            if len(set(numbers)) != len(numbers):
                raise self.error(one.line, f"'{one.name}': a device is in two groups")

    def kernel(self, one, steps):
        gemms = [one.gemm] if one.gemm else []
        for name in one.calls if one.op == "fusion" else ():
            gemms += self.gemms_in(name, one.line, 0)
        size = self.traffic(one)
        took, flops = 0, 0
        for gemm in gemms:
            took += self.device.gemm(gemm.m, gemm.n, gemm.k, gemm.count, 0,
                                        self.options.precision or precision_of(gemm.dtype))
            flops += gemm.flops
        took = max(took, self.device.other(size))
        if one.unknown:
            self.notes.add(f"custom call '{one.unknown}': its arithmetic is not known, only its bytes count",
                           f"{self.module.path}:{one.line}")
        steps.append(("compute", one.label or one.name, took, flops))
        return flops

    def gemms_in(self, name, line, depth):
        if name not in self.module.computations or depth > DEEPEST:
            raise self.error(line, f"there is no computation '{name}'" if depth <= DEEPEST
                             else f"'{name}' calls itself")
        found = []
        for one in self.module.computations[name]:
            found += [one.gemm] if one.gemm else []
            for inner in one.calls:
                found += self.gemms_in(inner, line, depth + 1)
        return found

    def traffic(self, one):
        """Bytes of memory that a kernel reads and writes: its operands and results; for slices only the slices."""
        if one.op == "dynamic-update-slice" and len(one.taken) > 1:
            return 2 * one.taken[1].bytes
        if one.op in PARTS:
            return 2 * one.shape.bytes
        if one.op != "fusion" or len(one.calls) != 1:
            return one.shape.bytes + sum(shape.bytes for shape in one.taken)
        body = self.module.computations.get(one.calls[0], [])
        total = one.shape.bytes
        for at, shape in enumerate(one.taken):
            name = next((inner.name for inner in body if inner.op == "parameter" and inner.index == at), None)
            users = [inner for inner in body if name in inner.operands]
            if users and all(user.op in ("dynamic-slice", "gather", "slice") and user.operands[0] == name
                             for user in users):
                total += sum(user.shape.bytes for user in users)
            elif users and all(user.op == "dynamic-update-slice" and user.operands[0] == name for user in users):
                total += sum(user.taken[1].bytes for user in users) - shape.bytes  # in place
            else:
                total += shape.bytes
        return max(0, total)

    # One rank ---------------------------------------------------------------------------------------------------------

    def write(self, rank, file):
        writer = RankWriter(self, rank, RankFile(file), self.groups[rank], list(self.divisions))
        writer.computation(self.module.entry)
        writer.out.flush()


class RankWriter:
    """Kernels one after another, communications one after another; a communication starts after the kernels before it,
    and operations after its end wait for it."""

    def __init__(self, plan, rank, out, groups, divisions):
        self.plan, self.rank, self.out, self.groups, self.divisions = plan, rank, out, groups, divisions
        self.last, self.waited, self.started = None, set(), {}

    def computation(self, name):
        for step in self.plan.steps[name][0]:
            if step[0] == "compute":
                _, label, took, flops = step
                self.last = self.out.compute(label, self.waited, took, COMPUTE, flops=flops)
                self.waited = set()
            elif step[0] == "call":
                for _ in range(step[2]):
                    self.computation(step[1])
            elif step[0] == "wait":
                self.waited |= self.started.pop(step[1], set())
            else:
                self.start(*step[1:])

    def start(self, name, label, kind, size, division):
        after = set(self.waited) | ({self.last} if self.last is not None else set())
        if kind in HALVES.values():
            nodes = self.permute(label, after, size, self.divisions[division[0]][1:], division[1], kind)
        elif kind == "permute":
            nodes = self.permute(label, after, size, self.divisions[division][1:])
        elif division in self.groups:
            nodes = {self.out.collective(label, after, kind, size, self.groups[division], COMMUNICATION)}
        else:
            nodes = set()
        self.started[name] = self.started.get(name, set()) | nodes

    def permute(self, label, after, size, pairs, tag=PERMUTE_TAG, half=None):
        """`half`: only this end of it."""
        nodes = set()
        for source, target in pairs:
            if source != target and source == self.rank and half != "receives":
                nodes.add(self.out.message(label, after, True, size, target, tag))
            if source != target and target == self.rank and half != "sends":
                nodes.add(self.out.message(label, after, False, size, source, tag))
        return nodes
