# SPDX-License-Identifier: GPL-2.0-only
"""The pages of docs/validation: one for each family of cases, which `scripts/validate --update-docs` writes."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "validation"
BEGIN, END = "<!-- families begin -->", "<!-- families end -->"
HEADINGS = ["quantity", "expected", "weft", "error", "verdict"]
COMPARED = "compared"
NOTE = "<!-- scripts/validate --update-docs writes this page. -->"


def line(cells):
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def table(rows):
    return "\n".join([line(HEADINGS), "|" + "---|" * len(HEADINGS), *(line(row.cells()[2:]) for row in rows)])


def family_of(row):
    return row.case.partition("/")[0]


def grouped(rows, key):
    groups = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def title_of(case):
    """The heading of the case's own page."""
    heading = (ROOT / "validation" / case / "README.md").read_text().partition("\n")[0]
    return heading.removeprefix("#").strip()


def section(case, rows):
    return (f"## {case}\n\n[{title_of(case)}](../../validation/{case}/README.md). Source: {rows[0].source}\n\n"
            f"{table(rows)}\n")


def family_page(family, rows):
    parts = [f"# Validation: {family.replace('_', ' ')}\n\n{NOTE}\n"]
    parts += [section(case, of_case) for case, of_case in grouped(rows, lambda row: row.case).items()]
    return "\n".join(parts)


def overview(families):
    lines = [line(["family", "cases", "held to a tolerance", "of them as expected", "compared"]), "|" + "---|" * 5]
    for family, rows in families.items():
        held = [row for row in rows if not row.compared]
        counts = [len({row.case for row in rows}), len(held), sum(row.passed for row in held), len(rows) - len(held)]
        lines.append(line([f"[{family.replace('_', ' ')}]({family}.md)", *map(str, counts)]))
    return "\n".join(lines)


def overview_parts():
    """Text of docs/validation/README.md before and after its table; SystemExit if the place for the table is
    missing."""
    before, begin, rest = (FOLDER / "README.md").read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"scripts/validate: docs/validation/README.md has no lines '{BEGIN}' and '{END}'")
    return before, after


def write(rows):
    families = grouped(rows, family_of)
    before, after = overview_parts()
    for old in set(FOLDER.glob("*.md")) - {FOLDER / "README.md"}:
        old.unlink()
    (FOLDER / "README.md").write_text(f"{before}{BEGIN}\n{overview(families)}\n{END}{after}")
    for family, of_family in families.items():
        (FOLDER / f"{family}.md").write_text(family_page(family, of_family))


def promises_of(rows):
    """The promise of a page for each row: its case, quantity, expected value with tolerance, and verdict."""
    return {(row.case, row.quantity, row.expected, row.verdict()) for row in rows}


def promises(folder=FOLDER):
    """The same, from the pages as they are."""
    found = set()
    for page in sorted(folder.glob("*.md")):
        case = None
        for text in page.read_text().splitlines():
            if text.startswith("## "):
                case = text[3:]
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", text)[1:-1]]
            if case and len(cells) == len(HEADINGS) and cells[0] != HEADINGS[0] and set(cells) != {"---"}:
                quantity, expected, _, _, verdict = cells
                found.add((case, quantity, expected, verdict))
    return found


def left_out(rows, cases, folder=FOLDER):
    """Promises of the pages for these cases that are only compared, and that are not among the rows."""
    there = {promise for promise in promises(folder) if promise[0] in cases and promise[-1] == COMPARED}
    return there - promises_of(rows)


def differences(rows, cases, folder=FOLDER, compares=True):
    """Lines with promises of the pages for these cases that the rows do not fulfil, and rows that the pages do not
    have. Without `compares`, rows that are only compared may be missing, in a case that has others."""
    there, here = {promise for promise in promises(folder) if promise[0] in cases}, promises_of(rows)
    if not compares:
        there -= {promise for promise in left_out(rows, cases, folder) if promise[0] in {row.case for row in rows}}
    return [f"{who}: {' | '.join(promise)}" for who, promises_ in (("docs/validation has", there - here),
                                                                  ("this run gives", here - there))
            for promise in sorted(promises_)]
