# SPDX-License-Identifier: GPL-2.0-only
"""Readable numbers. Four digits: enough to distinguish two runs, few enough for a line."""

TIMES = [(10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"), (1, "ps")]
SIZES = [(10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B")]


def rounded(value):
    """Four digits, without an exponent below a million."""
    text = f"{value:.4g}"
    return f"{value:.0f}" if "e" in text and abs(value) < 10**9 and abs(value) >= 1 else text


def scaled(value, units):
    factor, unit = next(((factor, unit) for factor, unit in units if abs(value) >= factor), units[-1])
    return f"{rounded(value / factor)} {unit}"


def time_text(picoseconds):
    return "0" if picoseconds == 0 else scaled(picoseconds, TIMES)


def size_text(size):
    return scaled(size, SIZES)


def rate_text(rate):
    return f"{rounded(rate / 10**9)} Gb/s"


def quantity_text(value, unit):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if unit == "ps":
        return time_text(value)
    if unit == "B":
        return size_text(value)
    return rounded(value)


def change_text(value, unit):
    """With its sign."""
    if value is None:
        return "-"
    return quantity_text(value, unit) if value <= 0 else f"+{quantity_text(value, unit)}"


# A change by more percent is a factor: nobody reads how large 119,946 % is.
MOST_PERCENT = 1000


def is_factor(percent):
    return percent >= MOST_PERCENT


def factor_text(percent):
    """How many times the first value the second one is."""
    factor = 1 + percent / 100
    return f"{factor:,.0f} times" if factor < 1e9 else f"{factor:.3g} times"


def percent_text(value):
    """A change in percent with its sign, of large ones the factor; "-" if there is none."""
    return "-" if value is None else factor_text(value) if is_factor(value) else f"{value:+.1f} %"
