# SPDX-License-Identifier: GPL-2.0-only
"""Arithmetic over columns, evaluated node by node of Python's syntax tree. Only the nodes named here are allowed: there
are no calls, no attributes and no subscripts, so that a study file can only calculate."""

import ast
import math
import operator

from support.errors import StudyError, did_you_mean
from support.quantities import UNITS

LONGEST = 1000  # characters
ARITHMETIC = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
              ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
              # In floating point: whole numbers could grow without limit.
              ast.Pow: lambda a, b: math.pow(a, b)}
COMPARISONS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
               ast.Eq: operator.eq, ast.NotEq: operator.ne}
SIGNS = {ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_}

# `5 * ms`, `16 * MiB`: units that are names.
CONSTANTS = {unit: scale for unit, (_, scale) in UNITS.items() if unit.isidentifier()}

NAMES_OF_NODES = {ast.Call: "a call", ast.Attribute: "an attribute", ast.Subscript: "a subscript",
                  ast.Lambda: "a function", ast.List: "a list", ast.Tuple: "a tuple", ast.Dict: "a map"}


class Expression:
    """The text of an expression, checked; `names` are those it needs."""

    def __init__(self, text, where):
        self.text, self.where = text, where
        self.names = []
        if len(text) > LONGEST:
            raise StudyError(f"{where}: found an expression of {len(text)} characters; expected at most {LONGEST}")
        try:
            self.tree = ast.parse(text.strip(), mode="eval").body
            self.check(self.tree)
        except (SyntaxError, ValueError) as error:
            raise StudyError(f"{where}: found '{text}', which is no expression ({error.args[0]}); expected "
                             "arithmetic over columns, such as 'job_time * hosts'") from None
        except (RecursionError, MemoryError):
            raise StudyError(f"{where}: found an expression with too many brackets") from None

    @property
    def column(self):
        """The column that this is, if it is nothing but a name."""
        return self.tree.id if isinstance(self.tree, ast.Name) else None

    def check(self, node):
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                self.names.append(node.id)
            return
        if isinstance(node, ast.Constant) and type(node.value) in (int, float, str, bool):
            return
        parts = self.parts(node)
        if parts is None:
            what = NAMES_OF_NODES.get(type(node), f"'{type(node).__name__}'")
            raise StudyError(f"{self.where}: found {what} in '{self.text}'; expected names of columns, numbers, "
                             "texts, + - * / // % **, comparisons, and, or, not, and `a if b else c`")
        for part in parts:
            self.check(part)

    @staticmethod
    def parts(node):
        """The parts of a known node; None if it is not known."""
        if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
            return [node.left, node.right]
        if isinstance(node, ast.UnaryOp) and type(node.op) in SIGNS:
            return [node.operand]
        if isinstance(node, ast.BoolOp):
            return node.values
        if isinstance(node, ast.Compare) and all(type(op) in COMPARISONS for op in node.ops):
            return [node.left, *node.comparators]
        if isinstance(node, ast.IfExp):
            return [node.test, node.body, node.orelse]
        return None

    def is_condition(self):
        tree = self.tree
        return isinstance(tree, (ast.Compare, ast.BoolOp)) or (
            isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not)) or (
            isinstance(tree, ast.Constant) and isinstance(tree.value, bool))

    def require(self, known):
        """Checks that all names are in `known` (or units)."""
        for name in self.names:
            if name not in known and name not in CONSTANTS:
                raise StudyError(f"{self.where}: unknown name '{name}' in '{self.text}'{did_you_mean(name, known)}; "
                                 f"known here: {', '.join(known)}")

    def value(self, values):
        """The value for the columns of one case; not-a-number if there is none, as in a division by zero."""
        try:
            return self.evaluate(self.tree, values)
        except (ZeroDivisionError, OverflowError, ValueError):
            return math.nan
        except TypeError:
            raise StudyError(f"{self.where}: '{self.text}' mixes texts and numbers: " + ", ".join(
                f"{name} is {values.get(name, CONSTANTS.get(name))!r}" for name in self.names)) from None

    def evaluate(self, node, values):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return values[node.id] if node.id in values else CONSTANTS[node.id]
        if isinstance(node, ast.BinOp):
            left, right = self.evaluate(node.left, values), self.evaluate(node.right, values)
            if isinstance(left, str) or isinstance(right, str):
                raise TypeError
            return ARITHMETIC[type(node.op)](left, right)
        if isinstance(node, ast.UnaryOp):
            return SIGNS[type(node.op)](self.evaluate(node.operand, values))
        if isinstance(node, ast.BoolOp):
            every = isinstance(node.op, ast.And)
            for part in node.values:
                if bool(self.evaluate(part, values)) != every:
                    return not every
            return every
        if isinstance(node, ast.IfExp):
            return self.evaluate(node.body if self.evaluate(node.test, values) else node.orelse, values)
        left = self.evaluate(node.left, values)
        for comparison, part in zip(node.ops, node.comparators):
            right = self.evaluate(part, values)
            if isinstance(left, str) != isinstance(right, str):
                raise TypeError
            if not COMPARISONS[type(comparison)](left, right):
                return False
            left = right
        return True
