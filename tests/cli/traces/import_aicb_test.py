# SPDX-License-Identifier: GPL-2.0-only
"""AICB's CSV, and SimAI's topology and parameters."""

import gzip
import importlib.util
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import weft_testing  # noqa: E402
from weft_testing import EXIT_INPUT, SOURCE, table  # noqa: E402

COLUMNS = "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count"
# As AICB writes them: `None` where nothing is, shapes of a computation in quotation marks.
ROWS = ["CommType.all_reduce,CommGroup.dp_group,4,4096,init,None,None,,None,None,None,1",
        "CommType.broadcast,CommGroup.tp_group,2,40,forward,None,0,,None,None,None,1",
        "CommType.computation,None,None,\"((4096, 1, 64), (64, 64))\",forward,None,None,,0.25,None,None,1",
        "CommType.computation,None,None,\"((4096, 1, 64), (64, 64))\",forward,None,None,,None,None,None,1",
        "CommType.all_gather,CommGroup.tp_group,2,1000,forward,None,None,,None,None,None,1",
        "CommType.isend,CommGroup.pp_group,2,1000,forward,8,None,,None,None,None,1",
        "CommType.all_reduce,CommGroup.pp_group,2,8,forward,None,None,,None,None,None,1",
        "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1"]
RANKS = "[ pp_stage0: [" + ", ".join(f"rank{rank}" for rank in range(8)) + "] ]"


def simai(servers):
    """GPUs, an NVSwitch for each server, a leaf for each GPU's number, and one on top (gen_Topo_Template.py)."""
    gpus, rails = 2 * servers, 2
    nvswitch, leaf, top = gpus, gpus + servers, gpus + servers + rails
    links = []
    for gpu in range(gpus):
        links.append(f"{gpu} {nvswitch + gpu // 2} 2880Gbps 0.000025ms 0")
        links.append(f"{gpu} {leaf + gpu % 2} 400Gbps 0.0005ms 0")
    links += [f"{leaf + rail} {top} 400Gbps 0.0005ms 0" for rail in range(rails)]
    switches = " ".join(str(number) for number in range(gpus, top + 1))
    return f"{top + 1} 2 {servers} {rails + 1} {len(links)} H100\n{switches}\n" + "\n".join(links) + "\n"


class Aicb(weft_testing.ProgramTest):
    def test_lines_of_the_csv_become_what_each_rank_does(self):
        self.write("\n".join([RANKS, COLUMNS, *ROWS]) + "\n", "in.csv")
        read = json.loads(self.run_weft("import", "aicb", "in.csv", "-o", "out.yaml", "--json").out)
        self.assertEqual(read["operations"], {"all_reduce": 8, "broadcast": 8, "compute": 8, "all_gather": 8})
        # An all-gather has the size of its result, here and there.
        self.assertEqual(read["bytes"], {"all_reduce": 8 * 4096, "broadcast": 8 * 40, "all_gather": 8 * 1000})
        self.assertAlmostEqual(read["compute_seconds"], 8 * 0.25e-3)
        self.assertEqual(sorted(one["what"].split(" ")[0] for one in read["refused"]),
                         ["all_reduce", "computation", "isend"])
        summary, results = self.simulate(self.folder / "out.yaml")
        self.assertEqual(summary["operations"], 32)
        # tp_group: neighbours; dp_group: two apart (SimAI's MockNcclGroup).
        collectives = table(results, "collectives")
        self.assertEqual(len(collectives["kind"]), 2 + 4 + 4)

    def test_layers_and_the_csv_in_gzip(self):
        spec = importlib.util.spec_from_file_location("samples", SOURCE / "tests" / "importers" / "aicb.py")
        samples = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(samples)
        for words in (samples.sample(self.folder), samples.further(self.folder)):
            plain = json.loads(self.run_weft("import", "aicb", *words, "-o", "out.yaml", "--json").out)
            path = self.folder / words[0]
            path.write_bytes(gzip.compress(path.read_bytes()))
            for name in ("aicb", "auto"):
                read = json.loads(self.run_weft("import", name, *words, "-o", "out.yaml", "--json").out)
                self.assertEqual((read["operations"], read["bytes"]), (plain["operations"], plain["bytes"]))

    def test_damaged_csv(self):
        for what, rows, place in (("kind", [ROWS[0].replace("all_reduce", "all_reduction")], "in.csv:3: comm_type"),
                                  ("columns", [ROWS[0] + ",1"], "in.csv:3: found 13 columns"),
                                  ("size", [ROWS[0].replace("4096", "x")], "in.csv:3: msg_size"),
                                  ("group", [ROWS[0].replace("_group,4", "_group,3")], "dp_group has 3 ranks")):
            with self.subTest(what):
                self.write("\n".join([RANKS, COLUMNS, *rows]) + "\n", "in.csv")
                done = weft_testing.weft("import", "aicb", "in.csv", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn(place, done.err)

    def test_topology_and_parameters_of_simai(self):
        spec = importlib.util.spec_from_file_location("sample", SOURCE / "tests" / "importers" / "aicb.py")
        samples = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(samples)
        words = samples.sample(self.folder)
        self.write(simai(4), "HPN")
        self.write("CC_MODE 1\nPACKET_PAYLOAD_SIZE 9000\nBUFFER_SIZE 32\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\n"
                   "KMAX_MAP 2 400000000000 3200 2880000000000 3200\nKMIN_MAP 2 400000000000 800 2880000000000 800\n"
                   "PMAX_MAP 2 400000000000 0.2 2880000000000 0.2\nMON_START 0\n", "SimAI.conf")
        read = json.loads(self.run_weft("import", "aicb", *words, "--network", "HPN", "--network-config", "SimAI.conf",
                                        "-o", "out.yaml", "--json").out)
        self.assertEqual(read["ranks"], 8)
        summary, _ = self.simulate(self.folder / "out.yaml")
        self.assertEqual(summary["operations"], sum(samples.counts(self.folder)["operations"].values()))


if __name__ == "__main__":
    unittest.main()
