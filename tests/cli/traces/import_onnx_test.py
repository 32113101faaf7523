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
from onnx_files import FLOAT, INT8, INT32, UINT8, foreign, node, quantized, tensor, value
from weft_testing import SOURCE

sys.path.insert(0, str(SOURCE / "scripts"))
from importing import command, registry  # noqa: E402

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

    def one(self, operator, weights, inputs, result, kind=FLOAT):
        """A model of one operator, whose inputs are of [N, ...] and whose result has this shape."""
        return onnx_files.model([operator], weights, [value(name, ["N", *dims], one) for name, dims, one in inputs],
                                [value("y", result, kind)])

    def count(self, content):
        """(parameters, their bytes, FLOPs of two samples), by the reader within this process."""
        module, path = registry.load("onnx"), self.folder / self.model(content)
        words = [str(path), "--batch", "2", "--micro-batches", "1"]
        return tuple(module.read(command.format_parser("onnx", module).parse_args(words)).counts.values())

    def test_whole_numbers(self):
        """Matrix products of bytes: 2 m n k operations; weights and biases are parameters, scales and zero points are
        not. Weights of four bits are two in a byte."""
        tokens, k, n = 4, 64, 96
        flops, matrix = 2 * 2 * tokens * n * k, tensor("w", [k, n], INT8)
        x, real = ("x", [tokens, k], UINT8), ("x", [tokens, k], FLOAT)
        scales = quantized(["xs", "xz", "ws", "wz", "ys", "yz"])
        for operator, weights, given, parameters, size in (
                (node("MatMulInteger", ["x", "w"], ["y"]), [matrix], x, n * k, n * k),
                (node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"]), [matrix, *scales], x,
                 n * k, n * k),
                (foreign("MatMulIntegerToFloat", ["x", "w", "xs", "ws", "xz", "wz", "b"], ["y"]),
                 [matrix, tensor("b", [n]), *scales], x, n * k + n, n * k + 4 * n),
                (foreign("DynamicQuantizeMatMul", ["x", "w", "ws", "wz", "b"], ["y"]),
                 [matrix, tensor("b", [n]), *scales], real, n * k + n, n * k + 4 * n),
                (foreign("MatMulNBits", ["x", "w", "s"], ["y"], K=k, N=n, bits=4, block_size=32),
                 [tensor("w", [n, k // 32, 16], UINT8), tensor("s", [n * k // 32])], real, n * k, n * k // 2)):
            self.assertEqual(self.count(self.one(operator, weights, [given], ["N", tokens, n])),
                             (parameters, size, flops))
        gemm = foreign("QGemm", ["x", "xs", "xz", "w", "ws", "wz", "b", "ys", "yz"], ["y"], transB=1)
        content = self.one(gemm, [tensor("w", [n, k], INT8), tensor("b", [n], INT32), *scales], [("x", [k], UINT8)],
                           ["N", n], UINT8)
        self.assertEqual(self.count(content), (n * k + n, n * k + 4 * n, 2 * 2 * n * k))
        kernels, positions = tensor("w", [16, 3, 3, 3], INT8), 8 * 8
        for operator, biases in ((node("ConvInteger", ["x", "w"], ["y"], pads=[1, 1, 1, 1]), 0),
                                 (node("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["y"],
                                       pads=[1, 1, 1, 1]), 16)):
            content = self.one(operator, [kernels, tensor("b", [16], INT32), *scales], [("x", [3, 8, 8], UINT8)],
                               ["N", 16, 8, 8], INT32)
            self.assertEqual(self.count(content), (16 * 27 + biases, 16 * 27 + 4 * biases,
                                                   2 * 2 * 16 * positions * 27))

    def test_time_of_whole_numbers(self):
        """QLinearMatMul reads and writes bytes, and multiplies at the peak of 8 bits: 64 tokens by a matrix of
        4096 x 4096 wait for the memory, at 3.35 TB/s, half of what fp16 would take."""
        tokens, width = 64, 4096
        operator = node("QLinearMatMul", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], ["y"])
        weights = [tensor("w", [width, width], INT8), *quantized(["xs", "xz", "ws", "wz", "ys", "yz"])]
        content = self.one(operator, weights, [("x", [tokens, width], UINT8)], ["N", tokens, width], UINT8)
        self.imported(self.model(content), "--inference")
        start, end = self.run_imported()[0, "QLinearMatMul_y"]
        moved = width * width + 2 * tokens * width + 3 * 4 + 3
        self.assertAlmostEqual(end - start, moved / 3.35e12 * 1e6, 3)

    def test_einsum(self):
        """2 times the sizes of all labels, if one is summed that both operands have."""
        x, w, flops = ("x", [4, 8], FLOAT), tensor("w", [8, 3, 16]), 2 * 2 * 4 * 8 * 3 * 16
        for equation, result in (("nte,ehd->nthd", ["N", 4, 3, 16]), ("nte, ehd -> nhtd", ["N", 3, 4, 16]),
                                 ("...e,ehd->...hd", ["N", 4, 3, 16]), ("nte,ehd", [3, 16, "N", 4])):
            content = self.one(node("Einsum", ["x", "w"], ["y"], equation=equation), [w], [x], result)
            self.assertEqual(self.count(content), (8 * 3 * 16, 4 * 8 * 3 * 16, flops))
        read = self.imported("model.onnx", "--tensor", "3")
        self.assertEqual(read["operations"], {"compute": 3 * 3, "all_reduce": 3})
        both = [("x", [4, 8], FLOAT), ("z", [5, 8], FLOAT)]
        for equation, flops in (("nik,njk->nij", 2 * 2 * 4 * 5 * 8), ("nik,njk->nijk", 0)):
            result = ["N", 4, 5, 8][:len(equation.partition("->")[2])]
            content = self.one(node("Einsum", ["x", "z"], ["y"], equation=equation), [], both, result)
            self.assertEqual(self.count(content), (0, 0, flops))
        for equation, says in (("nik,njk,k->nij", "expected one or two"), ("nii,njk->nij", "operand 'nii'"),
                               ("nik,nji->njk", "label 'i' has the sizes 4 and 8"), ("nik,njk->nz", "result 'nz'")):
            content = self.one(node("Einsum", ["x", "z"], ["y"], equation=equation), [], both, ["N", 4])
            self.refused(self.model(content), says=[r"node 'Einsum_y' \(Einsum\): ", says])

    def test_recurrent_layers(self):
        """Each gate of each step and direction has a row of H by I for the input, and one of H by H for the state."""
        steps, width, hidden = 6, 32, 16
        for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
            for directions in (1, 2):
                weights = [tensor("w", [directions, gates * hidden, width]),
                           tensor("r", [directions, gates * hidden, hidden]),
                           tensor("b", [directions, 2 * gates * hidden])]
                operator = node(op, ["x", "w", "r", "b"], ["y", "last"], hidden_size=hidden, layout=1)
                content = self.one(operator, weights, [("x", [steps, width], FLOAT)],
                                   ["N", steps, directions, hidden])
                parameters = directions * gates * hidden * (width + hidden + 2)
                self.assertEqual(self.count(content), (
                    parameters, 4 * parameters, 2 * 2 * steps * directions * gates * hidden * (width + hidden)))

    def test_time_of_a_recurrent_layer(self):
        """Steps follow one another, and each reads the weights of its state: at 3.35 TB/s."""
        steps, width, hidden = 8, 64, 1024
        weights = [tensor("w", [1, 4 * hidden, width]), tensor("r", [1, 4 * hidden, hidden])]
        content = self.one(node("LSTM", ["x", "w", "r"], ["y"], hidden_size=hidden, layout=1), weights,
                           [("x", [steps, width], FLOAT)], ["N", steps, 1, hidden])
        self.imported(self.model(content), "--inference")
        start, end = self.run_imported()[0, "LSTM_y"]
        state = 4 * 4 * hidden * hidden
        moved = 4 * (steps * width + 4 * hidden * width + steps * hidden) + state
        self.assertAlmostEqual(end - start, (moved + steps * state) / 3.35e12 * 1e6, 3)

    def test_fused_attention(self):
        """Queries with keys, and sums of values: 2 L T (H + V) in each head, for all keys T; with weights of its own
        also their GEMM."""
        tokens, heads, each, past = 8, 4, 16, 24
        width = heads * each
        qkv = [(name, [tokens, width], FLOAT) for name in "qkv"]
        few = [("q", [tokens, width], FLOAT), *((name, [tokens, width // 2], FLOAT) for name in "kv")]
        cached = [(name, [heads // 2, past, each], FLOAT) for name in ("pk", "pv")]
        four = [(name, [heads, tokens, each], FLOAT) for name in "qkv"]

        def products(keys):
            return 2 * heads * 2 * tokens * keys * (each + each)

        projected = 2 * 2 * tokens * width * 3 * width
        weights = [tensor("w", [width, 3 * width]), tensor("b", [3 * width])]
        for operator, given, learned, parameters, flops in (
                (foreign("Attention", ["x", "w", "b"], ["y"], num_heads=heads), [("x", [tokens, width], FLOAT)],
                 weights, 3 * width * width + 3 * width, projected + products(tokens)),
                (foreign("MultiHeadAttention", ["q", "k", "v", "b"], ["y"], num_heads=heads), qkv, weights[1:],
                 3 * width, products(tokens)),
                (foreign("GroupQueryAttention", ["q", "k", "v", "pk", "pv"], ["y", "present"], num_heads=heads,
                         kv_num_heads=heads // 2), few + cached, [], 0, products(tokens + past)),
                (node("Attention", ["q", "k", "v"], ["y"], q_num_heads=heads, kv_num_heads=heads // 2), few, [], 0,
                 products(tokens)),
                (node("Attention", ["q", "k", "v"], ["y"]), four, [], 0, products(tokens))):
            result = ["N", heads, tokens, each] if given is four else ["N", tokens, width]
            content = self.one(operator, learned, given, result)
            self.assertEqual(self.count(content), (parameters, 4 * parameters, flops))

    def test_heads_of_fused_attention_are_divided(self):
        """Of two layers the second needs all features of the first, which are gathered before it. Gradients of the inputs
        of both are summed over the ranks; of that of the first one's result each rank then has the whole, and keeps its
        part. Of each layer ranks have a quarter of the heads."""
        tokens, width = 8, 64
        nodes = [foreign("Attention", [one, "w"], [two], num_heads=4) for one, two in (("x", "h"), ("h", "y"))]
        content = onnx_files.model(nodes, [tensor("w", [width, 3 * width])], [value("x", ["N", tokens, width])],
                                   [value("y", ["N", tokens, width])])
        read = self.imported(self.model(content), "--tensor", "4")
        ranks = 4
        self.assertEqual(read["operations"], {"compute": ranks * 5, "all_gather": ranks, "all_reduce": 2 * ranks})
        self.run_imported()
        whole = tokens * width * 4
        self.assertEqual(self.collectives(), [whole] * 3)

    def test_fused_normalizations(self):
        """Sums of rows of three tables, then the sum that a normalization adds up, by a matrix; the tables, scales and
        shifts are parameters."""
        words, tokens, width = 50, 8, 16
        nodes = [foreign("EmbedLayerNormalization", ["x", "s", "words", "places", "parts", "g", "b"], ["e", "mask"]),
                 foreign("SkipLayerNormalization", ["e", "e", "g", "b"], ["n", "", "", "sum"]),
                 foreign("SkipSimplifiedLayerNormalization", ["n", "sum", "g"], ["r", "", "", "again"]),
                 node("MatMul", ["again", "w"], ["y"])]
        weights = [tensor("words", [words, width]), tensor("places", [tokens, width]), tensor("parts", [2, width]),
                   tensor("g", [width]), tensor("b", [width]), tensor("w", [width, width])]
        content = onnx_files.model(nodes, weights, [value(name, ["N", tokens], INT32) for name in "xs"],
                                   [value("y", ["N", tokens, width])])
        parameters = (words + tokens + 2 + 1 + 1 + width) * width
        self.assertEqual(self.count(content), (parameters, 4 * parameters, 2 * 2 * tokens * width * width))

    def test_a_batch_that_is_fixed(self):
        """--batch is refused if no input has an open first dimension, unless it is that dimension; without it the
        experiment does not claim a number of samples."""
        relu = node("Relu", ["x"], ["y"])
        fixed = self.model(onnx_files.model([relu], [], [value("x", [8, 16])], [value("y", [8, 16])]))
        self.refused(fixed, "--batch", "4", says=[
            r"model.onnx: --batch 4: the first dimensions of its inputs are fixed \(8 of 'x'\); expected one that is",
            r"dynamic_axes=\{'x': \{0: 'batch'\}\}"])
        self.refused(fixed, "--batch", "8", "--micro-batches", "2", says=["--batch 8"])
        self.imported(fixed, "--batch", "8", "--micro-batches", "1")
        self.assertIn("8 sample(s)", (self.folder / "out.yaml").read_text())
        self.imported(fixed)
        self.assertIn("a forward pass of inputs of fixed sizes", (self.folder / "out.yaml").read_text())
        self.refused(self.model(self.one(relu, [], [("x", [16], FLOAT)], ["N", 16])), "--batch", "4", "--dim", "N=8",
                     "--micro-batches", "1", says=["--batch 4"])

    def test_names_of_dimensions(self):
        relu = node("Relu", ["x"], ["y"])
        named = self.model(onnx_files.model([relu], [], [value("x", ["N", "tokens"])], [value("y", ["N", "tokens"])]))
        self.refused(named, "--dim", "token=8", says=["--dim token: no dimension has this name.*expected N or tokens"])
        fixed = self.model(onnx_files.model([relu], [], [value("x", [8, 16])], [value("y", [8, 16])]))
        self.refused(fixed, "--dim", "N=8", says=["--dim N: .*its inputs have fixed dimensions"])

    def test_matrix_products_that_cannot_be_divided(self):
        """4,096 and 1,024 columns and no multiple of 3: refused. Of 96 and 64 columns the first are divided; rows of
        the second are then, too, but not the third's columns."""
        self.refused(self.model(onnx_files.two_layers()), "--tensor", "3", says=[
            "--tensor 3: none of its 2 matrix products", "'Gemm_h': 4096 columns; 'MatMul_m': 1024 columns"])
        relu = self.one(node("Relu", ["x"], ["y"]), [], [("x", [16], FLOAT)], ["N", 16])
        self.refused(self.model(relu, "relu.onnx"), "--tensor", "2", says=["none of its 0 matrix products"])
        content = onnx_files.model([node("MatMul", ["x", "w1"], ["a"]), node("MatMul", ["a", "w2"], ["b"]),
                                    node("MatMul", ["b", "w3"], ["y"])],
                                   [tensor("w1", [64, 96]), tensor("w2", [96, 64]), tensor("w3", [64, 64])],
                                   [value("x", ["N", 64])], [value("y", ["N", 64])])
        read = self.imported(self.model(content), "--tensor", "3")
        self.assertEqual(read["refused"], [{"place": "model.onnx", "what": "--tensor 3 does not divide 'MatMul_y' (64 "
                                            "columns): each of the ranks computes the whole"}])
        self.assertEqual(self.imported("model.onnx", "--tensor", "2")["refused"], [])

    def test_transposed_factors_of_a_fused_product(self):
        for attributes, shape in (({"transB": 1}, [16, 8]), ({}, [8, 16])):
            content = self.one(foreign("FusedMatMul", ["x", "w"], ["y"], **attributes), [tensor("w", shape)],
                               [("x", [4, 8], FLOAT)], ["N", 4, 16])
            self.assertEqual(self.count(content), (8 * 16, 4 * 8 * 16, 2 * 2 * 4 * 8 * 16))

    def test_operators_with_unknown_flops(self):
        """What may be a matrix product is refused by its name; tables that rows are taken from are none."""
        given = [("x", [8], FLOAT)]
        for operator, says in (
                (node("DeformConv", ["x", "w"], ["y"]), r"node 'DeformConv_y' \(DeformConv\): .* weight 'w' of \[8, 8"),
                (foreign("QAttention", ["x", "w"], ["y"]), r"\(QAttention\): an operator of the domain com.microsoft"),
                (foreign("Inverse", ["x"], ["y"]), r"\(Inverse\): an operator of the domain com.microsoft"),
                (foreign("Relu", ["x"], ["y"]).replace(b"com.microsoft", b"com.acme.xtra"),
                 r"\(Relu\): an operator of the domain 'com.acme.xtra'; expected ai.onnx or com.microsoft")):
            content = self.one(operator, [tensor("w", [8, 8])], given, ["N", 8])
            self.refused(self.model(content), says=[says])
        table = node("GatherND", ["w", "x"], ["y"])
        content = self.one(table, [tensor("w", [8, 8])], [("x", [1], onnx_files.INT64)], ["N", 8])
        self.assertEqual(self.count(content), (64, 4 * 64, 0))

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
        self.refused("missing.onnx", says=["missing.onnx: cannot open this file"])
        content = one([node("Relu", ["x"], ["y"])], inputs=[value("x", ["N", "tokens"])])
        self.imported(self.model(content), "--dim", "tokens=8")


if __name__ == "__main__":
    unittest.main()
