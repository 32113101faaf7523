# SPDX-License-Identifier: GPL-2.0-only
"""GOAL schedules in binary form, written independently of weft: the output of txt2bin of github.com/spcl/LogGOPSim for a text
(src/LogGOPSim/txt2bin.re and Graph::serialize_mmap in Parser.hpp)."""

import re
import struct

SEND, RECV, CALC = 1, 2, 3
STATEMENT = re.compile(r"(?:(\w+)\s*:\s*)?(send|recv|calc)\s+(\d+)b?(?:\s+(?:to|from)\s+(-?\d+))?(.*)$")


def parse(text):
    """Per rank: nodes (type, peer, size, tag, cpu, nic) and waits (operation, before, at start)."""
    ranks = []
    for line in text.replace("\r", "").split("\n"):
        line = line.strip()
        if line.startswith("rank"):
            nodes, waits, labels = [], [], {}
            ranks.append((nodes, waits))
        elif found := STATEMENT.match(line):
            label, verb, size, peer, rest = found.groups()
            words = rest.split()
            options = {key: int(value) % 2**32 for key, value in zip(words[::2], words[1::2])}
            labels.setdefault(label, len(nodes))
            nodes.append(({"send": SEND, "recv": RECV, "calc": CALC}[verb], int(peer or 0) % 2**32, int(size),
                          options.get("tag", 0), options.get("cpu", 0), options.get("nic", 0)))
        elif "requires" in line:
            one, relation, other = line.split()
            waits.append((labels[one], labels[other], relation == "irequires"))
    return ranks


def binary(text):
    ranks = parse(text)
    parts, offset, table = [], 6 + 16 * len(ranks), b""
    for nodes, waits in ranks:
        lists = [([a for a, b, start in waits if b == i and not start], [a for a, b, start in waits if b == i and start])
                 for i in range(len(nodes))]
        needs = [sum(1 for a, _, _ in waits if a == i) for i in range(len(nodes))]
        roots = [i for i, count in enumerate(needs) if count == 0]
        part = struct.pack(f"<II{len(roots)}I", len(nodes), len(roots), *roots)
        listed = 0
        for i, (kind, peer, size, tag, cpu, nic) in enumerate(nodes):
            ends, starts = lists[i]
            part += struct.pack("<IBIQIBBIIII", needs[i], kind, peer, size, tag, cpu, nic, len(ends), listed, len(starts),
                                listed + len(ends))
            listed += len(ends) + len(starts)
        for ends, starts in lists:
            part += struct.pack(f"<{len(ends) + len(starts)}I", *ends, *starts)
        table += struct.pack("<QQ", offset, offset + len(part))
        offset += len(part)
        parts.append(part)
    everything = [node for nodes, _ in ranks for node in nodes]
    return struct.pack("<QIBB", 4223, len(ranks), max(node[4] for node in everything),
                       max(node[5] for node in everything)) + table + b"".join(parts)
