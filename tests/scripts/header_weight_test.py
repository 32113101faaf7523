#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Long headers of other libraries are reached from few of ours: each source that includes one of ours reads them, too.

A header is reached if a header includes it, or includes one that does. REACHED lists the allowed ones, by room; fewer are
always welcome."""

import collections
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ["src", "collectives", "topologies", "workloads"]

# Library: the rooms from whose headers it may be reached. Libraries that are not here may not be reached at all.
REACHED = {
    "boost": ["app", "graph"],  # program options; boost_graph.hpp
    "fmt": ["app", "collectives", "engine", "fabric", "graph", "internet", "nccl", "results", "routing", "runtime", "schedule",
            "support", "topologies", "transport", "workloads"],  # by WEFT_EXPECT, whose message it makes
    "hdf5.h": ["app", "results"],
    "mpi.h": ["app", "engine", "fabric", "internet", "results", "runtime"],
    "ns3": ["app", "engine", "fabric", "internet"],
    "pugixml.hpp": ["support"],
}  # fmt: skip
# The most expensive libraries: at most these headers.
MOST = {"boost": 4, "hdf5.h": 3, "mpi.h": 45}


def reached(root):
    """{library: {room: [header, ..]}}"""
    includes = {}
    for room in ROOMS:
        base = root / room if room == "src" else root
        for header in sorted((root / room).rglob("*.hpp")):
            includes[header.relative_to(base).as_posix()] = re.findall(r'^\s*#include [<"]([^>"]+)[>"]', header.read_text(), re.M)

    def outside(header, seen):
        result = set()
        for name in includes[header]:
            if name not in includes:
                result.add(name)
            elif name not in seen:
                seen.add(name)
                result |= outside(name, seen)
        return result

    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for header in includes:
        for name in outside(header, {header}):
            library = name.split("/")[0]
            is_ours_or_standard = name in includes or ("/" not in name and not name.endswith(".h"))
            is_light = name == "nlohmann/json_fwd.hpp"  # names of types alone
            if not is_ours_or_standard and not is_light and library not in ("sys", "sched.h", "unistd.h", "fcntl.h"):
                by_room = found[library][header.split("/")[0]]
                if header not in by_room:
                    by_room.append(header)
    return found


class HeaderWeight(unittest.TestCase):
    def test_all_headers(self):
        found = reached(ROOT)
        self.assertLessEqual(set(found), set(REACHED), "a new library is reached from our headers")
        for library, rooms in found.items():
            with self.subTest(library):
                self.assertLessEqual(set(rooms), set(REACHED[library]), dict(rooms))
                if library in MOST:
                    self.assertLessEqual(sum(map(len, rooms.values())), MOST[library], dict(rooms))

    def test_what_is_reached_over_others_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src" / "graph").mkdir(parents=True)
            (root / "workloads").mkdir()
            (root / "src" / "graph" / "heavy.hpp").write_text("#include <boost/graph/x.hpp>\n#include <vector>\n")
            (root / "workloads" / "light.hpp").write_text('#include "graph/heavy.hpp"\n#include <mpi.h>\n')
            found = {library: dict(rooms) for library, rooms in reached(root).items()}
            self.assertEqual(found, {"boost": {"graph": ["graph/heavy.hpp"], "workloads": ["workloads/light.hpp"]},
                                     "mpi.h": {"workloads": ["workloads/light.hpp"]}})


if __name__ == "__main__":
    unittest.main()
