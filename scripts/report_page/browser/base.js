// SPDX-License-Identifier: GPL-2.0-only
// What all charts share: numbers as text, arrays, elements, colours, the tooltip. The files of this folder become one
// script.
"use strict";

const ARRAYS = {f8: Float64Array, f4: Float32Array, u4: Uint32Array, i4: Int32Array, u2: Uint16Array, u1: Uint8Array};
const TIMES = [[1e12, "s"], [1e9, "ms"], [1e6, "µs"], [1e3, "ns"], [1, "ps"]];
const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
const RATES = [[1e12, "Tb/s"], [1e9, "Gb/s"], [1e6, "Mb/s"], [1, "b/s"]];
const charts = [];  // each has draw(), for another theme

function unpacked(array) {
  const bytes = Uint8Array.from(atob(array.data), (letter) => letter.charCodeAt(0));
  return new ARRAYS[array.type](bytes.buffer);
}

function digits(value, count = 4) {
  return String(Number(value.toPrecision(count)));
}

function scaled(value, scales) {
  const [factor, unit] = scales.find(([least]) => Math.abs(value) >= least) || scales[scales.length - 1];
  return `${digits(value / factor)}\u00a0${unit}`;
}

const timeText = (value) => scaled(value, TIMES);
const bytesText = (value) => scaled(value, SIZES);
const rateText = (value) => scaled(value, RATES);
const percentText = (value) => `${digits(100 * value, 3)} %`;
const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];
const prefixed = (unit) => (value) => (value ? scaled(value, PREFIXES.map(([factor, name]) => [factor, name + unit])) :
  `0\u00a0${unit}`);
const gramsText = (value) => (Math.abs(value) >= 1e6 ? `${digits(value / 1e6)}\u00a0t` : prefixed("g")(value));
const dollarsText = (value) =>
  `${Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : digits(value)}\u00a0$`;
const asText = {ps: timeText, B: bytesText, "bit/s": rateText, J: prefixed("J"), W: prefixed("W"), g: gramsText,
  $: dollarsText, s: (value) => timeText(value * 1e12), 1: (value) => digits(value)};
const shareText = {...asText, 1: percentText};

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function choice(title, options, chosen, onchange) {
  const list = options.map(([value, text]) =>
    element("option", {value, ...(value === chosen && {selected: ""})}, text));
  const select = element("select", {onchange: () => onchange(select.value)}, ...list);
  return element("label", {class: "choice"}, title, " ", select);
}

function button(text, title, onclick) {
  return element("button", {type: "button", title, "aria-label": title, onclick}, text);
}

// ---- colours

const CATEGORY_COLOURS = {
  compute: 0, transfer: 5, queueing: 1, pause: 3, retransmission: 6, pacing: 4, credits: 8, own: 9, peers: 2, local: 7,
  window: 11, sending: 12, exposed: 1, idle: 10, other: 10, reordering: 13,
  slowed: 14, host: 15,
};
let theme = {};

function isDark() {
  const wanted = document.documentElement.dataset.theme;
  return wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  theme = {
    ink: value("--ink"), soft: value("--soft"), line: value("--line"), back: value("--card"), focus: value("--focus"),
    colours: value("--colours").split(/\s+/), ramp: value("--ramp").split(/\s+/).map(hexToNumbers),
    lane: value("--lane"),
  };
}

const colour = (index) => theme.colours[index % theme.colours.length];
const categoryColour = (category) => colour(CATEGORY_COLOURS[category] ?? 10);

