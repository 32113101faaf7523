# SPDX-License-Identifier: GPL-2.0-only
"""Places of output files: no command writes over its input, or puts a file in the place of a pipe or a device."""

import os
import pathlib
import tempfile

from .errors import OutputError, StudyError

HDF5 = b"\x89HDF\r\n\x1a\n"  # HDF5 File Format Specification, section II.A


def refuse_input(path, inputs):
    """StudyError if `path` is one of the inputs, also by another name. Inputs may be None."""
    if not os.path.exists(path):
        return
    for one in inputs:
        if one is not None and os.path.exists(one) and os.path.samefile(path, one):
            raise StudyError(f"'{path}' is an input; expected another name for the output")


def output_path(path, inputs=()):
    """Where to write a file that takes its name when it is complete: of a symbolic link, its target, so that the link
    stays. StudyError if `path` is an input, or exists and is not a regular file."""
    if os.path.isdir(path):
        raise StudyError(f"cannot write '{path}': it is a folder; expected the name of a file")
    if os.path.exists(path) and not os.path.isfile(path):
        raise StudyError(f"cannot write '{path}': it exists and is not a regular file")
    refuse_input(path, inputs)
    return pathlib.Path(os.path.realpath(path) if os.path.islink(path) else path)


def write_whole(path, data, inputs=()):
    """Writes all bytes of a file, whose folder is made if absent, or nothing. OutputError if it cannot be written."""
    path = output_path(path, inputs)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(name, 0o666 & ~mask)
            os.replace(name, path)
        except BaseException:
            pathlib.Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(path, error) from None


def results_path(path, inputs=()):
    """As output_path(), for a table in HDF5. StudyError also if a file with other content has the name."""
    target = output_path(path, inputs)
    if target.exists():
        with target.open("rb") as file:
            begin = file.read(len(HDF5))
        if begin and begin != HDF5:
            raise StudyError(f"cannot write '{path}': it exists and is no HDF5 file, so it is kept; expected another name")
    return target
