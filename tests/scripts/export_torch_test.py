# SPDX-License-Identifier: GPL-2.0-only
"""scripts/export_torch.py without PyTorch: a graph with the interface of torch.fx's nodes (op, target, args, kwargs, name,
meta) replaces the result of torch.export.export. It shows how the script handles such nodes, not that PyTorch returns
them."""

import importlib.machinery
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import weft_testing
from weft_testing import SOURCE

export_torch = importlib.machinery.SourceFileLoader("export_torch",
                                                    str(SOURCE / "scripts" / "export_torch.py")).load_module()


class Target:
    """Prints as torch.ops.aten.mm.default does."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name

    def __call__(self):
        raise AssertionError("the graph is not run")


class Value:
    """The properties of a FakeTensor."""

    def __init__(self, *shape, dtype="torch.bfloat16", size=2):
        self.shape, self.dtype, self.size = shape, dtype, size

    def element_size(self):
        return self.size

    def numel(self):
        count = 1
        for one in self.shape:
            count *= one
        return count


class Graph:
    def __init__(self):
        self.nodes = []

    def add(self, op, target, value, *args):
        one = types.SimpleNamespace(op=op, target=target, args=args, kwargs={},
                                    name=f"{target}_{len(self.nodes)}".replace(".", "_"),
                                    meta={"val": value} if value else {})
        self.nodes.append(one)
        return one

    def call(self, name, value, *args):
        return self.add("call_function", Target(name), value, *args)


def exported():
    """A GEMM, its view, a sum with a bias over all ranks, and a convolution beside it."""
    graph = Graph()
    x, w = graph.add("placeholder", "x", Value(512, 1024)), graph.add("placeholder", "w", Value(1024, 1024))
    y = graph.call("aten.mm.default", Value(512, 1024), x, w)
    view = graph.call("aten.view.default", Value(2, 256, 1024), y, [2, 256, 1024])
    reduced = graph.call("_c10d_functional.all_reduce.default", Value(2, 256, 1024), view, "sum", "0")
    waited = graph.call("_c10d_functional.wait_tensor.default", Value(2, 256, 1024), reduced)
    graph.call("aten.add.Tensor", Value(2, 256, 1024), waited, [view, 1.0])
    image, kernel = (graph.add("placeholder", name, value) for name, value in
                     (("image", Value(4, 3, 32, 32)), ("kernel", Value(8, 3, 3, 3))))
    graph.call("aten.convolution.default", Value(4, 8, 32, 32), image, kernel, None, [1, 1], [1, 1])
    graph.add("output", "output", None, [view])
    return types.SimpleNamespace(graph_module=types.SimpleNamespace(graph=graph), state_dict={"w": Value(1024, 1024)})


def symbolic(kind, into, out, *parameters):
    """The graph of torch.fx.symbolic_trace and ShapeProp (`tensor_meta`) of one module of torch.nn, which it does not open."""
    graph = Graph()
    x = graph.add("placeholder", "x", None)
    one = graph.add("call_module", "layers.0", None, x)
    x.meta, one.meta = {"tensor_meta": into}, {"tensor_meta": out}
    module = type(kind, (), {"parameters": lambda self: iter(parameters)})()
    return types.SimpleNamespace(graph=graph, get_submodule={"layers.0": module}.__getitem__)


class ExportTorch(weft_testing.ProgramTest):
    def test_modules_that_torch_fx_keeps_as_one_operation(self):
        """The same products and bytes as the operators within: y = x w' of (2 x 512) x 1024 by 1024 x 3072, and convolutions, of
        which each element of the result (transposed: of the input) meets each weight of its group once."""
        path = self.folder / "step.yaml"
        for kind, into, out, parameters, kernel in (
                ("Linear", (2, 512, 1024), (2, 512, 3072), [(3072, 1024), (3072,)],
                 f"m: 1024, n: 3072, k: 1024, count: 1, bytes: {2 * (1024 * 1024 + 1024 * 3072 + 3072 * 1024 + 3072)} B"),
                ("Conv2d", (2, 3, 224, 224), (2, 1024, 14, 14), [(1024, 3, 16, 16)],
                 f"m: {2 * 14 * 14}, n: 1024, k: {3 * 16 * 16}, count: 1, bytes: {2 * (2 * 3 * 224**2 + 2 * 1024 * 14**2 + 1024 * 768)} B"),
                ("ConvTranspose1d", (4, 512, 30), (4, 128, 62), [(512, 128, 4)],
                 f"m: {4 * 30}, n: {128 * 4}, k: 512, count: 1, bytes: {2 * (4 * 512 * 30 + 4 * 128 * 62 + 512 * 128 * 4)} B"),
                ("LayerNorm", (2, 512, 1024), (2, 512, 1024), [(1024,), (1024,)], f"{{bytes: {2 * (2 * 2 * 512 * 1024 + 2 * 1024)} B}}"),
                ("GELU", (512, 1024), (512, 1024), [], f"{{bytes: {2 * 2 * 512 * 1024} B}}"),
                # A row of the table for each row of the result, and not the table.
                ("Embedding", (4, 32), (4, 32, 256), [(50000, 256)], f"{{bytes: {2 * (4 * 32 + 2 * 4 * 32 * 256)} B}}")):
            with self.subTest(kind):
                graph = symbolic(kind, Value(*into), Value(*out), *(Value(*shape) for shape in parameters))
                self.assertEqual(export_torch.write_program(graph, path, train=False), 1)
                self.assertIn(kernel, path.read_text())
                path.unlink()
        for kind, parameters in (("LSTM", [(256, 64), (256, 64)]), ("TransformerEncoderLayer", [(1536, 512), (512, 512)]),
                                 ("Bilinear", [(8, 64, 64)])):
            graph = symbolic(kind, Value(4, 8, 64), Value(4, 8, 64), *(Value(*shape) for shape in parameters))
            with self.assertRaisesRegex(ValueError, rf"'layers.0' is a module '{kind.lower()}', .*; expected the graph of torch.export"):
                export_torch.write_program(graph, path)
            self.assertFalse(path.exists())

    def run_program(self):
        experiment = {"topology": weft_testing.STAR, "network": weft_testing.NETWORK, "simulation": {"seed": 1},
                      "workload": {"kind": "program", "file": str(self.folder / "step.yaml")},
                      "output": {"operations": True}}
        summary, results = self.simulate(experiment)
        self.assertTrue(summary["complete"])
        rows = weft_testing.table(results, "operations")
        return {label: (start, end) for rank, label, start, end in
                zip(rows["rank"], rows["label"], rows["start"], rows["end"]) if rank == 0}

    def test_forward(self):
        count = export_torch.write_program(exported(), self.folder / "step.yaml", ranks=4, train=False)
        self.assertEqual(count, 4)
        text = (self.folder / "step.yaml").read_text()
        self.assertIn("m: 512, n: 1024, k: 1024, count: 1, bytes: 4194304 B, precision: bf16", text)
        self.assertIn("m: 4096, n: 8, k: 27, count: 1", text)
        self.assertIn("collective: all_reduce, size: 1048576 B", text)
        found = self.run_program()
        gemm, added = found["aten_mm_default_2"], found["aten_add_Tensor_6"]
        self.assertAlmostEqual((gemm[1] - gemm[0]) / 1e6, 2 * 512 * 1024 * 1024 / (989.4e12 * 0.803) * 1e6, 3)
        reduced = found["_c10d_functional_all_reduce_default_4"]
        self.assertEqual((reduced[0], added[0]), (gemm[1], reduced[1]))

    def test_training(self):
        """Both GEMMs have two gradients, the sum has one; then the parameter's all-reduce and the optimizer."""
        count = export_torch.write_program(exported(), self.folder / "step.yaml", ranks=4)
        self.assertEqual(count, 4 + 5 + 1 + 1)
        found = self.run_program()
        self.assertEqual(found["optimizer"][0], found["bucket 0"][1])
        self.assertIn(f"all_reduce, size: {2 * 1024 * 1024} B", (self.folder / "step.yaml").read_text())

    def test_a_graph_without_shapes(self):
        graph = Graph()
        graph.call("aten.mm.default", None)
        with self.assertRaisesRegex(ValueError, "ShapeProp"):
            export_torch.write_program(types.SimpleNamespace(graph=graph), self.folder / "step.yaml")


if __name__ == "__main__":
    unittest.main()
