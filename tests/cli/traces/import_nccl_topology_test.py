#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft import nccl-topology`: files as NCCL and RCCL write them on servers and virtual machines, and the all-reduces of these."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, SOURCE, ProgramTest, table, weft  # noqa: E402

GPUS = 8
MEASURED = SOURCE / "validation" / "published" / "nvlink" / "measured.csv"
SWITCHES = [("f5", 5), ("f4", 5), ("f3", 4), ("f6", 4)]  # the NVLinks of an H100 to its four NVSwitches


def pci(bus, kind, inside="", device="0x0000", vendor="0x0000", lanes=16, speed="32.0 GT/s PCIe"):
    return (f'<pci busid="{bus}" class="{kind}" vendor="{vendor}" device="{device}" link_speed="{speed}" '
            f'link_width="{lanes}">\n{inside}</pci>\n')


def nic(number, **more):
    return pci(f"0000:{0x80 + number:x}:00.0", "0x020000",
               f'<nic>\n<net name="mlx5_{number}" dev="{number}" speed="400000" port="1"/>\n</nic>\n', **more)


def system(sockets, vendor="GenuineIntel"):
    cpus = "".join(f'<cpu numaid="{number}" arch="x86_64" vendor="{vendor}" familyid="6" modelid="143">\n{inside}</cpu>\n'
                   for number, inside in enumerate(sockets))
    return f'<system version="1">\n{cpus}</system>\n'


