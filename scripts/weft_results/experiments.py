# SPDX-License-Identifier: GPL-2.0-only
"""Experiments as Python values. Scalars are read by YAML's core schema (YAML 1.2, section 10.3.2), in which `no` is a
text, as weft reads them."""

import re

from weft_results.errors import ResultsError

SCALARS = {
    "null": (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    "bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    "int": (r"^[-+]?[0-9]+$", list("-+0123456789")),
    "float": (r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
}


def make_loader(yaml):
    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}

    for name, (pattern, first) in SCALARS.items():
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{name}", re.compile(pattern), first)
    # YAML 1.1 reads 010 as 8.
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(loader.construct_scalar(node)))
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(loader.construct_scalar(node)))
    return Loader


def parse(path, text):
    """The YAML `text`, which the file `path` holds."""
    try:
        import yaml  # noqa: PLC0415
    except ImportError:
        raise ResultsError(path, "its experiment is YAML, and reading that needs PyYAML; on Debian, it is in "
                                 "python3-yaml. `experiment_text` needs nothing") from None
    try:
        return yaml.load(text, make_loader(yaml))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ResultsError(path, f"it is damaged: its experiment is not YAML ({reason})") from None
