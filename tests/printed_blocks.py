# SPDX-License-Identifier: GPL-2.0-only
"""Blocks of pages that show what commands print (```output), and how they are compared with what the commands print now.

A block belongs to the last ```sh block before it on its page. Each of its lines has to be a line of what those commands
print, in the same order. It may begin and end anywhere in there; a line `...` stands for any number of lines, and `...` in a
line for any part of it. What depends on the machine, and not on the model, is replaced first: see VARIES.
"""

import difflib
import re

BLOCK = re.compile(r"^```(sh|output)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "..."
# How much a line resembles the one that it is taken to have become, from 0 (nothing) to 1 (the same).
RESEMBLES = 0.55

# What depends on the machine on which a command runs: pattern and what stands for it in a comparison. All else is exact.
VARIES = [
    # The wall time of a run, and the rate that follows from it.
    (r"^( *wall time) +\d.*", r"\1 #"),
    (r"\(\d[\d.]* [kMG]?/s\)", "(# /s)"),
    # Rows of `weft plan`: wall time, memory of each process and of all.
    (r"^( *\d+) +[\d.]+ (?:us|ms|s|min|h) +[\d.]+ [KMGT]iB +[\d.]+ [KMGT]iB +", r"\1 # s # B # B "),
    # Dates.
    (r"\b20\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?", "DATE"),
]


def comparable(line):
    for pattern, shown in VARIES:
        line = re.sub(pattern, shown, line)
    return line.rstrip()


def beginning(line):
    """The part of a line before ` ...` at its end, or None if it has no such end."""
    return line[:-len(LEFT_OUT)].rstrip() if line.rstrip().endswith(" " + LEFT_OUT) else None


def is_shown(line, printed):
    parts = comparable(line).split(LEFT_OUT)
    return re.fullmatch(".*".join(map(re.escape, map(str.rstrip, parts))), comparable(printed)) is not None


def first_stale(shown, printed):
    """The number of the first line of a block that is not where it should be in what was printed, or None."""
    at = 0  # where the next line may be
    run = 0  # the first line of the lines without `...` between them
    while run < len(shown):
        if shown[run].strip() == LEFT_OUT:
            run += 1
            continue
        end = next((k for k in range(run, len(shown)) if shown[k].strip() == LEFT_OUT), len(shown))
        best = 0
        for start in range(at, len(printed) + 1):
            same = 0
            while run + same < end and start + same < len(printed) and is_shown(shown[run + same], printed[start + same]):
                same += 1
            if run + same == end:
                at = start + same
                break
            best = max(best, same)
        else:
            return run + best
        run = end
    return None


def resemblance(line, printed):
    """Words count, and digits less: results change, what they are called does not."""
    part = beginning(line)
    if part is not None:
        line, printed = part, " ".join(printed.split()[:len(part.split())])

    def ratio(one, other):
        return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()

    def named(text):
        return re.sub(r"[\d.]+", "0", text).split()

    return 0.75 * ratio(named(line), named(printed)) + 0.25 * ratio(line.split(), printed.split())


def closest(line, printed):
    found = max(printed, key=lambda other: resemblance(line, other), default="")
    return found if resemblance(line, found) > 0.3 else None


def places(shown, printed):
    """For each line of a block the line that it has become, in order, or None: those that resemble each other most in all."""
    best = [(0.0, ())] * (len(printed) + 1)  # of the first k printed lines
    for line in shown:
        fresh = []
        for k in range(len(printed) + 1):
            choice = (best[k][0], (*best[k][1], None))
            if k > 0:
                choice = max(choice, fresh[k - 1], key=lambda entry: entry[0])
                alike = resemblance(line, printed[k - 1])
                if alike >= RESEMBLES and best[k - 1][0] + alike > choice[0]:
                    choice = (best[k - 1][0] + alike, (*best[k - 1][1], k - 1))
            fresh.append(choice)
        best = fresh
    return best[-1][1]


def shortened(line, printed):
    """The printed line, cut after as many words as the line of the block has."""
    if is_shown(line, printed):
        return line
    part = beginning(line)
    words = list(re.finditer(r"\S+", printed))
    if part is None or len(words) <= len(part.split()):
        return printed.rstrip()
    return printed[:words[len(part.split()) - 1].end()] + line[len(part):]


def renewed(shown, printed):
    """The lines of a block as the commands print them now. A line that resembles nothing that was printed is left out."""
    lines = []
    last = None
    kept = [line for line in shown if line.strip() != LEFT_OUT]
    for line, place in zip(kept, places(kept, printed)):
        if place is None:
            continue
        if last is not None and place != last + 1:
            lines.append(re.match(" *", line)[0] + LEFT_OUT)
        lines.append(shortened(line, printed[place]))
        last = place
    return lines


class Page:
    """A page's blocks: its commands in order, and what the page shows of what they print."""

    def __init__(self, text):
        self.text = text
        self.commands = []  # of each sh block, in order
        self.shown = []  # (number of the sh block, line of the page, start and end in the text, lines)
        for found in BLOCK.finditer(text):
            if found[1] == "sh":
                self.commands.append(found[2])
            elif not self.commands:
                raise ValueError(f"line {self.line(found.start())}: no commands stand before this block of output")
            else:
                self.shown.append((len(self.commands) - 1, self.line(found.start()) + 1, *found.span(2), found[2].splitlines()))

    def line(self, at):
        return self.text.count("\n", 0, at) + 1

    def shows_mistake(self, number):
        """The block of commands is followed by the message of a mistake: its last command has to fail."""
        return any(of == number and lines[0].startswith("weft: ") for of, *_, lines in self.shown)

    def stale(self, printed):
        """What is no longer so, one message for each block; `printed` has the lines printed by each sh block."""
        for number, first, _, _, lines in self.shown:
            at = first_stale(lines, printed[number])
            if at is None:
                continue
            place, line = f"line {first + at}", lines[at]
            near = closest(line, printed[number])
            if near is not None and is_shown(line, near):
                yield f"{place} is printed elsewhere; `...` has to stand for lines that are left out:\n    {line}\n"
            else:
                found = f"the line that resembles it most:\n    {near}\n" if near is not None else "no line resembles it.\n"
                yield f"{place} is not what the commands before it print now:\n    {line}\nIn what they print, {found}"

    def renewed(self, printed):
        """The text with the blocks that are stale written anew."""
        text = self.text
        for number, _, start, end, lines in reversed(self.shown):
            if first_stale(lines, printed[number]) is not None:
                text = text[:start] + "".join(f"{line}\n" for line in renewed(lines, printed[number])) + text[end:]
        return text


def figures_of(pattern, printed):
    """What the groups of a pattern find in the printed text, or of a list of patterns; an entry {pattern: factor} converts
    a unit. Fewer than there are groups, if a pattern finds nothing."""
    if isinstance(pattern, list):
        return [figure for one in pattern for figure in figures_of(one, printed)]
    if isinstance(pattern, dict):
        return [str(float(figure.replace(",", "")) * factor)
                for one, factor in pattern.items() for figure in figures_of(one, printed)]
    match = re.search(pattern, printed, re.MULTILINE)
    return list(match.groups()) if match else []


def wrong_figures(sentence, text, found):
    """What is wrong with the figures of a sentence, `{}` in it, given those that commands print now; None if nothing is. A
    figure is right if it is the other one, rounded to its own last digit."""
    pattern = r"([\d.,]*\d)".join(map(re.escape, sentence.split("{}")))
    matches = re.findall(pattern, text)
    if len(matches) != 1:
        return f"'{sentence}' is there {len(matches)} times instead of once"
    shown = [matches[0]] if isinstance(matches[0], str) else list(matches[0])
    if len(found) != len(shown):
        return f"'{sentence}' has {len(shown)} figures, of which commands print {len(found)}: {' '.join(found)}"
    for figure, value in zip(shown, found):
        last = 10.0 ** -len(figure.partition(".")[2])
        if abs(float(figure.replace(",", "")) - float(value.replace(",", ""))) > 0.5001 * last:
            return f"'{sentence}' has {', '.join(shown)}, and commands print {', '.join(found)}"
    return None