function hexToNumbers(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** The colour of a share from 0 to 1 as three numbers. */
function rampNumbers(share) {
  const place = Math.min(Math.max(share, 0), 1) * (theme.ramp.length - 1);
  const below = Math.min(Math.floor(place), theme.ramp.length - 2);
  return theme.ramp[below].map((low, i) => Math.round(low + (place - below) * (theme.ramp[below + 1][i] - low)));
}

const rampColour = (share) => `rgb(${rampNumbers(share).join(",")})`;

function redrawAll() {
  readTheme();
  for (const chart of charts) if (chart.shown()) chart.draw();
}

/** A strip that says which colour is which value. */
function rampLegend(low, high, title) {
  const stops = theme.ramp.map((numbers) => `rgb(${numbers.join(",")})`).join(",");
  return [element("span", {}, `${title}: ${low}`),
    element("span", {class: "strip", style: `background:linear-gradient(to right,${stops})`}),
    element("span", {}, high)];
}

function colourLegend(names, colours) {
  return names.map((name, i) => element("span", {class: "key"},
    element("span", {class: "swatch", style: `background:${colours[i]}`}), name));
}

// ---- canvas, tooltip, voice for screen readers

/** Makes a canvas as wide as its box, sharp on any screen; gives its context and size in CSS pixels. */
function prepared(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = Math.max(canvas.parentElement.clientWidth, 200);
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  return {context, width, height, pixel: 1 / ratio};
}

/** A canvas that takes the focus, with a description for those who do not see it. */
function chartCanvas(name, label) {
  return element("canvas", {tabindex: "0", role: "application", "aria-label": label, "data-chart": name});
}

function showTip(lines, x, y) {
  const tip = document.getElementById("tip");
  tip.replaceChildren(...lines.map((line, i) => element(i ? "div" : "strong", {}, line)));
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = `${Math.max(Math.min(x + 14, innerWidth - width - 8), 4)}px`;
  tip.style.top = `${y + 16 + height > innerHeight ? Math.max(y - height - 10, 4) : y + 16}px`;
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}

function say(text) {
  document.getElementById("voice").textContent = text;
}

/** Tooltip of a canvas: `at(x, y)` gives the lines for a place, or nothing. */
function followMouse(canvas, at) {
  canvas.addEventListener("mousemove", (event) => {
    const lines = event.buttons ? null : at(event.offsetX, event.offsetY);
    if (lines) showTip(lines, event.clientX, event.clientY);
    else hideTip();
  });
  canvas.addEventListener("mouseleave", hideTip);
  canvas.addEventListener("blur", hideTip);
}

/** Shows the lines for what the keyboard has chosen beside the canvas, and says them. */
function showChosen(canvas, lines, x, y) {
  const box = canvas.getBoundingClientRect();
  showTip(lines, box.left + x, box.top + y);
  say(lines.join(", "));
}

function onKeys(canvas, keys) {
  canvas.addEventListener("keydown", (event) => {
    const action = keys[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action(event);
  });
}

/** Dragging with the mouse or a finger: `move(dx, dy)` in CSS pixels. */
function onDrag(canvas, move) {
  canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) move(event.movementX, event.movementY);
  });
}

/** The wheel zooms where the chart has the focus; elsewhere it moves the page as ever. */
function onWheel(canvas, zoom) {
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, event.offsetX, event.offsetY);
  }, {passive: false});
}

function register(chart, canvas) {
  chart.shown = () => canvas.parentElement !== null && canvas.parentElement.clientWidth > 0;
  charts.push(chart);
  let width = 0;
  new ResizeObserver(() => {
    if (!chart.shown() || canvas.parentElement.clientWidth === width) return;
    width = canvas.parentElement.clientWidth;
    chart.draw();
  }).observe(canvas.parentElement);
}

/** Ticks of a time axis: round values of which about `count` lie between the ends. */
function timeTicks(from, to, count) {
  const rough = (to - from) / count, power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) || power;
  const ticks = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) ticks.push(tick);
  return {ticks, step};
}

/** Texts of ticks in one unit, with as many digits as tell them apart. */
function tickText(step, to) {
  const [factor, unit] = TIMES.find(([least]) => to >= 2 * least) || TIMES[TIMES.length - 1];
  const places = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / factor) - 1e-9)));
  return (tick) => `${(tick / factor).toFixed(places)} ${unit}`;
}
