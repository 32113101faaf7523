// SPDX-License-Identifier: GPL-2.0-only
// Curves over time and slowdowns, drawn by uPlot.
"use strict";

const FONT = "12px system-ui, sans-serif";

function axis(extra) {
  return {stroke: () => theme.soft, font: FONT, grid: {stroke: () => theme.line, width: 1},
    ticks: {stroke: () => theme.line, width: 1}, ...extra};
}

function titled(label) {
  return {label, labelFont: FONT, labelSize: 20};
}

function timeAxis() {
  return axis({
    space: 90,
    values: (plot, ticks) => {
      const text = tickText((ticks[1] ?? 1) - (ticks[0] ?? 0) || 1, plot.scales.x.max);
      return ticks.map(text);
    },
  });
}

const POWERS_OF_TWO = Array.from({length: 50}, (_, i) => 2 ** i);

function valueAxis(unit) {
  return axis({size: 84, ...(unit === "B" && {incrs: POWERS_OF_TWO}),
    values: (plot, ticks) => ticks.map((tick) => (tick === null ? "" : shareText[unit](tick)))});
}

function series(name, index, unit, extra) {
  return {label: name, stroke: () => colour(index), width: 1.6, points: {show: false},
    value: (plot, value) => (value === null || value === undefined ? "–" : shareText[unit](value)), ...extra};
}

/** A uPlot in a box: as wide as it, drawn anew with another theme, arrow keys zoom and pan. */
function drawCurves(box, name, label, options, data) {
  const frame = element("div", {class: "frame curves", tabindex: "0", role: "application", "aria-label": label,
    "data-chart": name});
  const inner = element("div");
  frame.append(inner);
  box.append(frame);
  const chart = {plot: null, draw: () => drawPlot(chart, inner, options, data)};
  register(chart, inner);
  const zoom = (factor, shift) => () => zoomPlot(chart.plot, data[0], factor, shift);
  onKeys(frame, {ArrowLeft: zoom(1, -0.15), ArrowRight: zoom(1, 0.15), "+": zoom(0.5, 0), "=": zoom(0.5, 0),
    "-": zoom(2, 0), Home: zoom(Infinity, 0), 0: zoom(Infinity, 0)});
}

function drawPlot(chart, inner, options, data) {
  const width = Math.max(inner.parentElement.clientWidth, 200);
  if (!chart.plot) {
    chart.plot = new uPlot({width, height: 260, ...options}, data, inner);
    chart.plot.ctx.canvas.setAttribute("aria-hidden", "true");  // its frame has the description
  } else chart.plot.setSize({width, height: 260});
  chart.plot.redraw(false);
}

function zoomPlot(plot, x, factor, shift) {
  const [first, last] = [x[0], x[x.length - 1]], {min, max} = plot.scales.x;
  const length = Math.min((max - min) * factor, last - first), middle = (min + max) / 2 + shift * (max - min);
  const from = Math.min(Math.max(middle - length / 2, first), last - length);
  plot.setScale("x", {min: from, max: from + length});
}

function timeCurves(box, name, title, unit, times, curves, extra = []) {
  box.append(element("h3", {}, title));
  const lines = [...curves.map((curve, i) => series(curve.name, i, unit)),
    ...extra.map(({curve, index}) => series(curve.name, index, unit, {dash: [5, 4], width: 1}))];
  const values = [...curves, ...extra.map(({curve}) => curve)].map((curve) => unpacked(curve.values));
  const most = values.reduce((top, list) => list.reduce((a, b) => Math.max(a, b), top), 0);
  drawCurves(box, name, `${title}. Arrow keys move, plus and minus zoom, Home shows all.`, {
    scales: {x: {time: false}, y: {range: [0, most > 0 ? most * 1.05 : 1]}}, axes: [timeAxis(), valueAxis(unit)],
    series: [{label: "time", value: (plot, value) => (value === null ? "–" : timeText(value))}, ...lines],
    legend: {live: true},
  }, [unpacked(times), ...values]);
}

function queueCurves(box, run) {
  const {queues} = run;
  if (queues.queues.length)
    timeCurves(box, "queues", "Longest queues of links (bytes not yet transmitted)", "B", queues.times, queues.queues);
  timeCurves(box, "used", "Utilisation of links", "1", queues.times, queues.used);
}

function rateCurves(box, run) {
  const {rates} = run, named = rates.allowed.map((curve, index) => ({curve: {...curve, name: `${curve.name}, allowed`},
    index})).filter(({curve}) => unpacked(curve.values).some((value) => value > 0));
  timeCurves(box, "rates", `Rates of the busiest ${rates.rates.length} of ${rates.pairs} queue pairs; dashed: allowed`,
    "bit/s", rates.times, rates.rates, named);
  timeCurves(box, "flight", "Bytes in flight of these queue pairs", "B", rates.times, rates.flight);
}

/** All curves over the slowdowns that any of them has; between its own points a curve stays as it was. */
function slowdownCurves(box, run) {
  const {curves} = run.slowdown;
  const points = curves.map((curve) => [unpacked(curve.x), unpacked(curve.y)]);
  const x = Float64Array.from(new Set(points.flatMap(([values]) => [...values]))).sort();
  const stepped = points.map(([values, shares]) => {
    let at = 0;
    return Float64Array.from(x, (value) => {
      while (at < values.length && values[at] <= value) at++;
      return at ? shares[at - 1] : 0;
    });
  });
  const lines = curves.map((curve, i) => series(`${curve.name} (${curve.count.toLocaleString("en")})`, i, "1",
    {...(curve.name === "all" ? {width: 2.6, stroke: () => theme.ink} : {width: 1.5, dash: [6, 2 + i]}),
      paths: uPlot.paths.stepped({align: 1})}));
  drawCurves(box, "slowdown", "Share of messages with at most a slowdown, by size. Plus and minus zoom.", {
    scales: {x: {time: false, distr: 3, range: (plot, low, high) => [low, high * 1.02]}, y: {range: [0, 1.02]}},
    axes: [axis({values: (plot, ticks) => ticks.map((tick) => (tick === null ? "" : digits(tick, 3))), space: 60,
      ...titled("slowdown")}), {...valueAxis("1"), ...titled("share of messages")}],
    series: [{label: "slowdown", value: (plot, value) => (value === null ? "–" : digits(value))}, ...lines],
    legend: {live: true},
  }, [x, ...stepped]);
}
