// SPDX-License-Identifier: GPL-2.0-only
// Tables that open on demand: the calls behind a line of collectives.
"use strict";

const MAX_CALLS_SHOWN = 100;

function row(cells, name = "td") {
  return element("tr", {}, ...cells.map((cell) => element(name, {}, cell)));
}

/** The calls of a group, the slowest first. */
function callRows(data, group) {
  const columns = Object.fromEntries(["id", "group", "start", "time", "algbw", "busbw", "label"].map(
    (name) => [name, unpacked(data[name])]));
  const calls = Array.from(columns.id.keys()).filter((i) => columns.group[i] === group);
  calls.sort((a, b) => columns.time[b] - columns.time[a] || a - b);
  return {count: calls.length, rows: calls.slice(0, MAX_CALLS_SHOWN).map((i) => [
    `#${columns.id[i]} ${data.labels[columns.label[i]]}`, timeText(columns.start[i]),
    columns.time[i] < 0 ? "not finished" : timeText(columns.time[i]), `${digits(columns.algbw[i])} GB/s`,
    `${digits(columns.busbw[i])} GB/s`])};
}

function openCalls(opener, data) {
  const line = opener.closest("tr"), next = line.nextElementSibling;
  if (next && next.classList.contains("calls")) {
    next.remove();
    opener.setAttribute("aria-expanded", "false");
    return;
  }
  const {count, rows} = callRows(data, Number(opener.dataset.group));
  const more = count > rows.length ? [element("p", {}, `The slowest ${rows.length} of ${count} calls.`)] : [];
  const table = element("table", {}, element("thead", {}, row(["call", "start", "time", "algbw", "busbw"], "th")),
    element("tbody", {}, ...rows.map((cells) => row(cells))));
  line.after(element("tr", {class: "calls"}, element("td", {colspan: line.children.length}, ...more, table)));
  opener.setAttribute("aria-expanded", "true");
}

function listenToCalls(section, data) {
  for (const opener of section.querySelectorAll("button[data-group]"))
    opener.addEventListener("click", () => openCalls(opener, data));
}
