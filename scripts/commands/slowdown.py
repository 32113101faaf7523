# SPDX-License-Identifier: GPL-2.0-only
# weft slowdown FILE.h5                times of messages over those on an idle network, by size
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from weft_commands.program import run_command  # noqa: E402

run_command("slowdown", sys.argv[1:])
