// SPDX-License-Identifier: GPL-2.0-only
// Links over time: a line per link, or per class of links.
"use strict";

const NAMES = 190, CELL_MOST = 18;

class HeatMap {
  constructor(box, run) {
    this.measures = run.heat;
    this.end = run.end;
    this.view = "links";
    this.cell = null;
    this.build(box);
    this.choose(this.measures[0].name);
  }

  build(box) {
    this.canvas = chartCanvas("heat",
      "Heat map of links over time. Arrow keys go from cell to cell, Home to the first.");
    this.legend = element("span", {class: "legend"});
    const measures = this.measures.map(({name}) => [name, name]);
    const views = [["links", "links with most"], ["means", "classes, mean"], ["largest", "classes, largest"]];
    const measure = choice("Measure", measures, measures[0][0], (name) => this.choose(name));
    box.append(element("div", {class: "tools"}, measure,
      choice("Lines", views, "links", (view) => {
        this.view = view;
        this.choose(this.measure.name);
      }), this.legend), element("div", {class: "frame"}, this.canvas));
    const move = (line, bin) => () => this.move(line, bin);
    onKeys(this.canvas, {ArrowLeft: move(0, -1), ArrowRight: move(0, 1), ArrowUp: move(-1, 0), ArrowDown: move(1, 0),
      Home: () => this.move(-Infinity, -Infinity), Escape: hideTip});
    followMouse(this.canvas, (x, y) => this.linesAt(x, y));
    register(this, this.canvas);
  }

  choose(name) {
    this.measure = this.measures.find((measure) => measure.name === name);
    this.values = unpacked(this.view === "links" ? this.measure.values : this.measure[this.view]);
    this.names = this.view === "links" ? this.measure.links : this.measure.classes.map((title) => title || "links");
    this.bins = this.measure.bins;
    this.width = this.measure.width;
    this.most = this.values.reduce((most, value) => Math.max(most, value), 0);
    this.cell = null;
    if (this.shown && this.shown()) this.draw();
  }

  draw() {
    this.tall = Math.min(Math.max(420 / Math.max(this.names.length, 1), 13), CELL_MOST);
    const area = prepared(this.canvas, this.names.length * this.tall + 24), {context} = area;
    this.plot = area.width - NAMES - 6;
    this.drawCells(context);
    context.textAlign = "right";
    context.fillStyle = theme.ink;
    context.font = `${Math.min(this.tall + 1, 12)}px system-ui, sans-serif`;
    this.names.forEach((name, line) => context.fillText(name, NAMES - 8, (line + 0.5) * this.tall, NAMES - 12));
    this.drawAxis(context, area);
    if (this.cell) this.drawCell(context);
    this.legend.replaceChildren(...rampLegend("0", this.text(this.most), this.measure.name));
  }

  drawCells(context) {
    if (this.names.length === 0) return;
    const picture = new ImageData(this.bins, this.names.length);
    this.values.forEach((value, i) =>
      picture.data.set([...rampNumbers(this.most ? value / this.most : 0), 255], 4 * i));
    const small = element("canvas", {width: this.bins, height: this.names.length});
    small.getContext("2d").putImageData(picture, 0, 0);
    context.imageSmoothingEnabled = false;
    context.save();
    context.beginPath();
    context.rect(NAMES, 0, this.plot, this.names.length * this.tall);
    context.clip();  // the last bin ends with the run
    context.drawImage(small, NAMES, 0, this.bins * this.wide(), this.names.length * this.tall);
    context.restore();
  }

  /** Width of a bin on the screen. */
  wide() {
    return this.width / this.end * this.plot;
  }

  drawAxis(context, area) {
    const {ticks, step} = timeTicks(0, this.end, Math.max(this.plot / 110, 2)), text = tickText(step, this.end);
    context.textAlign = "center";
    context.fillStyle = theme.soft;
    for (const tick of ticks) {
      const x = NAMES + tick / this.end * this.plot;
      if (x < area.width - 24) context.fillText(text(tick), x, area.height - 10);
    }
  }

  drawCell(context) {
    const [line, bin] = this.cell, wide = this.wide();
    context.strokeStyle = theme.focus;
    context.lineWidth = 2;
    context.strokeRect(NAMES + bin * wide - 2, line * this.tall - 1, wide + 4, this.tall + 2);
  }

  text(value) {
    return shareText[this.measure.unit](value);
  }

  lines(line, bin) {
    const from = bin * this.width, to = Math.min((bin + 1) * this.width, this.end);
    return [this.names[line], `${this.measure.name}: ${this.text(this.values[line * this.bins + bin])}`,
      `from ${timeText(from)} to ${timeText(to)}`];
  }

  linesAt(x, y) {
    const line = Math.floor(y / this.tall), bin = Math.floor((x - NAMES) / this.wide());
    return line < this.names.length && bin >= 0 && bin < this.bins ? this.lines(line, bin) : null;
  }

  move(line, bin) {
    if (this.names.length === 0) return;
    const [a, b] = this.cell || [0, -1];
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    this.cell = [within(a + line, this.names.length), within(b + bin, this.bins)];
    this.draw();
    const [row, column] = this.cell;
    showChosen(this.canvas, this.lines(row, column), NAMES + column * this.wide(), row * this.tall);
  }
}
