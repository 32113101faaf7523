// SPDX-License-Identifier: GPL-2.0-only
// What each rank did when: bars in lanes, with zoom. Bars below a pixel are merged: the column of that pixel is filled
// by the share of time of each colour, two pixels at least, so that a short operation never vanishes.
"use strict";

const LABELS = 132, AXIS = 24, STRIP = 26, LANE_MOST = 22, LANE_LEAST = 7, LANES_SHOWN = 460;

class Timeline {
  constructor(box, run) {
    this.data = run.timeline;
    this.end = Math.max(run.end, 1);
    for (const name of ["first", "start", "length", "phase", "group", "collective"])
      this[name] = unpacked(this.data[name]);
    this.labelNumber = unpacked(this.data.label);
    this.activity = this.data.activity && unpacked(this.data.activity.values);
    this.lanes = this.data.lanes.length;
    this.longest = this.findLongest();
    this.window = [0, this.end];
    this.top = 0;
    this.by = this.data.groups.length > 1 && this.data.phases.length < 2 ? "group" : "phase";
    this.chosen = -1;
    this.lane = Math.min(Math.max(Math.floor(LANES_SHOWN / this.lanes), LANE_LEAST), LANE_MOST);
    this.build(box);
  }

  /** The longest bar of each lane: no bar that begins earlier than that before a time reaches it. */
  findLongest() {
    return Float64Array.from({length: this.lanes}, (_, lane) => {
      let most = 0;
      for (let i = this.first[lane]; i < this.first[lane + 1]; i++) most = Math.max(most, this.length[i]);
      return most;
    });
  }

  build(box) {
    this.canvas = chartCanvas("timeline", `Timeline of ${this.lanes} tracks. Arrow keys move, plus and minus zoom, ` +
      "Home shows all, n and p go from bar to bar, PageUp and PageDown from track to track.");
    this.legend = element("div", {class: "legend"});
    const colourBy = choice("Colours by", [["phase", "phase"], ["group", "communicator"]], this.by, (value) => {
      this.by = value;
      this.draw();
    });
    box.append(element("div", {class: "tools"}, colourBy, button("+", "Zoom in", () => this.zoom(0.5)),
      button("−", "Zoom out", () => this.zoom(2)), button("All", "Show all", () => this.reset()), this.legend),
    element("div", {class: "frame"}, this.canvas));
    this.listen();
    register(this, this.canvas);
  }

  listen() {
    const move = (share) => () => this.pan(share * (this.window[1] - this.window[0]));
    onKeys(this.canvas, {
      ArrowLeft: move(-0.15), ArrowRight: move(0.15), ArrowUp: () => this.scroll(-3 * this.lane),
      ArrowDown: () => this.scroll(3 * this.lane), "+": () => this.zoom(0.5), "=": () => this.zoom(0.5),
      "-": () => this.zoom(2), Home: () => this.reset(), 0: () => this.reset(), n: () => this.step(1),
      p: () => this.step(-1), PageDown: () => this.stepLane(1), PageUp: () => this.stepLane(-1), Escape: hideTip,
    });
    onWheel(this.canvas, (factor, x) => this.zoom(factor, this.timeAt(x)));
    onDrag(this.canvas, (dx, dy) => {
      this.scroll(-dy);
      this.pan(-dx / this.plot * (this.window[1] - this.window[0]));
    });
    this.canvas.addEventListener("dblclick", (event) => this.zoom(0.5, this.timeAt(event.offsetX)));
    followMouse(this.canvas, (x, y) => this.linesAt(x, y));
  }

  // ---- what is shown

  timeAt(x) {
    return this.window[0] + (x - LABELS) / this.plot * (this.window[1] - this.window[0]);
  }

  xOf(time) {
    return LABELS + (time - this.window[0]) / (this.window[1] - this.window[0]) * this.plot;
  }

  zoom(factor, around = (this.window[0] + this.window[1]) / 2) {
    const length = Math.min(Math.max((this.window[1] - this.window[0]) * factor, Math.min(1000, this.end)), this.end);
    const share = (around - this.window[0]) / (this.window[1] - this.window[0]);
    this.place(around - share * length, length);
  }

  pan(time) {
    this.place(this.window[0] + time, this.window[1] - this.window[0]);
  }

  place(from, length) {
    const start = Math.min(Math.max(from, 0), this.end - length);
    this.window = [start, start + length];
    this.draw();
  }

  reset() {
    this.top = 0;
    this.place(0, this.end);
  }

  scroll(pixels) {
    this.top = Math.min(Math.max(this.top + pixels, 0), Math.max(this.lanes * this.lane - this.height(), 0));
    this.draw();
  }

  height() {
    return Math.min(this.lanes * this.lane, LANES_SHOWN);
  }

