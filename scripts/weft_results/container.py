# SPDX-License-Identifier: GPL-2.0-only
"""Checks whether a file can be a complete HDF5 file. The HDF5 library may end the process on a damaged file instead of
raising an exception: the first bytes are checked before the library gets the file.

The superblock is as in the HDF5 File Format Specification 3.0, section II.A."""

import os
import stat

import h5py

from weft_results.errors import ResultsError

FORMATS = "weft-"  # beginning of the attribute `format`: weft-results, and that of a file with a table of many runs
OF_A_RUN = "weft-results"
NEWEST_VERSION = 1

SIGNATURE = b"\x89HDF\r\n\x1a\n"
UNDEFINED = (1 << 64) - 1
# By version of the superblock: positions of the sizes of addresses and lengths, the base address, and the end of file.
LAYOUTS = {0: (13, 14, 24, 40), 1: (13, 14, 28, 44), 2: (9, 10, 12, 28), 3: (9, 10, 12, 28)}


def first_bytes(path):
    """(size of the file, its first 64 bytes)."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise ResultsError(path, "it is a folder; a result file such as out/quickstart.h5 was expected")
        if not stat.S_ISREG(status.st_mode):
            raise ResultsError(path, "it is no regular file, and HDF5 cannot be read from a pipe or a device")
        with open(path, "rb") as file:
            return status.st_size, file.read(64)
    except OSError as error:
        hint = hint_for_missing(path) if isinstance(error, FileNotFoundError) else ""
        raise ResultsError(path, f"cannot open this file: {error.strerror}{hint}") from None


def hint_for_missing(path):
    """As of all commands. A program that uses this package may have another one of the name `support`."""
    try:
        from support import input_files  # noqa: PLC0415
    except ImportError:
        return ""
    return input_files.hint_for_missing(path, input_files.OF_RESULTS)


def check_superblock(path, size, start):
    """ResultsError unless the file begins like a complete HDF5 file."""
    if size == 0:
        raise ResultsError(path, "it is empty; a result file of `weft run` was expected")
    if not start.startswith(SIGNATURE):
        raise ResultsError(path, "it is not an HDF5 file; a result file of `weft run` was expected")
    if len(start) < 64:
        raise ResultsError(path, f"it is cut off: {size} bytes are less than the head of an HDF5 file")
    if start[8] not in LAYOUTS:
        raise ResultsError(path, f"it is damaged: version {start[8]} of its HDF5 superblock does not exist")
    address_size, length_size, base, end = LAYOUTS[start[8]]
    if (start[address_size], start[length_size]) != (8, 8):
        raise ResultsError(path, "it is damaged, or not written by weft: addresses in it have not 8 bytes")
    if start[base : base + 8] != bytes(8):
        raise ResultsError(path, "it is damaged, or not written by weft: its base address is not 0")
    expected = int.from_bytes(start[end : end + 8], "little")
    if size < expected or expected == UNDEFINED:
        raise ResultsError(path, f"it is cut off or damaged: it has {size} bytes of {expected}")


def open_container(path):
    """The file as h5py.File."""
    path = os.fspath(path)
    check_superblock(path, *first_bytes(path))
    try:
        return h5py.File(path, "r")
    except (OSError, RuntimeError) as error:
        raise ResultsError(path, f"it is damaged or being written: {first_line(error)}") from None


def check_format(path, attributes):
    """ResultsError unless these attributes of a file say that this weft can read it."""
    found = attributes.get("format")
    if not (isinstance(found, str) and found.startswith(FORMATS)):
        raise ResultsError(path, "it is not a result file of weft: its attribute 'format' is "
                                 f"{'absent' if found is None else repr(found)}, and '{OF_A_RUN}' was expected")
    version = attributes.get("format_version")
    try:
        version = int(version)
    except (TypeError, ValueError):
        raise ResultsError(path, "it is damaged: its attribute 'format_version' is no whole number") from None
    if version > NEWEST_VERSION:
        raise ResultsError(path, f"it has version {version} of the format, and this weft knows {NEWEST_VERSION}; "
                                 "please read it with the weft that wrote it, or a newer one")


def expect_run(path, attributes):
    """ResultsError if the file is the table of a study, which has no times of ranks."""
    found = attributes.get("format")
    if found != OF_A_RUN:
        raise ResultsError(path, f"it is the table of a study ({found}), which `weft report` and `weft export --csv` read; "
                                 "the result file of one run was expected; "
                                 f"`weft export {path} --csv - --columns case,run` names those of its cases")


def open_run(path):
    """The results of one run as h5py.File. ResultsError if it is anything else, or of a newer format."""
    file = open_container(path)
    try:
        attributes = dict(file.attrs)
        check_format(path, attributes)
        expect_run(path, attributes)
        for name in ("complete", "simulated_time"):
            if name not in attributes:
                raise ResultsError(path, f"it is damaged: its attribute '{name}' is missing")
    except (OSError, RuntimeError, ValueError) as error:
        file.close()
        raise ResultsError(path, f"it is damaged: {first_line(error)}") from None
    except ResultsError:
        file.close()
        raise
    return file


def first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0]
