# SPDX-License-Identifier: GPL-2.0-only
# weft report FILE.h5... [-o FILE.html]  one page about runs or a sweep: what bounds them, where, what may help
import os
import pathlib
import signal
import sys

for number in (signal.SIGINT, signal.SIGTERM):  # nothing has been written while modules are loaded
    signal.signal(number, lambda *_: os._exit(130))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
try:
    from report_page.command import main
except ImportError as missing:
    from support.console import complain, missing_module

    complain(missing_module(missing))
    sys.exit(3)
sys.exit(main(sys.argv[1:]))
