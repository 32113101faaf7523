# SPDX-License-Identifier: GPL-2.0-only
"""Makes an experiment smaller as long as a predicate holds: fewer keys, shorter lists, smaller numbers, fewer runs."""

import copy
import re

QUANTITY = re.compile(r"^(-?[0-9.]+(?:e[0-9]+)?) (ps|ns|us|ms|s|B|kB|MB|KiB|MiB|TiB|b/s|kb/s|Mb/s|Gb/s|B/s|MB/s|GB/s)$")
USUAL_RATE = "100 Gb/s"


def places(value, path=()):
    """All paths to values within maps and lists, outer ones first."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    yield from ((*path, key) for key, _ in items)
    for key, child in items:
        yield from places(child, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def without(value, path):
    result = copy.deepcopy(value)
    del at(result, path[:-1])[path[-1]]
    return result


def replaced(value, path, new):
    result = copy.deepcopy(value)
    at(result, path[:-1])[path[-1]] = new
    return result


def smaller(value):
    """Simpler values that might do instead, the simplest first."""
    if isinstance(value, bool):
        return [False] if value else []
    if isinstance(value, int):
        found = [n for n in (0, 1, 2, 3, 4, value // 2, value - 1) if 0 <= n < value]
        return sorted(set(found))
    if isinstance(value, float):
        return [n for n in (0, 1, 0.5) if n != value and len(str(n)) < len(str(value))]
    if isinstance(value, str):
        found = QUANTITY.match(value)
        if found:
            return smaller_quantity(value, float(found[1]), found[2])
    return []


def smaller_quantity(value, number, unit):
    if unit.endswith("/s"):
        return [USUAL_RATE] if value != USUAL_RATE else []
    whole = [n for n in (1, int(number) // 10, int(number) // 2, 10 ** (len(str(int(number))) - 1)) if 0 < n < number]
    found = [f"{n} {unit}" for n in sorted(set(whole))]
    if number != int(number):
        found.append(f"{int(number) or 1} {unit}")
    return found


def chunks(keys):
    """Groups of siblings to take away at once: halves, quarters, ... and each alone (Zeller, Hildebrandt 2002)."""
    size = len(keys) // 2
    while size > 1:
        for begin in range(0, len(keys), size):
            yield keys[begin : begin + size]
        size //= 2


class Shrinker:
    """`fails(parts, runs)` is called at most `most` times, and never twice with the same arguments."""

    def __init__(self, fails, most=400, say=lambda text: None, held=()):
        self.fails, self.left, self.say = fails, most, say
        self.held = held  # paths with dots that stay as they are
        self.asked = {}

    def holds(self, parts, runs):
        if any(dotted(parts, path) != self.kept[path] for path in self.held):
            return False
        key = repr((parts, runs))
        if key not in self.asked:
            if self.left <= 0:
                return False
            self.left -= 1
            self.asked[key] = self.fails(parts, runs)
        return self.asked[key]

    def shrink(self, parts, runs):
        self.kept = {path: dotted(parts, path) for path in self.held}
        while True:
            before = repr((parts, runs))
            runs = self.fewer_runs(parts, runs)
            parts = self.fewer_items(parts, runs)
            parts = self.fewer_keys(parts, runs)
            parts = self.smaller_values(parts, runs)
            runs = self.simpler_runs(parts, runs)
            self.say(f"{len(repr(parts))} characters, {len(runs)} runs, {self.left} tries left")
            if repr((parts, runs)) == before or self.left <= 0:
                return parts, runs

    def fewer_runs(self, parts, runs):
        number = len(runs) - 1
        while number >= 0 and len(runs) > 1:
            fewer = runs[:number] + runs[number + 1 :]
            if self.holds(parts, fewer):
                runs = fewer
            number -= 1
        return runs

    def simpler_runs(self, parts, runs):
        for number, run in enumerate(runs):
            for key, value in [("verify", False), ("partition", ""), ("rows_in_memory", 0), ("processes", 1),
                               ("processes", 2), ("processes", 3)]:
                if runs[number][key] == value or (key == "processes" and value >= runs[number][key]):
                    continue
                simpler = [*runs[:number], {**runs[number], key: value}, *runs[number + 1 :]]
                if self.holds(parts, simpler):
                    runs = simpler
        return runs

    def fewer_items(self, parts, runs):
        """Large parts of maps and lists at once."""
        for path in [(), *places(parts)]:
            try:
                value = at(parts, path)
            except (KeyError, IndexError):
                continue  # it is gone with something around it
            if not isinstance(value, (dict, list)) or len(value) < 4:
                continue
            for group in chunks(list(value) if isinstance(value, dict) else list(range(len(value)))):
                candidate = copy.deepcopy(parts)
                inner = at(candidate, path)
                if any(not has(inner, key) for key in group):
                    continue
                for key in sorted(group, key=str if isinstance(inner, dict) else int, reverse=True):
                    del inner[key]
                if self.holds(candidate, runs):
                    parts = candidate
        return parts

    def fewer_keys(self, parts, runs):
        for path in sorted(places(parts), key=lambda path: (len(path), [str(key) for key in path])):
            if not reachable(parts, path):
                continue
            candidate = without(parts, path)
            if self.holds(candidate, runs):
                parts = candidate
        return parts

    def smaller_values(self, parts, runs):
        for path in list(places(parts)):
            if not reachable(parts, path):
                continue
            value = at(parts, path)
            if isinstance(value, list) and value and not isinstance(value[0], (dict, list)):
                if self.holds(replaced(parts, path, value[0]), runs):
                    parts = replaced(parts, path, value[0])
                continue
            for new in smaller(value):
                if self.holds(replaced(parts, path, new), runs):
                    parts = replaced(parts, path, new)
                    break
        return parts


def dotted(value, path):
    """The value at `a.b.c`, None if there is none."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def has(value, key):
    return key in value if isinstance(value, dict) else key < len(value)


def reachable(parts, path):
    try:
        at(parts, path)
        return True
    except (KeyError, IndexError, TypeError):
        return False
