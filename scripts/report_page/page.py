# SPDX-License-Identifier: GPL-2.0-only
"""The page: text and tables as HTML that needs no script, data for the charts, styles and scripts, all in one file."""

import json
import pathlib
import re

from report_page import costs, sweep_tables
from report_page.attribution import SIMPLE
from report_page.elements import chart, note, section, table, tag, text
from report_page.values import bytes_text, percent, time_text
from support.quantities import counted

FOLDER = pathlib.Path(__file__).resolve().parent
SCRIPTS = ("base", "timeline", "topology", "heatmap", "curves", "attribution", "tables", "sweep", "main")
# The page must not load anything: it contains all that it needs.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"


# ---- a run


def banner(run):
    if run["complete"]:
        return ""
    return tag("div", "INCOMPLETE RUN: it was interrupted, or cut short by simulation.until, at "
               f"{time_text(run['end'])} of simulated time. All numbers are of what had happened until then.",
               class_="banner", role="alert", data_incomplete=1)


def verdict(run):
    found = run["verdict"]
    return tag("div", tag("h2", "Verdict"), *(tag("p", keys(text(sentence))) for sentence in found["sentences"]),
               class_="verdict", data_verdict=found["kind"], data_congested=int(found["congested"]),
               data_link=found["link"], data_job=found["job"])


