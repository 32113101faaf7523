// SPDX-License-Identifier: GPL-2.0-only
// The search of the site that scripts/site builds. mkdocs' own one requests its index, which browsers refuse to pages that are
// opened as files. This one has the index as a script, search/search_index.js, which only the page of results loads.
"use strict";

const MOST_RESULTS = 100;
const SUMMARY_LENGTH = 240;  // characters, of which a quarter are before the first word that was found
const WEIGHT_OF_TITLE = 20;
const MOST_COUNTED = 8;  // occurrences of a word in one section
const WEIGHTS = {repository: 0.1, validation: 0.5, developer: 0.5};  // of folders that are read after the others

/** 0 if a word is missing. */
function scoreOf(section, words) {
  const title = section.title.toLowerCase(), text = section.text.toLowerCase();
  let score = 0;
  for (const word of words) {
    const found = Math.min(text.split(word).length - 1, MOST_COUNTED) + (title.includes(word) ? WEIGHT_OF_TITLE : 0);
    if (found === 0) return 0;
    score += found;
  }
  return score * (WEIGHTS[section.location.split("/")[0]] ?? 1);
}

/** Sections with all words, the best first. The index also has whole pages: they count where no section has all words. */
function sectionsWith(words, sections) {
  const found = sections.map((section) => ({section, score: scoreOf(section, words)})).filter((one) => one.score > 0);
  const withSections = new Set(found.map((one) => one.section.location).filter((place) => place.includes("#"))
    .map((place) => place.split("#")[0]));
  return found.filter((one) => !withSections.has(one.section.location)).sort((a, b) => b.score - a.score)
    .map((one) => one.section);
}

function summaryOf(section, words) {
  const at = words.map((word) => section.text.toLowerCase().indexOf(word)).filter((place) => place >= 0);
  const before = Math.min(...at, section.text.length) - SUMMARY_LENGTH / 4;
  const begin = before > 0 ? section.text.indexOf(" ", before) + 1 : 0;
  const text = section.text.slice(begin, begin + SUMMARY_LENGTH);
  return (begin > 0 ? "… " : "") + text + (begin + SUMMARY_LENGTH < section.text.length ? " …" : "");
}

function elementWith(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

function resultOf(section, titles, words) {
  const page = titles[section.location.split("#")[0]];
  const link = elementWith("a", page && page !== section.title ? `${page}: ${section.title}` : section.title);
  link.href = `${base_url.replace(/\/$/, "")}/${section.location}`;
  return elementWith("article", elementWith("h3", link), elementWith("p", summaryOf(section, words)));
}

function showResults(place, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length > 0 ? sectionsWith(words, searchIndex.docs) : [];
  const titles = Object.fromEntries(searchIndex.docs.filter((one) => !one.location.includes("#"))
    .map((one) => [one.location, one.title]));
  const more = found.length > MOST_RESULTS ? [elementWith("p", `The first ${MOST_RESULTS} of ${found.length} sections.`)] : [];
  const none = found.length === 0 ? [elementWith("p", "No section has all of these words.")] : [];
  place.replaceChildren(...none, ...more, ...found.slice(0, MOST_RESULTS).map((section) => resultOf(section, titles, words)));
}

function loadIndex(done) {
  const script = elementWith("script");
  script.src = `${base_url.replace(/\/$/, "")}/search/search_index.js`;
  script.onload = done;
  document.head.append(script);
}

function startSearch() {
  const place = document.getElementById("mkdocs-search-results");
  if (!place) return;
  const input = document.getElementById("mkdocs-search-query");
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  loadIndex(() => {
    input.addEventListener("input", () => showResults(place, input.value));
    showResults(place, input.value);
    document.documentElement.dataset.ready = "1";
  });
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", startSearch);
else startSearch();
