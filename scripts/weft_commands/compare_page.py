# SPDX-License-Identifier: GPL-2.0-only
"""A comparison as one page without network access: sentences, tables, and a bar for each change."""

from html import escape

from weft_commands.compare_text import cells, headings, sections

SHOWN, MOST = 10, 100  # rows of a table shown at first, and in all
BAR_WIDTH, BAR_HEIGHT = 160, 14

STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --back: #ffffff; --faint: #666666; --line: #d0d0d0; --more: #b94700;
  --less: #0061a8; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --back: #16181b; --faint: #a0a0a0; --line: #3a3d42;
  --more: #ff9a57; --less: #6db7f2; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 75rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin-top: 3rem; } h3 { font-size: 1.05rem; margin: 2rem 0 0.2rem; }
p.verdict { font-size: 1.15rem; font-weight: 600; } .faint { color: var(--faint); font-size: 0.9rem; margin: 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.2rem 0.8rem 0.2rem 0; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.input { overflow-wrap: anywhere; white-space: normal; max-width: 28rem; }
.more { fill: var(--more); } .less { fill: var(--less); } .axis { stroke: var(--faint); }
summary { cursor: pointer; color: var(--faint); } summary:focus-visible { outline: 2px solid var(--less); }
"""


def bar(row, largest):
    """The change as a bar from the middle: more to the right, less to the left."""
    middle, change = BAR_WIDTH / 2, row["change"]
    if change is None or not largest:
        return ""
    length = abs(change) / largest * (middle - 1)
    length = max(length, 1) if change else 0
    start, kind = (middle, "more") if change > 0 else (middle - length, "less")
    return (f'<svg width="{BAR_WIDTH}" height="{BAR_HEIGHT}" aria-hidden="true">'
            f'<rect class="{kind}" x="{start:.1f}" y="2" width="{length:.1f}" height="{BAR_HEIGHT - 4}"/>'
            f'<line class="axis" x1="{middle}" y1="0" x2="{middle}" y2="{BAR_HEIGHT}"/></svg>')


def table_row(row, further, largest):
    texts = cells(row, further)
    numbers = "".join(f'<td class="number">{escape(text)}</td>' for text in texts[1:5])
    rest = "".join(f"<td>{escape(text)}</td>" for text in texts[5:])
    drawn = f"<td>{bar(row, largest)}</td>" if largest else ""
    return f"<tr><td>{escape(texts[0])}</td>{numbers}{drawn}{rest}</tr>\n"


def table_of(found, rows, further, largest):
    names = headings(found, further)
    numbers = "".join(f'<th scope="col" class="number">{escape(name)}</th>' for name in names[1:5])
    rest = "".join(f'<th scope="col">{escape(name)}</th>' for name in names[5:])
    drawn = '<th scope="col"></th>' if largest else ""
    body = "".join(table_row(row, further, largest) for row in rows)
    return (f'<div class="wide"><table><thead><tr><th scope="col"></th>{numbers}{drawn}{rest}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>\n")


def section(found, title, what, rows, further):
    """Rows of different units have no common scale, and so no bars."""
    units = {row["unit"] for row in rows}
    largest = max(abs(row["change"] or 0) for row in rows) if len(units) == 1 else 0
    text = f'<h3>{escape(title)}</h3>\n<p class="faint">{escape(what)}</p>\n'
    text += table_of(found, rows[:SHOWN], further, largest)
    if len(rows) > SHOWN:
        left = len(rows) - MOST
        text += f"<details><summary>{len(rows) - SHOWN} more</summary>\n"
        text += table_of(found, rows[SHOWN:MOST], further, largest)
        text += f'<p class="faint">{left} further rows are in `weft compare --json`.</p>' if left > 0 else ""
        text += "</details>\n"
    return text


def input_table(found):
    if not found["inputs"]:
        return ""
    body = "".join(f'<tr><td>{escape(row["key"])}</td><td class="input">{escape(row["first"])}</td>'
                   f'<td class="input">{escape(row["second"])}</td></tr>\n' for row in found["inputs"][:MOST])
    left = len(found["inputs"]) - MOST
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("", found["first"], found["second"]))
    return (f'<h3>Inputs that differ</h3>\n<div class="wide"><table><thead><tr>{names}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>\n"
            + (f'<p class="faint">{left} further inputs are in `weft compare --json`.</p>\n' if left > 0 else ""))


def comparison(found):
    verdict, *others = found["sentences"]
    text = f'<h2>{escape(found["second"])} against {escape(found["first"])}</h2>\n'
    text += f'<p class="verdict">{escape(verdict)}</p>\n'
    text += "".join(f"<p>{escape(sentence)}</p>\n" for sentence in others)
    text += "".join(f'<p class="faint">Note: {escape(note)}</p>\n' for note in found["notes"])
    text += input_table(found)
    return text + "".join(section(found, *one) for one in sections(found) if one[2])


def page_of(result):
    names = " and ".join(escape(run["name"]) for run in result["runs"])
    body = "".join(f"<section>{comparison(found)}</section>\n" for found in result["comparisons"])
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{names}</title>\n<style>{STYLE}</style></head>\n<body><h1>Comparison of {names}</h1>\n"
            f"{body}</body></html>\n")
