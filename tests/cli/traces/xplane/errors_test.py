#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft import xplane` of damaged files, what contradicts itself, memory."""

# Time limit: 300 s

import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
from weft_testing import EXIT_INPUT, SOURCE, weft
from xplane_files import Profile, iota, lists, nccl, two_gpus
from xplane_testing import MIB, SUM, XplaneTest


class Errors(XplaneTest):
    @staticmethod
    def lasts(duration, start=400):
        profile = two_gpus()
        profile.kernel(0, start, duration, 60, "odd")
        return profile

    def test_damage(self):
        content = two_gpus().coded()
        for what, bad, says in (
                ("cut", content[:-40], r"cut.xplane.pb: byte \d+: .*; the file is damaged, or no profile of XLA"),
                ("no device", Profile(devices=0).coded(), "there is no plane of a GPU or TPU with operations"),
                ("negative", self.lasts(-50).coded(), r"byte \d+: an event of -50000000 ps; expected 0 or more"),
                ("far", self.lasts(1, 10**13).coded(), r"byte \d+: a time of \d+ ps; expected less than 53 days from")):
            with self.subTest(what):
                (self.folder / f"{what.split()[0]}.xplane.pb").write_bytes(bad)
                self.refused(f"{what.split()[0]}.xplane.pb", says=[says])
        module = self.mesh_module(iota([4, 3], [8]))
        profile = Profile(devices=1, modules=[module])
        profile.kernel(0, 10, 5, 1, SUM, "c.1", "jit_f")
        self.refused(self.profile(profile), says=[r"byte \d+: groups of devices that do not fit together"])
        module = self.mesh_module(lists([[0, 9]]))
        profile = Profile(devices=8, modules=[module])
        profile.kernel(0, 10, 5, 1, SUM, "c.1", "jit_f")
        self.refused(self.profile(profile), says=[r"'c.1' names a device that is none of the 8 of the module 'jit_f'"])

    def test_rows_that_are_known_when_it_runs(self):
        module = self.mesh_module(iota([1, 8], [8]), "ragged-all-to-all")
        profile = Profile(devices=8, modules=[module])
        for device in range(8):
            profile.kernel(device, 10, 5, 1, nccl("SendRecv"), "c.1", "jit_f")
        name = self.profile(profile)
        self.refused(name, says=["the number of rows for each receiver is known only when it runs; --ragged even"])
        self.assertEqual(self.imported(name, "--ragged", "even")["bytes"], {"all_to_all": 8 * 2 * MIB})

    def test_ranks_with_different_calls(self):
        profile = two_gpus()
        profile.kernel(0, 300, 5, 50, SUM, "all-reduce-start.1", "jit_step", 20)
        self.refused(self.profile(profile), says=["rank 1 makes 1 call in the group .0, 1., and rank 0 .* 2"])

    def test_the_trace_of_perfetto_is_none_of_pytorch(self):
        """JAX writes one beside the profile, of which nothing says what it communicates."""
        self.profile(two_gpus(), "log/h.xplane.pb")
        (self.folder / "log" / "h.trace.json").write_text('{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},\n'
                                                          '"traceEvents":[{"ph":"X","ts":1,"dur":2,"name":"a"}]}')
        done = weft("import", "auto", "log", "-o", "out.yaml", "--json", folder=self.folder)
        self.assertEqual(done.code, 0, done)
        self.assertIn('"format": "xplane"', done.out)
        done = weft("import", "pytorch", "log", "-o", "out.yaml", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertRegex(done.err, r"^weft: log/h.trace.json: XLA's profiler has written this trace for viewers")

    def test_memory_does_not_grow_with_the_trace(self):
        """Four times the events: at most 8 MiB more."""
        peaks = []
        for steps in (1500, 6000):
            two_gpus(steps).write(self.folder / f"{steps}.xplane.pb")
            program = ("import sys; sys.path.insert(0, sys.argv[1]); from importing.command import import_command; "
                       "import_command(['xplane', sys.argv[2], '-o', sys.argv[3], '--for-run']); "
                       "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))")
            done = subprocess.run([sys.executable, "-c", program, str(SOURCE / "scripts"),
                                   str(self.folder / f"{steps}.xplane.pb"), str(self.folder / "big.yaml")],
                                  capture_output=True, text=True, check=True)
            peaks.append(int(done.stdout.split()[-1]))
        self.assertLess(peaks[1], peaks[0] + 8192, peaks)


if __name__ == "__main__":
    unittest.main()