  head() {
    return AXIS + (this.activity ? 2 * STRIP : 0);
  }

  // ---- drawing

  draw() {
    const area = prepared(this.canvas, this.head() + this.height() + 2);
    this.context = area.context;
    this.pixel = area.pixel;
    this.plot = area.width - LABELS - 8;
    this.drawAxis(area);
    if (this.activity) this.drawActivity();
    this.context.save();
    this.context.beginPath();
    this.context.rect(0, this.head(), area.width, this.height());
    this.context.clip();
    this.labelled = 0;
    for (let lane = Math.floor(this.top / this.lane); lane < this.lanes; lane++) {
      if (lane * this.lane - this.top > this.height()) break;
      this.drawLane(lane, this.head() + lane * this.lane - this.top);
    }
    this.drawChosen();
    this.context.restore();
    this.drawScroll(area);
    const names = this.data[`${this.by}s`];
    this.legend.replaceChildren(...colourLegend(names, names.map((_, i) => colour(i))));
    this.canvas.dataset.window = this.window.join(" ");
  }

  /** Which part of all lanes is in sight. */
  drawScroll(area) {
    const all = this.lanes * this.lane, seen = this.height();
    if (all <= seen) return;
    this.context.fillStyle = theme.line;
    this.context.fillRect(area.width - 5, this.head(), 5, seen);
    this.context.fillStyle = theme.soft;
    this.context.fillRect(area.width - 5, this.head() + this.top / all * seen, 5, seen * seen / all);
  }

  drawAxis(area) {
    const {context} = area, {ticks, step} = timeTicks(...this.window, Math.max(this.plot / 110, 2));
    const text = tickText(step, this.window[1]);
    context.fillStyle = theme.soft;
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    context.textAlign = "center";
    for (const tick of ticks) {
      const x = Math.round(this.xOf(tick)) + 0.5;
      context.beginPath();
      context.moveTo(x, AXIS - 5);
      context.lineTo(x, area.height);
      context.stroke();
      if (x > LABELS + 24 && x < area.width - 30) context.fillText(text(tick), x, AXIS / 2 - 2);
    }
  }

  /** Two strips: the share of all ranks that compute, and the share that communicate. */
  drawActivity() {
    const bins = this.data.activity.bins;
    ["compute", "communication"].forEach((name, strip) => {
      const bottom = AXIS + (strip + 1) * STRIP - 4;
      this.label(`all: ${name}`, bottom - STRIP / 2 + 4);
      this.context.fillStyle = theme.soft;
      for (let x = 0; x < this.plot; x++) {
        const bin = Math.min(Math.floor(this.timeAt(LABELS + x) / this.end * bins), bins - 1);
        const share = strip ? [1, 2, 3].reduce((sum, kind) => sum + this.activity[kind * bins + bin], 0)
          : this.activity[bin];
        const tall = Math.min(share, 1) * (STRIP - 6);
        this.context.fillRect(LABELS + x, bottom - tall, 1, tall);
      }
    });
  }

  label(text, y) {
    this.context.fillStyle = theme.ink;
    this.context.textAlign = "right";
    this.context.fillText(text, LABELS - 8, y, LABELS - 10);
  }

  laneLabel(lane, y) {
    const [owner, stream] = this.data.lanes[lane];
    const first = lane === 0 || this.data.lanes[lane - 1][0] !== owner;
    if (this.lane >= 12) this.label(first ? `${owner} ${stream}` : stream, y + this.lane / 2);
    else if (first && y >= this.labelled + 13) {
      this.label(owner, y + Math.max(this.lane / 2, 6));
      this.labelled = y;
    }
  }

  /** [first, last + 1] of the bars of a lane that may be seen. */
  visible(lane) {
    const search = (time, low, high) => {
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.start[middle] < time) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    const [low, high] = [this.first[lane], this.first[lane + 1]];
    return [search(this.window[0] - this.longest[lane], low, high), search(this.window[1], low, high)];
  }

  drawLane(lane, y) {
    this.context.fillStyle = theme.lane;
    this.context.fillRect(LABELS, y, this.plot, this.lane - 1);
    this.laneLabel(lane, y);
    const [low, high] = this.visible(lane), columns = [];
    for (let i = low; i < high; i++) this.drawBar(i, y, columns);
    this.drawColumns(columns, y);
  }

