# SPDX-License-Identifier: GPL-2.0-only
"""Messages and exit codes of commands."""

import argparse
import os
import signal
import sys

from .errors import EnvironmentFailure, Interrupted, StudyError


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"weft: {message} ({self.prog} --help says more)", file=sys.stderr)
        sys.exit(2)


def natural(text):
    """A number of 1 or more, as a type of options."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found '{text}'; expected a whole number of 1 or more")
    return int(text)


def interrupt(*_):
    raise Interrupted


def guarded(command):
    """The exit code of a command, with its failures as lines on standard error."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    try:
        code = command()
        sys.stdout.flush()
        return code
    except StudyError as error:
        print(f"weft: {error}", file=sys.stderr)
        return 2
    except EnvironmentFailure as error:
        print(f"weft: {error}", file=sys.stderr)
        return 3
    except Interrupted:
        return 130
    except ImportError as error:
        print(f"weft: {error}; install python3-h5py, python3-numpy and python3-yaml", file=sys.stderr)
        return 3
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 3
