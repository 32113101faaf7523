# SPDX-License-Identifier: GPL-2.0-only
"""The command line of `weft report`."""

import argparse
import pathlib

from report_page.page import page
from report_page.reading import RunFile, open_report_file
from report_page.run_report import run_report
from report_page.sweep import sweep_report
from support.console import Parser, guarded
from support.output_files import output_path, write_whole

DESCRIPTION = """Write one HTML page about runs of weft, or about a sweep. It needs no network and no other file.

It says what bounds the run, where, and what may help; it shows a timeline, the machine with its links, queues,
slowdowns, collectives, and where the time went. With several files there is a table of all, and a tab for each."""


def parse(words):
    parser = Parser(prog="weft report", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILE.h5", nargs="+", help="a result file of `weft run`, or of a sweep")
    parser.add_argument("-o", "--output", metavar="FILE.html", help="the page (beside the first file, with .html)")
    parser.add_argument("--png", metavar="DIR", help="also the main charts as PNG, into this folder")
    parser.add_argument("--exact", action="store_true", help="read every message, also if there are many millions")
    return parser.parse_args(words)


def read(path, exact):
    file = open_report_file(path)
    return run_report(file, exact) if isinstance(file, RunFile) else sweep_report(file)


def run(options):
    target = pathlib.Path(options.output) if options.output else pathlib.Path(options.files[0]).with_suffix(".html")
    output_path(target, options.files)  # reports errors before the work
    items = [read(path, options.exact) for path in options.files]
    write_whole(target, page(items).encode("utf-8", "replace"), options.files)
    print(target)
    if options.png:
        from report_page.pictures import write_pictures  # matplotlib takes a second to load

        def write_picture(path, data):
            write_whole(path, data, options.files)

        for path in write_pictures(items, pathlib.Path(options.png), write_picture):
            print(path)


def main(words):
    def command():
        run(parse(words))
        return 0

    return guarded(command)
