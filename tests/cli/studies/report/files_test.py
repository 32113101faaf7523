#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 1200 s
"""The pages of several runs, of studies and sweeps, and of costs; what is written, from what, and that nothing is fetched."""

import pathlib
import shutil
import subprocess
import sys
import unittest

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from report_testing import IDLE, INCAST, TRAINING, PageTest, write_numbers, write_text
from weft_testing import EXIT_INPUT, SOURCE, WEFT, ProgramTest, environment, start, stop, table, weft

sys.path.insert(0, str(SOURCE / "scripts"))
from report_page.sweep import pareto


class SeveralFiles(PageTest):
    def test_runs_side_by_side(self):
        _, first = self.simulate(IDLE, output="first.h5")
        _, second = self.simulate(INCAST, output="second.h5")
        self.show(first, second)
        overview = self.text("[data-name=overview]")
        for word in ("first.h5", "second.h5", "queueing", "switch0 → host0"):
            self.assertIn(word, overview)
        self.browser.value("document.querySelector('[role=tab]').focus()")
        self.browser.press("ArrowRight")
        self.assertEqual(self.data("article:not([hidden])", "file"), ["second.h5"])
        self.assertEqual(self.verdict()["link"], "switch0 → host0")
        self.browser.value("document.querySelector('[data-name=overview] a').click()")
        self.assertEqual(self.data("article:not([hidden])", "file"), ["first.h5"])
        self.assertEqual(self.browser.complaints, [])

    def sweep(self):
        """A file as `weft sweep` writes it: synthetic cases."""
        random = np.random.default_rng(5)
        cost, time = random.integers(1, 30, 60), random.random(60)
        time[7] = np.nan
        with h5py.File(self.folder / "sweep.h5", "w") as file:
            file.attrs.update({"format": "weft-study", "format_version": 1})
            cases = file.create_group("cases")
            write_numbers(cases, "case", range(60), "id")
            write_numbers(cases, "in_rate", np.arange(60) % 3 * 100, "Gb/s")
            write_numbers(cases, "out_time", time, "s", np.float64)
            write_numbers(cases, "out_cost", cost)
            write_text(cases, "status", ["done"] * 60)
        return self.folder / "sweep.h5", time, cost

    def test_of_rates_large_is_good(self):
        """Of outputs with a unit per second or such a name, unless the study asks otherwise; not of inputs."""
        with h5py.File(self.folder / "rates.h5", "w") as file:
            file.attrs.update({"format": "weft-study", "format_version": 1})
            cases = file.create_group("cases")
            write_numbers(cases, "case", range(3), "id")
            write_numbers(cases, "in_rate", [1, 2, 3], "bit/s")
            for name, unit in (("out_job_time", "ps"), ("out_busbw", "GB/s"), ("derived_throughput", "1")):
                write_numbers(cases, name, [1, 2, 3], unit)
        self.show(self.folder / "rates.h5")
        chart = "charts.find((chart) => chart instanceof Sweep)"
        better = "({x: %s.better.x, y: %s.better.y})" % (chart, chart)
        self.assertEqual(self.browser.value(f"{chart}.y.name"), "out_busbw")
        self.assertEqual(self.browser.value(better), {"x": 1, "y": -1})
        self.assertEqual(self.browser.value(f"{chart}.ways.y.querySelector('select').value"), "-1")
        for name, way in (("in_rate", 1), ("derived_throughput", -1), ("out_job_time", 1)):
            self.browser.value(f"{chart}.setAxis('y', '{name}')")
            self.assertEqual(self.browser.value(better)["y"], way, name)
            self.assertEqual(self.browser.value(f"{chart}.ways.y.querySelector('select').value"), str(way))

    def test_what_a_study_finds(self):
        """The Pareto front, sensitivity, and a search, of a study of two algorithms and three sizes."""
        self.write("topology: {kind: star, hosts: 4, link_rate: 400 Gb/s, link_delay: 500 ns}\n"
                   "workload: {kind: collective, collective: all_reduce, size: 64 KiB}\n", "base.yaml")
        study = ("experiment: base.yaml\n"
                 "grid: {workload.algorithm: [ring, direct], workload.size: [64 KiB, 128 KiB, 1 MiB]}\n"
                 "outputs: [job_time, energy_per_step, cost_per_step]\n"
                 "objective: {minimize: [job_time, energy_per_step], within: workload.size}\n"
                 "equal: {hosts: exact, cost: 5 %}\n")
        self.write(study, "study.yaml")
        self.run_weft("sweep", "study.yaml", "--quiet")
        self.run_weft("report", "study.h5")
        cases = table(self.folder / "study.h5", "cases")
        self.browser.open(self.folder / "study.html")
        self.assertEqual(self.browser.complaints, [])
        self.assertEqual(sorted(map(int, self.data("span[data-front]", "front"))),
                         np.flatnonzero(cases["pareto"]).tolist())
        # One input is left within sizes: its share of the variance of logarithms, by the definition.
        times = np.log(cases["out_job_time"].reshape(2, 3).astype(float))
        times -= times.mean(axis=0)
        share = 3 * (times.mean(axis=1) ** 2).sum() / (times ** 2).sum()
        self.assertAlmostEqual(float(self.data("[data-outcome=out_job_time]", "share")[0]), share, 9)
        self.assertIn("Held equal among the machines: hosts, cost (5 %).",
                      self.browser.value("document.querySelector('[data-name=sweep]').innerText"))
        text = self.browser.value("document.querySelector('[data-name=front]').innerText")
        for unit in ("µs", "mJ", "$"):
            self.assertIn(unit, text)
        self.write(study + "search: {objective: time, simulate: 2}\n", "search.yaml")
        self.run_weft("sweep", "search.yaml", "--quiet")
        self.run_weft("report", "search.h5")
        self.browser.open(self.folder / "search.html")
        best = table(self.folder / "search.h5", "cases")["place"].tolist().index(1)
        self.assertEqual(self.number("[data-name=search]", "best"), best)
        self.assertIn("Order correlation", self.browser.value("document.querySelector('[data-name=search]').innerText"))

    def test_cases_with_names(self):
        """A label explains all of a variance, whatever the outcomes are: its cases stand beside each other instead."""
        with h5py.File(self.folder / "labels.h5", "w") as file:
            file.attrs.update({"format": "weft-study", "format_version": 1})
            cases = file.create_group("cases")
            write_numbers(cases, "case", range(4), "id")
            write_text(cases, "in_machine", ["as it is", "packed", "four spines", "both"])
            write_numbers(cases, "in_spines", [2, 2, 4, 4], "1")
            write_numbers(cases, "out_step_time", [6000, 3000, 4000, 2000], "ps")
            write_numbers(cases, "out_exposed", [0, 0, 1, 2], "ps")
        self.show(self.folder / "labels.h5")
        self.assertEqual(self.data("[data-of=out_step_time]", "case"), ["0", "1", "2", "3"])
        shown = self.browser.value("[...document.querySelectorAll('[data-of=out_step_time]')].map((cell) => cell.innerText)")
        self.assertEqual(shown, ["3.00", "1.50", "2.00", "1.00"])
        text = self.browser.value("document.querySelector('[data-name=cases]').innerText")
        for word in ("as it is", "four spines", "6 ns", "packed"):
            self.assertIn(word, text.replace("\u00a0", " "))
        self.assertEqual(self.data("[data-outcome=out_step_time]", "input"), ["in_spines"])
        self.assertEqual(self.browser.complaints, [])

    def test_costs_of_a_run(self):
        """Those of `weft account`, if the experiment has the section."""
        self.simulate({**IDLE, "accounting": {"grid_intensity": "FR"}})
        self.run_weft("report", "out.h5")
        figures = self.run_weft("account", "out.h5", "--json").summary()["mid"]["figures"]
        self.browser.open(self.folder / "out.html")
        self.assertEqual(self.browser.complaints, [])
        names = self.data("[data-figure]", "figure")
        values = dict(zip(names, map(float, self.data("[data-figure]", "value"))))
        self.assertGreater(len(values), 12)
        for name, value in values.items():
            self.assertEqual(value, figures[name], name)
        self.simulate(IDLE)
        self.run_weft("report", "out.h5")
        self.browser.open(self.folder / "out.html")
        self.assertEqual(self.data("[data-figure]", "figure"), [])

    def test_a_sweep(self):
        file, time, cost = self.sweep()
        self.show(file, words=["--png", self.folder / "pictures"])
        columns = self.browser.value("charts.filter((chart) => chart instanceof Sweep).map((chart) => "
                                     "[chart.x.name, chart.y.name])[0]")
        self.assertEqual(sorted(columns), ["out_cost", "out_time"])
        known = ~np.isnan(time)
        beaten = [((time <= time[i]) & (cost <= cost[i]) & ((time < time[i]) | (cost < cost[i])))[known].any()
                  for i in range(60)]
        front = [i for i in range(60) if known[i] and not beaten[i]]
        shown = self.data("canvas[data-chart=sweep]", "front")[0].split()
        self.assertEqual(sorted(map(int, shown)), front)
        rows = np.flatnonzero(known)
        self.assertEqual(sorted(rows[pareto(cost[known], time[known])].tolist()), front)
        self.assertEqual(self.number("[data-name=sweep]", "cases"), 60)
        self.assertEqual(len(self.data("[data-name=sweep] tbody tr", "x")), 60)
        self.assertTrue((self.folder / "pictures" / "sweep.sweep.png").exists())

    def test_a_sweep_with_cases_that_failed(self):
        file, _, _ = self.sweep()
        with h5py.File(file, "a") as results:
            results.attrs["complete"] = 0
            del results["cases/status"]
            write_text(results["cases"], "status", ["failed"] * 3 + ["missing"] + ["done"] * 56)
        self.show(file)
        self.assertEqual(self.text("[data-incomplete]"), "INCOMPLETE SWEEP: 3 cases failed, 1 case not run.")


