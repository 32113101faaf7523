// SPDX-License-Identifier: GPL-2.0-only
// Where the time went: stacked bars of jobs, ranks and collectives. More than so many rows are put together; a bar
// opens into its rows.
"use strict";

const MAX_BARS = 64;

class Attribution {
  constructor(box, data) {
    this.data = data;
    this.values = unpacked(data.values);
    this.owner = data.owner ? unpacked(data.owner) : null;
    this.parts = data.parts;
    this.path = [];
    this.box = element("div", {class: "bars", "data-chart": `attribution-${data.kind}`});
    this.back = button("Back", "Back to all", () => this.open(this.path.slice(0, -1)));
    this.legend = element("div", {class: "legend"});
    const more = data.total > data.rows ? ` (${data.rows} of ${data.total})` : "";
    box.append(element("h3", {}, `By ${data.kind.replace(/s$/, "")}${more}`),
      element("div", {class: "tools"}, this.back, this.legend), this.box);
    charts.push(this);
    this.draw();
  }

  shown() {
    return true;
  }

  /** Groups of rows at the first level, then what a group holds, in slots if that is too much for bars. */
  bars() {
    const all = Array.from({length: this.data.rows}, (_, row) => row);
    let rows = all, level = 0;
    if (this.data.groups) {
      if (this.path.length === 0) return this.byGroup(all);
      rows = this.byGroup(all)[this.path[0]].rows;
      level = 1;
    }
    for (const slot of this.path.slice(level)) rows = this.slots(rows)[slot].rows;
    return this.slots(rows);
  }

  byGroup(rows) {
    const found = this.data.groups.map((name) => ({name, rows: []}));
    for (const row of rows) found[this.owner[row]].rows.push(row);
    const total = ({rows: some}) => this.mean(some).reduce((sum, value) => sum + value, 0);
    return found.filter((group) => group.rows.length).map((group) => ({...group, total: total(group)}))
      .sort((a, b) => b.total - a.total);
  }

  slots(rows) {
    const size = Math.ceil(rows.length / MAX_BARS);
    if (size <= 1) return rows.map((row) => ({name: this.data.labels[row], rows: [row]}));
    return Array.from({length: Math.ceil(rows.length / size)}, (_, slot) => {
      const some = rows.slice(slot * size, (slot + 1) * size);
      return {name: `${this.data.labels[some[0]]} to ${this.data.labels[some[some.length - 1]]}`, rows: some};
    });
  }

  mean(rows) {
    const value = (row, part) => this.values[row * this.parts.length + part] / this.data.whole[row];
    return this.parts.map((_, part) => rows.reduce((sum, row) => sum + value(row, part), 0) / rows.length);
  }

  open(path) {
    this.path = path;
    this.draw();
    const first = this.box.querySelector("button");
    if (first) first.focus();
  }

  draw() {
    const bars = this.bars(), means = bars.map((bar) => this.mean(bar.rows));
    const totals = means.map((values) => values.reduce((sum, value) => sum + value, 0));
    const most = Math.max(...totals, 1);
    this.back.hidden = this.path.length === 0;
    this.drawLegend();
    this.box.replaceChildren(...bars.map((bar, i) => this.row(bar, i, means[i], totals[i], most)));
  }

  /** Names of the parts that any row has. */
  drawLegend() {
    const there = this.shownParts();
    const some = (list) => list.filter((_, part) => there[part]);
    const names = this.parts.map((part) => part.name.replaceAll("_", " "));
    this.legend.replaceChildren(...colourLegend(some(names), some(this.colours())));
  }

  /** Whether any row has it, for each part. */
  shownParts() {
    return this.parts.map((_, part) => this.values.some((value, i) => value && i % this.parts.length === part));
  }

  /** By what a part means. A further shown part of the same colour is striped: a lighter colour would look like another
      part's. */
  colours() {
    const seen = new Map(), there = this.shownParts();
    return this.parts.map(({category}, part) => {
      const own = categoryColour(category), again = seen.get(own) || 0;
      if (there[part]) seen.set(own, again + 1);
      return again ? `repeating-linear-gradient(${again % 2 ? 135 : 45}deg,${own} 0 4px,${theme.back} 4px 6px)` : own;
    });
  }

  row(bar, index, means, total, most) {
    const several = bar.rows.length > 1, colours = this.colours();
    const pieces = means.map((value, i) => element("span", {
      class: "piece", style: `width:${100 * value / most}%;background:${colours[i]}`,
      "data-part": this.parts[i].name, "data-value": value,
    }));
    const lines = this.lines(bar, means, total);
    const whole = element("button", {type: "button", class: "bar", "aria-label": lines.join(", "),
      onclick: () => several && this.open([...this.path, index]), onmousemove: (event) => showTip(lines, event.clientX,
        event.clientY), onmouseleave: hideTip, onblur: hideTip, onfocus: (event) => this.focus(event, lines)},
    ...pieces);
    return element("div", {class: "bar-row"}, element("span", {class: "bar-name", title: bar.name},
      several ? `${bar.name} ▸` : bar.name), whole, element("span", {class: "bar-total"}, timeText(total)));
  }

  focus(event, lines) {
    if (!event.target.matches(":focus-visible")) return;
    const box = event.target.getBoundingClientRect();
    showTip(lines, box.left + 40, box.bottom - 10);
  }

  lines(bar, means, total) {
    const several = bar.rows.length > 1, ranks = this.data.whole[bar.rows[0]];
    const of = several ? `: mean of ${bar.rows.length}` : ranks > 1 ? ": mean of ranks" : "", head = bar.name + of;
    const order = means.map((_, i) => i).filter((i) => means[i] > 0).sort((a, b) => means[b] - means[a]);
    return [`${head}, ${timeText(total)}`, ...order.map((i) =>
      `${this.parts[i].name.replaceAll("_", " ")}: ${timeText(means[i])}, ${percentText(means[i] / total)}`)];
  }
}
