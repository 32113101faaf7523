# SPDX-License-Identifier: GPL-2.0-only
"""Shared code of commands: reading of arguments, exit codes, and writing of files."""

import argparse
import contextlib
import importlib
import os
import pathlib
import resource
import signal
import sys

from support.console import (  # noqa: F401  (Parser is for the commands)
    EXIT_ENVIRONMENT,
    EXIT_INPUT,
    EXIT_INTERRUPTED,
    Parser,
    complain,
    missing_module,
    print_any_name,
)
from support.errors import OutputError, StudyError
from support.output_files import output_path

INTERRUPTS = [signal.SIGINT, signal.SIGTERM]
CRASHES = {signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL}
# If the reader of a pipe has ended, the output is not needed: as for `cat`, this is no error.
EXIT_PIPE = 128 + signal.SIGPIPE


class CommandError(StudyError):
    """An error in the arguments of the command, in one line."""


def number_of_rows(text):
    """The value of an option such as --top."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of rows from 1")
    return int(text)


def call(work):
    """Runs `work()`. Returns its exit code; errors are one line on standard error."""
    from weft_results import ResultsError  # noqa: PLC0415  (what it needs may be missing: see load)

    def failed(error, code):
        complain(error)
        return code

    print_any_name()
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [*INTERRUPTS, signal.SIGCHLD])
        work()
        sys.stdout.flush()
        return 0
    except (ResultsError, StudyError) as error:
        return failed(error, EXIT_INPUT)
    except OutputError as error:
        return failed(error, EXIT_ENVIRONMENT)
    except BrokenPipeError:
        return EXIT_PIPE
    except OSError as error:
        return failed(OutputError(error.filename or "standard output", error), EXIT_ENVIRONMENT)
    except MemoryError:
        return failed("there is not enough memory", EXIT_ENVIRONMENT)
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
        return failed("interrupted", EXIT_INTERRUPTED)


def raise_interrupt(*_):
    raise KeyboardInterrupt


def interrupt(*_):
    """Cleaning up after an interrupt is not interrupted again. An exception that is raised during a callback of a
    library is lost: it is raised again each second until it arrives."""
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, raise_interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1, 1)
    raise KeyboardInterrupt


def tell_lost(lost):
    """For exceptions that cannot be caught; an interrupt is raised again."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)


def run_child(work):
    """In the child: never returns."""
    for number in INTERRUPTS:
        signal.signal(number, interrupt)
    sys.unraisablehook = tell_lost
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = 1  # of a bug, after its traceback
    try:
        code = call(work)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def load(name):
    """The module of a command. It has parse(words), run(options), inputs(options), the files that it reads, and
    folders(options), where it writes files."""
    try:
        return importlib.import_module(f"weft_commands.{name}")
    except ImportError as missing:
        complain(missing_module(missing))
        sys.exit(EXIT_ENVIRONMENT)


def run_command(name, words):
    """Ends this process with `weft NAME WORDS`. The work is done in a child, because the HDF5 library may crash on a
    damaged file: that must not be all that a user sees."""
    for number in INTERRUPTS:
        signal.signal(number, lambda *_: os._exit(EXIT_INTERRUPTED))  # there is nothing to clean up yet
    module = load(name)
    options = module.parse(words)
    sys.stdout.flush()
    # The child handles them when it is ready, and this process takes them one by one: none can arrive too early or too
    # late.
    signal.pthread_sigmask(signal.SIG_BLOCK, [*INTERRUPTS, signal.SIGCHLD])
    child = os.fork()
    if child == 0:
        run_child(lambda: module.run(options))
    status = wait_for(child)
    if os.WIFEXITED(status):
        sys.exit(os.WEXITSTATUS(status))
    remove_drafts(module.folders(options), child)
    sys.exit(explain_crash(module.inputs(options), os.WTERMSIG(status)))


def wait_for(child):
    """The wait status of the child. Interrupts, which are blocked here, are passed on to it."""
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        came = signal.sigtimedwait([*INTERRUPTS, signal.SIGCHLD], 1)
        if came is not None and came.si_signo in INTERRUPTS:
            os.kill(child, came.si_signo)


def explain_crash(paths, number):
    if number in CRASHES:
        complain(f"{' or '.join(paths)}: it is damaged: the HDF5 library crashed on it ({signal.Signals(number).name})")
        return EXIT_INPUT
    complain(f"ended by signal {number}")
    return EXIT_ENVIRONMENT


# Files. They are written beside their place under another name, and renamed when they are complete.


def draft_name(path, process):
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{process}.partial")


def remove_drafts(folders, process):
    """Removes incomplete files of a crashed process."""
    for folder in folders:
        for path in pathlib.Path(folder).glob(f".*.{process}.partial"):
            with contextlib.suppress(OSError):
                path.unlink()


@contextlib.contextmanager
def new_file(path, inputs=()):
    """A binary file that becomes `path` on success, and is removed otherwise."""
    target = output_path(path, inputs)
    draft = draft_name(target, os.getpid())
    try:
        with open(draft, "wb") as file:
            yield file
        os.replace(draft, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise OutputError(path, error) from None
        raise


def make_folder(path):
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        raise CommandError(f"cannot write into '{path}': it is a file, and a folder was expected") from None
    except OSError as error:
        raise OutputError(path, error) from None
