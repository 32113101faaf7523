# SPDX-License-Identifier: GPL-2.0-only
"""Causes that end a command early: a wrong input (exit code 2), an environment that fails (3), a signal (130)."""

import difflib


class StudyError(Exception):
    """The input is wrong. The message has the place, the value found, and the correct form."""


class EnvironmentFailure(Exception):
    """A disk, a program or a process that fails."""


class OutputError(EnvironmentFailure):
    """A file cannot be written."""

    def __init__(self, path, error):
        super().__init__(f"cannot write '{path}': {error.strerror or error}")


class Interrupted(Exception):
    """SIGINT or SIGTERM came."""


def did_you_mean(word, known):
    near = difflib.get_close_matches(str(word), [str(one) for one in known], 1)
    return f" (did you mean '{near[0]}'?)" if near else ""
