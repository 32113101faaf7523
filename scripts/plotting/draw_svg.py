# SPDX-License-Identifier: GPL-2.0-only
"""The PNG of an SVG of lines, discs and words, as `weft topology --picture` and `weft collective --picture` write it.

draw_svg.py IN.svg OUT.png
Exit code: 0 drawn, 3 there is no matplotlib."""

import sys
import xml.etree.ElementTree as xml

try:
    from matplotlib.collections import EllipseCollection, LineCollection
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure
except ImportError as error:
    print(f"weft: a picture FILE.png is drawn by matplotlib ({error}); install python3-matplotlib", file=sys.stderr)
    sys.exit(3)

PER_INCH = 100  # pixels
POINTS = 72 / PER_INCH  # of a pixel


def points_of(line):
    return [tuple(map(float, point.split(","))) for point in line.get("points").split()]


def draw(root):
    """A figure whose coordinates are the pixels of the SVG."""
    width, height = float(root.get("width")), float(root.get("height"))
    figure = Figure(figsize=(width / PER_INCH, height / PER_INCH), dpi=PER_INCH, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    tags = {tag: root.findall(f"{{http://www.w3.org/2000/svg}}{tag}") for tag in ("polyline", "circle", "text")}
    axes.add_collection(LineCollection(
        [points_of(line) for line in tags["polyline"]], capstyle="round",
        linewidths=[float(line.get("stroke-width")) * POINTS for line in tags["polyline"]],
        colors=[to_rgba(line.get("stroke"), float(line.get("stroke-opacity"))) for line in tags["polyline"]]))
    sizes = [2 * float(disc.get("r")) for disc in tags["circle"]]
    axes.add_collection(EllipseCollection(
        sizes, sizes, [0] * len(sizes), units="xy", transOffset=axes.transData, linewidths=0, zorder=3,
        offsets=[(float(disc.get("cx")), float(disc.get("cy"))) for disc in tags["circle"]],
        facecolors=[disc.get("fill") for disc in tags["circle"]]))
    for words in tags["text"]:
        axes.text(float(words.get("x")), float(words.get("y")), words.text or "", color=words.get("fill"),
                  fontsize=float(words.get("font-size")) * POINTS, parse_math=False)
    return figure


if __name__ == "__main__":
    draw(xml.parse(sys.argv[1]).getroot()).savefig(sys.argv[2])
