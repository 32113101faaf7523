# SPDX-License-Identifier: GPL-2.0-only
"""The result of a format's reader: the maps of an experiment, and the treatment of the rest of the input."""

import pathlib


class Input:
    """A file that is read at its place. In the experiment its path is relative to the experiment's folder."""

    def __init__(self, path):
        self.path = pathlib.Path(path)


class Beside:
    """A file that is written beside the experiment X.yaml, as X.SUFFIX."""

    def __init__(self, suffix):
        self.suffix = suffix


class Map(dict):
    """A map of the experiment that has comments: `put` a key, and the comment above it."""

    def __init__(self, *pairs, **named):
        super().__init__(*pairs, **named)
        self.comments = {}

    def put(self, key, value, comment=None):
        self[key] = value
        if comment:
            self.comments[key] = comment
        return self


class Imported:
    """An input that has been read.

    topology, network, workload, simulation, output   maps of the experiment (`Map`, or any dictionary); a topology of
                  None is replaced by that of --topology, or by a machine of `ranks` hosts
    ranks         how many; None: weft's reader of the workload says it
    line_of_ranks the line of the first input that says so, if one does
    files         {suffix: function of a binary file}: files beside the experiment, see `Beside`
    ignored       (place, text): parts of the input without effect on a run, here or in their own program
    refused       (place, text): parts that would change a run in their own program, and are not imported
    counts        counts by the reader, for --json beside weft's counts
    title         lines of a comment at the top
    """

    def __init__(self, inputs, ranks=None, title=()):
        self.inputs = [str(path) for path in inputs]
        self.ranks, self.line_of_ranks, self.title, self.counts = ranks, None, list(title), None
        self.topology, self.network, self.workload = None, Map(), Map()
        self.simulation, self.output = Map(), Map()
        self.files, self.ignored, self.refused = {}, [], []

    def ignore(self, place, text):
        self.ignored.append((str(place), text))

    def refuse(self, place, text):
        self.refused.append((str(place), text))

    def beside(self, suffix, produce):
        """Adds a file beside the experiment; `produce(file)` writes bytes. Returns the value for its name."""
        self.files[suffix] = produce
        return Beside(suffix)

    @staticmethod
    def prefix(suffix):
        """The value for X.SUFFIX, if files beside the experiment are X.SUFFIX.0.et and so on."""
        return Beside(suffix)
