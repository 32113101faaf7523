#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""`weft export`: a trace that follows the rules of the Trace Event Format and has every operation, collective and
sample of the file; tables as CSV that equal the file's; the same bytes at any time and for any number of processes; one
line on standard error for what cannot be done, and nothing half-written."""

import csv
import gzip
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import textwrap
import unittest

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_ENVIRONMENT, EXIT_INPUT, EXIT_INTERRUPTED, SOURCE, ProgramTest  # noqa: E402
from weft_testing import start, stop, table, weft  # noqa: E402

sys.path.insert(0, str(SOURCE / "scripts"))
from weft_commands.slices import exposed_times, lanes_of  # noqa: E402

DDP_STEP = SOURCE / "workloads" / "ddp_step.yaml"
TWO_JOBS = SOURCE / "workloads" / "two_jobs_sharing_a_spine.yaml"
DETAILS = ["--set", "output.operations=true", "--set", "output.sampling=10 us"]
METADATA = {"process_name": ("name", str), "process_sort_index": ("sort_index", int), "thread_name": ("name", str),
            "thread_sort_index": ("sort_index", int)}  # fmt: skip


def nanoseconds(microseconds):
    return round(1000 * microseconds)


def put(file, place, values):
    """Writes a column, also if there is one."""
    if place in file:
        del file[place]
    file[place] = values


class Export(ProgramTest):
    def export(self, *words, code=0, **more):
        done = weft("export", *words, folder=self.folder, **more)
        self.assertEqual(done.code, code, done)
        return done

    def trace_of(self, path, *words):
        self.export(path, "--trace", "run.json.gz", *words)
        with gzip.open(self.folder / "run.json.gz", "rt", encoding="utf-8") as file:
            return json.load(file)


class Trace(Export):
    def check_format(self, trace):
        """As documented: each event has what its phase wants, tracks have names, slices of a track nest."""
        self.assertIn(trace["displayTimeUnit"], ("ms", "ns"))
        named, tracks = set(), {}
        for event in trace["traceEvents"]:
            self.assertIsInstance(event["pid"], int)
            self.assertIsInstance(event["tid"], int)
            if event["ph"] == "M":
                key, kind = METADATA[event["name"]]
                self.assertIsInstance(event["args"][key], kind)
                named.add((event["pid"], event["tid"] if event["name"].startswith("thread") else None))
                continue
            self.assertGreaterEqual(event["ts"], 0)
            self.assertTrue(event["name"])
            if event["ph"] == "X":
                self.assertGreaterEqual(event["dur"], 0)
                first = nanoseconds(event["ts"])
                tracks.setdefault((event["pid"], event["tid"]), []).append((first, first + nanoseconds(event["dur"])))
            else:
                self.assertEqual(event["ph"], "C")
                for value in event["args"].values():
                    self.assertIsInstance(value, (int, float))
            self.assertIn((event["pid"], None), named)
        self.assertLessEqual(set(tracks), named)
        for slices in tracks.values():
            self.check_nesting(slices)

    def check_nesting(self, slices):
        around = []
        for first, last in sorted(slices, key=lambda one: (one[0], -one[1])):
            while around and around[-1] <= first:
                around.pop()
            if around:
                self.assertLessEqual(last, around[-1], "two slices of a track overlap, and neither holds the other")
            around.append(last)

    def slices(self, trace, category):
        return [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] == category]

    def test_every_operation_and_collective(self):
        for experiment in (DDP_STEP, TWO_JOBS):
            with self.subTest(experiment=experiment.name):
                _, path = self.simulate(experiment, *DETAILS)
                trace = self.trace_of(path)
                self.check_format(trace)
                self.check_slices(trace, table(path, "operations"), table(path, "collectives"))

    def check_slices(self, trace, operations, collectives):
        slices = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        found = sorted((event["args"]["start_ps"], event["args"]["end_ps"], event["name"]) for event in slices)
        expected = [(start, end, label) for rows in (operations, collectives)
                    for start, end, label in zip(rows["start"], rows["end"], rows["label"])]
        self.assertEqual(found, sorted(expected))
        for event in slices:
            self.assertEqual(nanoseconds(event["ts"]), event["args"]["start_ps"] // 1000)
            self.assertEqual(nanoseconds(event["ts"] + event["dur"]), event["args"]["end_ps"] // 1000)
        calls = {event["args"]["id"]: event["args"] for event in slices if "busbw" in event["args"]}
        for i, number in enumerate(collectives["id"]):
            for name in ("bytes", "algorithm", "busbw", "kind", "ranks"):
                self.assertEqual(calls[number][name], collectives[name][i])

    def test_jobs_are_processes_and_ranks_have_tracks(self):
        _, path = self.simulate(TWO_JOBS, *DETAILS)
        trace = self.trace_of(path)
        events = trace["traceEvents"]
        names = {event["args"]["name"]: event["pid"] for event in events if event["name"] == "process_name"}
        self.assertEqual(set(names), {"a: ranks 0 to 7", "b: ranks 8 to 15", "a: ranks 0 to 7, collectives",
                                      "b: ranks 8 to 15, collectives", "links: the 16 busiest"})
        tracks = {(event["pid"], event["args"]["name"]) for event in events if event["name"] == "thread_name"}
        for job, ranks in (("a: ranks 0 to 7", range(8)), ("b: ranks 8 to 15", range(8, 16))):
            found = {name.split(",")[0] for process, name in tracks if process == names[job]}
            self.assertEqual(found, {f"rank {rank}" for rank in ranks})

    def test_exposed_times_add_up_to_those_of_the_rank(self):
        """In this step a rank has one communication at a time."""
        _, path = self.simulate(DDP_STEP, *DETAILS)
        found = {}
        for event in self.trace_of(path)["traceEvents"]:
            if "operation" in event["args"] and "exposed_ps" in event["args"]:
                found[event["tid"]] = found.get(event["tid"], 0) + event["args"]["exposed_ps"]
        self.assertEqual(sum(found.values()), table(path, "ranks")["exposed"].sum())

    def test_counters_are_the_samples(self):
        _, path = self.simulate(TWO_JOBS, *DETAILS)
        trace = self.trace_of(path, "--links", "3")
        links, series = table(path, "links"), table(path, "links_series")
        busiest = sorted(links["id"], key=lambda link: (-links["busy"][link], link))[:3]
        counters = {}
        for event in trace["traceEvents"]:
            if event["ph"] == "C":
                counters.setdefault(event["name"], []).append((nanoseconds(event["ts"]), event["args"]["value"]))
        self.assertEqual(len(counters), 6)
        end = trace["otherData"]["simulated_time"] // 1000
        for link in busiest:
            name = f"{links['from_name'][link]} -> {links['to_name'][link]} (link {link})"
            steps = sorted(counters[f"{name}: utilization (%)"])
            busy = sum(value * (until - at) for (at, value), (until, _) in zip(steps, [*steps[1:], (end, 0)])) / 100
            self.assertAlmostEqual(busy / (links["busy"][link] / 1000), 1, places=4)
            queue, mine = dict(counters[f"{name}: queue (B)"]), series["link"] == link
            for time, value in zip(series["time"][mine] // 1000, series["queue"][mine]):
                self.assertEqual(queue[time], value)

    def test_no_counters(self):
        _, path = self.simulate(DDP_STEP, *DETAILS)
        self.assertFalse([event for event in self.trace_of(path, "--links", "0")["traceEvents"] if event["ph"] == "C"])

    def test_a_run_without_details_says_what_it_lacks(self):
        _, path = self.simulate(DDP_STEP, "--set", "output.operations=false")
        done = self.export(path, "--trace", "run.json")
        self.assertIn("output.operations", done.err)
        self.assertIn("output.sampling", done.err)
        self.check_format(json.loads((self.folder / "run.json").read_text()))

    def test_a_study_has_no_trace(self):
        """Nothing is written; its tables can be."""
        experiment = {"topology": {"kind": "star", "hosts": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
                      "workload": {"kind": "collective", "collective": "all_reduce", "size": "4 KiB"}}
        (self.folder / "study.yaml").write_text(json.dumps({"experiment": experiment, "grid": {"workload.size": ["4 KiB"]},
                                                            "outputs": ["job_time"]}))
        self.assertEqual(weft("sweep", "study.yaml", "-o", "study.h5", "--quiet", folder=self.folder).code, 0)
        done = self.export("study.h5", "--trace", "run.json", "--csv", "tables", code=EXIT_INPUT)
        self.assertIn("study.h5: it is the table of a study (weft-study)", done.err)
        self.assertFalse((self.folder / "run.json").exists() or (self.folder / "tables").exists())
        self.export("study.h5", "--csv", "tables")

    def test_the_same_bytes(self):
        written = []
        for ranks in (None, 2, 3):
            _, path = self.simulate(TWO_JOBS, *DETAILS, output=f"{ranks}.h5", ranks=ranks)
            self.export(path, "--trace", "run.json.gz", "--csv", "tables")
            files = sorted((self.folder / "tables").iterdir())
            written.append([path.read_bytes() for path in [self.folder / "run.json.gz", *files]])
        self.assertEqual(written[1:], written[:1] * 2)

    def test_streams_groups_and_parts_are_taken_over(self):
        _, path = self.simulate(DDP_STEP, *DETAILS)
        with h5py.File(path, "r+") as file:
            rows = int(file["operations"].attrs["rows"])
            put(file, "operations/stream", np.array(["none", "communication"] * rows, dtype="S13")[:rows])
            put(file, "operations/group", np.full(rows, "data", dtype="S4"))
            put(file, "collectives/part_queueing", np.array([5, 7]))
        trace = self.trace_of(path)
        self.check_format(trace)
        names = {event["args"].get("name") for event in trace["traceEvents"] if event["name"] == "thread_name"}
        self.assertLessEqual({"rank 0, compute", "rank 3, communication"}, names)
        self.assertEqual({event["args"]["group"] for event in self.slices(trace, "compute")}, {"data"})
        calls = [event for event in self.slices(trace, "collective") if "busbw" in event["args"]]
        self.assertEqual({event["args"]["part_queueing"] for event in calls}, {5, 7})

    def test_operations_that_overlap_get_tracks_of_their_own(self):
        numbers = np.random.default_rng(1)
        for _ in range(50):
            starts = numbers.integers(0, 30, 40)
            ends = starts + numbers.integers(0, 10, 40)
            lanes = np.array(lanes_of(starts.tolist(), ends.tolist()))
            for lane in set(lanes):
                self.check_nesting(list(zip(starts[lanes == lane], ends[lanes == lane])))
            crowd = max(((starts <= time) & (ends > time)).sum() for time in range(40))
            self.assertLessEqual(len(set(lanes)), crowd + 1)  # one more if one of length 0 is within

    def test_exposed_times_against_counting(self):
        numbers = np.random.default_rng(1)
        for _ in range(50):
            starts = numbers.integers(0, 60, 12)
            ends = starts + numbers.integers(0, 20, 12)
            is_compute = numbers.random(12) < 0.5
            busy = {time for first, last in zip(starts[is_compute], ends[is_compute]) for time in range(first, last)}
            expected = [0 if mine else len(set(range(first, last)) - busy)
                        for first, last, mine in zip(starts, ends, is_compute)]
            self.assertEqual(exposed_times(starts, ends, is_compute).tolist(), expected)


class Csv(Export):
    def setUp(self):
        super().setUp()
        _, self.path = self.simulate(DDP_STEP, *DETAILS)

    def test_tables_equal_the_file(self):
        self.export(self.path, "--csv", "tables")
        with h5py.File(self.path) as file:
            for name in ("links", "messages", "operations", "ranks", "jobs", "collectives", "links_series"):
                with open(self.folder / "tables" / f"{name}.csv", newline="", encoding="utf-8") as lines:
                    heading, *rows = csv.reader(lines)
                for number, title in enumerate(heading):
                    column, _, unit = title.partition(" ")
                    data = file[name][column]
                    shown = data.attrs["unit"] in ("ps", "B", "bit/s", "GB/s")
                    self.assertEqual(unit, f"({data.attrs['unit']})" if shown else "")
                    expected = data.asstr()[:] if data.dtype.kind == "S" else data[:]
                    self.assertEqual([type(value)(row[number]) for row, value in zip(rows, expected)], list(expected))
                    self.assertEqual(len(rows), len(expected))
        self.assertFalse((self.folder / "tables" / "manifest_parallel.csv").exists())

    def test_choice_of_tables_columns_and_rows(self):
        out = self.export(self.path, "--csv", "-", "--tables", "links", "--columns", "id,rate", "--rows", "3:5").out
        self.assertEqual(out, "id,rate (bit/s)\n3,400000000000\n4,400000000000\n")
        self.export(self.path, "--csv", "two", "--tables", "ranks,manifest/parallel")
        self.assertEqual(sorted(os.listdir(self.folder / "two")), ["manifest_parallel.csv", "ranks.csv"])
        self.export(self.path, "--csv", "some", "--columns", "rank")
        self.assertEqual(sorted(os.listdir(self.folder / "some")), ["dependencies.csv", "operations.csv", "ranks.csv"])


class Refusals(Export):
    def setUp(self):
        super().setUp()
        _, self.path = self.simulate(DDP_STEP, *DETAILS)

    def assert_refused(self, text, *words, code=EXIT_INPUT):
        before = sorted(self.folder.rglob("*"))
        done = self.export(*words, code=code)
        self.assertEqual(len(done.err.splitlines()), 1, done)
        self.assertTrue(done.err.startswith("weft: "), done)
        self.assertIn(text, done.err)
        self.assertEqual(sorted(self.folder.rglob("*")), before, "something was written")

    def test_words(self):
        self.assert_refused("--trace FILE.json.gz, --csv DIR", self.path)
        self.assert_refused("no table 'massages'", self.path, "--csv", "d", "--tables", "massages")
        self.assert_refused("has a column 'size'", self.path, "--csv", "d", "--columns", "size")
        self.assert_refused("START:END was expected", self.path, "--csv", "d", "--rows", "5")
        self.assert_refused("not a number of links", self.path, "--trace", "t.json", "--links", "many")
        self.assert_refused("not a list of names", self.path, "--csv", "d", "--tables", "links,,jobs")
        self.assert_refused("is for one table", self.path, "--csv", "-")
        self.assert_refused("it is a file", self.path, "--csv", self.path)
        self.assert_refused("it is a folder", self.path, "--trace", self.folder)
        self.assert_refused("No such file", self.path, "--trace", "absent/t.json", code=EXIT_ENVIRONMENT)

    def test_files(self):
        content = self.path.read_bytes()
        for name, data, text in [
            ("absent.h5", None, "No such file"),
            ("text.h5", b"topology: {kind: star}\n", "not an HDF5 file"),
            ("cut.h5", content[: len(content) // 2], "cut off"),
        ]:
            if data is not None:
                (self.folder / name).write_bytes(data)
            self.assert_refused(text, name, "--trace", "t.json", "--csv", "d")

    def test_no_input_and_no_pipe_is_replaced(self):
        self.assert_kept(self.path, "is an input", "export", self.path, "--trace", self.path)
        self.assert_kept(self.pipe(), "not a regular file", "export", self.path, "--trace", "pipe")
        (self.folder / "link.json").symlink_to("trace.json")
        self.export(self.path, "--trace", "link.json")
        self.assertTrue((self.folder / "link.json").is_symlink())
        self.assertTrue((self.folder / "trace.json").is_file())

    def test_an_interrupted_run_is_exported_with_a_word(self):
        self.simulate(DDP_STEP, *DETAILS, "--set", "simulation.until=200 us", output="short.h5")
        self.assertIn("did not reach its end", self.export("short.h5", "--trace", "t.json").err)

    def test_full_disk(self):
        """No file may grow beyond 4 kB: an error in writing, as on a full disk."""

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        for words in (["--trace", "t.json"], ["--trace", "t.json.gz"], ["--csv", "d", "--tables", "links"]):
            done = self.export(self.path, *words, code=EXIT_ENVIRONMENT, preexec_fn=limit)
            self.assertIn("cannot write", done.err)
            self.assertEqual(len(done.err.splitlines()), 1, done)
        left = [path.name for path in self.folder.rglob("*") if path.is_file()]
        self.assertEqual(sorted(left), ["out.h5"])

    def test_full_device(self):
        with open("/dev/full", "wb") as full:
            process = start(["export", self.path, "--trace", "-"], folder=self.folder, stdout=full)
            _, err = process.communicate(timeout=100)
            stop(process)
        self.assertEqual(process.returncode, EXIT_ENVIRONMENT)
        self.assertIn("cannot write 'standard output'", err)

    def blocked(self):
        """An export that waits because no one reads its output."""
        process = start(["export", self.path, "--trace", "-"], folder=self.folder)
        self.addCleanup(stop, process)
        self.assertTrue(process.stdout.readline())
        return process

    def test_nobody_reads_any_more(self):
        process = self.blocked()
        process.stdout.close()
        self.assertEqual(process.stderr.read(), "")
        self.assertEqual(process.wait(timeout=100), 128 + signal.SIGPIPE)
        process.stderr.close()

    def test_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.blocked()
            os.kill(process.pid, number)
            self.assertEqual(process.wait(timeout=100), EXIT_INTERRUPTED)
            self.assertEqual(process.stderr.read(), "weft: interrupted\n")
            process.stdout.close()
            process.stderr.close()

    def test_a_crash_of_the_library_is_told_and_cleaned_up(self):
        code = f"""
            import os, signal, sys, types
            sys.path.insert(0, {str(SOURCE / "scripts")!r})
            from weft_commands import program
            crashing = types.ModuleType("weft_commands.crashing")
            crashing.parse = lambda words: None
            crashing.inputs = lambda options: ["one.h5", "two.h5"]
            crashing.folders = lambda options: ["."]
            def run(options):
                with program.new_file("half.json") as file:
                    file.write(b"half")
                    file.flush()
                    assert len(os.listdir(".")) == 2, os.listdir(".")
                    os.kill(os.getpid(), signal.SIGSEGV)
            crashing.run = run
            sys.modules["weft_commands.crashing"] = crashing
            program.run_command("crashing", [])
        """
        done = subprocess.run([sys.executable, "-B", "-c", textwrap.dedent(code)], cwd=self.folder, text=True,
                              capture_output=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, EXIT_INPUT, done)
        self.assertEqual(done.stderr, "weft: one.h5 or two.h5: it is damaged: the HDF5 library crashed on it "
                                      "(SIGSEGV)\n")
        self.assertEqual(os.listdir(self.folder), ["out.h5"])


if __name__ == "__main__":
    unittest.main()
