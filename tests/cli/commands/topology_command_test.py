#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""`weft topology`: the facts that it prints, exports that build the same machine, and pictures."""

import io
import json
import pathlib
import sys
import unittest
import xml.etree.ElementTree as xml

import matplotlib.colors
import matplotlib.image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_ENVIRONMENT, EXIT_INPUT, FAT_TREE, SOURCE, STAR, ProgramTest, weft

LINKS = {"link_rate": "100 Gb/s", "link_delay": "1 us"}
TORUS = {"kind": "torus", "dims": [4, 4, 8], **LINKS}
DRAGONFLY = {"kind": "dragonfly", "p": 2, "a": 4, "h": 2, "g": 9, **LINKS}
KEYS = ["hosts", "switches", "links", "switch_links", "diameter", "mean_distance", "hop_histogram", "bisection_bps"]


class TopologyTest(ProgramTest):
    def write(self, spec):
        return super().write(json.dumps(spec, indent=1))

    def report(self, spec, *words):
        return json.loads(self.run_weft("topology", self.write(spec), "--json", *words).out)


class Reports(TopologyTest):
    def test_partitions_of_few_nodes_each(self):
        """METIS reports on the standard output what it works around; that is no part of the answer."""
        for hosts, processes in ((8, 8), (12, 8), (16, 16), (64, 32), (128, 64)):
            with self.subTest(hosts=hosts, processes=processes):
                report = self.report({"kind": "star", "hosts": hosts, **LINKS}, "--processes", processes)
                self.assertEqual([part["processes"] for part in report["partitions"]], [processes])

    def test_units_that_reduce_are_no_hosts(self):
        """One unit in each of 8 leaves and 4 cores; the rest of the machine is unchanged."""
        plain, reducing = self.report(FAT_TREE), self.report({**FAT_TREE, "switch_reduction": {}})
        self.assertEqual((plain.pop("reduction_units"), reducing.pop("reduction_units")), (0, 8 + 4))
        self.assertNotEqual(plain.pop("partitions"), reducing.pop("partitions"))  # units are dealt to processes, too
        self.assertEqual(plain, reducing)

    def test_fat_tree(self):
        """k = 4: k^3/4 hosts, 5k^2/4 switches, 3k^3/4 links; per host k/2-1 at 2, (k/2)(k/2-1) at 4, the rest at 6."""
        for spec in (FAT_TREE, {"topology": FAT_TREE}):
            report = self.report(spec)
            for key in KEYS:
                self.assertIn(key, report)
            self.assertEqual((report["hosts"], report["switches"], report["links"]), (16, 20, 48))
            self.assertEqual(report["switch_links"], 32)
            self.assertEqual(report["hop_histogram"], {"2": 16, "4": 32, "6": 192})
            self.assertAlmostEqual(report["mean_distance"], 82 / 15, places=12)
            self.assertEqual(report["diameter"], 6)
            self.assertEqual(report["bisection_bps"], 8 * 400_000_000_000)
            self.assertEqual(report["shortest_paths"], {"min": 1, "mean": (16 + 2 * 32 + 4 * 192) / 240, "max": 4})
            self.assertEqual(report["routed_histogram"], report["hop_histogram"])

    def test_torus(self):
        report = self.report(TORUS)
        self.assertEqual((report["hosts"], report["switches"]), (128, 128))
        self.assertEqual((report["links"], report["switch_links"]), (128 + 3 * 128, 3 * 128))
        self.assertEqual(report["diameter"], 2 + 2 + 4 + 2)  # two host links
        self.assertAlmostEqual(report["mean_distance"], 2 + (1 + 1 + 2) * 128 / 127, places=12)
        self.assertEqual(report["bisection_bps"], 2 * 128 // 8 * 100_000_000_000)
        self.assertEqual(sum(report["hop_histogram"].values()), 128 * 127)

    def test_local_links_that_limit_the_bisection(self):
        """8 groups of 4 routers whose links inside are 4 times slower than those between groups: the formula counts these, 4 x 4
        pairs of groups, and less gets through the groups to their ends."""
        slow = {"kind": "dragonfly", "p": 2, "a": 4, "h": 2, "g": 8, "link_rate": "400 Gb/s", "link_delay": "1 us",
                "local_link_rate": "100 Gb/s"}
        report = self.report(slow)
        self.assertEqual(report["bisection_bps"], min(report["bisection_formula_bps"], report["bisection_flow_bps"]))
        self.assertLess(report["bisection_bps"], report["bisection_formula_bps"])

    def test_dragonfly(self):
        """The graph's distances beside those of the minimal route, local - global - local."""
        report = self.report(DRAGONFLY)
        self.assertEqual((report["hosts"], report["switches"], report["links"]), (72, 36, 162))
        self.assertEqual(report["switch_links"], 36 * 3 // 2 + 9 * 8 // 2)
        self.assertEqual(report["hop_histogram"], {"2": 72, "3": 720, "4": 1824, "5": 2496})
        self.assertEqual(report["routed_histogram"], {"2": 72, "3": 720, "4": 1728, "5": 2592})
        self.assertAlmostEqual(report["routed_mean"], 2 + 166 / 71, places=12)

    def test_routing(self):
        """Minimal routing of a dragonfly may deadlock in one lane and not in two; a detour makes ways longer."""
        plain = self.report(DRAGONFLY)
        self.assertEqual((plain["lanes"], plain["deadlock_possible"]), (1, True))
        self.assertRegex(plain["deadlock_cycle"], r"^group\d+/router\d+ -> group\d+/router\d+ lane 0, ")
        lanes = self.report(DRAGONFLY, "--routing", "dragonfly_minimal_lanes")
        self.assertEqual((lanes["lanes"], lanes["deadlock_possible"]), (2, False))
        self.assertEqual(lanes["routed_histogram"], plain["routed_histogram"])
        valiant = self.report(DRAGONFLY, "--routing", "dragonfly_valiant")
        self.assertEqual((valiant["lanes"], valiant["deadlock_possible"]), (3, False))
        self.assertGreater(valiant["routed_mean"], plain["routed_mean"] + 0.5)
        self.assertLessEqual(max(map(int, valiant["routed_histogram"])), 7)
        self.assertFalse(self.report(FAT_TREE)["deadlock_possible"])
        done = weft("topology", self.write(STAR), "--routing", "up_down", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertRegex(done.err, "found 'star'")

    def test_one_host(self):
        report = self.report({**STAR, "hosts": 1})
        self.assertEqual((report["hosts"], report["diameter"], report["hop_histogram"]), (1, 0, {}))

    def test_partitions(self):
        report = self.report(TORUS, "--processes", "1", "2", "3")
        self.assertEqual([part["processes"] for part in report["partitions"]], [1, 2, 3])
        self.assertEqual(report["partitions"][0]["lookahead_ps"], None)
        self.assertGreater(report["partitions"][1]["lookahead_ps"], 1_000_000)
        self.assertGreater(report["partitions"][1]["cut_links"], 0)

    def test_table_says_the_same(self):
        text = self.run_weft("topology", self.write(DRAGONFLY)).out
        for pattern in [r"(?m)^  hosts +72$", r"36 \(36 of 7 ports\)", r"162, 90 of them", r"diameter +5 links",
                        r"72 at 2, 720 at 3", r"local +54 of 100 Gb/s, 1 us", r"on 2 processes"]:
            self.assertRegex(text, pattern)

    def test_settings(self):
        self.assertEqual(self.report({"topology": FAT_TREE}, "--set", "topology.k=6")["hosts"], 54)
        self.assertEqual(self.report(FAT_TREE, "--set", "k=6")["hosts"], 54)

    def test_same_on_several_processes(self):
        path = self.write(DRAGONFLY)
        self.assertEqual(self.run_weft("topology", path, "--json", ranks=2).out,
                         self.run_weft("topology", path, "--json").out)


class Exports(TopologyTest):
    def same_machine(self, spec):
        path = self.folder / "again.yaml"
        self.run_weft("topology", self.write(spec), "--export", "yaml", "-o", path, "--quiet")
        first, second = self.report(spec), json.loads(self.run_weft("topology", path, "--json").out)
        for key in KEYS[:-1]:
            self.assertEqual(first[key], second[key], key)

    def test_yaml_builds_the_same_machine(self):
        for spec in (FAT_TREE, TORUS, DRAGONFLY, STAR):
            with self.subTest(spec["kind"]):
                self.same_machine(spec)

    def test_graphml(self):
        root = xml.fromstring(self.run_weft("topology", self.write(DRAGONFLY), "--export", "graphml").out)
        space = {"g": "http://graphml.graphdrawing.org/xmlns"}
        names = {key.get("id"): key.get("attr.name") for key in root.findall("g:key", space)}
        nodes = [{names[data.get("key")]: data.text for data in node} for node in root.iter(f"{{{space['g']}}}node")]
        edges = [{names[data.get("key")]: data.text for data in edge} for edge in root.iter(f"{{{space['g']}}}edge")]
        self.assertEqual((len(nodes), len(edges)), (108, 162))
        self.assertEqual(nodes[3], {"name": "host3", "kind": "host", "tier": "0", "group": "0"})
        self.assertEqual(sum(edge["class"] == "global" for edge in edges), 36)
        self.assertEqual({(edge["rate_bps"], edge["delay_ps"]) for edge in edges}, {("100000000000", "1000000")})

    def test_dot(self):
        lines = self.run_weft("topology", self.write(DRAGONFLY), "--export", "dot").out.splitlines()
        self.assertEqual(sum(" -- " in line for line in lines), 162)
        self.assertIn('  host0 -- switch0 [class="host", rate_bps="100000000000", delay_ps="1000000"];', lines)


class Pictures(TopologyTest):
    MACHINES = [FAT_TREE, TORUS, DRAGONFLY, STAR, {"kind": "hypercube", "dimensions": 4, **LINKS},
                {"kind": "slim_fly", "q": 5, **LINKS}, {"kind": "line", "links": 3, **LINKS}]

    def picture(self, spec, name):
        path = self.folder / name
        self.run_weft("topology", self.write(spec), "--picture", path, "--quiet")
        return path.read_bytes()

    def test_svg(self):
        for spec in self.MACHINES:
            with self.subTest(spec["kind"]):
                root = xml.fromstring(self.picture(spec, "machine.svg"))
                report = self.report(spec)
                tags = [element.tag.split("}")[1] for element in root]
                self.assertEqual(tags.count("circle"), report["hosts"] + report["switches"])
                classes = len({item["class"] for item in report["links_by_class"]})
                self.assertGreaterEqual(tags.count("polyline"), report["links"] + classes)  # and the legend
                size = int(root.get("width")), int(root.get("height"))
                for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
                    for centre, most in zip((circle.get("cx"), circle.get("cy")), size):
                        self.assertTrue(0 < float(centre) < most)

    def test_png(self):
        """As large as the SVG; its discs are where the SVG has them, in the same colours."""
        for spec in self.MACHINES:
            with self.subTest(spec["kind"]):
                root = xml.fromstring(self.picture(spec, "machine.svg"))
                pixels = matplotlib.image.imread(io.BytesIO(self.picture(spec, "machine.png")))[:, :, :3]
                self.assertEqual(pixels.shape[:2], (int(root.get("height")), int(root.get("width"))))
                self.assertTrue(0.001 < (pixels.mean(axis=2) < 0.5).mean() < 0.5)
                for disc in root.iter("{http://www.w3.org/2000/svg}circle"):
                    if float(disc.get("r")) < 2:
                        continue
                    found = pixels[int(float(disc.get("cy"))), int(float(disc.get("cx")))]
                    self.assertLess(abs(found - matplotlib.colors.to_rgb(disc.get("fill"))).max(), 0.02, disc.attrib)

    def test_png_without_matplotlib(self):
        (self.folder / "matplotlib.py").write_text("raise ImportError('not here')\n")
        done = weft("topology", self.write(STAR), "--picture", "machine.png", folder=self.folder,
                    extra={"PYTHONPATH": str(self.folder)})
        self.assertEqual(done.code, EXIT_ENVIRONMENT, done)
        self.assertIn("install python3-matplotlib", done.err)
        self.assertFalse((self.folder / "machine.png").exists())


class Errors(TopologyTest):
    def test_words(self):
        path = self.write(STAR)
        for words, pattern in [(["topology"], "needs"), (["topology", path, "--export", "svg"], "graphml, dot, yaml"),
                               (["topology", path, "--picture", "machine.gif"], r"FILE\.svg or FILE\.png"),
                               (["topology", path, "-o", "x"], "--export"),
                               (["topology", path, "--processes", "0"], "1 or more")]:
            done = weft(*words, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertRegex(done.err, pattern)

    def test_machines(self):
        """g > a h + 1, an odd k, a rate of zero, a disconnected graph: file:line and the expected value."""
        cases = [({**DRAGONFLY, "g": 10}, r"\.yaml:\d+: `g`: .*at most a h \+ 1 = 9"),
                 ({**FAT_TREE, "k": 5}, r"must be even"), ({**STAR, "link_rate": "0 Gb/s"}, "above 0"),
                 ({"kind": "graph", "hosts": 2, "switches": 2, **LINKS,
                   "links": [{"from": "host0", "to": "switch0"}, {"from": "host1", "to": "switch1"}]},
                  "cannot be reached")]
        for spec, pattern in cases:
            done = weft("topology", self.write(spec), folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertRegex(done.err, pattern)


if __name__ == "__main__":
    unittest.main()
