# SPDX-License-Identifier: GPL-2.0-only
"""A comparison as text, and its tables, which the page also has."""

from weft_commands.explain_links import named_job
from weft_commands.quantities import change_text, percent_text, quantity_text, rate_text


def first_and_second(values, unit):
    texts = [quantity_text(value, unit) for value in values]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} -> {texts[1]}"


def gigabits(rates):
    return first_and_second([rate_text(rate) for rate in rates], "text")


# Further columns of a table: (heading, function from row to text).
CALLS = ("calls", lambda row: first_and_second(row["calls"], "1"))
ALGORITHM = ("algorithm", lambda row: " -> ".join(dict.fromkeys(name for name in row["algorithm"] if name)))
COUNT = ("count", lambda row: first_and_second(row["count"], "1"))
KIND = ("kind", lambda row: row["kind"])
WAITING = ("of it waiting", lambda row: first_and_second(row["waiting"], "ps"))
BYTES = ("bytes of messages", lambda row: first_and_second(row["bytes"], "B"))
RATE = ("rate", lambda row: gigabits(row["rate"]))
MEANING = ("", lambda row: row["meaning"])
EXPOSED = ("exposed", lambda row: first_and_second(row["exposed"], "ps"))


def sections(found):
    """[(title, description, rows, further columns)] of the tables of numbers."""
    yield "Times", "largest change first", found["outcome"], []
    if found["shares"]:
        yield f"What a step of {named_job(found['headline']['job'])} consists of", "average of its ranks and steps", found["shares"], [MEANING]
    yield "Collectives", "time in sum over the calls", found["collectives"], [ALGORITHM, CALLS]
    yield "Calls", "single collectives of both runs", found["calls"], []
    yield ("Operators", "average of the ranks: compute, and exposed communication",
           found["operators"], [KIND, COUNT])
    yield "Ranks", "time of compute", found["ranks"], [EXPOSED]
    yield "Links", "time that data packets spent waiting there, and that it was sending", found["links"], [WAITING, BYTES, RATE]
    for table, rows in found["parts"].items():
        yield f"Parts of /{table}", "sum over all rows", rows, [MEANING]
    yield "Counts", "", found["counts"], []


def cells(row, further):
    unit = row["unit"]
    return [row["what"], quantity_text(row["first"], unit), quantity_text(row["second"], unit),
            change_text(row["change"], unit), percent_text(row["percent"]), *(text(row) for _, text in further)]


def headings(found, further):
    return ["", found["first"], found["second"], "change", "", *(name for name, _ in further)]


def aligned(lines):
    """Lines of cells as text: names and further columns at the left, numbers at the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        texts = [cell.rjust(width) if 1 <= i <= 4 else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        yield "  " + "  ".join(texts).rstrip()


def input_lines(found, top):
    rows = found["inputs"][:top]
    if rows:
        yield "\nInputs that differ"
        yield from aligned_left([["", found["first"], found["second"]],
                                 *([row["key"], shortened(row["first"]), shortened(row["second"])] for row in rows)])
        yield from more(found["inputs"], top)


def aligned_left(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()


def shortened(text, most=60):
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def more(rows, top):
    if len(rows) > top:
        yield f"  ... and {len(rows) - top} more"


def comparison_lines(found, top):
    yield from found["sentences"]
    for note in found["notes"]:
        yield f"Note: {note}"
    yield from input_lines(found, top)
    for title, what, rows, further in sections(found):
        if rows:
            yield f"\n{title}{f' ({what})' if what else ''}"
            yield from aligned([headings(found, further), *(cells(row, further) for row in rows[:top])])
            yield from more(rows, top)


def text_of(result, top):
    blocks = ["\n".join(comparison_lines(found, top)) for found in result["comparisons"]]
    return "\n\n\n".join(blocks) + "\n"
