#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Processors: 2
"""SIGINT and SIGTERM end a run on all ranks within seconds with a readable file marked incomplete; SIGKILL never leaves
a file that looks finished."""

import json
import os
import pathlib
import signal
import sys
import time
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import (EXIT_INTERRUPTED, FAT_TREE, NETWORK, ProgramTest, attributes, processes_in, start, stop,
                          table, wait_until)

# Every host but 2 and 3 sends for hours; these two exchange one short message, which is captured: when the capture
# grows, packets fly, on every process, since none is further than an epoch ahead of the others.
SHORT = 10**6
LONG = {
    "topology": FAT_TREE,
    "network": NETWORK,
    "workload": {"kind": "program", "ranks": 16, "operations": [
        {"rank": 2, "send": f"{SHORT} B", "to": 3},
        {"rank": 3, "recv": f"{SHORT} B", "from": 2},
        *({"rank": a, "send": "1 TiB", "to": b} for a, b in zip([0, 1, *range(4, 16)], [*range(4, 16), 0, 1])),
        *({"rank": b, "recv": "1 TiB", "from": a} for a, b in zip([0, 1, *range(4, 16)], [*range(4, 16), 0, 1])),
    ]},
    "output": {"pcap": ["host2:0"], "operations": True, "sampling": "1 ms"},
}
CAPTURE_HEADER = 24  # bytes of an empty pcap file

SECONDS = 30  # to the end of a run; on an idle machine it takes a tenth of one

# mpirun waits so many seconds before it passes a signal on as SIGTERM, and again before it kills. One, its default, can
# be too short on a loaded machine.
PATIENT = {"OMPI_MCA_odls_base_sigkill_timeout": "4"}


class InterruptTest(ProgramTest):
    def folder_for(self, name):
        folder = self.folder / name
        folder.mkdir()
        return folder

    def begin(self, ranks=None, *words, folder=None, extra=None):
        """Starts a long run into out.h5 and waits until it simulates."""
        folder = folder or self.folder
        process = start(["run", self.write(LONG), "-o", "out.h5", "--summary", "json", "--quiet", *words], ranks,
                        folder, extra)
        self.addCleanup(stop, process)
        capture = folder / "out.host2-0.pcap"
        wait_until(lambda: capture.exists() and capture.stat().st_size > CAPTURE_HEADER, "packets", process)
        self.assertEqual(len(processes_in(folder)), ranks or 1)
        self.assertTrue((folder / "out.h5.partial").exists())
        return process

    def end(self, process, folder=None):
        """Waits for the end of a run that got a signal. Returns its exit code and its output."""
        out, err = process.communicate(timeout=SECONDS)
        wait_until(lambda: not processes_in(folder or self.folder), "the end of all ranks", seconds=SECONDS)
        return process.returncode, out, err

    def assert_incomplete(self, results):
        """The file has its final name, can be read, is marked incomplete, and has what had happened until then."""
        self.assertFalse(results.with_name(results.name + ".partial").exists())
        about = attributes(results)
        self.assertEqual(about["complete"], 0)
        self.assertGreater(about["simulated_time"], 0)
        self.assertGreater(table(results, "links")["data_packets"].sum(), 0)
        messages = table(results, "messages")
        self.assertTrue(set(messages["bytes"]) <= {SHORT})  # delivered or not, but no other
        self.assertEqual(len(table(results, "ranks")["rank"]), 16)
        self.assertGreater(len(table(results, "links_series")["link"]), 0)
        self.assertTrue((table(results, "operations")["kind"] >= 2).all())
        with h5py.File(results) as file:
            self.assertIn("1 TiB", file["manifest/experiment_text"].asstr()[()])

    def assert_interrupted(self, done, results, ranks=1):
        code, out, err = done
        self.assertEqual((code, err), (EXIT_INTERRUPTED, ""))
        summary = json.loads(out)
        self.assertFalse(summary["complete"])
        self.assertEqual(summary["mpi_ranks"], ranks)
        self.assert_incomplete(results)
        self.assertEqual(summary["simulated_time_ps"], attributes(results)["simulated_time"])

    def assert_killed(self, folder):
        """No file has the final name; the file with the other name can be read as far as it was written."""
        self.assertFalse((folder / "out.h5").exists())
        partial = folder / "out.h5.partial"
        self.assertEqual(attributes(partial)["complete"], 0)
        with h5py.File(partial) as file:
            self.assertIn("1 TiB", file["manifest/experiment_text"].asstr()[()])
            self.assertNotIn("messages", file)


