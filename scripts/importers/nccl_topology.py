# SPDX-License-Identifier: GPL-2.0-only
"""The file that NCCL writes to NCCL_TOPO_DUMP_FILE, as a server. weft reads the file itself
(docs/reference/topologies.md); its experiment has an all-reduce as a first workload."""

import re

from importing.errors import InputError, read_bytes
from importing.imported import Imported, Input, Map
from importing.machines import DELAY, PORTS

SUMMARY = "a server from the topology file of NCCL or RCCL (NCCL_TOPO_DUMP_FILE)"
# Values that the file does not have: delays of links as in weft's own servers (topologies/servers), the rate between
# sockets from NCCL's src/graph/topo.h.
SOCKETS = {"smp_rate": "16 GB/s", "smp_delay": "200 ns"}
NVIDIA = {"nvlink_delay": "300 ns", "pcie_delay": "500 ns", **SOCKETS}
AMD = {"nvlink_delay": "100 ns", "pcie_delay": "200 ns", **SOCKETS}
ARCHITECTURES = [(100, "blackwell"), (90, "hopper"), (80, "ampere"), (70, "volta")]
# Servers of topologies/servers by compute capability and NVLinks of each GPU, and by RCCL's name of the architecture. H200s
# have the capability and the links of H100s (PCI ID: pci-ids.ucw.cz, 10de:2335); 1d0f is Amazon's vendor ID.
OF_NVIDIA = {(80, 12): "dgx_a100", (90, 18): "hgx_h100", (100, 18): "hgx_b200"}
H200, AMAZON = "0x2335", b'vendor="0x1d0f"'
OF_AWS = {"hgx_h100": "aws_p5", "hgx_h200": "aws_p5en", "hgx_b200": "aws_p6_b200"}
OF_AMD = {"gfx942": "mi300x", "gfx950": "mi355x"}
EXPECTED = "expected a <system> with two <gpu> or more"
PCIE_ALONE = ("; this one has PCI devices alone, as clouds' files for NCCL_TOPO_FILE often have: run any program of NCCL there with "
              "NCCL_TOPO_DUMP_FILE=FILE and import that FILE, which has GPUs and NVLinks")


def add_arguments(parser):
    parser.add_argument("input", metavar="TOPOLOGY.xml")
    parser.add_argument("--servers", type=int, default=1, metavar="N",
                        help="servers like it, on one non-blocking switch with links as fast as their NICs (1, without a network)")


def matches(path):
    try:
        return bool(re.match(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<system\b", read_bytes(path, 1 << 14), re.DOTALL))
    except InputError:
        return False


def read(options):
    text = read_bytes(options.input)
    gpus = re.findall(rb"<gpu\s[^>]*>", text)
    if not matches(options.input):
        raise InputError(options.input, 1, EXPECTED)
    if len(gpus) < 2:
        raise InputError(options.input, 1, EXPECTED + (PCIE_ALONE if not gpus and re.search(rb"<pci\s", text) else ""))
    imported = Imported([options.input], len(gpus), [f"The server of {options.input}."])
    amd, known = b"gcn=" in gpus[0], ready_made(gpus, text)
    design = Map()
    if known:
        design.put("design", known, "Kernels, transports and tuning are those of this server; the links are those of the file.")
        design["cpu"] = processor(text)
    elif not amd:
        design["architecture"] = next((name for least, name in ARCHITECTURES if capability(gpus[0]) >= least), "volta")
    design["nccl_topology"] = Input(options.input)
    if known == "dgx_a100" and AMAZON in text:
        design["collective_transport"] = "efa"
    design.update(AMD if amd else NVIDIA)
    design.comments["nvlink_delay"] = "The file says nothing of these."
    imported.topology = Map(kind="server", design=design)
    if options.servers != 1:
        imported.topology = cluster(options, text, design)
        imported.ranks *= options.servers
    imported.workload = Map(kind="collective", collective="all_reduce", size="1 MiB")
    imported.workload.about = "The file has no workload: this is one to begin with."
    return imported


def cluster(options, text, design):
    """`--servers` of them, with `net` elements as NICs of their `speed` in Mb/s."""
    nets = re.findall(rb"<net\s[^>]*>", text)
    ports = len(nets) * options.servers
    if options.servers < 1 or ports > PORTS:
        raise InputError(options.input, None, f"--servers {options.servers}: expected 1 to {max(1, PORTS // max(1, len(nets)))}, as "
                         f"many as one switch has ports for; import one server, and put it on a network of your own")
    speeds = {int(speed[1]) if (speed := re.search(rb'\bspeed="([0-9]+)"', net)) else 0 for net in nets}
    if len(speeds) != 1 or not min(speeds):
        found = ", ".join(map(str, sorted(speeds))) or "no <net>"
        raise InputError(options.input, 1, f"the speed of the NICs: found {found}; expected one for all, in Mb/s, such as "
                         '<net speed="400000" ...>')
    topology = Map(kind="star", hosts=ports, link_rate=f"{speeds.pop()} Mb/s", link_delay=DELAY, server=design)
    topology.about = "A non-blocking switch: put your network here, with `server` beside its keys."
    return topology


def capability(gpu):
    found = re.search(rb'\bsm="([0-9]+)"', gpu)
    return int(found[1]) if found else 0


def processor(text):
    """As NCCL tells them apart (src/graph/topo.cc, kvDictCpuArch and kvDictCpuVendor)."""
    if b'arch="arm64"' in text:
        return "arm"
    return "amd" if b'vendor="AuthenticAMD"' in text else "intel"


def ready_made(gpus, text):
    """The server of eight GPUs in topologies/servers that has these GPUs, all joined alike; None if it is none of them."""
    if len(gpus) != 8:
        return None
    gcn = {name[0] if (name := re.findall(rb'\bgcn="([^"]*)"', gpu)) else b"" for gpu in gpus}
    if gcn != {b""}:
        whole = len(re.findall(rb"<xgmi\s", text)) == 8 * 7
        return OF_AMD.get(gcn.pop().decode()) if whole and len(gcn) == 1 else None
    devices = {device.decode() for device in re.findall(rb'<pci\s[^>]*\bdevice="(0x[0-9a-f]+)"[^>]*>\s*<gpu\s', text)}
    buses = set(re.findall(rb'<pci\s[^>]*\bbusid="([^"]*)"[^>]*>\s*<gpu\s', text))
    links = [(re.search(rb'\btarget="([^"]*)"', link), re.search(rb'\bcount="([0-9]+)"', link))
             for link in re.findall(rb"<nvlink\s[^>]*>", text)]
    if not all(target and count and target[1] not in buses for target, count in links):
        return None  # without NVSwitches
    kind = (capability(gpus[0]), sum(int(count[1]) for _, count in links) / 8)
    known = "hgx_h200" if kind == (90, 18) and devices == {H200} else OF_NVIDIA.get(kind)
    return OF_AWS.get(known, known) if AMAZON in text else known
