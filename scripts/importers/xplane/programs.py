# SPDX-License-Identifier: GPL-2.0-only
"""What the instructions of a compiled module communicate, and which of them wait for it: a profile names the instruction
of each kernel, and has the module beside it."""

import hashlib
import io
import re
from dataclasses import replace

from frameworks.communications import MAX_RANKS, Communication
from frameworks.wire import Part
from importers.hlo.hlo_text import HloReader
from importers.hlo.program import COLLECTIVES, HALVES, device_groups
from importing.errors import InputError

from . import hlo_proto

STEPS_DEEP = 32  # computations within computations
COMMUNICATES = re.compile(r"all-reduce|all-gather|reduce-scatter|all-to-all|collective|\bsend\b|\brecv\b")
# Instructions whose work is in the computations that they call.
CALLERS = ("while", "call", "conditional", "async-start")
WRAPPERS = ("fusion", "custom-call", *CALLERS)


class Devices:
    """Devices of a job by XLA's numbers, and their ranks: in ascending order of the numbers."""

    def __init__(self):
        self.numbers, self.ranks, self.world = set(), {}, 0

    def add(self, numbers):
        self.numbers.update(numbers)

    def finish(self, least, path):
        """A job of `least` ranks or more."""
        if self.numbers and not 0 <= min(self.numbers) <= max(self.numbers) < 1 << 31:
            raise InputError(path, None, f"a device has the number {min(self.numbers)}; expected 0 or more")
        for number in range(least):
            if len(self.numbers) >= least:
                break
            self.numbers.add(number)
        self.ranks = {number: rank for rank, number in enumerate(sorted(self.numbers))}
        self.world = len(self.ranks)
        if self.world > MAX_RANKS:
            raise InputError(path, None, f"{self.world} devices; expected at most {MAX_RANKS}")


def may_communicate(name):
    """By the name of an instruction."""
    return bool(COMMUNICATES.search(name))