class Alone(InterruptTest):
    def test_no_daemon_beside_it(self):
        """Open MPI would start one for a program without mpirun, and take a third of a second for it."""
        for isolated, daemons in [("", 0), ("0", 1)]:  # by itself; as somebody asks for it
            with self.subTest(isolated=isolated):
                folder = self.folder_for(f"isolated-{isolated}")
                extra = {"OMPI_MCA_ess_singleton_isolated": isolated} if isolated else {}
                process = self.begin(folder=folder, extra=extra)
                children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                self.assertEqual(len(children), daemons)

    def test_control_c(self):
        """The terminal sends SIGINT to all processes of the job, also to Open MPI's daemon beside the program."""
        process = self.begin(extra={"OMPI_MCA_ess_singleton_isolated": "0"})
        os.killpg(process.pid, signal.SIGINT)
        self.assert_interrupted(self.end(process), self.folder / "out.h5")

    def test_sigterm(self):
        process = self.begin()
        process.send_signal(signal.SIGTERM)
        self.assert_interrupted(self.end(process), self.folder / "out.h5")

    def test_reference_engine(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            with self.subTest(number.name):
                process = self.begin(None, "--engine", "ns3-default", folder=self.folder_for(number.name))
                process.send_signal(number)
                folder = self.folder / number.name
                self.assert_interrupted(self.end(process, folder), folder / "out.h5")

    def test_from_the_first_moment(self):
        """As soon as there is a file, a signal leaves no other traces than later."""
        for pause in [0, 0.001, 0.01]:  # s, so that it comes in different steps
            with self.subTest(pause=pause):
                folder = self.folder_for(str(pause))
                process = start(["run", self.write(LONG), "-o", "out.h5", "--quiet"], folder=folder)
                self.addCleanup(stop, process)
                partial = folder / "out.h5.partial"
                while not partial.exists() and process.poll() is None:
                    pass
                time.sleep(pause)
                process.send_signal(signal.SIGTERM)
                code, out, err = self.end(process, folder)
                self.assertEqual((code, out, err), (EXIT_INTERRUPTED, "", ""))
                self.assertFalse(partial.exists())
                self.assertEqual(attributes(folder / "out.h5")["complete"], 0)

    def test_the_summary_says_so(self):
        process = start(["run", self.write(LONG), "-o", "out.h5"], folder=self.folder)
        self.addCleanup(stop, process)
        capture = self.folder / "out.host2-0.pcap"
        wait_until(lambda: capture.exists() and capture.stat().st_size > CAPTURE_HEADER, "packets", process)
        process.send_signal(signal.SIGINT)
        _, out, _ = self.end(process)
        self.assertIn("(interrupted: incomplete)", out)

    def test_sigkill(self):
        process = self.begin()
        process.kill()
        self.assertEqual(self.end(process)[0], -signal.SIGKILL)
        self.assert_killed(self.folder)

    def test_older_results_survive_sigkill(self):
        old, content = self.folder / "out.h5", b"\x89HDF\r\n\x1a\n"  # the signature of HDF5
        old.write_bytes(content)
        process = self.begin()
        process.kill()
        self.end(process)
        self.assertEqual(old.read_bytes(), content)
        self.assertEqual(attributes(self.folder / "out.h5.partial")["complete"], 0)
        # The remaining file does not disturb the next run.
        short = {**LONG, "workload": {"kind": "traffic", "pattern": "pairs", "pairs": [[2, 3]], "size": "1 kB"}}
        summary, results = self.simulate(short)
        self.assertTrue(summary["complete"])
        self.assertEqual(attributes(results)["complete"], 1)
        self.assertFalse((self.folder / "out.h5.partial").exists())


STAR_OF_16 = {"kind": "star", "hosts": 16, "link_rate": "400 Gb/s", "link_delay": "500 ns"}
RING = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring"}
PERIODIC = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "size": "1 B",
            "start": {"process": "periodic", "interval": "1 ps", "count": 10**12}}


