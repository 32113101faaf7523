# SPDX-License-Identifier: GPL-2.0-only
"""The main charts as PNG, for papers."""

import base64
import io

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.collections import LineCollection, PolyCollection  # noqa: E402
from matplotlib.ticker import LogFormatter  # noqa: E402

from report_page.attribution import category  # noqa: E402
from report_page.sweep import pareto  # noqa: E402
from report_page.values import CODES, SIZES, TIMES  # noqa: E402

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#6b7480", "#4b3fa0", "#b04a6a",
           "#b9c1cb", "#9acd6b", "#1b9aaa", "#7f3b08", "#e8d80c", "#f2a7c3")
CATEGORY_COLOURS = {"compute": 0, "transfer": 5, "queueing": 1, "pause": 3, "retransmission": 6, "pacing": 4,
                    "credits": 8, "own": 9, "peers": 2, "local": 7, "window": 11, "sending": 12, "exposed": 1, "idle": 10,
                    "other": 10, "reordering": 13, "slowed": 14, "host": 15}
TYPES = {code: np.dtype(name) for name, code in CODES.items()}
HATCHES = ("", "////", "....")
MAX_LANES, MAX_BARS, MAX_LINKS = 96, 64, 20_000
MAX_NAMED_CASES = 24  # in the picture of a sweep
MAX_NAMES, MOST_NAMED_LINKS = 12, 2  # of switches in a row, and links whose ends have names in any case


def unpacked(array):
    return np.frombuffer(base64.b64decode(array["data"]), dtype=TYPES[array["type"]].newbyteorder("<"))


def time_axis(end):
    return next((factor, unit) for factor, unit in TIMES if end >= 2 * factor or factor == 1)


def some(count, most):
    return np.arange(count) if count <= most else np.unique(np.linspace(0, count - 1, most).round().astype(int))


