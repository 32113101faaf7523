#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The importers from frameworks on inputs that are damaged at random: each is imported or refused in one line, and
nothing else ever comes out of a reader.

tests/cli/traces/import_mutations_test.py [--seconds N] [FORMAT]   goes on for so long, from seeds of its own;
                                                                   without: a few each"""

# Time limit: 300 s

import argparse
import contextlib
import io
import json
import pathlib
import pickle
import random
import resource
import shutil
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import flight_files
import hlo_files
import nccl_log_files
import nsys_files
import onnx_files
import xplane_files
from kineto_files import data_parallel_step
from weft_testing import SOURCE

sys.path.insert(0, str(SOURCE / "scripts"))
from importing import command, registry  # noqa: E402
from support.errors import StudyError  # noqa: E402

TENSOR = [5, 6, 0, 65536, 2, "cuda:0"]
HALF = "Tensor(c10::BFloat16)"


def execution_node(number, name, inputs=(), outputs=(), shapes=(), types=()):
    return {"id": number, "name": name, "ctrl_deps": 2,
            "inputs": {"values": list(inputs), "shapes": list(shapes), "types": list(types)},
            "outputs": {"values": list(outputs)}, "attrs": [{"name": "rf_id", "type": "uint64", "value": number}]}


EXECUTION = json.dumps({"schema": "1.0.2-chakra.0.0.4", "pid": 1, "nodes": [
    execution_node(2, "thread"),
    execution_node(3, "## process_group:init ##", ['[{"pg_name": "0", "ranks": [0, 1]}]']),
    execution_node(5, "aten::mm", [TENSOR, [3, 4, *TENSOR[2:]]], [[1, 2, *TENSOR[2:]]], [[256, 256]] * 2, [HALF] * 2),
    execution_node(7, "record_param_comms", [[TENSOR], 3, ["0", "default_pg"], 0, "all_to_allv", [1, 3], [2, 2], 0, 1, 2],
                   [[TENSOR]])], "finish_ts": 3}, indent=1).encode()
WORDS = [b"0", b"-1", b"1e99", b"9223372036854775808", b"null", b"[]", b"{}", b'""', b"nan", b"<=", b"{{0,1}}", b"%x",
         b"(", b"}",
         b"\x00", b"\xff\xff\xff\xff\x0f", b"[[[[", b"tensor<", b"while(", b"fusion(", b"true"]


def sources(folder):
    """{name: (format, content, words behind the file)}."""
    nsys_files.two_gpus().write(folder / "report.sqlite")
    both = ["--fill", "symmetric"]
    recorded = flight_files.Dump(0, 2)
    recorded.call("all_reduce", 100, [[1024]])
    recorded.call("all_to_all", 300, [[1024], [512]])
    return {"kineto": ("pytorch", data_parallel_step(0, 2).text().encode(), both),
            "execution": ("pytorch", EXECUTION, [*both, "--device", "h100"]),
            "nsys": ("nsys", (folder / "report.sqlite").read_bytes(), []),
            "xplane": ("xplane", xplane_files.two_gpus().coded(), []),
            "pickle": ("flight-recorder", pickle.dumps(recorded.whole(), 2), both),
            "recorded": ("flight-recorder", json.dumps(recorded.whole(), sort_keys=True, indent=1).encode(), both),
            "log": ("nccl-log", nccl_log_files.two_servers().text().encode(), []),
            "hlo": ("hlo", hlo_files.STEP.encode(), []), "stable": ("hlo", hlo_files.STABLE.encode(), []),
            "attention": ("onnx", onnx_files.attention(4, 16), ["--tensor", "2", "--data", "2"]),
            "convolution": ("onnx", onnx_files.convolution(8), ["--pipeline", "2"]),
            "products": ("onnx", onnx_files.products(), ["--tensor", "2"])}


def mutated(content, rng):
    """A few bytes changed, cut, moved, or replaced by words that mean something."""
    found = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(found) or 1)
        kind = rng.randrange(7)
        if kind == 0:
            found[at:at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del found[at:at + rng.choice([1, 3, 20, 200])]
        elif kind == 2:
            found[at:at] = rng.choice(WORDS)
        elif kind == 3:
            found[at:at + rng.randrange(1, 12)] = rng.choice(WORDS)
        elif kind == 4:
            other = rng.randrange(len(found) or 1)
            found[at:at] = found[other:other + rng.choice([4, 40, 400])]
        elif kind == 5:
            numbers = [i for i in range(len(found)) if 48 <= found[i] <= 57]
            if numbers:
                at = rng.choice(numbers)
                found[at:at + 1] = rng.choice([b"0", b"7", b"99999", b"-3", b"18446744073709551616"])
        else:
            del found[at:]
    return bytes(found)


class Enough(io.BytesIO):
    """A file with space for a few thousand operations: a number in it may be the count of a loop."""

    def write(self, content):
        if self.tell() > 1 << 20:
            raise StudyError("enough")
        return super().write(content)


def attempt(form, path, words):
    """True if it was imported. Anything but a refusal in one line raises an error."""
    module = registry.load(form)
    with contextlib.redirect_stderr(io.StringIO()):
        options = command.format_parser(form, module).parse_args([str(path), *words])
    try:
        imported = module.read(options)
        for produce in list(imported.files.values())[:8]:
            produce(Enough())
        return True
    except StudyError as error:
        if "\n" in str(error):
            raise AssertionError(f"a complaint of several lines: {error}") from error
        return False


def bound_memory():
    """A reader that takes what a number in a file says fails here, and not on the machine of somebody else."""
    resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))


def run(folder, rng, names, enough):
    """{name: [imported, refused]}; `enough(count)` ends it."""
    all_sources = sources(folder)
    found = {name: [0, 0] for name in all_sources if not names or all_sources[name][0] in names}
    bound_memory()
    count = 0
    while not enough(count):
        for name in found:
            form, content, words = all_sources[name]
            path = folder / f"{name}_rank0"
            path.write_bytes(mutated(content, rng))
            try:
                found[name][0 if attempt(form, path, words) else 1] += 1
            except BaseException:
                shutil.copy(path, pathlib.Path(tempfile.gettempdir()) / f"weft-import-{name}")
                print(f"{name}: the input is kept as {tempfile.gettempdir()}/weft-import-{name}", file=sys.stderr)
                raise
        count += 1
    return found


class Mutations(unittest.TestCase):
    def test_random_damage(self):
        with tempfile.TemporaryDirectory() as name:
            found = run(pathlib.Path(name), random.Random(23), [], lambda count: count >= 60)
        for name, (_, refused) in found.items():
            self.assertGreater(refused, 5, name)

    def test_the_sources_are_good(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for name, (form, content, words) in sources(folder).items():
                path = folder / f"{name}_rank0"
                path.write_bytes(content)
                self.assertTrue(attempt(form, path, words), name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float)
    parser.add_argument("formats", nargs="*")
    options, rest = parser.parse_known_args()
    if options.seconds is None:
        unittest.main(argv=[sys.argv[0], *rest])
    until = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as name:
        print(run(pathlib.Path(name), random.Random(), options.formats, lambda _: time.monotonic() > until))
