# SPDX-License-Identifier: GPL-2.0-only
# weft export FILE.h5 --trace FILE     a run as a trace for Perfetto; --csv DIR: its tables
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from weft_commands.program import run_command  # noqa: E402

run_command("export", sys.argv[1:])
