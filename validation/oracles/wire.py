# SPDX-License-Identifier: GPL-2.0-only
"""Units as experiment files write them, frames, and the time of a packet train on an idle path."""

import dataclasses
import re

UNITS = {
    "ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12,
    "b/s": 1, "kb/s": 10**3, "Mb/s": 10**6, "Gb/s": 10**9, "Tb/s": 10**12,
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
}  # fmt: skip


def quantity(text):
    """The whole number of ps, bit/s or bytes that a text such as "400 Gb/s" names."""
    number, unit = re.fullmatch(r"([0-9.]+) *([A-Za-z/]+)", text).groups()
    value = float(number) * UNITS[unit]
    if value != int(value):
        raise ValueError(f"{text}: not a whole number")
    return int(value)


def serialization(size, rate):
    """Time to put `size` bytes on a link, rounded up to whole picoseconds."""
    return -(-size * 8 * 10**12 // rate)


@dataclasses.dataclass
class Network:
    """The `network:` map of an experiment."""

    mtu: int
    overhead: int  # wire bytes of a data packet beyond its payload
    control: int  # wire bytes of an ACK or credit; 0: none are sent
    latency: int  # of a switch
    window: int

    @staticmethod
    def of(experiment):
        network = experiment["network"]
        between = quantity(network["wire_overhead"])
        return Network(
            mtu=quantity(network["mtu"]),
            overhead=quantity(network["header"]) + between,
            control=0 if network["ack"] == "none" else quantity(network["ack"]) + between,
            latency=quantity(network["switch_latency"]),
            window=quantity(network["window"]),
        )

    def payloads(self, size):
        """Payload of each packet of a message; an empty message is one empty packet."""
        full, rest = divmod(size, self.mtu)
        return [self.mtu] * full + ([rest] if rest or not full else [])

    def frames(self, size):
        """Wire bytes of each packet of a message."""
        return [payload + self.overhead for payload in self.payloads(size)]

    def wire(self, size):
        """Wire bytes of a message."""
        return sum(self.frames(size))


def train(arrivals, frames, rates, delays):
    """Store and forward: packet j reaches the first output at arrivals[j]; returns its arrival at the end of the path.

    D(i, j) = max(D(i-1, j) + delay(i-1), D(i, j-1)) + frame(j) / rate(i): link i starts with packet j when all of it
    has arrived and packet j-1 has left.
    """
    for rate, delay in zip(rates, delays, strict=True):
        out = []
        free = 0
        for arrival, frame in zip(arrivals, frames, strict=True):
            free = max(arrival, free) + serialization(frame, rate)
            out.append(free + delay)
        arrivals = out
    return arrivals
