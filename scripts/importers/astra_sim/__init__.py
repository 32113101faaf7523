# SPDX-License-Identifier: GPL-2.0-only
"""A whole experiment of ASTRA-sim: workload, system, network, memory, logical topology and communicator groups."""

import pathlib
import re

from importing.errors import InputError, read_bytes, whole_number
from importing.imported import Imported, Input, Map

from .. import chakra
from .analytical import Network
from .custom import Customs, Workload
from .ns3_network import Config, Physical
from .system import System, load_json

SUMMARY = "an experiment of ASTRA-sim: --workload, --system, --network and more"
POLICIES = re.compile(rb"\s*(DATA|MODEL|HYBRID_\w+|MICRO|DISTRIBUTED_INFERENCE)\b")


def add_arguments(parser):
    parser.add_argument("--workload", metavar="PREFIX|FILE.txt", required=True,
                        help="Chakra traces PREFIX.0.et, ..., or a text of ASTRA-sim 1.0")
    parser.add_argument("--system", metavar="S.json", required=True, help="system layer: collectives, chunks, delays")
    parser.add_argument("--network", metavar="N.yml|topology.txt", required=True,
                        help="analytical network, or physical topology of the ns-3 backend")
    parser.add_argument("--network-config", metavar="config.txt", help="configuration of the ns-3 backend")
    parser.add_argument("--logical", metavar="L.json", help="logical dimensions, with the ns-3 backend")
    parser.add_argument("--memory", metavar="M.json", help="remote memory")
    parser.add_argument("--groups", metavar="G.json", help="communicator groups")


def matches(_path):
    """An experiment is several files: only its workload can be recognised, and it is in another format."""
    return False


def is_text(path):
    return pathlib.Path(path).is_file() and bool(POLICIES.match(read_bytes(path, 4096)))


def read(options):
    imported = Imported([options.workload], None, [f"ASTRA-sim: {options.workload}, {options.system}, "
                                                   f"{options.network}."])
    imported.inputs += [path for path in (options.system, options.network, options.network_config, options.logical,
                                          options.memory, options.groups) if path]
    network = read_network(options, imported)
    dimensions = logical_dimensions(options, imported, network)
    system = System(options.system, dimensions, imported)
    imported.ranks = system.ranks()
    if imported.ranks < 2:
        raise InputError(options.network, None, "there is one NPU; expected two or more")
    collectives = system.collectives()
    customs = Customs(system)
    imported.workload = text_workload(options, imported, system, customs) if is_text(options.workload) else \
        chakra_workload(options, imported, system, customs)
    imported.workload.comments.update(collectives.comments)
    imported.workload.update(collectives)
    system.list_others()
    return imported


def read_network(options, imported):
    """The machine, and with it the number of NPUs in each dimension, or nothing."""
    if not options.network.endswith((".yml", ".yaml")):
        physical = Physical(options.network)
        imported.topology = physical.topology()
        if options.network_config:
            imported.network = Config(options.network_config, physical, imported).network()
        return physical
    if options.network_config:
        raise InputError(options.network_config, None, "--network-config is for a physical topology of the ns-3 "
                                                       "backend")
    network = Network(options.network, imported)
    imported.topology = network.topology(imported)
    imported.network = analytical_frames()
    return network


def analytical_frames():
    """The analytical network has neither packets nor headers."""
    frames = Map()
    frames.put("mtu", "4096 B", "That network moves whole messages at once, without headers or ACKs. Packets of RoCE "
                                "v2 take a little longer (docs/tutorial/importing.md).")
    frames.update(header="62 B", wire_overhead="20 B", ack="none")
    return frames


def logical_dimensions(options, imported, network):
    if isinstance(network, Network):
        if options.logical:
            imported.ignore(options.logical, "weft takes the logical topology from the analytical network")
        return network.sizes
    if not options.logical:
        return [len(network.hosts)]
    document, _ = load_json(options.logical)
    found = document.get("logical-dims")
    if not isinstance(found, list) or not found:
        raise InputError(options.logical, 1, "expected 'logical-dims', a list of sizes")
    dimensions = [whole_number(one, options.logical, 1, "logical-dims", 1, 1 << 20) for one in found]
    product = 1
    for size in dimensions:
        product *= size
    if product > len(network.hosts):
        raise InputError(options.logical, 1, f"logical-dims: {product} NPUs, but {options.network} has "
                         f"{len(network.hosts)} hosts")
    return dimensions


