# SPDX-License-Identifier: GPL-2.0-only
"""Numbers that are to be different."""


class Distinct:
    """Numbers that have come. Those that follow on each other, as generators write them, need no memory."""

    def __init__(self):
        self.first = self.end = 0  # those from `first` up to `end` have come, and `others`
        self.others = set()

    def __contains__(self, number):
        return self.first <= number < self.end or number in self.others

    def add(self, number):
        """False if it has come before."""
        if number in self:
            return False
        if self.first == self.end:
            self.first = self.end = number
        self.others.add(number)
        while self.end in self.others:
            self.others.remove(self.end)
            self.end += 1
        return True
