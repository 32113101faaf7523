# SPDX-License-Identifier: GPL-2.0-only
"""`weft import onnx`: models written field by field (tests/onnx_files.py); FLOPs, bytes and times by the operators'
definitions."""

# Time limit: 300 s

import pathlib
import sys
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import onnx_files
import weft_testing
from chakra_files import delimited
from import_testing import ImportTest
from onnx_files import node, tensor, value

WIDTH, HIDDEN = 1024, 4096


class Onnx(ImportTest):
    FORMAT = "onnx"

    def model(self, content, name="model.onnx"):
        (self.folder / name).write_bytes(content)
        return name

    def collectives(self):
        rows = weft_testing.table(self.folder / "out.h5", "collectives")
        return sorted(map(int, rows["bytes"]))

    def test_flops_and_parameters(self):
        """Of a layer and its way back; of convolutions, in groups, too; of attention, whose shapes the graph
        computes."""
        convolutions = 2 * 16 * 16 * 16 * 27 + 2 * 32 * 16 * 16 * 8 * 9 + 2 * 32 * 10
        attention = 4 * 2 * 64 * 256 * 256 + 2 * 2 * 4 * 64 * 64 * 64
        for content, parameters, flops in (
                (onnx_files.two_layers(), 2 * WIDTH * HIDDEN + HIDDEN, 2 * 2 * WIDTH * HIDDEN),
                (onnx_files.convolution(), 16 * 27 + 32 * 72 + 32 * 10 + 10, convolutions),
                (onnx_files.attention(), 4 * 256 * 256 + 512, attention)):
            read = self.imported(self.model(content), "--batch", "3", "--micro-batches", "1")
            self.assertEqual((read["parameters"], read["forward_flops"]), (parameters, 3 * flops))
            self.assertEqual(read["parameter_bytes"], 4 * parameters)

    def test_times(self):
        """A GEMM of one token reads its weights; the step is forward, twice as much backward, and Adam: 28 bytes a
        parameter, at the memory's 3.35 TB/s."""
        self.imported(self.model(onnx_files.two_layers()))
        found = self.run_imported()
        moved = 4 * (WIDTH + HIDDEN + WIDTH * HIDDEN)
        start, end = found[0, "MatMul_m"]
        self.assertAlmostEqual(end - start, moved / 3.35e12 * 1e6, 3)
        start, end = found[0, "gradient of MatMul_m"]
        self.assertAlmostEqual(end - start, 2 * moved / 3.35e12 * 1e6, 3)
        start, end = found[0, "optimizer"]
        self.assertAlmostEqual(end - start, 28 * (2 * WIDTH * HIDDEN + HIDDEN) / 3.35e12 * 1e6, 3)
        read = self.imported("model.onnx", "--inference")
        self.assertEqual(read["operations"], {"compute": 4})

    def test_data_parallel(self):
        """Gradients of all parameters go out, in buckets of 25 MiB or more."""
        read = self.imported(self.model(onnx_files.two_layers()), "--data", "4")
        self.assertEqual((read["ranks"], read["operations"]["all_reduce"]), (4, 4))
        self.run_imported()
        self.assertEqual(self.collectives(), [4 * (2 * WIDTH * HIDDEN + HIDDEN)])
        self.imported(self.model(onnx_files.two_layers(2048)), "--data", "2")
        self.run_imported()
        self.assertEqual(self.collectives(), [4 * 2048 * HIDDEN, 4 * (2048 * HIDDEN + HIDDEN)])

    def test_tensor_parallel(self):
        """Columns, then rows: one sum forward, of the result, and one backward, of the input's gradient. In attention
        heads are dealt out, and three GEMMs share the sum of their input's gradient."""
        self.imported(self.model(onnx_files.two_layers()), "--tensor", "2", "--batch", "16", "--micro-batches", "1")
        self.run_imported()
        self.assertEqual(self.collectives(), [16 * WIDTH * 4] * 2)
        read = self.imported(self.model(onnx_files.attention()), "--tensor", "4")
        self.assertEqual(read["operations"]["all_reduce"], 2 * 4)
        self.run_imported()
        self.assertEqual(self.collectives(), [64 * 256 * 4] * 2)

    def test_pipeline(self):
        """Two stages, four micro-batches of two: what is used behind the cut crosses it, and its gradient comes
        back."""
        read = self.imported(self.model(onnx_files.two_layers(64, 64)), "--pipeline", "2", "--batch", "8",
                             "--micro-batches", "4")
        self.assertEqual(read["operations"]["send"], read["operations"]["recv"])
        self.assertEqual(read["operations"]["send"], 2 * 4)
        self.run_imported()
        read = self.imported(self.model(onnx_files.attention()), "--data", "2", "--tensor", "2", "--pipeline", "2",
                             "--batch", "4")
        self.assertEqual(read["ranks"], 8)
        self.run_imported()
        self.refused("model.onnx", "--pipeline", "3", "--batch", "4", says=["--batch 4 in 3 micro-batches"])

    def test_half_precision(self):
        """The same parameters in half the bytes."""
        read = self.imported(self.model(onnx_files.two_layers(kind=onnx_files.FLOAT16)))
        self.assertEqual(read["parameter_bytes"], 2 * read["parameters"])

    def test_loops_and_branches_that_are_known(self):
        """A loop of n rounds of two GEMMs of one token, 2 * 256^2 FLOPs each, has two weights however often it runs. Of
        an If the branch that is taken counts: two GEMMs, or one."""
        gemm = 2 * 256 * 256
        for content, parameters, flops in ((onnx_files.loop(3), 2, 6), (onnx_files.loop(5), 2, 10),
                                           (onnx_files.branches(1), 1, 2), (onnx_files.branches(0), 1, 1),
                                           (onnx_files.branches(0, computed=True), 1, 2)):
            read = self.imported(self.model(content))
            self.assertEqual((read["parameters"], read["forward_flops"]), (parameters * 256 * 256, flops * gemm))
            self.run_imported()

    def test_loops_and_branches_that_depend_on_data(self):
        for old, new, says in ((b"trips", b"xxxxx", r"node 'Loop_y' \(Loop\): how often it runs depends on data"),
                               (b"goes_on", b"unknown", "a node|made by no node|depends on data")):
            with self.subTest(old):
                whole = onnx_files.loop()
                at = whole.index(b"Loop_y") - 40
                self.refused(self.model(whole[:at].replace(old, new) + whole[at:].replace(old, new, 1)), says=[says])
        self.refused(self.model(onnx_files.loop(10**6)), says=["more than 100000 nodes"])
        self.refused(self.model(onnx_files.branches(1).replace(b"\x0a\x01c\x12", b"\x0a\x01x\x12", 1)),
                     says=[r"node 'If_y' \(If\): which branch it takes depends on data: 'x'"])

    def test_other_files_are_told_what_to_do(self):
        for name, members, says in (("script.pt", ["m/code/__torch__.py", "m/data.pkl"], "torch.onnx.export"),
                                    ("weights.pt", ["m/data.pkl", "m/data/0"], "checkpoint")):
            with zipfile.ZipFile(self.folder / name, "w") as archive:
                for member in members:
                    archive.writestr(member, "x")
            self.refused(name, says=[says])
        graph = delimited(1, delimited(1, b"x") + delimited(2, b"Placeholder")) + delimited(1, delimited(1, b"y") +
                                                                                          delimited(2, b"MatMul"))
        self.refused(self.model(graph, "graph.pb"), says=["GraphDef", "tf2onnx"])

    def test_what_is_refused(self):
        good = onnx_files.two_layers()

        def one(nodes, weights=(), inputs=None):
            return onnx_files.model(nodes, weights, inputs or [value("x", ["N", 8])], [value("y", ["N", 8])])

        loop = node("Loop", ["x"], ["y"]) + delimited(5, delimited(1, b"body") + delimited(6, b""))
        for what, content, says in (
                ("cut", good[:1000], r"byte \d+: "),
                ("wire", b"\x0f" + good, r"byte \d+: "),
                ("no model", b"hello, this is a text of some length", "byte"),
                ("nothing within", b"\x08\x08", "no graph"),
                ("operator", one([node("Frobnicate", ["x"], ["y"])]).replace(b"\x0a\x01y", b"\x0a\x01z"),
                 r"node 'Frobnicate_\w' \(Frobnicate\)"),
                ("gemm", one([node("MatMul", ["x", "w"], ["y"])], [tensor("w", [9, 8])]),
                 r"a GEMM of \[1, 8\] and \[9, 8\]"),
                ("value", one([node("Relu", ["nowhere"], ["y"])]), "made by no node above"),
                ("loop", one([loop]), r"node 'Loop_y' \(Loop\): how often it runs depends on data: 'x'"),
                ("dimension", one([node("Relu", ["x"], ["y"])], inputs=[value("x", ["N", "tokens"])]),
                 "give --dim tokens=SIZE")):
            with self.subTest(what):
                self.refused(self.model(content), says=[says])
        self.refused("missing.onnx", says=["missing.onnx: it cannot be read"])
        content = one([node("Relu", ["x"], ["y"])], inputs=[value("x", ["N", "tokens"])])
        self.imported(self.model(content), "--dim", "tokens=8")


if __name__ == "__main__":
    unittest.main()
