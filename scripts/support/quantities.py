# SPDX-License-Identifier: GPL-2.0-only
"""Scalars of experiments: quantities with units in base units, exactly, and one text for each value."""

import re
from fractions import Fraction

DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
TIMES = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
SIZES = {f"{prefix}B": scale for prefix, scale in {**DECIMAL, **BINARY}.items()}
RATES = {f"{prefix}{bits}": scale for prefix, scale in DECIMAL.items() for bits in ("b/s", "bps")}
RATES.update({f"{unit}/s": 8 * scale for unit, scale in SIZES.items()})

# Unit of a column of results, and the base unit as experiments write it.
BASES = {"ps": "ps", "B": "B", "bit/s": "b/s"}
UNITS = {
    **{unit: ("ps", scale) for unit, scale in TIMES.items()},
    **{unit: ("B", scale) for unit, scale in SIZES.items()},
    **{unit: ("bit/s", scale) for unit, scale in RATES.items()},
}
NUMBER = r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?"
QUANTITY = re.compile(rf"\s*({NUMBER})\s*([A-Za-z/]+)\s*")
PLAIN = re.compile(rf"[+-]?(?:{NUMBER})")


def counted(number, noun):
    return f"{number} {noun}{'' if number == 1 else 's'}"


def parse_quantity(text):
    """(whole number of base units, unit of a column), or None if `text` is no quantity."""
    match = QUANTITY.fullmatch(text)
    if not match or match.group(2) not in UNITS:
        return None
    unit, scale = UNITS[match.group(2)]
    value = Fraction(match.group(1)) * scale
    return (int(value), unit) if value.denominator == 1 else None


def parse_number(text):
    """An int or a float, or None."""
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return int(text)
    return float(text) if PLAIN.fullmatch(text) else None


def canonical(text):
    """The same text for the same quantity: `1 MiB` and `1024 KiB` are `1048576 B`. Other texts are unchanged."""
    quantity = parse_quantity(text)
    return f"{quantity[0]} {BASES[quantity[1]]}" if quantity else text


def column_of(texts):
    """(values, unit) of a column: whole numbers of one unit, numbers, or else the texts themselves."""
    quantities = [parse_quantity(text) for text in texts]
    if all(quantities) and len({unit for _, unit in quantities}) == 1 and max(v for v, _ in quantities) < 2**63:
        return [value for value, _ in quantities], quantities[0][1]
    numbers = [parse_number(text) for text in texts]
    if any(number is None for number in numbers):
        return list(texts), "text"
    if all(isinstance(number, int) and abs(number) < 2**63 for number in numbers):
        return numbers, "1"
    return [float(number) for number in numbers], "1"


PREFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0), ("m", 1e-3), ("u", 1e-6), ("n", 1e-9))


def with_prefix(value, unit):
    """`234.1 J`, `13.9 kW`; t for 10^6 g."""
    name, scale = next((prefix for prefix in PREFIXES if abs(value) >= prefix[1]), PREFIXES[-1])
    if unit == "g" and scale >= 1e6:
        return f"{value / 1e6:,.4g} t"
    return f"{value / scale:.4g} {name}{unit}" if value else f"0 {unit}"


def readable(value, unit):
    """A readable number of a column."""
    if unit in ("J", "W", "g"):
        return with_prefix(value, unit)
    if unit == "$":
        return f"{value:,.0f} $" if abs(value) >= 10_000 else f"{value:,.2f} $" if abs(value) >= 100 else f"{value:.4g} $"
    if unit in ("GB/s", "g s", "g/EFLOP"):
        return f"{value:.4g} {unit}"
    if unit == "s":
        return readable(value * 1e12, "ps")
    if unit == "ps":
        for name, scale in reversed(TIMES.items()):
            if abs(value) >= scale:
                return f"{value / scale:.4g} {name}"
        return f"{value:g} ps"
    if unit == "B" and value:
        for name, scale in reversed(BINARY.items()):
            if scale <= value < 10000 * scale and value % (scale // 1024) == 0:
                return f"{value / scale:.6g} {name}B"
    if unit in ("B", "bit/s"):
        base = BASES[unit]
        for name, scale in reversed(DECIMAL.items()):
            if abs(value) >= scale:
                return f"{value / scale:.4g} {name}{base}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
