# SPDX-License-Identifier: GPL-2.0-only
"""`weft import infragraph`: two servers of two accelerators on a leaf switch (tests/importers/infragraph.py), with
changes."""

# Time limit: 120 s

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from import_conformance_test import samples_of
from import_testing import ImportTest

SAMPLES = samples_of("infragraph")
RATE = "gigabits_per_second: 400}"


class Infragraph(ImportTest):
    FORMAT = "infragraph"

    def files(self, *changes):
        """The names of the infrastructure and of its devices, with each (old, new) replaced."""
        names = SAMPLES.sample(self.folder)
        for old, new in changes:
            texts = [(self.folder / name).read_text() for name in names]
            self.assertTrue(any(old in text for text in texts), old)
            for name, text in zip(names, texts):
                (self.folder / name).write_text(text.replace(old, new))
        return names

    def delays(self):
        """Nanoseconds of the links between switches, in order."""
        return re.findall(r"from: switch.*delay: (\S+) ns", (self.folder / "out.topology.yaml").read_text())

    def test_units_of_latencies(self):
        """Four links between servers and the leaf, after the four of each server as it is first met."""
        for text, delay in (("{choice: ms, ms: 2}", 2 * 10**6), ("{choice: us, us: 2}", 2000),
                            ("{choice: ns, ns: 2}", 2)):
            self.imported(*self.files((RATE, f"{RATE}\n      latency: {text}")))
            self.assertEqual(sorted(map(float, self.delays())), sorted([100] * 8 + [delay] * 4))
        self.imported(*self.files())
        self.assertEqual(sorted(map(float, self.delays())), [100] * 8 + [500] * 4)

    def test_latencies_that_are_not_understood(self):
        for text in ("{ms: 2}", "{choice: s, s: 1}", "2 ms", "[2]"):
            self.refused(*self.files((RATE, f"{RATE}\n      latency: {text}")),
                         says=[r"infrastructure.yaml: link 'eth': latency .*; expected a choice of ms, us, ns"])
        self.refused(*self.files((RATE, f"{RATE}\n      latency: {{choice: us, ms: 1}}")),
                     says=["latency of 'eth': found 'None'"])
        inside = "gigabytes_per_second: 32}"
        self.refused(*self.files((inside, f"{inside}\n          latency: {{choice: s, s: 1}}")),
                     says=["link 'pcie': latency"])

    def test_both_types_of_accelerators(self):
        read = self.imported(*self.files(("type: xpu", "type: npu")))
        self.assertEqual(read["ranks"], 2 * 2)
        self.refused(*self.files(("type: xpu", "type: cpu")), says=["found 0 components of type xpu or npu"])

    def test_connections_of_a_switch(self):
        for wrong in ("asic.0.ic.prt.1", "asic.0.bus.port.1", "nonsense"):
            self.refused(*self.files(("asic.0.ic.port.1", wrong)),
                         says=[f"devices.yaml: connection '{wrong}' in 'leaf': expected COMPONENT.N.LINK.COMPONENT.N"])

    def test_the_newer_format(self):
        edges = ("edges:\n- {ep1: {instance: 'host[0]', component: 'nic[0]'}, ep2: {instance: 'host[1]', component: "
                 "'nic[0]'}, scheme: one2one, link: eth}\n")
        device = "  - name: server\n    edges:\n    - {ep1: {component: xpu}, ep2: {component: nic}, link: pcie}\n"
        for text in (f"name: dgx\n{edges}", f"devices:\n{device}", f"infrastructure:\n  devices:\n{device}"):
            (self.folder / "newer.yaml").write_text(text)
            self.refused("newer.yaml", says=["newer.yaml: it is of InfraGraph's newer format, with 'edges'.*not read"])


if __name__ == "__main__":
    unittest.main()
