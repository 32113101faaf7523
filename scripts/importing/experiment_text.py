# SPDX-License-Identifier: GPL-2.0-only
"""An experiment as YAML that a person can read: comments, short maps and lists on one line."""

import json
import re
import textwrap

from .imported import Beside, Input, Map

WIDTH = 118
# Texts that YAML's core schema reads without quotes: they begin like a word, and have none of YAML's special
# characters.
PLAIN = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+\- ]*(?<! )")
# Texts that it would read as another type.
SPECIAL = re.compile(r"(?i:null|true|false|yes|no|on|off|y|n|~)|[-+.0-9eE_xo]+")


def comment(text, indent=""):
    """`text` as lines of a comment; its own line ends stay. If a line begins with blanks, its continuation is indented
    further."""
    lines = []
    for paragraph in text.split("\n"):
        inner = "    " if paragraph.startswith(" ") else ""
        lines += textwrap.wrap(paragraph, WIDTH - len(indent) - 2, break_on_hyphens=False, subsequent_indent=inner,
                               break_long_words=False) or [""]
    return "".join(f"{indent}# {line}".rstrip() + "\n" for line in lines)


class Writer:
    """`name(value)` returns the path for an Input or a Beside."""

    def __init__(self, name):
        self.name = name

    def scalar(self, value):
        if isinstance(value, (Input, Beside)):
            value = self.name(value)
        if isinstance(value, bool) or value is None:
            return json.dumps(value)
        if isinstance(value, (int, float)):
            return repr(value)
        text = str(value)
        return text if PLAIN.fullmatch(text) and not SPECIAL.fullmatch(text) else json.dumps(text, ensure_ascii=False)

    def flow(self, value):
        """The value on one line."""
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.scalar(key)}: {self.flow(one)}" for key, one in value.items()) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(self.flow, value)) + "]"
        return self.scalar(value)

    def has_comments(self, value):
        if isinstance(value, dict):
            return bool(getattr(value, "comments", None)) or any(map(self.has_comments, value.values()))
        return isinstance(value, (list, tuple)) and any(map(self.has_comments, value))

    def entry(self, head, value, indent):
        """`head` is the text before the value: a key with its colon, or a dash."""
        if not self.has_comments(value):
            line = f"{indent}{head} {self.flow(value)}\n"
            if len(line) <= WIDTH or not isinstance(value, (dict, list, tuple)) or not value:
                return line
        return f"{indent}{head}\n{self.block(value, indent + '  ')}"

    def block(self, value, indent=""):
        if not isinstance(value, dict):
            return "".join(self.entry("-", one, indent) for one in value)
        text = ""
        for key, one in value.items():
            if note := getattr(value, "comments", {}).get(key):
                text += comment(note, indent)
            text += self.entry(f"{self.scalar(key)}:", one, indent)
        return text

    def section(self, key, value, note=None):
        """A map at the top of the experiment, always one key per line."""
        return "\n" + (comment(note) if note else "") + f"{key}:\n{self.block(value, '  ')}"


def experiment_text(imported, name):
    """The experiment as text. `name` as in Writer."""
    writer = Writer(name)
    text = comment("\n".join(imported.title))
    if imported.refused:
        text += "#\n" + comment("What is in the input and has no counterpart here:")
        text += "".join(comment(f"  {place}: {what}") for place, what in imported.refused)
    if imported.ignored:
        text += "#\n" + comment("What is in the input and changes nothing:")
        text += "".join(comment(f"  {place}: {what}") for place, what in imported.ignored)
    for key in ("topology", "network", "workload", "simulation", "output"):
        value = getattr(imported, key)
        if value:
            text += writer.section(key, value, getattr(value, "about", None))
    return text
