# SPDX-License-Identifier: GPL-2.0-only
"""Progress of imports: what is shown when, with a clock of the test, and the bytes on disk of packed traces."""

import gzip
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from frameworks.json_stream import JsonStream  # noqa: E402
from support.progress import Progress  # noqa: E402


class ProgressLines(unittest.TestCase):
    def test_the_rest_at_the_speed_so_far(self):
        """10 of 100 units a second: after 5 s half is done, and 5 s remain; the second line comes after 5 s more. The next
        work has an estimate of its own: 1 of 4 in 6 s, and 18 s for the other 3."""
        clock, out = [0.0], io.StringIO()
        progress = Progress("weft import", now=lambda: clock[0], stream=out)
        progress.begin("reading", 100)
        for second in range(1, 10):
            clock[0] = float(second)
            progress.advance(10)
        progress.begin("writing", 4)
        clock[0] += 6
        progress.advance(1)
        self.assertEqual(out.getvalue(), "weft import: reading: 50 %, about 5 s left\n"
                                         "weft import: writing: 25 %, about 18 s left\n")

    def test_quiet_or_short(self):
        for enabled, seconds in ((False, 60.0), (True, 0.5)):
            clock, out = [0.0], io.StringIO()
            progress = Progress("weft import", enabled, lambda: clock[0], out)
            progress.begin("reading", 2)
            clock[0] = seconds
            progress.advance(1)
            progress.end()
            self.assertEqual(out.getvalue(), "")

    def test_bytes_of_files(self):
        """All bytes of the file count when it has been read, packed or not."""
        text = b'{"events": [' + b", ".join(b'{"ts": %d}' % i for i in range(200_000)) + b"]}"
        with tempfile.TemporaryDirectory() as folder:
            for name, content in (("a.json", text), ("a.json.gz", gzip.compress(text))):
                path = pathlib.Path(folder) / name
                path.write_bytes(content)
                progress = Progress("weft import", False)
                progress.begin("reading", len(content))
                self.assertEqual(sum(1 for _ in JsonStream(path, progress).members({"events"})), 200_000)
                self.assertEqual(progress.done, len(content))


if __name__ == "__main__":
    unittest.main()
