# SPDX-License-Identifier: GPL-2.0-only
"""Links by class and direction; utilization as a heat map, and its distribution."""

import matplotlib.pyplot as plt
import numpy as np

from plotting.results import PlotError, headline, percent_limit
from weft_results.nodes import is_host

UP, DOWN, LEVEL = "up", "down", ""


class Links:
    """The directed links, and the tier of each node: its distance from the hosts."""

    def __init__(self, results):
        (self.id, self.source, self.target, self.port, self.source_name, self.target_name, self.link_class,
         self.utilization) = results.columns("links", "id", "from", "to", "from_port", "from_name", "to_name",
                                             "link_class", "utilization")
        if len(self.id) == 0:
            raise PlotError(f"{results.path}: it has no links")
        self.names = dict(zip(self.source.tolist(), self.source_name))
        self.names |= dict(zip(self.target.tolist(), self.target_name))
        self.tiers = self.find_tiers()
        self.reverse_port = dict(zip((self.id ^ 1).tolist(), self.port.tolist()))

    def find_tiers(self):
        neighbours = {}
        for a, b in zip(self.source.tolist(), self.target.tolist()):
            neighbours.setdefault(a, []).append(b)
        frontier = [node for node, name in self.names.items() if is_host(str(name))]
        tiers = {node: 0 for node in frontier}
        while frontier:
            reached = {b for a in frontier for b in neighbours.get(a, []) if b not in tiers}
            tiers |= {node: tiers[frontier[0]] + 1 for node in reached}
            frontier = sorted(reached)
        return tiers

    def way(self, row):
        below = self.tiers.get(int(self.source[row]), 0)
        above = self.tiers.get(int(self.target[row]), 0)
        return UP if above > below else DOWN if above < below else LEVEL

    def panels(self):
        """{(class, way): rows of the table}, hosts' links first."""
        groups = {}
        for row in range(len(self.id)):
            groups.setdefault((self.link_class[row], self.way(row)), []).append(row)

        def place(item):
            (name, way), rows = item
            ends = int(self.source[rows[0]]), int(self.target[rows[0]])
            return min(self.tiers.get(end, 0) for end in ends), name, (UP, DOWN, LEVEL).index(way)

        return dict(sorted(groups.items(), key=place))


