# SPDX-License-Identifier: GPL-2.0-only
"""Checks whether a file can be a complete HDF5 file. The HDF5 library may end the process on a damaged file instead of
raising an exception: the first bytes are checked before the library gets the file.

The superblock is as in the HDF5 File Format Specification 3.0, section II.A."""

import os
import stat

import h5py

from weft_results.errors import ResultsError

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
    except FileNotFoundError:
        partial = f"{path}.partial"
        hint = f"; there is '{partial}', of a run that has not ended or was killed" if os.path.exists(partial) else ""
        raise ResultsError(path, f"no such file{hint}") from None
    except OSError as error:
        raise ResultsError(path, f"cannot be read: {error.strerror}") from None


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


def first_line(error):
    return (str(error).splitlines() or [type(error).__name__])[0]
