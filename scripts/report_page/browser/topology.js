// SPDX-License-Identifier: GPL-2.0-only
// The machine: nodes in tiers or on a circle, links in two halves, each in the colour of the direction that leaves
// there.
"use strict";

const MEASURES = [["utilization", "utilisation", "1"], ["mean_queue", "queueing (mean queue)", "B"],
  ["peak_queue", "longest queue", "B"], ["caused", "delay caused", "ps"]];
const MARGIN = 26;

class Topology {
  constructor(box, run) {
    this.data = run.topology;
    for (const name of ["x", "y", "tier", "id", "from", "to", "class"]) this[name] = unpacked(this.data[name]);
    this.values = Object.fromEntries(["rate", ...MEASURES.map(([name]) => name)].map(
      (name) => [name, unpacked(this.data[name])]));
    const delayed = this.values.caused.some((value) => value > 0);
    this.measure = delayed && run.verdict.congested ? "caused" : "utilization";
    this.zoomed = 1;
    this.offset = [0, 0];
    this.chosen = -1;
    this.build(box);
    this.choose(this.measure);
  }

  build(box) {
    this.canvas = chartCanvas("topology", `Machine of ${this.data.nodes.length} nodes. Arrow keys move, plus and ` +
      "minus zoom, Home shows all, n and p go through the links in order of the measure.");
    this.legend = element("span", {class: "legend"});
    box.append(element("div", {class: "tools"}, choice("Colours by", MEASURES.map(([name, text]) => [name, text]),
      this.measure, (value) => this.choose(value)), button("+", "Zoom in", () => this.zoom(0.7)),
    button("−", "Zoom out", () => this.zoom(1.4)), button("All", "Show all", () => this.reset()), this.legend),
    element("div", {class: "frame"}, this.canvas));
    const move = (x, y) => () => this.pan(x, y);
    onKeys(this.canvas, {
      ArrowLeft: move(60, 0), ArrowRight: move(-60, 0), ArrowUp: move(0, 60), ArrowDown: move(0, -60),
      "+": () => this.zoom(0.7), "=": () => this.zoom(0.7), "-": () => this.zoom(1.4), Home: () => this.reset(),
      0: () => this.reset(), n: () => this.step(1), p: () => this.step(-1), Escape: hideTip,
    });
    onWheel(this.canvas, (factor, x, y) => this.zoom(factor, x, y));
    onDrag(this.canvas, (dx, dy) => this.pan(dx, dy));
    followMouse(this.canvas, (x, y) => this.linesAt(x, y));
    register(this, this.canvas);
  }

  choose(measure) {
    this.measure = measure;
    const values = this.values[measure];
    this.largest = values.reduce((most, value) => Math.max(most, value), 0);
    this.order = Uint32Array.from(values.keys()).sort((a, b) => values[a] - values[b] || a - b);
    this.chosen = -1;
    if (this.shown && this.shown()) this.draw();
  }

  zoom(factor, x = this.width / 2, y = this.tall / 2) {
    const before = this.zoomed;
    this.zoomed = Math.min(Math.max(this.zoomed / factor, 1), 200);
    const ratio = this.zoomed / before;
    this.offset = [x - (x - this.offset[0]) * ratio, y - (y - this.offset[1]) * ratio];
    this.pan(0, 0);
  }

  pan(x, y) {
    const limit = (value, size) => Math.min(Math.max(value, size - size * this.zoomed), 0);
    this.offset = [limit(this.offset[0] + x, this.width), limit(this.offset[1] + y, this.tall)];
    this.draw();
  }

  reset() {
    this.zoomed = 1;
    this.offset = [0, 0];
    this.draw();
  }

  place(node) {
    return [(MARGIN + this.x[node] * (this.width - 2 * MARGIN)) * this.zoomed + this.offset[0],
      (MARGIN + this.y[node] * (this.tall - 2 * MARGIN)) * this.zoomed + this.offset[1]];
  }

