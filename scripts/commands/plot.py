# SPDX-License-Identifier: GPL-2.0-only
# weft plot FILE.h5 [-o DIR]           pictures of a run: links, queues, rates, a timeline, slowdowns
import pathlib
import runpy
import sys

PLOT = pathlib.Path(__file__).resolve().parent.parent / "plot"
sys.path.insert(0, str(PLOT.parent))
runpy.run_path(str(PLOT), run_name="__main__")