def nvidia(capability=90, device="0x2330", links=SWITCHES, lanes=16, adapter="0x15b3"):
    """Four PCIe switches below each of two sockets, each with a GPU and a NIC."""
    sockets = ["", ""]
    for gpu in range(GPUS):
        nvlinks = "".join(f'<nvlink target="0000:{bus}:00.0" count="{count}" tclass="0x068000"/>\n' for bus, count in links)
        pair = pci(f"0000:{0x20 + gpu:x}:00.0", "0x030200",
                   f'<gpu dev="{gpu}" sm="{capability}" rank="{gpu}" gdr="1">\n{nvlinks}</gpu>\n', device, "0x10de", lanes)
        sockets[gpu // 4] += pci(f"0000:{0x10 + gpu:x}:00.0", "0x060400", pair + nic(gpu, vendor=adapter, lanes=lanes))
    return system(sockets)


def virtual_machine():
    """As libvirt shows one: no PCIe switches, no sockets, NVSwitches unknown."""
    inside = "".join(pci(f"0000:{0x20 + gpu:x}:00.0", "0x030200",
                         f'<gpu dev="{gpu}" sm="90" rank="{gpu}" gdr="1">\n<nvlink target="fffffff:ff:ff.0" count="18" '
                         f'tclass="0x068000"/>\n</gpu>\n', "0x2335", "0x10de", speed="16.0 GT/s PCIe") for gpu in range(GPUS))
    return system([inside + "".join(nic(number, speed="16.0 GT/s PCIe") for number in range(GPUS))])


def amd(gcn="gfx942", gpus=GPUS):
    sockets = ["", ""]
    for gpu in range(gpus):
        links = "".join(f'<xgmi target="00{peer}1:00:00.0" count="1" tclass="0x120000"/>\n' for peer in range(gpus) if peer != gpu)
        sockets[2 * gpu // gpus] += pci(f"00{gpu}1:00:00.0", "0x120000",
                                        f'<gpu dev="{gpu}" sm="304" gcn="{gcn}" rank="{gpu}" gdr="1">\n{links}</gpu>\n',
                                        "0x74b5", "0x1002") + nic(gpu)
    return system(sockets, "AuthenticAMD")


class Topologies(ProgramTest):
    def imported(self, text, *words):
        self.write(text, "node.xml")
        self.run_weft("import", "nccl-topology", "node.xml", "-o", "node.yaml", *words)
        return (self.folder / "node.yaml").read_text()

    def bus_bandwidth(self, size="1 GiB"):
        """Of the all-reduce of the experiment, in GB/s as nccl-tests counts it."""
        _, path = self.simulate(self.folder / "node.yaml", "--set", f"workload.size={size}")
        return table(path, "collectives")["busbw"][0]

    def test_servers_that_are_known(self):
        for text, name in ((nvidia(), "hgx_h100"), (nvidia(device="0x2335"), "hgx_h200"), (nvidia(adapter="0x1d0f"), "aws_p5"),
                           (nvidia(100, "0x2901"), "hgx_b200"), (nvidia(80, "0x20b0", [("f5", 12)]), "dgx_a100"),
                           (virtual_machine(), "hgx_h200"), (amd(), "mi300x"), (amd("gfx950"), "mi355x")):
            self.assertIn(f"\n    design: {name}\n", self.imported(text))
        self.assertIn("collective_transport: efa", self.imported(nvidia(80, "0x20b0", [("f5", 12)], adapter="0x1d0f")))

    def test_servers_that_are_not(self):
        """Fewer GPUs, or fewer links than those of the server: what the file has, and NCCL's search."""
        for text in (amd(gpus=4), nvidia(90, links=[("f5", 4)]), nvidia(80, links=[("f5", 12), ("f6", 12)])):
            self.assertNotIn("\n    design: ", self.imported(text))
        self.imported(amd(gpus=4))
        self.simulate(self.folder / "node.yaml")

    def test_h100(self):
        """An all-reduce of 256 MiB as in validation/published/nvlink/measured.csv. On a virtual machine that knows no PCIe lanes it is
        as fast: data go over NVLink."""
        size = 256 * 2**20
        measured = next(float(line.split(",")[-1]) for line in MEASURED.read_text().splitlines()
                        if line.startswith(f"H100,all_reduce,8,{size},"))  # us
        self.imported(nvidia())
        known = self.bus_bandwidth(f"{size} B")
        self.assertAlmostEqual(known / (2 * 7 / 8 * size / measured / 1e3), 1, delta=0.05)
        self.imported(nvidia(lanes=0))
        self.assertAlmostEqual(self.bus_bandwidth(f"{size} B"), known, delta=known / 1000)

    def test_mi300x(self):
        """315 GB/s were measured for 2 GiB (github.com/Azure/AI-benchmarking-guide, ND_MI300X_v5_results.md). Over PCIe alone, without
        Infinity Fabric, it would be 15."""
        self.imported(amd())
        self.assertAlmostEqual(self.bus_bandwidth() / 315, 1, delta=0.05)

    def test_two_servers(self):
        """As two ready-made servers on the same switch. 300 GB/s and more are usual; each of two servers has to send the size once, half
        of it to be summed and half as a sum, over eight NICs of 50 GB/s: 2 x 15 / 16 x 400 GB/s is the most."""
        text = self.imported(nvidia(), "--servers", "2")
        self.assertIn("hosts: 16", text)
        self.assertIn("link_rate: 400000 Mb/s", text)
        known = self.bus_bandwidth("256 MiB")
        self.assertGreater(known, 300)
        self.assertLess(known, 2 * 15 / 16 * 400)
        of_the_file = ("nccl_topology", "smp_")
        self.write("".join(line for line in text.splitlines(True) if not line.strip().startswith(of_the_file)), "node.yaml")
        self.assertAlmostEqual(self.bus_bandwidth("256 MiB") / known, 1, delta=0.01)

    def test_speeds_that_differ(self):
        self.write(nvidia().replace('speed="400000"', 'speed="100000"', 1), "node.xml")
        done = weft("import", "nccl-topology", "node.xml", "--servers", "2", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("found 100000, 400000; expected one for all", done.err)
        done = weft("import", "nccl-topology", "node.xml", "--servers", "100000", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("expected 1 to 8191", done.err)

    def test_pcie_alone(self):
        """As in the files that clouds give for NCCL_TOPO_FILE."""
        self.write(system([pci("0001:00:00.0", "0x030200") + pci("0101:00:00.0", "0x020700")]), "cloud.xml")
        done = weft("import", "nccl-topology", "cloud.xml", "-o", "cloud.yaml", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("cloud.xml:1: expected a <system> with two <gpu> or more", done.err)
        self.assertIn("NCCL_TOPO_DUMP_FILE", done.err)


if __name__ == "__main__":
    unittest.main()
