#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Check a result file against docs/reference/hdf5_schema.md, both ways: what is documented is there, what is there is documented.

Use: schema_test.py FILE.h5 SCHEMA.md. Without arguments a small run of $WEFT makes the file, with all of its tables."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import h5py
import numpy

EXPERIMENT = """
topology: {kind: fat_tree, k: 4, link_rate: 400 Gb/s, link_delay: 500 ns}
network: {queues: output}
workload: {kind: collective, collective: all_reduce, algorithm: ring, ranks: 16, size: 64 KiB, iterations: 1}
background: [{kind: tcp, from: 0, to: 15, size: 20 kB}]
simulation: {seed: 1}
output: {file: schema.h5, sampling: 1 us, operations: true, attribution: full, queue_depths: true, rates: {interval: 2 us}}
"""


def read_schema(path):
    """({data set: (unit, type, optional)}, {attribute: type}) of the Markdown tables."""
    datasets, attributes, optional = {}, {}, False
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            optional = "(optional)" in line
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells or not cells[0].startswith("`/"):
            continue
        name = cells[0].strip("`")
        if "@" in name:
            attributes[name] = cells[1]
        else:
            datasets[name] = (cells[1], cells[2], optional)
    return datasets, attributes


def type_name(dtype):
    """As the schema names it: uint32, int64, float64, text."""
    info = h5py.check_string_dtype(dtype)
    if info is not None:
        return "text" if info.encoding == "utf-8" else f"text in {info.encoding}"
    return numpy.dtype(dtype).name


def attribute_type(item, name):
    return type_name(item.attrs.get_id(name).dtype)


def dataset_errors(path, item, datasets):
    if path not in datasets:
        yield f"{path}: in the file, not documented"
        return
    unit, kind, _ = datasets[path]
    if type_name(item.dtype) != kind:
        yield f"{path}: type {type_name(item.dtype)}, documented as {kind}"
    if item.attrs.get("unit") != unit:
        yield f"{path}: unit {item.attrs.get('unit')!r}, documented as {unit!r}"
    if not item.attrs.get("description"):
        yield f"{path}: no description"
    shape = item.parent.attrs.get("rows")
    if shape is not None and item.shape != (shape,):
        yield f"{path}: shape {item.shape}, but the table has {shape} rows"


def documented_type(path, name, attributes):
    top = "/*" if path != "/" else "/"
    for place in (f"{path}@{name}", f"{path}@*", f"{top}@{name}"):
        if place in attributes:
            return attributes[place]
    return None


def attribute_errors(path, item, attributes):
    for name in item.attrs:
        if isinstance(item, h5py.Dataset) and name in ("unit", "description"):
            continue
        kind = documented_type(path, name, attributes)
        if kind is None:
            yield f"{path}@{name}: in the file, not documented"
        elif kind not in ("any", attribute_type(item, name)):
            yield f"{path}@{name}: type {attribute_type(item, name)}, documented as {kind}"


def errors(file, datasets, attributes):
    items = {"/": file["/"]}
    file.visititems(lambda name, item: items.update({"/" + name: item}))
    for path, item in items.items():
        yield from attribute_errors(path, item, attributes)
        if isinstance(item, h5py.Dataset):
            yield from dataset_errors(path, item, datasets)
    for path, (_, _, optional) in datasets.items():
        group = path.rsplit("/", 1)[0]
        # The parts of times are there according to output.attribution: all columns or none.
        part = ("/part_" in path or path == "/messages/cause") and not any(other.startswith(f"{group}/part_") for other in items)
        if path not in items and not part and not (optional and group not in items):
            yield f"{path}: documented, not in the file"
    for place in attributes:
        path, name = place.split("@")
        if "*" in place or path not in items:
            continue
        if name not in items[path].attrs:
            yield f"{place}: documented, not in the file"


def make_file(folder):
    weft = os.environ.get("WEFT")
    if not weft:
        sys.exit("schema_test: give FILE.h5 and SCHEMA.md, or set WEFT to the program")
    (folder / "schema.yaml").write_text(EXPERIMENT, encoding="utf-8")
    subprocess.run([os.path.abspath(weft), "run", "schema.yaml", "--quiet"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)
    return folder / "schema.h5"


def check(results, schema):
    datasets, attributes = read_schema(schema)
    if not datasets:
        sys.exit(f"schema_test: no table of data sets in '{schema}'")
    with h5py.File(results, "r") as file:
        found = list(errors(file, datasets, attributes))
        for line in found:
            print(line)
        print(f"{results}: {len(datasets)} data sets documented, {len(found)} errors")
    return 1 if found else 0


def main():
    if len(sys.argv) == 3:
        return check(sys.argv[1], sys.argv[2])
    if len(sys.argv) != 1:
        sys.exit("use: schema_test.py [FILE.h5 SCHEMA.md]")
    schema = pathlib.Path(__file__).resolve().parents[2] / "docs/reference/hdf5_schema.md"
    with tempfile.TemporaryDirectory() as folder:
        results = make_file(pathlib.Path(folder))
        with h5py.File(results, "r") as file:
            missing = {"links_series", "operations", "transfers", "transfers_series"} - set(file)
        if missing:
            sys.exit(f"schema_test: the run was asked for {sorted(missing)} and did not write it")
        return check(results, schema)


if __name__ == "__main__":
    sys.exit(main())
