# SPDX-License-Identifier: GPL-2.0-only
# weft explain FILE.h5                 why a run took so long: parts of its time, critical path, slow links
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from weft_commands.program import run_command  # noqa: E402

run_command("explain", sys.argv[1:])
