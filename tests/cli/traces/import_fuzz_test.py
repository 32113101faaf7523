#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The importers' readers on damaged input: whatever bytes change, they read it or say what is wrong with it.

tests/cli/traces/import_fuzz_test.py --minutes N [FORMAT...]   goes on for that long with each format, from a seed of
                                                               its own, and says how many inputs it has tried;
                                                               without: 2 s each"""

# Time limit: 300 s

import argparse
import contextlib
import importlib.util
import io
import pathlib
import random
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import SOURCE  # noqa: E402

sys.path.insert(0, str(SOURCE / "scripts"))
from importing import registry  # noqa: E402
from importing.command import complete, format_parser  # noqa: E402
from importing.experiment_text import experiment_text  # noqa: E402
from support.errors import StudyError  # noqa: E402

SECONDS, FORMATS = 2.0, None
WORDS = [b"0", b"-1", b"99999999999999999999", b"1e400", b"nan", b"\n", b"", b" ", b"{", b"]", b"\xff", b"\"", b":",
         b"x"]


def sample(name, folder):
    spec = importlib.util.spec_from_file_location("sample", SOURCE / "tests" / "importers" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [module.sample(folder), *([module.further(folder)] if hasattr(module, "further") else [])]


def mutated(content, numbers):
    """A few places of it changed, left out or doubled."""
    content = bytearray(content)
    for _ in range(numbers.choice([1, 1, 1, 2, 5])):
        at = numbers.randrange(len(content) + 1)
        end = min(len(content), at + numbers.choice([0, 1, 1, 2, 4, 9, 40]))
        what = numbers.choice([b"", numbers.choice(WORDS), bytes([numbers.randrange(256)]), content[at:end] * 2])
        content[at:end] = what
    return bytes(content)


class Fuzz(unittest.TestCase):
    def read(self, name, words):
        """As the command does, without weft's own reading."""
        module = registry.load(name)
        with contextlib.redirect_stderr(io.StringIO()):
            options = format_parser(name, module).parse_args(words)
        try:
            imported = module.read(options)
            complete(imported, options)
            experiment_text(imported, lambda value: "file")
            for produce in list(imported.files.values())[:100]:
                produce(io.BytesIO())
        except StudyError as error:
            self.assertNotIn("\n", str(error))
            return False
        return True

    def fuzz(self, name, folder):
        inputs = [[str(folder / word) if (folder / word).exists() or list(folder.glob(f"{word}.*")) else word
                   for word in words] for words in sample(name.replace("-", "_"), folder)]
        for words in inputs:
            self.assertTrue(self.read(name, words))
        files = [path for path in folder.rglob("*") if path.is_file()]
        seed = f"{name} {SECONDS}" if FORMATS is None else f"{name} {time.time_ns()}"
        numbers, ends, count, taken = random.Random(seed), time.monotonic() + SECONDS, 0, 0
        while time.monotonic() < ends:
            path = numbers.choice(files)
            whole = path.read_bytes()
            changed = mutated(whole, numbers)
            path.write_bytes(changed)
            try:
                taken += sum(self.read(name, words) for words in inputs)
            except Exception as error:
                raise AssertionError(f"{name}: {path.name} of {changed!r}") from error
            path.write_bytes(whole)
            count += len(inputs)
        if FORMATS is not None:
            print(f"{name:14} {count:>9,} inputs, of which {taken:,} were read and the others refused", flush=True)
        return count

    def test_readers(self):
        for name in FORMATS or registry.formats():
            with self.subTest(format=name), tempfile.TemporaryDirectory() as folder:
                self.assertGreater(self.fuzz(name, pathlib.Path(folder)), 5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("formats", nargs="*")
    wanted = parser.parse_args()
    if wanted.minutes:
        SECONDS, FORMATS = 60 * wanted.minutes, wanted.formats or registry.formats()
    unittest.main(argv=sys.argv[:1], warnings="ignore")
