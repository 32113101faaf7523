# SPDX-License-Identifier: GPL-2.0-only
"""Random workloads: the map `workload`, of every kind, and where its ranks run. kinds/ has the kinds of many keys."""

import names
from draw import NS, US
from kinds.parts import BLOCKS, collective_options, device, ranks_of
from kinds.programs import program
from kinds.traces import chakra, goal, layer_table
from kinds.training import training

ROOTED = ("broadcast", "reduce", "gather", "scatter")


def collective(d, files, facts):
    ranks = ranks_of(d, facts.computing)
    kind = d.word(names.words("workload.collective"))
    result = {"kind": "collective", "collective": kind, "size": d.size(0 if d.chance(0.05) else 1, 400_000)}
    if d.chance(0.8):
        result["ranks"] = d.count(ranks, ranks)
    else:
        ranks = facts.computing
    if kind in ROOTED and d.chance(0.5):
        result["root"] = d.count(0, ranks - 1)
    if kind in BLOCKS and d.chance(0.15):
        blocks = [[d.between(0, 20_000) for _ in range(ranks)] for _ in range(ranks if kind == "all_to_all" else 1)]
        total = sum(map(sum, blocks))
        listed = [[f"{size} B" for size in row] for row in blocks]
        result.update(size=f"{total} B", block_sizes=listed if kind == "all_to_all" else listed[0])
    if d.chance(0.4):
        result["iterations"] = d.count(1, 4)
    if d.chance(0.2):
        result["gap"] = d.time(0, 20 * US)
    result.update(collective_options(d, files, ranks, facts))
    return result


def process(d, kind, endless):
    result = {"process": kind}
    if endless or d.chance(0.5):  # a load of tiny messages without an end would be all that is simulated
        result["interval"] = d.time(5 * US if endless else 500 * NS, 50 * US)
    else:
        result["load"] = d.number(0.05, 1.5)
    if not endless:
        if d.chance(0.7):
            result["count"] = d.count(1, 10)
        if "count" not in result or d.chance(0.2):
            result["stop"] = d.time(US, 100 * US)
    if kind == "on_off":
        result.update(on=d.time(2 * US, 50 * US), off=d.time(2 * US, 50 * US))
        if d.chance(0.6):
            result["law"] = d.word(names.words("workload.start.law"))
        if result.get("law") == "pareto" and d.chance(0.5):
            result["shape"] = d.number(1.1, 3)
    return result


def traffic(d, files, facts, endless=None):
    ranks = max(2, ranks_of(d, facts.computing))
    pattern = d.word(names.words("workload.pattern"))
    result = {"kind": "traffic", "pattern": pattern,
              "size": d.size(0, 100_000 if endless or pattern == "all_to_all" else 400_000)}
    if d.chance(0.2):
        low, high = sorted((d.between(0, 50_000), d.between(1, 100_000)))
        del result["size"]
        result["sizes"] = d.pick(["storage", [[low, 0], [low, 40], [high, 100]]])
    if d.chance(0.8):
        result["ranks"] = d.count(ranks, ranks)
    else:
        ranks = max(2, facts.computing)
    if d.chance(0.3):
        result["queue_pairs"] = d.count(1, 4)
    if d.chance(0.2):
        result["reuse_queue_pairs"] = d.random.random() < 0.3
    if endless:
        result["start"] = process(d, endless, True)
    elif d.chance(0.5):
        choice = d.random.random()
        if choice < 0.25:
            result["start"] = d.time(0, 50 * US)
        elif choice < 0.4:
            result["start"] = [d.time(0, 50 * US) for _ in range(d.between(1, 4))]
        else:
            result["start"] = process(d, d.word(names.words("workload.start.process")), False)
    if pattern in ("permutation", "uniform") and d.chance(0.5):
        result["shift"] = d.count(1, max(1, ranks - 1))
    if pattern == "uniform" and (d.chance(0.4) or "shift" in result):
        result["group"] = d.pick([n for n in range(1, ranks + 1) if ranks % n == 0])
    if pattern == "incast":
        if d.chance(0.5):
            result["destination"] = "random" if d.chance(0.3) else d.count(0, ranks - 1)
        if d.chance(0.5):
            result["sources"] = d.count(1, max(1, ranks - 1))
    if pattern == "pairs":
        result["pairs"] = [d.random.sample(range(ranks), 2) for _ in range(d.between(1, 10))]
    return result