def draw_timeline(run):
    data = run["timeline"]
    if data is None or data["count"] == 0:
        return None
    first, start, length = (unpacked(data[name]) for name in ("first", "start", "length"))
    phase, lanes = unpacked(data["phase"]), some(len(data["lanes"]), MAX_LANES)
    scale, unit = time_axis(run["end"])
    figure, axes = plt.subplots(figsize=(10, min(0.16 * len(lanes), 9) + 1.6), layout="constrained")
    for number, name in enumerate(data["phases"]):
        chosen = [np.flatnonzero(phase[first[lane]:first[lane + 1]] == number) + first[lane] for lane in lanes]
        rows, i = np.repeat(np.arange(len(lanes)), [len(found) for found in chosen]), np.concatenate(chosen)
        left, right, top, bottom = start[i] / scale, (start[i] + length[i]) / scale, rows - 0.43, rows + 0.43
        corners = np.stack((left, bottom, left, top, right, top, right, bottom), axis=1).reshape(-1, 4, 2)
        color = PALETTE[number % len(PALETTE)]
        axes.add_collection(PolyCollection(corners, facecolors=color, edgecolors=color, linewidths=0.3))
        axes.plot([], [], color=color, linewidth=6, label=name)
    step = -(-len(lanes) // 40)
    axes.set_yticks(range(0, len(lanes), step), [" ".join(data["lanes"][lane]) for lane in lanes[::step]], fontsize=6)
    axes.set(xlabel=f"simulated time ({unit})", xlim=(0, run["end"] / scale), ylim=(len(lanes) - 0.5, -0.5))
    axes.legend(fontsize=8, ncols=5, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    return figure


# Of a name, as shares of the picture of a machine.
NAME_WIDTH, NAME_HEIGHT = 0.1, 0.03


def named_nodes(tier, origin, target, share):
    """Nodes for whose names there is room: tiers of few switches, and both ends of the worst links, which are last."""
    counts = np.bincount(tier)
    found = {int(node) for node in np.flatnonzero((tier > 0) & (counts[tier] <= MAX_NAMES))}
    worst = [i for i in range(len(share))[-MOST_NAMED_LINKS:] if share[i] > 0]
    return sorted(found.union(*({int(origin[i]), int(target[i])} for i in worst)))


def beside(nodes, x, y):
    """(node, whether its name is above it): of two neighbours whose names would overlap the second one's is below, and a third has
    none."""
    placed = {True: [], False: []}
    for node in nodes:
        for above, others in placed.items():
            if all(abs(x[node] - x[other]) > NAME_WIDTH or abs(y[node] - y[other]) > NAME_HEIGHT for other in others):
                others.append(node)
                yield node, above
                break


def draw_topology(run):
    data = run["topology"]
    if data is None:
        return None
    x, y, origin, target = (unpacked(data[name]) for name in ("x", "y", "from", "to"))
    value, title, scale = unpacked(data["utilization"]) * 100, "utilisation (%)", 1
    if run["verdict"]["congested"] and unpacked(data["caused"]).any():
        value = unpacked(data["caused"])
        scale, unit = time_axis(value.max())
        title = f"delay caused ({unit})"
    order = np.argsort(value, kind="stable")[-MAX_LINKS:]
    a, b = np.column_stack((x, -y))[origin[order]], np.column_stack((x, -y))[target[order]]
    figure, axes = plt.subplots(figsize=(10, 5), layout="constrained")
    share = value[order] / max(value.max(), 1e-12)
    lines = LineCollection(np.stack((a, (a + b) / 2), axis=1), array=value[order] / scale, cmap="magma_r",
                           linewidths=3 * share, clim=(0, max(value.max() / scale, 1e-12)))
    axes.add_collection(LineCollection(np.stack((a, (a + b) / 2), axis=1), colors="#bbbbbb", linewidths=0.3))
    axes.add_collection(lines)
    axes.plot(x, -y, "s", color="#333333", markersize=2)
    for node, above in beside(named_nodes(unpacked(data["tier"]), origin[order], target[order], share), x, y):
        axes.annotate(data["nodes"][node], (x[node], -y[node]), (0, 5 if above else -5), textcoords="offset points", fontsize=7,
                      ha="center", va="bottom" if above else "top")
    axes.axis("off")
    figure.colorbar(lines, ax=axes, label=title, fraction=0.03)
    return figure


def draw_heat(run):
    if not run["heat"]:
        return None
    measure = run["heat"][0]
    values = unpacked(measure["values"]).reshape(-1, measure["bins"])
    if len(values) == 0:
        return None
    percents = measure["unit"] == "1"
    values, value_unit = (100 * values, "%") if percents else (values, measure["unit"])
    scale, unit = time_axis(run["end"])
    figure, axes = plt.subplots(figsize=(10, 0.17 * len(values) + 1.4), layout="constrained")
    image = axes.imshow(values, aspect="auto", cmap="magma_r", interpolation="nearest",
                        extent=(0, measure["bins"] * measure["width"] / scale, len(values) - 0.5, -0.5))
    axes.set_yticks(range(len(values)), measure["links"], fontsize=6)
    axes.set(xlabel=f"simulated time ({unit})", xlim=(0, run["end"] / scale))
    figure.colorbar(image, ax=axes, label=f"{measure['name']} ({value_unit})", fraction=0.03)
    return figure


def draw_queues(run):
    if not run["queues"] or not run["queues"]["queues"]:
        return None
    scale, unit = time_axis(run["end"])
    times = unpacked(run["queues"]["times"]) / scale
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    for number, curve in enumerate(run["queues"]["queues"]):
        axes.plot(times, unpacked(curve["values"]) / 1024, color=PALETTE[number], linewidth=1.2, label=curve["name"])
    axes.set(xlabel=f"simulated time ({unit})", ylabel="bytes not yet transmitted (KiB)", xlim=(0, run["end"] / scale),
             ylim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)  # curves fill the picture
    return figure


def draw_slowdown(run):
    if run["slowdown"] is None:
        return None
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for number, curve in enumerate(run["slowdown"]["curves"]):
        everything = curve["name"] == "all"
        axes.step(unpacked(curve["x"]), 100 * unpacked(curve["y"]), where="post", linewidth=2 if everything else 1.2,
                  color="black" if everything else PALETTE[number], label=f"{curve['name']}: {curve['count']}")
    axes.set(xlabel="slowdown against an idle network (1)", ylabel="messages with at most this slowdown (%)",
             xscale="log", ylim=(0, 101))
    axes.xaxis.set_major_formatter(LogFormatter())
    axes.xaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.4)))
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    return figure


def fills_of(parts):
    """By what a part means: (colour, hatch). A further part of the same meaning is striped, as on the page
    (browser/attribution.js); a lighter colour would look like another meaning's."""
    seen, fills = {}, []
    for part in parts:
        colour = CATEGORY_COLOURS[category(part["name"])]
        again = seen[colour] = seen.get(colour, -1) + 1
        fills.append((PALETTE[colour], HATCHES[again % len(HATCHES)]))
    return fills


