# SPDX-License-Identifier: GPL-2.0-only
"""YAML with the places of its values. Scalars remain texts, as weft reads them, so that nothing is rounded."""

import yaml

from .errors import StudyError, did_you_mean
from .input_files import read_text
from .quantities import canonical


class Item:
    """A node of a file: its place, and its content. Errors name the file and the line."""

    def __init__(self, node, file):
        self.node, self.file = node, file

    @property
    def where(self):
        return f"{self.file}:{self.node.start_mark.line + 1}"

    def error(self, message):
        return StudyError(f"{self.where}: {message}")

    def is_map(self):
        return isinstance(self.node, yaml.MappingNode)

    def is_list(self):
        return isinstance(self.node, yaml.SequenceNode)

    def is_null(self):
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag == "tag:yaml.org,2002:null"

    def is_scalar(self):
        return isinstance(self.node, yaml.ScalarNode) and not self.is_null()

    def found(self):
        return (f"'{self.node.value}'" if self.is_scalar() else "a map" if self.is_map() else
                "a list" if self.is_list() else "nothing")

    def text(self, what="a text"):
        if not self.is_scalar():
            raise self.error(f"found {self.found()}; expected {what}")
        return self.node.value

    def integer(self, least, what):
        text = self.node.value if self.is_scalar() else ""
        if not text.isdecimal() or int(text) < least or int(text) >= 2**63:
            raise self.error(f"found {self.found()}; expected {what} of {least} or more")
        return int(text)

    def boolean(self):
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        text = self.node.value.lower() if self.is_scalar() else ""
        if text not in words:
            raise self.error(f"found {self.found()}; expected true or false")
        return words[text]

    def items(self, what="a list"):
        if not self.is_list():
            raise self.error(f"found {self.found()}; expected {what}")
        return [Item(node, self.file) for node in self.node.value]

    def entries(self, what="a map"):
        """[(key as an Item, value)], in the order of the file; no key twice."""
        if not self.is_map():
            raise self.error(f"found {self.found()}; expected {what}")
        entries, lines = [], {}
        for key, value in self.node.value:
            key = Item(key, self.file)
            name = key.text("a key")
            if name in lines:
                raise key.error(f"found the key '{name}' twice, first in line {lines[name]}; expected once")
            lines[name] = key.node.start_mark.line + 1
            entries.append((key, Item(value, self.file)))
        return entries

    def known(self, names):
        """{name: Item} of a map that may have these keys only."""
        entries = {}
        for key, value in self.entries():
            name = key.node.value
            if name not in names:
                raise key.error(f"unknown key '{name}'{did_you_mean(name, names)}; known here: {', '.join(names)}")
            entries[name] = value
        return entries

    def data(self):
        """Maps, lists, texts and None."""
        if self.is_map():
            return {key.node.value: value.data() for key, value in self.entries()}
        if self.is_list():
            return [item.data() for item in self.items()]
        return None if self.is_null() else self.node.value


def parse(text, file):
    """The Item of a document."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = (error.problem_mark or error.context_mark).line + 1
        raise StudyError(f"{file}:{line}: this is not YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise StudyError(f"{file}: this is not YAML: {error}") from None
    if node is None:
        raise StudyError(f"{file}: this file is empty; expected a map")
    return Item(node, file)


def load(path, place=""):
    """The text of a file and its Item. `place` names it in errors."""
    try:
        text = read_text(path)
    except StudyError as error:
        raise StudyError(f"{place}: {error}" if place else str(error)) from None
    return text, parse(text, str(path))


def plain(data):
    """The same data with one text for each quantity and keys in order, for comparisons."""
    if isinstance(data, dict):
        return {key: plain(data[key]) for key in sorted(data)}
    if isinstance(data, list):
        return [plain(item) for item in data]
    return canonical(data) if isinstance(data, str) else data


def flow(data):
    """Data as YAML on one line, as `--set` takes it."""
    if isinstance(data, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(value)}" for key, value in data.items()) + "}"
    if isinstance(data, list):
        return "[" + ", ".join(flow(item) for item in data) + "]"
    if data is None:
        return "null"
    simple = data and all(c.isalnum() or c in " _./+-" for c in data) and data == data.strip() and data[0].isalnum()
    quoted = data.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return data if simple and data.lower() not in ("null", "~") else f'"{quoted}"'


def at_path(data, path):
    """The value at a dotted path, or None."""
    for step in path.split("."):
        if isinstance(data, list) and step.isdecimal() and int(step) < len(data):
            data = data[int(step)]
        elif isinstance(data, dict) and step in data:
            data = data[step]
        else:
            return None
    return data


def with_value(data, path, value):
    """The data with the value at a dotted path replaced or added, as `--set` does; nothing else is copied."""
    step, _, rest = path.partition(".")
    if isinstance(data, list):
        if not step.isdecimal() or int(step) > len(data):
            raise KeyError(path)
        copy = [*data, *([None] if int(step) == len(data) else [])]
        copy[int(step)] = with_value(copy[int(step)], rest, value) if rest else value
        return copy
    if data is None and step == "0":
        return [with_value(None, rest, value) if rest else value]
    if isinstance(data, str):
        raise KeyError(path)
    copy = dict(data or {})
    copy[step] = with_value(copy.get(step), rest, value) if rest else value
    return copy
