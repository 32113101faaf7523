#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""scripts/check_layers finds each kind of forbidden include, at its line, and lets the allowed ones pass."""

import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))


def check(files):
    """Runs the check on a tree of {path: [include, ...]}; returns (exit code, list of "file:line")."""
    with tempfile.TemporaryDirectory() as top:
        for path, includes in files.items():
            file = pathlib.Path(top) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"#include {name}\n" for name in includes))
        done = subprocess.run(
            [sys.executable, SOURCE / "scripts/check_layers", top], capture_output=True, text=True, check=False
        )
    return done.returncode, [":".join(line.split(":")[:2]) for line in done.stdout.splitlines()]


class CheckLayers(unittest.TestCase):
    def test_allowed(self):
        files = {
            "src/units/time.hpp": ["<cstdint>"],
            "src/graph/machine/graph.hpp": ['"units/time.hpp"', "<boost/graph/adjacency_list.hpp>", "<metis.h>"],
            "src/routing/tree/a.cpp": ['"graph/machine/graph.hpp"'],
            "src/app/main.cpp": ['"app/commands/commands.hpp"'],
            "src/app/commands/commands.hpp": [],
            "src/app/running/version.cpp": ["<hdf5.h>", "<mpi.h>", '"routing/tree/b.hpp"'],
            "src/routing/tree/b.hpp": [],
            "topologies/families/torus.cpp": ['"graph/machine/graph.hpp"', '"units/time.hpp"'],
            "workloads/reading/device.hpp": ["<nlohmann/json.hpp>"],
            "workloads/pass/pass_work.hpp": ['"workloads/reading/device.hpp"'],
            "workloads/step/stage_plan.cpp": ['"workloads/pass/pass_work.hpp"'],
        }
        self.assertEqual(check(files), (0, []))

    def test_each_kind_is_found(self):
        forbidden = [
            ("src/graph/shapes/a.cpp", '"routing/tree/b.hpp"'),  # against the arrows
            ("src/units/a.cpp", '"support/basics/error.hpp"'),  # units is the lowest
            ("src/app/running/a.cpp", '"topologies/families/torus.hpp"'),  # src does not know the open folders
            ("topologies/families/a.cpp", '"schedule/program/program.hpp"'),
            ("collectives/nccl/a.cpp", '"graph/machine/graph.hpp"'),
            ("src/engine/a.cpp", '"here.hpp"'),  # not named from the top
            ("src/engine/a.cpp", '"../graph/graph.hpp"'),
            ("src/support/documents/a.cpp", '"support/documents/missing.hpp"'),
            ("src/cellar/a.cpp", "<vector>"),  # no such room
            ("src/runtime/books/a.cpp", "<ns3/node.h>"),
            ("src/engine/a.cpp", "<ns3/core-module.h>"),
            ("src/fabric/packet/a.cpp", "<mpi.h>"),
            ("src/app/running/a.cpp", "<hdf5.h>"),
            ("src/schedule/program/a.cpp", "<yaml-cpp/yaml.h>"),
            ("src/support/documents/a.cpp", "<nlohmann/json.hpp>"),
            ("src/routing/tree/a.cpp", "<metis.h>"),
            ("src/fabric/packet/a.cpp", "<boost/graph/dijkstra_shortest_paths.hpp>"),
        ]
        exists = {
            path: []
            for path in ["src/routing/tree/b.hpp", "src/support/basics/error.hpp", "src/schedule/program/program.hpp", "src/graph/machine/graph.hpp"]
        }
        for path, include in forbidden:
            with self.subTest(path=path, include=include):
                line = 1 if "cellar" in path else 2
                self.assertEqual(check({**exists, path: ["<string>", include]}), (1, [f"{path}:{line}"]))

    def test_order_of_the_folders_of_a_room(self):
        exists = {
            path: []
            for path in ["src/app/running/a.hpp", "src/app/reports/a.hpp", "src/app/commands/a.hpp"]
            + ["workloads/reading/a.hpp", "workloads/step/a.hpp", "workloads/training/a.hpp"]
            + ["src/fabric/packet/a.hpp", "src/fabric/network/a.hpp"]
            + ["src/routing/tree/a.hpp", "src/transport/recovery/a.hpp", "src/results/hdf5/a.hpp", "src/support/system/a.hpp"]
        }
        forbidden = [
            ("src/app/running/b.cpp", '"app/reports/a.hpp"'),  # against the arrows
            ("src/app/reports/b.hpp", '"app/commands/a.hpp"'),
            ("src/fabric/packet/b.hpp", '"fabric/network/a.hpp"'),
            ("src/routing/algorithm/b.hpp", '"routing/tree/a.hpp"'),
            ("src/routing/grid/b.cpp", '"routing/tree/a.hpp"'),  # beside each other
            ("src/transport/congestion_control/b.cpp", '"transport/recovery/a.hpp"'),
            ("src/results/tables/b.cpp", '"results/hdf5/a.hpp"'),
            ("src/support/basics/b.hpp", '"support/system/a.hpp"'),
            ("src/app/main.cpp", '"app/reports/a.hpp"'),  # beside the folders, with an order of its own
            ("src/app/reports/b.cpp", '"app/cellar/a.hpp"'),  # no such folder
            ("src/app/reports/b.cpp", '"app/a.hpp"'),
            ("src/app/reports/b.cpp", '"app/reports/missing.hpp"'),
            ("src/app/reports/b.cpp", '"a.hpp"'),  # not named from src/
            ("workloads/reading/b.cpp", '"workloads/step/a.hpp"'),
            ("workloads/step/b.hpp", '"workloads/training/a.hpp"'),
            ("workloads/families/b.cpp", '"workloads/reading/a.hpp"'),  # what it includes may, and it may not
        ]
        for path, include in forbidden:
            with self.subTest(path=path, include=include):
                self.assertEqual(check({**exists, path: ["<string>", include]}), (1, [f"{path}:2"]))
        for path in ["src/app/a.cpp", "src/fabric/a.cpp", "workloads/a.hpp", "workloads/cellar/a.cpp"]:  # in no folder of the room
            with self.subTest(path=path):
                self.assertEqual(check({path: ["<string>"]}), (1, [f"{path}:1"]))
        for path, include in [
            ("src/app/reports/b.cpp", '"app/running/a.hpp"'),
            ("src/fabric/network/b.cpp", '"fabric/packet/a.hpp"'),
            ("workloads/training/b.cpp", '"workloads/step/a.hpp"'),
        ]:
            with self.subTest(path=path):
                self.assertEqual(check({**exists, path: ["<string>", include]}), (0, []))

    def test_a_folder_has_20_files_at_most(self):
        files = {f"src/engine/part_{i}.cpp": [] for i in range(20)} | {"src/engine/README.md": []}
        self.assertEqual(check(files), (0, []))
        self.assertEqual(check(files | {"src/engine/one_more.hpp": []}), (1, ["src/engine:1"]))
        scripts = {f"scripts/studies/part_{i}.py": [] for i in range(20)} | {"scripts/studies/page.html": []}
        self.assertEqual(check(scripts), (0, []))
        self.assertEqual(check(scripts | {"scripts/studies/page.js": []}), (1, ["scripts/studies:1"]))
        samples = {f"tests/samples/topologies/part_{i}.py": [] for i in range(30)}
        self.assertEqual(check(samples), (0, []))

    def test_the_order_of_folders_has_no_cycle(self):
        for folders in runpy.run_path(str(SOURCE / "scripts/check_layers"))["FOLDERS"].values():
            left = {folder: set(allowed) - {folder} for folder, allowed in folders.items()}
            while left:
                lowest = [folder for folder, allowed in left.items() if not allowed & set(left)]
                self.assertTrue(lowest, left)
                for folder in lowest:
                    del left[folder]


if __name__ == "__main__":
    unittest.main()
