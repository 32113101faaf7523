// SPDX-License-Identifier: GPL-2.0-only
// A sweep: one number against another, with the cases that no other case beats in both, and a table of all.
"use strict";

const ROWS_SHOWN = 500, HIT = 8;
// Of what is neither input nor output; the rest is for programs.
const TOLD = ["case", "status", "error", "broken", "pareto", "place", "ideal_place", "objective", "ideal_objective"];
// Outputs of which more is better, beside those with a unit per second.
const RATE_NAMES = /(^|_)(algbw|busbw|bandwidth|throughput|goodput|mfu)(_|$)|_per_s(econd)?$/;

class Sweep {
  constructor(box, data) {
    this.data = data;
    this.numbers = data.columns.filter((column) => column.numeric);
    const outputs = this.numbers.filter((column) => column.role === "output");
    const inputs = this.numbers.filter((column) => column.role === "input");
    [this.x, this.y] = [outputs[1] || inputs[0] || outputs[0], outputs[0] || inputs[0]];
    this.followObjective();
    this.better = {x: this.direction(this.x), y: this.direction(this.y)};
    this.colourBy = this.bestColour();
    this.chosen = -1;
    if (this.y) this.build(box);
    this.table = element("div", {class: "scroll"});
    box.append(element("h3", {}, `Cases (${data.rows})`), this.table);
    this.sortTable(this.y || data.columns[0], 1);
  }

  /** The axes are what the study asks for, and only cases that are to be compared share a front. */
  followObjective() {
    const {minimize, maximize, within} = this.data.objective || {minimize: [], maximize: [], within: []};
    const find = (name) => this.numbers.find((column) => column.name === name);
    this.asked = new Map([...minimize.map((name) => [find(name), 1]), ...maximize.map((name) => [find(name), -1])]
      .filter(([column]) => column));
    if (this.asked.size > 1) [this.x, this.y] = this.asked.keys();
    this.within = within.map((name) => this.data.columns.find((column) => column.name === name)).filter(Boolean);
    this.only = this.within.length ? String(this.within[0].values.at(-1)) : "";
  }

  /** 1 if small is good, -1 if large is: as the study asks, otherwise large for rates. */
  direction(column) {
    if (this.asked.has(column)) return this.asked.get(column);
    const rate = column?.role === "output" && (column.unit.endsWith("/s") || RATE_NAMES.test(column.title));
    return rate ? -1 : 1;
  }

  /** Draws another column, with the direction that is usual for it. */
  setAxis(key, name) {
    const column = this.data.columns.find((other) => other.name === name);
    const better = {...this.better, [key]: this.direction(column)};
    this.ways[key].querySelector("select").value = String(better[key]);
    this.change({[key]: column, better});
  }

  /** The input of most different values that colours can tell apart. */
  bestColour() {
    const inputs = this.data.columns.filter((column) => column.role === "input" && !this.within.includes(column));
    const kinds = (column) => new Set(column.values).size;
    return inputs.filter((column) => kinds(column) <= 8).sort((a, b) => kinds(b) - kinds(a))[0] || inputs[0];
  }

  title(column) {
    const bare = ["", "text", "id"].includes(column.unit) || asText[column.unit];
    return bare ? column.title : `${column.title} (${column.unit})`;
  }

