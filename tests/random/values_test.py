#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 2400 s
# Runs in: full
"""Each key of each map of an experiment, with values that make no sense: the program takes them, or says in one message
what would be right. Every fifth pair of a key and a value, so that each value meets each map; all with --every."""

import json
import os
import pathlib
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import names  # noqa: E402
from maps import MAPS  # noqa: E402
from weft_testing import EXIT_INPUT, served  # noqa: E402

STRIDE = 1 if "--every" in sys.argv else 5  # no divisor of the number of values
VALUES = ['"?"', '""', "[]", "{}", "-1", "9223372036854775807"]


def wrong(place, key, value):
    """The program's faults with this value."""
    part = place.partition(":")[0]
    with tempfile.TemporaryDirectory(prefix="weft-values-") as folder:
        path = pathlib.Path(folder) / "experiment.yaml"
        path.write_text(json.dumps({**names.SMALL, **MAPS[place]}))
        done = served("describe", path, "--set", f"{part}.{key}={value}" if part else f"{key}={value}", folder=folder,
                    seconds=600)
    well = done.code == 0 or done.code == EXIT_INPUT and len(done.messages()) == 1
    return "" if well else str(done)


class Values(unittest.TestCase):
    def test_every_key(self):
        asked = [(place, key, value) for place, parts in MAPS.items()
                 for key in names.keys(place.partition(":")[0], parts) for value in VALUES]
        self.assertGreater(len(asked), 3000)
        asked = asked[::STRIDE]
        with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
            for what, text in zip(asked, pool.map(lambda one: wrong(*one), asked)):
                with self.subTest(what):
                    self.assertEqual(text, "")


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--every"])
