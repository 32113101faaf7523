# SPDX-License-Identifier: GPL-2.0-only
from dragonflies import throughput

SOURCE = "Besta, Hoefler 2014"
ROUTINGS = {"minimal": "shortest_path_lanes", "Valiant": "shortest_path_valiant", "UGAL-L": "shortest_path_ugal"}
Q, P, DEGREE = 5, 4, 7
ROUTERS = 2 * Q * Q


def second_along_pentagons():
    """(0, x, y) is joined to (0, x, y + 1) and (1, m, c) to (1, m, c + 2): two such steps are 2 and, modulo 5, 4."""
    pairs = []
    for router in range(ROUTERS):
        column, place = divmod(router, Q)
        other = column * Q + (place + (2 if column < Q else 4)) % Q
        pairs += [[router * P + i, other * P + i] for i in range(P)]
    return pairs


def check(case):
    detour = 2 * (DEGREE + 2 * (ROUTERS - 2 - DEGREE)) / (ROUTERS - 2)
    minimal, valiant = 1 / (2 * P), ROUTERS * DEGREE / (ROUTERS * P * detour)
    bounds = {"minimal": minimal, "Valiant": valiant, "UGAL-L": minimal + valiant}
    worst = {"pattern": "pairs", "pairs": second_along_pentagons(), "size": "1 MB"}
    found = {name: throughput(case, routing, worst, 1) for name, routing in ROUTINGS.items()}
    for name, bound in bounds.items():
        case.add(f"second router along a pentagon: throughput of {name}", f"≤ {bound:.3f}", f"{found[name]:.3f}",
                 f"{100 * (found[name] / bound - 1):+.0f} %", found[name] <= bound)
    better = max(found["minimal"], found["Valiant"])
    case.add("second router along a pentagon: UGAL-L beside the better of minimal and Valiant", f"≥ {0.9 * better:.3f}", f"{found['UGAL-L']:.3f}",
             f"{100 * (found['UGAL-L'] / better - 1):+.0f} %", found["UGAL-L"] >= 0.9 * better)
    messages = ROUTERS * P - 1
    most = messages / (P * P * (1 + 2 * (DEGREE - 1)))
    value = throughput(case, ROUTINGS["minimal"], {"pattern": "all_to_all", "size": "16 KiB"}, messages)
    case.add("all-to-all: throughput of minimal", f"≤ {most:.3f}", f"{value:.3f}", f"{100 * (value / most - 1):+.0f} %", value <= most)