def keys(words):
    """Keys of experiments, in backticks, as code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", words)


def facts(run):
    pairs = [tag("div", tag("dt", text(title)), tag("dd", text(shown), data_fact=name, data_value=value))
             for title, shown, name, value in run["summary"]]
    return section("Summary", "summary", tag("dl", *pairs, class_="facts"))


def attribution(run):
    if not run["attribution"]:
        return ""
    exact = any(part["name"] not in SIMPLE for data in run["attribution"]
                for part in data["parts"])
    words = ("Parts add up to the whole time." if exact else
             "This file has no columns part_*: compute, exposed communication, waiting for peers and idle time stand for them.")
    return section("Where the time went", "attribution", note(f"{words} A bar with ▸ opens into its rows when it is clicked."),
                   chart("attribution"))


def timeline(run):
    data = run["timeline"]
    if data is None:
        return ""
    words = ("Keys: ← and → move, + and − zoom, Home shows all, n and p go from bar to bar, PageUp and PageDown from track to "
             "track. The mouse wheel zooms after a click on the chart.")
    if data["source"] == "collectives":
        words = "The file has collectives only; with <code>output.operations: true</code> there are ranks and streams. " + words
    elif data["shown"] < data["ranks"]:
        words = (f"{data['shown']} of {data['ranks']} ranks one by one, evenly spaced and the last to finish "
                 f"({data['count']:,} of {data['total']:,} operations); the strips on top are of all. ") + words
    return section("Timeline", "timeline", note(words), chart("timeline"), data_operations=data["total"])


def machine(run):
    if run["topology"] is None:
        return ""
    words = f"{text(run['machine'])}. Each half of a link has the colour of the direction that leaves there."
    return section("Machine", "topology", note(words), chart("topology"), data_links=run["topology"]["count"])


def delays(run):
    data = run["delays"]
    if not data["rows"]:
        return section("Links by delay caused", "delays",
                       note("No link has delayed a message, or the file does not say."))
    of_waits = data["source"] == "link_waits"
    words = ("How long messages waited at links (/link_waits)." if of_waits else
             "From the links that messages name as those where their last packet waited longest, at most what each "
             "message was late against an idle network.")
    rows = [delay_row(row, data["rows"][0]["delay"]) for row in data["rows"]]
    heads = ["link", "class", "delay", "", "share", "who waited", "behind whom", "mostly between", "longest queue"]
    return section("Links by delay caused", "delays", note(f"{words} {len(rows)} of {data['links']} links."),
                   tag("div", table(heads, rows, numbers=(2, 4)), class_="scroll"))


def delay_row(row, most):
    def shares(pairs):
        return "<br>".join(f"{text(name)} {percent(share)}" for name, share in pairs[:3])
    meter = tag("span", class_="meter", style=f"width:{max(80 * row['delay'] / most, 1):.1f}px")
    return [tag("span", text(row["name"]), data_delay_link=row["id"], data_value=row["delay"]), text(row["class"]),
            time_text(row["delay"]), meter, percent(row["share"]), shares(row["waiting"]), shares(row["front"]) or "–",
            f"{time_text(row['from'])} and {time_text(row['to'])}", bytes_text(row["peak_queue"])]


def heat(run):
    if not run["heat"]:
        return section("Links over time", "heat",
                       note("The file has no samples: set <code>output.sampling</code>, e.g. <code>10 us</code>."))
    return section("Links over time", "heat", chart("heat"))


def curves(run):
    parts = []
    if run["queues"]:
        words = (f"Queues: the largest value in each {time_text(run['queues']['interval'])}; utilisation: the mean. Arrow keys move, "
                 "+ and − zoom.")
        parts.append(section("Queues and utilisation", "queues", note(words), chart("queues")))
    if run["rates"]:
        parts.append(section("Rates of queue pairs", "rates", chart("rates")))
    return tag("div", *parts, class_="columns") if parts else ""


def depths(run):
    if not run["depths"]:
        return ""
    rows = [[text(row[0]), str(int(row[1])), *(bytes_text(value) for value in row[2:])] for row in run["depths"]]
    heads = ["link", "class", "mean", "p50", "p90", "p99", "p99.9", "peak"]
    return section("Queue depths over simulated time", "depths", tag("div", table(heads, rows, range(1, 8)),
                                                                     class_="scroll"))


def slowdown(run):
    data = run["slowdown"]
    if data is None:
        return section("Slowdown of messages", "slowdown",
                       note("The file has no messages (<code>output.messages</code>)."))
    words = "The duration of a message, divided by its duration on an idle network. Percentiles are at most 0.14 % too high."
    if data["seen"] < data["rows"]:
        words += (f" Estimated from {data['seen']:,} of {data['rows']:,} messages in evenly spaced slices; --exact "
                  "reads all.")
    rows = [[text(curve["name"]), tag("span", f"{curve['count']:,}", data_slowdown=curve["name"],
                                      data_count=curve["count"], data_max=curve["max"], data_p50=curve["p50"],
                                      data_p99=curve["p99"], data_mean=curve["mean"]),
             *(f"{curve[name]:.4g}" for name in ("mean", "p50", "p90", "p99", "p999", "max"))]
            for curve in data["curves"]]
    heads = ["size", "messages", "mean", "p50", "p90", "p99", "p99.9", "largest"]
    return section("Slowdown of messages", "slowdown", note(words), chart("slowdown"), table(heads, rows, range(1, 8)))


def collectives(run):
    data = run["collectives"]
    if data is None:
        return ""
    rows = [collective_row(group, len(run["jobs"]) > 1) for group in data["groups"]]
    heads = ["size", "collective", "algorithm", "ranks", "calls", "time: min", "mean", "max", "algbw", "busbw"]
    words = ("As nccl-tests prints them: bandwidths are means of calls, in 10⁹ B/s. A collective opens into its calls when it is "
             "clicked.")
    if data["calls"] < data["total"]:
        words += f" The first {data['calls']:,} of {data['total']:,} calls open."
    return section("Collectives", "collectives", note(words),
                   tag("div", tag("div", table(heads, rows, (0, 3, 4, 5, 6, 7, 8, 9)), class_="scroll"),
                       data_section="collectives"))


def collective_row(group, several):
    name = f"{group['job']}: {group['kind']}" if several else group["kind"]
    opener = tag("button", text(name), type="button", data_group=group["group"], aria_expanded="false",
                 data_busbw=group["busbw"], data_mean=group["mean"], data_count=group["count"])
    calls = str(group["count"]) if group["finished"] == group["count"] else f"{group['finished']} of {group['count']}"
    times = [time_text(group[key]) if group["finished"] else "–" for key in ("min", "mean", "max")]
    return [bytes_text(group["bytes"]), opener, text(group["algorithm"]), str(group["ranks"]), calls, *times,
            f"{group['algbw']:.2f}", f"{group['busbw']:.2f}"]


def critical(run):
    data = run["critical"]
    if data is None:
        return ""
    whole = sum(value for _, value in data["sums"])
    sums = [[text(name), time_text(value), percent(value / whole)] for name, value in data["sums"] if whole]
    rows = [[time_text(cell) if unit == "ps" and cell is not None else text(cell)
             for unit, cell in zip(data["units"], row)] for row in data["cells"]]
    more = f"The {len(rows):,} longest of {data['rows']:,} stretches." if len(rows) < data["rows"] else \
        f"{data['rows']:,} stretches, one after the other."
    slack = [[text(what), str(count), str(without), time_text(least), time_text(median)]
             for what, count, without, least, median in data["slack"]]
    return section("Critical path", "critical", table(["kind", "time", "share"], sums, (1, 2)) if sums else "",
                   note(more), tag("div", table([text(name) for name in data["columns"]], rows), class_="scroll"),
                   note("Slack: how much longer calls, and single compute operations of ranks, could have taken before the "
                        "run would have taken longer.") if slack else "",
                   table(["what", "number", "without slack", "least slack", "median"], slack, (1, 2, 3, 4)) if slack else "",
                   data_steps=data["rows"])


def parallel(run):
    data = run["parallel"]
    if data is None:
        return ""
    pairs = [tag("div", tag("dt", text(name)), tag("dd", cell_text(value, unit)))
             for name, value, unit in data["facts"]]
    rows = [[cell_text(cell, unit) for cell, unit in zip(row, data["units"])] for row in data["cells"][:256]]
    return section("The parallel run", "parallel", tag("dl", *pairs, class_="facts"),
                   tag("div", table([text(name.replace("_", " ")) for name in data["columns"]], rows,
                                    range(len(data["columns"]))), class_="scroll"))


def cell_text(value, unit):
    if isinstance(value, (int, float)) and unit == "ps":
        return time_text(value)
    if isinstance(value, (int, float)) and unit == "B":
        return bytes_text(value)
    whole = isinstance(value, (int, float)) and float(value).is_integer()
    shown = f"{int(value):,}" if whole else f"{value:.4g}" if isinstance(value, float) else text(value)
    return f"{shown} {unit}" if unit not in ("1", "id", "text", "") else shown


def model(run):
    rows = [[text(place), text(name), text(value)] for place, name, value in run["model"]]
    return tag("section", data_name="model", *[
        tag("details", tag("summary", "What was simulated"), table(["group", "attribute", "value"], rows))])


def run_body(run):
    return "".join((banner(run), verdict(run), facts(run), timeline(run), attribution(run), machine(run), delays(run),
                    heat(run), curves(run), depths(run), collectives(run), slowdown(run), critical(run),
                    costs.body(run), parallel(run), model(run)))


# ---- a sweep


def sweep_body(sweep):
    outputs = [column for column in sweep["columns"] if column["role"] == "output" and column["numeric"]]
    words = (f"{counted(sweep['rows'], 'case')}. Ringed: no other case is as good in one number and better in the other; "
             "hollow: a constraint is broken.")
    if sweep["equal"]:
        words += f" Held equal among the machines: {', '.join(map(text, sweep['equal']))}."
    warning = "" if sweep["complete"] else tag("div", f"INCOMPLETE SWEEP: {sweep['lacking']}.", class_="banner",
                                               role="alert", data_incomplete=1)
    return (warning + sweep_tables.search(sweep) + sweep_tables.front(sweep) + sweep_tables.cases(sweep) +
            sweep_tables.sensitivity(sweep) +
            section("Trade-off", "sweep", note(words), chart("sweep"), data_cases=sweep["rows"],
                    data_outputs=len(outputs)))


# ---- several files


def overview(items):
    """The main figures of runs side by side; the best of each column is highlighted."""
    runs = [(i, item) for i, item in enumerate(items) if not item.get("sweep")]
    if len(items) < 2 or not runs:
        return ""
    measures = [overview_measures(run) for _, run in runs]
    heads = ["run", "bounded by", "worst link", *(title for title, *_ in measures[0])]
    rows = []
    for (i, run), mine in zip(runs, measures):
        name = f"{run['name']}{'' if run['complete'] else ' (INCOMPLETE)'}"
        link = tag("a", text(name), href=f"#tab-run-{i}")
        cells = [overview_cell(cell, [other[at] for other in measures]) for at, cell in enumerate(mine)]
        rows.append([link, text(run["verdict"]["kind"]), text(run["verdict"]["link"] or "–"), *cells])
    return section("Side by side", "overview", table(heads, rows, range(3, len(heads))))


def overview_measures(run):
    """[(title, text, value, True if small is good)]."""
    known = {name: value for _, _, name, value in run["summary"]}
    steps = [value for _, _, name, value in run["summary"] if name == "step_time"]
    slow = next((curve for curve in (run["slowdown"] or {"curves": []})["curves"] if curve["name"] == "all"), None)
    busbw = max((group["busbw"] for group in (run["collectives"] or {"groups": []})["groups"]), default=None)
    delay = run["delays"]["total"]
    return [
        ("simulated time", time_text(run["end"]), run["end"], True),
        ("longest step", time_text(max(steps)) if steps else "–", max(steps) if steps else None, True),
        ("p99 slowdown", f"{slow['p99']:.4g}" if slow else "–", slow["p99"] if slow else None, True),
        ("delay at links", time_text(delay), delay, True),
        ("busiest link", percent(known["busiest"]) if "busiest" in known else "–", None, True),
        ("longest queue", bytes_text(known["peak_queue"]) if "peak_queue" in known else "–", known.get("peak_queue"),
         True),
        ("best busbw (GB/s)", f"{busbw:.2f}" if busbw is not None else "–", busbw, False),
    ]


def overview_cell(cell, column):
    _, shown, value, small = cell
    values = [other[2] for other in column if other[2] is not None]
    best = value is not None and len(set(values)) > 1 and value == (min(values) if small else max(values))
    return tag("span", text(shown), class_="best" if best else None, data_value=value)


def tabs(items):
    if len(items) < 2:
        return ""
    return tag("div", *(tag("button", text(item["name"]), type="button", role="tab", id=f"tab-run-{i}",
                            aria_controls=f"run-{i}", aria_selected="false") for i, item in enumerate(items)),
               role="tablist", aria_label="Files")


def article(i, item):
    body = sweep_body(item) if item.get("sweep") else run_body(item)
    return tag("article", body, id=f"run-{i}", data_file=item["name"], hidden="" if i else None)


def embedded(i, item):
    """Data as JSON; nothing in it can end the element that contains it."""
    data = json.dumps(item, ensure_ascii=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json" id="data-run-{i}">{data}</script>'


def read(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def page(items):
    title = ", ".join(item["name"] for item in items)
    style = read("vendor/uPlot.min.css") + read("browser/page.css")
    scripts = [read("vendor/uPlot.iife.min.js"), "\n".join(read(f"browser/{name}.js") for name in SCRIPTS)]
    head = tag("head", '<meta charset="utf-8">', f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
               '<meta name="viewport" content="width=device-width, initial-scale=1">',
               '<link rel="icon" href="data:,">', tag("title", text(f"weft report: {title}")), tag("style", style))
    body = tag("body", tag("header", tag("h1", text(f"weft report: {title}")),
                           tag("button", "Dark", type="button", id="theme")),
               tag("main", overview(items), tabs(items), *(article(i, item) for i, item in enumerate(items))),
               '<div id="tip" role="tooltip" hidden></div><div id="voice" class="unseen" aria-live="polite"></div>',
               *(embedded(i, item) for i, item in enumerate(items)),
               *(f"<script>{script}</script>" for script in scripts))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"