def checkpoint(d, files, facts):
    targets = facts.storage or d.between(1, max(1, min(4, facts.computing // 2)))
    ranks = max(targets, d.between(1, max(1, min(12, facts.computing - (0 if facts.storage else targets)))))
    result = {"kind": "checkpoint", "size": d.size(1, 400_000), "ranks": d.count(ranks, ranks)}
    if not facts.storage or d.chance(0.3):
        result["targets"] = d.count(targets, targets)
    if d.chance(0.6):
        result["operation"] = d.word(names.words("workload.operation"))
    if d.chance(0.6):
        result["piece"] = d.size(1000, 300_000)
    if d.chance(0.4):
        result["device_rate"] = d.rate(10**9, 10**11)
    if d.chance(0.4):
        result["device_latency"] = d.time(0, 20 * US)
    if d.chance(0.4):
        result["count"] = d.count(1, 4)
        if d.chance(0.5):
            result["interval"] = d.time(0, 100 * US)
    return result


def recommendation(d, files, facts):
    ranks = ranks_of(d, facts.computing)
    dimension, tables = d.between(1, 16), d.between(1, 20)
    vectors = tables + 1
    result = {"kind": "recommendation", "device": d.pick(names.folder_names("workloads/devices", ".yaml")),
              "ranks": d.count(ranks, ranks), "batch": d.count(1, 32), "dimension": dimension,
              "tables": [d.count(1, 10**6) for _ in range(tables)],
              "bottom_mlp": [d.count(1, 20), d.count(1, 32), dimension],
              "top_mlp": [vectors * (vectors - 1) // 2 + dimension, d.count(1, 32), 1]}
    device(d, files, result, "device")
    if d.chance(0.4):
        result["pooling"] = d.count(1, 4)
    if d.chance(0.4):
        result["precision"] = d.word(["fp32", "tf32", "bf16", "fp16"])
    if d.chance(0.3):
        result["exchange_algorithm"] = d.word(names.algorithms())
    if d.chance(0.4):
        result["steps"] = d.count(1, 3)
    if d.chance(0.3):
        result["channels"] = d.count(1, 3)
    return result


def placement(d, hosts, ranks, first=None):
    choice = d.random.random()
    if choice < 0.15:
        return d.word(["packed", "random", "by_rail", "random_servers"])
    if choice < 0.2:
        return {"kind": "random_servers", "seed": d.count(0, 99), **({"first_server": d.count(0, 1)} if d.chance(0.3) else {})}
    if choice < 0.4:
        keys = {"kind": "random", **({"seed": d.count(0, 99)} if d.chance(0.5) else {})}
        if d.chance(0.3):
            keys["first"] = d.count(0, 1)
            keys["count"] = d.count(max(1, hosts - 1), max(1, hosts - 1))
        return keys
    if choice < 0.7 and isinstance(ranks, int) and 0 < ranks <= hosts:
        return {"hosts": d.random.sample(range(hosts), ranks)}
    room = max(0, hosts - (ranks if isinstance(ranks, int) and ranks > 0 else 1))
    keys = {"first": d.count(0, room)}
    if d.chance(0.3):
        keys["stride"] = d.count(1, 2)
    return keys


def jobs(d, files, facts):
    """Two or three jobs: side by side, or with shared hosts, or one in the background of the others."""
    count = d.between(2, 3)
    result, used = [], 0
    room = max(1, facts.computing // count)
    for number in range(count):
        background = number > 0 and d.chance(0.35)
        part = type(facts)(max(2, room) + facts.storage, facts.storage, facts.switches, facts.classes, facts.units,
                           facts.server)
        if background and d.chance(0.9):
            kind = d.pick([name for name in names.background_jobs() if name != "training"] or ["periodic"])
            work = traffic(d, files, part, endless=kind)
        else:
            kind = d.pick([name for name in names.workloads() if name != "jobs"])
            work = MAKERS[kind](d, files, part) if kind in MAKERS else {"kind": kind}
        if work.get("kind") == "collective" and d.chance(0.7):
            work.pop("algorithm", None)  # that of one of them is refused for all
        job = {"workload": work}
        if background:
            job["background"] = True
        if d.chance(0.4):
            job["name"] = f"work{number}"
        if "size" in work and d.chance(0.15):
            job["set"] = [f"size={d.size(1, 100_000)}"]
        if d.chance(0.4):
            job["start"] = d.time(0, 50 * US)
        if d.chance(0.6) and ("ranks" not in work or d.chance(0.1)):
            job["ranks"] = max(2, room)
        if d.chance(0.25):
            job["share"] = True
            job["placement"] = {"first": d.count(0, max(0, facts.computing - room))}
        elif d.chance(0.4):
            job["placement"] = {"first": d.count(used, used)}
        used += room
        result.append(job)
    keys = {"kind": "jobs", "jobs": result}
    if d.chance(0.15):
        keys["background_check"] = d.time(US, 200 * US)
    if d.chance(0.05):
        keys["only"] = [d.pick([job.get("name", f"job{i}") for i, job in enumerate(result)])]
    return keys


MAKERS = {"goal": goal, "astra_sim_text": layer_table, "chakra": chakra, "collective": collective, "traffic": traffic,
          "checkpoint": checkpoint, "training": training, "recommendation": recommendation, "program": program,
          "jobs": jobs}

WEIGHTS = {"collective": 5, "traffic": 5, "program": 3, "jobs": 2, "training": 2}


def workload(d, files, facts):
    known = list(names.workloads())
    kind = d.random.choices(known, [WEIGHTS.get(name, 1) for name in known])[0]
    result = MAKERS[kind](d, files, facts) if kind in MAKERS else {"kind": kind}
    if kind != "jobs" and d.chance(0.25):
        result["placement"] = placement(d, facts.computing, result.get("ranks", facts.computing))
    return result
