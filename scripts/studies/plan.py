# SPDX-License-Identifier: GPL-2.0-only
"""`weft plan`: time and memory of a run on several numbers of processes, from counts and measurements."""

import json
import math
import os
import subprocess

from support import nodes
from support.errors import StudyError
from support.input_files import cannot_open
from support.quantities import parse_quantity, readable
from weft_commands.compare_inputs import ABSENT, differing, flattened
from weft_results.container import open_run

from .calibration import Calibration, Counted
from .identity import Program, environment, printed_object
from .summary import aligned

# Processes wait once per epoch: in the memory of a node, each on its own core (docs/concepts/performance.md), and then
# nodes in pairs. Assumed, not measured.
BARRIER_IN_NODE = 0.3e-6  # s
BARRIER_OF_NODES = 2e-6  # s for each doubling of the number of nodes
PARTITION_SECONDS = 30  # limit for `weft topology`


class Plan:
    """Figures of a run; `rows` has one entry per number of processes."""

    at_least = False  # it may last longer

    def __init__(self, experiment, settings, processes, seconds, cores, tell):
        program, base = Program(), base_of(experiment)
        words = [experiment] + [word for setting in settings for word in ("--set", setting)]
        counted = Counted(program, words)
        data = with_settings(base, settings)
        measured = Calibration(program, words, seconds, tell)
        self.unit = "messages" if counted.by_message else "packet-hops"
        done = measured.messages if counted.by_message else measured.packet_hops
        self.counted_work = counted.work
        self.work = done if measured.complete else max(counted.work, done)
        self.complete, self.calibrated, self.calibration_seconds = measured.complete, done, measured.wall_seconds
        self.seconds_per_work = measured.seconds_per(done)
        self.simulated_ps = measured.simulated_ps * (1 if measured.complete else self.work / done)
        until = self.until_ps = end_of(data)
        # Where weft describe does not count everything, nobody knows the end of a run that has not reached it.
        uncounted = not measured.complete and (done > counted.work or has_uncounted_traffic(data))
        self.at_least = bool(uncounted and not until)
        if until and (uncounted or until < self.simulated_ps):
            self.work, self.simulated_ps = self.work * until / self.simulated_ps, until
        self.parallelism, self.build_seconds = measured.parallelism, measured.build_seconds
        self.libraries, self.cores = measured.libraries, cores
        # On every process: libraries, and the machine's graph. Divided among processes: nodes, ranks, queues, and rows,
        # while there is room for them.
        self.row_bytes = measured.row
        self.message_rows, self.rows_in_memory = counted.rows(output_of(data))
        self.memory_each = measured.libraries + counted.each
        share = measured.messages / max(1, counted.messages)
        rows = min(self.message_rows * share, self.rows_in_memory)
        self.memory_shared = max(counted.shared, measured.memory - self.memory_each - self.row_bytes * rows)
        if until:
            self.message_rows *= min(1.0, self.work / max(1, counted.work))
        tell("partitioning")
        self.partitions = partitions(program, words, processes)
        self.rows = [self.row(number) for number in processes]

    def row(self, processes):
        """Divided work takes at least as long as its longest chain, and at most that time plus its even share (Brent
        1974, doi:10.1145/321812.321815); processes wait once per epoch."""
        part = self.partitions.get(processes, {})
        lookahead = part.get("lookahead_ps", 0) if part.get("cut_links", 0) else 0
        epochs = self.simulated_ps / lookahead if lookahead else 0
        work = self.work * self.seconds_per_work
        if processes > 1:
            chain = work / max(1.0, self.parallelism) if self.parallelism else 0
            work = (work - chain) / processes * part.get("balance", 1.0) + chain
        nodes = math.ceil(processes / self.cores)
        barrier = 0 if processes == 1 else BARRIER_IN_NODE + BARRIER_OF_NODES * math.ceil(math.log2(nodes))
        seconds = self.build_seconds + work + epochs * barrier
        rows = min(self.message_rows / processes, self.rows_in_memory)
        memory = self.memory_each + self.memory_shared / processes + self.row_bytes * rows
        return {"processes": processes, "wall_seconds": seconds, "memory": memory, "memory_of_all": memory * processes,
                "lookahead_ps": lookahead, "epochs": epochs, "known_partition": bool(part),
                "work_per_epoch": self.work / epochs / processes if epochs else 0,
                "basis": "at least" if self.at_least else
                         "measured" if processes == 1 and self.complete else "extrapolated"}

    def as_data(self):
        return {name: value for name, value in vars(self).items() if name != "partitions"}


