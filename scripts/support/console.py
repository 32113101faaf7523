# SPDX-License-Identifier: GPL-2.0-only
"""Messages and exit codes of commands."""

import argparse
import os
import re
import signal
import sys

from .errors import EnvironmentFailure, Interrupted, OutputError, StudyError, did_you_mean


EXIT_INPUT, EXIT_ENVIRONMENT, EXIT_INTERRUPTED = 2, 3, 130


def complain(message):
    """The one form of a message about an error, of every command, as src/app prints it."""
    print(f"weft: {message}", file=sys.stderr)


def warn(message):
    complain(f"warning: {message}")


class Parser(argparse.ArgumentParser):
    """Reports an error in one line, with the nearest word that it knows. As in src/app, options are not abbreviated."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def error(self, message):
        complain(f"{message}{self.near(message)} (`{self.prog} --help` says more)")
        sys.exit(EXIT_INPUT)

    def near(self, message):
        unknown = re.fullmatch(r"unrecognized arguments: (--[^ =]+).*", message, re.DOTALL)
        if unknown:
            return did_you_mean(unknown[1], self._option_string_actions)
        choice = re.fullmatch(r"argument .*: invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL)
        return did_you_mean(choice[1], re.findall(r"'([^']*)'", choice[2])) if choice else ""


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
    except wrong_input() as error:
        complain(error)
        return EXIT_INPUT
    except EnvironmentFailure as error:
        complain(error)
        return EXIT_ENVIRONMENT
    except (Interrupted, KeyboardInterrupt):
        complain("interrupted")
        return EXIT_INTERRUPTED
    except ImportError as error:
        complain(missing_module(error))
        return EXIT_ENVIRONMENT
    except MemoryError:
        complain("there is not enough memory")
        return EXIT_ENVIRONMENT
    except BrokenPipeError:
        drop_output()
        return EXIT_ENVIRONMENT
    except OSError as error:
        return output_failed(error)
    finally:
        # What is done keeps its exit code: while it ends, Python puts back handlers that end it by the signal.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def wrong_input():
    """Classes of errors of inputs. That of weft_results is one of them if a command has loaded it."""
    loaded = sys.modules.get("weft_results.errors")
    return (StudyError, loaded.ResultsError) if loaded else StudyError


def missing_module(error):
    return f"{error}; please install python3-h5py, python3-numpy, python3-yaml and python3-matplotlib"


def print_any_name():
    """Names of files that are not UTF-8 are printed as they are."""
    sys.stdout.reconfigure(errors="surrogateescape")


def drop_output():
    """What standard output still holds is not written again at the end of this process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def output_failed(error):
    """The exit code of a command when standard output takes no more; other errors are raised again."""
    if error.filename is not None:
        raise error
    complain(OutputError("standard output", error))
    drop_output()
    return EXIT_ENVIRONMENT