  /** Fills the pixels that a bar covers; those that it covers in part go to `columns` as [pixel, colour, share]. */
  drawBar(i, y, columns) {
    const scale = this.plot / (this.window[1] - this.window[0]) / this.pixel;
    const left = Math.max((this.start[i] - this.window[0]) * scale, 0);
    const right = Math.min((this.start[i] + this.length[i] - this.window[0]) * scale, this.plot / this.pixel);
    if (right < left) return;
    const first = Math.ceil(left), last = Math.floor(right), number = this[this.by][i];
    if (first > last) {
      columns.push([last, number, right - left, true]);
      return;
    }
    columns.push([first - 1, number, first - left, first === last]);
    columns.push([last, number, right - last, first === last]);
    if (first === last) return;
    this.context.fillStyle = colour(number);
    const gap = last - first > 6 ? this.pixel : 0;  // tells neighbours of one colour apart
    this.context.fillRect(LABELS + first * this.pixel, y, (last - first) * this.pixel - gap, this.lane - 2);
  }

  drawColumns(columns, y) {
    const shares = new Map();
    let column = -1;
    for (const [pixel, number, share, alone] of columns) {
      if (pixel !== column) this.drawColumn(column, shares, y);
      column = pixel;
      const [sum, least] = shares.get(number) || [0, false];
      shares.set(number, [sum + share, least || alone]);
    }
    this.drawColumn(column, shares, y);
  }

  /** One pixel, filled from below by shares. What has no other pixel gets two lines at least. */
  drawColumn(column, shares, y) {
    const tall = this.lane - 2;
    let bottom = y + tall;
    for (const [number, [share, alone]] of shares) {
      const part = Math.min(Math.max(share * tall, alone ? 2 : 0), Math.max(bottom - y, alone ? 1 : 0));
      this.context.fillStyle = colour(number);
      this.context.fillRect(LABELS + column * this.pixel, bottom - part, this.pixel, part);
      bottom -= part;
    }
    shares.clear();
  }

  // ---- details of one bar

  laneAt(y) {
    const lane = Math.floor((y - this.head() + this.top) / this.lane);
    return y >= this.head() && lane >= 0 && lane < this.lanes ? lane : -1;
  }

  laneOf(i) {
    let lane = 0;
    while (this.first[lane + 1] <= i) lane++;
    return lane;
  }

  /** The bar nearest to a place: within two pixels, the shorter one first. */
  barAt(x, y) {
    const lane = this.laneAt(y);
    if (lane < 0 || x < LABELS) return -1;
    const [low, high] = this.visible(lane);
    let best = -1;
    for (let i = low; i < high; i++) {
      if (this.xOf(this.start[i]) - 2 > x) break;
      if (this.xOf(this.start[i] + this.length[i]) + 2 < x) continue;
      if (best < 0 || this.length[i] < this.length[best]) best = i;
    }
    return best;
  }

  lines(i) {
    const [owner, stream] = this.data.lanes[this.laneOf(i)];
    const call = this.collective[i] >= 0 ? [`collective #${this.collective[i]}`] : [];
    return [this.data.labels[this.labelNumber[i]], `${owner}, ${stream}`, `${timeText(this.length[i])}, from ` +
      `${timeText(this.start[i])} to ${timeText(this.start[i] + this.length[i])}`,
    `phase: ${this.data.phases[this.phase[i]]}`, `communicator: ${this.data.groups[this.group[i]]}`, ...call];
  }

  linesAt(x, y) {
    const bar = this.barAt(x, y);
    return bar < 0 ? null : this.lines(bar);
  }

  drawChosen() {
    if (this.chosen < 0) return;
    const y = this.head() + this.laneOf(this.chosen) * this.lane - this.top;
    const start = this.start[this.chosen], left = this.xOf(start), right = this.xOf(start + this.length[this.chosen]);
    this.context.strokeStyle = theme.focus;
    this.context.lineWidth = 2;
    this.context.strokeRect(left - 1, y - 1, Math.max(right - left, 2) + 2, this.lane);
  }

  step(by) {
    const [low, high] = this.chosen < 0 ? this.visible(0) : [0, this.start.length];
    this.choose(this.chosen < 0 ? low : Math.min(Math.max(this.chosen + by, 0), high - 1));
  }

  stepLane(by) {
    const lane = Math.min(Math.max((this.chosen < 0 ? -by : this.laneOf(this.chosen)) + by, 0), this.lanes - 1);
    this.choose(Math.min(this.visible(lane)[0], this.first[lane + 1] - 1));
  }

  choose(i) {
    this.chosen = i;
    const middle = this.start[i] + this.length[i] / 2, length = this.window[1] - this.window[0];
    if (middle < this.window[0] || middle > this.window[1]) this.place(middle - length / 2, length);
    const y = this.laneOf(i) * this.lane;
    if (y < this.top || y + this.lane > this.top + this.height()) this.scroll(y - this.top);
    this.draw();
    const x = this.xOf(Math.max(this.start[i], this.window[0]));
    showChosen(this.canvas, this.lines(i), x, this.head() + y - this.top);
  }
}
