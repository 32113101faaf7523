# SPDX-License-Identifier: GPL-2.0-only
"""Messages and exit codes of commands."""

import argparse
import os
import signal
import sys

from .errors import EnvironmentFailure, Interrupted, OutputError, StudyError


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"weft: {message} (`{self.prog} --help` says more)", file=sys.stderr)
        sys.exit(2)


def natural(text):
    """A number of 1 or more, as a type of options."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found '{text}'; expected a whole number of 1 or more")
    return int(text)


def whole(text):
    """A number of 0 or more, as a type of options."""
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise argparse.ArgumentTypeError(f"found '{text[:40]}'; expected a whole number of 0 or more")
    return int(text)


def number_within(least, most, what):
    """A type of options: a number above `least`, of `most` at most."""
    def read(text):
        try:
            value = float(text)
        except ValueError:
            value = least
        if not least < value <= most:
            raise argparse.ArgumentTypeError(f"found '{text}'; expected {what}")
        return value

    return read


def interrupt(*_):
    raise Interrupted


def guarded(command):
    """The exit code of a command, with its failures as lines on standard error."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    print_any_name()
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
        drop_output()
        return 3
    except OSError as error:
        return output_failed("weft", error)


def print_any_name():
    """Names of files that are not UTF-8 are printed as they are."""
    sys.stdout.reconfigure(errors="surrogateescape")


def drop_output():
    """What standard output still holds is not written again at the end of this process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def output_failed(name, error):
    """The exit code of the command `name` when standard output takes no more; other errors are raised again."""
    if error.filename is not None:
        raise error
    print(f"{name}: {OutputError('standard output', error)}", file=sys.stderr)
    drop_output()
    return 3
