#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 1200 s
"""The page of a run, as Chromium shows it: its numbers are the file's, short operations are seen, keys work."""

import pathlib
import sys
import unittest

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from report_testing import IDLE, INCAST, TRAINING, PageTest, write_numbers, write_text
from weft_browser import Browser
from weft_testing import NETWORK, SOURCE, STAR, table

sys.path.insert(0, str(SOURCE / "scripts"))
from report_page import messages as report_messages
from report_page import reading, timeline
from report_page.links import Links, layout
from report_page.pictures import case_labels, fills_of, readable_axis
from report_page.run_report import Facts
from weft_results import run as weft_results


class NumbersOfTheFile(PageTest):
    def test_a_training_step(self):
        _, file = self.simulate(TRAINING, "--set", "output.attribution=summary")
        self.show(file)
        with h5py.File(file) as results:
            self.assertEqual(self.number("[data-fact=simulated_time]"), results.attrs["simulated_time"])
        self.assertEqual(self.browser.value("document.documentElement.scrollWidth"), self.browser.size[0])
        self.check_messages(table(file, "messages"))
        self.check_collectives(table(file, "collectives"))
        self.check_links(table(file, "links"))
        self.check_parts(table(file, "ranks"))
        operations = table(file, "operations")
        self.assertEqual(self.number("[data-name=timeline]", "operations"), len(operations["rank"]))
        self.check_operations(operations)

    def check_messages(self, rows):
        slowdown = (rows["delivered"] - rows["issued"]) / rows["ideal"]
        everything = "[data-slowdown=all]"
        self.assertEqual(self.number(everything, "count"), len(slowdown))
        self.assertAlmostEqual(self.number(everything, "max"), slowdown.max())
        self.assertAlmostEqual(self.number(everything, "mean"), slowdown.mean())
        for name, share in (("p50", 50), ("p99", 99)):
            exact = np.percentile(slowdown, share, method="inverted_cdf")
            self.assertGreaterEqual(self.number(everything, name), exact * (1 - 1e-12))
            self.assertLessEqual(self.number(everything, name), exact * 1.0014)

    def test_a_torus_is_a_grid(self):
        """Routers have the places of their coordinates, of further dimensions in planes side by side: the next router of a line is one
        step away, but for the bend by which a wrap shows, which is less than half a step. No two nodes have one place."""
        torus = {"kind": "torus", "dims": [4, 3, 2], "link_rate": "100 Gb/s", "link_delay": "100 ns"}
        _, file = self.simulate({"topology": torus, "workload": {"kind": "traffic", "pattern": "permutation", "size": "64 KiB"}})
        links = Links(reading.RunFile(file))
        x, y = layout(links)
        self.assertGreater(min(x.min(), y.min()), 0)
        self.assertLess(max(x.max(), y.max()), 1)
        self.assertEqual(len(set(zip(x.tolist(), y.tolist()))), len(links.nodes))
        place = dict(zip(links.node_names.tolist(), zip(x * 2 * 5, y * 4)))  # two planes of 4 + 1 by 3 + 1 steps
        for name, (right, down) in place.items():
            if name.startswith("router") and not name.startswith("router0."):
                i, rest = int(name[6]), name[7:]
                before = place[f"router{i - 1}{rest}"]
                self.assertAlmostEqual(right - before[0], 1)
                self.assertLess(abs(down - before[1]), 0.5)

    def check_collectives(self, rows):
        shown = sorted(zip(map(float, self.data("button[data-group]", "busbw")),
                           map(float, self.data("button[data-group]", "mean")),
                           map(int, self.data("button[data-group]", "count"))))
        sizes = sorted(set(rows["bytes"].tolist()))
        due = sorted((rows["busbw"][rows["bytes"] == size].mean(), rows["time"][rows["bytes"] == size].mean(),
                      int((rows["bytes"] == size).sum())) for size in sizes)
        self.assertEqual(len(shown), len(due))
        for mine, file in zip(shown, due):
            np.testing.assert_allclose(mine, file, rtol=1e-12)

    def check_links(self, rows):
        self.assertEqual(self.number("[data-name=topology]", "links"), len(rows["id"]))
        self.assertEqual(self.number("canvas[data-chart=topology]", "largest"), rows["utilization"].max())

    def check_parts(self, rows):
        parts = sorted(name for name in rows if name.startswith("part_"))
        self.assertIn("part_compute", parts)
        for part in parts:
            shown = self.data(f"[data-chart=attribution-ranks] [data-part={part.removeprefix('part_')}]", "value")
            self.assertEqual([int(value) for value in shown], rows[part].tolist(), part)

    def check_operations(self, rows):
        """The content of the timeline, from its data in the page."""
        sums = self.browser.value("charts.filter((chart) => chart instanceof Timeline).map((chart) => "
                                  "[chart.start.length, chart.length.reduce((a, b) => a + b, 0)])[0]")
        self.assertEqual(sums, [len(rows["rank"]), int((rows["end"] - rows["start"]).sum())])

    def test_percentiles_and_sums_from_slices(self):
        """With few messages at a time, and with slices only: the same sums, or about them."""
        _, file = self.simulate(TRAINING)
        self.addCleanup(setattr, reading, "BLOCK", reading.BLOCK)
        self.addCleanup(setattr, reading, "SLICE", reading.SLICE)
        self.addCleanup(setattr, report_messages, "SAMPLE", report_messages.SAMPLE)
        whole = Facts(reading.RunFile(file), exact=True).messages
        reading.BLOCK = 512
        blocks = Facts(reading.RunFile(file), exact=True).messages
        self.assertEqual(whole.histogram.tolist(), blocks.histogram.tolist())
        np.testing.assert_allclose(whole.waits, blocks.waits)
        reading.SLICE, report_messages.SAMPLE = 32, 3200
        run = reading.RunFile(file)
        slices = Facts(run, exact=False).messages
        self.assertTrue(slices.sampled)
        self.assertEqual(slices.seen, 3200)
        exact, about = (sums["duration"] / sums["ideal"] for sums in (whole.sums, slices.sums))
        self.assertAlmostEqual(about / exact, 1, delta=0.1)
        everything = slices.slowdown()["curves"][-1]
        self.assertEqual((everything["name"], everything["count"]), ("all", 3200))


