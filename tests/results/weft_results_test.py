#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""The Python module weft_results returns the values that h5py finds in a file, exact sums and percentiles in blocks of any
size, and names the fault in one sentence if a file is none, cut off, damaged or of another format."""

import json
import pathlib
import random
import subprocess
import sys
import unittest

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from weft_testing import EXIT_INPUT, FAT_TREE, SOURCE, ProgramTest, weft  # noqa: E402

sys.path.insert(0, str(SOURCE / "scripts"))
import weft_results  # noqa: E402
from weft_results import ResultsError, experiments, reductions  # noqa: E402

EXPERIMENT = {
    "topology": FAT_TREE,
    "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 16, "size": "64 KiB",
                 "iterations": 2, "gap": "5 us"},
    "output": {"sampling": "2 us", "operations": True},
}  # fmt: skip


class Results(ProgramTest):
    def setUp(self):
        super().setUp()
        _, self.path = self.simulate(EXPERIMENT)

    def test_tables_and_units_are_those_of_the_file(self):
        with weft_results.open(self.path) as run, h5py.File(self.path) as file:
            self.assertIn("manifest/parallel", run.tables)
            for table in run.tables:
                self.assertEqual(run.rows(table), file[table].attrs["rows"])
                self.assertEqual(run.units(table), {name: data.attrs["unit"] for name, data in file[table].items()})
                for name, values in run.table(table).items():
                    expected = file[table][name]
                    expected = expected.asstr()[:] if expected.dtype.kind == "S" else expected[:]
                    np.testing.assert_array_equal(values, expected)
            self.assertNotIn("queue_pairs", run)
            self.assertEqual(run.rows("queue_pairs"), 0)

    def test_rows_and_columns_are_chosen(self):
        with weft_results.open(self.path) as run:
            every = run.table("messages", ["id", "issued"])
            some = run.table("messages", ["issued"], rows=slice(10, 20))
            self.assertEqual(list(some), ["issued"])
            np.testing.assert_array_equal(some["issued"], every["issued"][10:20])
            np.testing.assert_array_equal(run.column("messages", "id"), every["id"])
            for size in (1, 7, run.rows("messages"), 10**9):
                blocks = list(run.blocks("messages", ["id"], size))
                self.assertLessEqual(max(len(block["id"]) for block in blocks), size)
                np.testing.assert_array_equal(np.concatenate([block["id"] for block in blocks]), every["id"])

    def test_the_run_and_its_experiment(self):
        with weft_results.open(self.path) as run:
            self.assertEqual(run.attributes["format"], "weft-results")
            self.assertEqual(run.simulated_time, run.attributes["simulated_time"])
            self.assertEqual(run.attributes_of("manifest/model")["topology"], "fat_tree")
            self.assertTrue(run.complete)
            self.assertEqual({**run.experiment, "output": None}, {**EXPERIMENT, "output": None})
            self.assertNotIn("incomplete", repr(run))

    def test_a_run_that_was_cut_short_says_so(self):
        _, path = self.simulate({**EXPERIMENT, "simulation": {"until": "8 us"}}, output="short.h5")
        with weft_results.open(path) as run:
            self.assertFalse(run.complete)
            self.assertIn("incomplete", repr(run))

    def test_parts_come_as_they_are_documented(self):
        with h5py.File(self.path, "r+") as file:
            for name in list(file["ranks"]):
                if name.startswith("part_"):
                    del file["ranks"][name]
            for name in ("part_zeal", "part_peers", "part_compute", "part_queueing"):
                file[f"ranks/{name}"] = np.zeros(16, dtype=np.int64)
        with weft_results.open(self.path) as run:
            self.assertEqual(run.parts("ranks"), ["part_compute", "part_queueing", "part_peers", "part_zeal"])
            self.assertEqual(run.parts("links"), [])
            self.assertEqual(run.parts("absent"), [])

    def test_sums_and_extremes(self):
        with weft_results.open(self.path) as run:
            data = run.table("messages")
            self.assertEqual(run.sums("messages", "issued"), {"issued": int(data["issued"].sum())})
            self.assertEqual(run.extremes("messages", ["bytes"])["bytes"], (data["bytes"].min(), data["bytes"].max()))
            by_source = run.sums("messages", ["bytes", "delivered"], by="source")
            for rank in range(16):
                mine = data["source"] == rank
                expected = {name: int(data[name][mine].sum()) for name in ("bytes", "delivered")}
                self.assertEqual(by_source[rank], expected)

    def test_what_is_not_there_is_named(self):
        with weft_results.open(self.path) as run:
            for ask, text in [
                (lambda: run.table("massages"), "no table 'massages'; it has collectives, "),
                (lambda: run.table("messages", ["size"]), "no column 'size'; it has bytes, "),
                (lambda: run.sums("links", "from_name"), "column 'from_name' of its table 'links' is text"),
                (lambda: run.percentiles("links", "from_name", [50]), "is text"),
            ]:
                with self.assertRaises(ResultsError) as caught:
                    ask()
                self.assertIn(text, str(caught.exception))

    def test_frames_need_pandas(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            pandas = None
        with weft_results.open(self.path) as run:
            if pandas is None:
                with self.assertRaisesRegex(ResultsError, "python3-pandas"):
                    run.table("links", as_frame=True)
            else:
                self.assertEqual(len(run.table("links", as_frame=True)), run.rows("links"))

    def test_plotting_is_not_imported(self):
        """The module needs numpy and h5py, also where nothing else is installed."""
        code = f"import sys; sys.path.insert(0, {str(SOURCE / 'scripts')!r}); import weft_results; print(*sys.modules)"
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=True)
        for name in ("matplotlib", "pandas", "yaml"):
            self.assertNotIn(name, done.stdout.split())


class Percentiles(ProgramTest):
    """Against sorting."""

    SHARES = [0, 0.1, 1, 25, 50, 90, 99, 99.9, 100]

    def open_made(self, values):
        path = self.folder / "made.h5"
        with h5py.File(path, "w") as file:
            file.attrs.update({"format": "weft-results", "format_version": 1, "complete": 1})
            group = file.create_group("made")
            group.attrs["rows"] = len(values)
            group["value"] = values
        return weft_results.open(path)

    def check(self, values, max_gathered):
        known = reductions.MAX_GATHERED
        reductions.MAX_GATHERED = max_gathered
        try:
            with self.open_made(values) as run:
                found = run.percentiles("made", "value", self.SHARES)
        finally:
            reductions.MAX_GATHERED = known
        ordered = np.sort(values)
        rows = [max(-(-len(values) * round(10 * share) // 1000), 1) - 1 for share in self.SHARES]
        self.assertEqual(found, [ordered[row] for row in rows])

    def test_exact_for_all_types_and_ranges(self):
        numbers = np.random.default_rng(1)
        for values in [
            numbers.integers(-(10**12), 10**12, 3000),
            numbers.integers(0, 3, 3001).astype(np.uint32),
            np.array([-(2**63), -1, 0, 2**63 - 1] * 50),
            np.array([0, 2**64 - 1, 2**63] * 50, dtype=np.uint64),
            numbers.normal(size=2999),
            np.concatenate((numbers.lognormal(size=1000, sigma=20), [-np.inf, np.inf, 0.0, -1e-300])),
            np.full(100, 7),
            np.array([5]),
        ]:
            for max_gathered in (1 << 20, 10, 1):
                with self.subTest(type=values.dtype, rows=len(values), max_gathered=max_gathered):
                    self.check(values, max_gathered)

    def test_of_what_is_computed(self):
        with self.open_made(np.arange(1000)) as run:
            self.assertEqual(run.percentiles("made", ["value"], [50], value=lambda block: -block["value"]), [-500])

    def test_not_a_number_does_not_count(self):
        with self.open_made(np.array([np.nan, 1.0, np.nan, 2.0])) as run:
            self.assertEqual(run.percentiles("made", "value", [0, 50, 100]), [1.0, 1.0, 2.0])
        with self.open_made(np.array([np.nan])) as run:
            self.assertEqual(run.percentiles("made", "value", [50]), [])

    def test_sums_of_large_integers(self):
        with self.open_made(np.full(10, 2**63 - 1)) as run:
            self.assertEqual(run.sums("made", "value"), {"value": 10 * (2**63 - 1)})
        with self.open_made(np.full(10, -(2**63))) as run:
            self.assertEqual(run.sums("made", "value"), {"value": -10 * 2**63})


class Foreign(ProgramTest):
    def refusal(self, content=None, path=None, **attributes):
        path = path or self.folder / "foreign.h5"
        if content is not None:
            path.write_bytes(content)
        elif attributes:
            with h5py.File(path, "w") as file:
                file.attrs.update(attributes)
        with self.assertRaises(ResultsError) as caught:
            weft_results.open(path)
        text = str(caught.exception)
        self.assertTrue(text.startswith(f"{path}: "), text)
        self.assertEqual(len(text.splitlines()), 1)
        return text

    def test_files_that_are_none(self):
        self.assertIn("No such file", self.refusal())
        self.assertIn("it is a folder", self.refusal(path=self.folder))
        self.assertIn("it is empty", self.refusal(b""))
        self.assertIn("not an HDF5 file", self.refusal(b"topology: {kind: star}\n"))
        self.assertIn("cut off", self.refusal(b"\x89HDF\r\n\x1a\n"))
        self.assertIn("'format' is absent", self.refusal(other=1))
        self.assertIn("'format' is 'netcdf'", self.refusal(format="netcdf"))
        newer = self.refusal(format="weft-results", format_version=7)
        self.assertIn("version 7 of the format, and this weft knows 1", newer)
        self.assertIn("'format_version' is no whole number", self.refusal(format="weft-results", format_version="one"))

    def test_a_run_that_has_not_ended(self):
        (self.folder / "foreign.h5.partial").write_bytes(b"")
        self.assertIn("foreign.h5.partial', of a run that has not ended", self.refusal())

    def test_a_table_of_many_runs_opens_as_well(self):
        path = self.folder / "study.h5"
        with h5py.File(path, "w") as file:
            file.attrs.update({"format": "weft-study", "format_version": 1})
            cases = file.create_group("cases")
            cases.attrs["rows"] = 2
            cases["window"] = ["64 KiB", "128 KiB"]
        with weft_results.open(path) as run:
            self.assertEqual(run.tables, ["cases"])
            self.assertEqual(run.table("cases")["window"].tolist(), ["64 KiB", "128 KiB"])
            self.assertTrue(run.complete)

    def test_columns_of_the_wrong_length(self):
        path = self.folder / "wrong.h5"
        with h5py.File(path, "w") as file:
            file.attrs.update({"format": "weft-results", "format_version": 1})
            file.create_group("links").attrs["rows"] = 3
            file["links/id"] = [0, 1]
        with weft_results.open(path) as run, self.assertRaisesRegex(ResultsError, r"/links/id has the shape \(2,\)"):
            run.table("links")


READ_ALL = f"""
import sys
sys.path.insert(0, {str(SOURCE / "scripts")!r})
import weft_results
try:
    with weft_results.open(sys.argv[1]) as run:
        for table in run.tables:
            run.units(table), run.table(table)
        run.experiment, run.attributes_of("manifest/model")
