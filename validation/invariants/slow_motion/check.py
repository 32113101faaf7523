# SPDX-License-Identifier: GPL-2.0-only
SOURCE = "change of the unit of time"
SLOWER = {"topology.link_rate": "200 Gb/s", "topology.link_delay": "1 us", "network.switch_latency": "200 ns"}
STARTS = {"workload.start": ["0 ns", "6 us", "40 us"]}
REDUCTION = {
    "workload": {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "size": "3000001 B", "iterations": 2}
}
TIMES = {
    "messages": ("issued", "delivered", "ideal"),
    "collectives": ("start", "end", "time"),
    "links": ("busy",),
    "ranks": ("finished", "communication", "exposed", "idle"),
}
SAME = {"messages": ("id", "bytes", "packets"), "links": ("bytes", "packets", "peak_queue", "mean_queue", "utilization")}


def check(case):
    times, changed = [], []
    for changes, more in (({}, STARTS), (REDUCTION, {})):
        fast, _ = case.run(changes)
        slow, _ = case.run({**changes, **SLOWER, **more})
        times.append((2 * fast.time, slow.time))
        for table, columns in TIMES.items():
            for column in columns:
                times += zip(2 * fast.tables[table][column], slow.tables[table][column], strict=True)
        for table, columns in SAME.items():
            for column in columns:
                if (fast.tables[table][column] != slow.tables[table][column]).any():
                    changed.append((table, column))
    if changed:
        raise ArithmeticError(f"what is no time changes: {changed}")
    case.exact_all("every time, at half the rates and twice the delays", times)
