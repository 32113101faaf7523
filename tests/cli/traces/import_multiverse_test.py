#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Workloads of Multiverse whose nodes do not fit together: the error is at their place in the file of the NPU, and not in the
trace that is written from it, alone and before a run."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, ProgramTest, weft  # noqa: E402


def node(number, kind, after=(), **values):
    """`values`: attributes, and the duration."""
    return {"id": str(number), "name": f"n{number}", "type": f"{kind}_NODE", "dataDeps": [str(one) for one in after],
            "durationMicros": str(values.pop("duration", 1)),
            "attr": [{"name": name, "uint64Val": str(value)} for name, value in values.items()]}


def step(rank):
    """A message from 0 to 1 and an all-reduce, a node on each line."""
    ends = {"comm_dst": 1} if rank == 0 else {"comm_src": 0}
    return [node(0, "COMP"), node(1, "COMM_SEND" if rank == 0 else "COMM_RECV", [0], comm_size=1000, **ends),
            node(2, "COMM_COLL", [1], comm_type=0, comm_size=8000)]


class Multiverse(ProgramTest):
    def steps(self, change=lambda first, second: None):
        """Writes the files of two NPUs after a change of their nodes."""
        (self.folder / "input").mkdir(exist_ok=True)
        ranks = [step(0), step(1)]
        change(*ranks)
        for rank, nodes in enumerate(ranks):
            text = ",\n".join(map(json.dumps, nodes))
            (self.folder / "input" / f"npu.{rank}.json").write_text(f"[{text}]\n")

    def refused(self, change, says):
        self.steps(change)
        for words in (["import", "multiverse", "input", "-o", "out.yaml"], ["run", "input"]):
            done = weft(*words, folder=self.folder)
            self.assertEqual((done.code, done.err), (EXIT_INPUT, f"weft: input/npu.{says}\n"), done)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["input"])

    def test_dependencies(self):
        self.refused(lambda first, second: first[1].update(id="0"),
                     "0.json:2: node 0: another node has this id, too; ids of a file are all different")
        self.refused(lambda first, second: second[2].update(dataDeps=["1", "7"]),
                     "1.json:3: node 2: it needs the data of node 7, which is not in the file")
        self.refused(lambda first, second: first[1].update(dataDeps=["1"]), "0.json:2: node 1: it depends on itself")
        self.refused(lambda first, second: second[1].update(dataDeps=["2"]),
                     "1.json:2: node 1: it depends on node 2, and that one, directly or not, on it")

    def test_kinds_of_values(self):
        self.refused(lambda first, second: first[1].update(dataDeps={"7": 1}),
                     "0.json:2: node 1: 'dataDeps' is dict; expected a list")
        self.refused(lambda first, second: first[1]["attr"].append({"value": 1}),
                     "0.json:2: node 1: the attribute \"{'value': 1}\"; expected a map with a name")

    def test_messages(self):
        what = "message 0 from rank 0 to rank 1 with tag 0"
        self.refused(lambda first, second: second[1]["attr"][0].update(uint64Val="1001"),
                     f"0.json:2: node 1: {what}: the send has 1000 B, and the recv (input/npu.1.json:2: node 1) 1001 B")
        self.refused(lambda first, second: second.__setitem__(1, node(1, "COMP")),
                     f"0.json:2: node 1: {what}: the send has no recv")
        self.refused(lambda first, second: first.__setitem__(1, node(1, "COMP")),
                     f"1.json:2: node 1: {what}: the recv has no send")

    def test_collectives(self):
        self.refused(lambda first, second: second[2]["attr"][1].update(uint64Val="9000"),
                     "1.json:3: node 2: it is collective 0 of its ranks: all_reduce of 9000 B. input/npu.0.json:3: node 2 is: "
                     "all_reduce of 8000 B. All ranks have the same collectives in the same order")
        self.refused(lambda first, second: second.pop(),
                     "1.json: it has 0 collectives of the ranks 0, 1, and input/npu.0.json has 1; each takes part in each")

    def test_nodes_before_those_they_wait_for(self):
        """They are put in order, so that messages and collectives are counted in another one than that of the file."""
        def change(first, second):
            second.insert(1, node(4, "COMM_RECV", [1], comm_size=2000, comm_src=0))
            first.append(node(4, "COMM_SEND", [1], comm_size=2000, comm_dst=1))

        self.steps(change)
        read = json.loads(self.run_weft("import", "multiverse", "input", "-o", "out.yaml", "--json").out)
        self.assertEqual(read["operations"], {"compute": 2, "send": 2, "recv": 2, "all_reduce": 2})
        self.assertTrue(self.simulate(self.folder / "out.yaml")[0]["complete"])


if __name__ == "__main__":
    unittest.main()
