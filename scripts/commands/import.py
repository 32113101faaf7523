# SPDX-License-Identifier: GPL-2.0-only
# weft import FORMAT INPUT...          an experiment from the files of another program (docs/tutorial/importing.md)
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from importing.command import import_command  # noqa: E402
from support.console import guarded  # noqa: E402

if __name__ == "__main__":
    sys.exit(guarded(lambda: import_command(sys.argv[1:])))
