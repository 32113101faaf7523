# SPDX-License-Identifier: GPL-2.0-only
"""Two layers on one rank: four operators forward, their gradients, and the optimizer."""

from onnx_files import convolution, two_layers


def sample(folder):
    (folder / "layers.onnx").write_bytes(two_layers(64, 128))
    return ["layers.onnx"]


def further(folder):
    (folder / "convolution.onnx").write_bytes(convolution(8))
    return ["convolution.onnx", "--data", "2", "--tensor", "2"]


def counts(folder):
    nodes = sum((folder / "layers.onnx").read_bytes().count(op) for op in (b"Gemm_", b"Relu_", b"MatMul_", b"Add_"))
    return {"ranks": 1, "operations": {"compute": 2 * nodes + 1}, "bytes": {}}


def damaged(folder):
    content = two_layers(64, 128)
    for what, bad in {"cut": content[:300], "text": b"This is no model at all.\n", "empty": b"",
                      "shape": content.replace(b"\x08\x40", b"\x08\x41", 1)}.items():
        (folder / f"{what}.onnx").write_bytes(bad)
        yield what, [f"{what}.onnx"]
