// SPDX-License-Identifier: GPL-2.0-only
// Puts the charts into the page, a run at a time, when it is first shown.
"use strict";

const SECTIONS = {
  timeline: (box, run) => new Timeline(box, run),
  topology: (box, run) => new Topology(box, run),
  heat: (box, run) => new HeatMap(box, run),
  queues: queueCurves,
  rates: rateCurves,
  slowdown: slowdownCurves,
  attribution: (box, run) => run.attribution.forEach((data) => new Attribution(box, data)),
  collectives: (box, run) => listenToCalls(box, run.collectives),
  sweep: (box, data) => new Sweep(box, data),
};

function buildRun(article) {
  if (article.dataset.built) return;
  article.dataset.built = "1";
  const run = JSON.parse(document.getElementById(`data-${article.id}`).textContent);
  for (const box of article.querySelectorAll("[data-section]")) SECTIONS[box.dataset.section](box, run);
}

function showRun(id) {
  for (const article of document.querySelectorAll("article")) article.hidden = article.id !== id;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const mine = tab.getAttribute("aria-controls") === id;
    tab.setAttribute("aria-selected", mine);
    tab.tabIndex = mine ? 0 : -1;
  }
  buildRun(document.getElementById(id));
  for (const chart of charts) if (chart.shown()) chart.draw();
}

function listenToTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => showRun(tab.getAttribute("aria-controls")));
    tab.addEventListener("keydown", (event) => {
      const to = {ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  });
}

/** Names of runs in the table of all open their tabs. */
function listenToOverview() {
  for (const link of document.querySelectorAll("a[href^='#tab-']")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const tab = document.querySelector(link.getAttribute("href"));
      tab.click();
      tab.focus();
    });
  }
}

function listenToTheme() {
  const switcher = document.getElementById("theme");
  const name = () => {
    switcher.textContent = isDark() ? "Light" : "Dark";
    switcher.setAttribute("aria-label", `Change to ${isDark() ? "light" : "dark"} colours`);
  };
  switcher.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    name();
    redrawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    name();
    redrawAll();
  });
  name();
}

readTheme();
listenToTheme();
listenToTabs();
listenToOverview();
showRun(document.querySelector("article").id);
document.documentElement.dataset.ready = "1";
