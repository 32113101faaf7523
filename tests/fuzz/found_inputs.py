#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Keeps what fuzzers have found as lines of text: tests/fuzz/found/NAME.txt, one input a line, with \\n, \\\\ and \\xHH.

found_inputs.py unpack FILE FOLDER   writes each input to a file of its own
found_inputs.py pack FOLDER FILE     the other way round, in ascending size
"""

import hashlib
import pathlib
import sys


def line_of(content):
    printable = {byte: chr(byte) for byte in range(32, 127)} | {ord("\\"): "\\\\", ord("\n"): "\\n"}
    return "".join(printable.get(byte, f"\\x{byte:02x}") for byte in content)


def content_of(line):
    return line.encode("ascii").decode("unicode_escape").encode("latin-1")


def main(command, source, target):
    if command == "unpack":
        folder = pathlib.Path(target)
        folder.mkdir(parents=True, exist_ok=True)
        lines = pathlib.Path(source).read_text(encoding="ascii").splitlines() if pathlib.Path(source).exists() else []
        for content in map(content_of, lines):
            (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)
    else:
        inputs = sorted((path.read_bytes() for path in pathlib.Path(source).iterdir()), key=lambda c: (len(c), c))
        lines = [line_of(content) for content in inputs if content]
        assert [content_of(line) for line in lines] == [content for content in inputs if content]
        pathlib.Path(target).write_text("".join(line + "\n" for line in lines), encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
