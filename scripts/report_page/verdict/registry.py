# SPDX-License-Identifier: GPL-2.0-only
"""The kinds of verdict: one file each in the folders of `kinds`, which defines a subclass of Kind. Nothing else names it."""

import importlib
import inspect
import pathlib
from functools import lru_cache

from report_page.verdict.kind import Kind

FOLDER = pathlib.Path(__file__).resolve().parent / "kinds"


def files():
    return sorted(FOLDER.glob("*/*.py"))


def classes_of(path):
    """The kinds that a file defines, without those that it imports."""
    module = importlib.import_module(".".join(("report_page.verdict.kinds", path.parent.name, path.stem)))
    return [found for _, found in inspect.getmembers(module, inspect.isclass)
            if issubclass(found, Kind) and found.__module__ == module.__name__]


@lru_cache(maxsize=None)
def kinds():
    """{name: kind}, those first that are asked first whether they bound the run."""
    found = [kind() for path in files() for kind in classes_of(path)]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: (-kind.precedence, kind.name))}


def by_name(name):
    return kinds()[name]
