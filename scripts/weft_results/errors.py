# SPDX-License-Identifier: GPL-2.0-only
"""The one exception of the module."""


class ResultsError(Exception):
    """An error in a file or in a request for it, in one line that begins with the path."""

    def __init__(self, path, text):
        super().__init__(f"{path}: {text}")
        self.path = path