def text_workload(options, imported, system, customs):
    if customs:
        raise InputError(system.path, None, f"custom algorithms are put into Chakra traces, but {options.workload} is a "
                                            "text")
    for name in ("memory", "groups"):
        if getattr(options, name):
            imported.ignore(getattr(options, name), f"--{name}: a text workload does not use it")
    workload = Map(kind="astra_sim_text", file=Input(options.workload), ranks=imported.ranks)
    workload.put("time_unit", "1 us", "ASTRA-sim's converter takes the text's compute times for microseconds; 1 ns "
                                      "if they are nanoseconds, as its documentation says")
    return workload


def chakra_workload(options, imported, system, customs):
    stem, ending, ranks = chakra.locate(options.workload)
    if ranks != imported.ranks:
        raise InputError(f"{stem}.0{ending}", None, f"there are traces of {ranks} ranks, but {imported.ranks} NPUs in "
                         f"{options.logical or options.network}")
    imported.inputs += [f"{stem}.{rank}{ending}" for rank in range(ranks)]
    workload = Map(kind="chakra", file=Input(stem), ranks=ranks)
    if customs:
        write_customs(options, imported, system, customs, workload)
    workload.put("issue", "astra_sim", "A rank has one computation and one send or collective under way at a time.")
    if options.groups:
        check_groups(options.groups, ranks)
        workload["groups"] = Input(options.groups)
    if options.memory and (memory := read_memory(options.memory, imported)):
        workload["memory"] = memory
    if device := system.device():
        workload["device"] = imported.beside("device.yaml", lambda file: file.write(device.encode()))
        workload["precision"] = "bf16"
    return workload


def write_customs(options, imported, system, customs, workload):
    """Traces beside the experiment, with algorithms in place of collectives."""
    files = imported.inputs[-imported.ranks:]
    if not files[0].endswith((".et", ".et.gz")):
        raise InputError(files[0], None, "custom algorithms are put into traces in protobuf; this one is JSON")
    groups = check_groups(options.groups, imported.ranks) if options.groups else {}
    traces, suffix = Workload(files, customs, groups), f"{imported.ranks}ranks"
    for rank in range(imported.ranks):
        imported.beside(f"{suffix}.{rank}.et", lambda file, rank=rank: traces.write(file, rank))
    workload.put("file", imported.prefix(suffix), f"{options.workload} with custom algorithms in place of collectives")
    imported.refuse(system.place(next(key for key in system.keys if "-custom" in key)),
                    "custom algorithms: of a rank's communications that are ready at the same time, weft starts the one that "
                    "is first in its file, ASTRA-sim the one with the smallest number")


def check_groups(path, ranks):
    """The file's groups."""
    document, _ = load_json(path)
    for name, members in document.items():
        if not isinstance(members, list) or not all(isinstance(one, int) and 0 <= one < ranks for one in members):
            raise InputError(path, 1, f"group '{name}': expected a list of ranks from 0 to {ranks - 1}")
    return document


def read_memory(path, imported):
    document, _ = load_json(path)
    kind = document.get("memory-type")
    if kind == "NO_MEMORY_EXPANSION":
        return None
    if kind not in ("PER_NPU_MEMORY_EXPANSION", "PER_NODE_MEMORY_EXPANSION", "MEMORY_POOL"):
        raise InputError(path, 1, f"memory-type: found '{kind}'; NO_MEMORY_EXPANSION, PER_NPU_MEMORY_EXPANSION, "
                         "expected PER_NODE_MEMORY_EXPANSION or MEMORY_POOL")
    if kind != "PER_NPU_MEMORY_EXPANSION":
        imported.refuse(path, f"{kind}: in ASTRA-sim NPUs share this memory; in weft each NPU has its own")
    latency = whole_number(document.get("remote-mem-latency", 0), path, 1, "remote-mem-latency")
    rate = whole_number(document.get("remote-mem-bw", 0), path, 1, "remote-mem-bw", 1)
    return Map(latency=f"{latency} ns", bandwidth=f"{rate} GB/s")