def base_of(experiment):
    """The map in the file of an experiment."""
    root = nodes.load(experiment)[1]
    if not root.is_map():
        raise root.error(f"found {root.found()}; expected the map of an experiment")
    return root.data()


def with_settings(data, settings):
    """An experiment after its settings."""
    for setting in settings:
        path, _, value = setting.partition("=")
        data = nodes.with_value(data, path, nodes.parse(value, "--set").data() if value else None)
    return data


def has_uncounted_traffic(data):
    """True with TCP transfers, or with jobs that continue until all others have ended."""
    jobs = nodes.at_path(data, "workload.jobs")
    return bool(data.get("background")) or any(isinstance(job, dict) and job.get("background") == "true"
                                               for job in (jobs if isinstance(jobs, list) else []))


def end_of(data):
    """`simulation.until` in ps, or None."""
    until = nodes.at_path(data, "simulation.until")
    found = parse_quantity(until) if isinstance(until, str) else None
    return found[0] if found else None


def output_of(data):
    """The map `output` of an experiment."""
    output = data.get("output")
    return output if isinstance(output, dict) else {}


def partitions(program, words, processes):
    """{number: output of `weft topology` for the machine on that number of processes}, empty if it takes too long."""
    many = [str(number) for number in processes if number > 1]
    if not many:
        return {}
    try:
        done = subprocess.run([program.path, "topology", *words, "--json", "--processes", *many], capture_output=True,
                              text=True, errors="surrogateescape", timeout=PARTITION_SECONDS, stdin=subprocess.DEVNULL,
                              env=environment(), check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return {}
    return {part["processes"]: part for part in printed_object(done.stdout, "topology --json")["partitions"]}


def load_plan(path):
    """The file written by `weft plan -o`."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        return data if isinstance(data, dict) and "rows" in data else refuse_plan(path)
    except OSError as error:
        raise StudyError(f"{path}: {cannot_open(path) or error.strerror}") from None
    except ValueError:
        refuse_plan(path)


def refuse_plan(path):
    raise StudyError(f"{path}: it is no plan; expected a file that `weft plan -o FILE.json` has written")


def read_run(path):
    """Figures of a run from its results file."""
    with open_run(path) as file:
        try:
            if not file.attrs["complete"]:
                raise StudyError(f"{path}: it is of a run that was interrupted or cut short; expected a complete one")
            table = file["manifest/parallel"]
            texts = (file.get("manifest/run/effective_experiment"), file.get("manifest/experiment_text"))
            text = next((one.asstr()[()] for one in texts if one is not None), "")
            return {"experiment": text, "processes": len(table["process"]), "packet-hops": int(table["packet_hops"][:].sum()),
                    "messages": int(sum(file["ranks/messages"][:])) if "ranks/messages" in file else 0,
                    "memory": int(table["peak_memory"][:].max()),
                    "wall_seconds": float(table.attrs["wall_seconds"] + table.attrs["build_seconds"]),
                    "processor_seconds": float(table.attrs.get("processor_seconds", 0))}
        except (OSError, KeyError) as error:
            raise StudyError(f"{path}: it is damaged: {error}") from None


def require_same_experiment(run, path, experiment, settings):
    """An error if the results file `path` is of another experiment than that file after its settings."""
    planned = with_settings(base_of(experiment), settings)
    ran = nodes.parse(run["experiment"], path).data()
    for one in differing(flattened(nodes.plain(planned)), flattened(nodes.plain(ran))):
        here, there = (flattened(data).get(one["key"], ABSENT) for data in (planned, ran))
        raise StudyError(f"'{path}' is of another experiment than '{experiment}': {one['key']} is {there} in it, and "
                         f"{here} here; expected a run of this experiment with the same --set")


def check(plan, run):
    """[(figure, predicted, actual, ratio of the larger to the smaller)]."""
    row = next((row for row in plan["rows"] if row["processes"] == run["processes"]), None)
    if row is None:
        raise StudyError(f"the run had {run['processes']} processes, the plan has "
                         f"{', '.join(str(row['processes']) for row in plan['rows'])}; expected --processes with that")
    pairs = [("wall time", row["wall_seconds"], run["wall_seconds"]), ("memory", row["memory"], run["memory"])]
    if run["processes"] == 1 and run.get("processor_seconds"):  # its time without other load
        pairs.append(("processor time", row["wall_seconds"], run["processor_seconds"]))
    if plan["unit"] == "packet-hops":
        pairs.insert(0, ("packet-hops", plan["counted_work"], run["packet-hops"]))
    return [(name, predicted, actual, max(predicted, actual) / max(1e-9, min(predicted, actual)))
            for name, predicted, actual in pairs]


def seconds_text(seconds):
    if seconds < 120:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def value_text(name, value):
    if name.endswith("time"):
        return seconds_text(value)
    if name == "memory":
        return f"{value / 2**20:.1f} MiB" if value < 2**30 else f"{value / 2**30:.2f} GiB"
    return f"{value:,}"


def busy_text(plan):
    """The way in which times were measured; on a busy machine also the share of a processor that the run had."""
    share = plan["seconds_per_work"] * plan["calibrated"] / max(1e-9, plan["calibration_seconds"])
    return "measured: processor time" + (f"; the run had {100 * share:.0f} % of a processor" if share < 0.8 else "")


def plan_text(experiment, plan):
    cut = plan.get("until_ps") and plan["simulated_ps"] >= plan["until_ps"]
    how = "to its end" if plan["complete"] else "its beginning"
    facts = [
        [plan["unit"], f"{plan['counted_work']:,}", "counted by weft describe" + (
            ", of the whole run; it ends at simulation.until" if cut else "")],
        ["calibration", f"{plan['calibrated']:,} {plan['unit']} in {plan['calibration_seconds']:.2f} s",
         f"measured: {how}, one process"],
        ["time of each", f"{plan['seconds_per_work'] * 1e9:.1f} ns", busy_text(plan)],
        ["simulated time", readable(round(plan["simulated_ps"]), "ps"),
         "measured" if plan["complete"] else "at least: weft describe does not count background traffic, or packets that "
         "are sent again" if plan.get("at_least") else "extrapolated from the calibration"],
        ["parallelism", f"{plan['parallelism']:.3g}" if plan["parallelism"] else "not known",
         "measured: more processes than that gain nothing"],
        ["memory of libraries", value_text("memory", plan["libraries"]), "measured"],
        ["memory of a row", f"{plan['row_bytes']:.0f} B",
         f"measured; {plan['message_rows']:,.0f} of messages, {plan['rows_in_memory']:,} at a time in a process"],
    ]
    lines = [["processes", "wall time", "memory of each", "of all", "lookahead", f"{plan['unit']} per epoch", ""]]
    for row in plan["rows"]:
        epoch = f"{row['work_per_epoch']:.3g} of each" if row["epochs"] else ""
        beyond = 0 < plan["parallelism"] < row["processes"]
        notes = [row["basis"]] + ["beyond the parallelism"] * beyond + [
            "partition not looked at"] * (row["processes"] > 1 and not row["known_partition"])
        lines.append([str(row["processes"]), seconds_text(row["wall_seconds"]), value_text("memory", row["memory"]),
                      value_text("memory", row["memory_of_all"]),
                      readable(row["lookahead_ps"], "ps") if row["lookahead_ps"] else "", epoch, ", ".join(notes)])
    return f"\n  {experiment}\n\n{aligned(facts)}\n\n{aligned(lines)}\n"


def check_text(pairs, run):
    lines = [["figure", "planned", "run", "off by"]]
    for name, predicted, actual, ratio in pairs:
        lines.append([name, value_text(name, predicted), value_text(name, actual), f"a factor of {ratio:.3f}"])
    return f"\n  {run['processes']} processes\n\n{aligned(lines)}\n"
