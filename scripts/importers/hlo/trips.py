# SPDX-License-Identifier: GPL-2.0-only
"""Number of iterations of a while loop: as stated by the compiler, or from its condition, first value and step."""


def trips_of(module, loop, around):
    """None if it is not known. `around`: the instructions around the loop."""
    if loop.trips is not None:
        return loop.trips
    condition = {one.name: one for one in module.computations.get(loop.condition, [])}
    body = {one.name: one for one in module.computations.get(loop.calls[0], [])} if loop.calls else {}
    outside = {one.name: one for one in around}
    compare = next((one for one in condition.values() if one.op == "compare"), None)
    if compare is None or compare.direction not in ("LT", "LE") or len(compare.operands) != 2:
        return None
    limit = constant(condition.get(compare.operands[1])) if compare.operands[1] in condition else \
        constant(outside.get(compare.operands[1]))
    at = position(loop, condition, compare.operands[0])
    if at is None or limit is None:
        return None
    first, step = constant(beginning(loop, outside, at)), step_of(loop, body, outside, at)
    if first is None or not step or step < 0:
        return None
    last = limit if compare.direction == "LE" else limit - 1
    return max(0, (last - first) // step + 1)


def constant(one):
    return one.value if one is not None and one.op == "constant" else None


def position(loop, condition, name):
    """The position among the values that a loop carries."""
    names = [inner for inner, _ in loop.carried]
    if name in names:
        return names.index(name)
    one = condition.get(name)
    return one.index if one is not None and one.op == "get-tuple-element" else None


def beginning(loop, outside, at):
    if loop.carried:
        return outside.get(loop.carried[at][1])
    made = outside.get(loop.operands[0]) if loop.operands else None
    if made is None or made.op != "tuple" or at >= len(made.operands):
        return None
    one = outside.get(made.operands[at])
    while one is not None and one.op in ("copy", "bitcast", "reshape") and one.operands:
        one = outside.get(one.operands[0])
    return one


def step_of(loop, body, outside, at):
    made = next((one for one in reversed(body.values()) if one.root or one.op == "return"), None)
    if made is None or at >= len(made.operands):
        return None
    add = body.get(made.operands[at])
    if add is None or add.op != "add" or len(add.operands) != 2:
        return None
    values = [constant(body.get(name)) if name in body else constant(outside.get(name)) for name in add.operands]
    numbers = [value for value in values if value is not None]
    other = next((name for name, value in zip(add.operands, values) if value is None), None)
    return numbers[0] if len(numbers) == 1 and position(loop, body, other) == at else None
