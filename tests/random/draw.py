# SPDX-License-Identifier: GPL-2.0-only
"""Random values in the notation of experiments: numbers, sizes, times and rates with units; rarely, absurd ones."""

import math
import random

TIME_UNITS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
SIZE_UNITS = {"B": 1, "kB": 10**3, "KiB": 2**10, "MB": 10**6, "MiB": 2**20}
RATE_UNITS = {"b/s": 1, "kb/s": 10**3, "Mb/s": 10**6, "Gb/s": 10**9, "B/s": 8, "MB/s": 8 * 10**6, "GB/s": 8 * 10**9}

LARGEST = 2**63 - 1
ABSURD_NUMBERS = [0, 1, -1, 2, 3, 7, 127, 128, 65535, 65536, 2**31 - 1, 2**31, 2**32, LARGEST, 2**63, 2**64, 0.5, 1e300]
ABSURD_TIMES = ["0 ps", "1 ps", "2 ps", "-1 ns", "1 s", "106 days", "9223372036854775807 ps", "9.3e18 ps", "4e6 s",
                "1e-3 ps", "0.5 ns", "1 s 1", "nan s", "5"]
ABSURD_SIZES = ["0 B", "1 B", "2 B", "-1 B", "3 TiB", "1 PiB", "9223372036854775807 B", "1e30 B", "0.5 B", "1 b",
                "1e3 kB", "inf B", "4096"]
ABSURD_RATES = ["1 b/s", "7 b/s", "1 B/s", "0 b/s", "-1 Gb/s", "1e18 b/s", "9223372036854775807 b/s", "0.1 b/s",
                "1 Tb/s", "1000000 Tb/s", "3 Gbps", "100"]
ABSURD_WORDS = ["", "none", "all", "?", "auto", "-", "0", "true", "\u00b5s", "a" * 300, None, [], {}, [[]], [{}]]


class Draw:
    """Random numbers of one experiment. `absurd` is the probability with which a value makes no sense."""

    def __init__(self, seed, absurd=0.0):
        self.random = random.Random(seed)
        self.absurd = absurd
        self.absurd_values = 0

    def chance(self, probability):
        return self.random.random() < probability

    def pick(self, choices):
        return self.random.choice(list(choices))

    def some(self, choices, most=None):
        """A few of the choices, in any order, at least one."""
        choices = list(choices)
        return self.random.sample(choices, self.random.randint(1, min(len(choices), most or len(choices))))

    def is_absurd(self):
        if self.absurd and self.chance(self.absurd):
            self.absurd_values += 1
            return True
        return False

    def between(self, least, most):
        """A whole number; small ones are as likely as large ones."""
        if least >= most:
            return least
        shift = 1 - least
        value = math.exp(self.random.uniform(0, math.log(most + shift + 1))) - shift
        return max(least, min(most, int(value)))

    def count(self, least, most):
        return self.pick(ABSURD_NUMBERS) if self.is_absurd() else self.between(least, most)

    def number(self, least, most):
        if self.is_absurd():
            return self.pick(ABSURD_NUMBERS)
        if least > 0 and most / least > 100:
            return float(f"{math.exp(self.random.uniform(math.log(least), math.log(most))):.4g}")
        return float(f"{self.random.uniform(least, most):.4g}")

    def flag(self):
        return self.pick(ABSURD_WORDS) if self.is_absurd() else self.chance(0.5)

    def word(self, choices):
        return self.pick(ABSURD_WORDS) if self.is_absurd() else self.pick(choices)

    def with_unit(self, value, units):
        """Mostly a round number in a large unit, sometimes an odd one."""
        if self.chance(0.25):
            return f"{value} {next(iter(units))}"
        fitting = [unit for unit, factor in units.items() if factor <= value]
        if not fitting:
            return f"{value} {next(iter(units))}"
        unit = self.pick(fitting[-3:])
        whole = value // units[unit]
        if self.chance(0.2) and units[unit] > 1000 and units[unit] % 10 == 0:
            return f"{whole}.{self.random.randint(0, 9)} {unit}"
        return f"{whole} {unit}"

    def size(self, least, most):
        if self.is_absurd():
            return self.pick(ABSURD_SIZES)
        return f"{least} B" if least == most else self.with_unit(self.between(least, most), SIZE_UNITS)

    def time(self, min_ps, max_ps):
        if self.is_absurd():
            return self.pick(ABSURD_TIMES)
        return f"{min_ps} ps" if min_ps == max_ps else self.with_unit(self.between(min_ps, max_ps), TIME_UNITS)

    def rate(self, min_bps=10**9, max_bps=8 * 10**11):
        if self.is_absurd():
            return self.pick(ABSURD_RATES)
        if self.chance(0.6):
            usual = [rate for rate in (1, 10, 25, 40, 100, 200, 400, 800) if min_bps <= rate * 10**9 <= max_bps]
            if usual:
                return f"{self.pick(usual)} Gb/s"
        return self.with_unit(self.between(min_bps, max_bps), RATE_UNITS)


NS, US, MS = 10**3, 10**6, 10**9
