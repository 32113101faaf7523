#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Every source names its licence in its first line, or in the second below `#!`; what may be executed has that line."""

import os
import pathlib
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ["src", "collectives", "topologies", "workloads", "tests", "validation", "scripts", ".ci"]
SUFFIXES = {".cpp", ".hpp", ".in", ".py", ".sh", ".cmake", ".yaml", ".txt", ""}
OTHERS = [ROOT / "tests" / name for name in ("fuzz/corpus", "fuzz/found", "samples")]  # inputs, which may be anything
LICENCE = "SPDX-License-Identifier: GPL-2.0-only"


def sources(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES and not set(OTHERS) & set(path.parents):
                yield path
    yield from (path for path in [root / "CMakeLists.txt", root / ".clang-format", root / ".clang-tidy"] if path.exists())


def without_licence(root):
    result = []
    for path in sources(root):
        lines = path.read_text(errors="replace").splitlines()
        first, second = (lines + ["", ""])[:2]
        if not (second if first.startswith("#!") else first).endswith(LICENCE):
            result.append(path.relative_to(root).as_posix())
    return result


def without_interpreter(root):
    """Files that may be executed, and that a shell would run as its own script."""
    return [path.relative_to(root).as_posix() for path in sources(root)
            if os.access(path, os.X_OK) and not path.read_bytes().startswith(b"#!")]


class Interpreter(unittest.TestCase):
    def test_all_sources(self):
        self.assertEqual(without_interpreter(ROOT), [])

    def test_what_has_none_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tests").mkdir()
            for name, text, mode in (("good.py", "#!/usr/bin/python3\n", 0o755), ("none.py", "import os\n", 0o755),
                                     ("module.py", "import os\n", 0o644)):
                (root / "tests" / name).write_text(text)
                (root / "tests" / name).chmod(mode)
            self.assertEqual(without_interpreter(root), ["tests/none.py"])


class Licence(unittest.TestCase):
    def test_all_sources(self):
        self.assertGreater(len(list(sources(ROOT))), 500)
        self.assertEqual(without_licence(ROOT), [])

    def test_what_has_none_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "src" / "app").mkdir(parents=True)
            (root / "scripts").mkdir()
            (root / "src" / "app" / "good.cpp").write_text(f"// {LICENCE}\n")
            (root / "src" / "app" / "none.cpp").write_text("// A source.\n")
            (root / "src" / "app" / "late.hpp").write_text(f"#pragma once\n// {LICENCE}\n")
            (root / "src" / "app" / "empty.hpp").write_text("")
            (root / "scripts" / "good").write_text(f"#!/bin/sh\n# {LICENCE}\n")
            (root / "scripts" / "none").write_text("#!/bin/sh\necho\n")
            expected = ["src/app/empty.hpp", "src/app/late.hpp", "src/app/none.cpp", "scripts/none"]
            self.assertEqual(without_licence(root), expected)


if __name__ == "__main__":
    unittest.main()