class Anywhere(InterruptTest):
    """A signal ends a command at any point: in an endless moment of simulated time, in its set-up, while it counts; alone, and
    when one of several processes gets it."""

    LONG = 3.0  # seconds from the signal to the end
    LOADED = 3.0  # more on a loaded machine, until mpirun has cleaned up

    def experiment(self, workload, topology=None, **network):
        return self.write({"topology": topology or STAR_OF_16, "network": {**NETWORK, **network}, "workload": workload,
                           "output": {"file": "out.h5"}})

    def check(self, words, ranks=None, number=signal.SIGTERM, pause=1.0, file=False):
        """The command still runs after a while (`file`: since its results exist), and does not for long after a signal."""
        folder = self.folder_for(f"{number.name}-{ranks}-{words[0]}")
        process = start(words, ranks, folder)
        self.addCleanup(stop, process)
        wait_until(lambda: len(processes_in(folder)) == (ranks or 1), "all processes", process)
        if file:
            wait_until(lambda: list(folder.glob("out.h5*")), "a file for results", process)
        time.sleep(pause)
        self.assertIsNone(process.poll(), "it has ended by itself")
        begin = time.monotonic()
        os.kill(wait_until(lambda: processes_in(folder), "a process to end", process)[-1], number)
        code, _, err = self.end(process, folder)
        self.assertLess(time.monotonic() - begin, self.LONG + self.LOADED)
        self.assertEqual((code, err), (EXIT_INTERRUPTED, ""))
        return folder

    def check_run(self, path, *words):
        """A file is there, under its own name if there was time to close it, readable and incomplete."""
        for ranks in [None, 2]:
            with self.subTest(words=words, ranks=ranks):
                folder = self.check(["run", path, "--quiet", *words], ranks, file=True)
                found = [name for name in [folder / "out.h5", folder / "out.h5.partial"] if name.exists()]
                self.assertEqual(len(found), 1)
                self.assertEqual(attributes(found[0])["complete"], 0)
                if ranks is None:
                    self.assertEqual(found[0].name, "out.h5")
                (folder / found[0].name).unlink()
                folder.rmdir()

    def test_slices_of_a_byte(self):
        self.check_run(self.experiment({**RING, "size": "1 GB", "chunk_size": "1 B"}, ))

    def test_a_million_starts_in_a_moment(self):
        self.check_run(self.experiment(PERIODIC))
        self.check_run(self.experiment(PERIODIC), "--set", "network.fidelity=ideal")

    def test_a_huge_collective(self):
        self.check_run(self.experiment({**RING, "size": "1048576 TiB"}))

    def test_series_that_take_longer_to_write(self):
        """In a second of link delay a queue that stands still has two million intervals: rows of all ports in one epoch.
        Queues stand because a packet of 4 KiB takes 33 ms on each link, and 15 hosts send to one."""
        slow = {"topology": {"kind": "fat_tree", "k": 4, "link_rate": "1 Mb/s", "link_delay": "1 s"},
                "network": {"congestion_control": "dcqcn"},
                "workload": {"kind": "traffic", "pattern": "incast", "size": "297 KiB", "ranks": 16},
                "output": {"sampling": "503 ns"}}
        path = self.write(slow, "slow.yaml")
        for ranks in [None, 2]:
            folder = self.check(["run", path, "-o", "out.h5", "--quiet"], ranks, pause=2.0, file=True)
            found = [name for name in [folder / "out.h5", folder / "out.h5.partial"] if name.exists()]
            self.assertEqual([attributes(name)["complete"] for name in found], [0])

    def test_reference_engine(self):
        path = self.experiment(PERIODIC)
        folder = self.check(["run", path, "--quiet", "--engine", "ns3-default"], file=True)
        self.assertEqual(attributes(folder / "out.h5")["complete"], 0)

    def test_other_commands(self):
        periodic = self.experiment(PERIODIC)
        large = self.write({"kind": "fat_tree", "k": 64, "link_rate": "1 Gb/s", "link_delay": "1 us"}, "large.yaml")
        commands = [
            ["describe", periodic],
            ["workload", periodic],
            ["topology", large, "--processes", "64"],
            ["collective", "ring", "--ranks", "64", "--size", "1TiB", "--chunk-size", "1KiB", "--check"],
            ["perf", "all_reduce", self.write({"topology": STAR_OF_16, "network": NETWORK}, "perf.yaml"),
             "-b", "1GiB", "-e", "64GiB"],
            ["bench"],
        ]
        for words in commands:
            for number in [signal.SIGINT, signal.SIGTERM]:
                with self.subTest(words[0], number=number.name):
                    self.check(words, None, number)
        self.check(commands[0], 2)
        self.check(commands[3], 2)