class Charts(PageTest):
    def short_operation(self):
        """A run of 20 ms in which rank 0 computes for 1 ns, and no rank does anything else."""
        _, file = self.simulate(TRAINING)
        with h5py.File(file, "a") as results:
            end = int(results.attrs["simulated_time"])
            del results["operations"]
            operations = results.create_group("operations")
            write_numbers(operations, "rank", [0], "id")
            write_numbers(operations, "start", [end // 2], "ps")
            write_numbers(operations, "end", [end // 2 + 1000], "ps")
            write_numbers(operations, "kind", [0], "id")
            write_text(operations, "label", ["micro-batch 0 forward"])
        return file

    # The pixels of the timeline that have the first colour of the palette.
    COLOURED = """(() => {
      const canvas = document.querySelector("canvas[data-chart=timeline]"), [r, g, b] = hexToNumbers(theme.colours[0]);
      const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b) count++;
      return count;
    })()"""

    def test_a_short_operation_is_seen(self):
        file = self.short_operation()
        for dark in (False, True):
            self.browser.dark(dark)
            self.show(file)
            self.assertGreaterEqual(self.browser.value(self.COLOURED), 2)
        self.browser.dark(False)

    def test_keys(self):
        _, file = self.simulate(TRAINING)
        self.show(file)
        unnamed = "[...document.querySelectorAll('canvas:not([aria-hidden]), button, select, [role=application]')]" \
            ".filter((e) => !(e.getAttribute('aria-label') || e.textContent || e.labels?.length)).length"
        self.assertEqual(self.browser.value(unnamed), 0)
        self.reach("canvas[data-chart=timeline]")
        self.assertNotEqual(self.browser.value("getComputedStyle(document.activeElement).outlineStyle"), "none")
        whole = self.window()
        self.browser.press("+")
        zoomed = self.window()
        self.assertAlmostEqual(zoomed[1] - zoomed[0], (whole[1] - whole[0]) / 2, delta=1)
        self.browser.press("ArrowRight")
        self.assertGreater(self.window()[0], zoomed[0])
        self.browser.press("Home")
        self.assertEqual(self.window(), whole)
        self.browser.press("n")
        self.assertIn("micro-batch", self.text("#tip"))
        self.assertIn("micro-batch", self.browser.value("document.getElementById('voice').textContent"))
        self.reach("canvas[data-chart=topology]")
        self.browser.press("n")
        self.assertIn("→", self.text("#tip"))
        self.reach("canvas[data-chart=heat]")
        self.browser.press("ArrowDown", "ArrowRight")
        self.assertIn("utilisation", self.text("#tip"))

    def reach(self, selector):
        """Presses the Tab key until the element has the focus."""
        for _ in range(200):
            if self.browser.value(f"document.activeElement.matches({selector!r})"):
                return
            self.browser.press("Tab")
        self.fail(f"the Tab key never reaches {selector}")

    def window(self):
        return [float(value) for value in self.data("canvas[data-chart=timeline]", "window")[0].split()]

    def test_hover_and_themes(self):
        _, file = self.simulate(TRAINING)
        for width in (1280, 1920):
            self.browser.resize(width, 900)
            self.show(file)
            self.assertEqual(self.browser.value("document.documentElement.scrollWidth"), width)
        box = self.browser.value("""(() => {
          const canvas = document.querySelector("canvas[data-chart=timeline]");
          canvas.scrollIntoView({block: "center"});
          const {left, top, width, height} = canvas.getBoundingClientRect();
          return [left + width * 0.9, top + height - 8];
        })()""")
        self.browser.move_mouse(*box)
        self.assertIn("reduction", self.text("#tip"))
        before = self.browser.value("getComputedStyle(document.body).backgroundColor")
        self.browser.value("document.getElementById('theme').click()")
        self.assertNotEqual(self.browser.value("getComputedStyle(document.body).backgroundColor"), before)
        self.browser.resize(1280, 900)

    def test_bars_in_a_narrow_window(self):
        """Between a bar's name and its time there is room for the bar, and nothing is wider than the window."""
        path = self.report(self.simulate(IDLE)[1])
        with Browser(420, 900) as browser:
            browser.open(path)
            self.assertGreater(browser.value("Math.min(...[...document.querySelectorAll('.bar')].map((bar) => bar.clientWidth))"), 100)
            self.assertEqual(browser.value("document.documentElement.scrollWidth"), 420)

    def test_bars_and_collectives_open(self):
        """More ranks than bars: they are put together, and a bar opens into its ranks."""
        _, file = self.simulate({**IDLE, "topology": {**STAR, "hosts": 80},
                                 "workload": {**IDLE["workload"], "ranks": 80}})
        self.show(file)
        bars = "[data-chart=attribution-ranks] button"
        self.assertEqual(len(self.data(bars, "x")), 40)
        self.browser.value(f"document.querySelector('{bars}').click()")
        self.assertEqual(len(self.data(bars, "x")), 2)
        part = "[data-chart=attribution-ranks] [data-part=transfer]"
        self.assertEqual([int(value) for value in self.data(part, "value")],
                         table(file, "ranks")["part_transfer"][:2].tolist())
        self.browser.value("document.querySelector('button[data-group]').click()")
        self.assertEqual(len(self.data(".calls tbody tr", "x")), 2)

    def test_other_tables(self):
        """Rates, depths of queues, an ideal network, no messages, no operations: pages with fewer sections."""
        lossless = {**NETWORK, "flow_control": "pfc", "buffer": {"size": "16 MB"}}
        _, file = self.simulate({**INCAST, "network": lossless, "output": {
            "rates": {"interval": "10 us"}, "queue_depths": True, "messages": "none"}})
        self.show(file)
        self.assertIsNotNone(self.browser.value("document.querySelector('[data-chart=rates] canvas') && 1"))
        self.assertIn("99.9", self.text("[data-name=depths] thead"))
        self.assertIn("no messages", self.text("[data-name=slowdown]"))
        _, file = self.simulate({**IDLE, "network": {**NETWORK, "fidelity": "ideal"}, "output": {}})
        self.show(file)
        self.assertIn("output.operations", self.text("[data-name=timeline]"))

    def test_many_operations(self):
        """Of more operations than the page holds, some ranks are shown, the last to finish among them."""
        _, file = self.simulate(TRAINING)
        self.addCleanup(setattr, timeline, "MAX_OPERATIONS", timeline.MAX_OPERATIONS)
        timeline.MAX_OPERATIONS = 1000
        run = reading.RunFile(file)
        operations = timeline.Operations(run, report_messages.Jobs(run))
        self.assertLessEqual(len(operations.rows), 1000)
        ranks = table(file, "ranks")
        self.assertIn(ranks["rank"][ranks["finished"].argmax()], operations.shown)
        rows = table(file, "operations")
        mine = np.isin(rows["rank"], operations.shown)
        self.assertEqual(operations.start.tolist(), rows["start"][mine].tolist())
        self.assertEqual(operations.label.tolist(), rows["label"][mine].tolist())


    def test_phases_are_labels_without_the_numbers_that_count_calls(self):
        for label, phase in {"all_reduce 3 of group 12": "all_reduce of group", "step 4 of data.1": "step of data",
                             "micro-batch 1 backward block 3": "backward", "12": "compute", "gemm_7": "gemm_",
                             "s16816gemm_128x128_ldg8_nn": "s16816gemm_128x128_ldg8_nn",
                             "s16816gemm_256x64_ldg8_nn": "s16816gemm_256x64_ldg8_nn", "gemm_128x64": "gemm_128x64",
                             "gemm_128x128": "gemm_128x128"}.items():
            self.assertEqual(timeline.phase_of(label, 0), phase)


class Pictures(unittest.TestCase):
    def test_parts_of_a_picture_look_different(self):
        """All parts of a file, and those of files without such columns: no two have the same colour and stripes."""
        for names in (weft_results.PARTS, ["compute", "exposed", "waiting", "idle"]):
            fills = fills_of([{"name": name} for name in names])
            self.assertEqual(len(set(fills)), len(names), dict(zip(names, fills)))

    def test_axes_have_units_that_suit_their_values(self):
        for unit, values, factor, label in [("ps", [3e6, 5e9], 10**9, "ms"), ("ps", [1, 2], 1, "ps"), ("ps", [0], 1, "ps"),
                                            ("B", [3 << 20], 1 << 20, "MiB"), ("1", [7e9], 1, "1"), ("", [], 1, "1")]:
            self.assertEqual(readable_axis({"title": "it", "unit": unit}, np.array(values)), (factor, f"it ({label})"))

    def test_cases_are_named_by_what_tells_them_apart(self):
        def sweep(**columns):
            return {"columns": [{"role": "input", "values": values} for values in columns.values()]
                    + [{"role": "output", "values": [1, 2, 3]}]}

        self.assertEqual(case_labels(sweep(name=["a", "b", "b"], spines=[4, 2, 2], size=[1, 1, 8]), [0, 1, 2]), ["a, 1", "b, 1", "b, 8"])
        self.assertEqual(case_labels(sweep(same=[1, 1, 1], size=[1, 2, 3]), [0, 2]), ["1", "3"])


if __name__ == "__main__":
    unittest.main()