def draw_attribution(run):
    """Ranks, or jobs if the file has no ranks."""
    data = next((data for kind in ("ranks", "jobs") for data in run["attribution"] if data["kind"] == kind), None)
    if data is None:
        return None
    values = unpacked(data["values"]).reshape(data["rows"], -1)
    groups = np.array_split(np.arange(len(values)), min(MAX_BARS, len(values)))
    means = np.array([values[group].mean(axis=0) for group in groups])
    scale, unit = time_axis(means.sum(axis=1).max())
    figure, axes = plt.subplots(figsize=(9, 0.15 * len(groups) + 1.6), layout="constrained")
    left = np.zeros(len(groups))
    there = [i for i in range(len(data["parts"])) if means[:, i].any()]
    parts = [data["parts"][i] for i in there]
    for part, column, (colour, hatch) in zip(parts, means.T[there], fills_of(parts)):
        axes.barh(range(len(groups)), column / scale, left=left / scale, label=part["name"].replace("_", " "), color=colour,
                  hatch=hatch, edgecolor="white", linewidth=0)
        left += column
    names = [data["labels"][group[0]] for group in groups]
    axes.set_yticks(range(len(groups)), names, fontsize=6)
    axes.set(xlabel=f"time ({unit})", ylim=(len(groups) - 0.5, -0.5))
    axes.legend(fontsize=8, ncols=4, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    return figure


def draw_delays(run):
    rows = run["delays"]["rows"]
    if not rows:
        return None
    scale, unit = time_axis(rows[0]["delay"])
    figure, axes = plt.subplots(figsize=(8, 0.22 * len(rows) + 1), layout="constrained")
    axes.barh(range(len(rows)), [row["delay"] / scale for row in rows], color=PALETTE[1])
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows], fontsize=7)
    axes.set(xlabel=f"delay caused ({unit})", ylim=(len(rows) - 0.5, -0.5))
    return figure


def readable_axis(column, values):
    """(what to divide by, label): times and bytes in a unit that suits the largest one."""
    scales = {"ps": TIMES, "B": SIZES}.get(column["unit"])
    largest = np.abs(values).max(initial=0)
    factor, unit = next(((f, u) for f, u in scales if largest >= 2 * f or f == 1), scales[-1]) if scales else (1, column["unit"] or 1)
    return factor, f"{column['title']} ({unit})"


def case_labels(sweep, known):
    """What tells cases apart: the values of inputs, names first, without those that tell nothing more."""
    labels = [""] * len(known)
    for column in sweep["columns"]:
        if column["role"] != "input":
            continue
        longer = [", ".join(filter(None, (label, str(column["values"][i])))) for label, i in zip(labels, known)]
        if len(set(longer)) > len(set(labels)):
            labels = longer
    return labels


def by_place(places, names):
    found = {}
    for place, name in zip(places, names):
        found.setdefault(place, []).append(name)
    return found


def draw_sweep(sweep):
    """The first two outputs, or the first input and output, plotted against each other. Few cases have their names, and of cases
    at one place all share one."""
    numbers = [column for column in sweep["columns"] if column["numeric"]]
    outputs = [column for column in numbers if column["role"] == "output"]
    inputs = [column for column in numbers if column["role"] == "input"]
    if not outputs or len(numbers) < 2:
        return None
    second, first = outputs[0], (outputs[1:] or inputs or numbers[1:])[0]
    known = [i for i, pair in enumerate(zip(first["values"], second["values"])) if None not in pair]
    x, y = (np.array([column["values"][i] for i in known], dtype=float) for column in (first, second))
    (x_scale, x_label), (y_scale, y_label) = readable_axis(first, x), readable_axis(second, y)
    x, y = x / x_scale, y / y_scale
    figure, axes = plt.subplots(figsize=(6.5, 4.5), layout="constrained")
    axes.plot(x, y, "o", color=PALETTE[0], markersize=4)
    front = pareto(x, y)
    axes.plot(x[front], y[front], "o--", color=PALETTE[1], markersize=6, linewidth=1, label="none is better in both")
    axes.set(xlabel=x_label, ylabel=y_label)
    if len(known) <= MAX_NAMED_CASES:
        for place, names in by_place(zip(x.tolist(), y.tolist()), case_labels(sweep, known)).items():
            left = place[0] <= (x.min() + x.max()) / 2
            axes.annotate("\n".join(names), place, xytext=(5 if left else -5, 4), textcoords="offset points", fontsize=6.5,
                          horizontalalignment="left" if left else "right")
        axes.margins(x=0.1, y=0.1)  # for the names
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    return figure


CHARTS = {"timeline": draw_timeline, "topology": draw_topology, "heat": draw_heat, "queues": draw_queues,
          "slowdown": draw_slowdown, "attribution": draw_attribution, "delays": draw_delays}


def write_pictures(items, folder, write):
    """Draws the available charts of each file; `write(path, bytes)`. Returns the paths."""
    paths = []
    for number, item in enumerate(items):
        stem = item["name"].removesuffix(".h5") + (f".{number}" if len(items) > 1 else "")
        for name, draw in ({"sweep": draw_sweep} if item.get("sweep") else CHARTS).items():
            figure = draw(item)
            if figure is None:
                continue
            buffer = io.BytesIO()
            figure.savefig(buffer, dpi=150, format="png", metadata={"Software": None})
            plt.close(figure)
            paths.append(folder / f"{stem}.{name}.png")
            write(paths[-1], buffer.getvalue())
    return paths