class Program:
    """A module. `places` {instruction: (computation, position)}; `ends` {computation: {start: position of its done}};
    `assigned`: [[device of each partition] of each replica]; `scheduled`: whether positions are the order of execution."""

    def __init__(self, module, name, assigned, ragged, scheduled=True):
        self.module, self.name, self.assigned, self.ragged, self.scheduled = module, name, assigned, ragged, scheduled
        self.instructions, self.places, self.ends, self.dones, callers = {}, {}, {}, {}, {}
        self.paths, self.found, self.made = {}, {}, {}  # what has been looked up before
        self.parts = {}  # instructions within the computation of an async-start: the name of the start
        for computation, body in module.computations.items():
            for position, one in enumerate(body):
                self.instructions[one.name] = one
                self.places[one.name] = (computation, position)
                if one.op.endswith("-done"):
                    self.add_end(computation, position, one)
                for called in one.calls if one.op in CALLERS else ():
                    callers.setdefault(called, (computation, position))
                if one.op == "async-start":
                    self.parts.update({part.name: one.name for called in one.calls
                                       for part in module.computations.get(called, ())})
        self.callers = callers

    def add_end(self, computation, position, done):
        start = done.operands[0] if done.operands else None
        for _ in range(STEPS_DEEP):
            one = self.instructions.get(start)
            if one is None or not one.op.endswith("-update"):
                break
            start = one.operands[0] if one.operands else None
        if start is not None:
            self.ends.setdefault(computation, {})[start] = position
            self.dones[done.name] = start

    def start_of(self, name):
        """The start that an instruction is within, or itself."""
        return self.parts.get(name, name)

    def path_of(self, name):
        """{computation: position} of an instruction and of what calls its computation."""
        if name not in self.paths:
            found, place = {}, self.places.get(name)
            while place is not None and place[0] not in found:
                found[place[0]] = place[1]
                place = self.callers.get(place[0])
            self.paths[name] = found
        return self.paths[name]

    def is_over(self, start, path):
        """Whether an instruction with such a path, which runs after `start` has begun, comes after its end: behind the
        `done`, in a later round of a loop, or outside of the computation."""
        place = self.places.get(start)
        at = path.get(place[0]) if place else None
        return at is None or not place[1] <= at <= self.ends.get(place[0], {}).get(start, place[1])

    def starts(self, name):
        """Whether later instructions do not wait for it until its `done`."""
        place = self.places.get(name)
        return place is not None and name in self.ends.get(place[0], {})

    def communicating(self, name):
        """Instructions that communicate: it, or those within its computations."""
        if name not in self.found:
            self.found[name] = self.collectives_in(name)
        return self.found[name]

    def collectives_in(self, name, depth=0):
        one = self.instructions.get(name)
        if one is None or depth > STEPS_DEEP:
            return []
        base = one.op.removesuffix("-start")
        if base in COLLECTIVES or one.op in HALVES or base == "ragged-all-to-all":
            return [one]
        if one.op not in WRAPPERS or one.op == "while":
            return []
        return [found for called in one.calls for inner in self.module.computations.get(called, ())
                for found in self.collectives_in(inner.name, depth + 1)]

    def to_host(self, name):
        """A send or recv whose other end is the host."""
        one = self.instructions.get(name)
        return one is not None and one.op in HALVES and one.groups is None

    def multiplies(self, name):
        """Whether an instruction that calls computations has matrix products in them."""
        one = self.instructions.get(name)
        return one is not None and any(inner.op in ("dot", "convolution") for called in one.calls
                                       for inner in self.module.computations.get(called, ()))

    def calls(self, name, device, devices, place):
        """[(Communication, ranks)] of an instruction on a device."""
        if (name, device) not in self.made:
            self.made[name, device] = [call for one in self.communicating(name)
                                       if not (one.op in HALVES and one.groups is None)
                                       for call in self.of_instruction(one, device, devices, place)]
        return [(replace(call), ranks) for call, ranks in self.made[name, device]]

    def of_instruction(self, one, device, devices, place):
        base = one.op.removesuffix("-start")
        if base == "ragged-all-to-all":
            if self.ragged is None:
                raise self.error(place, f"'{one.name}': the number of rows for each receiver is known only when it runs; "
                                 "--ragged even takes equal shares of its operand")
            return self.of_group(one, "all-to-all", "all_to_all", one.taken[0].bytes if one.taken else 0, device, devices,
                                 place)
        if one.op in HALVES:
            shape = (one.taken[:1] or [one.shape])[0] if one.op == "send" else (one.shape.parts or (one.shape,))[0]
            return self.of_pairs(one, shape.bytes, device, devices, place, HALVES[one.op])
        size = sum(shape.bytes for shape in one.taken)
        if base == "collective-permute":
            return self.of_pairs(one, size, device, devices, place)
        return self.of_group(one, base, COLLECTIVES[base], size, device, devices, place)

    def divided(self, one, base, devices, place):
        """Groups, or pairs, of numbers of devices."""
        if self.assigned:
            replicas, partitions = len(self.assigned), len(self.assigned[0]) if self.assigned else 0
            flat = [number for row in self.assigned for number in row]
        else:
            replicas, partitions = self.module.replicas, self.module.partitions
            if replicas * partitions == 1:
                partitions = devices.world
            flat = sorted(devices.ranks)
        groups = device_groups(one, base, replicas, partitions)
        if any(not 0 <= number < len(flat) for group in groups for number in group):
            raise self.error(place, f"'{one.name}' names a device that is none of the {len(flat)} of the module "
                                    f"'{self.name}'")
        return [[flat[number] for number in group] for group in groups]

    def of_group(self, one, base, kind, size, device, devices, place):
        for group in self.divided(one, base, devices, place):
            if device in group:
                ranks = [devices.ranks[number] for number in group]
                return [(Communication(kind, size, group_name(ranks, devices.world)), ranks)] if len(ranks) > 1 else []
        return []

    def of_pairs(self, one, size, device, devices, place, half=None):
        """Messages among the devices that are connected by pairs."""
        pairs = [pair for pair in self.divided(one, "collective-permute", devices, place) if len(pair) == 2]
        ranks = sorted(devices.ranks[number] for number in connected(device, pairs))
        name = group_name(ranks, devices.world) + (f" channel {one.number}" if half else "")
        found = []
        for source, target in pairs:
            if source != target and source == device and half != "receives":
                found.append((Communication("send", size, name, peer=devices.ranks[target]), ranks))
            if source != target and target == device and half != "sends":
                found.append((Communication("recv", size, name, peer=devices.ranks[source]), ranks))
        return found

    def error(self, place, what):
        return InputError(self.module.path, place, what)


