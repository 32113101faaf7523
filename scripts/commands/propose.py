# SPDX-License-Identifier: GPL-2.0-only
# weft propose HOSTS [--rate 400Gb/s]  machines of that many hosts, one of each family (docs/tutorial/studies.md)
"""Prints machines with that many hosts, one of each family, as maps for a study, and which families have none."""

import argparse
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.console import Parser, guarded, natural  # noqa: E402
from support.quantities import canonical, parse_quantity  # noqa: E402

MAX_HOSTS = 1 << 20


def quantity(unit, example):
    def read(text):
        if not parse_quantity(text) or parse_quantity(text)[1] != unit or parse_quantity(text)[0] <= 0:
            raise argparse.ArgumentTypeError(f"found '{text}'; expected a quantity such as '{example}'")
        return text

    return read


def hosts(text):
    if not 2 <= natural(text) <= MAX_HOSTS:
        raise argparse.ArgumentTypeError(f"found '{text}'; expected 2 to {MAX_HOSTS:,}")
    return natural(text)


def parse():
    parser = Parser(prog="weft propose", description=__doc__)
    number = parser.add_mutually_exclusive_group(required=True)
    number.add_argument("hosts", metavar="HOSTS", type=hosts, nargs="?")
    number.add_argument("--hosts", dest="hosts_of_topology", metavar="HOSTS", type=hosts,
                        help="the same, as in `weft topology --hosts HOSTS`")
    parser.add_argument("--rate", type=quantity("bit/s", "400 Gb/s"), default="400 Gb/s",
                        help="of each link, and of each host into the network (400 Gb/s)")
    parser.add_argument("--delay", type=quantity("ps", "500 ns"), default="500 ns", help="of each link (500 ns)")
    parser.add_argument("--ports", type=natural, default=64, help="maximum number of ports of a switch (64)")
    parser.add_argument("-j", "--jobs", type=natural, metavar="N", default=os.cpu_count() or 1,
                        help="machines counted at a time (the number of cores)")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser.parse_args()


def propose_command():
    options = parse()
    from studies.propose import Proposals

    rate = options.rate if " " in options.rate else tidy(options.rate)
    proposals = Proposals(options.hosts or options.hosts_of_topology, options.ports, rate, options.delay, options.jobs)
    print(proposals.as_json() if options.json else proposals.as_yaml())
    return 0


def tidy(text):
    """`400Gb/s` as `400 Gb/s`."""
    digits = len(text) - len(text.lstrip("0123456789.eE+"))
    spaced = f"{text[:digits]} {text[digits:]}"
    return spaced if canonical(spaced) == canonical(text) else text


if __name__ == "__main__":
    sys.exit(guarded(propose_command))
