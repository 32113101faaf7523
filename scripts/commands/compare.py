# SPDX-License-Identifier: GPL-2.0-only
# weft compare A.h5 B.h5 [C.h5 ...]    what differs in inputs and outcome, and what accounts for it
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from weft_commands.program import run_command  # noqa: E402

run_command("compare", sys.argv[1:])
