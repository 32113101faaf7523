# SPDX-License-Identifier: GPL-2.0-only
"""The file that NCCL writes to NCCL_TOPO_DUMP_FILE, as a server. weft reads the file itself
(docs/reference/topologies.md); its experiment has an all-reduce as a first workload."""

import re

from importing.errors import InputError, read_bytes
from importing.imported import Imported, Input, Map

SUMMARY = "a server from NCCL's topology file (NCCL_TOPO_DUMP_FILE)"
# Values that NCCL's file does not have: delays of NVLink and PCIe as in weft's own servers (topologies/servers), the
# rate between sockets from NCCL's src/graph/topo.h.
USUAL = {"nvlink_delay": "300 ns", "pcie_delay": "500 ns", "smp_rate": "16 GB/s", "smp_delay": "200 ns"}
ARCHITECTURES = [(100, "blackwell"), (90, "hopper"), (80, "ampere"), (70, "volta")]


def add_arguments(parser):
    parser.add_argument("input", metavar="TOPOLOGY.xml")


def matches(path):
    try:
        return bool(re.match(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<system\b", read_bytes(path, 1 << 14), re.DOTALL))
    except InputError:
        return False


def read(options):
    text = read_bytes(options.input)
    gpus = re.findall(rb'<gpu\s[^>]*?sm="([0-9]+)"', text)
    if not matches(options.input) or len(gpus) < 2:
        raise InputError(options.input, 1, "expected a <system> with two <gpu> or more")
    imported = Imported([options.input], len(gpus), [f"The server of {options.input}."])
    design = Map(nccl_topology=Input(options.input))
    design["architecture"] = next((name for least, name in ARCHITECTURES if int(gpus[0]) >= least), "volta")
    design.update(USUAL)
    design.comments["nvlink_delay"] = "The file says nothing of these."
    imported.topology = Map(kind="server", design=design)
    imported.workload = Map(kind="collective", collective="all_reduce", size="1 MiB")
    imported.workload.about = "The file has no workload: this is one to begin with."
    return imported
