# SPDX-License-Identifier: GPL-2.0-only
# weft report FILE.h5... [-o FILE.html]  one page about runs or a sweep: what bounds them, where, what may help
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
try:
    from report_page.command import main
except ImportError as missing:
    print(f"report: {missing}; install python3-h5py, python3-numpy and python3-matplotlib", file=sys.stderr)
    sys.exit(3)
sys.exit(main(sys.argv[1:]))
