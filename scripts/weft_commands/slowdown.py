# SPDX-License-Identifier: GPL-2.0-only
"""Shows the slowdown of messages, which is their time from issue to the last byte over that on an idle network, by size:
percentiles of classes of about as many messages each, as papers on congestion control draw it. With --times it shows
their times instead, which are the completion times of flows.

Percentiles are at most 0.07 % above the exact values, and the file may be of any size.

Exit code 0: done; 2: the file or an argument is wrong."""

import argparse
import json
import re
import sys

import numpy as np

import weft_results
from support.console import warn
from weft_commands.program import CommandError, Parser, number_of_rows
from weft_commands.quantities import TIMES, rounded, size_text, time_text

SHARES = (50, 95, 99)
COLUMNS = ["bytes", "issued", "delivered", "ideal"]
# Slowdowns from 2^-4 to 2^28, or times from 2^10 to 2^42 ps (1 ns to 4 s), in steps of an octave's 1024th; the ends take
# what is beyond.
LOWEST_SLOWDOWN, LOWEST_TIME, OCTAVES, STEPS = -4, 10, 32, 1024


def picoseconds(text):
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(s|ms|us|ns|ps)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time such as '2 ms'")
    return float(found[1]) * next(factor for factor, unit in TIMES if unit == found[2])


def parse(words):
    parser = Parser(prog="weft slowdown", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="FILE.h5", help="a result file of `weft run`")
    parser.add_argument("--classes", metavar="N", type=number_of_rows, default=10, help="of sizes (10)")
    parser.add_argument("--job", metavar="NAME", help="only messages of this job")
    parser.add_argument("--since", metavar="TIME", type=picoseconds, default=0, help="only messages issued then or later")
    parser.add_argument("--until", metavar="TIME", type=picoseconds, default=float("inf"), help="only messages issued before")
    parser.add_argument("--times", action="store_true", help="times instead of slowdowns; in JSON in ps")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    return parser.parse_args(words)


def inputs(options):
    return [options.file]


def folders(_):
    return []


def jobs_of_ranks(run, name):
    """Whether the rank of each number belongs to the job; None for all."""
    if name is None:
        return None
    names = [str(text) for text in run.column("jobs", "name")]
    if name not in names:
        raise CommandError(f"there is no job '{name}'; there are {', '.join(text or 'one without a name' for text in names)}")
    rank, job = (run.column("ranks", column) for column in ("rank", "job"))
    mine = np.zeros(int(rank.max(initial=0)) + 1, dtype=bool)
    mine[rank] = job == run.column("jobs", "job")[names.index(name)]
    return mine


class Chosen:
    """The messages that the options choose, block by block; none without a time on an idle network."""

    def __init__(self, run, options):
        self.run, self.options, self.mine = run, options, jobs_of_ranks(run, options.job)
        self.columns = [*COLUMNS, *([] if self.mine is None else ["source"])]

    def where(self, block):
        chosen = (block["ideal"] > 0) & (block["issued"] >= self.options.since) & (block["issued"] < self.options.until)
        return chosen if self.mine is None else chosen & self.mine[block["source"]]

    def sizes(self, block):
        return np.where(self.where(block), block["bytes"].astype(np.float64), np.nan)

    def blocks(self):
        for block in self.run.blocks("messages", self.columns):
            chosen = self.where(block)
            times = (block["delivered"] - block["issued"])[chosen]
            yield block["bytes"][chosen], times.astype(np.float64) if self.options.times else times / block["ideal"][chosen]


def edges_of(run, chosen, classes):
    """The largest size of each class: sizes that occur often make fewer and larger classes."""
    shares = [100 * (i + 1) / classes for i in range(classes)]
    return np.unique(run.percentiles("messages", chosen.columns, shares, chosen.sizes))


def slowdowns(run, options):
    """[{smallest, largest, messages, mean, p50, p95, p99, max}] by size; the last one is all messages. Of times in ps with
    --times."""
    lowest = LOWEST_TIME if options.times else LOWEST_SLOWDOWN
    chosen = Chosen(run, options)
    edges = edges_of(run, chosen, options.classes)
    if len(edges) == 0:
        return []
    counts = np.zeros((len(edges), OCTAVES * STEPS), dtype=np.int64)
    sums, highest = np.zeros(len(edges)), np.zeros(len(edges))
    smallest = np.full(len(edges), np.inf)
    for sizes, values in chosen.blocks():
        place = np.searchsorted(edges, sizes)
        bins = np.ceil((np.log2(np.maximum(values, 2.0**lowest)) - lowest) * STEPS).astype(np.int64).clip(0, OCTAVES * STEPS - 1)
        np.add.at(counts, (place, bins), 1)
        np.add.at(sums, place, values)
        np.maximum.at(highest, place, values)
        np.minimum.at(smallest, place, sizes)
    found = [row(smallest[i], edges[i], counts[i], sums[i], highest[i], lowest) for i in range(len(edges))]
    found.append(row(smallest.min(), edges[-1], counts.sum(axis=0), sums.sum(), highest.max(), lowest))
    return found


def row(smallest, largest, counts, total, highest, lowest):
    below = np.cumsum(counts)
    places = [int(np.searchsorted(below, np.ceil(share / 100 * below[-1] - 1e-9))) for share in SHARES]
    values = {f"p{share}": min(2.0 ** (place / STEPS + lowest), float(highest)) for share, place in zip(SHARES, places)}
    return {"smallest": int(smallest), "largest": int(largest), "messages": int(below[-1]), "mean": total / below[-1],
            **values, "max": float(highest)}


def lines(rows, times):
    text = time_text if times else rounded
    names = ["mean", *(f"p{share}" for share in SHARES), "max"]
    yield f"{'bytes':>23}  {'messages':>10}" + "".join(f"  {name:>9}" for name in names)
    for i, one in enumerate(rows):
        sizes = f"{size_text(one['smallest'])} to {size_text(one['largest'])}" if i + 1 < len(rows) else "all"
        yield f"{sizes:>23}  {one['messages']:>10,}" + "".join(f"  {text(one[name]):>9}" for name in names)


def undelivered(run):
    """Messages that were sent and had not arrived when the run ended; they have no row."""
    if not run.has("ranks", "messages_sent", "messages_received"):
        return 0
    totals = run.sums("ranks", ["messages_sent", "messages_received"])
    return totals["messages_sent"] - totals["messages_received"]


def run(options):
    with weft_results.open(options.file) as results:
        results.expect_run()
        results.chosen("messages", COLUMNS)
        rows, missing = slowdowns(results, options), undelivered(results)
        if not results.complete:
            warn(f"{options.file}: the run did not reach its end; these are the messages that had arrived until then")
    if options.json:
        sys.stdout.write(json.dumps({"file": options.file, "undelivered": missing, "classes": rows}, indent=1) + "\n")
        return
    text = list(lines(rows, options.times)) if rows else ["there are no such messages"]
    if missing:
        text.append(f"{missing:,} messages had not arrived when the run ended, and do not count")
    sys.stdout.write("\n".join(text) + "\n")