  build(box) {
    this.canvas = chartCanvas("sweep", "Trade-off of two numbers of all cases. n and p go through the cases.");
    this.legend = element("div", {class: "legend"});
    const names = this.numbers.map((column) => [column.name, column.title]);
    const all = this.data.columns.map((column) => [column.name, column.title]);
    const find = (name) => this.data.columns.find((column) => column.name === name);
    const axis = (key) => (name) => this.setAxis(key, name);
    const words = [["1", "small is good"], ["-1", "large is good"], ["0", "neither"]];
    const way = (key) => choice("", words, String(this.better[key]),
      (value) => this.change({better: {...this.better, [key]: Number(value)}}));
    this.ways = {x: way("x"), y: way("y")};
    const only = this.within.slice(0, 1).map((column) => choice(`Only ${column.title}`,
      [["", "all"], ...[...new Set(column.values)].map((value) => [String(value), cellText(value, column.unit)])], this.only,
      (value) => this.change({only: value})));
    box.append(element("div", {class: "tools"}, choice("Across", names, this.x.name, axis("x")), this.ways.x,
      choice("Up", names, this.y.name, axis("y")), this.ways.y,
      choice("Colours by", all, (this.colourBy || this.y).name, (name) => this.change({colourBy: find(name)})), ...only),
    this.legend, element("div", {class: "frame"}, this.canvas));
    onKeys(this.canvas, {n: () => this.step(1), p: () => this.step(-1), ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1), Escape: hideTip});
    followMouse(this.canvas, (x, y) => this.linesAt(x, y));
    register(this, this.canvas);
  }

  change(values) {
    Object.assign(this, values);
    this.chosen = -1;
    this.draw();
  }

  cases() {
    const shown = (i) => !this.only || String(this.within[0].values[i]) === this.only;
    return this.x.values.map((_, i) => i)
      .filter((i) => this.x.values[i] !== null && this.y.values[i] !== null && shown(i));
  }

  /** Cases that no other one beats in both; none if a direction is neither good nor bad. */
  front() {
    if (!this.better.x || !this.better.y) return [];
    const cost = (key, i) => this.better[key] * this[key].values[i];
    const order = this.cases().filter((i) => this.feasible(i));
    order.sort((a, b) => cost("x", a) - cost("x", b) || cost("y", a) - cost("y", b));
    const best = new Map();
    const compared = (i) => this.within.map((column) => String(column.values[i])).join("\n");
    return order.filter((i) => {
      const key = compared(i), ahead = cost("y", i) < (best.get(key) ?? Infinity);
      if (ahead) best.set(key, cost("y", i));
      return ahead;
    });
  }

  /** Cases that break a constraint are drawn, but are no choice. */
  feasible(i) {
    const column = this.data.columns.find(({name}) => name === "feasible");
    return !column || Boolean(column.values[i]);
  }

  range(column, cases) {
    const values = cases.map((i) => column.values[i]);
    const low = values.reduce((a, b) => Math.min(a, b), Infinity);
    const high = values.reduce((a, b) => Math.max(a, b), -Infinity);
    const margin = (high - low || Math.abs(high) || 1) * 0.06;
    return [low - margin, high + margin];
  }

  place(i) {
    const share = (value, [low, high]) => (value - low) / (high - low);
    return [90 + share(this.x.values[i], this.rangeX) * (this.width - 110),
      16 + (1 - share(this.y.values[i], this.rangeY)) * (this.tall - 66)];
  }

  colours() {
    const column = this.colourBy || this.y, values = column.values;
    if (column.numeric && new Set(values).size > 8) {
      const [low, high] = this.range(column, this.cases());
      this.legend.replaceChildren(...rampLegend(cellText(low, column.unit), cellText(high, column.unit), column.title));
      return values.map((value) => rampColour(0.15 + 0.85 * (value - low) / (high - low || 1)));
    }
    const names = [...new Set(values)];
    const shown = names.map((name) => cellText(name, column.unit));
    this.legend.replaceChildren(...colourLegend(shown, names.map((_, i) => colour(i))));
    return values.map((value) => colour(names.indexOf(value)));
  }

  draw() {
    const area = prepared(this.canvas, 400), {context} = area, cases = this.cases();
    [this.width, this.tall] = [area.width, area.height];
    if (!cases.length) return;
    [this.rangeX, this.rangeY] = [this.range(this.x, cases), this.range(this.y, cases)];
    this.drawAxes(context);
    const colours = this.colours(), front = this.front();
    this.drawFront(context, front);
    for (const i of cases) this.drawCase(context, i, colours[i], front.includes(i));
    if (this.chosen >= 0) this.drawChosen(context);
    this.canvas.dataset.front = front.join(" ");
  }

  drawAxes(context) {
    const ticks = ([low, high], count) => roundTicks(low, high, count);
    context.fillStyle = theme.soft;
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    const line = (a, b, c, d) => [context.beginPath(), context.moveTo(a, b), context.lineTo(c, d), context.stroke()];
    context.textAlign = "center";
    for (const tick of ticks(this.rangeX, 8)) {
      const x = 90 + (tick - this.rangeX[0]) / (this.rangeX[1] - this.rangeX[0]) * (this.width - 110);
      line(x, 16, x, this.tall - 50);
      context.fillText(cellText(tick, this.x.unit), x, this.tall - 38);
    }
    context.fillText(this.title(this.x), this.width / 2, this.tall - 14);
    context.textAlign = "right";
    for (const tick of ticks(this.rangeY, 6)) {
      const y = 16 + (1 - (tick - this.rangeY[0]) / (this.rangeY[1] - this.rangeY[0])) * (this.tall - 66);
      line(90, y, this.width - 20, y);
      context.fillText(cellText(tick, this.y.unit), 84, y);
    }
    context.textAlign = "left";
    context.fillText(this.title(this.y), 4, 8);
  }

  drawFront(context, front) {
    context.strokeStyle = theme.ink;
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.beginPath();
    // One line only if all are to be compared with each other.
    if (!this.within.length || this.only)
      front.forEach((i, at) => context[at ? "lineTo" : "moveTo"](...this.place(i)));
    context.stroke();
    context.setLineDash([]);
  }

  drawCase(context, i, fill, onFront) {
    const [x, y] = this.place(i);
    context.beginPath();
    context.arc(x, y, onFront ? 6 : 4, 0, 2 * Math.PI);
    context.fillStyle = fill;
    context.strokeStyle = onFront ? theme.ink : fill;
    context.lineWidth = 1.5;
    if (this.feasible(i)) context.fill();
    if (onFront || !this.feasible(i)) context.stroke();
  }

  drawChosen(context) {
    context.beginPath();
    context.arc(...this.place(this.chosen), 9, 0, 2 * Math.PI);
    context.strokeStyle = theme.focus;
    context.lineWidth = 2.5;
    context.stroke();
  }

  lines(i) {
    return [`case ${i}`, ...this.data.columns.slice(0, 14).map((column) =>
      `${this.title(column)}: ${cellText(column.values[i], column.unit)}`)];
  }

  linesAt(x, y) {
    let best = -1, nearest = HIT;
    for (const i of this.cases()) {
      const [a, b] = this.place(i), far = Math.hypot(a - x, b - y);
      if (far <= nearest) [best, nearest] = [i, far];
    }
    return best < 0 ? null : this.lines(best);
  }

  step(by) {
    const cases = this.cases().sort((a, b) => this.x.values[a] - this.x.values[b] || a - b);
    const at = cases.indexOf(this.chosen);
    this.chosen = cases[Math.min(Math.max(at + by, 0), cases.length - 1)];
    this.draw();
    showChosen(this.canvas, this.lines(this.chosen), ...this.place(this.chosen));
  }

  sortTable(column, way) {
    const columns = this.data.columns.filter((other) => other.role !== "note" || TOLD.includes(other.name));
    const order = columns[0].values.map((_, i) => i);
    const before = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a) < String(b) ? -1 : 1);
    const {values} = column;
    order.sort((a, b) => (values[a] === values[b] ? a - b : way * before(values[a], values[b])));
    const heads = columns.map((other) => element("th", {
      "aria-sort": other === column ? (way > 0 ? "ascending" : "descending") : "none", class: other.role,
    }, button(this.title(other), `Sort by ${other.title}`, () => this.sortTable(other, other === column ? -way : 1))));
    const cells = (i) => columns.map((other) => cellText(other.values[i], other.unit));
    const rows = order.slice(0, ROWS_SHOWN).map((i) => row(cells(i)));
    const more = order.length > ROWS_SHOWN ? [element("p", {}, `The first ${ROWS_SHOWN} of ${order.length}.`)] : [];
    this.table.replaceChildren(element("table", {}, element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...rows)), ...more);
  }
}

function cellText(value, unit) {
  if (typeof value !== "number") return value === null ? "–" : String(value);
  return (unit !== "1" && asText[unit] ? asText[unit] : (number) => digits(number, 6))(value);
}

/** Round values between two numbers of any sign. */
function roundTicks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step); i * step <= high; i++) ticks.push(i * step);
  return ticks;
}
