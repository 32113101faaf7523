# SPDX-License-Identifier: GPL-2.0-only
"""Kernels of the operators of an execution trace on an accelerator. A trace has tensors as [id, storage, offset,
elements, bytes of an element, device], with shapes and types beside them."""

import math
import re

from frameworks.devices import precision_of

# They make tensors and move nothing.
NOTHING = ("aten::empty", "aten::result_type", "aten::resize_", "aten::set_", "aten::_local_scalar_dense",
           "aten::detach", "detach", "aten::is_nonzero", "nccl:", "c10d::", "gloo:", "ucc:", "mpi:")
CONVOLUTIONS = ("aten::cudnn_convolution", "aten::miopen_convolution", "aten::_slow_conv2d_forward",
                "aten::_conv_depthwise2d", "aten::convolution_overrideable", "aten::mkldnn_convolution",
                "aten::slow_conv3d_forward")
TYPE = re.compile(r"Tensor\(([^)]*)\)")


def is_tensor(value):
    return isinstance(value, list) and len(value) >= 6 and isinstance(value[5], str) and all(
        isinstance(one, int) and not isinstance(one, bool) for one in value[:5])


def tensors(values):
    """The tensors among values, also in lists."""
    for value in values:
        if is_tensor(value):
            yield value
        elif isinstance(value, list):
            yield from tensors(value)


def bytes_of(values):
    return sum(one[3] * one[4] for one in tensors(values))


def time_of(name, inputs, outputs, shapes, types, device):
    """(picoseconds, where): 1 on the accelerator, 2 on the host, 0 nowhere. Without a device: 0 picoseconds."""
    made, taken = list(tensors(outputs)), list(tensors(inputs))
    everything = made + taken
    if not everything or name.startswith(NOTHING):
        return 0, 0
    if not any(one[5].startswith(("cuda", "hip", "xpu")) for one in everything):
        return 0, 2
    storages = {one[1] for one in taken}
    if made and all(one[1] in storages for one in made) and not name.rstrip("0123456789").endswith("_") and \
            not name.endswith(("out", "copy_")) and "_foreach_" not in name:
        return 0, 0  # a view
    if device is None:
        return 0, 1
    size = bytes_of(outputs) + bytes_of(inputs)
    gemms = list(gemms_of(name, inputs, outputs, shapes))
    if not gemms:
        return device.other(size), 1
    found = next((match.group(1) for match in map(TYPE.search, map(str, types)) if match), "float")
    return sum(device.gemm(*one, size // len(gemms), precision_of(found)) for one in gemms), 1


def gemms_of(name, inputs, outputs, shapes):
    """(m, n, k, count) of each."""
    if name in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm", "aten::addbmm"):
        first = 1 if name in ("aten::addmm", "aten::baddbmm", "aten::addbmm") else 0
        (*batch, m, k), n = shapes[first], shapes[first + 1][-1]
        yield m, n, k, math.prod(batch)
    elif name in CONVOLUTIONS:
        yield convolution(shapes[1], next(tensors(outputs))[3])
    elif name in ("aten::convolution_backward", "aten::cudnn_convolution_backward",
                  "aten::miopen_convolution_backward"):
        one = convolution(shapes[2], inputs[0][3])
        for made in outputs[:2]:
            if is_tensor(made) and made[3]:
                yield one
    elif "scaled_dot_product" in name or name in ("aten::_flash_attention_forward",
                                                  "aten::_efficient_attention_forward"):
        found = [shape for shape in shapes if len(shape) == 4]
        backward = "backward" in name
        query, key = (found[1], found[2]) if backward else (found[0], found[1])
        yield query[2], key[2], query[3], query[0] * query[1] * (5 if backward else 2)


def convolution(weight, made):
    """A convolution as a GEMM: pixels by kernels by elements under a kernel. `made` counts elements of the result."""
    kernels, covered = weight[0], math.prod(weight[1:])
    return made // kernels, kernels, covered, 1