class Files(ProgramTest):
    def test_same_bytes_and_pictures(self):
        _, file = self.simulate(TRAINING)
        pages = []
        for name in ("one.html", "two.html"):
            done = self.run_weft("report", file, "-o", name, "--png", self.folder / name[:3], seconds=300)
            pages.append((self.folder / name).read_bytes())
        self.assertEqual(pages[0], pages[1])
        names = sorted(path.name for path in (self.folder / "one").iterdir())
        self.assertEqual(names, sorted(f"out.{name}.png" for name in (
            "attribution", "delays", "heat", "queues", "slowdown", "timeline", "topology")))
        for name in names:
            data = (self.folder / "one" / name).read_bytes()
            self.assertTrue(data.startswith(b"\x89PNG\r\n\x1a\n"))
            self.assertEqual(data, (self.folder / "two" / name).read_bytes(), done)

    def test_nothing_in_the_page_leads_outside(self):
        _, file = self.simulate(IDLE)
        self.run_weft("report", file, "-o", "page.html")
        page = (self.folder / "page.html").read_text()
        self.assertIn("Content-Security-Policy\" content=\"default-src 'none'", page)
        for word in (" src=", "<link rel=\"stylesheet", "@import", "url("):
            self.assertNotIn(word, page)

    def test_what_cannot_be_read(self):
        _, file = self.simulate(INCAST)
        with h5py.File(self.folder / "foreign.h5", "w") as foreign:
            foreign["numbers"] = [1, 2, 3]
        (self.folder / "text.h5").write_text("no HDF5\n")
        (self.folder / "short.h5").write_bytes(file.read_bytes()[:5000])
        shutil.copy(file, self.folder / "uneven.h5")
        with h5py.File(self.folder / "uneven.h5", "a") as results:
            del results["links/to"]
            results["links/to"] = [1]
        shutil.copy(file, self.folder / "newer.h5")
        with h5py.File(self.folder / "newer.h5", "a") as results:
            results.attrs["format_version"] = 99
        for name, word in (("foreign.h5", "it is not a result file of weft"), ("text.h5", "not an HDF5 file"),
                           ("short.h5", "short.h5"), ("uneven.h5", "differ in length"),
                           ("newer.h5", "version 99 of the format"), ("absent.h5", "No such file")):
            done = weft("report", name, "-o", "page.html", folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(word, done.err)
            self.assertEqual(len(done.err.splitlines()), 1, done)
            self.assertFalse((self.folder / "page.html").exists())

    def test_names_that_are_not_utf_8(self):
        path = self.write(INCAST, "lat\udce9.yaml")
        for words in (["run", path, "--quiet", "-o", "lat\udce9.h5"], ["report", "lat\udce9.h5"],
                      ["compare", "lat\udce9.h5", "lat\udce9.h5", "--page", "page.html"]):
            done = subprocess.run([WEFT, *words], cwd=self.folder, capture_output=True, check=False,
                                  env=environment({"PYTHONIOENCODING": "utf-8:strict"}))
            self.assertEqual(done.returncode, 0, done)
        self.assertIn("lat?.h5", (self.folder / "lat\udce9.html").read_text())

    def test_full_device(self):
        _, file = self.simulate(INCAST)
        for command in (["report", file], ["plot", file, "--kind", "links"]):
            with open("/dev/full", "wb") as full:
                process = start(command, folder=self.folder, stdout=full)
                _, err = process.communicate(timeout=100)
                stop(process)
            self.assertEqual((process.returncode, err), (
                3, "weft: cannot write 'standard output': No space left on device\n"))

    def test_no_input_and_no_pipe_is_replaced(self):
        _, file = self.simulate(INCAST)
        (self.folder / "same.h5").symlink_to(file)
        self.assert_kept(file, "is an input", "report", file, "-o", "out.h5")
        self.assert_kept(file, "is an input", "report", file, "-o", "same.h5")
        self.assert_kept(self.pipe(), "not a regular file", "report", file, "-o", "pipe")
        (self.folder / "link.html").symlink_to("page.html")
        self.run_weft("report", "out.h5", "-o", "link.html")
        self.assertTrue((self.folder / "link.html").is_symlink())
        self.assertIn("<html", (self.folder / "page.html").read_text())

    def test_words(self):
        _, file = self.simulate(INCAST)
        self.assertEqual(weft("report", folder=self.folder).code, EXIT_INPUT)
        self.assertEqual(weft("report", file, "-o", self.folder).code, EXIT_INPUT)
        self.assertEqual(weft("report", file, "-o", "/proc/none/page.html").code, 3)
        self.run_weft("report", "out.h5")
        self.assertTrue((self.folder / "out.html").exists())


if __name__ == "__main__":
    unittest.main()