class UnderMpi(InterruptTest):
    def test_signal_to_mpirun(self):
        """mpirun sends SIGTERM to its ranks, whichever signal it got, and ends with its own exit code, 1."""
        cases = [(2, signal.SIGINT), (4, signal.SIGTERM)]
        folders = [self.folder_for(str(ranks)) for ranks, _ in cases]
        runs = [self.begin(ranks, folder=folder, extra=PATIENT) for (ranks, _), folder in zip(cases, folders)]
        for process, (_, number) in zip(runs, cases):  # both at once: most of the time mpirun waits
            process.send_signal(number)
        for process, folder, (ranks, _) in zip(runs, folders, cases):
            with self.subTest(ranks=ranks):
                code, _, err = self.end(process, folder)
                self.assertEqual((code, err), (1, ""))
                self.assert_incomplete(folder / "out.h5")

    def test_signal_to_one_rank(self):
        """As a batch system may send it: the other ranks learn of it and all end with the same exit code."""
        for ranks, number in [(2, signal.SIGTERM), (4, signal.SIGINT)]:
            with self.subTest(ranks=ranks):
                folder = self.folder_for(str(ranks))
                process = self.begin(ranks, folder=folder)
                os.kill(processes_in(folder)[-1], number)
                self.assert_interrupted(self.end(process, folder), folder / "out.h5", ranks)

    def test_no_lock_is_shared_with_mpirun(self):
        """A process that ends while it holds one, mostly in MPI_Init, would leave mpirun waiting for it for ever."""
        self.begin(2)
        for process in processes_in(self.folder):
            maps = pathlib.Path(f"/proc/{process}/maps").read_text()
            self.assertIn("libpmix.so", maps)
            shared = {pathlib.Path(line.split()[-1]) for line in maps.splitlines() if "pmix_dstor" in line}
            self.assertEqual(shared, set())

    def test_sigkill_of_mpirun(self):
        process = self.begin(2)
        process.kill()
        self.assertEqual(self.end(process)[0], -signal.SIGKILL)
        self.assert_killed(self.folder)

    def test_sigkill_of_one_rank(self):
        """The others cannot finish without it: mpirun ends them. Its exit code is 128 and the signal, as a shell's."""
        process = self.begin(2)
        os.kill(processes_in(self.folder)[0], signal.SIGKILL)
        self.assertEqual(self.end(process)[0], 128 + signal.SIGKILL)
        self.assert_killed(self.folder)


if __name__ == "__main__":
    unittest.main()
