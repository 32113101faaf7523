#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""No result changes unnoticed: fingerprint, simulated time and packet-hops of many experiments are in a file.

`tests/cli/golden_test.py --update` rewrites the file. The commit that does so must explain why results changed."""

import difflib
import functools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import SOURCE, ProgramTest, quantities, two_at_a_time, weft

GOLDEN = SOURCE / "tests" / "golden" / "fingerprints.csv"
COLUMNS = ["experiment", "fingerprint", "simulated_time_ps", "packet_hops"]
MAX_HOPS = 20 * 10**6  # of an experiment that is run here: about two seconds


def expected_hops(path):
    return quantities(weft("describe", path).out, "packet-hops")


def experiments():
    """All of tests/golden, and those that are shipped and are done soon."""
    shipped = sorted((SOURCE / "workloads").glob("*.yaml"))
    hops = two_at_a_time(functools.partial(expected_hops, path) for path in shipped)
    return [path for path, count in zip(shipped, hops) if count <= MAX_HOPS] + sorted(GOLDEN.parent.glob("*.yaml"))


class Golden(ProgramTest):
    def row(self, path):
        summary, _ = self.simulate(path, output=f"{path.stem}.h5")
        self.assertTrue(summary["complete"])
        return ",".join([str(path.relative_to(SOURCE)), *(str(summary[column]) for column in COLUMNS[1:])])

    def rows(self):
        return [",".join(COLUMNS), *two_at_a_time(functools.partial(self.row, path) for path in experiments())]

    def test_results_are_as_before(self):
        found = self.rows()
        before = GOLDEN.read_text().splitlines() if GOLDEN.exists() else []
        name = str(GOLDEN.relative_to(SOURCE))
        changes = list(difflib.unified_diff(before, found, name, "this program", n=0, lineterm=""))
        if changes:
            self.fail("\n".join(["results have changed. If that is meant, run `tests/cli/golden_test.py --update`, and "
                                 "say in the commit why.", *changes]))

    def test_all_kinds_are_there(self):
        """The kinds that everything else is built on. Later ones are added if and when somebody wants them guarded."""
        texts = [path.read_text() for path in experiments()]
        texts += [path.read_text() for path in (SOURCE / "workloads" / "traces").glob("*.yaml")]
        wanted = {
            "kind": ["fat_tree", "star", "line", "graph", "training", "collective", "traffic", "program"],
            "collective": ["all_reduce", "all_gather", "reduce_scatter", "broadcast"],
            "pattern": ["permutation", "incast", "all_to_all", "pairs"],
            "ack": ["none", "66 B"],
            "routing": ["shortest_path"],  # fat_tree is the default of its topology
            "process": ["poisson", "periodic"],
        }
        words = [f"{key}: {value}" for key, values in wanted.items() for value in values]
        missing = [word for word in words if not any(word in text for text in texts)]
        self.assertEqual(missing, [], "add an experiment to tests/golden")

    def test_a_change_is_seen(self):
        """A longer link by 1 ps, or another seed, is another fingerprint."""
        path = GOLDEN.parent / "all_to_all_of_ties.yaml"
        runs = [self.simulate(path, *words)[0] for words in
                ([], ["--set", "topology.link_delay=500001 ps"], ["--seed", "8"], ["--set", "simulation.seed=7"])]
        self.assertEqual(len({run["fingerprint"] for run in runs}), 3)
        self.assertEqual(runs[0]["fingerprint"], runs[3]["fingerprint"])


def update():
    test = Golden()
    test.setUp()
    try:
        GOLDEN.write_text("\n".join(test.rows()) + "\n")
    finally:
        test.doCleanups()


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