  /** Where a link's own half goes: from its node to the middle. */
  half(link) {
    const [a, b] = this.place(this.from[link]), [c, d] = this.place(this.to[link]);
    return [a, b, (a + c) / 2, (b + d) / 2];
  }

  draw() {
    const area = prepared(this.canvas, 420);
    [this.width, this.tall] = [area.width, area.height];
    const {context} = area;
    for (const link of this.order) this.drawLink(context, link);
    this.drawNodes(context);
    if (this.chosen >= 0) this.drawChosen(context);
    const [, title, unit] = MEASURES.find(([name]) => name === this.measure);
    this.legend.replaceChildren(...rampLegend("0", shareText[unit](this.largest), title));
    this.canvas.dataset.largest = this.largest;
  }

  share(link) {
    return this.largest > 0 ? this.values[this.measure][link] / this.largest : 0;
  }

  drawLink(context, link) {
    const share = this.share(link), [a, b, c, d] = this.half(link);
    context.strokeStyle = rampColour(0.08 + 0.92 * share);
    context.lineWidth = (this.order.length > 3000 ? 0.6 : 1.2) + 2.6 * share;
    context.beginPath();
    context.moveTo(a, b);
    context.lineTo(c, d);
    context.stroke();
  }

  drawNodes(context) {
    const perTier = new Map();
    for (const tier of this.tier) perTier.set(tier, (perTier.get(tier) || 0) + 1);
    context.textAlign = "center";
    // The ends of the worst link have their names where others have no room.
    const worst = this.order[this.order.length - 1];
    const ends = this.share(worst) > 0 ? [this.from[worst], this.to[worst]] : [];
    for (let node = 0; node < this.x.length; node++) {
      const [x, y] = this.place(node), room = this.width * this.zoomed / perTier.get(this.tier[node]);
      if (x < -20 || y < -20 || x > this.width + 20 || y > this.tall + 20) continue;
      const size = Math.min(Math.max(room / 5, 1.5), this.tier[node] ? 5 : 3.5);
      context.fillStyle = this.tier[node] ? theme.ink : theme.soft;
      context.fillRect(x - size, y - size, 2 * size, 2 * size);
      context.fillStyle = theme.soft;
      if (room > 62 || ends.includes(node)) context.fillText(this.data.nodes[node], x, y + (this.y[node] > 0.5 ? 14 : -14));
    }
  }

  drawChosen(context) {
    const [a, b, c, d] = this.half(this.chosen);
    context.strokeStyle = theme.focus;
    context.lineWidth = 5;
    context.setLineDash([6, 4]);
    context.beginPath();
    context.moveTo(a, b);
    context.lineTo(c, d);
    context.stroke();
    context.setLineDash([]);
  }

  name(link) {
    return `${this.data.nodes[this.from[link]]} → ${this.data.nodes[this.to[link]]}`;
  }

  lines(link) {
    return [this.name(link), `${this.data.classes[this.class[link]]}, ${rateText(this.values.rate[link])}`,
      ...MEASURES.map(([name, title, unit]) => `${title}: ${shareText[unit](this.values[name][link])}`)];
  }

  distance(link, x, y) {
    const [a, b, c, d] = this.half(link), long = (c - a) ** 2 + (d - b) ** 2;
    const along = Math.min(Math.max(long ? ((x - a) * (c - a) + (y - b) * (d - b)) / long : 0, 0), 1);
    return Math.hypot(a + along * (c - a) - x, b + along * (d - b) - y);
  }

  linesAt(x, y) {
    let best = -1, nearest = 6;
    for (const link of this.order) {
      const far = this.distance(link, x, y);
      if (far <= nearest) [best, nearest] = [link, far];
    }
    return best < 0 ? null : this.lines(best);
  }

  /** Through the links, the one with most first. */
  step(by) {
    const last = this.order.length - 1, at = this.chosen < 0 ? last + 1 : this.order.indexOf(this.chosen);
    this.chosen = this.order[Math.min(Math.max(at - by, 0), last)];
    this.draw();
    const [, , x, y] = this.half(this.chosen);
    showChosen(this.canvas, this.lines(this.chosen), x, y);
  }
}
