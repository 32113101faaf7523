#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
# Runs in: full
"""Five minutes of random experiments, or as many as WEFT_RANDOM_MINUTES says: none is at fault (docs/reliability.md).

Seeds count up from 1, or from WEFT_RANDOM_SEED. What fails is kept below the build folder, and comes again with
tests/random/run --seed N."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", HERE.parents[1] / "build"))


def main():
    minutes = os.environ.get("WEFT_RANDOM_MINUTES", "5")
    first = os.environ.get("WEFT_RANDOM_SEED", "1")
    kept = BUILD / "random-faults"
    return subprocess.run([sys.executable, HERE / "run", "--minutes", minutes, "--first", first, "--keep", kept],
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