except weft_results.ResultsError as error:
    print(error)
    sys.exit(2)
"""


def make_file(path):
    """The same bytes at each time, which a run with its date and host does not write."""
    with h5py.File(path, "w") as file:
        file.attrs.update({"format": "weft-results", "format_version": 1, "complete": 1, "simulated_time": 1000})
        for table in ("links", "messages", "ranks"):
            group = file.create_group(table)
            group.attrs["rows"] = 100
            for column in ("id", "bytes", "time"):
                group[column] = np.arange(100)
                group[column].attrs.update({"unit": "B", "description": column})
            group["name"] = np.full(100, table, dtype="S8")
            group.create_dataset("packed", data=np.arange(100), chunks=(10,), compression="gzip")


class Damaged(ProgramTest):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "good.h5"
        make_file(self.path)

    def read_all(self, path):
        """In a separate process, because the HDF5 library may end it."""
        return subprocess.run([sys.executable, "-B", "-c", READ_ALL, path], capture_output=True, text=True,
                              timeout=100, check=False)  # fmt: skip

    def test_cut_off_anywhere(self):
        content = self.path.read_bytes()
        for size in (9, 63, 64, 100, len(content) // 2, len(content) - 1):
            cut = self.folder / "cut.h5"
            cut.write_bytes(content[:size])
            with self.assertRaisesRegex(ResultsError, "cut off"):
                weft_results.open(cut)

    def test_random_bytes_make_no_traceback(self):
        content, numbers = self.path.read_bytes(), random.Random(1)
        self.assertEqual(self.read_all(self.path).returncode, 0)
        for case in range(40):
            damaged = bytearray(content)
            for _ in range(20):
                place = numbers.randrange(min(len(content), 4096 if case % 2 else len(content)))
                damaged[place] = numbers.randrange(256)
            path = self.folder / "damaged.h5"
            path.write_bytes(damaged)
            done = self.read_all(path)
            with self.subTest(case=case):
                self.assertNotIn("Traceback", done.stderr)
                if done.returncode >= 0:  # or the HDF5 library has crashed
                    self.assertIn(done.returncode, (0, 2), done.stderr)
                done = weft("export", path, "--csv", self.folder / "tables")
                self.assertIn(done.code, (0, EXIT_INPUT), done)
                self.assertLessEqual(len(done.err.splitlines()), 2, done)


class Experiments(unittest.TestCase):
    def test_scalars_are_those_of_the_core_schema(self):
        text = "{a: no, b: 010, c: 1.5, d: true, e: '1', f: ~, g: 1:30, h: 64 MiB, i: .5, j: 2026-01-01, k: 1e3, l: on}"
        expected = {"a": "no", "b": 10, "c": 1.5, "d": True, "e": "1", "f": None, "g": "1:30", "h": "64 MiB", "i": 0.5,
                    "j": "2026-01-01", "k": 1000.0, "l": "on"}  # fmt: skip
        self.assertEqual(experiments.parse("x", text), expected)
        self.assertEqual(experiments.parse("x", json.dumps(EXPERIMENT)), EXPERIMENT)

    def test_what_is_no_yaml_is_refused(self):
        for text in ("{a: ", "!!python/object:os.system {}", "[" * 100000):
            with self.assertRaisesRegex(ResultsError, "not YAML"):
                experiments.parse("x", text)


if __name__ == "__main__":
    unittest.main()