def connected(device, pairs):
    """The devices that pairs connect with one, itself among them."""
    near = {}
    for source, target in pairs:
        near.setdefault(source, set()).add(target)
        near.setdefault(target, set()).add(source)
    found, left = {device}, [device]
    while left:
        new = near.get(left.pop(), set()) - found
        found |= new
        left += new
    return found


def group_name(ranks, world):
    """The same on all ranks."""
    if ranks == list(range(world)):
        return "0"
    if len(ranks) <= 8:
        return "ranks " + ",".join(map(str, ranks))
    return f"{len(ranks)} ranks from {ranks[0]} {hashlib.sha1(repr(ranks).encode()).hexdigest()[:8]}"


class Programs:
    """Modules of one file, by program_id, and by name; those given as text with --hlo, by name."""

    def __init__(self, space, texts, ragged):
        self.space, self.ragged = space, ragged
        self.by_id, self.by_name, self.texts, self.open = {}, {}, texts, {}
        for plane in space.planes:
            if plane.name == "/host:metadata":
                plane.read()
                for number, (name, part) in protos_of(plane).items():
                    self.by_id[number] = part
                    self.by_name.setdefault(name, []).append(number)

    def devices(self):
        """Numbers of all devices that a module is assigned to."""
        found = set()
        for part in self.by_id.values():
            found.update(number for row in hlo_proto.devices_of(part) or () for number in row)
        return found

    def find(self, number, name):
        """The program of an event, by the stats program_id and hlo_module; None if the file does not have it."""
        key = number if number in self.by_id else None
        if key is None and name is not None:
            known = self.by_name.get(name, [])
            if len(known) == 1 and number is None:
                key = known[0]
        if key is None:
            return self.texts.get(name)
        if key not in self.open:
            read = hlo_proto.Reader(self.space.path, hlo_proto.module_part(self.by_id[key]) or
                                    Part(io.BytesIO(), 0, 0)).read()
            self.open[key] = Program(read.module, read.name, read.devices, self.ragged)
        return self.open[key]


def protos_of(plane):
    """{program_id: (name of the module, Part of the HloProto)} of /host:metadata: a stat of the name of an event."""
    found = {}
    for field, value in plane.part.fields():
        if field != 4:
            continue
        number, metadata = plane.entry(value)
        for of_metadata, stat in metadata.fields() if metadata else ():
            if of_metadata != 5:
                continue
            kind, content = None, None
            for of_stat, one in stat.fields():
                if of_stat == 1:
                    kind = one
                elif of_stat == 6:
                    content = one
            if plane.stat_names.get(kind) == "Hlo Proto" and isinstance(content, Part):
                name = re.sub(r"\(-?\d+\)$", "", plane.names.get(number, ""))
                found[number] = (name, content)
    return found


def texts_of(paths, ragged):
    """{name of the module: Program} of files of HLO as text."""
    found = {}
    for path in paths:
        reader = HloReader(path)
        module = reader.read()
        found[reader.name] = Program(module, reader.name, None, ragged)
    return found


def of_plane(plane, path, ragged):
    """The instructions that communicate, by the texts that are the names of a plane's events."""
    reader = HloReader(path)
    reader.module.computations = {"": [reader.instruction(text.text(), f"byte {text.at}")
                                       for number, text in plane.texts.items() if may_communicate(plane.names[number])]}
    return Program(reader.module, "", None, ragged, scheduled=False)
