#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 3600 s
# Runs in: full
"""Two minutes of random experiments on two processors: none is at fault (docs/concepts/reliability.md).

They are always the same seeds, so that no change fails by chance; tests/random/run --minutes N tries others. What fails is
kept in random-faults in the build folder, and is repeated with tests/random/run --seed N."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from weft_testing import WEFT  # noqa: E402

SEEDS = "1-36"


def main():
    kept = WEFT.parent / "random-faults"
    return subprocess.run([sys.executable, HERE / "run", "--seeds", SEEDS, "--keep", kept], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
