# SPDX-License-Identifier: GPL-2.0-only
"""The usage of a run, from its results file: the machine, and the time of its parts in each state."""

import re

import numpy

from support.errors import StudyError
from weft_results.container import open_run

from .bill import RATE, Links, bill_of_links
from .settings import defaults, titles_of_devices

PICO = 1e-12
BATCH = re.compile(r"(\d+) sequences of (\d+) tokens")
COPIES = re.compile(r"(\d+) of (\d+) data-parallel copies")
FLOP = re.compile(r"([0-9.e+]+), by all ranks")
MEMORY = re.compile(r"([0-9.]+) GB of")


def text_of(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def experiment_of(file):
    """The experiment as it was run, as data."""
    from support import nodes

    text = text_of(file["manifest/run/effective_experiment"][()])
    return nodes.parse(text, file.filename).data()


def storage_hosts(topology, hosts, per_server):
    """Numbers of the hosts that `topology.storage_hosts` makes storage (topologies/keys/storage_hosts.cpp)."""
    asked = topology.get("storage_hosts") if isinstance(topology, dict) else None
    if asked is None:
        return []
    if isinstance(asked, list):
        return sorted(int(host) for host in asked)
    if isinstance(asked, dict) and "every" in asked:
        return list(range(int(asked["every"]) - 1, hosts, int(asked["every"])))
    count = int(asked["servers"]) * per_server if isinstance(asked, dict) else int(asked)
    return list(range(hosts - count, hosts))


def device_of(experiment):
    """The name of the workload's device, or of that of all jobs that have one, if there are figures for it."""
    workload = experiment.get("workload")
    workload = workload if isinstance(workload, dict) else {}
    jobs = workload.get("jobs") if isinstance(workload.get("jobs"), list) else []
    each = [workload, *(job.get("workload") for job in jobs if isinstance(job, dict))]
    return the_one({str(one["device"]) for one in each if isinstance(one, dict) and "device" in one})


def device_of_run(model, experiment):
    """The same from the run's description of its jobs, whose workloads may be in other files."""
    titles = {text for name, text in model.items() if name == "device" or name.endswith(": device")}
    return the_one({titles_of_devices().get(title) for title in titles}) if titles else device_of(experiment)


def the_one(names):
    name = names.pop() if len(names) == 1 else None
    return name if name in defaults().accelerators else None


def of_text(pattern, model, name):
    match = pattern.search(model.get(name, ""))
    return [float(group) for group in match.groups()] if match else None


def work_of_step(model):
    """(tokens, FLOP, copies) of a step of a training job that runs alone, for its simulated part; otherwise None. The
    whole job is `copies` times that part."""
    batch, flop = of_text(BATCH, model, "batch"), of_text(FLOP, model, "FLOPs per step")
    simulated, all_copies = of_text(COPIES, model, "approximation") or (1, 1)
    copies = all_copies / simulated
    return batch[0] * batch[1] / copies if batch else None, flop[0] if flop else None, copies


def longest_job(file):
    """(steps, time in ps) of the job that takes longest, without background jobs; steps: None if the run ended before
    the job."""
    jobs = file["jobs"]
    time, background = jobs["time"][:], jobs["background"][:]
    row = int(numpy.where(background == 0, time, -1).argmax())
    done = jobs["step_time"][row] >= 0
    return max(1, int(jobs["steps"][row])) if done else None, int(time[row])


def of_accelerators(ranks, computing, span):
    """(computing, communicating) in ps, summed over hosts. Jobs may share a host, which is one accelerator: its times
    end with the run, and it does not communicate beside a computation."""
    nodes, place = numpy.unique(ranks["node"][:][computing], return_inverse=True)
    sums = []
    for name in ("compute", "exposed"):
        sums.append(numpy.zeros(len(nodes), numpy.int64))
        numpy.add.at(sums[-1], place, ranks[name][:][computing])
    compute = numpy.minimum(sums[0], span)
    return int(compute.sum()), int(numpy.minimum(sums[1], span - compute).sum())


def usage_of_file(file):
    experiment = experiment_of(file)
    links = Links(file)
    hosts = int((links.is_host & links.exists).sum())
    servers = links.servers()
    storage = storage_hosts(experiment.get("topology", {}), hosts, hosts // max(1, servers))
    bill = bill_of_links(links, len(storage))
    span = int(file.attrs["simulated_time"])
    ranks = file["ranks"]
    computing = ~numpy.isin(ranks["node"][:], storage)
    directions = file["links"]
    leaving = directions["from"][:]
    known = leaving < len(links.of_network)
    of_switch = known & links.of_network[numpy.where(known, leaving, 0)]
    busy = directions["busy"][:][of_switch].astype(float) * PICO * directions["rate"][:][of_switch] / RATE
    model = {name: text_of(value) for name, value in file["manifest/model"].attrs.items()}
    tokens, flop, copies = work_of_step(model)
    steps, job_time = longest_job(file)
    compute, communication = of_accelerators(ranks, computing, span)
    memory = of_text(MEMORY, model, "memory per rank")
    return {"complete": bool(file.attrs.get("complete", 1)), "bill": bill.as_data(),
            "device": device_of_run(model, experiment), "span": span * PICO, "steps": steps,
            "job_time": job_time * PICO, "tokens_per_step": tokens, "flop_per_step": flop, "copies": copies,
            "compute": compute * PICO, "communication": communication * PICO, "switch_busy": float(busy.sum()),
            "memory": None if memory is None else int(memory[0] * 1e9),
            "fits": 0 if "DOES NOT FIT" in model.get("memory per rank", "") else 1}


def usage_of(path):
    """Usage from a results file: seconds summed over accelerators, and over ports in units of RATE."""
    with open_run(path) as file:
        try:
            return usage_of_file(file)
        except (OSError, KeyError) as error:
            raise StudyError(f"{path}: it is damaged: {error}") from None
