# SPDX-License-Identifier: GPL-2.0-only
"""A comparison in a few sentences, the answer first."""

from statistics import median

from weft_commands.quantities import change_text, factor_text, is_factor, percent_text, quantity_text, rate_text, time_text

MAX_STRAGGLERS = 4
# A part that changed by more than this many times the whole has no share of it to speak of.
MOST_OF_TOTAL = 2
NO_INFLUENCE = ("output.", "simulation.partition")


def sentences(found, computed):
    """`computed` is the additional compute time of each rank, None if ranks are not compared."""
    candidates = [verdict(found), shares(found), inputs(found), stragglers(found, computed), collective(found),
                  link(found), operator(found)]
    return [sentence for sentence in candidates if sentence]


def verdict(found):
    row, first, second = found["headline"], found["first"], found["second"]
    if found["incomplete"]:
        return cut_short(found["incomplete"])
    if row["change"] is None:
        return f"{first} and {second} have no time in common that could be compared."
    what = row["what"]
    if row["change"] == 0:
        return f"{second} is as fast as {first}, to the last picosecond: {what} {time_text(row['first'])}."
    return f"{second} {took(row)} {first}: {what} {pair(row)}, {change_text(row['change'], 'ps')}."


def took(row):
    """How much more or less time, as the verb of the second run."""
    word = "longer than" if row["change"] > 0 else "less time than"
    if row["percent"] is None:
        return f"takes {word}"
    if is_factor(row["percent"]):
        return f"takes {factor_text(row['percent'])} as long as"
    return f"takes {abs(row['percent']):.3g} % {word}"


def cut_short(names):
    if len(names) == 1:
        return f"{names[0]} did not reach its end; its time cannot be compared."
    return f"{listed(names)} did not reach their ends; their times cannot be compared."


def shares(found):
    """The parts of the change in the headline, largest first."""
    rows = [row for row in found["shares"] if row["change"]]
    total = sum(row["change"] for row in rows)
    if not rows or not total or not found["headline"]["change"]:
        return None
    rows = [row for row in rows[:3] if abs(row["change"]) >= abs(total) / 100]
    meaning = f" Here {rows[0]['what']} means: {rows[0]['meaning']}." if rows[0]["meaning"] else ""
    if abs(rows[0]["change"]) > MOST_OF_TOTAL * abs(total):
        texts = [f"{row['what']} ({change_text(row['change'], 'ps')})" for row in rows]
        return f"The change in time is small beside those of its parts, which cancel each other: {listed(texts)}.{meaning}"
    texts = [f"{100 * row['change'] / total:.3g} % is {row['what']} ({change_text(row['change'], 'ps')})" for row in rows]
    return f"Of the change in time, {listed(texts)}.{meaning}"


def listed(texts):
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def inputs(found):
    rows = [row for row in found["inputs"] if not row["key"].startswith(NO_INFLUENCE)]
    if not rows:
        return "No input differs that could change a result." if found["inputs"] else "No input differs."
    texts = [f"{row['key']} ({row['first']} and {row['second']})" for row in rows[:3]]
    if len(rows) > 3:
        return f"{len(rows)} inputs differ, such as {listed(texts)}."
    return f"{'One input differs' if len(rows) == 1 else f'{len(rows)} inputs differ'}: {listed(texts)}."


def stragglers(found, computed):
    """Few ranks that compute longer while most do not: the others wait for them."""
    if not computed or len(computed) < 2:
        return None
    most, usual = max(computed), median(computed)
    if most <= 0 or usual > most / 4:
        return None
    slow = [rank for rank, time in enumerate(computed) if time > most / 2]
    if len(slow) > min(MAX_STRAGGLERS, len(computed) / 2):
        return None
    names = listed([str(rank) for rank in slow])
    subject = f"Rank {names} is a straggler" if len(slow) == 1 else f"Ranks {names} are stragglers"
    return (f"{subject}: compute {change_text(most, 'ps')}{' at most' if len(slow) > 1 else ''}, and "
            f"{change_text(round(usual), 'ps') if usual else 'no change'} at the median rank; what waits for "
            f"{'it' if len(slow) == 1 else 'them'} counts as communication or idle time elsewhere.")


def pair(row):
    return f"{quantity_text(row['second'], row['unit'])} instead of {quantity_text(row['first'], row['unit'])}"


def compared(rows):
    return next((row for row in rows if row["change"]), None)


def collective(found):
    row = compared(found["collectives"])
    if row is None:
        return None
    algorithm = " -> ".join(dict.fromkeys(name for name in row["algorithm"] if name))
    numbers = list(dict.fromkeys(row["calls"]))
    calls = f"{' and '.join(map(str, numbers))} call{'' if numbers == [1] else 's'}"
    single = compared([call for call in found["calls"] if call["collective"] == row["what"]])
    most = f"; most of all {single['what']}, {pair(single)}" if single and row["calls"][1] > 1 else ""
    return f"Of the collectives, {row['what']} changed most ({algorithm}, {calls}): {pair(row)} in sum{most}."


def link(found):
    row = compared(found["links"])
    if row is None:
        return None
    first, second = (rate_text(rate) for rate in row["rate"])
    rate = "" if first == second else f"; its rate is {second} instead of {first}"
    waiting = change_text(row["waiting"][1] - row["waiting"][0], "ps")
    return (f"Of the links, {row['what']} changed most: all data packets together spent {pair(row)} there, "
            f"waiting ({waiting}) and being sent{rate}.")


def operator(found):
    row = compared(found["operators"])
    if row is None:
        return None
    of = "compute" if row["kind"] == "compute" else f"{row['kind']}, not hidden by compute"
    percent = "" if row["percent"] is None else f", {percent_text(row['percent'])}"
    return f"Of the operators, {row['what']} changed most ({of}): {pair(row)} on average of the ranks{percent}."
