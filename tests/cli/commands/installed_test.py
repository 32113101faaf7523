#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The results of `cmake --install` and `cpack` work in an empty folder at any place, and are removed completely."""
# Time limit: 600 s
# Runs in: full

import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import SOURCE, ProgramTest, environment

BUILD = pathlib.Path(os.environ.get("WEFT_BUILD", SOURCE / "build"))


class Installed(ProgramTest):
    def call(self, *words, folder=None):
        done = subprocess.run([*map(str, words)], cwd=folder or self.folder, env=environment(), text=True,
                              capture_output=True, timeout=300, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, f"$ {' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def check(self, prefix):
        """Everything by its name and from an empty folder: not a byte is read from the source tree."""
        empty = self.folder / "empty"
        empty.mkdir()
        weft = prefix / "bin/weft"
        share = prefix / "share/weft"
        self.call(weft, "run", share / "workloads/quickstart.yaml", "-o", "out.h5", "--quiet", folder=empty)
        self.call(prefix / "bin/weft-same-results", "out.h5", "out.h5", folder=empty)
        self.call(prefix / "bin/weft-plot", "out.h5", "--kind", "links", "-o", ".", folder=empty)
        self.assertTrue((empty / "out.links.png").exists())
        # The module that reads results, where Debian's Python looks for modules if the prefix is /usr.
        modules = prefix / "lib/python3/dist-packages"
        code = f"""import sys; sys.path.insert(0, {str(modules)!r})
import weft_results; print(*weft_results.open("out.h5").tables)"""
        self.assertIn("messages", self.call(sys.executable, "-B", "-c", code, folder=empty))
        self.call(weft, "export", "out.h5", "--trace", "out.json.gz", "--csv", "tables", folder=empty)
        self.assertIn("as fast as", self.call(weft, "compare", "out.h5", "out.h5", folder=empty))
        self.call(weft, "report", "out.h5", folder=empty)
        self.assertIn("uPlot", (empty / "out.html").read_text())
        self.call(weft, "topology", share / "workloads/quickstart.yaml", "--picture", "machine.png", "--quiet", folder=empty)
        self.assertEqual((empty / "machine.png").read_bytes()[:4], b"\x89PNG")
        # A ready-made machine with a ready-made server, a selection, a model and a device.
        self.call(weft, "topology", share / "topologies/specs/h100_rail_optimised.yaml", folder=empty)
        self.call(weft, "collective", "open_mpi", "--ranks", 8, "--size", "1MiB", folder=empty)
        study = share / "workloads/studies/networks_of_256_gpus.yaml"
        self.assertIn("halving_doubling", self.call(weft, "sweep", study, "--list", folder=empty))
        self.assertIn("torus_2d", self.call(weft, "propose", "16", folder=empty))
        self.assertIn("1024", self.call(weft, "plan", share / "workloads/incast.yaml", folder=empty))
        self.assertIn("energy_per_step", self.call(weft, "account", "out.h5", folder=empty))
        self.call(weft, "describe", share / "workloads/permutation.yaml", "--set",
                  "workload={kind: traffic, pattern: permutation, sizes: hadoop}", folder=empty)
        # Files are looked for here, and not where the program was built.
        selections = share / "collectives/selections"
        (selections / "ours.yaml").write_bytes((selections / "mpich.yaml").read_bytes())
        self.call(weft, "collective", "ours", "--ranks", 8, "--size", "1MiB", folder=empty)
        (selections / "ours.yaml").unlink()
        self.call("mpirun", "-n", 2, weft, "run", share / "workloads/incast.yaml", "-o", "two.h5", "--quiet", folder=empty)

    def test_a_tree_that_was_moved(self):
        self.call("cmake", "--install", BUILD, "--prefix", self.folder / "first")
        (self.folder / "first").rename(self.folder / "second")
        self.check(self.folder / "second")

    def test_a_package_in_an_empty_root(self):
        self.call("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", self.folder)
        package, = self.folder.glob("weft_*.deb")
        depends = self.call("dpkg-deb", "--field", package, "Depends")
        for name in ["openmpi-bin", "libsz2", "libns3", "libopenmpi", "libyaml-cpp", "libmetis", "libc6"]:
            self.assertIn(name, depends)
        root = self.folder / "root"
        (root / "var/lib/dpkg/info").mkdir(parents=True)
        (root / "var/lib/dpkg/updates").mkdir()
        (root / "var/lib/dpkg/status").touch()
        before = sorted(path.relative_to(root) for path in root.rglob("*") if "var/lib/dpkg" not in str(path))
        dpkg = ["dpkg", f"--root={root}", "--force-not-root", "--force-depends", "--force-script-chrootless"]
        self.call(*dpkg, "-i", package)
        self.check(root / "usr")
        self.call(*dpkg, "--purge", "weft")
        after = sorted(path.relative_to(root) for path in root.rglob("*") if "var/lib/dpkg" not in str(path))
        self.assertEqual(after, before)


if __name__ == "__main__":
    unittest.main()
