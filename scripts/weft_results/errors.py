# SPDX-License-Identifier: GPL-2.0-only
"""The one exception of the module."""


class ResultsError(Exception):
    """What is wrong with a file or with what was asked of it, in one line that begins with the path."""

    def __init__(self, path, text):
        super().__init__(f"{path}: {text}")
        self.path = path
