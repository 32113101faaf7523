# SPDX-License-Identifier: GPL-2.0-only
"""Steps of a profile. On the host they are events with the stat step_num, as of jax.profiler.StepTraceAnnotation
(xla/tsl/profiler/utils/xplane_schema.cc, kStepNum); a TPU has a line of its own for them (kStepLineName)."""

import re

from importing.errors import InputError

LINE = "Steps"
NUMBER = "step_num"
FEW = 16  # numbers in a message


class Steps:
    """The steps of a file: of its hosts, and of each TPU."""

    def __init__(self, path, planes, hosts):
        self.path, self.of_planes = path, {None: {}}
        for name, plane in planes.items():
            self.of_planes[name] = {}
            for line in plane.all_lines():
                if name in hosts:
                    self.read(plane, line, self.of_planes[None], self.of_stat)
                elif line.name == LINE:
                    self.read(plane, line, self.of_planes[name], self.of_line)

    def read(self, plane, line, found, number_of):
        for at, name, start, _, contents in line.events(with_stats=number_of == self.of_stat):
            if start is not None and (number := number_of(plane, name, contents, at)) is not None:
                found[number] = min(start, found.get(number, start))

    @staticmethod
    def of_stat(plane, _, contents, at):
        value = plane.stats(contents, at, {NUMBER}).get(NUMBER) if contents else None
        return value if isinstance(value, int) else None

    def of_line(self, plane, name, contents, at):
        """By the stat, or by the event's name, such as "12" or "Step 12"."""
        digits = re.findall(r"\d{1,18}", plane.names.get(name, ""))
        number = self.of_stat(plane, name, contents, at)
        return number if number is not None else int(digits[-1]) if digits else None

    def window(self, plane, number):
        """(begin, end) of a step in picoseconds: it ends where the next one begins, None for the last one."""
        found = self.of_planes[plane]
        if number not in found:
            known = sorted(found)
            listed = f"{', '.join(map(str, known[:FEW]))}{', ...' if len(known) > FEW else ''}" or "none"
            where = f"the line '{LINE}' of {plane}" if plane else "the host (jax.profiler.StepTraceAnnotation)"
            raise InputError(self.path, None, f"there is no step {number}; steps on {where}: {listed}")
        begin = found[number]
        return begin, min((one for one in found.values() if one > begin), default=None)