class Panel:
    """One heat map: rows are the nodes at the end with fewer nodes, columns their ports."""

    def __init__(self, links, rows):
        sources, targets = {int(links.source[r]) for r in rows}, {int(links.target[r]) for r in rows}
        from_end = len(sources) <= len(targets)
        ends = links.source if from_end else links.target
        cells = {}
        for row in rows:
            port = int(links.port[row]) if from_end else links.reverse_port.get(int(links.id[row]), 0)
            cells.setdefault(int(ends[row]), []).append((port, links.utilization[row]))
        nodes = sorted(cells)
        self.labels = [links.names[node] for node in nodes]
        self.values = np.full((len(nodes), max(len(ports) for ports in cells.values())), np.nan)
        port_sets = set()
        for i, node in enumerate(nodes):
            ports = sorted(cells[node])
            port_sets.add(tuple(port for port, _ in ports))
            self.values[i, : len(ports)] = [100 * value for _, value in ports]
        shared = len(port_sets) == 1
        self.columns = list(port_sets.pop()) if shared else list(range(1, self.values.shape[1] + 1))
        self.column_title = f"{'port' if shared else 'link'} of the node at the left"
        if self.values.shape[1] == 1 and len(nodes) > 12:
            self.wrap()

    def wrap(self):
        """One link per node: a column of hundreds of cells is unreadable, so that nodes fill several lines."""
        width = next(w for w in (4, 8, 16, 32, 64, 128) if w * w * 2 >= len(self.labels) or w == 128)
        lines = -(-len(self.labels) // width)
        padded = np.full(lines * width, np.nan)
        padded[: len(self.labels)] = self.values[:, 0]
        self.values = padded.reshape(lines, width)
        self.labels = [self.labels[line * width] + " ..." for line in range(lines)]
        self.columns = [f"+{column}" for column in range(width)]
        self.column_title = "node after the first of the line"

    def draw(self, axes, limit):
        lines, width = self.values.shape
        image = axes.imshow(self.values, aspect="auto", cmap="inferno", vmin=0, vmax=limit, interpolation="nearest")
        axes.set_facecolor("#dddddd")
        axes.set_xticks(np.arange(width - 1) + 0.5, minor=True)
        axes.set_yticks(np.arange(lines - 1) + 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=0.4 if lines <= 64 else 0)
        axes.tick_params(which="minor", length=0)
        step = -(-lines // 40)
        axes.set_yticks(range(0, lines, step), self.labels[::step], fontsize=7)
        step = -(-width // 16)
        axes.set_xticks(range(0, width, step), self.columns[::step], fontsize=7)
        axes.set_xlabel(self.column_title, fontsize=8)
        if lines <= 32 and width <= 16:
            for (line, column), value in np.ndenumerate(self.values):
                if not np.isnan(value):
                    axes.text(column, line, f"{value:.0f}" if limit > 5 else f"{value:.1f}", ha="center", va="center",
                              fontsize=6.5, color="black" if value > 0.6 * limit else "white")
        return image


def panel_grid(panels):
    """(rows of ways, classes): upward above downward where both exist, one column per class. Links of one level are beside the upward
    ones, unless a class has both."""
    classes = list(dict.fromkeys(name for name, _ in panels))
    ways = [(way,) for way in (UP, DOWN, LEVEL) if any(way == found for _, found in panels)]
    both = any((name, UP) in panels and (name, LEVEL) in panels for name in classes)
    if (UP,) in ways and (LEVEL,) in ways and not both:
        ways = [(UP, LEVEL), *(way for way in ways if way == (DOWN,))]
    return ways, classes


def plot_heat_map(results, save):
    links = Links(results)
    panels = {key: Panel(links, rows) for key, rows in links.panels().items()}
    limit = percent_limit(links.utilization.max())
    ways, classes = panel_grid(panels)
    heights = [max(min(max(panels[key].values.shape[0] for key in panels if key[1] in row), 40), 6) for row in ways]
    figure, grid = plt.subplots(len(ways), len(classes), squeeze=False, layout="constrained",
                                figsize=(max(3.6 * len(classes), 6) + 1, 0.16 * sum(heights) + 1.1 * len(ways) + 0.8),
                                gridspec_kw={"height_ratios": heights})
    image = None
    for i, row in enumerate(ways):
        for j, name in enumerate(classes):
            axes = grid[i][j]
            way = next((way for way in row if (name, way) in panels), None)
            if way is None:
                axes.axis("off")
                continue
            image = panels[name, way].draw(axes, limit)
            axes.set_title(f"{name or 'links'}{', ' + way if way else ''}", fontsize=9)
    bar = figure.colorbar(image, ax=grid, fraction=0.04, pad=0.02, aspect=40)
    bar.set_label("utilization over the simulated time (%)")
    headline(figure, results, f"Link utilization, {len(links.id)} directions of {len(links.id) // 2} links")
    save(figure, "links")


def plot_utilization(results, save):
    links = Links(results)
    limit = percent_limit(links.utilization.max())
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    panels = links.panels()
    axes.hist([100 * links.utilization[rows] for rows in panels.values()], bins=np.linspace(0, limit, 26), stacked=True,
              color=[plt.get_cmap("tab20")(i % 20) for i in range(len(panels))],
              label=[f"{name or 'links'}{', ' + way if way else ''}: mean {100 * links.utilization[rows].mean():.3g} %"
                     for (name, way), rows in panels.items()])
    busiest = int(links.utilization.argmax())
    axes.axvline(100 * links.utilization[busiest], color="black", linewidth=1, linestyle="--",
                 label=f"busiest: {links.source_name[busiest]} → {links.target_name[busiest]}, "
                       f"{100 * links.utilization[busiest]:.3g} %")
    axes.set(xlabel="utilization over the simulated time (%)", ylabel="link directions", xlim=(0, limit))
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.legend(fontsize=8)
    headline(figure, results, "How link utilization is distributed")
    save(figure, "utilization")
